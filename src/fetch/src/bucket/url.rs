//! URLs of buckets, and of the stores that hold them.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use ureq::http::Uri;

use super::BucketError;

/// Maximum length of a prefix: stores allow 1,024 bytes for a key, and names below the prefix have
/// fewer than 124.
const PREFIX_CHARS_MAX: usize = 900;

/// Kinds of object stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StoreKind {
    /// Amazon S3, and stores with a compatible API.
    S3,
    /// Google Cloud Storage.
    Google,
    /// Azure Blob Storage, where a bucket is a container.
    Azure,
}

impl StoreKind {
    const ALL: [Self; 3] = [Self::S3, Self::Google, Self::Azure];

    /// The scheme of its bucket URLs.
    fn scheme(self) -> &'static str {
        match self {
            Self::S3 => "s3://",
            Self::Google => "gs://",
            Self::Azure => "az://",
        }
    }

    /// The form of its bucket URLs, for messages.
    fn form(self) -> &'static str {
        match self {
            Self::S3 => "s3://BUCKET/PREFIX",
            Self::Google => "gs://BUCKET/PREFIX",
            Self::Azure => "az://CONTAINER/PREFIX",
        }
    }

    /// The rule for bucket names, if `bucket` breaks it.
    fn broken_rule(self, bucket: &str) -> Option<&'static str> {
        let is_name = |others: &str| {
            let is_fit = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
            bucket.chars().all(|c| is_fit(c) || others.contains(c))
        };
        let is_length = (3..=63).contains(&bucket.len());
        match self {
            Self::S3 | Self::Google if is_length && is_name(".-_") => None,
            Self::Azure if is_length && is_name("-") => None,
            Self::S3 | Self::Google => {
                Some("a bucket name must be 3 to 63 characters of a-z, 0-9, '.', '-', '_'")
            }
            Self::Azure => Some("a container name must be 3 to 63 characters of a-z, 0-9, '-'"),
        }
    }
}

/// The URL of a prefix in a bucket: `s3://bucket/prefix`, or the equivalent of another store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketUrl {
    pub(super) kind: StoreKind,
    /// The bucket.
    pub bucket: String,
    /// Prefix of all keys; may be empty, and has no slash at either end.
    pub prefix: String,
}

impl BucketUrl {
    /// Whether a text is meant to be a bucket URL and not a path: it begins with a scheme, known or
    /// not, even if misspelt. A single letter is the name of a disk.
    pub fn is_meant(text: &str) -> bool {
        let is_of_scheme = |c: char| c.is_ascii_alphanumeric() || "+.-".contains(c);
        text.split_once(":/").is_some_and(|(scheme, _)| {
            scheme.len() > 1
                && scheme.starts_with(|c: char| c.is_ascii_alphabetic())
                && scheme.chars().all(is_of_scheme)
        })
    }

    /// Whether this is `other` or below it.
    pub fn is_within(&self, other: &Self) -> bool {
        let rest = self.prefix.strip_prefix(&other.prefix);
        (self.kind, &self.bucket) == (other.kind, &other.bucket)
            && rest.is_some_and(|rest| {
                rest.is_empty() || rest.starts_with('/') || other.prefix.is_empty()
            })
    }
}

impl fmt::Display for BucketUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        write!(f, "{}{}{slash}{}", self.kind.scheme(), self.bucket, self.prefix)
    }
}

impl FromStr for BucketUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = StoreKind::ALL.into_iter().find(|kind| text.starts_with(kind.scheme()));
        let kind = found.unwrap_or(StoreKind::S3);
        let wrong = |rule: &str| Err(format!("{text:?} is not a valid {}: {rule}", kind.form()));
        let Some(rest) = text.strip_prefix(kind.scheme()) else {
            return wrong("it must begin with s3://, gs:// or az://");
        };
        let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
        let prefix = prefix.trim_end_matches('/');
        if let Some(rule) = kind.broken_rule(bucket) {
            return wrong(rule);
        }
        let is_key = |c: char| c.is_ascii_alphanumeric() || "._-+=@/".contains(c);
        let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
        let is_prefix = prefix.is_empty() || prefix.split('/').all(is_part);
        if kind == StoreKind::Azure && prefix.split('/').any(|part| part.ends_with('.')) {
            return wrong("no part of a prefix may end with a dot");
        }
        if !is_prefix || prefix.len() > PREFIX_CHARS_MAX || !prefix.chars().all(is_key) {
            return wrong(
                "a prefix must be at most 900 characters of A-Z, a-z, 0-9, '._-+=@', in parts \
                 separated by single slashes",
            );
        }
        Ok(Self { kind, bucket: bucket.to_owned(), prefix: prefix.to_owned() })
    }
}

/// The operator's settings for an S3 store; unset ones come from AWS's variables and files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BucketOptions {
    /// URL of the store.
    pub endpoint: Option<String>,
    /// Region.
    pub region: Option<String>,
    /// Whether the bucket's name is in the path instead of the host.
    pub is_path_style: Option<bool>,
}

