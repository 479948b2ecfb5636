//! `lodestone bench vectors`: builds a segment on disk as the server does, and searches it.
//!
//! Timing covers a search of the server below HTTP: preparing the query, choosing a path, tiers,
//! rescoring. Filters are kept between queries, as in the server. Recall is computed against the
//! ids that the caller supplies, on answers to batches of the size being timed. Rates per CPU
//! second use the CPU time of the process, so that other work on the machine does not matter.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lodestone_compute::{PreparedQuery, SimdBackend};
use lodestone_storage::segment::flat::{FlatHits, RowFilter, Thoroughness, Tiers, search_together};
use lodestone_storage::segment::lists::Recall;
use roaring::RoaringBitmap;
use serde_json::{Value, json};

use crate::cli::arguments::{BenchVectors, IndexKind};
use crate::cli::bench::{arrays, cpu_seconds, pages, report, round, segment};

/// Number of runs per setting; the fastest counts when settings are compared.
const RUNS: usize = 3;
/// Deviations of T0's bound tried for a target: lower values read less of T1 but lose more.
const DEVIATIONS: [f32; 6] = [2.5, 2.0, 1.5, 1.25, 1.0, 0.5];
/// Patience values tried for a target: lists without improvement before a search ends.
const PATIENCE: [usize; 34] = [
    1, 2, 3, 4, 6, 8, 12, 14, 16, 18, 20, 22, 24, 28, 32, 36, 40, 48, 56, 64, 80, 96, 128, 160,
    192, 224, 256, 320, 384, 448, 512, 640, 768, 1024,
];

/// Builds or opens the segment, searches it and writes the report.
pub fn run(options: &BenchVectors) -> Result<(), Box<dyn Error>> {
    let own = std::env::temp_dir();
    let own = options.dir.as_ref().unwrap_or(&own);
    let own = own.join(format!("lodestone-bench-{}", std::process::id()));
    let folder = options.open.as_ref().or(options.keep.as_ref()).unwrap_or(&own);
    let measured = measure(options, folder);
    if own.exists() {
        std::fs::remove_dir_all(&own)?;
    }
    report(&measured?, options.json.as_deref())
}

fn measure(options: &BenchVectors, folder: &Path) -> Result<Value, Box<dyn Error>> {
    let queries = arrays::floats(&options.queries)?;
    check(options)?;
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let built = match (&options.open, &options.base) {
        (Some(folder), _) => segment::open(folder)?,
        (None, Some(base)) => segment::build(arrays::floats(base)?, folder)?,
        (None, None) => {
            return Err(
                "one of --base (the rows) or --open (a folder with them) is required".into()
            );
        }
    };
    let build = options.open.is_none().then(|| {
        json!({
            "wall_s": round(begun.elapsed().as_secs_f64()),
            "cpu_s": round(cpu_seconds() - cpu),
        })
    });
    let (rows, dimension) = (built.row_count() as usize, built.dimension());
    if queries.width != dimension {
        let width = queries.width;
        return Err(
            format!("--queries has {width} dimensions, but the rows have {dimension}").into()
        );
    }
    built.prepare_vectors()?;
    let prepared: Vec<PreparedQuery> =
        queries.rows().map(PreparedQuery::new).collect::<Result<_, _>>()?;
    let (tiers, mut settings) = (built.tiers()?, Vec::new());
    for (truth, filter) in questions(options) {
        let ids = arrays::ids(truth)?;
        if ids.rows().len() != prepared.len() || ids.width < options.k {
            let (path, rows, k) = (truth.display(), prepared.len(), options.k);
            return Err(format!("--truth {path} must have {rows} rows of at least {k} ids").into());
        }
        let mask = filter.map(|path| mask(path, rows)).transpose()?;
        let filter = mask.as_ref().map(|mask| RowFilter::new(mask, rows));
        if let Some(filter) = &filter {
            filter.allow_condensing();
            filter.condense(&tiers);
        }
        let question = Question {
            tiers: &tiers,
            prepared: &prepared,
            queries: queries.rows().collect(),
            truth: ids.rows().collect(),
            filter: filter.as_ref(),
            k: options.k,
        };
        settings.extend(question.measure(options)?);
    }
    let touched = settings.iter().filter_map(|setting| setting["touched_bytes"].as_u64()).max();
    Ok(json!({
        "rows": rows, "dimension": dimension, "k": options.k, "queries": prepared.len(),
        "build": build,
        "bytes": {
            "on_disk": built.meta().bytes, "t0": built.tiers()?.hot_bytes(), "touched": touched,
        },
        "settings": settings,
    }))
}

