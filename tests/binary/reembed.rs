//! `lodestone reembed`: switching the embedding model of a tenant that is searched, changed and
//! killed.
//!
//! `LODESTONE_REEMBED_CHUNKS` sets the number of chunks; the recorded run used 20,000.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::models::write_tiny;
use crate::process::http::Client;
use crate::process::lodestone;
use crate::process::patience::Patience;
use crate::{Installation, KEY, ask};

const CHUNKS: usize = 3000;
/// Chunks per document.
const PARTS: usize = 100;
const QUERIES: usize = 12;

/// The vocabulary, identical in every run.
pub(super) fn words() -> Vec<String> {
    let fixed = ["[UNK]", "[CLS]", "[SEP]"].map(str::to_owned);
    fixed.into_iter().chain((0..400).map(|n| format!("word{n}"))).collect()
}

/// A pseudo-random text of `count` words, different for each seed.
pub(super) fn text(seed: u64, count: usize) -> String {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut word = || {
        state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        // Each text draws from few of the words, so that texts differ.
        format!("word{}", (seed * 37 + (state >> 33) % 40) % 400)
    };
    (0..count).map(|_| word()).collect::<Vec<_>>().join(" ")
}

fn document(number: u64) -> String {
    let part = |at: usize| text(number * PARTS as u64 + at as u64, 140);
    (0..PARTS).map(|at| format!("# word{at}\n\n{}\n\n", part(at))).collect()
}

/// The scopes of documents that stay unchanged, and of documents that change in the meantime.
const STILL: &str = "tenant_id=acme&sub_tenant_id=still";
const MOVING: &str = "tenant_id=acme&sub_tenant_id=moving";

pub(super) fn put(client: &Client, scope: &str, id: &str, content: &str) {
    let body = json!({"file_id": id, "content": content});
    ask(client, "POST", &format!("/upload/upload_text?{scope}"), body);
}

pub(super) fn wait_settled(client: &Client, scope: &str, id: &str) {
    let path = format!("/upload/verify_processing?{scope}&file_id={id}");
    let mut patience = Patience::new();
    loop {
        let status = ask(client, "POST", &path, Value::Null);
        if let Some(ended @ ("success" | "errored")) = status["status"].as_str() {
            assert_eq!(ended, "success", "{id}: {status}");
            return;
        }
        let jobs = ask(client, "GET", "/jobs?limit=1", Value::Null);
        assert!(!patience.is_over((status.clone(), jobs["counts"].clone())), "stuck: {status}");
    }
}

fn fill(client: &Client, chunks: usize) {
    let documents = chunks / PARTS;
    (0..documents).for_each(|n| put(client, STILL, &format!("s{n}"), &document(n as u64)));
    (0..documents).for_each(|n| wait_settled(client, STILL, &format!("s{n}")));
}

/// Chunks by source and text, with their scores.
type Top = Vec<(String, String, f64)>;

/// The top ten results of a query among the unchanged documents; `None` while no server answers.
fn top(client: &Client, query: usize) -> Option<Top> {
    let words = text(query as u64 * 211 + 5, 12);
    let body = json!({"tenant_id": "acme", "sub_tenant_id": "still", "query": words, "alpha": 1.0,
        "max_chunks": 10, "graph_context": false});
    let reply = client.call("POST", "/search/retrieve", &body).ok()?;
    let found = reply.json();
    assert_eq!(reply.status, 200, "a search fails: {found}");
    assert_eq!(found["metadata"]["degraded"], json!([]), "{found}");
    let one = |chunk: &Value| {
        let text = |name: &str| chunk[name].as_str().expect("a text").to_owned();
        (text("source_id"), text("chunk_content"), chunk["relevancy_score"].as_f64().expect("one"))
    };
    Some(found["chunks"].as_array().expect("an array").iter().map(one).collect())
}

fn tops(client: &Client) -> Vec<Top> {
    (0..QUERIES).map(|query| top(client, query).expect("an answer")).collect()
}

