//! Estimates the cost of changing the embedding model of a tenant by measuring a sample.

use std::time::Instant;

use crate::ingest::stored_passages::passages_of;
use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::Tenant;
use lodestone_embed::{Embedder, Lane};
use lodestone_storage::collection::{Collection, CollectionError, Snapshot};
use lodestone_types::RequestContext;

/// Number of passages that an estimate embeds.
const SAMPLE_PASSAGES: usize = 64;

/// The estimated work of changing the model of a tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct ReembedEstimate {
    /// Fingerprint of the model of the present vectors; `None` if there are none.
    pub from: Option<String>,
    /// Fingerprint of the new model.
    pub to: String,
    /// Number of chunks to embed.
    pub chunks: u64,
    /// Number of tokens to embed, extrapolated from the sample.
    pub tokens: u64,
    /// Chunks per second of the new model, measured on the sample; 0 if there is nothing to embed.
    pub chunks_per_second: f64,
    /// Seconds that the work takes at that rate.
    pub seconds: f64,
    /// Bytes of disk for the new segments, in addition to the present ones.
    pub disk_bytes: u64,
    /// Bytes of disk that are free.
    pub free_bytes: u64,
}

impl Ingest {
    /// Estimates the work of changing a tenant to another model. Embeds a sample to do so.
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

/// Bytes of segments with `rows` rows of a tenant and vectors of another dimension. Each component
/// takes one byte to search by and two for the exact value.
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
