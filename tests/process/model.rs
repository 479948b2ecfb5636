//! Embedding models for tests: the real model, and a cheap one cut down to its first layer.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

/// Returns the directory of the real model. If it is absent, prints that the test is skipped and
/// returns `None`.
pub fn model_dir(test: &str) -> Option<PathBuf> {
    let default = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/all-MiniLM-L6-v2");
    let dir = std::env::var_os("LODESTONE_MODEL_DIR").map_or(default, PathBuf::from);
    if dir.join("model.safetensors").exists() {
        return Some(dir);
    }
    println!("SKIPPED {test}: no model in {}; scripts/setup gets it", dir.display());
    None
}

/// Returns the directory of a model cut down to the real one's word embeddings and first layer: its
/// vectors have the same width and are close for texts that share words, at a sixth of the cost.
/// `None` as from [`model_dir`].
///
/// The model is built once per length of the weights and kept in the target directory. Concurrent
/// processes may build it at the same time; they produce identical files.
pub fn first_layer_dir(test: &str) -> Option<PathBuf> {
    let real = model_dir(test)?;
    let bytes = fs::metadata(real.join("model.safetensors")).expect("weights").len();
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("first-layer-{bytes}"));
    let dir = parent.join(real.file_name().expect("a directory"));
    if !dir.exists() {
        fs::create_dir_all(&parent).expect("a directory");
        let made = tempfile::tempdir_in(&parent).expect("a directory");
        write_first_layer(&real, made.path());
        if fs::rename(made.path(), &dir).is_err() {
            assert!(dir.exists(), "{} cannot be made", dir.display());
        }
    }
    Some(dir)
}

fn write_first_layer(from: &Path, to: &Path) {
    let config = fs::read(from.join("config.json")).expect("a configuration");
    let mut config: Value = serde_json::from_slice(&config).expect("JSON");
    config["num_hidden_layers"] = json!(1);
    fs::write(to.join("config.json"), config.to_string()).expect("a file");
    fs::copy(from.join("tokenizer.json"), to.join("tokenizer.json")).expect("a tokenizer");
    let weights = fs::read(from.join("model.safetensors")).expect("weights");
    fs::write(to.join("model.safetensors"), without_later_layers(&weights)).expect("a file");
}

/// Removes the tensors of all layers but the first from a safetensors file. The file consists of
/// the header's length (8 bytes), the header as JSON and the bytes of all tensors; see
/// <https://github.com/huggingface/safetensors#format>.
fn without_later_layers(file: &[u8]) -> Vec<u8> {
    let (length, rest) = file.split_first_chunk::<8>().expect("a length");
    let length = usize::try_from(u64::from_le_bytes(*length)).expect("a length");
    let (header, data) = rest.split_at(length);
    let header: Map<String, Value> = serde_json::from_slice(header).expect("JSON");
    let (mut kept, mut bytes) = (Map::new(), Vec::new());
    for (name, mut tensor) in header {
        if name == "__metadata__" || name.contains(".layer.") && !name.contains(".layer.0.") {
            continue;
        }
        let offset = |at: usize| tensor["data_offsets"][at].as_u64().expect("an offset") as usize;
        let begin = bytes.len();
        bytes.extend_from_slice(&data[offset(0)..offset(1)]);
        tensor["data_offsets"] = json!([begin, bytes.len()]);
        kept.insert(name, tensor);
    }
    let mut header = Value::Object(kept).to_string();
    // The tensor data must begin at a multiple of eight bytes.
    header += &" ".repeat(header.len().next_multiple_of(8) - header.len());
    [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &bytes].concat()
}
