//! Shapes of a slide and their text.

use crate::ExtractError;
use crate::flow::Flow;
use crate::grid::Grid;
use crate::numerals;
use lodestone_types::BlockKind;

/// The role of a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Role {
    /// Not a placeholder.
    #[default]
    Free,
    /// The title of a slide.
    Title,
    /// The title of a title slide.
    MainTitle,
    /// Text and lists.
    Body,
    /// Dates, numbers, footers, and the slide thumbnail on a notes page: not read.
    Unread,
}

impl Role {
    /// Parses a placeholder type; a placeholder without one is a body.
    pub(super) fn of(word: &str) -> Self {
        match word {
            "title" => Self::Title,
            "ctrTitle" => Self::MainTitle,
            "dt" | "ftr" | "hdr" | "sldNum" | "sldImg" => Self::Unread,
            _ => Self::Body,
        }
    }

    /// The heading level it is written with.
    pub(super) fn heading_level(self) -> Option<u8> {
        match self {
            Self::MainTitle => Some(1),
            Self::Title => Some(2),
            Self::Free | Self::Body | Self::Unread => None,
        }
    }
}

/// The position of a shape, in its parent's units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bounds {
    /// Left edge.
    pub x: i64,
    /// Top edge.
    pub y: i64,
    /// Width.
    pub width: i64,
    /// Height.
    pub height: i64,
}

/// The bullet or number of a list item.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Bullet {
    /// Inherited from the placeholder.
    #[default]
    Inherited,
    /// No bullet.
    None,
    /// A bullet character.
    Sign,
    /// A number.
    Number {
        /// The format, as used by `numerals`.
        format: &'static str,
        /// The start number.
        start: i64,
    },
}

/// A paragraph of a shape.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// Its text.
    pub text: String,
    /// Its indentation level, from 0.
    pub level: usize,
    /// Its bullet.
    pub bullet: Bullet,
}

/// A shape or a group of shapes.
#[derive(Debug, Default)]
pub(super) struct Shape {
    /// Its own position, if it has one.
    pub bounds: Option<Bounds>,
    /// Its role.
    pub role: Role,
    /// The index that links a placeholder to its layout.
    pub index: Option<i64>,
    /// Whether its paragraphs have bullets by default.
    pub has_bullets: bool,
    /// Its paragraphs.
    pub lines: Vec<Line>,
    /// Its table.
    pub table: Option<Grid>,
    /// Its charts and diagrams, by part name.
    pub parts: Vec<String>,
    /// The shapes of the group, in reading order.
    pub children: Vec<Shape>,
    /// Whether it is hidden.
    pub is_hidden: bool,
}

impl Shape {
    /// Whether there is nothing to read.
    pub(super) fn is_blank(&self) -> bool {
        self.lines.iter().all(|line| line.text.trim().is_empty())
            && self.table.is_none()
            && self.parts.is_empty()
            && self.children.is_empty()
    }

    /// Writes its own text.
    pub(super) fn write(&self, flow: &mut Flow) -> Result<(), ExtractError> {
        if let Some(level) = self.role.heading_level() {
            let lines: Vec<&str> = self.lines.iter().map(|line| line.text.trim()).collect();
            let title = lines.join(" ");
            return flow.heading(level, title.trim());
        }
        let mut counts: Vec<i64> = Vec::new();
        for line in &self.lines {
            let text = line.text.trim();
            if text.is_empty() {
                continue;
            }
            counts.resize(line.level + 1, 0);
            match &line.bullet {
                Bullet::Number { format, start } => {
                    let count = &mut counts[line.level];
                    *count = if *count == 0 { *start } else { *count + 1 };
                    let mark = format!("{}.", numerals::written(*count, format));
                    flow.item(line.level, &mark, text)?;
                    continue;
                }
                Bullet::Sign => flow.item(line.level, "-", text)?,
                Bullet::Inherited if self.has_bullets => flow.item(line.level, "-", text)?,
                Bullet::Inherited | Bullet::None => flow.block(BlockKind::Paragraph, text)?,
            }
            counts[line.level] = 0;
        }
        Ok(())
    }

    /// Writes its table.
    pub(super) fn write_table(&mut self, flow: &mut Flow) -> Result<(), ExtractError> {
        self.table.take().map_or(Ok(()), |table| flow.write_table(table))
    }
}
