//! Outlook messages (MS-OXMSG).

use time::OffsetDateTime;

use crate::budget::Budget;
use crate::compound::Compound;
use crate::flow::Flow;
use crate::mail::compressed;
use crate::mail::letter::{self, Attachment, Body, Headers};
use crate::mail::properties::Properties;
use crate::{ExtractError, decode, rtf};
use lodestone_types::Extracted;

/// Maximum number of attachments read.
const ATTACHMENTS_MAX: usize = 200;
/// Maximum number of recipients written.
const RECIPIENTS_MAX: usize = 1000;
/// Maximum nesting of messages.
const DEPTH_MAX: usize = 2;

/// Bytes before the entries of a property table: of the top-level message, of an enclosed message,
/// and of recipients and attachments.
const HEADER_BYTES: [usize; 3] = [32, 24, 8];

mod tag {
    pub(super) const SUBJECT: u16 = 0x0037;
    pub(super) const SUBMITTED: u16 = 0x0039;
    pub(super) const DELIVERED: u16 = 0x0E06;
    pub(super) const SENDER_NAME: u16 = 0x0C1A;
    pub(super) const SENDER_ADDRESS: u16 = 0x0C1F;
    pub(super) const SENDER_SMTP: u16 = 0x5D01;
    pub(super) const DISPLAY_CC: u16 = 0x0E03;
    pub(super) const DISPLAY_TO: u16 = 0x0E04;
    pub(super) const BODY: u16 = 0x1000;
    pub(super) const BODY_RTF: u16 = 0x1009;
    pub(super) const BODY_HTML: u16 = 0x1013;
    pub(super) const CODE_PAGE: u16 = 0x3FFD;
    pub(super) const INTERNET_CODE_PAGE: u16 = 0x3FDE;
    pub(super) const RECIPIENT_TYPE: u16 = 0x0C15;
    pub(super) const DISPLAY_NAME: u16 = 0x3001;
    pub(super) const ADDRESS: u16 = 0x3003;
    pub(super) const SMTP: u16 = 0x39FE;
    pub(super) const ATTACHED: u16 = 0x3701;
    pub(super) const ATTACHED_NAME: u16 = 0x3704;
    pub(super) const ATTACHED_LONG_NAME: u16 = 0x3707;
    pub(super) const ATTACHED_TYPE: u16 = 0x370E;
}

/// Reads a message.
pub(crate) fn read(bytes: &[u8], budget: &Budget) -> Result<Extracted, ExtractError> {
    let mut file = Compound::open(bytes)?;
    let mut flow = Flow::default();
    let mut attachments = Vec::new();
    // The top-level message, then the messages enclosed in it.
    let mut waiting = vec![(String::new(), 0)];
    while let Some((storage, depth)) = waiting.pop() {
        message(&mut file, &storage, depth, &mut flow)?;
        let mut inner = attached(&mut file, &storage, &mut attachments);
        letter::write_attachments(&attachments, budget, &mut flow)?;
        attachments.clear();
        inner.reverse();
        let is_read = depth < DEPTH_MAX;
        waiting.extend(inner.into_iter().filter(|_| is_read).map(|path| (path, depth + 1)));
    }
    flow.finish()
}

/// Writes one message without its attachments.
fn message(
    file: &mut Compound<'_>,
    storage: &str,
    depth: usize,
    flow: &mut Flow,
) -> Result<(), ExtractError> {
    let header_bytes = if depth == 0 { HEADER_BYTES[0] } else { HEADER_BYTES[1] };
    let own = Properties::read(file, storage, header_bytes);
    let code_page = own.number(tag::CODE_PAGE).or_else(|| own.number(tag::INTERNET_CODE_PAGE));
    let label = code_page.map(label_of);
    let label = label.as_deref();
    let mut text = |tag: u16| own.text(file, tag, label);
    let subject = text(tag::SUBJECT).unwrap_or_default();
    let name = text(tag::SENDER_NAME);
    let address = text(tag::SENDER_SMTP).or_else(|| text(tag::SENDER_ADDRESS));
    let shown_to = text(tag::DISPLAY_TO);
    let shown_cc = text(tag::DISPLAY_CC);
    let plain = text(tag::BODY);
    let page_text = text(tag::BODY_HTML);
    let recipients = recipients(file, storage, label);
    let to = Some(recipients.0).filter(|to| !to.is_empty()).or(shown_to);
    let cc = Some(recipients.1).filter(|cc| !cc.is_empty()).or(shown_cc);
    let time = own.time(tag::SUBMITTED).or_else(|| own.time(tag::DELIVERED));
    let lines = vec![
        ("From", person(name, address)),
        ("To", to.unwrap_or_default()),
        ("Cc", cc.unwrap_or_default()),
        ("Date", time.and_then(date_of).unwrap_or_default()),
    ];
    letter::write_headers(&Headers { subject, lines }, flow)?;
    let page = match own.bytes(file, tag::BODY_HTML) {
        Some(bytes) => {
            let internet = own.number(tag::INTERNET_CODE_PAGE).map(label_of);
            Some(match internet {
                Some(label) => decode::labelled(&bytes, Some(&label)),
                None => decode::html(&bytes),
            })
        }
        None => page_text,
    };
    if plain.is_some() || page.is_some() {
        return Body { plain, page }.write(flow);
    }
    let compressed = own.bytes(file, tag::BODY_RTF);
    let Some(body) = compressed.and_then(|bytes| compressed::expanded(&bytes)) else {
        return Ok(());
    };
    flow.append(&rtf::read(&body)?)
}

