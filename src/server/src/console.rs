//! Serves the files of the browser console at `/` and `/console/NAME` without a key. The data that
//! they show is read with a key, through the usual operations.

use axum::Router;
use axum::body::Body;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use axum::routing::any;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, IF_NONE_MATCH, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};

use crate::error::{ApiError, Condition};
use crate::frame::encoded::Unchanging;
use crate::frame::outer::{RequestId, Template};
use lodestone_console::{File, POLICY};

/// Browsers revalidate each file, so that a new release is seen at once.
const CACHING: &str = "no-cache";

/// Returns the router of the console.
pub fn router() -> Router {
    let home = |request: Request<Body>| async move { answer("index.html", "/", &request) };
    let asset = |name: Result<Path<String>, PathRejection>, request: Request<Body>| async move {
        // A name that is not UTF-8 is the name of no file.
        let name = name.map(|Path(name)| name).unwrap_or_default();
        answer(&name, "/console/{file}", &request)
    };
    Router::new().route("/", any(home)).route("/console/{*file}", any(asset))
}

fn answer(name: &str, template: &'static str, request: &Request<Body>) -> Response {
    let answered = find(name, request.method()).map(|file| respond(file, request.headers()));
    let mut response =
        answered.unwrap_or_else(|error| error.into_response(RequestId::of(request.extensions())));
    response.extensions_mut().insert(Template(template));
    response
}

fn find(name: &str, method: &Method) -> Result<&'static File, ApiError> {
    let file = lodestone_console::file(name).ok_or_else(|| {
        let message = "console file not found";
        ApiError::new(Condition::RouteNotFound, "route_not_found", message)
    })?;
    match *method {
        Method::GET | Method::HEAD => Ok(file),
        _ => Err(ApiError::method_not_allowed("GET, HEAD".to_owned())),
    }
}

fn respond(file: &'static File, asked: &HeaderMap) -> Response {
    let is_known = asked.get_all(IF_NONE_MATCH).iter().any(|tags| names(tags, &file.tag));
    let mut response = Response::new(Body::empty());
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    } else {
        *response.body_mut() = Body::from(file.bytes);
        response.extensions_mut().insert(Unchanging(file.name));
    }
    let headers = response.headers_mut();
    let fixed = [
        (CONTENT_TYPE, file.media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, CACHING),
    ];
    headers.extend(fixed.map(|(name, value)| (name, HeaderValue::from_static(value))));
    headers.insert(ETAG, HeaderValue::try_from(&file.tag).expect("a tag is plain ASCII"));
    response
}

/// Whether a list of entity tags contains `tag` or `*`. Weak tags match too, because compressed
/// copies have them.
fn names(tags: &HeaderValue, tag: &str) -> bool {
    let tags = tags.to_str().unwrap_or_default();
    tags.split(',').map(str::trim).any(|one| one == "*" || one.trim_start_matches("W/") == tag)
}