/// Whether two results come from the same vectors, up to rounding, which may swap neighbours.
fn is_same(one: &Top, other: &Top) -> bool {
    let is_near = one.iter().zip(other).all(|(a, b)| (a.2 - b.2).abs() < 1e-3);
    let is_in = |a: &&(String, String, f64)| other.iter().any(|b| (&a.0, &a.1) == (&b.0, &b.1));
    one.len() == other.len() && is_near && one.iter().filter(is_in).count() + 1 >= one.len()
}

fn state(client: &Client) -> Value {
    ask(client, "GET", "/admin/reembed?tenant_id=acme", Value::Null)["tenants"][0].clone()
}

fn wait_for(client: &Client, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let mut patience = Patience::new();
    loop {
        let now = state(client);
        assert_ne!(now["status"], "errored", "{now}");
        if is_so(&now) {
            return now;
        }
        assert!(!patience.is_over(now.clone()), "{what} does not come: {now}");
    }
}

pub(super) fn cli(client: &Client, arguments: &[&str]) -> String {
    let server = format!("http://{}", client.address);
    let mut command = lodestone(arguments);
    let run = command.args(["--server", &server, "--api-key", KEY]).output().expect("it runs");
    let told = String::from_utf8([run.stdout, run.stderr].concat()).expect("UTF-8");
    assert!(run.status.success(), "{told}");
    told
}

