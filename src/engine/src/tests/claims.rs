//! Tests of claims whose jobs end at different times.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use super::sweep::{make_tenant, process_with};
use super::*;
use crate::ingest::GraphReader;
use lodestone_catalog::JobScope;
use lodestone_catalog::job::{ClaimLimits, Duty};
use lodestone_graph::claims::Request;
use lodestone_io::store::Key;
use lodestone_io::store::testing::MemoryBlobs;

/// Acts between the reading of a claim and its publication: in the first claim, another worker
/// takes the jobs that were released, and then the claim fails.
#[derive(Debug, Default)]
struct TakenMeanwhile {
    catalog: OnceLock<Catalog>,
    clock: OnceLock<Arc<ManualClock>>,
    has_failed: AtomicBool,
}

impl GraphReader for TakenMeanwhile {
    fn reply(&self, _: &Request, _: Duration) -> Result<String, String> {
        if !self.has_failed.swap(true, Ordering::SeqCst) {
            self.clock.get().unwrap().advance_millis(3_600_000);
            let limits = ClaimLimits { jobs: 9, bytes: u64::MAX };
            let catalog = self.catalog.get().unwrap();
            let taken = catalog.claim_except(Duty::Process, limits, Vec::new()).unwrap().unwrap();
            assert_eq!(taken.jobs.len(), 1, "the one that was given back");
            panic!("the claim fails");
        }
        Err("it rests".to_owned())
    }

    fn end(&self) {}
}

/// Goal: a claim that fails does not touch jobs that it had released and that another worker has
/// taken.
#[test]
fn what_was_given_back_is_not_ended_twice() {
    let store: Arc<dyn BlobStore> = Arc::<MemoryBlobs>::default();
    let dir = tempfile::tempdir().unwrap();
    let clock = Arc::new(ManualClock::new(START));
    let reader = Arc::<TakenMeanwhile>::default();
    let graph_reader = Some(Arc::clone(&reader) as Arc<dyn GraphReader>);
    let process = process_with(&store, dir.path(), &clock, graph_reader);
    let (catalog, ingest) = (&process.catalog, &process.ingest);
    reader.catalog.set(catalog.clone()).unwrap();
    reader.clock.set(Arc::clone(&clock)).unwrap();
    let tenant = make_tenant(catalog, "acme");
    let (collection, scope) = (ingest.open(&tenant).unwrap(), SubTenantId::default_name());
    for source in ["unreadable", "sound"] {
        let submission = submission(source, "everywhere is wind", &Metadata::new());
        ingest.submit(&tenant, &collection, &scope, submission).unwrap();
        if source == "unreadable" {
            let stored = catalog.raw_keys(tenant.collection).unwrap().into_iter().next().unwrap();
            store.delete(&Key::parse(&stored).unwrap()).unwrap();
        }
    }
    ingest.recover().unwrap();
    let threads = ingest.start();
    let in_work = wait_for("the second claim", || {
        // A claim reads for a limited time by this clock, so that the first one takes both jobs.
        if reader.has_failed.load(Ordering::SeqCst) {
            clock.advance_millis(1000);
        }
        let counts = catalog.job_counts(&JobScope::Everywhere).unwrap();
        (counts.success == 1).then_some(counts.in_progress)
    });
    assert_eq!(in_work, 1, "the other worker still has the one that cannot be read");
    ingest.stop();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
}
