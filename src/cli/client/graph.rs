//! `lodestone graph`: shows relations that the documents state.

use clap::Args;
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{cell, print_table};
use super::{ClientVerb, EXIT_CODES};

/// Number of passages retrieved for the name of an entity.
const PASSAGES: u32 = 100;

/// List the relations of an entity, or those stated by sources.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct GraphOptions {
    /// Name of the entity; lists its relations in the best passages that name it.
    #[arg(required_unless_present = "source", conflicts_with = "source")]
    entity: Option<String>,
    /// List all relations stated by this source. May be repeated.
    #[arg(long, value_name = "ID")]
    source: Vec<String>,
    #[command(flatten)]
    server: ServerOptions,
}

impl ClientVerb for GraphOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        let Some(entity) = &self.entity else { return self.of_sources(&connection) };
        let members = json!({
            "query": entity, "alpha": 0, "max_chunks": PASSAGES, "graph_context": true,
        });
        connection.post("/search/retrieve", &connection.body(members)?, |answer| {
            let relations = &answer["graph_relations"];
            let stated = relations["chunk_triplets"].as_object().into_iter().flatten();
            let stated = stated.map(|(_, triplet)| triplet);
            let paths = relations["entity_paths"].as_array().into_iter().flatten();
            let led = paths.flat_map(|path| path["triplets"].as_array().into_iter().flatten());
            let mut rows: Vec<Vec<String>> =
                stated.chain(led).filter(|triplet| names(triplet, entity)).map(row).collect();
            rows.sort();
            rows.dedup();
            print(rows);
        })
    }
}

impl GraphOptions {
    fn of_sources(&self, connection: &Connection) -> Result<(), Failure> {
        let body = connection.body(json!({"source_ids": self.source}))?;
        let mut not_found = Vec::new();
        connection.post("/list/graph_relations_by_id", &body, |answer| {
            let sources = answer["relations"].as_object().into_iter().flatten();
            let triplets = sources.flat_map(|(_, listed)| listed.as_array().into_iter().flatten());
            print(triplets.map(row).collect());
            not_found.extend(answer["not_found"].as_array().into_iter().flatten().map(cell));
        })?;
        match not_found.as_slice() {
            [] => Ok(()),
            ids => Err(Failure::NotFound(format!("source not found: {}", ids.join(", ")))),
        }
    }
}

fn names(triplet: &Value, entity: &str) -> bool {
    let entity = entity.to_lowercase();
    let is_named = |end: &Value| {
        end["name"].as_str().is_some_and(|name| name.to_lowercase().contains(&entity))
    };
    is_named(&triplet["source"]) || is_named(&triplet["target"])
}

fn row(triplet: &Value) -> Vec<String> {
    let relation = &triplet["relation"];
    [&triplet["source"]["name"], &relation["canonical_predicate"], &triplet["target"]["name"]]
        .into_iter()
        .chain([&relation["context"]])
        .map(cell)
        .collect()
}

fn print(rows: Vec<Vec<String>>) {
    print_table(&["ENTITY", "RELATION", "ENTITY", "SENTENCE"], rows);
}
