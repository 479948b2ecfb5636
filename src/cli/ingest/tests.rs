//! Planning, sending and waiting against a scripted server, without sockets or sleeping.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use parking_lot::Mutex;
use serde_json::{Map, Value, json};

use super::call::{BUSY_PATIENCE, CallError, Caller, LOST_ATTEMPTS_MAX};
use super::failure::Step;
use super::maps::Maps;
use super::options::SourceTime;
use super::plan::{Filters, Item, Plan, PlanError, plan};
use super::send::{SendError, Sender, Tally};
use super::server::Server;
use super::state::State;
use super::stop::Pause;
use super::{batch, changes, wait};
use crate::cli::transport::{Lost, Payload, Reply, Request, Transport};

/// Answers from a list, then accepts all uploads; records the requests.
#[derive(Default)]
struct Script {
    answers: Mutex<VecDeque<Result<Reply, Lost>>>,
    asked: Mutex<Vec<(String, String)>>,
    /// Processing of each source after its upload: pending for the given number of polls, then the
    /// status word.
    fates: Mutex<BTreeMap<String, (usize, &'static str)>>,
}

fn reply(status: u16, json: Value) -> Result<Reply, Lost> {
    Ok(Reply { status, retry_after_s: None, json })
}

fn busy(retry_after_s: u64) -> Result<Reply, Lost> {
    let json = json!({"error_code": "SERVICE_UNAVAILABLE", "reason": "queue_full", "message": "m"});
    Ok(Reply { status: 503, retry_after_s: Some(retry_after_s), json })
}

fn lost() -> Result<Reply, Lost> {
    Err(Lost { problem: "connection reset".into() })
}

impl Script {
    fn with(answers: Vec<Result<Reply, Lost>>) -> Self {
        Self { answers: Mutex::new(answers.into()), ..Self::default() }
    }

    fn uploads(&self) -> Vec<Vec<String>> {
        let asked = self.asked.lock();
        let uploads = asked.iter().filter(|(path, _)| path.contains("batch_"));
        uploads.map(|(_, body)| ids_in(body)).collect()
    }

    fn state_of(&self, id: &str) -> &'static str {
        let mut fates = self.fates.lock();
        match fates.get_mut(id) {
            Some((0, word)) => word,
            Some((left, _)) => {
                *left -= 1;
                "queued"
            }
            None => "success",
        }
    }
}

/// Extracts the ids from the body of an upload.
fn ids_in(body: &str) -> Vec<String> {
    if let Ok(json) = serde_json::from_str::<Value>(body) {
        let items = json["items"].as_array().unwrap();
        return items.iter().map(|item| item["file_id"].as_str().unwrap().to_owned()).collect();
    }
    let ids = body.split("name=\"source_ids\"\r\n\r\n").nth(1).unwrap().lines().next().unwrap();
    serde_json::from_str(ids).unwrap()
}

impl Transport for Script {
    fn exchange(&self, request: &Request<'_>, sent_bytes: &AtomicU64) -> Result<Reply, Lost> {
        let mut body = String::new();
        match &request.body {
            None | Some(Payload::Empty | Payload::Delete) => {}
            Some(Payload::Json(json) | Payload::DeleteJson(json) | Payload::PatchJson(json)) => {
                body = json.to_string();
            }
            Some(Payload::Form(form)) => {
                let read = form.reader(sent_bytes).unwrap().read_to_string(&mut body);
                read.map_err(|error| Lost { problem: error.to_string() })?;
            }
        }
        self.asked.lock().push((request.path.clone(), body.clone()));
        if let Some(answer) = self.answers.lock().pop_front() {
            return answer;
        }
        let found = |id: &str| {
            let warnings = match id {
                "c" => json!([{"code": "unreadable_pages", "message": "page 2 was not read"}]),
                _ => json!([]),
            };
            json!({"id": id, "status": self.state_of(id), "warnings": warnings})
        };
        match request.path.split('?').next().unwrap() {
            "/list/sources_by_id" => {
                let asked: Value = serde_json::from_str(&body).unwrap();
                let ids = asked["source_ids"].as_array().unwrap().iter();
                let sources: Vec<Value> = ids.map(|id| found(id.as_str().unwrap())).collect();
                reply(200, json!({"sources": sources}))
            }
            "/upload/update_metadata" => reply(200, json!({"status": "success"})),
            "/upload/verify_processing" => {
                let id = request.path.split("file_id=").nth(1).unwrap();
                let status = self.state_of(id.split('&').next().unwrap());
                reply(200, json!({"status": status, "error_code": "NO_TEXT", "message": "m"}))
            }
            _ => {
                let ids = ids_in(&body);
                let entry = |id: &String| json!({"file_id": id});
                let uploaded: Vec<Value> = ids.iter().map(entry).collect();
                reply(200, json!({"uploaded": uploaded, "failed": []}))
            }
        }
    }
}

