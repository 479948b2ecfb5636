//! Settings of the models beside the embedding model.

use std::path::PathBuf;

use clap::{ArgAction, Args};

/// Models that take part where they are there.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct BesideSettings {
    /// Directory of a reranker for `accurate` searches, with the same files [default: reranker
    /// beside the embedding model, if it is there].
    #[arg(long, env = "LODESTONE_RERANKER_DIR", value_name = "PATH")]
    pub reranker_dir: Option<PathBuf>,
    /// Whether the reader that comes with the program judges the passages of extracted answers. It
    /// reads English, beside all-MiniLM-L6-v2 alone.
    #[arg(
        long,
        env = "LODESTONE_READER",
        value_name = "BOOLEAN",
        action = ArgAction::Set,
        default_value_t = true
    )]
    pub reader: bool,
    /// Directory of a sparse model [default: sparse beside the embedding model, if it is there].
    #[arg(long, env = "LODESTONE_SPARSE_DIR", value_name = "PATH")]
    pub sparse_dir: Option<PathBuf>,
}
