//! Rules of the source tree that neither Cargo nor clippy can express: file sizes, dependencies
//! between crates, files with `unsafe`, and the wording of comments.
//!
//! A small lexer distinguishes code, comments and literals; everything else works on lines and
//! words. Each rule is a function from a file to its violations, and has a test below that shows it
//! failing. Run: `cargo test --test tidy`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FILE_LINES_MAX: usize = 400;
const LINE_CHARS_MAX: usize = 100;
const FIXTURE_BYTES_MAX: u64 = 256 << 10;

/// The crates under `src/`, with the crates of ours on which each may depend, except in tests.
const CRATES: &[(&str, &[&str])] = &[
    ("types", &[]),
    ("metrics", &[]),
    ("io", &["types"]),
    ("compute", &["types"]),
    ("rank", &["types"]),
    ("text", &["types"]),
    ("extract", &["types"]),
    ("fetch", &["extract", "types"]),
    ("bucket", &["fetch", "io", "types"]),
    ("graph", &["types"]),
    ("embed", &["compute", "metrics", "rank", "types"]),
    ("storage", &["compute", "graph", "io", "text", "types"]),
    ("catalog", &["io", "metrics", "types"]),
    ("answer", &["embed", "fetch", "rank", "text", "types"]),
    (
        "engine",
        &[
            "answer", "bucket", "catalog", "compute", "embed", "extract", "fetch", "graph", "io",
            "metrics", "rank", "storage", "text", "types",
        ],
    ),
    ("console", &[]),
    (
        "server",
        &[
            "answer", "catalog", "console", "embed", "engine", "extract", "fetch", "metrics",
            "storage", "text", "types",
        ],
    ),
];

/// The modules of `src/answer`; each uses only those before it, except in tests.
const ANSWER_LAYERS: &[&str] = &[
    "error", "text", "translation", "passages", "question", "rows", "versions", "relevance",
    "selection", "sources", "compose", "extract", "stream", "generate",
];

/// Third-party crates, each with the only crate of ours that may depend on it, except in tests.
const OWNERS: &[(&str, &str)] = &[
    ("memmap2", "io"),
    ("cudarc", "compute"),
    ("simsimd", "compute"),
    ("tantivy", "text"),
    ("candle-core", "embed"),
    ("candle-nn", "embed"),
    ("axum", "server"),
    ("rusqlite", "catalog"),
];

/// Files that may lift the lint against `unsafe`.
const UNSAFE_ALLOWED: &[&str] = &[
    "src/io/src/cold.rs", "src/io/src/faults.rs", "src/io/src/mmap.rs",
    "src/io/src/stable_bytes.rs", "src/compute/src/cuda/", "src/compute/src/one_bit/neon.rs",
    "src/compute/src/one_bit/x86.rs", "src/compute/src/prefetch.rs", "src/compute/src/tiles.rs",
    "src/embed/src/int16/machine.rs", "src/embed/src/int16/x86.rs", "src/memory.rs",
    "tests/cuda/compile.rs", "tests/cuda/emulated.rs", "tests/fuzz/allocation.rs",
    "tests/fuzz/coverage.rs",
];
/// Waiting to kill a process and polling are the only good reasons to sleep.
const SLEEP_ALLOWED: &[&str] = &["tests/crash/", "tests/process/patience.rs"];
const MODULE_NAMES_BANNED: &[&str] = &["util", "utils", "helper", "helpers", "misc", "common"];

/// Words that do not name the item at the beginning of a doc comment.
const OPENINGS_BANNED: &[&str] =
    &["What", "Where", "Who", "How", "Whoever", "Whatever", "Whose", "Whom"];
/// Beginnings of a product doc comment that make sense only together with the item above.
const BACKWARD_OPENINGS_BANNED: &[&str] = &["The same", "So", "Those of", "That of"];
/// Words for modules, crates and layers that are not terms of the field.
const METAPHORS_BANNED: &[&str] = &[
    "rooms", "this room", "a room", "the room", "each room", "every room", "corridor", "corridors",
    "this floor", "floors", "one floor", "lower floor", "the house", "house style",
];

