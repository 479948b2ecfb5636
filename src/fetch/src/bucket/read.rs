//! Reading objects, in whole or in part.

use std::io::Read;
use std::ops::Range;

use ureq::http::header;

use super::limits::RETRIES;
use super::request::Ask;
use super::{Bucket, BucketError};

const BUFFER_BYTES: usize = 256 << 10;

impl Bucket {
    /// Reads a small object; `None` if there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, BucketError> {
        let mut bytes = Vec::new();
        let length = self.read_range(key, 0..u64::MAX, true, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok::<_, BucketError>(())
        })?;
        Ok(length.map(|_| bytes))
    }

    /// Returns the length of an object in bytes; `None` if there is none.
    ///
    /// # Errors
    /// Those of the store.
    pub fn len(&self, key: &str) -> Result<Option<u64>, BucketError> {
        let ask = Ask { method: "HEAD", key: Some(key), is_small: true, ..Ask::default() };
        let answer = self.ask(&ask)?;
        if !answer.status().is_success() {
            return Ok(None);
        }
        let length = answer.headers().get(header::CONTENT_LENGTH);
        let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
        length.map(Some).ok_or_else(|| self.unreachable(&ask, &"it reports no length"))
    }

    /// Passes an object to `take` in pieces, resuming after a lost connection. Returns its length,
    /// or `None` if there is none.
    ///
    /// # Errors
    /// Those of the store and of `take`.
    pub fn read<E: From<BucketError>>(
        &self,
        key: &str,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        self.read_part(key, 0..u64::MAX, take)
    }

    /// Reads like [`Self::read`], but only a range that begins inside the object. Returns the end
    /// offset of what was read.
    ///
    /// # Errors
    /// Those of the store and of `take`.
    pub fn read_part<E: From<BucketError>>(
        &self,
        key: &str,
        range: Range<u64>,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        self.read_range(key, range, false, take)
    }

    fn read_range<E: From<BucketError>>(
        &self,
        key: &str,
        range: Range<u64>,
        is_small: bool,
        take: &mut dyn FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<Option<u64>, E> {
        let (mut at, mut end, mut tries) = (range.start, None, 0);
        let mut buffer = vec![0; BUFFER_BYTES];
        loop {
            let headers = match (at, range.end) {
                (0, u64::MAX) => Vec::new(),
                (_, u64::MAX) => vec![("range", format!("bytes={at}-"))],
                (_, end) => vec![("range", format!("bytes={at}-{}", end - 1))],
            };
            let is_part = !headers.is_empty();
            let (method, key) = ("GET", Some(key));
            let ask = Ask { method, key, headers, is_small, ..Ask::default() };
            let answer = self.ask(&ask)?;
            match answer.status().as_u16() {
                404 => return Ok(self.absent(&ask, answer).map(|()| None)?),
                200 if !is_part => {}
                206 if is_part => {}
                _ => return Err(self.refused(&ask, answer).into()),
            }
            end = end.or(answer.body().content_length().map(|length| at + length));
            let mut body = answer.into_body().into_with_config().limit(u64::MAX).reader();
            let lost = loop {
                match body.read(&mut buffer) {
                    Ok(0) if end.is_none_or(|end| at >= end) => return Ok(Some(at)),
                    Ok(0) => break "the response ended early".to_owned(),
                    Ok(count) => {
                        at += count as u64;
                        tries = 0;
                        take(&buffer[..count])?;
                    }
                    Err(error) => break error.to_string(),
                }
            };
            if tries == RETRIES {
                return Err(self.unreachable(&ask, &lost).into());
            }
            self.wait(tries, None)?;
            tries += 1;
        }
    }
}
