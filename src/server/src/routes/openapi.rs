//! Generates the OpenAPI 3.1 document from the table of routes.

use http::Method;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::error::{Condition, ErrorForm, Location};
use crate::request::field::object_schema;
use crate::request::{Field, Kind};
use crate::response_notes::{IGNORED_HEADER, IGNORED_MEMBER};
use crate::routes::{Media, RouteSpec};

/// The media type of URL-encoded forms.
pub const URL_ENCODED: &str = "application/x-www-form-urlencoded";

/// Error conditions that any operation with a key may return.
const COMMON: &[Condition] = &[
    Condition::Invalid,
    Condition::Unauthorized,
    Condition::Forbidden,
    Condition::RouteNotFound,
    Condition::Conflict,
    Condition::TooLarge,
    Condition::UnsupportedMediaType,
    Condition::LimitReached,
    Condition::RateLimited,
    Condition::Internal,
    Condition::Unavailable,
];

/// Generates the document that describes `table`.
pub fn document<'a>(table: impl Iterator<Item = &'a RouteSpec>) -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for spec in table {
        let path = paths.entry(spec.path).or_insert_with(|| Value::Object(Map::new()));
        let method = spec.method.as_str().to_ascii_lowercase();
        path[method] = operation(spec, &mut generator);
    }
    let mut schemas = generator.take_definitions(true);
    schemas.insert("Error".into(), error_schema());
    schemas.insert("OpenAiError".into(), openai_error_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Lodestone",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Documents in, hybrid search and cited answers out.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    })
}

fn operation(spec: &RouteSpec, generator: &mut SchemaGenerator) -> Value {
    let mut operation = Map::new();
    operation.insert("operationId".into(), operation_id(spec).into());
    operation.insert("tags".into(), json!([spec.group.as_str()]));
    operation.insert("summary".into(), spec.summary.into());
    let needs = match spec.role {
        None => {
            operation.insert("security".into(), json!([]));
            "no key".to_owned()
        }
        Some(role) => {
            operation.insert("x-role".into(), role.as_str().into());
            format!("a key with the role {}", role.as_str())
        }
    };
    let description = format!("{}. Requires {needs}.", spec.summary);
    operation.insert("description".into(), description.into());
    let parameters: Vec<Value> = spec.fields.iter().filter_map(|field| parameter(field)).collect();
    if !parameters.is_empty() {
        operation.insert("parameters".into(), parameters.into());
    }
    if let Some(body) = request_body(spec) {
        operation.insert("requestBody".into(), body);
    }
    operation.insert("responses".into(), responses(spec, generator));
    Value::Object(operation)
}

/// An operation id such as `post_upload_upload_text`; unique because method and path are.
fn operation_id(spec: &RouteSpec) -> String {
    let path: String =
        spec.path.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    format!("{}{}", spec.method.as_str().to_ascii_lowercase(), path)
}

fn parameter(field: &Field) -> Option<Value> {
    let place = match field.location {
        Location::Query => "query",
        Location::Path => "path",
        Location::Header => "header",
        Location::Form if is_in_either(field) => "query",
        Location::Form | Location::Body => return None,
    };
    Some(json!({
        "name": field.name,
        "in": place,
        "required": field.is_required && !is_in_either(field),
        "description": field.description(),
        "schema": field.kind.schema(),
    }))
}

/// Whether a form field may be sent in the query instead, in which case neither place requires it.
fn is_in_either(field: &Field) -> bool {
    field.location == Location::Form && matches!(field.kind, Kind::Identifier)
}

/// The media type of numpy files.
pub(crate) const NPY: &str = "application/x-npy";
const NPY_DOC: &str = "Matrix of little-endian float32 in C order, as written by numpy.save: at \
     most 50,000 rows and 64 MiB. `file_id` is sent in the query.";

