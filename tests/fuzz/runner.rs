//! The loop of a fuzz target (mutate, read, check, keep) and its final report.
//!
//! Each input is written to a file before it is read: if the process dies, the file holds the
//! input. A watchdog thread notices readers that do not terminate.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::allocation;
use crate::chance::Chance;
use crate::coverage::Coverage;
use crate::mutations::Shape;

/// Maximum size of an input in bytes.
pub const INPUT_BYTES_MAX: usize = 64 << 10;
/// The limits for one input. Readers need milliseconds, somewhat more on slow machines and in
/// unoptimized builds; a reader that needs this long has a cost that is not linear.
const CPU_TIME_MAX: Duration = Duration::from_secs(6);
const MEMORY_BYTES_MAX: usize = 256 << 20;
/// The stack size of the server's threads; readers that recurse over their input overflow it.
const STACK_BYTES: usize = 2 << 20;
/// Wall time after which an input is considered not to terminate, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum number of inputs that are kept because they reached new edges.
const KEPT_MAX: usize = 4096;
/// Number of findings after which a run ends.
const FINDINGS_MAX: usize = 20;

pub const SEED: &str = "LODESTONE_FUZZ_SEED";
pub const SECONDS: &str = "LODESTONE_FUZZ_SECONDS";
const REPLAY: &str = "LODESTONE_FUZZ_REPLAY";
const CORPUS: &str = "LODESTONE_FUZZ_CORPUS";
const SEED_USUAL: u64 = 20_261_122;
/// With this, all targets together take about a minute.
const SECONDS_USUAL: f64 = 1.0;

/// The function under test: takes an input, and panics if an invariant is violated.
pub type Reader = Box<dyn Fn(&[u8]) + Send>;

/// A reader of untrusted bytes.
pub struct Target {
    pub name: &'static str,
    pub seeds: Vec<Vec<u8>>,
    pub shape: Shape,
    pub read: Reader,
    /// Whether a panic at this source location is tolerated, because the product contains it.
    pub is_contained: fn(&str) -> bool,
}

/// The statistics of a run.
#[derive(Debug, Default)]
struct Run {
    executions: u64,
    /// CPU time of everything, including mutations and checks.
    cpu: Duration,
    kept: usize,
    edges: usize,
    slowest: Duration,
    largest_bytes: usize,
    /// Findings, with the number of occurrences and the input file.
    findings: BTreeMap<String, (u64, PathBuf)>,
    contained: BTreeMap<String, u64>,
}

thread_local! {
    /// Locations and messages of this thread's panics; `None` in threads that are not watched.
    static PANICS: RefCell<Option<Vec<(String, String)>>> = const { RefCell::new(None) };
}

/// A number from the environment.
fn setting<T: std::str::FromStr>(name: &str, usual: T) -> T {
    let Ok(text) = std::env::var(name) else { return usual };
    text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}"))
}

/// Whether only a single input is to be replayed.
pub fn is_replay() -> bool {
    std::env::var_os(REPLAY).is_some()
}

/// The seed of the run, which determines the inputs.
pub fn seed() -> u64 {
    setting(SEED, SEED_USUAL)
}

/// The time for each target.
pub fn time() -> Duration {
    Duration::from_secs_f64(setting(SECONDS, SECONDS_USUAL))
}

/// Runs a target as the environment specifies. Panics if there are findings.
pub fn run(target: Target) {
    let name = target.name;
    watch_panics();
    let replay = std::env::var(REPLAY).ok();
    if let Some(replay) = &replay {
        let Some(path) = replay.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')) else {
            eprintln!("skipped: {name} (another one is replayed)");
            return;
        };
        let input = fs::read(path).expect("the input to be replayed");
        if let Err(panic) = spawn(move || replay_one(&target, &input)).join() {
            std::panic::resume_unwind(panic);
        }
        return;
    }
    let (seed, time) = (seed(), time());
    let directory = std::env::temp_dir().join(format!("lodestone-fuzz-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory for inputs");
    let current = directory.join(format!("{name}-current"));
    println!("{name}: {SEED}={seed}; the input under way is {}", current.display());
    let begun = Instant::now();
    let (send, receive) = mpsc::channel();
    let place = current.clone();
    let worker = spawn(move || Worker::new(target, &place, seed).run(time, &send));
    loop {
        match receive.recv_timeout(PATIENCE) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => break,
            Err(RecvTimeoutError::Timeout) => {
                panic!("{name} does not come to an end with {}", current.display())
            }
        }
    }
    let run = worker.join().expect("panics are caught");
    let _ = fs::remove_file(&current);
    let _ = fs::remove_dir(&directory);
    tell(name, &run, begun.elapsed());
}

