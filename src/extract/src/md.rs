//! Markdown reader. The source itself is kept as the text; blocks are found line by line.
//!
//! Recognised: headings (`#` and underlined), fenced and indented code, lists, tables with a
//! delimiter row, paragraphs, and front matter between `---` lines. Nesting (quotes,
//! multi-paragraph items) is flattened: chunking needs block starts, not the hierarchy.

use std::ops::Range;

use crate::{ExtractError, TEXT_BYTES_MAX, outline};
use lodestone_types::{Block, BlockKind, Extracted};

/// Maximum lines of front matter.
const HEAD_LINES_MAX: usize = 200;
/// Indentation in columns that makes a line code; also the tab width.
const CODE_INDENT: usize = 4;
/// Comment delimiters.
const COMMENT_START: &str = "<!--";
const COMMENT_END: &str = "-->";

/// Reads a Markdown document.
pub(super) fn read(text: String) -> Result<Extracted, ExtractError> {
    if text.len() > TEXT_BYTES_MAX {
        return Err(outline::too_long());
    }
    let mut scanner = Scanner {
        text: &text,
        blocks: Vec::new(),
        fence: None,
        comments_end: text.rfind(COMMENT_END).unwrap_or(0),
        is_comment: false,
        is_open: false,
    };
    let mut title = None;
    let mut at = 0;
    let mut lines = text.split_inclusive('\n').peekable();
    if let Some(head) = metadata_head(&text) {
        title = head_title(&text[head.clone()]);
        scanner.blocks.push(Block { kind: BlockKind::Record, range: head.clone() });
        while at < head.end {
            at += lines.next().map_or(head.end, str::len);
        }
    }
    while let Some(line) = lines.next() {
        let content = line.trim_end();
        scanner.line(at..at + content.len(), lines.peek().map_or("", |next| next.trim()));
        at += line.len();
    }
    let blocks = scanner.blocks;
    let headings = || {
        blocks.iter().filter_map(|block| match block.kind {
            BlockKind::Heading { level } => Some((level, heading_text(&text[block.range.clone()]))),
            _ => None,
        })
    };
    let first = || headings().find(|(level, _)| *level == 1).or_else(|| headings().next());
    let title = title.or_else(|| first().map(|(_, words)| words)).filter(|t| !t.is_empty());
    Ok(Extracted { title, blocks, text, ..Extracted::default() })
}

struct Scanner<'a> {
    text: &'a str,
    blocks: Vec<Block>,
    /// Marker character and length of the open fence.
    fence: Option<(u8, usize)>,
    /// End of the last `-->` in the text; a `<!--` after it does not open a comment.
    comments_end: usize,
    /// Whether a comment is open.
    is_comment: bool,
    /// Whether the next line may continue the last block.
    is_open: bool,
}

impl Scanner<'_> {
    /// Processes one line; `next` is the trimmed line after it.
    fn line(&mut self, range: Range<usize>, next: &str) {
        let line = &self.text[range.clone()];
        let content = line.trim_start();
        if let Some((mark, length)) = self.fence {
            // Blank lines within a block are covered when the next non-blank line extends it.
            if !content.is_empty() {
                self.extend(range.end);
            }
            let run = run_length(content, mark);
            if run >= length && content.len() == run {
                self.fence = None;
                self.is_open = false;
            }
            return;
        }
        if content.is_empty() {
            self.is_open = false;
            return;
        }
        if std::mem::take(&mut self.is_comment) {
            self.extend(range.end);
            self.is_comment = !content.contains(COMMENT_END);
            self.is_open = self.is_comment;
            return;
        }
        let is_indented = indent_of(line) >= CODE_INDENT;
        let indent = if is_indented { 0 } else { line.len() - content.len() };
        let range = range.start + indent..range.end;
        let last = self.blocks.last().map(|block| block.kind).filter(|_| self.is_open);
        if is_indented && last == Some(BlockKind::Code) {
            self.extend(range.end);
        } else if let Some(comment) = content.strip_prefix(COMMENT_START) {
            let is_closed = comment.contains(COMMENT_END);
            self.is_comment = !is_closed && range.end < self.comments_end;
            self.start(BlockKind::Paragraph, range);
        } else if let Some(fence) = fence_of(content) {
            self.fence = Some(fence);
            self.start(BlockKind::Code, range);
        } else if let (Some(BlockKind::Paragraph), Some(level)) = (last, underline_level(content)) {
            self.underline(level, range.end);
        } else if let Some(level) = heading_level(content).filter(|_| !is_indented) {
            self.start(BlockKind::Heading { level }, range);
            self.is_open = false;
        } else if is_rule(content) {
            self.start(BlockKind::Paragraph, range);
            self.is_open = false;
        } else if is_item(content) {
            self.start(BlockKind::ListItem, range);
        } else if last == Some(BlockKind::Table) && content.contains('|') {
            self.extend(range.end);
        } else if content.contains('|') && is_table_delimiter(next) {
            self.start(BlockKind::Table, range);
        } else if let Some(BlockKind::Paragraph | BlockKind::ListItem) = last {
            self.extend(range.end);
        } else {
            let after_item =
                matches!(self.blocks.last().map(|block| block.kind), Some(BlockKind::ListItem));
            let is_code = is_indented && !after_item;
            self.start(if is_code { BlockKind::Code } else { BlockKind::Paragraph }, range);
        }
    }

    fn start(&mut self, kind: BlockKind, range: Range<usize>) {
        self.blocks.push(Block { kind, range });
        self.is_open = true;
    }

    fn extend(&mut self, end: usize) {
        let last = self.blocks.last_mut().expect("a block is open when a line extends it");
        last.range.end = last.range.end.max(end);
    }

    /// Turns the open paragraph into a heading. In HTML only its last line would be the heading,
    /// but all of it belongs together.
    fn underline(&mut self, level: u8, end: usize) {
        self.extend(end);
        self.blocks.last_mut().expect("a paragraph is open").kind = BlockKind::Heading { level };
        self.is_open = false;
    }
}

