//! The house style made executable: budgets, layers, quarantines, words, names.
//!
//! Plain Rust over plain text. A small lexer tells code, comments and literals apart; everything
//! else is lines and words. Each rule is a function from one file to its violations, and each has
//! a test below that shows it failing. Run: `cargo test --test tidy`.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

const FILE_LINES_MAX: usize = 400;
const FUNCTION_LINES_MAX: usize = 70;
const LINE_CHARS_MAX: usize = 100;
const FIXTURE_BYTES_MAX: u64 = 256 << 10;

/// Files over the budget, with their lines. A number may only go down.
const FILE_RATCHET: &[(&str, usize)] = &[];

/// Floors from the ground up. A room imports lower floors only; rooms of one floor are strangers.
const FLOORS: &[&[&str]] = &[
    &["types"],
    &["io", "store", "compute", "rank", "extract", "chunk"],
    &["filter", "text", "graph", "embed", "job", "fetch", "statements"],
    &["segment"],
    &["collection", "catalog"],
    &["ingest", "query", "answer"],
    &["settings"],
    &["engine"],
    &["server"],
    &["main", "cli"],
];
/// Neighbours that may know each other.
const SAME_FLOOR_EDGES: &[(&str, &str)] = &[("store", "io"), ("main", "cli")];

/// Foreign crates and the only places that may name them.
const QUARANTINE: &[(&str, &[&str])] = &[
    ("memmap2", &["src/io/"]),
    ("rustix", &["src/io/", "src/extract/sandbox/"]),
    ("landlock", &["src/extract/sandbox/"]),
    ("seccompiler", &["src/extract/sandbox/"]),
    ("hayro_cmap", &["src/extract/pdf/"]),
    ("hayro_font", &["src/extract/pdf/"]),
    ("hayro_syntax", &["src/extract/pdf/"]),
    ("skrifa", &["src/extract/pdf/"]),
    ("simsimd", &["src/compute/"]),
    ("cudarc", &["src/compute/cuda/"]),
    ("tantivy", &["src/text/"]),
    ("candle_core", &["src/embed/"]),
    ("candle_nn", &["src/embed/"]),
    ("tokenizers", &["src/embed/"]),
    ("rusqlite", &["src/catalog/"]),
    ("ureq", &["src/fetch/", "src/answer/generate/", "src/cli/ingest/"]),
    ("rustls", &["src/fetch/"]),
    ("brotli_decompressor", &["src/fetch/"]),
    ("url", &["src/types/web.rs"]),
    ("indicatif", &["src/cli/ingest/"]),
    ("walkdir", &["src/cli/ingest/"]),
    ("glob", &["src/cli/ingest/"]),
    ("axum", &["src/server/"]),
    ("hyper", &["src/server/"]),
    ("hyper_util", &["src/server/"]),
    ("tower", &["src/server/"]),
    ("tower_http", &["src/server/"]),
    ("tokio", &["src/server/", "src/main.rs", "src/cli/"]),
];

const UNSAFE_ALLOWED: &[&str] = &[
    "src/io/mmap.rs",
    "src/io/archive.rs",
    "src/compute/cuda/",
    "tests/cuda/compile.rs",
    "tests/cuda/emulated.rs",
    "tests/fuzz/allocation.rs",
    "tests/fuzz/coverage.rs",
    "src/compute/one_bit/neon.rs",
    "src/compute/one_bit/x86.rs",
    "src/compute/prefetch.rs",
    "src/compute/tiles.rs",
    "src/embed/int16/machine.rs",
    "src/embed/int16/x86.rs",
];
const PRINT_ALLOWED: &[&str] = &["src/main.rs", "src/cli/"];
/// Waiting for a killed process is the one good reason to sleep.
const SLEEP_ALLOWED: &[&str] = &["tests/crash/", "tests/process/patience.rs"];
const NON_ASCII_ALLOWED: &[&str] = &[];
const MODULE_NAMES_BANNED: &[&str] =
    &["util", "utils", "helper", "helpers", "misc", "common", "manager", "managers"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Code,
    Comment,
    Literal,
}

/// One source file with the class of every byte.
struct Source {
    path: String,
    text: String,
    classes: Vec<Class>,
    /// Byte at which its tests begin: 0 for files that hold nothing else.
    tests_from: usize,
}

impl Source {
    fn new(path: &str, text: &str, is_test: bool) -> Self {
        let classes = classify(text);
        let mut source = Self { path: path.into(), text: text.into(), classes, tests_from: 0 };
        if !is_test {
            // Test modules stand at the foot of a file, at the left margin.
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

    /// The code without its tests.
    fn product_code(&self) -> String {
        self.code()[..self.tests_from].to_owned()
    }

    fn at(&self, byte: usize, message: &str) -> String {
        let line = 1 + self.text.as_bytes()[..byte].iter().filter(|b| **b == b'\n').count();
        format!("{}:{line}: {message}", self.path)
    }

    fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| self.path.starts_with(place))
    }