/// Vague type names, each of which may be used for only one type in the whole tree.
const TYPE_NAMES_ONCE: &[&str] = &["Floor", "Found", "Passage", "Place"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Code,
    Comment,
    Literal,
}

/// A source file and the class of each of its bytes.
struct Source {
    path: String,
    text: String,
    classes: Vec<Class>,
    /// The byte at which its tests begin: 0 for files that contain nothing else.
    tests_from: usize,
}

impl Source {
    fn new(path: &str, text: &str, is_test: bool) -> Self {
        let classes = classify(text);
        let mut source = Self { path: path.into(), text: text.into(), classes, tests_from: 0 };
        if !is_test {
            // Test modules are at the end of a file, without indentation.
            let foot =
                source.code().match_indices("\n#[cfg(test)]\nmod ").find_map(|(at, start)| {
                    let rest = &text[at + start.len()..];
                    rest.lines().next().is_some_and(|line| line.ends_with('{')).then_some(at + 1)
                });
            source.tests_from = foot.unwrap_or(text.len());
        }
        source
    }

    /// The text with comments and literals replaced by blanks of the same length.
    fn code(&self) -> String {
        let keep = |(byte, class): (u8, &Class)| match class {
            Class::Code => byte as char,
            _ if byte == b'\n' => '\n',
            _ => ' ',
        };
        self.text
            .bytes()
            .zip(&self.classes)
            .map(keep)
            .map(|c| if c.is_ascii() { c } else { '?' })
            .collect()
    }

    fn at(&self, byte: usize, message: &str) -> String {
        let line = 1 + self.text.as_bytes()[..byte].iter().filter(|b| **b == b'\n').count();
        format!("{}:{line}: {message}", self.path)
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }
}

