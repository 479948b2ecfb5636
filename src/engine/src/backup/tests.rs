//! Tests of lists, folders and schedules of backups.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::format::{BACKUPS, FileEntry, ListWriter, STARTED};
use super::restore::chosen;
use super::*;
use crate::ingest::stopping::is_due;
use crate::{Components, Engine, Settings};
use lodestone_embed::HashEmbedder;
use lodestone_types::{Clock, Grant, KeyScope, ManualClock, Role, Timestamp};

const NOW: Timestamp = Timestamp(1_750_000_000_000);

fn put(backups: &dyn BackupStore, bytes: &[u8]) -> Object {
    let mut read = |at: u64, buffer: &mut [u8]| {
        Ok(std::io::Read::read(&mut &bytes[at as usize..], buffer).unwrap())
    };
    backups.put_object(&mut read).unwrap()
}

fn write_list(backups: &dyn BackupStore, lines: impl Iterator<Item = FileEntry>) -> Vec<Object> {
    let mut store = |bytes: &[u8]| Ok(put(backups, bytes));
    let mut list = ListWriter::new(&mut store);
    for line in lines {
        list.add(&line).unwrap();
    }
    list.finish().unwrap()
}

fn manifest(id: &str, files: Vec<Object>) -> BackupManifest {
    let tenant = TenantEntry {
        name: "acme".into(),
        collection: uuid::Uuid::nil(),
        version: 1,
        sources: 1,
        chunks: 1,
        bytes: 1,
        rows: Vec::new(),
        files,
        missing_originals: Some(0),
    };
    BackupManifest {
        id: id.into(),
        started_at: 0,
        release: String::new(),
        catalog_format: 3,
        is_whole: true,
        tenants: vec![tenant],
        keys: None,
        left_out: Vec::new(),
        newest_sequence: 0,
        new_bytes: 0,
        new_files: 0,
        damage: Vec::new(),
    }
}

/// Goal: one additional line costs one object of a long list, wherever it is inserted.
#[test]
fn a_line_more_changes_one_object_of_a_list() {
    let root = tempfile::tempdir().unwrap();
    let backups = Folder::create(root.path()).unwrap();
    let entry = |name: String| {
        let sha256 = hex::encode(Sha256::digest(&name));
        FileEntry(name, Object { sha256, bytes: 1 })
    };
    let lines = || (0..5000).map(|number| format!("v1/c/x/{number:05}"));
    let before = write_list(&backups, lines().map(entry));
    let more = lines().take(700).chain(["v1/c/x/00699a".to_owned()]).chain(lines().skip(700));
    let after = write_list(&backups, more.map(entry));
    let before: HashSet<_> = before.into_iter().collect();
    let fresh = after.iter().filter(|object| !before.contains(*object)).count();
    assert!(before.len() > 5 && fresh <= 2, "{fresh} of {} are new", after.len());
}

#[test]
fn pruning_removes_what_no_kept_backup_needs() {
    let root = tempfile::tempdir().unwrap();
    let backups = Folder::create(root.path()).unwrap();
    assert!(matches!(Folder::create(root.path()), Err(BackupError::Busy)));
    let file = Folder::create(&root.path().join("lodestone-backups")).unwrap_err();
    assert!(file.to_string().contains("is a file: choose a folder"), "{file}");
    let ids = ["20260101T000000.000Z", "20260102T000000.000Z"];
    let mut objects = Vec::new();
    for id in ids {
        let object = put(&backups, id.as_bytes());
        let entry = FileEntry(format!("v1/c/x/{id}"), object.clone());
        let files = write_list(&backups, std::iter::once(entry));
        backups.put(BACKUPS, id, &manifest(id, files).encode()).unwrap();
        objects.push(object);
    }
    backups.put(STARTED, "20260103T000000.000Z", b"").unwrap();
    let pruned = prune(&backups, 1, NOW).unwrap();
    assert_eq!(pruned.removed, [ids[0], "20260103T000000.000Z"]);
    assert_eq!((pruned.kept, pruned.files), (1, 2));
    assert_eq!(backups.object_len(&objects[0].sha256).unwrap(), None);
    assert!(backups.object_len(&objects[1].sha256).unwrap().is_some());
    assert!(check(&backups, None).unwrap().problems.is_empty());
}

