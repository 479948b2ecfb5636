//! Additions of a language model to the graph of a chunk, checked against the chunk's text.
//!
//! No call is made here: this module writes the request, reads the reply, and keeps what the text
//! supports. The graph by rule stands in any case; a reply only adds to it.
//!
//! ```text
//! passages -> request: rules, texts between fences -> (a generator, somewhere else) -> reply
//! reply -> claims, each by itself -> support: is it in the text? -> merge into RowGraph
//! ```
//! Invariants, whatever the reply says and whatever the text asks the model to say:
//! - An entity is stated only if its name stands in the text of its passage, as whole words.
//! - A triplet is stated only if both names stand in one sentence of the text, or in the supporting
//!   sentence that the reply quotes, which stands in the text itself. That stretch is its context.
//! - A predicate is one of [`Predicate`](crate::Predicate); any other is `RELATED_TO`. It is the
//!   one thing that the text does not check: a wrong one misnames a relation between things that
//!   the text does name together.
//! - Nothing of the graph by rule is taken back, and its bounds hold.
//! - Time is bounded by the bytes of the reply and of the passages.
//!
//! - `request`: the prompt; `reply`: the claims in a reply, item by item
//! - `support`: finds names and sentences in the text; `merge`: adds supported claims to the graph

mod merge;
mod reply;
mod request;
mod support;
#[cfg(test)]
mod tests;

pub use merge::{Added, merge};
pub use reply::REPLY_BYTES_MAX;
pub use request::{ChunkText, REPLY_TOKENS_MAX, Request, batches, request};
