//! Question: how many passages per CPU-second does the model embed in each precision, how much does
//! a second worker help, and how long does a single query take?
//!
//! Data: passages of 126 tokens, of 252 tokens, and of 14 to 256 tokens mixed, generated from a
//! fixed list of words with a fixed seed. Command (with the model as installed by `scripts/setup`,
//! or LODESTONE_MODEL_DIR):
//!
//! ```text
//! cargo bench --bench embed
//! ```
//!
//! The first table counts the CPU time of all threads (Linux), which other load on the machine
//! disturbs less than wall time; criterion's figures after it are wall time.

use std::hint::black_box;
use std::path::PathBuf;
use std::time::Instant;

use criterion::{Criterion, Throughput};
use lodestone_embed::{Embedder, Lane, Model, ModelFiles, Precision};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Each word is a single token in the vocabulary of all-MiniLM-L6-v2.
const WORDS: [&str; 24] = [
    "river", "stone", "market", "light", "engine", "paper", "theory", "garden", "signal", "city",
    "winter", "bridge", "music", "letter", "forest", "market", "ocean", "teacher", "metal",
    "village", "number", "window", "street", "history",
];

fn passage(tokens: usize, seed: &mut u64) -> String {
    let mut text = String::new();
    for _ in 0..tokens - 2 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        text.push_str(WORDS[(*seed >> 33) as usize % WORDS.len()]);
        text.push(' ');
    }
    text
}

fn passages(count: usize, shortest: usize, longest: usize) -> Vec<String> {
    let mut seed = 7;
    let step = |i: usize| shortest + (i * 37) % (longest - shortest + 1);
    (0..count).map(|i| passage(step(i), &mut seed)).collect()
}

fn files() -> Option<ModelFiles> {
    let directory = std::env::var_os("LODESTONE_MODEL_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("models/all-MiniLM-L6-v2"),
        PathBuf::from,
    );
    match ModelFiles::read(&directory, &|path| std::fs::read(path)) {
        Ok(files) => Some(files),
        Err(error) => {
            println!("skipped: {error}");
            None
        }
    }
}

/// CPU seconds of all threads of this process.
fn cpu_seconds() -> f64 {
    let Ok(threads) = std::fs::read_dir("/proc/self/task") else { return f64::NAN };
    let nanos = |path: PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).unwrap_or_default();
        text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or(0.0)
    };
    threads.flatten().map(|thread| nanos(thread.path())).sum::<f64>() / 1e9
}

fn table(files: &ModelFiles) {
    println!("workers  arithmetic  passages          passages/CPU-s  passages/s");
    let modes = [Precision::F32, Precision::Auto];
    for (workers, precision) in [1, 2].into_iter().flat_map(|n| modes.map(|mode| (n, mode))) {
        let model = Model::load_on(files, workers, precision, None).expect("the model loads");
        for (name, shortest, longest) in
            [("126 tokens", 126, 126), ("252 tokens", 252, 252), ("14-256 tokens", 14, 256)]
        {
            let texts = passages(256, shortest, longest);
            model.embed(Lane::Bulk, texts[..32].to_vec()).expect("warm-up");
            let (wall, cpu) = (Instant::now(), cpu_seconds());
            model.embed(Lane::Bulk, texts).expect("vectors");
            let (wall, cpu) = (wall.elapsed().as_secs_f64(), cpu_seconds() - cpu);
            let (mode, per_cpu, per) = (model.arithmetic().to_string(), 256.0 / cpu, 256.0 / wall);
            println!("{workers:7}  {mode:10}  {name:16}  {per_cpu:14.1}  {per:10.1}");
        }
    }
}

fn main() {
    let Some(files) = files() else { return };
    table(&files);
    let mut criterion = Criterion::default().sample_size(10).configure_from_args();
    let mut group = criterion.benchmark_group("embed");
    for precision in [Precision::F32, Precision::Auto] {
        let model = Model::load_on(&files, 1, precision, None).expect("the model loads");
        for (name, tokens, count) in
            [("query/10", 10, 1), ("bulk/126", 126, 32), ("bulk/252", 252, 16)]
        {
            let texts = passages(count, tokens, tokens);
            group.throughput(Throughput::Elements(count as u64));
            group.bench_function(format!("{precision}/{name}"), |bencher| {
                bencher
                    .iter(|| model.embed(Lane::Bulk, black_box(texts.clone())).expect("vectors"));
            });
        }
    }
    group.finish();
    criterion.final_summary();
}