/// The destination of the requests to one bucket.
#[derive(Debug)]
pub(super) struct Store {
    /// Scheme and host, with its port unless that is the scheme's default.
    pub origin: String,
    /// The host, with its port unless that is the scheme's default.
    pub host: String,
    /// Path before the keys: empty, or a path that ends with the bucket's name.
    pub root: String,
}

impl Store {
    /// The store at `endpoint`, with the bucket's name in the path or prepended to the host.
    pub(super) fn of(
        endpoint: &str,
        url: &BucketUrl,
        is_path_style: bool,
    ) -> Result<Self, BucketError> {
        let (scheme, host, path) = parts(endpoint).ok_or_else(|| BucketError::Invalid {
            problem: format!(
                "{endpoint:?} is not a valid endpoint: it must be http(s)://HOST[:PORT][/PATH]"
            ),
        })?;
        let (host, root) = match is_path_style {
            true => (host, format!("{path}/{}", url.bucket)),
            false => (format!("{}.{host}", url.bucket), path),
        };
        Ok(Self { origin: format!("{scheme}://{host}"), host, root })
    }

    /// Whether requests to it travel unencrypted over a network.
    pub(super) fn is_in_the_open(&self) -> bool {
        self.origin.starts_with("http://") && !is_loopback(&self.host)
    }
}

/// Whether a host, with or without a port, is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let name = host.rsplit_once(':').filter(|(_, port)| is_port(port)).map_or(host, |it| it.0);
    let name = name.trim_matches(['[', ']']);
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Splits a URL into scheme, host (with its port unless that is the default), and path without a
/// trailing slash.
fn parts(endpoint: &str) -> Option<(&str, String, String)> {
    let uri: Uri = endpoint.parse().ok()?;
    let (scheme, usual) = match uri.scheme_str()? {
        "https" => ("https", 443),
        "http" => ("http", 80),
        _ => return None,
    };
    if uri.query().is_some() || uri.authority()?.as_str().contains('@') {
        return None;
    }
    let host = uri.host().filter(|host| !host.is_empty())?;
    let host = match uri.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    };
    Some((scheme, host, uri.path().trim_end_matches('/').to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> BucketUrl {
        text.parse().unwrap()
    }

    #[test]
    fn places_have_a_bucket_and_a_prefix() {
        assert_eq!(url("s3://acme-backups").to_string(), "s3://acme-backups");
        assert_eq!(url("s3://acme/a/b=1/").to_string(), "s3://acme/a/b=1");
        for address in ["s3://acme/x", "S3://acme/x", "s3:/acme/x", "gs://acme/x"] {
            assert!(BucketUrl::is_meant(address), "{address}");
        }
        for path in ["/srv/backups", "backups", "./s3:/x", "c:/backups", "a b:/c"] {
            assert!(!BucketUrl::is_meant(path), "{path}");
        }
        for wrong in [
            "", "s3://", "s3://ab", "s3://Acme/x", "s3://acme//x", "s3://acme/a/../b",
            "s3://acme/a b", "s3://acme/a?b", "https://acme/x",
        ] {
            let refused = wrong.parse::<BucketUrl>().unwrap_err();
            assert!(refused.contains("is not a valid s3://BUCKET/PREFIX"), "{refused}");
        }
        assert_eq!(url("gs://acme/a").to_string(), "gs://acme/a");
        assert_eq!(url("az://acme/a").to_string(), "az://acme/a");
        let refused = "az://a.b.c/x".parse::<BucketUrl>().unwrap_err();
        assert!(
            refused.contains("is not a valid az://CONTAINER/PREFIX: a container name"),
            "{refused}"
        );
        assert!("az://acme/a./b".parse::<BucketUrl>().is_err(), "Azure knows no such name");
        let refused = "gs://Acme/x".parse::<BucketUrl>().unwrap_err();
        assert!(refused.contains("is not a valid gs://BUCKET/PREFIX: a bucket name"), "{refused}");
        let within = |one: &str, other: &str| url(one).is_within(&url(other));
        assert!(within("s3://acme/a/b", "s3://acme/a") && within("s3://acme/a", "s3://acme"));
        assert!(within("s3://acme/a", "s3://acme/a") && !within("s3://acme/ab", "s3://acme/a"));
        assert!(!within("s3://acme", "s3://acme/a") && !within("s3://other/a", "s3://acme/a"));
        assert!(!within("gs://acme/a", "s3://acme/a"));
    }

    #[test]
    fn this_machine_is_told_from_names_that_look_like_it() {
        for near in ["localhost", "localhost:9000", "127.0.0.1", "127.1.2.3:80", "[::1]", "[::1]:9"]
        {
            assert!(is_loopback(near), "{near}");
        }
        for far in ["127.evil.example", "localhost.evil.example", "10.0.0.1:80", "[fd00::1]:80"] {
            assert!(!is_loopback(far), "{far}");
        }
    }
}
