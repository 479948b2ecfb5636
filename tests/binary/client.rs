//! The interactive commands against a real server: their output and exit codes.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::process::http::Client;
use crate::process::lodestone;
use crate::{Installation, KEY, ask, settled, upload};

/// A title that would clear the screen and rename the window, with 8-bit control characters and a
/// text direction override.
const HOSTILE: &str = "Plan\u{1b}[2J\u{1b}]0;owned\u{7}\u{9b}31m\u{202e}end";

/// A command without a profile, a key or a server.
fn bare(installation: &Installation, arguments: &[&str]) -> Command {
    let mut command = lodestone(arguments);
    command.env("XDG_CONFIG_HOME", installation.dir.path().join("config"));
    command.stdout(Stdio::piped());
    command
}

/// A command with the server, the admin key and the tests' tenant.
fn verb(installation: &Installation, client: &Client, arguments: &[&str]) -> Command {
    let mut command = bare(installation, arguments);
    command.env("LODESTONE_SERVER", format!("http://{}", client.address));
    command.env("LODESTONE_API_KEY", KEY).env("LODESTONE_TENANT", "acme");
    command
}

fn output(command: &mut Command) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = command.output().expect("the binary starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status.code(), text(stdout), text(stderr))
}

/// Returns the output of a command that must succeed.
fn printed(installation: &Installation, client: &Client, arguments: &[&str]) -> String {
    let (code, stdout, stderr) = output(&mut verb(installation, client, arguments));
    assert_eq!(code, Some(0), "{arguments:?}: {stdout}{stderr}");
    stdout
}

/// Returns the exit code and message of a command that must fail.
fn failed(command: &mut Command) -> (Option<i32>, String) {
    let (code, stdout, stderr) = output(command);
    assert_eq!(stdout, "", "{stderr}");
    (code, stderr)
}

fn write_profiles(installation: &Installation, text: &str, mode: u32) {
    let dir = installation.dir.path().join("config/lodestone");
    std::fs::create_dir_all(&dir).expect("a new folder");
    let path = dir.join("profiles.toml");
    std::fs::write(&path, text).expect("a new file");
    set_mode(&path, mode);
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("our own file");
}

fn is_harmless(text: &str) -> bool {
    !text.contains(|c: char| (c.is_control() && c != '\n' && c != '\t') || c == '\u{202e}')
}

#[test]
fn documents_are_found_asked_about_listed_and_deleted() {
    let Some(installation) = Installation::new("client::documents") else { return };
    let (_server, client) = installation.start();
    upload(&client, "parking", "Visitors park on level 1. Employees park on level 2.");
    settled(&client, "parking");
    let run = |arguments: &[&str]| printed(&installation, &client, arguments);

    let found = run(&["search", "where do visitors park?", "-n", "3"]);
    let row: Vec<&str> = found.lines().next().expect("a row").split('\t').collect();
    assert_eq!((row.len(), row[1]), (5, "parking"), "{found}");
    assert!(row[4].contains("level 1"), "{found}");

    let answer = run(&["ask", "Where do visitors park?"]);
    assert!(answer.contains("level 1"), "{answer}");
    let cited = answer.lines().last().expect("a citation");
    assert!(cited.starts_with("[1] ") && cited.ends_with("(parking)"), "{answer}");

    for nothing in [
        &["ask", "Who won the match in Lisbon?"][..],
        &["ask", "Who won the match in Lisbon?", "--json"],
        &["search", "parking", "--sub-tenant", "empty"],
        &["search", "parking", "--sub-tenant", "empty", "--json"],
    ] {
        let (code, told, error) = output(&mut verb(&installation, &client, nothing));
        assert!(code == Some(5) && error.contains("nothing was found"), "{nothing:?}: {error}");
        assert_eq!(told.starts_with('{'), nothing.contains(&"--json"), "{told}");
    }

    let listed = run(&["sources", "ls"]);
    assert!(listed.starts_with("parking\tsuccess\ttext\t1\t20"), "{listed}");
    let shown = run(&["sources", "show", "parking"]);
    assert!(shown.contains("id\tparking\n") && shown.contains("status\tsuccess\n"), "{shown}");
    let jobs = run(&["jobs", "ls", "--status", "success"]);
    assert!(jobs.starts_with("success\tacme\tparking\t"), "{jobs}");
    let job = jobs.trim_end().rsplit('\t').next().expect("an id");
    let done = failed(&mut verb(&installation, &client, &["jobs", "retry", job]));
    assert!(done.0 == Some(1) && done.1.contains("has succeeded"), "{done:?}");
    let two = ["jobs", "retry", "job_none", job];
    let done = failed(&mut verb(&installation, &client, &two));
    assert!(done.0 == Some(1) && done.1.contains("has succeeded"), "it goes on: {done:?}");
    assert!(done.1.contains("job_none: ") && done.1.contains("2 of 2 jobs were not"), "{done:?}");
    let of_other = ["jobs", "retry", job, "--tenant", "other"];
    let done = failed(&mut verb(&installation, &client, &of_other));
    assert!(done.0 == Some(3) && done.1.contains("tenant_not_found"), "{done:?}");

    let unasked = failed(&mut verb(&installation, &client, &["sources", "rm", "parking"]));
    assert!(unasked.0 == Some(2) && unasked.1.contains("--yes"), "{unasked:?}");
    assert_eq!(run(&["sources", "rm", "parking", "--yes"]), "parking\n");
    let again = failed(&mut verb(&installation, &client, &["sources", "rm", "parking", "--yes"]));
    assert!(again.0 == Some(3) && again.1.contains("parking"), "{again:?}");
    let gone = failed(&mut verb(&installation, &client, &["sources", "show", "parking"]));
    assert_eq!(gone.0, Some(3), "{gone:?}");
}

