//! Fingerprints of models: hashes over everything that determines a vector.

use sha2::{Digest, Sha256};

use crate::config::ModelConfig;
use crate::files::ModelFiles;
use crate::prompts::Prompts;
use crate::sentence::Projection;
use crate::steps::Steps;

/// Version of the computation, part of every fingerprint. It changes whenever the files of a model
/// would give other vectors than before, such as with another window or pooling.
const COMPUTATION: &str = "lodestone bert 1";

/// Returns the fingerprint of a sentence model. Dense layers, the document prompt and the width of
/// truncated vectors are included only if present, so that models without them keep their
/// fingerprint. The query prompt is left out, since no stored vector depends on it.
pub(super) fn fingerprint_of(
    config: &ModelConfig,
    files: &ModelFiles,
    steps: &Steps,
    projection: &Projection,
    (prompts, cut): (&Prompts, Option<usize>),
) -> String {
    let mut more = String::new();
    let mut weights: Vec<&[u8]> = Vec::new();
    if !projection.is_empty() {
        more.push_str(&format!("\n{}", projection.identity()));
        let folders = steps.dense.iter().flatten();
        let files_of = |folder| files.parts.get(&format!("{folder}/model.safetensors"));
        weights.extend(folders.filter_map(files_of).map(Vec::as_slice));
    }
    if !prompts.document.is_empty() {
        more.push_str(&format!("\ndocuments behind {:?}", prompts.document));
    }
    if let Some(width) = cut {
        more.push_str(&format!("\ncut to {width}"));
    }
    fingerprint(config, files, &more, &weights)
}

/// Computes SHA-256 over the computation's version, the parsed configuration with `more` appended,
/// tokenizer and weights. The raw configuration is left out: one model is published with differing
/// comments in it.
pub(super) fn fingerprint(
    config: &ModelConfig,
    files: &ModelFiles,
    more: &str,
    more_weights: &[&[u8]],
) -> String {
    let mut hash = Sha256::new();
    let settings = format!("{COMPUTATION}\n{}\n{}{more}", config.window(), config.identity());
    let parts = [settings.as_bytes(), &files.tokenizer, &files.weights];
    for part in parts.into_iter().chain(more_weights.iter().copied()) {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// Returns the fingerprint of a model that consists of another one and an adapter.
pub(super) fn adapted(base: &str, adapter: &[u8]) -> String {
    hex::encode(Sha256::new().chain_update(base).chain_update(adapter).finalize())
}
