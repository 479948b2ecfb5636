//! Listings of the keys of objects.

use super::answers::Listing;
use super::client::Ask;
use super::{Bucket, BucketError};

impl Bucket {
    /// Whether there is no object below the prefix.
    ///
    /// # Errors
    /// Those of the store.
    pub fn is_empty(&self) -> Result<bool, BucketError> {
        self.holds_only(|_| false)
    }

    /// Whether all objects below the prefix have keys that are `known`, and are one page of a
    /// listing at most.
    ///
    /// # Errors
    /// Those of the store.
    pub fn holds_only(&self, known: impl Fn(&str) -> bool) -> Result<bool, BucketError> {
        let full = self.full_key("");
        let query = vec![("list-type", "2"), ("prefix", &*full)];
        let page: Listing = self.ask_xml(&Ask { method: "GET", query, ..Ask::default() })?;
        let is_known = |one: &str| one.strip_prefix(&full).is_some_and(&known);
        Ok(page.next.is_none() && page.contents.iter().all(|one| is_known(&one.key)))
    }

    /// Every key that begins with `start`, and its length, ascending; keys are those below the
    /// prefix.
    ///
    /// # Errors
    /// Those of the store.
    pub fn list(&self, start: &str) -> Result<Vec<(String, u64)>, BucketError> {
        let full = self.full_key(start);
        let cut = full.len() - start.len();
        let (mut found, mut next) = (Vec::new(), None::<String>);
        loop {
            let mut query = vec![("list-type", "2"), ("prefix", &*full)];
            query.extend(next.as_deref().map(|next| ("continuation-token", next)));
            let page: Listing = self.ask_xml(&Ask { method: "GET", query, ..Ask::default() })?;
            let keys = page.contents.into_iter().filter(|one| one.key.starts_with(&full));
            found.extend(keys.map(|one| (one.key[cut..].to_owned(), one.size)));
            match page.next {
                Some(token) => next = Some(token),
                None => return Ok(found),
            }
        }
    }
}
