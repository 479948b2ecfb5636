//! Azure Blob Storage.
//!
//! A bucket is a container; its account is not in the URL but in a variable, as for Azure's tools.
//! An object in parts is a list of blocks, named before they are sent: no request starts it, and
//! the store discards blocks that are in no list after a week.
//!
//! Source: <https://learn.microsoft.com/rest/api/storageservices/blob-service-rest-api>, in
//! particular "Authorize with Shared Key", "Put Blob", "Put Block List", "List Blobs", "Blob
//! service error codes".

use std::collections::BTreeMap;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use quick_xml::DeError;
use serde::Deserialize;

use super::BucketError;
use super::answers::Page;
use super::credentials::{Credentials, Key, Variable};
use super::dialect::{Dialect, Opened};
use super::request::{Headers, Query, Unsigned};
use super::roles::{Role, Source};
use super::sign::{self, keyed_hash};
use super::tokens::{Form, TokenService};
use super::url::{BucketUrl, Store};
use lodestone_types::Timestamp;

/// The API version, which every request states.
const VERSION: &str = "2023-11-03";
const MACHINE_SERVICE: &str = "http://169.254.169.254";
const MACHINE_TOKEN: &str = "/metadata/identity/oauth2/token";
const AUTHORITY: &str = "https://login.microsoftonline.com/";
/// The resource for which tokens are requested: all of Azure Storage.
const RESOURCE: &str = "https://storage.azure.com/";
const ADVICE: &str = "set AZURE_STORAGE_KEY or AZURE_STORAGE_SAS_TOKEN, or give this machine or \
     pod a managed identity";
/// The headers whose values are signed without their names, in order.
const SIGNED: [&str; 11] = [
    "content-encoding", "content-language", "content-length", "content-md5", "content-type",
    "date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
];

#[derive(Debug)]
struct Azure;

/// A page of a listing.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Enumeration {
    blobs: Blobs,
    next_marker: Option<String>,
}

#[derive(Deserialize)]
struct Blobs {
    #[serde(rename = "Blob", default)]
    blobs: Vec<Blob>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Blob {
    name: String,
    properties: Properties,
}

#[derive(Deserialize)]
struct Properties {
    #[serde(rename = "Content-Length")]
    length: u64,
}

impl Dialect for Azure {
    fn sign(&self, request: &Unsigned<'_>, key: &Key, _now: Timestamp) -> Headers {
        // Checked when the store was opened.
        let secret = BASE64_STANDARD.decode(&key.secret).unwrap_or_default();
        let signature = BASE64_STANDARD.encode(keyed_hash(&secret, &to_sign(request, &key.id)));
        let mut headers = request.headers.clone();
        headers.push(("authorization", format!("SharedKey {}:{signature}", key.id)));
        headers
    }

    fn prepare(&self, request: &mut Unsigned<'_>, now: Timestamp) {
        request.headers.extend([("x-ms-version", VERSION.to_owned()), ("x-ms-date", date(now))]);
        if request.method == "PUT" && request.query.is_empty() {
            request.headers.push(("x-ms-blob-type", "BlockBlob".to_owned()));
        }
    }

    fn is_refusal(&self, status: u16, code: &str) -> bool {
        match status {
            // Leases have other errors with this status.
            412 => code == "ConditionNotMet",
            409 => code == "BlobAlreadyExists",
            _ => false,
        }
    }

    fn code_header(&self) -> Option<&'static str> {
        Some("x-ms-error-code")
    }

