//! Listings of the keys of objects.

use super::answers::Page;
use super::request::Ask;
use super::{Bucket, BucketError};

impl Bucket {
    /// Whether there is no object below the prefix.
    ///
    /// # Errors
    /// Those of the store.
    pub fn is_empty(&self) -> Result<bool, BucketError> {
        self.holds_only(|_| false)
    }

    /// Whether all objects below the prefix have keys that are `known`: the listing ends at the
    /// first one that is not.
    ///
    /// # Errors
    /// Those of the store.
    pub fn holds_only(&self, known: impl Fn(&str) -> bool) -> Result<bool, BucketError> {
        let full = self.full_key("");
        let is_known = |key: &str| key.strip_prefix(&full).is_some_and(&known);
        let mut next = None;
        loop {
            let page = self.page(&full, next.as_deref())?;
            if !page.objects.iter().all(|(key, _)| is_known(key)) {
                return Ok(false);
            }
            match page.next {
                Some(token) => next = Some(token),
                None => return Ok(true),
            }
        }
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
            let page = self.page(&full, next.as_deref())?;
            let objects = page.objects.into_iter().filter(|(key, _)| key.starts_with(&full));
            found.extend(objects.map(|(key, bytes)| (key[cut..].to_owned(), bytes)));
            match page.next {
                Some(token) => next = Some(token),
                None => return Ok(found),
            }
        }
    }

    fn page(&self, full: &str, next: Option<&str>) -> Result<Page, BucketError> {
        let query = self.dialect.list(full, next);
        let ask = Ask { method: "GET", query, ..Ask::default() };
        let page = self.ask_text(&ask, |text| self.dialect.read_page(text))?;
        // Without an end it would be read again for ever.
        match page.next.is_some() && page.next.as_deref() == next {
            true => Err(self.unreachable(&ask, &"it gives the same page again")),
            false => Ok(page),
        }
    }
}