/// Classifies every byte of a text as code, comment or literal.
fn classify(text: &str) -> Vec<Class> {
    let bytes = text.as_bytes();
    let mut classes = vec![Class::Code; bytes.len()];
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text.as_bytes()[at..];
        let is_word_before = at > 0 && is_word(bytes[at - 1]);
        let (len, class) = if rest.starts_with(b"//") {
            (rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len()), Class::Comment)
        } else if rest.starts_with(b"/*") {
            (block_comment_len(rest), Class::Comment)
        } else if rest[0] == b'"' {
            (quoted_len(rest, b'"'), Class::Literal)
        } else if let Some(len) = raw_string_len(rest).filter(|_| !is_word_before) {
            (len, Class::Literal)
        } else if let Some(len) = character_len(&text[at..]) {
            (len, Class::Literal)
        } else {
            (1, Class::Code)
        };
        classes[at..at + len].fill(class);
        at += len;
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    classes
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn quoted_len(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn block_comment_len(rest: &[u8]) -> usize {
    let (mut at, mut depth) = (2, 1);
    while at < rest.len() && depth > 0 {
        let step =
            if rest[at..].starts_with(b"*/") { -1 } else { rest[at..].starts_with(b"/*").into() };
        depth += step;
        at += if step == 0 { 1 } else { 2 };
    }
    at.min(rest.len())
}

/// The length of `r"..."`, `r#"..."#`, `br"..."` and the like; a plain `b"..."` is found at its
/// quote.
fn raw_string_len(rest: &[u8]) -> Option<usize> {
    let prefix = if rest.starts_with(b"br") { 2 } else { usize::from(rest[0] == b'r') };
    let hashes = rest.get(prefix..)?.iter().take_while(|b| **b == b'#').count();
    if prefix == 0 || rest.get(prefix + hashes) != Some(&b'"') {
        return None;
    }
    let close: Vec<u8> = std::iter::once(b'"').chain(vec![b'#'; hashes]).collect();
    let open = prefix + hashes + 1;
    let end = rest[open..].windows(close.len()).position(|window| window == close);
    Some(end.map_or(rest.len(), |end| open + end + close.len()))
}

/// The length of `'a'` or `'\n'`, but not of the lifetime `'a`.
fn character_len(rest: &str) -> Option<usize> {
    let mut characters = rest.chars();
    match (characters.next()?, characters.next()?) {
        ('\'', '\\') => Some(quoted_len(rest.as_bytes(), b'\'')),
        ('\'', one) if characters.next() == Some('\'') => Some(2 + one.len_utf8()),
        _ => None,
    }
}

/// Positions of `word` in `code` where it is not part of a longer word. An end of `word` that is
/// not a word character may adjoin anything.
fn find_words(code: &str, word: &str) -> Vec<usize> {
    let bytes = code.as_bytes();
    let begins_word = is_word(word.as_bytes()[0]);
    let ends_word = is_word(word.as_bytes()[word.len() - 1]);
    let stands_alone = |at: usize| {
        let is_joined_before = begins_word && at > 0 && is_word(bytes[at - 1]);
        let is_joined_after = ends_word && bytes.get(at + word.len()).is_some_and(|b| is_word(*b));
        !is_joined_before && !is_joined_after
    };
    code.match_indices(word).map(|(at, _)| at).filter(|at| stands_alone(*at)).collect()
}

fn check_lengths(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let lines = source.text[..source.tests_from].lines().count();
    if lines > FILE_LINES_MAX {
        found.push(format!("{}: {lines} lines", source.path));
    }
    for (number, line) in source.text.lines().enumerate() {
        let chars = line.chars().count();
        if chars > LINE_CHARS_MAX {
            found.push(format!("{}:{}: {chars} characters", source.path, number + 1));
        }
    }
    found
}

fn check_code(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut ban = |code: &str, word: &str| {
        let places = find_words(code, word);
        found.extend(places.into_iter().map(|at| source.at(at, &format!("'{word}' is banned"))));
    };
    let code = source.code();
    for word in ["#[ignore", "allow(dead_code)"] {
        ban(&code, word);
    }
    for word in [concat!("FIX", "ME"), concat!("XX", "X")] {
        ban(&source.text, word);
    }
    if !source.is_in(UNSAFE_ALLOWED) {
        ban(&code, "allow(unsafe_code)");
    }
    if !source.is_in(SLEEP_ALLOWED) {
        let tests = " ".repeat(source.tests_from) + &code[source.tests_from..];
        ban(&tests, "thread::sleep");
        ban(&tests, "time::sleep");
    }
    found
}

/// Checks that log lines name a tenant only by the id of its collection.
fn check_logs(source: &Source) -> Vec<String> {
    let code = &source.code()[..source.tests_from];
    let mut found = Vec::new();
    for (start, word) in code.match_indices("tracing::") {
        let name =
            code[start + word.len()..].split(|c: char| !c.is_ascii_lowercase() && c != '_').next();
        let open = start + word.len() + name.map_or(0, str::len);
        if !code[open..].starts_with("!(") {
            continue;
        }
        let mut depth = 0;
        let is_end = |c| {
            depth += i32::from(c == '(') - i32::from(c == ')');
            c == ')' && depth == 0
        };
        let end = code[open..].find(is_end).map_or(code.len(), |at| open + at);
        for word in ["tenant", "sub_tenant", "tenant_id", "sub_tenant_id"] {
            let places = find_words(&code[open..end], word).into_iter();
            let is_name = |at: &usize| !code[open + at + word.len()..].starts_with(".collection");
            let tell = |at| source.at(open + at, "a log line names a tenant: use its collection");
            found.extend(places.filter(is_name).map(tell));
        }
    }
    found
}

/// Allows non-ASCII characters only in literals, such as word lists, which are more readable that
/// way.
fn check_characters(source: &Source) -> Vec<String> {
    let is_fine = |at: usize| source.classes[at] == Class::Literal;
    let foreign = source.text.char_indices().filter(|(at, c)| !c.is_ascii() && !is_fine(*at));
    let mut found: Vec<_> = foreign.map(|(at, _)| source.at(at, "not ASCII")).collect();
    found.dedup();
    found
}

/// Checks that doc comments say what an item is, in terms of the field.
fn check_comments(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let (mut start, mut is_inside) = (0, false);
    for line in source.text.split_inclusive('\n') {
        let is_first = !std::mem::replace(&mut is_inside, line.trim_start().starts_with("//"));
        let comment = line.find("//").map(|offset| start + offset);
        start += line.len();
        let Some(at) = comment.filter(|at| source.classes[*at] == Class::Comment) else {
            continue;
        };
        let text = source.text[at..start].trim();
        let doc = text.strip_prefix("///").or(text.strip_prefix("//!")).unwrap_or_default();
        let words = doc.trim_start_matches([' ', '-', '*']);
        let first = words.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        if OPENINGS_BANNED.contains(&first) {
            found.push(source.at(at, &format!("a doc comment begins with '{first}'")));
        }
        let begins = |opening: &&&str| find_words(words, opening).first() == Some(&0);
        let is_checked = is_first && at < source.tests_from;
        if let Some(opening) = BACKWARD_OPENINGS_BANNED.iter().find(begins).filter(|_| is_checked) {
            found.push(source.at(at, &format!("a doc comment begins with '{opening}'")));
        }
        let lower = text.to_lowercase();
        for metaphor in METAPHORS_BANNED.iter().filter(|one| !find_words(&lower, one).is_empty()) {
            found.push(source.at(at, &format!("'{metaphor}' is no word of the field")));
        }
    }
    found
}

/// Types of the product that share one of the names in [`TYPE_NAMES_ONCE`].
fn repeated_types(sources: &[Source]) -> Vec<String> {
    let (mut found, mut known) = (Vec::new(), BTreeSet::new());
    for source in sources {
        let code = source.code();
        for name in TYPE_NAMES_ONCE {
            for at in find_words(&code[..source.tests_from], name) {
                let before = code[..at].split_whitespace().next_back().unwrap_or_default();
                let is_type = ["struct", "enum", "trait", "type"].contains(&before);
                if is_type && !known.insert(name) {
                    found.push(source.at(at, &format!("another type called '{name}'")));
                }
            }
        }
    }
    found
}

/// Violations of [`CRATES`] and [`OWNERS`] in one manifest; `name` is a folder below `src/`, or
/// empty for the root package.
fn check_manifest(name: &str, manifest: &str) -> Vec<String> {
    let manifest: serde_json::Value = basic_toml::from_str(manifest).unwrap();
    let used = manifest["dependencies"].as_object().into_iter().flatten();
    let allowed = CRATES.iter().find(|(one, _)| *one == name).map(|(_, allowed)| *allowed);
    let mut found = Vec::new();
    for (dependency, _) in used {
        let is_fine = match dependency.strip_prefix("lodestone-") {
            Some(ours) => name.is_empty() || allowed.is_some_and(|list| list.contains(&ours)),
            None => OWNERS.iter().all(|(foreign, owner)| foreign != dependency || *owner == name),
        };
        if !is_fine {
            found.push(format!("src/{name}: must not depend on {dependency}"));
        }
    }
    found
}

/// Uses, in `src/answer`, of modules that come later in [`ANSWER_LAYERS`].
fn check_layers(source: &Source) -> Vec<String> {
    let layer = |text: &str| {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
        ANSWER_LAYERS.iter().position(|layer| *layer == &text[..end])
    };
    let Some(own) = source.path.strip_prefix("src/answer/src/").and_then(layer) else {
        return Vec::new();
    };
    let code = source.code();
    let uses = find_words(&code[..source.tests_from], "crate::").into_iter();
    let above = uses.filter(|at| layer(&code[at + "crate::".len()..]).is_none_or(|it| it > own));
    let message = format!("the layer '{}' uses one above it, or no layer", ANSWER_LAYERS[own]);
    above.map(|at| source.at(at, &message)).collect()
}

fn check_names(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let names = source.path.split('/').map(|name| name.strip_suffix(".rs").unwrap_or(name));
    for name in names.filter(|name| MODULE_NAMES_BANNED.contains(name)) {
        found.push(format!("{}: '{name}' says nothing about what is inside", source.path));
    }
    let needs_docs = ["/mod.rs", "/lib.rs"].iter().any(|end| source.path.ends_with(end));
    if needs_docs && source.path.starts_with("src/") && !source.text.starts_with("//!") {
        found.push(format!("{}: does not open with //!", source.path));
    }
    found
}

/// Test binaries that a manifest must declare because auto-discovery does not find them.
fn undeclared_tests(manifests: &str, paths: &[String]) -> Vec<String> {
    let is_root = |path: &&String| match path.strip_prefix("tests/") {
        Some(below) => {
            below.ends_with("/main.rs") || !below.contains('/') && below.ends_with(".rs")
        }
        None => false,
    };
    let is_declared = |path: &&String| manifests.contains(&format!("{path}\""));
    let missing = paths.iter().filter(is_root).filter(|path| !is_declared(path));
    missing.map(|path| format!("{path}: not declared in Cargo.toml")).collect()
}

/// Whether a file contains nothing of the product: benches, `tests.rs`, files under `tests/`, and
/// modules declared as `#[cfg(test)] mod name;`.
fn is_test_file(path: &str, declared: &BTreeSet<String>) -> bool {
    path.starts_with("tests/")
        || path.starts_with("benches/")
        || path.ends_with("/tests.rs")
        || path.ends_with("_tests.rs")
        || path.contains("/tests/")
        || declared.iter().any(|module| {
            path.strip_prefix(module).is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        })
}

/// Paths, without `.rs`, of the modules that `source` declares for tests only.
fn test_modules(path: &str, text: &str) -> Vec<String> {
    let directory = match path.rsplit_once('/') {
        Some((directory, "mod.rs" | "lib.rs" | "main.rs")) => directory,
        _ => path.strip_suffix(".rs").unwrap_or(path),
    };
    let lines: Vec<&str> = text.lines().collect();
    let pairs = lines.windows(2).filter(|pair| pair[0].trim() == "#[cfg(test)]");
    let names = pairs.filter_map(|pair| {
        let (_, name) = pair[1].trim().strip_suffix(';')?.rsplit_once("mod ")?;
        Some(format!("{directory}/{name}"))
    });
    names.collect()
}

fn files_below(root: &Path, directory: &str, found: &mut Vec<String>) {
    let Ok(entries) = fs::read_dir(root.join(directory)) else { return };
    for entry in entries {
        let entry = entry.unwrap();
        let path = format!("{directory}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            files_below(root, &path, found);
        } else {
            found.push(path);
        }
    }
}

fn check_source(source: &Source) -> Vec<String> {
    let mut found = check_lengths(source);
    found.extend(check_code(source));
    found.extend(check_logs(source));
    found.extend(check_characters(source));
    found.extend(check_names(source));
    found.extend(check_layers(source));
    found.extend(check_comments(source));
    found
}

#[test]
fn the_tree_is_tidy() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    for directory in ["src", "tests", "benches"] {
        files_below(root, directory, &mut paths);
    }
    paths.sort();
    let read = |path: &str| fs::read_to_string(root.join(path)).unwrap();
    let manifest = read("Cargo.toml");
    let mut found = undeclared_tests(&(read("src/storage/Cargo.toml") + &manifest), &paths);
    found.extend(check_manifest("", &manifest));
    for path in &paths {
        let bytes = fs::metadata(root.join(path)).unwrap().len();
        if path.starts_with("tests/") && bytes > FIXTURE_BYTES_MAX {
            found.push(format!("{path}: {bytes} bytes"));
        }
        if let Some(name) = path.strip_suffix("/Cargo.toml") {
            found.extend(check_manifest(name.trim_start_matches("src/"), &read(path)));
        }
    }
    paths.retain(|path| path.ends_with(".rs"));
    let declared = paths.iter().flat_map(|path| test_modules(path, &read(path))).collect();
    let source = |path: &String| Source::new(path, &read(path), is_test_file(path, &declared));
    let sources: Vec<Source> = paths.iter().map(source).collect();
    found.extend(sources.iter().flat_map(check_source));
    found.extend(repeated_types(&sources));
    assert!(paths.len() > 20, "the sources were found");
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
}

