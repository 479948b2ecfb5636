//! `Dockerfile.cuda` without Docker: it copies existing files, from stages that it defines. And the
//! files of `deploy/`, without a cluster.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The recipe's instructions, each on one line, without comments.
fn instructions() -> Vec<String> {
    let text = fs::read_to_string(root().join("Dockerfile.cuda")).expect("the recipe");
    let kept = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let joined = kept.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
    joined.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// The arguments of all instructions with this name.
fn rest_of<'a>(instructions: &'a [String], word: &str) -> Vec<&'a str> {
    let rest = |line: &'a String| line.strip_prefix(word).and_then(|rest| rest.strip_prefix(' '));
    instructions.iter().filter_map(rest).collect()
}

/// Top-level names that the build does not see.
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
    assert!(copied >= 8, "{copied} files and folders are copied");
}

/// The command that checks the health of a container.
pub(super) fn health_check() -> String {
    let instructions = instructions();
    let checks = rest_of(&instructions, "HEALTHCHECK");
    let [check] = checks[..] else { panic!("one health check: {checks:?}") };
    check.split_once(" CMD ").expect("a command").1.to_owned()
}

/// Goal: every variable that `deploy/` sets is a setting of the program.
#[test]
fn settings_in_deploy_are_known() {
    let known = fs::read_to_string(root().join("docs/configuration.md")).expect("the settings");
    let is_part = |c: char| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit();
    let mut seen = BTreeSet::new();
    for path in super::files(&root().join("deploy")) {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for (at, _) in text.match_indices("LODESTONE_") {
            // Names in braces are variables of the compose file itself; comments may mention
            // anything.
            let line = text[..at].rsplit('\n').next().unwrap_or_default();
            if text[..at].ends_with("${") || line.trim_start().starts_with('#') {
                continue;
            }
            let name: String = text[at..].chars().take_while(|c| is_part(*c)).collect();
            assert!(known.contains(&format!("`{name}`")), "{name} in {}", path.display());
            seen.insert(name);
        }
    }
    assert!(seen.len() >= 8, "{seen:?}");
}

/// Goal: the pods meet the "restricted" pod security standard, and none gets a service account
/// token.
#[test]
fn pods_meet_the_restricted_standard() {
    let files = super::files(&root().join("deploy/kubernetes"));
    let texts: Vec<_> = files.iter().map(|file| fs::read_to_string(file).expect("text")).collect();
    let documents = texts.iter().flat_map(|text| text.split("\n---\n"));
    let pods = documents.filter(|one| one.contains("\n  template:"));
    let mut seen = 0;
    for pod in pods {
        for rule in [
            "runAsNonRoot: true", "seccompProfile: {type: RuntimeDefault}",
            "allowPrivilegeEscalation: false", "capabilities: {drop: [ALL]}",
            "automountServiceAccountToken: false",
        ] {
            assert_eq!(pod.matches(rule).count(), 1, "{rule} in {pod}");
        }
        seen += 1;
    }
    assert_eq!(seen, 4);
}
