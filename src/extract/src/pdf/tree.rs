//! The tree of pages, walked once before the library walks it for every page.
//!
//! The library follows each branch down to its bound, so a tree that contains itself in two places
//! would be walked 2^50 times. One place costs little, and files with it are read by others too.

use std::collections::HashSet;

use pdf_oxide::PdfDocument;
use pdf_oxide::object::{Object, ObjectRef};

use crate::ExtractError;
use crate::pdf::{PAGES_MAX, broken};

/// Places in which a tree may contain a branch again.
const REPEATS_MAX: usize = 1;

/// Refuses trees that contain themselves, and too many pages.
pub(super) fn check(document: &PdfDocument) -> Result<(), ExtractError> {
    let root = document.catalog().ok();
    let root = root.as_ref().and_then(|catalog| catalog.as_dict()?.get("Pages")?.as_reference());
    let mut open: Vec<ObjectRef> = root.into_iter().collect();
    let mut branches = HashSet::new();
    let (mut pages, mut repeats) = (0, 0);
    while let Some(node) = open.pop() {
        // A node that cannot be read has no pages; the library says so again, page by page.
        let Ok(object) = document.load_object(node) else { continue };
        let kids = object.as_dict().and_then(|node| node.get("Kids"));
        let kids = kids.map(|kids| match kids.as_reference() {
            Some(kids) => document.load_object(kids).unwrap_or(Object::Null),
            None => kids.clone(),
        });
        let Some(kids) = kids else {
            pages += 1;
            if pages > PAGES_MAX {
                return Err(too_many_pages());
            }
            continue;
        };
        if !branches.insert((node.id, node.r#gen)) {
            repeats += 1;
            if repeats > REPEATS_MAX {
                return Err(broken("its tree of pages contains itself"));
            }
            continue;
        }
        let kids = kids.as_array().map(|kids| kids.iter()).into_iter().flatten();
        open.extend(kids.filter_map(|kid| kid.as_reference()));
    }
    Ok(())
}

/// The error of a file with more pages than its bound.
pub(super) fn too_many_pages() -> ExtractError {
    ExtractError::BeyondLimit { what: "pages", max: PAGES_MAX }
}
