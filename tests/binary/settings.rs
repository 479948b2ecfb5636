//! The effect of settings from the environment, and the contents of a log at the most detailed
//! level.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::backups::another;
use crate::process::http::Client;
use crate::process::patience::STILL;
use crate::process::{Server, lodestone};
use crate::query_nodes::Node;
use crate::s3::Store;
use crate::stand_in::{StandIn, Told};
use crate::{Installation, KEY, ask, files, found, settled, upload};

/// The complete response to a listing of tenants, including headers.
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

/// Goal: `LODESTONE_RATE_LIMIT` applies to each key separately, and the error says how many seconds
/// to wait.
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

/// Goal: the operator chooses the device; `doctor` reports which would be used, and a server
/// configured for a GPU that is absent does not start and says why.
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
    assert!(is_well && told.contains("device     CPU, set by LODESTONE_DEVICE"), "{told}");
    for part in ["version", "memory", "model", "data", "listen"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    assert!(told.contains("parsed in processes confined by"), "{told}");
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
    assert!(told.contains("CPU only, no GPU"), "{told}");
}

/// Goal: a log at the most detailed level, including lines of the model and network libraries,
/// contains no key, name or text.
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

/// Goal: the credentials of the bucket, the keys of the generator and of the nodes, webhook signing
/// secrets and API keys appear in no log of two processes that log everything, on no disk and in no
/// response. Method: each is used, and the generator echoes its key, as careless ones do.
#[test]
fn credentials_reach_neither_log_nor_disk() {
    let test = "credentials_reach_neither_log_nor_disk";
    let Some(store) = Store::start(test) else { return };
    let Some(installation) = Installation::new(test) else { return };
    let peer = StandIn::start(|asked| {
        let words = format!("not with {}", asked.header("authorization").unwrap_or_default());
        Told::json(400, &json!({"error": {"message": words}}))
    });
    let both = [
        ("RUST_LOG", "trace"),
        ("LODESTONE_NODE_KEY", "node-key-of-the-test-of-credentials-0001"),
        ("LODESTONE_LLM_API_KEY", "generator-key-of-the-test-of-credentials"),
        ("LODESTONE_LLM_MODEL", "small-model"),
        ("LODESTONE_LLM_BASE_URL", &peer.url),
        ("LODESTONE_FETCH_ALLOW", peer.url.trim_start_matches("http://")),
    ];
    let elsewhere = another(&installation);
    let own = [("LODESTONE_WITH_QUERY_NODES", "true")];
    let writer = Node::start(&store, installation, 0, &[&both[..], &own].concat());
    let url = format!("http://{}", writer.client.address);
    let own = [("LODESTONE_ROLE", "query"), ("LODESTONE_WRITER_URL", &*url)];
    let node = Node::start(&store, elsewhere, 0, &[&both[..], &own].concat());

    let hook = ask(&node.client, "POST", "/admin/webhooks", json!({"url": peer.url}));
    let made = ask(&node.client, "POST", "/admin/api_keys", json!({"name": "k", "role": "read"}));
    let text = |made: &Value, name: &str| made[name].as_str().expect("a text").to_owned();
    let (signing, key) = (text(&hook, "secret"), text(&made, "api_key"));
    upload(&node.client, "a", "A text about granite.");
    assert_eq!(settled(&node.client, "a"), "success");
    let path = format!("/admin/webhooks/{}/test", text(&hook, "webhook_id"));
    let tested = ask(&node.client, "POST", &path, Value::Null);
    let reader = Client { key: key.clone(), ..node.client.clone() };
    let question = json!({"tenant_id": "acme", "question": "What is granite?"});
    let answer = ask(&reader, "POST", "/search/qna", question);
    let asked = peer.asked();
    let is_used = |secret: &str| {
        asked.iter().any(|one| one.header("authorization").is_some_and(|it| it.contains(secret)))
    };
    assert!(is_used(both[2].1) && tested["status"] == 400, "{tested} {answer}");

    let answers = format!("{tested}{answer}");
    let disks = [&writer, &node].map(|node| node.installation.data());
    let logs = [writer.server.kill(), node.server.kill()];
    assert!(logs.iter().all(|log| log.contains("TRACE")) && logs[1].contains("/search/qna"));
    let [_, (_, of_bucket), ..] = store.variables();
    // Of API keys and signing secrets, only the secret part.
    for secret in [
        KEY,
        both[1].1,
        both[2].1,
        &of_bucket,
        &signing["whsec_".len()..],
        &key[key.len() - 49..key.len() - 6],
    ] {
        let told = logs.iter().flat_map(|log| log.lines()).find(|line| line.contains(secret));
        assert_eq!(told, None, "{secret} is in a log");
        assert!(!answers.contains(secret), "{answers}");
        for file in disks.iter().flat_map(|disk| files(disk)) {
            let bytes = std::fs::read(&file).expect("a file");
            let is_there = bytes.windows(secret.len()).any(|some| some == secret.as_bytes());
            assert!(!is_there, "{secret} is in {}", file.display());
        }
    }
}

