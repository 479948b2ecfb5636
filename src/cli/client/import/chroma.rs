//! Import from a Chroma collection, read over version 2 of its HTTP interface:
//! `GET .../collections/{name}` for id and metric, `POST .../{id}/get` for the records, page by
//! page in insertion order.

use lodestone_types::{Metadata, Metric};
use serde_json::{Value, json};

use super::ImportOptions;
use super::record::{Record, taken};
use super::remote::Remote;
use super::sender::{Contents, Sender};
use crate::cli::client::failure::Failure;
use crate::cli::ingest::stop::Stop;
use crate::cli::transport::escaped;

/// Records per page; with the widest vectors, about 20 MB.
const PAGE_RECORDS: usize = 500;

/// Sends the records of a collection.
///
/// # Errors
/// [`Failure`] if the collection cannot be read or has an unsupported metric, or the server fails.
pub fn read(options: &ImportOptions, stop: &Stop, sender: &mut Sender<'_>) -> Result<(), Failure> {
    let chroma = Remote::new(options, stop, "x-chroma-token", "CHROMA_API_KEY")?;
    let part = |variable: &str, default: &str| {
        let set = std::env::var(variable).ok().filter(|value| !value.is_empty());
        escaped(&set.unwrap_or_else(|| default.to_owned()))
    };
    let tenant = part("CHROMA_TENANT", "default_tenant");
    let database = part("CHROMA_DATABASE", "default_database");
    let all = format!("/api/v2/tenants/{tenant}/databases/{database}/collections");
    let found = chroma.ask(format!("{all}/{}", escaped(chroma.collection)), None)?;
    let Some(id) = found["id"].as_str() else {
        return Err(chroma.failed("its response contains no collection; is it a Chroma server?"));
    };
    let metric = match options.metric {
        Some(metric) => metric,
        None => metric_of(&found["configuration_json"])?,
    };
    sender.open_vectors(Some(metric))?;
    let path = format!("{all}/{}/get", escaped(id));
    for offset in (0_usize..).step_by(PAGE_RECORDS) {
        let body = json!({
            "limit": PAGE_RECORDS, "offset": offset,
            "include": ["embeddings", "documents", "metadatas"],
        });
        let mut page = chroma.ask(path.clone(), Some(&body))?;
        let Some(ids) = page["ids"].as_array().cloned() else {
            return Err(chroma.failed("its response contains no records; is it a Chroma server?"));
        };
        for (at, id) in ids.iter().enumerate() {
            let name = id.as_str().unwrap_or_default();
            match record(name, at, &mut page) {
                Ok(record) => drop(sender.push(Contents::Vectors, name, record)),
                Err(reason) => sender.tally.refuse(name, &reason),
            }
        }
        sender.flush(Contents::Vectors)?;
        if ids.len() < PAGE_RECORDS {
            break;
        }
    }
    Ok(())
}

/// Returns the metric that corresponds to a collection's index.
fn metric_of(configuration: &Value) -> Result<Metric, Failure> {
    let spaces = ["hnsw", "spann"].map(|index| configuration[index]["space"].as_str());
    match spaces.into_iter().flatten().next() {
        Some("cosine") => Ok(Metric::Cosine),
        Some("ip") => Ok(Metric::Dot),
        Some("l2") => Ok(Metric::L2),
        other => Err(Failure::Usage(format!(
            "the collection uses the metric {}: choose one with --metric",
            other.unwrap_or("an unknown space")
        ))),
    }
}

/// Converts a record of a page; an error is the reason why it cannot be imported.
fn record(id: &str, at: usize, page: &mut Value) -> Result<Record, String> {
    let Value::Array(vector) = taken(page, &format!("/embeddings/{at}")) else {
        return Err("without a vector".to_owned());
    };
    let text = page["documents"][at].as_str().map(str::to_owned);
    let metadata: Metadata = match taken(page, &format!("/metadatas/{at}")) {
        Value::Object(map) => map,
        _ => Metadata::new(),
    };
    Record::new(id, text, Some(vector), metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_spaces_are_read_as_chroma_gives_them() {
        let mut page = json!({
            "ids": ["a", "b"], "embeddings": [[1.0, 2.0], null], "documents": ["text a", null],
            "uris": null, "metadatas": [{"n": 1}, null],
        });
        let first = record("a", 0, &mut page).unwrap();
        assert_eq!(Value::Object(first.metadata), json!({"n": 1, "text": "text a"}));
        assert_eq!(record("b", 1, &mut page), Err("without a vector".to_owned()));
        for mut other in [json!({"embeddings": null}), json!({"embeddings": [[1]]}), json!([])] {
            assert!(record("b", 1, &mut other).is_err(), "{other}");
        }
        let of = |space: &str| metric_of(&json!({"hnsw": {"space": space}, "spann": null}));
        assert_eq!(of("ip").unwrap(), Metric::Dot);
        assert_eq!(metric_of(&json!({"spann": {"space": "l2"}})).unwrap(), Metric::L2);
        assert!(of("other").is_err() && metric_of(&Value::Null).is_err());
    }
}
