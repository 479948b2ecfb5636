//! Listing objects.

use super::answers::Page;
use super::request::Ask;
use super::{Bucket, BucketError};

impl Bucket {
    /// Whether no object exists below the prefix.
    ///
    /// # Errors
    /// Those of the store.
    pub fn is_empty(&self) -> Result<bool, BucketError> {
        self.holds_only(|_| false)
    }

    /// Whether the keys of all objects below the prefix satisfy `known`. Stops listing at the first
    /// one that does not.
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

    /// Lists the keys that begin with `start`, with the lengths of their objects, in ascending
    /// order. Keys are relative to the prefix.
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
        // A page that leads to itself would otherwise be read forever.
        match page.next.is_some() && page.next.as_deref() == next {
            true => Err(self.unreachable(&ask, &"it returned the same page twice")),
            false => Ok(page),
        }
    }
}
