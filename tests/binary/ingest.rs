//! `lodestone ingest` against a real server: a folder ingested once, again, after changes, and
//! through kills.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::process::{Server, lodestone};
use crate::{Installation, KEY, ask, found};

/// Enough for several batches of twenty.
const FILES: usize = 60;
/// Enough that most are still to come when the first batch is accepted.
const MANY_FILES: usize = 400;

fn folder(installation: &Installation, count: usize) -> PathBuf {
    let docs = installation.dir.path().join("docs");
    for number in 0..count {
        let below = docs.join(format!("part{}", number % 3));
        std::fs::create_dir_all(&below).expect("a new folder");
        let text = format!("Everyone knows that word{number} stands in the northern hall.");
        std::fs::write(below.join(format!("{number}.txt")), text).expect("a new file");
    }
    docs
}

fn state(installation: &Installation) -> PathBuf {
    installation.dir.path().join("state.jsonl")
}

/// The command for one folder, with its summary as JSON.
fn command(installation: &Installation, client: &Client, docs: &Path) -> Command {
    let server = format!("http://{}", client.address);
    let mut command = lodestone(&["ingest", "--server", &server, "--tenant", "acme", "--json"]);
    command.arg("--state").arg(state(installation)).arg(docs).env("LODESTONE_API_KEY", KEY);
    command.stdout(Stdio::piped());
    command
}

/// The exit code and the summary.
fn ended(output: &Output) -> (Option<i32>, Value) {
    let said = String::from_utf8_lossy(&output.stderr);
    let summary = serde_json::from_slice(&output.stdout);
    (output.status.code(), summary.unwrap_or_else(|error| panic!("no summary: {error}: {said}")))
}

fn run(command: &mut Command) -> (Option<i32>, Value) {
    ended(&command.output().expect("the binary starts"))
}

fn total(client: &Client) -> usize {
    let listed = ask(client, "GET", "/list/sources?tenant_id=acme", Value::Null);
    listed["total"].as_u64().expect("a number") as usize
}

/// The number of complete lines in the state file.
fn remembered(installation: &Installation) -> usize {
    let state = std::fs::read(state(installation)).unwrap_or_default();
    state.iter().filter(|byte| **byte == b'\n').count()
}

/// Waits until something has been accepted.
fn until_something_is_remembered(installation: &Installation) {
    let mut patience = Patience::new();
    while remembered(installation) == 0 {
        assert!(!patience.is_over(()), "nothing was accepted");
    }
}

