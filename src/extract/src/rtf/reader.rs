//! Interprets the groups and control words of RTF.

use std::collections::BTreeMap;

use crate::rtf::code_pages;
use crate::rtf::destinations::Destination;
use crate::rtf::tokens::Token;
use crate::rtf::writer::{Merge, Properties, Writer};
use crate::{ExtractError, decode};
use lodestone_types::Extracted;

/// Maximum nesting of groups.
const DEPTH_MAX: usize = 2000;
/// Maximum fonts and styles per document.
const TABLE_MAX: usize = 10_000;
/// Maximum bytes of a name or title.
const NAME_BYTES_MAX: usize = 1000;
/// The Western code page, the default of a document that names none.
const WESTERN: u32 = 1252;

/// State scoped to a group.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    destination: Destination,
    /// Whether this group opened its destination, and therefore ends it.
    is_own: bool,
    code_page: Option<u32>,
    is_hidden: bool,
    /// The number of substitute bytes after a Unicode character.
    substitutes: Option<usize>,
    heading: Option<u8>,
    level: usize,
    is_in_table: bool,
}

/// The state of reading a document.
#[derive(Debug, Default)]
pub(super) struct Reader {
    writer: Writer,
    groups: Vec<Group>,
    group: Group,
    /// Whether the group has contained nothing but a star so far.
    is_starred: bool,
    is_group_fresh: bool,
    /// Whether to skip the next group, which repeats a better one after it.
    skips_next: bool,
    code_page: Option<u32>,
    fonts: BTreeMap<i32, u32>,
    font: i32,
    styles: BTreeMap<i32, u8>,
    style: i32,
    /// The current name in a table of names, or the title.
    name: String,
    /// Bytes of an incomplete character.
    bytes: Vec<u8>,
    /// Substitute characters still to skip after a Unicode character.
    skipped: usize,
    /// The first half of a surrogate pair.
    surrogate: Option<u16>,
    merge: Merge,
}

impl Reader {
    /// Processes one token.
    pub(super) fn token(&mut self, token: Token<'_>) -> Result<(), ExtractError> {
        let is_fresh = std::mem::take(&mut self.is_group_fresh);
        match token {
            Token::Open => {
                self.flush()?;
                self.skipped = 0;
                if self.groups.len() >= DEPTH_MAX {
                    let what = "nested RTF groups";
                    return Err(ExtractError::BeyondLimit { what, max: DEPTH_MAX });
                }
                self.groups.push(self.group);
                self.group.is_own = false;
                if std::mem::take(&mut self.skips_next) {
                    self.group.destination = Destination::Skipped;
                }
                self.is_group_fresh = true;
                self.is_starred = false;
                Ok(())
            }
            Token::Close => self.close(),
            Token::Sign(b'*') if is_fresh => {
                self.is_group_fresh = true;
                self.is_starred = true;
                Ok(())
            }
            Token::Word(name, parameter) => {
                if is_fresh
                    && let Some(destination) = Destination::of(name, self.is_starred)
                    && self.group.destination != Destination::Skipped
                {
                    return self.begin(destination);
                }
                self.word(name, parameter)
            }
            Token::Sign(sign) => self.sign(sign),
            Token::Byte(b) => self.byte(b),
            Token::Text(text) => self.text(text),
        }
    }

    fn begin(&mut self, destination: Destination) -> Result<(), ExtractError> {
        let is_apart =
            matches!(destination, Destination::Note | Destination::Box | Destination::Margin);
        let is_read = !is_apart || self.writer.leave();
        self.group.destination = if is_read { destination } else { Destination::Skipped };
        self.group.is_own = true;
        self.name.clear();
        Ok(())
    }

