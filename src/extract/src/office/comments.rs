//! Comments on cells and slides, from their own parts.
//!
//! Excel stores a comment with replies twice: as a thread, and as a legacy comment that mentions
//! the thread for older programs. PowerPoint uses one of two schemas.

use crate::ExtractError;
use crate::events::{Event, Events};
use crate::flow::Flow;
use crate::package::Package;
use lodestone_types::BlockKind;

/// Elements that are a comment or a reply.
const COMMENTS: [&str; 4] = ["comment", "threadedComment", "cm", "reply"];
/// The start of a legacy comment that stands in for a thread.
const STANDS_FOR_THREAD: &str = "[Threaded comment]";

/// Writes the comments in the part called `name`, each with its cell if it has one.
pub(super) fn write(
    package: &Package<'_>,
    name: &str,
    flow: &mut Flow,
) -> Result<(), ExtractError> {
    let Some(part) = package.part(name)? else { return Ok(()) };
    let mut events = Events::new(part)?;
    let (mut cell, mut text) = (String::new(), String::new());
    let mut put = |cell: &str, text: &mut String| {
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text.clear();
        if words.is_empty() || words.starts_with(STANDS_FOR_THREAD) {
            return Ok(());
        }
        let place = if cell.is_empty() { String::new() } else { format!(" on {cell}") };
        flow.block(BlockKind::Paragraph, &format!("Comment{place}: {words}"))
    };
    loop {
        match events.next()? {
            Event::Open(element) => match element.name() {
                found if COMMENTS.contains(&found) => {
                    // A reply is nested in the comment that it answers.
                    put(&cell, &mut text)?;
                    cell = element.attribute("ref").unwrap_or_default();
                }
                "p" | "br" => text.push(' '),
                "authors" | "extLst" | "mentions" => events.skip()?,
                _ => {}
            },
            Event::Text(content) => text.push_str(&content),
            Event::Close(name) if COMMENTS.contains(&name.as_str()) => put(&cell, &mut text)?,
            Event::Close(_) => {}
            Event::End => return Ok(()),
        }
    }
}
