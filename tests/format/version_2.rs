//! Version 2: application records and rectangles in segments, origins in the labels of uploads, and
//! pages that wait to be fetched in the catalog.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lodestone_catalog::job::{ClaimLimits, Duty, MetadataChange, NewJob};
use lodestone_catalog::{Catalog, CatalogOptions};
use lodestone_embed::HashEmbedder;
use lodestone_io::store::{BlobStore, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::collection::uploads::{self, UploadLabel};
use lodestone_storage::collection::{AddedSegment, Collection, Edit};
use lodestone_storage::segment::{NewRow, NewSource, VectorKind};
use lodestone_types::{
    ChunkPlace, CollectionId, ManualClock, Origin, PageArea, PageBox, PageRef, RowId, SeededIds,
    Sequence, SourceDetail, SourceId, SourceKind, SourceRecord, SubTenantId, TenantId, TenantMode,
    Timestamp,
};
use serde_json::json;
use uuid::Uuid;

use crate::are_written_now;
use crate::version_1::{copy, files};

const NOW: Timestamp = Timestamp(1_700_000_000_000);
const COLLECTION: CollectionId = CollectionId(Uuid::from_u128(0x2222));
const CLAIM: ClaimLimits = ClaimLimits { jobs: 10, bytes: u64::MAX };

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format/v2")
}

fn store(root: &Path) -> Arc<dyn BlobStore> {
    Arc::new(LocalBlobs::new(Arc::new(DataDir::open(root, Arc::new(RealDisk)).unwrap())))
}

fn catalog(root: &Path) -> Catalog {
    let (clock, ids) = (Arc::new(ManualClock::new(NOW)), Arc::new(SeededIds::new(3)));
    Catalog::open(&root.join("catalog.sqlite"), CatalogOptions::default(), clock, ids).unwrap()
}

fn detail() -> SourceDetail {
    SourceDetail {
        title: "A mail".into(),
        source_type: "gmail".into(),
        description: "Said about apples".into(),
        note: "starred".into(),
        collections: vec!["orchard".into(), "2023".into()],
        meta: json!({"thread": 7}).as_object().cloned(),
        ..SourceDetail::default()
    }
}

fn origin() -> Origin {
    let url = "https://example.org/mail".to_owned();
    Origin { url, changed_at: Some(Timestamp(5)), detail: detail() }
}

fn record(kind: SourceKind, id: &str, sequence: u64, detail: SourceDetail) -> SourceRecord {
    SourceRecord {
        title: "A mail".into(),
        description: "Said about apples".into(),
        url: "https://example.org/mail".into(),
        content_type: "application/json".into(),
        size_bytes: 2,
        last_updated_at: Timestamp(5),
        detail,
        ..SourceRecord::new(
            SubTenantId::default_name(),
            SourceId::parse(id).unwrap(),
            kind,
            Sequence(sequence),
            NOW,
        )
    }
}

fn boxes() -> Vec<PageBox> {
    let area = |x| PageArea { x, y: 80.5, width: 300.25, height: 24.0 };
    vec![PageBox { page: 3, area: area(72.0) }, PageBox { page: 4, area: area(-1.5) }]
}

fn source(record: SourceRecord, text: &str, boxes: Vec<PageBox>) -> NewSource {
    let place =
        ChunkPlace { chars: text.len() as u32, page: PageRef::Page(3), ..Default::default() };
    let vector = HashEmbedder::vector(text);
    let rows = vec![NewRow { text: text.to_owned(), place, boxes, vector, ..NewRow::default() }];
    NewSource { record, title_text: String::new(), searchable: String::new(), rows }
}

fn label() -> UploadLabel {
    UploadLabel {
        sub_tenant: "default".into(),
        source: "mail".into(),
        kind: "app".into(),
        filename: String::new(),
        content_type: "application/json".into(),
        uploaded_at: NOW.0,
        tenant_metadata: None,
        document_metadata: None,
        origin: origin(),
        after: None,
    }
}

