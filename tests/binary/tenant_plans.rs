//! Limits and embedding models of individual tenants: through kills, a lost catalog, a backup and
//! an archive.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::models::write_tiny;
use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::process::{Server, lodestone};
use crate::reembed::{cli, put, text, told_by_search, wait_settled, words};
use crate::{Installation, KEY, ask};

/// The limits of the tenant, as reported.
fn limits() -> Value {
    json!({"max_sources": 50, "max_bytes": null, "max_vectors": 500,
        "max_requests_per_minute": 100_000, "max_ingest_workers": 3})
}

/// A tenant's own limits, model and vector dimension.
fn plan(client: &Client, tenant: &str) -> (Value, Value, Value) {
    let usage = format!("/tenant/usage?tenant_id={tenant}");
    let limits = ask(client, "GET", &usage, Value::Null)["own_limits"].clone();
    let listed = ask(client, "GET", "/tenant/list", Value::Null)["tenants"].clone();
    let listed = listed.as_array().expect("an array").iter();
    let one = listed.clone().find(|one| one["tenant_id"] == tenant).expect("the tenant is listed");
    let stats = format!("/tenant/stats?tenant_id={tenant}");
    let stats = ask(client, "GET", &stats, Value::Null);
    for name in ["embedding_model", "vector_dimension"] {
        assert_eq!(one[name], stats[name], "{name}");
    }
    (limits, one["embedding_model"].clone(), one["vector_dimension"].clone())
}

fn planned() -> (Value, Value, Value) {
    (limits(), json!("wide"), json!(32))
}

fn upload(client: &Client, tenant: &str, id: &str) {
    let scope = format!("tenant_id={tenant}");
    put(client, &scope, id, &text(7, 90));
    wait_settled(client, &scope, id);
    assert_eq!(told_by_search(client, tenant), (json!("wide"), json!([])));
}

/// Runs a command; returns whether it succeeded, and its output.
fn run(arguments: &[&str]) -> (bool, String) {
    let run = lodestone(arguments).env("LODESTONE_API_KEY", KEY).output().expect("it runs");
    let said = String::from_utf8([run.stdout, run.stderr].concat()).expect("UTF-8");
    (run.status.success(), said)
}

fn lose_catalog(data: &Path) {
    for suffix in ["", "-wal", "-shm"] {
        let path = data.join(format!("catalog.sqlite{suffix}"));
        if path.exists() {
            std::fs::remove_file(path).expect("a writable directory");
        }
    }
    assert!(!data.join("catalog.sqlite").exists());
}

fn stop(mut server: Server) {
    server.terminate();
    assert!(server.ended().expect("it ends").success());
}

fn moved_to(client: &Client, tenant: &str, model: &str) {
    let path = format!("/admin/reembed?tenant_id={tenant}");
    let mut patience = Patience::new();
    loop {
        let now = ask(client, "GET", &path, Value::Null)["tenants"][0].clone();
        if now["status"] == "success" && now["model"] == model {
            assert_eq!(now["is_current"], true, "{now}");
            return;
        }
        assert!(now["status"] != "errored" && !patience.is_over(now.clone()), "{now}");
    }
}

