//! Takes one source from its original to a draft: verify, extract, chunk.

use crate::ingest::draft::Draft;
use crate::ingest::{Ingest, ModelTokens, app, memories};
use crate::stage::stage;
use lodestone_catalog::Tenant;
use lodestone_catalog::job::{ClaimedJob, Outcome};
use lodestone_embed::Embedder;
use lodestone_extract::{ExtractError, Format};
use lodestone_storage::collection::{CollectionError, Snapshot, uploads};
use lodestone_text::chunk::{self, ChunkSizes};
use lodestone_types::{
    Block, ChunkDraft, ErrorKind, Extracted, JobErrorCode, LineBox, Metadata, SourceDetail,
    SourceKind, SourceRecord, Stage, Warning, limits,
};

/// The content of an original, without its metadata.
struct Content {
    format: Format,
    text: String,
    title: Option<String>,
    chunks: Vec<ChunkDraft>,
    blocks: Vec<Block>,
    lines: Vec<Vec<LineBox>>,
    warnings: Vec<Warning>,
}

impl Ingest {
    /// Reads, extracts and chunks the original of a job. If the job cannot continue, its outcome is
    /// the error.
    pub(super) fn draft(
        &self,
        tenant: &Tenant,
        snapshot: &Snapshot,
        model: &dyn Embedder,
        job: &ClaimedJob,
    ) -> Result<Draft, Outcome> {
        let at_stage = |stage| self.catalog.set_stage(&[job.sequence], stage);
        at_stage(Stage::Validating);
        let upload = uploads::get(&*self.store, &job.raw_key).map_err(storage_outcome)?;
        let names = (job.filename.as_str(), job.content_type.as_str());
        let content = self.read(model, job.kind, names, &upload.content, at_stage)?;
        let stored = snapshot.record(&job.sub_tenant, &job.source).map_err(storage_outcome)?;
        let empty = Metadata::new();
        let map = |map: fn(&SourceRecord) -> &Metadata| stored.as_ref().map_or(&empty, map);
        let tenant_metadata =
            job.tenant_metadata.clone().applied_to(map(|record| &record.tenant_metadata));
        let document_metadata =
            job.document_metadata.clone().applied_to(map(|record| &record.document_metadata));
        let (mut url, mut detail) = (job.url.clone(), job.detail.clone());
        match &stored {
            Some(stored) => detail.keep_from(&mut url, &stored.detail, &stored.url),
            None => detail.keeps = false,
        }
        let record = SourceRecord {
            sub_tenant: job.sub_tenant.clone(),
            id: job.source.clone(),
            kind: job.kind,
            title: String::new(),
            description: String::new(),
            filename: job.filename.clone(),
            url,
            content_type: content_type(job.kind, content.format),
            size_bytes: job.size_bytes,
            tenant_metadata,
            document_metadata,
            uploaded_at: job.uploaded_at,
            last_updated_at: detail.source_time.or(job.origin_at).unwrap_or(job.uploaded_at),
            version: job.version,
            sequence: job.sequence,
            raw_key: job.raw_key.clone(),
            detail,
        };
        let mut draft = drafted(tenant, record, content);
        if stored.is_some() {
            self.reuse(snapshot, model, &mut draft);
        }
        Ok(draft)
    }

    /// Reads, extracts and chunks the original of an accepted version again, under its current
    /// record.
    pub(super) fn redraft(
        &self,
        tenant: &Tenant,
        model: &dyn Embedder,
        record: &SourceRecord,
    ) -> Result<Draft, Outcome> {
        let upload = uploads::get(&*self.store, &record.raw_key).map_err(storage_outcome)?;
        let names = (upload.label.filename.as_str(), upload.label.content_type.as_str());
        let content = self.read(model, record.kind, names, &upload.content, |_| {})?;
        Ok(drafted(tenant, record.clone(), content))
    }

    /// Reads and chunks the original of a memory under its record.
    pub(super) fn draft_memory(
        &self,
        tenant: &Tenant,
        model: &dyn Embedder,
        record: SourceRecord,
        original: &[u8],
    ) -> Result<Draft, Outcome> {
        let content = self.read(model, record.kind, ("", ""), original, |_| {})?;
        Ok(drafted(tenant, record, content))
    }

