//! Google Cloud Storage, through its XML API.
//!
//! It works like S3 except for the names in signatures and for conditions: instead of headers such
//! as `If-Match`, writes support conditions on an object's generation, a number that grows with
//! each write of a name and is 0 for a name that does not exist.
//!
//! - <https://cloud.google.com/storage/docs/xml-api/reference-headers>
//! - <https://cloud.google.com/storage/docs/request-preconditions>

use super::BucketError;
use super::credentials::{Credentials, Key, Variable, key_of};
use super::dialect::{Dialect, Opened};
use super::request::{Condition, Headers, Unsigned, Version};
use super::roles::{Role, Source};
use super::sign::{self, GOOGLE};
use super::tokens::TokenService;
use super::url::{BucketUrl, Store};
use lodestone_types::Timestamp;

const ENDPOINT: &str = "https://storage.googleapis.com";
const MACHINE_HOST: &str = "metadata.google.internal";
const MACHINE_TOKEN: &str = "/computeMetadata/v1/instance/service-accounts/default/token";
/// The region in a signature's scope, which Google ignores.
const REGION: &str = "auto";
/// The two halves of an HMAC key, named as GDAL and duplicity do.
const KEY: [&str; 2] = ["GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY"];
const ADVICE: &str = "set GS_ACCESS_KEY_ID and GS_SECRET_ACCESS_KEY to an HMAC key, or give this \
     machine a service account";

#[derive(Debug)]
struct Google;

impl Dialect for Google {
    fn sign(&self, request: &Unsigned<'_>, key: &Key, now: Timestamp) -> Headers {
        sign::sign(request, key, &GOOGLE, REGION, now)
    }

    fn condition(&self, condition: Condition<'_>) -> Option<(&'static str, String)> {
        let generation = match condition {
            Condition::None => return None,
            Condition::Absent => "0".to_owned(),
            Condition::Unchanged(Version(generation)) => generation.clone(),
        };
        Some(("x-goog-if-generation-match", generation))
    }

    fn version_header(&self) -> &'static str {
        "x-goog-generation"
    }
}

/// Opens the store, with the endpoint variables that Google's own libraries read.
pub(super) fn open(variable: Variable<'_>, url: &BucketUrl) -> Result<Opened, BucketError> {
    let endpoint = variable("STORAGE_EMULATOR_HOST").unwrap_or_else(|| ENDPOINT.to_owned());
    let endpoint = match endpoint.contains("://") {
        true => endpoint,
        false => format!("http://{endpoint}"),
    };
    let store = Store::of(&endpoint, url, true)?;
    let source = match key_of(variable, KEY)? {
        Some(key) => Source::Fixed(Credentials::Key(key)),
        None => {
            let host = variable("GCE_METADATA_HOST").unwrap_or_else(|| MACHINE_HOST.to_owned());
            Source::Role(Role::Token(TokenService {
                name: "the machine's service account",
                address: format!("http://{host}{MACHINE_TOKEN}"),
                header: ("metadata-flavor", "Google"),
                form: None,
            }))
        }
    };
    Ok(Opened { store, dialect: Box::new(Google), source, advice: ADVICE.to_owned() })
}
