//! Electronic books: chapters in reading order, read as HTML pages.
//!
//! ```text
//! META-INF/container.xml -> package document -> manifest, spine -> chapters -> html
//! ```
//! The machine-readable table of contents is omitted; so are chapters that the spine marks as
//! non-linear, unless there are no others. Pages of a book share styles but not structure, so each
//! is read separately.

use std::borrow::Cow;
use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

use crate::budget::Budget;
use crate::events::{Event, Events};
use crate::flow::Flow;
use crate::office::resolve;
use crate::package::Package;
use crate::{ExtractError, decode, html};
use lodestone_types::Extracted;

/// Maximum number of chapters of one book.
const CHAPTERS_MAX: usize = 5000;
/// Maximum bytes of a title.
const TITLE_BYTES_MAX: usize = 1000;

/// A file listed by the book.
#[derive(Debug)]
struct Item {
    name: String,
    is_page: bool,
    is_navigation: bool,
}

/// Contents of the package document.
#[derive(Debug, Default)]
struct Book {
    title: String,
    items: BTreeMap<String, Item>,
    /// Ids of chapters, and whether they are part of the linear text.
    spine: Vec<(String, bool)>,
}

/// Reads a book.
pub(super) fn read(bytes: &[u8], budget: &Budget) -> Result<Extracted, ExtractError> {
    let package = Package::open(bytes, "EPUB", budget)?;
    let book = book_of(&package)?;
    let mut flow = Flow::default();
    flow.set_title(&book.title);
    for wanted in [true, false] {
        let chapters = book.spine.iter().filter(|(_, is_linear)| *is_linear == wanted);
        for (id, _) in chapters.take(CHAPTERS_MAX) {
            let Some(item) = book.items.get(id) else { continue };
            if !item.is_page || item.is_navigation {
                continue;
            }
            let Some(bytes) = package.bytes(&item.name)? else { continue };
            flow.append(&html::read_xhtml(&decode::html(&bytes))?)?;
        }
        if flow.len() > 0 {
            break;
        }
    }
    if flow.len() == 0 && is_protected(&package)? {
        return Err(ExtractError::Encrypted { format: "EPUB" });
    }
    flow.finish()
}

/// Whether the book is protected by DRM, that is, more than its fonts is encrypted.
fn is_protected(package: &Package<'_>) -> Result<bool, ExtractError> {
    let listed = package.bytes("META-INF/encryption.xml")?.unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed);
    Ok(package.has("META-INF/rights.xml") || listed.contains("html"))
}

fn book_of(package: &Package<'_>) -> Result<Book, ExtractError> {
    let broken = |problem: &str| ExtractError::Broken {
        format: package.format(),
        problem: problem.to_owned(),
    };
    let name = match root_file(package)? {
        Some(name) => name,
        // Without an entry in the container, go by the extension.
        None => package
            .names()
            .find(|name| name.ends_with(".opf"))
            .map(str::to_owned)
            .ok_or_else(|| broken("there is no package document"))?,
    };
    let part = package.part(&name)?.ok_or_else(|| broken("the package document is missing"))?;
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut events = Events::new(part)?;
    let mut book = Book::default();
    let mut is_title = false;
    loop {
        match events.next()? {
            Event::Open(element) => {
                is_title = element.name() == "title" && book.title.is_empty();
                match element.name() {
                    "item" => {
                        let target = element.attribute("href").unwrap_or_default();
                        let kind = element.attribute("media-type").unwrap_or_default();
                        let properties = element.attribute("properties").unwrap_or_default();
                        let item = Item {
                            name: resolve(folder, &name_in(&target)),
                            is_page: kind.contains("html"),
                            is_navigation: properties.split_whitespace().any(|p| p == "nav"),
                        };
                        book.items.insert(element.attribute("id").unwrap_or_default(), item);
                    }
                    "itemref" => {
                        let is_linear = element.attribute("linear").as_deref() != Some("no");
                        book.spine
                            .push((element.attribute("idref").unwrap_or_default(), is_linear));
                    }
                    _ => {}
                }
            }
            Event::Close(_) => is_title = false,
            Event::Text(text) if is_title && book.title.len() < TITLE_BYTES_MAX => {
                book.title.push_str(&text);
            }
            Event::Text(_) => {}
            Event::End => return Ok(book),
        }
    }
}

fn root_file(package: &Package<'_>) -> Result<Option<String>, ExtractError> {
    let Some(part) = package.part("META-INF/container.xml")? else { return Ok(None) };
    let mut events = Events::new(part)?;
    loop {
        match events.next()? {
            Event::Open(element) if element.name() == "rootfile" => {
                let name = element.attribute("full-path").unwrap_or_default();
                return Ok(package.has(&name).then_some(name));
            }
            Event::End => return Ok(None),
            _ => {}
        }
    }
}

/// The file name in a link, without its fragment and with escapes resolved.
fn name_in(link: &str) -> Cow<'_, str> {
    let link = link.split_once('#').map_or(link, |(name, _)| name);
    percent_decode_str(link).decode_utf8_lossy()
}
