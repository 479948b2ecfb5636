//! Internet messages (RFC 5322 and MIME), and web archives, which use the same syntax.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::budget::Budget;
use crate::flow::Flow;
use crate::mail::header::{self, Structured};
use crate::mail::letter::{self, Attachment, Body, Headers};
use crate::mail::mime::{self, Header, Part};
use crate::mail::transfer;
use crate::{ExtractError, TEXT_BYTES_MAX, decode, outline};
use lodestone_types::Extracted;

/// Headers by which a message without a file extension is recognised.
const KNOWN: [&str; 12] = [
    "from", "to", "subject", "date", "message-id", "received", "return-path", "mime-version",
    "content-type", "delivered-to", "reply-to", "cc",
];
/// Minimum number of known headers for a text to be a message.
const KNOWN_MIN: usize = 3;
/// Media types of attached signatures, whose names are not written.
const UNNAMED: [&str; 4] = [
    "application/pgp-signature", "application/pkcs7-signature", "application/x-pkcs7-signature",
    "application/pgp-encrypted",
];

/// Media types of text that only displays a page or repeats it, unless it is attached.
const UNREAD: [&str; 5] = [
    "text/css", "text/javascript", "application/javascript", "application/x-javascript",
    "text/x-amp-html",
];

/// Whether a text starts with the headers of a message.
pub(crate) fn is_message(head: &[u8]) -> bool {
    let (headers, _) = mime::headers_of(head, 0);
    let known: BTreeSet<&str> = headers
        .iter()
        .map(|header| header.name.as_str())
        .filter(|name| KNOWN.contains(name))
        .collect();
    let starts_early = headers.first().is_some_and(|first| first.value.start < 200);
    starts_early && known.len() >= KNOWN_MIN
}

/// Reads a message. In a message saved as text in a Unicode encoding, the charsets of its parts no
/// longer apply, except for parts with a transfer encoding.
pub(crate) fn read(bytes: &[u8], budget: &Budget) -> Result<Extracted, ExtractError> {
    match decode::marked(bytes) {
        Some(_) => read_bytes(decode::text(bytes).as_bytes(), true, budget),
        None => read_bytes(bytes, false, budget),
    }
}

fn read_bytes(bytes: &[u8], is_decoded: bool, budget: &Budget) -> Result<Extracted, ExtractError> {
    let message = mime::parts_of(bytes);
    let mut flow = Flow::default();
    letter::write_headers(&headers_of(bytes, &message.headers), &mut flow)?;
    let mut attachments = Vec::new();
    let mut written = BTreeSet::new();
    let mut has_text = false;
    let mut is_encrypted = false;
    for (number, part) in message.parts.iter().enumerate() {
        let kind = part.content_type.value.as_str();
        is_encrypted |= kind == "application/pgp-encrypted"
            || kind.ends_with("pkcs7-mime")
                && part.content_type.raw("smime-type").is_none_or(|word| word != "signed-data");
        if !is_body(bytes, part) {
            attachments.extend(attachment_of(bytes, part));
            continue;
        }
        let body = match part.alternatives {
            // The best alternative is written at the position of the first one.
            Some(group) if !written.insert(group) => continue,
            Some(group) => {
                let parts = message.parts[number..].iter();
                let same = parts.filter(|part| part.alternatives == Some(group));
                body_of(bytes, is_decoded, same)?
            }
            None => body_of(bytes, is_decoded, std::iter::once(part))?,
        };
        has_text |= body.plain.is_some() || body.page.is_some();
        body.write(&mut flow)?;
    }
    if is_encrypted && !has_text {
        return Err(ExtractError::Encrypted { format: "message" });
    }
    letter::write_attachments(&attachments, budget, &mut flow)?;
    flow.finish()
}