#[test]
fn a_folder_goes_in_once_and_what_fails_is_named() {
    let Some(installation) = Installation::new("a_folder_goes_in_once_and_what_fails_is_named")
    else {
        return;
    };
    let (_server, client) = installation.start();
    let docs = folder(&installation, FILES - 2);
    std::fs::write(docs.join("empty.txt"), "").expect("a new file");
    std::fs::write(docs.join("picture.png"), b"\x89PNG\r\n\x1a\n\0\0").expect("a new file");
    std::fs::write(docs.join(".hidden"), "not meant").expect("a new file");
    let good = FILES - 2;

    let mut first = command(&installation, &client, &docs);
    first.args(["--metadata", r#"{"team": "red"}"#]);
    let (code, summary) = run(&mut first);
    assert_eq!(code, Some(1), "{summary}");
    assert_eq!((&summary["sent"], &summary["processed"]), (&json!(good), &json!(good)));
    assert_eq!(summary["left_out"]["hidden"], 1);
    let failed = summary["failed"].as_array().expect("a list");
    let reasons: Vec<(&str, &str)> = failed
        .iter()
        .map(|failure| {
            let name = failure["name"].as_str().expect("a name");
            let name = name.rsplit('/').next().expect("a last part");
            (name, failure["reason"].as_str().expect("a reason"))
        })
        .collect();
    assert_eq!(reasons, [("empty.txt", "empty_file"), ("picture.png", "unsupported_file_format")]);
    assert_eq!(total(&client), good);
    assert_eq!(found(&client, "word7"), ["docs:part1:7.txt"]);
    let body = json!({"tenant_id": "acme", "source_ids": ["docs:part1:7.txt"]});
    let source = &ask(&client, "POST", "/list/sources_by_id", body)["sources"][0];
    assert_eq!(
        (&source["title"], &source["document_metadata"]["team"]),
        (&json!("7.txt"), &json!("red"))
    );

    let (code, summary) = run(&mut first);
    assert_eq!((code, &summary["sent"]), (Some(1), &json!(0)), "{summary}");
    assert_eq!(summary["skipped_unchanged"], good);

    for name in ["empty.txt", "picture.png"] {
        std::fs::remove_file(docs.join(name)).expect("a file that can go");
    }
    std::fs::write(docs.join("part1/7.txt"), "Nobody knows of changedword.").expect("a file");
    let (code, summary) = run(&mut first);
    assert_eq!((code, &summary["sent"]), (Some(0), &json!(1)), "{summary}");
    assert_eq!(found(&client, "changedword"), ["docs:part1:7.txt"]);
    assert_eq!((total(&client), found(&client, "word7").len()), (good, 0));

    // Files that the server has lost are sent again.
    let gone = json!({"tenant_id": "acme", "source_ids": ["docs:part0:0.txt"]});
    ask(&client, "DELETE", "/upload/delete_source", gone);
    let (code, summary) = run(&mut first);
    assert_eq!((code, &summary["sent"]), (Some(0), &json!(1)), "{summary}");
    // Runs without metadata options keep the stored metadata, also of changed files; new metadata
    // alone causes an update.
    std::fs::write(docs.join("part1/7.txt"), "Nobody knows of otherword.").expect("a file");
    let (code, summary) = run(&mut command(&installation, &client, &docs));
    assert_eq!((code, &summary["sent"]), (Some(0), &json!(1)), "{summary}");
    assert_eq!(found(&client, "otherword"), ["docs:part1:7.txt"]);
    let teams = || {
        let listed = ask(&client, "GET", "/list/sources?tenant_id=acme", Value::Null);
        let sources = listed["sources"].as_array().expect("a list").iter();
        let team = |source: &Value| source["document_metadata"]["team"].as_str().map(str::to_owned);
        let mut teams: Vec<Option<String>> = sources.map(team).collect();
        teams.dedup();
        teams
    };
    assert_eq!(teams(), [Some("red".to_owned())]);
    let mut other = command(&installation, &client, &docs);
    other.args(["--metadata", r#"{"team": "blue"}"#]);
    let (code, summary) = run(&mut other);
    let counts = (&summary["sent"], &summary["metadata_updated"], &summary["skipped_unchanged"]);
    assert_eq!((code, counts), (Some(0), (&json!(0), &json!(good), &json!(0))), "{summary}");
    assert_eq!((teams(), total(&client)), (vec![Some("blue".to_owned())], good));
}

/// Goal: `--delete` deletes sources that earlier runs sent and whose files are gone, and no others.
#[test]
fn sources_whose_files_are_gone_are_deleted_when_asked() {
    let Some(installation) = Installation::new("sources_whose_files_are_gone") else { return };
    let (_server, client) = installation.start();
    let docs = folder(&installation, 6);
    let body = json!({"file_id": "docs:part0:by-hand.txt", "content": "Sent by another program."});
    ask(&client, "POST", "/upload/upload_text?tenant_id=acme", body);
    let (code, summary) = run(&mut command(&installation, &client, &docs));
    assert_eq!((code, &summary["deleted"]), (Some(0), &json!(0)), "{summary}");
    for name in ["part0/0.txt", "part1/1.txt"] {
        std::fs::remove_file(docs.join(name)).expect("a file that can go");
    }

    let (_, summary) = run(&mut command(&installation, &client, &docs));
    assert_eq!((&summary["deleted"], total(&client)), (&json!(0), 7), "only when asked: {summary}");
    let mut deleting = command(&installation, &client, &docs);
    deleting.args(["--delete", "--exclude", "part2"]);
    let planned = run(command(&installation, &client, &docs).args(["--delete", "--dry-run"])).1;
    let gone = json!(["docs:part0:0.txt", "docs:part1:1.txt"]);
    assert_eq!((&planned["would_delete"], total(&client)), (&gone, 7));
    let (code, summary) = run(&mut deleting);
    assert_eq!((code, &summary["deleted"]), (Some(0), &json!(2)), "{summary}");
    let ids: Vec<&str> = summary["deleted_sources"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|source| source["file_id"].as_str().expect("an id"))
        .collect();
    assert_eq!(ids, ["docs:part0:0.txt", "docs:part1:1.txt"]);
    assert_eq!(total(&client), 5, "what a pattern leaves out is not gone");
    assert_eq!(found(&client, "word0").len() + found(&client, "word1").len(), 0);
    assert_eq!(run(&mut deleting).1["deleted"], 0, "it is forgotten");

    for part in ["part0", "part1", "part2"] {
        std::fs::remove_dir_all(docs.join(part)).expect("a folder that can go");
    }
    let refused = command(&installation, &client, &docs).output().expect("the binary starts");
    assert_eq!(refused.status.code(), Some(2), "an empty folder says nothing without --delete");
    let emptied = || {
        let mut command = command(&installation, &client, &docs);
        command.arg("--delete");
        command
    };
    let asked = emptied().output().expect("the binary starts");
    let told = String::from_utf8_lossy(&asked.stderr).into_owned();
    assert_eq!(asked.status.code(), Some(2), "the folder may be one that is not mounted: {told}");
    assert!(told.contains("delete its 4 sources") && told.contains("--yes"), "{told}");
    assert_eq!(total(&client), 5, "nothing is deleted unasked");
    let (code, summary) = run(emptied().arg("--yes"));
    assert_eq!((code, &summary["deleted"]), (Some(0), &json!(4)), "{summary}");
    assert_eq!(total(&client), 1, "what another program sent stays");
    let (code, summary) = run(&mut emptied());
    assert_eq!((code, &summary["deleted"]), (Some(0), &json!(0)), "{summary}");
    std::fs::remove_dir(&docs).expect("an empty folder");
    let refused = emptied().output().expect("the binary starts");
    assert_eq!(refused.status.code(), Some(2), "a folder that is not there may be elsewhere");
}

#[test]
fn a_killed_client_goes_on_where_it_was() {
    let Some(installation) = Installation::new("a_killed_client_goes_on_where_it_was") else {
        return;
    };
    let (_server, client) = installation.start();
    let docs = folder(&installation, MANY_FILES);
    let mut first = command(&installation, &client, &docs);
    first.args(["--jobs", "1", "--no-wait"]);
    let mut first = first.stderr(Stdio::null()).spawn().expect("the binary starts");
    until_something_is_remembered(&installation);
    first.kill().expect("a child can be killed");
    first.wait().expect("a child can be waited for");
    let before = remembered(&installation);

    let (code, summary) = run(&mut command(&installation, &client, &docs));
    assert_eq!(code, Some(0), "{summary}");
    assert_eq!(summary["skipped_unchanged"], before, "{summary}");
    assert_eq!(summary["sent"], MANY_FILES - before, "{summary}");
    assert_eq!(total(&client), MANY_FILES);
}

#[test]
fn a_killed_server_is_waited_for() {
    let Some(installation) = Installation::new("a_killed_server_is_waited_for") else { return };
    let (server, client) = installation.start();
    let docs = folder(&installation, MANY_FILES);
    let mut child = command(&installation, &client, &docs);
    let child = child.args(["--jobs", "1"]).spawn().expect("the binary starts");
    until_something_is_remembered(&installation);
    server.kill();

    let listen = client.address.to_string();
    let mut again = lodestone(&["serve", "--listen", &listen]);
    again.arg("--data-dir").arg(installation.data()).arg("--model-dir").arg(&installation.model);
    again.env("LODESTONE_ADMIN_KEY", KEY);
    let mut again = Server::run(again);
    again.ready();
    let (code, summary) = ended(&child.wait_with_output().expect("a child can be waited for"));
    assert_eq!(code, Some(0), "{summary}");
    assert_eq!((&summary["sent"], &summary["processed"]), (&json!(MANY_FILES), &json!(MANY_FILES)));
    assert_eq!(total(&client), MANY_FILES);
    assert_eq!(found(&client, "word399"), ["docs:part0:399.txt"]);
}

#[test]
fn what_cannot_work_ends_at_once_with_one_line() {
    let Some(installation) = Installation::new("what_cannot_work_ends_at_once_with_one_line")
    else {
        return;
    };
    let (server, client) = installation.start();
    let docs = folder(&installation, 3);
    let refused = |command: &mut Command, word: &str| {
        let output = command.output().expect("the binary starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    };
    let wrong = KEY.replace('1', "2");
    refused(command(&installation, &client, &docs).env("LODESTONE_API_KEY", &wrong), "401");
    refused(command(&installation, &client, &docs).args(["--metadata", "[]"]), "--metadata");
    refused(&mut command(&installation, &client, &docs.join("absent")), "absent");
    let key_file = installation.dir.path().join("key");
    std::fs::write(&key_file, format!("{KEY}\n")).expect("a new file");
    let mut with_file = command(&installation, &client, &docs);
    with_file.env("LODESTONE_API_KEY", &wrong).arg("--api-key-file").arg(&key_file);
    assert_eq!(run(&mut with_file).0, Some(0));
    let mut of_profile = lodestone(&["ingest", "--profile", "work", "--no-state", "--json"]);
    let profile = format!(
        "[work]\nserver = \"http://{}\"\napi-key-file = {key_file:?}\ntenant = \"of-profile\"\n",
        client.address
    );
    std::fs::create_dir(installation.dir.path().join("lodestone")).expect("a new folder");
    std::fs::write(installation.dir.path().join("lodestone/profiles.toml"), profile)
        .expect("a new file");
    of_profile.arg(&docs).env("XDG_CONFIG_HOME", installation.dir.path());
    assert_eq!(run(of_profile.stdout(Stdio::piped())).0, Some(0));
    let listed = ask(&client, "GET", "/list/sources?tenant_id=of-profile", Value::Null);
    assert_eq!(listed["total"], 3, "{listed}");
    std::fs::remove_file(state(&installation)).expect("it was written");
    let output = command(&installation, &client, &docs).arg("--dry-run").output();
    let planned = ended(&output.expect("the binary starts")).1;
    assert_eq!(planned["would_send"][0]["file_id"], "docs:part0:0.txt");
    server.kill();
    refused(&mut command(&installation, &client, &docs), "is a server running there");
}