    fn no_bucket(&self) -> &'static str {
        "ContainerNotFound"
    }

    fn list<'a>(&self, prefix: &'a str, next: Option<&'a str>) -> Query<'a> {
        let mut query = vec![
            ("comp", "list".into()),
            ("restype", "container".into()),
            ("prefix", prefix.into()),
        ];
        query.extend(next.map(|next| ("marker", next.into())));
        query
    }

    fn read_page(&self, text: &str) -> Result<Page, DeError> {
        let page: Enumeration = quick_xml::de::from_str(text)?;
        let objects = page.blobs.blobs.into_iter().map(|blob| (blob.name, blob.properties.length));
        let next = page.next_marker.filter(|marker| !marker.is_empty());
        Ok(Page { objects: objects.collect(), next })
    }

    fn begin_parts(&self) -> Option<Query<'static>> {
        None
    }

    fn part<'a>(&self, upload: &'a str, number: usize) -> Query<'a> {
        vec![("comp", "block".into()), ("blockid", block_id(upload, number).into())]
    }

    fn end_parts<'a>(
        &self,
        upload: &'a str,
        parts: &BTreeMap<usize, String>,
    ) -> (&'static str, Query<'a>, String) {
        let blocks = parts.keys().map(|number| block_id(upload, *number));
        let blocks: String = blocks.map(|id| format!("<Latest>{id}</Latest>")).collect();
        ("PUT", vec![("comp", "blocklist".into())], format!("<BlockList>{blocks}</BlockList>"))
    }

    fn read_ended(&self, _text: &str) -> Result<(), DeError> {
        Ok(())
    }

    fn abandon_parts<'a>(&self, _upload: &'a str) -> Option<Query<'a>> {
        None
    }

    fn list_uploads<'a>(&self, _prefix: &'a str) -> Option<Query<'a>> {
        None
    }
}

/// The id of a block; those of one object must have equal lengths.
fn block_id(upload: &str, number: usize) -> String {
    BASE64_STANDARD.encode(format!("{upload}-{number:05}"))
}

/// Formats a moment like `Sun, 06 Nov 1994 08:49:37 GMT`.
fn date(now: Timestamp) -> String {
    let at = sign::moment(now);
    let (weekday, month) = (at.weekday().to_string(), at.month().to_string());
    let (day, (hour, minute, second)) = (at.day(), at.to_hms());
    format!(
        "{}, {day:02} {} {:04} {hour:02}:{minute:02}:{second:02} GMT",
        &weekday[..3],
        &month[..3],
        at.year()
    )
}

/// The text to sign for an account.
fn to_sign(request: &Unsigned<'_>, account: &str) -> String {
    let length = request.body.len().to_string();
    let mut text = request.method.to_owned();
    for name in SIGNED {
        let value = match name {
            "content-length" if request.body.is_empty() => "",
            "content-length" => &length,
            _ => request.headers.iter().find(|(own, _)| *own == name).map_or("", |(_, it)| it),
        };
        text += &format!("\n{value}");
    }
    let mut own: Vec<_> =
        request.headers.iter().filter(|(name, _)| name.starts_with("x-ms-")).collect();
    own.sort_unstable();
    for (name, value) in own {
        text += &format!("\n{name}:{value}");
    }
    text += &format!("\n/{account}{}", request.path);
    let mut query = request.query.clone();
    query.sort_unstable();
    for (name, value) in query {
        text += &format!("\n{name}:{value}");
    }
    text
}

/// Opens the store of the account set by variables, which are those of Azure's own tools.
pub(super) fn open(variable: Variable<'_>, url: &BucketUrl) -> Result<Opened, BucketError> {
    let invalid = |problem: &str| BucketError::Invalid { problem: format!("{url}: {problem}") };
    let account = variable("AZURE_STORAGE_ACCOUNT").ok_or_else(|| {
        invalid("AZURE_STORAGE_ACCOUNT is not set; it names the account of the container")
    })?;
    if !account.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()) {
        return Err(invalid("AZURE_STORAGE_ACCOUNT may only contain a-z and 0-9"));
    }
    let endpoint = variable("AZURE_STORAGE_SERVICE_ENDPOINT");
    let endpoint = endpoint.unwrap_or_else(|| format!("https://{account}.blob.core.windows.net"));
    let store = Store::of(&endpoint, url, true)?;
    let source = if let Some(query) = variable("AZURE_STORAGE_SAS_TOKEN") {
        let query = query.trim().trim_start_matches('?').to_owned();
        Source::Fixed(Credentials::SharedAccess(query))
    } else if let Some(secret) = variable("AZURE_STORAGE_KEY") {
        if BASE64_STANDARD.decode(&secret).is_err() {
            return Err(invalid("AZURE_STORAGE_KEY is not Base64"));
        }
        Source::Fixed(Credentials::Key(Key { id: account, secret, session_token: None }))
    } else {
        Source::Role(Role::Token(identity(variable)?))
    };
    Ok(Opened { store, dialect: Box::new(Azure), source, advice: ADVICE.to_owned() })
}

