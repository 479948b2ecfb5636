//! An embedding model served by another server: a stand-in that fails, is slow, returns wrong data,
//! and checks the key.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::process::{Server, lodestone};
use crate::stand_in::{Asked, StandIn, Told};
use crate::{KEY, ask, settled, upload};

const KEY_THERE: &str = "sk-of-the-embedding-server";
const WIDTH: usize = 16;

/// The stand-in's behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Well,
    Fails,
    IsSlow,
    IsNarrow,
    IsNoNumber,
    IsShort,
    Unauthorised,
    NoModel,
    NoJson,
    /// Rejects texts that contain "poison" and texts longer than 300 bytes.
    IsPicky,
}

/// A vector of length 3 that depends only on the letters of each word, so that anagrams are equal.
fn vector(text: &str) -> Vec<f64> {
    let mut sums = [0.01; WIDTH];
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let place = word.bytes().map(|b| usize::from(b.to_ascii_lowercase())).sum::<usize>();
        sums[place % WIDTH] += 1.0;
    }
    let length = sums.iter().map(|x| x * x).sum::<f64>().sqrt();
    sums.iter().map(|x| 3.0 * x / length).collect()
}

fn texts(asked: &Asked) -> Vec<String> {
    let input = asked.body["input"].as_array().expect("texts");
    input.iter().map(|text| text.as_str().expect("a text").to_owned()).collect()
}

fn answer(way: Way, asked: &Asked) -> Told {
    assert_eq!(asked.line, "POST /v1/embeddings");
    assert_eq!(asked.body["model"], "small");
    if asked.header("authorization") != Some(&format!("Bearer {KEY_THERE}")) {
        return Told::bytes(401, Vec::new());
    }
    let texts = texts(asked);
    let mut vectors: Vec<Value> = texts.iter().map(|text| json!(vector(text))).collect();
    match way {
        Way::Fails => return Told::bytes(503, Vec::new()),
        Way::IsSlow => return Told { part: Some((0, true)), ..Told::bytes(200, vec![b' '; 9]) },
        Way::IsNarrow => vectors.fill(json!([1.0, 2.0])),
        Way::IsNoNumber => vectors[0][3] = Value::Null,
        Way::IsShort => drop(vectors.pop()),
        Way::Unauthorised => return Told::bytes(401, format!("bad {KEY_THERE}").into_bytes()),
        Way::NoModel => return Told::bytes(404, format!("for {KEY_THERE}: none").into_bytes()),
        Way::NoJson => return Told::bytes(200, b"<html>".to_vec()),
        Way::IsPicky if texts.iter().any(|text| text.contains("poison") || text.len() > 300) => {
            return Told::json(400, &json!({"error": {"message": "the input is refused"}}));
        }
        Way::Well | Way::IsPicky => {}
    }
    let item = |(index, vector): (usize, Value)| json!({"index": index, "embedding": vector});
    // Out of order, as the interface permits.
    let data: Vec<Value> = vectors.into_iter().enumerate().rev().map(item).collect();
    Told::json(200, &json!({"data": data, "usage": {"prompt_tokens": 7}}))
}

/// A stand-in, and a data directory for servers that use it.
struct Place {
    dir: TempDir,
    way: Arc<Mutex<Way>>,
    there: StandIn,
}

impl Place {
    fn new(way: Way) -> Self {
        let way = Arc::new(Mutex::new(way));
        let of_thread = Arc::clone(&way);
        let there = StandIn::start(move |asked| {
            let way = *of_thread.lock().expect("no panic");
            answer(way, asked)
        });
        Self { dir: TempDir::new().expect("a temporary directory"), way, there }
    }

    fn turn(&self, way: Way) {
        *self.way.lock().expect("no panic") = way;
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = lodestone(arguments);
        command.args(["--listen", "127.0.0.1:0", "--embedding-url"]);
        command.arg(format!("{}/v1", self.there.url)).args(["--embedding-model", "small"]);
        command.arg("--data-dir").arg(self.dir.path().join("data"));
        command.env("LODESTONE_EMBEDDING_KEY", KEY_THERE).env("LODESTONE_ADMIN_KEY", KEY);
        command.env("LODESTONE_EMBEDDING_PASSAGE_PREFIX", "passage: ");
        command.env("LODESTONE_EMBEDDING_QUERY_PREFIX", "query: ");
        command.env("LODESTONE_EMBEDDING_TIMEOUT", "1");
        command.env("LODESTONE_EMBEDDING_QUERY_TIMEOUT", "0.5");
        command
    }

    fn start(&self, more: &[&str]) -> (Server, Client) {
        let mut command = self.command(&["serve"]);
        command.args(more);
        let mut server = Server::run(command);
        let (banner, _) = server.ready();
        (server, banner.client(KEY))
    }

    /// Runs a command to its end; returns whether it succeeded, and its output.
    fn told(&self, arguments: &[&str], more: &[&str]) -> (bool, String) {
        let mut command = self.command(arguments);
        let run = command.args(more).output().expect("the binary runs");
        let told = String::from_utf8([run.stdout, run.stderr].concat()).expect("UTF-8");
        assert!(!told.contains(KEY_THERE), "{told}");
        (run.status.success(), told)
    }