#[test]
fn the_help_of_an_operation_offers_what_it_goes_by() {
    let help = |arguments: &[&str]| {
        let (code, stdout, _) = output(&mut lodestone(arguments));
        assert_eq!(code, Some(0), "{arguments:?}");
        stdout
    };
    let offers = |text: &str| (text.contains("--tenant "), text.contains("--server "));
    assert_eq!(offers(&help(&["tenant", "limits", "--help"])), (false, true));
    assert_eq!(offers(&help(&["key", "create", "--help"])), (false, true));
    assert_eq!(offers(&help(&["tenant", "usage", "--help"])), (true, true));
}

#[test]
fn json_is_the_answer_of_the_server() {
    let Some(installation) = Installation::new("client::json") else { return };
    let (_server, client) = installation.start();
    upload(&client, "a", "Akira Kurosawa directed Ran. Ran was made in Japan.");
    settled(&client, "a");
    let of = |arguments: &[&str]| -> Value {
        let printed = printed(&installation, &client, arguments);
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    };
    let wire = |path: &str| ask(&client, "GET", path, Value::Null);
    let by_id = json!({"tenant_id": "acme", "source_ids": ["a"]});
    let relations = of(&["graph", "--source", "a", "--json"]);
    assert_eq!(relations, ask(&client, "POST", "/list/graph_relations_by_id", by_id.clone()));
    assert_eq!(of(&["sources", "ls", "--json"]), wire("/list/sources?tenant_id=acme"));
    let shown = ask(&client, "POST", "/list/sources_by_id", by_id);
    assert_eq!(of(&["sources", "show", "a", "--json"]), shown);
    assert_eq!(of(&["jobs", "ls", "--json"]), wire("/jobs?tenant_id=acme&limit=50"));
    assert_eq!(of(&["tenant", "ls", "--json"]), wire("/tenant/list"));
    assert_eq!(of(&["tenant", "stats", "--json"]), wire("/tenant/stats?tenant_id=acme"));
    let limits = ["tenant", "limits", "acme", "--max-sources", "9", "--json"];
    let set = of(&limits);
    assert_eq!(
        (&set["limits"]["max_sources"], &set["own_limits"]["max_bytes"]),
        (&json!(9), &Value::Null)
    );
    let usage = of(&["tenant", "usage", "--json"]);
    assert_eq!(usage, wire("/tenant/usage?tenant_id=acme"));
    assert_eq!(usage["limits"], set["limits"]);
    let limits = |flags: &[&str]| of(&[&["tenant", "limits", "acme", "--json"], flags].concat());
    assert_eq!(limits(&[])["own_limits"], set["own_limits"], "no flag changes nothing");
    limits(&["--max-vectors", "5000", "--max-bytes", "1000000"]);
    let own = &limits(&["--max-bytes", "none"])["own_limits"];
    assert_eq!(
        (&own["max_sources"], &own["max_vectors"], &own["max_bytes"]),
        (&json!(9), &json!(5000), &Value::Null),
        "what is not given stays"
    );
    assert_eq!(of(&["key", "ls", "--json"]), wire("/admin/api_keys"));
    let body = json!({"tenant_id": "acme", "query": "Ran"});
    let found = ask(&client, "POST", "/search/retrieve", body);
    assert_eq!(of(&["search", "Ran", "--json"])["chunks"], found["chunks"]);
    let body = json!({"tenant_id": "acme", "question": "Who directed Ran?"});
    let answer = ask(&client, "POST", "/search/qna", body);
    assert_eq!(of(&["ask", "Who directed Ran?", "--json"])["answer"], answer["answer"]);

    let mut unknown = verb(&installation, &client, &["tenant", "stats", "nobody", "--json"]);
    let (code, stdout, _) = output(&mut unknown);
    let error: Value = serde_json::from_str(&stdout).expect("the error body");
    assert_eq!((code, &error["reason"]), (Some(3), &json!("tenant_not_found")));

    let related = printed(&installation, &client, &["graph", "Ran"]);
    assert_eq!(related.is_empty(), relations["relations"]["a"] == json!([]), "{related}");
}

