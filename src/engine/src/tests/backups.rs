//! Tests of backups on top of earlier ones, and of restoring them.

use uuid::Uuid;

use super::*;
use crate::backup::{
    BackupManifest, BackupStore, Folder, Object, RestoreOptions, TakeOptions, TakeParts, Unpaced,
    check, prune, restore, take,
};
use lodestone_catalog::Tenant;
use lodestone_io::sealed;
use lodestone_io::store::HeldBlobs;
use lodestone_storage::collection::{Manifest, uploads};

fn back_up(rig: &Rig, to: &Folder) -> BackupManifest {
    back_up_as(rig, to, &TakeOptions::default())
}

fn back_up_as(rig: &Rig, to: &Folder, options: &TakeOptions) -> BackupManifest {
    // The time is the name of a backup.
    rig.clock.advance_millis(1);
    let open = |tenant: &Tenant| Ok(rig.engine.ingest.open(tenant)?);
    let parts = TakeParts {
        catalog: &rig.engine.catalog,
        open: &open,
        store: &Arc::new(HeldBlobs::new(Arc::clone(&rig.engine.store))),
        clock: &*rig.clock,
        pace: &Unpaced,
    };
    take(&parts, to, options).unwrap()
}

/// Replaces a data directory with the content of a backup.
fn roll_back(from: &Folder, made: &BackupManifest, data: &Path) {
    std::fs::remove_dir_all(data).unwrap();
    let options = RestoreOptions { at: Some(made.id.clone()), ..RestoreOptions::default() };
    restore(from, &options, data).unwrap();
}

fn put(to: &Folder, bytes: &[u8]) -> Object {
    let mut read = |at: u64, buffer: &mut [u8]| {
        Ok(std::io::Read::read(&mut &bytes[at as usize..], buffer).unwrap())
    };
    to.put_object(&mut read).unwrap()
}

/// Goal: after a rollback, versions get numbers that other versions had, and a backup contains the
/// manifests of its own history.
#[test]
fn a_backup_after_a_rollback_has_its_own_manifests() {
    let (rig, place) = (Rig::new(), tempfile::tempdir().unwrap());
    let to = Folder::create(place.path()).unwrap();
    rig.upload("kept", "before both");
    let first = back_up(&rig, &to);
    rig.upload("undone", "what is rolled back");
    let undone = back_up(&rig, &to);
    let rig = rig.restart(GatedEmbedder::default(), |data| roll_back(&to, &first, data));
    rig.upload("instead", "what takes its place");
    let last = back_up(&rig, &to);
    assert_eq!(last.tenants[0].version, undone.tenants[0].version, "the number is used again");
    let rig = rig.restart(GatedEmbedder::default(), |data| roll_back(&to, &last, data));
    let sources = all_sources(&rig.engine, &access(&rig.engine));
    let mut ids: Vec<&str> = sources.iter().map(|view| view.record.id.as_str()).collect();
    ids.sort_unstable();
    assert_eq!(ids, ["instead", "kept"]);
}

/// Rewrites a backup with other lines in the list of files of its only tenant.
fn rewrite(
    to: &Folder,
    made: &mut BackupManifest,
    change: impl Fn(&str, Object) -> Option<Object>,
) {
    let mut lines = Vec::new();
    for object in &made.tenants[0].files {
        let mut gather = |piece: &[u8]| {
            lines.extend_from_slice(piece);
            Ok(())
        };
        to.read_object(object, &mut gather).unwrap();
    }
    let mut replaced = String::new();
    for line in String::from_utf8(lines).unwrap().lines() {
        let (name, object): (String, Object) = serde_json::from_str(line).unwrap();
        if let Some(object) = change(&name, object) {
            replaced += &format!("{}\n", serde_json::to_string(&(name, object)).unwrap());
        }
    }
    made.tenants[0].files = vec![put(to, replaced.as_bytes())];
    let body = serde_json::to_vec(&made).unwrap();
    to.put("backups", &made.id, &sealed::seal("lodestone backup 1", &body)).unwrap();
}

/// Goal: a backup with the manifest of another history, such as earlier releases made after a
/// rollback, is refused before anything is created.
#[test]
fn a_manifest_of_another_history_is_not_restored() {
    let (rig, place) = (Rig::new(), tempfile::tempdir().unwrap());
    let to = Folder::create(&place.path().join("backups")).unwrap();
    rig.upload("doc", "some words");
    let mut made = back_up(&rig, &to);
    let own = rig.collection().snapshot().manifest.clone();
    let other = put(&to, &Manifest { nonce: Uuid::nil(), ..own.clone() }.encode());
    rewrite(&to, &mut made, |name, object| {
        Some(if name == own.key().as_str() { other.clone() } else { object })
    });
    let data = place.path().join("data");
    let refused = restore(&to, &RestoreOptions::default(), &data).unwrap_err().to_string();
    assert!(refused.contains("tenant acme") && refused.contains("does not descend"), "{refused}");
    assert!(!data.exists());
}

