//! Reads PowerPoint presentations slide by slide, in presentation order.
//!
//! ```text
//! presentation -> slides -> shapes of each -> order of reading -> flow
//!                 layouts: positions of placeholders that have none themselves
//! ```
//! The title comes first, then the other shapes in reading order, the comments and the speaker
//! notes. Slide numbers, dates and footers are left out.
//!
//! - `shape`: shapes of a slide; `parser`: shapes from XML
//! - `layout`: positions and bullets of placeholders; `order`: reading order

mod layout;
mod order;
mod parser;
mod shape;

use crate::ExtractError;
use crate::budget::Budget;
use crate::events::{Event, Events};
use crate::flow::Flow;
use crate::office::relations::{self, Relations};
use crate::office::slides::layout::Layouts;
use crate::office::slides::shape::{Role, Shape};
use crate::office::{PROPERTIES, chart, comments};
use crate::package::Package;
use crate::title::title;
use lodestone_types::{Extracted, PageRef};

/// Maximum slides per presentation.
const SLIDES_MAX: usize = 5000;
/// The title PowerPoint gives to an untitled presentation.
const UNTITLED: &str = "PowerPoint Presentation";

/// Reads a presentation.
pub(crate) fn read(bytes: &[u8], budget: &Budget) -> Result<Extracted, ExtractError> {
    let package = Package::open(bytes, "PowerPoint presentation", budget)?;
    let (main, relations) = relations::main_part(&package, "ppt/presentation.xml")?;
    let mut flow = Flow::default();
    if let Some(title) = title(&package, PROPERTIES).filter(|title| title != UNTITLED) {
        flow.set_title(&title);
    }
    let mut layouts = Layouts::default();
    for (index, id) in slide_ids(&package, &main)?.iter().enumerate() {
        let Some(name) = relations.target(id) else { continue };
        flow.page(PageRef::Slide(u32::try_from(index + 1).unwrap_or(u32::MAX)));
        slide(&package, name, &mut layouts, &mut flow)?;
    }
    flow.finish()
}

/// The relationship IDs of the slides, in order.
fn slide_ids(package: &Package<'_>, main: &str) -> Result<Vec<String>, ExtractError> {
    let Some(part) = package.part(main)? else { return Ok(Vec::new()) };
    let mut events = Events::new(part)?;
    let mut ids = Vec::new();
    loop {
        match events.next()? {
            Event::Open(element) if element.name() == "sldId" => {
                ids.extend(element.prefixed("id"));
                if ids.len() > SLIDES_MAX {
                    return Err(ExtractError::BeyondLimit { what: "slides", max: SLIDES_MAX });
                }
            }
            Event::End => return Ok(ids),
            _ => {}
        }
    }
}

fn slide(
    package: &Package<'_>,
    name: &str,
    layouts: &mut Layouts,
    flow: &mut Flow,
) -> Result<(), ExtractError> {
    let relations = Relations::of(package, name)?;
    let mut shapes = parser::read(package, name, &relations)?;
    if let Some(layout) = relations.first("slideLayout") {
        layouts.apply(package, layout, &mut shapes)?;
    }
    write(package, shapes, flow)?;
    for name in relations.of_kind("comments") {
        comments::write(package, name, flow)?;
    }
    let Some(notes) = relations.first("notesSlide") else { return Ok(()) };
    let relations = Relations::of(package, notes)?;
    let mut notes = parser::read(package, notes, &relations)?;
    // The other shapes on a notes page are the slide thumbnail, number and date.
    notes.retain(|shape| shape.role == Role::Body);
    for shape in &mut notes {
        shape.has_bullets = false;
    }
    if notes.iter().any(|shape| !shape.is_blank()) {
        flow.heading(3, "Notes")?;
    }
    write(package, notes, flow)
}

/// Writes shapes in reading order, titles first.
fn write(package: &Package<'_>, shapes: Vec<Shape>, flow: &mut Flow) -> Result<(), ExtractError> {
    let (titles, others): (Vec<Shape>, Vec<Shape>) =
        shapes.into_iter().partition(|shape| shape.role.heading_level().is_some());
    let mut waiting: Vec<Shape> = order::sorted(others);
    waiting.reverse();
    waiting.extend(titles.into_iter().rev());
    while let Some(mut shape) = waiting.pop() {
        shape.write(flow)?;
        shape.write_table(flow)?;
        for name in &shape.parts {
            chart::write(package, name, flow)?;
        }
        waiting.extend(shape.children.into_iter().rev());
    }
    Ok(())
}