    /// The room of a file of the product: the first component below `src`.
    fn room(&self) -> Option<&str> {
        let below = self.path.strip_prefix("src/")?;
        let room = below.split('/').next()?;
        Some(room.strip_suffix(".rs").unwrap_or(room))
    }
}

/// Tells code, comments and literals apart, byte by byte.
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

/// `r"..."`, `r#"..."#`, `br"..."` and so on; a plain `b"..."` is found at its quote.
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

/// `'a'` and `'\n'`, but not the lifetime `'a`.
fn character_len(rest: &str) -> Option<usize> {
    let mut characters = rest.chars();
    match (characters.next()?, characters.next()?) {
        ('\'', '\\') => Some(quoted_len(rest.as_bytes(), b'\'')),
        ('\'', one) if characters.next() == Some('\'') => Some(2 + one.len_utf8()),
        _ => None,
    }
}

/// Where `word` stands in `code` with no word character on either side that it lacks itself.
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

fn check_lengths(source: &Source, ratchet: &[(&str, usize)]) -> Vec<String> {
    let mut found = Vec::new();
    let lines = source.text[..source.tests_from].lines().count();
    let listed = ratchet.iter().find(|(path, _)| *path == source.path).map(|(_, lines)| *lines);
    if lines > listed.unwrap_or(FILE_LINES_MAX) {
        found.push(format!("{}: {lines} lines", source.path));
    }
    if listed.is_some_and(|listed| lines < listed) {
        found.push(format!("{}: {lines} lines now, lower its ratchet", source.path));
    }
    for (number, line) in source.text.lines().enumerate() {
        let chars = line.chars().count();
        if chars > LINE_CHARS_MAX {
            found.push(format!("{}:{}: {chars} characters", source.path, number + 1));
        }
    }
    found
}

fn check_functions(source: &Source) -> Vec<String> {
    let code = source.product_code();
    let mut found = Vec::new();
    for at in find_words(&code, "fn") {
        let is_named =
            code[at + 2..].trim_start().starts_with(|c: char| c.is_alphabetic() || c == '_');
        let body = code[at..].find(['{', ';']).map(|offset| at + offset);
        let Some(body) = body.filter(|body| is_named && code.as_bytes()[*body] == b'{') else {
            continue;
        };
        let mut depth = 0;
        let end = code[body..].char_indices().find(|(_, c)| {
            depth += i32::from(*c == '{') - i32::from(*c == '}');
            depth == 0
        });
        let end = end.map_or(code.len(), |(offset, _)| body + offset + 1);
        let lines = code[at..end].lines().count();
        if lines > FUNCTION_LINES_MAX {
            found.push(source.at(at, &format!("a function of {lines} lines")));
        }
    }
    found
}

/// The rooms that a file names behind `crate::`, groups in braces included.
fn imported_rooms(code: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for at in find_words(code, "crate::") {
        let rest = &code[at + "crate::".len()..];
        let name = |text: &str| -> String {
            text.trim_start().chars().take_while(|c| is_word(*c as u8)).collect()
        };
        if !rest.starts_with('{') {
            found.push((at, name(rest)));
            continue;
        }
        let mut depth = 0;
        for (offset, c) in rest.char_indices() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if depth == 0 {
                break;
            }
            if depth == 1 && (c == ',' || c == '{') {
                found.push((at, name(&rest[offset + 1..])));
            }
        }
    }
    found.retain(|(_, room)| !room.is_empty());
    found
}

fn check_layers(source: &Source) -> Vec<String> {
    let Some(room) = source.room().filter(|room| *room != "lib") else { return Vec::new() };
    let floor = |room: &str| FLOORS.iter().position(|rooms| rooms.contains(&room));
    let Some(own) = floor(room) else {
        return vec![format!("{}: room '{room}' is on no floor", source.path)];
    };
    let is_allowed = |other: &str| {
        let is_neighbour = SAME_FLOOR_EDGES.contains(&(room, other));
        room == other || is_neighbour || floor(other).is_some_and(|floor| floor < own)
    };
    let edges = imported_rooms(&source.product_code());
    let wrong = edges.into_iter().filter(|(_, other)| !is_allowed(other));
    wrong.map(|(at, other)| source.at(at, &format!("'{room}' must not know '{other}'"))).collect()
}

fn check_quarantine(source: &Source) -> Vec<String> {
    let code = source.code();
    let mut found = Vec::new();
    for (name, places) in QUARANTINE.iter().filter(|(_, places)| !source.is_in(places)) {
        for at in find_words(&code, name) {
            let is_path = code[at + name.len()..].starts_with("::") && !code[..at].ends_with("::");
            if is_path || code[..at].ends_with("use ") {
                found.push(source.at(at, &format!("{name} belongs into {}", places.join(", "))));
            }
        }
    }
    found
}

