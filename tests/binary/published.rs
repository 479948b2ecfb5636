//! The published models that `docs/models.md` names, with the shape of their files, small sizes and
//! random weights: from their directory to the searches of a server, and what is wrong with a
//! directory that is not whole. `scripts/model_goldens` has written what they hold.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::process::http::Client;
use crate::process::lodestone;
use crate::{Installation, ask, settled, upload};

/// Files of a model's directory, by path.
type Files = BTreeMap<String, Vec<u8>>;

const TEXT: &str = "The captain of the ship burns the lamp.";

fn fixture(name: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/embed/src/families");
    let text = fs::read(folder.join(name)).expect("a fixture");
    serde_json::from_slice(&text).expect("JSON")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

/// The files of a published model in its small sizes.
fn files(model: &Value) -> Files {
    let mut config = model["config"].clone();
    for (name, value) in model["small"].as_object().expect("an object") {
        config[name] = value.clone();
    }
    let tokenizer = &fixture("goldens.json")["tokenizers"][text(&model["tokenizer"])];
    let mut files = Files::from([
        ("config.json".to_owned(), config.to_string().into_bytes()),
        ("tokenizer.json".to_owned(), tokenizer.to_string().into_bytes()),
        ("model.safetensors".to_owned(), safetensors(list(&model["tensors"]))),
    ]);
    if model["pooling"].is_null() {
        return files;
    }
    let mut modules = vec![("Transformer", ""), ("Pooling", "1_Pooling")];
    let is_first = model["pooling"] == "cls";
    let pooling = json!({"word_embedding_dimension": config["hidden_size"],
        "pooling_mode_cls_token": is_first, "pooling_mode_mean_tokens": !is_first});
    let mut parts = vec![("1_Pooling/config.json", pooling)];
    if let Some(width) = model["dense"].as_u64() {
        modules.push(("Dense", "2_Dense"));
        let inputs = &config["hidden_size"];
        let dense = json!({"in_features": inputs, "out_features": width, "bias": true,
            "activation_function": "torch.nn.modules.linear.Identity"});
        parts.push(("2_Dense/config.json", dense));
        let weights = json!([
            ["linear.weight", [width, inputs], 0.0, 1.0],
            ["linear.bias", [width], 0.0, 1.0]
        ]);
        files.insert("2_Dense/model.safetensors".to_owned(), safetensors(list(&weights)));
    }
    modules.push(("Normalize", if modules.len() == 3 { "3_Normalize" } else { "2_Normalize" }));
    let module = |(kind, path): &(&str, &str)| {
        let kind = format!("sentence_transformers.models.{kind}");
        json!({"path": path, "type": kind})
    };
    parts.push(("modules.json", modules.iter().map(module).collect()));
    let prompts = json!({"prompts": model["prompts"], "default_prompt_name": null});
    parts.push(("config_sentence_transformers.json", prompts));
    files.extend(parts.into_iter().map(|(path, part)| (path.to_owned(), part.to_string().into())));
    files
}

/// safetensors of (name, shape, offset, factor): u64 length of a JSON header, the header, float32
/// little-endian.
fn safetensors(listed: &[Value]) -> Vec<u8> {
    let (mut header, mut numbers) = (Map::new(), Vec::<u8>::new());
    for (salt, entry) in listed.iter().enumerate() {
        let begin = numbers.len();
        let count = list(&entry[1]).iter().map(|size| size.as_u64().expect("a size")).product();
        let [offset, factor] = [2, 3].map(|at| entry[at].as_f64().expect("a number"));
        for i in 0..count {
            let phase = (i as f64).mul_add(12.9898, salt as f64 * 78.233);
            let number = (phase.sin() * 43_758.545_3).fract();
            numbers.extend((factor.mul_add(number, offset) as f32).to_le_bytes());
        }
        let offsets = [begin, numbers.len()];
        let tensor = json!({"dtype": "F32", "shape": entry[1], "data_offsets": offsets});
        header.insert(text(&entry[0]).to_owned(), tensor);
    }
    let header = Value::Object(header).to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &numbers].concat()
}

fn write(files: &Files, dir: &Path) {
    for (path, bytes) in files {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a directory");
        fs::write(path, bytes).expect("a file");
    }
}

/// `lodestone model install KIND DIR` to the folder `models` of `place`: whether it succeeded, and
/// what it said.
fn install(kind: &str, dir: &Path, place: &Path, more: &[String]) -> (bool, String) {
    let mut command = lodestone(&["model", "install", kind]);
    command.arg(dir).args(more).arg("--model-dir").arg(place.join("models/current"));
    let run = command.output().expect("the binary runs");
    (run.status.success(), String::from_utf8_lossy(&[run.stdout, run.stderr].concat()).into_owned())
}

/// The models of a list that have this kind of tokenizer.
fn of_kind(models: &str, tokenizer: &str) -> Vec<Value> {
    let mut found = list(&fixture("published.json")[models]).clone();
    found.retain(|model| model["tokenizer"] == tokenizer);
    assert!(!found.is_empty(), "{tokenizer}");
    found
}

/// An embedding model, installed with the prefixes that its page asks for.
fn installed(model: &Value, dir: &TempDir) -> Installation {
    let name = text(&model["name"]);
    let from = dir.path().join("downloaded").join(name);
    write(&files(model), &from);
    let prefix = |role: &str| {
        let given = model["by_hand"][role].as_str();
        given.map(|given| [format!("--{role}-prefix"), given.to_owned()])
    };
    let prefixes = ["query", "passage"].into_iter().filter_map(prefix).flatten();
    let (is_done, told) = install("embedding", &from, dir.path(), &prefixes.collect::<Vec<_>>());
    let width = model["dense"].as_u64().or(model["small"]["hidden_size"].as_u64());
    let width = format!("{} dimensions", width.expect("a width"));
    assert!(is_done && told.contains(&width), "{name}: {told}");
    let prompts = [&model["prompts"], &model["by_hand"]];
    for prompt in prompts.into_iter().flat_map(|all| all.as_object().expect("prompts").values()) {
        assert!(told.contains(&format!("behind {prompt}")), "{name}: {told}");
    }
    let data = TempDir::new().expect("a temporary directory");
    Installation { dir: data, model: dir.path().join("models").join(name) }
}

