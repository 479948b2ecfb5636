//! Mutations of tags, attributes and the text between them.

use std::ops::Range;

use crate::chance::Chance;
use crate::mutations::tokens::NUMBERS;
use crate::mutations::{bytes, tokens};

/// Tokens with a meaning in markup.
const PIECES: &[&str] = &[
    "&amp;", "&#0;", "&#x110000;", "&#xD800;", "&#13;", "&nope;", "&lt", "<![CDATA[", "]]>",
    "<!--", "-->", "--!>", "<?x ?>", "<!DOCTYPE html>", "<!DOCTYPE a [<!ENTITY b 'c'>]>", "</",
    "/>", "<", ">", "\"", "'", "=", "\r\n", "\r", "\u{FEFF}", "\u{200B}", "\u{FB03}", "\0", "|",
    "\\|", "`", "<p>", "</p>", "<br/>", "<pre>", "</pre>", "<table>", "<tr>",
    "<td rowspan='3' colspan=2>", "<td colspan=99999>", "</td>", "</table>", "<ul>",
    "<ol start=7>", "<li>", "<li value=-3>", "<dl><dt>x<dd>y", "<h1>", "<h6>", "</h1>", "<script>",
    "</script>", "<style>", "<title>", "<textarea>", "<svg>", "<math>", "<template>", "<noscript>",
    "<select><option>", "<a href='x'>", "<img alt='picture'>", "<nav>", "<main>", "<article>",
    "<header>", "<footer>", "<aside>", "<div role=navigation>", "<p hidden>",
    "<meta charset=utf-16>", "<base href='//x'>", "<code>", "<blockquote>", "<caption>", "<thead>",
    "<tbody>", "<iframe>", "<plaintext>",
];
/// Attribute values.
const VALUES: &[&str] =
    &["true", "false", "none", "restart", "s", "str", "b", "e", "A1:XFD1048576"];

/// Applies one mutation to markup.
pub fn mutate(chance: &mut Chance, base: &[u8], other: &[u8]) -> Vec<u8> {
    let mut markup = base.to_vec();
    let tags = tags(base);
    if tags.is_empty() || chance.one_in(6) {
        return match chance.one_in(2) {
            true => tokens::mutate(chance, base, PIECES),
            false => bytes::mutate(chance, base, other),
        };
    }
    let tag = tags[chance.below(tags.len())].clone();
    match chance.below(9) {
        0 => drop(markup.drain(tag)),
        1 => {
            let copy = markup[element(chance, &tags, base)].to_vec();
            let at = tags[chance.below(tags.len())].end;
            markup.splice(at..at, copy);
        }
        2 => drop(markup.drain(element(chance, &tags, base))),
        3 => attribute(chance, &mut markup, tag),
        4 => bytes::repeat(chance, &mut markup, tag),
        5 => {
            let element = element(chance, &tags, base);
            bytes::repeat(chance, &mut markup, element);
        }
        6 => {
            let again = tags[chance.below(tags.len())].clone();
            let copy = markup[again].to_vec();
            markup.splice(tag, copy);
        }
        7 => {
            let at = if chance.one_in(2) { tag.end } else { tag.start };
            markup.splice(at..at, chance.pick(PIECES).bytes());
        }
        _ => {
            let theirs = self::tags(other);
            if !theirs.is_empty() {
                let copy = other[element(chance, &theirs, other)].to_vec();
                markup.splice(tag.end..tag.end, copy);
            }
        }
    }
    markup
}

/// The ranges of all tags.
fn tags(markup: &[u8]) -> Vec<Range<usize>> {
    let mut tags = Vec::new();
    let mut start = None;
    for (at, byte) in markup.iter().enumerate() {
        match byte {
            b'<' => start = Some(at),
            b'>' => tags.extend(start.take().map(|start| start..at + 1)),
            _ => {}
        }
    }
    tags
}

/// The range from a tag to its closing tag, or to some later tag if there is none.
fn element(chance: &mut Chance, tags: &[Range<usize>], markup: &[u8]) -> Range<usize> {
    let name = |tag: &Range<usize>| -> Vec<u8> {
        let inside = markup[tag.clone()].iter().skip(1).skip_while(|b| **b == b'/');
        inside.take_while(|b| !b.is_ascii_whitespace() && **b != b'>').copied().collect()
    };
    let first = chance.below(tags.len());
    let mut depth = 0_i32;
    for tag in tags[first..].iter().take(2000) {
        if name(tag) != name(&tags[first]) {
            continue;
        }
        depth += if markup[tag.clone()].starts_with(b"</") { -1 } else { 1 };
        depth -= i32::from(markup[tag.clone()].ends_with(b"/>"));
        if depth <= 0 {
            return tags[first].start..tag.end;
        }
    }
    let last = first + chance.length((tags.len() - first - 1).min(50));
    tags[first].start..tags[last].end
}

/// Changes, duplicates or removes an attribute value.
fn attribute(chance: &mut Chance, markup: &mut Vec<u8>, tag: Range<usize>) {
    let inside = &markup[tag.clone()];
    let quotes: Vec<usize> = inside
        .iter()
        .enumerate()
        .filter(|(_, byte)| matches!(byte, b'"' | b'\''))
        .map(|(at, _)| tag.start + at)
        .collect();
    if quotes.len() < 2 {
        let at = tag.end - 1;
        let value = chance.pick(NUMBERS);
        markup.splice(at..at, format!(" rowspan='{value}'").into_bytes());
        return;
    }
    let pair = chance.below(quotes.len() / 2) * 2;
    let value = quotes[pair] + 1..quotes[pair + 1];
    match chance.below(5) {
        0 | 1 => drop(markup.splice(value, chance.pick(NUMBERS).bytes())),
        2 => drop(markup.splice(value, chance.pick(VALUES).bytes())),
        3 => bytes::repeat(chance, markup, value),
        _ => drop(markup.drain(value)),
    }
}
