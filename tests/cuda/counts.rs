//! Counts instead of timings: exact numbers of launches, copies and bytes for each kind of work, on
//! a device that executes nothing; and the minimum time that a card needs for what was launched,
//! compared with the targets. An estimate that misses its target fails the test unless the table
//! expects the miss; if it does, reaching the target fails.
//!
//! The estimate for a launch is the larger of its memory traffic and its arithmetic at the limits
//! of the card, plus [`LAUNCH_SECONDS`]. Caches are ignored: each byte is read from memory once. A
//! search is assumed to find rank x step rows per query; the rows within two bounds of the
//! threshold, which depend on the data, are extra. Other work within a block (comparing products,
//! atomics) is not included.

use std::sync::Arc;

use lodestone_compute::cuda::assign::assign;
use lodestone_compute::cuda::encode::{OneBitSlots, encode_one_bit};
use lodestone_compute::cuda::numbers::{Numbers, ResidentRows};
use lodestone_compute::cuda::workspace::{Scratch, Workspace};
use lodestone_compute::kmeans::Centroids;
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{
    BoundedQuery, ComputeBackend, ErrorBound, FullRows, PreparedQuery, RowMask, Selection,
    VectorRows,
};
use lodestone_types::RowId;

use crate::compile::launch_bounds;
use crate::embedding::{PASSAGE_TOKENS, recorded_batch};
use crate::launches::{CARDS as SHAPES, backend};
use crate::recording::{Noted, Recording, Traffic};

const DIMENSION: usize = 384;
const K: usize = 10;
/// Number of rows in a build, and of points to which they are assigned.
const BUILT_ROWS: usize = 1 << 18;
const POINTS: usize = 4096;

/// One million, for the table.
const M: usize = 1_000_000;

/// Number of multiprocessors, and maximum shared memory of a block; shared memory that the system
/// reserves per block.
const CARD: (u32, u32) = SHAPES[1];
const SHARED_KEPT: u32 = 1 << 10;

/// Limits of a card, in bytes per second.
struct Card {
    name: &'static str,
    /// Memory bandwidth according to the vendor.
    memory: f64,
    /// Measured bandwidth of a copy, counting bytes read and written.
    copied: f64,
}

const CARDS: [Card; 2] = [
    Card { name: "H100", memory: 3.35e12, copied: 3.0e12 },
    Card { name: "H200", memory: 4.8e12, copied: 4.3e12 },
];
/// Dense operations per second of both cards, according to the vendor.
const INT8: f64 = 1979e12;
const F16: f64 = 990e12;
/// Shared memory bandwidth in bytes per second: 132 multiprocessors, 128 bytes per clock at 1.98
/// GHz.
const SHARED: f64 = 33e12;
/// Bandwidth between host and card in bytes per second: PCIe 5, 16 lanes.
const BUS: f64 = 64e9;
/// Fixed cost of each launch and each copy, in addition to its bytes.
const LAUNCH_SECONDS: f64 = 2.5e-6;
const COPY_SECONDS: f64 = 8e-6;

/// The rows that a search visits.
#[derive(Clone, Copy)]
enum Chosen {
    All,
    /// A mask that one in this many rows passes, used for the second time.
    Mask(usize),
    /// A list of this many rows.
    List(usize),
}

#[derive(Clone, Copy)]
enum Work {
    /// Numbers of rows and queries.
    Search(usize, usize, Chosen),
    /// Number of nearest points found for each row.
    Assign(usize),
    Encode,
    Embed,
}
use Chosen::{All, List, Mask};
use Work::{Assign, Embed, Encode, Search};

/// A target, for the kernels or for everything.
enum Goal {
    /// Fraction of the copy bandwidth at which the kernels read the codes of passing rows.
    Memory(f64),
    /// Fraction of the copy bandwidth over all launches and copies.
    Whole(f64),
    /// Fraction of the given operations per second at which the kernels compute the required
    /// products.
    Rate(f64, f64),
    /// Milliseconds of all launches and copies.
    Millis(f64),
}
use Goal::{Memory, Millis, Rate, Whole};

struct Case {
    name: &'static str,
    work: Work,
    /// Numbers of launches, uploads, downloads, fills and synchronizations; bytes uploaded and
    /// downloaded.
    counts: [u64; 7],
    /// Targets, and whether the estimates reach them on each of [`CARDS`].
    goals: &'static [(Goal, [bool; 2])],
    /// Measured milliseconds of everything on an H200 (benches/runs/2026-11-26-h200).
    measured: Option<f64>,
}

