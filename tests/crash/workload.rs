//! A fixed workload over one collection, and the model of the contents that must be visible after
//! it.

use std::collections::BTreeMap;
use std::sync::Arc;

use lodestone_embed::HashEmbedder;
use lodestone_io::store::{BlobStore, LocalBlobs};
use lodestone_io::{CrashDisk, DataDir, Disk};
use lodestone_storage::collection::{AddedSegment, Collection, CollectionError, Edit, MergeBudget};
use lodestone_storage::segment::{self, NewRow, NewSource, VectorKind};
use lodestone_types::{
    ChunkPlace, CollectionId, CommitHead, RowId, SeededIds, Sequence, SourceId, SourceKind,
    SourceRecord, SubTenantId, Timestamp,
};
use uuid::Uuid;

const COLLECTION: CollectionId = CollectionId(Uuid::from_u128(0xC0));

/// Visible sources by id: sequence, then index and text of each chunk.
pub type Contents = BTreeMap<String, (u64, Vec<(u32, String)>)>;

/// One acknowledged change, or background work that must not change anything.
#[derive(Debug, Clone, Copy)]
pub enum Step {
    /// Sources of one segment: id, sequence, chunks.
    Add(&'static [(&'static str, u64, u32)]),
    Remove(&'static str),
    RemoveChunks(&'static str, &'static [u32]),
    /// Removes every source whose id begins with `t`.
    EmptySubTenant,
    Merge,
    CollectGarbage,
}

/// Every kind of change: replacements, late operations, removals, a merge of a full tier, a
/// rewrite of a worn segment, garbage collection after each.
pub const STEPS: &[Step] = &[
    Step::Add(&[("a", 1, 3), ("b", 2, 2)]),
    Step::Add(&[("c", 3, 4), ("t1", 20, 1)]),
    Step::Add(&[("a", 4, 2)]),
    Step::Remove("b"),
    Step::RemoveChunks("c", &[1]),
    Step::CollectGarbage,
    Step::Add(&[("d", 5, 2)]),
    Step::Add(&[("e", 6, 1), ("t2", 21, 1)]),
    Step::Add(&[("f", 7, 1)]),
    Step::Add(&[("g", 8, 1)]),
    Step::Add(&[("h", 9, 1)]),
    Step::Add(&[("a", 10, 1), ("d", 3, 1)]),
    Step::Add(&[("i", 11, 1)]),
    Step::Merge,
    Step::CollectGarbage,
    Step::RemoveChunks("c", &[0, 2]),
    Step::Add(&[("c", 12, 1), ("j", 13, 2)]),
    Step::Remove("d"),
    Step::Merge,
    Step::CollectGarbage,
    Step::EmptySubTenant,
];

fn text(id: &str, sequence: u64, index: u32) -> String {
    format!("chunk {index} of {id} as of {sequence}")
}

fn sub_tenant(id: &str) -> SubTenantId {
    SubTenantId::parse(if id.starts_with('t') { "t" } else { "s" }).unwrap()
}

fn source(id: &str, sequence: u64, chunks: u32) -> NewSource {
    let record = SourceRecord {
        title: id.to_owned(),
        content_type: "text/plain".into(),
        size_bytes: u64::from(chunks),
        ..SourceRecord::new(
            sub_tenant(id),
            SourceId::parse(id).unwrap(),
            SourceKind::Text,
            Sequence(sequence),
            Timestamp(sequence),
        )
    };
    let row = |index| {
        let text = text(id, sequence, index);
        let place = ChunkPlace { chars: text.chars().count() as u32, ..ChunkPlace::default() };
        NewRow { index, place, vector: HashEmbedder::vector(&text), text, ..NewRow::default() }
    };
    let rows = (0..chunks).map(row).collect();
    NewSource { record, title_text: String::new(), searchable: String::new(), rows }
}

/// Visible contents after each number of steps, from 0 on.
pub fn expected() -> Vec<Contents> {
    let mut states = vec![Contents::new()];
    for step in STEPS {
        let mut next = states.last().unwrap().clone();
        match step {
            Step::Add(sources) => {
                for (id, sequence, chunks) in *sources {
                    if next.get(*id).is_none_or(|(older, _)| older <= sequence) {
                        let rows = (0..*chunks).map(|index| (index, text(id, *sequence, index)));
                        next.insert((*id).to_owned(), (*sequence, rows.collect()));
                    }
                }
            }
            Step::Remove(id) => drop(next.remove(*id)),
            Step::RemoveChunks(id, indices) => {
                let (_, rows) = next.get_mut(*id).unwrap();
                rows.retain(|(index, _)| !indices.contains(index));
            }
            Step::EmptySubTenant => next.retain(|id, _| !id.starts_with('t')),
            Step::Merge | Step::CollectGarbage => {}
        }
        states.push(next);
    }
    states
}

