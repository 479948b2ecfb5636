//! HTML: the main text in reading order, with headings, lists and tables as Markdown.
//!
//! ```text
//! text -> tokens -> stack of open elements -> page -> outline
//!                   hidden and implied elements   blocks, white space
//! ```
//! Builds no tree, and uses a tokenizer of its own. html5ever's tree builder is quadratic in
//! nesting (html5ever #290), and its tokenizer in the number of attributes of a tag; html5gum 0.9.0
//! recurses for each attribute and overflows the stack at about ten thousand. Extracting text needs
//! neither trees nor most attributes. In tests, a recording of html5ever serves as the oracle for
//! our tokens. Rules take the place of the tree: `tags` knows which tags end others, and misnested
//! tags close elements up to the nearest block at most.
//!
//! If a page marks its main part (`<main>`) and there is text in it, only that part is taken: the
//! menus and languages of a site are not the subject of a document.
//!
//! Always omitted: `<nav>` and `<search>`, the roles navigation, search and dialog, invisible
//! elements, form controls, edit links and cookie notices (recognised by common class names). A
//! button with which a heading, summary or term begins is its text.
//! Omitted outside of `<main>` and `<article>`: `<footer>` and `<aside>`, the roles contentinfo and
//! complementary, and everything in a `<header>` or banner except headings and prose. If less than
//! a tenth of the visible text would be left, or hardly any, everything is kept.
//!
//! For fetched pages, menus around the text, which their links give away, are omitted too. For
//! uploaded files, lists of links are kept; long ones above all prose, such as the language links
//! of an encyclopaedia article, are moved to the end.
//!
//! - `tokens`: tags and text; `entities`: character references
//! - `head`: title and canonical URL of a page; `menus`: blocks that are menus
//! - `tags`: kinds of elements
//! - `stack`: open elements, and whether they are hidden
//! - `page`: blocks and white space

mod entities;
mod head;
#[cfg(test)]
mod layout_tests;
mod menus;
mod page;
mod stack;
mod tags;
mod tokens;

use crate::ExtractError;
use crate::html::page::{Page, Rendered};
use crate::html::tags::Tag;
use crate::html::tokens::{Token, Tokens};
use lodestone_types::Extracted;

pub use head::HtmlHead;

/// Minimum bytes of text for a part to count as the main one, unless it is most of the page.
const MAIN_BYTES_MIN: usize = 200;

/// The kept text must be at least one part in this many of all visible text.
const KEPT_SHARE_MIN: usize = 10;

/// The part of a page to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// The contents of `<main>`.
    Main,
    /// The contents of `<article>`.
    Article,
    /// Everything except navigation and the site's margins.
    Body,
    /// Everything visible.
    Whole,
}

impl Scope {
    /// Whether only the contents of certain elements are taken.
    fn is_part(self) -> bool {
        matches!(self, Self::Main | Self::Article)
    }
}

/// Reads HTML that is a message or a part of another document, without navigation.
pub(super) fn read(text: &str) -> Result<Extracted, ExtractError> {
    let mut reader = |scope| render(text, scope, is_xml(text));
    read_part(&mut reader, has_main(text), None)
}

/// Reads an uploaded file: lists of links may be its subject, so they stay.
pub(super) fn read_file(text: &str) -> Result<Extracted, ExtractError> {
    read_site(text, None)
}

/// Reads a page of a web site, omitting menus around its text.
pub(super) fn read_page(text: &str) -> Result<Extracted, ExtractError> {
    read_site(text, Some(Scope::Article))
}

fn read_site(text: &str, inner: Option<Scope>) -> Result<Extracted, ExtractError> {
    let is_xml = is_xml(text);
    let mut reader = |scope| {
        let page = render(text, scope, is_xml)?;
        match inner {
            _ if scope == Scope::Whole => Ok(page),
            Some(_) => page.arranged(menus::found_in, |_| Vec::new()),
            None => page.arranged(menus::found_above, menus::long_above),
        }
    };
    read_part(&mut reader, has_main(text), inner)
}

/// Reads the part that the page marks as its main one, if that is plausible; otherwise `inner`, if
/// there is hardly anything outside it; otherwise all but navigation, and as a last resort
/// everything.
fn read_part(
    reader: &mut dyn FnMut(Scope) -> Result<Rendered, ExtractError>,
    has_main: bool,
    inner: Option<Scope>,
) -> Result<Extracted, ExtractError> {
    if has_main {
        let main = reader(Scope::Main)?;
        if is_plausible(&main) {
            return Ok(main.document);
        }
    }
    let body = reader(Scope::Body)?;
    if !is_plausible(&body) {
        return Ok(reader(Scope::Whole)?.document);
    }
    if let Some(scope) = inner {
        let part = reader(scope)?.document;
        let is_most = part.text.len() * 3 >= body.document.text.len() * 2;
        if is_most && part.text.len() >= MAIN_BYTES_MIN {
            return Ok(part);
        }
    }
    Ok(body.document)
}

/// Whether the kept text can be the subject of the page: it is a fair share of the visible text,
/// and either long enough by itself or longer than the text left out. This way a page never loses
/// its only text, while a short page still loses its menus.
fn is_plausible(part: &Rendered) -> bool {
    let share = part.kept * KEPT_SHARE_MIN >= part.kept + part.passed;
    let is_enough = part.document.text.len() >= MAIN_BYTES_MIN || part.kept > part.passed;
    is_enough && share
}

/// Whether there is an XML declaration: the page is XHTML, where any element may be self-closing.
fn is_xml(text: &str) -> bool {
    text.trim_start().starts_with("<?xml")
}

/// Reads a chapter of a book: XHTML, in full.
pub(super) fn read_xhtml(text: &str) -> Result<Extracted, ExtractError> {
    Ok(render(text, Scope::Whole, true)?.document)
}

/// Reads title and canonical URL from the head of a page.
pub(super) fn read_head(text: &str) -> HtmlHead {
    head::read(text)
}

fn has_main(text: &str) -> bool {
    let starts_main = |at: usize| {
        text.as_bytes().get(at + 1..at + 5).is_some_and(|name| name.eq_ignore_ascii_case(b"main"))
    };
    text.contains("role=\"main\"") || text.match_indices('<').any(|(at, _)| starts_main(at))
}

/// Renders a part of a page.
fn render(text: &str, scope: Scope, is_xml: bool) -> Result<Rendered, ExtractError> {
    let mut page = Page::new(scope);
    for token in Tokens::new(text, is_xml) {
        match token {
            Token::Start(tag) if is_xml && tag.is_self_closing && !Tag::of(&tag.name).is_void() => {
                let name = tag.name.clone();
                page.open(tag)?;
                page.close(&name)?;
            }
            Token::Start(tag) => page.open(tag)?,
            Token::End(name) => page.close(&name)?,
            Token::Text(text) => page.text(&text)?,
        }
    }
    page.finish()
}
