//! `Dockerfile.cuda` without Docker: it copies files that are there, from stages that it has, and
//! its placeholders make a package of the same targets as this one.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The recipe's instructions, each in one line, without comments.
fn instructions() -> Vec<String> {
    let text = fs::read_to_string(root().join("Dockerfile.cuda")).expect("the recipe");
    let kept = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = kept.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    joined.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// Arguments of every instruction of this name.
fn rest_of<'a>(instructions: &'a [String], word: &str) -> Vec<&'a str> {
    let rest = |line: &'a String| line.strip_prefix(word).and_then(|rest| rest.strip_prefix(' '));
    instructions.iter().filter_map(rest).collect()
}

/// Names at the top that the build does not see.
fn ignored() -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(".dockerignore")).expect("what is ignored");
    text.lines().map(|line| line.trim().trim_matches('/').to_owned()).collect()
}

#[test]
fn copied_files_and_named_stages_are_there() {
    let (instructions, ignored) = (instructions(), ignored());
    let stages: BTreeSet<&str> = rest_of(&instructions, "FROM")
        .iter()
        .filter_map(|stage| stage.split_once(" AS ").map(|(_, name)| name.trim()))
        .collect();
    let mut copied = 0;
    for copy in rest_of(&instructions, "COPY") {
        let words: Vec<&str> = copy.split_whitespace().collect();
        if let Some(stage) = words[0].strip_prefix("--from=") {
            assert!(stages.contains(stage), "no stage for COPY {copy}");
            continue;
        }
        for source in &words[..words.len() - 1] {
            let top = source.split('/').next().unwrap();
            assert!(root().join(source).exists(), "no file for COPY {copy}");
            assert!(!ignored.contains(top), "ignored: COPY {copy}");
            copied += 1;
        }
    }
    assert!(copied >= 10, "{copied} files and folders are copied");
}

/// Runs what stands before the first build of the recipe, on the manifest alone.
#[test]
fn placeholders_stand_for_every_target() {
    let instructions = instructions();
    let runs = rest_of(&instructions, "RUN");
    let placed = runs.iter().find_map(|run| run.split_once("&& cargo build"));
    let (placing, _) = placed.expect("placeholders, then a build of the dependencies");
    let place = tempfile::tempdir().expect("a directory");
    for name in ["Cargo.toml", "Cargo.lock"] {
        fs::copy(root().join(name), place.path().join(name)).expect("a copy");
    }
    let placing = placing.trim().trim_end_matches("&&").to_owned();
    let run = Command::new("sh").args(["-ec", &placing]).current_dir(place.path()).output();
    let run = run.expect("a shell");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let (mut stand_ins, mut wanted) = (targets(place.path()), targets(root()));
    // Copied with the sources, and built then.
    wanted.retain(|(kind, ..)| kind != "custom-build");
    for (_, name, path) in &stand_ins {
        assert!(path.exists(), "no placeholder for {name}: {}", path.display());
    }
    let names = |found: &mut Vec<Target>| -> BTreeSet<(String, String)> {
        found.drain(..).map(|(kind, name, _)| (kind, name)).collect()
    };
    assert_eq!(names(&mut stand_ins), names(&mut wanted));
}

/// Kind, name and file.
type Target = (String, String, PathBuf);

/// The targets of the package in a folder, as cargo sees them.
fn targets(folder: &Path) -> Vec<Target> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let asked = ["metadata", "--no-deps", "--locked", "--offline", "--format-version", "1"];
    let run = Command::new(cargo).args(asked).current_dir(folder).output().expect("cargo");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let found: Value = serde_json::from_slice(&run.stdout).expect("metadata");
    let targets = found["packages"][0]["targets"].as_array().expect("targets");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    let target = |target: &Value| {
        (text(&target["kind"][0]), text(&target["name"]), PathBuf::from(text(&target["src_path"])))
    };
    targets.iter().map(target).collect()
}
