//! Results of the device equal those of the CPU, hit for hit and bit for bit.

use std::sync::Arc;
#[cfg(feature = "cuda")]
use std::sync::LazyLock;

use lodestone_compute::cuda::manager::ManagerLimits;
#[cfg(feature = "cuda")]
use lodestone_compute::cuda::modules::{CodeCache, MemoryCache};
use lodestone_compute::cuda::workspace::Scratch;
use lodestone_compute::cuda::{CudaBackend, CudaLimits, CudaParts, DeviceSource};
use lodestone_compute::{ComputeBackend, ScalarBackend, SimdBackend};
use lodestone_types::ManualClock;

use crate::cases::{Asked, Case, Chosen, Data};
use crate::emulated::{self, Only};
use crate::skip;

/// A backend that uses the device for searches of any size.
fn backend(source: Arc<dyn DeviceSource>) -> CudaBackend {
    let (cpu, clock) = (Arc::new(SimdBackend), Arc::new(ManualClock::default()));
    let manager = ManagerLimits { budget_bytes: Some(1 << 30), scratch: Scratch::Exact };
    let limits = CudaLimits { work_min: 0, manager, ..CudaLimits::default() };
    // The check performed at every start has its own test.
    let parts = CudaParts { check: |_| Ok(()), ..CudaParts::new(source, cpu, clock) };
    CudaBackend::open(parts, limits).unwrap()
}

fn emulated(test: &str) -> Option<CudaBackend> {
    let device = emulated::device();
    if device.is_none() {
        skip(test, "g++ or the emulator's sources are missing", "REQUIRE_EMULATOR");
    }
    Some(backend(Arc::new(Only(device?))))
}

/// A source of the GPU whose kernels are compiled once for all tests of this process.
#[cfg(feature = "cuda")]
pub fn cuda_source() -> lodestone_compute::cuda::driver::CudaSource {
    static CACHE: LazyLock<Arc<MemoryCache>> = LazyLock::new(Arc::default);
    lodestone_compute::cuda::driver::CudaSource::new(Arc::clone(&*CACHE) as Arc<dyn CodeCache>)
}

/// A source of the GPU, if there is one.
#[cfg(feature = "cuda")]
pub fn real_source(test: &str) -> Option<Arc<dyn DeviceSource>> {
    let source = cuda_source();
    match source.open() {
        Ok(_) => Some(Arc::new(source)),
        Err(error) => {
            skip(test, &error.to_string(), "REQUIRE_CUDA");
            None
        }
    }
}

#[cfg(not(feature = "cuda"))]
pub fn real_source(test: &str) -> Option<Arc<dyn DeviceSource>> {
    skip(test, "built without the feature cuda", "REQUIRE_CUDA");
    None
}

fn real(test: &str) -> Option<CudaBackend> {
    real_source(test).map(backend)
}

/// Maximum product of rows and queries for which the scalar backend is compared too.
const SCALAR_WORK_MAX: usize = 1 << 20;

/// Compares one case; returns whether the device answered it.
fn compare(backend: &CudaBackend, case: &Case, seed: u64) -> bool {
    let asked = Asked::new(case, seed);
    let rows = asked.columns.view().with_identity(u128::from(seed));
    let queries = asked.bounded(&rows);
    let before = backend.counters().get("gpu_queries");
    let got = backend.candidates(&rows, &queries, asked.selection(), case.k).unwrap();
    let by_device = backend.counters().get("gpu_queries") - before;
    // The scalar loops would take minutes for what a card does in milliseconds.
    let is_small = case.rows * case.queries <= SCALAR_WORK_MAX;
    let scalar = is_small.then_some(&ScalarBackend as &dyn ComputeBackend);
    for cpu in std::iter::once(&SimdBackend as &dyn ComputeBackend).chain(scalar) {
        let wanted = cpu.candidates(&rows, &queries, asked.selection(), case.k).unwrap();
        assert_eq!(got.len(), wanted.len());
        for (query, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
            assert_eq!(got, wanted, "{} on {case:?}, seed {seed}, query {query}", cpu.name());
        }
    }
    by_device == case.queries as u64
}

/// Shapes at the boundaries of tiles, chunks, words and kernels, with varying kinds of data.
fn cases(rows: &[usize]) -> Vec<Case> {
    let mut cases = Vec::new();
    let dimensions = [1, 2, 63, 64, 65, 127, 384, 385, 768, 1536];
    let queries = [1, 8, 9, 17, 32, 33, 65, 129];
    let ks = [1, 10, 3, 100];
    let data = [Data::Random, Data::Clustered, Data::Duplicates, Data::Extremes];
    let chosen = [
        Chosen::All,
        Chosen::Masked(2),
        Chosen::Listed(1),
        Chosen::MaskedRun,
        Chosen::All,
        Chosen::Masked(40),
        Chosen::Listed(3),
    ];
    let count = dimensions.len().max(rows.len()) * 3;
    for at in 0..count {
        cases.push(Case {
            dimension: dimensions[at % dimensions.len()],
            rows: rows[at % rows.len()],
            queries: queries[at * 3 % queries.len()],
            k: ks[at / 2 % ks.len()],
            data: data[(at + at / 4) % data.len()],
            chosen: chosen[at % chosen.len()],
            is_certain: at % 5 == 0,
        });
    }
    cases
}

