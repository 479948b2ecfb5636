//! Tests of the product's durability claims against the crash disk, and of the crash disk itself.

use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};

use super::*;

const SEEDS: u64 = 12;
/// Seeds for each of some 30 cut positions.
const CUT_SEEDS: u64 = 3;
const MODES: [CrashMode; 2] = [CrashMode::Prefix, CrashMode::Hostile];

fn crash_disk() -> (tempfile::TempDir, Arc<CrashDisk>) {
    let base = tempfile::tempdir().unwrap();
    let disk = Arc::new(CrashDisk::new(base.path()));
    (base, disk)
}

fn write(disk: &dyn Disk, path: &Path, contents: &[u8]) -> Result<u64, IoError> {
    disk.write_new(path, &mut |out| out.write_all(contents))
}

/// Runs `check` for every seed in both modes on a fresh disk that `prepare` has used; returns how
/// often it returned true.
fn count(prepare: impl Fn(&CrashDisk), check: impl Fn(&CrashDisk) -> bool) -> usize {
    let mut yes = 0;
    for mode in MODES {
        for seed in 0..SEEDS {
            let (_base, disk) = crash_disk();
            prepare(&disk);
            disk.crash(seed, mode);
            yes += usize::from(check(&disk));
        }
    }
    yes
}

const ALWAYS: usize = 2 * SEEDS as usize;

#[test]
fn a_name_stays_for_sure_only_after_a_sync_of_its_directory() {
    let file = |disk: &CrashDisk| disk.root().join("f");
    let is_there = |disk: &CrashDisk| disk.read(&file(disk)).is_ok_and(|bytes| bytes == b"abc");
    let unsynced = count(|disk| assert_eq!(write(disk, &file(disk), b"abc").unwrap(), 3), is_there);
    assert!(0 < unsynced && unsynced < ALWAYS, "{unsynced}");
    let synced = count(
        |disk| {
            write(disk, &file(disk), b"abc").unwrap();
            disk.sync_dir(disk.root()).unwrap();
        },
        is_there,
    );
    assert_eq!(synced, ALWAYS);
}

#[test]
fn a_synced_directory_without_a_synced_name_can_be_lost_with_all_it_holds() {
    let inner = |disk: &CrashDisk| disk.root().join("d/f");
    let found = count(
        |disk| {
            disk.create_dir(&disk.root().join("d")).unwrap();
            write(disk, &inner(disk), b"abc").unwrap();
            disk.sync_dir(&disk.root().join("d")).unwrap();
        },
        |disk| disk.exists(&inner(disk)).unwrap(),
    );
    assert!(0 < found && found < ALWAYS, "{found}");
}

#[test]
fn removals_and_renames_come_back_until_synced() {
    let at = |disk: &CrashDisk, name: &str| disk.root().join(name);
    let prepare = |disk: &CrashDisk| {
        write(disk, &at(disk, "old"), b"old").unwrap();
        write(disk, &at(disk, "new"), b"new").unwrap();
        write(disk, &at(disk, "gone"), b"gone").unwrap();
        disk.sync_dir(disk.root()).unwrap();
        disk.rename(&at(disk, "new"), &at(disk, "old")).unwrap();
        disk.remove(&at(disk, "gone")).unwrap();
    };
    let came_back = count(prepare, |disk| disk.exists(&at(disk, "gone")).unwrap());
    assert!(0 < came_back && came_back < ALWAYS, "{came_back}");
    let is_old = count(prepare, |disk| {
        let bytes = disk.read(&at(disk, "old")).unwrap();
        let is_old = bytes == b"old";
        assert!(is_old || bytes == b"new");
        assert_eq!(disk.exists(&at(disk, "new")).unwrap(), is_old, "renames are one step");
        is_old
    });
    assert!(0 < is_old && is_old < ALWAYS, "{is_old}");
}

#[test]
fn contents_without_a_sync_are_torn_in_pages() {
    let file = |disk: &CrashDisk| disk.root().join("f");
    let whole = vec![7_u8; 40_000];
    let torn = count(
        |disk| {
            disk.fail_at(disk.syncs());
            assert!(write(disk, &file(disk), &whole).is_err());
            assert!(disk.list(disk.root()).is_err(), "the power is gone");
        },
        |disk| {
            let Ok(bytes) = disk.read(&file(disk)) else { return false };
            for page in bytes.chunks(4096) {
                assert!(page.iter().all(|b| *b == page[0]), "torn inside of a page");
            }
            bytes != whole
        },
    );
    assert!(torn > 0);
}

