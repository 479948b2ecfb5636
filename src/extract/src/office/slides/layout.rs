//! Layouts and masters: positions of placeholders, and whether their paragraphs have bullets.

use std::collections::BTreeMap;

use crate::ExtractError;
use crate::office::relations::Relations;
use crate::office::slides::parser;
use crate::office::slides::shape::{Bounds, Role, Shape};
use crate::package::Package;

/// A placeholder of a layout or master.
#[derive(Debug)]
struct Placeholder {
    role: Role,
    index: Option<i64>,
    bounds: Option<Bounds>,
    has_bullets: bool,
}

/// The layouts read so far, each once.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    all: BTreeMap<String, Vec<Placeholder>>,
}

impl Layouts {
    /// Applies to shapes the settings of the layout called `name`.
    pub(super) fn apply(
        &mut self,
        package: &Package<'_>,
        name: &str,
        shapes: &mut [Shape],
    ) -> Result<(), ExtractError> {
        if !self.all.contains_key(name) {
            let mut holders = placeholders_of(package, name)?;
            let relations = Relations::of(package, name)?;
            if let Some(master) = relations.first("slideMaster") {
                let above = placeholders_of(package, master)?;
                for holder in holders.iter_mut().filter(|holder| holder.bounds.is_none()) {
                    let same = above.iter().find(|other| other.role == holder.role);
                    holder.bounds = same.and_then(|other| other.bounds);
                }
            }
            self.all.insert(name.to_owned(), holders);
        }
        let Some(holders) = self.all.get(name) else { return Ok(()) };
        for shape in shapes.iter_mut().filter(|shape| shape.role != Role::Free) {
            let by_index =
                holders.iter().find(|holder| holder.index.is_some() && holder.index == shape.index);
            let by_role = || holders.iter().find(|holder| holder.role == shape.role);
            let Some(holder) = by_index.or_else(by_role) else { continue };
            shape.bounds = shape.bounds.or(holder.bounds);
            shape.has_bullets &= holder.has_bullets;
        }
        Ok(())
    }
}

fn placeholders_of(package: &Package<'_>, name: &str) -> Result<Vec<Placeholder>, ExtractError> {
    let shapes = parser::read(package, name, &Relations::default())?;
    let holders = shapes.into_iter().filter(|shape| shape.role != Role::Free);
    Ok(holders
        .map(|shape| Placeholder {
            role: shape.role,
            index: shape.index,
            bounds: shape.bounds,
            has_bullets: shape.has_bullets,
        })
        .collect())
}