fn spawn<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
    builder.spawn(work).expect("a thread")
}

fn replay_one(target: &Target, input: &[u8]) {
    let verdict = judge(target, input);
    println!(
        "{}: {} bytes, {:?} of CPU time, {} KiB at most",
        target.name,
        input.len(),
        verdict.cpu,
        verdict.peak_bytes >> 10
    );
    verdict.contained.iter().for_each(|panic| println!("contained: {panic}"));
    assert!(verdict.findings.is_empty(), "{}", verdict.findings.join("\n"));
}

/// Prints the report of a run; panics if there are findings.
fn tell(name: &str, run: &Run, took: Duration) {
    println!(
        "fuzz {name}: {} executions, {:.0}/s of CPU time, {:.0} s, {} inputs kept, {} edges, \
         slowest {:?}, largest {} KiB, {} findings, {} contained",
        run.executions,
        run.executions as f64 / run.cpu.as_secs_f64(),
        took.as_secs_f64(),
        run.kept,
        run.edges,
        run.slowest,
        run.largest_bytes >> 10,
        run.findings.len(),
        run.contained.values().sum::<u64>(),
    );
    for (what, times) in &run.contained {
        println!("  contained: {what} ({times} times)");
    }
    let lines = run.findings.iter().map(|(what, (times, path))| {
        format!("{what} ({times} times)\n  replay: {REPLAY}={name}:{}", path.display())
    });
    let lines: Vec<String> = lines.collect();
    assert!(lines.is_empty(), "{name}: {} findings\n{}", lines.len(), lines.join("\n"));
}

/// Records the panics of watched threads, and passes all others to the previous hook.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let place = panic.location().map(|at| format!("{}:{}", at.file(), at.line()));
            let literal = panic.payload().downcast_ref::<&str>().map(|why| (*why).to_owned());
            let written = || panic.payload().downcast_ref::<String>().cloned();
            let why = literal.or_else(written).unwrap_or_default();
            let is_watched = PANICS.with_borrow_mut(|panics| {
                let list = panics.as_mut()?;
                list.push((place.unwrap_or_default(), why));
                Some(())
            });
            if is_watched.is_none() {
                before(panic);
            }
        }));
    });
}

/// The outcome of one input.
struct Verdict {
    findings: Vec<String>,
    contained: Vec<String>,
    cpu: Duration,
    peak_bytes: usize,
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Runs the target on an input and checks the result and its costs.
fn judge(target: &Target, input: &[u8]) -> Verdict {
    allocation::begin();
    PANICS.set(Some(Vec::new()));
    let begun = cpu_time();
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.read)(input)));
    let cpu = cpu_time() - begun;
    let panics = PANICS.take().unwrap_or_default();
    let peak_bytes = allocation::peak_bytes();
    let (mut findings, mut contained) = (Vec::new(), Vec::new());
    for (place, why) in panics {
        let why: String = why.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
        let why: String = why.chars().take(200).collect();
        match outcome.is_ok() && (target.is_contained)(&place) {
            true => contained.push(format!("panic at {place}: {why}")),
            false => findings.push(format!("panic at {place}: {why}")),
        }
    }
    if cpu > CPU_TIME_MAX {
        findings.push(format!("more than {CPU_TIME_MAX:?} of CPU time"));
    }
    if peak_bytes > MEMORY_BYTES_MAX {
        findings.push("more than 256 MiB of memory".to_owned());
    }
    Verdict { findings, contained, cpu, peak_bytes }
}

