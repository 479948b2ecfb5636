//! Random schedules of processes on one store that write, make bases, remove old entries, fall
//! asleep and end, and of others that follow them. One call of the store is one step.
//!
//! A list of names stands in for a catalog: a frame is a name, a base is the list.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::CatalogError;
use crate::error::Result;
use crate::log::appender::Appender;
use crate::log::base::{Garbage, Stop};
use crate::log::entry::{self, Base, Frames, Kind};
use crate::log::follow::{Cursor, PollEnd};
use crate::log::reader::{End, Plan, newest, numbers};
use lodestone_io::store::testing::{Call, Fault, FaultyBlobs, MemoryBlobs};
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{IdSource, SeededIds};

const WRITERS: usize = 5;
const PROCESSES: usize = WRITERS + 2;
const SEEDS: u64 = 2500;
/// Seeds for the schedules in which a rule is disabled.
const SEEDS_WITHOUT: u64 = 800;

/// Lets one process at a time take a step, in an order determined by a seed.
struct Turns {
    state: Mutex<Turn>,
    /// Wakes one process each: waking all of them at every step would cost more than the steps.
    granted: [Condvar; PROCESSES],
}

struct Turn {
    dice: Dice,
    holder: Option<usize>,
    waiting: BTreeSet<usize>,
    ended: BTreeSet<usize>,
    /// The step until which each process sleeps.
    asleep: [u64; PROCESSES],
    step: u64,
}

impl Turn {
    /// Chooses the next process, once all others are waiting or have ended. Occasionally one falls
    /// asleep for long instead.
    fn choose(&mut self) -> Option<usize> {
        if self.waiting.is_empty() || self.waiting.len() + self.ended.len() < PROCESSES {
            return None;
        }
        loop {
            self.step += 1;
            let awake = self.waiting.iter().copied().filter(|n| self.asleep[*n] <= self.step);
            let awake: Vec<usize> = awake.collect();
            let Some(next) = awake.get(self.dice.roll(awake.len().max(1) as u64) as usize) else {
                self.step = *self.asleep.iter().max().unwrap_or(&0);
                continue;
            };
            if self.dice.roll(12) > 0 {
                return Some(*next);
            }
            self.asleep[*next] = self.step + 20 + self.dice.roll(300);
        }
    }
}

impl Turns {
    fn new(mut dice: Dice) -> Self {
        let asleep = [0; PROCESSES].map(|_: u64| dice.roll(300));
        let (waiting, ended) = (BTreeSet::new(), BTreeSet::new());
        let state = Turn { dice, holder: None, waiting, ended, asleep, step: 0 };
        Self { state: Mutex::new(state), granted: Default::default() }
    }

    /// Waits for the next turn of `process`, which lasts until it waits again or ends.
    fn wait(&self, process: usize) {
        let mut state = self.state.lock();
        state.waiting.insert(process);
        self.pass(&mut state);
        self.granted[process].wait_while(&mut state, |state| state.holder != Some(process));
        state.waiting.remove(&process);
    }

    fn end(&self, process: usize) {
        let mut state = self.state.lock();
        state.ended.insert(process);
        self.pass(&mut state);
    }

    fn pass(&self, state: &mut Turn) {
        state.holder = state.choose();
        if let Some(next) = state.holder {
            self.granted[next].notify_one();
        }
    }
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Observations that no process may contradict.
#[derive(Default)]
struct Facts {
    acknowledged: BTreeSet<u64>,
    refused: BTreeSet<u64>,
    /// Acknowledged names that a later process did not find.
    lost: BTreeSet<u64>,
    /// Names acknowledged before a follower polled, which it did not find.
    missed: BTreeSet<u64>,
    bases: usize,
    fenced: usize,
    looks: usize,
    /// Number of times the log was shortened past a follower.
    overtaken: usize,
}

/// Rules that a schedule can disable.
#[derive(Clone, Copy)]
struct Rules {
    keeps_claims: bool,
    /// Whether followers verify that a missing entry was not removed.
    looks_back: bool,
}

impl Rules {
    const ALL: Self = Self { keeps_claims: true, looks_back: true };
}

struct Process<'a> {
    number: usize,
    store: Arc<dyn BlobStore>,
    ids: Arc<dyn IdSource>,
    facts: &'a Mutex<Facts>,
    dice: Dice,
    rules: Rules,
    names: Vec<u64>,
}

