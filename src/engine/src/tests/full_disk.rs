//! Tests of a disk that fills up and empties again.

use super::*;
use crate::ingest::Amendment;
use lodestone_catalog::RequestStart;
use lodestone_io::Space;
use lodestone_types::{ErrorKind, SessionId};

impl Rig {
    /// Sets the percentage of the disk that is in use.
    pub(crate) fn fill(&self, percent: u64) {
        let space = Space { total_bytes: 64 << 30, free_bytes: 0, free_files: u64::MAX };
        let free_bytes = (space.total_bytes / 100) * (100 - percent);
        self.disk.pretend(Space { free_bytes, ..space });
        self.clock.advance_millis(1000);
    }
}

fn kind<T>(result: Result<T, EngineError>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// Goal: new content is refused from 90 % on, changes from 95 % on, deletions and reads never; all
/// is accepted again two points below.
#[test]
fn a_filling_disk_takes_less_and_less() {
    const FULL: Option<ErrorKind> = Some(ErrorKind::StorageFull);
    let rig = Rig::new();
    let engine = &rig.engine;
    for n in 0..3 {
        rig.upload(&format!("doc-{n}"), "everywhere is wind");
    }
    let upload = || kind(engine.submit(&access(engine), submission("new", "x", &Metadata::new())));
    let amend = || kind(engine.amend(&access(engine), &id("doc-1"), Amendment::default()));
    let create = |name: &str| {
        let name = TenantId::parse(name).unwrap();
        kind(make_vector_tenant(engine, &name))
    };
    let delete = |source: &str| engine.delete_sources(&access(engine), &[id(source)]).unwrap();
    let walk = [
        (89, None, None),
        (90, FULL, None),
        (89, FULL, None),
        (95, FULL, FULL),
        (94, FULL, FULL),
        (93, FULL, None),
        (88, None, None),
    ];
    for (turn, (percent, uploads, changes)) in walk.into_iter().enumerate() {
        rig.fill(percent);
        assert_eq!((upload(), amend()), (uploads, changes), "at {percent} %");
        assert_eq!(create(&format!("t-{turn}")), uploads, "at {percent} %");
        engine.original(&access(engine), &id("doc-1")).unwrap();
        assert_eq!(matches!(engine.health().storage, ComponentState::Usable), uploads.is_none());
    }
    rig.fill(99);
    assert_eq!(delete("doc-0").deleted, [id("doc-0")]);
    rig.fill(50);
    rig.upload("new", "everywhere is sand");
}

/// Goal: on a full disk neither sessions nor the names of requests grow, and what is kept is used.
#[test]
fn a_full_disk_remembers_nothing_new() {
    const FULL: Option<ErrorKind> = Some(ErrorKind::StorageFull);
    let rig = Rig::new();
    let engine = &rig.engine;
    rig.upload("doc", "everywhere is wind");
    let session = SessionId::parse("s").unwrap();
    let remember =
        |answer: Option<&str>| kind(engine.remember(&access(engine), &session, "Who?", answer));
    let begin = |value: &str| engine.begin_request(&grant(), "/p", value, [1; 32]);
    let RequestStart::Fresh(ticket) = begin("v").unwrap() else { panic!("fresh") };
    engine.finish_request(ticket, 200, b"done").unwrap();
    assert_eq!(remember(Some("Ada.")), None);
    rig.fill(92);
    assert_eq!((remember(Some("Bo.")), remember(None)), (FULL, None), "it stays alive");
    assert_eq!(kind(begin("w")), FULL);
    assert!(matches!(begin("v").unwrap(), RequestStart::Replay { .. }));
    rig.fill(50);
    assert_eq!((remember(Some("Bo.")), kind(begin("w"))), (None, None));
}

/// Goal: accepted jobs wait while the disk is almost full, and continue by themselves.
#[test]
fn accepted_jobs_wait_for_room() {
    let rig = Rig::new().restart(GatedEmbedder::with_passes(0), |_| {});
    let engine = &rig.engine;
    submit(engine, "first", "keeps the worker busy", &Metadata::new());
    wait_for("the worker", || rig.gate.has_waiting().then_some(()));
    submit(engine, "late", "everywhere is snow", &Metadata::new());
    rig.fill(97);
    rig.gate.open();
    assert_eq!(settled(engine, "first").status, JobStatus::Success, "what has begun ends");
    let late = engine.source(&access(engine), &id("late")).unwrap().unwrap();
    assert_eq!(late.status, JobStatus::Queued);
    rig.fill(50);
    assert_eq!(settled(engine, "late").status, JobStatus::Success);
}

/// The receiver of an archive; the disk is full after its second line.
struct Filling<'a> {
    rig: &'a Rig,
    lines: usize,
}

impl std::io::Write for Filling<'_> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.lines += 1;
        if self.lines == 2 {
            self.rig.fill(92);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Goal: an export, which deletions wait for, ends soon when the disk fills, even within a source.
#[test]
fn an_export_is_given_up_on_a_full_disk() {
    let rig = Rig::new();
    rig.upload("doc", "everywhere is wind");
    let export = rig.engine.export(&grant(), &scope().tenant, None).unwrap();
    let mut out = Filling { rig: &rig, lines: 0 };
    let error = export.write(&mut out).unwrap_err();
    assert!(error.to_string().contains("aborted"), "{error}");
    assert_eq!(out.lines, 2, "the original and the chunks are missing");
}