#[test]
fn a_seed_repeats_its_crash_and_unknown_files_stay() {
    let outcome = |seed| {
        let (_base, disk) = crash_disk();
        std::fs::write(disk.root().join("LOCK"), "not ours").unwrap();
        for number in 0..20 {
            write(&*disk, &disk.root().join(format!("f{number:02}")), b"x").unwrap();
        }
        disk.crash(seed, CrashMode::Hostile);
        disk.list(disk.root()).unwrap()
    };
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1), outcome(2));
    assert!(outcome(3).iter().any(|entry| entry.name == "LOCK"));
}

/// Goal: recorded moments can be restored in any order, with or without a cut, and leave nothing
/// else behind.
#[test]
fn recorded_moments_come_back() {
    let (base, disk) = crash_disk();
    let at = |name: &str| disk.root().join(name);
    write(&*disk, &at("a"), b"abc").unwrap();
    disk.sync_dir(disk.root()).unwrap();
    disk.record();
    disk.remove(&at("a")).unwrap();
    disk.sync_dir(disk.root()).unwrap();
    write(&*disk, &at("b"), b"bcd").unwrap();
    assert_eq!(disk.recorded(), 4, "before a removal, a sync, a new file and its sync");
    let moments = disk.take_recorded();
    let names = |moment: &Moment| {
        disk.restore(moment);
        let listed = disk.list(disk.root()).unwrap();
        listed.into_iter().map(|entry| entry.name).collect::<String>()
    };
    let shown: Vec<_> = moments.iter().rev().map(names).collect();
    assert_eq!(shown, ["b", "b", "", "", "a"]);
    let mut after = vec![BTreeSet::new(); moments.len()];
    for (moment, after) in moments.iter().zip(&mut after) {
        for seed in 0..SEEDS {
            let [cut, again] = [(); 2].map(|()| disk.after_cut(moment, seed, CrashMode::Hostile));
            assert_eq!(cut.fingerprint(), again.fingerprint());
            after.insert(names(&cut));
        }
    }
    assert_eq!(after, [&["a"][..], &["", "a"], &[""], &["", "b"], &["", "b"]].map(set_of));
    drop(moments);
    let kept = std::fs::read_dir(base.path().join("vault")).unwrap().count();
    assert_eq!(kept, disk.list(disk.root()).unwrap().len());
}

fn set_of(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

#[test]
fn a_failed_sync_is_not_healed_by_a_second_one() {
    let at = |disk: &CrashDisk| disk.root().join("f");
    let kept = count(
        |disk| {
            write(disk, &at(disk), b"abc").unwrap();
            disk.inject(Fault::Sync(disk.syncs()), FaultKind::Device);
            assert!(disk.sync_dir(disk.root()).unwrap_err().must_poison());
            disk.sync_dir(disk.root()).unwrap();
        },
        |disk| disk.exists(&at(disk)).unwrap(),
    );
    assert!(kept < ALWAYS, "the second sync reported success and wrote nothing");
}

#[test]
fn injected_faults_hit_once_and_leave_no_temporary_file() {
    let (_base, disk) = crash_disk();
    let data = DataDir::open(disk.root(), disk.clone()).unwrap();
    let target = disk.root().join("a/f");
    disk.inject(Fault::Write(disk.writes()), FaultKind::Full);
    let error = data.publish(&target, &mut |out| out.write_all(b"abc")).unwrap_err();
    assert_eq!(error.kind(), lodestone_types::ErrorKind::StorageFull);
    assert!(!data.is_poisoned(), "a full disk heals");
    assert!(disk.list(&disk.root().join("tmp")).unwrap().is_empty());
    data.publish(&target, &mut |out| out.write_all(b"abc")).unwrap();

    disk.inject(Fault::Sync(disk.syncs() + 1), FaultKind::Device);
    let error = data.publish(&target, &mut |out| out.write_all(b"def")).unwrap_err();
    assert!(error.to_string().starts_with("syncing directory"), "{error}");
    let refused = [
        data.publish(&target, &mut |_| Ok(())).unwrap_err(),
        data.create_exclusive(&target, &mut |_| Ok(())).unwrap_err(),
        data.publish_many(&[]).unwrap_err(),
        data.remove_many(&[]).unwrap_err(),
        data.remove_tree(&target).unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, IoError::Poisoned { .. }), "{error}");
    }
    drop(data);
    assert!(!DataDir::open(disk.root(), disk.clone()).unwrap().is_poisoned());
}

