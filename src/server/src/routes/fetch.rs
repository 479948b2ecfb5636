//! Download of originals: their content, or a URL that serves it for an hour.
//!
//! An original is read twice: to verify its hash, before the response begins and while the request
//! holds its slot, and again while it is sent. Neither takes memory proportional to its size.

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use schemars::{Schema, SchemaGenerator};

use crate::admission::Owner;
use crate::app::{App, Handling, blocking, degraded, failure_of, lookup_error};
use crate::auth::AuthFailure;
use crate::download::Claim;
use crate::dto::sources::{Download, FetchContent, FetchedContent};
use crate::error::{ApiError, Condition};
use crate::file_body::{self, Coding, FromFile, TextPieces, base64_len, json_text_len};
use crate::reply::{Json, Reply};
use crate::request::Call;
use crate::routes::content_guard::guard;
use crate::routes::pictures::{PageImageReply, drawn, with_pages};
use crate::routes::{Group, Route, off_thread};
use lodestone_engine::{EngineError, FileSlice, Original, TenantAccess};
use lodestone_types::access::TenantGrant;
use lodestone_types::{Grant, KeyScope, Role, Scope, TenantMode};

/// Media type of files of unknown type.
const BYTES_TYPE: &str = "application/octet-stream";

/// Returns the download operations.
pub fn routes() -> Vec<Route<App>> {
    let download =
        Route::<App>::public("/fetch/download/{token}", "Download an original by its signed URL");
    vec![
        Route::<App>::post(
            "/fetch/fetch_content",
            Group::Fetch,
            Role::Read,
            "Get the original of a source",
        )
        .handle(blocking(fetch_content)),
        // Only the process that signed the token can verify it.
        download.group(Group::Fetch).at_writer().handle(redeem),
    ]
}

fn fetch_content(app: &App, call: &Call, request: FetchContent) -> Result<Fetched, ApiError> {
    let FetchContent { scope, file_id, return_content } = request;
    if !return_content {
        call.require_writer()?;
    }
    let grant = call.grant()?;
    let access = app.engine.open(grant, &scope, Some(TenantMode::Standard))?;
    let original = app.engine.original(&access, &file_id);
    let mut original = original.map_err(|error| lookup_error(&access, error))?;
    let mut answer = FetchedContent {
        file_id: file_id.to_string(),
        success: true,
        message: "Successfully fetched content".to_owned(),
        file_content: String::new(),
        encoding: "utf-8".to_owned(),
        content_type: media_type(&original.record.content_type).to_owned(),
        size_bytes: original.len(),
        download_url: None,
        expires_at: None,
    };
    let mut coding = None;
    if return_content {
        let found = judge(app, &mut original)?;
        if found.0 == Coding::Base64 {
            answer.encoding = "base64".to_owned();
        }
        // A copy that was fetched again may have another length.
        answer.size_bytes = original.len();
        coding = Some(found);
    } else {
        let key_id = grant.key_id.to_string();
        let collection = access.tenant.collection.to_string();
        let claim = Claim { key_id, collection, scope, source: file_id, drawing: None };
        let (token, end) = app.download.sign(&claim, app.engine.clock().now());
        answer.download_url = Some(format!("{}/fetch/download/{token}", call.base_url));
        answer.expires_at = Some(end.to_string());
    }
    let content = coding.zip(original.content().cloned());
    Ok(Fetched { answer: Json::new(answer).with_degraded(degraded(&access)), content })
}

/// Verifies an original, and determines how JSON can hold it and the length of that form.
fn judge(app: &App, original: &mut Original) -> Result<(Coding, u64), ApiError> {
    #[derive(Default)]
    struct Seen {
        pieces: TextPieces,
        is_binary: bool,
        text_bytes: u64,
    }
    let seen = app.engine.read_original(original, |seen: &mut Seen, piece| {
        if seen.is_binary {
            return;
        }
        match seen.pieces.text_of(piece) {
            Some(text) => seen.text_bytes += json_text_len(&text),
            None => seen.is_binary = true,
        }
    })?;
    Ok(match !seen.is_binary && seen.pieces.is_whole() {
        true => (Coding::JsonText, seen.text_bytes),
        false => (Coding::Base64, base64_len(original.len())),
    })
}

