//! The flags of `lodestone ingest`.

use std::path::PathBuf;

use clap::Args;
use serde::{Deserialize, Serialize};

use crate::cli::client::options::ServerOptions;

/// Send files and pages to a server. Exit code 0: everything was processed; 1: something failed;
/// 2: nothing could be done.
#[derive(Debug, Args)]
pub struct IngestOptions {
    /// Files, directories (walked through, hidden files left out), quoted globs, web addresses.
    /// An id is made of the names from the argument on, so that a second run replaces.
    #[arg(required = true, value_name = "PATH|GLOB|URL")]
    pub inputs: Vec<PathBuf>,
    /// Document metadata of everything: a JSON object, or @FILE that holds one [default: what the
    /// server has of each stays].
    #[arg(long, value_name = "JSON|@FILE")]
    pub metadata: Option<String>,
    /// Tenant metadata of everything: a JSON object, or @FILE that holds one [default: as above].
    #[arg(long, value_name = "JSON|@FILE")]
    pub tenant_metadata: Option<String>,
    /// Date of each file [default: none, so that the time of its upload counts].
    #[arg(long, value_enum, value_name = "FROM")]
    pub source_time: Option<SourceTime>,
    /// Requests in flight.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub jobs: u16,
    /// Delete sources that earlier runs sent from the named folders and whose files are gone.
    #[arg(long, conflicts_with = "no_state")]
    pub delete: bool,
    /// Do not ask before sources of a folder are deleted that holds no file any more.
    #[arg(long, requires = "delete")]
    pub yes: bool,
    /// End when everything is accepted, before it is processed.
    #[arg(long)]
    pub no_wait: bool,
    /// Say what would be sent, ask no server.
    #[arg(long)]
    pub dry_run: bool,
    /// Only files that match; without a slash the name alone counts. May be repeated.
    #[arg(long, value_name = "GLOB")]
    pub include: Vec<String>,
    /// No files or directories that match; without a slash the name alone counts.
    #[arg(long, value_name = "GLOB")]
    pub exclude: Vec<String>,
    /// File for the record of accepted items [default: below $XDG_STATE_HOME or ~/.local/state].
    #[arg(long, value_name = "FILE", conflicts_with = "no_state")]
    pub state: Option<PathBuf>,
    /// Keep nothing: every run sends everything.
    #[arg(long)]
    pub no_state: bool,
    /// The server; its key may write.
    #[command(flatten)]
    pub server: ServerOptions,
}

/// Origin of the date of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceTime {
    /// Its last modification.
    Mtime,
}