impl Process<'_> {
    fn read(&mut self, last: u64, label: &entry::Label) -> Result<Option<(Plan, End)>> {
        let Some(plan) = Plan::new(&*self.store, last, label)? else { return Ok(None) };
        let list = self.store.get(&Key::parse(&plan.base.blob).unwrap());
        let list = list.map_err(crate::log::reader::away)?;
        let names = &mut self.names;
        *names = list.chunks(8).map(|name| u64::from_le_bytes(name.try_into().unwrap())).collect();
        let end = plan.read(&self.store, 1, &mut |_, bytes| {
            let name = u64::from_le_bytes(bytes.try_into().unwrap());
            if !names.contains(&name) {
                names.push(name);
            }
            Ok(())
        })?;
        Ok(Some((plan, end)))
    }

    fn run(&mut self) -> Result<()> {
        let known = self.facts.lock().acknowledged.clone();
        let (mut appender, before) = Appender::claim(&self.store, &self.ids, 7, false)?;
        let (mut collected, mut base) = (1, 0);
        if let Some(label) = before
            && let Some((plan, _)) = self.read(appender.claim - 1, &label)?
        {
            (collected, base) = (plan.base.collected, plan.base.first);
            let missing = known.into_iter().filter(|name| !self.names.contains(name));
            self.facts.lock().lost.extend(missing);
        }
        let (lap, mut first, mut offset) = (appender.claim, appender.next(), 0);
        for turn in 0..10 {
            if base == 0 || self.dice.roll(4) == 0 {
                // The first frames of the lap, or the next if it has none.
                self.base(&mut appender, first, collected)?;
                self.remove(&appender, collected, first)?;
                (base, collected) = (first, first);
            }
            let name = (self.number as u64) << 32 | turn;
            if offset == 0 {
                first = appender.next();
            }
            let place = Frames { lap, offset, bytes: 8 };
            let mut sent = appender.append(Kind::Frames(place), &name.to_le_bytes());
            while matches!(sent, Err(CatalogError::LogAway { .. })) {
                if self.dice.roll(6) == 0 {
                    return Ok(());
                }
                sent = appender.flush();
            }
            match sent {
                Ok(()) => drop(self.facts.lock().acknowledged.insert(name)),
                Err(error) => {
                    self.facts.lock().refused.insert(name);
                    return Err(error);
                }
            }
            self.names.push(name);
            offset += 8;
        }
        Ok(())
    }

    fn base(&mut self, appender: &mut Appender, first: u64, collected: u64) -> Result<()> {
        let blob = entry::base_key(appender.claim, &*self.ids);
        let list: Vec<u8> = self.names.iter().flat_map(|name| name.to_le_bytes()).collect();
        while self.store.put(&blob, &list).is_err() {}
        let (bytes, sha256) = (list.len() as u64, String::new());
        let base = Base { blob: blob.as_str().to_owned(), bytes, sha256, first, collected };
        let mut sent = appender.append(Kind::Base(base), &[]);
        while matches!(sent, Err(CatalogError::LogAway { .. })) {
            sent = appender.flush();
        }
        self.facts.lock().bases += usize::from(sent.is_ok());
        sent
    }

    fn remove(&mut self, appender: &Appender, from: u64, until: u64) -> Result<()> {
        if !self.rules.keeps_claims {
            for number in numbers(&*self.store)? {
                if number < until {
                    self.store.delete(&entry::key(number)).map_err(crate::log::reader::away)?;
                }
            }
            return Ok(());
        }
        let label = newest(&*self.store)?.expect("there are entries").1;
        let Some(keep) = Plan::new(&*self.store, appender.next() - 1, &label)? else {
            return Ok(());
        };
        let keep = Key::parse(&keep.base.blob).unwrap();
        Garbage { claim: appender.claim, from, until, keep }.collect(&*self.store, &Stop::default())
    }
}

impl Process<'_> {
    /// Follows the others for some polls.
    fn follow(&mut self) {
        let mut cursor = None;
        for _ in 0..12 {
            let known = self.facts.lock().acknowledged.clone();
            if self.look(&mut cursor).is_ok_and(|is_current| is_current) {
                let missed = known.into_iter().filter(|name| !self.names.contains(name));
                let mut facts = self.facts.lock();
                facts.missed.extend(missed);
                facts.looks += 1;
            }
        }
    }

    /// Reads to the end of the log; returns whether it got there.
    fn look(&mut self, cursor: &mut Option<Cursor>) -> Result<bool> {
        let Some(at) = cursor else {
            let Some((last, label)) = newest(&*self.store)? else { return Ok(false) };
            let Some((plan, end)) = self.read(last, &label)? else { return Ok(false) };
            *cursor = Some(Cursor::behind(&self.store, &plan, &end)?);
            return Ok(true);
        };
        let names = &mut self.names;
        let mut apply = |_, bytes: &[u8]| {
            names.push(u64::from_le_bytes(bytes.try_into().unwrap()));
            Ok(())
        };
        if !self.rules.looks_back {
            while at.step(&mut apply)? {}
            return Ok(true);
        }
        let place = at.poll(&mut apply)?;
        if place == PollEnd::Shortened {
            *cursor = None;
            self.facts.lock().overtaken += 1;
        }
        Ok(place == PollEnd::UpToDate)
    }
}

