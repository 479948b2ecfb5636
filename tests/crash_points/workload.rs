//! Workloads on one collection, and a model of the contents that must be visible after them.

use std::collections::BTreeMap;
use std::sync::Arc;

use lodestone_embed::HashEmbedder;
use lodestone_io::store::{BlobStore, LocalBlobs};
use lodestone_io::{CrashDisk, DataDir, Disk};
use lodestone_storage::collection::{AddedSegment, Collection, CollectionError, Edit, MergeBudget};
use lodestone_storage::segment::{self, NewRow, NewSource, VectorKind};
use lodestone_types::{
    ChunkPlace, CollectionId, CommitHead, IdSource, RowId, SeededIds, Sequence, SourceId,
    SourceKind, SourceRecord, SubTenantId, Timestamp,
};
use uuid::Uuid;

const COLLECTION: CollectionId = CollectionId(Uuid::from_u128(0xC0));

/// The visible sources by id: the sequence, and index and text of each chunk.
pub type Contents = BTreeMap<String, (u64, Vec<(u32, String)>)>;

/// The source ids of generated workloads.
const IDS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "t1", "t2"];

/// A change that is acknowledged, or background work that must not change the contents.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sources of one segment: id, sequence, number of chunks.
    Add(Vec<(String, u64, u32)>),
    Remove(String),
    RemoveChunks(String, Vec<u32>),
    /// Removes every source whose id begins with `t`.
    EmptySubTenant,
    Merge,
    CollectGarbage,
}

impl Step {
    fn add(sources: &[(&str, u64, u32)]) -> Self {
        let owned = |(id, sequence, chunks): &(&str, _, _)| ((*id).to_owned(), *sequence, *chunks);
        Self::Add(sources.iter().map(owned).collect())
    }

    /// The contents after this step.
    pub fn applied_to(&self, contents: &Contents) -> Contents {
        let mut next = contents.clone();
        match self {
            Self::Add(sources) => {
                for (id, sequence, chunks) in sources {
                    if next.get(id).is_none_or(|(older, _)| older <= sequence) {
                        let rows = (0..*chunks).map(|index| (index, text(id, *sequence, index)));
                        next.insert(id.clone(), (*sequence, rows.collect()));
                    }
                }
            }
            Self::Remove(id) => drop(next.remove(id)),
            Self::RemoveChunks(id, indices) => {
                let (_, rows) = next.get_mut(id).unwrap();
                rows.retain(|(index, _)| !indices.contains(index));
            }
            Self::EmptySubTenant => next.retain(|id, _| !id.starts_with('t')),
            Self::Merge | Self::CollectGarbage => {}
        }
        next
    }

    /// The sequences of the jobs that this step completes.
    fn jobs(&self) -> Vec<u64> {
        let Self::Add(sources) = self else { return Vec::new() };
        sources.iter().map(|(_, sequence, _)| *sequence).collect()
    }
}

/// A workload with every kind of change: replacements, late operations, removals, a merge of a full
/// tier, a rewrite of a worn segment, and garbage collection after each.
fn fixed_steps() -> Vec<Step> {
    vec![
        Step::add(&[("a", 1, 3), ("b", 2, 2)]),
        Step::add(&[("c", 3, 4), ("t1", 20, 1)]),
        Step::add(&[("a", 4, 2)]),
        Step::Remove("b".into()),
        Step::RemoveChunks("c".into(), vec![1]),
        Step::CollectGarbage,
        Step::add(&[("d", 5, 2)]),
        Step::add(&[("e", 6, 1), ("t2", 21, 1)]),
        Step::add(&[("f", 7, 1)]),
        Step::add(&[("g", 8, 1)]),
        Step::add(&[("h", 9, 1)]),
        Step::add(&[("a", 10, 1), ("d", 3, 1)]),
        Step::add(&[("i", 11, 1)]),
        Step::Merge,
        Step::CollectGarbage,
        Step::RemoveChunks("c".into(), vec![0, 2]),
        Step::add(&[("c", 12, 1), ("j", 13, 2)]),
        Step::Remove("d".into()),
        Step::Merge,
        Step::CollectGarbage,
        Step::EmptySubTenant,
    ]
}

