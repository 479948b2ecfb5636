//! Reads ZIP containers within limits.
//!
//! ```text
//! bytes -> directory (entries bounded) -> part by name -> inflate (counted) -> buffered reader
//! ```
//! The declared size of an entry is not trusted: bytes are counted as they are inflated, against
//! the budget of the upload and relative to the compressed size. Only requested parts are inflated,
//! and none is held in memory as a whole unless a reader collects it.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use crate::ExtractError;
use crate::budget::Budget;

/// Signatures of a directory entry and of the ZIP64 end of central directory.
const ENTRY_MARK: &[u8; 4] = b"PK\x01\x02";
const WIDE_END_MARK: &[u8; 4] = b"PK\x06\x06";
/// Maximum entries per container. Presentations and books with thousands of parts exist.
const ENTRIES_MAX: usize = 10_000;
/// Maximum compression ratio. Deflate can reach 1032; table markup reaches about 60.
const RATIO_MAX: usize = 200;
/// Output size below which the ratio is not checked.
const RATIO_FREE_BYTES: usize = 8 << 20;
/// Maximum bytes of one element or run of text.
const TOKEN_BYTES_MAX: usize = 16 << 20;
/// Maximum bytes of a part held in memory as a whole.
const PART_BYTES_MAX: usize = 32 << 20;
/// Bytes inflated at a time.
const CHUNK_BYTES: usize = 32 << 10;

/// A ZIP container.
#[derive(Debug)]
pub(super) struct Package<'a> {
    bytes: &'a [u8],
    budget: &'a Budget,
    format: &'static str,
    /// The location of each part, by lowercase name.
    entries: BTreeMap<String, Entry>,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    start: usize,
    length: usize,
    is_deflated: bool,
    is_readable: bool,
    is_encrypted: bool,
}

impl<'a> Package<'a> {
    /// Reads the directory of a container; `format` is its name in errors.
    pub(super) fn open(
        bytes: &'a [u8],
        format: &'static str,
        budget: &'a Budget,
    ) -> Result<Self, ExtractError> {
        let broken = |problem: &str| ExtractError::Broken { format, problem: problem.to_owned() };
        // The declared entry count is not trusted, because memory would be reserved for it.
        let listed = records(bytes, ENTRY_MARK).count();
        if listed > ENTRIES_MAX {
            return Err(too_many());
        }
        if records(bytes, WIDE_END_MARK).any(|end| wide_count(end) > listed as u64) {
            return Err(broken("it lists fewer parts than it says"));
        }
        let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| {
            broken("its list of parts is missing or invalid; the file may be truncated")
        })?;
        let mut entries = BTreeMap::new();
        for index in 0..archive.len() {
            // An entry that cannot be found is an error only if a reader needs it.
            let Ok(file) = archive.by_index_raw(index) else { continue };
            let (Ok(name), Some(start)) = (file.name(), file.data_start()) else { continue };
            let entry = Entry {
                start: usize::try_from(start).unwrap_or(usize::MAX),
                length: usize::try_from(file.compressed_size()).unwrap_or(usize::MAX),
                is_deflated: file.compression() == CompressionMethod::Deflated,
                is_readable: matches!(
                    file.compression(),
                    CompressionMethod::Deflated | CompressionMethod::Stored
                ),
                is_encrypted: file.encrypted(),
            };
            entries.entry(normalised(&name)).or_insert(entry);
        }
        Ok(Self { bytes, budget, format, entries })
    }

    /// Whether a part of this name exists.
    pub(super) fn has(&self, name: &str) -> bool {
        self.entries.contains_key(&normalised(name))
    }

    /// The names of all parts, lowercase and sorted.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The name of the container in errors.
    pub(super) fn format(&self) -> &'static str {
        self.format
    }

    /// The budget of its upload.
    pub(super) fn budget(&self) -> &'a Budget {
        self.budget
    }

    /// Opens the part with this name, if it exists.
    pub(super) fn part(&self, name: &str) -> Result<Option<Part<'a>>, ExtractError> {
        let Some(entry) = self.entries.get(&normalised(name)) else { return Ok(None) };
        if entry.is_encrypted {
            return Err(ExtractError::Encrypted { format: self.format });
        }
        let end = entry.start.saturating_add(entry.length);
        let data = self.bytes.get(entry.start..end).filter(|_| entry.is_readable);
        let Some(data) = data else {
            let problem = format!("'{name}' cannot be decompressed");
            return Err(ExtractError::Broken { format: self.format, problem });
        };
        let source = match entry.is_deflated {
            true => Source::Deflated(DeflateDecoder::new(data)),
            false => Source::Stored(data),
        };
        let counted =
            Counted { source, consumed: data.len(), produced: 0, token: 0, budget: self.budget };
        Ok(Some(Part {
            reader: BufReader::with_capacity(CHUNK_BYTES, counted),
            budget: self.budget,
            format: self.format,
        }))
    }

    /// Reads the whole part with this name, if it exists.
    pub(super) fn bytes(&self, name: &str) -> Result<Option<Vec<u8>>, ExtractError> {
        self.part(name)?.map(Part::collect).transpose()
    }
}

