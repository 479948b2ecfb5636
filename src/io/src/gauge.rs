//! Fullness of the disk, as a level that decides which requests are accepted (docs/operations.md,
//! "Disk full").
//!
//! ```text
//! used   0 %        85 %             90 %             95 %        100 %
//!        | Ample     | Tight          | Full           | Critical  |
//!          all         no merges        no new content   deletes and reads only
//! ```
//! A level ends only two percentage points below the mark at which it began, which avoids flapping.
//! A mark also requires that few bytes are free in absolute terms: a tenth of a large disk lasts
//! for months. Space reserved for others counts as neither used nor free.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{DataDir, IoError, Space};
use lodestone_types::{Clock, Timestamp};

/// Time in milliseconds for which a reading is reused.
const READING_MILLIS: u64 = 1000;
/// Used space, in thousandths, at which `Tight`, `Full` and `Critical` begin.
const MARKS: [u64; 3] = [850, 900, 950];
/// Free bytes at or above which each mark is ignored; merges need the most.
const FREE_BYTES_ENOUGH: [u64; 3] = [32 << 30, 16 << 30, 8 << 30];
/// Thousandths below its mark at which a level ends.
const HYSTERESIS: u64 = 20;
/// Free inodes below which the disk counts as `Full` and as `Critical`.
const FREE_FILES_MIN: [u64; 2] = [4096, 512];

/// Fullness level of the disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fullness {
    /// All requests are accepted.
    #[default]
    Ample,
    /// Optional growth, such as merging, is avoided.
    Tight,
    /// No new content is accepted.
    Full,
    /// Only deletions are accepted.
    Critical,
}

impl Fullness {
    const ALL: [Self; 4] = [Self::Ample, Self::Tight, Self::Full, Self::Critical];

    /// Bytes that must stay free so that a disk of this size does not reach the level from below.
    pub fn free_to_stay_below(self, total_bytes: u64) -> u64 {
        self.free_above(0, total_bytes)
    }

    /// Bytes that must be free so that a disk of this size is below the level, whatever it was.
    pub fn free_to_fall_below(self, total_bytes: u64) -> u64 {
        self.free_above(HYSTERESIS - 1, total_bytes)
    }

    /// Smallest number of free bytes with which a disk is used less than `thousandths` below the
    /// mark, or has bytes enough.
    fn free_above(self, thousandths: u64, total_bytes: u64) -> u64 {
        // Nothing is below the first level.
        let Some(at) = (self as usize).checked_sub(1) else { return u64::MAX };
        let share = u128::from(1000 - MARKS[at] + thousandths);
        let bytes = u128::from(total_bytes) * share / 1000 + 1;
        u64::try_from(bytes).map_or(FREE_BYTES_ENOUGH[at], |bytes| bytes.min(FREE_BYTES_ENOUGH[at]))
    }

