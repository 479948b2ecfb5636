//! Import from JSON Lines: `{"id": .., "text": .., "vector": [..], "metadata": {..}}`, of which
//! only text or vector is required. The first record decides whether texts or vectors are imported.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use lodestone_types::Metadata;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::ImportOptions;
use super::record::{Record, id_text};
use super::sender::{Contents, Sender};
use crate::cli::client::failure::Failure;

/// Longest line in bytes.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// Extensions of the files read from a folder.
const EXTENSIONS: [&str; 2] = ["jsonl", "ndjson"];

#[derive(Debug, Deserialize)]
struct Line {
    id: Option<Value>,
    text: Option<String>,
    vector: Option<Vec<Value>>,
    metadata: Option<Metadata>,
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// Sends the records of a file, or of the files in a folder in order of name.
///
/// # Errors
/// [`Failure`] if a file cannot be read, or the server fails.
pub fn read(options: &ImportOptions, sender: &mut Sender<'_>) -> Result<(), Failure> {
    let mut contents = None;
    for path in files(&options.place)? {
        let stem = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let named = |error: std::io::Error| Failure::Usage(format!("{}: {error}", path.display()));
        let mut lines = BufReader::new(File::open(&path).map_err(named)?);
        let mut number = 0_u64;
        while let Some(line) = next_line(&mut lines).map_err(named)? {
            number += 1;
            let name = format!("{stem}:{number}");
            let record = match line.map(|line| parse(&line, &name)) {
                Ok(Ok(None)) => continue,
                Ok(Ok(Some((record, others)))) => {
                    others.iter().for_each(|other| sender.tally.leave_out(&format!("{other:?}")));
                    record
                }
                Ok(Err(reason)) | Err(reason) => {
                    sender.tally.refuse(&name, &reason);
                    continue;
                }
            };
            let chosen = match contents {
                Some(chosen) => chosen,
                None if record.vector.is_none() => {
                    if options.metric.is_some() {
                        let problem = "applies to vectors, but the first record has none";
                        return Err(Failure::Usage(format!("--metric {problem}")));
                    }
                    Contents::Texts
                }
                None => {
                    sender.open_vectors(options.metric)?;
                    Contents::Vectors
                }
            };
            contents = Some(chosen);
            if sender.push(chosen, &name, record) {
                sender.flush(chosen)?;
            }
        }
        if let Some(contents) = contents {
            sender.flush(contents)?;
        }
    }
    Ok(())
}

/// Returns the file, or the files of a folder.
fn files(place: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !place.is_dir() {
        return Ok(vec![place.to_owned()]);
    }
    let named = |error: std::io::Error| Failure::Usage(format!("{}: {error}", place.display()));
    let mut files = Vec::new();
    for entry in place.read_dir().map_err(named)? {
        let path = entry.map_err(named)?.path();
        let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
        if path.is_file() && EXTENSIONS.contains(&extension.as_str()) {
            files.push(path);
        }
    }
    files.sort();
    match files.is_empty() {
        true => Err(Failure::Usage(format!("{}: contains no .jsonl file", place.display()))),
        false => Ok(files),
    }
}

/// Reads the next line; one that is too long is skipped.
fn next_line(lines: &mut impl BufRead) -> std::io::Result<Option<Result<Vec<u8>, String>>> {
    let mut line = Vec::new();
    if lines.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.ends_with(b"\n") || (line.len() as u64) < LINE_BYTES_MAX {
        return Ok(Some(Ok(line)));
    }
    lines.skip_until(b'\n')?;
    Ok(Some(Err(format!("a line is longer than {LINE_BYTES_MAX} bytes"))))
}

/// Parses the record of a line and the names of ignored members; `None` for an empty line.
fn parse(line: &[u8], name: &str) -> Result<Option<(Record, Vec<String>)>, String> {
    if line.trim_ascii().is_empty() {
        return Ok(None);
    }
    let line: Line = serde_json::from_slice(line).map_err(|error| {
        let text = error.to_string();
        let problem = text.rsplit_once(" at line ").map_or(text.as_str(), |(problem, _)| problem);
        format!("not a record: {problem}")
    })?;
    let Line { id, text, vector, metadata, others } = line;
    if vector.is_none() && text.as_ref().is_none_or(|text| text.trim().is_empty()) {
        return Err("neither text nor vector".to_owned());
    }
    let id = match id {
        None => name.to_owned(),
        Some(id) => id_text(&id).ok_or("id is neither a string nor an integer")?,
    };
    let record = Record::new(&id, text, vector, metadata.unwrap_or_default())?;
    Ok(Some((record, others.into_iter().map(|(name, _)| name).collect())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_records_or_reasons() {
        let of = |line: &str| parse(line.as_bytes(), "f:1");
        assert_eq!(of(" \r\n"), Ok(None));
        let (record, others) =
            of(r#"{"id": 7, "vector": [1], "text": "t", "lang": "en"}"#).unwrap().unwrap();
        assert_eq!((record.id.as_str(), record.text.as_deref()), ("7", Some("t")));
        assert_eq!(others, ["lang"]);
        assert_eq!(of(r#"{"text": "t"}"#).unwrap().unwrap().0.id.as_str(), "f:1");
        for (line, reason) in [
            ("{", "not a record"),
            (r#"{"text": 1}"#, "not a record"),
            (r#"{"text": " "}"#, "neither text nor vector"),
            (r#"{"text": "t", "id": [1]}"#, "id is neither a string"),
            (r#"{"text": "t", "id": "a/b"}"#, "'/'"),
            (r#"{"vector": ["1"]}"#, "32-bit float"),
        ] {
            assert!(of(line).unwrap_err().contains(reason), "{line}");
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_read_past() {
        let long = "x".repeat(LINE_BYTES_MAX as usize + 3);
        let text = format!("{long}\nshort\nlast");
        let mut lines = text.as_bytes();
        assert!(next_line(&mut lines).unwrap().unwrap().is_err());
        assert_eq!(next_line(&mut lines).unwrap().unwrap().unwrap(), b"short\n");
        assert_eq!(next_line(&mut lines).unwrap().unwrap().unwrap(), b"last");
        assert!(next_line(&mut lines).unwrap().is_none());
    }
}
