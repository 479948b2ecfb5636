//! Embeds passages, each of them only once.
//!
//! ```text
//! passage -> unchanged since the visible version?  its vector is copied from there
//!         -> embedded before the server stopped?   its vector was kept
//!         -> otherwise the model, in slices: after each, vectors are kept and progress is reported
//! ```

use std::collections::HashMap;

use crate::ingest::Ingest;
use crate::ingest::draft::Draft;
use crate::ingest::kept::Kept;
use crate::stage::stage;
use lodestone_catalog::Tenant;
use lodestone_catalog::job::Outcome;
use lodestone_embed::{EmbedError, Embedder, Lane};
use lodestone_metrics::{Counter, Labelled, Registry};
use lodestone_storage::collection::Snapshot;
use lodestone_storage::segment::{NewSource, SegmentError};
use lodestone_text::chunk::{Surroundings, passage};
use lodestone_types::{
    ErrorKind, JobErrorCode, RequestContext, RowId, Sequence, SourceKind, Stage,
};

/// Counts of passage vectors by their origin.
#[derive(Debug, Clone)]
pub struct VectorMeters(Labelled<Counter, 3>);

impl Default for VectorMeters {
    fn default() -> Self {
        Self(Labelled::new("origin", ["model", "unchanged", "kept"], Counter::default))
    }
}

impl VectorMeters {
    /// Registers the metrics.
    pub fn enter(&self, registry: &mut Registry) {
        let help = "Vectors of passages by origin: embedded, reused from an unchanged passage, or \
            kept by an interrupted job";
        registry.enter("ingest_vectors_total", help, &self.0);
    }

    fn count(&self, model: usize, unchanged: usize, kept: usize) {
        for (at, count) in [model, unchanged, kept].into_iter().enumerate() {
            self.0.at(at).add(count as u64);
        }
    }
}

/// Passages per slice: a few seconds of one core, so that little is lost and batches fill up.
const SLICE_PASSAGES: usize = 256;

impl Ingest {
    /// Fills in the vectors of chunks that are unchanged since the visible version of their source.
    pub(super) fn reuse(&self, snapshot: &Snapshot, model: &dyn Embedder, draft: &mut Draft) {
        let is_comparable = snapshot.manifest.embedding.as_deref() == Some(model.fingerprint());
        if !is_comparable {
            return;
        }
        match visible_vectors(snapshot, draft) {
            Ok(vectors) => {
                let passages: Vec<String> = draft.passages().collect();
                draft.known = passages.iter().map(|text| vectors.get(text).cloned()).collect();
            }
            // Reads will notice the damage; here it only costs work.
            Err(error) => tracing::warn!(%error, "vectors of the visible version could not be \
                reused"),
        }
    }

    /// Embeds the chunks of all drafts together, so that batches fill across documents, and adds
    /// their graphs. `kept` holds vectors of an interrupted run and stores new ones.
    pub(super) fn embed(
        &self,
        tenant: &Tenant,
        model: &dyn Embedder,
        drafts: Vec<Draft>,
        mut kept: Option<&mut Kept<'_>>,
    ) -> Result<Vec<NewSource>, Outcome> {
        let passages: Vec<String> = drafts.iter().flat_map(Draft::passages).collect();
        let mut vectors: Vec<Option<Vec<f32>>> =
            drafts.iter().flat_map(|draft| draft.known.iter().cloned()).collect();
        let unchanged = vectors.iter().flatten().count();
        if let Some(kept) = kept.as_deref() {
            for (vector, passage) in vectors.iter_mut().zip(&passages) {
                *vector = vector.take().or_else(|| kept.vector(passage));
            }
        }
        let missing: Vec<usize> = (0..vectors.len()).filter(|at| vectors[*at].is_none()).collect();
        let of_kept = vectors.len() - missing.len() - unchanged;
        self.vectors.count(missing.len(), unchanged, of_kept);
        let jobs: Vec<(Sequence, u32)> =
            drafts.iter().map(|draft| (draft.record.sequence, draft.chunk_count())).collect();
        self.tell_progress(&jobs, &vectors);
        let is_long = missing.len() > SLICE_PASSAGES;
        let context = RequestContext::default().of_tenant(tenant.collection);
        let stage = stage!("embed", passages = missing.len());
        for slice in missing.chunks(SLICE_PASSAGES) {
            if is_long && !self.is_wanted(kept.is_some(), &jobs) {
                return Err(Outcome::Released);
            }
            let texts = slice.iter().map(|at| passages[*at].clone()).collect();
            let embedded = self.embed_passages(model, Lane::Bulk, &context, texts);
            let embedded = embedded.map_err(failed)?;
            if let Some(kept) = kept.as_deref_mut().filter(|_| is_long) {
                let texts = slice.iter().map(|at| passages[*at].as_str());
                kept.keep(texts.zip(embedded.iter().map(Vec::as_slice)));
            }
            for (at, vector) in slice.iter().zip(embedded) {
                vectors[*at] = Some(vector);
            }
            self.tell_progress(&jobs, &vectors);
        }
        let mut sparse = Vec::with_capacity(passages.len());
        for slice in passages.chunks(SLICE_PASSAGES) {
            if is_long && !self.is_wanted(kept.is_some(), &jobs) {
                return Err(Outcome::Released);
            }
            sparse.extend(self.sparse_rows(Lane::Bulk, &context, slice).map_err(failed)?);
        }
        drop(stage);
        let _stage = stage!("graph");
        if kept.is_some() {
            let sequences: Vec<Sequence> = jobs.iter().map(|(sequence, _)| *sequence).collect();
            self.catalog.set_stage(&sequences, Stage::Graph);
        }
        let mut vectors =
            vectors.into_iter().map(|vector| vector.expect("every passage was embedded"));
        let mut sparse = sparse.into_iter();
        let with_vectors = drafts.into_iter().map(|draft| {
            let count = draft.chunk_count() as usize;
            let own = vectors.by_ref().take(count).collect();
            draft.into_source(own, sparse.by_ref().take(count).collect())
        });
        Ok(with_vectors.collect())
    }

