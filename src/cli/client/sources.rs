//! `lodestone sources`: lists, shows and deletes sources.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{cell, confirm, moment, print_pairs, print_table};
use super::{ClientVerb, EXIT_CODES};

/// List, show and delete sources.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct SourcesOptions {
    #[command(subcommand)]
    verb: SourcesVerb,
    #[command(flatten)]
    server: ServerOptions,
}

/// Operations on sources.
#[derive(Debug, Subcommand)]
enum SourcesVerb {
    /// List sources, newest first.
    Ls {
        /// Only sources in this state: queued, in_progress, success or errored.
        #[arg(long)]
        status: Option<String>,
        /// Maximum number of sources [default: all].
        #[arg(long, short = 'n', value_name = "N")]
        limit: Option<u32>,
    },
    /// Show a source.
    Show {
        /// Source id.
        id: String,
    },
    /// Delete sources and everything derived from them.
    Rm {
        /// Source ids.
        #[arg(required = true)]
        ids: Vec<String>,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

impl ClientVerb for SourcesOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        match &self.verb {
            SourcesVerb::Ls { status, limit } => list(&connection, status.as_deref(), *limit),
            SourcesVerb::Show { id } => show(&connection, id),
            SourcesVerb::Rm { ids, yes } => remove(&connection, ids, *yes),
        }
    }
}

fn list(connection: &Connection, status: Option<&str>, limit: Option<u32>) -> Result<(), Failure> {
    let limit = limit.map(|limit| limit.to_string());
    let pairs = [("status", status), ("limit", limit.as_deref())];
    let pairs: Vec<(&str, &str)> =
        pairs.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    connection.get(connection.scoped("/list/sources", &pairs)?, |answer| {
        let row = |source: &Value| {
            vec![
                cell(&source["id"]),
                cell(&source["status"]),
                cell(&source["type"]),
                cell(&source["chunk_count"]),
                moment(&source["timestamp"]),
                cell(&source["title"]),
            ]
        };
        let rows = answer["sources"].as_array().into_iter().flatten().map(row).collect();
        print_table(&["ID", "STATUS", "TYPE", "CHUNKS", "UPLOADED", "TITLE"], rows);
    })
}

fn show(connection: &Connection, id: &str) -> Result<(), Failure> {
    let mut is_found = false;
    let body = connection.body(json!({"source_ids": [id]}))?;
    let find = |answer: &Value| {
        let Some(source) = answer["sources"].as_array().and_then(|sources| sources.first()) else {
            return;
        };
        is_found = true;
        let members = source.as_object().into_iter().flatten();
        let members = members.filter(|(name, _)| *name != "indexing_status");
        let text = |name: &str, value: &Value| match name {
            "timestamp" | "updated_at" | "source_time" => moment(value),
            _ => cell(value),
        };
        let pairs: Vec<(&str, String)> =
            members.map(|(name, value)| (name.as_str(), text(name, value))).collect();
        print_pairs(&pairs);
    };
    if connection.is_json {
        return connection.post("/list/sources_by_id", &body, |_| ());
    }
    connection.post("/list/sources_by_id", &body, find)?;
    match is_found {
        true => Ok(()),
        false => Err(Failure::NotFound(format!("source {id} not found"))),
    }
}

fn remove(connection: &Connection, ids: &[String], yes: bool) -> Result<(), Failure> {
    let tenant = connection.tenant()?;
    confirm(&format!("delete {} of tenant {tenant}", ids.join(", ")), yes)?;
    let pairs: Vec<(&str, &str)> = ids.iter().map(|id| ("source_ids", id.as_str())).collect();
    let mut not_found = Vec::new();
    connection.delete(connection.scoped("/upload/delete_source", &pairs)?, |answer| {
        for id in answer["deleted"].as_array().into_iter().flatten() {
            println!("{}", cell(id));
        }
        not_found.extend(answer["not_found"].as_array().into_iter().flatten().map(cell));
    })?;
    match not_found.as_slice() {
        [] => Ok(()),
        ids => Err(Failure::NotFound(format!("source not found: {}", ids.join(", ")))),
    }
}
