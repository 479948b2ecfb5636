//! Random operations checked against a simple model, with server stops in between.
//!
//! The model is a list of jobs and a straightforward implementation of the queue's rules. After
//! every operation the catalog must agree with the model on every source.

use crate::job::Duty;
use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::{JobCounts, JobScope};
use lodestone_types::{JobEvent, JobState};

#[derive(Debug, Clone)]
enum Op {
    Submit { tenant: usize, source: usize, keeps_metadata: bool },
    Claim { jobs: usize },
    Settle { pick: usize, how: usize },
    Cancel { tenant: usize, source: usize },
    Wait { millis: u64 },
    Stop,
}

fn op() -> impl Strategy<Value = Op> {
    let place = (0..3_usize, 0..4_usize);
    prop_oneof![
        4 => (place.clone(), any::<bool>()).prop_map(|((tenant, source), keeps_metadata)| {
            Op::Submit { tenant, source, keeps_metadata }
        }),
        3 => (1..4_usize).prop_map(|jobs| Op::Claim { jobs }),
        3 => (0..8_usize, 0..4_usize).prop_map(|(pick, how)| Op::Settle { pick, how }),
        1 => place.prop_map(|(tenant, source)| Op::Cancel { tenant, source }),
        1 => (0..40_000_u64).prop_map(|millis| Op::Wait { millis }),
        1 => Just(Op::Stop),
    ]
}

#[derive(Debug, Clone)]
struct ModelJob {
    place: (usize, usize),
    state: JobState,
    not_before: Timestamp,
    version: u32,
    map: Option<Metadata>,
}

type Model = BTreeMap<Sequence, ModelJob>;

struct World {
    fixture: Fixture,
    collections: Vec<CollectionId>,
    model: Model,
    uploads: usize,
}

impl World {
    fn new() -> Self {
        let fixture = Fixture::new();
        let collections = (0..3).map(|n| fixture.tenant(&format!("t{n}")).collection).collect();
        Self { fixture, collections, model: Model::new(), uploads: 0 }
    }

    fn newest(&self, place: (usize, usize)) -> Option<(Sequence, &ModelJob)> {
        let mut of_place = self.model.iter().filter(|(_, job)| job.place == place);
        of_place.next_back().map(|(sequence, job)| (*sequence, job))
    }

    fn submit(&mut self, place: (usize, usize), keeps_metadata: bool) {
        self.uploads += 1;
        let mut job = self.fixture.job(self.collections[place.0], &format!("s{}", place.1));
        job.document_metadata = match keeps_metadata {
            true => MetadataChange::Keep,
            false => MetadataChange::Replace(metadata("n", &self.uploads.to_string())),
        };
        let earlier = self.newest(place).map(|(_, job)| job.clone());
        let stored = earlier.as_ref().filter(|job| job.state.status != JobStatus::Success);
        let map = match &job.document_metadata {
            MetadataChange::Replace(map) => Some(map.clone()),
            MetadataChange::Keep => stored.and_then(|job| job.map.clone()),
        };
        let submitted = self.fixture.catalog.submit(job).unwrap();
        let version = earlier.map_or(0, |job| job.version) + 1;
        assert_eq!(submitted.version, version);
        self.model.retain(|_, job| job.place != place || job.state.status != JobStatus::Queued);
        let (state, not_before) = (JobState::QUEUED, Timestamp(0));
        let fresh = ModelJob { place, state, not_before, version, map };
        assert!(self.model.insert(submitted.sequence, fresh).is_none());
    }

    /// The jobs that a claim in `collection` must take.
    fn expected(&self, tenant: usize, jobs: usize) -> Vec<Sequence> {
        let now = self.fixture.clock.now();
        let is_running = |place| {
            let running = |job: &ModelJob| job.state.status == JobStatus::InProgress;
            self.model.values().any(|job| job.place == place && running(job))
        };
        let is_ready = |job: &ModelJob| {
            job.place.0 == tenant
                && job.state.status == JobStatus::Queued
                && job.not_before <= now
                && !is_running(job.place)
        };
        let is_suspect = |job: &ModelJob| job.state.attempts + job.state.interruptions > 0;
        let ready: Vec<_> = self.model.iter().filter(|(_, job)| is_ready(job)).collect();
        match ready.first() {
            Some((sequence, first)) if is_suspect(first) => vec![**sequence],
            _ => {
                let plain = ready.iter().filter(|(_, job)| !is_suspect(job));
                plain.map(|(sequence, _)| **sequence).take(jobs).collect()
            }
        }
    }