    /// Extracts and chunks an original. `names` are the file name and the media type.
    fn read(
        &self,
        model: &dyn Embedder,
        kind: SourceKind,
        names: (&str, &str),
        original: &[u8],
        at_stage: impl Fn(Stage),
    ) -> Result<Content, Outcome> {
        at_stage(Stage::Parsing);
        let stage = stage!("parse");
        let (format, extracted) = match kind {
            SourceKind::App => (Format::Json, self.read_app(original)?),
            SourceKind::Memory => (Format::Json, read_memory(original)?),
            SourceKind::Text => self.parser.parse(Format::Md, original).map_err(unread)?,
            SourceKind::File | SourceKind::Webpage | SourceKind::Embeddings => {
                let media_type = Some(names.1).filter(|word| !word.is_empty());
                let format = lodestone_extract::detect(names.0, media_type, original)
                    .map_err(|error| rejected(error.error_code(), &error))?;
                let format = match (kind, format) {
                    // Pages have menus around their text; uploads do not.
                    (SourceKind::Webpage, Format::Html) => Format::WebPage,
                    _ => format,
                };
                self.parser.parse(format, original).map_err(unread)?
            }
        };
        drop(stage);
        at_stage(Stage::Chunking);
        let _stage = stage!("chunk");
        let sizes =
            ChunkSizes { tokens: limits::CHUNK_TOKENS, overlap: limits::CHUNK_OVERLAP_TOKENS };
        let mut chunks =
            chunk::chunk(&extracted.text, &extracted.blocks, &ModelTokens(model), sizes);
        number_pages(&mut chunks, &extracted);
        if chunks.is_empty() {
            let message = "the document contains no text".to_owned();
            return Err(Outcome::Rejected { error_code: JobErrorCode::NoText, message });
        }
        let lines = lines_of(&chunks, &extracted);
        let Extracted { text, title, blocks, warnings, .. } = extracted;
        Ok(Content { format, text, title, chunks, blocks, lines, warnings })
    }

    /// Extracts the text of an application's record: all its parts, one after the other.
    fn read_app(&self, original: &[u8]) -> Result<Extracted, Outcome> {
        let parts = app::parts(original).map_err(|problem| {
            let message = problem.to_string();
            Outcome::Rejected { error_code: JobErrorCode::CorruptFile, message }
        })?;
        let mut whole = Extracted::default();
        for part in parts {
            match self.parser.parse(part.format, &part.bytes) {
                Ok((_, extracted)) => app::append(&mut whole, &part.heading, extracted),
                Err(ExtractError::NoText) => {}
                Err(error) => return Err(unread(error)),
            }
        }
        Ok(whole)
    }
}

/// Sets title, description and searchable words of a source from its content and its metadata.
fn drafted(tenant: &Tenant, mut record: SourceRecord, content: Content) -> Draft {
    let in_text = content.title.as_deref();
    let named = title(&record.detail, &record.document_metadata, &record.filename, in_text);
    record.title = named.clone().unwrap_or_else(|| record.id.as_str().to_owned());
    record.description = match record.detail.description.is_empty() {
        true => description(&content.text),
        false => description(&record.detail.description),
    };
    record.detail.warnings = content.warnings;
    let schema = tenant.schema.as_ref();
    let searchable =
        schema.map(|schema| schema.searchable_text(&record.tenant_metadata)).unwrap_or_default();
    let title_text = named.unwrap_or_default();
    let Content { text, blocks, chunks, lines, .. } = content;
    let contexts = chunk::contexts(&text, &blocks, &title_text, &chunks);
    let (known, schema) = (vec![None; chunks.len()], tenant.schema.clone());
    Draft { record, title_text, searchable, chunks, contexts, lines, known, schema }
}

fn rejected(error_code: JobErrorCode, error: &dyn std::error::Error) -> Outcome {
    Outcome::Rejected { error_code, message: error.to_string() }
}