/// Adds up pauses instead of waiting; stops at a limit.
#[derive(Default)]
struct Pauses {
    taken: Mutex<Vec<Duration>>,
    stop_after: Option<usize>,
}

impl Pause for Pauses {
    fn pause(&self, time: Duration) -> bool {
        self.taken.lock().push(time);
        !self.is_stopped()
    }

    fn is_stopped(&self) -> bool {
        self.stop_after.is_some_and(|limit| self.taken.lock().len() >= limit)
    }
}

fn with_server<T>(script: &Script, pauses: &Pauses, then: impl FnOnce(Server<'_>) -> T) -> T {
    let sent_bytes = AtomicU64::new(0);
    let caller = Caller {
        transport: script,
        pause: pauses,
        lost_attempts_max: LOST_ATTEMPTS_MAX,
        sent_bytes: &sent_bytes,
        note: &|_| {},
    };
    then(Server { caller, tenant: "acme", sub_tenant: "" })
}

/// The metadata that the server has stored for a page.
fn page_maps() -> Map<String, Value> {
    let maps = [("document_metadata", json!({"a": 1})), ("tenant_metadata", json!({"b": 2}))];
    maps.map(|(name, map)| (name.to_owned(), map)).into_iter().collect()
}

/// Sends the batches one after the other.
fn send(script: &Script, pauses: &Pauses, items: Vec<Item>, state: Option<&State>) -> Tally {
    send_with(&Maps::default(), script, pauses, items, state)
}

fn send_with(
    maps: &Maps,
    script: &Script,
    pauses: &Pauses,
    items: Vec<Item>,
    state: Option<&State>,
) -> Tally {
    let tally = Tally::default();
    with_server(script, pauses, |server| {
        let stored = HashMap::from([("https%3A::example.com:a".to_owned(), page_maps())]);
        let stored = &stored;
        let sender = Sender { server, state, maps, stored, tally: &tally, halt: &|| {} };
        sender.send_all(&batch::batches(items), 1);
    });
    tally
}

#[test]
fn files_carry_the_time_of_their_last_change_where_that_is_asked_for() {
    let dir = folder(&["a.txt"]);
    let file = fs::File::options().append(true).open(dir.path().join("a.txt")).unwrap();
    file.set_modified(UNIX_EPOCH + Duration::from_millis(1_614_834_367_500)).unwrap();
    for (source_time, is_sent) in [(None, false), (Some(SourceTime::Mtime), true)] {
        let maps = Maps { source_time, ..Maps::default() };
        let script = Script::default();
        send_with(&maps, &script, &Pauses::default(), items(dir.path()), None);
        let body = script.asked.lock()[0].1.clone();
        let part = "name=\"source_time\"\r\n\r\n[1614834367.5]\r\n";
        assert_eq!(body.contains(part), is_sent, "{body}");
    }
}

fn folder(files: &[&str]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for file in files {
        let path = dir.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, file.as_bytes()).unwrap();
    }
    dir
}

fn planned(inputs: &[PathBuf], include: &[&str], exclude: &[&str]) -> Result<Plan, PlanError> {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    plan(inputs, &Filters::new(&owned(include), &owned(exclude)).unwrap(), 1000)
}