fn compare_all(backend: &CudaBackend, cases: &[Case]) {
    let mut answered = 0;
    for (seed, case) in cases.iter().enumerate() {
        answered += usize::from(compare(backend, case, seed as u64 + 1));
    }
    // Searches with few rows, or that want all rows, are left to the CPU.
    let counts = backend.counters().read();
    let is_enough = answered * 2 > cases.len();
    assert!(is_enough, "the device answered {answered} of {}: {counts:?}", cases.len());
    for (name, count) in counts {
        let is_failure = name.contains("lost") || name.contains("refused");
        assert!(!is_failure || count == 0, "{name}: {count}");
    }
}

#[test]
fn emulated_answers_are_the_cpus() {
    let Some(backend) = emulated("emulated_answers_are_the_cpus") else { return };
    compare_all(&backend, &cases(&[0, 1, 15, 16, 17, 33, 127, 128, 129, 300, 700]));
}

/// Goal: results do not depend on the order in which blocks and threads run.
#[test]
fn emulated_answers_do_not_depend_on_the_order_of_threads() {
    let test = "emulated_answers_do_not_depend_on_the_order_of_threads";
    let Some(backend) = emulated(test) else { return };
    let case = Case {
        dimension: 96,
        rows: 900,
        queries: 12,
        k: 7,
        data: Data::Clustered,
        chosen: Chosen::Masked(3),
        is_certain: false,
    };
    for order in 1..4 {
        emulated::set_order(order);
        assert!(compare(&backend, &Case { queries: 12, ..case }, 5));
        assert!(compare(&backend, &Case { queries: 40, chosen: Chosen::All, ..case }, 6));
    }
    emulated::set_order(0);
}

/// Goal: queries whose candidates do not fit run again with more memory.
#[test]
fn emulated_finds_that_do_not_fit_are_asked_for_again() {
    let test = "emulated_finds_that_do_not_fit_are_asked_for_again";
    let Some(backend) = emulated(test) else { return };
    let case = Case {
        dimension: 8,
        rows: 6000,
        queries: 2,
        k: 3,
        data: Data::Duplicates,
        chosen: Chosen::All,
        is_certain: true,
    };
    assert!(compare(&backend, &case, 77));
}

/// Goal: concurrent requests over the same and other rows, with different k, get the results that
/// each would get alone, whichever share a run.
#[test]
fn emulated_answers_do_not_depend_on_other_requests() {
    let Some(backend) = emulated("emulated_answers_do_not_depend_on_other_requests") else {
        return;
    };
    let case = Case {
        dimension: 40,
        rows: 600,
        queries: 1,
        k: 5,
        data: Data::Clustered,
        chosen: Chosen::All,
        is_certain: false,
    };
    let asked: Vec<Asked> =
        [31, 32].map(|seed| Asked::new(&Case { queries: 8, ..case }, seed)).into();
    std::thread::scope(|scope| {
        for asker in 0..8 {
            let (backend, asked) = (&backend, &asked[asker % 2]);
            scope.spawn(move || {
                let rows = asked.columns.view().with_identity(asker as u128 % 2);
                let queries = asked.bounded(&rows);
                for round in 0..4 {
                    let first = (asker + round) % 6;
                    let own = &queries[first..=first + round % 2];
                    let (all, k) = (asked.selection(), 1 + asker + round);
                    let got = backend.candidates(&rows, own, all, k).unwrap();
                    let wanted = SimdBackend.candidates(&rows, own, all, k).unwrap();
                    assert_eq!(got, wanted, "asker {asker}, round {round}");
                }
            });
        }
    });
    let count = |name| backend.counters().get(name);
    let fallbacks = count("gpu_fallbacks_uploading");
    assert_eq!(count("gpu_uploads"), 2, "rows are brought once");
    assert!(count("gpu_runs") + fallbacks <= 32 && count("gpu_queries") > 0);
}

#[test]
fn an_emulated_device_passes_the_check_of_every_start() {
    let test = "an_emulated_device_passes_the_check_of_every_start";
    let Some(device) = emulated::device() else {
        return skip(test, "g++ or the emulator's sources are missing", "REQUIRE_EMULATOR");
    };
    let (cpu, clock) = (Arc::new(SimdBackend), Arc::new(ManualClock::default()));
    let parts = CudaParts::new(Arc::new(Only(device)), cpu, clock);
    let opened = CudaBackend::open(parts, CudaLimits::default());
    assert!(opened.is_ok(), "{opened:?}");
}

/// Small enough for a memory checking tool.
#[test]
fn a_tool_checks_a_small_gpu_run() {
    let Some(backend) = real("a_tool_checks_a_small_gpu_run") else { return };
    compare_all(&backend, &cases(&[17, 129, 700]));
}

#[test]
fn answers_of_a_gpu_are_the_cpus() {
    let Some(backend) = real("answers_of_a_gpu_are_the_cpus") else { return };
    let rows = [0, 1, 17, 128, 129, 700, 5_000, 20_000, 65_537];
    compare_all(&backend, &cases(&rows));
    let large = Case {
        dimension: 384,
        rows: 200_000,
        queries: 1,
        k: 10,
        data: Data::Random,
        chosen: Chosen::All,
        is_certain: false,
    };
    for (seed, queries) in [1, 16, 300, 1100].into_iter().enumerate() {
        assert!(compare(&backend, &Case { queries, ..large }, 900 + seed as u64));
        let chosen = Chosen::Masked(9);
        assert!(compare(&backend, &Case { queries, chosen, ..large }, 950 + seed as u64));
    }
}