/// Goal: a planned failure fires by the end of a write, even one that fits into a byte.
#[test]
fn a_planned_failure_hits_a_write_of_any_length() {
    let (_base, disk) = crash_disk();
    let file = disk.root().join("f");
    let writes: [fn(&mut dyn Write) -> io::Result<()>; 5] = [
        |_| Ok(()),
        |out| out.write_all(b"a"),
        |out| out.write(b"").map(drop),
        |out| out.write_all(b"a").and_then(|()| out.flush()),
        |out| out.write_all(b"abc"),
    ];
    for mut write in writes {
        disk.inject(Fault::Write(disk.writes()), FaultKind::Full);
        let error = disk.write_new(&file, &mut write).unwrap_err();
        assert_eq!(error.kind(), lodestone_types::ErrorKind::StorageFull, "{error}");
        disk.remove(&file).unwrap();
    }
    assert_eq!(write(&*disk, &file, b"abc").unwrap(), 3, "each hits once");
    let error = write(&*disk, &file, b"other").unwrap_err();
    assert!(matches!(error, IoError::AlreadyExists { .. }), "{error}");
    disk.sync_dir(disk.root()).unwrap();
    disk.crash(1, CrashMode::Hostile);
    assert_eq!(disk.read(&file).unwrap(), b"abc");
}

/// Goal: files that appeared without the disk, such as those of a copied directory, are durable
/// from the start: a cut undoes later changes to them, not the files.
#[test]
fn files_that_were_there_before_are_not_lost() {
    let at = |disk: &CrashDisk, name: &str| disk.root().join("copied").join(name);
    let moved = count(
        |disk| {
            std::fs::create_dir(disk.root().join("copied")).unwrap();
            std::fs::write(at(disk, "old"), b"abc").unwrap();
            disk.rename(&at(disk, "old"), &at(disk, "new")).unwrap();
        },
        |disk| {
            let found = ["old", "new"].map(|name| disk.read(&at(disk, name)).ok());
            let found_once: Vec<_> = found.iter().flatten().collect();
            assert_eq!(found_once, [b"abc"]);
            found[1].is_some()
        },
    );
    assert!(0 < moved && moved < ALWAYS, "{moved}");
}

#[test]
fn nothing_is_below_a_file_and_nothing_is_opened_without_power() {
    let (_base, disk) = crash_disk();
    let file = disk.root().join("f");
    write(&*disk, &file, b"abc").unwrap();
    disk.sync_dir(disk.root()).unwrap();
    for below in [file.join("a"), file.join("a/b")] {
        let error = disk.create_dir(&below).unwrap_err();
        assert!(matches!(error, IoError::NotFound { .. }), "{error}");
    }
    assert_eq!(disk.open(&file).unwrap().len(), 3);
    disk.fail_at(disk.syncs());
    disk.sync_dir(disk.root()).unwrap_err();
    assert!(disk.open(&file).is_err() && disk.map(&file).is_err());
    disk.crash(1, CrashMode::Hostile);
    assert_eq!(disk.open(&file).unwrap().len(), 3);
}

/// Goal: a name that could not be created for a reason other than being taken stays free, and the
/// attempt leaves nothing behind.
#[test]
fn a_creation_that_cannot_be_linked_leaves_nothing() {
    let (root, disk) = (tempfile::tempdir().unwrap(), Arc::new(StandInDisk::default()));
    let data = DataDir::open(root.path(), disk.clone()).unwrap();
    disk.refuse_links(libc::EMLINK);
    let target = data.root().join("v1/f");
    let error = data.create_exclusive(&target, &mut |out| out.write_all(b"abc")).unwrap_err();
    assert!(error.to_string().starts_with("linking"), "{error}");
    assert!(!data.is_poisoned() && !target.exists());
    assert!(disk.list(&data.root().join("tmp")).unwrap().is_empty());
}

#[test]
fn fsyncs_cost_what_the_documentation_says() {
    let (_base, disk) = crash_disk();
    let data = DataDir::open(disk.root(), disk.clone()).unwrap();
    let cost = |work: &dyn Fn()| {
        let before = disk.syncs();
        work();
        disk.syncs() - before
    };
    let at = |name: &str| disk.root().join(name);
    let abc: &[u8] = b"abc";
    let publish = |name: &str| drop(data.publish(&at(name), &mut |out| out.write_all(abc)));
    assert_eq!(cost(&|| publish("a/b/f")), 2 + 2);
    assert_eq!(cost(&|| publish("a/b/f")), 2);
    let many = [(at("a/b/g"), abc), (at("a/b/h"), abc), (at("a/c/i"), abc)];
    assert_eq!(cost(&|| data.publish_many(&many).unwrap()), 3 + 2 + 1);
    let create = || data.create_exclusive(&at("a/b/x"), &mut |out| out.write_all(abc)).unwrap();
    assert_eq!(cost(&|| assert_eq!(create(), Created::Won)), 2);
    assert_eq!(cost(&|| assert_eq!(create(), Created::Exists)), 1);
    let gone = [at("a/b/f"), at("a/b/g"), at("a/c/i"), at("none/f")];
    assert_eq!(cost(&|| data.remove_many(&gone).unwrap()), 2);
    assert_eq!(cost(&|| data.remove_tree(&at("a")).unwrap()), 1);
    assert!(!at("a").exists());
}

