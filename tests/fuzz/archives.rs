//! Tenant archives, backup manifests and model files: data that operators bring from elsewhere.

use std::sync::Arc;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use lodestone_embed::{Embedder, HashEmbedder, Lane, Model, ModelFiles};
use lodestone_engine::backup::{BackupManifest, BackupStore, Folder, check, list};
use lodestone_engine::settings::Settings;
use lodestone_engine::{Components, Engine};
use lodestone_io::sealed;
use lodestone_types::{Grant, KeyScope, PageRef, Role, SourceDetail, TenantId};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::mutations::Shape;
use crate::runner::{Target, run};

fn fuzz(
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    is_contained: fn(&str) -> bool,
    read: impl Fn(&[u8]) + Send + 'static,
) {
    run(Target { name, seeds, shape: Shape::Values, read: Box::new(read), is_contained });
}

fn lines(members: &[Value]) -> Vec<u8> {
    members.iter().map(|member| format!("{member}\n")).collect::<String>().into_bytes()
}

/// The lines of an archive except the last one.
fn archive(mode: &str, kind: &str, texts: &[&str]) -> Vec<u8> {
    let is_vectors = kind == "embeddings";
    let head = json!({
        "member": "archive", "format": 1, "release": "0.1.0", "tenant_id": "acme", "mode": mode,
        "schema": null, "model": (!is_vectors).then_some(HashEmbedder.fingerprint()),
        "dimension": if is_vectors { 2 } else { HashEmbedder.dimension() }, "exported_at": 1,
    });
    let source = json!({
        "member": "source", "sub_tenant_id": "default", "file_id": "a", "kind": kind, "title": "A",
        "description": "", "filename": "a.txt", "url": "", "content_type": "text/plain",
        "size_bytes": 5, "tenant_metadata": {}, "document_metadata": {"colour": "red", "n": [1, 2]},
        "uploaded_at": 1, "last_updated_at": 2, "version": 1, "sequence": 1,
        "detail": SourceDetail::default(), "upload": null, "original_bytes": 0,
        "chunks": texts.len(),
    });
    let mut all = vec![head, json!({"member": "sub_tenant", "sub_tenant_id": "team"}), source];
    for (index, text) in texts.iter().enumerate() {
        let vector = if is_vectors { vec![0.5_f32, -2.0] } else { HashEmbedder::vector(text) };
        let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
        let chars = if is_vectors { 0 } else { text.chars().count() };
        let area = json!({"x": 1.0, "y": 2.0, "width": 3.0, "height": 4.0});
        let boxes = if is_vectors { json!([]) } else { json!([{"page": 1, "area": area}]) };
        all.push(json!({
            "member": "chunk", "index": index, "text": text, "start": 0, "page_start": 0,
            "chars": chars, "page": PageRef::Page(1), "context": "", "boxes": boxes, "lines": [],
            "graph": {"entities": [], "triplets": []}, "vector": BASE64_STANDARD.encode(bytes),
        }));
    }
    lines(&all)
}

/// Appends the last line that matches the other lines.
fn ended(archive: &[u8]) -> Vec<u8> {
    let (mut sources, mut chunks, mut original_bytes) = (0_u64, 0_u64, 0_u64);
    for line in archive.split(|byte| *byte == b'\n') {
        let member: Value = serde_json::from_slice(line).unwrap_or_default();
        match member["member"].as_str() {
            Some("source") => {
                sources += 1;
                let bytes = member["original_bytes"].as_u64().unwrap_or_default();
                original_bytes = original_bytes.wrapping_add(bytes);
            }
            Some("chunk") => chunks += 1,
            _ => {}
        }
    }
    let sha256 = hex::encode(Sha256::digest(archive));
    let end = json!({
        "member": "end", "sources": sources, "chunks": chunks, "original_bytes": original_bytes,
        "sha256": sha256,
    });
    [archive, format!("{end}\n").as_bytes()].concat()
}