/// The pod's identity, if a file holds its token; else that of the machine.
fn identity(variable: Variable<'_>) -> Result<TokenService, BucketError> {
    let client = variable("AZURE_CLIENT_ID");
    if let Some(token_file) = variable("AZURE_FEDERATED_TOKEN_FILE") {
        let (Some(client), Some(tenant)) = (client, variable("AZURE_TENANT_ID")) else {
            let problem = "AZURE_FEDERATED_TOKEN_FILE is set, but AZURE_CLIENT_ID or \
                AZURE_TENANT_ID is not"
                .to_owned();
            return Err(BucketError::Credentials { problem });
        };
        let authority = variable("AZURE_AUTHORITY_HOST").unwrap_or_else(|| AUTHORITY.to_owned());
        let authority = authority.trim_end_matches('/');
        let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer".to_owned();
        let fields = vec![
            ("grant_type", "client_credentials".to_owned()),
            ("scope", format!("{RESOURCE}.default")),
            ("client_id", client),
            ("client_assertion_type", kind),
        ];
        return Ok(TokenService {
            name: "the workload's identity",
            address: format!("{authority}/{tenant}/oauth2/v2.0/token"),
            header: super::service::FORM,
            form: Some(Form { fields, file_field: "client_assertion", file: token_file }),
        });
    }
    let host = variable("AZURE_POD_IDENTITY_AUTHORITY_HOST");
    let host = host.unwrap_or_else(|| MACHINE_SERVICE.to_owned());
    let mut query: Query<'_> =
        vec![("api-version", "2018-02-01".into()), ("resource", RESOURCE.into())];
    query.extend(client.map(|client| ("client_id", client.into())));
    Ok(TokenService {
        name: "the machine's managed identity",
        address: format!("{}{MACHINE_TOKEN}?{}", host.trim_end_matches('/'), sign::query(&query)),
        header: ("metadata", "true"),
        form: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the signed text is that of Microsoft's example, "Blob, Queue, and File services shared
    /// key".
    #[test]
    fn the_signed_text_is_that_of_the_description() {
        let mut request = Unsigned {
            method: "GET",
            path: "/mycontainer",
            query: vec![
                ("restype", "container".into()),
                ("comp", "metadata".into()),
                ("timeout", "20".into()),
            ],
            host: "myaccount.blob.core.windows.net",
            headers: vec![
                ("x-ms-version", "2015-02-21".to_owned()),
                ("x-ms-date", date(Timestamp(1_435_361_952_000))),
            ],
            body: b"",
        };
        assert_eq!(
            to_sign(&request, "myaccount"),
            "GET\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:Fri, 26 Jun 2015 23:39:12 GMT\n\
             x-ms-version:2015-02-21\n/myaccount/mycontainer\ncomp:metadata\nrestype:container\n\
             timeout:20"
        );
        (request.method, request.body, request.query) = ("PUT", b"four", Vec::new());
        request.headers.push(("if-none-match", "*".to_owned()));
        let text = to_sign(&request, "myaccount");
        assert!(text.starts_with("PUT\n\n\n4\n\n\n\n\n\n*\n\n\nx-ms-date:"), "{text}");
    }

    /// Goal: a signature matches one computed by Python's `hmac` from the specification, with the
    /// well-known key of Azurite.
    #[test]
    fn a_request_is_signed_with_the_key_of_its_account() {
        let secret = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/\
            K1SZFPTOtr/KBHBeksoGMGw==";
        let key = Key { id: "devstoreaccount1".into(), secret: secret.into(), session_token: None };
        let mut request = Unsigned {
            method: "PUT",
            path: "/devstoreaccount1/backups/a%2Bb",
            query: Vec::new(),
            host: "127.0.0.1:10000",
            headers: vec![("if-match", "\"0x1\"".to_owned())],
            body: b"meow",
        };
        let now = Timestamp(1_551_467_339_000);
        Azure.prepare(&mut request, now);
        let (_, value) = Azure.sign(&request, &key, now).pop().unwrap();
        assert_eq!(
            value,
            "SharedKey devstoreaccount1:8HE79VJN8RdCvWnTt0mokwyFN3nTiM7/xNYjnpNjV0w="
        );
    }

    #[test]
    fn a_condition_is_refused_by_status_and_code() {
        assert!(
            Azure.is_refusal(409, "BlobAlreadyExists") && Azure.is_refusal(412, "ConditionNotMet")
        );
        for (status, code) in [(409, "ContainerBeingDeleted"), (412, "LeaseIdMissing"), (409, "")] {
            assert!(!Azure.is_refusal(status, code), "{status} {code}");
        }
    }

    #[test]
    fn a_page_is_read() {
        let text = "<?xml version=\"1.0\" encoding=\"utf-8\"?><EnumerationResults \
            ServiceEndpoint=\"https://a.blob.core.windows.net/\" ContainerName=\"c\"><Prefix>p\
            </Prefix><Blobs><Blob><Name>p/a&amp;b</Name><Properties><Etag>0x1</Etag>\
            <Content-Length>3</Content-Length></Properties><OrMetadata /></Blob><Blob><Name>p/c\
            </Name><Properties><Content-Length>0</Content-Length></Properties></Blob></Blobs>\
            <NextMarker>2!8</NextMarker></EnumerationResults>";
        let page = Azure.read_page(text).unwrap();
        assert_eq!(page.objects, [("p/a&b".to_owned(), 3), ("p/c".to_owned(), 0)]);
        assert_eq!(page.next.as_deref(), Some("2!8"));
        let none = "<EnumerationResults><Blobs /><NextMarker /></EnumerationResults>";
        let page = Azure.read_page(none).unwrap();
        assert!(page.objects.is_empty() && page.next.is_none());
    }

    #[test]
    fn the_store_is_that_of_the_account() {
        let of = |set: &[(&str, &str)]| {
            let variable = |name: &str| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            let opened = open(&variable, &"az://acme/x".parse().unwrap());
            opened.map(|it| (format!("{}{}", it.store.origin, it.store.root), it.source))
        };
        let account = ("AZURE_STORAGE_ACCOUNT", "acmestore");
        let (place, source) = of(&[account, ("AZURE_STORAGE_KEY", "aGk=")]).unwrap();
        assert_eq!(place, "https://acmestore.blob.core.windows.net/acme");
        assert!(matches!(source, Source::Fixed(Credentials::Key(key)) if key.id == "acmestore"));
        let (both, endpoint) = (("AZURE_STORAGE_KEY", "aGk="), "http://127.0.0.1:1/acmestore");
        let shared = ("AZURE_STORAGE_SAS_TOKEN", "?sv=1&sig=s");
        let endpoint = ("AZURE_STORAGE_SERVICE_ENDPOINT", endpoint);
        let (place, source) = of(&[account, both, shared, endpoint]).unwrap();
        assert_eq!(place, "http://127.0.0.1:1/acmestore/acme");
        let is_query = |source| match source {
            Source::Fixed(Credentials::SharedAccess(query)) => query == "sv=1&sig=s",
            _ => false,
        };
        assert!(is_query(source));
        for (wrong, told) in [
            (&[][..], "AZURE_STORAGE_ACCOUNT is not set"),
            (&[("AZURE_STORAGE_ACCOUNT", "a.b")], "may only contain a-z"),
            (&[account, ("AZURE_STORAGE_KEY", "hidden")], "is not Base64"),
            (&[account, ("AZURE_FEDERATED_TOKEN_FILE", "/f")], "AZURE_TENANT_ID is not"),
        ] {
            let error = of(wrong).map(drop).unwrap_err().to_string();
            assert!(error.contains(told) && !error.contains("hidden"), "{error}");
        }
    }
}