#[test]
fn tenants_keys_and_memories_come_and_go() {
    let Some(installation) = Installation::new("client::tenants") else { return };
    let (_server, client) = installation.start();
    let run = |arguments: &[&str]| printed(&installation, &client, arguments);
    assert_eq!(run(&["tenant", "create", "acme"]), "acme\n");
    assert!(run(&["tenant", "ls"]).starts_with("acme\tstandard\t20"));

    let memory = run(&["memory", "add", "Prefers answers in metres."]);
    assert!(run(&["memory", "ls"]).contains("in metres"));
    assert!(run(&["memory", "search", "units of length"]).starts_with(memory.trim()));
    assert!(run(&["tenant", "stats"]).contains("memories\t1\n"));
    assert_eq!(run(&["memory", "rm", memory.trim(), "--yes"]), memory);
    assert_eq!(run(&["memory", "ls"]), "");

    // A flag that does not restrict a key is refused: the environment's tenant is for other
    // commands.
    let wide = ["key", "create", "wide", "--role", "read", "--tenant", "acme"];
    let hook = ["webhook", "add", "https://example.com/", "--sub-tenant", "a"];
    for arguments in [&wide[..], &hook[..]] {
        let (code, message) = failed(&mut verb(&installation, &client, arguments));
        assert!(code == Some(2) && message.contains("--scope"), "{message}");
    }
    assert!(!run(&["key", "ls"]).contains("wide"));
    let key = run(&["key", "create", "reader", "--role", "read", "--scope", "acme"]);
    let file = installation.dir.path().join("key");
    std::fs::write(&file, &key).expect("a new file");
    let with_file = |arguments: &[&str]| {
        let mut command = verb(&installation, &client, arguments);
        command.env_remove("LODESTONE_API_KEY").env("LODESTONE_API_KEY_FILE", &file);
        command
    };
    assert_eq!(output(&mut with_file(&["sources", "ls"])).0, Some(0));
    let (code, message) = failed(&mut with_file(&["memory", "add", "No."]));
    assert!(code == Some(4) && message.contains("insufficient_role"), "{message}");
    let listed = run(&["key", "ls"]);
    let row = listed.lines().find(|line| line.contains("\treader\tread\tacme\t"));
    let id = row.and_then(|row| row.split('\t').next()).expect("the key");
    assert!(!listed.contains(key.trim()));
    assert_eq!(run(&["key", "revoke", id, "--yes"]), format!("{id}\n"));
    let (code, message) = failed(&mut with_file(&["sources", "ls"]));
    assert!(code == Some(4) && message.contains("invalid_api_key"), "{message}");

    assert_eq!(run(&["tenant", "rm", "acme", "--yes"]), "acme\n");
    let gone = failed(&mut verb(&installation, &client, &["tenant", "stats"]));
    assert!(gone.0 == Some(3) && gone.1.contains("tenant_not_found"), "{gone:?}");
}

