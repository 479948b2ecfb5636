//! Fingerprints of models: hashes over everything that decides a vector.

use sha2::{Digest, Sha256};

use crate::config::ModelConfig;
use crate::files::ModelFiles;
use crate::prompts::Prompts;
use crate::sentence::Projection;
use crate::steps::Steps;

/// Changes whenever the same files would give other vectors than before: another window,
/// another pooling. It is part of the fingerprint.
const COMPUTATION: &str = "lodestone bert 1";

/// The fingerprint of a sentence model. Dense layers, the prompt of documents and the width of cut
/// vectors are parts of it where there are some, so that models without keep theirs; the prompt of
/// queries is none, since no stored vector is made with it.
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

/// SHA-256 over the computation, the configuration as understood and `more` of it, tokenizer and
/// weights. The configuration's text is left out: the same model is published with different
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
