//! Web pages: fetched by threads of their own, then processed like any other source.
//!
//! ```text
//! job without an original -> claim (one page) -> fetch -> original on disk -> noted in the catalog
//!                                                   -> processed like any other claim (worker)
//! ```
//! A page may take half a minute to arrive, so each of these threads handles one at a time: a slow
//! site blocks one thread, not a batch. A fetched page is durable before it is processed, so that
//! no site is asked again after a crash.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::ingest::submit::replaced;
use crate::ingest::{Ingest, IngestError};
use lodestone_catalog::CatalogError;
use lodestone_catalog::job::{Claim, ClaimLimits, ClaimedJob, FetchedOriginal, Outcome};
use lodestone_storage::collection::Collection;
use lodestone_storage::collection::uploads::{self, UploadLabel};
use lodestone_types::{JobErrorCode, Origin, SourceKind, WebFailure, WebPage, WebUrl};

/// Claims of the fetching threads: one page each.
pub(super) const PAGE: ClaimLimits = ClaimLimits { jobs: 1, bytes: u64::MAX };

/// The result of fetching the pages of a claim.
pub(super) struct Fetched {
    /// Jobs that now have their original.
    pub(super) jobs: Vec<ClaimedJob>,
    /// Jobs that end here.
    pub(super) ended: Vec<(ClaimedJob, Outcome)>,
}

impl Ingest {
    /// Fetches the missing originals of the jobs of a claim.
    pub(super) fn fetch(
        &self,
        collection: &Arc<Collection>,
        claim: Claim,
    ) -> Result<Fetched, IngestError> {
        let mut fetched = Fetched { jobs: Vec::new(), ended: Vec::new() };
        for job in claim.jobs {
            match self.fetch_page(&job) {
                Ok(page) => self.keep_page(collection, job, page, &mut fetched)?,
                Err(outcome) => fetched.ended.push((job, outcome)),
            }
        }
        Ok(fetched)
    }

    fn fetch_page(&self, job: &ClaimedJob) -> Result<WebPage, Outcome> {
        let url = WebUrl::parse(&job.url).map_err(|error| Outcome::Rejected {
            error_code: JobErrorCode::FetchFailed,
            message: error.to_string(),
        })?;
        self.web.fetch(&url).map_err(|failure| failed(&failure))
    }

    /// Stores a fetched page, unless the job was canceled in the meantime. Ends the job if the
    /// tenant has no room for the page.
    fn keep_page(
        &self,
        collection: &Arc<Collection>,
        mut job: ClaimedJob,
        page: WebPage,
        fetched: &mut Fetched,
    ) -> Result<(), IngestError> {
        let url = page.canonical_url.as_str().to_owned();
        let content_type = page.media_type.unwrap_or_default();
        let label = UploadLabel {
            sub_tenant: job.sub_tenant.as_str().to_owned(),
            source: job.source.as_str().to_owned(),
            kind: SourceKind::Webpage.as_str().to_owned(),
            filename: job.filename.clone(),
            content_type: content_type.clone(),
            // The file's name holds the time of storing, not that of the request: otherwise it
            // might look like an old orphan before the catalog knows of it.
            uploaded_at: self.clock.now().0,
            tenant_metadata: replaced(&job.tenant_metadata).cloned(),
            document_metadata: replaced(&job.document_metadata).cloned(),
            origin: Origin { url: url.clone(), detail: job.detail.clone(), ..Origin::default() },
            after: job.sequence.0.checked_sub(1),
        };
        let id = collection.id();
        let raw_key = uploads::put(&*self.store, &*self.ids, id, &label, &page.bytes)?;
        let original = FetchedOriginal {
            raw_key: raw_key.as_str().to_owned(),
            url,
            content_type,
            size_bytes: page.bytes.len() as u64,
            content_hash: Sha256::digest(&page.bytes).into(),
        };
        match self.catalog.fetched(job.sequence, original.clone()) {
            Ok(true) => {}
            Ok(false) => {
                self.delete_originals(&[original.raw_key]);
                return Ok(());
            }
            Err(error @ CatalogError::TenantLimit { .. }) => {
                self.delete_originals(&[original.raw_key]);
                let (error_code, message) = (JobErrorCode::TenantLimit, error.to_string());
                fetched.ended.push((job, Outcome::Rejected { error_code, message }));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        let FetchedOriginal { raw_key, url, content_type, size_bytes, content_hash } = original;
        self.delete_originals(&[std::mem::take(&mut job.raw_key)]);
        (job.raw_key, job.url, job.content_type) = (raw_key, url, content_type);
        (job.size_bytes, job.content_hash, job.is_fetched) = (size_bytes, content_hash, true);
        fetched.jobs.push(job);
        Ok(())
    }
}

/// The outcome of a failed fetch. Temporary errors are retried, a limited number of times.
fn failed(failure: &WebFailure) -> Outcome {
    let message = failure.to_string();
    let error_code = match failure.is_blocked() {
        true => JobErrorCode::UrlBlocked,
        false => JobErrorCode::FetchFailed,
    };
    match failure.is_temporary() {
        true => Outcome::Failed { error_code, message },
        false => Outcome::Rejected { error_code, message },
    }
}
