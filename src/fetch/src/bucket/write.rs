//! Writing and removing objects.

use ureq::Body;
use ureq::http::Response;

use super::limits::SMALL_BYTES;
use super::request::{Ask, Condition, Put, Version};
use super::{Bucket, BucketError};

impl Bucket {
    /// Writes an object. With [`Condition::Absent`], a request without a response is not retried:
    /// the first one could arrive after the second, when the object has already been removed.
    ///
    /// # Errors
    /// Those of the store.
    pub fn put(
        &self,
        key: &str,
        body: &[u8],
        condition: Condition<'_>,
    ) -> Result<Put, BucketError> {
        let headers = self.dialect.condition(condition).into_iter().collect();
        let is_once = matches!(condition, Condition::Absent);
        let (method, key, is_small) = ("PUT", Some(key), body.len() <= SMALL_BYTES);
        let ask = Ask { method, key, headers, body, is_once, is_small, ..Ask::default() };
        let answer = self.ask(&ask)?;
        match (answer.status().as_u16(), condition) {
            (200..=299, _) => Ok(Put::Done(self.version_of(&answer))),
            // The object that should have this version may be gone.
            (404, Condition::Unchanged(_)) => Ok(Put::Refused),
            (404, _) => Err(self.refused(&ask, answer)),
            _ => Ok(Put::Refused),
        }
    }

    /// Returns the version of an object; `None` if there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn version(&self, key: &str) -> Result<Option<Version>, BucketError> {
        let ask = Ask { method: "HEAD", key: Some(key), is_small: true, ..Ask::default() };
        let answer = self.ask(&ask)?;
        Ok(answer.status().is_success().then(|| self.version_of(&answer)))
    }

    fn version_of(&self, answer: &Response<Body>) -> Version {
        let version = answer.headers().get(self.dialect.version_header());
        Version(version.and_then(|tag| tag.to_str().ok()).unwrap_or_default().to_owned())
    }

    /// Removes an object; succeeds if there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn remove(&self, key: &str) -> Result<(), BucketError> {
        let (method, key, is_small) = ("DELETE", Some(key), true);
        self.ask(&Ask { method, key, is_small, ..Ask::default() })?;
        Ok(())
    }
}
