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
//! - `tokens`: tags and text; `entities`: character references
//! - `head`: title and canonical address of a page
//! - `tags`: kinds of elements
//! - `stack`: which elements are open, which of them are hidden
//! - `page`: blocks and white space; `table`: rows to Markdown

mod entities;
mod head;
mod page;
mod stack;
mod table;
mod tags;
mod tokens;

use crate::extract::ExtractError;
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
    /// Everything but navigation and footers.
    Body,
    /// Everything that can be seen.
    Whole,
}

/// Reads HTML.
pub(super) fn read(text: &str) -> Result<Extracted, ExtractError> {
    // An XML declaration: the page is XHTML, where any element may close itself.
    let is_xml = text.trim_start().starts_with("<?xml");
    if has_main(text) {
        let main = render(text, Scope::Main, is_xml)?;
        if main.text.len() >= MAIN_BYTES_MIN {
            return Ok(main);
        }
    }
    let body = render(text, Scope::Body, is_xml)?;
    if body.text.len() >= MAIN_BYTES_MIN {
        return Ok(body);
    }
    render(text, Scope::Whole, is_xml)
}

/// Reads a chapter of a book: XHTML without the chrome of a site.
pub(super) fn read_xhtml(text: &str) -> Result<Extracted, ExtractError> {
    render(text, Scope::Whole, true)
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

fn render(text: &str, scope: Scope, is_xml: bool) -> Result<Extracted, ExtractError> {
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