fn headers_of(bytes: &[u8], headers: &[Header]) -> Headers {
    let value = |name: &str| {
        let found = headers.iter().find(|header| header.name == name);
        found.map(|header| header::text(&bytes[header.value.clone()])).unwrap_or_default()
    };
    let names = [("From", "from"), ("To", "to"), ("Cc", "cc"), ("Date", "date")];
    let lines = names.map(|(shown, name)| (shown, value(name)));
    Headers { subject: value("subject"), lines: lines.into() }
}

fn named<'p>(part: &'p Part, name: &str) -> Option<&'p Header> {
    part.headers.iter().find(|header| header.name == name)
}

fn disposition_of(bytes: &[u8], part: &Part) -> Structured {
    let header = named(part, "content-disposition");
    header.map(|header| Structured::of(&bytes[header.value.clone()])).unwrap_or_default()
}

/// Whether a part belongs to the body rather than being an attachment.
fn is_body(bytes: &[u8], part: &Part) -> bool {
    let is_text = matches!(part.content_type.value.as_str(), "text/plain" | "text/html");
    is_text && disposition_of(bytes, part).value != "attachment"
}

/// Collects the alternative forms of one body.
fn body_of<'p>(
    bytes: &[u8],
    is_decoded: bool,
    parts: impl Iterator<Item = &'p Part>,
) -> Result<Body, ExtractError> {
    let mut body = Body::default();
    for part in parts.filter(|part| is_body(bytes, part)) {
        let is_page = part.content_type.value == "text/html";
        let slot = if is_page { &mut body.page } else { &mut body.plain };
        if part.body.len() > TEXT_BYTES_MAX {
            return Err(outline::too_long());
        }
        let content = content_of(bytes, part);
        let is_text = is_decoded && matches!(content, Cow::Borrowed(_));
        let charset = part.content_type.raw("charset").filter(|_| !is_text);
        let mut text = decode::labelled(&content, charset);
        let is_flowed = part.content_type.raw("format").is_some_and(|word| word == "flowed");
        if is_flowed && !is_page {
            text = joined(&text);
        }
        match slot {
            // An alternative may consist of several parts.
            Some(before) => {
                before.push_str("\n\n");
                before.push_str(&text);
            }
            None => *slot = Some(text),
        }
    }
    Ok(body)
}

/// Joins lines that end with a space: they were wrapped for display (RFC 3676).
fn joined(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        match line.strip_suffix(" \n").filter(|line| *line != "--" && !line.is_empty()) {
            Some(line) => {
                plain.push_str(line);
                plain.push(' ');
            }
            None => plain.push_str(line),
        }
    }
    plain
}

fn content_of<'b>(bytes: &'b [u8], part: &Part) -> Cow<'b, [u8]> {
    let body = &bytes[part.body.clone()];
    let encoding = named(part, "content-transfer-encoding")
        .map(|header| bytes[header.value.clone()].trim_ascii().to_ascii_lowercase());
    match encoding.as_deref() {
        Some(b"base64") => transfer::base64(body).into(),
        Some(b"quoted-printable") => transfer::quoted_printable(body, false).into(),
        _ => Cow::Borrowed(body),
    }
}

fn attachment_of<'b>(bytes: &'b [u8], part: &Part) -> Option<Attachment<'b>> {
    let media_type = part.content_type.value.clone();
    let disposition = disposition_of(bytes, part);
    let name = disposition.text("filename").or_else(|| part.content_type.text("name"));
    let kind = media_type.as_str();
    // Some programs attach files inline. The parts of a saved page have an address.
    let is_of_page = disposition.value.is_empty() || named(part, "content-location").is_some();
    let is_display =
        kind.starts_with("image/") || kind.contains("font") || is_of_page && UNREAD.contains(&kind);
    if UNNAMED.contains(&kind) || is_display && disposition.value != "attachment" {
        return None;
    }
    let is_enclosed = media_type == "message/rfc822" || media_type == "message/global";
    let name = name.unwrap_or_default();
    let name = if is_enclosed && name.is_empty() { "message.eml".to_owned() } else { name };
    Some(Attachment { name, media_type, content: content_of(bytes, part) })
}
