//! Goal: no acknowledged write is lost, no deletion is undone, nothing appears twice and no job is
//! stuck, whenever the process is killed.
//!
//! Method: one client per tenant performs random writes on the real binary with the real model, and
//! records in memory which were acknowledged and which were merely sent. After 20 to 2,000 ms the
//! process is killed with SIGKILL, and one time in ten once more during recovery. Checks that hold
//! at any time run after every start; after every tenth start all jobs are awaited and everything
//! is compared byte by byte; at the end `lodestone verify` reads every file.
//!
//! Each version of a document contains a unique word, so that full-text search reveals which
//! versions are visible.
//!
//! SIGKILL preserves the page cache, so this test proves nothing about fsync; `tests/crash_points`
//! does.
//!
//! `LODESTONE_KILLS` (default 30) and `LODESTONE_SEED` (default: the clock) parametrize the run;
//! `scripts/crash_loop` sets them. The seed determines the operations, but not their timing.

mod dice;
mod documents;
mod documents_check;
mod memories;
mod text;
mod vectors;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::process::http::{Client, Failure, Reply};
use crate::process::model::first_layer_dir;
use crate::process::{Server, lodestone};
use dice::Dice;
use documents::DocumentTenant;
use memories::MemoryTenant;
use vectors::VectorTenant;

const KEY: &str = "operator-key-of-the-kill-loop-test-000001";
const DOCUMENT_TENANTS: u32 = 4;
/// The number of kills between two complete comparisons.
const FULL_CHECK_EVERY: u64 = 10;
const DOUBLE_KILL_SHARE: f64 = 0.1;

/// The reason why a worker stopped: the server is gone, or it violated a guarantee.
enum Stop {
    Gone(Failure),
    Broken(String),
}

type Step<T> = Result<T, Stop>;

/// Reports a violated guarantee.
fn broken<T>(what: impl Into<String>) -> Step<T> {
    Err(Stop::Broken(what.into()))
}

/// Sends a request that must be answered with 200.
fn ask(client: &Client, method: &str, path: &str, body: &Value) -> Step<Value> {
    let reply = client.call(method, path, body).map_err(Stop::Gone)?;
    match reply.status {
        200 => Ok(reply.json()),
        status => broken(format!("{method} {path}: {status} {}", reply.json())),
    }
}

/// The result of a write.
enum Written {
    Acknowledged,
    /// The queue was full, so nothing happened.
    Refused,
    /// The write may or may not have happened.
    Lost(Failure),
}

fn written(what: &str, result: Result<Reply, Failure>) -> Step<Written> {
    match result {
        Ok(reply) if reply.status == 200 => Ok(Written::Acknowledged),
        Ok(reply) if reply.status == 503 && reply.json()["reason"] == "queue_full" => {
            Ok(Written::Refused)
        }
        Ok(reply) => broken(format!("{what}: {} {}", reply.status, reply.json())),
        Err(failure @ Failure::Refused(_)) => Err(Stop::Gone(failure)),
        Err(failure @ Failure::Lost(_)) => Ok(Written::Lost(failure)),
    }
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    acknowledged: u64,
    refused: u64,
    lost: u64,
    searches: u64,
    given_up: u64,
}

/// A tenant with its journal.
enum Tenant {
    Documents(DocumentTenant),
    Vectors(VectorTenant),
    Memories(MemoryTenant),
}

impl Tenant {
    fn step(&mut self, client: &Client, dice: &mut Dice) -> Step<()> {
        match self {
            Self::Documents(tenant) => tenant.step(client, dice),
            Self::Vectors(tenant) => tenant.step(client, dice),
            Self::Memories(tenant) => tenant.step(client, dice),
        }
    }

    fn check(&mut self, client: &Client, is_full: bool, dice: &mut Dice) -> Step<()> {
        match self {
            Self::Documents(tenant) if is_full => tenant.check_settled(client, dice),
            Self::Documents(tenant) => tenant.check_running(client),
            Self::Vectors(tenant) => tenant.check(client),
            Self::Memories(tenant) => tenant.check(client),
        }
    }

