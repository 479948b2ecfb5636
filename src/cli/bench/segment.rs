//! The segment that `lodestone bench vectors` searches, newly built or opened from a folder.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use lodestone_graph::RowGraph;
use lodestone_io::store::{Key, LocalBlobs};
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::segment::{
    NewRow, NewSource, Segment, SegmentMeta, SegmentShape, VectorKind, write,
};
use lodestone_types::{
    ChunkPlace, CollectionId, IdSource, RandomIds, SegmentId, Sequence, SourceDetail, SourceId,
    SourceKind, SourceRecord, SubTenantId, Timestamp,
};
use serde_json::{Value, json};

use crate::cli::bench::arrays::Array;

/// Rows per source: the largest batch of vectors that the server accepts.
const BATCH_ROWS: usize = 2000;
/// Name of the file in a kept folder that describes its segment.
const DESCRIPTION: &str = "bench.json";

/// Builds a segment of the rows in a folder, and describes it there.
pub fn build(base: Array<f32>, folder: &Path) -> Result<Segment, Box<dyn Error>> {
    let store = LocalBlobs::new(Arc::new(DataDir::open(folder, Arc::new(RealDisk))?));
    let shape = SegmentShape {
        collection: CollectionId(RandomIds.uuid()),
        segment: SegmentId(RandomIds.uuid()),
        dimension: base.width,
        vector_kind: VectorKind::F32,
    };
    let key = key(shape.collection, shape.segment)?;
    let batches = base.values.chunks(BATCH_ROWS * base.width).enumerate();
    let sources: Vec<NewSource> =
        batches.map(|(number, values)| source(number, values, base.width)).collect();
    drop(base.values);
    let meta = write(&store, &key, shape, &sources)?;
    drop(sources);
    let description = json!({
        "collection": shape.collection.0, "segment": meta.id.0, "bytes": meta.bytes,
        "rows": meta.rows, "sources": meta.sources, "checksum": meta.checksum,
    });
    std::fs::write(folder.join(DESCRIPTION), description.to_string())?;
    Ok(Segment::open(&store, &key, shape.collection, &meta)?)
}

/// Opens the segment that [`build`] left in a folder.
pub fn open(folder: &Path) -> Result<Segment, Box<dyn Error>> {
    let path = folder.join(DESCRIPTION);
    let wrong = |problem: &dyn std::fmt::Display| format!("--open {}: {problem}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| wrong(&error))?;
    let described: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    let number =
        |name: &str| described[name].as_u64().ok_or_else(|| wrong(&format!("has no {name}")));
    let id = |name: &str| {
        let id = described[name].as_str().and_then(|id| id.parse().ok());
        id.ok_or_else(|| wrong(&format!("has no {name}")))
    };
    let collection = CollectionId(id("collection")?);
    let meta = SegmentMeta {
        id: SegmentId(id("segment")?),
        bytes: number("bytes")?,
        rows: u32::try_from(number("rows")?)?,
        sources: u32::try_from(number("sources")?)?,
        checksum: number("checksum")?,
    };
    let store = LocalBlobs::new(Arc::new(DataDir::open(folder, Arc::new(RealDisk))?));
    Ok(Segment::open(&store, &key(collection, meta.id)?, collection, &meta)?)
}

fn key(collection: CollectionId, segment: SegmentId) -> Result<Key, Box<dyn Error>> {
    Ok(Key::parse(&format!("v1/c/{collection}/s/{segment}.seg"))?)
}

fn source(number: usize, values: &[f32], width: usize) -> NewSource {
    let row = |(index, vector): (usize, &[f32])| NewRow {
        boxes: Vec::new(),
        lines: Vec::new(),
        context: String::new(),
        graph: RowGraph::default(),
        index: index as u32,
        text: String::new(),
        place: ChunkPlace::default(),
        vector: vector.to_vec(),
        sparse: None,
    };
    let record = SourceRecord {
        sub_tenant: SubTenantId::default_name(),
        id: SourceId::parse(&format!("batch-{number}")).expect("a plain name"),
        kind: SourceKind::Embeddings,
        title: String::new(),
        description: String::new(),
        filename: String::new(),
        url: String::new(),
        content_type: String::new(),
        size_bytes: size_of_val(values) as u64,
        tenant_metadata: Default::default(),
        document_metadata: Default::default(),
        uploaded_at: Timestamp(0),
        last_updated_at: Timestamp(0),
        version: 1,
        sequence: Sequence(number as u64 + 1),
        raw_key: String::new(),
        detail: SourceDetail::default(),
    };
    let rows = values.chunks_exact(width).enumerate().map(row).collect();
    NewSource { record, title_text: String::new(), searchable: String::new(), rows }
}