const YES: [bool; 2] = [true; 2];
const NO: [bool; 2] = [false; 2];
/// One case per line.
#[rustfmt::skip]
const CASES: [Case; 14] = [
    Case { name: "1M rows, 1 query", work: Search(M, 1, All),
        counts: [4, 1, 1, 0, 0, 400, 264],
        goals: &[(Memory(0.75), YES), (Whole(0.75), YES)], measured: Some(0.125) },
    Case { name: "1M rows, 16 queries", work: Search(M, 16, All),
        counts: [4, 1, 1, 0, 0, 6_400, 4_044],
        goals: &[(Memory(0.75), YES), (Whole(0.75), YES)], measured: Some(0.143) },
    Case { name: "1M rows, 64 queries", work: Search(M, 64, All),
        counts: [4, 1, 1, 0, 0, 25_600, 16_140],
        goals: &[], measured: Some(0.255) },
    Case { name: "1M rows, 256 queries", work: Search(M, 256, All),
        counts: [4, 1, 1, 0, 0, 102_400, 64_524],
        goals: &[(Rate(0.65, F16), YES)], measured: Some(0.532) },
    Case { name: "1M rows, 1,024 queries", work: Search(M, 1024, All),
        counts: [4, 1, 1, 0, 0, 409_600, 258_060],
        goals: &[(Rate(0.65, F16), YES), (Millis(1.55), YES)], measured: Some(1.973) },
    Case { name: "10M rows, 1 query", work: Search(10 * M, 1, All),
        counts: [4, 1, 1, 0, 0, 400, 264],
        goals: &[(Memory(0.85), YES), (Whole(0.85), YES)], measured: Some(0.962) },
    Case { name: "10M rows, 16 queries", work: Search(10 * M, 16, All),
        counts: [4, 1, 1, 0, 0, 6_400, 4_044],
        goals: &[(Memory(0.85), YES), (Whole(0.85), YES)], measured: Some(0.990) },
    Case { name: "1M rows, 1 query, mask of a half again", work: Search(M, 1, Mask(2)),
        counts: [4, 1, 1, 0, 0, 400, 264], goals: &[], measured: None },
    Case { name: "10M rows, 1 query, mask of a tenth again", work: Search(10 * M, 1, Mask(10)),
        counts: [4, 1, 1, 0, 0, 400, 264],
        goals: &[(Memory(0.6), YES)], measured: None },
    Case { name: "1M rows, 1 query, list of 100,000", work: Search(M, 1, List(100_000)),
        counts: [4, 2, 1, 0, 0, 400_400, 264], goals: &[], measured: None },
    Case { name: "262,144 rows to the nearest of 4,096", work: Assign(1),
        counts: [1, 3, 1, 1, 0, 2_637_824, 2_097_152],
        goals: &[(Rate(0.5, INT8), YES)], measured: None },
    // One pass over all points for each of the nearest.
    Case { name: "262,144 rows to the 12 nearest of 4,096", work: Assign(12),
        counts: [12, 3, 1, 1, 0, 2_637_824, 25_165_824],
        goals: &[(Rate(0.5, INT8), NO)], measured: None },
    Case { name: "262,144 rows encoded", work: Encode,
        counts: [1, 5, 1, 0, 0, 403_725_824, 15_728_640], goals: &[], measured: None },
    Case { name: "16 passages of 128 tokens embedded", work: Embed,
        counts: [44, 3, 1, 0, 0, 16_964, 24_576], goals: &[], measured: None },
];

#[test]
fn counts_are_exact_and_estimates_reach_the_targets() {
    for case in &CASES {
        let (launches, traffic) = recorded(case.work);
        let Traffic { uploads, downloads, fills, synchronisations, .. } = traffic;
        let counts = [
            launches.len() as u64,
            uploads,
            downloads,
            fills,
            synchronisations,
            traffic.uploaded,
            traffic.downloaded,
        ];
        assert_eq!(counts, case.counts, "{}", case.name);
        launches.iter().for_each(check_blocks);
        let copies = uploads + downloads;
        println!("{}: launches {}, copies {copies}", case.name, launches.len());
        for (at, card) in CARDS.iter().enumerate() {
            let launched = |bandwidth| device_seconds(&launches, case.work, bandwidth);
            let device = launched(card.copied) + launches.len() as f64 * LAUNCH_SECONDS;
            let moved = (traffic.uploaded + traffic.downloaded) as f64;
            let whole = device + copies as f64 * COPY_SECONDS + moved / BUS;
            let millis = [launched(card.memory), device, whole].map(|seconds| seconds * 1e3);
            let [limit, kernels, all] = millis;
            print!("  {}: limit {limit:.3} ms, kernels {kernels:.3}, all {all:.3}", card.name);
            for (goal, expected) in case.goals {
                let (got, is_reached) = goal.compare(case.work, card, device, whole);
                print!("; {got}{}", if is_reached { "" } else { ", MISSED" });
                assert_eq!(is_reached, expected[at], "{}, {}: {got}", case.name, card.name);
            }
            let measured = case.measured.filter(|_| card.name == "H200");
            println!("{}", measured.map_or(String::new(), |ms| format!("; measured {ms} ms")));
        }
    }
}

