//! Tests of client vectors with ids and metadata of their own.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::json;

use super::restore::lose_catalog;
use super::*;
use crate::ingest::NewVectors;
use crate::query::{StoredVector, VectorParts, VectorScroll, VectorSearch};
use lodestone_catalog::TenantLimits;
use lodestone_storage::collection::{AddedSegment, Edit};
use lodestone_storage::filter::parse_for_vectors;
use lodestone_storage::segment::{NewRow, NewSource, VectorKind};
use lodestone_types::{ErrorKind, Filter, Metric, Sequence, SourceRecord};

/// Error number of a full disk.
const ENOSPC: i32 = 28;
const WIDTH: usize = 6;
const ALL_PARTS: VectorParts = VectorParts { metadata: true, vector: true };

/// A random number generator with the same sequence in every run (Knuth's MMIX).
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// A vector of any direction, with a length of up to a few hundred.
    fn vector(&mut self) -> Vec<f32> {
        let length = 2_f32.powi(self.below(9) as i32);
        (0..WIDTH).map(|_| (self.below(2001) as f32 / 1000.0 - 1.0) * length).collect()
    }

    fn metadata(&mut self) -> Option<Metadata> {
        match self.below(4) {
            0 => None,
            1 => Some(map(json!({"n": self.below(10), "of": {"kind": "plain"}}))),
            _ => Some(map(
                json!({"n": self.below(10), "tags": [format!("t{}", self.below(3)), "all"]}),
            )),
        }
    }
}

/// The vectors that should be stored, by batch and position.
type Model = BTreeMap<(String, u32), StoredVector>;

fn tenant_of_vectors(engine: &Engine) -> TenantAccess {
    let tenant = TenantId::parse("vectors").unwrap();
    // Fails from the second call on, because the tenant exists.
    let _ = make_vector_tenant(engine, &tenant);
    in_sub_tenant(engine, "default")
}

fn in_sub_tenant(engine: &Engine, name: &str) -> TenantAccess {
    let tenant = TenantId::parse("vectors").unwrap();
    let scope = Scope { tenant, sub_tenant: SubTenantId::parse(name).unwrap() };
    engine.open(&grant(), &scope, None).unwrap()
}

fn score(metric: Metric, a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let norms = dot(a, a).sqrt() * dot(b, b).sqrt();
    match metric {
        Metric::Cosine if norms == 0.0 => 0.0,
        Metric::Cosine => dot(a, b) / norms,
        Metric::Dot => dot(a, b),
        Metric::L2 => -(dot(a, a) + dot(b, b) - 2.0 * dot(a, b)).max(0.0).sqrt(),
    }
}

/// Whether metadata passes a filter.
type Judgement = fn(&Metadata) -> bool;

/// Filters, each with its expected judgement of metadata.
fn filters() -> Vec<(Value, Judgement)> {
    fn n(map: &Metadata) -> Option<u64> {
        map.get("n").and_then(Value::as_u64)
    }
    vec![
        (json!({}), |_| true),
        (json!({"n": 3}), |map| n(map) == Some(3)),
        (json!({"n": {"$gte": 5}}), |map| n(map).is_some_and(|n| n >= 5)),
        (json!({"n": {"$exists": false}}), |map| n(map).is_none()),
        (json!({"tags": ["t1", "t2"]}), |map| {
            let tags = map.get("tags").and_then(Value::as_array);
            tags.is_some_and(|tags| tags.contains(&json!("t1")) || tags.contains(&json!("t2")))
        }),
        (json!({"of.kind": "plain", "n": {"$nin": [1, 2]}}), |map| {
            map.contains_key("of") && !matches!(n(map), Some(1 | 2))
        }),
        (json!({"n": 77}), |_| false),
    ]
}

