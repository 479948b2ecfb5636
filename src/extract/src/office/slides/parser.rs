//! Parses the shapes of a slide. Groups are kept on a stack; a finished group is sorted and becomes
//! a run of shapes in place of the group.

use crate::events::{Element, Event, Events};
use crate::grid::{Grid, Piece};
use crate::office::equation::Equations;
use crate::office::relations::Relations;
use crate::office::slides::order;
use crate::office::slides::shape::{Bullet, Line, Role, Shape};
use crate::package::Package;
use crate::{ExtractError, outline};
use lodestone_types::BlockKind;

/// Maximum list levels.
const LEVELS_MAX: i64 = 8;

/// Reads the shapes of the part called `name`. Grouped shapes stay in their group.
pub(super) fn read(
    package: &Package<'_>,
    name: &str,
    relations: &Relations,
) -> Result<Vec<Shape>, ExtractError> {
    let Some(part) = package.part(name)? else { return Ok(Vec::new()) };
    let mut events = Events::new(part)?;
    let mut parser = Parser::new(relations);
    loop {
        let is_read = match events.next()? {
            Event::Open(element) => parser.open(&element),
            Event::Close(name) => {
                parser.close(name.as_str());
                true
            }
            Event::Text(text) => {
                parser.text(&text)?;
                true
            }
            Event::End => break,
        };
        if !is_read {
            events.skip()?;
        }
    }
    Ok(parser.finish())
}

#[derive(Debug)]
struct Parser<'p> {
    relations: &'p Relations,
    /// The root, then the open groups and shapes.
    open: Vec<Shape>,
    /// The current paragraph.
    line: Line,
    /// Bytes of text so far.
    size: usize,
    is_text: bool,
    is_in_bounds: bool,
    is_in_cell: bool,
    is_in_style: bool,
    is_picture: bool,
    equations: Equations,
}

impl<'p> Parser<'p> {
    fn new(relations: &'p Relations) -> Self {
        Self {
            relations,
            open: vec![Shape::default()],
            line: Line::default(),
            size: 0,
            is_text: false,
            is_in_bounds: false,
            is_in_cell: false,
            is_in_style: false,
            is_picture: false,
            equations: Equations::default(),
        }
    }

    fn finish(mut self) -> Vec<Shape> {
        self.open.swap_remove(0).children
    }

    fn last(&mut self) -> &mut Shape {
        self.open.last_mut().expect("the root is never closed")
    }

    /// Handles the start of an element; returns whether to read its content.
    fn open(&mut self, element: &Element<'_>) -> bool {
        self.line.text.extend(self.equations.open(element));
        match element.name() {
            "sp" | "cxnSp" | "graphicFrame" | "grpSp" | "pic" => {
                self.is_picture = element.name() == "pic";
                self.open.push(Shape::default());
            }
            "cNvPr" => self.describe(element),
            "ph" => {
                let role = Role::of(&element.attribute("type").unwrap_or_default());
                let index = element.number("idx");
                let shape = self.last();
                shape.role = role;
                shape.index = index;
                shape.has_bullets =
                    role == Role::Body && element.attribute("type").as_deref() != Some("subTitle");
            }
            "xfrm" => self.is_in_bounds = true,
            "off" | "ext" if self.is_in_bounds => self.locate(element),
            "lstStyle" => self.is_in_style = true,
            "lvl1pPr" => {}
            "lvl2pPr" | "lvl3pPr" | "lvl4pPr" | "lvl5pPr" | "lvl6pPr" | "lvl7pPr" | "lvl8pPr"
            | "lvl9pPr" | "defPPr" => return false,
            "p" => self.line = Line::default(),
            "pPr" => {
                let level = element.number("lvl").unwrap_or(0).clamp(0, LEVELS_MAX);
                self.line.level = usize::try_from(level).unwrap_or(0);
            }
            "buNone" | "buChar" | "buBlip" | "buAutoNum" => self.bullet(element),
            "t" => self.is_text = true,
            "br" => self.line.text.push('\n'),
            "tab" => self.line.text.push(' '),
            // Slide numbers and dates are computed fields.
            "fld" => {
                let kind = element.attribute("type").unwrap_or_default();
                return !(kind == "slidenum" || kind.starts_with("datetime"));
            }
            "tbl" => self.last().table = Some(Grid::default()),
            "tr" => {
                if let Some(table) = &mut self.last().table {
                    table.row();
                }
            }
            "tc" => self.cell(element),
            "chart" | "relIds" => {
                let id = element.prefixed("id").or_else(|| element.prefixed("dm"));
                let name = id.and_then(|id| self.relations.target(&id)).map(str::to_owned);
                self.last().parts.extend(name);
            }
            "Fallback" | "timing" | "transition" | "extLst" | "tblPr" | "tblGrid" | "rPr"
            | "endParaRPr" | "tabLst" => return false,
            _ => {}
        }
        true
    }

