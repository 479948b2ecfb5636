//! One entry of the table of routes: the description of an operation, and its handler with the
//! steps before and after it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use http::Method;
use schemars::{Schema, SchemaGenerator};

use super::{Group, off_thread};
use crate::admission::Gate;
use crate::error::{ApiError, Condition};
use crate::reply::{Reply, store_large};
use crate::request::{Call, Field, Input, Parsed, Request};
use crate::response_notes::tell_ignored;
use lodestone_engine::ingest::MemoryShare;
use lodestone_types::{Grant, Role, limits};

/// Inputs above this size are parsed off the async threads and reserve memory first.
pub const PARSE_INLINE_BYTES_MAX: usize = 64 << 10;
/// Memory reserved per byte of input. The input itself is in a file; its texts are in memory once
/// as members and once as what the operation makes of them.
const BYTES_PER_INPUT_BYTE: u64 = 3;
/// Time that an input waits for memory before the client is told to retry.
const MEMORY_WAIT: Duration = Duration::from_secs(10);

/// The kind of body that an operation reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Media {
    /// No body; one that is sent is not read.
    None,
    /// A JSON object, which may be absent where no member is required.
    Json,
    /// A JSON object, or a float32 matrix in numpy's format.
    JsonOrNpy,
    /// A multipart form.
    Multipart,
    /// A URL-encoded form, or JSON.
    UrlEncoded,
    /// JSON Lines, which the operation parses itself.
    Lines,
}

/// The process that carries an operation out when query nodes follow a writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServingNode {
    /// The process that received the request, or one that it forwards the request to.
    Any,
    /// The process that received the request, because the operation concerns that process.
    Asked,
    /// The writer, because the operation changes data or needs data that only the writer has.
    Writer,
}

/// The effect of an operation, besides its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// No effect.
    Nothing,
    /// Work that is done after the response.
    Queued,
    /// A change that is visible by the time of the response.
    Visible,
}

/// The description of an operation, apart from its handler.
#[derive(Debug, Clone)]
pub struct RouteSpec {
    /// The method; GET also serves HEAD.
    pub method: Method,
    /// The path, with `{name}` for variable parts.
    pub path: &'static str,
    /// The section of the OpenAPI document.
    pub group: Group,
    /// The least role required, or `None` if no key is needed.
    pub role: Option<Role>,
    /// The kind of body.
    pub media: Media,
    /// Maximum size of the body in bytes.
    pub body_bytes_max: usize,
    /// Whether the operation waits for an admission slot.
    pub takes_slot: bool,
    /// The process that carries the operation out.
    pub served_by: ServingNode,
    /// The effect besides the response.
    pub effect: Effect,
    /// Whether the operation deletes something, which the audit log then has.
    pub deletes: bool,
    /// One-line summary for the OpenAPI document.
    pub summary: &'static str,
    /// The input fields.
    pub fields: &'static [&'static Field],
    /// Generates the schema of the response.
    pub reply_schema: fn(&mut SchemaGenerator) -> Schema,
    /// Media types of the response; the schema describes the first.
    pub media_types: &'static [&'static str],
}

/// Builds the response after the work is done, given the names of ignored parameters.
type Respond = Box<dyn FnOnce(&[String]) -> Result<Response, ApiError> + Send>;
type Working = Pin<Box<dyn Future<Output = Result<Respond, ApiError>> + Send>>;
/// The work of an operation on input that has been parsed.
type Work<S> = Box<dyn FnOnce(S, Call) -> Working + Send>;
/// Parses the input of an operation.
type Reader<S> = Arc<dyn Fn(Input) -> Result<Parsed<Work<S>>, ApiError> + Send + Sync>;

/// One entry of the table of routes.
///
/// The types of an operation's input and output occur only in its reader, its work and its
/// response. Everything between is compiled once, rather than once per operation.
#[derive(Clone)]
pub struct Route<S> {
    /// The description of the operation.
    pub spec: RouteSpec,
    reader: Reader<S>,
}

impl<S> std::fmt::Debug for Route<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.spec.method, self.spec.path)
    }
}

/// An entry without its handler.
#[derive(Debug, Clone)]
pub struct RouteDraft {
    method: Method,
    path: &'static str,
    group: Group,
    role: Option<Role>,
    media: Media,
    body_bytes_max: usize,
    takes_slot: bool,
    served_by: Option<ServingNode>,
    effect: Option<Effect>,
    deletes: bool,
    summary: &'static str,
}

