//! Damaged copies of the fixtures, and copies that require a later release.

use std::fs;
use std::path::{Path, PathBuf};

use lodestone_io::checksum;
use lodestone_storage::collection::{CollectionError, uploads};
use lodestone_storage::segment;
use lodestone_types::{CollectionId, ErrorKind};

use crate::version_1::{Copy, TEXTS, VECTORS, files};

/// Whether an error reports damage. A corrupted version digit may look like a later format, which
/// is neither served nor repaired.
fn is_told(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Corrupt | ErrorKind::Unavailable)
}

/// Whether damage is detected by opening the collection or by reading all of it.
fn is_noticed(copy: &Copy, id: CollectionId) -> bool {
    let collection = match copy.open(id) {
        Ok(collection) => collection,
        Err(error) => {
            assert!(is_told(error.kind()), "{error}");
            return true;
        }
    };
    let snapshot = collection.snapshot();
    let is_sound = |live: &std::sync::Arc<lodestone_storage::collection::LiveSegment>| {
        segment::verify(&live.segment).is_ok()
    };
    !snapshot.damaged.is_empty() || !snapshot.segments.iter().all(is_sound)
}

/// The only file in one directory of a collection of a copy.
fn of(copy: &Copy, id: CollectionId, directory: &str) -> PathBuf {
    let path = copy.root.path().join(format!("v1/c/{id}/{directory}"));
    let mut found = files(&path);
    assert_eq!(found.len(), 1, "{path:?}");
    found.remove(0)
}

/// Replaces a file as a restore would: with a new file under the old name.
fn replace(path: &Path, bytes: &[u8]) {
    let fresh = path.with_extension("new");
    fs::write(&fresh, bytes).unwrap();
    fs::rename(fresh, path).unwrap();
}

/// Flips one bit at every offset in steps of `step`; returns the number of offsets.
fn flip_everywhere(path: &Path, step: usize, mut is_noticed: impl FnMut() -> bool) -> usize {
    let good = fs::read(path).unwrap();
    let mut count = 0;
    for at in (0..good.len()).step_by(step) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        replace(path, &bad);
        assert!(is_noticed(), "byte {at} of {path:?}");
        count += 1;
    }
    replace(path, &good);
    assert!(!is_noticed(), "the good copy is good");
    count
}

#[test]
fn a_flipped_bit_in_any_byte_of_a_small_file_is_noticed() {
    let copy = Copy::new();
    for (id, directory) in [(TEXTS, "m"), (VECTORS, "m"), (TEXTS, "d")] {
        let count = flip_everywhere(&of(&copy, id, directory), 1, || is_noticed(&copy, id));
        assert!(count > 60, "{directory}: {count} bytes");
    }
    let key = copy.store.list(&uploads::prefix(TEXTS)).unwrap().remove(0);
    let path = copy.root.path().join(key.as_str());
    flip_everywhere(&path, 1, || match uploads::get(&*copy.store, key.as_str()) {
        Ok(_) => false,
        Err(error) => {
            assert!(is_told(error.kind()), "{error}");
            true
        }
    });
}

/// Goal: a flipped bit anywhere in a segment is detected. Method: the step is prime, so that over
/// all pages every offset within a page is tried.
#[test]
fn a_flipped_bit_in_a_segment_is_noticed() {
    let copy = Copy::new();
    for id in [TEXTS, VECTORS] {
        let count = flip_everywhere(&of(&copy, id, "s"), 131, || is_noticed(&copy, id));
        assert!(count > 200, "{count} places");
    }
}

#[test]
fn cut_and_missing_files_are_noticed() {
    for (id, directory) in [(TEXTS, "m"), (TEXTS, "d"), (TEXTS, "s"), (VECTORS, "s")] {
        let copy = Copy::new();
        let path = of(&copy, id, directory);
        let good = fs::read(&path).unwrap();
        for cut in (0..good.len()).step_by(good.len() / 37 + 1).chain([good.len() - 1]) {
            replace(&path, &good[..cut]);
            assert!(is_noticed(&copy, id), "{path:?} cut to {cut}");
        }
        let mut longer = good.clone();
        longer.push(0);
        replace(&path, &longer);
        assert!(is_noticed(&copy, id), "{path:?} with a byte more");
        if directory != "m" {
            fs::remove_file(&path).unwrap();
            assert!(is_noticed(&copy, id), "{path:?} missing");
        }
    }
}

#[test]
fn a_file_of_another_collection_is_refused() {
    for directory in ["m", "s"] {
        let copy = Copy::new();
        let (from, to) = (of(&copy, VECTORS, directory), of(&copy, TEXTS, directory));
        replace(&to, &fs::read(from).unwrap());
        assert!(is_noticed(&copy, TEXTS), "{directory}");
        assert!(!is_noticed(&copy, VECTORS), "the other collection is at ease");
    }
}

#[test]
fn a_newer_manifest_is_refused_by_version() {
    let copy = Copy::new();
    let path = of(&copy, TEXTS, "m");
    let good = fs::read_to_string(&path).unwrap();
    let (_, body) = good.split_once('\n').unwrap();
    // Later versions may remove and add fields; only `min_reader` must remain.
    let body = body.replace("\"min_reader\":1", "\"min_reader\":3");
    let body = body.replace("\"segments\":", "\"parts\":");
    let head = format!("lodestone manifest 1 {:016x} {}\n", checksum(body.as_bytes()), body.len());
    replace(&path, format!("{head}{body}").as_bytes());
    let error = copy.open(TEXTS).unwrap_err();
    assert!(matches!(error, CollectionError::TooNew { needed: 3, ours: 2, .. }), "{error}");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

#[test]
fn a_newer_segment_is_refused_by_version() {
    let copy = Copy::new();
    let path = of(&copy, TEXTS, "s");
    let mut bytes = fs::read(&path).unwrap();
    bytes[12..16].copy_from_slice(&9u32.to_le_bytes());
    let hash = checksum(&bytes[..64]);
    bytes[64..72].copy_from_slice(&hash.to_le_bytes());
    replace(&path, &bytes);
    let error = copy.open(TEXTS).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(error.to_string().contains("needs reader version 9"), "{error}");
}
