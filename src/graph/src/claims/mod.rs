//! What a language model adds to the graph of a chunk, held to the chunk's text.
//!
//! No call is made here: the room says what to ask, reads what comes back, and keeps what the text
//! bears out. The graph by rule stands in any case; a reply only adds to it.
//!
//! ```text
//! passages -> request: rules, texts between fences -> (a generator, somewhere else) -> reply
//! reply -> claims, each by itself -> support: is it in the text? -> merge into RowGraph
//! ```
//! Invariants, whatever the reply says and whatever the text has asked the model to say:
//! - An entity is stated only if its name stands in the text of its passage, as whole words.
//! - A triplet is stated only if both names stand in one sentence of the text, or in the supporting
//!   sentence that the reply quotes, which stands in the text itself. That stretch is its context.
//! - A predicate is one of the table; any other is `RELATED_TO`. It is the one thing that the
//!   model says by itself, so a wrong one costs a name of a relation between things that the text
//!   does name together.
//! - Nothing of the graph by rule is taken back, and its bounds hold.
//! - Time is bounded by the bytes of the reply and of the passages.
//!
//! - `request`: what is asked; `reply`: what came back, by items
//! - `support`: where a name or a sentence stands; `merge`: what is kept

mod merge;
mod reply;
mod request;
mod support;
#[cfg(test)]
mod tests;

pub use merge::{Added, merge};
pub use reply::REPLY_BYTES_MAX;
pub use request::{BATCH_PASSAGES_MAX, Passage, REPLY_TOKENS_MAX, Request, batches, request};
