//! The catalog as the job queue of the pipelines.

use std::time::Duration;

use super::Catalog;
use crate::job::{
    Claim, ClaimLimits, Duty, FetchedOriginal, JobError, JobQueue, NewJob, Settled, Settlement,
    Submitted,
};
use lodestone_types::{CollectionId, CommitHead, Sequence, Stage};

impl JobQueue for Catalog {
    fn submit(&self, job: NewJob) -> Result<Submitted, JobError> {
        Ok(Self::submit(self, job)?)
    }

    fn claim(&self, duty: Duty, limits: ClaimLimits) -> Result<Option<Claim>, JobError> {
        Ok(Self::claim(self, duty, limits)?)
    }

    fn fetched(&self, sequence: Sequence, original: FetchedOriginal) -> Result<bool, JobError> {
        Ok(Self::fetched(self, sequence, original)?)
    }

    fn set_stage(&self, sequences: &[Sequence], stage: Stage) {
        Self::set_stage(self, sequences, stage);
    }

    fn live(&self, sequences: &[Sequence]) -> Result<Vec<Sequence>, JobError> {
        Ok(Self::live(self, sequences)?)
    }

    fn amended(&self, claimed: &[(Sequence, u32)]) -> Result<Vec<Sequence>, JobError> {
        Ok(Self::amended(self, claimed)?)
    }

    fn settle(
        &self,
        collection: CollectionId,
        settlements: Vec<Settlement>,
        head: Option<CommitHead>,
    ) -> Result<Settled, JobError> {
        Ok(Self::settle(self, collection, settlements, head)?)
    }

    fn interrupted(&self) -> Result<Vec<(CollectionId, Vec<Sequence>)>, JobError> {
        Ok(Self::interrupted(self)?)
    }

    fn requeue_interrupted(&self) -> Result<usize, JobError> {
        Ok(Self::requeue_interrupted(self)?)
    }

    fn wait_for_work(&self, duty: Duty, timeout: Duration) -> bool {
        self.inner.work.of(duty).wait(timeout, || self.inner.clock.now())
    }
}
