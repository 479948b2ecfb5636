//! Tests of segments damaged while the engine runs: results say so, and losses are rebuilt.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::*;
use crate::ingest::Amendment;
use crate::query::FullTextRequest;
use lodestone_extract::ExtractError;
use lodestone_types::limits::ATTEMPTS_MAX;

pub(super) type Harm = fn(&Path);

/// The tenant as a user sees it.
#[derive(Debug, PartialEq)]
struct Sight {
    sources: Vec<SourceView>,
    chunks: Vec<(String, u32, String)>,
    objects: u64,
}

fn look(engine: &Engine) -> (Sight, usize) {
    let access = access(engine);
    let request = FullTextRequest::new("everywhere", 1000);
    let found = engine.full_text(&access, &request).unwrap().chunks;
    let mut chunks: Vec<_> =
        found.into_iter().map(|c| (c.source.id.to_string(), c.index, c.text)).collect();
    chunks.sort();
    let objects = engine.stats(&grant(), &access).unwrap().objects;
    let sight = Sight { sources: all_sources(engine, &access), chunks, objects };
    (sight, access.segments_missing())
}

fn whole_again(engine: &Engine) -> Sight {
    wait_for("the end of the rebuild", || {
        let (sight, missing) = look(engine);
        (missing == 0).then_some(sight)
    })
}

fn text(id: &str) -> String {
    format!("The word {id} stands here, and everywhere stands everywhere. ").repeat(80)
}

/// Three sources in different states: as uploaded, replaced, and with metadata changed later.
fn filled() -> (Rig, Sight) {
    let rig = Rig::new();
    for id in ["plain", "replaced", "amended"] {
        rig.upload(id, &text(id));
    }
    rig.upload("replaced", &text("newer"));
    let titled = map(json!({"title": "Changed later"}));
    let titled = Amendment { document_metadata: Some(titled), ..Amendment::default() };
    let team = map(json!({"team": "red"}));
    let team = Amendment { tenant_metadata: Some(team), ..Amendment::default() };
    // The first change processes the source again, the second exists only in the segment.
    for amendment in [titled, team] {
        rig.engine.amend(&access(&rig.engine), &id("amended"), amendment).unwrap();
        assert_eq!(settled(&rig.engine, "amended").status, JobStatus::Success);
    }
    let (sight, missing) = look(&rig.engine);
    assert_eq!((missing, sight.sources.len()), (0, 3));
    assert!(sight.chunks.len() > 3 && sight.objects == sight.chunks.len() as u64);
    (rig, sight)
}

