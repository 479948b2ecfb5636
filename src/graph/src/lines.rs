//! Splits a text into blocks that can be read on their own: paragraphs, headings, fields, rows,
//! code.

use std::ops::Range;

/// Minimum width of a line that may have been wrapped.
const WRAPPED_COLUMNS_MIN: usize = 45;
/// Maximum bytes of a heading.
const HEADING_BYTES_MAX: usize = 80;
/// Maximum bytes of the name of a field.
const FIELD_BYTES_MAX: usize = 32;
/// Minimum words of a field's value that counts as a sentence of its own.
const SENTENCE_WORDS_MIN: usize = 6;
/// Maximum bytes of a block; longer ones are split, which bounds how far any rule looks.
const BLOCK_BYTES_MAX: usize = 16 << 10;

/// A block of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Block {
    /// Running text of one or more sentences.
    Prose(Range<usize>),
    /// A separate line without a final punctuation mark.
    Heading(Range<usize>),
    /// "Name: value".
    Field { name: Range<usize>, value: Range<usize> },
    /// A table row as its cells. Rows of the same table are consecutive.
    Row(Vec<Range<usize>>),
    /// A line of source code.
    Code(Range<usize>),
}

/// Splits a text into blocks, in order.
pub(super) fn blocks(text: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Range<usize>> = None;
    let mut is_fenced = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at + line.len() - line.trim_start().len();
        at += line.len();
        let content = line.trim();
        let range = start..start + content.len();
        let is_fence = content.starts_with("```") || content.starts_with("~~~");
        let is_plain = !content.is_empty() && !is_fence && !is_fenced;
        // An indented line that follows a line of code, or contains an assignment, is code.
        let is_indented = line.starts_with("    ") || line.starts_with('\t');
        let follows = open.is_none() && matches!(found.last(), Some(Block::Code(_)));
        let is_code =
            is_indented && (follows || content.contains(" = ")) && !content.contains(". ");
        let kind = match is_plain {
            true if is_code => Some(Block::Code(range.clone())),
            true => special(text, range.clone()),
            false => None,
        };
        let wraps = open.as_ref().is_some_and(|open| {
            let last = text[open.clone()].lines().next_back().unwrap_or_default();
            last.trim_end().len() >= WRAPPED_COLUMNS_MIN && open.len() < BLOCK_BYTES_MAX
        });
        if !is_plain || kind.is_some() || !wraps {
            found.extend(open.take().and_then(|open| paragraph(text, open)));
        }
        match kind {
            _ if is_fence => is_fenced = !is_fenced,
            _ if content.is_empty() => {}
            Some(block) => found.push(block),
            None if is_fenced => found.push(Block::Code(range)),
            None => {
                let first = open.take().map_or(range.start, |open| open.start);
                open = Some(first..range.end);
            }
        }
    }
    found.extend(open.and_then(|open| paragraph(text, open)));
    found
}

/// Recognises a line that is not running text.
fn special(text: &str, line: Range<usize>) -> Option<Block> {
    let content = &text[line.clone()];
    if content.len() > BLOCK_BYTES_MAX {
        return None;
    }
    if content.starts_with('#') {
        let title = content.trim_start_matches('#');
        let is_heading = title.starts_with(' ') && content.len() - title.len() <= 6;
        if is_heading {
            return Some(Block::Heading(line.end - title.trim_start().len()..line.end));
        }
    }
    if content.starts_with('|') && content.ends_with('|') && content.len() > 2 {
        return Some(Block::Row(cells(content, line.start)));
    }
    if is_code(content) {
        return Some(Block::Code(line));
    }
    field(content, line.start)
}

fn cells(content: &str, start: usize) -> Vec<Range<usize>> {
    let mut at = start + 1;
    let inner = &content[1..content.len() - 1];
    let parts = inner.split('|').map(|part| {
        let from = at + part.len() - part.trim_start().len();
        at += part.len() + 1;
        from..from + part.trim().len()
    });
    parts.collect()
}

