//! Plain data that every room speaks: identifiers, scopes, sources, chunks, filters, limits, time.
//!
//! Nothing here does input or output, and nothing here knows another room.
//!
//! - `id`: validated names from users, and opaque ids of our own
//! - `scope`: the pair (tenant, sub-tenant) that every content operation carries
//! - `source`: what was uploaded, as a segment keeps it
//! - `chunk`: one searchable piece and where it stands in its source
//! - `metadata`: free-form maps and their limits; `schema`: a tenant's declared keys
//! - `filter`: the abstract syntax of metadata filters (API 5.3)
//! - `job`: states of processing and the legal moves between them (API 4.10)
//! - `hit`: scored rows and the rule that breaks ties
//! - `limits`: every bound in one place; `error`: what a caller should do about a failure
//! - `clock`, `random`: time and identifiers as components that tests can replace

pub mod chunk;
pub mod clock;
pub mod error;
pub mod filter;
pub mod hit;
pub mod id;
pub mod job;
pub mod limits;
pub mod metadata;
pub mod random;
pub mod schema;
pub mod scope;
pub mod source;

pub use chunk::{ChunkDraft, ChunkPlace, PageRef};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use error::ErrorKind;
pub use filter::{Comparison, Condition, Filter, FilterMap, FilterValue};
pub use hit::{Hit, by_rank};
pub use id::{CollectionId, RowId, SegmentId, Sequence, SourceId, SubTenantId, TenantId};
pub use job::{Fault, JobEvent, JobState, JobStatus, Stage};
pub use metadata::Metadata;
pub use random::{IdSource, RandomIds, SeededIds};
pub use schema::{FieldType, SchemaField, TenantSchema};
pub use scope::{Scope, TenantMode};
pub use source::{SourceKind, SourceRecord};
