//! Kernels, grids and memory of launches, recorded by a device that executes nothing.

use std::sync::Arc;

use lodestone_compute::cuda::assign::assign;
use lodestone_compute::cuda::numbers::{Numbers, ResidentRows};
use lodestone_compute::cuda::workspace::{Scratch, Workspace};
use lodestone_compute::cuda::{CudaBackend, CudaLimits, CudaParts, DeviceSource};
use lodestone_compute::kmeans::Centroids;
use lodestone_compute::{ComputeBackend, FullKind, SimdBackend, VectorColumns};
use lodestone_types::ManualClock;

use crate::cases::{Asked, Case, Chosen, Data};
use crate::emulated::Only;
use crate::recording::{Memory, Noted, Recording};

/// Offsets of the counts in `SearchParams`, which follow eleven addresses.
const VISITED: usize = 88;
const STEP: usize = 92;
const QUERIES: usize = 100;
const GROUPS: usize = 104;
const CAPACITY: usize = 108;

/// Real cards: number of multiprocessors, and maximum shared memory of a block in bytes.
pub const CARDS: [(u32, u32); 3] = [(108, 163 << 10), (132, 227 << 10), (1, 99 << 10)];

pub fn backend(card: (u32, u32)) -> (CudaBackend, Arc<Memory>) {
    let device = Recording::new(card.0, card.1);
    let memory = Arc::clone(&device.memory);
    let source = Arc::new(Only(Arc::new(device))) as Arc<dyn DeviceSource>;
    let (cpu, clock) = (Arc::new(SimdBackend), Arc::new(ManualClock::default()));
    let parts = CudaParts { check: |_| Ok(()), ..CudaParts::new(source, cpu, clock) };
    let limits = CudaLimits { work_min: 0, ..CudaLimits::default() };
    (CudaBackend::open(parts, limits).unwrap(), memory)
}

fn launches(card: (u32, u32), case: &Case) -> Vec<Noted> {
    let (backend, memory) = backend(card);
    let asked = Asked::new(case, 3);
    let rows = asked.columns.view().with_identity(1);
    let queries = asked.bounded(&rows);
    let found = backend.candidates(&rows, &queries, asked.selection(), case.k).unwrap();
    assert!(found.iter().all(Vec::is_empty), "a device that runs nothing finds nothing");
    drop(backend);
    assert_eq!(memory.live_buffers(), 0, "nothing is left on the device");
    std::mem::take(&mut memory.launches.lock().unwrap())
}

const PLAIN: Case = Case {
    dimension: 40,
    rows: 3000,
    queries: 1,
    k: 5,
    data: Data::Random,
    chosen: Chosen::All,
    is_certain: false,
};

/// Goal: launches stay within their buffers for rows, queries and dimensions of every kind on every
/// card. Method: the device checks all extents.
#[test]
fn launches_stay_inside_their_buffers() {
    for card in CARDS {
        for dimension in [1, 64, 384, 1536, 3024] {
            for (queries, rows) in [(1, 600), (8, 3), (16, 40), (33, 700), (200, 130), (1100, 600)]
            {
                let chosen = [Chosen::All, Chosen::Masked(3), Chosen::Listed(2)][queries % 3];
                let case = Case { dimension, rows, queries, k: 1, chosen, ..PLAIN };
                let sent = launches(card, &case);
                assert!(sent.len() >= 3, "{case:?}: {}", sent.len());
            }
        }
    }
}

#[test]
fn few_queries_are_scanned_and_many_are_multiplied() {
    let names = |queries, dimension, card| -> Vec<&'static str> {
        let case = Case { queries, dimension, ..PLAIN };
        launches(card, &case).iter().map(|launch| launch.kernel).collect()
    };
    let card = CARDS[1];
    let select = ["select_threshold", "select_candidates"];
    let run = |sample, collect| vec![sample, select[0], collect, select[1]];
    assert_eq!(names(1, 40, card), run("scan_sample_8", "scan_collect_8"));
    assert_eq!(names(9, 40, card), run("scan_sample_16", "scan_collect_16"));
    assert_eq!(names(17, 40, card), run("batch_sample_32", "batch_collect_32"));
    assert_eq!(names(33, 40, card), run("batch_sample_64", "batch_collect_64"));
    let by_warpgroup = |queries: usize| -> Vec<String> {
        let pass = |pass| format!("batch_{pass}_by_warpgroup_{queries}");
        vec![pass("sample"), select[0].to_owned(), pass("collect"), select[1].to_owned()]
    };
    assert_eq!(names(100, 40, card), by_warpgroup(128));
    assert_eq!(names(200, 384, card), by_warpgroup(256));
    // As many queries per block as fit: for warpgroups two blocks, otherwise one.
    assert_eq!(names(200, 768, card), by_warpgroup(128));
    assert_eq!(names(200, 1024, card), run("batch_sample_128", "batch_collect_128"));
    assert_eq!(names(200, 3024, card), run("batch_sample_64", "batch_collect_64"));
    assert_eq!(names(200, 1536, CARDS[2]), run("batch_sample_32", "batch_collect_32"));
    // If none fit, one scan per sixteen queries.
    let scans = [run("scan_sample_16", "scan_collect_16"), run("scan_sample_8", "scan_collect_8")];
    assert_eq!(names(20, 3024, CARDS[2]), scans.concat());
}