/// The recipients, and those of copies.
fn recipients(file: &mut Compound<'_>, storage: &str, label: Option<&str>) -> (String, String) {
    let mut found = [const { Vec::new() }; 2];
    let storages = file.storages(&rooted(storage));
    let recipients = storages.iter().filter(|name| name.starts_with("__recip_version1.0_"));
    for name in recipients.take(RECIPIENTS_MAX) {
        let own = Properties::read(file, &format!("{storage}/{name}"), HEADER_BYTES[2]);
        let shown = own.text(file, tag::DISPLAY_NAME, label);
        let address =
            own.text(file, tag::SMTP, label).or_else(|| own.text(file, tag::ADDRESS, label));
        let slot = usize::from(own.number(tag::RECIPIENT_TYPE) == Some(2));
        let person = person(shown, address);
        if !person.is_empty() {
            found[slot].push(person);
        }
    }
    (found[0].join(", "), found[1].join(", "))
}

/// Collects the attachments of a message; returns the paths of those that are messages themselves.
fn attached(
    file: &mut Compound<'_>,
    storage: &str,
    attachments: &mut Vec<Attachment<'static>>,
) -> Vec<String> {
    let mut messages = Vec::new();
    let storages = file.storages(&rooted(storage));
    let attached = storages.iter().filter(|name| name.starts_with("__attach_version1.0_"));
    for name in attached.take(ATTACHMENTS_MAX) {
        let own = Properties::read(file, &format!("{storage}/{name}"), HEADER_BYTES[2]);
        if let Some(path) = own.object(file, tag::ATTACHED) {
            messages.push(path);
            continue;
        }
        let name = own.text(file, tag::ATTACHED_LONG_NAME, None);
        let name = name.or_else(|| own.text(file, tag::ATTACHED_NAME, None)).unwrap_or_default();
        let media_type = own.text(file, tag::ATTACHED_TYPE, None).unwrap_or_default();
        let content = own.bytes(file, tag::ATTACHED).unwrap_or_default();
        attachments.push(Attachment { name, media_type, content: content.into() });
    }
    messages
}

fn rooted(storage: &str) -> String {
    if storage.is_empty() { "/".to_owned() } else { storage.to_owned() }
}

/// A name and an address, merged if they are the same. Directory addresses do not count as
/// addresses.
fn person(name: Option<String>, address: Option<String>) -> String {
    let address = address.filter(|address| address.contains('@'));
    match (name, address) {
        (Some(name), Some(address)) if name.contains(&address) => name,
        (Some(name), Some(address)) => format!("{name} <{address}>"),
        (name, address) => name.or(address).unwrap_or_default(),
    }
}

/// Converts a time to a date and time of day; `None` for implausible centuries, which are damage.
fn date_of(time: u64) -> Option<String> {
    /// Seconds from 1601 to 1970.
    const EPOCH: u64 = 11_644_473_600;
    /// Seconds from 1970 to the year 2243.
    const CENTURIES: u64 = 100_000 * 86_400;
    let seconds = (time / 10_000_000).checked_sub(EPOCH).filter(|&seconds| seconds < CENTURIES)?;
    let moment = OffsetDateTime::from_unix_timestamp(i64::try_from(seconds).ok()?).ok()?;
    Some(format!("{} {:02}:{:02} UTC", moment.date(), moment.hour(), moment.minute()))
}

/// The encoding label of a code page.
fn label_of(code_page: u32) -> String {
    rtf::code_pages::label(code_page).to_owned()
}
