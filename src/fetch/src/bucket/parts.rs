//! Objects that are uploaded in parts.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use super::client::tag_of;
use super::request::Ask;
use super::{Bucket, BucketError};

/// Maximum number of listing pages read to abandon uploads, of a thousand each: a store may go on
/// listing some that are already gone.
const PAGES_MAX: usize = 100;

impl Bucket {
    /// Uploads an object in parts, up to `streams` of them concurrently. `read` fills the buffer
    /// with the next bytes; only the last part may be shorter than the buffer. The object appears
    /// only when complete. Uses the memory of one part per stream.
    ///
    /// # Errors
    /// Those of the store and of `read`; the parts are discarded in that case.
    pub fn put_parts<E: From<BucketError> + Send>(
        &self,
        key: &str,
        (part_bytes, streams): (usize, usize),
        read: &mut (dyn FnMut(&mut [u8]) -> Result<usize, E> + Send),
    ) -> Result<(), E> {
        let id = match self.dialect.begin_parts() {
            Some(query) => {
                let ask = Ask { method: "POST", key: Some(key), query, ..Ask::default() };
                self.ask_text(&ask, |text| self.dialect.read_begun(text))?
            }
            // A random id keeps the parts of two uploads of one key apart.
            None => format!("{:016x}", RandomState::new().hash_one(key)),
        };
        let upload = Upload {
            bucket: self,
            key,
            id: &id,
            part_bytes,
            next: Mutex::new(Next { number: 1, is_last: false, read }),
            tags: Mutex::default(),
        };
        let put = upload.send(streams);
        if put.is_err() {
            // Parts that cannot be discarded now are discarded by `abandon_parts` later.
            let _ = self.abandon(key, &id);
        }
        put
    }

    fn abandon(&self, key: &str, upload_id: &str) -> Result<(), BucketError> {
        if let Some(query) = self.dialect.abandon_parts(upload_id) {
            self.ask(&Ask { method: "DELETE", key: Some(key), query, ..Ask::default() })?;
        }
        Ok(())
    }

    /// Discards the parts of interrupted uploads to keys that begin with `start`; returns the
    /// number of uploads.
    ///
    /// # Errors
    /// Those of the store.
    pub fn abandon_parts(&self, start: &str) -> Result<u64, BucketError> {
        let full = self.full_key(start);
        let cut = full.len() - start.len();
        let mut count = 0;
        for _ in 0..PAGES_MAX {
            let Some(query) = self.dialect.list_uploads(&full) else { break };
            let ask = Ask { method: "GET", query, ..Ask::default() };
            let page = self.ask_text(&ask, |text| self.dialect.read_uploads(text))?;
            let mut is_over = true;
            for (key, upload_id) in page {
                if key.starts_with(&full) {
                    self.abandon(&key[cut..], &upload_id)?;
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

/// A multipart upload in progress.
struct Upload<'a, E> {
    bucket: &'a Bucket,
    key: &'a str,
    id: &'a str,
    part_bytes: usize,
    next: Mutex<Next<'a, E>>,
    /// The store's tags of the parts uploaded so far, by part number.
    tags: Mutex<BTreeMap<usize, String>>,
}

/// The next part to read.
struct Next<'a, E> {
    number: usize,
    /// Whether there is none.
    is_last: bool,
    read: &'a mut (dyn FnMut(&mut [u8]) -> Result<usize, E> + Send),
}

impl<E: From<BucketError> + Send> Upload<'_, E> {
    fn send(&self, streams: usize) -> Result<(), E> {
        std::thread::scope(|scope| {
            let others: Vec<_> =
                (1..streams).map(|_| scope.spawn(|| self.send_in_turn())).collect();
            let own = self.send_in_turn();
            let joined = others.into_iter().map(|thread| thread.join().expect("it does not panic"));
            joined.fold(own, Result::and)
        })?;
        self.complete()
    }

    /// Sends part after part until none is left or one has failed.
    fn send_in_turn(&self) -> Result<(), E> {
        let mut buffer = Vec::new();
        while let Some((number, length)) = self.read_next(&mut buffer)? {
            let sent = self.send_part(number, &buffer[..length]);
            self.next.lock().is_last |= sent.is_err();
            self.tags.lock().insert(number, sent?);
        }
        Ok(())
    }

    /// Reads the next part into the buffer; returns its number and length.
    fn read_next(&self, buffer: &mut Vec<u8>) -> Result<Option<(usize, usize)>, E> {
        let mut next = self.next.lock();
        if next.is_last {
            return Ok(None);
        }
        buffer.resize(self.part_bytes, 0);
        let read = (next.read)(buffer);
        next.is_last = !matches!(read, Ok(length) if length == self.part_bytes);
        let (number, length) = (next.number, read?);
        next.number += 1;
        // An empty object still has one part.
        Ok((length > 0 || number == 1).then_some((number, length)))
    }

    fn send_part(&self, number: usize, body: &[u8]) -> Result<String, BucketError> {
        let query = self.bucket.dialect.part(self.id, number);
        let ask = Ask { method: "PUT", key: Some(self.key), query, body, ..Ask::default() };
        Ok(tag_of(&self.bucket.ask_done(&ask)?))
    }

    fn complete(&self) -> Result<(), E> {
        let dialect = &self.bucket.dialect;
        let (method, query, body) = dialect.end_parts(self.id, &self.tags.lock());
        let (key, body) = (Some(self.key), body.as_bytes());
        let ask = Ask { method, key, query, body, ..Ask::default() };
        match self.bucket.ask_text(&ask, |text| dialect.read_ended(text)) {
            // An earlier try succeeded, but its response was lost.
            Err(error)
                if error.code() == "NoSuchUpload" && self.bucket.version(self.key)?.is_some() =>
            {
                Ok(())
            }
            done => Ok(done?),
        }
    }
}
