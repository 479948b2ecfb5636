//! Records of applications: one JSON object that holds its text in one or several forms.
//!
//! ```text
//! {"content": {"markdown" | "html_base64" | "text": the body, the first of them that is present
//!              "csv_base64": appended to it},
//!  "attachments": [{"title", "content": text}]}
//! ```
//! The object itself is the stored original. Everything else in it was read when it was accepted
//! and is not interpreted here. URLs of attachments are not fetched.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use lodestone_extract::Format;
use lodestone_types::{Block, BlockKind, Extracted};

/// The reason why a record cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppProblem {
    /// The record holds no searchable text.
    #[error("content has no text: send markdown, html_base64, text, csv_base64 or an attachment")]
    Empty,
    /// A member is not valid base64.
    #[error("content.{part} is not valid base64: {problem}")]
    NotBase64 {
        /// Name of the member.
        part: &'static str,
        /// Description of the decoding error.
        problem: String,
    },
    /// A member has the wrong type or occurs twice.
    #[error("content and attachments must be objects of strings without duplicate members")]
    Malformed,
}

#[derive(Deserialize)]
struct Record {
    content: Option<Content>,
    attachments: Option<Vec<Attachment>>,
}

#[derive(Deserialize)]
struct Content {
    markdown: Option<String>,
    html_base64: Option<String>,
    text: Option<String>,
    csv_base64: Option<String>,
}

#[derive(Deserialize)]
struct Attachment {
    title: Option<String>,
    content: Option<String>,
}

/// A part of a record, to be parsed on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Part {
    /// The format of the bytes.
    pub(super) format: Format,
    /// The bytes to extract.
    pub(super) bytes: Vec<u8>,
    /// The heading above the part; empty for the body.
    pub(super) heading: String,
}

/// Splits a record into its parts in reading order, at least one.
///
/// # Errors
/// [`AppProblem`].
pub(super) fn parts(original: &[u8]) -> Result<Vec<Part>, AppProblem> {
    let record: Record = serde_json::from_slice(original).map_err(|_| AppProblem::Malformed)?;
    let mut parts = Vec::new();
    let mut add = |format, bytes: Vec<u8>, heading: &str| {
        if !bytes.trim_ascii().is_empty() {
            parts.push(Part { format, bytes, heading: heading.trim().to_owned() });
        }
    };
    if let Some(Content { markdown, html_base64, text, csv_base64 }) = record.content {
        let is_filled = |text: &String| !text.trim().is_empty();
        if let Some(markdown) = markdown.filter(is_filled) {
            add(Format::Md, markdown.into_bytes(), "");
        } else if let Some(html) = html_base64.filter(is_filled) {
            add(Format::Html, decoded("html_base64", &html)?, "");
        } else if let Some(text) = text {
            add(Format::Txt, text.into_bytes(), "");
        }
        if let Some(csv) = csv_base64.filter(is_filled) {
            add(Format::Csv, decoded("csv_base64", &csv)?, "");
        }
    }
    for Attachment { title, content } in record.attachments.unwrap_or_default() {
        let content = content.unwrap_or_default();
        add(Format::Md, content.into_bytes(), title.as_deref().unwrap_or_default());
    }
    match parts.is_empty() {
        true => Err(AppProblem::Empty),
        false => Ok(parts),
    }
}

fn decoded(part: &'static str, text: &str) -> Result<Vec<u8>, AppProblem> {
    // Encoders insert line breaks.
    let compact: String = text.split_ascii_whitespace().collect();
    STANDARD
        .decode(compact)
        .map_err(|error| AppProblem::NotBase64 { part, problem: error.to_string() })
}

/// Appends the content of a part, under its heading if it has one.
pub(super) fn append(whole: &mut Extracted, heading: &str, part: Extracted) {
    let Extracted { text, title, blocks, pages: _, geometry: _, warnings } = part;
    whole.warnings.extend(warnings);
    let separate = |whole: &mut Extracted| {
        if !whole.text.is_empty() {
            whole.text.push_str("\n\n");
        }
    };
    if !heading.is_empty() {
        separate(whole);
        whole.text.push_str("## ");
        let start = whole.text.len();
        // A heading must be a single line, whatever the title contains.
        whole.text.push_str(&heading.split_whitespace().collect::<Vec<_>>().join(" "));
        let range = start..whole.text.len();
        whole.blocks.push(Block { kind: BlockKind::Heading { level: 2 }, range });
    }
    separate(whole);
    let offset = whole.text.len();
    whole.text.push_str(&text);
    whole.blocks.extend(blocks.into_iter().map(|block| {
        let range = block.range.start + offset..block.range.end + offset;
        Block { range, ..block }
    }));
    if whole.title.is_none() {
        whole.title = title;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(record: Value) -> Result<Vec<(Format, String, String)>, AppProblem> {
        let parts = parts(record.to_string().as_bytes())?;
        let shown =
            |part: Part| (part.format, String::from_utf8(part.bytes).unwrap(), part.heading);
        Ok(parts.into_iter().map(shown).collect())
    }

    #[test]
    fn the_body_is_the_first_form_that_is_there() {
        let encoded = |text: &str| STANDARD.encode(text);
        let all = json!({"content": {
            "text": "t", "markdown": "# m", "html_base64": encoded("<p>h"),
            "csv_base64": encoded("a,b\n1,2"), "files": [], "layout": {"x": 1},
        }});
        let csv = (Format::Csv, "a,b\n1,2".to_owned(), String::new());
        let markdown = (Format::Md, "# m".to_owned(), String::new());
        assert_eq!(read(all), Ok(vec![markdown, csv]));
        let html = json!({"content": {"markdown": " ", "text": "t",
            "html_base64": "PHA+\n aA=="}});
        assert_eq!(read(html).unwrap()[0].1, "<p>h");
        let text = json!({"content": {"text": "t", "markdown": null}});
        assert_eq!(read(text).unwrap()[0].0, Format::Txt);
    }

    #[test]
    fn attachments_stand_under_their_titles() {
        let record = json!({"attachments": [
            {"id": "1", "title": "Minutes", "content": "said"},
            {"content_url": "http://127.0.0.1/"}, {"content": "more"},
        ]});
        let found = read(record).unwrap();
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].1.as_str(), found[0].2.as_str()), ("said", "Minutes"));
    }

    #[test]
    fn what_holds_no_text_is_refused() {
        let empty = [json!({}), json!({"content": null}), json!({"content": {"text": " \n"}})];
        for record in empty {
            assert_eq!(read(record.clone()), Err(AppProblem::Empty), "{record}");
        }
        let bad = json!({"content": {"csv_base64": "%%"}});
        assert!(matches!(read(bad), Err(AppProblem::NotBase64 { part: "csv_base64", .. })));
        let bad = json!({"content": {"text": 7}});
        assert!(matches!(read(bad), Err(AppProblem::Malformed)));
    }

    #[test]
    fn blocks_move_with_their_text() {
        let part = |text: &str| Extracted {
            text: text.to_owned(),
            blocks: vec![Block { kind: BlockKind::Paragraph, range: 0..text.len() }],
            ..Extracted::default()
        };
        let mut whole = Extracted::default();
        append(&mut whole, "", part("one"));
        append(&mut whole, "A\ntitle", part("two"));
        assert_eq!(whole.text, "one\n\n## A title\n\ntwo");
        let shown: Vec<&str> =
            whole.blocks.iter().map(|block| &whole.text[block.range.clone()]).collect();
        assert_eq!(shown, ["one", "A title", "two"]);
    }
}
