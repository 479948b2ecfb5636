//! Verbs for people: questions to a running server and its answers as tables.
//!
//! - `options`: flags of all of them; `profile`: servers and keys by name; `connection`: both put
//!   together, one request and its answer; `failure`: what went wrong, and the exit code
//! - `screen`: text of documents made harmless, tables, questions before a deletion
//! - `mcp`: the tools of a server on standard input and output
//! - `archive`: tenants out of a server and into another; `import`: what other products hold
//! - `search`, `ask`, `graph`: questions; `sources`, `jobs`, `keys`, `tenants`, `memories`: lists;
//!   `reembed`: the model of tenants; `webhooks`: receivers of events

mod archive;
mod ask;
pub mod connection;
pub mod failure;
mod graph;
mod import;
mod jobs;
mod keys;
mod mcp;
mod memories;
pub mod options;
mod profile;
mod reembed;
pub mod screen;
mod search;
mod sources;
mod tenants;
mod webhooks;

use std::process::ExitCode;

pub use archive::ExportOptions;
pub use ask::AskOptions;
pub use graph::GraphOptions;
pub use import::ImportOptions;
pub use jobs::JobsOptions;
pub use keys::KeyOptions;
pub use mcp::McpOptions;
pub use memories::MemoryOptions;
pub use reembed::ReembedOptions;
pub use search::SearchOptions;
pub use sources::SourcesOptions;
pub use tenants::TenantOptions;
pub use webhooks::WebhookOptions;

use failure::Failure;

/// Appended to the help of each verb.
const EXIT_CODES: &str = "Exit code 0: done; 1: failed; 2: wrong usage; 3: not found; \
                          4: no valid key, or one that may not do this.";
/// Appended to the help of the verbs that search and ask.
const EXIT_CODES_OF_SEARCHES: &str = concat!(
    "Exit code 0: done; 1: failed; 2: wrong usage; 3: tenant not found; ",
    "4: no valid key, or one that may not do this; 5: nothing was found."
);

/// A verb that asks a server.
pub trait ClientVerb {
    /// Asks, and prints the answer.
    ///
    /// # Errors
    /// [`Failure`].
    fn run(&self) -> Result<(), Failure>;
}

/// Runs a verb and reports its failure.
pub fn run(verb: &dyn ClientVerb) -> ExitCode {
    match verb.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("lodestone: {}", screen::one_line(&failure.to_string()));
            ExitCode::from(failure.exit_code())
        }
    }
}
