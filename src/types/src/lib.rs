//! Plain data that every room speaks: identifiers, scopes, sources, chunks, filters, limits, time.
//!
//! Nothing here does input or output, and nothing here knows another room.
//!
//! - `id`: validated names from users, and opaque ids of our own
//! - `scope`: the pair (tenant, sub-tenant) that every content operation carries
//! - `source`: what was uploaded, as a segment keeps it
//! - `chunk`: one searchable piece and where it stands in its source
//! - `document`: the text of a document and its structure, between `extract` and `chunk`
//! - `geometry`: where the lines of a document stand on its pages
//! - `memory`: personal memories as sources; when they expire
//! - `metadata`: free-form maps and their limits; `schema`: a tenant's declared keys
//! - `filter`: the abstract syntax of metadata filters (API 5.3)
//! - `job`: states of processing and the legal moves between them (API 4.10)
//! - `head`: the identity of a commit
//! - `retrieved`: a chunk on its way out of a search
//! - `hit`: scored rows and the rule that breaks ties
//! - `web`: addresses of web pages, and the pages or failures that fetching them ends in
//! - `limits`: every bound in one place; `error`: what a caller should do about a failure
//! - `access`: roles, scopes and grants of API keys
//! - `quoted`: text of documents as a language model is shown it
//! - `clock`, `random`: time and identifiers as components that tests can replace

pub mod access;
pub mod chunk;
pub mod clock;
pub mod document;
pub mod error;
pub mod filter;
pub mod geometry;
pub mod head;
pub mod hit;
pub mod id;
pub mod job;
pub mod limits;
pub mod memory;
pub mod metadata;
pub mod quoted;
pub mod random;
pub mod relation;
mod retrieved;
pub mod schema;
pub mod scope;
pub mod source;
pub mod web;

pub use access::{Grant, KeyScope, Role, TenantGrant};
pub use chunk::{ChunkDraft, ChunkPlace, PageRef};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use document::{Block, BlockKind, Extracted, PageStart};
pub use error::ErrorKind;
pub use filter::{Comparison, Condition, Filter, FilterMap, FilterValue};
pub use geometry::{Geometry, PageArea, PageBox, PlacedLine};
pub use head::CommitHead;
pub use hit::{Hit, by_rank};
pub use id::{
    CollectionId, RowId, SegmentId, Sequence, SessionId, SourceId, SubTenantId, TenantId,
};
pub use job::{Fault, JobEvent, JobState, JobStatus, Progress, Stage};
pub use memory::Memory;
pub use metadata::Metadata;
pub use random::{IdSource, RandomIds, SeededIds};
pub use relation::{Entity, EntityPath, Relations, Triplet};
pub use retrieved::{RetrievedChunk, ScoreParts};
pub use schema::{FieldType, SchemaField, TenantSchema};
pub use scope::{Scope, TenantMode};
pub use source::{Origin, SourceDetail, SourceKind, SourceRecord};
pub use web::{BlockedReason, FetchProblem, WebClient, WebFailure, WebHost, WebPage};
pub use web::{WebStep, WebUrl, WebUrlError};
