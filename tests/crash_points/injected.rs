//! Single writes and syncs that fail while the power stays on: EIO and ENOSPC at each of them in
//! turn.
//!
//! After a failed sync nothing more may be acknowledged, even if a retry succeeds; after a full
//! disk the same process must be able to continue.

use lodestone_io::{CrashMode, Fault, FaultKind};
use lodestone_storage::collection::Collection;
use lodestone_types::CommitHead;

use crate::workload::{self, Place, Promise, Random, Step};

/// The progress of a run.
#[derive(Debug, Default)]
struct Run {
    /// The number of acknowledged steps.
    acknowledged: usize,
    /// The last acknowledged commit, as the catalog would record it.
    head: Option<CommitHead>,
}

/// Continues after errors for as long as the collection accepts writes, retrying each step once.
fn persevere(collection: &Collection, steps: &[Step]) -> (Run, usize) {
    let (mut run, mut errors) = (Run::default(), 0);
    for step in steps {
        if workload::take(collection, step).is_err() {
            errors += 1;
            let was_poisoned = collection.is_poisoned();
            let again = workload::take(collection, step);
            let has_written = again.is_ok_and(|had_work| had_work);
            assert!(!(was_poisoned && has_written), "poison lets nothing through");
            if !has_written {
                return (run, errors + 1);
            }
        }
        run.acknowledged += 1;
        run.head = collection.head();
    }
    (run, errors)
}

fn sweep(kind: FaultKind, faults: impl Iterator<Item = Fault>) {
    let steps = workload::steps(0);
    let states = workload::expected(&steps);
    let (mut injected, mut survived) = (0, 0);
    for fault in faults {
        let (_root, disk) = workload::new_disk();
        disk.inject(fault, kind);
        let run = match workload::open(&disk, 1, None) {
            Err(_) => Run::default(),
            Ok(collection) => {
                let (run, errors) = persevere(&collection, &steps);
                let seen = workload::visible(&collection);
                assert!(seen == states[run.acknowledged], "{kind:?} at {fault:?}: reads go on");
                assert!(errors <= 2, "{kind:?} at {fault:?}: one fault, at most one refusal");
                survived += usize::from(run.acknowledged == steps.len());
                run
            }
        };
        injected += 1;
        // The process ends, and a power cut discards everything that was not written to the disk.
        disk.crash(injected, CrashMode::Hostile);
        let _place = Place(format!("{kind:?} at {fault:?}"));
        let contents = &states[run.acknowledged];
        let promise = match steps.get(run.acknowledged) {
            Some(step) => Promise::during(step, contents, run.head),
            None => Promise::settled(contents, run.head),
        };
        let random = Random::new(injected);
        let promised = workload::check(&disk, &promise, &random);
        workload::check(&disk, promised.at_end(), &random);
    }
    println!("{kind:?}: {injected} faults, {survived} runs went on to the end, 0 lost");
    if kind == FaultKind::Full {
        assert!(survived > 0, "a full disk is survived somewhere");
    }
}

/// The numbers of writes and syncs of the whole workload when nothing fails.
fn counts() -> (u64, u64) {
    let (_root, disk) = workload::new_disk();
    workload::run(&disk, 0);
    (disk.writes(), disk.syncs())
}

#[test]
fn a_device_that_fails_once_at_every_write() {
    sweep(FaultKind::Device, (0..counts().0).map(Fault::Write));
}

#[test]
fn a_device_that_fails_once_at_every_sync() {
    sweep(FaultKind::Device, (0..counts().1).map(Fault::Sync));
}

#[test]
fn a_disk_that_is_full_once_at_every_write() {
    sweep(FaultKind::Full, (0..counts().0).map(Fault::Write));
}

#[test]
fn a_disk_that_is_full_once_at_every_sync() {
    sweep(FaultKind::Full, (0..counts().1).map(Fault::Sync));
}