#[test]
fn a_pass_covers_all_rows_and_a_sample_some() {
    let sent = launches(CARDS[1], &Case { rows: 40_001, queries: 3, ..PLAIN });
    let [sample, threshold, collect, candidates] = sent.as_slice() else { panic!("{sent:?}") };
    let (visited, step) = (sample.number(VISITED), sample.number(STEP));
    assert!(step > 1 && visited == 40_001_u32.div_ceil(step), "{visited} of {step}");
    assert_eq!(sample.number(GROUPS), visited.div_ceil(16));
    assert!(sample.number(GROUPS) >= 4 * PLAIN.k as u32);
    assert_eq!((collect.number(VISITED), collect.number(STEP)), (40_001, 1));
    assert_eq!(collect.number(QUERIES), 3);
    assert!(collect.number(CAPACITY) >= 1024);
    // After four addresses come groups and rank: a sample of one in 64 contains three or more of
    // the best five once in ten thousand queries.
    assert_eq!((step, threshold.number(36)), (64, 3));
    assert_eq!(threshold.number(32), sample.number(GROUPS));
    // One block per query.
    assert_eq!((threshold.grid, candidates.grid), ([3, 1, 1], [3, 1, 1]));
    // No more blocks than run concurrently, and none without a group of rows.
    assert_eq!(collect.grid, [264, 1, 1]);
    let small = launches(CARDS[1], &Case { rows: 600, queries: 3, ..PLAIN });
    assert_eq!(small.last().unwrap().kernel, "select_candidates");
    let collect = small.iter().find(|launch| launch.kernel == "scan_collect_8").unwrap();
    assert_eq!(collect.grid, [600_u32.div_ceil(16 * 8), 1, 1]);
}

#[test]
fn few_passing_rows_are_collected_without_a_sample() {
    let sent = launches(CARDS[1], &Case { chosen: Chosen::Masked(100), ..PLAIN });
    let kernels: Vec<_> = sent.iter().map(|launch| launch.kernel).collect();
    let search = ["select_threshold", "scan_collect_8", "select_candidates"];
    assert_eq!(kernels, [&["mask_count", "mask_list"][..], &search[..]].concat());
    // A mask that many rows pass remains a mask.
    let sent = launches(CARDS[1], &Case { chosen: Chosen::Masked(2), ..PLAIN });
    assert_eq!((sent.len(), sent[0].kernel), (4, "scan_sample_8"));
    let listed = launches(CARDS[1], &Case { chosen: Chosen::Listed(10), ..PLAIN });
    assert_eq!(listed[1].number(VISITED), 300);
}

/// Goal: a mask is uploaded once, as is the list derived from a mask that few rows pass; later
/// searches upload only their query. A different mask is uploaded even if it selects equal rows.
#[test]
fn a_mask_stays_on_the_device() {
    for (step, kernels) in [(2, 4), (100, 3)] {
        let (backend, memory) = backend(CARDS[1]);
        let case = Case { chosen: Chosen::Masked(step), ..PLAIN };
        let (asked, other) = (Asked::new(&case, 3), Asked::new(&case, 3));
        let rows = asked.columns.view().with_identity(1);
        let queries = asked.bounded(&rows);
        let ask = |asked: &Asked| {
            memory.take();
            backend.candidates(&rows, &queries, asked.selection(), case.k).unwrap();
            memory.traffic.lock().unwrap().uploaded
        };
        let mask_bytes = (case.rows as u64).div_ceil(64) * 8;
        // Codes, and four factors.
        let query_bytes = 64 + 16;
        ask(&asked);
        assert_eq!((ask(&asked), memory.launches.lock().unwrap().len()), (query_bytes, kernels));
        assert_eq!(ask(&other), query_bytes + mask_bytes, "every {step}th row");
        assert_eq!((ask(&other), ask(&asked)), (query_bytes, query_bytes));
        assert_eq!(backend.counters().get("gpu_masks_uploaded"), 2);
    }
}