/// Extracts the text of a memory in this process, since it needs no sandboxed parser.
fn read_memory(original: &[u8]) -> Result<Extracted, Outcome> {
    let text =
        memories::text_of(original).map_err(|error| rejected(JobErrorCode::CorruptFile, &error))?;
    lodestone_extract::extract(Format::Txt, text.as_bytes()).map_err(unread)
}

/// A document that cannot be read is rejected, unless the parser never tried it.
fn unread(error: ExtractError) -> Outcome {
    let (error_code, message) = (error.error_code(), error.to_string());
    match error.kind() {
        ErrorKind::Unavailable => Outcome::Failed { error_code, message },
        _ => Outcome::Rejected { error_code, message },
    }
}

/// Sets the page on which each chunk begins, and the chunk's start on that page. Both chunks and
/// pages are in ascending order.
fn number_pages(chunks: &mut [ChunkDraft], extracted: &Extracted) {
    let Extracted { text, pages, .. } = extracted;
    // Pages start at byte offsets, while places count characters.
    let (mut byte, mut chars) = (0, 0_u32);
    let mut starts = Vec::with_capacity(pages.len());
    for page in pages {
        chars += text[byte..page.start].chars().count() as u32;
        byte = page.start;
        starts.push((chars, page.page));
    }
    for chunk in chunks {
        let before = starts.partition_point(|(start, _)| *start <= chunk.place.document_start);
        if let Some((start, page)) = before.checked_sub(1).map(|at| starts[at]) {
            chunk.place.page = page;
            chunk.place.page_start = chunk.place.document_start - start;
        }
    }
}

/// The lines of each chunk on its pages. Chunks are in ascending order, and each is the text at its
/// place.
fn lines_of(chunks: &[ChunkDraft], extracted: &Extracted) -> Vec<Vec<LineBox>> {
    let Extracted { text, geometry, .. } = extracted;
    if geometry.lines().is_empty() {
        return vec![Vec::new(); chunks.len()];
    }
    let (mut byte, mut char) = (0, 0);
    let of_chunk = |chunk: &ChunkDraft| {
        let start = chunk.place.document_start as usize;
        byte += text[byte..].chars().take(start - char).map(char::len_utf8).sum::<usize>();
        char = start;
        geometry.lines_of(text, &(byte..byte + chunk.text.len()))
    };
    chunks.iter().map(of_chunk).collect()
}

/// The outcome of an error of the store: final if data are damaged; a full or failing disk is
/// retried.
fn storage_outcome(error: CollectionError) -> Outcome {
    let (error_code, message) = (JobErrorCode::Internal, INTERNAL_FAULT.to_owned());
    let outcome = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::Unavailable => return Outcome::Released,
        ErrorKind::Corrupt => Outcome::Rejected { error_code, message },
        _ => Outcome::Failed { error_code, message },
    };
    tracing::error!(%error, "processing a document failed");
    outcome
}

/// Message for clients when the cause is internal. Paths and causes only go to the log.
pub(super) const INTERNAL_FAULT: &str = "the server could not process it; see the server log";

/// The title of a source: the one supplied with it, else `document_metadata.title`, the file name
/// or the title found in the text. `None` if there is none; the id then serves as title.
pub(crate) fn title(
    detail: &SourceDetail,
    document_metadata: &Metadata,
    filename: &str,
    in_text: Option<&str>,
) -> Option<String> {
    let given = document_metadata.get("title").and_then(serde_json::Value::as_str);
    let chain = [Some(detail.title.as_str()), given, Some(filename), in_text];
    let chosen = chain.into_iter().flatten().map(str::trim).find(|title| !title.is_empty());
    chosen.map(str::to_owned)
}

fn description(text: &str) -> String {
    let mut description = String::new();
    for word in text.split_whitespace() {
        let chars = description.chars().count() + word.chars().count() + 1;
        if chars > limits::DESCRIPTION_CHARS {
            break;
        }
        if !description.is_empty() {
            description.push(' ');
        }
        description.push_str(word);
    }
    match description.is_empty() {
        false => description,
        true => text.trim().chars().take(limits::DESCRIPTION_CHARS).collect(),
    }
}

