//! Tests that merges in the background change nothing that can be seen.

use std::sync::mpsc;
use std::thread;

use super::*;
use crate::query::{Alpha, FullTextRequest, GraphContext, Join, Mode, Recall, RetrieveRequest};
use lodestone_types::{Filter, RetrievedChunk};
use parking_lot::Mutex;

fn segments(access: &TenantAccess) -> usize {
    access.collection.snapshot().segments.len()
}

fn answers(engine: &Engine) -> [Vec<RetrievedChunk>; 2] {
    let (query, filter) = ("wind in the western hills".to_owned(), Filter::All.into());
    let hybrid = RetrieveRequest {
        query: query.clone(),
        extra_context: None,
        max_chunks: 50,
        mode: Mode::Fast,
        recall: Recall::Usual,
        alpha: Alpha::Fixed(0.5),
        recency_bias: 0.0,
        is_personalised: false,
        graph_context: GraphContext::On,
        per_source_max: None,
        join: Join::Never,
        min_confidence: 0.0,
        filter,
    };
    let words = FullTextRequest::new(query, 50);
    let access = access(engine);
    let found = engine.retrieve(&access, &hybrid).unwrap();
    [found.chunks, engine.full_text(&access, &words).unwrap().chunks]
}

/// Goal: chunks, order and scores do not depend on the distribution of rows over segments.
/// Method: run the same searches on a disk too full for merges, and again after the merges.
#[test]
fn answers_are_the_same_before_and_after_a_merge() {
    let rig = Rig::new();
    let engine = &rig.engine;
    rig.fill(86);
    for n in 0..12 {
        let text = format!("Hill {n} has wind. {}", "The western hills. ".repeat(n % 4));
        rig.upload(&format!("doc-{n}"), &text);
    }
    rig.upload("doc-3", "nothing of that sort");
    engine.delete_sources(&access(engine), &[id("doc-5")]).unwrap();
    let before = answers(engine);
    assert!(segments(&access(engine)) >= 11);
    assert_eq!(before.each_ref().map(Vec::len), [11, 10]);
    rig.fill(50);
    // Deletes nothing, but schedules maintenance of the collection.
    engine.delete_sources(&access(engine), &[id("nothing")]).unwrap();
    wait_for("a merge", || (segments(&access(engine)) < 8).then_some(()));
    assert_eq!(answers(engine), before);
}

/// Goal: however fast segments arrive, their number is bounded.
/// Method: the background thread is blocked, as during a long merge.
#[test]
fn who_adds_segments_faster_than_the_background_merges_them_merges_himself() {
    let rig = Rig::new();
    let engine = &rig.engine;
    let tenant = TenantId::parse("vectors").unwrap();
    make_vector_tenant(engine, &tenant).unwrap();
    let scope = Scope { tenant, sub_tenant: SubTenantId::default_name() };
    let access = engine.open(&grant(), &scope, None).unwrap();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    rig.disk.before_remove(move |path| {
        let is_garbage = path.to_string_lossy().contains("/v1/c/");
        if is_garbage && thread::current().name() == Some("maintenance") {
            // Blocks until the sender is dropped.
            let _ = released.lock().recv();
        }
    });
    for n in 0..160_u8 {
        let vectors = vec![vec![1.0, f32::from(n)]];
        engine.upload_vectors(&access, Some(id(&format!("batch-{n}"))), vectors).unwrap();
        let count = segments(&access);
        assert!(count <= 101, "{count} segments after {n} batches");
    }
    drop(release);
    let listed = engine.vectors_by_id(&access, &["batch-7_0".to_owned()]).unwrap();
    assert_eq!(listed, [Some(vec![1.0, 7.0])]);
}
