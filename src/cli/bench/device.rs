//! `lodestone bench device`: measures how fast the GPU finds the candidates of a search, and the
//! CPU.
//!
//! Rows are random codes that are on the device before timing starts. The time covers the part of a
//! search that the server calls: uploading queries, kernels, downloading results and selecting the
//! best on the host. The rates are therefore lower bounds of the kernels' own. The first answers of
//! every setting are compared with the CPU's.

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use lodestone_compute::{
    BoundedQuery, ComputeBackend, ErrorBound, FullRows, PreparedQuery, Selection, SimdBackend,
    VectorRows, code_stride,
};
use lodestone_engine::open_cuda;
use lodestone_engine::settings::Settings;
use lodestone_io::{Disk, RealDisk};
use lodestone_types::{Clock, Hit, IdSource, SeededIds, SystemClock};
use serde_json::{Value, json};

use crate::cli::arguments::BenchDevice;
use crate::cli::bench::{report, round};

/// Number of timed runs per setting, and of warm-up runs before them.
const RUNS: usize = 30;
const WARM_UP_RUNS: usize = 3;
/// Number of queries whose answers are compared with the CPU's.
const COMPARED_QUERIES: usize = 2;
/// Identifies the rows to the device; a run of this verb uses no others.
const IDENTITY: u128 = 1;

/// Runs the measurement and writes the report.
pub fn run(options: &BenchDevice) -> Result<(), Box<dyn Error>> {
    let (rows, dimension) = (options.rows, options.dimension);
    if rows == 0 || dimension == 0 || options.batch.contains(&0) {
        return Err("--rows, --dimension and --batch must be at least 1".into());
    }
    let folder = std::env::temp_dir();
    let settings = Settings::new(folder.join("lodestone-bench-device"), folder);
    let (disk, clock) = (Arc::new(RealDisk) as Arc<dyn Disk>, Arc::new(SystemClock) as Arc<_>);
    let clock: Arc<dyn Clock> = clock;
    let cuda = open_cuda(&settings, &disk, &clock, Arc::new(SimdBackend))?;
    let ids = SeededIds::new(7);
    let stride = code_stride(dimension);
    let mut codes = vec![0_i8; rows * stride];
    for row in codes.chunks_exact_mut(stride) {
        ids.fill(bytemuck::cast_slice_mut(&mut row[..dimension]));
        row.iter_mut().for_each(|code| *code = (*code).max(-127));
    }
    // Approximate length of such a row; the residual is that of rounding to the nearest code.
    let length = 127.0 * (dimension as f32 / 3.0).sqrt();
    let scales = vec![1.0 / length; rows];
    let residuals = vec![(dimension as f32 / 12.0).sqrt() / length; rows];
    let originals = vec![0_u16; rows * dimension];
    let full = FullRows::F16(&originals);
    let rows = VectorRows::new(dimension, &codes, &scales, &residuals, full)?;
    let rows = rows.with_identity(IDENTITY);
    let begun = Instant::now();
    warm(&cuda, &rows, &query(&ids, dimension)?)?;
    let upload_s = begun.elapsed().as_secs_f64();
    let mut measured = Vec::new();
    for batch in &options.batch {
        let queries: Vec<PreparedQuery> =
            (0..*batch).map(|_| query(&ids, dimension)).collect::<Result<_, _>>()?;
        measured.push(measure(&cuda, &rows, &queries, options.k)?);
    }
    let counts: serde_json::Map<String, Value> =
        cuda.counts().into_iter().map(|(name, count)| (name.to_owned(), json!(count))).collect();
    let measured = json!({
        "device": cuda.device(), "rows": rows.len(), "dimension": dimension, "k": options.k,
        "upload_s": round(upload_s), "batches": measured, "counts": counts,
    });
    report(&measured, options.json.as_deref())
}

fn query(ids: &SeededIds, dimension: usize) -> Result<PreparedQuery, Box<dyn Error>> {
    let mut bytes = vec![0_u8; dimension];
    ids.fill(&mut bytes);
    let vector: Vec<f32> = bytes.iter().map(|byte| f32::from(*byte) - 127.5).collect();
    Ok(PreparedQuery::new(&vector)?)
}

fn warm(
    cuda: &dyn ComputeBackend,
    rows: &VectorRows<'_>,
    query: &PreparedQuery,
) -> Result<(), Box<dyn Error>> {
    let bounded = [BoundedQuery { query, bound: ErrorBound::likely(query, rows) }];
    cuda.candidates(rows, &bounded, Selection::All, 1)?;
    Ok(())
}

fn measure(
    cuda: &dyn ComputeBackend,
    rows: &VectorRows<'_>,
    queries: &[PreparedQuery],
    k: usize,
) -> Result<Value, Box<dyn Error>> {
    let bounded = |query| BoundedQuery { query, bound: ErrorBound::likely(query, rows) };
    let queries: Vec<BoundedQuery<'_>> = queries.iter().map(bounded).collect();
    let answer = || cuda.candidates(rows, &queries, Selection::All, k);
    let found: Vec<Vec<Hit>> = answer()?;
    let compared = &queries[..queries.len().min(COMPARED_QUERIES)];
    let begun = Instant::now();
    let wanted = SimdBackend.candidates(rows, compared, Selection::All, k)?;
    let cpu_ms = begun.elapsed().as_secs_f64() * 1e3 / compared.len() as f64;
    if found[..compared.len()] != wanted {
        return Err(format!("{} queries: the results differ from the CPU's", queries.len()).into());
    }
    for _ in 0..WARM_UP_RUNS {
        answer()?;
    }
    let mut times_ms = Vec::with_capacity(RUNS);
    for _ in 0..RUNS {
        let begun = Instant::now();
        answer()?;
        times_ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    times_ms.sort_by(f64::total_cmp);
    let median_s = times_ms[RUNS / 2] / 1e3;
    let bytes = (rows.len() * rows.scan_bytes_per_row()) as f64;
    let operations = 2.0 * (rows.len() * rows.dimension() * queries.len()) as f64;
    let candidates: usize = found.iter().map(Vec::len).sum();
    Ok(json!({
        "batch": queries.len(), "p50_ms": round_fine(median_s * 1e3),
        "min_ms": round_fine(times_ms[0]), "max_ms": round_fine(times_ms[RUNS - 1]),
        "rows_gb_per_s": round(bytes / median_s / 1e9),
        "tera_operations_per_s": round(operations / median_s / 1e12),
        "queries_per_s": round(queries.len() as f64 / median_s),
        "candidates_a_query": round(candidates as f64 / queries.len() as f64),
        "cpu_ms_a_query": round_fine(cpu_ms),
    }))
}

fn round_fine(value: f64) -> f64 {
    (value * 10_000.0).round() / 10_000.0
}