fn pages(
    engine: &Engine,
    access: &TenantAccess,
    filter: &Filter,
    limit: usize,
) -> Vec<StoredVector> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let filter = filter.clone();
        let scroll = VectorScroll { filter, after, limit, parts: ALL_PARTS };
        let page = engine.scroll_vectors(access, &scroll).unwrap();
        all.extend(page.vectors);
        if !page.has_more {
            return all;
        }
        after = all.last().map(|last: &StoredVector| (last.batch.clone(), last.index));
    }
}

/// Compares searches and listings under every filter, and lookups, with brute force.
fn compare(engine: &Engine, model: &Model, dice: &mut Dice) {
    let access = tenant_of_vectors(engine);
    for (json, passes) in filters() {
        let filter = parse_for_vectors(json.as_object()).unwrap();
        let expected: Vec<StoredVector> = model
            .values()
            .filter(|stored| passes(stored.metadata.as_ref().unwrap()))
            .cloned()
            .collect();
        let limit = 1 + dice.below(60) as usize;
        assert_eq!(pages(engine, &access, &filter, limit), expected, "{json}");
        let query = dice.vector();
        let max_chunks = 1 + dice.below(200) as usize;
        let queries = vec![query.clone()];
        let search = VectorSearch { queries, max_chunks, filter, parts: ALL_PARTS };
        let found = engine.nearest_vectors(&access, &search).unwrap().remove(0);
        let metric = access.tenant.mode.metric().unwrap();
        let score = |stored: &StoredVector| score(metric, &query, stored.vector.as_ref().unwrap());
        let mut scores: Vec<f64> = expected.iter().map(score).collect();
        scores.sort_by(|a, b| b.total_cmp(a));
        assert_eq!(found.len(), expected.len().min(max_chunks), "{json}");
        for (hit, score) in found.iter().zip(scores) {
            let rounding = 1e-5 * score.abs().max(1.0);
            assert!((f64::from(hit.score) - score).abs() < rounding, "{json}");
            let stored = &model[&(hit.found.batch.clone(), hit.found.index)];
            assert_eq!(&hit.found, stored, "{json}");
        }
    }
    let ids: Vec<String> = model.values().map(|stored| stored.chunk_id.clone()).collect();
    let vectors = engine.vectors_by_id(&access, &ids).unwrap();
    assert!(vectors.iter().zip(model.values()).all(|(found, stored)| *found == stored.vector));
}

/// Uploads a batch of up to 30 rows under a name that may exist already.
fn upload(engine: &Engine, model: &mut Model, dice: &mut Dice, step: u64) {
    let access = tenant_of_vectors(engine);
    let batch = format!("b{}", dice.below(25));
    let rows: Vec<Vec<f32>> = (0..=dice.below(30)).map(|_| dice.vector()).collect();
    let ids = (dice.below(2) == 0)
        .then(|| (0..rows.len()).map(|at| id(&format!("own {step}-{at}"))).collect::<Vec<_>>());
    let metadata =
        (dice.below(3) > 0).then(|| rows.iter().map(|_| dice.metadata()).collect::<Vec<_>>());
    model.retain(|(of, _), _| *of != batch);
    for (at, row) in rows.iter().enumerate() {
        let chunk_id = match &ids {
            Some(ids) => ids[at].to_string(),
            None => format!("{batch}_{at}"),
        };
        let given = metadata.as_ref().and_then(|maps| maps[at].clone());
        let index = at as u32;
        let stored = StoredVector {
            chunk_id,
            batch: batch.clone(),
            index,
            metadata: Some(given.unwrap_or_default()),
            vector: Some(row.clone()),
        };
        model.insert((batch.clone(), index), stored);
    }
    engine.upload_vectors(&access, Some(id(&batch)), NewVectors { rows, ids, metadata }).unwrap();
}

