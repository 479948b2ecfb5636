//! `robots.txt` (RFC 9309): the paths of a site that robots must not fetch.
//!
//! The groups that name this client apply together; if none does, the groups for all clients. Among
//! the rules that match a path, the longest wins; among equally long ones, an allowing rule wins.

use crate::request::PRODUCT;

/// Maximum number of bytes read; the rest of a longer file is ignored.
pub(super) const ROBOTS_BYTES_MAX: usize = 500 << 10;

/// The rules of one site that apply to this client.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Robots {
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    is_allowed: bool,
    pattern: Vec<u8>,
}

/// The clients that a group addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Audience {
    Us,
    Everyone,
    Others,
}

impl Robots {
    /// Parses a `robots.txt`; ignores lines that it does not understand.
    pub fn parse(bytes: &[u8]) -> Self {
        let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        let (mut ours, mut everyones) = (Vec::new(), Vec::new());
        let mut is_named = false;
        let mut audiences: Vec<Audience> = Vec::new();
        let mut is_in_rules = false;
        for line in bytes.split(|&b| b == b'\n' || b == b'\r') {
            let line = line.split(|&b| b == b'#').next().unwrap_or(&[]);
            let Some(colon) = line.iter().position(|&b| b == b':') else { continue };
            let key = line[..colon].trim_ascii().to_ascii_lowercase();
            let value = line[colon + 1..].trim_ascii();
            match key.as_slice() {
                b"user-agent" => {
                    if std::mem::take(&mut is_in_rules) {
                        audiences.clear();
                    }
                    let audience = audience(value);
                    is_named |= audience == Audience::Us;
                    if !audiences.contains(&audience) {
                        audiences.push(audience);
                    }
                }
                b"allow" | b"disallow" => {
                    is_in_rules = true;
                    // An empty pattern matches nothing.
                    if value.is_empty() {
                        continue;
                    }
                    let rule = Rule { is_allowed: key == b"allow", pattern: normal(value) };
                    for audience in &audiences {
                        match audience {
                            Audience::Us => ours.push(rule.clone()),
                            Audience::Everyone => everyones.push(rule.clone()),
                            Audience::Others => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Self { rules: if is_named { ours } else { everyones } }
    }

    /// Whether `target`, a path with its query, may be fetched.
    pub fn allows(&self, target: &str) -> bool {
        let target = normal(target.as_bytes());
        if target == b"/robots.txt" {
            return true;
        }
        let matching = self.rules.iter().filter(|rule| matches(&rule.pattern, &target));
        let strongest = matching.max_by_key(|rule| (rule.pattern.len(), rule.is_allowed));
        strongest.is_none_or(|rule| rule.is_allowed)
    }
}

fn audience(value: &[u8]) -> Audience {
    if value.starts_with(b"*") {
        return Audience::Everyone;
    }
    // A version after the name is ignored.
    let length =
        value.iter().take_while(|&&b| b.is_ascii_alphabetic() || b == b'_' || b == b'-').count();
    match value[..length].eq_ignore_ascii_case(PRODUCT.as_bytes()) {
        true => Audience::Us,
        false => Audience::Others,
    }
}

/// Normalises a path: unreserved characters are unescaped, and escapes are upper-case.
fn normal(path: &[u8]) -> Vec<u8> {
    let mut spelt = Vec::with_capacity(path.len());
    let mut at = 0;
    while at < path.len() {
        let digit = |offset: usize| {
            path.get(at + offset).and_then(|&b| char::from(b).to_digit(16)).map(|d| d as u8)
        };
        let (byte, length, was_escaped) = match (path[at], digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => (high << 4 | low, 3, true),
            (byte, ..) => (byte, 1, false),
        };
        at += length;
        let is_unreserved = byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        if is_unreserved || (!was_escaped && byte.is_ascii_graphic()) {
            spelt.push(byte);
        } else {
            spelt.extend(format!("%{byte:02X}").bytes());
        }
    }
    spelt
}

/// Whether a prefix of `target` matches `pattern`, in which `*` stands for any text and a final `$`
/// for the end. Matches the pieces between stars greedily from left to right; the last piece of an
/// anchored pattern must be at the end of `target`. Needs no backtracking.
fn matches(pattern: &[u8], target: &[u8]) -> bool {
    let (pattern, is_anchored) = match pattern.strip_suffix(b"$") {
        Some(pattern) => (pattern, true),
        None => (pattern, false),
    };
    let mut pieces = pattern.split(|&b| b == b'*');
    let Some(mut rest) = pieces.next().and_then(|first| target.strip_prefix(first)) else {
        return false;
    };
    let mut pieces = pieces.peekable();
    if pieces.peek().is_none() {
        return !is_anchored || rest.is_empty();
    }
    while let Some(piece) = pieces.next() {
        if is_anchored && pieces.peek().is_none() {
            return rest.ends_with(piece);
        }
        let Some(at) = find(rest, piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    true
}

/// The first position of `piece` in `text`.
fn find(text: &[u8], piece: &[u8]) -> Option<usize> {
    if piece.is_empty() {
        return Some(0);
    }
    text.windows(piece.len()).position(|window| window == piece)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_rule_of_our_groups_wins() {
        let robots = Robots::parse(
            b"\xEF\xBB\xBFUser-agent: Other\nUser-agent: lodestone/1.0\r\nDisallow: /a # why\n\
              Allow: /a/b\n\nSitemap: http://127.0.0.1/\nuser-agent: *\nDisallow: /\n\n\
              USER-AGENT: LODESTONE\ndisallow: /*.cgi$\nDisallow:\nDisallow: /%7ejoe/\n\
              Disallow: /x*y*z$\nAllow: /c\nDisallow: /c\nDisallow: /\xC3\xA9\n",
        );
        for (target, expected) in [
            ("/", true),
            ("/a", false),
            ("/about", false),
            ("/a/b/c", true),
            ("/c", true),
            ("/q.cgi", false),
            ("/q.cgi?x", true),
            ("/~joe/", false),
            ("/%7Ejoe/index", false),
            ("/x1y2z", false),
            ("/x1y2z3", true),
            ("/xz", true),
            ("/%c3%a9t", false),
            ("/robots.txt", true),
        ] {
            assert_eq!(robots.allows(target), expected, "{target}");
        }
    }

    #[test]
    fn groups_for_everyone_hold_where_none_names_us() {
        let robots = Robots::parse(b"user-agent: *\ndisallow: /\nuser-agent: lode\nallow: /\n");
        assert!(!robots.allows("/x"));
        assert!(Robots::parse(b"user-agent: *\ndisallow: /\nuser-agent: lodestone\n").allows("/x"));
        for nothing in [&b""[..], b"<html>", b"disallow: /", b"user-agent: *\ndisallow:\n"] {
            assert!(Robots::parse(nothing).allows("/x"), "{nothing:?}");
        }
    }

    #[test]
    fn hostile_rules_cost_no_more_than_their_length() {
        let stars = format!("user-agent: *\ndisallow: /{}\n", "a*".repeat(ROBOTS_BYTES_MAX / 2));
        let target = format!("/{}", "a".repeat(2000));
        assert!(Robots::parse(stars.as_bytes()).allows(&target));
        let many = format!("user-agent: *\n{}", "allow:*a*b*c\n".repeat(ROBOTS_BYTES_MAX / 13));
        assert!(Robots::parse(many.as_bytes()).allows(&target));
    }
}
