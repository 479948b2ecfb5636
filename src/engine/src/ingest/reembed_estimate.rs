//! The cost of changing the embedding model of a tenant, measured with a sample.

use std::time::Instant;

use crate::ingest::stored_passages::passages_of;
use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::Tenant;
use lodestone_embed::{Embedder, Lane};
use lodestone_storage::collection::{Collection, CollectionError, Snapshot};
use lodestone_types::RequestContext;

/// Passages that an estimate embeds.
const SAMPLE_PASSAGES: usize = 64;

/// The work that changing the model of a tenant would be.
#[derive(Debug, Clone, PartialEq)]
pub struct ReembedEstimate {
    /// Fingerprint of the model of its vectors; none where there are none.
    pub from: Option<String>,
    /// Fingerprint of the new model.
    pub to: String,
    /// Chunks to embed.
    pub chunks: u64,
    /// Tokens of them, from a sample.
    pub tokens: u64,
    /// Chunks a second of the new model, measured with the sample; 0 where there is nothing.
    pub chunks_per_second: f64,
    /// Seconds of the work at that rate.
    pub seconds: f64,
    /// Bytes of disk that the new segments take beside the present ones.
    pub disk_bytes: u64,
    /// Bytes of disk that are free.
    pub free_bytes: u64,
}

impl Ingest {
    /// Measures the work that changing a tenant to another model would be.
    ///
    /// # Errors
    /// Errors of the model or the disk.
    pub fn estimate_reembed(
        &self,
        tenant: &Tenant,
        collection: &Collection,
        model: &dyn Embedder,
    ) -> Result<ReembedEstimate, IngestError> {
        let snapshot = collection.snapshot();
        let (from, to) = (snapshot.manifest.model(), model.fingerprint());
        let mut estimate = ReembedEstimate {
            from: from.map(str::to_owned),
            to: to.to_owned(),
            chunks: 0,
            tokens: 0,
            chunks_per_second: 0.0,
            seconds: 0.0,
            disk_bytes: 0,
            free_bytes: self.gauge.free_bytes(),
        };
        if from.is_none_or(|from| from == to) {
            return Ok(estimate);
        }
        let open = collection.open_other(&snapshot.manifest)?;
        let own = snapshot.manifest.other.as_ref().is_some_and(|other| other.embedding == to);
        let open = if own { open } else { Vec::new() };
        let compared = snapshot.compare(&open).map_err(CollectionError::from)?;
        let mut sample = Vec::new();
        let stride = (compared.missing.len() / SAMPLE_PASSAGES).max(1);
        for found in compared.missing.iter().step_by(stride) {
            let of_source = passages_of(tenant, found).map_err(CollectionError::from)?;
            let share = SAMPLE_PASSAGES.div_ceil(compared.missing.len()).max(1);
            sample.extend(of_source.into_iter().take(share));
        }
        sample.truncate(SAMPLE_PASSAGES);
        if sample.is_empty() {
            return Ok(estimate);
        }
        let tokens: usize = sample.iter().map(|text| model.token_offsets(text).len()).sum();
        let (count, begun) = (sample.len() as f64, Instant::now());
        let context = RequestContext::default().of_tenant(collection.id());
        model.embed_within(Lane::Bulk, &context, sample)?;
        let seconds = begun.elapsed().as_secs_f64();
        let chunks = compared.missing_rows;
        estimate.chunks = chunks;
        estimate.tokens = (tokens as f64 / count * chunks as f64) as u64;
        estimate.chunks_per_second = count / seconds.max(1e-6);
        estimate.seconds = chunks as f64 / estimate.chunks_per_second;
        estimate.disk_bytes = disk_bytes(&snapshot, chunks, model.dimension());
        Ok(estimate)
    }
}

/// Bytes of segments with so many rows of a tenant, with vectors of another width: of each number
/// one byte to search by, and two that are exact.
fn disk_bytes(snapshot: &Snapshot, rows: u64, width: usize) -> u64 {
    let (mut bytes, mut all) = (0_u64, 0_u64);
    for live in &snapshot.segments {
        let own = u64::from(live.segment.row_count());
        let vectors = own * 3 * live.segment.dimension() as u64;
        bytes += live.entry.bytes.saturating_sub(vectors);
        all += own;
    }
    let share = u128::from(bytes) * u128::from(rows) / u128::from(all.max(1));
    share as u64 + rows * 3 * width as u64
}
