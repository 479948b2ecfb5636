//! The rules that sources and chunks of an archive must satisfy.

use lodestone_storage::segment::NewRow;
use lodestone_types::{
    ChunkPlace, LineBox, RowPayload, SourceId, SourceKind, SubTenantId, TenantMode, metadata,
};

use super::format::{ChunkLine, SourceLine, decode_vector};
use crate::ingest;

/// The end of the year 9999 in milliseconds since the Unix epoch.
const TIME_MAX: u64 = 253_402_300_799_999;
/// Highest version of a source; leaves headroom for later replacements.
const VERSION_MAX: u32 = 1 << 31;
/// Highest sequence; leaves as many for later uploads.
const SEQUENCE_MAX: u64 = 1 << 62;
/// Highest index of a chunk in its source.
const INDEX_MAX: u32 = 1 << 30;
/// Maximum number of rectangles, and of lines, of one chunk.
const BOXES_MAX: usize = 4096;

type Names = (SubTenantId, SourceId, SourceKind);

/// Checks the sub-tenant, id and kind of a source; an error names the violated rule.
pub(super) fn names_of(line: &SourceLine, mode: TenantMode) -> Result<Names, String> {
    let named = SubTenantId::parse(&line.sub_tenant_id).map_err(|error| error.to_string())?;
    let id = SourceId::parse(&line.file_id).map_err(|error| error.to_string())?;
    let kind = SourceKind::from_word(&line.kind).ok_or("unknown kind")?;
    if (kind == SourceKind::Embeddings) != mode.is_embeddings() {
        return Err(format!(
            "a source of kind {} in a tenant of mode {}",
            line.kind,
            mode.as_str()
        ));
    }
    let sub_tenant = match kind {
        SourceKind::Memory => named.of_memories(),
        _ => named,
    };
    Ok((sub_tenant, id, kind))
}

/// Checks the metadata and numbers of a source; returns the bytes that its metadata takes in
/// columns. An error names the violated rule.
pub(super) fn check_source(line: &SourceLine) -> Result<u64, String> {
    let mut column_bytes = 0;
    let maps = [
        ("tenant_metadata", Some(&line.tenant_metadata)),
        ("document_metadata", Some(&line.document_metadata)),
        ("detail.meta", line.detail.meta.as_ref()),
    ];
    for (name, map) in maps {
        let Some(map) = map else { continue };
        let counts = metadata::check_stored(map).map_err(|error| format!("{name} {error}"))?;
        column_bytes += ingest::column_bytes(counts);
    }
    let times = [line.uploaded_at, line.last_updated_at];
    if times.iter().any(|time| *time > TIME_MAX) {
        return Err("a time is after the year 9999".to_owned());
    }
    if !(1..=SEQUENCE_MAX).contains(&line.sequence) {
        return Err(format!("sequence is {}; 1 to {SEQUENCE_MAX} are allowed", line.sequence));
    }
    match (1..=VERSION_MAX).contains(&line.version) {
        true => Ok(column_bytes),
        false => Err(format!("version is {}; 1 to {VERSION_MAX} are allowed", line.version)),
    }
}

/// Checks that the text of a client vector is a payload in normal form; returns the bytes that its
/// metadata takes in columns.
fn check_payload(text: &str, chars: u32) -> Result<u64, String> {
    let payload = RowPayload::parse(text)
        .map_err(|error| format!("its text is not a vector payload: {error}"))?;
    if chars != 0 || payload.to_text() != text {
        return Err("its text is not a normalized vector payload with chars 0".to_owned());
    }
    let mut column_bytes = 0;
    if let Some(map) = &payload.metadata {
        let counts =
            metadata::check_stored(map).map_err(|error| format!("its metadata {error}"))?;
        column_bytes = ingest::column_bytes(counts);
    }
    match payload.id.map(|id| (SourceId::parse(&id), id)) {
        Some((Ok(parsed), id)) if parsed.as_str() != id => {
            Err("its id is not normalized".to_owned())
        }
        Some((Err(error), _)) => Err(error.to_string()),
        Some((Ok(_), _)) | None => Ok(column_bytes),
    }
}

/// Checks a chunk and converts it to a row; also returns the bytes that its metadata takes in
/// columns. An error names the violated rule.
pub(super) fn new_row(
    chunk: ChunkLine<'_>,
    dimension: usize,
    mode: TenantMode,
) -> Result<(NewRow, u64), String> {
    let ChunkLine { index, text, start, page_start, chars, page, context, .. } = chunk;
    let ChunkLine { boxes, lines, graph, vector, .. } = chunk;
    if index > INDEX_MAX || boxes.len() > BOXES_MAX || lines.len() > BOXES_MAX {
        return Err("index or the number of boxes or lines exceeds its limit".to_owned());
    }
    let is_of_vectors = mode.is_embeddings();
    let characters = text.chars().count();
    let column_bytes = match is_of_vectors {
        true => check_payload(&text, chars)?,
        false if text.is_empty() || characters != chars as usize => {
            return Err(format!("its text has {characters} characters, but chars is {chars}"));
        }
        false => 0,
    };
    if start.checked_add(chars).is_none() || page_start.checked_add(chars).is_none() {
        return Err("start or page_start exceeds the maximum text length".to_owned());
    }
    let is_finite = |one: &lodestone_types::PageBox| {
        let area = one.area;
        [area.x, area.y, area.width, area.height].iter().all(|value| value.is_finite())
    };
    if !boxes.iter().all(is_finite) || !boxes.is_sorted_by_key(|one| one.page) {
        return Err("boxes must be finite and in ascending order of page".to_owned());
    }
    let is_within = |line: &LineBox| line.start < line.end && line.end <= chars;
    let ascend = lines.windows(2).all(|pair| pair[0].end <= pair[1].start);
    if !lines.iter().all(|line| is_within(line) && is_finite(&line.place)) || !ascend {
        return Err(
            "lines must be finite, lie within the text and be in ascending order".to_owned()
        );
    }
    let vector = decode_vector(&vector, dimension)?;
    let norm = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if !is_of_vectors && (norm - 1.0).abs() > 0.02 {
        return Err(format!("vector has length {norm}; it must be normalized to 1"));
    }
    let graph = graph.graph(&text)?;
    let place = ChunkPlace { document_start: start, page_start, chars, page };
    let (text, context) = (text.into_owned(), context.into_owned());
    let row = NewRow { index, text, place, boxes, lines, context, graph, vector, sparse: None };
    Ok((row, column_bytes))
}