/// Goal: impossible results are rejected and the CPU answers. The check at the start detects such
/// devices.
#[test]
fn answers_that_cannot_be_are_none() {
    let asked = Asked::new(&PLAIN, 3);
    let rows = asked.columns.view().with_identity(1);
    let queries = asked.bounded(&rows);
    let wanted = SimdBackend.candidates(&rows, &queries, asked.selection(), PLAIN.k).unwrap();
    // A total, the first row of a query, and the number of its rows, as three words.
    for words in [[u32::MAX, 1, 1], [1000, 1, 0], [1, u32::MAX, 0], [7, 7, u32::MAX]] {
        let (backend, memory) = backend(CARDS[1]);
        *memory.answer.lock().unwrap() = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let got = backend.candidates(&rows, &queries, asked.selection(), PLAIN.k).unwrap();
        assert_eq!(got, wanted, "{words:?}");
    }
}

/// Goal: on a device without page-locked memory, as here, searches work nonetheless, and a counter
/// shows it.
#[test]
fn queues_without_page_locked_memory_are_counted() {
    let (backend, _) = backend(CARDS[1]);
    let asked = Asked::new(&PLAIN, 3);
    let rows = asked.columns.view().with_identity(1);
    let queries = asked.bounded(&rows);
    for _ in 0..3 {
        let found = backend.candidates(&rows, &queries, asked.selection(), PLAIN.k);
        assert!(found.is_ok());
    }
    let counters = backend.counters();
    assert_eq!((counters.get("gpu_runs"), counters.get("gpu_queues_unpinned")), (3, 1));
}

/// Goal: a product launches as many blocks along the rows as can all run concurrently with those
/// across.
#[test]
fn a_product_fills_the_card_once() {
    let case = Case { rows: 60_000, queries: 1024, dimension: 384, ..PLAIN };
    let sent = launches(CARDS[1], &case);
    let collect = sent.iter().find(|launch| launch.kernel.contains("batch_collect")).unwrap();
    assert_eq!(collect.grid, [66, 4, 1]);
    assert!(collect.shared_bytes > 100 << 10);
}

/// Goal: a list that exceeds the 65,535 blocks of a grid's second dimension is continued in further
/// launches.
#[test]
fn a_long_list_is_assigned_in_several_launches() {
    const ROWS: usize = 65_535 * 32;
    // The widest rows, of which 32 fit into a block.
    const WIDTH: usize = 3024;
    let device = Recording::new(CARDS[1].0, 200 << 10);
    let memory = Arc::clone(&device.memory);
    let mut workspace = Workspace::new(Arc::new(device), Scratch::Exact).unwrap();
    let mut columns = VectorColumns::new(WIDTH, FullKind::F16).unwrap();
    columns.push(&[1.0; WIDTH]).unwrap();
    let rows = ResidentRows::upload(&columns.view(), Numbers::Codes, &mut workspace).unwrap();
    let points = Centroids::new(&vec![vec![1.0; WIDTH]; 2], WIDTH);
    memory.take();
    assign(&mut workspace, &rows, &vec![0; ROWS + 5], &points, 2).unwrap();
    let (sent, _) = memory.take();
    let rounds: Vec<_> = sent.iter().map(|launch| (launch.kernel, launch.grid[1])).collect();
    let next = "assign_next_32";
    assert_eq!(rounds, [("assign_32", 65_535), ("assign_32", 1), (next, 65_535), (next, 1)]);
    let place = |launch: usize, extent: usize| sent[launch].extents[extent].address as usize;
    // Rows of the list, and keys of the round.
    assert_eq!(place(1, 1) - place(0, 1), 4 * ROWS);
    assert_eq!(place(1, 4) - place(0, 4), 8 * ROWS);
    // The second round reads the keys of the first and writes its own.
    assert_eq!((place(2, 4), place(3, 4)), (place(0, 4), place(1, 4)));
    assert_eq!(place(2, 5) - place(2, 4), 8 * (ROWS + 5));
}
