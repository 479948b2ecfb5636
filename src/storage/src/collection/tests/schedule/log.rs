//! Schedules of the commit log: writers and collectors of manifests.

use super::store::{Bucket, Machine};
use super::*;

const WRITERS: usize = 4;
const COLLECTORS: usize = 2;
const SEEDS: u64 = 4000;

/// The safeguard that is disabled.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Off {
    Nothing,
    /// A creation that succeeded counts as a commit without further checks.
    Verification,
    /// Collectors start with the newest of the old manifests.
    Order,
}

/// Facts reported to processes, none of which may turn out false.
#[derive(Debug, Default)]
struct Facts {
    acknowledged: Vec<(u64, Uuid)>,
    /// Newest manifests as they were read.
    heads: Vec<Uuid>,
    fenced: usize,
    in_doubt: usize,
    /// Parents of all manifests that were ever sent.
    parents: BTreeMap<Uuid, Uuid>,
}

struct Process<'a> {
    machine: Arc<Machine>,
    log: CommitLog,
    ids: SeededIds,
    off: Off,
    facts: &'a Mutex<Facts>,
}

impl Process<'_> {
    fn head(&self) -> Result<Manifest, CollectionError> {
        let head = self.log.head(ID)?;
        self.facts.lock().heads.push(head.nonce);
        Ok(head)
    }

    fn write(&self, epoch: u64) -> Result<(), CollectionError> {
        let mut base = self.head()?;
        for _ in 0..6 {
            let next = base.next(self.ids.uuid(), epoch);
            self.facts.lock().parents.insert(next.nonce, next.parent);
            let result = self.log.commit(&base, &next);
            let is_created = self.machine.created.lock().iter().any(|it| it.nonce == next.nonce);
            let is_done = match self.off {
                Off::Verification => is_created,
                _ => matches!(result, Ok(Commit::Done)),
            };
            let mut facts = self.facts.lock();
            if is_done {
                facts.acknowledged.push((next.version, next.nonce));
                base = next;
                continue;
            }
            match result? {
                Commit::Done => unreachable!("it is created then"),
                Commit::Conflict(head) => {
                    facts.heads.push(head.nonce);
                    base = *head;
                }
                Commit::Fenced => {
                    facts.fenced += 1;
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn collect(&self) -> Result<(), CollectionError> {
        for _ in 0..4 {
            let head = self.head()?.version;
            if self.off != Off::Order {
                self.log.collect(ID, head)?;
                continue;
            }
            for key in self.machine.list(&layout::manifests(ID))?.iter().rev() {
                if layout::manifest_version(key) < Some(head) {
                    self.machine.delete(key)?;
                }
            }
        }
        Ok(())
    }
}

/// Runs one schedule; returns the facts, and the nonces of the newest manifest and its ancestors.
fn run(seed: u64, off: Off) -> (Facts, BTreeSet<Uuid>) {
    let facts = Mutex::new(Facts::default());
    let epochs = AtomicU64::new(1);
    let bucket = Bucket::run(seed, WRITERS + COLLECTORS, |machine| {
        let number = machine.number.unwrap();
        let log = CommitLog::new(machine.clone());
        let ids = SeededIds::new(seed * 64 + number as u64);
        let process = Process { machine, log, ids, off, facts: &facts };
        for _ in 0..4 {
            process.machine.start_anew();
            // Half of the processes share the epoch of another.
            let rise = process.machine.roll(2);
            let end = match number < WRITERS {
                true => process.write(epochs.fetch_add(rise, Ordering::SeqCst) + rise),
                false => process.collect(),
            };
            facts.lock().in_doubt += usize::from(end.is_err());
        }
    });
    let facts = facts.into_inner();
    let head = CommitLog::new(bucket.alone()).head(ID).unwrap();
    let mut history = BTreeSet::new();
    let mut nonce = head.nonce;
    while history.insert(nonce) && !nonce.is_nil() {
        nonce = facts.parents[&nonce];
    }
    (facts, history)
}

/// Number of acknowledged commits that are missing from the history or share a number with another.
fn lost(facts: &Facts, history: &BTreeSet<Uuid>) -> usize {
    let all = &facts.acknowledged;
    let numbers: BTreeSet<u64> = all.iter().map(|(version, _)| *version).collect();
    let gone = all.iter().filter(|(_, nonce)| !history.contains(nonce)).count();
    gone.max(all.len() - numbers.len())
}

/// Goal: whatever the order of steps, each acknowledged commit is in the history of the newest
/// manifest and has a number of its own, and no process takes another manifest for the newest.
#[test]
fn no_schedule_loses_an_acknowledged_commit() {
    let (mut sums, mut wrong) = ([0; 4], Vec::new());
    for seed in 1..=SEEDS {
        let (facts, history) = run(seed, Off::Nothing);
        let stray = facts.heads.iter().filter(|nonce| !history.contains(nonce)).count();
        let lost = lost(&facts, &history);
        if lost + stray > 0 {
            wrong.push(format!("seed {seed}: {lost} lost, {stray} heads that are none"));
        }
        let counts = [facts.acknowledged.len(), facts.heads.len(), facts.fenced, facts.in_doubt];
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    println!("acknowledged, heads read, fenced, in doubt: {sums:?}");
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(sums.iter().all(|sum| *sum > SEEDS as usize), "{sums:?}");
}

/// Goal: the test above would notice a missing safeguard.
#[test]
fn schedules_lose_acknowledged_commits_without_verification_or_order() {
    for off in [Off::Verification, Off::Order] {
        let is_found = (1..=SEEDS).any(|seed| {
            let (facts, history) = run(seed, off);
            lost(&facts, &history) > 0
        });
        assert!(is_found, "{off:?}");
    }
}
