//! Messages: headers, body, attachments.
//!
//! ```text
//! eml: lines -> parts (one pass, a stack of boundaries) -> headers, body, attachments
//! msg: compound file -> properties -----------------------> headers, body, attachments
//! ```
//! MIME is read by a reader of this crate: mail-parser 0.11 keeps messages in messages in a tree of
//! unlimited depth, and looks for the boundary of each multipart to the end of the file, which is
//! quadratic where none of them ends.
//!
//! An attachment that is a document is read like an upload of its own, under the same budget; of
//! others the name is written.
//!
//! - `mime`: parts of a message; `header`: encoded words, parameters; `transfer`: base64 and such
//! - `eml`: a message in MIME; `outlook`: a message of Outlook, `properties`: its streams,
//!   `compressed`: its compressed RTF
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