fn request_body(spec: &RouteSpec) -> Option<Value> {
    let (place, media_type) = match spec.media {
        Media::None => return None,
        Media::Json | Media::JsonOrNpy => (Location::Body, "application/json"),
        Media::Multipart => (Location::Form, "multipart/form-data"),
        Media::UrlEncoded => (Location::Form, URL_ENCODED),
        Media::Lines => {
            let schema = json!({"type": "string", "format": "binary"});
            let content = json!({"application/x-ndjson": {"schema": schema}});
            return Some(json!({"required": true, "content": content}));
        }
    };
    let mut fields = spec.fields.iter().filter(|field| field.location == place).peekable();
    fields.peek()?;
    let fields: Vec<Field> = fields
        .map(|field| Field { is_required: field.is_required && !is_in_either(field), ..**field })
        .collect();
    let schema = match fields.iter().find(|field| field.is_whole) {
        Some(field) => field.schema(),
        None => object_schema(fields.iter()),
    };
    let is_required = fields.iter().any(|field| field.is_required);
    let mut content = json!({media_type: {"schema": schema}});
    if spec.media == Media::JsonOrNpy {
        content[NPY] = json!({"schema": {
            "type": "string",
            "format": "binary",
            "description": NPY_DOC,
        }});
    }
    Some(json!({"required": is_required, "content": content}))
}

fn responses(spec: &RouteSpec, generator: &mut SchemaGenerator) -> Value {
    let schema = (spec.reply_schema)(generator).to_value();
    let mut content = Map::new();
    for (position, media_type) in spec.media_types.iter().enumerate() {
        let of_type = match (position, *media_type) {
            (0, _) => schema.clone(),
            (_, "application/json") => json!({"type": "object"}),
            _ => json!({"type": "string"}),
        };
        content.insert((*media_type).into(), json!({"schema": of_type}));
    }
    let mut responses = Map::new();
    let form = ErrorForm::of_path(spec.path);
    let told = match form {
        ErrorForm::Own => "; JSON objects also list them in `ignored_parameters`",
        ErrorForm::OpenAi => "",
    };
    let ignored = json!({
        "description": format!(
            "Comma-separated names of parameters in the request that were ignored{told}."
        ),
        "schema": {"type": "string"},
    });
    let headers = json!({IGNORED_HEADER: ignored});
    let success = json!({"description": "Success", "headers": headers, "content": content});
    responses.insert("200".into(), success);
    let common = match spec.role {
        Some(_) => COMMON,
        None if spec.path.contains('{') => &[Condition::RouteNotFound, Condition::Internal],
        None => &[Condition::Internal],
    };
    for condition in common {
        let (status, error, _) = condition.row();
        let schema = match form {
            ErrorForm::Own => json!({"$ref": "#/components/schemas/Error"}),
            ErrorForm::OpenAi => json!({"$ref": "#/components/schemas/OpenAiError"}),
        };
        let content = json!({"application/json": {"schema": schema}});
        let response = json!({"description": error, "content": content});
        responses.insert(status.as_str().into(), response);
    }
    Value::Object(responses)
}

fn error_schema() -> Value {
    let text = || json!({"type": "string"});
    let entry = json!({
        "type": "object",
        "properties": {
            "location": {"type": "string", "enum": ["query", "form", "body", "header", "path"]},
            "field": text(), "message": text(),
        },
    });
    json!({
        "type": "object",
        "required": ["error", "message", "success", "error_code", "reason", "request_id", "detail"],
        "properties": {
            "error": text(), "message": text(), "success": {"const": false},
            "error_code": text(), "reason": text(), "request_id": text(),
            IGNORED_MEMBER: {"type": "array", "items": text()},
            "detail": {
                "type": "object",
                "required": ["success", "message", "error_code"],
                "properties": {
                    "success": {"const": false}, "message": text(), "error_code": text(),
                    "errors": {"type": "array", "items": entry},
                },
            },
        },
    })
}

fn openai_error_schema() -> Value {
    let text = || json!({"type": "string"});
    let error = json!({
        "type": "object",
        "required": ["message", "type", "param", "code"],
        "properties": {
            "message": text(), "type": text(), "code": text(),
            "param": {"type": ["string", "null"]},
        },
    });
    json!({"type": "object", "required": ["error"], "properties": {"error": error}})
}

/// The `Allow` header value for the methods of one path; GET implies HEAD.
pub fn allow<'a>(methods: impl Iterator<Item = &'a Method>) -> String {
    let mut names: Vec<&str> = Vec::new();
    for method in methods {
        names.push(method.as_str());
        if *method == Method::GET {
            names.push("HEAD");
        }
    }
    names.sort_unstable();
    names.dedup();
    names.join(", ")
}
