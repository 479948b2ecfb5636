//! Parses and checks an archive line by line and yields its sources one at a time.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lodestone_storage::segment::NewRow;
use lodestone_types::{SourceId, SourceKind, SubTenantId, TenantMode, limits};
use sha2::{Digest, Sha256};

use super::ArchiveError;
use super::format::{End, FORMAT, Head, LINE_BYTES_MAX, Member, SourceLine};
use super::rules::{check_source, names_of, new_row};
use crate::EngineError;

/// Maximum bytes of the lines of one source, which is held in memory.
const SOURCE_BYTES_MAX: u64 = 1 << 30;
/// Maximum number of sub-tenants that an archive may list.
const SUB_TENANTS_MAX: usize = 1 << 20;

/// A checked source of an archive.
#[derive(Debug)]
pub struct ArchivedSource {
    /// Its record, as in the archive.
    pub line: SourceLine,
    /// Its stored sub-tenant; for a memory, the internal one that holds memories.
    pub sub_tenant: SubTenantId,
    /// Its id.
    pub id: SourceId,
    /// Its kind.
    pub kind: SourceKind,
    /// Its original, if there is one.
    pub original: Option<Vec<u8>>,
    /// Its chunks.
    pub rows: Vec<NewRow>,
    /// Bytes that its metadata takes in the columns of a segment under construction.
    pub column_bytes: u64,
}

/// Totals over a checked archive.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The header line.
    pub head: Head,
    /// The mode of the tenant.
    pub mode: TenantMode,
    /// All sub-tenants except `default`.
    pub sub_tenants: Vec<SubTenantId>,
    /// The trailer line.
    pub end: End,
    /// Memory needed for the largest source: bytes of its lines plus of its columns under
    /// construction.
    pub source_bytes_max: u64,
    /// The highest sequence of any source.
    pub sequence_max: u64,
}

/// Parses only the header line.
///
/// # Errors
/// See [`read`].
pub fn read_head(bytes: &[u8]) -> Result<(Head, TenantMode), ArchiveError> {
    let mut reader = Reader::new(bytes);
    reader.head()
}

/// Reads and checks an archive to its end, and passes each source to `see`.
///
/// # Errors
/// [`ArchiveError::Refused`], which names the line; [`ArchiveError::Cut`]; errors of `see`.
pub fn read(
    bytes: &[u8],
    see: &mut dyn FnMut(ArchivedSource) -> Result<(), EngineError>,
) -> Result<Checked, EngineError> {
    let mut reader = Reader::new(bytes);
    let (head, mode) = reader.head()?;
    let mut checked = Checked {
        head,
        mode,
        sub_tenants: Vec::new(),
        end: End { sources: 0, chunks: 0, original_bytes: 0, sha256: String::new() },
        source_bytes_max: 0,
        sequence_max: 0,
    };
    let (mut seen, mut sequences) = (HashSet::new(), HashSet::new());
    loop {
        let begins_at = reader.at;
        let sha256 = reader.hash.clone();
        match reader.next()? {
            Member::SubTenant { sub_tenant_id } => {
                let name = SubTenantId::parse(&sub_tenant_id);
                let name = name.map_err(|error| reader.refused("sub_tenant", &error))?;
                if checked.sub_tenants.len() >= SUB_TENANTS_MAX || checked.end.sources > 0 {
                    return Err(reader
                        .refused(
                            "sub_tenant",
                            &"too many sub-tenants, or one after the first source",
                        )
                        .into());
                }
                checked.sub_tenants.push(name);
            }
            Member::Source(line) => {
                let source = reader.source(*line, &checked)?;
                let mut name = Sha256::new_with_prefix(source.sub_tenant.as_str());
                name.update([0]);
                name.update(source.id.as_str());
                if !seen.insert(<[u8; 32]>::from(name.finalize())) {
                    return Err(reader.refused("source", &"duplicate source").into());
                }
                if !sequences.insert(source.line.sequence) {
                    return Err(reader.refused("source", &"duplicate sequence").into());
                }
                checked.sequence_max = checked.sequence_max.max(source.line.sequence);
                checked.end.sources += 1;
                checked.end.chunks += source.rows.len() as u64;
                checked.end.original_bytes += source.line.original_bytes;
                let bytes = (reader.at - begins_at) as u64 + source.column_bytes;
                checked.source_bytes_max = checked.source_bytes_max.max(bytes);
                see(source)?;
            }
            Member::End(end) => {
                checked.end.sha256 = hex::encode(sha256.finalize());
                if end != checked.end {
                    let problem = difference(&end, &checked.end);
                    return Err(reader.refused("end", &problem).into());
                }
                if reader.at < bytes.len() {
                    return Err(reader.refused("end", &"unexpected lines after it").into());
                }
                return Ok(checked);
            }
            other => {
                let problem = "unexpected line at this position";
                return Err(reader.refused(other.name(), &problem).into());
            }
        }
    }
}

