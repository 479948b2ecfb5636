//! Turns the bytes of a request into typed input: the layer between the frame and a handler.
//!
//! ```text
//! body -> reader (limit, pace, file) --> JSON members | form parts --+
//! query, path --------------------------------------------------------+-> Fields -> Request
//! ```
//!
//! This layer makes no decisions for operations and looks up no tenants.
//!
//! Invariants: no byte of a body is read before the frame has admitted the request; an operation
//! reads exactly what its [`Field`]s declare.
//!
//! - `field`: the declaration of one input field: location, range, JSON schema
//! - `fields`: finds the value of a field; reads texts and identifiers
//! - `scalars`, `collections`: numbers, words and times; lists and maps
//! - `json`: parses a JSON body into `members`; `vectors`: number arrays into one flat buffer
//! - `npy`: numpy files into the same kind of buffer
//! - `objects`, `inputs`: objects and lists of them; texts and token ids; `indexed`: names of list
//!   entries
//! - `parts`: objects that another reader reads
//! - `tree`, `compact`: JSON values within bounds; records kept unchanged
//! - `names`: names that an operation does not declare
//! - `multipart`: a form into texts and files; `form_stream`: its bytes on the way to the parser;
//!   `filename`: the name of a file
//! - `body`, `spool`: reading within limits, into memory or a file
//! - `moment`: times in the forms that callers use

pub mod body;
pub mod collections;
mod compact;
pub mod field;
pub mod fields;
mod filename;
mod form_stream;
pub mod indexed;
pub mod inputs;
pub mod json;
pub mod members;
pub mod moment;
pub mod multipart;
pub mod names;
mod npy;
mod objects;
mod parts;
pub mod scalars;
pub mod spool;
pub mod tree;
pub mod vectors;

use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest, Sha256};

use crate::admission::{Admitted, Gate, Owner};
use crate::error::{ApiError, Location};
use crate::frame::audit::Subject;
use crate::listen::Peer;
use crate::request::members::JsonBody;
use crate::request::names::{Handling, Rules};
use crate::request::objects::Reading;
use crate::request::spool::Spooler;
use lodestone_engine::ingest::{MemoryShare, ResultShare};
use lodestone_types::{Grant, RequestContext, Role, TenantId};

pub use field::{Field, Kind};
pub use fields::Fields;
pub use inputs::Inputs;
pub use multipart::{Form, UploadedFile};
pub use vectors::Vectors;

/// Typed input of one operation.
pub trait Request: Sized + Send + 'static {
    /// All fields that [`Self::read`] reads.
    const FIELDS: &'static [&'static Field];

    /// Reads and validates the input.
    ///
    /// # Errors
    /// 400 or 413 for the first invalid field.
    fn read(fields: &mut Fields) -> Result<Self, ApiError>;
}

impl Request for () {
    const FIELDS: &'static [&'static Field] = &[];

    fn read(_: &mut Fields) -> Result<Self, ApiError> {
        Ok(())
    }
}

/// An `Idempotency-Key` and a digest of the request that it was sent with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idempotency {
    /// The key as sent.
    pub key: String,
    /// SHA-256 over query, path, headers and body. Reusing the key with another digest is a
    /// conflict.
    pub digest: [u8; 32],
}

/// Data about a request that a handler receives along with its input.
#[derive(Debug, Clone)]
pub struct Call {
    /// The caller's grant; `None` only on paths that need no key.
    pub grant: Option<Grant>,
    /// The id returned in the response.
    pub request_id: Arc<str>,
    /// Path template of the route.
    pub route: &'static str,
    /// Scheme, host and prefix under which the client reached this server, without a trailing
    /// slash; empty if the client named no host.
    pub base_url: String,
    /// The idempotency key, if the client sent one.
    pub idempotency: Option<Idempotency>,
    /// Names of parameters that were sent but ignored.
    pub ignored: Arc<[String]>,
    /// The memory reserved for the input, held until the handler has finished.
    pub(super) memory: Option<Arc<MemoryShare>>,
    /// The memory of the result, held until the response has been built.
    pub(super) results: Arc<ResultShare>,
    /// The admission slot, held as long as any part of the work is running.
    pub(super) admitted: Option<Arc<Admitted>>,
    /// Rate limits and permits, for operations without a key that determine their owner themselves.
    pub(super) gate: Arc<Gate>,
    /// The connection; `None` if the router is called without one.
    pub(super) peer: Option<Arc<Peer>>,
    /// The object that the operation changes, for the audit log.
    pub(super) subject: Subject,
    /// Whether this is a query node, which forwards requests that it cannot answer.
    pub(super) is_at_node: bool,
}

impl Call {
    /// Returns a factory of spools for large responses.
    pub(super) fn spooler(&self) -> Spooler {
        let owner = self.grant.as_ref().map_or_else(|| "".into(), Grant::owner);
        Spooler { spills: Arc::clone(&self.gate.spills), owner }
    }

    /// Returns the context of work without a time limit, whose result draws on the memory of the
    /// call.
    pub(super) fn context(&self) -> RequestContext {
        RequestContext::default().with_memory(Arc::clone(&self.results) as _)
    }

    /// Returns the caller's grant.
    ///
    /// # Errors
    /// 500 if a route without a key asks for it, which is a bug in the route table.
    pub fn grant(&self) -> Result<&Grant, ApiError> {
        self.grant.as_ref().ok_or_else(|| ApiError::internal("this route has no grant"))
    }

    /// Leaves the request to the writer, unless this process is the writer.
    ///
    /// # Errors
    /// [`crate::Condition::AtWriter`] on a query node.
    pub(super) fn require_writer(&self) -> Result<(), ApiError> {
        if self.is_at_node { Err(ApiError::at_writer()) } else { Ok(()) }
    }