/// A source of choices that are determined by a seed.
pub struct Random(SeededIds);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(SeededIds::new(seed))
    }

    /// A number below `bound`, which is at least 1.
    pub fn below(&self, bound: u64) -> u64 {
        let mut bytes = [0; 8];
        self.0.fill(&mut bytes);
        u64::from_le_bytes(bytes) % bound
    }
}

/// The workload of a seed: the fixed one for 0, random ones otherwise. Most are short, as the cost
/// of a crash point is proportional to the data that must be opened.
pub fn steps(seed: u64) -> Vec<Step> {
    if seed == 0 {
        return fixed_steps();
    }
    let random = Random::new(seed);
    let mut contents = Contents::new();
    let mut steps = Vec::new();
    let length = if seed.is_multiple_of(16) { 20 } else { 2 + random.below(6) };
    for number in 0..length {
        let step = match random.below(12) {
            0..2 => Step::Merge,
            2..4 => Step::CollectGarbage,
            4..6 if !contents.is_empty() => removal(&random, &contents),
            _ => addition(&random, 4 * number + 4, &contents),
        };
        contents = step.applied_to(&contents);
        steps.push(step);
    }
    steps
}

/// Sources that are new or replace existing ones. Some replacements arrive late, with an older
/// sequence.
fn addition(random: &Random, sequence: u64, contents: &Contents) -> Step {
    let first = random.below(IDS.len() as u64);
    let source = |more: u64| {
        let id = IDS[((first + more) % IDS.len() as u64) as usize];
        let sequence = sequence + 2 * more;
        let is_late = sequence > 5 && contents.contains_key(id) && random.below(4) == 0;
        let chunks = 1 + random.below(3) as u32;
        (id.to_owned(), if is_late { sequence - 5 } else { sequence }, chunks)
    };
    Step::Add((0..1 + random.below(2)).map(source).collect())
}

/// Removes some of the existing contents.
fn removal(random: &Random, contents: &Contents) -> Step {
    let any = contents.iter().nth(random.below(contents.len() as u64) as usize);
    let (id, (_, rows)) = any.expect("there is something");
    match random.below(4) {
        0 if id.starts_with('t') => Step::EmptySubTenant,
        0..2 if rows.len() > 1 => {
            let (chunk, _) = &rows[random.below(rows.len() as u64) as usize];
            Step::RemoveChunks(id.clone(), vec![*chunk])
        }
        _ => Step::Remove(id.clone()),
    }
}

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

/// The visible contents after each number of steps, starting with zero.
pub fn expected(steps: &[Step]) -> Vec<Contents> {
    let mut states = vec![Contents::new()];
    for step in steps {
        states.push(step.applied_to(states.last().unwrap()));
    }
    states
}

/// Creates an empty disk, in memory if possible, since nothing needs to survive for real.
pub fn new_disk() -> (tempfile::TempDir, Arc<CrashDisk>) {
    let root = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let disk = Arc::new(CrashDisk::new(root.path()));
    (root, disk)
}

/// Opens the collection on a disk. `seed` determines the ids of everything written from now on.
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

