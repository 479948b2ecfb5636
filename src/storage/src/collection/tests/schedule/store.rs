//! An in-memory bucket that gives turns to the processes using it.

use std::fs::File;
use std::io::Write as _;

use parking_lot::{Condvar, MutexGuard};

use super::*;
use lodestone_io::store::{Created, StoreError, WriteBlob};
use lodestone_io::{FileSlice, MappedFile};

/// The bucket, which also decides whose turn it is.
#[derive(Debug)]
pub(super) struct Bucket {
    state: Mutex<State>,
    woken: Vec<Condvar>,
    /// Files that were mapped once; mapped files never change.
    mapped: Mutex<BTreeMap<Key, MappedFile>>,
}

#[derive(Debug)]
struct State {
    blobs: BTreeMap<Key, Arc<[u8]>>,
    late: Vec<Request>,
    turn: Option<usize>,
    step: u64,
    /// Step until which each process sleeps; `None` once it has ended.
    asleep: Vec<Option<u64>>,
    dice: Dice,
}

#[derive(Debug)]
enum Request {
    Create(Key, Arc<[u8]>),
    Delete(Key),
}

impl State {
    fn apply(&mut self, request: Request) -> Created {
        match request {
            Request::Create(key, _) if self.blobs.contains_key(&key) => return Created::Exists,
            Request::Create(key, bytes) => drop(self.blobs.insert(key, bytes)),
            Request::Delete(key) => drop(self.blobs.remove(&key)),
        }
        Created::Won
    }

    /// Decides which process continues.
    fn give_turn(&mut self) {
        self.step += 1;
        if !self.late.is_empty() && self.dice.roll(25) == 0 {
            let at = self.dice.roll(self.late.len() as u64) as usize;
            let request = self.late.swap_remove(at);
            self.apply(request);
        }
        let alive = self.asleep.iter().enumerate().filter_map(|(n, until)| Some((n, (*until)?)));
        let alive: Vec<(usize, u64)> = alive.collect();
        let awake: Vec<usize> =
            alive.iter().filter(|(_, until)| *until <= self.step).map(|(n, _)| *n).collect();
        let first = alive.iter().min_by_key(|(_, until)| *until).map(|(n, _)| *n);
        let chosen = awake.get(self.dice.roll(awake.len().max(1) as u64) as usize).copied();
        self.turn = chosen.or(first);
        // A process that falls asleep does so before its next step.
        if let Some(turn) = self.turn
            && self.dice.roll(12) == 0
        {
            self.asleep[turn] = Some(self.step + 20 + self.dice.roll(300));
        }
    }
}

impl Bucket {
    /// Runs `process` for each number below `processes`, in an order chosen by `seed`.
    pub(super) fn run(
        seed: u64,
        processes: usize,
        process: impl Fn(Arc<Machine>) + Sync,
    ) -> Arc<Self> {
        let mut dice = Dice::of(seed, 63);
        let state = State {
            blobs: BTreeMap::new(),
            late: Vec::new(),
            turn: None,
            step: 0,
            asleep: (0..processes).map(|_| Some(dice.roll(200))).collect(),
            dice,
        };
        let woken = (0..processes).map(|_| Condvar::new()).collect();
        let bucket = Arc::new(Self { state: Mutex::new(state), woken, mapped: Mutex::default() });
        std::thread::scope(|scope| {
            for number in 0..processes {
                let (bucket, process) = (Arc::clone(&bucket), &process);
                scope.spawn(move || {
                    let _ends = Ends { bucket: &bucket, number };
                    drop(bucket.wait(number));
                    process(Machine::new(&bucket, Some(number), seed));
                });
            }
            bucket.pass(&mut bucket.state.lock());
        });
        let late = std::mem::take(&mut bucket.state.lock().late);
        for request in late {
            bucket.state.lock().apply(request);
        }
        bucket
    }

    fn pass(&self, state: &mut State) {
        state.give_turn();
        if let Some(next) = state.turn {
            self.woken[next].notify_one();
        }
    }

    fn wait(&self, number: usize) -> MutexGuard<'_, State> {
        let mut state = self.state.lock();
        self.woken[number].wait_while(&mut state, |state| state.turn != Some(number));
        state
    }

    /// The bucket as seen by a process that is alone on it.
    pub(super) fn alone(self: &Arc<Self>) -> Arc<Machine> {
        Machine::new(self, None, 0)
    }
}

/// Ends a process when dropped, also on a panic.
struct Ends<'a> {
    bucket: &'a Bucket,
    number: usize,
}

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        let mut state = self.bucket.state.lock();
        state.asleep[self.number] = None;
        self.bucket.pass(&mut state);
    }
}

/// The bucket as seen by one process.
#[derive(Debug)]
pub(super) struct Machine {
    bucket: Arc<Bucket>,
    /// `None` if there are no other processes and nothing fails.
    pub(super) number: Option<usize>,
    pub(super) is_shared: AtomicBool,
    is_down: AtomicBool,
    dice: Mutex<Dice>,
    /// Manifests whose creation this process has won, as they were written.
    pub(super) created: Mutex<Vec<Manifest>>,
}

fn no_answer() -> StoreError {
    StoreError::Remote { problem: "no answer".to_owned() }
}

