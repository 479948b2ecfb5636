//! Loads the reranker, the reader and the sparse model of a server.

use std::path::Path;

use lodestone_embed::{CrossEncoder, EmbedError, Embedder, ModelFiles, SparseModel};
use lodestone_engine::settings::Settings;

/// A file that keeps the name of an installed model whose directory is named for its purpose.
pub const NAME_FILE: &str = "NAME";

/// Loads the reranker that the settings name, or the one in the default directory; `None` if none
/// was named and there is none.
///
/// # Errors
/// If a named reranker does not exist, or the model is not a reranker.
pub fn load(settings: &Settings) -> Result<Option<CrossEncoder>, String> {
    let place = settings.reranker_path();
    if settings.beside.reranker_dir.is_none() && !place.exists() {
        return Ok(None);
    }
    let (threads, precision) = (settings.embed_threads, settings.embedding_precision);
    let loaded = read(&place).and_then(|files| CrossEncoder::load_in(&files, threads, precision));
    loaded.map(Some).map_err(|error| format!("reranker in {}: {error}", place.display()))
}

/// Loads the reader built into the program, if the embedding model is the one it was made for. Its
/// weights are read with the first question, and refused if the directory holds another model by
/// then.
///
/// # Errors
/// If the files of the model cannot be read.
pub fn load_reader(
    settings: &Settings,
    model: &dyn Embedder,
) -> Result<Option<CrossEncoder>, String> {
    if !settings.beside.reader {
        return Ok(None);
    }
    // Half of the cores stay free for searches, however many questions arrive.
    let threads = (settings.embed_threads / 2).max(1);
    let precision = settings.embedding_precision;
    let place = settings.model_dir.clone();
    let texts =
        || ModelFiles::read_without_weights(&settings.model_dir, &|path| std::fs::read(path));
    let source = move || ModelFiles::read(&place, &|path| std::fs::read(path));
    let reader = CrossEncoder::reader(model.fingerprint(), texts, source, threads, precision);
    reader.map_err(|error| format!("reader next to {}: {error}", settings.model_dir.display()))
}

/// Loads the sparse model that the settings name, or the one in the default directory; `None` if
/// none was named and there is none.
///
/// # Errors
/// If a named model does not exist, or the model is not a sparse model.
pub fn load_sparse(settings: &Settings) -> Result<Option<SparseModel>, String> {
    let place = settings.sparse_path();
    if settings.beside.sparse_dir.is_none() && !place.exists() {
        return Ok(None);
    }
    let (threads, precision) = (settings.embed_threads, settings.embedding_precision);
    let loaded = read(&place).and_then(|files| SparseModel::load(&files, threads, precision));
    loaded.map(Some).map_err(|error| format!("sparse model in {}: {error}", place.display()))
}

/// Reads the files of a reranker or sparse model, with its original name if that was kept.
///
/// # Errors
/// As [`ModelFiles::read`].
pub fn read(dir: &Path) -> Result<ModelFiles, EmbedError> {
    let mut files = ModelFiles::read(dir, &|path| std::fs::read(path))?;
    if let Ok(name) = std::fs::read_to_string(dir.join(NAME_FILE)) {
        name.trim().clone_into(&mut files.name);
    }
    Ok(files)
}
