//! Files, vector stores and batches.

use super::{Fixture, source, sub};
use crate::{
    BatchFile, CatalogError, FileBatch, FilePage, StorePage, StoredFile, TenantLimits, TenantUse,
    VectorStore,
};
use lodestone_types::{CollectionId, Metadata, SubTenantId, Timestamp, limits};
use serde_json::json;

fn file(id: &str, sub_tenant: &str, bytes: u64) -> StoredFile {
    StoredFile {
        id: source(id),
        sub_tenant: sub(sub_tenant),
        purpose: if bytes > 5 { "vision" } else { "assistants" }.to_owned(),
        filename: format!("{id}.txt"),
        content_type: "text/plain".to_owned(),
        size_bytes: bytes,
        created_at: Timestamp(1_000_000),
        raw_key: format!("v1/raw/{id}"),
    }
}

fn ids(fixture: &Fixture, of: CollectionId, change: impl FnOnce(&mut FilePage)) -> Vec<String> {
    let mut page =
        FilePage { sub_tenants: None, purpose: None, after: None, is_ascending: true, limit: 100 };
    change(&mut page);
    let files = fixture.catalog.files(of, &page).unwrap();
    files.iter().map(|file| file.id.to_string()).collect()
}

#[test]
fn files_are_kept_listed_and_counted() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let other = fixture.tenant("b").collection;
    fixture.catalog.all_known(of).unwrap();
    assert!(fixture.catalog.is_empty(of).unwrap());
    for (id, sub_tenant, bytes) in
        [("f1", "default", 1), ("f2", "north", 2), ("f3", "default", 10), ("f4", "north", 20)]
    {
        fixture.catalog.add_file(of, file(id, sub_tenant, bytes)).unwrap();
    }
    assert!(!fixture.catalog.is_empty(of).unwrap(), "an import would end them");
    let fixture = fixture.reopen();
    assert_eq!(fixture.catalog.file(of, &source("f2")).unwrap(), Some(file("f2", "north", 2)));
    assert_eq!(fixture.catalog.file(other, &source("f2")).unwrap(), None);
    assert_eq!(ids(&fixture, of, |_| {}), ["f1", "f2", "f3", "f4"]);
    assert_eq!(ids(&fixture, other, |_| {}), [""; 0]);
    assert_eq!(ids(&fixture, of, |page| page.is_ascending = false), ["f4", "f3", "f2", "f1"]);
    let behind = ids(&fixture, of, |page| {
        page.after = Some(source("f3"));
        page.is_ascending = false;
        page.limit = 1;
    });
    assert_eq!(behind, ["f2"]);
    assert_eq!(ids(&fixture, of, |page| page.purpose = Some("vision".into())), ["f3", "f4"]);
    assert_eq!(ids(&fixture, of, |page| page.sub_tenants = Some(vec![sub("north")])), ["f2", "f4"]);
    let names = fixture.catalog.sub_tenants(of).unwrap();
    assert_eq!(names, [SubTenantId::default_name(), sub("north")]);

    let used = || fixture.catalog.allowance(of).unwrap().used;
    assert_eq!(used(), TenantUse { sources: 4, bytes: 33 });
    assert_eq!(fixture.catalog.raw_keys(of).unwrap().len(), 4);
    let limits = TenantLimits { sources: Some(5), bytes: Some(40), ..TenantLimits::default() };
    fixture.catalog.set_tenant_limits(of, limits).unwrap();
    let refused = fixture.catalog.add_file(of, file("f5", "default", 8));
    assert!(matches!(refused, Err(CatalogError::TenantLimit { limit: "bytes", max: 40, .. })));
    let removed = fixture.catalog.remove_file(of, &source("f3")).unwrap();
    assert_eq!(removed.as_deref(), Some("v1/raw/f3"));
    assert_eq!(fixture.catalog.remove_file(of, &source("f3")).unwrap(), None);
    fixture.catalog.add_file(of, file("f5", "default", 8)).unwrap();
    assert_eq!(used(), TenantUse { sources: 4, bytes: 31 });

    // Files are deleted with their sub-tenant and with their tenant.
    let canceled = fixture.catalog.delete_sub_tenant(of, &sub("north")).unwrap();
    assert_eq!(canceled.raw_keys, ["v1/raw/f2", "v1/raw/f4"]);
    assert_eq!((ids(&fixture, of, |_| {}).len(), used().sources), (2, 2));
    fixture.catalog.begin_delete_tenant(&super::tenant("a")).unwrap();
    fixture.catalog.finish_delete_collection(of).unwrap();
    assert_eq!(ids(&fixture, of, |_| {}), [""; 0]);
}

