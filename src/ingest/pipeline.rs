//! One source from its original to rows: verify, extract, cut, embed.

use crate::catalog::Tenant;
use crate::chunk::{self, ChunkSizes};
use crate::collection::{CollectionError, Snapshot, uploads};
use crate::embed::Lane;
use crate::extract::{self, Format};
use crate::ingest::Ingest;
use crate::job::{ClaimedJob, Outcome};
use crate::segment::{NewRow, NewSource};
use crate::types::{
    ChunkDraft, ErrorKind, Fault, Metadata, SourceKind, SourceRecord, Stage, limits,
};

/// A source that is ready to be embedded.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) job: ClaimedJob,
    record: SourceRecord,
    title_text: String,
    searchable: String,
    chunks: Vec<ChunkDraft>,
}

impl Draft {
    /// What the model reads for each chunk: the title and searchable values give a passage the
    /// context that its neighbours would (RETRIEVAL 1.6).
    fn passages(&self) -> impl Iterator<Item = String> {
        self.chunks.iter().map(|chunk| passage(&self.title_text, &self.searchable, &chunk.text))
    }

    fn into_source(self, vectors: Vec<Vec<f32>>) -> (ClaimedJob, NewSource) {
        let rows = self.chunks.into_iter().zip(vectors).enumerate();
        let rows = rows.map(|(index, (chunk, vector))| NewRow {
            index: index as u32,
            text: chunk.text,
            place: chunk.place,
            vector,
        });
        let source = NewSource {
            record: self.record,
            title_text: self.title_text,
            searchable: self.searchable,
            rows: rows.collect(),
        };
        (self.job, source)
    }
}

/// Joins title, searchable values and text; a title that the text begins with is not repeated.
pub(super) fn passage(title: &str, searchable: &str, text: &str) -> String {
    let is_repeated = text.trim_start_matches(['#', ' ']).starts_with(title);
    let title = if is_repeated { "" } else { title };
    let parts = [title, searchable, text];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

impl Ingest {
    /// Reads, extracts and cuts one original. The outcome of a job that cannot go on is an error.
    pub(super) fn draft(
        &self,
        tenant: &Tenant,
        snapshot: &Snapshot,
        job: ClaimedJob,
    ) -> Result<Draft, Outcome> {
        let (record, title_text, searchable, chunks) = self.try_draft(tenant, snapshot, &job)?;
        Ok(Draft { job, record, title_text, searchable, chunks })
    }

    fn try_draft(
        &self,
        tenant: &Tenant,
        snapshot: &Snapshot,
        job: &ClaimedJob,
    ) -> Result<(SourceRecord, String, String, Vec<ChunkDraft>), Outcome> {
        let at_stage = |stage| self.catalog.set_stage(&[job.sequence], stage);
        at_stage(Stage::Validating);
        let upload = uploads::get(&*self.store, &job.raw_key).map_err(storage_outcome)?;
        at_stage(Stage::Parsing);
        let format = match job.kind {
            SourceKind::Text => Format::Md,
            SourceKind::File | SourceKind::Embeddings => {
                let media_type = Some(job.content_type.as_str()).filter(|word| !word.is_empty());
                extract::detect(&job.filename, media_type, &upload.content)
                    .map_err(|error| rejected(error.fault(), &error))?
            }
        };
        let extracted = extract::extract(format, &upload.content)
            .map_err(|error| rejected(error.fault(), &error))?;
        at_stage(Stage::Chunking);
        let sizes =
            ChunkSizes { tokens: limits::CHUNK_TOKENS, overlap: limits::CHUNK_OVERLAP_TOKENS };
        let chunks = chunk::chunk(&extracted.text, &extracted.blocks, &self.tokens(), sizes);
        if chunks.is_empty() {
            let message = "the document holds no text".to_owned();
            return Err(Outcome::Rejected { fault: Fault::NoText, message });
        }
        let visible = snapshot.find(&job.sub_tenant, &job.source);
        let visible = visible
            .map(|found| found.record())
            .transpose()
            .map_err(|error| storage_outcome(error.into()))?;
        let empty = Metadata::new();
        let stored = |map: fn(&SourceRecord) -> &Metadata| visible.as_ref().map_or(&empty, map);
        let tenant_metadata =
            job.tenant_metadata.clone().applied_to(stored(|record| &record.tenant_metadata));
        let document_metadata =
            job.document_metadata.clone().applied_to(stored(|record| &record.document_metadata));
        let named = title(&document_metadata, &job.filename, extracted.title.as_deref());
        let schema = tenant.schema.as_ref();
        let searchable =
            schema.map(|schema| schema.searchable_text(&tenant_metadata)).unwrap_or_default();
        let record = SourceRecord {
            sub_tenant: job.sub_tenant.clone(),
            id: job.source.clone(),
            kind: job.kind,
            title: named.clone().unwrap_or_else(|| job.source.as_str().to_owned()),
            description: description(&extracted.text),
            filename: job.filename.clone(),
            url: job.url.clone(),
            content_type: content_type(job, format),
            size_bytes: job.size_bytes,
            tenant_metadata,
            document_metadata,
            uploaded_at: job.uploaded_at,
            last_updated_at: job.origin_at.unwrap_or(job.uploaded_at),
            version: job.version,
            sequence: job.sequence,
            raw_key: job.raw_key.clone(),
        };
        Ok((record, named.unwrap_or_default(), searchable, chunks))
    }

    /// Embeds the chunks of all drafts in one submission, so that batches fill over documents.
    pub(super) fn embed(
        &self,
        drafts: Vec<Draft>,
    ) -> Result<Vec<(ClaimedJob, NewSource)>, Outcome> {
        let sequences: Vec<_> = drafts.iter().map(|draft| draft.job.sequence).collect();
        self.catalog.set_stage(&sequences, Stage::Embedding);
        let passages: Vec<String> = drafts.iter().flat_map(Draft::passages).collect();
        match self.embedder.embed(Lane::Bulk, passages) {
            Ok(vectors) => {
                let mut vectors = vectors.into_iter();
                let with_vectors = drafts.into_iter().map(|draft| {
                    let own = vectors.by_ref().take(draft.chunks.len()).collect();
                    draft.into_source(own)
                });
                Ok(with_vectors.collect())
            }
            Err(error) => Err(match error.kind() {
                ErrorKind::Unavailable | ErrorKind::Overloaded => Outcome::Released,
                _ => {
                    let (fault, message) = (Fault::EmbeddingFailed, error.to_string());
                    Outcome::Faulted { fault, message }
                }
            }),
        }
    }
}

fn rejected(fault: Fault, error: &dyn std::error::Error) -> Outcome {
    Outcome::Rejected { fault, message: error.to_string() }
}

/// A full or failing disk is no fault of the document; damaged bytes do not heal.
fn storage_outcome(error: CollectionError) -> Outcome {
    let message = error.to_string();
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::Unavailable => Outcome::Released,
        ErrorKind::Corrupt => Outcome::Rejected { fault: Fault::Internal, message },
        _ => Outcome::Faulted { fault: Fault::Internal, message },
    }
}

