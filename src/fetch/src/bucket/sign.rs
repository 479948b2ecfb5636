//! Signatures of requests: AWS Signature Version 4, of the head and of the body's hash.
//!
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>

use hmac::{Hmac, KeyInit, Mac};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use sha2::{Digest, Sha256};

use super::credentials::Credentials;
use lodestone_types::Timestamp;

/// Every byte but letters, digits and `-._~`.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const IN_PATH: &AsciiSet = &RESERVED.remove(b'/');

/// A request as it is signed.
pub(super) struct Unsigned<'a> {
    /// The method.
    pub method: &'a str,
    /// The path, encoded.
    pub path: &'a str,
    /// The query, encoded and in order.
    pub query: &'a str,
    /// Host, with the port unless it is the scheme's own.
    pub host: &'a str,
    /// Names in lower case, and values.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: &'a [u8],
}

/// A path, encoded; its slashes stay.
pub(super) fn path(text: &str) -> String {
    utf8_percent_encode(text, IN_PATH).to_string()
}

/// A query, encoded, its names in order.
pub(super) fn query(pairs: &[(&str, &str)]) -> String {
    let encoded = |text: &str| utf8_percent_encode(text, RESERVED).to_string();
    let mut pairs: Vec<String> =
        pairs.iter().map(|(name, value)| format!("{}={}", encoded(name), encoded(value))).collect();
    pairs.sort_unstable();
    pairs.join("&")
}

/// The headers of a request, with its signature among them; `host` is not among them.
pub(super) fn sign(
    request: Unsigned<'_>,
    credentials: &Credentials,
    region: &str,
    now: Timestamp,
) -> Vec<(&'static str, String)> {
    let (date, time) = moment(now);
    let body_hash = hex::encode(Sha256::digest(request.body));
    let mut headers = request.headers;
    headers.push(("x-amz-content-sha256", body_hash.clone()));
    headers.push(("x-amz-date", time.clone()));
    if let Some(token) = &credentials.session_token {
        headers.push(("x-amz-security-token", token.clone()));
    }
    let mut signed = headers.clone();
    signed.push(("host", request.host.to_owned()));
    signed.sort_unstable();
    let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
    let names = names.join(";");
    let mut canonical = format!("{}\n{}\n{}\n", request.method, request.path, request.query);
    for (name, value) in &signed {
        canonical.push_str(&format!("{name}:{}\n", value.trim()));
    }
    canonical.push_str(&format!("\n{names}\n{body_hash}"));
    let scope = format!("{date}/{region}/s3/aws4_request");
    let hash = hex::encode(Sha256::digest(&canonical));
    let text = format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{hash}");
    let secret = format!("AWS4{}", credentials.secret_key);
    let key = [&*date, region, "s3", "aws4_request"]
        .into_iter()
        .fold(secret.into_bytes(), |key, part| keyed_hash(&key, part));
    let signature = hex::encode(keyed_hash(&key, &text));
    headers.push((
        "authorization",
        format!(
            "AWS4-HMAC-SHA256 Credential={}/{scope},SignedHeaders={names},Signature={signature}",
            credentials.key_id
        ),
    ));
    headers
}

fn keyed_hash(key: &[u8], text: &str) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length will do");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}

/// A moment as `20130524` and `20130524T000000Z`.
fn moment(now: Timestamp) -> (String, String) {
    let seconds = i64::try_from(now.0 / 1000).unwrap_or(0);
    let at = time::OffsetDateTime::from_unix_timestamp(seconds)
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let date = format!("{:04}{:02}{:02}", at.year(), u8::from(at.month()), at.day());
    let time = format!("{date}T{:02}{:02}{:02}Z", at.hour(), at.minute(), at.second());
    (date, time)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signature(
        method: &str,
        path: &str,
        query: &str,
        headers: &[(&'static str, &str)],
    ) -> String {
        let credentials = Credentials {
            key_id: "AKIAIOSFODNN7EXAMPLE".into(),
            secret_key: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
            session_token: None,
        };
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        let body: &[u8] = if method == "PUT" { b"Welcome to Amazon S3." } else { b"" };
        let host = "examplebucket.s3.amazonaws.com";
        let request = Unsigned { method, path, query, host, headers, body };
        let now = Timestamp(1_369_353_600_000);
        let signed = sign(request, &credentials, "us-east-1", now);
        let (_, value) = signed.iter().find(|(name, _)| *name == "authorization").unwrap();
        value.rsplit('=').next().unwrap().to_owned()
    }

    /// The examples of Amazon's description.
    #[test]
    fn signatures_are_those_of_the_description() {
        assert_eq!(
            signature("GET", "/test.txt", "", &[("range", "bytes=0-9")]),
            "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        let date = ("date", "Fri, 24 May 2013 00:00:00 GMT");
        let class = ("x-amz-storage-class", "REDUCED_REDUNDANCY");
        assert_eq!(
            signature("PUT", &path("/test$file.text"), "", &[date, class]),
            "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"
        );
        assert_eq!(
            signature("GET", "/", &query(&[("prefix", "J"), ("max-keys", "2")]), &[]),
            "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"
        );
    }
}
