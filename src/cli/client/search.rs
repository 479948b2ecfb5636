//! `lodestone search`: finds the best passages for a query.

use clap::{Args, value_parser};
use lodestone_types::limits;
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{cell, one_line, print_table};
use super::{ClientVerb, EXIT_CODES_OF_SEARCHES};
use crate::cli::transport::{Payload, Request};

/// Find passages by meaning and keywords.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES_OF_SEARCHES)]
pub struct SearchOptions {
    /// Query text.
    query: String,
    /// Maximum number of passages.
    #[arg(long, short = 'n', default_value_t = 10, value_name = "N",
        value_parser = value_parser!(u32).range(1..=limits::RESULTS_MAX as i64))]
    limit: u32,
    /// Search more thoroughly and take longer: several forms of the query, more candidates, and the
    /// reranker if installed.
    #[arg(long)]
    accurate: bool,
    #[command(flatten)]
    server: ServerOptions,
}

impl ClientVerb for SearchOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        let mode = if self.accurate { "accurate" } else { "fast" };
        let members = json!({"query": self.query, "max_chunks": self.limit, "mode": mode});
        let body = connection.body(members)?;
        let path = "/search/retrieve".to_owned();
        let answer =
            connection.show(&Request { path, body: Some(Payload::Json(&body)) }, |answer| {
                let rows = answer["chunks"].as_array().into_iter().flatten().map(row).collect();
                print_table(&["SCORE", "SOURCE", "TITLE", "PAGE", "PASSAGE"], rows);
                lacking(&answer["metadata"]).iter().for_each(|line| eprintln!("note: {line}"));
            })?;
        match answer["chunks"].as_array().is_none_or(Vec::is_empty) {
            true => Err(Failure::NothingFound),
            false => Ok(()),
        }
    }
}

/// Describes what the results lack, one line each.
pub(super) fn lacking(metadata: &Value) -> Vec<String> {
    let reason = cell(&metadata["degraded_message"]);
    let words = metadata["degraded"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let line = |word: &str| match word {
        "embedder_unavailable" => {
            let reason = if reason.is_empty() { "the embedding server fails" } else { &reason };
            format!("keyword search only: {reason}")
        }
        "model_mismatch" => {
            "keyword search only: the tenant's vectors were made by another model".to_owned()
        }
        "segments_quarantined" => "part of the tenant is damaged and was not searched".to_owned(),
        "reranker_unavailable" => "the results were not reranked".to_owned(),
        "reranking_partial" => {
            "the reranker ran out of time: not all results were reranked".to_owned()
        }
        "generator_unavailable" => {
            "the generator failed: this answer is extracted from the documents".to_owned()
        }
        "session_not_remembered" => "this turn could not be stored in the session".to_owned(),
        word => one_line(word),
    };
    let mut lines: Vec<String> = words.map(line).collect();
    if lines.is_empty() && !reason.is_empty() {
        lines.push(format!("new texts wait and cannot be found yet: {reason}"));
    }
    lines
}

fn row(chunk: &Value) -> Vec<String> {
    let score = chunk["relevancy_score"].as_f64().unwrap_or(0.0);
    vec![
        format!("{score:.3}"),
        cell(&chunk["source_id"]),
        cell(&chunk["source_title"]),
        page(chunk),
        cell(&chunk["chunk_content"]),
    ]
}

/// Returns page, slide or sheet of a chunk, from the JSON text of its layout.
fn page(chunk: &Value) -> String {
    let layout = chunk["layout"].as_str().unwrap_or_default();
    let layout: Value = serde_json::from_str(layout).unwrap_or(Value::Null);
    let named = ["page", "slide", "sheet"].map(|name| cell(&layout[name]));
    named.into_iter().find(|name| !name.is_empty()).unwrap_or_default()
}