/// The title by the chain of API 4.2, but for the id at its end.
pub(super) fn title(
    document_metadata: &Metadata,
    filename: &str,
    in_text: Option<&str>,
) -> Option<String> {
    let given = document_metadata.get("title").and_then(serde_json::Value::as_str);
    let chain = [given, Some(filename), in_text];
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

fn content_type(job: &ClaimedJob, format: Format) -> String {
    match job.kind {
        SourceKind::Text => "text/plain; charset=utf-8".to_owned(),
        SourceKind::File | SourceKind::Embeddings => format.media_type().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_title_that_the_text_begins_with_is_not_repeated() {
        assert_eq!(passage("Wings", "", "Wings\n\nlift"), "Wings\n\nlift");
        assert_eq!(passage("Wings", "", "# Wings\nlift"), "# Wings\nlift");
        assert_eq!(passage("Wings", "blue", "lift"), "Wings\nblue\nlift");
        assert_eq!(passage("", "", "lift"), "lift");
    }

    #[test]
    fn the_chain_of_titles() {
        let map = |value: serde_json::Value| value.as_object().unwrap().clone();
        let given = map(json!({"title": "Given"}));
        let empty = map(json!({"title": "  "}));
        assert_eq!(title(&given, "a.txt", Some("In text")).as_deref(), Some("Given"));
        assert_eq!(title(&empty, "a.txt", Some("In text")).as_deref(), Some("a.txt"));
        assert_eq!(title(&empty, "", Some("In text")).as_deref(), Some("In text"));
        assert_eq!(title(&empty, "", None), None);
    }

    #[test]
    fn a_description_is_bounded_even_without_spaces() {
        assert_eq!(description(" a\n b "), "a b");
        assert_eq!(description(&"x".repeat(9_000)).chars().count(), limits::DESCRIPTION_CHARS);
        let words = description(&"word ".repeat(500));
        assert!(words.chars().count() <= limits::DESCRIPTION_CHARS && words.ends_with("word"));
    }
}
