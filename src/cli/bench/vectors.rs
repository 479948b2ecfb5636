//! `lodestone bench vectors`: builds a segment on disk as the server does, and searches it.
//!
//! Timed is a search of the server below HTTP: preparing the query, choosing a path, tiers,
//! rescoring. A recall is counted against the ids that the caller gives. Rates by CPU
//! second come from the process's own CPU time, so that other work on the machine does not count.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use lodestone_compute::{PreparedQuery, SimdBackend};
use lodestone_graph::RowGraph;
use lodestone_io::store::{Key, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::segment::flat::{self, RowFilter, Thoroughness, Tiers, search_together};
use lodestone_storage::segment::{NewRow, NewSource, Segment, SegmentShape, VectorKind, write};
use lodestone_types::{
    ChunkPlace, CollectionId, IdSource, RandomIds, SegmentId, Sequence, SourceDetail, SourceId,
    SourceKind, SourceRecord, SubTenantId, Timestamp,
};
use roaring::RoaringBitmap;
use serde_json::{Value, json};

use crate::cli::arguments::{BenchVectors, IndexKind};
use crate::cli::bench::{arrays, cpu_seconds, report, round};

/// Rows of one source: the largest batch of vectors that the server accepts at once.
const BATCH_ROWS: usize = 2000;
/// Runs of a setting, the quickest of which counts where settings are compared.
const RUNS: usize = 3;
/// Deviations of T0's bound that are tried for a target: few read less of T1 and lose more.
const DEVIATIONS: [f32; 4] = [2.5, 1.5, 1.0, 0.5];
/// Patience that is tried for a target: lists passed in vain before a search ends.
const PATIENCE: [usize; 26] = [
    1, 2, 3, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 192, 224, 256, 320, 384,
    512, 768, 1024,
];

/// Builds, searches and reports.
pub fn run(options: &BenchVectors) -> Result<(), Box<dyn Error>> {
    let folder = options.dir.clone().unwrap_or_else(std::env::temp_dir);
    let folder = folder.join(format!("lodestone-bench-{}", std::process::id()));
    let measured = measure(options, &folder);
    let removed = std::fs::remove_dir_all(&folder);
    let measured = measured?;
    removed?;
    report(&measured, options.json.as_deref())
}

fn measure(options: &BenchVectors, folder: &Path) -> Result<Value, Box<dyn Error>> {
    let base = arrays::floats(&options.base)?;
    let queries = arrays::floats(&options.queries)?;
    let truth = arrays::ids(&options.truth)?;
    let rows = base.rows().len();
    check(options, &queries, &truth, base.width)?;
    let mask = match &options.filter {
        None => None,
        Some(path) => Some(mask(path, rows)?),
    };
    let (begun, cpu) = (Instant::now(), cpu_seconds());
    let built = Built::new(base, folder)?;
    let build = json!({
        "wall_s": round(begun.elapsed().as_secs_f64()),
        "cpu_s": round(cpu_seconds() - cpu),
    });
    built.segment.prepare_vectors()?;
    let tiers = built.segment.tiers()?;
    let prepared: Vec<PreparedQuery> =
        queries.rows().map(PreparedQuery::new).collect::<Result<_, _>>()?;
    let filter = mask.as_ref().map(|mask| RowFilter::new(mask, rows));
    let question = Question {
        tiers: &tiers,
        prepared: &prepared,
        queries: queries.rows().collect(),
        truth: truth.rows().collect(),
        filter: filter.as_ref(),
        k: options.k,
    };
    let mut settings = Vec::new();
    for (target, thoroughness) in question.settings(options)? {
        let (recall, path, lists) = question.recall(thoroughness)?;
        for batch in &options.batch {
            let speed = question.speed(thoroughness, *batch, options)?;
            settings.push(json!({
                "target": target, "setting": format!("{thoroughness:?}"), "path": path,
                "lists": lists, "batch": batch, "threads": options.threads, "recall": recall,
                "queries_per_s": round(speed.per_second),
                "queries_per_cpu_s": round(speed.per_cpu_second),
                "latency_us": {"p50": round(speed.p50_us), "p99": round(speed.p99_us)},
            }));
        }
    }
    Ok(json!({
        "rows": rows, "dimension": queries.width, "k": options.k, "queries": prepared.len(),
        "passing": mask.as_ref().map_or(rows as u64, RoaringBitmap::len),
        "build": build,
        "bytes": {"on_disk": built.bytes, "hot": tiers.hot_bytes()},
        "settings": settings,
    }))
}

fn check(
    options: &BenchVectors,
    queries: &arrays::Array<f32>,
    truth: &arrays::Array<i64>,
    dimension: usize,
) -> Result<(), Box<dyn Error>> {
    if queries.width != dimension {
        let width = queries.width;
        return Err(format!("--queries has {width} components, --base has {dimension}").into());
    }
    if truth.rows().len() != queries.rows().len() || truth.width < options.k {
        let rows = queries.rows().len();
        return Err(format!("--truth must have {rows} rows of at least {} ids", options.k).into());
    }
    if options.threads == 0 || options.batch.contains(&0) {
        return Err("--threads and --batch must be at least 1".into());
    }
    Ok(())
}

fn mask(path: &Path, rows: usize) -> Result<RoaringBitmap, Box<dyn Error>> {
    let flags = arrays::flags(path)?;
    if flags.len() != rows {
        return Err(format!("--filter has {} rows, --base has {rows}", flags.len()).into());
    }
    let passing = flags.iter().enumerate().filter(|(_, passes)| **passes);
    Ok(passing.map(|(row, _)| row as u32).collect())
}

/// A segment on disk.
struct Built {
    segment: Segment,
    bytes: u64,
}

impl Built {
    fn new(base: arrays::Array<f32>, folder: &Path) -> Result<Self, Box<dyn Error>> {
        let data = DataDir::open(folder, Arc::new(RealDisk))?;
        let store = LocalBlobs::new(Arc::new(data));
        let shape = SegmentShape {
            collection: CollectionId(RandomIds.uuid()),
            segment: SegmentId(RandomIds.uuid()),
            dimension: base.width,
            vector_kind: VectorKind::F32,
        };
        let key = Key::parse(&format!("v1/c/{}/s/{}.seg", shape.collection, shape.segment))?;
        let batches = base.values.chunks(BATCH_ROWS * base.width).enumerate();
        let sources: Vec<NewSource> =
            batches.map(|(number, values)| source(number, values, base.width)).collect();
        drop(base.values);
        let meta = write(&store, &key, shape, &sources)?;
        drop(sources);
        let segment = Segment::open(&store, &key, shape.collection, &meta)?;
        Ok(Self { segment, bytes: meta.bytes })
    }
}

fn source(number: usize, values: &[f32], width: usize) -> NewSource {
    let row = |(index, vector): (usize, &[f32])| NewRow {
        boxes: Vec::new(),
        lines: Vec::new(),
        context: String::new(),
        graph: RowGraph::default(),
        index: index as u32,
        text: String::new(),
        place: ChunkPlace::default(),
        vector: vector.to_vec(),
    };
    let record = SourceRecord {
        sub_tenant: SubTenantId::default_name(),
        id: SourceId::parse(&format!("batch-{number}")).expect("a plain name"),
        kind: SourceKind::Embeddings,
        title: String::new(),
        description: String::new(),
        filename: String::new(),
        url: String::new(),
        content_type: String::new(),
        size_bytes: size_of_val(values) as u64,
        tenant_metadata: Default::default(),
        document_metadata: Default::default(),
        uploaded_at: Timestamp(0),
        last_updated_at: Timestamp(0),
        version: 1,
        sequence: Sequence(number as u64 + 1),
        raw_key: String::new(),
        detail: SourceDetail::default(),
    };
    let rows = values.chunks_exact(width).enumerate().map(row).collect();
    NewSource { record, title_text: String::new(), searchable: String::new(), rows }
}

/// Queries and expected neighbours.
struct Question<'a> {
    tiers: &'a Tiers<'a>,
    prepared: &'a [PreparedQuery],
    queries: Vec<&'a [f32]>,
    truth: Vec<&'a [i64]>,
    filter: Option<&'a RowFilter<'a>>,
    k: usize,
}

