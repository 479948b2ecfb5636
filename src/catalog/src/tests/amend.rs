//! Changes of metadata on the way in, pages that are fetched, and tenants that come built.

use super::*;
use crate::job::FetchedOriginal;
use crate::{CatalogError, TenantLimits, TenantUse};
use lodestone_types::ErrorKind;

impl Fixture {
    fn page(&self, of: CollectionId, name: &str) -> Submitted {
        let (kind, raw_key) = (SourceKind::Webpage, String::new());
        let job = NewJob { kind, raw_key, size_bytes: 0, ..self.job(of, name) };
        self.catalog.submit(job).unwrap()
    }

    fn used(&self, of: CollectionId) -> TenantUse {
        self.catalog.allowance(of).unwrap().used
    }
}

/// Goal: a page counts once it is there, only while its job is in hands, and within the limit.
#[test]
fn a_fetched_page_counts_and_is_refused_where_there_is_no_room() {
    let fixture = Fixture::new();
    let of = fixture.tenant("a").collection;
    let limits = TenantLimits { bytes: Some(20), ..TenantLimits::default() };
    fixture.catalog.set_tenant_limits(of, limits).unwrap();
    let (first, second) = (fixture.page(of, "first"), fixture.page(of, "second"));
    assert_eq!(fixture.claim(), None, "there is nothing to process");
    let original = |size_bytes: u64| FetchedOriginal {
        raw_key: "v1/raw/page".into(),
        url: "https://example.org/moved".into(),
        content_type: "text/html".into(),
        size_bytes,
        content_hash: [9; 32],
    };
    let fetched =
        |job: &Submitted, bytes: u64| fixture.catalog.fetched(job.sequence, original(bytes));
    let too_early = fetched(&first, 15).unwrap();
    assert_eq!((too_early, fixture.used(of).bytes), (false, 0), "nobody has it in hands");
    fixture.catalog.claim(Duty::Fetch, NO_LIMIT).unwrap().unwrap();
    assert!(fetched(&first, 15).unwrap());
    assert!(!fetched(&first, 20).unwrap(), "it was fetched already");
    assert_eq!(fixture.used(of), TenantUse { sources: 2, bytes: 15 });
    let refused = fetched(&second, 6).unwrap_err();
    let CatalogError::TenantLimit { limit: "bytes", max: 20, used: 15, needed: 21 } = refused
    else {
        panic!("{refused}")
    };
    fixture.settle(of, second.sequence, Outcome::Released);
    let again = fixture.catalog.claim(Duty::Fetch, NO_LIMIT).unwrap().unwrap().jobs;
    assert_eq!((again.len(), again[0].is_fetched), (1, false), "nothing of it was recorded");
    fixture.settle(of, first.sequence, Outcome::Released);
    let page = fixture.claim().unwrap().jobs.remove(0);
    assert_eq!(
        (page.url.as_str(), page.size_bytes, page.is_fetched),
        (&*original(0).url, 15, true)
    );

    let place = sub("default");
    let require = |source: Option<&SourceId>, bytes| {
        fixture.catalog.require_allowed(of, &place, source, bytes)
    };
    require(Some(&source("first")), 20).unwrap();
    let refused = require(None, 6).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    let tenant = fixture.catalog.tenant(&tenant("a")).unwrap().unwrap();
    assert_eq!(fixture.catalog.limits_of(&tenant), limits);
}
