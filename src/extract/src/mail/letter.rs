//! Writes the text of a message: headers, body, attachments.

use crate::budget::Budget;
use crate::flow::Flow;
use crate::{ExtractError, detect, html, read, txt};
use lodestone_types::{BlockKind, Extracted, Warning};

/// Lengths below which a plain text may merely refer to the HTML body next to it, each with the
/// factor by which that must be longer.
const HINTS: [(usize, usize); 2] = [(200, 2), (2000, 4)];
/// Bytes of a web address that count, from its colon on: tracked links are long and say nothing.
const ADDRESS_BYTES: usize = 5;
/// Maximum number of attachments named.
const ATTACHMENTS_MAX: usize = 500;
/// Maximum characters of an attachment's name in a warning.
const NAME_CHARS_MAX: usize = 100;

/// The headers to write, in this order.
#[derive(Debug, Default)]
pub(super) struct Headers {
    /// The subject.
    pub subject: String,
    /// Name and value of the other headers.
    pub lines: Vec<(&'static str, String)>,
}

/// A file attached to a message.
#[derive(Debug)]
pub(super) struct Attachment<'a> {
    /// Its name; empty if none is given.
    pub name: String,
    /// Its media type; empty if none is given.
    pub media_type: String,
    /// Its bytes.
    pub content: std::borrow::Cow<'a, [u8]>,
}

/// The body of a message in its alternative forms.
#[derive(Debug, Default)]
pub(super) struct Body {
    /// The plain text.
    pub plain: Option<String>,
    /// The HTML.
    pub page: Option<String>,
}

impl Body {
    /// Writes the better form: the plain text, unless it merely refers to the HTML.
    pub(super) fn write(&self, flow: &mut Flow) -> Result<(), ExtractError> {
        let plain = self.plain.as_deref().unwrap_or("").trim();
        let length = length_of(plain);
        if let Some(page) = self.page.as_deref().filter(|page| !page.trim().is_empty())
            && let Some((_, factor)) = HINTS.iter().find(|(max, _)| length < *max)
        {
            let page = html::read(page)?;
            if length_of(&page.text) > length * factor || plain.is_empty() {
                return flow.append(&page);
            }
        }
        flow.append(&txt::read(plain.to_owned())?)
    }
}

/// Bytes of the words of a text, each with a space.
fn length_of(text: &str) -> usize {
    let length = |word: &str| {
        let end = word.find("://").map_or(word.len(), |colon| colon + ADDRESS_BYTES);
        word.len().min(end) + 1
    };
    text.split_whitespace().map(length).sum()
}

/// Writes the subject and the headers.
pub(super) fn write_headers(headers: &Headers, flow: &mut Flow) -> Result<(), ExtractError> {
    flow.set_title(&headers.subject);
    flow.heading(1, &headers.subject)?;
    let mut lines = String::new();
    for (name, value) in headers.lines.iter().filter(|(_, value)| !value.trim().is_empty()) {
        lines.push_str(name);
        lines.push_str(": ");
        lines.push_str(value.trim());
        lines.push('\n');
    }
    flow.block(BlockKind::Record, &lines)
}

/// Writes the attachments: their names, and their text if they contain any that can be read.
pub(super) fn write_attachments(
    attachments: &[Attachment<'_>],
    budget: &Budget,
    flow: &mut Flow,
) -> Result<(), ExtractError> {
    for attachment in attachments.iter().take(ATTACHMENTS_MAX) {
        let name = attachment.name.trim();
        let inner = read_attachment(attachment, budget);
        if let Err(failure) = &inner
            && !is_picture(attachment, failure)
        {
            let shown = if name.is_empty() { attachment.media_type.as_str() } else { name };
            let shown: String = shown.chars().take(NAME_CHARS_MAX).collect();
            flow.warn(Warning::attachment_not_read(&shown, &failure.to_string()));
        }
        match &inner {
            Ok(_) if name.is_empty() => flow.heading(2, "Attachment")?,
            Ok(_) => flow.heading(2, &format!("Attachment: {name}"))?,
            Err(_) if name.is_empty() => {}
            Err(_) => flow.block(BlockKind::Paragraph, &format!("Attachment: {name}"))?,
        }
        if let Ok(inner) = inner {
            flow.append(&inner)?;
        }
    }
    Ok(())
}

/// Whether no text is expected of an attachment.
fn is_picture(attachment: &Attachment<'_>, failure: &ExtractError) -> bool {
    let is_image = |name: &str| name.ends_with("image");
    attachment.media_type.starts_with("image/")
        || matches!(failure, ExtractError::Unsupported { name } if is_image(name))
}

/// Extracts the text of an attachment. A damaged attachment is not an error of the message.
fn read_attachment(
    attachment: &Attachment<'_>,
    budget: &Budget,
) -> Result<Extracted, ExtractError> {
    let media_type = Some(attachment.media_type.as_str()).filter(|word| !word.is_empty());
    let format = detect(&attachment.name, media_type, &attachment.content)?;
    Ok(budget.enclosed(|| read(format, &attachment.content, budget))?.1)
}