    /// Embeds passages. Documents go to an ingest node if one has room.
    pub(super) fn embed_passages(
        &self,
        model: &dyn Embedder,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let nodes = self.nodes.as_ref().filter(|_| lane == Lane::Bulk);
        match nodes.and_then(|nodes| nodes.embed(model, &texts)) {
            Some(vectors) => Ok(vectors),
            None => model.embed_within(lane, context, texts),
        }
    }

    /// Whether long work should continue: not if the server is stopping, nor if all jobs of the
    /// claim were canceled. A rebuild belongs to no claim.
    fn is_wanted(&self, is_of_claim: bool, jobs: &[(Sequence, u32)]) -> bool {
        let sequences: Vec<Sequence> = jobs.iter().map(|(sequence, _)| *sequence).collect();
        let is_canceled = || self.catalog.live(&sequences).is_ok_and(|live| live.is_empty());
        !(self.stopping.is_set() || is_of_claim && is_canceled())
    }

    fn tell_progress(&self, jobs: &[(Sequence, u32)], vectors: &[Option<Vec<f32>>]) {
        let mut rest = vectors;
        for (sequence, chunks) in jobs {
            let (own, after) = rest.split_at(*chunks as usize);
            let done = own.iter().filter(|vector| vector.is_some()).count() as u32;
            self.catalog.set_progress(*sequence, done, *chunks);
            rest = after;
        }
    }
}

fn failed(error: EmbedError) -> Outcome {
    match error.kind() {
        ErrorKind::Unavailable | ErrorKind::Overloaded => Outcome::Released,
        _ => {
            let (error_code, message) = (JobErrorCode::EmbeddingFailed, error.to_string());
            Outcome::Failed { error_code, message }
        }
    }
}

/// The vectors of the visible version of a draft's source, by the passage that they were made from.
fn visible_vectors(
    snapshot: &Snapshot,
    draft: &Draft,
) -> Result<HashMap<String, Vec<f32>>, SegmentError> {
    let mut vectors = HashMap::new();
    let Some(found) = snapshot.find(&draft.record.sub_tenant, &draft.record.id) else {
        return Ok(vectors);
    };
    let record = found.record()?;
    // Vectors sent by clients were not made from our texts.
    let is_ours = record.kind != SourceKind::Embeddings;
    let (title, searchable) = draft.words();
    // The words around the text must be unchanged as well. If the title equals the id, that may be
    // the last fallback for a title, which no passage contains, or a title that was given: it is
    // inconclusive.
    let has_same_words = record.title == title
        && record.title != record.id.as_str()
        && draft.searchable_of(&record) == searchable;
    let has_no_words = title.is_empty()
        && record.title == record.id.as_str()
        && record.filename.is_empty()
        && !record.document_metadata.contains_key("title")
        && draft.searchable_of(&record) == searchable;
    if !is_ours || !(has_same_words || has_no_words) {
        return Ok(vectors);
    }
    let segment = &found.live.segment;
    for row in found.rows().into_iter().map(RowId) {
        let text = segment.text(row)?;
        let around = Surroundings { title, searchable, context: segment.context(row) };
        vectors.insert(passage(around, &text), segment.original_vector(row)?);
    }
    Ok(vectors)
}