/// Describes how the totals of the trailer differ from those of the lines.
fn difference(told: &End, found: &End) -> String {
    format!(
        "it states {} sources, {} chunks and {} bytes of originals with SHA-256 {}, but the \
         preceding lines have {}, {}, {} and {}",
        told.sources,
        told.chunks,
        told.original_bytes,
        told.sha256,
        found.sources,
        found.chunks,
        found.original_bytes,
        found.sha256,
    )
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Number of lines read so far.
    line: u64,
    hash: Sha256,
}

impl<'a> Reader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, line: 0, hash: Sha256::new() }
    }

    fn refused(&self, member: &str, problem: &dyn std::fmt::Display) -> ArchiveError {
        let (member, problem) = (member.to_owned(), problem.to_string());
        ArchiveError::Refused { line: self.line, member, problem }
    }

    /// Parses the next line. The last line may lack its line feed.
    fn next(&mut self) -> Result<Member<'static>, ArchiveError> {
        let rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return Err(ArchiveError::Cut { lines: self.line });
        }
        let end = rest.iter().take(LINE_BYTES_MAX + 1).position(|byte| *byte == b'\n');
        let line = &rest[..end.unwrap_or(rest.len().min(LINE_BYTES_MAX + 1))];
        if line.len() > LINE_BYTES_MAX {
            self.line += 1;
            let problem = format!("it is longer than {LINE_BYTES_MAX} bytes");
            return Err(self.refused("line", &problem));
        }
        let whole = end.map_or(line.len(), |end| end + 1);
        let member = match serde_json::from_slice(line) {
            Ok(member) => member,
            Err(_) if end.is_none() => return Err(ArchiveError::Cut { lines: self.line }),
            Err(error) => {
                self.line += 1;
                return Err(self.refused(&member_word(line), &error));
            }
        };
        self.hash.update(&rest[..whole]);
        self.at += whole;
        self.line += 1;
        Ok(member)
    }

    fn head(&mut self) -> Result<(Head, TenantMode), ArchiveError> {
        let refused = |reader: &Self, problem: &str| Err(reader.refused("archive", &problem));
        let Member::Archive(head) = self.next()? else {
            return refused(self, "the first line must be the member \"archive\"");
        };
        if head.format == 0 || head.format > FORMAT {
            let problem = format!(
                "format {} is not supported, this release reads 1 to {FORMAT}: use release {}, \
                 which wrote it, or a newer one",
                head.format, head.release
            );
            return refused(self, &problem);
        }
        let Some(mode) = TenantMode::from_word(&head.mode) else {
            return refused(
                self,
                "mode must be standard, embeddings, embeddings_dot or embeddings_l2",
            );
        };
        if let Some(schema) = &head.schema {
            schema.validate().map_err(|error| self.refused("archive", &error))?;
        }
        let width = head.dimension.unwrap_or(1) as usize;
        if width == 0 || width > limits::VECTOR_DIMENSION_MAX {
            let most = limits::VECTOR_DIMENSION_MAX;
            return refused(self, &format!("dimension is {width}; 1 to {most} are allowed"));
        }
        Ok((head, mode))
    }

    /// Reads the original and the chunks that follow a source line, and checks the whole.
    fn source(
        &mut self,
        line: SourceLine,
        checked: &Checked,
    ) -> Result<ArchivedSource, ArchiveError> {
        let refused =
            |reader: &Self, problem: &dyn std::fmt::Display| Err(reader.refused("source", problem));
        let (sub_tenant, id, kind) = match names_of(&line, checked.mode) {
            Ok(names) => names,
            Err(problem) => return refused(self, &problem),
        };
        let is_listed = checked.sub_tenants.contains(&sub_tenant.named());
        if !is_listed && !sub_tenant.named().is_default() {
            return refused(self, &"its sub_tenant_id has no preceding sub_tenant line");
        }
        let mut column_bytes = match check_source(&line) {
            Ok(bytes) => bytes,
            Err(problem) => return refused(self, &problem),
        };
        let begins_at = self.at;
        let original = self.original(&line)?;
        let dimension = match (checked.head.dimension, line.chunks) {
            (None, 1..) => {
                return refused(self, &"it has chunks, but the archive has no dimension");
            }
            (dimension, _) => dimension.unwrap_or(0) as usize,
        };
        let mut rows: Vec<NewRow> = Vec::new();
        for _ in 0..line.chunks {
            let chunk = match self.next()? {
                Member::Chunk(chunk) => chunk,
                other => {
                    let (found, expected) = (rows.len(), line.chunks);
                    let problem =
                        format!("source {id} has only {found} of its {expected} chunks before it");
                    return Err(self.refused(other.name(), &problem));
                }
            };
            let row = new_row(*chunk, dimension, checked.mode);
            let (row, bytes) = row.map_err(|problem| self.refused("chunk", &problem))?;
            column_bytes += bytes;
            if rows.last().is_some_and(|last| last.index >= row.index) {
                return Err(
                    self.refused("chunk", &"index must be greater than that of the chunk before")
                );
            }
            rows.push(row);
            if (self.at - begins_at) as u64 > SOURCE_BYTES_MAX {
                let problem = format!("the source has more than {SOURCE_BYTES_MAX} bytes of lines");
                return Err(self.refused("chunk", &problem));
            }
        }
        Ok(ArchivedSource { line, sub_tenant, id, kind, original, rows, column_bytes })
    }

    fn original(&mut self, line: &SourceLine) -> Result<Option<Vec<u8>>, ArchiveError> {
        let most = limits::FILE_BYTES_MAX as u64;
        if line.original_bytes > most || (line.upload.is_none() && line.original_bytes > 0) {
            let problem = format!("original_bytes must be at most {most}, and 0 without upload");
            return Err(self.refused("source", &problem));
        }
        if line.upload.is_none() {
            return Ok(None);
        }
        let mut original = Vec::new();
        while (original.len() as u64) < line.original_bytes {
            let Member::Original { base64 } = self.next()? else {
                let (found, told) = (original.len(), line.original_bytes);
                let problem =
                    format!("the original before it has only {found} of its {told} bytes");
                return Err(self.refused("line", &problem));
            };
            let piece = STANDARD.decode(base64);
            original.extend(piece.map_err(|error| self.refused("original", &error))?);
        }
        match original.len() as u64 == line.original_bytes {
            true => Ok(Some(original)),
            false => Err(self.refused("original", &"it has more bytes than its source states")),
        }
    }
}

/// The `member` of a line that could not be parsed, for the error message.
fn member_word(line: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Word {
        member: String,
    }
    let word = serde_json::from_slice(line).map(|Word { member }| member);
    word.map_or_else(|_| "line".to_owned(), |word| word.chars().take(32).collect())
}
