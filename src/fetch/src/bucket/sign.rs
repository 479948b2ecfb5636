//! Signatures, version 4, over the head of a request and the hash of its body: Amazon's, and
//! Google's, which differ only in names.
//!
//! - <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>
//! - <https://cloud.google.com/storage/docs/authentication/signatures>

use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;

use super::credentials::Key;
use super::request::{Headers, Query, Unsigned};
use lodestone_types::Timestamp;

/// Every character except letters, digits and `-._~`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const IN_PATH: &AsciiSet = &RESERVED.remove(b'/');

/// A store's names for the parts of its signatures.
#[derive(Debug)]
pub(super) struct Names {
    algorithm: &'static str,
    /// Prepended to the secret.
    secret: &'static str,
    service: &'static str,
    request: &'static str,
    date: &'static str,
    body_hash: &'static str,
    token: &'static str,
}

/// Names of Amazon S3 and compatible stores.
pub(super) const AMAZON: Names = Names {
    algorithm: "AWS4-HMAC-SHA256",
    secret: "AWS4",
    service: "s3",
    request: "aws4_request",
    date: "x-amz-date",
    body_hash: "x-amz-content-sha256",
    token: "x-amz-security-token",
};

/// Names of Google Cloud Storage.
pub(super) const GOOGLE: Names = Names {
    algorithm: "GOOG4-HMAC-SHA256",
    secret: "GOOG4",
    service: "storage",
    request: "goog4_request",
    date: "x-goog-date",
    body_hash: "x-goog-content-sha256",
    token: "x-goog-security-token",
};

/// Percent-encodes a path, except its slashes.
pub(super) fn path(text: &str) -> String {
    utf8_percent_encode(text, IN_PATH).to_string()
}

/// Percent-encodes a query, sorted by name.
pub(super) fn query(pairs: &Query<'_>) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
    let mut pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.sort_unstable();
    pairs.join("&")
}

/// The headers of a request, including its signature but not `host`.
pub(super) fn sign(
    request: &Unsigned<'_>,
    key: &Key,
    names: &Names,
    region: &str,
    now: Timestamp,
) -> Headers {
    let (date, time) = date_and_time(now);
    let body_hash = hex::encode(Sha256::digest(request.body));
    let mut headers = request.headers.clone();
    headers.push((names.body_hash, body_hash.clone()));
    headers.push((names.date, time.clone()));
    if let Some(token) = &key.session_token {
        headers.push((names.token, token.clone()));
    }
    let mut signed = headers.clone();
    signed.push(("host", request.host.to_owned()));
    signed.sort_unstable();
    let signed_names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
    let signed_names = signed_names.join(";");
    let query = query(&request.query);
    let mut canonical = format!("{}\n{}\n{query}\n", request.method, request.path);
    for (name, value) in &signed {
        canonical.push_str(&format!("{name}:{}\n", value.trim()));
    }
    canonical.push_str(&format!("\n{signed_names}\n{body_hash}"));
    let Names { algorithm, service, request, .. } = names;
    let scope = format!("{date}/{region}/{service}/{request}");
    let hash = hex::encode(Sha256::digest(&canonical));
    let text = format!("{algorithm}\n{time}\n{scope}\n{hash}");
    let secret = format!("{}{}", names.secret, key.secret);
    let signing_key = [&*date, region, service, request]
        .into_iter()
        .fold(secret.into_bytes(), |key, part| keyed_hash(&key, part));
    let signature = hex::encode(keyed_hash(&signing_key, &text));
    let (id, names) = (&key.id, signed_names);
    headers.push((
        "authorization",
        format!("{algorithm} Credential={id}/{scope},SignedHeaders={names},Signature={signature}"),
    ));
    headers
}

pub(super) fn keyed_hash(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// Converts a timestamp to calendar time, UTC.
pub(super) fn moment(now: Timestamp) -> OffsetDateTime {
    let seconds = i64::try_from(now.0 / 1000).unwrap_or(0);
    OffsetDateTime::from_unix_timestamp(seconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// Formats a moment as `20130524` and `20130524T000000Z`.
fn date_and_time(now: Timestamp) -> (String, String) {
    let at = moment(now);
    let date = format!("{:04}{:02}{:02}", at.year(), u8::from(at.month()), at.day());
    let time = format!("{date}T{:02}{:02}{:02}Z", at.hour(), at.minute(), at.second());
    (date, time)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

    fn key(id: &str) -> Key {
        Key { id: id.into(), secret: SECRET.into(), session_token: None }
    }

    fn signature(signed: &Headers) -> String {
        let (_, value) = signed.iter().find(|(name, _)| *name == "authorization").unwrap();
        value.rsplit('=').next().unwrap().to_owned()
    }

    /// Goal: signatures match the examples in Amazon's documentation.
    #[test]
    fn signatures_are_those_of_the_description() {
        let signed = |method, path: &str, query: &[(&'static str, &'static str)], headers: &[_]| {
            let own = |(name, value): &(&'static str, &str)| (*name, (*value).to_owned());
            let headers = headers.iter().map(own).collect();
            let query = query.iter().map(|(name, value)| (*name, (*value).into())).collect();
            let body: &[u8] = if method == "PUT" { b"Welcome to Amazon S3." } else { b"" };
            let host = "examplebucket.s3.amazonaws.com";
            let request = Unsigned { method, path, query, host, headers, body };
            let now = Timestamp(1_369_353_600_000);
            signature(&sign(&request, &key("AKIAIOSFODNN7EXAMPLE"), &AMAZON, "us-east-1", now))
        };
        assert_eq!(
            signed("GET", "/test.txt", &[], &[("range", "bytes=0-9")]),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let date = ("date", "Fri, 24 May 2013 00:00:00 GMT");
        let class = ("x-amz-storage-class", "REDUCED_REDUNDANCY");
        assert_eq!(
            signed("PUT", &path("/test$file.text"), &[], &[date, class]),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
        assert_eq!(
            signed("GET", "/", &[("prefix", "J"), ("max-keys", "2")], &[]),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }

    /// Goal: Google's signatures use its own names. Google documents no example with an HMAC key,
    /// so this one was computed from its specification with Python's `hashlib` and `hmac`.
    #[test]
    fn googles_signatures_have_its_own_names() {
        let request = Unsigned {
            method: "PUT",
            path: "/example-bucket/cat%2Bpics/tabby.jpeg",
            query: vec![("uploadId", "a/b".into()), ("partNumber", "1".into())],
            host: "storage.googleapis.com",
            headers: vec![("x-goog-if-generation-match", "0".to_owned())],
            body: b"meow",
        };
        let now = Timestamp(1_551_467_339_000);
        let signed = sign(&request, &key("GOOGEXAMPLE"), &GOOGLE, "auto", now);
        let (_, value) = signed.iter().find(|(name, _)| *name == "authorization").unwrap();
        let names = "host;x-goog-content-sha256;x-goog-date;x-goog-if-generation-match";
        let start = "GOOG4-HMAC-SHA256 Credential=GOOGEXAMPLE/20190301/auto/storage/goog4_request";
        let signature = "f2abc7d5af85f81cdc471c01599379254423f2edac12e30aa1410fc8c2331ccb";
        assert_eq!(*value, format!("{start},SignedHeaders={names},Signature={signature}"));
    }
}
