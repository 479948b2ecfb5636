//! The power goes at every sync of a fixed workload in turn, and comes back.
//!
//! Model: `CrashDisk` keeps what was synced and chooses, by a seed, what else survives: in prefix
//! mode as a journalling file system does, in hostile mode anything that POSIX allows. More seeds:
//! `LODESTONE_CRASH_SEEDS=50 cargo nextest run --test crash every_sync`.

use std::ops::Range;
use std::sync::Arc;

use lodestone_io::{CrashDisk, CrashMode};

use crate::workload::{self, STEPS, Step};

const MODES: [CrashMode; 2] = [CrashMode::Prefix, CrashMode::Hostile];

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Seeds of what a cut leaves on the disk.
fn seeds() -> Range<u64> {
    let first = number("LODESTONE_CRASH_FIRST_SEED", 0);
    first..first + number("LODESTONE_CRASH_SEEDS", 1)
}

fn new_disk() -> (tempfile::TempDir, Arc<CrashDisk>) {
    let root = tempfile::tempdir().unwrap();
    let disk = Arc::new(CrashDisk::new(root.path()));
    (root, disk)
}

/// Syncs of the whole workload when nothing fails.
fn syncs() -> u64 {
    let (_root, disk) = new_disk();
    assert_eq!(workload::run(&disk).acknowledged, STEPS.len());
    disk.syncs()
}

#[test]
fn the_workload_does_what_it_is_meant_to() {
    let (_root, disk) = new_disk();
    let collection = workload::open(&disk, 1, None).unwrap();
    for (step, expected) in STEPS.iter().zip(&workload::expected()[1..]) {
        let had_work = workload::take(&collection, *step).unwrap();
        assert!(had_work, "{step:?} has something to do");
        assert_eq!(workload::visible(&collection), *expected, "{step:?}");
        if matches!(step, Step::CollectGarbage) {
            assert_eq!(collection.collect_garbage().unwrap(), 0, "nothing is held back");
        }
    }
}

fn sweep(mode: CrashMode) {
    let (states, syncs) = (workload::expected(), syncs());
    let mut points = 0;
    for sync in 0..=syncs {
        for seed in seeds() {
            let (_root, disk) = new_disk();
            disk.fail_at(sync);
            let run = workload::run(&disk);
            disk.crash(seed, mode);
            let context = format!("{mode:?}, seed {seed}, cut at sync {sync} of {syncs}");
            workload::check(&disk, &run, &states, &context);
            points += 1;
        }
    }
    println!("{mode:?}: {syncs} syncs, {points} crash points, 0 violations");
}

#[test]
fn a_cut_at_every_sync_that_keeps_a_prefix() {
    sweep(CrashMode::Prefix);
}

#[test]
fn a_cut_at_every_sync_that_keeps_anything() {
    sweep(CrashMode::Hostile);
}

/// Goal: recovery itself may be cut, at each of its syncs, and so may the recovery after that.
#[test]
fn a_second_cut_during_recovery() {
    let (states, syncs) = (workload::expected(), syncs());
    let mut points = 0;
    for sync in (0..syncs).step_by(5) {
        for later in 0..6 {
            let (_root, disk) = new_disk();
            let mode = MODES[((sync / 5 + later) % 2) as usize];
            disk.fail_at(sync);
            let run = workload::run(&disk);
            disk.crash(sync, mode);
            for turn in 0..2 {
                disk.fail_at(disk.syncs() + later + turn);
                drop(workload::open(&disk, 10 + turn, run.head));
                disk.crash(sync + later + turn, mode);
            }
            let context = format!("{mode:?}, cut at sync {sync}, then at {later} of recovery");
            workload::check(&disk, &run, &states, &context);
            points += 1;
        }
    }
    println!("{points} double cuts, 0 violations");
}