fn stores(
    fixture: &Fixture,
    of: CollectionId,
    change: impl FnOnce(&mut StorePage),
) -> Vec<VectorStore> {
    let mut page =
        StorePage { reached: None, only: None, after: None, is_ascending: true, limit: 100 };
    change(&mut page);
    fixture.catalog.vector_stores(of, &page).unwrap()
}

fn names(stores: &[VectorStore]) -> Vec<&str> {
    stores.iter().map(|store| store.name.as_str()).collect()
}

#[test]
fn vector_stores_are_sub_tenants_with_names() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    fixture.catalog.all_known(of).unwrap();
    let notes = |team: &str| Metadata::from_iter([("team".to_owned(), json!(team))]);
    for name in ["east", "west"] {
        fixture.clock.advance_millis(1000);
        let title = Some(name.to_uppercase());
        fixture.catalog.set_vector_store(of, &sub(name), title, Some(notes("red"))).unwrap();
    }
    assert!(!fixture.catalog.is_empty(of).unwrap(), "an import would end them");
    fixture.clock.advance_millis(1000);
    fixture.catalog.add_file(of, file("f", "north", 1)).unwrap();
    fixture.catalog.set_vector_store(of, &sub("west"), None, Some(notes("blue"))).unwrap();
    let fixture = fixture.reopen();
    let all = stores(&fixture, of, |_| {});
    assert_eq!(names(&all), ["default", "east", "west", "north"]);
    assert_eq!((all[2].title.as_str(), &all[2].metadata), ("WEST", &notes("blue")));
    assert_eq!((all[3].title.as_str(), all[3].created_at), ("", Timestamp(1_003_000)));
    let behind = stores(&fixture, of, |page| {
        page.after = Some((all[2].created_at, sub("west")));
        page.is_ascending = false;
        page.limit = 1;
    });
    assert_eq!(names(&behind), ["east"]);
    assert_eq!(names(&stores(&fixture, of, |page| page.only = Some(sub("west")))), ["west"]);
    assert_eq!(names(&stores(&fixture, of, |page| page.only = Some(sub("none")))), [""; 0]);
    // The sub-tenants of a restricted key appear before they hold anything.
    let reached = |names: &[&str]| Some(names.iter().map(|name| sub(name)).collect());
    let limited = stores(&fixture, of, |page| page.reached = reached(&["west", "none"]));
    assert_eq!(names(&limited), ["none", "west"]);
    assert_eq!(limited[1].title, "WEST");
    assert_eq!(names(&stores(&fixture, of, |page| page.reached = reached(&[]))), [""; 0]);

    fixture.catalog.delete_sub_tenant(of, &sub("west")).unwrap();
    fixture.catalog.set_vector_store(of, &sub("west"), None, None).unwrap();
    let again = stores(&fixture, of, |page| page.only = Some(sub("west")));
    assert_eq!((again[0].title.as_str(), again[0].metadata.len()), ("", 0));
    fixture.submit(of, "s");
    assert_eq!(fixture.catalog.stored_bytes(of, &SubTenantId::default_name()).unwrap(), 10);
    assert_eq!(fixture.catalog.stored_bytes(of, &sub("west")).unwrap(), 0);
}

#[test]
fn a_tenant_names_a_bounded_number_of_vector_stores() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let file = rusqlite::Connection::open(fixture.path()).unwrap();
    let sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2)
        INSERT INTO vector_stores SELECT ?1, 'n' || i, '', '{}' FROM n";
    file.execute(sql, (of.0.as_bytes(), limits::VECTOR_STORES_MAX as i64)).unwrap();
    drop(file);
    let name =
        |name: &str| fixture.catalog.set_vector_store(of, &sub(name), Some("t".into()), None);
    let refused = name("another").unwrap_err();
    assert!(refused.to_string().contains("limit of 10000 vector stores"), "{refused}");
    name("n7").unwrap();
    assert!(!fixture.catalog.sub_tenants(of).unwrap().contains(&sub("another")));
}