#[test]
fn failures_tell_what_to_do() {
    let Some(installation) = Installation::new("client::failures") else { return };
    let (server, client) = installation.start();
    let of = |arguments: &[&str]| verb(&installation, &client, arguments);
    let (code, message) = failed(of(&["sources", "ls"]).env("LODESTONE_API_KEY", "wrong"));
    assert!(code == Some(4) && message.contains("LODESTONE_API_KEY"), "{message}");
    let (code, message) = failed(of(&["sources", "ls"]).env_remove("LODESTONE_API_KEY"));
    assert!(code == Some(4) && message.contains("missing_api_key"), "{message}");
    let (code, message) = failed(of(&["search", "x"]).env("LODESTONE_TENANT", "nobody"));
    assert!(code == Some(3) && message.contains("tenant_not_found"), "{message}");
    let (code, message) = failed(of(&["search", "x"]).env_remove("LODESTONE_TENANT"));
    assert!(code == Some(2) && message.contains("LODESTONE_TENANT"), "{message}");
    let (code, message) = failed(&mut of(&["search", "x", "--api-key-file", "/no/such/file"]));
    assert!(code == Some(2) && message.contains("/no/such/file"), "{message}");
    let (code, message) = failed(&mut of(&["search", "x", "-n", "1002"]));
    assert!(
        code == Some(2) && message.contains("--limit") && message.contains("1001"),
        "{message}"
    );
    // A key from a file may end in a line break; a line break in its middle is a local error.
    let (code, message) = failed(of(&["search", "x"]).env("LODESTONE_API_KEY", format!("{KEY}\n")));
    assert!(code == Some(3) && message.contains("tenant_not_found"), "{message}");
    let (code, message) = failed(of(&["search", "x"]).env("LODESTONE_API_KEY", "half\na key"));
    assert!(code == Some(2) && message.contains("the API key contains a line break"), "{message}");
    let secure = format!("https://{}", client.address);
    let (code, message) = failed(of(&["sources", "ls"]).env("LODESTONE_SERVER", secure));
    assert!(code == Some(1) && message.contains("use an http:// address"), "{message}");
    let bare = client.address.to_string();
    let (code, message) = failed(of(&["sources", "ls"]).env("LODESTONE_SERVER", bare));
    assert!(
        code == Some(2) && message.contains("must begin with http:// or https://"),
        "{message}"
    );
    let empty = installation.dir.path().join("empty");
    std::fs::create_dir(&empty).expect("a new folder");
    let empty = empty.to_str().expect("UTF-8");
    for (arguments, problem) in [
        (["ingest", empty, "--jobs", "1"], "all files are hidden or excluded"),
        (["ingest", empty, "--metadata", "[1]"], "--metadata: must be a JSON object"),
        (["ingest", empty, "--metadata", "{bad"], "--metadata: must be a JSON object"),
        (["import", empty, "--from", "archive"], "empty: is a folder"),
    ] {
        let (code, message) = failed(&mut of(&arguments));
        assert!(code == Some(2) && message.contains(problem), "{message}");
    }
    let (code, message) = failed(&mut of(&["sources", "ls", "--status", "odd"]));
    assert!(code == Some(1) && message.contains("status"), "{message}");
    assert_eq!(failed(&mut of(&["sources"])).0, Some(2));
    server.kill();
    let (code, message) = failed(&mut of(&["sources", "ls"]));
    assert!(code == Some(1) && message.contains("lodestone serve"), "{message}");
}

