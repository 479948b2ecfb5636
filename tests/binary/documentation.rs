//! Keeps the README and `docs/` correct: runs their examples and follows their paths and links.
//!
//! Blocks marked `sh` run in order against a server, with one shell and one server per file. A
//! `json` block after one is a part of its response: every member shown must exist with the value
//! shown; array elements are compared from the first on; `...` inside a string stands for any text;
//! numbers with a fraction may differ by a twentieth. A `text` block after one is a part of its
//! output, line by line, where a line `...` stands for any lines. Where nothing is shown, no
//! response may be an error. Blocks marked `console` are for humans and are not run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

use crate::KEY;
use crate::process::{self, Server};

/// The line that the shell prints after each example.
const MARK: &str = "-- end of an example --";
/// The languages that blocks may have.
const LANGUAGES: [&str; 7] = ["sh", "json", "text", "console", "toml", "ini", "nginx"];
/// The first folders of paths that must exist.
const FOLDERS: [&str; 9] =
    ["src/", "scripts/", "docs/", "tests/", "benches/", "kernels/", "deploy/", ".ci/", ".config/"];

/// A fenced block of a document.
#[derive(Debug)]
struct Block {
    /// The line of its opening fence, counted from 1.
    line: usize,
    language: String,
    body: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The README and all pages of `docs/`, sorted by name.
fn documents() -> Vec<PathBuf> {
    let pages = fs::read_dir(root().join("docs")).expect("docs/ is there");
    let pages = pages.map(|entry| entry.expect("an entry").path());
    let mut all: Vec<PathBuf> =
        pages.filter(|path| path.extension() == Some("md".as_ref())).collect();
    all.push(root().join("README.md"));
    all.sort();
    all
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn name(path: &Path) -> String {
    path.strip_prefix(root()).expect("a file of ours").display().to_string()
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for (at, line) in text.lines().enumerate() {
        match (line.trim_start().strip_prefix("```"), &mut open) {
            (Some(language), None) => {
                let language = language.trim().to_owned();
                open = Some(Block { line: at + 1, language, body: String::new() });
            }
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.body += &format!("{line}\n"),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed: {open:?}");
    blocks
}

#[test]
fn every_example_runs() {
    if Command::new("curl").arg("--version").output().is_err() {
        println!("SKIPPED documentation::every_example_runs: no curl");
        return;
    }
    let Some(model) = process::model::model_dir("documentation::every_example_runs") else {
        return;
    };
    let mut problems = Vec::new();
    for path in documents() {
        let blocks = blocks(&read(&path));
        if blocks.iter().any(|block| block.language == "sh") {
            let found = wrong_examples(&blocks, &model);
            problems.extend(found.into_iter().map(|problem| format!("{}:{problem}", name(&path))));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Runs the examples of one document; describes those that fail or respond differently than shown.
fn wrong_examples(blocks: &[Block], model: &Path) -> Vec<String> {
    let dir = TempDir::new().expect("a temporary directory");
    let work = dir.path().join("work");
    fs::create_dir(&work).expect("a directory");
    let mut server = Server::spawn(&dir.path().join("data"), model, Some(KEY));
    let (banner, _) = server.ready();
    let address = banner.client(KEY).address;

    let examples: Vec<usize> = (0..blocks.len()).filter(|&i| blocks[i].language == "sh").collect();
    let mut script = String::from("set -euo pipefail\n");
    for &at in &examples {
        script += &format!("{}\nprintf '\\n%s\\n' '{MARK}'\n", blocks[at].body);
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_lodestone")).parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-c", &script])
        .current_dir(&work)
        .env("HOME", &work)
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("SERVER", format!("http://{address}"))
        .env("KEY", KEY)
        .env("AUTH", format!("authorization: Bearer {KEY}"))
        .env("JSON", "content-type: application/json")
        .output()
        .expect("bash");
    let printed = String::from_utf8_lossy(&output.stdout);
    let outputs: Vec<&str> = printed.split(MARK).collect();

    let mut problems = Vec::new();
    for (&at, printed) in examples.iter().zip(&outputs) {
        let found = wrong_output(printed, blocks.get(at + 1));
        let line = blocks[at].line;
        problems.extend(found.into_iter().map(|problem| format!("{line}: {problem}")));
    }
    if !output.status.success() {
        let line = examples.get(outputs.len() - 1).map_or(0, |&at| blocks[at].line);
        let errors = String::from_utf8_lossy(&output.stderr);
        problems.push(format!("{line}: ended with {}: {errors}", output.status));
    }
    problems
}

/// Describes the differences between the output of an example and the block after it.
fn wrong_output(printed: &str, shown: Option<&Block>) -> Vec<String> {
    let mut problems = Vec::new();
    match shown {
        Some(block) if block.language == "json" => {
            let shown: Value = match serde_json::from_str(&block.body) {
                Ok(shown) => shown,
                Err(error) => return vec![format!("the answer shown is no JSON: {error}")],
            };
            match answers(printed).pop() {
                Some(answer) => {
                    compare(&shown, &answer, "answer", &mut problems);
                    if !problems.is_empty() {
                        problems.push(format!("the answer is {answer}"));
                    }
                }
                None => problems.push(format!("no JSON in the output: {printed}")),
            }
        }
        Some(block) if block.language == "text" => {
            if let Some(line) = missing_line(&block.body, printed) {
                problems.push(format!("no line {line:?} in the output, or not there: {printed}"));
            }
        }
        _ => {
            let failed = |answer: &Value| answer.get("error").is_some_and(Value::is_string);
            let errors = answers(printed).into_iter().filter(failed);
            problems.extend(errors.map(|error| format!("an error is answered: {error}")));
        }
    }
    problems
}

/// The JSON values in an output, which may have other lines between them.
fn answers(printed: &str) -> Vec<Value> {
    let mut found = Vec::new();
    for line in printed.lines() {
        let values = serde_json::Deserializer::from_str(line).into_iter::<Value>();
        found.extend(values.map_while(Result::ok).filter(|value| !value.is_number()));
    }
    found
}

/// Collects the parts of a shown value that the real one lacks or has differently.
fn compare(shown: &Value, real: &Value, at: &str, problems: &mut Vec<String>) {
    let alike = match (shown, real) {
        (Value::Object(shown), Value::Object(real)) => {
            for (key, value) in shown {
                match real.get(key) {
                    Some(real) => compare(value, real, &format!("{at}.{key}"), problems),
                    None => problems.push(format!("{at} has no member {key}")),
                }
            }
            true
        }
        (Value::Array(shown), Value::Array(real)) => {
            for (i, (shown, real)) in shown.iter().zip(real).enumerate() {
                compare(shown, real, &format!("{at}[{i}]"), problems);
            }
            shown.len() <= real.len() && shown.is_empty() <= real.is_empty()
        }
        (Value::String(shown), Value::String(real)) => elided(shown, real),
        (Value::Number(shown), Value::Number(real)) if shown.is_f64() => {
            let apart = |real: f64| (shown.as_f64().unwrap_or(f64::NAN) - real).abs();
            real.as_f64().is_some_and(|real| apart(real) <= 0.05)
        }
        _ => shown == real,
    };
    if !alike {
        problems.push(format!("{at} is {real}, not {shown}"));
    }
}

/// Whether a text matches the one shown, in which `...` stands for any text.
fn elided(shown: &str, real: &str) -> bool {
    let pieces: Vec<&str> = shown.split("...").collect();
    let [first, middle @ .., last] = pieces.as_slice() else { return shown == real };
    let Some(mut rest) = real.strip_prefix(first) else { return false };
    for piece in middle {
        match rest.split_once(piece) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// The first line shown that is missing from an output.
fn missing_line<'a>(shown: &'a str, printed: &str) -> Option<&'a str> {
    let mut lines = printed.lines().skip_while(|line| line.is_empty());
    let mut skip = false;
    for shown in shown.lines() {
        let found = match (shown == "...", skip) {
            (true, _) => true,
            (false, true) => lines.any(|line| elided(shown, line)),
            (false, false) => lines.next().is_some_and(|line| elided(shown, line)),
        };
        if !found {
            return Some(shown);
        }
        skip = shown == "...";
    }
    None
}

#[test]
fn wrong_examples_are_noticed() {
    let json = |body: &str| Block { line: 1, language: "json".into(), body: body.into() };
    let real = r#"{"status":"success","chunks":[{"id":"a","score":0.51},{"id":"b"}],"count":2}"#;
    let fits = |shown: &str| wrong_output(real, Some(&json(shown))).is_empty();
    assert!(fits(r#"{"status": "succ...", "chunks": [{"id": "a", "score": 0.5}]}"#));
    assert!(!fits(r#"{"status": "errored"}"#), "another value");
    assert!(!fits(r#"{"state": "success"}"#), "no such member");
    assert!(!fits(r#"{"status": true}"#), "another type");
    assert!(!fits(r#"{"chunks": [{"id": "a", "score": 0.6}]}"#), "another score");
    assert!(!fits(r#"{"chunks": []}"#), "not empty");
    assert!(!fits(r#"{"chunks": [{"id": "a"}, {"id": "b"}, {"id": "c"}]}"#), "too many");
    assert!(!fits(r#"{"count": 3}"#), "another count");
    assert!(!wrong_output(r#"{"error":"Not found","message":"m"}"#, None).is_empty());
    let text = |body: &str| Block { line: 1, language: "text".into(), body: body.into() };
    let events = "event: start\ndata: {}\n\nevent: done\n";
    assert!(wrong_output(events, Some(&text("event: start\n...\nevent: done\n"))).is_empty());
    assert!(!wrong_output(events, Some(&text("event: start\nevent: done\n"))).is_empty());
}

#[test]
fn every_path_exists() {
    let mut problems = Vec::new();
    for path in documents() {
        let text = read(&path);
        for block in blocks(&text) {
            if !LANGUAGES.contains(&block.language.as_str()) {
                problems.push(format!("{}:{}: unknown mark", name(&path), block.line));
            }
        }
        for word in text.split(|c: char| c.is_whitespace() || "`()[]\"',;|".contains(c)) {
            let word = word.trim_end_matches([':', '.', '/']).split('#').next().unwrap_or("");
            let ours = FOLDERS.iter().any(|folder| word.starts_with(folder));
            if ours && !word.contains(['*', '<', '{']) && !root().join(word).exists() {
                problems.push(format!("{}: there is no {word}", name(&path)));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn every_link_leads_somewhere() {
    let mut problems = Vec::new();
    for path in documents() {
        let text = read(&path);
        for (_, after) in text.match_indices("](").map(|(at, _)| text.split_at(at + 2)) {
            let link = after.split(')').next().unwrap_or("");
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => path.clone(),
                file => path.parent().expect("a directory").join(file),
            };
            let there = target.exists()
                && (heading.is_empty() || headings(&read(&target)).contains(&heading.to_owned()));
            if !there {
                problems.push(format!("{}: {link} leads nowhere", name(&path)));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// The crates of `src/`, each with the crates of ours on which it depends according to its
/// manifest.
fn crates() -> BTreeMap<String, String> {
    let folders = fs::read_dir(root().join("src")).expect("src/ is there");
    let mut crates = BTreeMap::new();
    for folder in folders {
        let folder = folder.expect("an entry").path();
        let Ok(manifest) = fs::read_to_string(folder.join("Cargo.toml")) else { continue };
        let section = manifest.split("\n[dependencies]").nth(1).unwrap_or("");
        let section = section.split("\n[").next().unwrap_or("");
        let ours = section.lines().filter_map(|line| line.strip_prefix("lodestone-"));
        let mut ours: Vec<&str> = ours.filter_map(|line| line.split(['.', ' ']).next()).collect();
        ours.sort_unstable();
        let name = folder.file_name().expect("a name").to_string_lossy().into_owned();
        crates.insert(name, ours.join(", "));
    }
    crates
}

#[test]
fn the_table_of_crates_is_right() {
    let page = read(&root().join("docs/architecture.md"));
    let rows = page.lines().filter_map(|line| line.strip_prefix("| `src/"));
    let mut shown = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        if let [name, _, dependencies, ..] = cells.as_slice() {
            shown.insert(name.trim_end_matches('`').to_owned(), (*dependencies).to_owned());
        }
    }
    assert_eq!(shown, crates(), "the table in docs/architecture.md");
}

#[test]
fn pictures_are_current() {
    for script in ["scripts/draw_architecture", "scripts/plots"] {
        let Ok(output) = Command::new("python3").arg(root().join(script)).arg("--check").output()
        else {
            println!("SKIPPED documentation::pictures_are_current: no python3");
            return;
        };
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{script}: {errors}");
    }
}

/// The anchors of a page's headings.
fn headings(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |line: &str| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    lines.map(anchor).collect()
}
