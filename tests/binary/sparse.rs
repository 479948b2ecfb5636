//! A sparse model: installed, used, killed, merged, and applied to existing data.

use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::models::write_tiny;
use crate::process::http::Client;
use crate::process::lodestone;
use crate::process::patience::Patience;
use crate::reembed::{cli, put, text, wait_settled, words};
use crate::{Installation, KEY, ask};

/// Number of documents, each a segment of its own until they are merged.
const DOCUMENTS: u64 = 12;

fn run(arguments: &[&str], models: &Path) -> (bool, String) {
    let run = lodestone(arguments)
        .env("LODESTONE_MODEL_DIR", models.join("dense"))
        .output()
        .expect("the binary runs");
    let told = [run.stdout, run.stderr].concat();
    (run.status.success(), String::from_utf8(told).expect("UTF-8"))
}

/// The response to a search of a tenant.
fn found(client: &Client, tenant: &str, query: &str) -> Value {
    let body = json!({"tenant_id": tenant, "query": query, "max_chunks": 20, "explain": true,
        "graph_context": false});
    ask(client, "POST", "/search/retrieve", body)
}

/// The results without times: source, score of the sparse model, final score.
fn results(answer: &Value) -> Vec<(String, Option<f64>, f64)> {
    let one = |chunk: &Value| {
        let source = chunk["source_id"].as_str().expect("an id").to_owned();
        let score = chunk["relevancy_score"].as_f64().expect("a score");
        (source, chunk["sparse_score"].as_f64(), score)
    };
    answer["chunks"].as_array().expect("an array").iter().map(one).collect()
}

/// The number of segment files of all tenants.
fn segments(data: &Path) -> usize {
    let entries = |dir: &Path| std::fs::read_dir(dir).into_iter().flatten().flatten();
    let of = |collection: &Path| entries(&collection.join("s")).count();
    entries(&data.join("v1/c")).map(|collection| of(&collection.path())).sum()
}

