//! All operations as described by `/openapi.json`, and a valid request for each.
//!
//! Tests that iterate over these operations cover new routes without a change. A new required
//! field, however, must be added to [`sample_value`], or the iteration fails.

use axum::body::Body;
use http::Request;
use serde_json::{Map, Value, json};

use crate::support::{KEY, Reply, TestServer};

/// An operation of the server, as described by its OpenAPI document.
#[derive(Debug, Clone)]
pub struct Operation {
    pub method: String,
    pub path: String,
    document: Value,
}

/// The fields of a request, by name and value, before they are encoded.
#[derive(Debug, Clone)]
pub struct Sample {
    pub query: Vec<(String, String)>,
    pub members: Map<String, Value>,
}

const BOUNDARY: &str = "boundary-of-a-sample";

/// Lists all operations in the order of the document.
pub fn operations(server: &TestServer) -> Vec<Operation> {
    let document = server.get("/openapi.json").ok();
    let mut operations = Vec::new();
    for (path, methods) in document["paths"].as_object().expect("paths") {
        for (method, document) in methods.as_object().expect("methods") {
            let method = method.to_ascii_uppercase();
            operations.push(Operation { method, path: path.clone(), document: document.clone() });
        }
    }
    assert!(operations.len() > 20, "the document is nearly empty");
    operations
}

/// Lists the operations that require a key.
pub fn guarded(server: &TestServer) -> Vec<Operation> {
    operations(server).into_iter().filter(|operation| operation.role().is_some()).collect()
}

