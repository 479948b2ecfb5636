//! Symbols in lines of source code, in any language with words and brackets.

use std::ops::Range;

/// Maximum bytes of a symbol.
const SYMBOL_BYTES_MAX: usize = 80;

/// Keywords before the name of a declared container.
const HOLDERS: [&str; 8] =
    ["class", "struct", "enum", "trait", "interface", "impl", "namespace", "record"];
/// Keywords before the name of a function.
const FUNCTIONS: [&str; 4] = ["fn", "def", "func", "function"];
/// Keywords before a bracket that does not start a parameter list.
const STATEMENTS: [&str; 12] = [
    "if", "for", "while", "switch", "return", "else", "catch", "new", "match", "sizeof", "assert",
    "elif",
];

/// The role of a symbol in its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Declares a type, to which the following declarations belong.
    Holder,
    /// Declares a function of the type declared last.
    Function,
    /// Declares a function of the type named just before it.
    Method,
    /// The base of the type being declared.
    Base,
    /// Uses a type, a constant or a file.
    Use,
}

/// Returns the significant symbols of a line, in order. Variables and calls are not included.
pub(super) fn symbols(line: &str) -> Vec<(Range<usize>, Role)> {
    let trimmed = line.trim_start();
    if ["//", "/*", "*", "#!"].iter().any(|start| trimmed.starts_with(start)) {
        return Vec::new();
    }
    let words = words(line);
    let mut found: Vec<(Range<usize>, Role)> = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let text = &line[word.clone()];
        let before = at.checked_sub(1).map_or("", |before| &line[words[before].clone()]);
        let between = at.checked_sub(1).map_or("", |before| &line[words[before].end..word.start]);
        let behind = &line[word.end..];
        let role = if HOLDERS.contains(&before) && between.trim().is_empty() {
            Some(Role::Holder)
        } else if FUNCTIONS.contains(&before) && between.trim().is_empty() {
            Some(Role::Function)
        } else if is_declared(line, before, between, behind) {
            Some(if between == "::" { Role::Method } else { Role::Function })
        } else if matches!(before, "extends" | "implements")
            || before == "for" && found.iter().any(|(_, role)| *role == Role::Holder)
            || between == "(" && found.last().is_some_and(|(_, role)| *role == Role::Holder)
        {
            Some(Role::Base)
        } else {
            let is_base =
                line.contains(" : ") && found.last().is_some_and(|(_, role)| *role == Role::Holder);
            is_telling(text).then_some(if is_base { Role::Base } else { Role::Use })
        };
        if let Some(role) = role.filter(|_| text.len() > 3 && text.len() <= SYMBOL_BYTES_MAX) {
            found.push((word.clone(), role));
        }
    }
    found.extend(files(line).into_iter().map(|file| (file, Role::Use)));
    found
}

/// Whether a name is declared as in "void Type::name(...) {" or "public int name(...) {": after a
/// type or a modifier.
fn is_declared(line: &str, before: &str, between: &str, behind: &str) -> bool {
    let follows_word = between == "::" || !between.is_empty() && between.trim().is_empty();
    let is_open = behind.starts_with('(') && !line.trim_end().ends_with([';', ',']);
    let has_type = line.trim_start().split([' ', '(']).next().is_some_and(|first| {
        !STATEMENTS.contains(&first) && !first.contains(['=', '.']) && !first.is_empty()
    });
    let is_value = line.contains('=') || line.contains("->") && !line.contains("fn ");
    follows_word && is_open && has_type && !is_value && !STATEMENTS.contains(&before)
}

/// Whether the word looks like a type, or a constant, of at least two words.
fn is_telling(word: &str) -> bool {
    let has_two_upper = word.chars().filter(|c| c.is_uppercase()).nth(1).is_some();
    let has_lower = word.contains(char::is_lowercase);
    word.starts_with(char::is_uppercase)
        && match word.contains('_') {
            true => !has_lower && word.len() > 4,
            false => has_lower && has_two_upper,
        }
}

fn words(line: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut start = None;
    let mut is_quoted = false;
    for (at, c) in line.char_indices().chain([(line.len(), ' ')]) {
        let is_word = !is_quoted && (c.is_alphanumeric() || c == '_');
        match (start, is_word) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                found.push(from..at);
                start = None;
            }
            _ => {}
        }
        is_quoted ^= c == '"';
    }
    found
}

/// Returns file names between quotation marks.
fn files(line: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    for (number, part) in line.split('"').enumerate() {
        let ending = part.rsplit_once('.').map_or("", |(_, ending)| ending);
        let is_ending = (1..=5).contains(&ending.len())
            && ending.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
            && ending.bytes().any(|b| b.is_ascii_lowercase());
        let is_path = part.len() <= SYMBOL_BYTES_MAX
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"/._-".contains(&b));
        if number % 2 == 1 && is_ending && is_path && part.len() > ending.len() + 1 {
            found.push(at..at + part.len());
        }
        at += part.len() + 1;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_told_from_uses() {
        let roles = |line: &'static str| -> Vec<(&str, Role)> {
            symbols(line).into_iter().map(|(range, role)| (&line[range], role)).collect()
        };
        assert_eq!(roles("impl Reader {"), [("Reader", Role::Holder)]);
        assert_eq!(
            roles("class HttpClient extends BaseClient {"),
            [("HttpClient", Role::Holder), ("BaseClient", Role::Base)]
        );
        assert_eq!(roles("    pub fn open(path: &Path) -> Self {"), [("open", Role::Function)]);
        assert_eq!(roles("void Logger::setLevel(int level)"), [("setLevel", Role::Method)]);
        assert_eq!(roles("let reader = FileReader::open(\"a/b.txt\");").len(), 2);
        assert_eq!(roles("if (value) { run(); }"), []);
        assert_eq!(roles("// class Nothing {"), []);
    }
}