type SyncDirectory = dyn Fn(&CrashDisk, &Path) -> Result<(), IoError> + Send + Sync;

/// A crash disk with a different directory sync.
struct Altered(Arc<CrashDisk>, Box<SyncDirectory>);

impl std::fmt::Debug for Altered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl Disk for Altered {
    fn sync_dir(&self, path: &Path) -> Result<(), IoError> {
        (self.1)(&self.0, path)
    }
    fn create_dir(&self, path: &Path) -> Result<(), IoError> {
        self.0.create_dir(path)
    }
    fn write_new(&self, path: &Path, write: &mut WriteContents<'_>) -> Result<u64, IoError> {
        self.0.write_new(path, write)
    }
    fn hard_link(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        self.0.hard_link(from, to)
    }
    fn rename(&self, from: &Path, to: &Path) -> Result<(), IoError> {
        self.0.rename(from, to)
    }
    fn remove(&self, path: &Path) -> Result<(), IoError> {
        self.0.remove(path)
    }
    fn remove_dir(&self, path: &Path) -> Result<(), IoError> {
        self.0.remove_dir(path)
    }
    fn sync_file_system(&self, path: &Path) -> Result<(), IoError> {
        self.0.sync_file_system(path)
    }
    fn list(&self, path: &Path) -> Result<Vec<DirectoryEntry>, IoError> {
        self.0.list(path)
    }
    fn exists(&self, path: &Path) -> Result<bool, IoError> {
        self.0.exists(path)
    }
    fn len(&self, path: &Path) -> Result<u64, IoError> {
        self.0.len(path)
    }
    fn read(&self, path: &Path) -> Result<Vec<u8>, IoError> {
        self.0.read(path)
    }
    fn map(&self, path: &Path) -> Result<MappedFile, IoError> {
        self.0.map(path)
    }
    fn space(&self, path: &Path) -> Result<Space, IoError> {
        self.0.space(path)
    }
}

fn contents(number: usize) -> Vec<u8> {
    vec![number as u8 + 1; 5000 + number]
}

/// Performs every kind of change in turn; stops at the first error. Returns what was acknowledged:
/// files that must exist and files that must not.
fn workload(root: &Path, disk: Arc<dyn Disk>) -> (BTreeSet<usize>, BTreeSet<usize>) {
    let (mut kept, mut gone) = (BTreeSet::new(), BTreeSet::new());
    let file = |number: usize| path_of(root, number);
    let run = || -> Result<(), IoError> {
        let data = DataDir::open(root, disk)?;
        data.publish(&file(0), &mut |out| out.write_all(&contents(0)))?;
        kept.insert(0);
        data.create_exclusive(&file(1), &mut |out| out.write_all(&contents(1)))?;
        kept.insert(1);
        let (two, three, four) = (contents(2), contents(3), contents(4));
        data.publish_many(&[(file(2), &two), (file(3), &three), (file(4), &four)])?;
        kept.extend([2, 3, 4]);
        kept.remove(&2);
        data.remove_many(&[file(2)])?;
        gone.insert(2);
        kept.remove(&3);
        data.remove_tree(&root.join("v1/d3"))?;
        gone.insert(3);
        Ok(())
    };
    let _ = run();
    (kept, gone)
}

fn path_of(root: &Path, number: usize) -> PathBuf {
    root.join(format!("v1/d{number}/deep/f"))
}

/// Counts broken promises over a cut at every sync, in both modes, with many seeds.
fn broken_promises(wrap: impl Fn(Arc<CrashDisk>) -> Arc<dyn Disk>) -> usize {
    let mut broken = 0;
    let total = {
        let (_base, disk) = crash_disk();
        workload(&disk.root().join("data"), wrap(disk.clone()));
        disk.syncs()
    };
    for mode in MODES {
        for (cut, seed) in (0..=total).flat_map(|cut| (0..CUT_SEEDS).map(move |seed| (cut, seed))) {
            let (_base, disk) = crash_disk();
            disk.fail_at(cut);
            let root = disk.root().join("data");
            let (kept, gone) = workload(&root, wrap(disk.clone()));
            disk.crash(seed, mode);
            DataDir::open(&root, disk.clone()).expect("the directory opens after any cut");
            for number in 0..5 {
                let found = disk.read(&path_of(&root, number)).ok();
                let is_torn = found.as_ref().is_some_and(|found| *found != contents(number));
                let is_lost = kept.contains(&number) && found.is_none();
                let is_back = gone.contains(&number) && found.is_some();
                broken += usize::from(is_torn) + usize::from(is_lost) + usize::from(is_back);
            }
        }
    }
    broken
}