/// Goal: ids and metadata stay with their vectors, filters lose none, and the metric of a tenant is
/// kept. Method: random uploads, replacements, deletions and updates, enough for segments to be
/// merged, compared with brute force; then again after a restart without the catalog.
fn check_a_life(metric: Metric) {
    let rig = Rig::new();
    let (tenant, mode) = (TenantId::parse("vectors").unwrap(), TenantMode::Embeddings(metric));
    rig.engine.create_tenant(&grant(), Some(tenant), mode, None, TenantPlan::default()).unwrap();
    let (mut model, mut dice) = (Model::new(), Dice(7));
    for step in 0..90 {
        let engine = &rig.engine;
        upload(engine, &mut model, &mut dice, step);
        let access = tenant_of_vectors(engine);
        let gone: Vec<_> = model.keys().filter(|_| dice.below(20) == 0).cloned().collect();
        let mut ids: Vec<String> = gone.iter().map(|key| model[key].chunk_id.clone()).collect();
        ids.push("b1_99".to_owned());
        ids.push("never there".to_owned());
        let deleted = engine.delete_vectors(&access, &ids).unwrap();
        let split = deleted.len() - 2;
        assert!(deleted[..split].iter().all(|was| *was) && deleted[split..] == [false, false]);
        gone.iter().for_each(|key| drop(model.remove(key)));
        let Some((batch, _)) = model.keys().next().cloned() else { continue };
        let new = dice.vector();
        let first = model.values_mut().find(|stored| stored.batch == batch).unwrap();
        let updated = engine.update_vectors(&access, &[(first.chunk_id.clone(), new.clone())]);
        assert_eq!(updated.unwrap().as_str(), batch);
        first.vector = Some(new);
        if step % 15 == 14 {
            compare(engine, &model, &mut dice);
        }
    }
    assert!(model.len() > 100, "{} vectors", model.len());
    let rig = rig.restart(GatedEmbedder::default(), lose_catalog);
    assert_eq!(tenant_of_vectors(&rig.engine).tenant.mode, mode);
    compare(&rig.engine, &model, &mut dice);
    for batch in ["b0", "b1", "b2"] {
        rig.engine.delete_sources(&tenant_of_vectors(&rig.engine), &[id(batch)]).unwrap();
        model.retain(|(of, _), _| of != batch);
    }
    compare(&rig.engine, &model, &mut dice);
}

#[test]
fn vectors_by_cosine_stay_what_they_are() {
    check_a_life(Metric::Cosine);
}

#[test]
fn vectors_by_dot_product_stay_what_they_are() {
    check_a_life(Metric::Dot);
}

#[test]
fn vectors_by_distance_stay_what_they_are() {
    check_a_life(Metric::L2);
}

