//! Webhook messages: one POST through the same gate as pages. Names are resolved anew for each
//! message, redirects are not followed, and only the head of the response is read.

use std::sync::Arc;
use std::time::Duration;

use crate::Fetcher;
use crate::connection::Meter;
use crate::error::RequestError;
use lodestone_types::limits::{WEBHOOK_SECONDS_MAX, WEBHOOK_WIRE_BYTES_MAX};
use lodestone_types::{BlockedReason, PostFailure, WebPost, WebUrl, WebhookClient};

impl WebhookClient for Fetcher {
    fn permits(&self, url: &WebUrl) -> Result<(), BlockedReason> {
        self.gate.permits(url)
    }

    fn post(&self, post: &WebPost<'_>) -> Result<u16, PostFailure> {
        let time_max = self.time_max.min(Duration::from_secs(WEBHOOK_SECONDS_MAX));
        let meter = Arc::new(Meter::new(time_max, WEBHOOK_WIRE_BYTES_MAX as u64));
        let sent = self.gate.addresses(post.url, meter.deadline);
        let sent = sent.and_then(|addresses| self.client.post(post, addresses, &meter));
        sent.map_err(|error| match (error, meter.left()) {
            (RequestError::Rule(reason), _) => PostFailure::Blocked(reason),
            // After the deadline, every problem counts as a timeout.
            (RequestError::Problem(_), Err(timed_out)) => PostFailure::Failed(timed_out),
            (RequestError::Problem(problem), Ok(_)) => PostFailure::Failed(problem),
        })
    }
}