#[test]
fn nothing_acknowledged_is_lost_torn_or_back_after_any_cut() {
    assert_eq!(broken_promises(|disk| disk), 0);
}

#[test]
fn a_forgotten_directory_sync_is_noticed() {
    let forgets = |disk| Arc::new(Altered(disk, Box::new(|_, _| Ok(())))) as Arc<dyn Disk>;
    assert!(broken_promises(forgets) > 10);
}

/// Goal: a process killed between rename and sync leaves a visible name; after the next open it may
/// be built upon, so it must not disappear any more.
#[test]
fn what_an_opening_finds_stays() {
    for seed in 0..SEEDS {
        let (_base, disk) = crash_disk();
        let root = disk.root().join("data");
        drop(DataDir::open(&root, disk.clone()).unwrap());
        write(&*disk, &root.join("f"), b"killed before the sync").unwrap();
        drop(DataDir::open(&root, disk.clone()).unwrap());
        disk.crash(seed, CrashMode::Hostile);
        assert!(disk.exists(&root.join("f")).unwrap());
    }
}

/// Goal: a directory that another thread has created but not yet synced is not taken for durable.
/// Method: hold that thread inside its first sync, acknowledge a file in the same directory, and
/// cut the power before the held sync completes.
#[test]
fn a_directory_that_another_thread_makes_is_not_trusted() {
    for seed in 0..SEEDS {
        let (_base, disk) = crash_disk();
        let root = disk.root().join("data");
        drop(DataDir::open(&root, disk.clone()).unwrap());
        let (held, is_held) = mpsc::channel();
        let (release, released) = mpsc::channel();
        let first = Mutex::new(Some((held, released)));
        let holds = move |disk: &CrashDisk, path: &Path| {
            let waits = first.lock().unwrap().take();
            if let Some((held, released)) = waits {
                held.send(()).unwrap();
                let () = released.recv().unwrap();
            }
            disk.sync_dir(path)
        };
        let altered = Altered(disk.clone(), Box::new(holds));
        let data = DataDir::open(&root, Arc::new(altered)).unwrap();
        let publish = |name: &str| data.publish(&root.join(name), &mut |out| out.write_all(b"x"));
        std::thread::scope(|scope| {
            let maker = scope.spawn(|| publish("v1/d/a"));
            is_held.recv().unwrap();
            publish("v1/d/b").unwrap();
            disk.fail_at(disk.syncs());
            release.send(()).unwrap();
            assert!(maker.join().unwrap().is_err());
        });
        drop(data);
        disk.crash(seed, CrashMode::Hostile);
        assert!(disk.exists(&root.join("v1/d/b")).unwrap(), "seed {seed}");
    }
}

#[test]
fn many_threads_share_fresh_directories() {
    let (_base, disk) = crash_disk();
    let root = disk.root().join("data");
    let data = DataDir::open(&root, disk.clone()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_usize {
            let data = &data;
            scope.spawn(move || {
                for number in 0..10 {
                    let target = data.root().join(format!("v1/{number}/x/{thread}"));
                    data.publish(&target, &mut |out| out.write_all(b"abc")).unwrap();
                }
            });
        }
    });
    drop(data);
    disk.crash(1, CrashMode::Hostile);
    for number in 0..10 {
        let found = disk.list(&root.join(format!("v1/{number}/x"))).unwrap();
        assert_eq!(found.len(), 8);
    }
}

/// Goal: a directory that could not be created leaves nothing behind that would slow down every
/// later change.
#[test]
fn a_directory_that_cannot_be_made_is_forgotten() {
    let root = tempfile::tempdir().unwrap();
    let data = DataDir::open(root.path(), Arc::new(RealDisk)).unwrap();
    let too_long = "x".repeat(300);
    let target = data.root().join("v1/fresh").join(too_long).join("f");
    data.publish(&target, &mut |out| out.write_all(b"1")).unwrap_err();
    assert!(data.root().join("v1/fresh").is_dir(), "one was made before");
    assert!(data.unsynced_directories.lock().is_empty());
    let target = data.root().join("v1/fresh/f");
    data.publish(&target, &mut |out| out.write_all(b"1")).unwrap();
}