/// Goal: an id, whether given or derived, names one vector of a sub-tenant, and a rejected upload
/// stores nothing.
#[test]
fn an_id_names_one_vector_of_a_sub_tenant() {
    let rig = Rig::new();
    let engine = &rig.engine;
    let access = tenant_of_vectors(engine);
    let upload = |access: &TenantAccess, batch: &str, ids: Option<&[&str]>, rows: usize| {
        let rows = (0..rows).map(|at| vec![1.0, at as f32]).collect();
        let ids = ids.map(|ids| ids.iter().map(|name| id(name)).collect());
        engine.upload_vectors(access, Some(id(batch)), NewVectors { rows, ids, metadata: None })
    };
    upload(&access, "a", Some(&["x", "c_1"]), 2).unwrap();
    upload(&access, "b", None, 2).unwrap();
    for (batch, ids, taken) in
        [("n", Some(&["y", "x"][..]), "x"), ("n", Some(&["b_1", "z"]), "b_1"), ("c", None, "c_1")]
    {
        let error = upload(&access, batch, ids, 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        assert!(error.to_string().contains(&format!("{taken:?}")), "{error}");
        assert!(engine.source(&access, &id(batch)).unwrap().is_none(), "nothing is stored");
    }
    upload(&access, "c", None, 1).unwrap();
    upload(&access, "a", Some(&["x", "y"]), 2).unwrap();
    upload(&access, "c", None, 2).unwrap();
    // A row with an id of its own has no derived one.
    assert_eq!(engine.vectors_by_id(&access, &["a_0".to_owned()]).unwrap(), [None]);
    // Other sub-tenants have ids of their own and see none of these.
    let beside = in_sub_tenant(engine, "beside");
    assert_eq!(engine.vectors_by_id(&beside, &["x".to_owned()]).unwrap(), [None]);
    upload(&beside, "z", Some(&["x"]), 1).unwrap();
    assert_eq!(engine.delete_vectors(&beside, &["y".to_owned()]).unwrap(), [false]);
    let several = [("x".to_owned(), vec![1.0, 1.0]), ("b_0".to_owned(), vec![1.0, 1.0])];
    let refused = engine.update_vectors(&access, &several).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    let malformed = [("nowhere".to_owned(), vec![1.0, 1.0])];
    let refused = engine.update_vectors(&access, &malformed).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
}

/// Goal: pages contain whatever persists exactly once, whatever else is written in between.
#[test]
fn pages_are_complete_while_others_write() {
    let rig = Rig::new();
    let engine = &rig.engine;
    let access = tenant_of_vectors(engine);
    let upload = |batch: String| {
        let rows: Vec<Vec<f32>> = (0..7).map(|at| vec![1.0, at as f32]).collect();
        engine.upload_vectors(&access, Some(id(&batch)), rows).unwrap();
    };
    for n in 0..12 {
        upload(format!("stays {n}"));
        upload(format!("goes {n}"));
    }
    let (mut seen, mut after, mut step) = (BTreeMap::<String, usize>::new(), None, 0);
    loop {
        let parts = VectorParts::default();
        let scroll = VectorScroll { filter: Filter::All, after, limit: 10, parts };
        let page = engine.scroll_vectors(&access, &scroll).unwrap();
        for stored in &page.vectors {
            *seen.entry(stored.chunk_id.clone()).or_default() += 1;
        }
        if !page.has_more {
            break;
        }
        after = page.vectors.last().map(|last| (last.batch.clone(), last.index));
        upload(format!("new {step}"));
        engine.delete_sources(&access, &[id(&format!("goes {step}"))]).unwrap();
        let change = (format!("stays {}_3", step % 12), vec![0.5, 0.5]);
        engine.update_vectors(&access, &[change]).unwrap();
        step += 1;
    }
    assert!(seen.values().all(|times| *times == 1));
    let staying = (0..12).flat_map(|n| (0..7).map(move |at| format!("stays {n}_{at}")));
    staying.for_each(|chunk| assert_eq!(seen.get(&chunk), Some(&1), "{chunk}"));
}

/// Goal: an upload that is rejected or fails does not fix the dimension of the tenant, nor count
/// towards its limits. Method: an invalid key, then a full disk before the commit point.
#[test]
fn an_upload_that_is_not_stored_is_not_counted() {
    let rig = Rig::new();
    let engine = &rig.engine;
    let access = tenant_of_vectors(engine);
    let upload =
        |batch: &str, vectors: NewVectors| engine.upload_vectors(&access, Some(id(batch)), vectors);
    let used = || engine.usage(&grant(), &access.tenant.id).unwrap().allowance.used;
    let none = used();
    let metadata = Some(vec![Some(map(json!({"": 1})))]);
    let refused = NewVectors { metadata, ..NewVectors::from(vec![vec![1.0; 4]]) };
    assert_eq!(upload("a", refused).unwrap_err().kind(), ErrorKind::Invalid);
    upload("a", vec![vec![1.0; 2]].into()).unwrap();
    let other = upload("a", vec![vec![1.0; 3]].into()).unwrap_err();
    assert_eq!(other.kind(), ErrorKind::Invalid);
    let before = used();
    assert!(before != none);
    rig.disk.refuse_links(ENOSPC);
    for batch in ["a", "b"] {
        let error = upload(batch, vec![vec![1.0; 2]; 9].into()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
        assert_eq!(used(), before);
    }
}

/// Uploads rows of ones as batch `batch`.
fn upload_ones(engine: &Engine, batch: &str, rows: usize, width: usize) -> Result<(), EngineError> {
    let access = tenant_of_vectors(engine);
    engine.upload_vectors(&access, Some(id(batch)), vec![vec![1.0; width]; rows]).map(drop)
}

/// Goal: a first upload that fails does not fix the dimension of the tenant.
#[test]
fn a_first_upload_that_fails_fixes_no_dimension() {
    let rig = Rig::new();
    let access = tenant_of_vectors(&rig.engine);
    rig.disk.refuse_links(ENOSPC);
    let rows = vec![vec![1.0; 3]];
    let error = rig.engine.upload_vectors(&access, Some(id("a")), rows).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error}");
    drop(access);
    let rig = rig.restart(GatedEmbedder::default(), |_| {});
    assert_eq!(tenant_of_vectors(&rig.engine).tenant.dimension, None);
    upload_ones(&rig.engine, "a", 1, 2).unwrap();
    assert_eq!(upload_ones(&rig.engine, "b", 1, 3).unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(tenant_of_vectors(&rig.engine).tenant.dimension, Some(2));
}

/// Commits past the engine, as if the process ended before it told the catalog.
fn commit_alone(rig: &Rig, edit: impl Fn(&TenantAccess) -> Edit) {
    let access = tenant_of_vectors(&rig.engine);
    access.collection.writer().unwrap().commit(&edit(&access)).unwrap();
}

/// Goal: if the process ends between the first commit and its entry in the catalog, the dimension
/// is fixed at the next start.
#[test]
fn a_first_commit_that_was_not_recorded_fixes_the_dimension() {
    let rig = Rig::new();
    commit_alone(&rig, |access| {
        let kind = SourceKind::Embeddings;
        let own = access.sub_tenant.clone();
        let record = SourceRecord::new(own, id("first"), kind, Sequence(1), START);
        let (title_text, searchable) = (String::new(), String::new());
        let rows = vec![NewRow { vector: vec![1.0; 2], ..NewRow::default() }];
        let source = NewSource { record, title_text, searchable, rows };
        let segment = access.collection.build(2, VectorKind::F32, &[source]).unwrap();
        Edit { add: vec![AddedSegment { segment, withheld: Vec::new() }], ..Edit::default() }
    });
    assert_eq!(upload_ones(&rig.engine, "b", 1, 3).unwrap_err().kind(), ErrorKind::Invalid);
    let rig = rig.restart(GatedEmbedder::default(), |_| {});
    drop(tenant_of_vectors(&rig.engine));
    assert_eq!(tenant_of_vectors(&rig.engine).tenant.dimension, Some(2));
}

fn bytes(engine: &Engine) -> u64 {
    let tenant = tenant_of_vectors(engine).tenant.id.clone();
    engine.usage(&grant(), &tenant).unwrap().allowance.used.bytes
}

fn delete_rows(engine: &Engine, batch: &str, rows: Range<usize>) {
    let gone: Vec<String> = rows.map(|row| format!("{batch}_{row}")).collect();
    let deleted = engine.delete_vectors(&tenant_of_vectors(engine), &gone).unwrap();
    assert!(deleted.into_iter().all(|existed| existed));
}

/// Goal: vectors that are deleted from a batch leave room at once, and count as little when the
/// sources are counted anew.
#[test]
fn vectors_that_are_deleted_leave_room() {
    let rig = Rig::new();
    let access = tenant_of_vectors(&rig.engine);
    let limits = TenantLimits { bytes: Some(800), ..TenantLimits::default() };
    rig.engine.set_tenant_limits(&grant(), &access.tenant.id, limits).unwrap();
    drop(access);
    upload_ones(&rig.engine, "a", 100, 2).unwrap();
    let full = upload_ones(&rig.engine, "b", 10, 2).unwrap_err();
    assert!(full.to_string().contains("bytes"), "{full}");
    delete_rows(&rig.engine, "a", 1..100);
    assert_eq!(bytes(&rig.engine), 8);
    upload_ones(&rig.engine, "b", 10, 2).unwrap();
    delete_rows(&rig.engine, "a", 0..1);
    assert_eq!(bytes(&rig.engine), 80);
    delete_rows(&rig.engine, "b", 0..3);
    assert_eq!(bytes(&rig.engine), 56);
    let rig = rig.restart(GatedEmbedder::default(), lose_catalog);
    wait_for("the count", || (bytes(&rig.engine) == 56).then_some(()));
    // A replacement that is not stored leaves the count as it was.
    rig.disk.refuse_links(ENOSPC);
    upload_ones(&rig.engine, "b", 9, 2).unwrap_err();
    assert_eq!(bytes(&rig.engine), 56);
}

/// Goal: if the process ends between a deletion and its entry in the catalog, the bytes are counted
/// at the next start.
#[test]
fn a_deletion_that_was_not_recorded_leaves_room_after_a_restart() {
    let rig = Rig::new();
    upload_ones(&rig.engine, "a", 20, 2).unwrap();
    commit_alone(&rig, |access| {
        let remove_chunks = vec![(access.sub_tenant.clone(), id("a"), vec![0, 1])];
        Edit { remove_chunks, ..Edit::default() }
    });
    assert_eq!(bytes(&rig.engine), 160);
    let rig = rig.restart(GatedEmbedder::default(), |_| {});
    assert_eq!(bytes(&rig.engine), 144);
}

/// Goal: if the process ends before the commit of a batch that is counted already, the batch does
/// not count after the next start, and one that it would have replaced counts as before.
#[test]
fn a_batch_that_was_not_committed_is_not_counted_after_a_restart() {
    let rig = Rig::new();
    upload_ones(&rig.engine, "a", 20, 2).unwrap();
    let used = |engine: &Engine| {
        let tenant = tenant_of_vectors(engine).tenant.id.clone();
        engine.usage(&grant(), &tenant).unwrap().allowance.used
    };
    let before = used(&rig.engine);
    let access = tenant_of_vectors(&rig.engine);
    let of = access.tenant.collection;
    let may_count_unstored = |rig: &Rig| rig.engine.catalog.may_count_unstored(of).unwrap();
    assert!(!may_count_unstored(&rig), "no opening reads all batches");
    for batch in ["a", "b"] {
        let scope = &access.sub_tenant;
        rig.engine.catalog.reserve_sequence(of, scope, &id(batch), Some(800)).unwrap();
    }
    drop(access);
    assert!(used(&rig.engine) != before);
    let rig = rig.restart(GatedEmbedder::default(), |_| {});
    assert_eq!(used(&rig.engine), before);
    assert!(!may_count_unstored(&rig));
    upload_ones(&rig.engine, "b", 10, 2).unwrap();
    assert_eq!(bytes(&rig.engine), 240);
}

/// Goal: a batch that counts without being stored, because neither its commit nor the release of
/// its bytes succeeded, does not count after a restart, whatever was stored in between.
#[test]
fn a_later_commit_hides_no_batch_that_was_not_committed() {
    let mut rig = Rig::new();
    for batch in ["a", "b"] {
        upload_ones(&rig.engine, batch, 20, 2).unwrap();
    }
    let changed = |rig: &Rig| {
        let access = tenant_of_vectors(&rig.engine);
        rig.engine.update_vectors(&access, &[("b_0".to_owned(), vec![0.5, 0.5])]).unwrap();
    };
    let stored = |rig: &Rig| upload_ones(&rig.engine, "b", 20, 2).unwrap();
    let later: [&dyn Fn(&Rig); 2] = [&changed, &stored];
    for later in later {
        let access = tenant_of_vectors(&rig.engine);
        for batch in ["a", "never stored"] {
            let (of, scope) = (access.tenant.collection, &access.sub_tenant);
            rig.engine.catalog.reserve_sequence(of, scope, &id(batch), Some(800)).unwrap();
            later(&rig);
        }
        drop(access);
        assert_eq!(bytes(&rig.engine), 1760);
        rig = rig.restart(GatedEmbedder::default(), |_| {});
        assert_eq!(bytes(&rig.engine), 320);
    }
}
