//! Collections and requests for the tests of searches.

use std::sync::Arc;

use tempfile::TempDir;
use uuid::Uuid;

use crate::query::{Alpha, GraphContext, Join, Mode, Recall, RetrieveRequest};
use lodestone_embed::HashEmbedder;
use lodestone_io::store::LocalBlobs;
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::collection::{AddedSegment, Collection, Edit};
use lodestone_storage::segment::{NewRow, NewSource, VectorKind};
use lodestone_types::{
    ChunkPlace, CollectionId, Filter, SeededIds, Sequence, SourceId, SourceKind, SourceRecord,
    SubTenantId, Timestamp,
};

/// A source with one chunk per text.
pub(super) fn source(sub_tenant: &str, id: &str, texts: &[&str]) -> NewSource {
    let record = SourceRecord::new(
        SubTenantId::parse(sub_tenant).unwrap(),
        SourceId::parse(id).unwrap(),
        SourceKind::Text,
        Sequence(1),
        Timestamp(1_000),
    );
    let row = |(index, text): (u32, &&str)| NewRow {
        index,
        text: (*text).to_owned(),
        place: ChunkPlace { chars: text.chars().count() as u32, ..ChunkPlace::default() },
        vector: HashEmbedder::vector(text),
        ..NewRow::default()
    };
    let rows = (0..).zip(texts).map(row).collect();
    NewSource { record, title_text: String::new(), searchable: String::new(), rows }
}

/// A collection with one segment per list of sources, all with vectors of one dimension.
pub(super) fn collection(
    root: &TempDir,
    kind: VectorKind,
    segments: impl IntoIterator<Item = Vec<NewSource>>,
) -> Collection {
    let data = Arc::new(DataDir::open(root.path(), Arc::new(RealDisk)).unwrap());
    let store = Arc::new(LocalBlobs::new(data));
    let id = CollectionId(Uuid::from_u128(7));
    let collection = Collection::open(id, store, Arc::new(SeededIds::new(1)), 1, None).unwrap();
    for mut sources in segments {
        let key = |source: &NewSource| {
            (source.record.sub_tenant.as_str().to_owned(), source.record.id.as_str().to_owned())
        };
        sources.sort_by_key(key);
        let dimension = sources[0].rows[0].vector.len();
        let segment = collection.build(dimension, kind, &sources).unwrap();
        let add = vec![AddedSegment { segment, withheld: Vec::new() }];
        let edit = Edit { add, embedding: Some("hashing".to_owned()), ..Edit::default() };
        collection.writer().unwrap().commit(&edit).unwrap();
    }
    collection
}

/// A search for up to ten chunks.
pub(super) fn request(query: &str) -> RetrieveRequest {
    RetrieveRequest {
        query: query.to_owned(),
        extra_context: None,
        max_chunks: 10,
        mode: Mode::Fast,
        recall: Recall::Usual,
        alpha: Alpha::Fixed(0.6),
        recency_bias: 0.0,
        is_personalised: false,
        graph_context: GraphContext::Off,
        per_source_max: None,
        join: Join::Never,
        min_confidence: 0.0,
        filter: Filter::All.into(),
    }
}
