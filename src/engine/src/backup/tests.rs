//! Lists and folders of backups.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use super::format::{BACKUPS, FileEntry, ListWriter, STARTED};
use super::*;

fn put(place: &dyn Place, bytes: &[u8]) -> Object {
    let mut read = |at: u64, buffer: &mut [u8]| {
        Ok(std::io::Read::read(&mut &bytes[at as usize..], buffer).unwrap())
    };
    place.put_object(&mut read).unwrap()
}

fn write_list(place: &dyn Place, lines: impl Iterator<Item = FileEntry>) -> Vec<Object> {
    let mut store = |bytes: &[u8]| Ok(put(place, bytes));
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

/// Goal: one more line costs one object of a long list, wherever it comes.
#[test]
fn a_line_more_changes_one_object_of_a_list() {
    let root = tempfile::tempdir().unwrap();
    let place = Folder::create(root.path()).unwrap();
    let entry = |name: String| {
        let sha256 = hex::encode(Sha256::digest(&name));
        FileEntry(name, Object { sha256, bytes: 1 })
    };
    let lines = || (0..5000).map(|number| format!("v1/c/x/{number:05}"));
    let before = write_list(&place, lines().map(entry));
    let more = lines().take(700).chain(["v1/c/x/00699a".to_owned()]).chain(lines().skip(700));
    let after = write_list(&place, more.map(entry));
    let before: HashSet<_> = before.into_iter().collect();
    let fresh = after.iter().filter(|object| !before.contains(*object)).count();
    assert!(before.len() > 5 && fresh <= 2, "{fresh} of {} are new", after.len());
}

#[test]
fn pruning_removes_what_no_kept_backup_needs() {
    let root = tempfile::tempdir().unwrap();
    let place = Folder::create(root.path()).unwrap();
    assert!(matches!(Folder::create(root.path()), Err(BackupError::Busy)));
    let ids = ["20260101T000000.000Z", "20260102T000000.000Z"];
    let mut objects = Vec::new();
    for id in ids {
        let object = put(&place, id.as_bytes());
        let entry = FileEntry(format!("v1/c/x/{id}"), object.clone());
        let files = write_list(&place, std::iter::once(entry));
        place.put(BACKUPS, id, &manifest(id, files).encode()).unwrap();
        objects.push(object);
    }
    place.put(STARTED, "20260103T000000.000Z", b"").unwrap();
    let pruned = prune(&place, 1).unwrap();
    assert_eq!(pruned.removed, [ids[0], "20260103T000000.000Z"]);
    assert_eq!((pruned.kept, pruned.files), (1, 2));
    assert_eq!(place.object_len(&objects[0].sha256).unwrap(), None);
    assert!(place.object_len(&objects[1].sha256).unwrap().is_some());
    assert!(check(&place, None).unwrap().problems.is_empty());
}

/// Goal: names in a backup that lead elsewhere are refused, and nothing is written.
#[test]
fn names_that_lead_out_of_the_directory_are_refused() {
    let root = tempfile::tempdir().unwrap();
    let place = Folder::create(&root.path().join("backups")).unwrap();
    let own = "v1/raw/00000000000000000000000000000000";
    for name in ["../../x", "/etc/x", "v1/c/other/s/x", &format!("{own}/../../../x"), "LOCK"] {
        let entry = FileEntry(name.to_owned(), put(&place, b"x"));
        let files = write_list(&place, std::iter::once(entry));
        let id = "20260101T000000.000Z";
        place.put(BACKUPS, id, &manifest(id, files).encode()).unwrap();
        let data = root.path().join("data");
        let refused = restore(&place, &RestoreOptions::default(), &data).unwrap_err();
        assert!(refused.to_string().contains("is no file of this tenant"), "{name}: {refused}");
        assert!(!data.exists() && !root.path().join("x").exists());
    }
    let at = |at: &str| RestoreOptions { at: Some(at.to_owned()), ..RestoreOptions::default() };
    let refused = restore(&place, &at("../lodestone-backups"), &root.path().join("data"));
    assert!(matches!(refused, Err(BackupError::Unknown { .. })));
}
