//! The bundle: the files of one index as a single byte sequence. Its format is drawn in the crate's
//! `lib.rs`.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::ops::Range;

use tantivy::HasLen;
use tantivy::directory::{FileSlice, OwnedBytes};

use crate::TextError;

const MAGIC: &[u8; 8] = b"LDSTTEXT";

/// Version of both format and analysis, since terms of another analysis are not comparable with
/// those of a query. To be changed with either.
pub(super) const VERSION: u32 = 1;

const HEADER_BYTES: usize = 24;
/// Alignment of files in bytes.
const ALIGNMENT: usize = 8;
/// Maximum number of files in a bundle; an index of one segment has seven.
const FILES_MAX: usize = 64;
/// Bytes read from disk at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Storage of a bundle, read range by range, so that only what an index needs is read.
pub trait BundleBytes: fmt::Debug + Send + Sync {
    /// Size of the bundle in bytes.
    fn byte_count(&self) -> usize;

    /// Reads a range, which must be within the bundle.
    ///
    /// # Errors
    /// If the bytes are not those that were written.
    fn read(&self, range: Range<usize>) -> io::Result<OwnedBytes>;
}

impl BundleBytes for OwnedBytes {
    fn byte_count(&self) -> usize {
        self.len()
    }

    fn read(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        Ok(self.slice(range))
    }
}

/// Table of contents of a bundle.
#[derive(Debug, PartialEq)]
pub(super) struct Contents {
    /// Number of rows of the index.
    pub rows: u32,
    /// Byte range of each file in the bundle, by name.
    pub files: BTreeMap<String, Range<usize>>,
}

/// An index as a bundle, with its files still in their original location.
pub struct TextBundle {
    /// Everything before the first file, without padding.
    head: Vec<u8>,
    files: Vec<FileSlice>,
}

impl TextBundle {
    /// Assembles files in the order of their names.
    pub(super) fn new(rows: u32, files: BTreeMap<String, FileSlice>) -> Self {
        assert!(files.len() <= FILES_MAX, "an index has few files");
        let table_bytes: usize = files.keys().map(|name| 2 + name.len() + 16).sum();
        let mut at = (HEADER_BYTES + table_bytes).next_multiple_of(ALIGNMENT);
        let mut head = Vec::with_capacity(at);
        head.extend_from_slice(MAGIC);
        for field in [VERSION, rows, files.len() as u32, table_bytes as u32] {
            head.extend_from_slice(&field.to_le_bytes());
        }
        for (name, data) in &files {
            let name_bytes = u16::try_from(name.len()).expect("names of index files are short");
            head.extend_from_slice(&name_bytes.to_le_bytes());
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(&(at as u64).to_le_bytes());
            head.extend_from_slice(&(data.len() as u64).to_le_bytes());
            at += data.len().next_multiple_of(ALIGNMENT);
        }
        Self { head, files: files.into_values().collect() }
    }

    /// Writes the whole bundle, piece by piece.
    ///
    /// # Errors
    /// Errors of `out`, or of reading files from disk.
    pub fn write_to(&self, out: &mut dyn Write) -> io::Result<()> {
        let mut written = self.head.len();
        out.write_all(&self.head)?;
        for file in &self.files {
            let padding = written.next_multiple_of(ALIGNMENT) - written;
            out.write_all(&[0; ALIGNMENT][..padding])?;
            for start in (0..file.len()).step_by(PIECE_BYTES) {
                let end = file.len().min(start + PIECE_BYTES);
                out.write_all(&file.read_bytes_slice(start..end)?)?;
            }
            written += padding + file.len();
        }
        Ok(())
    }

    /// Returns the whole bundle in memory.
    ///
    /// # Errors
    /// Those of [`Self::write_to`].
    pub fn to_vec(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write_to(&mut bytes)?;
        Ok(bytes)
    }
}

impl fmt::Debug for TextBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TextBundle").field("files", &self.files.len()).finish_non_exhaustive()
    }
}