fn ids(plan: &Plan) -> Vec<&str> {
    plan.items.iter().map(|item| item.id.as_str()).collect()
}

fn items(dir: &Path) -> Vec<Item> {
    planned(&[dir.to_owned()], &[], &[]).unwrap().items
}

#[test]
fn a_directory_is_walked_in_order_and_hidden_files_are_counted() {
    let files = ["docs/b.md", "docs/a/z.txt", "docs/.git/config", "docs/.hidden", "docs/a.md"];
    let dir = folder(&files);
    let docs = dir.path().join("docs");
    let found = planned(from_ref(&docs), &[], &[]).unwrap();
    assert_eq!(ids(&found), ["docs:a:z.txt", "docs:a.md", "docs:b.md"]);
    assert_eq!(found.left_out.hidden, 2);
    // Overlapping arguments send a file only once.
    let again = planned(&[docs.clone(), docs.join("a"), docs.join("b.md")], &[], &[]).unwrap();
    assert_eq!(ids(&again), ids(&found));
    let hidden = planned(&[docs.join(".hidden")], &[], &[]).unwrap();
    assert_eq!(ids(&hidden), [".hidden"], "what is named is meant");
}

#[test]
fn filters_and_patterns_choose_files() {
    let dir = folder(&["d/a.md", "d/b.txt", "d/sub/c.md", "d/skip/d.md", "d/we[ird.md"]);
    let root = dir.path().join("d");
    let found = planned(from_ref(&root), &["*.md"], &["skip"]).unwrap();
    assert_eq!(ids(&found), ["d:a.md", "d:sub:c.md", "d:we[ird.md"]);
    assert_eq!(found.left_out.filtered, 2);
    let found = planned(from_ref(&root), &["sub/*.md"], &[]).unwrap();
    assert_eq!(ids(&found), ["d:sub:c.md"]);
    let found = planned(&[root.join("**/*.md")], &[], &["d.md"]).unwrap();
    assert_eq!(ids(&found), ["d:a.md", "d:sub:c.md", "d:we[ird.md"]);
    let found = planned(&[root.join("we[ird.md")], &[], &[]).unwrap();
    assert_eq!(ids(&found), ["we[ird.md"], "a name with a bracket is no pattern");
    let nothing = planned(&[root.join("*.pdf")], &[], &[]).unwrap_err();
    assert!(nothing.to_string().contains("matches no file"), "{nothing}");
    let absent = planned(&[root.join("absent")], &[], &[]).unwrap_err();
    assert!(matches!(absent, PlanError::Input { .. }), "{absent}");
}

#[cfg(unix)]
#[test]
fn links_in_a_circle_are_counted_and_broken_ones_named() {
    let dir = folder(&["d/a.md"]);
    let root = dir.path().join("d");
    std::os::unix::fs::symlink(&root, root.join("circle")).unwrap();
    std::os::unix::fs::symlink("nowhere", root.join("broken")).unwrap();
    let found = planned(&[root], &[], &[]).unwrap();
    assert_eq!((ids(&found), found.left_out.loops), (vec!["d:a.md"], 1));
    assert_eq!(found.failures.len(), 1);
    assert!(found.failures[0].name.ends_with("broken"));
}

#[test]
fn two_files_never_share_an_id_and_a_run_is_bounded() {
    let dir = folder(&["one/d/a.md", "two/d/a.md", "one/d/b.md"]);
    let inputs = [dir.path().join("one/d"), dir.path().join("two/d")];
    let error = planned(&inputs, &[], &[]).unwrap_err();
    assert!(matches!(&error, PlanError::SameId { id, .. } if id == "d:a.md"), "{error}");
    let filters = Filters::default();
    let error = plan(&inputs[..1], &filters, 1).unwrap_err();
    assert!(matches!(error, PlanError::TooMany { max: 1 }), "{error}");
    assert_eq!(plan(&inputs[..1], &filters, 2).unwrap().items.len(), 2);
}