fn check_unsafe(source: &Source) -> Vec<String> {
    let lines: Vec<&str> = source.text.lines().collect();
    let mut found = Vec::new();
    for at in find_words(&source.code(), "unsafe") {
        if !source.is_in(UNSAFE_ALLOWED) {
            found.push(source.at(at, "unsafe outside of the allow list"));
        }
        let line = source.text[..at].matches('\n').count();
        let above = lines[..line].iter().rev().map(|line| line.trim_start());
        let mut comment = above
            .skip_while(|line| line.starts_with("#["))
            .take_while(|line| line.starts_with("//"));
        if !comment.any(|line| line.contains("SAFETY:") || line.contains("# Safety")) {
            found.push(source.at(at, "unsafe without a SAFETY comment above it"));
        }
    }
    found
}

fn check_words(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    let mut ban = |code: &str, word: &str| {
        let places = find_words(code, word);
        found.extend(places.into_iter().map(|at| source.at(at, &format!("'{word}' is banned"))));
    };
    let code = source.code();
    for word in ["dbg!", "todo!", "unimplemented!", "#[ignore", "allow(dead_code)"] {
        ban(&code, word);
    }
    for word in [concat!("FIX", "ME"), concat!("XX", "X")] {
        ban(&source.text, word);
    }
    let product = source.product_code();
    if !source.is_in(PRINT_ALLOWED) {
        for word in ["println!", "eprintln!", "print!", "eprint!"] {
            ban(&product, word);
        }
    }
    ban(&product, ".unwrap()");
    if !source.is_in(SLEEP_ALLOWED) {
        let tests = " ".repeat(source.tests_from) + &code[source.tests_from..];
        ban(&tests, "thread::sleep");
        ban(&tests, "time::sleep");
    }
    found
}

