//! Version 3: entities, triplets and titles in segments.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestone_embed::HashEmbedder;
use lodestone_graph::{EntityKind, Predicate, RowEntity, RowGraph, RowTriplet};
use lodestone_io::store::{BlobStore, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::collection::{AddedSegment, Collection, Edit};
use lodestone_storage::segment::{NewRow, NewSource, VectorKind};
use lodestone_types::{
    ChunkPlace, CollectionId, SeededIds, Sequence, SourceId, SourceKind, SourceRecord, SubTenantId,
    Timestamp,
};
use uuid::Uuid;

use crate::are_written_now;
use crate::version_1::copy;

const FIXTURE: Fixture = Fixture { directory: "v3", collection: 0x3333 };
const TITLE: &str = "Northern Light";
const TEXT: &str = "Northern Light is a film directed by Marta Lindqvist.";

/// A collection of a single segment, written by some version.
pub(crate) struct Fixture {
    pub(crate) directory: &'static str,
    pub(crate) collection: u128,
}

impl Fixture {
    pub(crate) fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format").join(self.directory)
    }

    fn open_at(&self, store: Arc<dyn BlobStore>, seed: u64, epoch: u64) -> Collection {
        let (id, ids) = (CollectionId(Uuid::from_u128(self.collection)), SeededIds::new(seed));
        Collection::open(id, store, Arc::new(ids), epoch, None).unwrap()
    }

    /// Writes the fixture on request; see `main.rs`.
    pub(crate) fn write(&self, sources: &[NewSource]) {
        if !are_written_now(&self.path()) {
            return;
        }
        let root = tempfile::tempdir().unwrap();
        self.fill(store(root.path()), sources);
        copy(&root.path().join("v1"), &self.path().join("v1"));
    }

    /// Commits the sources to the collection.
    pub(crate) fn fill(&self, store: Arc<dyn BlobStore>, sources: &[NewSource]) {
        let collection = self.open_at(store, 1, 7);
        let segment = collection.build(64, VectorKind::F16, sources).unwrap();
        let add = vec![AddedSegment { segment, withheld: Vec::new() }];
        let edit = Edit { add, embedding: Some("a-model-1".to_owned()), ..Edit::default() };
        collection.writer().unwrap().commit(&edit).unwrap();
    }

    /// Opens a copy of the fixture below `root`.
    pub(crate) fn open(&self, root: &Path) -> Collection {
        copy(&self.path().join("v1"), &root.join("v1"));
        self.reopen(root)
    }

    /// Opens the collection that is below `root`.
    pub(crate) fn reopen(&self, root: &Path) -> Collection {
        self.open_at(store(root), 9, 8)
    }
}

pub(crate) fn store(root: &Path) -> Arc<dyn BlobStore> {
    Arc::new(LocalBlobs::new(Arc::new(DataDir::open(root, Arc::new(RealDisk)).unwrap())))
}

pub(crate) fn source(id: &str, title: &str, text: &str, graph: RowGraph) -> NewSource {
    let record = SourceRecord {
        title: title.into(),
        ..SourceRecord::new(
            SubTenantId::default_name(),
            SourceId::parse(id).unwrap(),
            SourceKind::Text,
            Sequence(1),
            Timestamp(1),
        )
    };
    let place = ChunkPlace { chars: text.len() as u32, ..ChunkPlace::default() };
    let vector = HashEmbedder::vector(text);
    let (boxes, lines, text) = (Vec::new(), Vec::new(), text.to_owned());
    let context = String::new();
    let rows =
        vec![NewRow { index: 0, text, place, boxes, lines, context, graph, vector, sparse: None }];
    NewSource { record, title_text: title.into(), searchable: String::new(), rows }
}

/// Written by hand, so that the extraction rules can change.
fn graph() -> RowGraph {
    let entity = |name: &str, kind, aliases: &[&str]| RowEntity {
        key: String::from(lodestone_graph::key(name)),
        name: name.into(),
        kind,
        aliases: aliases.iter().map(|key| (*key).to_owned()).collect(),
    };
    let predicate = Predicate::DirectedBy;
    let context = 0..TEXT.len() as u32;
    RowGraph {
        entities: vec![
            entity(TITLE, EntityKind::Work, &[]),
            entity("Marta Lindqvist", EntityKind::Person, &["lindqvist"]),
        ],
        triplets: vec![RowTriplet { source: 0, target: 1, predicate, context }],
    }
}

#[test]
fn write_fixtures() {
    FIXTURE.write(&[
        source("bare", "bare", "pears", RowGraph::default()),
        source("film", TITLE, TEXT, graph()),
    ]);
}

#[test]
fn entities_and_triplets_read_back() {
    let root = tempfile::tempdir().unwrap();
    let collection = FIXTURE.open(root.path());
    let snapshot = collection.snapshot();
    let sub_tenant = SubTenantId::default_name();
    let find = |id: &str| snapshot.find(&sub_tenant, &SourceId::parse(id).unwrap()).unwrap();
    let (film, bare) = (find("film"), find("bare"));
    let stored = film.live.segment.graph().unwrap().unwrap();
    assert_eq!(stored.row(film.rows()[0]), graph());
    assert_eq!(stored.row(bare.rows()[0]), RowGraph::default());
    assert_eq!(stored.titles().sources("northern light"), [film.source]);
    assert_eq!(stored.titles().sources("bare"), [0_u32; 0], "an id is no title");
    let person = stored.find("marta lindqvist").unwrap();
    assert_eq!(stored.called("lindqvist").1.collect::<Vec<_>>(), [person]);
    assert_eq!(stored.rows_of(person), film.rows());
    let named = stored.named_in(film.rows()[0], person);
    assert_eq!(named, Some(("Marta Lindqvist", EntityKind::Person)));
}
