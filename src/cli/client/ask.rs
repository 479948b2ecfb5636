//! `lodestone ask`: prints an answer while it is being written, then its citations.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};

use clap::Args;
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{cell, lines};
use super::search::lacking;
use super::{ClientVerb, EXIT_CODES_OF_SEARCHES};
use crate::cli::print_text;
use crate::cli::transport::{Payload, Request};

const PATH: &str = "/search/qna";

/// Ask a question; the answer is based on the documents and cites them.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES_OF_SEARCHES)]
pub struct AskOptions {
    /// Question to answer.
    question: String,
    /// Name of a conversation; a question may refer to earlier ones in it.
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Search more thoroughly and take longer: several forms of the question, more candidates, and
    /// the reranker if installed.
    #[arg(long)]
    accurate: bool,
    #[command(flatten)]
    server: ServerOptions,
}

impl ClientVerb for AskOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        let mode = if self.accurate { "accurate" } else { "fast" };
        let members = json!({
            "question": self.question, "session_id": self.session, "mode": mode,
            "stream": !connection.is_json,
        });
        let body = connection.body(members)?;
        let request = Request { path: PATH.to_owned(), body: Some(Payload::Json(&body)) };
        let answer = match connection.is_json {
            true => connection.show(&request, |_| ())?,
            false => told(&connection, &request)?,
        };
        match citations(&answer).is_empty() {
            true => Err(Failure::NothingFound),
            false => Ok(()),
        }
    }
}

/// Prints an answer as it arrives, followed by its citations.
fn told(connection: &Connection, request: &Request<'_>) -> Result<Value, Failure> {
    let opened = connection.open(request)?;
    let done = read_events(BufReader::new(opened.body), &|delta| print_text(&lines(delta)))?;
    print_text("\n");
    for line in citations(&done) {
        println!("{line}");
    }
    lacking(&done["metadata"]).iter().for_each(|line| eprintln!("note: {line}"));
    Ok(done)
}

/// Reads the events of a streamed answer and returns the data of the last one, `done`.
fn read_events(stream: impl BufRead, print: &dyn Fn(&str)) -> Result<Value, Failure> {
    let broken = |problem: &str| Failure::Failed(format!("the answer ended early: {problem}"));
    let mut event = String::new();
    for line in stream.lines() {
        let line = line.map_err(|error| broken(&error.to_string()))?;
        if let Some(name) = line.strip_prefix("event:") {
            name.trim().clone_into(&mut event);
        }
        let Some(data) = line.strip_prefix("data:") else { continue };
        let data: Value = serde_json::from_str(data).map_err(|error| broken(&error.to_string()))?;
        match event.as_str() {
            "token" => print(data["delta"].as_str().unwrap_or_default()),
            "done" => return Ok(data),
            "error" => return Err(broken(data["message"].as_str().unwrap_or("no reason given"))),
            _ => {}
        }
    }
    Err(broken("the server closed the connection"))
}

/// Formats a numbered line with title, pages and id for each source that the answer cites.
fn citations(answer: &Value) -> Vec<String> {
    let mut pages: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for citation in answer["citations"].as_array().into_iter().flatten() {
        let Some(number) = citation["n"].as_u64() else { continue };
        let (page, known) = (cell(&citation["page"]), pages.entry(number).or_default());
        if !page.is_empty() && !known.contains(&page) {
            known.push(page);
        }
    }
    let line = |(number, pages): (u64, Vec<String>)| {
        let place = usize::try_from(number).unwrap_or(usize::MAX).saturating_sub(1);
        let source = &answer["sources"][place];
        let (title, id) = (cell(&source["source_title"]), cell(&source["source_id"]));
        let pages = match pages.as_slice() {
            [] => String::new(),
            [page] => format!(", page {page}"),
            pages => format!(", pages {}", pages.join(", ")),
        };
        format!("[{number}] {title}{pages} ({id})")
    };
    pages.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    #[test]
    fn events_are_read_until_the_last() {
        let text = "event: start\ndata: {}\n\n: still here\n\nevent: token\nid: 2\n\
                    data: {\"delta\":\"a\"}\n\nevent: token\ndata: {\"delta\":\"b\"}\n\n";
        let printed = RefCell::new(String::new());
        let print = |delta: &str| printed.borrow_mut().push_str(delta);
        let whole = format!("{text}event: done\ndata: {{\"answer\":\"ab\"}}\n\n");
        assert_eq!(read_events(whole.as_bytes(), &print).unwrap()["answer"], "ab");
        assert_eq!(printed.take(), "ab");
        let error = read_events(text.as_bytes(), &print).unwrap_err().to_string();
        assert!(error.contains("closed the connection"), "{error}");
        let failed = format!("{text}event: error\ndata: {{\"message\":\"no generator\"}}\n\n");
        let error = read_events(failed.as_bytes(), &print).unwrap_err().to_string();
        assert!(error.contains("no generator"), "{error}");
    }

    #[test]
    fn citations_name_title_and_pages() {
        let answer = json!({
            "citations": [{"n": 2, "page": 7}, {"n": 1, "page": null}, {"n": 2, "page": 9},
                {"n": 2, "page": 7}],
            "sources": [{"source_id": "a", "source_title": "A\u{1b}"},
                {"source_id": "b", "source_title": "B"}],
        });
        assert_eq!(citations(&answer), ["[1] A\u{fffd} (a)", "[2] B, pages 7, 9 (b)"]);
    }
}
