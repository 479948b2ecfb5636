//! Plain data types shared by all crates of Lodestone. Performs no I/O and depends on no other
//! crate of the project.
//!
//! ```text
//! upload   WebUrl, SourceId, Metadata -> Extracted (text, blocks) -> ChunkDraft -> SourceRecord
//! query    Grant, Scope, Filter -> Hit (row, score) -> RetrievedChunk, Relations
//! ```
//!
//! # Glossary
//!
//! - **tenant**: the unit of isolation, placement and deletion; owns one **collection**.
//!   **sub-tenant**: an isolated part of it. **scope**: one (tenant, sub-tenant) pair.
//! - **source**: an uploaded document, text, page, record or memory. **chunk**: one searchable
//!   piece of it; inside a segment it is a **row**.
//! - **segment**: one immutable file of rows with everything known about them. **tombstone**: the
//!   mark of a dead row.
//! - **manifest**: the numbered list of a collection's live segments; creating one is the
//!   **commit**. **snapshot**: an open manifest; a query reads exactly one.
//! - **job**: the durable promise to process one source. **sequence**: the position of an operation
//!   in the order of acceptance.
//! - **leg**: the vector or the keyword half of a hybrid search.
//! - **T0**, **T1**, **T2**: tiers of a vector: one bit a component, i8 codes, the original.
//!
//! # Invariants
//!
//! - Names chosen by users are validated once, in `id`, and never become part of a path.
//! - Limits are constants in `limits`, related by compile-time assertions.
//! - Time and randomness are injected (`Clock`, `IdSource`), so that tests can replace them.
//!
//! # Modules
//!
//! - `id`: validated user-chosen names and opaque server ids
//! - `scope`: scopes and tenant modes
//! - `source`: source records; `memory`: personal memories stored as sources, and their expiry
//! - `chunk`: one searchable piece and its position in the source
//! - `document`: text and structure of an extracted document; `geometry`: positions of its lines on
//!   the pages
//! - `language`: language tags
//! - `metadata`: free-form maps and their limits; `schema`: a tenant's declared keys; `datetime`:
//!   time values in metadata
//! - `filter`: the syntax tree of metadata filters
//! - `job`: processing states and the legal transitions between them
//! - `head`: the identity of a commit
//! - `hit`: scored rows and the tie-breaking rule; `retrieved`: the chunks of a result
//! - `warning`: parts of a document that could not be read
//! - `relation`: entities and triplets of a result
//! - `web`: URLs of web pages, and the results of fetching them
//! - `webhook`: event kinds, and the trait of the client that delivers them
//! - `limits`: all limits in one place; `error`: error kinds, classified by what the caller can do
//! - `access`: roles, scopes and grants of API keys
//! - `script`: character classes by script; `secret`: the operator's keys
//! - `quoted`: document text as quoted data for a language model
//! - `clock`, `random`: time and identifiers as injectable components
//! - `context`: tenant, deadline and cancellation of a request
#![forbid(unsafe_code)]

/// Maps the variants of an enum to the words used on the wire and in the catalog.
macro_rules! words {
    ($type:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $type {
            /// The word used on the wire and in the catalog.
            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }

            /// Parses a word; the inverse of [`Self::as_str`].
            pub fn from_word(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }
    };
}

pub mod access;
pub mod chunk;
pub mod clock;
mod context;
mod datetime;
pub mod document;
pub mod error;
pub mod filter;
pub mod geometry;
pub mod head;
pub mod hit;
pub mod id;
pub mod job;
pub mod language;
pub mod limits;
pub mod memory;
pub mod metadata;
pub mod quoted;
pub mod random;
pub mod relation;
mod retrieved;
mod row_payload;
pub mod schema;
pub mod scope;
pub mod script;
mod secret;
pub mod source;
pub mod warning;
pub mod web;
mod webhook;

pub use access::{Grant, KeyScope, Role, Tally, TenantGrant};
pub use chunk::{ChunkDraft, ChunkPlace, PageRef};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use context::{CancellationGuard, CancellationToken, RequestContext, ResultMemory, Stopped};
pub use document::{Block, BlockKind, Extracted, PageStart};
pub use error::ErrorKind;
pub use filter::{Comparison, Condition, Filter, FilterMap, FilterValue};
pub use geometry::{Geometry, LineBox, PageArea, PageBox, PlacedLine, page_boxes};
pub use head::CommitHead;
pub use hit::{Hit, by_rank};
pub use id::{
    CollectionId, RowId, SegmentId, Sequence, SessionId, SourceId, SubTenantId, TenantId,
};
pub use job::{JobErrorCode, JobEvent, JobState, JobStatus, Progress, Stage};
pub use memory::Memory;
pub use metadata::Metadata;
pub use random::{IdSource, RandomIds, SeededIds};
pub use relation::{Entity, EntityPath, Relations, Triplet};
pub use retrieved::{RetrievedChunk, ScoreParts};
pub use row_payload::{RowPayload, derived_chunk_id, split_chunk_id};
pub use schema::{FieldType, SchemaField, TenantSchema};
pub use scope::{Metric, Scope, TenantMode};
pub use secret::Secret;
pub use source::{Origin, SourceDetail, SourceKind, SourceRecord};
pub use warning::Warning;
pub use web::{BlockedReason, FetchProblem, WebClient, WebFailure, WebHost, WebPage};
pub use web::{WebStep, WebUrl, WebUrlError};
pub use webhook::{DeliveryState, EventKind, PostFailure, WebPost, WebhookClient, WebhookState};