fn job(collection: CollectionId, id: &str, kind: SourceKind, size_bytes: u64) -> NewJob {
    let Origin { url, changed_at, detail } = origin();
    NewJob {
        collection,
        sub_tenant: SubTenantId::default_name(),
        source: SourceId::parse(id).unwrap(),
        kind,
        raw_key: format!("v1/raw/{collection}/{id}"),
        filename: String::new(),
        url,
        content_type: String::new(),
        size_bytes,
        content_hash: [7; 32],
        tenant_metadata: MetadataChange::Keep,
        document_metadata: MetadataChange::Keep,
        known_version: None,
        uploaded_at: NOW,
        origin_at: changed_at,
        detail,
    }
}

fn write(root: &Path) {
    let store = store(root);
    let ids = Arc::new(SeededIds::new(1));
    let collection = Collection::open(COLLECTION, Arc::clone(&store), ids, 7, None).unwrap();
    let sources = [
        source(record(SourceKind::File, "plain", 1, SourceDetail::default()), "pears", vec![]),
        source(record(SourceKind::App, "mail", 2, detail()), "apples", boxes()),
    ];
    let segment = collection.build(64, VectorKind::F16, &sources).unwrap();
    let add = vec![AddedSegment { segment, withheld: Vec::new() }];
    let edit = Edit { add, embedding: Some("a-model-1".to_owned()), ..Edit::default() };
    collection.writer().unwrap().commit(&edit).unwrap();
    uploads::put(&*store, &SeededIds::new(2), COLLECTION, &label(), b"{}").unwrap();
}

fn write_catalog(root: &Path) {
    let catalog = catalog(root);
    let name = TenantId::parse("acme").unwrap();
    let tenant = catalog.create_tenant(name, TenantMode::Standard, None).unwrap();
    catalog.submit(job(tenant.collection, "mail", SourceKind::App, 2)).unwrap();
    catalog.submit(job(tenant.collection, "page", SourceKind::Webpage, 0)).unwrap();
}

/// Writes the fixtures on request; see `main.rs`.
#[test]
fn write_fixtures() {
    if !are_written_now(&fixtures()) {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    write(root.path());
    copy(&root.path().join("v1"), &fixtures().join("v1"));
    write_catalog(&fixtures());
}

#[test]
fn records_and_rectangles_read_back() {
    let root = tempfile::tempdir().unwrap();
    copy(&fixtures().join("v1"), &root.path().join("v1"));
    let store = store(root.path());
    let ids = Arc::new(SeededIds::new(9));
    let collection = Collection::open(COLLECTION, Arc::clone(&store), ids, 8, None).unwrap();
    let snapshot = collection.snapshot();
    for (id, expected, kind) in
        [("plain", SourceDetail::default(), SourceKind::File), ("mail", detail(), SourceKind::App)]
    {
        let id = SourceId::parse(id).unwrap();
        let found = snapshot.find(&SubTenantId::default_name(), &id).unwrap();
        let record = found.record().unwrap();
        assert_eq!((record.detail, record.kind), (expected, kind));
        let boxes_of = found.live.segment.boxes(RowId(found.rows()[0]));
        assert_eq!(boxes_of, if id.as_str() == "mail" { boxes() } else { Vec::new() });
    }
    let raw = files(&root.path().join("v1/raw"));
    let [raw] = &raw[..] else { panic!("one original: {raw:?}") };
    let key = raw.strip_prefix(root.path()).unwrap().to_str().unwrap();
    assert_eq!(uploads::get(&*store, key).unwrap().label, label());
}

#[test]
fn pages_wait_for_those_who_fetch() {
    let root = tempfile::tempdir().unwrap();
    fs::copy(fixtures().join("catalog.sqlite"), root.path().join("catalog.sqlite")).unwrap();
    let catalog = catalog(root.path());
    catalog.requeue_interrupted().unwrap();
    for (duty, id) in [(Duty::Process, "mail"), (Duty::Fetch, "page")] {
        let claim = catalog.claim(duty, CLAIM).unwrap().unwrap();
        let [job] = &claim.jobs[..] else { panic!("one job: {claim:?}") };
        assert_eq!((job.source.as_str(), &job.detail), (id, &detail()));
        assert_eq!((job.is_fetched, job.origin_at), (id == "mail", Some(Timestamp(5))));
        assert_eq!(catalog.claim(duty, CLAIM).unwrap(), None);
    }
}