/// Pairs each truth with its filter; if there is one truth more than filters, the first has none.
fn questions(options: &BenchVectors) -> Vec<(&PathBuf, Option<&PathBuf>)> {
    let unfiltered = options.truth.len() - options.filter.len();
    let filters = std::iter::repeat_n(None, unfiltered).chain(options.filter.iter().map(Some));
    options.truth.iter().zip(filters).collect()
}

fn check(options: &BenchVectors) -> Result<(), Box<dyn Error>> {
    let (truths, filters) = (options.truth.len(), options.filter.len());
    if truths != filters.max(1) && truths != filters + 1 {
        return Err(
            "--truth must be given once per --filter, optionally preceded by one without a \
            filter"
                .into(),
        );
    }
    if options.threads == 0 || options.batch.contains(&0) {
        return Err("--threads and --batch must be at least 1".into());
    }
    Ok(())
}

fn mask(path: &Path, rows: usize) -> Result<RoaringBitmap, Box<dyn Error>> {
    let flags = arrays::flags(path)?;
    if flags.len() != rows {
        let (path, flags) = (path.display(), flags.len());
        return Err(
            format!("--filter {path} has {flags} rows, but there are {rows} vectors").into()
        );
    }
    let passing = flags.iter().enumerate().filter(|(_, passes)| **passes);
    Ok(passing.map(|(row, _)| row as u32).collect())
}

/// Queries and their expected neighbours, with or without a filter.
struct Question<'a> {
    tiers: &'a Tiers<'a>,
    prepared: &'a [PreparedQuery],
    queries: Vec<&'a [f32]>,
    truth: Vec<&'a [i64]>,
    filter: Option<&'a RowFilter<'a>>,
    k: usize,
}

/// A requested recall and the search that reaches it, if one does.
type Setting = (Option<f64>, Option<Thoroughness>);

struct Speed {
    per_second: f64,
    per_cpu_second: f64,
    p50_us: f64,
    p99_us: f64,
}

