//! Crash points: states that a power cut may leave, each opened by the real recovery and judged.
//!
//! One crash point is a cut at one operation of a run (before each change of the disk, before each
//! sync, at the end) with one choice of what survives it: in prefix mode as with a journalling file
//! system, in hostile mode anything that POSIX allows, contents without a sync torn. It is opened,
//! must show what was promised, and is written to. That is a run as well: it is cut at one of its
//! operations or at its end, and so is what follows on that cut; at last it is reopened.
//!
//! The run is made once, and each of its points from a record of it. A state of a workload that is
//! the same as one before, with the same promises, is counted as a point but not opened again. A
//! seed decides a workload, its ids and all choices, so that what fails repeats:
//! `LODESTONE_CRASH_SEED=N cargo nextest run --test crash_points points`. The test goes on with
//! further seeds until it has made `LODESTONE_CRASH_POINTS`, on `LODESTONE_CRASH_THREADS` threads.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use lodestone_io::{CrashDisk, CrashMode, Moment};

use crate::workload::{self, Place, Promise, Random, Step};

/// Choices of what survives a cut, for each operation of a workload.
const CHOICES: u64 = 8;
/// Cuts in a row, each during the recovery from the one before.
const CUTS_MAX: usize = 3;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// The points of one workload.
struct Points {
    disk: Arc<CrashDisk>,
    /// States that were opened, each with its promises.
    seen: HashSet<(u64, u64)>,
    points: u64,
    /// A hash of all points in order.
    trace: u64,
}

impl Points {
    /// Makes and judges every point of the workload of `seed`.
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

    /// Makes one point, and if its state is new, judges it and cuts the recovery from it.
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

/// Goal: the judge of the points expects the right things, and each step has something to do.
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