/// Goal: a rejected archive changes nothing and its error names the line; an accepted one can be
/// exported, and the export can be imported again with equal content.
#[test]
fn tenants() {
    let root = tempfile::tempdir().expect("a directory");
    let settings = Settings::new(root.path().join("data"), "unused".into());
    let engine = Engine::start(settings, Components::real(Arc::new(HashEmbedder)));
    let engine = engine.expect("the engine starts");
    let grant = Grant::new("key_1".to_owned(), Role::Admin, KeyScope::AllTenants);
    let film = "Northern Light is a film directed by Marta Lindqvist.";
    let seeds = vec![
        archive("standard", "text", &[film, "red apples \u{e9}"]),
        archive("embeddings", "embeddings", &["{\"id\":\"x\",\"metadata\":{\"a\":1}}", ""]),
        archive("embeddings_l2", "embeddings", &["", "{\"metadata\":{}}"]),
    ];
    let names = ["first", "second"].map(|name| TenantId::parse(name).expect("a name"));
    let ask = move |name: &TenantId, bytes: &[u8]| {
        let imported = engine.import(&grant, Some(name.clone()), bytes)?;
        let mut out = Vec::new();
        let export = engine.export(&grant, name, None).expect("a tenant that is there");
        export.write(&mut out).expect("an export");
        engine.delete_tenant(&grant, name).expect("a tenant that is there");
        Ok::<_, lodestone_engine::EngineError>((imported, out))
    };
    for seed in &seeds {
        ask(&names[0], &ended(seed)).expect("a sound archive");
    }
    // Without the first line, which names the tenant and the time, and without the last one.
    let content = |archive: &[u8]| {
        let all: Vec<Vec<u8>> = archive.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
        all[1..all.len() - 2].to_vec()
    };
    fuzz(
        "tenants",
        seeds,
        |_| false,
        move |lines| match ask(&names[0], &ended(lines)) {
            Err(error) => assert!(!error.to_string().is_empty()),
            Ok((imported, out)) => {
                let (again, second) = ask(&names[1], &out).expect("an archive of our own");
                let counts = |one: &lodestone_engine::archive::Imported| (one.sources, one.chunks);
                assert_eq!(counts(&imported), counts(&again));
                assert!(content(&out) == content(&second), "an archive changes on the way");
            }
        },
    );
}

/// Backup manifests, and the lists that they name.
#[test]
fn backups() {
    const ID: &str = "20260131T235959.123Z";
    let root = tempfile::tempdir().expect("a directory");
    let folder = Folder::create(root.path()).expect("a folder");
    let bytes = b"[\"v1/c/a\",{\"sha256\":\"x\",\"bytes\":1}]\n";
    let mut at = 0;
    let list_object = folder.put_object(&mut |_, buffer| {
        let count = (bytes.len() - at).min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[at..at + count]);
        at += count;
        Ok(count)
    });
    let object = serde_json::to_value(list_object.expect("an object")).expect("JSON");
    let tenant = json!({
        "name": "acme", "collection": uuid::Uuid::from_u128(1), "version": 2, "sources": 3,
        "chunks": 4, "bytes": 5, "rows": [object.clone()], "files": [object.clone()],
    });
    let seed = json!({
        "id": ID, "started_at": 1, "release": "0.1.0", "catalog_format": 7, "is_whole": true,
        "tenants": [tenant], "keys": [object], "left_out": [{"tenant": "b", "reason": "c"}],
        "newest_sequence": 9, "new_bytes": 1, "new_files": 2, "damage": ["d"],
    });
    fuzz(
        "backups",
        vec![seed.to_string().into_bytes()],
        |_| false,
        move |body| {
            folder.put("backups", ID, &sealed::seal("lodestone backup 1", body)).expect("a disk");
            if let Ok(manifest) = BackupManifest::read(&folder, ID) {
                let again = serde_json::to_vec(&manifest).expect("plain data is JSON");
                assert_eq!(serde_json::from_slice::<BackupManifest>(&again).ok(), Some(manifest));
            }
            let _ = list(&folder);
            let _ = check(&folder, Some(ID));
        },
    );
}