/// A recall that was asked for, and the search that reaches it.
type Setting = (Option<f64>, Thoroughness);

struct Speed {
    per_second: f64,
    per_cpu_second: f64,
    p50_us: f64,
    p99_us: f64,
}

impl Question<'_> {
    /// The settings to measure: the server's own, the exact one, or the quickest that meets each
    /// target.
    fn settings(&self, options: &BenchVectors) -> Result<Vec<Setting>, Box<dyn Error>> {
        match options.kind {
            IndexKind::Auto => Ok(vec![(None, Thoroughness::Probing)]),
            IndexKind::Flat => Ok(vec![(None, Thoroughness::Exact)]),
            IndexKind::Ivf => {
                let has_lists = self.tiers.listed.is_some_and(|(lists, _)| lists.len() > 1);
                if !has_lists {
                    return Err("--kind ivf needs more rows: this segment has no lists".into());
                }
                let quickest = |target: &f64| Ok((Some(*target), self.quickest(*target)?));
                options.targets.iter().map(quickest).collect()
            }
        }
    }

    /// The setting that meets the target in the least CPU time: for each number of deviations the
    /// least patience, as far as it can still win.
    fn quickest(&self, target: f64) -> Result<Thoroughness, Box<dyn Error>> {
        let mut quickest = (f64::INFINITY, Thoroughness::Exact);
        for deviations in DEVIATIONS {
            for patience in PATIENCE {
                let tried = Thoroughness::Tuned { patience, deviations };
                let (mut recall, mut seconds) = (0.0, f64::INFINITY);
                for _ in 0..RUNS {
                    let begun = cpu_seconds();
                    recall = self.recall(tried)?.0;
                    seconds = (cpu_seconds() - begun).min(seconds);
                }
                if recall >= target && seconds < quickest.0 {
                    quickest = (seconds, tried);
                }
                if recall >= target || seconds > quickest.0 {
                    break;
                }
            }
        }
        Ok(quickest.1)
    }

    /// Share of the true neighbours found, the path taken, and lists of the segment.
    fn recall(
        &self,
        thoroughness: Thoroughness,
    ) -> Result<(f64, &'static str, usize), Box<dyn Error>> {
        let (mut wanted, mut hit, mut path) = (0, 0, "");
        for (query, truth) in self.prepared.iter().zip(&self.truth) {
            let found =
                flat::search(&SimdBackend, self.tiers, query, self.filter, self.k, thoroughness)?;
            path = found.path.as_str();
            let truth: Vec<i64> =
                truth.iter().copied().filter(|id| *id >= 0).take(self.k).collect();
            wanted += truth.len();
            let is_true = |hit: &&lodestone_types::Hit| truth.contains(&i64::from(hit.row.0));
            hit += found.hits.iter().filter(is_true).count();
        }
        let lists = self.tiers.listed.map_or(0, |(lists, _)| lists.len());
        Ok((hit as f64 / wanted.max(1) as f64, path, lists))
    }

    /// Asks batch after batch until the budget is used up, each query at least once.
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
            latencies.push(sent.elapsed().as_secs_f64() * 1e6 / batch.len() as f64);
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

    /// One batch over so many threads.
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