/// Goal: backups made while a clock was ahead, which are the newest by their ids, neither displace
/// those made after it was corrected, nor stop the schedule.
#[test]
fn backups_of_a_clock_that_was_ahead_do_not_count() {
    const DAY: u64 = 24 * 3_600_000;
    let root = tempfile::tempdir().unwrap();
    let backups = Folder::create(root.path()).unwrap();
    let days = |days: u64| Timestamp(NOW.0 - 2 * DAY + days * DAY);
    for started_at in [0, 1, 2, 9, 10].map(days) {
        let id = super::format::id_of(started_at);
        let made = BackupManifest { started_at: started_at.0, ..manifest(&id, Vec::new()) };
        backups.put(BACKUPS, &id, &made.encode()).unwrap();
    }
    let pruned = prune(&backups, 2, NOW).unwrap();
    assert_eq!((pruned.removed, pruned.kept), (vec![super::format::id_of(days(0))], 4));
    for (due, expected) in [(2, true), (3, false), (9, true)] {
        assert_eq!(is_due(days(due), NOW, DAY), expected, "at day {due}");
    }
}

/// Goal: pruning removes nothing if a kept backup may need what this release cannot read: a
/// manifest, or a line of a list, of a later release.
#[test]
fn pruning_beside_a_backup_of_a_later_release_removes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let backups = Folder::create(root.path()).unwrap();
    let (known, newer) = ("20260101T000000.000Z", "20260102T000000.000Z");
    let object = put(&backups, b"of the later release");
    backups.put(BACKUPS, known, &manifest(known, Vec::new()).encode()).unwrap();
    let mut store = |bytes: &[u8]| Ok(put(&backups, bytes));
    let mut list = ListWriter::new(&mut store);
    list.add(&serde_json::json!({"name": "v1/c/x", "parts": [object.sha256]})).unwrap();
    let files = list.finish().unwrap();
    let body = manifest(newer, files).encode();
    let line_of_later = prune_refused(&backups, newer, &body);
    assert!(line_of_later.contains("list of files"), "{line_of_later}");
    let later = lodestone_io::sealed::seal("lodestone backup 9", b"of another shape");
    let told = prune_refused(&backups, newer, &later);
    assert!(told.contains("later format") && told.contains(newer), "{told}");
    assert!(backups.object_len(&object.sha256).unwrap().is_some());
    assert_eq!(backups.names(BACKUPS).unwrap(), [known, newer]);
}

fn prune_refused(backups: &dyn BackupStore, id: &str, manifest: &[u8]) -> String {
    backups.put(BACKUPS, id, manifest).unwrap();
    prune(backups, 1, NOW).unwrap_err().to_string()
}

/// Goal: names in a backup that point elsewhere are refused, and nothing is written.
#[test]
fn names_that_lead_out_of_the_directory_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let backups = Folder::create(&root.path().join("backups")).unwrap();
    let own = "v1/raw/00000000000000000000000000000000";
    for name in ["../../x", "/etc/x", "v1/c/other/s/x", &format!("{own}/../../../x"), "LOCK"] {
        let entry = FileEntry(name.to_owned(), put(&backups, b"x"));
        let files = write_list(&backups, std::iter::once(entry));
        let id = "20260101T000000.000Z";
        backups.put(BACKUPS, id, &manifest(id, files).encode()).unwrap();
        let data = root.path().join("data");
        let refused = restore(&backups, &RestoreOptions::default(), &data).unwrap_err();
        assert!(refused.to_string().contains("is not a file of this tenant"), "{name}: {refused}");
        assert!(!data.exists() && !root.path().join("x").exists());
    }
    let at = |at: &str| RestoreOptions { at: Some(at.to_owned()), ..RestoreOptions::default() };
    let refused = restore(&backups, &at("../lodestone-backups"), &root.path().join("data"));
    assert!(matches!(refused, Err(BackupError::Unknown { .. })));
}