impl Goal {
    /// Describes the estimate and its target, and returns whether it is reached.
    fn compare(&self, work: Work, card: &Card, device: f64, whole: f64) -> (String, bool) {
        let (vectors, against) = work.product();
        let bytes = (vectors * DIMENSION) as f64;
        let (per_second, peak, share, unit) = match *self {
            Memory(share) => (bytes / device, card.copied, share, "B/s by kernels"),
            Whole(share) => (bytes / whole, card.copied, share, "B/s in all"),
            Rate(share, peak) => {
                let operations = (2 * vectors * against * DIMENSION) as f64;
                (operations / device, peak, share, "op/s")
            }
            Millis(most) => return (format!("target {most} ms"), whole * 1e3 <= most),
        };
        let (got, peak) = (per_second / peak, peak / 1e12);
        let [got_percent, percent] = [got, share].map(|share| share * 100.0);
        let text = format!("{got_percent:.0} % of {peak} T{unit}, target {percent:.0} %");
        (text, got >= share)
    }
}

impl Work {
    /// Number of visited rows, and the number of vectors with which each is multiplied.
    fn product(self) -> (usize, usize) {
        match self {
            Search(rows, queries, All) => (rows, queries),
            Search(rows, queries, Mask(step)) => (rows / step, queries),
            Search(_, queries, List(length)) => (length, queries),
            Assign(_) => (BUILT_ROWS, POINTS),
            Encode | Embed => (0, 0),
        }
    }
}

fn recorded(work: Work) -> (Vec<Noted>, Traffic) {
    match work {
        Search(rows, queries, chosen) => searched(rows, queries, chosen),
        Assign(nearest) => in_workspace(|workspace| assigned(workspace, nearest)),
        Encode => in_workspace(encoded),
        Embed => recorded_batch(CARD),
    }
}

/// Records a search that follows another over the same rows. The rows are never read, so that their
/// zero pages take no memory.
fn searched(rows: usize, queries: usize, chosen: Chosen) -> (Vec<Noted>, Traffic) {
    let (backend, memory) = backend(CARD);
    let (codes, factors) = (vec![0; rows * DIMENSION], vec![0.0; rows]);
    let none = VectorRows::new(DIMENSION, &[], &[], &[], FullRows::F16(&[])).unwrap();
    let vectors = none.apart(&codes, &factors, &factors, &factors).unwrap().with_identity(1);
    let query = PreparedQuery::new(&[1.0; DIMENSION]).unwrap();
    let bounded = BoundedQuery { query: &query, bound: ErrorBound::likely(&query, &vectors) };
    let every = |step| (0..rows as u32).step_by(step);
    let (mask, listed): (RowMask, Vec<RowId>);
    let selection = match chosen {
        All => Selection::All,
        Mask(step) => {
            mask = RowMask::from_bitmap(rows, &every(step).collect());
            Selection::Masked(&mask)
        }
        List(length) => {
            listed = every(rows / length).map(RowId).collect();
            Selection::Listed(&listed)
        }
    };
    let ask = || backend.candidates(&vectors, &vec![bounded; queries], selection, K).unwrap();
    ask();
    memory.take();
    ask();
    memory.take()
}

fn in_workspace(work: impl FnOnce(&mut Workspace)) -> (Vec<Noted>, Traffic) {
    let device = Recording::new(CARD.0, CARD.1);
    let memory = Arc::clone(&device.memory);
    let mut workspace = Workspace::new(Arc::new(device), Scratch::Kept).unwrap();
    work(&mut workspace);
    memory.take()
}

fn assigned(workspace: &mut Workspace, nearest: usize) {
    let device = Arc::clone(workspace.device());
    let (allocate, stride) = (|bytes| device.allocate(bytes).unwrap(), DIMENSION as u32);
    let (codes, scales, residuals) = (allocate(BUILT_ROWS * DIMENSION), allocate(0), allocate(0));
    let (numbers, rows) = (Numbers::Codes, BUILT_ROWS as u32);
    let rows = ResidentRows { numbers, rows, stride, codes, scales, residuals };
    let points = Centroids::new(&vec![vec![1.0; DIMENSION]; POINTS], DIMENSION);
    let listed: Vec<u32> = (0..rows.rows).collect();
    assign(workspace, &rows, &listed, &points, nearest).unwrap();
}

