//! Settings of changing the embedding model.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::parse_seconds;

/// Settings for changing the embedding model of tenants.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct ReembedSettings {
    /// Directory of another embedding model, with the same files. Tenants whose vectors come
    /// from it are searched with it until they are re-embedded [default: none].
    #[arg(long, env = "LODESTONE_PREVIOUS_MODEL_DIR", value_name = "PATH")]
    pub previous_model_dir: Option<PathBuf>,
    /// Comma-separated directories of additional embedding models, to which individual tenants are
    /// moved with `lodestone reembed --tenant ID --to NAME` [default: none].
    #[arg(long, env = "LODESTONE_FURTHER_MODEL_DIRS", value_name = "PATHS", value_delimiter = ',')]
    pub further_model_dirs: Vec<PathBuf>,
    /// Idle seconds after which the weights of a model other than that of model-dir are unloaded;
    /// its next use loads them again.
    #[arg(
        long,
        env = "LODESTONE_FURTHER_MODEL_IDLE",
        value_name = "SECONDS",
        default_value = "1800",
        value_parser = parse_seconds
    )]
    pub further_model_idle: Duration,
    /// Hours for which the previous vectors of a re-embedded tenant are kept. Until then the tenant
    /// can be switched back to them.
    #[arg(
        long,
        env = "LODESTONE_PREVIOUS_VECTORS_HOURS",
        value_name = "HOURS",
        default_value_t = 168
    )]
    pub previous_vectors_hours: u64,
}