#[test]
fn the_newest_batches_are_kept() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let scope = sub("north");
    let batch = |n: usize| FileBatch {
        id: format!("b{n:05}"),
        created_at: Timestamp(n as u64),
        is_canceled: false,
        files: vec![BatchFile { id: format!("f{n}"), problem: None }],
    };
    let kept = limits::FILE_BATCHES_KEPT;
    // Batches of all sub-tenants count together.
    fixture.catalog.add_file_batch(of, &sub("south"), batch(0)).unwrap();
    for n in 0..kept {
        fixture.catalog.add_file_batch(of, &scope, batch(n + 1)).unwrap();
    }
    let find = |scope: &SubTenantId, n: usize| {
        fixture.catalog.file_batch(of, scope, &batch(n).id).unwrap()
    };
    assert_eq!((find(&sub("south"), 0), find(&scope, 1)), (None, Some(batch(1))));
    assert_eq!(find(&sub("south"), 1), None);
    fixture.catalog.cancel_file_batch(of, &scope, &batch(1).id).unwrap();
    assert!(find(&scope, 1).unwrap().is_canceled);
    fixture.catalog.set_vector_store(of, &scope, None, None).unwrap();
    fixture.catalog.delete_sub_tenant(of, &scope).unwrap();
    assert_eq!(find(&scope, kept), None);
}

#[test]
fn a_backup_carries_files_names_and_batches() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    fixture.catalog.add_file(of, file("f", "north", 7)).unwrap();
    fixture.catalog.set_vector_store(of, &sub("north"), Some("N".into()), None).unwrap();
    let batch = FileBatch {
        id: "b".into(),
        created_at: Timestamp(1),
        is_canceled: true,
        files: vec![BatchFile { id: "f".into(), problem: None }],
    };
    fixture.catalog.add_file_batch(of, &sub("north"), batch.clone()).unwrap();
    let copy = Fixture::new();
    let path = copy.directory.path().join("copy.sqlite");
    let import = crate::Import::create(&path, crate::Catalog::format()).unwrap();
    let moment = fixture.catalog.moment().unwrap();
    moment.tenant(of, |row| import.add(&row)).unwrap();
    import.finish(lodestone_types::Sequence(9)).unwrap();
    let options = fixture.options;
    let restored =
        crate::Catalog::open(&path, options, fixture.clock.clone(), fixture.ids.clone()).unwrap();
    assert_eq!(restored.file(of, &source("f")).unwrap(), Some(file("f", "north", 7)));
    assert_eq!(restored.file_batch(of, &sub("north"), "b").unwrap(), Some(batch));
    assert_eq!(restored.allowance(of).unwrap().used, TenantUse { sources: 1, bytes: 7 });
}

#[test]
fn a_catalog_of_format_4_keeps_its_sources_and_counts() {
    let fixture = Fixture::new();
    let path = fixture.directory.path().join("older.sqlite");
    let older = rusqlite::Connection::open(&path).unwrap();
    crate::migrations::migrate_to(&older, &path, 4).unwrap();
    let rows = "INSERT INTO tenants (collection, name, mode, created_at)
            VALUES (zeroblob(16), 'a', 'standard', 5);
        INSERT INTO sub_tenants VALUES (zeroblob(16), 'north', 6);
        INSERT INTO known_sources VALUES ('s', zeroblob(16), 'north', 1, 10);
        INSERT INTO known_sources VALUES ('m', zeroblob(16), 'north', 2, NULL);";
    older.execute_batch(rows).unwrap();
    drop(older);
    let options = fixture.options;
    let opened =
        crate::Catalog::open(&path, options, fixture.clock.clone(), fixture.ids.clone()).unwrap();
    let of = opened.tenants().unwrap()[0].collection;
    assert_eq!(opened.stored_bytes(of, &sub("north")).unwrap(), 10);
    assert_eq!(opened.allowance(of).unwrap().used, TenantUse { sources: 1, bytes: 10 });
    opened.add_file(of, file("f", "north", 7)).unwrap();
    assert_eq!(opened.allowance(of).unwrap().used, TenantUse { sources: 2, bytes: 17 });
    opened.set_bytes(of, vec![(sub("north"), source("s"), 4)]).unwrap();
    assert_eq!(opened.stored_bytes(of, &sub("north")).unwrap(), 4);
}