#[test]
fn pages_go_to_their_own_operation_without_fragments() {
    let inputs = ["https://example.com/a#top", "https://example.com/a"].map(PathBuf::from);
    let found = planned(&inputs, &[], &[]).unwrap();
    assert_eq!(ids(&found), ["https%3A::example.com:a"]);
    let (script, pauses) = (Script::default(), Pauses::default());
    let tally = send(&script, &pauses, found.items, None);
    assert_eq!(tally.awaited.lock()[0].1, "https://example.com/a");
    let asked = script.asked.lock();
    assert!(asked[0].0.starts_with("/upload/batch_scrape_webpage?tenant_id=acme"), "{asked:?}");
    let page: Value = serde_json::from_str(&asked[0].1).unwrap();
    assert_eq!(page["items"][0]["tenant_metadata"], json!({"b": 2}), "what is stored stays");
}

/// Metadata that is not given leaves files unchanged; different metadata is updated without sending
/// the file.
#[test]
fn metadata_alone_send_no_file_again() {
    let (dir, home) = (folder(&["d/a", "d/b"]), tempfile::tempdir().unwrap());
    let (items, path) = (items(&dir.path().join("d")), home.path().join("state"));
    let maps = |team: &str| Maps {
        document: json!({ "team": team }).as_object().cloned(),
        hash: team.to_owned(),
        ..Maps::default()
    };
    let (script, pauses) = (Script::default(), Pauses::default());
    let state = State::open(&path).unwrap();
    send_with(&maps("red"), &script, &pauses, items.clone(), Some(&state));
    drop(state);
    let state = State::open(&path).unwrap();
    let sorted = |maps: &Maps| {
        let sorted = with_server(&script, &pauses, |server| {
            changes::changes(&server, Some(&state), maps, items.clone())
        });
        sorted.map(|found| (found.sent.len(), found.retagged.len())).unwrap()
    };
    assert_eq!(sorted(&Maps::default()), (0, 0));
    assert_eq!(sorted(&maps("red")), (0, 0));
    assert_eq!(sorted(&maps("blue")), (0, 2));
    let dated = Maps { source_time: Some(SourceTime::Mtime), ..maps("red") };
    assert_eq!(sorted(&dated), (2, 0));
    let (tally, blue) = (Tally::default(), maps("blue"));
    let ended = with_server(&script, &pauses, |server| {
        changes::retag(&server, &state, &blue, &items, &tally)
    });
    assert_eq!((ended.unwrap().len(), tally.retagged_count.load(Ordering::Relaxed)), (0, 2));
    let asked = script.asked.lock().last().cloned().unwrap();
    assert!(asked.0.starts_with("/upload/update_metadata?tenant_id=acme"), "{asked:?}");
    assert_eq!(asked.1, r#"{"document_metadata":{"team":"blue"},"source_id":"d:b"}"#);
    drop(state);
    let remembered = State::open(&path).unwrap();
    assert_eq!(remembered.entry("d:a").unwrap().metadata, "blue");
}

#[test]
fn busy_servers_and_lost_connections_are_tried_again() {
    let dir = folder(&["d/a", "d/b"]);
    let script = Script::with(vec![busy(7), lost(), lost(), reply(502, Value::Null), busy(9999)]);
    let pauses = Pauses::default();
    let tally = send(&script, &pauses, items(dir.path()), None);
    assert_eq!(tally.awaited.lock().len(), 2);
    assert_eq!(script.uploads().len(), 6);
    let milliseconds: Vec<u128> = pauses.taken.lock().iter().map(Duration::as_millis).collect();
    assert_eq!(milliseconds, [7_000, 250, 500, 1_000, 60_000]);
}

#[test]
fn trying_again_has_an_end() {
    let dir = folder(&["d/a"]);
    let script = Script::with((0..100).map(|_| lost()).collect());
    let tally = send(&script, &Pauses::default(), items(dir.path()), None);
    let ended = tally.ended_by.lock().take();
    let expected = LOST_ATTEMPTS_MAX;
    assert!(
        matches!(ended, Some(SendError::Call(CallError::Unreachable { attempts, .. }))
            if attempts == expected),
        "{ended:?}"
    );
    assert_eq!(script.uploads().len(), expected as usize);

    let script = Script::with((0..1000).map(|_| busy(60)).collect());
    let pauses = Pauses::default();
    let tally = send(&script, &pauses, items(dir.path()), None);
    assert!(matches!(
        tally.ended_by.lock().take(),
        Some(SendError::Call(CallError::Refused(body))) if body.reason == "queue_full"
    ));
    assert_eq!(pauses.taken.lock().iter().sum::<Duration>(), BUSY_PATIENCE);
}

#[test]
fn a_wrong_key_ends_the_run_at_once() {
    let dir = tempfile::tempdir().unwrap();
    for name in 0..50 {
        fs::write(dir.path().join(name.to_string()), "x").unwrap();
    }
    for status in [401, 403, 404] {
        let script = Script::with(vec![reply(status, json!({"message": "no", "reason": "r"}))]);
        let pauses = Pauses::default();
        let tally = send(&script, &pauses, items(dir.path()), None);
        assert_eq!((script.uploads().len(), pauses.taken.lock().len()), (1, 0), "{status}");
        assert!(tally.ended_by.lock().is_some() && tally.awaited.lock().is_empty());
    }
}

#[test]
fn refused_items_are_named_and_passing_faults_come_again() {
    let dir = folder(&["d/a", "d/b", "d/c"]);
    let items = items(&dir.path().join("d"));
    let answer = json!({
        "uploaded": [{"file_id": "d:b"}],
        "failed": [
            {"index": 0, "error_code": "INVALID_PARAMETERS", "reason": "empty_file"},
            {"index": 2, "error_code": "SERVICE_UNAVAILABLE", "reason": "queue_full"},
        ],
    });
    let script = Script::with(vec![reply(200, answer)]);
    let tally = send(&script, &Pauses::default(), items.clone(), None);
    assert_eq!(script.uploads(), [vec!["d:a", "d:b", "d:c"], vec!["d:c"]]);
    assert_eq!(tally.awaited.lock().len(), 2);
    let failures = tally.failures.lock();
    assert_eq!((failures.len(), failures[0].reason.as_str()), (1, "empty_file"));
    assert!(failures[0].name.ends_with("/d/a") && failures[0].step == Step::Upload);

    // Every item refused: 400 with the list.
    let failed: Vec<Value> =
        (0..3).map(|index| json!({"index": index, "reason": "unsupported"})).collect();
    let script =
        Script::with(vec![reply(400, json!({"reason": "batch_failed", "failed": failed}))]);
    let tally = send(&script, &Pauses::default(), items.clone(), None);
    assert!(tally.failures.lock().iter().all(|failure| failure.reason == "unsupported"));
    // The batch is refused as a whole.
    let body = json!({"reason": "schema_violation", "error_code": "INVALID_PARAMETERS"});
    let script = Script::with(vec![reply(400, body)]);
    let tally = send(&script, &Pauses::default(), items, None);
    assert_eq!(tally.failures.lock().len(), 3);
    assert_eq!(tally.failures.lock()[2].reason, "schema_violation");
    assert!(tally.ended_by.lock().is_none());
}

#[test]
fn files_that_vanish_or_are_too_large_fail_alone() {
    let dir = folder(&["d/a", "d/b", "d/c"]);
    let root = dir.path().join("d");
    let items = items(&root);
    fs::remove_file(root.join("a")).unwrap();
    fs::File::create(root.join("b")).unwrap().set_len((100 << 20) + 1).unwrap();
    let script = Script::default();
    let tally = send(&script, &Pauses::default(), items, None);
    assert_eq!(script.uploads(), [vec!["d:c"]]);
    let failures = tally.failures.lock();
    let codes: Vec<&str> = failures.iter().map(|failure| failure.error_code.as_str()).collect();
    assert_eq!(codes, ["UNREADABLE_FILE", "FILE_TOO_LARGE"]);
    assert!(failures[1].message.contains("100 MiB"), "{}", failures[1].message);
}

#[test]
fn what_was_accepted_is_in_the_state_file_when_the_run_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let files = dir.path().join("d");
    fs::create_dir(&files).unwrap();
    for name in 0..50 {
        fs::write(files.join(format!("{name:02}")), "x").unwrap();
    }
    let path = dir.path().join("state");
    let items = items(&files);
    let accepted: Vec<Value> = items[..20].iter().map(|item| json!({"file_id": item.id})).collect();
    let script = Script::with(vec![reply(200, json!({"uploaded": accepted})), lost(), lost()]);
    let pauses = Pauses { stop_after: Some(2), ..Pauses::default() };
    let state = State::open(&path).unwrap();
    let tally = send(&script, &pauses, items.clone(), Some(&state));
    let ended = tally.ended_by.lock().take();
    assert!(matches!(ended, Some(SendError::Call(CallError::Stopped))), "{ended:?}");
    drop(state);
    let state = State::open(&path).unwrap();
    let known = items.iter().filter(|item| state.entry(&item.id).is_some()).count();
    assert_eq!((known, tally.decided.load(Ordering::Relaxed)), (20, 20));
}

