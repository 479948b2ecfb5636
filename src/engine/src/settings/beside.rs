//! Settings of the models beside the embedding model.

use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Optional models, used if they are present.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct BesideSettings {
    /// Directory of a reranker for `accurate` searches, with the same files as the embedding model
    /// [default: reranker beside the embedding model, if present].
    #[arg(long, env = "LODESTONE_RERANKER_DIR", value_name = "PATH")]
    pub reranker_dir: Option<PathBuf>,
    /// Whether the built-in reader scores the passages of extractive answers. It supports English
    /// only, and only with the embedding model all-MiniLM-L6-v2.
    #[arg(
        long,
        env = "LODESTONE_READER",
        value_name = "BOOLEAN",
        action = ArgAction::Set,
        default_value_t = true
    )]
    pub reader: bool,
    /// Directory of a sparse model [default: sparse beside the embedding model, if present].
    #[arg(long, env = "LODESTONE_SPARSE_DIR", value_name = "PATH")]
    pub sparse_dir: Option<PathBuf>,
}
