//! The command line: turns arguments into settings, settings into an engine, and an engine into a
//! server.
//!
//! - `arguments`: flags, environment and settings file, and their precedence; `origins`: secrets
//!   read from files, and the report of effective settings
//! - `serve`: the server, from banner to drain; `watch`: its log and its traces
//! - `verify`: checks everything on disk or in a bucket; `backup`: backups and restoring them
//! - `store`: copies data to a bucket and back
//! - `doctor`: checks the parts that a server would run on
//! - `ingest`: client of a running server that uploads files and pages
//! - `client`: interactive verbs that query a running server; `transport`: the HTTP client they
//!   share
//! - `bar`: progress line of a terminal; `progress`: progress in bytes; `scratch`: temporary
//!   directories
//! - `model`: models on this machine; the reranker and sparse model of a server
//! - `bench`: measures parts of the product on your own data

/// Like the standard macro, but a closed pipe (`lodestone model ls | head -1`) ends the program
/// quietly. Defined before the modules, so that it applies in all of them.
macro_rules! println {
    ($($argument:tt)*) => {
        $crate::cli::print_line(format_args!($($argument)*))
    };
}

mod arguments;
mod backup;
mod bar;
mod bench;
mod client;
mod doctor;
mod ingest;
mod ingest_node;
mod model;
mod origins;
mod progress;
mod scratch;
mod serve;
mod store;
mod transport;
mod verify;
mod waiting;
mod watch;

use std::error::Error;
use std::fmt::Arguments as Text;
use std::io::{ErrorKind, Write};
use std::path::Path;
use std::process::ExitCode;

use lodestone_extract::sandbox::serve_one;
use lodestone_fetch::Authorities;

use arguments::{Arguments, Verb};
use clap::CommandFactory as _;

/// Prints a line; exits quietly if standard output is a closed pipe.
fn print_line(text: Text<'_>) {
    print_text(&format!("{text}\n"));
}

/// Prints text and flushes it. A failed write, for example on a full disk, exits with a failure.
fn print_text(text: &str) {
    match write_text(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            eprintln!("lodestone: standard output: {error}");
            std::process::exit(1);
        }
        Ok(()) => {}
    }
}

/// Writes text to standard output and flushes it.
///
/// # Errors
/// [`ErrorKind::BrokenPipe`] if the reader is gone; other errors of the file or device.
fn write_text(text: &str) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush())
}

/// Runs the verb given on the command line; verbs that query a server have exit codes of their own.
///
/// # Errors
/// One sentence for the operator.
pub fn run() -> Result<ExitCode, Box<dyn Error>> {
    let arguments = Arguments::read(std::env::args_os()).map_err(|error| {
        match error.downcast::<clap::Error>() {
            Ok(error) => error.exit(),
            Err(error) => error,
        }
    })?;
    if let Verb::Backup(_) | Verb::Restore(_) | Verb::Store(_) | Verb::Verify(_) = &arguments.verb {
        watch::show_warnings();
    }
    match arguments.verb {
        Verb::Serve(options) | Verb::Doctor(options) if options.print_config => {
            print_text(&options.report);
            options.settings.validate()?;
        }
        Verb::Serve(options) => serve::run(options.settings)?,
        Verb::Doctor(options) => doctor::run(&options.settings)?,
        Verb::Ingest(options) => return Ok(ingest::run(&options)),
        Verb::Verify(options) => verify::run(&options)?,
        Verb::Backup(options) => backup::run(&options)?,
        Verb::Restore(options) => backup::run_restore(&options)?,
        Verb::Store(verb) => store::run(&verb)?,
        Verb::Model(verb) => model::run(&verb)?,
        Verb::Search(options) => return Ok(client::run(&*options)),
        Verb::Ask(options) => return Ok(client::run(&*options)),
        Verb::Sources(options) => return Ok(client::run(&*options)),
        Verb::Jobs(options) => return Ok(client::run(&*options)),
        Verb::Graph(options) => return Ok(client::run(&*options)),
        Verb::Mcp(options) => return Ok(client::run(&*options)),
        Verb::Export(options) => return Ok(client::run(&*options)),
        Verb::Import(options) => return Ok(client::run(&*options)),
        Verb::Memory(options) => return Ok(client::run(&*options)),
        Verb::Tenant(options) => return Ok(client::run(&*options)),
        Verb::Reembed(options) => return Ok(client::run(&*options)),
        Verb::Key(options) => return Ok(client::run(&*options)),
        Verb::Webhook(options) => return Ok(client::run(&*options)),
        Verb::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "lodestone", &mut script);
            print_text(&String::from_utf8(script)?);
        }
        Verb::Parse => serve_one()?,
        Verb::Bench(bench) => bench::run(&bench)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the certificate authorities to trust: those in `file`, else the built-in ones.
fn authorities(file: Option<&Path>) -> Result<Authorities, String> {
    let Some(file) = file else { return Ok(Authorities::default()) };
    Authorities::read(file).map_err(|problem| format!("--ca-file: {problem}"))
}

/// Formats a count with its noun: `1 row`, `2 rows`.
fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        _ => format!("{count} {thing}s"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_thing_is_singular() {
        let of = |count| super::counted(count, "segment");
        assert_eq!([of(0), of(1), of(2)], ["0 segments", "1 segment", "2 segments"]);
    }
}