    /// Whether the stand-in was asked for a text that contains this word.
    fn was_asked(&self, word: &str) -> bool {
        self.there.asked().iter().any(|asked| texts(asked).iter().any(|text| text.contains(word)))
    }
}

fn search(client: &Client, query: &str) -> Value {
    let body = json!({"tenant_id": "acme", "query": query, "alpha": 0.9});
    ask(client, "POST", "/search/retrieve", body)
}

fn is_degraded(found: &Value) -> bool {
    let degraded = found["metadata"]["degraded"].as_array().expect("a list");
    degraded.contains(&json!("embedder_unavailable"))
}

fn text_of(client: &Client, path: &str) -> (u16, String) {
    let reply = client.call("GET", path, &Value::Null).expect("an answer");
    (reply.status, String::from_utf8_lossy(&reply.body).into_owned())
}

/// Goal: the server asks for the model's dimension at the start, then embeds documents and queries
/// with their prefixes and the key; vectors are normalized and matched to their texts by index.
#[test]
fn its_vectors_are_searched() {
    let place = Place::new(Way::Well);
    let (mut server, client) = place.start(&["--embedding-batch", "2"]);
    for (id, text) in [("stone", "granite walls"), ("fruit", "sweet apples"), ("sea", "salt ships")]
    {
        upload(&client, id, text);
    }
    for id in ["stone", "fruit", "sea"] {
        assert_eq!(settled(&client, id), "success");
    }
    // Anagrams: no word in common, but the same vector.
    let found = search(&client, "etinarg sllaw");
    assert_eq!(found["chunks"][0]["source_id"], "stone", "{found}");
    assert_eq!(found["metadata"]["embedding_model"], "small");
    assert!(!is_degraded(&found));
    let asked = place.there.asked();
    assert_eq!(texts(&asked[0]), ["ready"], "its width is asked for");
    assert!(asked.iter().all(|one| texts(one).len() <= 2));
    assert!(place.was_asked("passage: ") && place.was_asked("query: etinarg sllaw"));
    let body = json!({"model": "small", "input": "granite walls"});
    let made = ask(&client, "POST", "/v1/embeddings", body);
    let numbers = made["data"][0]["embedding"].as_array().expect("a vector");
    let length: f64 = numbers.iter().map(|x| x.as_f64().expect("a number").powi(2)).sum();
    assert!(numbers.len() == WIDTH && (length - 1.0).abs() < 1e-4, "{length}");

    let (_, metrics) = text_of(&client, "/metrics");
    assert!(!metrics.contains(KEY_THERE));
    let (is_well, told) = place.told(&["serve"], &["--print-config"]);
    assert!(is_well && told.contains("# embedding-key = \"***\""), "{told}");
    let (_, told) = place.told(&["doctor"], &[]);
    assert!(told.contains("small, 16 dimensions") && told.contains("it answers"), "{told}");
    assert!(server.output().contains("small, 16 dimensions, at http://"), "{}", server.output());
    assert!(!server.kill().contains(KEY_THERE));
}

