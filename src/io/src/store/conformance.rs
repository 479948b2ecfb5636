//! Conformance test suite for implementations of [`BlobStore`].

#![allow(clippy::unwrap_used)] // A suite of tests, also of other crates.

use std::io::{self, Seek, Write};
use std::sync::Barrier;

use crate::store::{BlobStore, Created, Key, StoreError};
use lodestone_types::ErrorKind;

fn key(name: &str) -> Key {
    Key::parse(name).unwrap()
}

fn assert_missing<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound);
}

/// Runs the whole suite on an empty store.
///
/// # Panics
/// On the first rule that `store` violates.
pub fn run(store: &dyn BlobStore) {
    blobs_are_read_as_written(store);
    streams_appear_whole_or_not_at_all(store);
    creation_happens_once(store);
    listings_are_sorted_and_bounded_by_components(store);
    deletes_are_idempotent(store);
    each_scratch_file_is_its_own(store);
    for round in 0..5 {
        race(store, &key(&format!("v1/race/{round}")), 32);
    }
}

fn blobs_are_read_as_written(store: &dyn BlobStore) {
    let large: Vec<u8> = (0..1_000_003_u32).map(|i| (i % 251) as u8).collect();
    for (name, bytes) in [("v1/w/empty", &[][..]), ("v1/w/large", &large), ("v1/w/d/s", b"x")] {
        let key = key(name);
        assert_missing(store.get(&key));
        assert_missing(store.map(&key));
        assert_missing(store.len(&key));
        store.put(&key, bytes).unwrap();
        assert_eq!(store.get(&key).unwrap(), bytes);
        assert_eq!(&store.map(&key).unwrap()[..], bytes);
        assert_eq!(store.len(&key).unwrap(), bytes.len() as u64);
    }
    let replaced = key("v1/w/large");
    let old = store.map(&replaced).unwrap();
    store.put(&replaced, b"new").unwrap();
    assert_eq!(store.get(&replaced).unwrap(), b"new");
    assert_eq!(&old[..], &large[..], "a mapping keeps the bytes that it was made of");

    let many = [(key("v1/w/m/a"), &b"1"[..]), (key("v1/w/n/b"), b"2"), (key("v1/w/m/c"), b"3")];
    store.put_many(&many).unwrap();
    for (key, bytes) in many {
        assert_eq!(store.get(&key).unwrap(), bytes);
    }
    store.put_many(&[]).unwrap();
}

fn streams_appear_whole_or_not_at_all(store: &dyn BlobStore) {
    let key = key("v1/stream/a");
    let mut write = |out: &mut dyn Write| (0..1000).try_for_each(|_| out.write_all(&[7; 999]));
    assert_eq!(store.put_with(&key, &mut write).unwrap(), 999_000);
    assert_eq!(store.get(&key).unwrap(), vec![7; 999_000]);
    let mut fail = |out: &mut dyn Write| {
        out.write_all(&[8; 100_000])?;
        Err(io::Error::other("the source ended early"))
    };
    let error = store.put_with(&key, &mut fail).unwrap_err();
    assert!(error.to_string().contains("ended early"), "{error}");
    assert_eq!(store.len(&key).unwrap(), 999_000, "the old blob stays");
}

fn creation_happens_once(store: &dyn BlobStore) {
    let key = key("v1/create/a");
    assert_eq!(store.put_create(&key, b"first").unwrap(), Created::Won);
    assert_eq!(store.put_create(&key, b"second").unwrap(), Created::Exists);
    assert_eq!(store.get(&key).unwrap(), b"first");
    store.delete(&key).unwrap();
    assert_eq!(store.put_create(&key, b"third").unwrap(), Created::Won);
    assert_eq!(store.get(&key).unwrap(), b"third");
}

fn listings_are_sorted_and_bounded_by_components(store: &dyn BlobStore) {
    assert_eq!(store.list(&key("v1/list")).unwrap(), []);
    let mut names = ["v1/list/b", "v1/list/a/z", "v1/list/a-b", "v1/list/a.b", "v1/list/a/y/x"];
    for name in names {
        store.put(&key(name), b"1").unwrap();
    }
    store.put(&key("v1/listing/c"), b"1").unwrap();
    names.sort_unstable();
    let listed: Vec<_> = store.list(&key("v1/list")).unwrap();
    assert_eq!(listed.iter().map(Key::as_str).collect::<Vec<_>>(), names);
    let below = store.list(&key("v1/list/a")).unwrap();
    assert_eq!(below, [key("v1/list/a/y/x"), key("v1/list/a/z")]);
}

fn deletes_are_idempotent(store: &dyn BlobStore) {
    let names = ["v1/del/x/a", "v1/del/x/b", "v1/del/y/c", "v1/del/z", "v1/delta/d"].map(key);
    for name in &names {
        store.put(name, b"1").unwrap();
    }
    let mapped = store.map(&names[0]).unwrap();
    store.delete(&names[0]).unwrap();
    store.delete(&names[0]).unwrap();
    store.delete(&key("v1/never/was/there")).unwrap();
    assert_eq!(&mapped[..], b"1");
    assert_missing(store.get(&names[0]));
    store.delete_many(&[names[1].clone(), names[0].clone()]).unwrap();
    assert_eq!(store.list(&key("v1/del")).unwrap(), names[2..4]);
    for _ in 0..2 {
        store.delete_prefix(&key("v1/del")).unwrap();
        assert_eq!(store.list(&key("v1/del")).unwrap(), []);
    }
    assert_eq!(store.get(&names[4]).unwrap(), b"1", "a longer name is not below the prefix");
    store.put(&names[0], b"again").unwrap();
    assert_eq!(store.get(&names[0]).unwrap(), b"again");
}

fn each_scratch_file_is_its_own(store: &dyn BlobStore) {
    let [mut first, second] = [0, 1].map(|_| store.scratch().unwrap());
    first.write_all(b"on its way").unwrap();
    first.rewind().unwrap();
    assert_eq!(io::read_to_string(first).unwrap(), "on its way");
    assert_eq!(second.metadata().unwrap().len(), 0);
}

/// Has `width` threads create the same key at the same moment; returns the winner's bytes.
///
/// # Panics
/// Unless exactly one thread wins and every loser can read the winner's bytes at once.
pub fn race(store: &dyn BlobStore, key: &Key, width: usize) -> Vec<u8> {
    let start = Barrier::new(width);
    let compete = |number: usize| {
        let bytes = format!("bytes of {number}").into_bytes();
        start.wait();
        let created = store.put_create(key, &bytes).unwrap();
        (created == Created::Won, bytes, store.get(key).unwrap())
    };
    let results: Vec<_> = std::thread::scope(|scope| {
        let compete = &compete;
        let threads: Vec<_> =
            (0..width).map(|number| scope.spawn(move || compete(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let winners: Vec<_> = results.iter().filter(|(has_won, ..)| *has_won).collect();
    assert_eq!(winners.len(), 1);
    let winner = winners[0].1.clone();
    for (_, _, seen) in &results {
        assert_eq!(*seen, winner);
    }
    winner
}
