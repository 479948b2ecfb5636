//! `lodestone import`: creates a tenant from an archive, or fills one with the data of another
//! product.
//!
//! ```text
//! archive -> POST /tenant/import
//! qdrant  -> scroll, page by page -+
//! chroma  -> get, page by page ----+-> records -> batches -+-> upload_embeddings
//! jsonl   -> files, line by line --+                       +-> batch_upload_text
//! ```
//! The ids of records come from the input, and those of batches from their records, so a run can be
//! repeated: existing records are replaced, or skipped with `--resume`.
//!
//! - `record`: one validated record; `sender`: sends records in batches; `tally`: what was imported
//! - `jsonl`, `qdrant`, `chroma`: sources of records; `remote`: the server of another product

mod chroma;
mod jsonl;
mod qdrant;
mod record;
mod remote;
mod sender;
mod tally;

use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;

use clap::{Args, ValueEnum};
use lodestone_types::Metric;

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::one_line;
use super::{ClientVerb, EXIT_CODES, archive};
use crate::cli::ingest;
use crate::cli::ingest::call::{CallError, Caller, FIRST_ATTEMPTS_MAX, LOST_ATTEMPTS_MAX};
use crate::cli::ingest::send::Tally as Processed;
use crate::cli::ingest::server::Server;
use crate::cli::ingest::stop::{self, HOW_TO_RESUME, Stop};
use crate::cli::transport::Transport;
use sender::Sender;

/// Create a tenant from an archive, or fill one with data of another product. A vector tenant that
/// does not exist is created, which requires an admin key.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct ImportOptions {
    /// Archive file (`-` means standard input), file or folder of JSON Lines, or address of a
    /// Qdrant or Chroma server.
    #[arg(value_name = "PLACE")]
    place: PathBuf,
    /// Type of PLACE: an archive written by `lodestone export`; JSON Lines with `text` or `vector`,
    /// and `id` and `metadata`; or a server, whose key is read from QDRANT_API_KEY or
    /// CHROMA_API_KEY.
    #[arg(long = "from", value_enum, default_value_t, value_name = "KIND")]
    kind: Kind,
    /// Collection of Qdrant or Chroma to import.
    #[arg(long, value_name = "NAME")]
    collection: Option<String>,
    /// Vector to import, if the points in Qdrant have several.
    #[arg(long, value_name = "NAME")]
    vector: Option<String>,
    /// Metric of a tenant that is created: cosine, dot or l2 [default: that of the collection, else
    /// cosine].
    #[arg(long, value_parser = metric)]
    metric: Option<Metric>,
    /// Skip what is already stored, even if it has changed since, instead of replacing it.
    #[arg(long)]
    resume: bool,
    /// Exit once the texts are searchable, and report those that failed.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    server: ServerOptions,
}

/// Types of places.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Archive of a tenant.
    #[default]
    Archive,
    /// JSON Lines.
    Jsonl,
    /// Qdrant server.
    Qdrant,
    /// Chroma server.
    Chroma,
}

fn metric(word: &str) -> Result<Metric, String> {
    Metric::from_word(word).ok_or_else(|| "must be one of cosine, dot, l2".to_owned())
}

impl ClientVerb for ImportOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        if self.kind == Kind::Archive {
            if self.metric.is_some() {
                let problem = "--metric: does not apply to an archive, which keeps its metric";
                return Err(Failure::Usage(problem.to_owned()));
            }
            return archive::import(&connection, &self.place);
        }
        let stop = stop::at_interrupt().map_err(|error| Failure::Failed(error.to_string()))?;
        let sent_bytes = AtomicU64::new(0);
        let caller = caller(connection.http(), &stop, &sent_bytes);
        let server =
            Server { caller, tenant: connection.tenant()?, sub_tenant: connection.sub_tenant() };
        let first = Caller { lost_attempts_max: FIRST_ATTEMPTS_MAX, ..caller };
        let is_there = Server { caller: first, ..server }.sources(&[]);
        is_there.map_err(|error| failure(connection.server(), error))?;
        let mut sender = Sender::new(caller, &connection, self.resume)?;
        let read = match self.kind {
            Kind::Qdrant => qdrant::read(self, &stop, &mut sender),
            Kind::Chroma => chroma::read(self, &stop, &mut sender),
            Kind::Jsonl | Kind::Archive => jsonl::read(self, &mut sender),
        };
        if stderr().is_terminal() {
            eprintln!();
        }
        let waited = match read {
            Ok(()) if self.wait => wait(&server, &mut sender),
            read => read,
        };
        sender.tally.print(connection.is_json);
        waited?;
        if !self.wait && !sender.accepted.is_empty() {
            eprintln!(
                "lodestone: texts can be searched once they are processed: see lodestone jobs ls \
                 --tenant {}, or wait with --wait",
                server.tenant
            );
        }
        match sender.tally.refused() {
            0 => Ok(()),
            refused => Err(Failure::Failed(format!("{refused} not imported: see the list above"))),
        }
    }
}

/// Waits until the texts are processed, and records failures in the tally.
fn wait(server: &Server<'_>, sender: &mut Sender<'_>) -> Result<(), Failure> {
    let tally = Processed::default();
    let waited = ingest::wait(server, &sender.accepted, &tally);
    for failed in tally.failures.lock().iter() {
        sender.tally.taken -= 1;
        sender.tally.refuse(&failed.name, &format!("not processed: {}", failed.message));
    }
    waited.map(drop).map_err(|error| failure(sender.server(), error))
}

/// Creates a caller that repeats requests while a server is busy or unreachable.
fn caller<'a>(transport: &'a dyn Transport, stop: &'a Stop, sent: &'a AtomicU64) -> Caller<'a> {
    let note = &|text: &str| eprintln!("lodestone: {}", one_line(text));
    let lost_attempts_max = LOST_ATTEMPTS_MAX;
    Caller { transport, pause: stop, lost_attempts_max, sent_bytes: sent, note }
}

/// Converts the error of a request to a server.
fn failure(server: &str, error: CallError) -> Failure {
    match error {
        CallError::Stopped => Failure::Failed(HOW_TO_RESUME.to_owned()),
        CallError::Unreachable { .. } => Failure::Failed(format!("{server}: {error}")),
        CallError::Refused(body) => {
            let told = serde_json::json!({"message": body.message, "reason": body.reason});
            Failure::of(server, body.status, None, &told)
        }
    }
}
