//! `lodestone model install NAME`: a stand-in for a model hub that fails, refuses and serves wrong
//! data.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tempfile::TempDir;

use crate::models::write_tiny;
use crate::process::lodestone;
use crate::process::patience::Patience;
use crate::stand_in::{Asked, StandIn, Told};

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";
const TOKEN: &str = "hf_the_token_of_the_tests";
const NAME: &str = "intfloat/multilingual-e5-small";
const WEIGHTS: &str = "model.safetensors";

/// The files of a repository, by path.
type Files = BTreeMap<String, Vec<u8>>;

/// A sentence embedding model with a tiny vocabulary.
fn tiny() -> Files {
    let dir = TempDir::new().expect("a temporary directory");
    let words = ["[UNK]", "[CLS]", "[SEP]", "granite"].map(str::to_owned);
    write_tiny(dir.path(), "BertModel", &words, 8, 1);
    let mut files = Files::new();
    for name in ["config.json", "tokenizer.json", WEIGHTS] {
        files.insert(name.to_owned(), fs::read(dir.path().join(name)).expect("a file"));
    }
    let modules = json!([{"path": "", "type": "sentence_transformers.models.Transformer"},
        {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]);
    files.insert("modules.json".to_owned(), modules.to_string().into_bytes());
    files.insert("1_Pooling/config.json".to_owned(), br#"{"pooling_mode": "mean"}"#.to_vec());
    for unwanted in ["README.md", "onnx/model.onnx", "../../escaped"] {
        files.insert(unwanted.to_owned(), b"not to be fetched".to_vec());
    }
    files
}

fn hash(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// The hub's file listing, with the hashes of large files.
fn list(files: &Files) -> Value {
    let file = |(path, bytes): (&String, &Vec<u8>)| match path.ends_with(".safetensors") {
        true => json!({"rfilename": path, "size": bytes.len(),
            "lfs": {"sha256": hash(bytes), "size": bytes.len(), "pointerSize": 134}}),
        false => json!({"rfilename": path, "size": bytes.len()}),
    };
    json!({"id": NAME, "sha": COMMIT, "siblings": files.iter().map(file).collect::<Vec<_>>()})
}

/// The response of a hub that works.
fn hub(files: &Files, asked: &Asked) -> Told {
    let path = asked.path();
    if path == format!("/api/models/{NAME}/revision/main") {
        return Told::json(200, &list(files));
    }
    let file = path.strip_prefix(&format!("/{NAME}/resolve/{COMMIT}/"));
    match file.and_then(|file| files.get(file)) {
        Some(bytes) => part(bytes, asked),
        None => Told::bytes(404, Vec::new()).with("X-Error-Code", "RepoNotFound"),
    }
}

/// A file, starting at the requested byte.
fn part(bytes: &[u8], asked: &Asked) -> Told {
    let range = asked.header("range").and_then(|text| text.strip_prefix("bytes="));
    let Some(from) = range.map(|range| range.trim_end_matches('-').parse().expect("a number"))
    else {
        return Told::bytes(200, bytes.to_vec());
    };
    let from: usize = from;
    let range = format!("bytes {from}-{}/{}", bytes.len() - 1, bytes.len());
    Told::bytes(206, bytes[from..].to_vec()).with("content-range", range)
}

/// A directory for models, and the environment of a hub client.
struct Place {
    dir: TempDir,
}

impl Place {
    fn new() -> Self {
        Self { dir: TempDir::new().expect("a temporary directory") }
    }

    fn models(&self) -> PathBuf {
        self.dir.path().join("models")
    }

    fn command(&self, hub: &str, arguments: &[&str]) -> std::process::Command {
        let mut command = lodestone(&["model", "install", "embedding"]);
        command.args(arguments).arg("--model-dir").arg(self.models().join("in-use"));
        for name in ["HF_TOKEN_PATH", "HF_HUB_CACHE", "HF_HUB_OFFLINE", "XDG_CACHE_HOME"] {
            command.env_remove(name);
        }
        command.env("HF_ENDPOINT", hub).env("HF_HOME", self.dir.path().join("home"));
        command.env("HF_TOKEN", TOKEN);
        command
    }

    /// Runs an installation; returns whether it succeeded, and its output.
    fn install(&self, hub: &str, arguments: &[&str]) -> (bool, String) {
        said(self.command(hub, arguments))
    }

    /// The names in the models directory, sorted.
    fn names(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.models()) else { return Vec::new() };
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.expect("an entry").file_name().into_string().expect("UTF-8")
        };
        let mut names: Vec<String> = entries.map(name).collect();
        names.sort();
        names
    }

    /// The path of the partially downloaded weights.
    fn partial(&self) -> PathBuf {
        self.models().join(format!(".{}-{COMMIT}", NAME.replace('/', "--"))).join(WEIGHTS)
    }
}

fn said(mut command: std::process::Command) -> (bool, String) {
    let run = command.output().expect("the binary runs");
    let told = String::from_utf8([run.stdout, run.stderr].concat()).expect("UTF-8");
    assert!(!told.contains(TOKEN), "{told}");
    (run.status.success(), told)
}

/// Goal: an installation killed while downloading the weights, which come from another host,
/// resumes at the same byte; the other host never sees the token, and only files of the model are
/// requested.
#[test]
fn an_install_goes_on_after_a_kill() {
    let files = Arc::new(tiny());
    let weights = files[WEIGHTS].clone();
    let half = weights.len() / 2;
    let visits = AtomicUsize::new(0);
    let there = StandIn::start(move |asked| {
        let whole = part(&weights, asked);
        match visits.fetch_add(1, Ordering::SeqCst) {
            0 => Told { part: Some((half, true)), ..whole },
            _ => whole,
        }
    });
    let address = format!("{}/signed?signature=secret-signature", there.url);
    let of_hub = Arc::clone(&files);
    let here = StandIn::start(move |asked| match asked.path().ends_with(WEIGHTS) {
        true => Told::bytes(302, Vec::new()).with("location", address.clone()),
        false => hub(&of_hub, asked),
    });
    let place = Place::new();
    let mut child = place.command(&here.url, &[NAME]).spawn().expect("the binary starts");
    let mut patience = Patience::new();
    loop {
        let length = fs::metadata(place.partial()).map_or(0, |at| at.len() as usize);
        if length == half {
            break;
        }
        assert!(!patience.is_over(length), "{length} of {half} bytes came");
    }
    child.kill().expect("a child can be killed");
    child.wait().expect("a child can be waited for");
    assert_eq!(place.names().len(), 1, "nothing is installed: {:?}", place.names());

    let (is_done, told) = place.install(&here.url, &[NAME]);
    assert!(is_done, "{told}");
    assert!(told.contains(&format!("{NAME}@{COMMIT}")), "{told}");
    assert!(!told.contains("secret-signature"), "{told}");
    assert_eq!(place.names(), ["multilingual-e5-small"], "the parts are gone");
    let installed = place.models().join("multilingual-e5-small");
    assert_eq!(fs::read(installed.join(WEIGHTS)).expect("weights"), files[WEIGHTS]);
    let ranges: Vec<_> =
        there.asked().iter().map(|one| one.header("range").map(str::to_owned)).collect();
    assert_eq!(ranges, [None, Some(format!("bytes={half}-"))]);
    assert!(there.asked().iter().all(|one| one.header("authorization").is_none()));
    let bearer = format!("Bearer {TOKEN}");
    for asked in here.asked() {
        assert_eq!(asked.header("authorization"), Some(bearer.as_str()), "{}", asked.line);
        assert!(!asked.line.contains("README") && !asked.line.contains(".."), "{}", asked.line);
    }
    let mut command = lodestone(&["model", "ls"]);
    command.arg("--model-dir").arg(&installed);
    let (is_listed, told) = said(command);
    assert!(is_listed && told.contains(&format!("from {NAME}@{COMMIT}")), "{told}");
    assert!(told.contains("queries behind \"query: \""), "known prefixes are written: {told}");
}

/// Goal: content with a wrong hash is removed and nothing is installed; requests are retried when a
/// hub is busy, fails or drops connections.
#[test]
fn what_is_wrong_is_removed_and_what_is_broken_is_asked_again() {
    let mut changed = tiny();
    let listed = list(&changed);
    *changed.get_mut(WEIGHTS).expect("weights").last_mut().expect("a byte") ^= 1;
    let lying = StandIn::start(move |asked| match asked.path().starts_with("/api/") {
        true => Told::json(200, &listed),
        false => hub(&changed, asked),
    });
    let place = Place::new();
    let (is_done, told) = place.install(&lying.url, &[NAME]);
    assert!(!is_done && told.contains("SHA-256") && told.contains("was removed"), "{told}");
    assert!(!place.partial().exists() && place.partial().with_file_name("config.json").exists());
    assert_eq!(place.names().len(), 1, "{:?}", place.names());

    let files = tiny();
    let turns = Mutex::new(BTreeMap::<String, usize>::new());
    let tired = StandIn::start(move |asked| {
        let mut turns = turns.lock().expect("no panic");
        let turn = turns.entry(asked.path().to_owned()).or_default();
        *turn += 1;
        let whole = hub(&files, asked);
        match (*turn, asked.path().ends_with(WEIGHTS)) {
            (1, false) => Told::bytes(429, Vec::new()).with("retry-after", "0"),
            (2, false) => Told::bytes(503, Vec::new()).with("retry-after", "0"),
            (1..=3, true) => Told { part: Some((whole.body.len() / 3, false)), ..whole },
            _ => whole,
        }
    });
    let (is_done, told) = place.install(&tired.url, &[NAME]);
    assert!(is_done, "{told}");
    assert_eq!(place.names(), ["multilingual-e5-small"]);
    let (is_done, told) = place.install(&tired.url, &[NAME]);
    assert!(!is_done && told.contains("--replace"), "{told}");
}

/// Goal: permanent errors are explained, with the name of what is missing or wrong.
#[test]
fn refusals_are_told() {
    let place = Place::new();
    let refused = |answer: Told, wanted: &str| {
        let hub = StandIn::start(move |_| answer.clone());
        let (is_done, told) = place.install(&hub.url, &[NAME]);
        assert!(!is_done && told.contains(wanted), "{wanted}: {told}");
        assert_eq!(hub.asked().len(), 1, "it is not asked again");
        assert_eq!(place.names(), Vec::<String>::new());
    };
    refused(Told::bytes(401, Vec::new()), "HF_TOKEN");
    refused(Told::bytes(403, Vec::new()), "conditions");
    refused(
        Told::bytes(404, Vec::new()).with("x-error-code", "RevisionNotFound"),
        "revision not found",
    );
    refused(Told::bytes(404, Vec::new()), "model or revision not found");
    refused(Told::json(200, &json!({"sha": "../../x", "siblings": []})), "as the commit");
    refused(Told::bytes(200, b"<html>".to_vec()), "not JSON");

    let incomplete = |files: Files, wanted: &str| {
        let place = Place::new();
        let hub = StandIn::start(move |asked| hub(&files, asked));
        let (is_done, told) = place.install(&hub.url, &[NAME]);
        assert!(!is_done && told.contains(wanted), "{wanted}: {told}");
        assert!(place.names().iter().all(|name| name.starts_with('.')), "{:?}", place.names());
    };
    let mut files = tiny();
    files.remove(WEIGHTS);
    incomplete(files.clone(), "it lacks model.safetensors");
    files.insert("pytorch_model.bin".to_owned(), vec![0]);
    incomplete(files, "can be converted");
    let mut files = tiny();
    let away = json!([{"path": "../1_Pooling", "type": "a.Pooling"}]).to_string();
    files.insert("modules.json".to_owned(), away.into_bytes());
    incomplete(files, "not the name of a folder");

    for name in ["owner/..", "owner/a..b", "nobody-knows-this", "a/b/c"] {
        let (is_done, told) = place.install("http://127.0.0.1:9", &[name]);
        assert!(!is_done && told.contains("nor OWNER/NAME"), "{name}: {told}");
    }
    for revision in ["../main", "a b"] {
        let (is_done, told) = place.install("http://127.0.0.1:9", &[NAME, "--revision", revision]);
        assert!(!is_done && told.contains("--revision"), "{revision}: {told}");
    }
}

/// Goal: a download that would fill the disk is not started. Method: a small tmpfs in a mount
/// namespace of its own, which requires root.
#[test]
fn a_disk_that_is_too_small_is_told_before_the_weights() {
    let files = tiny();
    let hub = StandIn::start(move |asked| hub(&files, asked));
    let place = Place::new();
    fs::create_dir(place.models()).expect("a directory");
    let inner = place.command(&hub.url, &[NAME]);
    let script = "mount -t tmpfs -o size=16m none $0 && exec \"$@\"";
    let mut command = std::process::Command::new("unshare");
    command.args(["-m", "sh", "-c", script]).arg(place.models());
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let (is_done, told) = said(command);
    if hub.asked().is_empty() {
        println!("SKIPPED a_disk_that_is_too_small: no tmpfs can be mounted here");
        return;
    }
    assert!(!is_done && told.contains("bytes free") && told.contains("are needed"), "{told}");
    assert!(hub.asked().iter().all(|asked| !asked.path().ends_with(WEIGHTS)));
}

/// Goal: a model in the hub's local cache is used from there; if it is absent in offline mode, no
/// request is made.
#[test]
fn the_cache_is_used_and_offline_means_offline() {
    let hub = StandIn::start(|_| Told::bytes(500, Vec::new()));
    let place = Place::new();
    let offline = |arguments: &[&str]| {
        let mut command = place.command(&hub.url, arguments);
        command.env("HF_HUB_OFFLINE", "1");
        said(command)
    };
    let (is_done, told) = offline(&[NAME]);
    assert!(!is_done && told.contains("HF_HUB_OFFLINE") && told.contains("home/hub"), "{told}");

    let folder = place.dir.path().join("home/hub/models--intfloat--multilingual-e5-small");
    let snapshot = folder.join("snapshots").join(COMMIT);
    for (path, bytes) in tiny().iter().filter(|(path, _)| !path.contains("..")) {
        write(&snapshot.join(path), bytes);
    }
    write(&folder.join("refs/main"), COMMIT.as_bytes());
    let (is_done, told) = offline(&[NAME]);
    assert!(is_done && told.contains(&format!("{NAME}@{COMMIT}")), "{told}");
    let (is_done, told) = offline(&["multilingual-e5-small", "--revision", COMMIT, "--replace"]);
    assert!(is_done, "by its short name and commit: {told}");
    let (is_done, told) = offline(&[NAME, "--revision", "v2", "--replace"]);
    assert!(!is_done && told.contains("at v2 is not in"), "{told}");
    assert_eq!(hub.asked().len(), 0, "nobody was asked");
    assert!(snapshot.join(WEIGHTS).exists(), "the cache stays");
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, bytes).expect("a file");
}
