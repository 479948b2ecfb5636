//! Failing stores: what callers learn, and what exists in the end.

use std::collections::BTreeSet;
use std::io::Write;

use super::*;
use crate::job::{ClaimLimits, Duty};
use lodestone_types::{ErrorKind, JobStatus, SubTenantId, TenantId};

fn is_there(rows: &Rows, name: &str) -> bool {
    rows["jobs"].iter().any(|row| row.contains(&format!("raw/{name}")))
}

fn away(machines: &Machines) {
    machines.store.set(|_, _| Fault::Before);
}

fn back(machines: &Machines) {
    machines.store.set(|_, _| Fault::None);
}

#[test]
fn an_answer_that_is_lost_changes_nothing() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    machines.store.set(|call, _| match call {
        Call::Create => Fault::After,
        _ => Fault::None,
    });
    for n in 0..5 {
        machine.submit(collection, &format!("s{n}")).unwrap();
    }
    assert_eq!(machines.restored().unwrap(), machine.rows());
    // A start whose claim gets an error as its answer proceeds as well.
    drop(machine);
    assert_eq!(machines.start().rows()["jobs"].len(), 5);
}

#[test]
fn a_store_that_is_away_leaves_one_change_in_doubt_and_refuses_the_rest() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    away(&machines);
    let error = machine.submit(collection, "doubt").unwrap_err();
    assert!(matches!(error, CatalogError::InDoubt { .. }), "{error}");
    let state = machine.state();
    assert!(state.bytes_waiting > 0 && state.last_error.is_some(), "{state:?}");
    for n in 0..3 {
        let error = machine.submit(collection, &format!("refused{n}")).unwrap_err();
        assert!(matches!(error, CatalogError::LogAway { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        machine.clock.advance_millis(1000);
    }
    back(&machines);
    machine.submit(collection, "after").unwrap();
    let state = machine.state();
    assert!((state.bytes_waiting, &state.last_error) == (0, &None), "{state:?}");
    let rows = machines.restored().unwrap();
    assert_eq!(rows, machine.rows());
    assert!(is_there(&rows, "doubt") && is_there(&rows, "after") && !is_there(&rows, "refused"));
}

/// Goal: a change is announced only once it is known to be in the store.
#[test]
fn a_change_in_doubt_is_confirmed_by_the_store_alone() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    away(&machines);
    let error = machine.catalog.begin_delete_tenant(&TenantId::parse("a").unwrap()).unwrap_err();
    assert!(matches!(error, CatalogError::InDoubt { .. }), "{error}");
    assert_eq!(machine.catalog.collections_pending_delete().unwrap(), [collection]);
    for _ in 0..3 {
        let error = machine.catalog.confirm().unwrap_err();
        assert!(matches!(error, CatalogError::LogAway { .. }), "{error}");
        machine.clock.advance_millis(1000);
    }
    back(&machines);
    machine.catalog.confirm().unwrap();
    assert_eq!(machines.restored().unwrap(), machine.rows());
}

#[test]
fn what_waits_is_sent_although_nobody_writes() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    away(&machines);
    machine.submit(collection, "doubt").unwrap_err();
    back(&machines);
    let start = Instant::now();
    while machine.state().bytes_waiting > 0 {
        assert!(start.elapsed() < Duration::from_secs(60));
        std::thread::yield_now();
    }
    assert!(is_there(&machines.restored().unwrap(), "doubt"));
}

#[test]
fn a_change_in_doubt_is_forgotten_by_the_next_machine() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    machine.submit(collection, "sent").unwrap();
    let before = machine.rows();
    away(&machines);
    machine.submit(collection, "doubt").unwrap_err();
    drop(machine);
    back(&machines);
    assert_eq!(machines.start().rows(), before);
}

/// Goal: a claim does not need the store, so that workers are not left with jobs that nobody holds.
#[test]
fn a_claim_goes_on_without_the_store() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    machine.submit(collection, "s").unwrap();
    away(&machines);
    let limits = ClaimLimits { jobs: 9, bytes: u64::MAX };
    let claim = machine.catalog.claim(Duty::Process, limits).unwrap();
    assert_eq!(claim.unwrap().jobs.len(), 1);
    drop(machine);
    back(&machines);
    let source = SourceId::parse("s").unwrap();
    let next = machines.start();
    let row = next.catalog.latest(collection, &SubTenantId::default_name(), &source).unwrap();
    assert_eq!(row.unwrap().status, JobStatus::Queued);
}