    fn close(&mut self) -> Result<(), ExtractError> {
        self.flush()?;
        self.skipped = 0;
        let closed = self.group;
        if closed.is_own {
            match closed.destination {
                Destination::Note => self.writer.end_note(),
                Destination::Box => self.writer.end_box()?,
                Destination::Margin => self.writer.end_margin(),
                Destination::Title => {
                    let title = std::mem::take(&mut self.name);
                    self.writer.set_title(&title);
                }
                _ => {}
            }
        } else if closed.destination == Destination::Styles {
            self.end_style();
        }
        self.group = self.groups.pop().unwrap_or_default();
        Ok(())
    }

    fn word(&mut self, name: &str, parameter: Option<i32>) -> Result<(), ExtractError> {
        let number = parameter.unwrap_or(0);
        let is_on = parameter != Some(0);
        match (name, self.group.destination) {
            ("u", Destination::Skipped) | ("bin", _) => {}
            ("u", _) => return self.unicode(number),
            ("uc", _) => self.group.substitutes = Some(usize::try_from(number).unwrap_or(1)),
            ("ansicpg", _) => self.code_page = u32::try_from(number).ok(),
            ("mac", _) => self.code_page = Some(10000),
            ("f", Destination::Fonts) => self.font = number,
            ("fcharset", Destination::Fonts) => {
                if let Some(code_page) = code_pages::of_charset(number)
                    && self.fonts.len() < TABLE_MAX
                {
                    self.fonts.insert(self.font, code_page);
                }
            }
            ("s", Destination::Styles) => self.style = number,
            (_, Destination::Skipped | Destination::Fonts | Destination::Styles) => {}
            ("f", _) => {
                self.flush()?;
                self.group.code_page = self.fonts.get(&number).copied();
            }
            ("plain", _) => {
                self.flush()?;
                self.group.is_hidden = false;
                self.group.code_page = None;
            }
            ("v" | "deleted", _) => {
                self.flush()?;
                self.group.is_hidden = is_on;
            }
            ("upr", _) => self.skips_next = true,
            _ => return self.layout(name, number),
        }
        Ok(())
    }

    /// Handles control words for paragraphs, tables and special characters.
    fn layout(&mut self, name: &str, number: i32) -> Result<(), ExtractError> {
        match name {
            "pard" => {
                self.group.heading = None;
                self.group.level = 0;
                self.group.is_in_table = false;
            }
            "s" => self.group.heading = self.styles.get(&number).copied(),
            "outlinelevel" => {
                let level = u8::try_from(number).ok().filter(|level| *level < 9);
                self.group.heading = level.map(|level| level + 1);
            }
            "ilvl" => self.group.level = usize::try_from(number).unwrap_or(0),
            "intbl" => self.group.is_in_table = true,
            "trowd" => self.writer.row_begins(),
            "clmrg" => self.merge = Merge::Left,
            "clvmrg" => self.merge = Merge::Above,
            "cellx" => {
                let merge = std::mem::take(&mut self.merge);
                self.writer.cell_described(merge);
            }
            "par" | "sect" | "page" => {
                self.flush()?;
                let properties = self.properties();
                return self.writer.paragraph(properties);
            }
            "cell" => {
                self.flush()?;
                let properties = self.properties();
                self.writer.cell(properties);
            }
            "row" => {
                self.flush()?;
                self.writer.row();
            }
            "line" | "lbr" | "nestrow" => return self.put("\n"),
            "tab" => return self.put("\t"),
            "nestcell" | "emspace" | "enspace" | "qmspace" => return self.put(" "),
            "emdash" => return self.put("\u{2014}"),
            "endash" => return self.put("\u{2013}"),
            "lquote" => return self.put("\u{2018}"),
            "rquote" => return self.put("\u{2019}"),
            "ldblquote" => return self.put("\u{201C}"),
            "rdblquote" => return self.put("\u{201D}"),
            "bullet" => return self.put("\u{2022}"),
            _ => {}
        }
        Ok(())
    }

    fn properties(&self) -> Properties {
        Properties {
            heading: self.group.heading,
            level: self.group.level,
            is_in_table: self.group.is_in_table,
        }
    }