fn encoded(workspace: &mut Workspace) {
    let rotation = Rotation::new(DIMENSION);
    let (units, reference) = (vec![0.0; BUILT_ROWS * DIMENSION], vec![0.0; rotation.width()]);
    let rows_of_slots: Vec<u32> = (0..BUILT_ROWS as u32).collect();
    let lists_of_blocks = vec![0; BUILT_ROWS / 64];
    let slots = OneBitSlots { rows_of_slots: &rows_of_slots, lists_of_blocks: &lists_of_blocks };
    encode_one_bit(workspace, &rotation, &units, &reference, slots).unwrap();
}

/// Checks that a multiprocessor has enough shared memory for the number of blocks for which the
/// kernel was compiled (`compile` checks the registers), and that a search over many rows launches
/// that many.
fn check_blocks(launch: &Noted) {
    let (threads, blocks) = launch_bounds(launch.kernel);
    let Noted { kernel, grid: [x, y, _], .. } = *launch;
    assert_eq!(threads, launch.block[0], "{kernel}");
    let taken = blocks * (launch.shared_bytes + SHARED_KEPT);
    assert!(taken <= CARD.1 + SHARED_KEPT, "{kernel}: {taken} bytes of shared memory");
    if kernel.contains("collect") {
        assert_eq!(x * y, CARD.0 * blocks, "{kernel}: blocks");
    }
}

/// Seconds for all launches at the given memory bandwidth in bytes per second.
fn device_seconds(launches: &[Noted], work: Work, bandwidth: f64) -> f64 {
    // `rank` of select_threshold, and `step` of the sampling pass before it.
    let found = match launches {
        [sample, threshold, ..] if threshold.kernel == "select_threshold" => {
            threshold.number(36) * sample.number(92)
        }
        _ => 0,
    };
    let each = launches.iter().map(|launch| {
        let (bytes, seconds) = needs(launch, work, f64::from(found));
        seconds.max(bytes / bandwidth)
    });
    each.sum()
}

/// Memory traffic of a launch in bytes, and the seconds of its arithmetic.
fn needs(launch: &Noted, work: Work, found: f64) -> (f64, f64) {
    let number = |at| f64::from(launch.number(at));
    let [x, y, _] = launch.grid.map(f64::from);
    // Most kernels transfer all memory passed to them once.
    let extent = |at: usize| launch.extents[at].bytes as f64;
    let all = (0..launch.extents.len()).map(extent).sum();
    // Numbers in the kernel's name: vectors per block, or both sides of a tile.
    let named = launch.kernel.split(['_', 'x']).filter_map(|part| part.parse::<f64>().ok());
    let named: Vec<f64> = named.collect();
    let family = launch.kernel.split('_').next().unwrap();
    match (family, launch.kernel) {
        ("scan" | "batch", kernel) => {
            let (visited, step, stride, queries) =
                (number(88), number(92), number(96), number(100));
            let (has_mask, is_listed) = (launch.number(24) > 0, launch.number(32) > 0);
            let passing = match work {
                Search(_, _, Mask(step)) if has_mask => 1.0 / step as f64,
                _ => 1.0,
            };
            // Memory is read in sectors of 32 bytes, which hold eight factors.
            let factors = if step > 1.0 || is_listed { 64.0 } else { 8.0 };
            let chosen = if is_listed { 4.0 } else { f64::from(u8::from(has_mask)) / 8.0 };
            let kept = if kernel.contains("sample") { 4.0 * number(104) } else { 8.0 * found };
            let bytes = visited * (passing * stride + factors + chosen) + queries * kept;
            (bytes, 2.0 * visited * stride * named[0] * y / INT8)
        }
        // The rows found and their estimates, and the sectors of their factors.
        (_, "select_candidates") => (x * found * 80.0, 0.0),
        ("assign", _) => {
            let points = extent(3) / 4.0;
            (all, 2.0 * named[0] * y * points * number(48) / INT8)
        }
        // Passes of the rotation over shared memory: reads and writes.
        (_, "encode_one_bit") => {
            let (slots, width) = (number(48), number(56));
            (all, slots * 4.0 * width.log2().floor() * 8.0 * width / SHARED)
        }
        (_, "embed_attention_32") => {
            (all, 4.0 * 64.0 * x * PASSAGE_TOKENS as f64 * number(24) / F16)
        }
        (_, kernel) if kernel.starts_with("embed_product") => {
            (all, 2.0 * x * named[1] * y * named[0] * number(44) / F16)
        }
        (_, "select_threshold" | "embed_gather" | "embed_norm" | "embed_pool") => (all, 0.0),
        (_, kernel) => panic!("{kernel} has no estimate"),
    }
}
