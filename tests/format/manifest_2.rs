//! Manifests for reader version 2: small segments have source lists in their entries, as in
//! buckets.

use std::fs;
use std::sync::Arc;

use lodestone_graph::RowGraph;
use lodestone_io::store::testing::FaultyBlobs;

use crate::are_written_now;
use crate::version_1::{copy, files};
use crate::version_3::{Fixture, source, store};

const FIXTURE: Fixture = Fixture { directory: "manifest-2", collection: 0x2020 };

#[test]
fn write_fixtures() {
    if !are_written_now(&FIXTURE.path()) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let bucket = Arc::new(FaultyBlobs::new(store(root.path())));
    let sources = [("one", "pears"), ("two", "apples")];
    FIXTURE.fill(bucket, &sources.map(|(id, text)| source(id, id, text, RowGraph::default())));
    copy(&root.path().join("v1"), &FIXTURE.path().join("v1"));
}

/// Goal: a source list in the manifest is read, and tells what a damaged segment contained.
#[test]
fn a_list_in_the_manifest_is_read() {
    let root = tempfile::tempdir().unwrap();
    let snapshot = FIXTURE.open(root.path()).snapshot();
    assert_eq!((snapshot.manifest.min_reader, snapshot.rows()), (2, 2));
    assert!(snapshot.manifest.segments[0].list.is_some());
    drop(snapshot);
    let is_segment = |path: &&std::path::PathBuf| path.extension().is_some_and(|it| it == "seg");
    let files = files(root.path());
    let segment = files.iter().find(is_segment).unwrap();
    fs::write(segment, b"damaged").unwrap();
    let snapshot = FIXTURE.reopen(root.path()).snapshot();
    let lost: Vec<_> = snapshot.damaged.iter().flat_map(|segment| segment.lost()).collect();
    assert_eq!(lost.iter().map(|record| record.id.as_str()).collect::<Vec<_>>(), ["one", "two"]);
    assert!(lost.iter().all(|record| record.title == record.id.as_str()));
}