/// Opens the collection on a disk. `seed` decides the ids of everything written from now on.
pub fn open(
    disk: &Arc<CrashDisk>,
    seed: u64,
    head: Option<CommitHead>,
) -> Result<Collection, CollectionError> {
    let dynamic: Arc<dyn Disk> = disk.clone();
    let data = DataDir::open(&disk.root().join("data"), dynamic);
    let data = data.map_err(lodestone_io::store::StoreError::from)?;
    let store: Arc<dyn BlobStore> = Arc::new(LocalBlobs::new(Arc::new(data)));
    Collection::open(COLLECTION, store, Arc::new(SeededIds::new(seed)), 1, head)
}

/// Takes one step; an `Ok` is its acknowledgement. Merges and collections of garbage report
/// whether there was anything to do.
pub fn take(collection: &Collection, step: Step) -> Result<bool, CollectionError> {
    match step {
        Step::Add(sources) => {
            let sources: Vec<NewSource> = sources
                .iter()
                .map(|(id, sequence, chunks)| source(id, *sequence, *chunks))
                .collect();
            let segment = collection.build(64, VectorKind::F16, &sources)?;
            let applied: Vec<Sequence> =
                sources.iter().map(|source| source.record.sequence).collect();
            let add = vec![AddedSegment { segment, withheld: Vec::new() }];
            let mut writer = collection.writer()?;
            writer.commit(&Edit { add, applied: applied.clone(), ..Edit::default() })?;
            writer.forget_applied(&applied);
        }
        Step::Remove(id) => {
            let remove_sources = vec![(sub_tenant(id), SourceId::parse(id).unwrap())];
            collection.writer()?.commit(&Edit { remove_sources, ..Edit::default() })?;
        }
        Step::RemoveChunks(id, indices) => {
            let source = SourceId::parse(id).unwrap();
            let remove_chunks = vec![(sub_tenant(id), source, indices.to_vec())];
            collection.writer()?.commit(&Edit { remove_chunks, ..Edit::default() })?;
        }
        Step::EmptySubTenant => {
            let remove_sub_tenant = Some(sub_tenant("t"));
            collection.writer()?.commit(&Edit { remove_sub_tenant, ..Edit::default() })?;
        }
        Step::Merge => return collection.merge_once(MergeBudget::MOST),
        Step::CollectGarbage => return Ok(collection.collect_garbage()? > 0),
    }
    Ok(true)
}

/// Progress of a run.
#[derive(Debug, Default)]
pub struct Run {
    /// Steps that were acknowledged.
    pub acknowledged: usize,
    /// The last acknowledged commit, as the catalog would know it.
    pub head: Option<CommitHead>,
}

/// Takes steps until the first fails.
pub fn run(disk: &Arc<CrashDisk>) -> Run {
    let mut run = Run::default();
    let Ok(collection) = open(disk, 1, None) else { return run };
    for step in STEPS {
        if take(&collection, *step).is_err() {
            return run;
        }
        run.acknowledged += 1;
        run.head = collection.head();
    }
    run
}

/// Visible contents now. Every segment is read in full and must keep its promises.
pub fn visible(collection: &Collection) -> Contents {
    let snapshot = collection.snapshot();
    assert!(snapshot.damaged.is_empty(), "no segment is damaged");
    for live in &snapshot.segments {
        segment::verify(&live.segment).unwrap();
    }
    let mut contents = Contents::new();
    for found in snapshot.all_sources() {
        let (record, segment) = (found.record().unwrap(), &found.live.segment);
        let row = |row: &u32| (segment.index(RowId(*row)), segment.text(RowId(*row)).unwrap());
        let rows = found.rows().iter().map(row).collect();
        let twice = contents.insert(record.id.to_string(), (record.sequence.0, rows));
        assert!(twice.is_none(), "{} is visible twice", record.id);
    }
    contents
}

/// Reopens after a cut and checks everything: the acknowledged is there, what was under way is
/// there whole or not at all, and the collection takes new writes that last.
///
/// # Panics
/// At the first promise that is broken; `context` names the position.
pub fn check(disk: &Arc<CrashDisk>, run: &Run, states: &[Contents], context: &str) {
    let collection = open(disk, 2, run.head).unwrap_or_else(|error| panic!("{context}: {error}"));
    let found = visible(&collection);
    let before = &states[run.acknowledged];
    let after = states.get(run.acknowledged + 1).unwrap_or(before);
    assert!(
        found == *before || found == *after,
        "{context}: {} steps acknowledged, found {found:?}",
        run.acknowledged
    );
    if found != *before
        && let Some(Step::Add(sources)) = STEPS.get(run.acknowledged)
    {
        let applied = &collection.snapshot().manifest.applied;
        let is_noted = sources.iter().all(|(_, sequence, _)| applied.contains(sequence));
        assert!(is_noted, "{context}: a visible job is not in the manifest");
    }
    let fresh = Step::Add(&[("fresh", 99, 2)]);
    take(&collection, fresh).unwrap_or_else(|error| panic!("{context}: {error}"));
    collection.collect_garbage().unwrap();
    let (head, written) = (collection.head(), visible(&collection));
    assert_eq!(written.len(), found.len() + 1, "{context}");
    drop(collection);
    let again = open(disk, 3, head).unwrap();
    assert!(visible(&again) == written, "{context}: the new writes last");
}