impl Question<'_> {
    fn measure(&self, options: &BenchVectors) -> Result<Vec<Value>, Box<dyn Error>> {
        let mut measured = Vec::new();
        for kind in &options.kind {
            for batch in &options.batch {
                for (target, found) in self.settings(*kind, *batch, options)? {
                    measured.push(match found {
                        Some(found) => self.of_setting(*kind, target, found, *batch, options)?,
                        None => json!({
                            "kind": kind.name(), "target": target, "batch": batch, "reached": false,
                        }),
                    });
                }
            }
        }
        Ok(measured)
    }

    fn of_setting(
        &self,
        kind: IndexKind,
        target: Option<f64>,
        thoroughness: Thoroughness,
        batch: usize,
        options: &BenchVectors,
    ) -> Result<Value, Box<dyn Error>> {
        self.recall(thoroughness, batch)?;
        pages::forget()?;
        let (recall, path, patience) = self.recall(thoroughness, batch)?;
        let touched = pages::touched_bytes();
        let speed = self.speed(thoroughness, batch, options)?;
        let rows = self.tiers.rows.len();
        Ok(json!({
            "kind": kind.name(), "target": target, "setting": format!("{thoroughness:?}"),
            "passing": self.filter.map_or(rows, RowFilter::passing), "path": path,
            "patience": patience,
            "lists": self.tiers.listed.map_or(0, |(lists, _)| lists.len()),
            "batch": batch, "threads": options.threads, "recall": recall,
            "touched_bytes": touched,
            "queries_per_s": round(speed.per_second),
            "queries_per_cpu_s": round(speed.per_cpu_second),
            "batch_latency_us": {"p50": round(speed.p50_us), "p99": round(speed.p99_us)},
        }))
    }

    /// Returns the settings to measure: the server's own, the exact one, the caller's, or the
    /// fastest that reaches each target.
    fn settings(
        &self,
        kind: IndexKind,
        batch: usize,
        options: &BenchVectors,
    ) -> Result<Vec<Setting>, Box<dyn Error>> {
        match kind {
            IndexKind::Auto => Ok(vec![(None, Some(Thoroughness::Probing(Recall::Usual)))]),
            IndexKind::Fast => Ok(vec![(None, Some(Thoroughness::Probing(Recall::Quick)))]),
            IndexKind::Flat => Ok(vec![(None, Some(Thoroughness::Exact))]),
            IndexKind::Ivf => {
                let has_lists = self.tiers.listed.is_some_and(|(lists, _)| lists.len() > 1);
                if !has_lists {
                    return Err("--kind ivf needs more rows: this segment has no IVF lists".into());
                }
                let deviations = options.deviations;
                let fixed =
                    |patience: &usize| Thoroughness::Tuned { patience: *patience, deviations };
                if !options.patience.is_empty() {
                    let fixed = options.patience.iter().map(fixed);
                    return Ok(fixed.map(|fixed| (None, Some(fixed))).collect());
                }
                let quickest = |target: &f64| Ok((Some(*target), self.quickest(*target, batch)?));
                options.targets.iter().map(quickest).collect()
            }
        }
    }

    /// Finds the setting that reaches the target with the least CPU time in batches of this size,
    /// if one does. For each number of deviations, patience grows only as long as it can still win.
    fn quickest(&self, target: f64, batch: usize) -> Result<Option<Thoroughness>, Box<dyn Error>> {
        let (mut least, mut quickest) = (f64::INFINITY, None);
        for deviations in DEVIATIONS {
            for patience in PATIENCE {
                let tried = Thoroughness::Tuned { patience, deviations };
                let (mut recall, mut seconds) = (0.0, f64::INFINITY);
                for _ in 0..RUNS {
                    let begun = cpu_seconds();
                    recall = self.recall(tried, batch)?.0;
                    seconds = (cpu_seconds() - begun).min(seconds);
                }
                if recall >= target && seconds < least {
                    (least, quickest) = (seconds, Some(tried));
                }
                if recall >= target || seconds > least {
                    break;
                }
            }
        }
        Ok(quickest)
    }

    /// Returns the share of true neighbours found in batches of this size, and the path taken.
    fn recall(
        &self,
        thoroughness: Thoroughness,
        batch: usize,
    ) -> Result<(f64, &'static str, Option<usize>), Box<dyn Error>> {
        let (mut wanted, mut hit, mut how) = (0, 0, ("", None));
        for (queries, truth) in self.prepared.chunks(batch).zip(self.truth.chunks(batch)) {
            for (found, truth) in self.search(queries, thoroughness)?.iter().zip(truth) {
                how = (found.path.as_str(), found.patience);
                let truth = truth.iter().filter(|id| **id >= 0).take(self.k);
                let truth: Vec<i64> = truth.copied().collect();
                wanted += truth.len();
                let is_true = |hit: &&lodestone_types::Hit| truth.contains(&i64::from(hit.row.0));
                hit += found.hits.iter().filter(is_true).count();
            }
        }
        Ok((hit as f64 / wanted.max(1) as f64, how.0, how.1))
    }

    fn search(
        &self,
        queries: &[PreparedQuery],
        thoroughness: Thoroughness,
    ) -> Result<Vec<FlatHits>, Box<dyn Error>> {
        let (tiers, filter) = (self.tiers, self.filter);
        Ok(search_together(&SimdBackend, tiers, queries, filter, self.k, thoroughness)?)
    }

    /// Searches batch after batch until the time budget is used up, each query at least once.
    fn speed(
        &self,
        thoroughness: Thoroughness,
        batch: usize,
        options: &BenchVectors,
    ) -> Result<Speed, Box<dyn Error>> {
        let budget = Duration::from_secs_f64(options.budget_s);
        let (begun, cpu) = (Instant::now(), cpu_seconds());
        let (mut asked, mut latencies) = (0, Vec::new());
        while asked < self.queries.len() || begun.elapsed() < budget {
            let first = asked % self.queries.len();
            let batch = &self.queries[first..(first + batch).min(self.queries.len())];
            let sent = Instant::now();
            self.ask(batch, thoroughness, options.threads)?;
            latencies.push(sent.elapsed().as_secs_f64() * 1e6);
            asked += batch.len();
        }
        let (wall, cpu) = (begun.elapsed().as_secs_f64(), cpu_seconds() - cpu);
        latencies.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
        let asked = asked as f64;
        Ok(Speed {
            per_second: asked / wall,
            per_cpu_second: asked / cpu.max(f64::MIN_POSITIVE),
            p50_us: at(0.5),
            p99_us: at(0.99),
        })
    }

    /// Searches one batch with the given number of threads.
    fn ask(
        &self,
        batch: &[&[f32]],
        thoroughness: Thoroughness,
        threads: usize,
    ) -> Result<(), Box<dyn Error>> {
        let search = |part: &[&[f32]]| {
            let queries: Vec<PreparedQuery> =
                part.iter().map(|query| PreparedQuery::new(query)).collect::<Result<_, _>>()?;
            let (tiers, filter) = (self.tiers, self.filter);
            search_together(&SimdBackend, tiers, &queries, filter, self.k, thoroughness).map(drop)
        };
        if threads == 1 || batch.len() == 1 {
            return Ok(search(batch)?);
        }
        std::thread::scope(|scope| {
            let parts = batch.chunks(batch.len().div_ceil(threads));
            let running: Vec<_> = parts.map(|part| scope.spawn(move || search(part))).collect();
            running.into_iter().try_for_each(|part| part.join().expect("a search panicked"))
        })?;
        Ok(())
    }
}