/// Reads the table of contents. Checks magic and version, and that every file is within the bundle.
pub(super) fn read(bundle: &dyn BundleBytes) -> Result<Contents, TextError> {
    let bytes = bundle.byte_count();
    let read = |range| bundle.read(range).map_err(TextError::damaged);
    let header = read(0..HEADER_BYTES.min(bytes))?;
    let mut rest = header.as_slice();
    if take(&mut rest, MAGIC.len())? != MAGIC {
        return Err(TextError::damaged("it does not begin with the magic bytes"));
    }
    let version = u32_of(&mut rest)?;
    if version != VERSION {
        return Err(TextError::Version { found: version, expected: VERSION });
    }
    let rows = u32_of(&mut rest)?;
    let count = u32_of(&mut rest)? as usize;
    let table_bytes = u32_of(&mut rest)? as usize;
    if table_bytes > bytes - HEADER_BYTES {
        return Err(TextError::damaged("it ends too early"));
    }
    let table = read(HEADER_BYTES..HEADER_BYTES + table_bytes)?;
    let mut table = table.as_slice();
    if count > FILES_MAX || (count == 0) != (rows == 0) {
        return Err(TextError::damaged(format!("{count} files for {rows} rows")));
    }
    let mut files = BTreeMap::new();
    for _ in 0..count {
        let name_bytes = take(&mut table, 2)?;
        let name_bytes = u16::from_le_bytes([name_bytes[0], name_bytes[1]]);
        let name = std::str::from_utf8(take(&mut table, usize::from(name_bytes))?)
            .map_err(|_| TextError::damaged("a file name is not UTF-8"))?;
        let (start, length) = (u64_of(&mut table)?, u64_of(&mut table)?);
        let end = start.checked_add(length).filter(|end| *end <= bytes as u64);
        let Some(end) = end.filter(|_| start >= (HEADER_BYTES + table_bytes) as u64) else {
            let problem = format!("file {name} at {start}+{length} is outside of {bytes} bytes");
            return Err(TextError::damaged(problem));
        };
        files.insert(name.to_owned(), start as usize..end as usize);
    }
    if !table.is_empty() || files.len() != count {
        return Err(TextError::damaged("the table of files does not add up"));
    }
    Ok(Contents { rows, files })
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], TextError> {
    let split = rest.split_at_checked(length);
    let (head, tail) = split.ok_or_else(|| TextError::damaged("it ends too early"))?;
    *rest = tail;
    Ok(head)
}

fn u32_of(rest: &mut &[u8]) -> Result<u32, TextError> {
    let bytes = take(rest, 4)?;
    Ok(u32::from_le_bytes(bytes.try_into().expect("four bytes were taken")))
}

fn u64_of(rest: &mut &[u8]) -> Result<u64, TextError> {
    let bytes = take(rest, 8)?;
    Ok(u64::from_le_bytes(bytes.try_into().expect("eight bytes were taken")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bundle: &[u8]) -> Result<Contents, TextError> {
        super::read(&OwnedBytes::new(bundle.to_vec()))
    }

    fn sample() -> Vec<u8> {
        let files = [("a.idx", vec![1, 2, 3]), ("meta.json", vec![4; 9]), ("z", vec![])];
        let file = |(name, data): (&str, Vec<u8>)| (name.to_owned(), FileSlice::from(data));
        TextBundle::new(5, files.into_iter().map(file).collect()).to_vec().unwrap()
    }

    #[test]
    fn files_come_back() {
        let bundle = sample();
        let contents = read(&bundle).unwrap();
        assert_eq!(contents.rows, 5);
        assert_eq!(bundle[contents.files["a.idx"].clone()], [1, 2, 3]);
        assert_eq!(bundle[contents.files["meta.json"].clone()], [4; 9]);
        assert!(contents.files["z"].is_empty());
        assert!(contents.files.values().all(|range| range.start % ALIGNMENT == 0));
        let empty = TextBundle::new(0, BTreeMap::new()).to_vec().unwrap();
        assert!(read(&empty).unwrap().files.is_empty());
    }

    #[test]
    fn no_damage_to_the_table_panics() {
        let bundle = sample();
        for length in 0..bundle.len() {
            assert!(read(&bundle[..length]).is_err(), "cut to {length}");
        }
        for at in 0..bundle.len() {
            for value in [0, 1, 0x7F, 0xFF] {
                let mut damaged = bundle.clone();
                damaged[at] = value;
                if let Ok(contents) = read(&damaged) {
                    assert!(contents.files.values().all(|range| range.end <= bundle.len()));
                }
            }
        }
    }

    #[test]
    fn another_version_is_named() {
        let mut bundle = sample();
        bundle[8] = 9;
        let error = read(&bundle).unwrap_err();
        assert!(matches!(error, TextError::Version { found: 9, expected: VERSION }));
    }
}