/// Goal: a tenant switches its model under searches, uploads, deletions and three kills: no search
/// fails or mixes vectors, nothing is lost, and in the end the tenant equals a fresh one with that
/// model.
#[test]
fn a_tenant_changes_its_model_under_load_and_kills() {
    let chunks = std::env::var("LODESTONE_REEMBED_CHUNKS").ok();
    let chunks = chunks.map_or(CHUNKS, |text| text.parse().expect("a number"));
    let dir = TempDir::new().expect("a directory");
    let (old, new) = (dir.path().join("old-model"), dir.path().join("new-model"));
    write_tiny(&old, "BertModel", &words(), 16, 1);
    write_tiny(&new, "BertModel", &words(), 32, 4);
    let fresh = |model: &Path| Installation {
        dir: TempDir::new().expect("a directory"),
        model: PathBuf::from(model),
    };
    let reference = fresh(&new);
    let (server, client) = reference.start();
    fill(&client, chunks);
    let of_new = tops(&client);
    server.kill();

    let mut installation = fresh(&old);
    let (server, client) = installation.start();
    fill(&client, chunks);
    (0..4).for_each(|n| put(&client, MOVING, &format!("d{n}"), &text(900 + n, 300)));
    (0..4).for_each(|n| wait_settled(&client, MOVING, &format!("d{n}")));
    let of_old = tops(&client);
    assert!(!of_old.iter().zip(&of_new).any(|(a, b)| is_same(a, b)), "the models differ");
    server.kill();

    installation.model.clone_from(&new);
    let previous = [("LODESTONE_PREVIOUS_MODEL_DIR", old.to_str().expect("UTF-8"))];
    let (mut server, mut client) = installation.start_with(&previous);
    let estimate = cli(&client, &["reembed", "--tenant", "acme", "--dry-run"]);
    assert!(estimate.contains("acme (old-model): "), "{estimate}");
    assert!(estimate.contains(" chunks, ") && estimate.contains(" bytes of disk"), "{estimate}");
    assert_eq!(state(&client)["status"], Value::Null, "nothing was begun");
    let begun = Instant::now();
    cli(&client, &["reembed", "--tenant", "acme"]);
    let (mut bytes, mut searches, mut uploads) = (0, 0, 0_u64);
    for round in 0..4 {
        let is_over = AtomicBool::new(false);
        let asked = std::thread::scope(|scope| {
            let (client_of_thread, is_over) = (client.clone(), &is_over);
            let (of_old, of_new) = (&of_old, &of_new);
            let searching = scope.spawn(move || {
                let (mut asked, mut is_switched) = (0, false);
                while !is_over.load(Ordering::SeqCst) {
                    let query = asked % QUERIES;
                    let Some(found) = top(&client_of_thread, query) else { break };
                    let is_new = is_same(&found, &of_new[query]);
                    let is_old = is_same(&found, &of_old[query]);
                    assert!(is_new || is_old && !is_switched, "query {query}: {found:?}");
                    is_switched |= is_new;
                    asked += 1;
                }
                asked
            });
            put(&client, MOVING, &format!("u{uploads}"), &text(2000 + uploads, 400));
            let gone = json!({"tenant_id": "acme", "sub_tenant_id": "moving",
                "source_ids": [format!("d{round}")]});
            ask(&client, "DELETE", "/delete_source", gone);
            uploads += 1;
            match round {
                // Twice after another piece is done, and once right after the start.
                0 | 1 => {
                    let is_more = |now: &Value| now["other_bytes"].as_u64() > Some(bytes);
                    let now = wait_for(&client, "a piece", is_more);
                    assert_ne!(now["status"], "success", "the kill comes too late: {now}");
                    bytes = now["other_bytes"].as_u64().expect("bytes");
                }
                2 => {
                    wait_for(&client, "the work", |now| now["status"] != "queued");
                }
                _ => {
                    wait_for(&client, "the switch", |now| now["status"] == "success");
                }
            }
            if round < 3 {
                is_over.store(true, Ordering::SeqCst);
            } else {
                // At least one search of each query after the switch.
                tops(&client);
                is_over.store(true, Ordering::SeqCst);
            }
            searching.join().expect("no search fails or mixes")
        });
        searches += asked;
        if round < 3 {
            server.kill();
            (server, client) = installation.start_with(&previous);
            let now = state(&client);
            assert!(now["other_bytes"].as_u64() >= Some(bytes), "finished pieces stay: {now}");
            // The work resumes by itself once the tenant is opened.
            assert_ne!(now["status"], Value::Null, "{now}");
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    for (query, found) in tops(&client).iter().enumerate() {
        assert!(is_same(found, &of_new[query]), "{query}: {found:?} not {:?}", of_new[query]);
    }
    (0..uploads).for_each(|n| wait_settled(&client, MOVING, &format!("u{n}")));
    let moving = ask(&client, "GET", &format!("/tenant/stats?{MOVING}"), Value::Null);
    assert_eq!(moving["source_count"], uploads, "deleted ones are gone, uploaded ones there");
    assert_eq!(moving["vector_dimension"], 32);
    let jobs = ask(&client, "GET", "/jobs?tenant_id=acme&status=success", Value::Null);
    assert_eq!(jobs["jobs"][0]["kind"], "reembed", "{jobs}");
    let told = cli(&client, &["reembed", "--tenant", "acme", "--status"]);
    assert!(told.contains("new-model") && told.contains("old-model"), "{told}");
    println!("{chunks} chunks, {searches} searches, 3 kills, {seconds:.1} s");

    cli(&client, &["reembed", "--tenant", "acme", "--back"]);
    wait_for(&client, "the way back", |now| now["status"] == "success");
    for (query, found) in tops(&client).iter().enumerate() {
        assert!(is_same(found, &of_old[query]), "{query}: {found:?} not {:?}", of_old[query]);
    }
    let moving = ask(&client, "GET", &format!("/tenant/stats?{MOVING}"), Value::Null);
    assert_eq!(
        (&moving["source_count"], &moving["vector_dimension"]),
        (&uploads.into(), &16.into())
    );
    cli(&client, &["reembed", "--tenant", "acme", "--discard"]);
    assert_eq!(state(&client)["other_model"], Value::Null);
}

/// Chunks of the tenant that is moved to a model of its own.
const OWN_CHUNKS: usize = 300;

fn models(client: &Client) -> Vec<(String, String, String)> {
    let found = ask(client, "GET", "/admin/reembed", Value::Null);
    let tenants = found["tenants"].as_array().expect("an array").iter();
    let text = |tenant: &Value, name: &str| tenant[name].as_str().unwrap_or_default().to_owned();
    let row =
        |tenant: &Value| (text(tenant, "tenant_id"), text(tenant, "model"), text(tenant, "status"));
    tenants.map(row).collect()
}

/// The model that a search of a tenant reports, and the parts its result lacks.
pub(super) fn told_by_search(client: &Client, tenant: &str) -> (Value, Value) {
    let body = json!({"tenant_id": tenant, "query": "word3 word4"});
    let metadata = ask(client, "POST", "/search/retrieve", body)["metadata"].clone();
    (metadata["embedding_model"].clone(), metadata["degraded"].clone())
}

/// A client with a key for one tenant.
fn client_of(client: &Client, tenant: &str) -> Client {
    let body = json!({"name": tenant, "role": "read", "tenants": [{"tenant_id": tenant}]});
    let made = ask(client, "POST", "/admin/api_keys", body);
    Client { key: made["api_key"].as_str().expect("a key").to_owned(), ..client.clone() }
}

fn width(client: &Client, tenant: &str) -> Value {
    let path = format!("/tenant/stats?tenant_id={tenant}");
    ask(client, "GET", &path, Value::Null)["vector_dimension"].clone()
}

/// Goal: the tenants of one server use three models; each is searched and extended with its own,
/// also after a kill, and if a model is missing only its tenants are limited to keyword search.
#[test]
fn tenants_have_models_of_their_own() {
    let dir = TempDir::new().expect("a directory");
    let model = |name: &str, width: usize, layers: usize| {
        write_tiny(&dir.path().join(name), "BertModel", &words(), width, layers);
        dir.path().join(name)
    };
    let (usual, wide, deep) = (model("usual", 16, 1), model("wide", 32, 1), model("deep", 48, 3));
    let fresh = |model: &Path| Installation {
        dir: TempDir::new().expect("a directory"),
        model: PathBuf::from(model),
    };
    let reference = fresh(&wide);
    let (server, client) = reference.start();
    fill(&client, OWN_CHUNKS);
    let of_wide = tops(&client);
    server.kill();

    let installation = fresh(&usual);
    let further = format!("{},{}", wide.display(), deep.display());
    let further = [("LODESTONE_FURTHER_MODEL_DIRS", further.as_str())];
    let (server, client) = installation.start_with(&further);
    fill(&client, OWN_CHUNKS);
    let of_usual = tops(&client);
    for scope in ["tenant_id=bolt", "tenant_id=core"] {
        put(&client, scope, "s", &text(7, 90));
        wait_settled(&client, scope, "s");
    }
    ask(&client, "POST", "/user/create_tenant", json!({"tenant_id": "empty"}));
    for (body, status, told) in [
        (json!({"tenant_id": "acme", "to": "none"}), 400, "a loaded model: usual, wide, deep"),
        (json!({"to": "wide"}), 400, "needs tenant_id"),
        (json!({"tenant_id": "acme", "to": "wide", "action": "back"}), 400, "action start"),
    ] {
        let reply = client.call("POST", "/admin/reembed", &body).expect("an answer");
        let found = reply.json().to_string();
        assert!(reply.status == status && found.contains(told), "{}: {found}", reply.status);
    }

    // It has no vectors, so switching only records the new model.
    cli(&client, &["reembed", "--tenant", "empty", "--to", "wide"]);
    assert_eq!(width(&client, "empty"), 32);

    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let searching = scope.spawn(|| {
            for query in (0..QUERIES).cycle() {
                let found = top(&client, query).expect("an answer");
                let is_known = [&of_usual, &of_wide].iter().any(|of| is_same(&found, &of[query]));
                assert!(is_known, "query {query}: {found:?}");
                if is_over.load(Ordering::SeqCst) {
                    return;
                }
            }
        });
        let told = cli(&client, &["reembed", "--tenant", "acme", "--to", "wide", "--dry-run"]);
        assert!(told.contains("acme") && told.contains("usual"), "{told}");
        cli(&client, &["reembed", "--tenant", "acme", "--to", "wide"]);
        cli(&client, &["reembed", "--tenant", "bolt", "--to", "deep"]);
        let mut patience = Patience::new();
        loop {
            let now = models(&client);
            let is_done = |one: &&(String, String, String)| one.2 == "success";
            if now.iter().filter(is_done).count() == 2 || searching.is_finished() {
                break;
            }
            assert!(!patience.is_over((now.clone(), state(&client))), "stuck: {now:?}");
        }
        is_over.store(true, Ordering::SeqCst);
        searching.join().expect("no search fails or mixes");
    });
    let check = |client: &Client| {
        let own = |(tenant, model, _): (String, String, String)| (tenant, model);
        let now: Vec<_> = models(client).into_iter().map(own).collect();
        let expected = [("acme", "wide"), ("bolt", "deep"), ("core", "usual"), ("empty", "")];
        assert_eq!(now, expected.map(|(tenant, model)| (tenant.to_owned(), model.to_owned())));
        for (tenant, model, numbers) in
            [("acme", "wide", 32), ("bolt", "deep", 48), ("core", "usual", 16)]
        {
            assert_eq!(told_by_search(client, tenant), (json!(model), json!([])), "{tenant}");
            assert_eq!(width(client, tenant), numbers, "{tenant}");
            let of_tenant = client_of(client, tenant);
            let asked = [(Value::Null, model, numbers), (json!(model), model, numbers)];
            for (name, model, numbers) in asked.into_iter().chain([(json!("usual"), "usual", 16)]) {
                let body = json!({"input": "word1", "model": name});
                let found = ask(&of_tenant, "POST", "/v1/embeddings", body);
                let vector = found["data"][0]["embedding"].as_array().expect("a vector");
                assert_eq!((&found["model"], vector.len()), (&json!(model), numbers), "{tenant}");
            }
            let other = if tenant == "acme" { "deep" } else { "wide" };
            let body = json!({"input": "word1", "model": other});
            let found = of_tenant.call("POST", "/v1/embeddings", &body).expect("an answer");
            assert_eq!(found.status, 404, "{tenant}: the vectors of {other} are not its own");
        }
        for (query, found) in tops(client).iter().enumerate() {
            assert!(is_same(found, &of_wide[query]), "{query}: {found:?}");
        }
    };
    check(&client);
    server.kill();
    let (server, client) = installation.start_with(&further);
    for scope in [MOVING, "tenant_id=bolt", "tenant_id=core"] {
        put(&client, scope, "late", &text(8, 90));
        wait_settled(&client, scope, "late");
    }
    check(&client);
    server.kill();

    let twin = [("LODESTONE_FURTHER_MODEL_DIRS", usual.to_str().expect("UTF-8"))];
    let (server, client) = installation.start_with(&twin);
    for tenant in ["acme", "bolt"] {
        assert_eq!(told_by_search(&client, tenant).1, json!(["model_mismatch"]), "{tenant}");
        let body = json!({"file_id": "refused", "content": "word1"});
        let path = format!("/upload/upload_text?tenant_id={tenant}");
        assert_eq!(client.call("POST", &path, &body).expect("an answer").status, 409, "{tenant}");
    }
    assert_eq!(told_by_search(&client, "core"), (json!("usual"), json!([])));
    let output = server.kill();
    let told = format!("{0} contains the same model as {0}", usual.display());
    assert!(output.contains(&told), "{output}");

    let namesake = model("elsewhere/wide", 64, 1);
    let both = format!("{},{}", wide.display(), namesake.display());
    let mut serve = lodestone(&["serve", "--listen", "127.0.0.1:0", "--further-model-dirs", &both]);
    serve.arg("--data-dir").arg(installation.data()).arg("--model-dir").arg(&usual);
    let refused = serve.output().expect("it runs");
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("are named wide"), "{told}");
}
