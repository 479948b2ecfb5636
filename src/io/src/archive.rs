//! Structured data read in place: rkyv, checked once when it is opened.

use std::fmt;
use std::marker::PhantomData;
use std::path::Path;

use bytes::Bytes;
use rkyv::api::high::{HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::util::AlignedVec;

use crate::IoError;

/// Alignment of rkyv's own buffers; no archived type of ours needs more (asserted on open).
const ALIGNMENT: usize = 16;

/// The archived form of `value`, root at the end. A section holds exactly these bytes.
///
/// # Panics
/// If `value` refuses to be archived, which no type of plain data does.
pub fn encode<T>(value: &T) -> AlignedVec
where
    T: for<'a> rkyv::Serialize<HighSerializer<AlignedVec, ArenaHandle<'a>, rancor::Error>>,
{
    rkyv::to_bytes::<rancor::Error>(value).expect("plain data can be archived")
}

/// An archived `T`: holds its bytes (and so the mapping beneath them), which were checked in full
/// when it was opened; [`Archive::get`] costs nothing.
pub struct Archive<T> {
    bytes: Bytes,
    _archived: PhantomData<fn() -> T>,
}

impl<T> Archive<T>
where
    T: rkyv::Archive,
    T::Archived: for<'a> CheckBytes<HighValidator<'a, rancor::Error>>,
{
    /// Checks `bytes`, which must be one whole encoded value and should be verified against their
    /// checksum before; `path` is for messages. Bytes that do not begin on a multiple of 16 are
    /// copied; sections begin on 4 KiB boundaries of a mapping and are not.
    ///
    /// # Errors
    /// [`IoError::CorruptFile`] if the bytes are not a valid archive of `T`.
    pub fn open(bytes: Bytes, path: &Path) -> Result<Self, IoError> {
        const { assert!(align_of::<T::Archived>() <= ALIGNMENT) };
        let is_aligned = bytes.as_ptr().addr().is_multiple_of(ALIGNMENT);
        let bytes = if is_aligned { bytes } else { copy_aligned(&bytes) };
        match rkyv::access::<T::Archived, rancor::Error>(&bytes) {
            Ok(_) => Ok(Self { bytes, _archived: PhantomData }),
            Err(reason) => Err(IoError::CorruptFile {
                path: path.to_path_buf(),
                problem: format!("not an archived {}: {reason}", std::any::type_name::<T>()),
            }),
        }
    }

    /// The value in its archived form.
    pub fn get(&self) -> &T::Archived {
        // SAFETY: `open`, the only constructor, ran the checked access on these very bytes with
        // this very type, and they cannot have changed or moved since: `Bytes` is immutable, its
        // memory stays in place when the handle moves, and a mapping beneath it is that of a
        // published file (see mmap.rs).
        #[allow(unsafe_code)]
        unsafe {
            rkyv::access_unchecked::<T::Archived>(&self.bytes)
        }
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
        let found = archive.get();
        assert_eq!(found.names[0].as_str(), "a name longer than what is kept inline");
        assert_eq!(found.offsets[99].to_native(), 99);
        assert_eq!((found.pairs[0].0.as_str(), found.pairs[0].1.to_native()), ("inner", 7));
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
            let archive = Archive::<Table>::open(bytes, Path::new("s")).unwrap();
            assert_eq!(archive.bytes.as_ptr() == address, shift == 0, "copied only if needed");
            assert_is_table(&archive);
            let moved = Box::new(archive);
            assert_is_table(&moved);
        }
    }

    /// Method: cut and overwrite; each result is refused or readable without leaving the bytes
    /// (miri and the sanitizers check this), and a good number are refused.
    #[test]
    fn damaged_bytes_are_refused() {
        let encoded = encode(&table());
        for len in 0..encoded.len() {
            let cut = Bytes::copy_from_slice(&encoded[..len]);
            if let Ok(archive) = Archive::<Table>::open(cut, Path::new("s")) {
                let _ = archive.get().names.len();
            }
        }
        let mut refused = 0;
        for at in 0..encoded.len() {
            let mut bad = encoded.to_vec();
            bad[at] ^= 0xff;
            let error = Archive::<Table>::open(bad.into(), Path::new("seg")).err();
            if let Some(error) = error {
                assert!(error.to_string().contains("seg"), "{error}");
                refused += 1;
            }
        }
        assert!(refused > 20, "{refused}");
        assert!(Archive::<Table>::open(Bytes::new(), Path::new("s")).is_err());
    }
}
