//! Objects that are sent in parts.

use super::answers::{Begun, Completed, Uploads};
use super::client::{Ask, tag_of};
use super::{Bucket, BucketError};

/// Pages of uploads that are thrown away at once, of a thousand each: a store may go on listing
/// some.
const PAGES_MAX: usize = 100;

impl Bucket {
    /// Writes an object in parts: `read` fills the buffer with the next bytes, less than it holds
    /// at the end alone. Nothing is there before all of it is.
    ///
    /// # Errors
    /// Those of the store and of `read`; the parts are thrown away then.
    pub fn put_parts<E: From<BucketError>>(
        &self,
        key: &str,
        part_bytes: usize,
        read: &mut dyn FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let query = vec![("uploads", "")];
        let begun: Begun =
            self.ask_xml(&Ask { method: "POST", key: Some(key), query, ..Ask::default() })?;
        let put = self.parts(key, &begun.upload_id, part_bytes, read);
        if put.is_err() {
            // What could not be thrown away now is when the place is next written to.
            let _ = self.abandon(key, &begun.upload_id);
        }
        put
    }

    fn parts<E: From<BucketError>>(
        &self,
        key: &str,
        upload_id: &str,
        part_bytes: usize,
        read: &mut dyn FnMut(&mut [u8]) -> Result<usize, E>,
    ) -> Result<(), E> {
        let mut buffer = vec![0; part_bytes];
        let mut parts = String::from("<CompleteMultipartUpload>");
        for number in 1.. {
            let length = read(&mut buffer)?;
            if length == 0 && number > 1 {
                break;
            }
            let number = number.to_string();
            let query = vec![("partNumber", &*number), ("uploadId", upload_id)];
            let body = &buffer[..length];
            let ask = Ask { method: "PUT", key: Some(key), query, body, ..Ask::default() };
            let answer = self.ask_done(&ask)?;
            let tag = quick_xml::escape::escape(tag_of(&answer)).into_owned();
            parts += &format!("<Part><PartNumber>{number}</PartNumber><ETag>{tag}</ETag></Part>");
            if length < part_bytes {
                break;
            }
        }
        parts.push_str("</CompleteMultipartUpload>");
        let (query, body) = (vec![("uploadId", upload_id)], parts.as_bytes());
        let ask = Ask { method: "POST", key: Some(key), query, body, ..Ask::default() };
        match self.ask_xml::<Completed>(&ask) {
            // The answer to an earlier try was lost.
            Err(error) if error.code() == "NoSuchUpload" && self.tag(key)?.is_some() => Ok(()),
            done => Ok(done.map(|_| ())?),
        }
    }

    fn abandon(&self, key: &str, upload_id: &str) -> Result<(), BucketError> {
        let query = vec![("uploadId", upload_id)];
        self.ask(&Ask { method: "DELETE", key: Some(key), query, ..Ask::default() })?;
        Ok(())
    }

    /// Throws away the parts of uploads that were cut off, of keys that begin with `start`; returns
    /// the number of uploads.
    ///
    /// # Errors
    /// Those of the store.
    pub fn abandon_parts(&self, start: &str) -> Result<u64, BucketError> {
        let full = self.full_key(start);
        let cut = full.len() - start.len();
        let mut count = 0;
        for _ in 0..PAGES_MAX {
            let query = vec![("uploads", ""), ("prefix", &*full)];
            let page: Uploads = self.ask_xml(&Ask { method: "GET", query, ..Ask::default() })?;
            let mut is_over = true;
            for upload in page.uploads {
                if upload.key.starts_with(&full) {
                    self.abandon(&upload.key[cut..], &upload.upload_id)?;
                    (count, is_over) = (count + 1, false);
                }
            }
            if is_over {
                break;
            }
        }
        Ok(count)
    }
}
