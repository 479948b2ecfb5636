//! Character references: `&amp;`, `&#39;`, `&#x27;`, by the rules of the HTML standard.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::LazyLock;

use encoding_rs::WINDOWS_1252;

/// Characters by the name that stands for them; most names include their semicolon. The file lists
/// the names of the standard, each with its code points.
static NAMES: LazyLock<HashMap<&str, String>> = LazyLock::new(|| {
    let number = |digits| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    let entry = |text: &'static str| {
        let (name, numbers) = text.split_once('=')?;
        Some((name, numbers.split(',').map(number).collect::<Option<String>>()?))
    };
    include_str!("entities.txt").split_ascii_whitespace().filter_map(entry).collect()
});

/// Bytes of the longest name, `CounterClockwiseContourIntegral;`.
const NAME_BYTES_MAX: usize = 32;

/// Resolves the references in `text`. Inside an attribute, a name without its semicolon is left
/// alone if a letter, a digit or an equals sign follows: there it is part of a URL.
pub(super) fn resolve(text: &str, is_attribute: bool) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut resolved = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        resolved.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let taken = match rest.strip_prefix('#') {
            Some(number) => numeric(number, &mut resolved).map(|length| length + 1),
            None => named(rest, is_attribute, &mut resolved),
        };
        match taken {
            Some(length) => rest = &rest[length..],
            None => resolved.push('&'),
        }
    }
    resolved.push_str(rest);
    Cow::Owned(resolved)
}

/// Resolves the number after `&#`; returns the number of bytes consumed.
fn numeric(source: &str, resolved: &mut String) -> Option<usize> {
    let (radix, prefix) = if source.starts_with(['x', 'X']) { (16, 1) } else { (10, 0) };
    let digits = source[prefix..].bytes().take_while(|&b| char::from(b).is_digit(radix)).count();
    if digits == 0 {
        return None;
    }
    let end = prefix + digits;
    // Numbers that do not fit are beyond Unicode, however long they are.
    let code = u32::from_str_radix(&source[prefix..end], radix).unwrap_or(u32::MAX);
    match code {
        // Pages that refer to these control characters mean the Windows-1252 characters of the same
        // number.
        0x80..=0x9F => resolved.push_str(&WINDOWS_1252.decode(&[code as u8]).0),
        _ => {
            let character = char::from_u32(code).filter(|&c| c != '\0');
            resolved.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
    }
    Some(end + usize::from(source[end..].starts_with(';')))
}

/// Resolves the longest name that `source` starts with; returns the number of bytes consumed.
fn named(source: &str, is_attribute: bool, resolved: &mut String) -> Option<usize> {
    let bytes = source.as_bytes();
    let letters =
        bytes.iter().take(NAME_BYTES_MAX).take_while(|b| b.is_ascii_alphanumeric()).count();
    let longest = letters + usize::from(bytes.get(letters) == Some(&b';'));
    for length in (1..=longest).rev() {
        let Some(characters) = NAMES.get(&source[..length]) else { continue };
        let next = bytes.get(length).copied().unwrap_or(b' ');
        let is_whole = bytes[length - 1] == b';';
        if is_attribute && !is_whole && (next == b'=' || next.is_ascii_alphanumeric()) {
            return None;
        }
        resolved.push_str(characters);
        return Some(length);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_the_standard_is_known() {
        assert_eq!(NAMES.len(), 2231);
        let text = "&NotEqualTilde;&Tab;&AMP&nGt;&CounterClockwiseContourIntegral;";
        assert_eq!(resolve(text, false), "\u{2242}\u{338}\t&\u{226b}\u{20d2}\u{2233}");
    }
}
