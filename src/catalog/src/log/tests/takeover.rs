//! Processes that were succeeded and do not know it.

use super::*;

fn is_claim_only(machines: &Machines, below: u64) -> bool {
    let numbers = machines.entries();
    let mut old = numbers.iter().filter(|number| **number < below);
    old.all(|number| {
        let label = crate::log::reader::label_at(&*machines.store, *number).unwrap().unwrap();
        label.claim == *number
    })
}

#[test]
fn a_process_that_was_succeeded_can_write_nothing() {
    let machines = Machines::new(SMALL);
    let zombie = machines.start();
    let collection = zombie.tenant("a");
    assert!(!zombie.catalog.check_fence().unwrap());
    let successor = machines.start();
    let error = zombie.submit(collection, "late").unwrap_err();
    assert!(error.to_string().contains("another process has taken over this store"), "{error}");
    assert!(!matches!(error, CatalogError::InDoubt { .. }), "it has certainly not happened");
    assert!(zombie.state().is_fenced && !successor.state().is_fenced);
    assert!(matches!(zombie.submit(collection, "again"), Err(CatalogError::Poisoned { .. })));
    assert!(zombie.catalog.check_fence().unwrap() && !successor.catalog.check_fence().unwrap());
    successor.submit(collection, "s").unwrap();
    assert_eq!(machines.restored().unwrap(), successor.rows());
    assert_eq!(successor.rows()["jobs"].len(), 1);
}

#[test]
fn a_look_at_the_store_tells_a_process_that_it_was_succeeded() {
    let machines = Machines::new(SMALL);
    let zombie = machines.start();
    let collection = zombie.tenant("a");
    let _successor = machines.start();
    assert!(zombie.catalog.check_fence().unwrap());
    let entries = machines.entries();
    assert!(zombie.submit(collection, "late").is_err());
    assert_eq!(machines.entries(), entries, "it does not even try");
}

/// Goal: two processes in a row sleep until a third has removed all that it may.
#[test]
fn zombies_that_wake_after_a_removal_are_still_fenced() {
    let machines = Machines::new(SMALL);
    let first = machines.start();
    let collection = first.tenant("a");
    let second = machines.start();
    second.submit(collection, "second").unwrap();
    let third = machines.start();
    for n in 0..200 {
        third.submit(collection, &format!("s{n}")).unwrap();
    }
    third.wait(|state| state.entries_since_base <= 2 * SMALL.base_entries);
    let newest = machines.entries().pop().unwrap();
    assert!(is_claim_only(&machines, newest - 4 * SMALL.base_entries), "{:?}", machines.entries());
    for zombie in [&first, &second] {
        assert!(zombie.submit(collection, "late").is_err());
        assert!(zombie.state().is_fenced);
    }
    third.submit(collection, "after").unwrap();
    assert_eq!(machines.restored().unwrap(), third.rows());
    assert_eq!(third.rows()["jobs"].len(), 202);
}

/// Goal: a machine that comes and goes again and again costs one small entry each time.
#[test]
fn many_starts_in_a_row() {
    let machines = Machines::new(SMALL);
    let collection = machines.start().tenant("a");
    for n in 0..30 {
        machines.start().submit(collection, &format!("s{n}")).unwrap();
    }
    let machine = machines.start();
    assert_eq!(machine.rows()["jobs"].len(), 30);
    for n in 30..200 {
        machine.submit(collection, &format!("s{n}")).unwrap();
    }
    machine.wait(|state| state.entries_since_base <= 2 * SMALL.base_entries);
    drop(machine);
    assert_eq!(machines.start().rows()["jobs"].len(), 200);
}
