//! The flags of `lodestone ingest`.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::cli::client::options::ServerOptions;

const EXIT_CODES: &str =
    "Exit code 0: everything was processed; 1: something failed; 2: nothing could be done.";

/// The options of `lodestone ingest`.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct IngestOptions {
    /// Files, directories (searched recursively, hidden files skipped), quoted globs or web
    /// addresses. Source ids consist of the names from the argument onwards, so that another run
    /// replaces the sources.
    #[arg(required = true, value_name = "PATH|GLOB|URL")]
    pub inputs: Vec<PathBuf>,
    /// Document metadata for all sources: a JSON object, or @FILE containing one [default: existing
    /// metadata is kept].
    #[arg(long, value_name = "JSON|@FILE")]
    pub metadata: Option<String>,
    /// Tenant metadata for all sources: a JSON object, or @FILE containing one [default: existing
    /// metadata is kept].
    #[arg(long, value_name = "JSON|@FILE")]
    pub tenant_metadata: Option<String>,
    /// Origin of the source time of each file [default: none, the upload time applies].
    #[arg(long, value_enum, value_name = "FROM")]
    pub source_time: Option<SourceTime>,
    /// Number of concurrent requests, 1 to 64.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,
    /// Delete sources that earlier runs uploaded from the given folders and whose files no longer
    /// exist.
    #[arg(long, conflicts_with = "no_state")]
    pub delete: bool,
    /// Do not ask for confirmation before deleting the sources of a folder that has no files left.
    #[arg(long, requires = "delete")]
    pub yes: bool,
    /// Exit once everything is accepted, without waiting for processing.
    #[arg(long)]
    pub no_wait: bool,
    /// Show what would be uploaded, without contacting a server.
    #[arg(long)]
    pub dry_run: bool,
    /// Upload only matching files; a pattern without a slash matches the file name. May be
    /// repeated.
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// Skip matching files and directories; a pattern without a slash matches the name. May be
    /// repeated.
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// File that records accepted items [default: under $XDG_STATE_HOME or ~/.local/state].
    #[arg(long, value_name = "FILE", conflicts_with = "no_state")]
    pub state: Option<PathBuf>,
    /// Keep no record, so that every run uploads everything.
    #[arg(long)]
    pub no_state: bool,
    /// Server to upload to; the key needs the role write.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// Origin of a source time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceTime {
    /// Modification time of the file.
    Mtime,
}
