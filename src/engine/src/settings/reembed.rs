//! Settings of changing the embedding model.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::parse_seconds;

/// Settings of changing the embedding model of tenants.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ReembedSettings {
    /// Directory of another embedding model, with the same files: tenants whose vectors it has made
    /// are searched with it until they are re-embedded [default: none].
    #[arg(long, env = "LODESTONE_PREVIOUS_MODEL_DIR", value_name = "PATH")]
    pub previous_model_dir: Option<PathBuf>,
    /// Directories of further embedding models, separated by commas, that single tenants are moved
    /// to with `lodestone reembed --tenant ID --to NAME` [default: none].
    #[arg(long, env = "LODESTONE_FURTHER_MODEL_DIRS", value_name = "PATHS", value_delimiter = ',')]
    pub further_model_dirs: Vec<PathBuf>,
    /// Seconds without use after which the weights of a model other than that of model-dir leave
    /// the memory; its next use loads them again.
    #[arg(
        long,
        env = "LODESTONE_FURTHER_MODEL_IDLE",
        value_name = "SECONDS",
        default_value = "1800",
        value_parser = parse_seconds
    )]
    pub further_model_idle: Duration,
    /// Hours for which the vectors of before are kept after a tenant was re-embedded; they can be
    /// switched back to so long.
    #[arg(
        long,
        env = "LODESTONE_PREVIOUS_VECTORS_HOURS",
        value_name = "HOURS",
        default_value_t = 168
    )]
    pub previous_vectors_hours: u64,
}