#[test]
fn waiting_ends_with_the_last_job_and_names_what_failed() {
    let script = Script::default();
    script.fates.lock().extend([
        ("a".to_owned(), (1, "success")),
        ("b".to_owned(), (0, "errored")),
        ("c".to_owned(), (3, "success")),
    ]);
    let (pauses, tally) = (Pauses::default(), Tally::default());
    let accepted = ["a", "b", "c"].map(|id| (id.to_owned(), format!("/x/{id}")));
    let ended = with_server(&script, &pauses, |server| wait::wait(&server, &accepted, &tally));
    assert_eq!(ended.unwrap(), 2);
    let failures = tally.failures.lock();
    assert_eq!(failures.len(), 1);
    assert_eq!((failures[0].name.as_str(), failures[0].error_code.as_str()), ("/x/b", "NO_TEXT"));
    assert_eq!(failures[0].step, Step::Processing);
    let warnings = tally.warnings.lock();
    assert_eq!(warnings.len(), 1, "once, at the end: {warnings:?}");
    assert_eq!((&*warnings[0].name, &*warnings[0].message), ("/x/c", "page 2 was not read"));
    assert_eq!(tally.processed.load(Ordering::Relaxed), 3);
    assert!(!pauses.taken.lock().is_empty(), "no round without a pause while jobs run");
}

#[test]
fn waiting_for_what_was_deleted_ends() {
    let gone = json!({"reason": "source_not_found", "message": "m"});
    let script = Script::with(vec![reply(404, gone), reply(200, json!({"sources": []}))]);
    let (pauses, tally) = (Pauses::default(), Tally::default());
    let accepted = [("a".to_owned(), "/x/a".to_owned())];
    let ended = with_server(&script, &pauses, |server| wait::wait(&server, &accepted, &tally));
    assert_eq!(ended.unwrap(), 0);
    assert_eq!(tally.failures.lock()[0].error_code, "NOT_FOUND");
}

#[test]
fn sources_are_asked_for_by_the_thousand() {
    let (script, pauses) = (Script::default(), Pauses::default());
    let ids: Vec<String> = (0..2001).map(|id| id.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let found = with_server(&script, &pauses, |server| server.sources(&ids)).unwrap();
    assert_eq!((found.len(), script.asked.lock().len()), (2001, 3));
    let absent = json!({"reason": "tenant_not_found", "message": "m"});
    let script = Script::with(vec![reply(404, absent)]);
    let found = with_server(&script, &pauses, |server| server.sources(&["a"])).unwrap();
    assert!(found.is_empty(), "a tenant that is not there yet has no sources");
}