fn content_type(kind: SourceKind, format: Format) -> String {
    match kind {
        SourceKind::Text => "text/plain; charset=utf-8".to_owned(),
        SourceKind::App | SourceKind::Memory => Format::Json.media_type().to_owned(),
        SourceKind::File | SourceKind::Webpage | SourceKind::Embeddings => {
            format.media_type().to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_types::{ChunkPlace, Geometry, PageArea, PageRef, PageStart, PlacedLine};
    use serde_json::json;

    #[test]
    fn the_chain_of_titles() {
        let map = |value: serde_json::Value| value.as_object().unwrap().clone();
        let title = |given: &Metadata, filename: &str, in_text: Option<&str>| {
            title(&SourceDetail::default(), given, filename, in_text)
        };
        let given = map(json!({"title": "Given"}));
        let empty = map(json!({"title": "  "}));
        assert_eq!(title(&given, "a.txt", Some("In text")).as_deref(), Some("Given"));
        assert_eq!(title(&empty, "a.txt", Some("In text")).as_deref(), Some("a.txt"));
        assert_eq!(title(&empty, "", Some("In text")).as_deref(), Some("In text"));
        assert_eq!(title(&empty, "", None), None);
        let own = SourceDetail { title: "Own".into(), ..SourceDetail::default() };
        assert_eq!(super::title(&own, &given, "a.txt", None).as_deref(), Some("Own"));
    }

    #[test]
    fn a_chunk_stands_on_the_page_where_it_begins() {
        let page = |page, start| PageStart { page: PageRef::Page(page), start };
        let chunk = |start: u32| {
            let place = ChunkPlace { document_start: start, chars: 2, ..ChunkPlace::default() };
            ChunkDraft { text: String::new(), place }
        };
        // Three pages of three characters and a blank, some of them two bytes long; there is no
        // page 2.
        let text = "ééé béé ccc".to_owned();
        let pages = vec![page(1, 0), page(3, 7), page(4, 13)];
        let mut chunks: Vec<ChunkDraft> = [0, 2, 4, 7, 8].map(chunk).into();
        number_pages(&mut chunks, &Extracted { text, pages, ..Extracted::default() });
        let places = chunks.iter().map(|chunk| (chunk.place.page, chunk.place.page_start));
        let expected = [(1, 0), (1, 2), (3, 0), (3, 3), (4, 0)];
        assert!(places.eq(expected.map(|(page, start)| (PageRef::Page(page), start))));

        let line = |range, page, x| {
            let area = PageArea { x, y: 1.0, width: 2.0, height: 3.0 };
            PlacedLine { range, page, area }
        };
        let mut geometry = Geometry::default();
        for (range, page, x) in [(0..6, 1, 0.0), (7..12, 3, 5.0), (13..16, 4, 9.0)] {
            geometry.push(line(range, page, x));
        }
        let text = "ééé béé ccc".to_owned();
        let placed = Extracted { text, geometry, ..Extracted::default() };
        let mut chunks: Vec<ChunkDraft> = [0, 2, 8].map(chunk).into();
        for (chunk, text) in chunks.iter_mut().zip(["éé", "é b", "ccc"]) {
            chunk.text = text.to_owned();
        }
        let lines = lines_of(&chunks, &placed);
        let pages: Vec<Vec<u32>> =
            lines.iter().map(|all| all.iter().map(|line| line.place.page).collect()).collect();
        assert_eq!(pages, [vec![1], vec![1, 3], vec![4]]);

        let mut chunks = vec![chunk(5)];
        number_pages(&mut chunks, &Extracted::default());
        assert_eq!(chunks[0].place.page, PageRef::Whole);
    }

    #[test]
    fn a_description_is_bounded_even_without_spaces() {
        assert_eq!(description(" a\n b "), "a b");
        assert_eq!(description(&"x".repeat(9_000)).chars().count(), limits::DESCRIPTION_CHARS);
        let words = description(&"word ".repeat(500));
        assert!(words.chars().count() <= limits::DESCRIPTION_CHARS && words.ends_with("word"));
    }
}