/// A server with a document and a backup of it; a directory, the backups in it, the first backup,
/// and the name of the original.
fn backed_up() -> (Rig, tempfile::TempDir, Folder, BackupManifest, String) {
    let (rig, place) = (Rig::new(), tempfile::tempdir().unwrap());
    let to = Folder::create(&place.path().join("backups")).unwrap();
    rig.upload("doc", "some words");
    let first = back_up(&rig, &to);
    let raw_key =
        rig.engine.original(&access(&rig.engine), &id("doc")).unwrap().record.raw_key.clone();
    (rig, place, to, first, raw_key)
}

/// Goal: an original that the server has lost stays in new backups; one that no backup has either
/// makes a backup incomplete. Manifests of earlier releases, which do not count them, are read.
#[test]
fn an_original_that_is_lost_stays_in_backups() {
    let (rig, place, to, first, raw_key) = backed_up();
    let path = rig.engine.data.root().join(&raw_key);
    let original = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let second = back_up(&rig, &to);
    assert!(second.is_complete() && second.tenants[0].bytes == first.tenants[0].bytes);
    assert_eq!(
        prune(&to, 1, Timestamp(u64::MAX)).unwrap().removed,
        std::slice::from_ref(&first.id)
    );
    let data = place.path().join("data");
    restore(&to, &RestoreOptions::default(), &data).unwrap();
    assert_eq!(std::fs::read(data.join(&raw_key)).unwrap(), original);

    to.remove_object(&put(&to, &original).sha256).unwrap();
    let third = back_up(&rig, &to);
    assert!(!third.is_complete() && third.left_out.is_empty());
    assert_eq!(third.missing_originals().collect::<Vec<_>>(), [("acme", 1)]);
    assert!(third.damage.iter().any(|line| line.contains("has lost it too")), "{:?}", third.damage);
    assert_eq!(prune(&to, 1, Timestamp(u64::MAX)).unwrap().kept, 2, "it does not count");

    let mut older = serde_json::to_value(&first).unwrap();
    older["tenants"][0].as_object_mut().unwrap().remove("missing_originals").unwrap();
    let older = serde_json::from_value::<BackupManifest>(older).unwrap();
    assert_eq!((older.counts_originals(), older.is_complete()), (false, true));
    assert!(first.counts_originals());
}

/// Goal: what the newest backup lacks is sought in those before it, also by a full backup; a
/// restore counts what is missing, and a check says that earlier releases did not.
#[test]
fn a_backup_without_an_original_hides_none_of_an_earlier_one() {
    let (rig, place, to, first, raw_key) = backed_up();
    std::fs::remove_file(rig.engine.data.root().join(&raw_key)).unwrap();
    // As an earlier release wrote it, which neither took over the original nor counted it.
    let mut second = back_up(&rig, &to);
    second.tenants[0].missing_originals = None;
    rewrite(&to, &mut second, |name, object| (name != raw_key).then_some(object));
    let checked = check(&to, None).unwrap();
    assert_eq!((checked.uncounted, checked.problems), (vec![second.id], Vec::new()));
    let data = place.path().join("without");
    let (restored, _) = restore(&to, &RestoreOptions::default(), &data).unwrap();
    assert_eq!(restored.missing_originals().collect::<Vec<_>>(), [("acme", 1)]);
    let full = TakeOptions { is_full: true, ..TakeOptions::default() };
    for options in [TakeOptions::default(), full] {
        let made = back_up_as(&rig, &to, &options);
        assert!(made.is_complete() && made.tenants[0].bytes == first.tenants[0].bytes);
        to.remove("backups", &made.id).unwrap();
    }
}

/// Goal: a lost original of an upload that is still waiting counts, too.
#[test]
fn a_backup_without_the_original_of_a_waiting_upload_is_incomplete() {
    let (gate, clock) = (GatedEmbedder::with_passes(0), ManualClock::new(START));
    let rig = Rig::on(tempfile::tempdir().unwrap(), Arc::new(gate), Arc::new(clock));
    let place = tempfile::tempdir().unwrap();
    let to = Folder::create(&place.path().join("backups")).unwrap();
    submit(&rig.engine, "doc", "some words", &Metadata::new());
    wait_for("the worker", || rig.gate.has_waiting().then_some(()));
    let originals = rig.engine.store.list(&uploads::prefix(rig.collection().id())).unwrap();
    assert_eq!(originals.len(), 1);
    std::fs::remove_file(rig.engine.data.root().join(originals[0].as_str())).unwrap();
    let made = back_up(&rig, &to);
    assert_eq!(made.missing_originals().collect::<Vec<_>>(), [("acme", 1)]);
    let data = place.path().join("data");
    let (restored, _) = restore(&to, &RestoreOptions::default(), &data).unwrap();
    assert_eq!(restored.missing_originals().collect::<Vec<_>>(), [("acme", 1)]);
}