/// The smallest models of the tests, from a fixture of another crate.
fn goldens() -> Value {
    serde_json::from_str(include_str!("../../src/embed/src/families/goldens.json"))
        .expect("a fixture")
}

/// The header and data of a tensor file.
fn tensors(listed: &Value) -> (Value, Vec<u8>) {
    let (mut head, mut data) = (json!({"__metadata__": {"format": "pt"}}), Vec::new());
    for tensor in listed.as_array().expect("tensors") {
        let begins = data.len();
        let sizes = tensor[1].as_array().expect("a shape");
        let count: u64 = sizes.iter().map(|size| size.as_f64().expect("a size") as u64).product();
        let sizes: Vec<u64> =
            sizes.iter().map(|size| size.as_f64().unwrap_or(0.0) as u64).collect();
        let value = |at: u64| tensor[2].as_f64().unwrap_or(0.0) as f32 + 0.01 * (at % 7) as f32;
        data.extend((0..count).flat_map(|at| value(at).to_le_bytes()));
        let name = tensor[0].as_str().expect("a name");
        head[name] = json!({"dtype": "F32", "shape": sizes, "data_offsets": [begins, data.len()]});
    }
    (head, data)
}

/// Fuzzes one file of a model while the others are valid. Goal: a model that loads can embed, and
/// anything else is rejected.
fn model(name: &'static str, pick: usize, put: fn(&mut ModelFiles, &[u8], &[u8])) {
    let goldens = goldens();
    let mut seeds = Vec::new();
    let mut known = Vec::new();
    let all = goldens["models"].as_array().expect("models");
    for model in all.iter().filter(|model| model["dense"].as_array().is_none_or(Vec::is_empty)) {
        let (head, data) = tensors(&model["tensors"]);
        let tokenizer = model["tokenizer"].as_str().expect("a name");
        let tokenizer = goldens["tokenizers"][tokenizer].to_string().into_bytes();
        let parts = model["parts"].as_object().into_iter().flatten();
        let config = model["config"].to_string().into_bytes();
        let head = head.to_string().into_bytes();
        seeds.push([&config, &tokenizer, &head][pick].clone());
        known.push((
            ModelFiles {
                name: model["name"].as_str().expect("a name").to_owned(),
                encoder: String::new(),
                weights: weights(&head, &data),
                config,
                tokenizer,
                parts: parts.map(|(path, one)| (path.clone(), one.to_string().into())).collect(),
            },
            data,
        ));
    }
    assert!(known.iter().any(|(files, _)| Model::load(files, 1).is_ok()), "no model is sound");
    // Panics of this library are caught by the product.
    let of_the_library = |place: &str| place.contains("/tokenizers-");
    fuzz(name, seeds, of_the_library, move |input| {
        let (files, data) = &known[input.len() % known.len()];
        let mut files = files.clone();
        put(&mut files, input, data);
        let Ok(model) = Model::load(&files, 1) else { return };
        let Ok(vectors) = model.embed(Lane::Query, vec!["a captain \u{e9}".to_owned()]) else {
            return;
        };
        assert!(vectors.len() == 1 && vectors[0].len() == model.dimension());
    });
}

fn weights(head: &[u8], data: &[u8]) -> Vec<u8> {
    [&(head.len() as u64).to_le_bytes(), head, data].concat()
}

#[test]
fn model_configs() {
    model("model_configs", 0, |files, input, _| files.config = input.to_vec());
}

#[test]
fn model_tokenizers() {
    model("model_tokenizers", 1, |files, input, _| files.tokenizer = input.to_vec());
}

#[test]
fn model_weights() {
    model("model_weights", 2, |files, input, data| files.weights = weights(input, data));
}
