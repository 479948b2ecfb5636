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
//! Of a page that was fetched, menus around the text are passed over too: a site is not what its
//! page is about. Of a file that somebody uploads, all of it is meant.
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

use crate::extract::ExtractError;
use crate::extract::html::menus::Letters;
use crate::extract::html::page::Page;
use crate::extract::html::tags::Tag;
use crate::extract::html::tokens::{Token, Tokens};
use crate::types::Extracted;

pub use head::HtmlHead;

/// Bytes of text that the part called main must have to be believed.
const MAIN_BYTES_MIN: usize = 200;

/// Which part of a page is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// What is inside `<main>`.
    Main,
    /// What is inside `<article>`.
    Article,
    /// Everything but navigation and footers.
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

/// Reads HTML.
pub(super) fn read(text: &str) -> Result<Extracted, ExtractError> {
    let mut reader = |scope| Ok(render(text, scope, is_xml(text), Vec::new())?.0);
    read_part(text, &mut reader, None)
}

/// Reads a page of a site: what is around its text is passed over.
pub(super) fn read_page(text: &str) -> Result<Extracted, ExtractError> {
    let is_xml = is_xml(text);
    let mut reader = |scope| {
        let (all, blocks) = render(text, scope, is_xml, Vec::new())?;
        let menus = menus::found_in(&blocks);
        if !menus.contains(&true) {
            return Ok(all);
        }
        Ok(render(text, scope, is_xml, menus)?.0)
    };
    read_part(text, &mut reader, Some(Scope::Article))
}

/// Reads the part that the page calls its main one, where that is believable; else `inner`, where
/// there is next to nothing outside of it; else what is not navigation, and at last everything.
fn read_part(
    text: &str,
    reader: &mut dyn FnMut(Scope) -> Result<Extracted, ExtractError>,
    inner: Option<Scope>,
) -> Result<Extracted, ExtractError> {
    if has_main(text) {
        let main = reader(Scope::Main)?;
        if main.text.len() >= MAIN_BYTES_MIN {
            return Ok(main);
        }
    }
    let body = reader(Scope::Body)?;
    if body.text.len() < MAIN_BYTES_MIN {
        return reader(Scope::Whole);
    }
    if let Some(scope) = inner {
        let part = reader(scope)?;
        let is_most = part.text.len() * 3 >= body.text.len() * 2;
        if is_most && part.text.len() >= MAIN_BYTES_MIN {
            return Ok(part);
        }
    }
    Ok(body)
}

/// Whether there is an XML declaration: the page is XHTML, where any element may close itself.
fn is_xml(text: &str) -> bool {
    text.trim_start().starts_with("<?xml")
}

/// Reads a chapter of a book: XHTML without the chrome of a site.
pub(super) fn read_xhtml(text: &str) -> Result<Extracted, ExtractError> {
    Ok(render(text, Scope::Whole, true, Vec::new())?.0)
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

/// The text of a part of a page without the blocks of these numbers, and the letters of all blocks.
fn render(
    text: &str,
    scope: Scope,
    is_xml: bool,
    passed_over: Vec<bool>,
) -> Result<(Extracted, Vec<Letters>), ExtractError> {
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