/// Runs one schedule; returns the observations.
fn run(seed: u64, rules: Rules) -> Facts {
    let memory: Arc<dyn BlobStore> = Arc::new(MemoryBlobs::default());
    let turns = Turns::new(Dice(seed.wrapping_mul(0x2545_F491_4F6C_DD1D)));
    let (turns, facts) = (Arc::new(turns), Mutex::new(Facts::default()));
    std::thread::scope(|scope| {
        for number in 0..PROCESSES {
            let (turns, facts, memory) = (Arc::clone(&turns), &facts, Arc::clone(&memory));
            scope.spawn(move || {
                let store = FaultyBlobs::new(memory);
                let plain = seed * 64 + number as u64 + 1;
                let seed = plain.wrapping_mul(0x2545_F491_4F6C_DD1D);
                let (gate, mut faults) = (Arc::clone(&turns), Dice(seed ^ 77));
                store.set(move |call, key| {
                    gate.wait(number);
                    match (faults.roll(20), call) {
                        (0, Call::Create) => Fault::Before,
                        (1, Call::Create) => Fault::After,
                        (2, Call::Get) if entry::number_of(key).is_ok() => Fault::Half,
                        _ => Fault::None,
                    }
                });
                let mut process = Process {
                    number,
                    store: Arc::new(store),
                    ids: Arc::new(SeededIds::new(plain)),
                    facts,
                    dice: Dice(seed),
                    rules,
                    names: Vec::new(),
                };
                let end = catch_unwind(AssertUnwindSafe(|| match number < WRITERS {
                    true => process.run(),
                    false => {
                        process.follow();
                        Ok(())
                    }
                }));
                turns.end(number);
                let end = end.unwrap_or_else(|panic| resume_unwind(panic));
                facts.lock().fenced += usize::from(matches!(end, Err(CatalogError::Fenced)));
            });
        }
    });
    let mut facts = facts.into_inner();
    let store = Arc::clone(&memory);
    let mut last = Process {
        number: PROCESSES,
        store,
        ids: Arc::new(SeededIds::new(seed)),
        facts: &Mutex::default(),
        dice: Dice(1),
        rules,
        names: Vec::new(),
    };
    if let Some((number, label)) = newest(&*memory).unwrap() {
        match last.read(number, &label) {
            Ok(_) => {}
            Err(error) if rules.keeps_claims => panic!("seed {seed}: {error}"),
            Err(_) => {}
        }
    }
    for process in 0..WRITERS as u64 {
        let own: Vec<_> = last.names.iter().filter(|name| **name >> 32 == process).collect();
        assert!(own.is_sorted(), "seed {seed}: {own:?}");
    }
    facts.lost.extend(facts.acknowledged.iter().filter(|name| !last.names.contains(name)));
    let mut refused = facts.refused.iter().filter(|name| last.names.contains(name));
    assert!(!rules.keeps_claims || refused.next().is_none(), "seed {seed}: refused and there");
    facts
}

/// Goal: whatever the order of steps, everything acknowledged is found by every later process and
/// by every later poll of a follower, and nothing refused is found by any.
#[test]
fn no_schedule_loses_what_was_acknowledged() {
    let mut sums = [0; 5];
    for seed in 1..=SEEDS {
        let facts = run(seed, Rules::ALL);
        assert!(facts.lost.is_empty(), "seed {seed}: {:?}", facts.lost);
        assert!(facts.missed.is_empty(), "seed {seed}: {:?}", facts.missed);
        let Facts { bases, fenced, looks, overtaken, .. } = facts;
        let counts = [facts.acknowledged.len(), bases, fenced, looks, overtaken];
        sums.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
    }
    let [acknowledged, bases, fenced, looks, overtaken] = sums;
    println!(
        "{acknowledged} acknowledged, {bases} bases, {fenced} processes fenced, {looks} looks of \
         followers, {overtaken} of them overtaken"
    );
    assert!(acknowledged > 5000 && bases > 2000 && fenced > 1000, "{sums:?}");
    assert!(looks > 5000 && overtaken > 50, "{sums:?}");
}

/// Goal: the test above would notice if claims were removed.
#[test]
fn schedules_that_remove_claims_lose_what_was_acknowledged() {
    let rules = Rules { keeps_claims: false, ..Rules::ALL };
    let lost: usize = (1..=SEEDS_WITHOUT).map(|seed| run(seed, rules).lost.len()).sum();
    println!("{lost} lost");
    assert!(lost > 0);
}

/// Goal: the first test would notice if followers mistook a removed entry for one that does not
/// exist yet.
#[test]
fn schedules_whose_followers_do_not_look_back_miss_what_was_acknowledged() {
    let rules = Rules { looks_back: false, ..Rules::ALL };
    let missed: usize = (1..=SEEDS_WITHOUT).map(|seed| run(seed, rules).missed.len()).sum();
    println!("{missed} missed");
    assert!(missed > 0);
}