/// Takes one step; `Ok` acknowledges it. Merges and garbage collections return whether there was
/// anything to do.
pub fn take(collection: &Collection, step: &Step) -> Result<bool, CollectionError> {
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
            let remove_chunks = vec![(sub_tenant(id), source, indices.clone())];
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

/// Everything that a cut at a certain moment must preserve.
#[derive(Debug, Clone, Default, Hash)]
pub struct Promise {
    /// The acknowledged contents.
    before: Contents,
    /// The contents including the step in progress, which is visible as a whole or not at all.
    after: Contents,
    /// Jobs that must be recorded as applied if the step is visible.
    jobs: Vec<u64>,
    /// The last acknowledged commit, as the catalog would record it.
    head: Option<(u64, Uuid)>,
}

impl Promise {
    /// The promise while no step is in progress.
    pub fn settled(contents: &Contents, head: Option<CommitHead>) -> Self {
        let head = head.map(|head| (head.version, head.nonce));
        Self { before: contents.clone(), after: contents.clone(), jobs: Vec::new(), head }
    }

    /// The promise while a step is in progress.
    pub fn during(step: &Step, contents: &Contents, head: Option<CommitHead>) -> Self {
        let settled = Self::settled(contents, head);
        Self { after: step.applied_to(contents), jobs: step.jobs(), ..settled }
    }

    fn head(&self) -> Option<CommitHead> {
        self.head.map(|(version, nonce)| CommitHead { version, nonce })
    }
}

/// The promises of a run, each valid from a recorded moment on.
#[derive(Debug)]
pub struct Promised(Vec<(usize, Promise)>);

impl Promised {
    /// The promise at the end.
    pub fn at_end(&self) -> &Promise {
        self.at(usize::MAX)
    }

    /// The promise at the given moment.
    pub fn at(&self, moment: usize) -> &Promise {
        let begun = self.0.iter().rev().find(|(from, _)| *from <= moment);
        &begun.expect("the first begins at 0").1
    }
}

/// Describes a position in a test; printed if the test fails there.
pub struct Place(pub String);

impl Drop for Place {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("failed at {}", self.0);
        }
    }
}

/// Runs the whole workload of a seed on a disk that records.
pub fn run(disk: &Arc<CrashDisk>, seed: u64) -> Promised {
    let mut promised = vec![(0, Promise::default())];
    let collection = open(disk, seed, None).unwrap();
    let mut contents = Contents::new();
    for step in steps(seed) {
        promised.push((disk.recorded(), Promise::during(&step, &contents, collection.head())));
        take(&collection, &step).unwrap();
        contents = step.applied_to(&contents);
        promised.push((disk.recorded(), Promise::settled(&contents, collection.head())));
    }
    Promised(promised)
}

/// The currently visible contents. Every segment is read in full and must be sound.
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

/// Opens the collection after a cut and checks everything: acknowledged contents are there, the
/// step in progress is there as a whole or not at all, and the collection accepts a new write.
/// Returns the promises of this recovery: both the contents it found and the new write must last.
///
/// # Panics
/// On the first promise that is violated.
pub fn check(disk: &Arc<CrashDisk>, promise: &Promise, random: &Random) -> Promised {
    let collection = open(disk, random.below(u64::MAX), promise.head()).unwrap();
    let found = visible(&collection);
    assert!(
        found == promise.before || found == promise.after,
        "promised {promise:?}, found {found:?}"
    );
    if found != promise.before {
        let applied = &collection.snapshot().manifest.applied;
        let is_noted = promise.jobs.iter().all(|sequence| applied.contains(sequence));
        assert!(is_noted, "a visible job is not in the manifest");
    }
    let mut promised = vec![(0, promise.clone())];
    let newest = found.values().map(|(sequence, _)| *sequence).max().unwrap_or(0);
    // Adding a segment costs as much as everything else here.
    let step = match random.below(8) {
        0 => addition(random, 1000.max(newest + 4), &found),
        _ if found.is_empty() => Step::EmptySubTenant,
        _ => removal(random, &found),
    };
    promised.push((disk.recorded(), Promise::during(&step, &found, promise.head())));
    take(&collection, &step).unwrap_or_else(|error| panic!("{step:?}: {error}"));
    let (written, head) = (step.applied_to(&found), collection.head());
    promised.push((disk.recorded(), Promise::settled(&written, head)));
    collection.collect_garbage().unwrap();
    Promised(promised)
}
