//! S3, and stores with a compatible API.

use super::BucketError;
use super::credentials::{Key, Variable};
use super::dialect::{Dialect, Opened};
use super::profile::{Profile, aws_endpoint};
use super::request::{Headers, Unsigned};
use super::sign::{self, AMAZON};
use super::url::{BucketOptions, BucketUrl, Store};
use lodestone_types::Timestamp;

const REGION: &str = "us-east-1";

/// The S3 dialect of a region.
#[derive(Debug)]
struct S3 {
    region: String,
}

impl Dialect for S3 {
    fn sign(&self, request: &Unsigned<'_>, key: &Key, now: Timestamp) -> Headers {
        sign::sign(request, key, &AMAZON, &self.region, now)
    }
}

/// Opens the store set by options, variables and AWS's files; Amazon's by default.
pub(super) fn open(
    variable: Variable<'_>,
    url: &BucketUrl,
    options: &BucketOptions,
) -> Result<Opened, BucketError> {
    let profile = Profile::read(variable)?;
    let region = options.region.clone();
    let region = region
        .or_else(|| profile.value(&["AWS_REGION", "AWS_DEFAULT_REGION"], "region"))
        .unwrap_or_else(|| REGION.to_owned());
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    if region.is_empty() || !region.chars().all(is_plain) {
        return Err(BucketError::Invalid { problem: format!("{region:?} is not a valid region") });
    }
    let endpoint = options
        .endpoint
        .clone()
        .or_else(|| profile.value(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"], "endpoint_url"));
    // Wildcard certificates do not cover bucket names with dots, so those go into the path.
    let is_path_style =
        options.is_path_style.unwrap_or(endpoint.is_some() || url.bucket.contains('.'));
    let endpoint = endpoint.unwrap_or_else(|| aws_endpoint("s3", &region));
    let store = Store::of(&endpoint, url, is_path_style)?;
    let at_place =
        |error| BucketError::Credentials { problem: format!("{url} at {}: {error}", store.origin) };
    let (source, advice) = (profile.source(&region).map_err(at_place)?, profile.advice());
    Ok(Opened { store, dialect: Box::new(S3 { region }), source, advice })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_the_named_one_or_amazons() {
        let of = |set: &[(&str, &str)], place: &str, options: &BucketOptions| {
            let variable = |name: &str| {
                set.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
            };
            let Opened { store, dialect, .. } = open(&variable, &place.parse().unwrap(), options)?;
            Ok::<_, BucketError>(format!("{}{} {dialect:?}", store.origin, store.root))
        };
        let is = |found: Result<String, BucketError>, place: &str, region: &str| {
            assert_eq!(found.unwrap(), format!("{place} S3 {{ region: {region:?} }}"));
        };
        let none = BucketOptions::default();
        let (region, acme) = ([("AWS_REGION", "eu-west-1")], "s3://acme/x");
        is(of(&[], acme, &none), "https://acme.s3.us-east-1.amazonaws.com", "us-east-1");
        let dotted = of(&region, "s3://a.b.c", &none);
        is(dotted, "https://s3.eu-west-1.amazonaws.com/a.b.c", "eu-west-1");
        let china = [("AWS_REGION", "cn-north-1")];
        is(of(&china, acme, &none), "https://acme.s3.cn-north-1.amazonaws.com.cn", "cn-north-1");
        let endpoint = [("AWS_ENDPOINT_URL", "http://store:9000/base/")];
        is(of(&endpoint, acme, &none), "http://store:9000/base/acme", "us-east-1");
        let named = BucketOptions {
            endpoint: Some("https://store:443".into()),
            region: Some("r1".into()),
            is_path_style: Some(false),
        };
        is(of(&endpoint, acme, &named), "https://acme.store", "r1");
        for wrong in ["store:9000", "ftp://store", "http://a@store", "http://store?x"] {
            let named = BucketOptions { endpoint: Some(wrong.into()), ..none.clone() };
            assert!(of(&[], acme, &named).is_err(), "{wrong}");
        }
    }
}