#[test]
fn a_profile_names_server_key_and_tenant() {
    let Some(installation) = Installation::new("client::profile") else { return };
    let (_server, client) = installation.start();
    upload(&client, "a", "Something to list.");
    settled(&client, "a");
    let server = format!("http://{}", client.address);
    let work = format!("[work]\nserver = \"{server}\"\ntenant = \"acme\"\napi-key = \"{KEY}\"\n");
    write_profiles(&installation, &work, 0o600);
    let list = ["sources", "ls", "--profile", "work"];
    let (code, listed, message) = output(&mut bare(&installation, &list));
    assert!(code == Some(0) && listed.starts_with("a\t"), "{listed}{message}");

    // The key of one server is not sent to another.
    let mut elsewhere = bare(&installation, &list);
    elsewhere.args(["--server", &server.replace("127.0.0.1", "localhost")]);
    let (code, message) = failed(&mut elsewhere);
    assert!(code == Some(4) && message.contains("missing_api_key"), "{message}");

    let (code, message) = failed(&mut bare(&installation, &["sources", "ls", "--profile", "no"]));
    assert!(code == Some(2) && message.contains("profile no not found"), "{message}");
    write_profiles(&installation, &work, 0o640);
    let (code, message) = failed(&mut bare(&installation, &list));
    assert!(code == Some(2) && message.contains("chmod 600"), "{message}");
    assert!(!message.contains(KEY), "{message}");
}

#[test]
fn a_hostile_title_does_not_reach_the_terminal() {
    let Some(installation) = Installation::new("client::hostile") else { return };
    let (_server, client) = installation.start();
    let content = format!("The plan of the {HOSTILE} is to wait.");
    let body = json!({"file_id": "a", "title": HOSTILE, "content": content});
    ask(&client, "POST", "/upload/upload_text?tenant_id=acme", body);
    settled(&client, "a");
    for arguments in [
        &["sources", "ls"][..],
        &["sources", "show", "a"],
        &["search", "plan"],
        &["ask", "What is the plan?"],
    ] {
        let text = printed(&installation, &client, arguments);
        assert!(text.contains("lan") && is_harmless(&text), "{text:?}");
        // On a terminal of 60 columns, as a table and as JSON.
        for json in ["", " --json"] {
            let line = format!(
                "stty rows 24 cols 60; exec {} {}{json}",
                env!("CARGO_BIN_EXE_lodestone"),
                arguments.iter().map(|word| format!("'{word}'")).collect::<Vec<_>>().join(" ")
            );
            let mut command = Command::new("script");
            command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null());
            for (name, value) in verb(&installation, &client, &[]).get_envs() {
                if let Some(value) = value {
                    command.env(name, value);
                }
            }
            let Ok(output) = command.output() else {
                println!("SKIPPED the terminal of client::hostile: no script");
                continue;
            };
            let text = String::from_utf8(output.stdout).expect("UTF-8").replace('\r', "");
            assert!(text.contains("lan") && is_harmless(&text), "{line}: {text:?}");
            if arguments == ["sources", "ls"] && json.is_empty() {
                assert!(text.starts_with("ID") && text.contains("TITLE"), "{text}");
                assert!(text.lines().all(|line| line.chars().count() <= 60), "{text}");
            }
        }
    }
}

#[test]
fn a_reader_that_leaves_ends_a_verb_quietly() {
    let Some(installation) = Installation::new("client::broken_pipe") else { return };
    let (_server, client) = installation.start();
    // More output than a pipe holds, so that the command notices that its reader is gone.
    let text = "Everyone waits in the northern hall. ".repeat(50);
    let items: Vec<Value> = (0..100)
        .map(|number| {
            json!({"file_id": format!("{number}-{}", "x".repeat(200)), "title": text,
            "content": text})
        })
        .collect();
    ask(&client, "POST", "/upload/batch_upload_text?tenant_id=acme", json!({"items": items}));
    let mut command = verb(&installation, &client, &["sources", "ls", "--json"]);
    let mut child = command.spawn().expect("the binary starts");
    let mut reader = BufReader::new(child.stdout.take().expect("a pipe"));
    assert!(!reader.fill_buf().expect("some output").is_empty());
    drop(reader);
    let output = child.wait_with_output().expect("it ends");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && message.is_empty(), "{:?}: {message}", output.status);
}

