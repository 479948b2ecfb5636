//! Files from which a catalog is rebuilt: tenant descriptors and the catalog log.

use std::sync::Arc;

use lodestone_catalog::{Catalog, CatalogLog, CatalogOptions, descriptors};
use lodestone_io::sealed;
use lodestone_io::store::testing::MemoryBlobs;
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{ManualClock, SeededIds};

use crate::forged::COLLECTION;
use crate::mutations::Shape;
use crate::replies::fuzz;

/// Tenant descriptors.
#[test]
fn tenant_descriptors() {
    let seed = serde_json::json!({
        "collection": COLLECTION.0, "deleted": false, "name": "acme", "mode": "standard",
        "schema": {"fields": []}, "created_at": 5, "embedding_model": "m", "limits": {},
    });
    let plain = serde_json::json!({
        "collection": COLLECTION.0, "deleted": true, "name": "b", "mode": "embeddings",
        "schema": null, "created_at": 1,
    });
    let store = MemoryBlobs::default();
    let key = descriptors::key(COLLECTION);
    let seeds = vec![seed.to_string().into_bytes(), plain.to_string().into_bytes()];
    fuzz("tenant_descriptors", &seeds, Shape::Values, move |body| {
        store.put(&key, &sealed::seal("lodestone tenant 1", body)).expect("memory");
        let Ok(read) = descriptors::read(&store, COLLECTION) else { return };
        let read = read.expect("it is there");
        descriptors::write(&store, &read).expect("memory");
        let again = descriptors::read(&store, COLLECTION).expect("what was written");
        assert_eq!(again, Some(read), "written anew it is another");
    });
}

/// Entries of a catalog log, each a label and its content; the newest one is the input.
#[test]
fn catalog_log() {
    let root = tempfile::tempdir().expect("a directory");
    let store = Arc::new(MemoryBlobs::default());
    let blobs: Arc<dyn BlobStore> = store.clone();
    let ids = Arc::new(SeededIds::new(1));
    let log = CatalogLog::open(blobs.clone(), ids.clone()).expect("an empty log");
    let options = CatalogOptions::default();
    let clock = Arc::new(ManualClock::default());
    let path = root.path().join("catalog.sqlite");
    let catalog = Catalog::open_with_log(&path, options, clock, ids.clone(), log);
    drop(catalog.expect("a catalog"));
    let entries = store.list(&Key::parse("v1/catalog").expect("a key")).expect("the entries");
    let (words, label) = ("lodestone catalog log 1", "entry");
    let sound: Vec<(Key, Vec<u8>)> =
        entries.iter().map(|key| (key.clone(), store.get(key).expect("an entry"))).collect();
    // The label as a line, then the content.
    let unpacked = |bytes: &[u8]| {
        let body = sealed::open(words, bytes).expect("a sealed file");
        let (json, at) = sealed::read_label(label, body).expect("a labelled file");
        let content = zstd::stream::decode_all(&body[at..]).expect("zstd");
        [json, b"\n", &content].concat()
    };
    let seeds: Vec<Vec<u8>> = sound.iter().map(|(_, bytes)| unpacked(bytes)).collect();
    let seeds: Vec<_> = seeds.into_iter().filter(|seed| seed.len() < 60_000).collect();
    fuzz("catalog_log", &seeds, Shape::Values, move |input| {
        let end = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
        let content = zstd::bulk::compress(input.get(end + 1..).unwrap_or_default(), 1);
        let content = content.expect("memory");
        let entry = sealed::seal(words, &sealed::label(label, &input[..end], &content));
        let number = input.len() % sound.len();
        for (at, (key, bytes)) in sound.iter().enumerate() {
            store.put(key, if at == number { &entry } else { bytes }).expect("memory");
        }
        let Ok(log) = CatalogLog::open(blobs.clone(), ids.clone()) else { return };
        let _ = log.verify();
        let restored = root.path().join("restored.sqlite");
        let _ = std::fs::remove_file(&restored);
        if let Err(error) = log.restore_to(&restored) {
            assert!(!restored.exists(), "{error}: something is left of it");
        }
    });
}
