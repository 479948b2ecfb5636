//! Sources in listing order.

use super::*;

/// Ids of a sub-tenant's sources, newest first, fetched page by page.
fn paged(snapshot: &Snapshot, sub_tenant: &str, page: usize) -> Vec<String> {
    let (mut ids, mut last) = (Vec::new(), None);
    loop {
        let after = last.as_ref().map(|(at, id)| (*at, id));
        let found: Vec<_> = snapshot.newest_first(&sub(sub_tenant), after).take(page).collect();
        let Some(end) = found.last() else { return ids };
        last = Some((end.uploaded_at(), SourceId::parse(end.id()).unwrap()));
        ids.extend(found.iter().map(|found| found.id().to_owned()));
    }
}

#[test]
fn pages_of_any_size_hold_the_same_sources_in_order() {
    let dir = CollectionDir::new();
    let collection = dir.open();
    // Four segments; every third source is in another sub-tenant, and two sources share a time.
    for part in 0..4 {
        let sources: Vec<NewSource> = (0..30)
            .map(|n| {
                let (sequence, scope) =
                    (part * 30 + n + 1, if n % 3 == 0 { "x" } else { "default" });
                let mut source = source(scope, &format!("s{n:02}-{part}"), sequence, &["text"]);
                source.record.uploaded_at = Timestamp(n / 2);
                source
            })
            .collect();
        add(&collection, &sources);
    }
    for id in ["s01-0", "s29-3", "s14-2"] {
        commit(&collection, &removing("default", id));
    }
    add(&collection, &[source("default", "s02-1", 500, &["replaced"])]);
    let snapshot = collection.snapshot();
    for (scope, count) in [("default", 77), ("x", 40), ("none", 0)] {
        let sub_tenant = sub(scope);
        let records = snapshot.sources(&sub_tenant).map(|found| found.record().unwrap());
        let mut expected: Vec<_> =
            records.map(|it| (std::cmp::Reverse(it.uploaded_at), it.id.to_string())).collect();
        expected.sort();
        let expected: Vec<String> = expected.into_iter().map(|(_, id)| id).collect();
        assert_eq!((expected.len(), snapshot.source_count(&sub_tenant)), (count, count as u64));
        for page in [1, 7, 1000] {
            assert_eq!(paged(&snapshot, scope, page), expected, "pages of {page} in {scope}");
        }
    }
    // The position of a source that does not exist.
    let gone = SourceId::parse("s29-3").unwrap();
    let mut rest = snapshot.newest_first(&sub("default"), Some((Timestamp(14), &gone)));
    assert_eq!(rest.next().unwrap().uploaded_at(), Timestamp(13));
}
