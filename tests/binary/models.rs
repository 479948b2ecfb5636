//! `lodestone model`: a reranker from its directory to the searches of a server, and embedding
//! models other than the one that produced the data.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::process::http::Client;
use crate::process::lodestone;
use crate::{Installation, KEY, ask, settled, upload};

const HIDDEN: usize = 8;
const POSITIONS: usize = 256;
const WORDS: [&str; 6] = ["[UNK]", "[CLS]", "[SEP]", "granite", "stone", "wall"];

/// Writes a single-layer cross-encoder to `dir`.
fn write_reranker(dir: &Path) {
    let words = WORDS.map(str::to_owned);
    write_tiny(dir, "BertForSequenceClassification", &words, HIDDEN, 1);
}

/// Writes a model with the vocabulary `words` and weights computed by a formula to `dir`.
pub fn write_tiny(dir: &Path, architecture: &str, words: &[String], hidden: usize, layers: usize) {
    std::fs::create_dir_all(dir).expect("a directory");
    let config = json!({"architectures": [architecture], "model_type": "bert",
        "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": 2,
        "intermediate_size": hidden, "vocab_size": words.len(),
        "max_position_embeddings": POSITIONS,
        "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu",
        "id2label": {"0": "LABEL_0"}});
    let vocabulary: Map<String, Value> =
        words.iter().enumerate().map(|(id, word)| (word.clone(), json!(id))).collect();
    let token = |id: &str, kind: usize| json!({"SpecialToken": {"id": id, "type_id": kind}});
    let text = |id: &str, kind: usize| json!({"Sequence": {"id": id, "type_id": kind}});
    let pair =
        [token("[CLS]", 0), text("A", 0), token("[SEP]", 0), text("B", 1), token("[SEP]", 1)];
    let frame = |id: &str, number: usize| json!({"id": id, "ids": [number], "tokens": [id]});
    let tokenizer = json!({"version": "1.0", "truncation": null, "padding": null,
        "added_tokens": [], "normalizer": {"type": "Lowercase"}, "decoder": null,
        "pre_tokenizer": {"type": "Whitespace"},
        "post_processor": {"type": "TemplateProcessing", "single": &pair[..3], "pair": &pair,
            "special_tokens": {"[CLS]": frame("[CLS]", 1), "[SEP]": frame("[SEP]", 2)}},
        "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocabulary}});
    for (name, bytes) in [
        ("config.json", config.to_string().into_bytes()),
        ("tokenizer.json", tokenizer.to_string().into_bytes()),
        ("model.safetensors", weights(words.len(), hidden, layers)),
    ] {
        std::fs::write(dir.join(name), bytes).expect("a file");
    }
}

/// Encodes the weights as safetensors: the length of a JSON header as u64, the header,
/// little-endian float32.
fn weights(words: usize, hidden: usize, layers: usize) -> Vec<u8> {
    let mut shapes = vec![
        ("bert.embeddings.word_embeddings.weight".to_owned(), vec![words, hidden]),
        ("bert.embeddings.position_embeddings.weight".to_owned(), vec![POSITIONS, hidden]),
        ("bert.embeddings.token_type_embeddings.weight".to_owned(), vec![2, hidden]),
        ("classifier.weight".to_owned(), vec![1, hidden]),
        ("classifier.bias".to_owned(), vec![1]),
    ];
    let mut norms = vec!["bert.embeddings".to_owned()];
    for layer in (0..layers).map(|layer| format!("bert.encoder.layer.{layer}")) {
        let attention = ["self.query", "self.key", "self.value", "output.dense"];
        let attention = attention.map(|part| format!("attention.{part}"));
        let dense = ["intermediate.dense", "output.dense"].map(str::to_owned);
        for part in attention.iter().chain(&dense) {
            shapes.push((format!("{layer}.{part}.weight"), vec![hidden, hidden]));
            shapes.push((format!("{layer}.{part}.bias"), vec![hidden]));
        }
        norms.extend([format!("{layer}.attention.output"), format!("{layer}.output")]);
    }
    for part in norms {
        shapes.push((format!("{part}.LayerNorm.weight"), vec![hidden]));
        shapes.push((format!("{part}.LayerNorm.bias"), vec![hidden]));
    }
    let head = "cls.predictions.transform";
    shapes.push((format!("{head}.dense.weight"), vec![hidden, hidden]));
    shapes.push((format!("{head}.dense.bias"), vec![hidden]));
    shapes.push((format!("{head}.LayerNorm.weight"), vec![hidden]));
    shapes.push((format!("{head}.LayerNorm.bias"), vec![hidden]));
    shapes.push(("cls.predictions.bias".to_owned(), vec![words]));
    let (mut header, mut numbers) = (Map::new(), Vec::<u8>::new());
    for (salt, (name, shape)) in shapes.iter().enumerate() {
        let begin = numbers.len();
        for i in 0..shape.iter().product() {
            let phase = (i as f64).mul_add(12.9898, salt as f64 * 78.233);
            let number = (phase.sin() * 43_758.545_3).fract() as f32;
            numbers.extend(number.to_le_bytes());
        }
        let tensor =
            json!({"dtype": "F32", "shape": shape, "data_offsets": [begin, numbers.len()]});
        header.insert(name.clone(), tensor);
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &numbers].concat()
}

/// Runs a command; returns whether it succeeded, and its output.
fn run(arguments: &[&str], reranker_dir: &Path) -> (bool, String) {
    let mut command = lodestone(arguments);
    command.env("LODESTONE_RERANKER_DIR", reranker_dir);
    let run = command.output().expect("the binary runs");
    let told = [run.stdout, run.stderr].concat();
    (run.status.success(), String::from_utf8(told).expect("UTF-8"))
}

/// Goal: a reranker is checked, copied and listed, and used by the accurate searches of the next
/// server.
#[test]
fn an_installed_reranker_takes_part_in_accurate_searches() {
    let Some(installation) = Installation::new("an_installed_reranker") else { return };
    let (from, to) =
        (installation.dir.path().join("tiny-pairs"), installation.dir.path().join("reranker"));
    write_reranker(&from);
    let from = from.to_str().expect("UTF-8");
    let model = installation.model.to_str().expect("UTF-8");
    let (is_listed, told) = run(&["model", "ls", "--model-dir", model], &to);
    assert!(is_listed && told.contains("384 dimensions") && told.contains("none in"), "{told}");

    let (is_done, told) = run(&["model", "install", "reranker", model], &to);
    assert!(!is_done && told.contains("BertForSequenceClassification"), "{told}");
    let (is_done, told) =
        run(&["model", "install", "reranker", from, "--sha256", &"0".repeat(64)], &to);
    assert!(!is_done && told.contains("SHA-256"), "{told}");
    assert!(!to.exists(), "nothing is left of a refused model");
    let (is_done, told) = run(&["model", "install", "reranker", "--from", from], &to);
    assert!(is_done && told.contains("tiny-pairs is in"), "{told}");
    let hash = told.split_whitespace().nth(1).expect("a hash").to_owned();
    let (is_done, told) = run(&["model", "install", "reranker", from, "--sha256", &hash], &to);
    assert!(!is_done && told.contains("--replace"), "{told}");
    let (is_done, told) =
        run(&["model", "install", "reranker", from, "--sha256", &hash, "--replace"], &to);
    assert!(is_done, "{told}");
    let documents = installation.dir.path().join("documents");
    std::fs::create_dir(&documents).expect("a directory");
    std::fs::write(documents.join("config.json"), "{}").expect("a file");
    let (is_done, told) = run(&["model", "install", "reranker", from, "--replace"], &documents);
    assert!(!is_done && told.contains("contains no model"), "{told}");
    assert_eq!(std::fs::read(documents.join("config.json")).expect("it is still there"), b"{}");
    std::fs::remove_dir_all(&documents).expect("a directory");
    let entries = std::fs::read_dir(installation.dir.path()).expect("a directory").count();
    assert_eq!(entries, 2, "the source and the installed model, nothing beside them");
    let (is_listed, told) = run(&["model", "ls", "--model-dir", model], &to);
    assert!(is_listed && told.contains("reranker   tiny-pairs in"), "{told}");

    let reranker_dir = to.to_str().expect("UTF-8");
    let (server, client) = installation.start_with(&[("LODESTONE_RERANKER_DIR", reranker_dir)]);
    upload(&client, "s", "A wall of granite.");
    assert_eq!(settled(&client, "s"), "success");
    let body = json!({"tenant_id": "acme", "query": "granite stone", "mode": "accurate"});
    let found = ask(&client, "POST", "/search/retrieve", body);
    assert_eq!(found["metadata"]["reranker"], "tiny-pairs");
    assert_eq!(found["metadata"]["degraded"], json!([]));
    let verdict = found["chunks"][0]["rerank_score"].as_f64().expect("a score");
    assert!((0.0..=1.0).contains(&verdict), "{verdict}");
    let told = server.kill();
    assert!(told.contains("reranker   tiny-pairs"), "{told}");
}

/// Goal: a configured reranker that is unusable keeps a server from starting, and the error says
/// why.
#[test]
fn a_named_reranker_that_is_none_is_told() {
    let Some(installation) = Installation::new("a_named_reranker_that_is_none") else { return };
    let command = |dir: &Path| {
        let mut command = lodestone(&["serve", "--listen", "127.0.0.1:0"]);
        command
            .arg("--data-dir")
            .arg(installation.data())
            .arg("--model-dir")
            .arg(&installation.model);
        command.arg("--reranker-dir").arg(dir).env("LODESTONE_ADMIN_KEY", KEY);
        let run = command.output().expect("the binary runs");
        (run.status.success(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    for dir in [installation.dir.path().join("nowhere"), installation.model.clone()] {
        let (has_started, told) = command(&dir);
        assert!(!has_started && told.contains(&format!("reranker in {}", dir.display())), "{told}");
    }
}

/// Goal: a directory with the weights of the default model is installed under its name, whatever
/// the directory's name; `--as` names any other. A server that lacks its model lists the models
/// next to it.
#[test]
fn a_downloaded_directory_is_installed_where_the_server_looks() {
    let test = "a_downloaded_directory_is_installed";
    let Some(installation) = Installation::new(test) else { return };
    let Some(real) = crate::process::model::model_dir(test) else { return };
    let folder = installation.dir.path();
    let (download, models) = (folder.join("model-download"), folder.join("models"));
    std::fs::create_dir(&download).expect("a directory");
    for name in ["config.json", "tokenizer.json", "model.safetensors"] {
        let of = real.canonicalize().expect("a directory").join(name);
        std::os::unix::fs::symlink(of, download.join(name)).expect("a link");
    }
    let default = models.join("all-MiniLM-L6-v2");
    let text = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    let (from, to) = (text(&download), text(&default));
    let install = ["model", "install", "embedding", &from, "--model-dir", &to];
    let none = folder.join("none");
    let (is_done, told) = run(&[&install[..], &["--as", "a/b"]].concat(), &none);
    assert!(!is_done && told.contains("must be the name of a single folder"), "{told}");
    let (is_done, told) = run(&[&install[..], &["--as", "mine"]].concat(), &none);
    assert!(is_done && told.contains(&format!("--model-dir {}", text(&models.join("mine")))));

    let mut serve = lodestone(&["serve", "--listen", "127.0.0.1:0", "--model-dir", &to]);
    let refused = serve.arg("--data-dir").arg(installation.data()).output().expect("it runs");
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("next to it: mine"), "{told}");

    let (is_done, told) = run(&install, &none);
    assert!(is_done && told.contains("where a server looks"), "{told}");
    assert!(default.join("model.safetensors").is_file(), "{told}");
}

fn embedding(client: &Client, body: Value) -> Vec<f64> {
    let found = ask(client, "POST", "/v1/embeddings", body);
    let numbers = found["data"][0]["embedding"].as_array().expect("a vector");
    numbers.iter().map(|number| number.as_f64().expect("a number")).collect()
}

/// Goal: a model is installed with the prefixes that its files lack, reported by listing and
/// doctor, and served; an incomplete directory is reported with the missing file, and keeps a
/// server from starting.
#[test]
fn an_embedding_model_is_installed_with_its_prefixes_and_served() {
    let test = "an_embedding_model_is_installed_with_its_prefixes";
    let Some(mut installation) = Installation::new(test) else { return };
    let folder = installation.dir.path().to_owned();
    let (from, models) = (folder.join("tiny-e5"), folder.join("models"));
    let words = ["query", "passage", ":"].into_iter().chain(WORDS).map(str::to_owned);
    let words: Vec<String> =
        WORDS[..3].iter().map(|word| (*word).to_owned()).chain(words).collect();
    write_tiny(&from, "BertModel", &words, HIDDEN, 1);
    std::fs::create_dir(from.join("1_Pooling")).expect("a directory");
    let pooling = from.join("1_Pooling/config.json");
    std::fs::write(&pooling, "{\"pooling_mode\": \"cls\"}").expect("a file");
    let module = |kind: &str, path: &str| json!({"path": path, "type": kind});
    let modules = json!([module("x.Transformer", ""), module("x.Pooling", "1_Pooling")]);
    std::fs::write(from.join("modules.json"), modules.to_string()).expect("a file");

    let from = from.to_str().expect("UTF-8");
    let installed = models.join("tiny-e5");
    let (to, current) = (installed.to_str().expect("UTF-8"), models.join("current"));
    let current = current.to_str().expect("UTF-8");
    let prefixes = ["--query-prefix", "query: ", "--passage-prefix", "passage: "];
    let install = ["model", "install", "embedding", from, "--model-dir", current];
    let (is_done, told) = run(&[&install[..], &prefixes].concat(), &folder.join("none"));
    assert!(is_done && told.contains(to), "{told}");
    let behind = "8 dimensions, queries behind \"query: \", documents behind \"passage: \"";
    assert!(told.contains(behind), "{told}");
    let (is_done, told) = run(&install, &folder.join("none"));
    assert!(!is_done && told.contains("--replace"), "{told}");
    let (is_done, told) =
        run(&[&install[..], &["--dimension", "4"]].concat(), &folder.join("none"));
    assert!(!is_done && told.contains("truncate_dim is 4 of 8"), "{told}");
    let (is_listed, told) = run(&["model", "ls", "--model-dir", to], &folder.join("none"));
    assert!(is_listed && told.contains(behind), "{told}");
    let (is_done, told) =
        run(&[&install[..2], &["reranker", from], &prefixes].concat(), &folder.join("none"));
    assert!(!is_done && told.contains("do not apply to a reranker"), "{told}");

    installation.model.clone_from(&installed);
    let (server, client) = installation.start();
    upload(&client, "s", "A wall of granite.");
    assert_eq!(settled(&client, "s"), "success");
    let body = json!({"tenant_id": "acme", "query": "granite stone", "alpha": 1.0});
    let found = ask(&client, "POST", "/search/retrieve", body);
    assert_eq!(found["chunks"][0]["source_id"], "s", "{found}");
    let document = embedding(&client, json!({"input": "stone"}));
    let asked = embedding(&client, json!({"input": "granite", "input_type": "query"}));
    let body = json!({"query": "granite", "documents": ["stone"]});
    let ranked = ask(&client, "POST", "/v1/rerank", body)["results"][0]["relevance_score"].clone();
    server.kill();
    installation.model = Path::new(from).to_owned();
    let (server, client) = installation.start();
    assert_eq!(document, embedding(&client, json!({"input": "passage: stone"})));
    let query = embedding(&client, json!({"input": "query: granite"}));
    assert_eq!(query, asked);
    let cosine: f64 = query.iter().zip(&document).map(|(x, y)| x * y).sum();
    assert!((ranked.as_f64().expect("a number") - cosine).abs() < 1e-4, "{ranked} for {cosine}");
    server.kill();

    std::fs::remove_file(installed.join("1_Pooling/config.json")).expect("a file");
    let mut serve = lodestone(&["serve", "--listen", "127.0.0.1:0", "--model-dir", to]);
    let refused = serve.arg("--data-dir").arg(installation.data()).output().expect("it runs");
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("1_Pooling/config.json"), "{told}");
    let (is_listed, told) = run(&["model", "ls", "--model-dir", to], &folder.join("none"));
    assert!(!is_listed && told.contains("1_Pooling/config.json"), "{told}");
}

/// Creates a copy of a model that differs in one byte and thus counts as another model.
fn another_model(model: &Path, dir: &Path) {
    std::fs::create_dir_all(dir.join("1_Pooling")).expect("a directory");
    for name in ["config.json", "1_Pooling/config.json", "model.safetensors"] {
        std::os::unix::fs::symlink(model.join(name), dir.join(name)).expect("a link");
    }
    let tokenizer = std::fs::read_to_string(model.join("tokenizer.json")).expect("a file");
    std::fs::write(dir.join("tokenizer.json"), format!("{tokenizer}\n")).expect("a file");
}

/// Goal: vectors of different models are never compared, and the server, doctor and verify report
/// the mismatch; with the former model restored, everything is as before.
#[test]
fn a_tenant_of_another_model_is_searched_by_words_only() {
    let test = "a_tenant_of_another_model_is_searched_by_words_only";
    let Some(mut installation) = Installation::new(test) else { return };
    let retrieve = |client: &Client, tenant: &str| {
        let query = "which wall is made of granite?";
        let body = json!({"tenant_id": tenant, "query": query, "alpha": 1.0});
        ask(client, "POST", "/search/retrieve", body)
    };
    let (server, client) = installation.start();
    upload(&client, "stone", "A wall of granite.");
    upload(&client, "food", "Bread and butter.");
    assert_eq!(settled(&client, "stone"), "success");
    assert_eq!(settled(&client, "food"), "success");
    server.kill();

    let own = installation.model.clone();
    installation.model = installation.dir.path().join("other-model");
    another_model(&own, &installation.model);
    let (server, client) = installation.start();
    let found = retrieve(&client, "acme");
    assert_eq!(found["metadata"]["degraded"], json!(["model_mismatch"]), "{found}");
    let chunks = found["chunks"].as_array().expect("an array");
    assert_eq!((chunks.len(), &chunks[0]["source_id"]), (1, &json!("stone")), "words only");
    let text = json!({"file_id": "new", "content": "Another wall."});
    let memory = json!({"tenant_id": "acme", "user_memory": "Nora likes slate."});
    for (path, body) in
        [("/upload/upload_text?tenant_id=acme", &text), ("/user_memory/add_user_memory", &memory)]
    {
        let refused = client.call("POST", path, body).expect("an answer");
        let said = refused.json();
        assert_eq!((refused.status, &said["reason"]), (409, &json!("model_mismatch")), "{said}");
        assert!(said["message"].as_str().expect("a text").contains("delete the tenant"), "{said}");
    }
    ask(&client, "POST", "/upload/upload_text?tenant_id=fresh", text);
    let path = "/upload/verify_processing?tenant_id=fresh&file_id=new&wait=30";
    assert_eq!(ask(&client, "POST", path, Value::Null)["status"], "success");
    assert_eq!(retrieve(&client, "fresh")["metadata"]["degraded"], json!([]));
    let ready = ask(&client, "GET", "/readyz", Value::Null)["components"]["index"].clone();
    assert!(ready.as_str().expect("a text").contains("another model"), "{ready}");
    let log = server.kill();
    assert!(log.contains("made by another model"), "{log}");

    let (data, model) = (installation.data(), &installation.model);
    let said_by = |verb: &str| {
        let mut command = lodestone(&[verb, "--data-dir"]);
        let output = command.arg(&data).arg("--model-dir").arg(model).output().expect("it runs");
        String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8")
    };
    assert!(said_by("doctor").contains("1 tenant with vectors made by another model"));
    let verified = said_by("verify");
    let line = |tenant: &str| verified.lines().find(|line| line.starts_with(tenant)).expect("one");
    assert!(line("acme: ").contains("made by another model"), "{verified}");
    assert!(!line("fresh: ").contains("another model"), "{verified}");

    installation.model = own;
    let (_server, client) = installation.start();
    let found = retrieve(&client, "acme");
    assert_eq!(found["metadata"]["degraded"], json!([]));
    assert_eq!(found["chunks"].as_array().expect("an array").len(), 2, "by meaning");
    upload(&client, "new", "Another wall.");
    assert_eq!(settled(&client, "new"), "success");
}

/// Goal: a reader that closes its pipe ends the output without an error.
#[test]
fn a_broken_pipe_is_no_error() {
    for verb in [&["model", "ls"][..], &["doctor"]] {
        let mut command = lodestone(verb);
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        command.args(["--model-dir", "/no/such/model"]).stdout(writer);
        let output = command.output().expect("the binary starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("panicked") && said.is_empty(), "{verb:?}: {said}");
        assert_eq!(output.status.code(), Some(0), "{verb:?}");
    }
}
