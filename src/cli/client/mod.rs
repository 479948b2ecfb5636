//! Interactive verbs, which query a running server and print its responses as tables.
//!
//! - `options`: flags shared by all of them; `profile`: named servers and keys; `connection`:
//!   requests with both; `failure`: errors and exit codes
//! - `screen`: safe output of document text, tables, confirmation before deletions
//! - `mcp`: the tools of a server on standard input and output
//! - `archive`: export and import of tenants; `import`: import from other products
//! - `search`, `ask`, `graph`: questions; `sources`, `jobs`, `keys`, `tenants`, `memories`: lists
//!   and changes; `reembed`: the embedding model of tenants; `webhooks`: event receivers

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

/// Exit codes listed in the help of each verb.
const EXIT_CODES: &str = "Exit code 0: done; 1: failed; 2: wrong usage; 3: not found; \
                          4: no valid key, or its role is too low.";
/// Exit codes listed in the help of the verbs that search and ask.
const EXIT_CODES_OF_SEARCHES: &str = concat!(
    "Exit code 0: done; 1: failed; 2: wrong usage; 3: tenant not found; ",
    "4: no valid key, or its role is too low; 5: nothing was found."
);

/// A verb that queries a server.
pub trait ClientVerb {
    /// Runs the verb and prints the response.
    ///
    /// # Errors
    /// [`Failure`], which determines the exit code.
    fn run(&self) -> Result<(), Failure>;
}

/// Runs a verb, and reports its failure on standard error.
pub fn run(verb: &dyn ClientVerb) -> ExitCode {
    match verb.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("lodestone: {}", screen::one_line(&failure.to_string()));
            ExitCode::from(failure.exit_code())
        }
    }
}