    /// Tells the audit log what the operation changes: an internal id, never a name.
    pub(super) fn tell_subject(&self, subject: impl ToString) {
        // If it is called again, the first subject stands.
        let _ = self.subject.set(subject.to_string());
    }

    /// Waits for the slot of an operation of `role`. Its owner in the fair queue is the tenant that
    /// the request names, if the key reaches it, else the key's only tenant, else the key.
    ///
    /// # Errors
    /// As [`crate::admission::Admission::enter`].
    pub(super) async fn take_slot(
        &mut self,
        role: Role,
        tenant: Option<TenantId>,
    ) -> Result<(), ApiError> {
        let grant = self.grant()?;
        let named = tenant.filter(|tenant| grant.allows_tenant(tenant));
        let owner = match named.as_ref().or(grant.scope.only_tenant()) {
            Some(tenant) => Owner::Tenant(tenant.clone()),
            None => Owner::Key(Arc::clone(&grant.key_id)),
        };
        self.admitted = Some(Arc::new(self.gate.admission.enter(role, owner).await?));
        Ok(())
    }

    /// Releases the slot early, for a call whose remaining work only waits or runs elsewhere.
    pub(super) fn give_back(&self) {
        if let Some(admitted) = &self.admitted {
            admitted.give_back();
        }
    }
}

/// A body as received.
#[derive(Debug)]
pub(super) enum Payload {
    /// A JSON text that has not been parsed yet; empty if there is no body.
    Json(Bytes),
    /// A form.
    Form(Form),
    /// A numpy file that has not been parsed yet.
    Npy(Bytes),
    /// JSON Lines that have not been parsed yet.
    Lines(Bytes),
}

/// The complete input before it is parsed.
#[derive(Debug)]
pub(super) struct Input {
    pub query: Vec<(String, String)>,
    pub path: Vec<(String, String)>,
    /// Headers that the operation documents.
    pub headers: Vec<(String, String)>,
    pub payload: Payload,
    pub handling: Handling,
}

/// Input that has been parsed.
#[derive(Debug)]
pub(super) struct Parsed<R> {
    /// The typed input, or the work made from it.
    pub request: R,
    /// Names of parameters that were sent but ignored.
    pub ignored: Vec<String>,
    /// The tenant that the request names.
    pub tenant: Option<TenantId>,
}

impl Input {
    /// Estimates the cost of parsing, in bytes.
    pub fn bytes(&self) -> usize {
        match &self.payload {
            Payload::Json(bytes) | Payload::Npy(bytes) => bytes.len(),
            Payload::Form(form) => {
                form.texts.iter().map(|(name, text)| name.len() + text.len()).sum()
            }
            // Lines stay in their file.
            Payload::Lines(_) => 0,
        }
    }

    /// Parses and validates the input.
    ///
    /// # Errors
    /// 400 or 413 for the first fault: syntax first, then names, then values.
    pub fn read<R: Request>(self, is_mutation: bool) -> Result<Parsed<R>, ApiError> {
        let (mut fields, ignored) = self.fields(R::FIELDS, is_mutation)?;
        match R::read(&mut fields) {
            Ok(request) => Ok(Parsed { request, ignored, tenant: fields.tenant }),
            Err(error) => Err(error.with_ignored(&ignored)),
        }
    }

    /// Parses the input into fields, and returns the names of ignored parameters.
    fn fields(
        self,
        known: &'static [&'static Field],
        is_mutation: bool,
    ) -> Result<(Fields, Vec<String>), ApiError> {
        let rules = Rules { handling: self.handling, is_mutation };
        let reading = Reading { rules, ..Reading::default() };
        let mut fields = Fields { documented: Some(known), ..Fields::default() };
        match self.payload {
            Payload::Json(bytes) => fields.body = json::parse(&bytes, known, &reading)?,
            Payload::Form(form) => fields.form = form,
            Payload::Npy(bytes) => fields.body = JsonBody::of_vectors(npy::parse(&bytes)?, known),
            Payload::Lines(lines) => fields.lines = lines,
        }
        let mut unknown = std::mem::take(&mut fields.body.unknown);
        let names = self.query.iter().map(|(name, _)| name.as_str());
        unknown.add_all(Location::Query, names, known);
        let names = fields.form.texts.iter().map(|(name, _)| name.as_str());
        unknown.add_all(Location::Form, names, known);
        unknown.join(std::mem::take(&mut fields.form.unknown));
        let mut ignored = unknown.checked(known, rules)?;
        (fields.query, fields.path, fields.headers) = (self.query, self.path, self.headers);
        ignored.append(&mut fields.body.ignored);
        ignored.extend(fields.without_effect());
        names::cut(&mut ignored);
        Ok((fields, ignored))
    }

    /// Computes SHA-256 over the complete input, with each part preceded by its length.
    pub fn digest(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        let mut add = |bytes: &[u8]| {
            hasher.update((bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        for (name, value) in self.query.iter().chain(&self.path).chain(&self.headers) {
            add(name.as_bytes());
            add(value.as_bytes());
        }
        match &self.payload {
            Payload::Json(bytes) | Payload::Npy(bytes) | Payload::Lines(bytes) => add(bytes),
            Payload::Form(form) => {
                for (name, text) in &form.texts {
                    add(name.as_bytes());
                    add(text.as_bytes());
                }
                for (name, file) in &form.files {
                    add(name.as_bytes());
                    add(file.filename.as_bytes());
                    add(&file.bytes);
                }
            }
        }
        hasher.finalize().into()
    }
}
