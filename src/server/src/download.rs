//! Signed tokens that let their holder read an original, or one of its rendered pages, for an hour.
//!
//! ```text
//! token = base64url(claim) "." base64url(HMAC-SHA-256(secret, claim))
//! claim = JSON array: key, collection, tenant, sub-tenant, source, expiry in epoch milliseconds,
//!         page to render or null
//! ```
//! The secret lives only as long as the process, so a restart invalidates every URL. The claim
//! includes the collection so that the token does not give access to a tenant created later under
//! the same name, and the id of the requesting key so that downloads count against that key's rate
//! limit and end with that key.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use lodestone_extract::Drawing;
use lodestone_types::{IdSource, Scope, SourceId, SubTenantId, TenantId, Timestamp};

/// Lifetime of a URL: one hour.
const LIFE_MILLIS: u64 = 3_600_000;

/// The original, or a page of it, that a token gives access to.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// Id of the key that requested the URL.
    pub key_id: String,
    /// Collection of the tenant, in its text form.
    pub collection: String,
    /// Scope of the source.
    pub scope: Scope,
    /// The source.
    pub source: SourceId,
    /// The page to render; `None` for the original.
    pub drawing: Option<Drawing>,
}

/// Creates and verifies tokens.
pub struct DownloadSigner {
    secret: [u8; 32],
}

impl fmt::Debug for DownloadSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DownloadSigner").finish_non_exhaustive()
    }
}

impl DownloadSigner {
    /// Creates a signer with a random secret.
    pub fn new(ids: &dyn IdSource) -> Self {
        let mut secret = [0; 32];
        ids.fill(&mut secret);
        Self { secret }
    }

    /// Returns a token for `claim` and its expiry.
    pub fn sign(&self, claim: &Claim, now: Timestamp) -> (String, Timestamp) {
        let Claim { key_id, collection, scope, source, drawing } = claim;
        let Scope { tenant, sub_tenant } = scope;
        let end = now.plus_millis(LIFE_MILLIS);
        let (tenant, sub_tenant) = (tenant.as_str(), sub_tenant.as_str());
        let names = (key_id, collection, tenant, sub_tenant, source.as_str(), end.0, drawing);
        let text = serde_json::to_vec(&names).expect("texts and numbers always print");
        let seal = self.mac(&text).finalize().into_bytes();
        let token = format!("{}.{}", URL_SAFE_NO_PAD.encode(&text), URL_SAFE_NO_PAD.encode(seal));
        (token, end)
    }

    /// Verifies a token and returns its claim, unless it has expired. The signature is compared in
    /// constant time, before any part of the claim is trusted.
    pub fn open(&self, token: &str, now: Timestamp) -> Option<Claim> {
        let (text, seal) = token.split_once('.')?;
        let text = URL_SAFE_NO_PAD.decode(text).ok()?;
        let seal = URL_SAFE_NO_PAD.decode(seal).ok()?;
        self.mac(&text).verify_slice(&seal).ok()?;
        type Names = (String, String, String, String, String, u64, Option<Drawing>);
        let (key_id, collection, tenant, sub_tenant, source, end, drawing): Names =
            serde_json::from_slice(&text).ok()?;
        if now >= Timestamp(end) {
            return None;
        }
        let tenant = TenantId::parse(&tenant).ok()?;
        let sub_tenant = SubTenantId::parse(&sub_tenant).ok()?;
        let source = SourceId::parse(&source).ok()?;
        Some(Claim { key_id, collection, scope: Scope { tenant, sub_tenant }, source, drawing })
    }

    fn mac(&self, text: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.secret)
            .expect("HMAC takes a secret of any length");
        mac.update(text);
        mac
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_types::{PageArea, SeededIds};

    fn claim() -> Claim {
        Claim {
            key_id: "operator".to_owned(),
            collection: "c-1".to_owned(),
            scope: Scope {
                tenant: TenantId::parse("acme").unwrap(),
                sub_tenant: SubTenantId::default_name(),
            },
            source: SourceId::parse("Bericht 日本.txt").unwrap(),
            drawing: Some(Drawing { page: 7, width: 640, marks: vec![PageArea::default()] }),
        }
    }

    #[test]
    fn a_token_opens_for_an_hour_and_only_here() {
        let signer = DownloadSigner::new(&SeededIds::new(1));
        let (token, end) = signer.sign(&claim(), Timestamp(1000));
        assert_eq!(end, Timestamp(3_601_000));
        assert_eq!(signer.open(&token, Timestamp(3_600_999)), Some(claim()));
        assert_eq!(signer.open(&token, Timestamp(3_601_000)), None);
        let other = DownloadSigner::new(&SeededIds::new(2));
        assert_eq!(other.open(&token, Timestamp(1000)), None);
    }

    #[test]
    fn no_character_can_be_changed() {
        let signer = DownloadSigner::new(&SeededIds::new(1));
        let (token, _) = signer.sign(&claim(), Timestamp(1000));
        for at in 0..token.len() {
            for other in ["A", "b", "-", "."] {
                let mut altered = token.clone();
                altered.replace_range(at..=at, other);
                let opened = signer.open(&altered, Timestamp(1000));
                assert_eq!(opened.is_some(), altered == token, "{altered}");
            }
        }
        for cut in 0..token.len() {
            assert_eq!(signer.open(&token[..cut], Timestamp(1000)), None);
        }
    }
}
