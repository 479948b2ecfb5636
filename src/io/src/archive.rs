//! Structured data read in place: rkyv archives, validated before they are read.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use bytes::Bytes;
use rkyv::Portable;
use rkyv::api::high::{HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;

use crate::IoError;

/// Alignment of rkyv's own buffers; no archived type of ours needs more (asserted at compile time).
const ALIGNMENT: usize = 16;

/// Archives `value`, with the root at the end. A section holds exactly these bytes.
///
/// # Panics
/// If `value` cannot be archived, which does not happen for plain data types.
pub fn encode<T>(value: &T) -> AlignedVec
where
    T: for<'a> rkyv::Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, rancor::Error>>,
{
    rkyv::to_bytes::<rancor::Error>(value).expect("plain data can be archived")
}

/// An archived `T`, which keeps its bytes, and so the underlying mapping, alive. The whole archive
/// is validated when a file is opened, and each part again when it is read: a page of the file may
/// become unreadable in the meantime, and a pointer in it could then lead anywhere.
pub struct Archive<T> {
    bytes: Bytes,
    _archived: PhantomData<fn() -> T>,
}

impl<T> Archive<T>
where
    T: rkyv::Archive,
    T::Archived: Portable + for<'a> CheckBytes<HighValidator<'a, rancor::Error>>,
{
    /// Wraps one complete encoded value. Bytes that are not 16-byte aligned are copied; sections of
    /// a mapping start on 4 KiB boundaries and are not.
    pub fn new(bytes: Bytes) -> Self {
        const { assert!(align_of::<T::Archived>() <= ALIGNMENT) };
        let is_aligned = bytes.as_ptr().addr().is_multiple_of(ALIGNMENT);
        let bytes = if is_aligned { bytes } else { copy_aligned(&bytes) };
        Self { bytes, _archived: PhantomData }
    }

    /// Validates the whole archive and returns its root; `path` is for error messages.
    ///
    /// # Errors
    /// [`IoError::CorruptFile`] if the bytes are not a valid archive of `T`.
    pub fn check(&self, path: &Path) -> Result<&T::Archived, IoError> {
        rkyv::access::<T::Archived, rancor::Error>(&self.bytes).map_err(|reason| {
            let problem = format!("not an archived {}: {reason}", std::any::type_name::<T>());
            IoError::CorruptFile { path: path.to_path_buf(), problem }
        })
    }
}

impl<T> Archive<T> {
    /// Returns the offset of a part that was reached through [`Self::check`].
    pub fn position_of<P>(&self, part: *const P) -> usize {
        part.addr() - self.bytes.as_ptr().addr()
    }

    /// Returns the part at an offset after validating it and everything it points to; `None` if it
    /// is no longer valid.
    pub fn part<P>(&self, position: usize) -> Option<&P>
    where
        P: Portable + for<'a> CheckBytes<HighValidator<'a, rancor::Error>>,
    {
        rkyv::api::high::access_pos::<P, rancor::Error>(&self.bytes, position).ok()
    }
}

impl<T> fmt::Debug for Archive<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = std::any::type_name::<T>();
        f.debug_struct("Archive").field("of", &name).field("bytes", &self.bytes.len()).finish()
    }
}

fn copy_aligned(bytes: &[u8]) -> Bytes {
    let mut copy = AlignedVec::<ALIGNMENT>::with_capacity(bytes.len());
    copy.extend_from_slice(bytes);
    Bytes::from_owner(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(rkyv::Archive, rkyv::Serialize)]
    struct Table {
        names: Vec<String>,
        offsets: Vec<u64>,
        pairs: Vec<(String, u32)>,
    }

    fn table() -> Table {
        let names = vec!["a name longer than what is kept inline".into(), "b".into()];
        Table { names, offsets: (0..100).collect(), pairs: vec![("inner".into(), 7)] }
    }

    fn assert_is_table(archive: &Archive<Table>) {
        let found = archive.check(Path::new("s")).unwrap();
        assert_eq!(found.names[0].as_str(), "a name longer than what is kept inline");
        assert_eq!(found.offsets[99].to_native(), 99);
        assert_eq!((found.pairs[0].0.as_str(), found.pairs[0].1.to_native()), ("inner", 7));
        let name = archive.position_of(&raw const found.names[0]);
        let name: &rkyv::string::ArchivedString = archive.part(name).unwrap();
        assert_eq!(name.as_str(), "a name longer than what is kept inline");
    }

    #[test]
    fn bytes_of_any_alignment_are_read() {
        let encoded = encode(&table());
        for shift in 0..ALIGNMENT {
            let mut shifted = AlignedVec::<ALIGNMENT>::new();
            shifted.extend_from_slice(&vec![0; shift]);
            shifted.extend_from_slice(&encoded);
            let bytes = Bytes::from_owner(shifted).slice(shift..);
            let address = bytes.as_ptr();
            let archive = Archive::<Table>::new(bytes);
            assert_eq!(archive.bytes.as_ptr() == address, shift == 0, "copied only if needed");
            assert_is_table(&archive);
            let moved = Box::new(archive);
            assert_is_table(&moved);
        }
    }

    /// Method: truncate and overwrite; each result is either refused or can be read, as a whole and
    /// in parts, without leaving the bytes.
    #[test]
    fn damaged_bytes_are_refused() {
        let encoded = encode(&table());
        let good = Archive::<Table>::new(Bytes::copy_from_slice(&encoded));
        let whole = good.check(Path::new("s")).unwrap();
        let [first, second] = [&whole.names[0], &whole.names[1]]
            .map(|name| good.position_of(std::ptr::from_ref(name)));
        let read = |archive: &Archive<Table>| {
            for position in [first, second] {
                let name = archive.part::<rkyv::string::ArchivedString>(position);
                assert!(name.is_none_or(|name| name.as_str().len() <= encoded.len()));
            }
        };
        for len in 0..encoded.len() {
            let archive = Archive::<Table>::new(Bytes::copy_from_slice(&encoded[..len]));
            if let Ok(found) = archive.check(Path::new("s")) {
                let _ = found.names.len();
            }
            read(&archive);
        }
        let mut refused = 0;
        for at in 0..encoded.len() {
            let mut bad = encoded.to_vec();
            bad[at] ^= 0xff;
            let archive = Archive::<Table>::new(bad.into());
            if let Err(error) = archive.check(Path::new("seg")) {
                assert!(error.to_string().contains("seg"), "{error}");
                refused += 1;
            }
            read(&archive);
        }
        assert!(refused > 20, "{refused}");
        assert!(Archive::<Table>::new(Bytes::new()).check(Path::new("s")).is_err());
    }

    /// Goal: data of tenants does not get into logs.
    #[test]
    fn what_is_printed_is_the_type_and_the_length() {
        let encoded = encode(&table());
        let shown = format!("{:?}", Archive::<Table>::new(Bytes::copy_from_slice(&encoded)));
        assert!(shown.contains("Table") && shown.contains(&encoded.len().to_string()), "{shown}");
        assert!(!shown.contains("inner"), "{shown}");
    }
}