    fn sign(&mut self, sign: u8) -> Result<(), ExtractError> {
        match sign {
            b'~' => self.put("\u{A0}"),
            b'_' => self.put("-"),
            b'\\' | b'{' | b'}' => self.text(&[sign]),
            // A backslash before a line end ends the paragraph.
            b'\r' | b'\n' => self.layout("par", 0),
            b'\t' => self.put("\t"),
            _ => Ok(()),
        }
    }

    fn byte(&mut self, byte: u8) -> Result<(), ExtractError> {
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(());
        }
        self.bytes.push(byte);
        Ok(())
    }

    fn text(&mut self, text: &[u8]) -> Result<(), ExtractError> {
        let passed = self.skipped.min(text.len());
        self.skipped -= passed;
        let text = &text[passed..];
        match self.group.destination {
            Destination::Skipped | Destination::Fonts | Destination::Metadata => {}
            Destination::Styles | Destination::Title => {
                if self.name.len() + text.len() <= NAME_BYTES_MAX {
                    self.bytes.extend_from_slice(text);
                }
            }
            _ => self.bytes.extend_from_slice(text),
        }
        Ok(())
    }

    /// Adds a UTF-16 code unit, written as a signed 16-bit number.
    fn unicode(&mut self, number: i32) -> Result<(), ExtractError> {
        self.flush()?;
        self.skipped = self.group.substitutes.unwrap_or(1).min(100);
        let unit = (number & 0xFFFF) as u16;
        if let 0xD800..=0xDBFF = unit {
            self.surrogate = Some(unit);
            return Ok(());
        }
        let pair = match self.surrogate.take() {
            Some(first) => vec![first, unit],
            None => vec![unit],
        };
        let text = String::from_utf16_lossy(&pair).replace('\0', "");
        let skipped = std::mem::take(&mut self.skipped);
        self.put(&text)?;
        self.skipped = skipped;
        Ok(())
    }

    /// Decodes the pending bytes.
    fn flush(&mut self) -> Result<(), ExtractError> {
        if self.bytes.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.bytes);
        let code_page = self.group.code_page.or(self.code_page).unwrap_or(WESTERN);
        if bytes.is_ascii() {
            let text = String::from_utf8_lossy(&bytes);
            return self.write(&text);
        }
        let text = decode::labelled(&bytes, Some(code_pages::label(code_page)));
        self.write(&text)
    }

    fn put(&mut self, text: &str) -> Result<(), ExtractError> {
        self.flush()?;
        if self.skipped > 0 {
            self.skipped -= 1;
            return Ok(());
        }
        self.write(text)
    }

    fn write(&mut self, text: &str) -> Result<(), ExtractError> {
        if self.group.is_hidden {
            return Ok(());
        }
        match self.group.destination {
            Destination::Skipped | Destination::Fonts | Destination::Metadata => Ok(()),
            Destination::Styles | Destination::Title => {
                self.name.push_str(text);
                Ok(())
            }
            destination => self.writer.text(text, destination == Destination::Mark),
        }
    }

    /// Ends a style name; the names of heading styles are remembered.
    fn end_style(&mut self) {
        let name = std::mem::take(&mut self.name);
        let name = name.trim().trim_end_matches(';').to_lowercase();
        let style = std::mem::take(&mut self.style);
        let level = name.strip_prefix("heading ").and_then(|level| level.parse::<u8>().ok());
        let level = level.or((name == "title").then_some(1));
        if let Some(level) = level.filter(|level| (1..=9).contains(level))
            && self.styles.len() < TABLE_MAX
        {
            self.styles.insert(style, level);
        }
    }

    /// Returns the finished document.
    pub(super) fn finish(mut self) -> Result<Extracted, ExtractError> {
        self.flush()?;
        let properties = self.properties();
        self.writer.finish(properties)
    }
}
