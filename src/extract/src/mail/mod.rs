//! Messages: headers, body, attachments.
//!
//! ```text
//! eml: lines -> parts (one pass, a stack of boundaries) -> headers, body, attachments
//! msg: compound file -> properties -----------------------> headers, body, attachments
//! ```
//! MIME is parsed by this crate itself: mail-parser 0.11 keeps nested messages in a tree of
//! unlimited depth, and searches for the boundary of each multipart up to the end of the file,
//! which is quadratic if none of them ends.
//!
//! An attachment that is a document is read like a separate upload, under the same budget; for
//! others only the name is written.
//!
//! - `mime`: parts of a message; `header`: encoded words, parameters; `transfer`: base64 and the
//!   like
//! - `eml`: MIME messages; `outlook`: Outlook messages, `properties`: their streams, `compressed`:
//!   their compressed RTF
//! - `letter`: the text of both

mod compressed;
mod eml;
mod header;
mod letter;
mod mime;
mod outlook;
mod properties;
mod transfer;

pub(super) use eml::{is_message, read as read_eml};
pub(super) use outlook::read as read_msg;
pub(super) use transfer::hex;