    fn claim(&mut self, jobs: usize) {
        let claim = self
            .fixture
            .catalog
            .claim(Duty::Process, ClaimLimits { jobs, bytes: u64::MAX })
            .unwrap();
        let Some(claim) = claim else {
            for tenant in 0..3 {
                assert_eq!(self.expected(tenant, jobs), [], "nothing was left behind");
            }
            return;
        };
        let tenant = self.collections.iter().position(|c| *c == claim.collection).unwrap();
        let taken: Vec<_> = claim.jobs.iter().map(|job| job.sequence).collect();
        assert_eq!(taken, self.expected(tenant, jobs));
        for job in &claim.jobs {
            let known = self.model.get_mut(&job.sequence).unwrap();
            known.state = known.state.after(JobEvent::Claimed).unwrap();
            let map = known.map.clone().map_or(MetadataChange::Keep, MetadataChange::Replace);
            assert_eq!(job.document_metadata, map);
            assert_eq!(job.version, known.version);
        }
    }

    fn end(&mut self, sequence: Sequence, event: JobEvent) {
        let now = self.fixture.clock.now();
        let place = self.model[&sequence].place;
        let is_newest = self.newest(place).is_some_and(|(newest, _)| newest == sequence);
        let job = self.model.get_mut(&sequence).unwrap();
        job.state = job.state.after(event).unwrap();
        if event == JobEvent::Failed {
            let pause = [1_000, 4_000][(job.state.attempts as usize - 1).min(1)];
            job.not_before = now.plus_millis(pause);
        }
        if job.state.status == JobStatus::Queued && !is_newest {
            self.model.remove(&sequence);
        }
    }

    fn settle(&mut self, pick: usize, how: usize) {
        let is_running = |job: &ModelJob| job.state.status == JobStatus::InProgress;
        let running: Vec<_> =
            self.model.iter().filter(|(_, job)| is_running(job)).map(|(s, _)| *s).collect();
        let Some(sequence) = running.get(pick % running.len().max(1)).copied() else { return };
        let outcome = [PUBLISHED, rejected(), faulted(), Outcome::Released][how].clone();
        let event = outcome.event();
        let collection = self.collections[self.model[&sequence].place.0];
        self.fixture.settle(collection, sequence, outcome);
        self.end(sequence, event);
    }

    fn stop(mut self) -> Self {
        self.fixture = self.fixture.reopen();
        let interrupted = self.fixture.catalog.interrupted().unwrap();
        let found: Vec<_> = interrupted.into_iter().flat_map(|(_, sequences)| sequences).collect();
        let running = |job: &ModelJob| job.state.status == JobStatus::InProgress;
        let expected: Vec<_> =
            self.model.iter().filter(|(_, job)| running(job)).map(|(s, _)| *s).collect();
        assert_eq!(found.len(), expected.len());
        self.fixture.catalog.requeue_interrupted().unwrap();
        for sequence in expected {
            assert!(found.contains(&sequence));
            self.end(sequence, JobEvent::Interrupted);
        }
        self
    }

    fn check(&self) {
        for tenant in 0..3 {
            for source in 0..4 {
                let expected = self.newest((tenant, source)).map(|(_, job)| job.state.status);
                let found = self.fixture.status(self.collections[tenant], &format!("s{source}"));
                assert_eq!(found, expected, "{tenant} {source}");
            }
        }
        let mut counts = JobCounts::default();
        for job in self.model.values() {
            match job.state.status {
                JobStatus::Queued => counts.queued += 1,
                JobStatus::InProgress => counts.in_progress += 1,
                JobStatus::Success => counts.success += 1,
                JobStatus::Errored => counts.errored += 1,
            }
        }
        let found = self.fixture.catalog.job_counts(&JobScope::Everywhere).unwrap();
        assert_eq!(found, counts);
        self.fixture.assert_sums_are_exact();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_queue_does_what_the_model_does(ops in prop::collection::vec(op(), 1..60)) {
        let mut world = World::new();
        for op in ops {
            match op {
                Op::Submit { tenant, source, keeps_metadata } => {
                    world.submit((tenant, source), keeps_metadata);
                }
                Op::Claim { jobs } => world.claim(jobs),
                Op::Settle { pick, how } => world.settle(pick, how),
                Op::Cancel { tenant, source: n } => {
                    let collection = world.collections[tenant];
                    let asked = [source(&format!("s{n}"))];
                    let catalog = &world.fixture.catalog;
                    catalog.cancel_sources(collection, &sub("default"), &asked).unwrap();
                    world.model.retain(|_, job| job.place != (tenant, n));
                }
                Op::Wait { millis } => world.fixture.clock.advance_millis(millis),
                Op::Stop => world = world.stop(),
            }
            world.check();
        }
    }
}