/// The response of `fetch_content`, whose content is read from its file while it is sent.
struct Fetched {
    answer: Json<FetchedContent>,
    content: Option<((Coding, u64), FileSlice)>,
}

impl Reply for Fetched {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        Json::<FetchedContent>::schema(generator)
    }

    fn into_response(self) -> Result<Response, ApiError> {
        const EMPTY: &str = "\"file_content\":\"\"";
        let Self { answer, content } = self;
        let Some(((coding, coded_bytes), file)) = content else { return answer.into_response() };
        let json = serde_json::to_string(&answer.body).map_err(|error| {
            ApiError::internal(format!("a response cannot be serialized as JSON: {error}"))
        })?;
        // Quotes within other values are escaped, so this finds the member itself.
        let at = json
            .find(EMPTY)
            .ok_or_else(|| ApiError::internal("the response has no file_content member"))?;
        let (head, tail) = json.split_at(at + EMPTY.len() - 1);
        let (head, tail) = (Bytes::from(head.to_owned()), Bytes::from(tail.to_owned()));
        let mut response = answer.into_response()?;
        *response.body_mut() = file_body::body(head, file, coding, coded_bytes, tail);
        response.extensions_mut().insert(FromFile);
        Ok(response)
    }
}

/// Serves an original, or a rendered page, to the holder of a signed URL. The token is verified
/// before the request may wait for anything, and counts against the rate of the key that requested
/// it.
fn redeem(app: App, call: Call, request: Download) -> Handling<Redeemed> {
    Box::pin(async move {
        let claim = app.download.open(&request.token, app.engine.clock().now());
        let claim = claim.ok_or_else(gone)?;
        if let Some(peer) = &call.peer {
            // Not counted with the tenant's keys, whose requests its readers could turn away.
            peer.occupy(&format!("link {}", claim.scope.tenant).into())?;
        }
        call.gate.count(&claim.key_id.as_str().into())?;
        let owner = Owner::Tenant(claim.scope.tenant.clone());
        let admitted = call.gate.admission.enter(Role::Read, owner).await?;
        let (opening, drawing) = (app.clone(), claim.drawing.clone());
        let (access, original) = off_thread(move || {
            let original = claimed(&opening, claim);
            drop(admitted);
            original
        })
        .await?;
        match drawing {
            None => Ok(Redeemed::File(File::of(&original))),
            Some(drawing) => {
                let picture = drawn(app, &call, &access, original, drawing).await?;
                Ok(Redeemed::Page(picture))
            }
        }
    })
}

fn gone() -> ApiError {
    let message = "the download URL is not valid or has expired";
    ApiError::new(Condition::SourceNotFound, "download_not_found", message)
}

fn claimed(app: &App, claim: Claim) -> Result<(TenantAccess, Original), ApiError> {
    let Claim { key_id, collection, scope, source, drawing } = claim;
    let grant = bearer(key_id, &scope);
    if let Err(error) = app.engine.require_valid(&grant) {
        return Err(match failure_of(error) {
            AuthFailure::Invalid | AuthFailure::Expired => gone(),
            failure => failure.into(),
        });
    }
    let access = match app.engine.open(&grant, &scope, Some(TenantMode::Standard)) {
        Err(EngineError::TenantNotFound | EngineError::ModeMismatch { .. }) => return Err(gone()),
        access => access?,
    };
    if access.tenant.collection.to_string() != collection {
        return Err(gone());
    }
    let found = match drawing {
        None => app.engine.original(&access, &source).map_err(|error| lookup_error(&access, error)),
        Some(_) => with_pages(app, &access, &source),
    };
    match found {
        Ok(mut original) if drawing.is_none() => {
            app.engine.read_original(&mut original, |(): &mut (), _| ())?;
            Ok((access, original))
        }
        // Rendering verifies the original.
        Ok(original) => Ok((access, original)),
        Err(error) if error.condition() == Condition::SourceNotFound => Err(gone()),
        Err(error) => Err(error),
    }
}