/// Goal: restoring everything takes the newest backup of everything, and restoring a tenant the
/// newest one that contains it; either fails with the reason if there is none.
#[test]
fn a_backup_of_one_tenant_is_not_taken_for_all_of_the_server() {
    let root = tempfile::tempdir().unwrap();
    let backups = Folder::create(&root.path().join("backups")).unwrap();
    let put = |made: &BackupManifest| backups.put(BACKUPS, &made.id, &made.encode()).unwrap();
    let single = |id: &str| BackupManifest { is_whole: false, ..manifest(id, Vec::new()) };
    put(&single("20260103T000000.000Z"));
    let options = RestoreOptions::default();
    let refused = restore(&backups, &options, &root.path().join("data")).unwrap_err();
    assert!(matches!(refused, BackupError::Refused { .. }), "{refused}");
    assert!(refused.to_string().contains("20260103T000000.000Z"), "{refused}");
    let whole = manifest("20260102T000000.000Z", Vec::new());
    put(&whole);
    assert_eq!(chosen(&backups, &options).unwrap(), whole);
    let tenant = Some(TenantId::parse("acme").unwrap());
    let of_tenant = RestoreOptions { tenant, ..RestoreOptions::default() };
    assert_eq!(chosen(&backups, &of_tenant).unwrap().id, "20260103T000000.000Z");
    let left_out = vec![LeftOut { tenant: "acme".into(), reason: "damage".into() }];
    let id = "20260104T000000.000Z";
    put(&BackupManifest { tenants: Vec::new(), left_out, ..manifest(id, Vec::new()) });
    assert_eq!(chosen(&backups, &options).unwrap().id, id);
    assert_eq!(chosen(&backups, &of_tenant).unwrap().id, "20260103T000000.000Z", "it is in there");
    let tenant = Some(TenantId::parse("nobody").unwrap());
    let of_nobody = RestoreOptions { tenant, ..RestoreOptions::default() };
    let refused = chosen(&backups, &of_nobody).unwrap_err().to_string();
    assert!(refused.contains("no backup in") && refused.contains("nobody"), "{refused}");
}

/// Goal: the schedule follows backups of all tenants, even without some originals, and none dated
/// in the future.
#[test]
fn the_schedule_goes_by_backups_of_all_tenants() {
    const HOUR: u64 = 3_600_000;
    let root = tempfile::tempdir().unwrap();
    let to = root.path().join("backups");
    let backups = Folder::create(&to).unwrap();
    let now = NOW;
    let made = |hours_ago: i64| {
        let started_at = now.0.saturating_add_signed(-hours_ago * HOUR as i64);
        let id = super::format::id_of(Timestamp(started_at));
        BackupManifest { started_at, ..manifest(&id, Vec::new()) }
    };
    let left_out = vec![LeftOut { tenant: "other".into(), reason: "damage".into() }];
    let mut lacking = made(20);
    lacking.tenants[0].missing_originals = Some(1);
    let all = [
        lacking,
        BackupManifest { left_out, ..made(3) },
        BackupManifest { is_whole: false, ..made(1) },
        made(-50_000),
    ];
    for one in &all {
        backups.put(BACKUPS, &one.id, &one.encode()).unwrap();
    }
    drop(backups);
    let mut settings = Settings::new(root.path().join("data"), "unused".into());
    settings.backups.backup_to = Some(Location::Folder(to));
    settings.backups.backup_every = Some(Duration::from_secs(24 * 3600));
    let mut components = Components::real(Arc::new(HashEmbedder));
    components.clock = Arc::new(ManualClock::new(now)) as Arc<dyn Clock>;
    let engine = Engine::start(settings, components).unwrap();
    let admin = Grant::new("test", Role::Admin, KeyScope::AllTenants);
    let next_at = engine.backup_state(&admin).unwrap().next_at;
    assert_eq!(next_at, Some(now.plus_millis(4 * HOUR)), "24 hours after the one of before 20");
    engine.shut_down();
}