    /// Computes the level of a reading, given the level before it.
    fn after(before: Self, space: Space) -> Self {
        // A file system of unknown size has no level.
        let Space { total_bytes, free_bytes, .. } = space;
        let used = u128::from(total_bytes.saturating_sub(free_bytes)) * 1000;
        let marks = MARKS.iter().zip(FREE_BYTES_ENOUGH);
        let marks = marks.filter(|(_, enough)| free_bytes < *enough).map(|(mark, _)| *mark);
        let above = |thousandths: u64| used >= u128::from(thousandths) * u128::from(total_bytes);
        let is_sized = total_bytes > 0;
        let begun = marks.clone().filter(|mark| is_sized && above(*mark)).count();
        let held = marks.filter(|mark| is_sized && above(*mark - HYSTERESIS + 1)).count();
        let by_bytes = (before as usize).clamp(begun, held);
        let by_files = match space.free_files {
            files if files < FREE_FILES_MIN[1] => Self::Critical,
            files if files < FREE_FILES_MIN[0] => Self::Full,
            _ => Self::Ample,
        };
        Self::ALL[by_bytes].max(by_files)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Reading {
    at: Option<Timestamp>,
    level: Fullness,
    total_bytes: u64,
    free_bytes: u64,
}

/// Measures the disk that holds a data directory, at most once a second.
#[derive(Debug)]
pub struct SpaceGauge {
    data: Arc<DataDir>,
    clock: Arc<dyn Clock>,
    last: Mutex<Reading>,
}

impl SpaceGauge {
    /// Creates a gauge that has not measured yet.
    pub fn new(data: Arc<DataDir>, clock: Arc<dyn Clock>) -> Self {
        Self { data, clock, last: Mutex::default() }
    }

    /// The current level. If the system reports no numbers, the last known level, initially
    /// `Ample`: a write that does not fit will fail by itself.
    pub fn level(&self) -> Fullness {
        self.read().level
    }

    /// Bytes that can still be written.
    pub fn free_bytes(&self) -> u64 {
        self.read().free_bytes
    }

    /// Bytes that can still be written before a disk that is below the level reaches it.
    pub fn room_below(&self, level: Fullness) -> u64 {
        let Reading { total_bytes, free_bytes, .. } = self.read();
        free_bytes.saturating_sub(level.free_to_stay_below(total_bytes))
    }

    /// Releases the reserve of the data directory if hardly anything is free, to let a deletion
    /// proceed.
    pub fn make_room(&self) {
        self.data.make_room();
    }

    /// Restores the reserve of the data directory if there is room.
    pub fn keep_reserve(&self) -> Result<(), IoError> {
        self.data.keep_reserve()
    }

    fn read(&self) -> Reading {
        let now = self.clock.now();
        let mut last = self.last.lock();
        let is_fresh = last.at.is_some_and(|at| now.0.abs_diff(at.0) < READING_MILLIS);
        if is_fresh {
            return *last;
        }
        match self.data.disk().space(self.data.root()) {
            Ok(space) => {
                let level = Fullness::after(last.level, space);
                log_change(last.level, level, space);
                let Space { total_bytes, free_bytes, .. } = space;
                *last = Reading { at: Some(now), level, total_bytes, free_bytes };
            }
            Err(error) => self.keep_last(&error, &mut last, now),
        }
        *last
    }

    fn keep_last(&self, error: &IoError, last: &mut Reading, now: Timestamp) {
        tracing::warn!(%error, "reading the free disk space failed");
        if last.at.is_none() {
            last.free_bytes = u64::MAX;
        }
        last.at = Some(now);
    }
}

fn log_change(before: Fullness, now: Fullness, space: Space) {
    let Space { total_bytes, free_bytes, free_files } = space;
    if now > before {
        tracing::warn!(?now, total_bytes, free_bytes, free_files, "the disk is filling up");
    } else if now < before {
        tracing::info!(?now, free_bytes, "the disk has free space again");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::{CrashDisk, Disk, StandInDisk};
    use Fullness::{Ample, Critical, Full, Tight};
    use lodestone_types::ManualClock;

    fn at(used: u64) -> Space {
        Space { total_bytes: 1000, free_bytes: 1000 - used, free_files: u64::MAX }
    }

    /// Goal: each level begins at its mark and ends two points below it, whatever the jumps.
    #[test]
    fn levels_begin_at_marks_and_end_below_them() {
        let walk = [
            (849, Ample),
            (850, Tight),
            (831, Tight),
            (830, Ample),
            (849, Ample),
            (900, Full),
            (881, Full),
            (880, Tight),
            (950, Critical),
            (931, Critical),
            (930, Full),
            (881, Full),
            (100, Ample),
            (1000, Critical),
            (840, Tight),
        ];
        let mut level = Ample;
        for (used, expected) in walk {
            level = Fullness::after(level, at(used));
            assert_eq!(level, expected, "at {used}");
        }
    }

    /// Goal: the bytes to keep free are exactly those at which levels begin and end.
    #[test]
    fn bytes_to_keep_free_agree_with_the_levels() {
        let levels = [Ample, Tight, Full, Critical];
        for total_bytes in [1000, 999_999, 30 << 30, 10 << 40] {
            for pair in levels.windows(2) {
                let (below, level) = (pair[0], pair[1]);
                let with = |before, free_bytes| {
                    let space = Space { total_bytes, free_bytes, free_files: u64::MAX };
                    Fullness::after(before, space)
                };
                let stay = level.free_to_stay_below(total_bytes);
                assert_eq!([with(Ample, stay), with(Ample, stay - 1)], [below, level]);
                let fall = level.free_to_fall_below(total_bytes);
                assert_eq!([with(level, fall), with(level, fall - 1)], [below, level]);
            }
        }
    }

    /// Goal: a large disk is not considered full while its free space would last for months.
    #[test]
    fn marks_count_where_little_is_free() {
        const TEN_TB: u64 = 10 << 40;
        let with = |free_bytes| {
            let space = Space { total_bytes: TEN_TB, free_bytes, free_files: u64::MAX };
            Fullness::after(Ample, space)
        };
        let levels = [100, 31, 15, 7].map(|gib| with(gib << 30));
        assert_eq!(levels, [Ample, Tight, Full, Critical]);
    }

    #[test]
    fn a_disk_without_room_for_files_is_full() {
        let files = |free_files| Fullness::after(Ample, Space { free_files, ..at(10) });
        assert_eq!([files(5000), files(4000), files(100)], [Ample, Full, Critical]);
        let unknown = Space { total_bytes: 0, free_bytes: 0, free_files: u64::MAX };
        assert_eq!(Fullness::after(Ample, unknown), Ample);
    }

    fn gauge(root: &std::path::Path, disk: Arc<dyn Disk>) -> (SpaceGauge, Arc<ManualClock>) {
        let data = Arc::new(DataDir::open(root, disk).unwrap());
        let clock = Arc::new(ManualClock::default());
        (SpaceGauge::new(data, clock.clone()), clock)
    }

    #[test]
    fn a_disk_is_measured_once_a_second() {
        let (root, disk) = (tempfile::tempdir().unwrap(), Arc::new(StandInDisk::default()));
        let looks = Arc::new(AtomicUsize::new(0));
        let (gauge, clock) = gauge(root.path(), disk.clone());
        let counted = Arc::clone(&looks);
        disk.before_space(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
        });
        for (used, level) in [(10, Ample), (870, Tight), (999, Critical)] {
            disk.pretend(at(used));
            clock.advance_millis(READING_MILLIS);
            assert_eq!((gauge.level(), gauge.free_bytes()), (level, 1000 - used));
            disk.pretend(at(500));
            clock.advance_millis(READING_MILLIS - 1);
            assert_eq!((gauge.level(), gauge.free_bytes()), (level, 1000 - used), "not yet");
            clock.advance_millis(1);
            gauge.level();
        }
        assert_eq!(looks.load(Ordering::SeqCst), 6);
    }

    #[test]
    fn room_ends_at_the_mark_of_a_level() {
        let (root, disk) = (tempfile::tempdir().unwrap(), Arc::new(StandInDisk::default()));
        let (gauge, clock) = gauge(root.path(), disk.clone());
        for (used, rooms) in [(100, [749, 799]), (849, [0, 50]), (920, [0, 0])] {
            disk.pretend(at(used));
            clock.advance_millis(READING_MILLIS);
            assert_eq!([Tight, Full].map(|level| gauge.room_below(level)), rooms, "at {used}");
        }
    }

    /// Goal: if the system reports no numbers, nothing is refused that was accepted before.
    #[test]
    fn a_disk_without_numbers_keeps_its_level() {
        for was_read in [false, true] {
            let base = tempfile::tempdir().unwrap();
            let disk = Arc::new(CrashDisk::new(base.path()));
            let (gauge, clock) = gauge(&disk.root().join("data"), disk.clone());
            let before = if was_read { (gauge.level(), gauge.free_bytes()) } else { (Ample, !0) };
            disk.fail_at(disk.syncs());
            assert!(disk.sync_dir(disk.root()).is_err() && disk.space(disk.root()).is_err());
            for _ in 0..3 {
                clock.advance_millis(READING_MILLIS);
                assert_eq!((gauge.level(), gauge.free_bytes()), before);
            }
        }
    }
}