/// Goal: each fault planted by `scripts/planted_faults` still applies to the code that it breaks.
#[test]
fn planted_faults_apply() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    files_below(root, "tests/faults", &mut paths);
    assert!(paths.len() >= 12, "{} faults", paths.len());
    for path in &paths {
        let text = fs::read_to_string(root.join(path)).unwrap();
        let head: Vec<&str> = text.lines().take_while(|line| !line.is_empty()).collect();
        let has = |name: &str| head.iter().any(|line| line.starts_with(name));
        assert!(has("Promise: ") && has("Fault: ") && (has("Rows: ") || has("Tests: ")), "{path}");
        let mut git = std::process::Command::new("git");
        let checked = git.args(["apply", "--check", path]).current_dir(root).output();
        let Ok(checked) = checked else {
            println!("SKIPPED planted_faults_apply: git is not installed");
            return;
        };
        let said = String::from_utf8_lossy(&checked.stderr).into_owned();
        assert!(checked.status.success(), "{path} does not apply any more: {said}");
    }
}

/// Goal: each fault planted by `scripts/interleavings --faults` still applies.
#[test]
fn planted_faults_of_concurrency_apply() {
    let read = |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path));
    let listed = read("tests/interleavings/faults.toml").unwrap();
    let listed: serde_json::Value = basic_toml::from_str(&listed).unwrap();
    for fault in listed["fault"].as_array().unwrap() {
        let [what, file, from] = ["what", "file", "from"].map(|name| fault[name].as_str().unwrap());
        let places = read(file).unwrap().matches(from).count();
        assert_eq!(places, 1, "{what}: does not apply to {file} any more");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(path: &str, text: &str) -> Source {
        Source::new(path, text, false)
    }

    #[test]
    fn comments_and_literals_are_told_from_code() {
        let text =
            "a /* b /* c */ d */ e \"f\\\"g\" r#\"h\"i\"# 'j' '\\'' k<'l> // m\nn b\"o\" 'é'";
        let code = product("src/x.rs", text).code();
        let words: Vec<_> = code.split_whitespace().collect();
        assert_eq!(words, ["a", "e", "k<'l>", "n", "b"]);
    }

    #[test]
    fn files_and_lines_are_short() {
        let wrong = |text: &str| check_lengths(&product("src/x.rs", text)).len();
        assert_eq!(wrong(&"//\n".repeat(401)), 1);
        let tests =
            format!("fn f() {{}}\n\n#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(500));
        assert_eq!(wrong(&tests), 0);
        assert_eq!(wrong(&"x".repeat(101)), 1);
    }

    #[test]
    fn crates_depend_on_what_the_table_allows() {
        let wrong = |name: &str, used: &str| {
            check_manifest(name, &format!("[dependencies]\n{used}.workspace = true\n")).len()
        };
        assert_eq!(wrong("fetch", "lodestone-extract"), 0);
        assert_eq!(wrong("extract", "lodestone-fetch"), 1);
        assert_eq!(wrong("attic", "lodestone-types"), 1);
        assert_eq!(wrong("", "lodestone-server"), 0);
        assert_eq!(wrong("io", "memmap2"), 0);
        assert_eq!(wrong("storage", "memmap2"), 1);
        assert_eq!(wrong("", "axum"), 1);
    }

    #[test]
    fn layers_of_answers_look_down_only() {
        let wrong = |text| check_layers(&product("src/answer/src/rows/keys.rs", text)).len();
        assert_eq!(wrong("use crate::question::wish::Question;\nuse crate::rows::marks;"), 0);
        assert_eq!(wrong("use crate::selection::choose::Choice;"), 1);
        assert_eq!(wrong("use crate::{Answer, text::words};"), 1);
        assert_eq!(
            wrong("// crate::extract\n\n#[cfg(test)]\nmod tests {\nuse crate::extract;\n}"),
            0
        );
        assert_eq!(check_layers(&product("src/engine/src/x.rs", "use crate::y;")).len(), 0);
    }

    #[test]
    fn code_and_characters_are_banned() {
        let wrong = |path, text: &str| check_code(&product(path, text)).len();
        assert_eq!(wrong("src/x.rs", "#[allow(dead_code)]"), 1);
        assert_eq!(wrong("src/x.rs", "#[allow(unsafe_code)] // allow(unsafe_code)"), 1);
        assert_eq!(wrong("src/io/src/mmap.rs", "#[allow(unsafe_code)]"), 0);
        assert_eq!(wrong("src/x.rs", concat!("// FIX", "ME: later")), 1);
        let test = |path, text| check_code(&Source::new(path, text, true)).len();
        assert_eq!(test("tests/a/main.rs", "std::thread::sleep(x); #[ignore] fn f() {}"), 2);
        assert_eq!(test("tests/crash/main.rs", "std::thread::sleep(x);"), 0);

        let foreign = |text| check_characters(&product("src/x.rs", text)).len();
        assert_eq!(foreign("// é"), 1);
        assert_eq!(foreign("f(\"é\", 'é')"), 0);
    }

    #[test]
    fn log_lines_name_collections() {
        let wrong = |text| check_logs(&product("src/x.rs", text)).len();
        let fine = "tracing::info!(collection = %f(x).tenant.collection, tenants, \"a tenant\");";
        assert_eq!(wrong(fine), 0);
        assert_eq!(wrong("tracing::Span::current(); f(tenant, \"tracing::info!(tenant)\")"), 0);
        assert_eq!(wrong("tracing::warn!(tenant = %id, f(), %access.tenant.id, \"x\"); tenant"), 2);
        assert_eq!(wrong("tracing::error_span!(\"x\", %sub_tenant)"), 1);
    }

    #[test]
    fn comments_are_in_plain_words() {
        let wrong = |text| check_comments(&product("src/x.rs", text)).len();
        assert_eq!(wrong("    /// What a row holds.\n"), 1);
        assert_eq!(
            wrong("/// The text of a row. What it holds\n/// stands here.\n// What for\n"),
            0
        );
        assert_eq!(wrong("//! Rows.\n//!\n//! How they are kept.\n"), 1);
        assert_eq!(wrong("//! - How many rows\n/// Whether it holds.\n"), 1);
        assert_eq!(wrong("/// The same in words.\nf();\n    /// So many rows.\n"), 2);
        assert_eq!(wrong("/// The sameness.\n///\n/// So be it.\n// That of others.\n"), 0);
        assert_eq!(wrong("f(); // In this room.\n// Room for more.\n\"the house\"\n"), 1);
    }

    #[test]
    fn a_vague_name_stands_for_one_type() {
        let found = ["struct Found;", "pub enum Found<T> {}\n// type Found", "fn f() -> Found;"];
        let sources = found.map(|text| product("src/x.rs", text));
        assert_eq!(repeated_types(&sources).len(), 1);
        let test = Source::new("tests/x.rs", "struct Found;", true);
        assert_eq!(repeated_types(&[product("src/x.rs", "struct Found;"), test]).len(), 0);
    }

    #[test]
    fn files_are_named_documented_and_declared() {
        let wrong = |path, text| check_names(&product(path, text)).len();
        assert_eq!(wrong("src/io/helpers.rs", ""), 1);
        assert_eq!(wrong("tests/common/mod.rs", ""), 1);
        assert_eq!(wrong("src/io/mod.rs", "mod disk;"), 1);
        assert_eq!(wrong("src/io/mod.rs", "//! Disk.\n"), 0);

        let manifest = "[[test]]\npath = \"tests/crash/main.rs\"\n";
        let paths =
            ["tests/crash/main.rs", "tests/crash/cut.rs", "tests/new/main.rs", "tests/x.rs"];
        assert_eq!(undeclared_tests(manifest, &paths.map(str::to_owned)).len(), 2);

        let declared: BTreeSet<_> =
            test_modules("src/a/mod.rs", "#[cfg(test)]\npub mod oracle;\nmod b;")
                .into_iter()
                .collect();
        assert!(is_test_file("src/a/oracle.rs", &declared));
        assert!(is_test_file("src/a/oracle/deep.rs", &declared));
        assert!(!is_test_file("src/a/b.rs", &declared));
        assert!(is_test_file("src/a/tests.rs", &declared));
    }
}