/// Goal: the sparse leg works from installation to a merged index, through kills and a deletion,
/// without affecting another tenant. Method: query weights from a table, so that the matching words
/// are known.
#[test]
fn a_sparse_model_is_installed_filled_searched_killed_and_merged() {
    let dir = TempDir::new().expect("a directory");
    let (dense, tiny) = (dir.path().join("dense"), dir.path().join("tiny-splade"));
    write_tiny(&dense, "BertModel", &words(), 16, 1);
    write_tiny(&tiny, "BertForMaskedLM", &words(), 16, 1);
    let idf: serde_json::Map<String, Value> =
        (0..400).map(|n| (format!("word{n}"), json!(1.0 + f64::from(n % 7)))).collect();
    std::fs::write(tiny.join("idf.json"), json!(idf).to_string()).expect("a file");
    let installation =
        Installation { dir: TempDir::new().expect("a directory"), model: dense.clone() };
    let before = ["tenant_id=acme", "tenant_id=bolt"];
    let (server, client) = installation.start();
    for scope in before {
        put(&client, scope, "old", &text(1, 120));
        wait_settled(&client, scope, "old");
    }
    let query = text(1, 12);
    let without = found(&client, "bolt", &query);
    assert!(without["chunks"][0].get("sparse_score").is_none(), "{without}");
    assert!(without["chunks"][0]["explain"].get("sparse_share").is_none());
    server.kill();

    let from = tiny.to_str().expect("UTF-8");
    let (is_done, told) =
        run(&["model", "install", "sparse", dense.to_str().expect("UTF-8")], dir.path());
    assert!(!is_done && told.contains("ForMaskedLM"), "{told}");
    let cut = dir.path().join("cut");
    std::fs::create_dir(&cut).expect("a directory");
    std::fs::copy(tiny.join("config.json"), cut.join("config.json")).expect("a copy");
    let (is_done, told) =
        run(&["model", "install", "sparse", cut.to_str().expect("UTF-8")], dir.path());
    assert!(!is_done && told.contains("tokenizer.json"), "{told}");
    let (is_done, told) = run(&["model", "install", "sparse", from], dir.path());
    assert!(is_done && told.contains("queries by a table of weights"), "{told}");
    assert!(dir.path().join("sparse/idf.json").exists(), "what queries need is copied");
    let (is_done, told) = run(&["model", "ls"], dir.path());
    assert!(is_done && told.contains("sparse     tiny-splade in"), "{told}");

    // Existing rows lack sparse vectors, so the leg is skipped.
    let (server, client) = installation.start();
    for n in 0..DOCUMENTS {
        let id = format!("d{n}");
        put(&client, "tenant_id=acme", &id, &text(n + 2, 120));
        wait_settled(&client, "tenant_id=acme", &id);
    }
    let part = found(&client, "acme", &query);
    assert_eq!(part["metadata"]["degraded"], json!(["sparse_vectors_missing"]));
    assert!(results(&part).iter().all(|(_, sparse, _)| sparse.is_none()), "{part}");
    cli(&client, &["reembed", "--tenant", "acme"]);
    let mut patience = Patience::new();
    while found(&client, "acme", &query)["metadata"]["degraded"] != json!([]) {
        let state = ask(&client, "GET", "/admin/reembed?tenant_id=acme", Value::Null);
        assert!(!patience.is_over(state.clone()), "the vectors do not come: {state}");
    }
    let whole = found(&client, "acme", &query);
    let first = results(&whole);
    assert!(first.iter().all(|(_, sparse, _)| sparse.is_some()), "{whole}");
    assert!(first.iter().any(|(_, sparse, _)| *sparse > Some(0.0)), "{whole}");
    let explain = &whole["chunks"][0]["explain"];
    let share = |name: &str| explain[name].as_f64().expect("a share");
    let sum = share("semantic_share") + share("keyword_share") + share("sparse_share");
    assert!((sum - first[0].2).abs() < 1e-5, "{explain}");
    let told = server.kill();
    assert!(told.contains("sparse     tiny-splade"), "{told}");

    // Equal results after a kill; then without a deleted source, and within a single scope.
    let (server, client) = installation.start();
    assert_eq!(results(&found(&client, "acme", &query)), first);
    let gone = json!({"tenant_id": "acme", "source_ids": ["d3"]});
    ask(&client, "DELETE", "/delete_source", gone);
    let left = results(&found(&client, "acme", &query));
    assert!(left.iter().all(|(source, ..)| source != "d3") && left.len() < first.len());
    let scored = |all: &[(String, Option<f64>, f64)], id: &str| {
        all.iter().find(|(source, ..)| source == id).and_then(|(_, sparse, _)| *sparse)
    };
    assert_eq!(scored(&left, "d5"), scored(&first, "d5"), "a score is of its row and the query");
    put(&client, "tenant_id=acme&sub_tenant_id=apart", "d3", &text(5, 120));
    wait_settled(&client, "tenant_id=acme&sub_tenant_id=apart", "d3");
    assert_eq!(results(&found(&client, "acme", &query)), left);

    // Without a tenant it would apply to all, which needs a confirmation that nobody can give here.
    let address = format!("http://{}", client.address);
    let mut all = lodestone(&["reembed", "--discard", "--server", &address, "--api-key", KEY]);
    let run = all.output().expect("it runs");
    let told = String::from_utf8_lossy(&run.stderr).into_owned();
    assert!(run.status.code() == Some(2) && told.contains("of acme: --yes is required"), "{told}");
    let state = ask(&client, "GET", "/admin/reembed?tenant_id=acme", Value::Null);
    assert!(state["tenants"][0]["other_model"].is_string(), "nothing was given up: {state}");

    // Merging copies the vectors, and no score changes.
    cli(&client, &["reembed", "--tenant", "acme", "--discard"]);
    let mut patience = Patience::new();
    while segments(&installation.data()) >= DOCUMENTS as usize {
        let count = segments(&installation.data());
        assert!(!patience.is_over(json!(count)), "{count} segments are not merged");
    }
    assert_eq!(results(&found(&client, "acme", &query)), left);

    // The other tenant still gives the results it gave without the sparse model.
    let other = found(&client, "bolt", &query);
    assert_eq!(results(&other), results(&without));
    server.kill();
}
