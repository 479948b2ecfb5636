//! Crash points: states that a power cut may leave, each opened by the real recovery and checked.
//!
//! A crash point is a cut at one operation of a run (before a change of the disk, before a sync, or
//! at the end) with one choice of what survives it: in prefix mode as on a journaling file system;
//! in hostile mode anything that POSIX allows, with unsynced contents torn. The state is opened,
//! must show what was promised, and is written to. That is a run as well: it is cut at one of its
//! operations or at its end, and so is the run that follows; finally the state is reopened.
//!
//! Each workload runs once, and its crash points are derived from a recording. A state of a
//! workload that equals an earlier one, with equal promises, counts as a point but is not opened
//! again. A seed determines a workload, its ids and all choices, so that failures are reproducible:
//! `LODESTONE_CRASH_SEED=N cargo nextest run --test crash_points points`. The test continues with
//! further seeds until it has made `LODESTONE_CRASH_POINTS` points on `LODESTONE_CRASH_THREADS`
//! threads.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lodestone_io::{CrashDisk, CrashMode, Moment};

use crate::workload::{self, Place, Promise, Random, Step};

/// The number of choices of what survives a cut, per operation of a workload.
const CHOICES: u64 = 8;
/// Maximum number of successive cuts, each during the recovery from the previous one.
const CUTS_MAX: usize = 3;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The crash points of one workload.
struct Points {
    disk: Arc<CrashDisk>,
    /// The states that were opened, each with its promises.
    seen: HashSet<(u64, u64)>,
    points: u64,
    /// A hash of all points in order.
    trace: u64,
}

impl Points {
    /// Creates and checks all crash points of the workload of `seed`.
    fn of(seed: u64) -> Self {
        let (_root, disk) = workload::new_disk();
        disk.record();
        let promised = workload::run(&disk, seed);
        let moments = disk.take_recorded();
        let mut points = Self { disk, seen: HashSet::new(), points: 0, trace: 0 };
        for (at, moment) in moments.iter().enumerate() {
            for choice in 0..CHOICES {
                let random = Random::new(hash(&(seed, at, choice)));
                let mode = if choice % 2 == 0 { CrashMode::Prefix } else { CrashMode::Hostile };
                let number = points.points;
                let place = format!("point {number} of seed {seed}: {mode:?}, operation {at}");
                points.visit(moment, promised.at(at), mode, random, Place(place), 1);
            }
        }
        points
    }

    /// Creates one crash point and, if its state is new, checks it and cuts the recovery from it.
    fn visit(
        &mut self,
        moment: &Moment,
        promise: &Promise,
        mode: CrashMode,
        random: Random,
        place: Place,
        cuts: usize,
    ) {
        let state = self.disk.after_cut(moment, random.below(u64::MAX), mode);
        let key = (state.fingerprint(), hash(promise));
        self.points += 1;
        self.trace = hash(&(self.trace, key));
        if !self.seen.insert(key) {
            return;
        }
        self.disk.restore(&state);
        if cuts == CUTS_MAX {
            let promised = workload::check(&self.disk, promise, &random);
            workload::check(&self.disk, promised.at_end(), &random);
            return;
        }
        self.disk.record();
        let promised = workload::check(&self.disk, promise, &random);
        let moments = self.disk.take_recorded();
        let (last, is_ended) = (moments.len() - 1, random.below(4) == 0);
        let at = if is_ended { last } else { random.below(last as u64) as usize };
        let place = Place(format!("{}, then operation {at} of recovery", place.0));
        self.visit(&moments[at], promised.at(at), mode, random, place, cuts + 1);
    }
}

/// Goal: the model predicts the contents correctly, and each step of the fixed workload has an
/// effect.
#[test]
fn workloads_do_what_they_are_meant_to() {
    for seed in 0..20 {
        let (_root, disk) = workload::new_disk();
        let collection = workload::open(&disk, 1, None).unwrap();
        let mut expected = workload::Contents::new();
        for step in workload::steps(seed) {
            let had_work = workload::take(&collection, &step).unwrap();
            assert!(had_work || seed > 0, "{step:?} has something to do");
            expected = step.applied_to(&expected);
            assert_eq!(workload::visible(&collection), expected, "seed {seed}: {step:?}");
            if matches!(step, Step::CollectGarbage) {
                assert_eq!(collection.collect_garbage().unwrap(), 0, "nothing is held back");
            }
        }
    }
}

#[test]
fn a_seed_repeats_its_points() {
    let [once, again, other] = [1, 1, 2].map(Points::of);
    assert_eq!((once.points, once.trace), (again.points, again.trace));
    assert_ne!(once.trace, other.trace);
}

#[test]
fn every_point_keeps_every_promise() {
    let first = number("LODESTONE_CRASH_SEED").unwrap_or(0);
    let wanted = number("LODESTONE_CRASH_POINTS").unwrap_or(10_000);
    let next = AtomicU64::new(first);
    let total = Mutex::new((0, 0));
    let work = || {
        while total.lock().unwrap().0 < wanted {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let made = Points::of(seed);
            let mut total = total.lock().unwrap();
            *total = (total.0 + made.points, total.1 + made.seen.len());
            let (points, states) = *total;
            println!("after seed {seed}: {points} crash points, {states} states, 0 violations");
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..number("LODESTONE_CRASH_THREADS").unwrap_or(1) {
            scope.spawn(work);
        }
    });
}