/// The column of the first non-blank character of a line.
fn indent_of(line: &str) -> usize {
    let space = line.bytes().take_while(u8::is_ascii_whitespace);
    space.fold(0, |at, b| if b == b'\t' { (at / CODE_INDENT + 1) * CODE_INDENT } else { at + 1 })
}

fn run_length(content: &str, mark: u8) -> usize {
    content.bytes().take_while(|&b| b == mark).count()
}

/// Parses a fence: three or more of one marker. A backtick fence has no further backtick on its
/// line.
fn fence_of(content: &str) -> Option<(u8, usize)> {
    let mark = content.bytes().next().filter(|b| matches!(b, b'`' | b'~'))?;
    let length = run_length(content, mark);
    let is_inline = mark == b'`' && content[length..].contains('`');
    (length >= 3 && !is_inline).then_some((mark, length))
}

fn heading_level(content: &str) -> Option<u8> {
    let level = run_length(content, b'#');
    let rest = &content[level..];
    let is_heading = (1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t']));
    is_heading.then_some(level as u8)
}

fn underline_level(content: &str) -> Option<u8> {
    match content.bytes().next()? {
        b'=' if run_length(content, b'=') == content.len() => Some(1),
        b'-' if run_length(content, b'-') == content.len() => Some(2),
        _ => None,
    }
}

/// Whether a line is a thematic break: three or more of one marker, with optional spaces between.
fn is_rule(content: &str) -> bool {
    let mark = content.bytes().next().unwrap_or(0);
    matches!(mark, b'-' | b'*' | b'_')
        && content.bytes().all(|b| b == mark || b == b' ' || b == b'\t')
        && content.bytes().filter(|&b| b == mark).count() >= 3
}

fn is_item(content: &str) -> bool {
    let digits = content.bytes().take_while(u8::is_ascii_digit).count();
    let rest = match digits {
        0 => content.strip_prefix(['-', '*', '+']),
        1..=9 => content[digits..].strip_prefix(['.', ')']),
        _ => None,
    };
    rest.is_some_and(|rest| rest.starts_with([' ', '\t']))
}

fn is_table_delimiter(line: &str) -> bool {
    line.contains('-')
        && line.contains('|')
        && line.bytes().all(|b| matches!(b, b'-' | b'|' | b':' | b' ' | b'\t'))
}

/// The text of a heading without its markup.
pub(super) fn heading_text(source: &str) -> String {
    let first = source.lines().next().unwrap_or("");
    first.trim().trim_matches('#').trim().to_owned()
}

/// The range of the front matter between `---` lines, without the line end. It may contain blank
/// lines; every other line must look like metadata, since `---` is also a thematic break.
fn metadata_head(text: &str) -> Option<Range<usize>> {
    let mut at = 0;
    let mut has_key = false;
    for (number, line) in text.split_inclusive('\n').take(HEAD_LINES_MAX).enumerate() {
        let content = line.trim_end();
        match content {
            "---" if number == 0 => {}
            _ if number == 0 => return None,
            "---" | "..." => return has_key.then_some(0..at + content.len()),
            _ if is_key(content) => has_key = true,
            _ if !is_metadata(line, content) => return None,
            _ => {}
        }
        at += line.len();
    }
    None
}

/// Whether a line is a key with a colon, with or without a value.
fn is_key(line: &str) -> bool {
    let Some((name, value)) = line.split_once(':') else { return false };
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ' | '"' | '\'');
    !name.is_empty()
        && name.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '"' | '\''))
        && name.chars().all(is_name)
        && (value.is_empty() || value.starts_with([' ', '\t']))
}

/// Whether a line continues a value, or is a list item, a comment or blank.
fn is_metadata(line: &str, content: &str) -> bool {
    content.is_empty()
        || line.starts_with([' ', '\t', '#', ']', '}'])
        || content == "-"
        || content.starts_with("- ")
}

fn head_title(head: &str) -> Option<String> {
    let value = head.lines().find_map(|line| line.strip_prefix("title:"))?;
    let value = value.trim().trim_matches(['"', '\'']).trim();
    (!value.is_empty()).then(|| value.to_owned())
}
