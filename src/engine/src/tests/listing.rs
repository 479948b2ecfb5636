//! Tests of listing pages and their cost.

use super::*;

/// Goal: a page reads only its own sources, however many others there are, and pages of any state
/// hold the same sources as the whole listing.
/// Method: compare the fastest of several runs; the threshold is far below the ratio of sizes.
#[test]
fn a_page_costs_less_than_the_whole_listing() {
    const SOURCES: usize = 300;
    let rig = Rig::new();
    let engine = &rig.engine;
    for n in 0..SOURCES {
        let filler = "some metadata ".repeat(40);
        let metadata = map(serde_json::json!({"n": n, "filler": filler}));
        submit(engine, &format!("s{n:03}"), "words", &metadata);
    }
    submit(engine, "bad", " ", &Metadata::new());
    for n in 0..SOURCES {
        assert_eq!(settled(engine, &format!("s{n:03}")).status, JobStatus::Success);
    }
    assert_eq!(settled(engine, "bad").status, JobStatus::Errored);
    let access = access(engine);
    let list = |status, limit| engine.list_sources(&access, status, None, limit).unwrap();
    let time = |limit| {
        let tries = (0..9).map(|_| {
            let begun = Instant::now();
            list(None, limit);
            begun.elapsed()
        });
        tries.min().unwrap()
    };
    let (page, whole) = (time(Some(3)), time(None));
    assert!(page * 4 < whole, "a page takes {page:?}, everything {whole:?}");

    let all = list(None, None);
    assert_eq!((all.sources.len(), all.total, all.has_more), (SOURCES + 1, 301, false));
    assert_eq!(engine.stats(&grant(), &access).unwrap().sources, 301);
    for status in [None, Some(JobStatus::Success), Some(JobStatus::Errored)] {
        let whole = list(status, None);
        let mut paged = Vec::new();
        loop {
            let after: Option<&SourceView> = paged.last();
            let after = after.map(|view| (view.record.uploaded_at, view.record.id.clone()));
            let page = engine.list_sources(&access, status, after, Some(70)).unwrap();
            assert_eq!(page.total, whole.total);
            paged.extend(page.sources);
            if !page.has_more {
                break;
            }
        }
        assert_eq!((paged.len() as u64, &paged), (whole.total, &whole.sources));
    }
    assert_eq!(list(Some(JobStatus::Errored), None).sources[0].record.id, id("bad"));
    let states = [JobStatus::Errored, JobStatus::Success];
    let both = engine.source_page(&access, Some(&states), &Span::After(None), usize::MAX);
    assert_eq!(both.unwrap(), all);
    let counts = engine.source_counts(&access).unwrap();
    assert_eq!((counts.waiting, counts.success, counts.errored), (0, SOURCES as u64, 1));
    // From the oldest on.
    let mut oldest_first = Vec::new();
    loop {
        let newest: Option<&SourceView> = oldest_first.last();
        let end = newest.map(|view| (view.record.uploaded_at, view.record.id.clone()));
        let page = engine.source_page(&access, None, &Span::Before(end), 70).unwrap();
        oldest_first.extend(page.sources.into_iter().rev());
        if !page.has_more {
            break;
        }
    }
    oldest_first.reverse();
    assert_eq!(oldest_first, all.sources);
}

/// Goal: a source that is accepted but not visible yet is known to every listing by id.
#[test]
fn an_accepted_source_has_no_relations_yet() {
    let rig = Rig::new().restart(GatedEmbedder::with_passes(0), |_| {});
    let engine = &rig.engine;
    submit(engine, "late", "everywhere is snow", &Metadata::new());
    let ids = [id("late"), id("nobody")];
    assert!(engine.source(&access(engine), &ids[0]).unwrap().is_some());
    let found = engine.relations_of(&access(engine), &ids, 10).unwrap();
    assert_eq!(found, [Some(Vec::new()), None]);
    rig.gate.open();
    assert_eq!(settled(engine, "late").status, JobStatus::Success);
}
