//! HTML: the main text in reading order, with headings, lists and tables as Markdown.
//!
//! ```text
//! text -> tokens -> stack of open elements -> page -> outline
//!                   what is hidden, what is implied   blocks, white space
//! ```
//! No tree is built, and the tokenizer is our own. The tree builder of html5ever is quadratic in
//! nesting (html5ever #290) and its tokenizer in the attributes of one tag; html5gum 0.9.0 calls
//! itself for each attribute and overflows the stack at some ten thousand. A reader of text needs
//! neither trees nor attributes. html5ever stays as the table of entities and as the oracle of our
//! tokens in tests. What a tree would settle is settled by rule: which tags end others is in
//! `tags`, and misnested tags close at most up to the nearest block.
//!
//! Where a page says which part is its main one (`<main>`), and there is text in it, only that is
//! taken: menus and languages of a site are not what a document is about.
//!
//! Passed over, wherever they stand: `<nav>` and `<search>`, the roles navigation, search and
//! dialog, what cannot be seen, controls of forms, links that edit and questions about cookies (by
//! words of classes that many sites share). Passed over outside of `<main>` and `<article>`:
//! `<footer>` and `<aside>`, the roles contentinfo and complementary, and of a `<header>` or banner
//! all but headings and prose. Where less than a tenth of what can be seen would be left, or next
//! to nothing, everything is kept.
//!
//! Of a page that was fetched, menus around the text are passed over too, told by their links: a
//! site is not what its page is about. Of a file that somebody uploads, lists of links are meant.
//!
//! - `tokens`: tags and text; `entities`: character references
//! - `head`: title and canonical address of a page; `menus`: which of its blocks are menus
//! - `tags`: kinds of elements
//! - `stack`: which elements are open, which of them are hidden
//! - `page`: blocks and white space; `table`: rows to Markdown

mod entities;
mod head;
#[cfg(test)]
mod layout_tests;
mod menus;
mod page;
mod stack;
mod table;
mod tags;
mod tokens;

use crate::ExtractError;
use crate::html::page::{Page, Rendered};
use crate::html::tags::Tag;
use crate::html::tokens::{Token, Tokens};
use lodestone_types::Extracted;

pub use head::HtmlHead;

/// Bytes of text that a part must have to be believed, if it is not most of the page.
const MAIN_BYTES_MIN: usize = 200;

/// What is kept has to be one part in so many of all that can be seen.
const KEPT_SHARE_MIN: usize = 10;

/// Which part of a page is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// What is inside `<main>`.
    Main,
    /// What is inside `<article>`.
    Article,
    /// Everything but the chrome of a site.
    Body,
    /// Everything that can be seen.
    Whole,
}

impl Scope {
    /// Whether only what is inside of certain elements is taken.
    fn is_part(self) -> bool {
        matches!(self, Self::Main | Self::Article)
    }
}

/// Reads HTML that is a letter or a part of another document: without the chrome of sites.
pub(super) fn read(text: &str) -> Result<Extracted, ExtractError> {
    let mut reader = |scope| render(text, scope, is_xml(text), Vec::new());
    read_part(&mut reader, has_main(text), None)
}

/// Reads a file that somebody uploads: lists of links may be what it is about, and stay.
pub(super) fn read_file(text: &str) -> Result<Extracted, ExtractError> {
    read_site(text, None)
}

/// Reads a page of a site: what is around its text is passed over.
pub(super) fn read_page(text: &str) -> Result<Extracted, ExtractError> {
    read_site(text, Some(Scope::Article))
}

fn read_site(text: &str, inner: Option<Scope>) -> Result<Extracted, ExtractError> {
    let is_xml = is_xml(text);
    let mut reader = |scope| {
        let all = render(text, scope, is_xml, Vec::new())?;
        if scope == Scope::Whole {
            return Ok(all);
        }
        let menus = match inner {
            Some(_) => menus::found_in(&all.blocks),
            None => menus::found_above(&all.blocks),
        };
        match menus.contains(&true) {
            true => render(text, scope, is_xml, menus),
            false => Ok(all),
        }
    };
    read_part(&mut reader, has_main(text), inner)
}

/// Reads the part that the page calls its main one, where that is believable; else `inner`, where
/// there is next to nothing outside of it; else what is not navigation, and at last everything.
fn read_part(
    reader: &mut dyn FnMut(Scope) -> Result<Rendered, ExtractError>,
    has_main: bool,
    inner: Option<Scope>,
) -> Result<Extracted, ExtractError> {
    if has_main {
        let main = reader(Scope::Main)?;
        if is_believable(&main) {
            return Ok(main.document);
        }
    }
    let body = reader(Scope::Body)?;
    if !is_believable(&body) {
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

/// Whether what was kept can be what the page is about: not next to nothing beside what was passed
/// over, and more than that or not next to nothing by itself. A page is never left without its only
/// text, and a short one still has no menus.
fn is_believable(part: &Rendered) -> bool {
    let share = part.kept * KEPT_SHARE_MIN >= part.kept + part.passed;
    let is_enough = part.document.text.len() >= MAIN_BYTES_MIN || part.kept > part.passed;
    is_enough && share
}

/// Whether there is an XML declaration: the page is XHTML, where any element may close itself.
fn is_xml(text: &str) -> bool {
    text.trim_start().starts_with("<?xml")
}

/// Reads a chapter of a book: XHTML without the chrome of a site.
pub(super) fn read_xhtml(text: &str) -> Result<Extracted, ExtractError> {
    Ok(render(text, Scope::Whole, true, Vec::new())?.document)
}

/// Reads what the head of a page says about it.
pub(super) fn read_head(text: &str) -> HtmlHead {
    head::read(text)
}

fn has_main(text: &str) -> bool {
    let starts_main = |at: usize| {
        text.as_bytes().get(at + 1..at + 5).is_some_and(|name| name.eq_ignore_ascii_case(b"main"))
    };
    text.contains("role=\"main\"") || text.match_indices('<').any(|(at, _)| starts_main(at))
}

/// A part of a page without the blocks of these numbers.
fn render(
    text: &str,
    scope: Scope,
    is_xml: bool,
    passed_over: Vec<bool>,
) -> Result<Rendered, ExtractError> {
    let mut page = Page::new(scope, passed_over);
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
