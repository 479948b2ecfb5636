//! The reranker, the reader and the sparse model of a server.

use std::path::Path;

use lodestone_embed::{CrossEncoder, EmbedError, Embedder, ModelFiles, SparseModel};
use lodestone_engine::settings::Settings;

/// A file beside an installed model that keeps its name, since its directory is named for its use.
pub const NAME_FILE: &str = "NAME";

/// The reranker that the settings name, or the one in the usual place; `None` where none was named
/// and none is there.
///
/// # Errors
/// One that was named and is not there, and one that is no reranker.
pub fn load(settings: &Settings) -> Result<Option<CrossEncoder>, String> {
    let place = settings.reranker_path();
    if settings.beside.reranker_dir.is_none() && !place.exists() {
        return Ok(None);
    }
    let (threads, precision) = (settings.embed_threads, settings.embedding_precision);
    let loaded = read(&place).and_then(|files| CrossEncoder::load_in(&files, threads, precision));
    loaded.map(Some).map_err(|error| format!("reranker in {}: {error}", place.display()))
}

/// The reader that comes with the program, where the embedding model is the one that it is made
/// for. Its weights are read with the first question, and refused where the directory holds another
/// model by then.
///
/// # Errors
/// A directory of the model whose files cannot be read.
pub fn load_reader(
    settings: &Settings,
    model: &dyn Embedder,
) -> Result<Option<CrossEncoder>, String> {
    if !settings.beside.reader {
        return Ok(None);
    }
    // Searches keep the other half where there are two or more, however many questions there are.
    let threads = (settings.embed_threads / 2).max(1);
    let precision = settings.embedding_precision;
    let place = settings.model_dir.clone();
    let source = move || ModelFiles::read(&place, &|path| std::fs::read(path));
    let reader = CrossEncoder::reader(model.fingerprint(), source, threads, precision);
    reader.map_err(|error| format!("reader beside {}: {error}", settings.model_dir.display()))
}

/// The sparse model that the settings name, or the one in the usual place; `None` where none was
/// named and none is there.
///
/// # Errors
/// One that was named and is not there, and one that is no sparse model.
pub fn load_sparse(settings: &Settings) -> Result<Option<SparseModel>, String> {
    let place = settings.sparse_path();
    if settings.beside.sparse_dir.is_none() && !place.exists() {
        return Ok(None);
    }
    let (threads, precision) = (settings.embed_threads, settings.embedding_precision);
    let loaded = read(&place).and_then(|files| SparseModel::load(&files, threads, precision));
    loaded.map(Some).map_err(|error| format!("sparse model in {}: {error}", place.display()))
}

/// The files of a reranker or a sparse model, under its own name if that was kept.
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