/// Returns the grant of a signed URL's holder: read access to that one scope, in the name of the
/// key that requested the URL.
fn bearer(key_id: String, scope: &Scope) -> Grant {
    let sub_tenants = Some(vec![scope.sub_tenant.clone()]);
    let grants = vec![TenantGrant { tenant: scope.tenant.clone(), sub_tenants }];
    Grant::new(key_id, Role::Read, KeyScope::Tenants(grants)).counted()
}

/// Returns a media type of the form `type/subtype`, since uploaders may have sent anything.
fn media_type(given: &str) -> &str {
    let is_token = |part: &str| {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b);
        !part.is_empty() && part.bytes().all(is_allowed)
    };
    let essence = given.split(';').next().unwrap_or_default().trim();
    match essence.split_once('/') {
        Some((first, second)) if is_token(first) && is_token(second) => given,
        _ => BYTES_TYPE,
    }
}

/// The target of a signed URL.
enum Redeemed {
    /// An original.
    File(File),
    /// A rendered page.
    Page(PageImageReply),
}

/// An original as a file download.
pub(super) struct File {
    /// Its verified content.
    pub(super) content: Option<FileSlice>,
    /// Its media type as given by the uploader.
    pub(super) content_type: String,
    /// Its file name.
    pub(super) filename: String,
}

impl File {
    /// Describes an original that has been verified.
    fn of(original: &Original) -> Self {
        let record = &original.record;
        let filename = match record.filename.as_str() {
            "" => format!("{}.txt", record.id),
            filename => filename.to_owned(),
        };
        let content_type = record.content_type.clone();
        Self { content: original.content().cloned(), content_type, filename }
    }
}

impl Reply for File {
    // The uploader decided the media type, so it can be anything.
    const MEDIA_TYPES: &'static [&'static str] = &["*/*"];

    fn schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({"type": "string", "format": "binary"})
    }

    fn into_response(self) -> Result<Response, ApiError> {
        let Self { content, content_type, filename } = self;
        let body = content.map_or_else(Body::empty, |file| {
            let bytes = file.len();
            file_body::body(Bytes::new(), file, Coding::Raw, bytes, Bytes::new())
        });
        let mut response = Response::new(body);
        response.extensions_mut().insert(FromFile);
        describe(response.headers_mut(), &content_type, &filename)?;
        Ok(response)
    }
}

impl Reply for Redeemed {
    const MEDIA_TYPES: &'static [&'static str] = File::MEDIA_TYPES;

    fn schema(generator: &mut SchemaGenerator) -> Schema {
        File::schema(generator)
    }

    fn into_response(self) -> Result<Response, ApiError> {
        match self {
            Self::File(file) => file.into_response(),
            Self::Page(picture) => picture.into_response(),
        }
    }
}

fn describe(headers: &mut HeaderMap, content_type: &str, filename: &str) -> Result<(), ApiError> {
    let content_type = HeaderValue::try_from(media_type(content_type))
        .unwrap_or(HeaderValue::from_static(BYTES_TYPE));
    headers.insert(CONTENT_TYPE, content_type);
    let disposition = HeaderValue::try_from(disposition(filename)).map_err(|error| {
        ApiError::internal(format!("a file name is not a valid header: {error}"))
    })?;
    headers.insert(CONTENT_DISPOSITION, disposition);
    guard(headers);
    Ok(())
}

/// Every byte except letters, digits and `-._`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');

/// Formats `attachment` with the name in ASCII and in full, as RFC 6266 recommends.
fn disposition(name: &str) -> String {
    let plain = |c: char| match c {
        c if c.is_ascii_alphanumeric() || " ._-()".contains(c) => c,
        _ => '_',
    };
    let ascii: String = name.chars().map(plain).collect();
    let whole = utf8_percent_encode(name, RESERVED);
    format!("attachment; filename=\"{ascii}\"; filename*=UTF-8''{whole}")
}
