//! Mutations of JSON: values, keys and brackets.

use std::ops::Range;

use crate::chance::Chance;
use crate::mutations::tokens::NUMBERS;
use crate::mutations::{bytes, tokens};

const PIECES: &[&str] = &[
    "null", "true", "false", "{}", "[]", "\"\"", "\"a\":", ",", ":", "[", "]", "{", "}", "\"",
    "\\", "\"\\ud800\"", "\"\\ud83d\\ude00\"", "\"\\u0000\"", "\"\\r\\n\"", "\"\\x\"", "[[",
    "{\"a\":", "\n", "//", "\u{FEFF}", "\"cells\":[]", "\"cell_type\":\"markdown\"",
    "\"source\":[\"# x\\n\"]", "\"nbformat\":4", "\"outputs\":[{\"text\":\"y\"}]", "\"$and\":[]",
    "\"$in\":[1]", "\"$not\":{}",
];

/// Applies one mutation.
pub fn mutate(chance: &mut Chance, base: &[u8], other: &[u8]) -> Vec<u8> {
    let mut json = base.to_vec();
    let tokens = tokens_of(base);
    if tokens.is_empty() {
        return bytes::mutate(chance, base, other);
    }
    let token = tokens[chance.below(tokens.len())].clone();
    match chance.below(8) {
        0 => drop(json.drain(token)),
        1 => drop(json.splice(token, chance.pick(PIECES).bytes())),
        2 => drop(json.splice(token, chance.pick(NUMBERS).bytes())),
        3 => {
            let last = &tokens[chance.below(tokens.len())];
            let part = token.start.min(last.start)..token.end.max(last.end);
            bytes::repeat(chance, &mut json, part);
        }
        4 => bytes::repeat(chance, &mut json, token),
        5 => {
            let again = tokens[chance.below(tokens.len())].clone();
            let copy = json[again].to_vec();
            json.splice(token, copy);
        }
        6 => return tokens::mutate(chance, base, PIECES),
        _ => return bytes::mutate(chance, base, other),
    }
    json
}

/// The ranges of strings and of the runs between them.
fn tokens_of(json: &[u8]) -> Vec<Range<usize>> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < json.len() {
        let start = at;
        at += 1;
        match json[start] {
            b'"' => {
                while at < json.len() && json[at] != b'"' {
                    at += if json[at] == b'\\' { 2 } else { 1 };
                }
                at = (at + 1).min(json.len());
            }
            byte if byte.is_ascii_alphanumeric() => {
                while at < json.len() && json[at].is_ascii_alphanumeric() {
                    at += 1;
                }
            }
            _ => {}
        }
        tokens.push(start..at);
    }
    tokens
}