/// Outcome of a step.
#[derive(PartialEq)]
enum Fault {
    None,
    /// The call does nothing and fails.
    Before,
    /// The call takes effect and fails.
    After,
    /// The call fails and takes effect later.
    Late,
}

impl Machine {
    fn new(bucket: &Arc<Bucket>, number: Option<usize>, seed: u64) -> Arc<Self> {
        Arc::new(Self {
            bucket: Arc::clone(bucket),
            number,
            is_shared: AtomicBool::new(true),
            is_down: AtomicBool::new(false),
            dice: Mutex::new(Dice::of(seed, number.unwrap_or(62))),
            created: Mutex::default(),
        })
    }

    pub(super) fn roll(&self, sides: u64) -> u64 {
        self.dice.lock().roll(sides)
    }

    /// Whether the process has ended.
    pub(super) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::SeqCst)
    }

    /// Lets another process take its place.
    pub(super) fn start_anew(&self) {
        self.is_down.store(false, Ordering::SeqCst);
    }

    /// Waits for the next turn.
    fn step(&self, is_write: bool) -> Result<(MutexGuard<'_, State>, Fault), StoreError> {
        if self.is_down() {
            return Err(no_answer());
        }
        let Some(number) = self.number else {
            return Ok((self.bucket.state.lock(), Fault::None));
        };
        self.bucket.pass(&mut self.bucket.state.lock());
        let state = self.bucket.wait(number);
        if self.roll(120) == 0 {
            self.is_down.store(true, Ordering::SeqCst);
            return Err(no_answer());
        }
        let fault = match (self.roll(40), is_write) {
            (0, _) => Fault::Before,
            (1, true) => Fault::After,
            (2 | 3, true) => Fault::Late,
            _ => Fault::None,
        };
        Ok((state, fault))
    }

    fn read<T>(&self, read: impl FnOnce(&BTreeMap<Key, Arc<[u8]>>) -> T) -> Result<T, StoreError> {
        let (state, fault) = self.step(false)?;
        if fault == Fault::Before {
            return Err(no_answer());
        }
        Ok(read(&state.blobs))
    }

    fn write(&self, request: Request) -> Result<Created, StoreError> {
        let (mut state, fault) = self.step(true)?;
        match fault {
            Fault::None => return Ok(state.apply(request)),
            Fault::Before => {}
            Fault::After => drop(state.apply(request)),
            Fault::Late => state.late.push(request),
        }
        Err(no_answer())
    }
}

impl BlobStore for Machine {
    fn is_shared(&self) -> bool {
        self.is_shared.load(Ordering::SeqCst)
    }

    fn put_with(&self, key: &Key, write: &mut WriteBlob<'_>) -> Result<u64, StoreError> {
        let mut bytes = Vec::new();
        write(&mut bytes).unwrap();
        let length = bytes.len() as u64;
        // Names are fresh, so nothing is replaced.
        self.write(Request::Create(key.clone(), bytes.into())).map(|_| length)
    }

    fn scratch(&self) -> Result<File, StoreError> {
        Ok(tempfile::tempfile().unwrap())
    }

    fn put_many(&self, blobs: &[(Key, &[u8])]) -> Result<(), StoreError> {
        blobs.iter().try_for_each(|(key, bytes)| self.put(key, bytes))
    }

    fn put_create(&self, key: &Key, bytes: &[u8]) -> Result<Created, StoreError> {
        let created = self.write(Request::Create(key.clone(), bytes.into()))?;
        if created == Created::Won {
            let version = layout::manifest_version(key).unwrap();
            self.created.lock().push(Manifest::decode(bytes, ID, version).unwrap());
        }
        Ok(created)
    }

    fn get(&self, key: &Key) -> Result<Vec<u8>, StoreError> {
        let found = self.read(|blobs| blobs.get(key).map(|bytes| bytes.to_vec()))?;
        found.ok_or_else(|| StoreError::Missing { key: key.clone() })
    }

    fn open(&self, key: &Key) -> Result<FileSlice, StoreError> {
        let mut file = self.scratch()?;
        file.write_all(&self.get(key)?).unwrap();
        Ok(FileSlice::of(file, Path::new(key.as_str()))?)
    }

    fn map(&self, key: &Key) -> Result<MappedFile, StoreError> {
        let bytes = self.get(key)?;
        let mut mapped = self.bucket.mapped.lock();
        let mapped = mapped.entry(key.clone()).or_insert_with(|| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(&bytes).unwrap();
            MappedFile::open(file.path()).unwrap()
        });
        Ok(mapped.clone())
    }

    fn len(&self, key: &Key) -> Result<u64, StoreError> {
        Ok(self.get(key)?.len() as u64)
    }

    fn list(&self, prefix: &Key) -> Result<Vec<Key>, StoreError> {
        let start = format!("{prefix}/");
        self.read(|blobs| {
            blobs.keys().filter(|key| key.as_str().starts_with(&start)).cloned().collect()
        })
    }

    fn delete_many(&self, keys: &[Key]) -> Result<(), StoreError> {
        keys.iter().try_for_each(|key| self.write(Request::Delete(key.clone())).map(drop))
    }

    fn delete_prefix(&self, prefix: &Key) -> Result<(), StoreError> {
        self.delete_many(&self.list(prefix)?)
    }
}