    fn counts(&self) -> Counts {
        match self {
            Self::Documents(tenant) => tenant.counts,
            Self::Vectors(tenant) => tenant.counts,
            Self::Memories(tenant) => tenant.counts,
        }
    }
}

/// The state of a run: directories, journals and statistics.
struct Run {
    seed: u64,
    data: PathBuf,
    model: PathBuf,
    tenants: Vec<Tenant>,
    kills: u64,
    double_kills: u64,
    full_checks: u64,
    starts: Vec<Duration>,
    settled: Vec<Duration>,
}

#[test]
fn nothing_acknowledged_is_lost() {
    let Some(model) = first_layer_dir("kill_loop") else { return };
    let kills = number("LODESTONE_KILLS").unwrap_or(30);
    let now = lodestone_types::Clock::now(&lodestone_types::SystemClock);
    let seed = number("LODESTONE_SEED").unwrap_or(now.0 % 1_000_000);
    println!("kill_loop: LODESTONE_KILLS={kills} LODESTONE_SEED={seed}");
    let dir = tempfile::tempdir().expect("a temporary directory");
    let documents = (0..DOCUMENT_TENANTS).map(|n| Tenant::Documents(DocumentTenant::new(n)));
    let others = [Tenant::Vectors(VectorTenant::new()), Tenant::Memories(MemoryTenant::new())];
    let mut run = Run {
        seed,
        data: dir.path().join("data"),
        model,
        tenants: documents.chain(others).collect(),
        kills: 0,
        double_kills: 0,
        full_checks: 0,
        starts: Vec::new(),
        settled: Vec::new(),
    };
    let begun = Instant::now();
    if let Err(what) = run.all(kills) {
        let kept = dir.keep();
        panic!("seed {seed}, after {} kills: {what}\ndata: {}", run.kills, kept.display());
    }
    run.report(begun.elapsed());
}

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

impl Run {
    fn all(&mut self, kills: u64) -> Result<(), String> {
        let mut dice = Dice::new(self.seed);
        let mut next_full = FULL_CHECK_EVERY;
        while self.kills < kills {
            let is_full = self.kills >= next_full;
            if is_full {
                next_full = self.kills + FULL_CHECK_EVERY;
            }
            self.cycle(&mut dice, is_full)?;
        }
        let (mut server, client) = self.start();
        if let Err(what) = self.check(&client, true, &mut dice) {
            return Err(report(what, server));
        }
        server.terminate();
        match server.ended() {
            Some(status) if status.success() => self.verify(),
            status => Err(report(format!("stopping it gave {status:?}"), server)),
        }
    }

    /// Starts, checks, writes and kills, sometimes with an additional kill during the start.
    fn cycle(&mut self, dice: &mut Dice, is_full: bool) -> Result<(), String> {
        if self.kills > 0 && dice.chance(DOUBLE_KILL_SHARE) {
            let server = Server::spawn(&self.data, &self.model, Some(KEY));
            let typical = self.starts.last().copied().unwrap_or_default();
            std::thread::sleep(typical.mul_f64(dice.share() * 1.2));
            server.kill();
            self.kills += 1;
            self.double_kills += 1;
        }
        if is_full {
            self.verify()?;
        }
        let (server, client) = self.start();
        if self.kills == 0 {
            let path = format!("/embeddings/create_tenant?tenant_id={}", vectors::TENANT);
            assert_eq!(client.call("POST", &path, &Value::Null).expect("an answer").status, 200);
        }
        if let Err(what) = self.check(&client, is_full, dice) {
            return Err(report(what, server));
        }
        self.write_until_killed(server, &client, dice)
    }

    fn start(&mut self) -> (Server, Client) {
        let mut server = Server::spawn(&self.data, &self.model, Some(KEY));
        let (banner, time) = server.ready();
        self.starts.push(time);
        (server, banner.client(KEY))
    }