impl<S: Send + 'static> Route<S> {
    /// Answers a request: parses its input, waits for a slot, does the work and builds the
    /// response.
    ///
    /// # Errors
    /// Errors of the input, 503 under overload, and the errors of the operation itself.
    pub(crate) async fn answer(
        &self,
        app: S,
        mut call: Call,
        input: Input,
    ) -> Result<Response, ApiError> {
        let Parsed { request: work, ignored, tenant } = self.read(&mut call, input).await?;
        call.ignored = ignored.into();
        if let (Some(role), true) = (self.spec.role, self.spec.takes_slot) {
            call.take_slot(role, tenant).await?;
        }
        let ignored = Arc::clone(&call.ignored);
        // The reserved memory and the slot are held until the response has been built.
        let held = (call.memory.clone(), Arc::clone(&call.results), call.admitted.clone());
        let gate = Arc::clone(&call.gate);
        let owner = call.grant.as_ref().map(Grant::owner);
        let respond = work(app, call).await.map_err(|error| error.with_ignored(&ignored))?;
        let respond = move || -> Result<Response, ApiError> {
            let mut response = respond(&ignored)?;
            tell_ignored(response.headers_mut(), &ignored);
            Ok(response)
        };
        let Some(owner) = owner else {
            // Responses that need no key are short or come from a file.
            return respond();
        };
        off_thread(move || {
            let response = store_large(respond()?, &gate, &owner);
            drop(held);
            response
        })
        .await
    }

    /// Parses the input; a large one off the async threads, with memory reserved for the call.
    async fn read(&self, call: &mut Call, input: Input) -> Result<Parsed<Work<S>>, ApiError> {
        if input.bytes() <= PARSE_INLINE_BYTES_MAX {
            return (self.reader)(input);
        }
        let (reader, gate) = (Arc::clone(&self.reader), Arc::clone(&call.gate));
        let bytes = input.bytes() as u64 * BYTES_PER_INPUT_BYTE;
        let reading = off_thread(move || Ok((share_of(bytes, &gate)?, reader(input)?)));
        let (memory, read) = reading.await?;
        call.memory = Some(Arc::new(memory));
        Ok(read)
    }

    fn draft(
        method: Method,
        path: &'static str,
        group: Group,
        role: Role,
        summary: &'static str,
    ) -> RouteDraft {
        RouteDraft {
            deletes: method == Method::DELETE,
            method,
            path,
            group,
            role: Some(role),
            media: Media::Json,
            body_bytes_max: limits::BODY_BYTES_MAX,
            takes_slot: true,
            served_by: None,
            effect: None,
            summary,
        }
    }

    /// Starts a GET operation. Identifiers may also be sent in a JSON body.
    pub fn get(path: &'static str, group: Group, role: Role, summary: &'static str) -> RouteDraft {
        Self::draft(Method::GET, path, group, role, summary)
    }

    /// Starts a POST operation with a JSON body.
    pub fn post(path: &'static str, group: Group, role: Role, summary: &'static str) -> RouteDraft {
        Self::draft(Method::POST, path, group, role, summary)
    }

    /// Starts a PATCH operation with a JSON body.
    pub fn patch(
        path: &'static str,
        group: Group,
        role: Role,
        summary: &'static str,
    ) -> RouteDraft {
        Self::draft(Method::PATCH, path, group, role, summary)
    }

    /// Starts a DELETE operation with a JSON body.
    pub fn delete(
        path: &'static str,
        group: Group,
        role: Role,
        summary: &'static str,
    ) -> RouteDraft {
        Self::draft(Method::DELETE, path, group, role, summary)
    }

    /// Starts a GET operation that needs no key and reads no body.
    pub fn public(path: &'static str, summary: &'static str) -> RouteDraft {
        let draft = Self::draft(Method::GET, path, Group::Operations, Role::Read, summary);
        RouteDraft { role: None, media: Media::None, body_bytes_max: 0, ..draft }
    }
}

impl RouteDraft {
    /// Accepts a JSON body of up to `bytes_max`.
    #[must_use]
    pub fn json(self, bytes_max: usize) -> Self {
        Self { media: Media::Json, body_bytes_max: bytes_max, ..self }
    }

    /// Accepts a JSON body of up to `bytes_max`, or a numpy file.
    #[must_use]
    pub fn json_or_npy(self, bytes_max: usize) -> Self {
        Self { media: Media::JsonOrNpy, body_bytes_max: bytes_max, ..self }
    }

    /// Accepts a multipart form with up to `bytes_max` bytes of files, plus the allowance for text
    /// parts.
    #[must_use]
    pub fn multipart(self, bytes_max: usize) -> Self {
        let body_bytes_max = bytes_max + limits::FORM_TEXT_BYTES_MAX;
        Self { media: Media::Multipart, body_bytes_max, ..self }
    }

    /// Accepts a short URL-encoded form, or JSON, instead of a query.
    #[must_use]
    pub fn urlencoded(self) -> Self {
        Self { media: Media::UrlEncoded, ..self }
    }

    /// Accepts JSON Lines of up to `bytes_max`.
    #[must_use]
    pub fn lines(self, bytes_max: usize) -> Self {
        Self { media: Media::Lines, body_bytes_max: bytes_max, ..self }
    }

    /// Moves the operation to another section of the OpenAPI document.
    #[must_use]
    pub fn group(self, group: Group) -> Self {
        Self { group, ..self }
    }

    /// Runs without an admission slot: the operation is cheap, and needed even under overload.
    #[must_use]
    pub fn without_slot(self) -> Self {
        Self { takes_slot: false, ..self }
    }

    /// Runs on the writer although it changes nothing, because other processes lack the data.
    #[must_use]
    pub fn at_writer(self) -> Self {
        Self { served_by: Some(ServingNode::Writer), ..self }
    }

