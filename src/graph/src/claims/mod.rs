//! Additions by a language model to the graph of a chunk, checked against the chunk's text.
//!
//! Nothing is called here: this module writes the request, parses the reply, and keeps what the
//! text supports. The rule-based graph stands in any case; a reply only adds to it.
//!
//! ```text
//! passages -> request: rules, texts between fences -> (a generator, somewhere else) -> reply
//! reply -> claims, each by itself -> support: is it in the text? -> merge into RowGraph
//! ```
//! Invariants, whatever the reply says and whatever the text asks the model to say:
//! - An entity is added only if its name occurs in the text of its passage, as whole words.
//! - A triplet is added only if both names occur in one sentence of the text, or in the supporting
//!   sentence quoted by the reply, provided that it occurs in the text. That stretch becomes its
//!   context.
//! - A predicate is one of [`Predicate`](crate::Predicate); any other becomes `RELATED_TO`. It is
//!   the one thing that the text cannot verify: a wrong one misnames a relation between things that
//!   the text does mention together.
//! - Nothing in the rule-based graph is removed, and its limits hold.
//! - Time is bounded by the sizes of the reply and the passages.
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