pub(super) fn files(data: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(data).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn flip(path: &Path, at: impl Fn(usize) -> usize) {
    let mut bytes = std::fs::read(path).unwrap();
    let at = at(bytes.len());
    bytes[at] ^= 0x10;
    std::fs::write(path, bytes).unwrap();
}

fn each_segment(data: &Path, harm: impl Fn(&Path)) {
    let segments = files(data, ".seg");
    assert!(!segments.is_empty());
    segments.iter().for_each(|path| harm(path));
}

pub(super) const HARMS: [(&str, Harm); 5] = [
    ("a changed header", |data| each_segment(data, |path| flip(path, |_| 20))),
    ("changed sources", |data| each_segment(data, |path| flip(path, |length| length / 2))),
    ("a changed trailer", |data| each_segment(data, |path| flip(path, |length| length - 9))),
    ("half a file", |data| {
        each_segment(data, |path| {
            let bytes = std::fs::read(path).unwrap();
            std::fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
        });
    }),
    ("no file", |data| each_segment(data, |path| std::fs::remove_file(path).unwrap())),
];

/// Goal: whatever happens to the segments, results are marked until everything is back, and then
/// all is as before: records with versions and later metadata, chunks, counts.
#[test]
fn what_was_lost_is_built_from_its_original() {
    for (name, harm) in HARMS {
        let (rig, before) = filled();
        let rig = rig.restart(GatedEmbedder::with_passes(0), harm);
        let (sight, missing) = look(&rig.engine);
        assert!(missing > 0, "{name}: the answer is marked");
        assert!(sight.sources.is_empty() && sight.chunks.is_empty(), "{name}: all is lost");
        let state = rig.engine.health().index;
        let expected = ComponentState::Degraded("segments are quarantined and being rebuilt");
        assert_eq!(state, expected, "{name}");
        rig.gate.open();
        assert_eq!(whole_again(&rig.engine), before, "{name}");
        assert_eq!(rig.engine.health().index, ComponentState::Usable, "{name}");
        let rig = rig.restart(GatedEmbedder::default(), |_| {});
        assert_eq!(look(&rig.engine), (before, 0), "{name}: and after a restart");
    }
}

/// Goal: while sources of one tenant are rebuilt, the other background work of all tenants goes on.
/// Method: delete another tenant, whose files that work removes.
#[test]
fn a_rebuild_holds_no_other_tenant_up() {
    let (rig, before) = filled();
    let rig = rig.restart(GatedEmbedder::with_passes(0), HARMS[0].1);
    let engine = &rig.engine;
    drop(access(engine));
    wait_for("the rebuild to begin", || rig.gate.has_waiting().then_some(()));
    let other = TenantId::parse("vectors").unwrap();
    make_vector_tenant(engine, &other).unwrap();
    engine.delete_tenant(&grant(), &other).unwrap();
    wait_for("the end of its files", || {
        let left = engine.catalog.collections_pending_delete().unwrap();
        left.is_empty().then_some(())
    });
    rig.gate.open();
    assert_eq!(whole_again(engine), before);
}

/// Goal: changes made during a rebuild take precedence over it.
#[test]
fn changes_during_a_rebuild_win() {
    let (rig, before) = filled();
    let rig = rig.restart(GatedEmbedder::with_passes(0), HARMS[0].1);
    let engine = &rig.engine;
    let access = access(engine);
    wait_for("the rebuild to begin", || rig.gate.has_waiting().then_some(()));
    let deleted = engine.delete_sources(&access, &[id("plain"), id("unknown")]).unwrap();
    assert_eq!((deleted.deleted, deleted.not_found), (vec![id("plain")], vec![id("unknown")]));
    let refused = engine.amend(&access, &id("amended"), Amendment::default()).unwrap_err();
    assert_eq!(refused.kind(), lodestone_types::ErrorKind::Unavailable, "{refused}");
    let accepted = engine.submit(&access, submission("replaced", "third", &Metadata::new()));
    assert_eq!(accepted.unwrap().version, 3, "versions go on");
    rig.gate.open();
    assert_eq!(settled(engine, "replaced").status, JobStatus::Success);
    let after = whole_again(engine);
    let shown: Vec<_> = after.sources.iter().map(|v| (v.record.id.as_str(), v.version)).collect();
    assert_eq!(shown, [("amended", 2), ("replaced", 3)]);
    let amended =
        |sight: &Sight| sight.sources.iter().find(|view| view.record.id == id("amended")).cloned();
    assert_eq!(amended(&after), amended(&before));
    // The worker deletes an original only after it has settled its job.
    let raw = rig.dir.path().join("data/v1/raw");
    wait_for("the end of old originals", || (files(&raw, "").len() == 2).then_some(()));
}

/// Goal: an interrupted rebuild continues, and nothing is built twice.
/// Method: each document fills a batch, and each run lets one batch pass.
#[test]
fn a_rebuild_goes_on_after_restarts() {
    let rig = Rig::new();
    for n in 0..3 {
        rig.upload(&format!("doc-{n}"), &text(&format!("w{n}")).repeat(60));
    }
    let (before, _) = look(&rig.engine);
    // Each document takes two slices of passages.
    let mut rig = rig.restart(GatedEmbedder::with_passes(2), HARMS[4].1);
    for visible in 1..3 {
        let seen = wait_for("one more document", || {
            let (sight, missing) = look(&rig.engine);
            assert!(missing > 0);
            (sight.sources.len() == visible).then_some(sight)
        });
        assert!(seen.chunks.iter().all(|chunk| before.chunks.contains(chunk)));
        rig = rig.restart(GatedEmbedder::with_passes(2), |_| {});
    }
    assert_eq!(whole_again(&rig.engine), before);
}

/// Goal: a source without its original stays lost and everybody is told; nothing is dropped, and
/// whatever its owner does about it takes effect.
#[test]
fn what_cannot_be_built_stays_known() {
    let (rig, before) = filled();
    let raw_key = |view: &SourceView| view.record.raw_key.clone();
    let plain = before.sources.iter().find(|view| view.record.id == id("plain"));
    let original = raw_key(plain.unwrap());
    let rig = rig.restart(GatedEmbedder::default(), |data| {
        HARMS[2].1(data);
        flip(&data.join(&original), |length| length - 1);
    });
    let engine = &rig.engine;
    wait_for("the others", || (look(engine).0.sources.len() == 2).then_some(()));
    wait_for("the end of the attempts", || access(engine).needs_help().then_some(()));
    assert_eq!(access(engine).segments_missing(), 1, "one segment keeps its place");
    let ComponentState::Degraded(told) = engine.health().index else { panic!("it is told") };
    assert!(told.contains("cannot be rebuilt"), "{told}");
    let rig = rig.restart(GatedEmbedder::default(), |_| {});
    assert_eq!(look(&rig.engine).1, 1, "a restart changes nothing");
    rig.upload("plain", &text("plain"));
    let after = whole_again(&rig.engine);
    assert_eq!((after.chunks, after.objects), (before.chunks, before.objects));
    assert!(!access(&rig.engine).needs_help());
}

/// Goal: damage in a part that is only read on first use does not fail the search that meets it:
/// the rest answers, marked as incomplete, and the part is rebuilt.
#[test]
fn damage_met_by_a_search_is_quarantined() {
    let rig = Rig::new();
    // Every block of texts contains a chunk that is found, since only blocks that are read are
    // verified.
    let words = |n: usize| match n % 1000 {
        0 => "everywhere ".to_owned(),
        _ => format!("w{} ", n * 7919 % 60_013),
    };
    let long: String = (0..150_000).map(words).collect();
    rig.upload("long", &long);
    let before = look(&rig.engine);
    let rig = rig.restart(GatedEmbedder::with_passes(0), |data| {
        each_segment(data, |path| flip(path, |_| 70_000));
    });
    assert_eq!(access(&rig.engine).segments_missing(), 0, "opening does not read texts");
    let (sight, missing) = look(&rig.engine);
    assert_eq!((sight.chunks.len(), missing), (0, 1));
    rig.gate.open();
    assert_eq!((whole_again(&rig.engine), 0), before);
}

/// Goal: client vectors have no original: their loss is reported, and a new upload ends it.
#[test]
fn lost_vectors_wait_for_their_owner() {
    let rig = Rig::new();
    let tenant = TenantId::parse("vectors").unwrap();
    let engine = &rig.engine;
    make_vector_tenant(engine, &tenant).unwrap();
    let scope = Scope { tenant, sub_tenant: SubTenantId::default_name() };
    let open = |engine: &Engine| engine.open(&grant(), &scope, None).unwrap();
    let vectors = || vec![vec![1.0, 0.0], vec![0.0, 1.0]];
    engine.upload_vectors(&open(engine), Some(id("batch")), vectors()).unwrap();
    let rig = rig.restart(GatedEmbedder::default(), HARMS[0].1);
    let lost = open(&rig.engine);
    assert_eq!((lost.segments_missing(), lost.needs_help()), (1, true));
    let chunk = ["batch_0".to_owned()];
    let refused = rig.engine.delete_vectors(&lost, &chunk).unwrap_err();
    assert_eq!(refused.kind(), lodestone_types::ErrorKind::Unavailable);
    let again = rig.engine.upload_vectors(&lost, Some(id("batch")), vectors()).unwrap();
    assert!(again.overwritten);
    let whole = open(&rig.engine);
    assert_eq!((whole.segments_missing(), whole.needs_help()), (0, false));
    let found = rig.engine.vectors_by_id(&whole, &chunk).unwrap();
    assert_eq!(found, [Some(vec![1.0, 0.0])]);
}

/// A parser that fails to start a given number of times for documents with a given word.
#[derive(Debug)]
struct NotStarted(&'static str, AtomicUsize);

impl Parser for NotStarted {
    fn parse(&self, format: Format, bytes: &[u8]) -> Parsed {
        let is_meant = std::str::from_utf8(bytes).is_ok_and(|text| text.contains(self.0));
        let less = |left: usize| left.checked_sub(1);
        if is_meant && self.1.fetch_update(Ordering::SeqCst, Ordering::SeqCst, less).is_ok() {
            return Err(ExtractError::NoParser { problem: "out of processes".into() });
        }
        InProcess.parse(format, bytes)
    }

    fn draw(&self, format: Format, bytes: &[u8], drawing: &Drawing) -> Drawn {
        InProcess.draw(format, bytes, drawing)
    }
}

/// Goal: a source whose parser could not be started is not given up before as many failures as a
/// job may have; other sources are rebuilt meanwhile.
/// Method: each upload triggers another round of maintenance.
#[test]
fn a_parser_that_cannot_be_started_is_tried_again() {
    for faults in [ATTEMPTS_MAX as usize - 1, ATTEMPTS_MAX as usize] {
        let rig = Rig::new();
        rig.upload("plain", &text("plain"));
        rig.upload("other", &text("other"));
        let dir = rig.stop();
        HARMS[2].1(&dir.path().join("data"));
        let mut settings = Settings::new(dir.path().join("data"), "unused".into());
        settings.ingest_threads = 1;
        let mut components = Components::real(Arc::new(GatedEmbedder::default()));
        components.parser = Arc::new(NotStarted("plain", AtomicUsize::new(faults)));
        let engine = Engine::start(settings, components).unwrap();
        wait_for("the other one", || {
            engine.source(&access(&engine), &id("other")).unwrap().map(drop)
        });
        let mut uploads = 0;
        let is_back = wait_for("the end of the attempts", || {
            uploads += 1;
            let name = format!("more-{uploads}");
            submit(&engine, &name, "wakes the thread", &Metadata::new());
            assert_eq!(settled(&engine, &name).status, JobStatus::Success);
            let is_whole = access(&engine).segments_missing() == 0;
            (is_whole || access(&engine).needs_help()).then_some(is_whole)
        });
        assert_eq!(is_back, faults < ATTEMPTS_MAX as usize, "{faults} faults");
        engine.shut_down();
    }
}