    /// Runs on the process that received the request, because it reports about that process.
    #[must_use]
    pub fn of_itself(self) -> Self {
        Self { served_by: Some(ServingNode::Asked), ..self }
    }

    /// Declares that the work is done after the response.
    #[must_use]
    pub fn queued(self) -> Self {
        Self { effect: Some(Effect::Queued), ..self }
    }

    /// Declares that the change is visible by the time of the response, although the operation
    /// belongs to the upload group.
    #[must_use]
    pub fn visible_at_once(self) -> Self {
        Self { effect: Some(Effect::Visible), ..self }
    }

    /// Declares that the operation deletes something, although its method is not DELETE.
    #[must_use]
    pub fn deletes(self) -> Self {
        Self { deletes: true, ..self }
    }

    /// Completes the entry; `handler` receives the application, the call and the typed input.
    pub fn handle<S, R, T, F, A>(self, handler: F) -> Route<S>
    where
        S: Send + 'static,
        R: Request,
        T: Reply,
        F: Fn(S, Call, R) -> A + Clone + Send + Sync + 'static,
        A: Future<Output = Result<T, ApiError>> + Send + 'static,
    {
        let Self { method, path, group, role, media, body_bytes_max, takes_slot, .. } = self;
        let (fields, reply_schema, summary) = (R::FIELDS, T::schema as _, self.summary);
        let is_mutation = method != Method::GET && role.is_some_and(|role| role > Role::Read);
        let effect = self.effect.unwrap_or(match (is_mutation, group) {
            (false, _) => Effect::Nothing,
            // Uploads are accepted now and processed later.
            (true, Group::Upload) => Effect::Queued,
            (true, _) => Effect::Visible,
        });
        let served_by = self.served_by.unwrap_or(match is_mutation || role == Some(Role::Admin) {
            true => ServingNode::Writer,
            false => ServingNode::Any,
        });
        let reader: Reader<S> = Arc::new(move |input| {
            let Parsed { request, ignored, tenant } = input.read::<R>(is_mutation)?;
            let handler = handler.clone();
            let work: Work<S> = Box::new(move |app, call| {
                Box::pin(async move {
                    let reply = handler(app, call, request).await?;
                    let respond: Respond =
                        Box::new(move |ignored| reply.with_ignored(ignored).into_response());
                    Ok(respond)
                })
            });
            Ok(Parsed { request: work, ignored, tenant })
        });
        let spec = RouteSpec {
            method,
            path,
            group,
            role,
            media,
            body_bytes_max,
            takes_slot,
            served_by,
            effect,
            deletes: self.deletes,
            summary,
            fields,
            reply_schema,
            media_types: T::MEDIA_TYPES,
        };
        Route { spec, reader }
    }
}

/// Reserves memory. Blocks while it is in use by others.
///
/// # Errors
/// 503 if the memory is not released in time, or at once if too many requests are waiting already.
pub(super) fn share_of(bytes: u64, gate: &Gate) -> Result<MemoryShare, ApiError> {
    let waited = || {
        let _place = gate.memory_waits.try_acquire().ok()?;
        gate.memory.take(bytes, MEMORY_WAIT)
    };
    gate.memory.take(bytes, Duration::ZERO).or_else(waited).ok_or_else(|| {
        let message = "the server's memory-limit is in use by other large requests";
        ApiError::new(Condition::Unavailable, "overloaded", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::admission::{Admission, AdmissionSettings, MEMORY_WAITS_MAX};
    use crate::tests::support::Spools;
    use lodestone_engine::ingest::MemoryBudget;
    use lodestone_io::ProcessMemory;
    use std::time::Instant;
    use tokio::sync::Semaphore;

    /// Goal: requests that wait for memory leave enough threads to other requests.
    #[test]
    fn where_many_wait_for_memory_the_next_is_refused_at_once() {
        let gate = Gate {
            limiter: None,
            admission: Admission::new(AdmissionSettings::default()),
            spills: Arc::clone(&Spools::new().spooler().spills),
            memory: Arc::new(MemoryBudget::new(Box::new(ProcessMemory), Some(1 << 50), 0)),
            memory_waits: Semaphore::new(MEMORY_WAITS_MAX),
            key_lookups: Arc::new(Semaphore::new(1)),
        };
        // The process itself takes part of the limit.
        let held = share_of((1 << 50) - (1 << 41), &gate).unwrap();
        let places = gate.memory_waits.try_acquire_many(MEMORY_WAITS_MAX as u32).unwrap();
        drop(share_of(100, &gate).expect("no place is needed where there is memory"));
        let begun = Instant::now();
        assert_eq!(share_of(1 << 42, &gate).unwrap_err().reason(), "overloaded");
        assert!(begun.elapsed() < MEMORY_WAIT, "it has waited");
        drop(places);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| share_of(1 << 42, &gate));
            while gate.memory_waits.available_permits() == MEMORY_WAITS_MAX {
                std::thread::yield_now();
            }
            drop(held);
            assert!(waiting.join().unwrap().is_ok());
        });
    }
}