/// Goal: a tenant can have limits and a model from its creation on; its first source, memories and
/// searches use that model; kills, a lost catalog, a backup restored under another name and an
/// archive preserve what they document; a server that lacks the model reports it.
#[test]
fn limits_and_model_of_a_tenant_go_with_it() {
    let dir = TempDir::new().expect("a directory");
    let model = |name: &str, width: usize| {
        write_tiny(&dir.path().join(name), "BertModel", &words(), width, 1);
        dir.path().join(name)
    };
    let (usual, wide) = (model("usual", 16), model("wide", 32));
    let wide = wide.to_str().expect("UTF-8");
    let fresh =
        || Installation { dir: TempDir::new().expect("a directory"), model: PathBuf::from(&usual) };
    let both = [("LODESTONE_FURTHER_MODEL_DIRS", wide)];
    let installation = fresh();
    let (server, client) = installation.start_with(&both);
    let address = format!("http://{}", client.address);
    let create = ["tenant", "create", "acme", "--server", &address, "--embedding-model"];
    let (is_done, said) = run(&[&create[..], &["none"]].concat());
    assert!(!is_done && said.contains("a model of this server: usual, wide"), "{said}");
    let body = json!({"tenant_id": "acme", "embedding_model": "none"});
    let refused = client.call("POST", "/user/create_tenant", &body).expect("an answer");
    assert_eq!(refused.status, 400, "{}", refused.json());
    let limited = ["wide", "--max-sources", "50", "--max-vectors", "500"];
    let more = ["--max-requests-per-minute", "100000", "--max-ingest-workers", "3"];
    let (is_done, said) = run(&[&create[..], &limited[..], &more[..]].concat());
    assert!(is_done, "{said}");
    ask(&client, "POST", "/user/create_tenant", json!({"tenant_id": "plain"}));
    let listed = cli(&client, &["tenant", "ls"]);
    assert!(listed.contains("wide") && listed.contains("usual"), "{listed}");
    assert_eq!(plan(&client, "acme"), planned());
    assert_eq!((plan(&client, "plain").1, plan(&client, "plain").2), (json!("usual"), json!(16)));
    server.kill();

    let (server, client) = installation.start_with(&both);
    assert_eq!(plan(&client, "acme"), planned(), "after a kill, without a source");
    upload(&client, "acme", "first");
    let memory = json!({"raw_text": "word3 word4 word5"});
    ask(&client, "POST", "/user_memory/add_user_memory?tenant_id=acme", memory);
    let state = ask(&client, "GET", "/admin/reembed?tenant_id=acme", Value::Null);
    let state = &state["tenants"][0];
    assert_eq!((&state["model"], &state["is_current"]), (&json!("wide"), &json!(true)));
    let body = json!({"tenant_id": "acme", "question": "word3 word4", "query": "word3 word4"});
    ask(&client, "POST", "/search/qna", body);
    ask(&client, "POST", "/admin/reembed", json!({"action": "start"}));
    assert_eq!(plan(&client, "acme"), planned(), "a change of all tenants leaves it its model");
    server.kill();

    lose_catalog(&installation.data());
    let (server, client) = installation.start_with(&both);
    assert_eq!(plan(&client, "acme"), planned(), "after the loss of the catalog");
    upload(&client, "acme", "second");
    let archive = dir.path().join("acme.jsonl");
    let archive = archive.to_str().expect("UTF-8");
    cli(&client, &["export", archive, "--tenant", "acme"]);
    stop(server);

    let to = dir.path().join("backups");
    let to = to.to_str().expect("UTF-8");
    let data = installation.data();
    let (is_done, said) = run(&["backup", to, "--data-dir", data.to_str().expect("UTF-8")]);
    assert!(is_done, "{said}");
    let copy = fresh();
    let data = copy.data();
    let data = data.to_str().expect("UTF-8");
    let restore = ["restore", to, "--data-dir", data, "--tenant", "acme", "--as", "moved"];
    let (is_done, said) = run(&restore);
    assert!(is_done, "{said}");
    lose_catalog(&copy.data());
    let (server, client) = copy.start_with(&both);
    assert_eq!(plan(&client, "moved"), planned(), "restored, and its catalog lost");
    upload(&client, "moved", "third");
    // An archive preserves the model; the limits are those of the existing tenant.
    let waiting = json!({"tenant_id": "arrived", "max_vectors": 900});
    ask(&client, "POST", "/user/create_tenant", waiting);
    cli(&client, &["import", archive, "--tenant", "arrived"]);
    let (limits, model, width) = plan(&client, "arrived");
    assert_eq!((&limits["max_vectors"], model, width), (&json!(900), json!("wide"), json!(32)));
    upload(&client, "arrived", "fourth");

    cli(&client, &["reembed", "--tenant", "arrived", "--to", "usual"]);
    moved_to(&client, "arrived", "usual");
    let all = json!({"source_ids": ["first", "second", "fourth"]});
    ask(&client, "DELETE", "/delete_source?tenant_id=arrived", all);
    server.kill();
    lose_catalog(&copy.data());
    let (server, client) = copy.start_with(&both);
    assert_eq!(
        (plan(&client, "arrived").1, plan(&client, "arrived").2),
        (json!("usual"), json!(16))
    );
    let chosen = json!({"tenant_id": "later", "embedding_model": "wide"});
    ask(&client, "POST", "/user/create_tenant", chosen);
    server.kill();

    let (server, client) = copy.start();
    assert_eq!(told_by_search(&client, "moved").1, json!(["model_mismatch"]));
    assert_eq!(plan(&client, "later").1, "wide");
    for tenant in ["moved", "later"] {
        let path = format!("/upload/upload_text?tenant_id={tenant}");
        let body = json!({"file_id": "refused", "content": "word1"});
        let reply = client.call("POST", &path, &body).expect("an answer");
        assert!(
            reply.status == 409 && reply.json().to_string().contains("wide") == (tenant == "later")
        );
    }
    cli(&client, &["import", archive, "--tenant", "without"]);
    assert_eq!(
        (plan(&client, "without").1, plan(&client, "without").2),
        (json!("usual"), json!(16))
    );
    stop(server);
}