fn too_many() -> ExtractError {
    ExtractError::BeyondLimit { what: "files in the container", max: ENTRIES_MAX }
}

/// Normalises a part name: names are case-insensitive, and writers differ in slashes.
fn normalised(name: &str) -> String {
    name.trim_start_matches(['/', '\\']).replace('\\', "/").to_ascii_lowercase()
}

/// The bytes from the start of each record with this signature.
fn records<'b>(bytes: &'b [u8], mark: &'static [u8; 4]) -> impl Iterator<Item = &'b [u8]> {
    let starts = bytes.windows(mark.len()).enumerate().filter(move |(_, window)| window == mark);
    starts.map(|(at, _)| &bytes[at..])
}

/// The entry count stated by the ZIP64 end of central directory.
fn wide_count(end: &[u8]) -> u64 {
    let count = end.get(32..40).and_then(|bytes| bytes.try_into().ok());
    count.map_or(u64::MAX, u64::from_le_bytes)
}

/// A part being read.
#[derive(Debug)]
pub(super) struct Part<'a> {
    reader: BufReader<Counted<'a>>,
    budget: &'a Budget,
    format: &'static str,
}

impl<'a> Part<'a> {
    /// The budget it is read against.
    pub(super) fn budget(&self) -> &'a Budget {
        self.budget
    }

    /// The name of its container in errors.
    pub(super) fn format(&self) -> &'static str {
        self.format
    }

    /// Resets the byte count of the current element or run of text.
    pub(super) fn begin_token(&mut self) {
        self.reader.get_mut().token = 0;
    }

    /// Reads to the end.
    pub(super) fn collect(mut self) -> Result<Vec<u8>, ExtractError> {
        let mut bytes = Vec::new();
        loop {
            self.begin_token();
            let start = bytes.len();
            let read = self.reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut bytes);
            if let Err(failure) = read {
                return Err(self.budget.failure(self.format, failure.to_string()));
            }
            if bytes.len() > PART_BYTES_MAX {
                let what = "bytes of one part";
                return Err(ExtractError::BeyondLimit { what, max: PART_BYTES_MAX });
            }
            if bytes.len() == start {
                return Ok(bytes);
            }
        }
    }
}

impl Read for Part<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer)
    }
}

impl BufRead for Part<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.reader.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.reader.consume(amount);
    }
}

#[derive(Debug)]
enum Source<'a> {
    Stored(&'a [u8]),
    Deflated(DeflateDecoder<&'a [u8]>),
}

/// Inflates a part and counts the output.
#[derive(Debug)]
struct Counted<'a> {
    source: Source<'a>,
    consumed: usize,
    produced: usize,
    token: usize,
    budget: &'a Budget,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = match &mut self.source {
            Source::Stored(bytes) => bytes.read(buffer)?,
            Source::Deflated(decoder) => decoder.read(buffer)?,
        };
        self.budget.inflate(read)?;
        self.produced += read;
        self.token += read;
        if self.token > TOKEN_BYTES_MAX {
            return Err(self.budget.exceed("bytes of one element", TOKEN_BYTES_MAX));
        }
        let is_dense =
            self.produced > RATIO_FREE_BYTES && self.produced / RATIO_MAX > self.consumed;
        if is_dense {
            return Err(self.budget.exceed("compression ratio", RATIO_MAX));
        }
        Ok(read)
    }
}