/// Percent-encodes a text for use in a URL.
pub fn encode(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

impl Operation {
    /// The method and path.
    pub fn name(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    /// The minimum role, or `None` if no key is needed.
    pub fn role(&self) -> Option<&str> {
        self.document["x-role"].as_str()
    }

    /// Whether the body is a multipart form.
    pub fn is_multipart(&self) -> bool {
        self.document["requestBody"]["content"].get("multipart/form-data").is_some()
    }

    /// Whether the body is an array of application records.
    fn reads_list(&self) -> bool {
        let schema = &self.document["requestBody"]["content"]["application/json"]["schema"];
        schema["type"] == "array"
    }

    /// The members of the body and their schemas.
    pub fn members(&self) -> Vec<(String, Value)> {
        let content = &self.document["requestBody"]["content"];
        let schemas = content.as_object().into_iter().flat_map(|by_type| by_type.values());
        let properties = schemas.filter_map(|typed| typed["schema"]["properties"].as_object());
        properties.flatten().map(|(name, schema)| (name.clone(), schema.clone())).collect()
    }

    /// The query parameters and their schemas.
    pub fn parameters(&self) -> Vec<(String, Value)> {
        let parameters = self.document["parameters"].as_array().cloned().unwrap_or_default();
        let of_query = parameters.into_iter().filter(|parameter| parameter["in"] == "query");
        of_query
            .map(|parameter| {
                (
                    parameter["name"].as_str().expect("a name").to_owned(),
                    parameter["schema"].clone(),
                )
            })
            .collect()
    }

    /// Whether the operation has a parameter or member of this name.
    pub fn takes(&self, wanted: &str) -> bool {
        let mut fields = self.parameters();
        fields.extend(self.members());
        fields.iter().any(|(name, _)| name == wanted)
    }

    /// Whether this field is required.
    pub fn is_required(&self, wanted: &str) -> bool {
        let content = &self.document["requestBody"]["content"];
        let schemas = content.as_object().into_iter().flat_map(|by_type| by_type.values());
        let mut required =
            schemas.filter_map(|typed| typed["schema"]["required"].as_array()).flatten();
        let parameters = self.document["parameters"].as_array();
        let mut parameters = parameters.into_iter().flatten();
        required.any(|name| name == wanted)
            || parameters.any(|parameter| {
                parameter["name"] == wanted && parameter["required"] == json!(true)
            })
    }

    /// Builds a request with all required fields, and with a scope if the operation takes one.
    pub fn sample(&self, tenant: &str, sub_tenant: Option<&str>) -> Sample {
        let is_wanted = |name: &str| match name {
            "tenant_id" => true,
            // Either this or its alternative is needed, which `required` cannot express.
            "user_memory" => true,
            "sub_tenant_id" => sub_tenant.is_some(),
            name => self.is_required(name),
        };
        let value = |name: &str, schema: &Value| match name {
            "tenant_id" | "confirm" | "model" => json!(tenant),
            "sub_tenant_id" => json!(sub_tenant),
            name => sample_value(name, schema),
        };
        let wanted = |fields: Vec<(String, Value)>| {
            fields.into_iter().filter(|(name, _)| is_wanted(name)).map(|(name, schema)| {
                let value = value(&name, &schema);
                (name, value)
            })
        };
        let query = wanted(self.parameters()).map(|(name, value)| (name, text_of(&value)));
        Sample { query: query.collect(), members: wanted(self.members()).collect() }
    }

    /// The path with its placeholders filled in.
    pub fn filled_path(&self) -> String {
        let part = |part: &str| if part.starts_with('{') { "unknown" } else { part }.to_owned();
        self.path.split('/').map(part).collect::<Vec<_>>().join("/")
    }

    /// Encodes a sample in the format that the operation reads.
    pub fn request(&self, key: Option<&str>, sample: &Sample) -> Request<Body> {
        let pairs = sample.query.iter().map(|(name, value)| format!("{name}={}", encode(value)));
        let query = pairs.collect::<Vec<_>>().join("&");
        let uri = format!("{}?{query}", self.filled_path());
        let mut request = Request::builder().method(self.method.as_str()).uri(uri);
        if let Some(key) = key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let (content_type, body) = match self.is_multipart() {
            true => (format!("multipart/form-data; boundary={BOUNDARY}"), form(&sample.members)),
            false if self.reads_list() => {
                let record = json!([{"id": "s", "content": {"text": "word"}}]);
                ("application/json".to_owned(), record.to_string())
            }
            false if sample.members.is_empty() => ("application/json".to_owned(), String::new()),
            false => ("application/json".to_owned(), json!(sample.members).to_string()),
        };
        request.header("content-type", content_type).body(Body::from(body)).expect("a request")
    }

    /// Sends a sample.
    pub fn send(&self, server: &TestServer, key: &str, sample: &Sample) -> Reply {
        server.send(self.request(Some(key), sample))
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn form(members: &Map<String, Value>) -> String {
    let mut body = String::new();
    for (name, value) in members {
        let file =
            if name.starts_with("file") && name.len() < 6 { "; filename=\"a.txt\"" } else { "" };
        let value = text_of(value);
        body.push_str(&format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"{file}\r\n\r\n\
             {value}\r\n"
        ));
    }
    format!("{body}--{BOUNDARY}--\r\n")
}

/// A URL that servers do not fetch unless configured to.
const UNREACHABLE: &str = "http://127.0.0.1:9/";

/// Returns a valid value for a field of this name.
fn sample_value(name: &str, schema: &Value) -> Value {
    match name {
        "source_id" | "file_id" | "memory_id" => json!("s"),
        "source_ids" => json!(["s"]),
        "chunk_ids" => json!(["s_0"]),
        "query" | "question" | "content" | "name" => json!("word"),
        "user_memory" | "user_message" => json!("word"),
        "file" | "files" => json!("content of a file"),
        "purpose" => json!("assistants"),
        "role" => json!("read"),
        "items" if schema["items"]["properties"].get("web_url").is_some() => {
            json!([{"web_url": UNREACHABLE}])
        }
        "items" => json!([{"content": "word"}]),
        "web_url" => json!(UNREACHABLE),
        "url" => json!("https://hooks.invalid/"),
        "state" => json!("paused"),
        "input" => json!("word"),
        "page" => json!(1),
        "documents" => json!(["word"]),
        "messages" => json!([{"role": "user", "content": "word"}]),
        "embeddings" if schema["type"] == "object" => json!({"s_0": [1.0, 0.0]}),
        "embeddings" => json!([[1.0, 0.0]]),
        name => panic!("no sample for the required field {name}: {schema}"),
    }
}

impl TestServer {
    /// Creates an API key; a null `tenants` allows all tenants.
    pub fn make_key(&self, role: &str, tenants: Value) -> String {
        let body = json!({"name": "of a test", "role": role, "tenants": tenants});
        let made = self.post("/admin/api_keys", body).ok();
        made["api_key"].as_str().expect("a secret").to_owned()
    }

    /// Returns the sources of a scope as listed.
    pub fn sources(&self, tenant: &str, sub_tenant: &str) -> Vec<Value> {
        let path = format!("/list/sources?tenant_id={tenant}&sub_tenant_id={sub_tenant}");
        self.get(&path).ok()["sources"].as_array().expect("sources").clone()
    }

    /// Returns one source as listed.
    pub fn source(&self, tenant: &str, sub_tenant: &str, id: &str) -> Value {
        let mut sources = self.sources(tenant, sub_tenant);
        sources.retain(|source| source["id"] == id);
        assert_eq!(sources.len(), 1, "{id} is listed {} times", sources.len());
        sources.remove(0)
    }

    /// Returns everything that the listings show of a tenant and of the server around it.
    pub fn state(&self, tenant: &str) -> Value {
        let of_tenant = |path: &str| self.get(&format!("{path}?tenant_id={tenant}")).ok();
        json!({
            "tenants": self.get("/tenant/list").ok(),
            "keys": self.get("/admin/api_keys").ok(),
            "sub_tenants": of_tenant("/tenant/sub_tenant_ids"),
            "stats": of_tenant("/tenant/stats"),
            "sources": of_tenant("/list/sources"),
            "jobs": self.get("/jobs").ok(),
        })
    }
}

/// Checks an error's body, and the properties that every response has.
pub fn check_error(reply: &Reply, what: &str) {
    let body = reply.json();
    let context = || format!("{what}: {} {body}", reply.status);
    let known = [400, 401, 403, 404, 405, 409, 413, 415, 429, 503, 507];
    assert!(known.contains(&reply.status), "{}", context());
    assert!(!body.to_string().contains(KEY), "{}", context());
    if body["error"].is_object() {
        check_openai_error(&body, &context);
        return;
    }
    for name in ["error", "message"] {
        assert!(body[name].as_str().is_some_and(|text| !text.is_empty()), "{}", context());
    }
    assert_eq!(body["success"], false, "{}", context());
    assert_eq!(body["detail"]["success"], false, "{}", context());
    assert_eq!(body["detail"]["message"], body["message"], "{}", context());
    assert_eq!(body["detail"]["error_code"], body["error_code"], "{}", context());
    assert!(body["reason"].as_str().is_some_and(|word| !word.is_empty()), "{}", context());
    let request_id = reply.headers.get("x-request-id").map(|id| id.to_str().unwrap());
    assert_eq!(body["request_id"].as_str(), request_id, "{}", context());
}

/// Checks the body of an error below `/v1`.
fn check_openai_error(body: &Value, context: &dyn Fn() -> String) {
    assert_eq!(body.as_object().map(Map::len), Some(1), "{}", context());
    let error = body["error"].as_object().expect("an object");
    let mut names: Vec<&str> = error.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, ["code", "message", "param", "type"], "{}", context());
    for name in ["code", "message", "type"] {
        assert!(error[name].as_str().is_some_and(|text| !text.is_empty()), "{}", context());
    }
    assert!(error["param"].is_null() || error["param"].is_string(), "{}", context());
}