/// Whether the line looks like source code rather than prose.
fn is_code(content: &str) -> bool {
    let bytes = content.as_bytes();
    let ends = matches!(bytes.last(), Some(b';' | b'{' | b'}' | b'\\' | b'=' | b'('));
    let starts = ["//", "/*", "* @", "#include", "import ", "from ", "use ", "def ", "class "]
        .iter()
        .any(|start| content.starts_with(start));
    let strange = bytes.iter().filter(|b| b"{}();=<>_[]\"&|*:".contains(b)).count();
    let has_call = ["();", "::", "->", "=>", " = ", "&&", "):", "return "]
        .iter()
        .any(|mark| content.contains(mark));
    let is_dense = strange * 8 > bytes.len();
    let is_opened = content.ends_with('{') || content.contains("::") && content.contains('(');
    is_opened
        || calls_symbol(content)
        || ends && (is_dense || strange >= 2 || bytes.len() < 3)
        || is_dense && has_call
        || starts
            && (is_dense || has_call || !content.ends_with('.') && !content.contains(". "))
            && !content.contains(", ")
        || content.starts_with("//")
}

/// Whether a bracket follows a camel-case or snake-case word: "assertThat(paths)".
fn calls_symbol(content: &str) -> bool {
    let Some((before, _)) = content.split_once('(') else { return false };
    let start = before.rfind(|c: char| !c.is_alphanumeric() && c != '_').map_or(0, |at| at + 1);
    let Some(symbol) = before.get(start..) else { return false };
    let humps = symbol.chars().zip(symbol.chars().skip(1));
    let has_hump = humps.into_iter().any(|(a, b)| a.is_lowercase() && b.is_uppercase());
    (has_hump || symbol.contains('_')) && symbol.starts_with(char::is_lowercase)
}

/// Parses "Name: value" where the name is a few words and the value is on the same line.
fn field(content: &str, start: usize) -> Option<Block> {
    let content_start = content.trim_start_matches(['-', '*', ' ']);
    let start = start + content.len() - content_start.len();
    let colon = content_start.find(": ")?;
    let name = content_start[..colon].trim_matches('*').trim();
    let value = content_start[colon + 2..].trim_start_matches('*');
    let begin = start + content_start.len() - value.len();
    let is_name = !name.is_empty()
        && name.len() <= FIELD_BYTES_MAX
        && name.split_whitespace().count() <= 4
        && name.chars().all(|c| c.is_alphanumeric() || " /-_#".contains(c))
        && name.starts_with(char::is_uppercase);
    let value_start = begin + value.len() - value.trim_start().len();
    let value = value_start..value_start + value.trim().len();
    let name_start = start + content_start.find(name)?;
    let is_short = !value.is_empty() && value.len() <= HEADING_BYTES_MAX;
    let content = content_start[colon + 2..].trim();
    let is_sentence = content.ends_with(['.', '!', '?'])
        && content.split_whitespace().count() >= SENTENCE_WORDS_MIN;
    (is_name && is_short && !is_sentence)
        .then_some(Block::Field { name: name_start..name_start + name.len(), value })
}

/// Returns a paragraph, or a heading if it is a single short line without final punctuation.
fn paragraph(text: &str, range: Range<usize>) -> Option<Block> {
    let content = &text[range.clone()];
    if content.is_empty() {
        return None;
    }
    let is_ended = content.ends_with(['.', '!', '?', ';', ',', '。', '"', '\u{201d}']);
    let is_short = content.len() <= HEADING_BYTES_MAX && !content.contains('\n');
    let has_sentence = content.contains(". ");
    // The label of a field whose value is on another line names nothing.
    let is_label = content.ends_with(':');
    if !is_short || is_ended || has_sentence {
        return Some(Block::Prose(range));
    }
    (!is_label).then_some(Block::Heading(range))
}