    fn check(&mut self, client: &Client, is_full: bool, dice: &mut Dice) -> Result<(), String> {
        let begun = Instant::now();
        for tenant in &mut self.tenants {
            match tenant.check(client, is_full, dice) {
                Ok(()) => {}
                Err(Stop::Broken(what)) => return Err(what),
                Err(Stop::Gone(failure)) => return Err(format!("no answer: {failure}")),
            }
        }
        if is_full {
            self.full_checks += 1;
            self.settled.push(begun.elapsed());
        }
        Ok(())
    }

    fn write_until_killed(
        &mut self,
        server: Server,
        client: &Client,
        dice: &mut Dice,
    ) -> Result<(), String> {
        let delay = Duration::from_millis(dice.kill_delay_ms());
        let is_killed = AtomicBool::new(false);
        let is_killed = &is_killed;
        let mut output = String::new();
        let ended: Vec<Result<(), String>> = std::thread::scope(|scope| {
            let work = |tenant| {
                let mut dice = dice.split();
                scope.spawn(move || write(tenant, client, &mut dice, is_killed))
            };
            let workers: Vec<_> = self.tenants.iter_mut().map(work).collect();
            std::thread::sleep(delay);
            is_killed.store(true, Ordering::SeqCst);
            output = server.kill();
            workers.into_iter().map(|worker| worker.join().expect("workers return")).collect()
        });
        self.kills += 1;
        ended.into_iter().collect::<Result<(), String>>().map_err(|what| what + "\n" + &output)
    }

    /// Runs `lodestone verify` on the directory of a killed server.
    fn verify(&self) -> Result<(), String> {
        verify(&self.data)
    }

    fn report(&self, time: Duration) {
        let mut counts = Counts::default();
        for tenant in &self.tenants {
            let own = tenant.counts();
            counts.acknowledged += own.acknowledged;
            counts.refused += own.refused;
            counts.lost += own.lost;
            counts.searches += own.searches;
            counts.given_up += own.given_up;
        }
        let Counts { acknowledged, refused, lost, searches, given_up } = counts;
        let Self { kills, double_kills, full_checks, .. } = self;
        println!(
            "kill_loop: {kills} kills ({double_kills} of them during a start), {acknowledged} \
             acknowledged writes, {lost} without an answer, {refused} refused, {searches} \
             searches while writing, {given_up} jobs given up after nine kills, {full_checks} \
             full checks in {:.0} s; lost 0, resurrected 0, duplicated 0, stuck 0",
            time.as_secs_f64()
        );
        println!("kill_loop: start-up ms {}", percentiles(&self.starts));
        println!("kill_loop: full check with all jobs ended, ms {}", percentiles(&self.settled));
    }
}

fn report(what: String, server: Server) -> String {
    format!("{what}\n{}", server.kill())
}

/// Writes until the server is gone, which must be due to a kill.
fn write(
    tenant: &mut Tenant,
    client: &Client,
    dice: &mut Dice,
    is_killed: &AtomicBool,
) -> Result<(), String> {
    while !is_killed.load(Ordering::SeqCst) {
        match tenant.step(client, dice) {
            Ok(()) => {}
            Err(Stop::Broken(what)) => return Err(what),
            Err(Stop::Gone(_)) if is_killed.load(Ordering::SeqCst) => {}
            Err(Stop::Gone(failure)) => return Err(format!("no answer while up: {failure}")),
        }
    }
    Ok(())
}

fn verify(data: &Path) -> Result<(), String> {
    let output = lodestone(&["verify", "--data-dir"]).arg(data).output().expect("it runs");
    match output.status.success() {
        true => Ok(()),
        false => Err(format!(
            "verify: {}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )),
    }
}

fn percentiles(times: &[Duration]) -> String {
    let mut sorted = times.to_vec();
    sorted.sort();
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share) as usize].as_millis();
    format!("p50 {} p99 {} max {}", at(0.5), at(0.99), at(1.0))
}

/// Adds the scope to a JSON body.
fn scoped(tenant: &str, sub_tenant: &str, mut body: Value) -> Value {
    body["tenant_id"] = json!(tenant);
    body["sub_tenant_id"] = json!(sub_tenant);
    body
}