/// Goal: secrets can come from files, and the effective settings are printed with their origin but
/// without secrets.
#[test]
fn the_settings_that_hold_are_printed_with_their_origins() {
    let dir = tempfile::TempDir::new().expect("a temporary directory");
    let (secret, config) = (dir.path().join("secret"), dir.path().join("lodestone.toml"));
    std::fs::write(&secret, format!("{KEY}\n")).expect("a new file");
    let text = "ingest-threads = 3\nembed-threads = 2\nadmin-key = \"of-the-file\"\n";
    std::fs::write(&config, text).expect("a new file");
    let print = |variables: &[(&str, &str)]| {
        let mut command = lodestone(&["serve", "--print-config", "--embed-threads=1"]);
        command.arg("--config").arg(&config).env("LODESTONE_ADMIN_KEY_FILE", &secret);
        command.env("LODESTONE_RATE_LIMIT", "7").envs(variables.iter().copied());
        let output = command.output().expect("the binary starts");
        let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
        (output.status.success(), text(output.stdout), text(output.stderr))
    };
    let (is_good, held, message) = print(&[]);
    assert!(is_good, "{message}");
    let (config, file) = (config.display(), secret.display());
    for line in [
        format!("ingest-threads = \"3\"  # {config}"),
        "embed-threads = \"1\"  # flag".to_owned(),
        "rate-limit = \"7\"  # LODESTONE_RATE_LIMIT".to_owned(),
        "listen = \"127.0.0.1:8080\"  # default".to_owned(),
        format!("# admin-key = \"***\"  # LODESTONE_ADMIN_KEY_FILE {file}"),
        "# llm-api-key is not set".to_owned(),
    ] {
        assert!(held.lines().any(|held| held == line), "no {line} in {held}");
    }
    assert!(!held.contains(KEY) && !held.contains("of-the-file"), "{held}");

    let (is_good, _, message) = print(&[("LODESTONE_ADMIN_KEY", KEY)]);
    assert!(!is_good && message.contains("LODESTONE_ADMIN_KEY_FILE are both set"), "{message}");
    assert!(!message.contains(KEY), "{message}");
    std::fs::write(&secret, "\n").expect("our own file");
    let (is_good, _, message) = print(&[]);
    assert!(!is_good && message.contains("the file is empty"), "{message}");
    let (is_good, _, message) = print(&[("LODESTONE_ADMIN_KEY_FILE", "/no/such/file")]);
    assert!(!is_good && message.contains("LODESTONE_ADMIN_KEY_FILE /no/such/file"), "{message}");
}

#[test]
fn a_server_takes_its_key_from_a_file() {
    let Some(installation) = Installation::new("a_server_takes_its_key_from_a_file") else {
        return;
    };
    let secret = installation.dir.path().join("secret");
    std::fs::write(&secret, format!("{KEY}\n")).expect("a new file");
    let mut command = lodestone(&["serve", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(installation.data()).arg("--model-dir").arg(&installation.model);
    command.env("LODESTONE_ADMIN_KEY_FILE", &secret);
    let mut server = Server::run(command);
    let (banner, _) = server.ready();
    ask(&banner.client(KEY), "GET", "/tenant/list", Value::Null);
}