/// Goal: however the model fails, searches fall back to keywords and say so, uploads wait, and
/// `/readyz` and `doctor` report it. Nothing is lost, even through a kill.
#[test]
fn uploads_wait_while_it_fails_and_searches_go_by_words() {
    let place = Place::new(Way::Well);
    let width = ["--embedding-dimension", "16"];
    let (server, client) = place.start(&width);
    upload(&client, "stone", "granite walls");
    assert_eq!(settled(&client, "stone"), "success");
    let ways = [
        Way::Fails,
        Way::IsSlow,
        Way::IsNarrow,
        Way::IsNoNumber,
        Way::IsShort,
        Way::Unauthorised,
        Way::NoModel,
        Way::NoJson,
    ];
    for way in ways {
        place.turn(way);
        let name = format!("{way:?}");
        upload(&client, &name, &format!("A text for {name}"));
        let found = search(&client, &format!("granite {name}"));
        assert!(is_degraded(&found), "{name}: {found}");
        assert_eq!(found["metadata"]["alpha"], 0.0, "{name}");
        assert_eq!(found["chunks"][0]["source_id"], "stone", "{name}: {found}");
        let (status, ready) = text_of(&client, "/readyz");
        assert_eq!(status, 200, "it serves: {name}: {ready}");
        assert!(ready.contains("embedding server fails"), "{name}: {ready}");
        let mut patience = Patience::new();
        while !place.was_asked(&format!("A text for {name}")) {
            assert!(!patience.is_over(place.there.asked().len()), "{name} is not embedded");
        }
    }
    let failing = "the embedding server has been failing since 2";
    let listed = ask(&client, "GET", "/jobs?tenant_id=acme&status=queued&limit=1", Value::Null);
    let running = ask(&client, "GET", "/jobs?tenant_id=acme&status=in_progress", Value::Null);
    for told in [&listed, &running].iter().flat_map(|page| page["jobs"].as_array().expect("jobs")) {
        let told = told["message"].as_str().expect("a message");
        assert!(told.starts_with(failing) && told.contains("Z: it"), "{told}");
    }
    let path = "/upload/verify_processing?tenant_id=acme&file_id=Fails";
    let told = ask(&client, "POST", path, Value::Null)["message"].to_string();
    assert!(told.contains(failing), "{told}");
    let found = search(&client, "granite");
    let told = found["metadata"]["degraded_message"].as_str().expect("a reason");
    assert!(told.starts_with(failing), "{told}");
    let client_of = |arguments: &[&str]| {
        let mut command = lodestone(arguments);
        command.args(["--server", &format!("http://{}", client.address)]);
        command.env("LODESTONE_API_KEY", KEY).env("LODESTONE_TENANT", "acme");
        let run = command.output().expect("the binary runs");
        String::from_utf8([run.stdout, run.stderr].concat()).expect("UTF-8")
    };
    assert!(client_of(&["jobs", "ls"]).contains(failing));
    let told = client_of(&["search", "granite"]);
    assert!(told.contains("keyword search only") && told.contains(failing), "{told}");
    client_of(&["tenant", "create", "empty"]);
    let told = client_of(&["search", "granite", "--tenant", "empty"]);
    assert!(told.contains("new texts wait") && told.contains(failing), "{told}");
    place.turn(Way::Unauthorised);
    let (_, told) = place.told(&["doctor"], &width);
    assert!(told.contains("check embedding-key"), "{told}");
    let output = server.kill();
    assert!(output.contains("the embedding server fails") && !output.contains(KEY_THERE));

    let (server, client) = place.start(&width);
    for way in ways {
        let path = format!("/upload/verify_processing?tenant_id=acme&file_id={way:?}");
        let status = ask(&client, "POST", &path, Value::Null)["status"].clone();
        assert!(status != "errored" && status != "success", "{way:?}: {status}");
    }
    place.turn(Way::Well);
    for way in ways {
        assert_eq!(settled(&client, &format!("{way:?}")), "success");
    }
    let mut patience = Patience::new();
    while is_degraded(&search(&client, "etinarg sllaw")) {
        assert!(!patience.is_over(()), "searches stay degraded");
    }
    let output = server.kill();
    assert!(output.contains("the embedding server is working again"), "{output}");
    assert!(!output.contains(KEY_THERE));
}

/// Goal: a model that hangs does not delay `/readyz` beyond the timeout of a load balancer.
#[test]
fn readiness_does_not_wait_for_one_that_hangs() {
    let place = Place::new(Way::Well);
    let (_server, client) =
        place.start(&["--embedding-dimension", "16", "--embedding-query-timeout", "60"]);
    place.turn(Way::IsSlow);
    let begun = Instant::now();
    let (status, ready) = text_of(&client, "/readyz");
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert!(status == 200 && ready.contains("within two seconds"), "{ready}");
}

/// Goal: a text that the model rejects fails alone; one that is too long for it is truncated.
#[test]
fn a_refused_text_fails_alone() {
    let place = Place::new(Way::Well);
    let (_server, client) = place.start(&[]);
    place.turn(Way::IsPicky);
    upload(&client, "short", "granite walls");
    upload(&client, "long", &"granite walls of stone ".repeat(30));
    upload(&client, "bad", "A poison that no model reads");
    assert_eq!(settled(&client, "short"), "success");
    assert_eq!(settled(&client, "long"), "success");
    assert_eq!(settled(&client, "bad"), "errored");
}

/// Goal: if the model is unreachable at the start, the server starts only if its dimension is
/// configured, and reports the state. A dimension that does not match the model's is rejected.
#[test]
fn a_start_without_it_needs_the_width() {
    let place = Place::new(Way::Unauthorised);
    let (is_started, told) = place.told(&["serve"], &[]);
    assert!(!is_started && told.contains("set embedding-dimension"), "{told}");
    let (_, told) = place.told(&["doctor"], &[]);
    assert!(told.contains("! model") && told.contains("embedding-dimension"), "{told}");
    place.turn(Way::Well);
    let (is_started, told) = place.told(&["serve"], &["--embedding-dimension", "17"]);
    assert!(!is_started && told.contains("have 16 dimensions, but embedding-dimension is 17"));
    place.turn(Way::Unauthorised);
    let (server, client) = place.start(&["--embedding-dimension", "16"]);
    let (status, ready) = text_of(&client, "/readyz");
    assert!(status == 200 && ready.contains("embedding server fails"), "{ready}");
    let body = json!({"model": "small", "input": "granite walls"});
    let reply = client.call("POST", "/v1/embeddings", &body).expect("an answer");
    assert_eq!(reply.status, 503, "{}", reply.json());
    assert_eq!(reply.json()["error"]["code"], "embedder_unavailable");
    assert!(!reply.json().to_string().contains(KEY_THERE));
    assert!(!server.kill().contains(KEY_THERE));
}