/// Two texts of a tenant.
fn ingest(client: &Client) {
    upload(client, "ship", TEXT);
    upload(client, "storm", "Wind and storm. Where do visitors park?");
    assert_eq!(settled(client, "ship"), "success");
    assert_eq!(settled(client, "storm"), "success");
}

/// Installs, ingests and searches with every model of a kind.
fn all_are_installed_and_searched(tokenizer: &str) {
    for model in of_kind("models", tokenizer) {
        let dir = TempDir::new().expect("a temporary directory");
        let name = text(&model["name"]);
        let installation = installed(&model, &dir);
        let (server, client) = installation.start();
        ingest(&client);
        let body = json!({"tenant_id": "acme", "query": TEXT, "alpha": 1.0});
        let found = ask(&client, "POST", "/search/retrieve", body);
        let told = &found["metadata"];
        assert_eq!((&told["embedding_model"], &told["degraded"]), (&json!(name), &json!([])));
        let chunks = list(&found["chunks"]);
        let of_ship = chunks.iter().find(|chunk| chunk["source_id"] == "ship");
        let cosine = of_ship.expect("the text itself")["vector_score"].as_f64();
        let cosine = cosine.expect("a cosine");
        let has_prefix = [&model["prompts"], &model["by_hand"]]
            .iter()
            .any(|prompts| !prompts.as_object().expect("prompts").is_empty());
        // Vectors are stored in eight bits.
        assert!(has_prefix || cosine > 0.99, "{name}: {cosine}");
        assert_eq!(chunks.len(), 2, "{name}");
        server.kill();
    }
}

#[test]
fn models_with_word_pieces_are_installed_and_searched() {
    all_are_installed_and_searched("word_piece");
}

#[test]
fn models_of_many_languages_are_installed_and_searched() {
    all_are_installed_and_searched("unigram");
}

#[test]
fn models_with_tokens_of_bytes_are_installed_and_searched() {
    all_are_installed_and_searched("byte_level");
}

#[test]
fn rerankers_are_installed_and_read_what_is_found() {
    let embedding = of_kind("models", "word_piece").remove(0);
    for tokenizer in ["word_piece", "unigram"] {
        let model = of_kind("rerankers", tokenizer).remove(0);
        let name = text(&model["name"]);
        let dir = TempDir::new().expect("a temporary directory");
        let from = dir.path().join(name);
        write(&files(&model), &from);
        let (is_done, told) = install("reranker", &from, dir.path(), &[]);
        assert!(is_done, "{name}: {told}");
        // Beside the embedding model a server finds it by itself.
        let installation = installed(&embedding, &dir);
        let (server, client) = installation.start();
        ingest(&client);
        let body = json!({"tenant_id": "acme", "query": "the lamp", "mode": "accurate"});
        let found = ask(&client, "POST", "/search/retrieve", body);
        let told = &found["metadata"];
        assert_eq!((&told["reranker"], &told["degraded"]), (&json!(name), &json!([])));
        let verdicts = list(&found["chunks"]).iter().map(|chunk| chunk["rerank_score"].as_f64());
        let verdicts: Vec<f64> = verdicts.map(|verdict| verdict.expect("a verdict")).collect();
        assert!(verdicts.len() == 2 && verdicts[0] != verdicts[1], "{name}: {verdicts:?}");
        server.kill();
    }
}

/// Without any one of its files or tensors a directory is refused, with the name of what it lacks.
#[test]
fn a_directory_that_lacks_a_part_is_refused_by_its_name() {
    let published = fixture("published.json");
    let kinds = [("models", "embedding"), ("rerankers", "reranker")];
    for (model, kind) in kinds
        .iter()
        .flat_map(|(models, kind)| list(&published[models]).iter().map(move |model| (model, kind)))
    {
        let (dir, whole) = (TempDir::new().expect("a temporary directory"), files(model));
        let from = dir.path().join("downloaded");
        let refused = |files: &Files, lack: &str| {
            write(files, &from);
            let (is_done, told) = install(kind, &from, dir.path(), &[]);
            assert!(!is_done && told.contains(lack), "{} without {lack}: {told}", model["name"]);
            fs::remove_dir_all(&from).expect("a directory");
        };
        let needed = |path: &&String| {
            !["modules.json", "config_sentence_transformers.json"].contains(&path.as_str())
        };
        for path in whole.keys().filter(needed) {
            let mut files = whole.clone();
            files.remove(path);
            refused(&files, path);
        }
        let mut tensors = list(&model["tensors"]).clone();
        // Embedding models make no use of the pooler.
        tensors.retain(|tensor| !text(&tensor[0]).contains("pooler."));
        let at = tensors.len() / 2;
        let lost = tensors.remove(at);
        let mut files = whole.clone();
        files.insert("model.safetensors".to_owned(), safetensors(&tensors));
        let bare = ["bert.", "roberta."].iter().find_map(|one| text(&lost[0]).strip_prefix(one));
        refused(&files, bare.unwrap_or(text(&lost[0])));
        assert!(!dir.path().join("models").exists(), "nothing is left of a refused model");
    }
}