#[test]
fn caches_know_a_change_in_doubt() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    machine.tenant("a");
    let name = TenantId::parse("a").unwrap();
    assert!(machine.catalog.tenant(&name).unwrap().is_some());
    away(&machines);
    machine.catalog.begin_delete_tenant(&name).unwrap_err();
    assert!(machine.catalog.tenant(&name).unwrap().is_none());
}

#[test]
fn an_entry_that_is_read_in_part_is_no_successor() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    machines.store.set(|call, _| match call {
        Call::Create => Fault::After,
        Call::Get => Fault::Half,
        _ => Fault::None,
    });
    let error = machine.submit(collection, "doubt").unwrap_err();
    assert!(matches!(error, CatalogError::InDoubt { .. }), "{error}");
    back(&machines);
    machine.clock.advance_millis(1000);
    machine.submit(collection, "after").unwrap();
    assert!(is_there(&machines.restored().unwrap(), "doubt"));
}

#[test]
fn copies_that_fail_are_made_again() {
    let machines = Machines::new(SMALL);
    let machine = machines.start();
    let collection = machine.tenant("a");
    let mut failures = 0;
    machines.store.set(move |call, _| match call {
        Call::Put | Call::Delete | Call::List if failures < 4 => {
            failures += 1;
            Fault::After
        }
        _ => Fault::None,
    });
    for n in 0..200 {
        machine.submit(collection, &format!("s{n}")).unwrap();
    }
    machine.wait(|state| state.entries_since_base <= 2 * SMALL.base_entries);
    assert_eq!(machines.restored().unwrap(), machine.rows());
}

/// A deterministic generator of pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// Goal: whatever the store does and whenever a machine is lost, the next one has every change that
/// was acknowledged and none that was refused for good. Method: random faults at random calls,
/// machines that stop abruptly, and a set of names as the model.
#[test]
fn random_faults_lose_nothing() {
    for seed in 1..=25_u64 {
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let machines = Machines::new(SMALL);
        let mut machine = machines.start();
        let collection = machine.tenant("a");
        let (mut acknowledged, mut refused) = (BTreeSet::new(), BTreeSet::new());
        for step in 0..120_u64 {
            let mut faults = Dice(seed * 1000 + step);
            let rate = 2 + dice.roll(30);
            machines.store.set(move |call, _| match (faults.roll(rate), call) {
                (0, _) => Fault::Before,
                (1, Call::Get) => Fault::Half,
                (1, _) => Fault::After,
                _ => Fault::None,
            });
            let name = format!("name-{step:04}");
            match machine.submit(collection, &name) {
                Ok(_) => drop(acknowledged.insert(name)),
                Err(CatalogError::InDoubt { .. }) => {}
                Err(CatalogError::LogAway { .. }) => drop(refused.insert(name)),
                Err(error) => panic!("seed {seed}, step {step}: {error}"),
            }
            machine.clock.advance_millis(200);
            if dice.roll(25) == 0 {
                drop(machine);
                back(&machines);
                machine = machines.start();
                let rows = machine.rows();
                for name in &acknowledged {
                    assert!(is_there(&rows, name), "seed {seed}, step {step}: {name} is lost");
                }
                for name in &refused {
                    assert!(!is_there(&rows, name), "seed {seed}, step {step}: {name} is there");
                }
            }
        }
        back(&machines);
        machine.clock.advance_millis(10_000);
        machine.submit(collection, "last").unwrap();
        assert_eq!(machines.restored().unwrap(), machine.rows(), "seed {seed}");
    }
}

/// Goal: frames of a refused commit left behind the last commit, with a valid commit mark, are not
/// sent. Method: a commit is copied to where they would be, and the next one is shorter.
#[test]
fn what_a_refused_commit_left_in_the_log_is_not_sent() {
    let machines = Machines::new(LogLimits::default());
    let machine = machines.start();
    let collection = machine.tenant("a");
    let path = machine.directory.path().join("catalog.sqlite-wal");
    let end = std::fs::metadata(&path).unwrap().len() as usize;
    machine.submit(collection, "before").unwrap();
    let wal = std::fs::read(&path).unwrap();
    let file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    for _ in 0..3 {
        (&file).write_all(&wal[end..]).unwrap();
    }
    for n in 0..20 {
        machine.submit(collection, &format!("s{n}")).unwrap();
        assert_eq!(machines.restored().unwrap(), machine.rows(), "s{n}");
    }
}
