//! Signs messages as Standard Webhooks prescribes; libraries in many languages can verify that.
//!
//! ```text
//! webhook-id         id of the event, equal for all attempts: receivers use it to skip repetitions
//! webhook-timestamp  time of this attempt, in seconds since 1970: receivers reject old ones
//! webhook-signature  "v1," base64(HMAC-SHA-256(secret, id "." timestamp "." body))
//! secret             "whsec_" base64(the key)
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

use lodestone_types::Timestamp;

/// Encodes a secret in the form that its receiver gets.
pub(super) fn secret_text(secret: &[u8]) -> String {
    format!("whsec_{}", STANDARD.encode(secret))
}

/// The headers of one attempt.
pub(super) fn headers(
    secret: &[u8],
    event: &str,
    body: &str,
    now: Timestamp,
) -> [(&'static str, String); 3] {
    let timestamp = (now.0 / 1000).to_string();
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
    mac.update(format!("{event}.{timestamp}.{body}").as_bytes());
    let signature = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    [
        ("webhook-id", event.to_owned()),
        ("webhook-timestamp", timestamp),
        ("webhook-signature", signature),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the example in the documentation of Svix, the origin of this convention, is signed
    /// alike.
    #[test]
    fn the_example_of_the_convention_is_signed_alike() {
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        assert_eq!(secret_text(&secret), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let (event, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", "{\"test\": 2432232314}");
        let [id, timestamp, signature] =
            headers(&secret, event, body, Timestamp(1_614_265_330_000));
        assert_eq!(id, ("webhook-id", event.to_owned()));
        assert_eq!(timestamp.1, "1614265330");
        assert_eq!(signature.1, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