fn check_characters(source: &Source) -> Vec<String> {
    if source.is_in(NON_ASCII_ALLOWED) {
        return Vec::new();
    }
    let is_fine = |at: usize| source.classes[at] == Class::Literal && at >= source.tests_from;
    let foreign = source.text.char_indices().filter(|(at, c)| !c.is_ascii() && !is_fine(*at));
    let mut found: Vec<_> = foreign.map(|(at, _)| source.at(at, "not ASCII")).collect();
    found.dedup();
    found
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

/// Test binaries that the manifest must declare, because it finds none by itself.
fn undeclared_tests(manifest: &str, paths: &[String]) -> Vec<String> {
    let is_root = |path: &&String| match path.strip_prefix("tests/") {
        Some(below) => {
            below.ends_with("/main.rs") || !below.contains('/') && below.ends_with(".rs")
        }
        None => false,
    };
    let is_declared = |path: &&String| manifest.contains(&format!("path = \"{path}\""));
    let missing = paths.iter().filter(is_root).filter(|path| !is_declared(path));
    missing.map(|path| format!("{path}: not declared in Cargo.toml")).collect()
}

/// Files that hold nothing of the product: benches, `tests.rs`, what stands under `tests/`, and
/// modules that are declared `#[cfg(test)] mod name;`.
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
    let is_product = source.path.starts_with("src/");
    let mut found = check_lengths(source, FILE_RATCHET);
    found.extend(check_words(source));
    found.extend(check_characters(source));
    found.extend(check_names(source));
    found.extend(check_unsafe(source));
    if is_product {
        found.extend(check_functions(source));
        found.extend(check_layers(source));
        found.extend(check_quarantine(source));
    }
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
    let manifest = fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let mut found = undeclared_tests(&manifest, &paths);
    for path in &paths {
        let bytes = fs::metadata(root.join(path)).unwrap().len();
        if path.starts_with("tests/") && bytes > FIXTURE_BYTES_MAX {
            found.push(format!("{path}: {bytes} bytes"));
        }
    }
    paths.retain(|path| path.ends_with(".rs"));
    let read = |path: &String| fs::read_to_string(root.join(path)).unwrap();
    let declared = paths.iter().flat_map(|path| test_modules(path, &read(path))).collect();
    for path in &paths {
        let source = Source::new(path, &read(path), is_test_file(path, &declared));
        found.extend(check_source(&source));
    }
    assert!(paths.len() > 20, "the sources were found");
    assert!(found.is_empty(), "{} violations:\n{}", found.len(), found.join("\n"));
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
    fn budgets_are_kept_and_ratchets_only_go_down() {
        let long = product("src/x.rs", &"//\n".repeat(401));
        assert_eq!(check_lengths(&long, &[]).len(), 1);
        assert_eq!(check_lengths(&long, &[("src/x.rs", 401)]).len(), 0);
        assert_eq!(check_lengths(&long, &[("src/x.rs", 500)]).len(), 1);
        let tests =
            format!("fn f() {{}}\n\n#[cfg(test)]\nmod tests {{\n{}}}\n", "//\n".repeat(500));
        assert_eq!(check_lengths(&product("src/x.rs", &tests), &[]).len(), 0);
        assert_eq!(check_lengths(&product("src/x.rs", &"x".repeat(101)), &[]).len(), 1);

        let function = |lines| format!("fn f() {{\n{}}}\n", "    { \"}\"; }\n".repeat(lines));
        assert_eq!(check_functions(&product("src/x.rs", &function(68))).len(), 0);
        assert_eq!(check_functions(&product("src/x.rs", &function(69))).len(), 1);
        let bound = format!("trait T {{ fn f(g: fn(u8)); }}\n{}", "//\n".repeat(90));
        assert_eq!(check_functions(&product("src/x.rs", &bound)).len(), 0);
    }

    #[test]
    fn imports_go_downwards() {
        let wrong = |path, text| check_layers(&product(path, text)).len();
        assert_eq!(wrong("src/io/disk.rs", "use crate::types::Hit;\nuse crate::io::Disk;"), 0);
        assert_eq!(wrong("src/io/disk.rs", "use crate::segment::Reader;"), 1);
        assert_eq!(wrong("src/io/disk.rs", "fn f() { crate::engine::run() }"), 1);
        assert_eq!(
            wrong("src/io/disk.rs", "use crate::{types::{Hit, RowId}, query, store::Key};"),
            2
        );
        assert_eq!(wrong("src/io/disk.rs", "// crate::engine\n\"crate::engine\""), 0);
        assert_eq!(wrong("src/store/mod.rs", "use crate::io::Disk;"), 0);
        assert_eq!(wrong("src/query/plan.rs", "use crate::ingest::Job;"), 1);
        assert_eq!(wrong("src/engine.rs", "use crate::ingest::Job;"), 0);
        assert_eq!(wrong("src/attic/mod.rs", ""), 1);
        let tests = "\n#[cfg(test)]\nmod tests {\n    use crate::engine::Engine;\n}\n";
        assert_eq!(wrong("src/io/disk.rs", tests), 0);
    }

    #[test]
    fn foreign_crates_stay_where_they_belong() {
        let wrong = |path, text| check_quarantine(&product(path, text)).len();
        assert_eq!(wrong("src/io/mmap.rs", "use memmap2::Mmap;"), 0);
        assert_eq!(wrong("src/segment/flat.rs", "use memmap2::Mmap;"), 1);
        assert_eq!(wrong("src/query/mod.rs", "fn f() -> tantivy::Result<()> {}\nuse axum;"), 2);
        assert_eq!(wrong("src/query/mod.rs", "crate::text::tantivy::f(); // axum::x"), 0);
    }

    #[test]
    fn unsafe_is_rare_and_explained() {
        let wrong = |path, text| check_unsafe(&product(path, text)).len();
        let good = "    // SAFETY: fact.\n    // More.\n    #[allow(unsafe_code)]\n    unsafe {}\n";
        assert_eq!(wrong("src/io/mmap.rs", good), 0);
        assert_eq!(wrong("src/io/disk.rs", good), 1);
        assert_eq!(wrong("src/io/mmap.rs", "// SAFETY: far away\n\nunsafe {}"), 1);
        assert_eq!(wrong("src/io/mmap.rs", "unsafe {}"), 1);
    }

    #[test]
    fn words_and_characters_are_banned() {
        let wrong = |path, text: &str| check_words(&product(path, text)).len();
        for bad in ["dbg!(1)", "todo!()", "x.unwrap()", "println!()", "#[allow(dead_code)]"] {
            assert_eq!(wrong("src/x.rs", bad), 1, "{bad}");
        }
        assert_eq!(wrong("src/x.rs", concat!("// FIX", "ME: later")), 1);
        assert_eq!(wrong("src/main.rs", "println!()"), 0);
        assert_eq!(wrong("src/x.rs", "// dbg!(1)\n\"todo!()\"; my_dbg!(); x.unwrap_or(1)"), 0);
        let test = |path, text| check_words(&Source::new(path, text, true)).len();
        assert_eq!(test("tests/a/main.rs", "x.unwrap(); println!();"), 0);
        assert_eq!(test("tests/a/main.rs", "std::thread::sleep(x); #[ignore] fn f() {}"), 2);
        assert_eq!(test("tests/crash/main.rs", "std::thread::sleep(x);"), 0);

        let foreign =
            |text, is_test| check_characters(&Source::new("src/x.rs", text, is_test)).len();
        assert_eq!(foreign("// \u{e9}", true), 1);
        assert_eq!(foreign("f(\"\u{e9}\", '\u{e9}')", true), 0);
        assert_eq!(foreign("f(\"\u{e9}\")", false), 1);
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