struct Worker<'a> {
    target: Target,
    current: &'a Path,
    chance: Chance,
    coverage: Coverage,
    /// Inputs to mutate: the seeds, then inputs that reached new edges.
    corpus: Vec<Vec<u8>>,
    /// The directory in which these are kept between runs.
    shelf: Option<PathBuf>,
    run: Run,
}

impl<'a> Worker<'a> {
    fn new(target: Target, current: &'a Path, seed: u64) -> Self {
        let shelf = std::env::var_os(CORPUS).map(|path| Path::new(&path).join(target.name));
        let mut corpus = target.seeds.clone();
        if let Some(shelf) = &shelf {
            fs::create_dir_all(shelf).expect("a directory for the corpus");
            let entries = fs::read_dir(shelf).expect("the corpus").flatten();
            let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
            paths.sort();
            corpus.extend(paths.iter().take(KEPT_MAX).flat_map(fs::read));
        }
        assert!(!corpus.is_empty(), "{} has no seeds", target.name);
        let (chance, coverage) = (Chance::new(seed), Coverage::default());
        Self { target, current, chance, coverage, corpus, shelf, run: Run::default() }
    }

    fn run(mut self, time: Duration, alive: &mpsc::Sender<()>) -> Run {
        let begun = Instant::now();
        let given = std::mem::take(&mut self.corpus);
        for input in given {
            self.take(&input);
            self.corpus.push(input);
        }
        while begun.elapsed() < time && self.run.findings.len() < FINDINGS_MAX {
            let input = self.next();
            if self.take(&input) {
                self.keep(input);
            }
            let _ = alive.send(());
        }
        self.run.cpu = cpu_time();
        self.run.edges = self.coverage.edges();
        self.run
    }

    fn next(&mut self) -> Vec<u8> {
        // Recent inputs are the most likely to lead to new edges.
        let recent = self.chance.one_in(2) && self.corpus.len() > 16;
        let from = if recent { self.corpus.len() - 16 } else { 0 };
        let base = from + self.chance.below(self.corpus.len() - from);
        let other = self.chance.below(self.corpus.len());
        let mut input = self.corpus[base].clone();
        for _ in 0..=self.chance.length(6) {
            let other = &self.corpus[other];
            let next = self.target.shape.mutate(&mut self.chance, &input, other);
            if next.len() <= INPUT_BYTES_MAX {
                input = next;
            }
        }
        input
    }

    /// Runs one input; returns whether it reached new edges.
    fn take(&mut self, input: &[u8]) -> bool {
        fs::write(self.current, input).expect("a file for the input");
        Coverage::reset();
        let verdict = judge(&self.target, input);
        let is_new = self.coverage.is_new();
        self.run.executions += 1;
        self.run.slowest = self.run.slowest.max(verdict.cpu);
        self.run.largest_bytes = self.run.largest_bytes.max(verdict.peak_bytes);
        for what in verdict.contained {
            *self.run.contained.entry(what).or_default() += 1;
        }
        for what in verdict.findings {
            let number = self.run.findings.len();
            let name = format!("{}-finding-{number}", self.target.name);
            let path = self.current.with_file_name(name);
            let entry = self.run.findings.entry(what);
            let finding = entry.or_insert_with(|| {
                fs::write(&path, input).expect("a file for the finding");
                (0, path)
            });
            finding.0 += 1;
        }
        is_new
    }

    fn keep(&mut self, input: Vec<u8>) {
        if self.run.kept >= KEPT_MAX {
            return;
        }
        if let Some(shelf) = &self.shelf {
            let name = format!("{:016x}", fingerprint(&input));
            fs::write(shelf.join(name), &input).expect("a file in the corpus");
        }
        self.run.kept += 1;
        self.corpus.push(input);
    }
}

/// The FNV-1a hash.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01B3);
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, mix)
}
