//! Archives: one tenant as JSON Lines, exported from one server and imported into another.
//!
//! ```text
//! {"member":"archive", ...}        format, release, mode, schema, model, width of the vectors
//! {"member":"sub_tenant", ...}     each but `default`
//! {"member":"source", ...}         its record, and how many chunks and bytes follow
//!   {"member":"original", ...}     a piece of the original in base64
//!   {"member":"chunk", ...}        text, place, context, graph, vector
//! {"member":"end", ...}            counts, and the SHA-256 of every byte before this line
//! ```
//! Invariants:
//! - An export is of one snapshot and is streamed: at most one chunk is in memory at a time.
//! - An import reads the whole archive before it writes anything. An archive that is truncated or
//!   wrong is refused with the number and kind of the offending line.
//! - An import is atomic: the tenant appears as a whole or not at all.
//!
//! - `format`: the lines as types; `reader`: parses and checks them by `rules`; `export`: writes
//!   them
//! - `import`: imports a checked archive into a tenant; `error`: errors

mod error;
mod export;
mod format;
mod import;
mod reader;
mod rules;

pub use error::ArchiveError;
pub use export::Export;
#[cfg(test)]
pub(crate) use format::SourceLine;
pub use import::Imported;
pub(crate) use reader::ArchivedSource;
