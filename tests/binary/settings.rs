//! Settings of the environment as they act, and what a log of everything tells.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::process::http::Client;
use crate::process::lodestone;
use crate::process::patience::STILL;
use crate::{Installation, KEY, ask, found, settled, upload};

/// The whole answer to a listing of tenants, header included.
fn listed(client: &Client) -> String {
    let mut stream = TcpStream::connect(client.address).expect("a connection");
    stream.set_read_timeout(Some(STILL)).expect("a time above zero");
    let head = "GET /tenant/list HTTP/1.1\r\nhost: lodestone\r\nconnection: close\r\n";
    let request = format!("{head}authorization: Bearer {}\r\n\r\n", client.key);
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in UTF-8");
    answer
}

/// Statement 57: `LODESTONE_RATE_LIMIT` bounds each key; the answer names the seconds to wait.
#[test]
fn a_rate_limit_of_the_environment_bounds_each_key() {
    let Some(installation) = Installation::new("a_rate_limit_of_the_environment") else { return };
    let (_server, client) = installation.start_with(&[("LODESTONE_RATE_LIMIT", "0.01/4")]);
    let body = json!({"name": "another", "role": "read"});
    let made = ask(&client, "POST", "/admin/api_keys", body)["api_key"].clone();
    let another = Client { key: made.as_str().expect("a key").to_owned(), ..client.clone() };
    for _ in 0..3 {
        ask(&client, "GET", "/tenant/list", Value::Null);
    }
    let refused = listed(&client);
    assert!(refused.starts_with("HTTP/1.1 429 "), "{refused}");
    assert!(refused.contains("\"reason\":\"rate_limited\""), "{refused}");
    let header = refused.lines().find_map(|line| line.strip_prefix("retry-after: "));
    let seconds: u32 = header.expect("a header").trim().parse().expect("whole seconds");
    assert!((1..=100).contains(&seconds), "{seconds}");
    ask(&another, "GET", "/jobs", Value::Null);
    ask(&client, "GET", "/healthz", Value::Null);
}

/// The device is the operator's choice; `doctor` says what it would be, and a server that is told
/// to use a GPU and has none says why and does not start.
#[test]
fn the_device_is_chosen_and_explained() {
    let Some(installation) = Installation::new("the_device_is_chosen_and_explained") else {
        return;
    };
    let doctor = |device: &str| {
        let mut command = lodestone(&["doctor", "--listen", "127.0.0.1:0", "--device", device]);
        command
            .arg("--data-dir")
            .arg(installation.data())
            .arg("--model-dir")
            .arg(&installation.model);
        let run = command.output().expect("the binary runs");
        (run.status.success(), String::from_utf8(run.stdout).expect("UTF-8"))
    };
    let (is_well, told) = doctor("cpu");
    assert!(is_well && told.contains("device     CPU, as LODESTONE_DEVICE says"), "{told}");
    for part in ["version", "memory", "model", "data", "listen"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains("read in processes confined by"), "{told}");
    assert!(!installation.data().exists(), "looking changes nothing");
    let (has_gpu, told) = doctor("cuda");
    let (is_well, by_itself) = doctor("auto");
    assert!(is_well, "{by_itself}");
    if has_gpu {
        return;
    }
    assert!(told.contains("! device") && told.contains("no GPU can be used: "), "{told}");
    assert!(by_itself.contains("CPU; no GPU can be used: "), "{by_itself}");
    let mut command = lodestone(&["serve", "--listen", "127.0.0.1:0", "--device", "cuda"]);
    command.arg("--data-dir").arg(installation.data()).arg("--model-dir").arg(&installation.model);
    let run = command.output().expect("the binary runs");
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(!run.status.success() && told.contains("no GPU can be used: "), "{told}");
    let (server, _) =
        installation.start_with(&[("LODESTONE_DEVICE", "auto"), ("RUST_LOG", "info")]);
    let told = server.kill();
    assert!(told.contains("no GPU is used"), "{told}");
}

/// Statement 60: a log of everything, the model's and the network's own lines included, holds no
/// key, no name and no text.
#[test]
fn a_log_of_everything_tells_no_secret() {
    let Some(installation) = Installation::new("a_log_of_everything") else { return };
    let (server, client) = installation.start_with(&[("RUST_LOG", "trace")]);
    upload(&client, "sourcesecret", "The contentsecret of a text about granite.");
    assert_eq!(settled(&client, "sourcesecret"), "success");
    let body = json!({"tenant_id": "acme", "query": "granite querysecret"});
    ask(&client, "POST", "/search/retrieve", body);
    assert_eq!(found(&client, "contentsecret"), ["sourcesecret"]);
    let question = json!({"tenant_id": "acme", "question": "granite questionsecret?",
        "session_id": "sessionsecret"});
    ask(&client, "POST", "/search/qna", question);
    let parts = [("tenant_id", "tenantsecret"), ("file_id", "formsecret")];
    let path = "/upload/upload_document?querystringsecret=1";
    let uploaded = client.file(path, "filesecret.csv", b"a,contentsecret\n", &parts);
    assert_eq!(uploaded.expect("an answer").status, 200);
    let wrong = Client { key: "badkeysecret".repeat(3), ..client.clone() };
    assert_eq!(wrong.call("GET", "/jobs", &Value::Null).expect("an answer").status, 401);
    let told = server.kill();
    assert!(told.contains("TRACE") && told.contains("/search/qna"), "the log was captured");
    for secret in [KEY, "secret"] {
        let line = told.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret} is in the log");
    }
}
