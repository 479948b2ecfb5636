//! Parts of a lost or restored catalog: descriptors of tenants, and rows of a backup.

use super::*;
use crate::descriptors::{self, Descriptor};
use crate::{CatalogError, Import, TenantLimits};
use lodestone_io::store::testing::{Fault, FaultyBlobs, MemoryBlobs};
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{ErrorKind, SessionId, TenantSchema};

#[test]
fn a_descriptor_is_kept_marked_and_removed() {
    let store = MemoryBlobs::default();
    let fixture = Fixture::new();
    let schema = Some(TenantSchema::default());
    let mut of = fixture.catalog.fresh_tenant(tenant("a"), TenantMode::Standard, schema);
    of.limits = TenantLimits { sources: Some(3), ..TenantLimits::default() };
    let (collection, is_deleted) = (of.collection, false);
    assert_eq!(descriptors::read(&store, collection).unwrap(), None);
    descriptors::mark_deleted(&store, collection).unwrap();
    assert!(descriptors::collections(&store).unwrap().is_empty(), "none is made by marking");
    let descriptor = Descriptor { tenant: of, is_deleted };
    descriptors::write(&store, &descriptor).unwrap();
    assert_eq!(descriptors::read(&store, collection).unwrap(), Some(descriptor.clone()));
    store.put(&Key::parse("v1/t/README").unwrap(), b"of a person").unwrap();
    assert_eq!(descriptors::collections(&store).unwrap(), [collection]);
    for _ in 0..2 {
        descriptors::mark_deleted(&store, collection).unwrap();
        let found = descriptors::read(&store, collection).unwrap().unwrap();
        assert_eq!(found, Descriptor { is_deleted: true, ..descriptor.clone() });
    }
    let key = Key::parse(&format!("v1/t/{collection}")).unwrap();
    store.put(&key, b"lodestone tenant 1").unwrap();
    let error = descriptors::mark_deleted(&store, collection).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(key.as_str()), "{error}");
    let away = FaultyBlobs::new(Arc::new(MemoryBlobs::default()));
    away.set(|_, _| Fault::Before);
    let error = descriptors::read(&away, collection).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    descriptors::remove(&store, collection).unwrap();
    assert_eq!(descriptors::read(&store, collection).unwrap(), None);
}

/// Goal: a backup of any format is restored with its keys and sessions, optionally under another
/// name; invalid rows are refused as a fault of the backup, not of this program.
#[test]
fn a_backup_is_taken_back_and_rows_of_none_are_refused() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let key = fixture.catalog.bootstrap_key().unwrap().unwrap();
    let session = SessionId::parse("talk").unwrap();
    let turn = |question: &str| {
        let (question, answer) = (question.to_owned(), "yes".to_owned());
        fixture.catalog.append_turn(of, &sub("default"), &session, question, answer).unwrap();
    };
    turn("one");
    turn("two");
    fixture.submit(of, "s");
    fixture.claim().unwrap();
    let moment = fixture.catalog.moment().unwrap();
    let mut rows = Vec::new();
    let mut keep = |row| -> Result<(), CatalogError> {
        rows.push(row);
        Ok(())
    };
    assert!(moment.tenant(of, &mut keep).unwrap());
    moment.keys(&mut keep).unwrap();
    assert!(!moment.tenant(CollectionId(uuid::Uuid::nil()), &mut keep).unwrap());
    let stop = moment.tenant(of, |_| Err(CatalogError::NotRecovered)).unwrap_err();
    assert!(matches!(stop, CatalogError::NotRecovered), "{stop}");

    let path = fixture.directory.path().join("back.sqlite");
    let import = Import::create(&path, Catalog::format()).unwrap();
    import.add(&rows[0]).unwrap();
    let text = serde_json::to_string(&rows).unwrap();
    let turn = rows.iter().find(|row| row[0] == "turns").unwrap();
    let bad = [
        serde_json::json!({"tenants": 1}),
        serde_json::json!([]),
        serde_json::json!([7]),
        serde_json::json!(["sqlite_schema", 1]),
        serde_json::json!(["webhooks", "x"]),
        serde_json::json!(["tenants", true]),
        serde_json::json!(["tenants", {"hex": "zz"}]),
        serde_json::json!(["tenants", "too few"]),
        serde_json::json!(["tenants", 1.5]),
        serde_json::json!(["sessions"]),
        serde_json::json!(["sessions", "no number"]),
        turn.clone(),
        rows[0].clone(),
    ];
    for row in &bad {
        let error = import.add(row).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt, "{row}: {error}");
    }
    for row in &rows[1..] {
        import.add(row).unwrap();
    }
    let unknown = import.rename(&tenant("none"), &tenant("b")).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::NotFound);
    import.rename(&tenant("a"), &tenant("b")).unwrap();
    import.finish(Sequence(90)).unwrap();
    let (clock, ids) = (fixture.clock.clone(), fixture.ids.clone());
    let restored = Catalog::open(&path, fixture.options, clock, ids).unwrap();
    restored.verify().unwrap();
    assert_eq!(restored.tenant(&tenant("b")).unwrap().unwrap().collection, of);
    let turns = restored.turns(of, &sub("default"), &session, 9).unwrap();
    let asked: Vec<_> = turns.iter().map(|turn| turn.question.as_str()).collect();
    assert_eq!(asked, ["one", "two"]);
    assert!(restored.authenticate(key.expose()).is_ok());
    assert!(!text.contains(&key.expose()[21..64]), "no secret is in a backup");
    assert_eq!(restored.interrupted().unwrap().len(), 1);
    assert_eq!(restored.newest_sequence().unwrap(), Sequence(90));

    for format in [0, Catalog::format() + 1] {
        let error = Import::create(&path.with_extension("other"), format).unwrap_err();
        assert!(error.to_string().contains("this release supports 1 to 8"), "{error}");
    }
}