/// Private memory of a process, in KiB.
fn own_memory(server: &Server) -> u64 {
    let status = format!("/proc/{}/status", server.id());
    let status = std::fs::read_to_string(status).expect("a running process");
    let line = status.lines().find(|line| line.starts_with("RssAnon")).expect("the line");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

fn loaded(client: &Client) -> u64 {
    let reply = client.call("GET", "/metrics", &Value::Null).expect("an answer");
    let metrics = String::from_utf8(reply.body).expect("UTF-8");
    let line = metrics.lines().find(|line| line.starts_with("lodestone_embedding_models_loaded "));
    let number = line.and_then(|line| line.split_whitespace().nth(1)).expect("a number");
    number.parse().expect("a whole number")
}

/// Goal: an additional model occupies memory only while it is in use, and the next search loads it
/// again; the default model stays loaded.
#[test]
fn a_further_model_is_in_memory_while_it_is_used() {
    let Some(mut installation) = Installation::new("a_further_model_is_in_memory") else { return };
    let dir = TempDir::new().expect("a directory");
    // The large model is the additional one.
    let further = std::mem::replace(&mut installation.model, dir.path().join("tiny"));
    write_tiny(&installation.model, "BertModel", &words(), 16, 1);
    let further = [
        ("LODESTONE_FURTHER_MODEL_DIRS", further.to_str().expect("UTF-8")),
        // Longer than the allocator takes to return the temporary memory used for loading.
        ("LODESTONE_FURTHER_MODEL_IDLE", "6"),
    ];
    let (server, client) = installation.start_with(&further);
    let name = Path::new(further[0].1).file_name().expect("a name").to_str().expect("UTF-8");
    let plan = json!({"tenant_id": "acme", "embedding_model": name});
    ask(&client, "POST", "/user/create_tenant", plan);
    ask(&client, "GET", "/readyz", Value::Null);
    assert_eq!(loaded(&client), 1);
    put(&client, "tenant_id=acme", "s", "A wall of granite.");
    wait_settled(&client, "tenant_id=acme", "s");
    let search = json!({"tenant_id": "acme", "query": "granite"});
    let found = ask(&client, "POST", "/search/retrieve", search.clone());
    assert_eq!(found["metadata"]["degraded"], json!([]), "{found}");
    // The minimum, from a moment when all free memory has been returned.
    let mut during = u64::MAX;
    let mut patience = Patience::new();
    while loaded(&client) == 2 {
        let memory = own_memory(&server);
        during = if loaded(&client) == 2 { during.min(memory) } else { during };
        assert!(!patience.is_over(()), "it stays in memory");
    }
    assert_ne!(during, u64::MAX, "it is never seen in memory");
    let mut patience = Patience::new();
    // Its weights take 87 MiB; buffers of the last computation may remain.
    while own_memory(&server) + (45 << 10) > during {
        assert!(!patience.is_over(()), "{} KiB after {during} KiB", own_memory(&server));
    }
    let after = own_memory(&server);
    println!("KiB during and after the use: {during} {after}");
    let found = ask(&client, "POST", "/search/retrieve", search);
    assert_eq!(found["metadata"]["embedding_model"], name, "{found}");
    stop(server);
}
