//! Counters of the device's work and of fallbacks, for operators.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::cuda::DeviceError;

/// Counters since the start.
#[derive(Debug, Default)]
pub struct Counters {
    queries: AtomicU64,
    by_originals: AtomicU64,
    assigned_rows: AtomicU64,
    encoded_rows: AtomicU64,
    launches: AtomicU64,
    together: AtomicU64,
    uploads: AtomicU64,
    uploaded_bytes: AtomicU64,
    masks: AtomicU64,
    evictions: AtomicU64,
    losses: AtomicU64,
    unpinned: AtomicU64,
    out_of_memory: AtomicU64,
    lost: AtomicU64,
    uploading: AtomicU64,
    too_many: AtomicU64,
    refused: AtomicU64,
}

impl Counters {
    pub(super) fn answered(&self, queries: usize) {
        self.queries.fetch_add(queries as u64, Relaxed);
    }

    /// Counts those of the answered queries that T1 could not decide.
    pub(super) fn answered_by_originals(&self, queries: usize) {
        self.by_originals.fetch_add(queries as u64, Relaxed);
    }

    /// Counts rows assigned to their nearest points during a build.
    pub(super) fn assigned(&self, rows: usize) {
        self.assigned_rows.fetch_add(rows as u64, Relaxed);
    }

    /// Counts rows encoded as T0.
    pub(super) fn encoded(&self, rows: usize) {
        self.encoded_rows.fetch_add(rows as u64, Relaxed);
    }

    /// Counts a run that served `requests` requests.
    pub(super) fn ran(&self, requests: usize) {
        self.launches.fetch_add(1, Relaxed);
        if requests > 1 {
            self.together.fetch_add(requests as u64, Relaxed);
        }
    }

    pub(super) fn uploaded(&self, bytes: u64) {
        self.uploads.fetch_add(1, Relaxed);
        self.uploaded_bytes.fetch_add(bytes, Relaxed);
    }

    /// Counts a mask uploaded for the searches that repeat it.
    pub(super) fn kept_mask(&self) {
        self.masks.fetch_add(1, Relaxed);
    }

    pub(super) fn evicted(&self) {
        self.evictions.fetch_add(1, Relaxed);
    }

    pub(super) fn device_lost(&self) {
        self.losses.fetch_add(1, Relaxed);
    }

    /// Counts a queue without page-locked memory.
    pub(super) fn unpinned(&self) {
        self.unpinned.fetch_add(1, Relaxed);
    }

    /// Counts a request that the CPU answered because of `error`.
    pub(super) fn fell_back(&self, error: &DeviceError) {
        let counter = match error {
            DeviceError::OutOfMemory { .. } => &self.out_of_memory,
            DeviceError::Lost { .. } | DeviceError::NoDevice { .. } => &self.lost,
            DeviceError::Uploading => &self.uploading,
            DeviceError::TooManyCandidates => &self.too_many,
            DeviceError::Refused { .. }
            | DeviceError::Shape { .. }
            | DeviceError::Kernel { .. } => &self.refused,
        };
        counter.fetch_add(1, Relaxed);
    }

    /// Returns names and values of all counters, in a fixed order.
    pub fn read(&self) -> Vec<(&'static str, u64)> {
        let named = [
            ("gpu_queries", &self.queries),
            ("gpu_queries_by_originals", &self.by_originals),
            ("gpu_runs", &self.launches),
            ("gpu_requests_run_together", &self.together),
            ("gpu_rows_assigned", &self.assigned_rows),
            ("gpu_rows_encoded", &self.encoded_rows),
            ("gpu_uploads", &self.uploads),
            ("gpu_uploaded_bytes", &self.uploaded_bytes),
            ("gpu_masks_uploaded", &self.masks),
            ("gpu_evictions", &self.evictions),
            ("gpu_losses", &self.losses),
            ("gpu_queues_unpinned", &self.unpinned),
            ("gpu_fallbacks_out_of_memory", &self.out_of_memory),
            ("gpu_fallbacks_lost", &self.lost),
            ("gpu_fallbacks_uploading", &self.uploading),
            ("gpu_fallbacks_candidates", &self.too_many),
            ("gpu_fallbacks_refused", &self.refused),
        ];
        named.map(|(name, counter)| (name, counter.load(Relaxed))).to_vec()
    }

    /// Returns the value of one counter; 0 if the name is unknown.
    pub fn get(&self, name: &str) -> u64 {
        let found = self.read().into_iter().find(|(known, _)| *known == name);
        found.map_or(0, |(_, value)| value)
    }
}