    fn describe(&mut self, element: &Element<'_>) {
        let is_hidden = matches!(element.attribute("hidden").as_deref(), Some("1" | "true"));
        self.last().is_hidden |= is_hidden;
        if !std::mem::take(&mut self.is_picture) {
            return;
        }
        // Generated descriptions carry a note in a second line.
        let description = element.attribute("descr").unwrap_or_default();
        let text = description.lines().next().unwrap_or("").to_owned();
        self.size += text.len();
        self.last().lines.push(Line { text, ..Line::default() });
    }

    fn locate(&mut self, element: &Element<'_>) {
        let is_corner = element.name() == "off";
        let names = if is_corner { ("x", "y") } else { ("cx", "cy") };
        let (Some(first), Some(second)) = (element.number(names.0), element.number(names.1)) else {
            return;
        };
        let bounds = self.last().bounds.get_or_insert_default();
        if is_corner {
            (bounds.x, bounds.y) = (first, second);
        } else {
            (bounds.width, bounds.height) = (first, second);
        }
    }

    fn bullet(&mut self, element: &Element<'_>) {
        if self.is_in_style {
            self.last().has_bullets &= element.name() != "buNone";
            return;
        }
        self.line.bullet = match element.name() {
            "buNone" => Bullet::None,
            "buAutoNum" => {
                let kind = element.attribute("type").unwrap_or_default();
                let format = match () {
                    () if kind.starts_with("alphaLc") => "a",
                    () if kind.starts_with("alphaUc") => "A",
                    () if kind.starts_with("romanLc") => "i",
                    () if kind.starts_with("romanUc") => "I",
                    () => "1",
                };
                let start = element.number("startAt").unwrap_or(1).clamp(1, 100_000);
                Bullet::Number { format, start }
            }
            _ => Bullet::Sign,
        };
    }

    fn cell(&mut self, element: &Element<'_>) {
        self.is_in_cell = true;
        let span =
            |name: &str| element.number(name).and_then(|n| usize::try_from(n).ok()).unwrap_or(1);
        let is_on = |name: &str| matches!(element.attribute(name).as_deref(), Some("1" | "true"));
        let Some(table) = &mut self.last().table else { return };
        match () {
            () if is_on("vMerge") && !is_on("hMerge") => {
                table.cell(1, 1);
                table.reshape(1, true);
            }
            // The further columns of a merged cell follow as cells of their own.
            () if is_on("hMerge") => table.cell(1, 1),
            () => table.cell(1, span("rowSpan")),
        }
    }

    fn text(&mut self, text: &str) -> Result<(), ExtractError> {
        if self.is_text {
            self.size += text.len();
            if self.size > crate::TEXT_BYTES_MAX {
                return Err(outline::too_long());
            }
            self.line.text.push_str(text);
        }
        Ok(())
    }

    fn close(&mut self, name: &str) {
        self.line.text.extend(self.equations.close(name));
        match name {
            "t" => self.is_text = false,
            "xfrm" => self.is_in_bounds = false,
            "lstStyle" => self.is_in_style = false,
            "tc" => self.is_in_cell = false,
            "p" => {
                let line = std::mem::take(&mut self.line);
                let is_in_cell = self.is_in_cell;
                let shape = self.last();
                match &mut shape.table {
                    Some(table) if is_in_cell => {
                        table.add(Piece::new(BlockKind::Paragraph, line.text));
                    }
                    _ => shape.lines.push(line),
                }
            }
            "sp" | "cxnSp" | "graphicFrame" | "pic" | "grpSp" if self.open.len() > 1 => {
                let Some(mut shape) = self.open.pop() else { return };
                if shape.is_hidden || shape.role == Role::Unread {
                    return;
                }
                let children = std::mem::take(&mut shape.children);
                shape.children = order::sorted(children);
                self.last().children.push(shape);
            }
            _ => {}
        }
    }
}