/// Goal: a listing or an archive truncated by a full disk is a failure whose message names the
/// cause.
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let Some(installation) = Installation::new("client::full") else { return };
    let (_server, client) = installation.start();
    upload(&client, "a", "Something to list.");
    assert_eq!(settled(&client, "a"), "success");
    for arguments in [&["sources", "ls"][..], &["sources", "ls", "--json"], &["export", "-"]] {
        let mut command = verb(&installation, &client, arguments);
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("a device");
        let Output { status, stderr, .. } = command.stdout(full).output().expect("it starts");
        let message = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(1), "{arguments:?}: {message}");
        assert!(message.starts_with("lodestone: standard output: No space left"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
}

/// Goal: a key or webhook whose secret could not be printed does not remain on the server.
#[test]
fn a_secret_that_cannot_be_printed_is_taken_back() {
    let Some(installation) = Installation::new("client::secret") else { return };
    let (_server, client) = installation.start();
    let listed = || ask(&client, "GET", "/admin/api_keys", Value::Null)["api_keys"].clone();
    let before = listed();
    for (arguments, id) in [
        (&["key", "create", "k", "--role", "read"][..], "key_"),
        (&["key", "create", "k", "--role", "read", "--json"], "key_"),
        (&["webhook", "add", "https://hooks.example.com/x"], "whk_"),
    ] {
        let mut command = verb(&installation, &client, arguments);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let Output { status, stderr, .. } = command.stdout(writer).output().expect("it starts");
        let message = String::from_utf8_lossy(&stderr);
        assert_eq!(status.code(), Some(1), "{arguments:?}: {message}");
        let start = format!("lodestone: standard output: Broken pipe (os error 32); {id}");
        assert!(message.starts_with(&start), "{message}");
        assert!(message.contains("was deleted again"), "{message}");
        assert_eq!(message.lines().count(), 1, "{message}");
    }
    assert_eq!(listed(), before);
    let webhooks = ask(&client, "GET", "/admin/webhooks", Value::Null);
    assert_eq!(webhooks["webhooks"], json!([]));
}

#[test]
fn completions_are_printed_for_every_shell() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = lodestone(&["completions", shell]).output().expect("the binary starts");
        let script = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success() && script.contains("sources"), "{shell}");
    }
    assert_eq!(
        lodestone(&["completions", "cmd"]).output().expect("it starts").status.code(),
        Some(2)
    );
}

#[test]
fn mcp_answers_every_line_and_ends_with_its_input() {
    let Some(installation) = Installation::new("client::mcp") else { return };
    let (server, client) = installation.start();
    upload(&client, "lamps", "Forty lamps hang in the northern hall.");
    settled(&client, "lamps");
    let messages = |lines: &[&str]| -> Vec<Value> {
        let mut command = verb(&installation, &client, &["mcp"]);
        let mut child = command.stdin(Stdio::piped()).spawn().expect("the binary starts");
        let mut input = child.stdin.take().expect("a pipe");
        input.write_all(lines.join("\n").as_bytes()).expect("it listens");
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let mut said: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        said.sort_by_key(|message| message["id"].as_u64());
        said
    };
    let request = |id: u32, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"}});
    let question = json!({"question": "How many lamps hang in the hall?"});
    let long = "long ".repeat(1 << 18);
    let said = messages(&[
        &request(1, "initialize", hello),
        "no JSON",
        "",
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        &request(2, "tools/call", json!({"name": "ask", "arguments": question})),
        &request(3, "no/such/method", json!({})),
        r#"[{"jsonrpc":"2.0","id":4,"method":"ping"}]"#,
        &request(5, "tools/call", json!({"name": "add_text", "arguments": {"text": long}})),
    ]);
    assert_eq!(said.len(), 6, "{said:?}");
    assert_eq!(said[0]["error"]["code"], -32700);
    assert_eq!((&said[1]["id"], &said[1]["error"]["code"]), (&Value::Null, &json!(-32600)));
    let told = said[5]["error"]["message"].as_str().expect("an error");
    assert!(told.ends_with("the server accepts at most 1048576"), "{told}");
    let said = &said[1..];
    assert_eq!(said[1]["result"]["protocolVersion"], "2025-06-18");
    let answer = said[2]["result"]["structuredContent"]["answer"].as_str().expect("an answer");
    assert!(answer.contains("Forty lamps"), "{answer}");
    assert_eq!(said[3]["error"]["code"], -32601);

    drop(server);
    let said = messages(&[r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#]);
    let told = said[0]["error"]["message"].as_str().expect("an error");
    assert!(told.contains("no server answers"), "{told}");
}
