//! Reorders letters from visual (left to right) to logical order.
//!
//! A page shows right-to-left text from the right, but glyphs come sorted from the left. Runs of
//! right-to-left letters are therefore reversed; in a right-to-left line the whole line is, while
//! numbers and left-to-right words in it keep their order.

use unicode_normalization::char::is_combining_mark;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Class {
    Left,
    Right,
    Digit,
    Neutral,
}

/// The text shown by a line whose letters are sorted from left to right.
pub(super) fn logical(visual: &[char]) -> String {
    let classes: Vec<Class> = visual.iter().map(|c| class(*c)).collect();
    let count = |wanted: Class| classes.iter().filter(|class| **class == wanted).count();
    let (from_right, from_left) = (count(Class::Right), count(Class::Left));
    if from_right == 0 {
        return visual.iter().collect();
    }
    let mut letters: Vec<(char, Class)> =
        visual.iter().copied().zip(classes.iter().copied()).collect();
    numbers(&mut letters);
    if from_right >= from_left {
        reverse(&mut letters);
        restore(&mut letters, |class| matches!(class, Class::Left | Class::Digit));
    } else {
        restore(&mut letters, |class| class == Class::Right);
    }
    letters.into_iter().map(|(c, _)| c).collect()
}

/// Whether a text is read from right to left.
pub(super) fn is_from_right(text: &str) -> bool {
    let (mut right, mut left) = (0_usize, 0_usize);
    for c in text.chars() {
        match class(c) {
            Class::Right => right += 1,
            Class::Left => left += 1,
            Class::Digit | Class::Neutral => {}
        }
    }
    right > left
}

/// Whether a character is a right-to-left letter, not a combining mark.
pub(super) fn runs_left(c: char) -> bool {
    class(c) == Class::Right && !is_combining_mark(c)
}

fn class(c: char) -> Class {
    match c {
        '\u{660}'..='\u{669}' | '\u{6F0}'..='\u{6F9}' => Class::Digit,
        '\u{590}'..='\u{8FF}' | '\u{FB1D}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFC}' => Class::Right,
        '\u{10800}'..='\u{10FFF}' | '\u{1E800}'..='\u{1EFFF}' => Class::Right,
        _ if c.is_numeric() => Class::Digit,
        _ if c.is_alphabetic() => Class::Left,
        _ => Class::Neutral,
    }
}

/// Separators between digits and signs next to them belong to the number.
fn numbers(letters: &mut [(char, Class)]) {
    for at in 1..letters.len() {
        let is_inside = at + 1 < letters.len()
            && letters[at - 1].1 == Class::Digit
            && letters[at + 1].1 == Class::Digit;
        let (c, _) = letters[at];
        let is_mark = matches!(c, '.' | ',' | ':' | '/' | '-' | '\u{66B}' | '\u{66C}');
        let is_sign = matches!(c, '%' | '\u{66A}') && letters[at - 1].1 == Class::Digit;
        if (is_inside && is_mark) || is_sign {
            letters[at].1 = Class::Digit;
        }
    }
}

/// Reverses letters, each with its combining marks, and mirrors brackets.
fn reverse(letters: &mut [(char, Class)]) {
    letters.reverse();
    let mut at = 0;
    while at < letters.len() {
        letters[at].0 = mirrored(letters[at].0);
        // Marks that followed their letter now precede it.
        let marks = letters[at..].iter().take_while(|(c, _)| is_combining_mark(*c)).count();
        let end = (at + marks + 1).min(letters.len());
        if marks > 0 {
            letters[at..end].reverse();
        }
        at = end;
    }
}

/// Restores runs of letters of the wanted class, including neutral ones between them.
fn restore(letters: &mut [(char, Class)], is_wanted: impl Fn(Class) -> bool) {
    let mut at = 0;
    while at < letters.len() {
        if !is_wanted(letters[at].1) {
            at += 1;
            continue;
        }
        let mut end = at + 1;
        for (next, (_, class)) in letters.iter().enumerate().skip(at + 1) {
            match class {
                Class::Neutral => {}
                class if is_wanted(*class) => end = next + 1,
                _ => break,
            }
        }
        reverse(&mut letters[at..end]);
        at = end;
    }
}

fn mirrored(c: char) -> char {
    match c {
        '(' => ')',
        ')' => '(',
        '[' => ']',
        ']' => '[',
        '{' => '}',
        '}' => '{',
        '<' => '>',
        '>' => '<',
        '\u{AB}' => '\u{BB}',
        '\u{BB}' => '\u{AB}',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(visual: &str) -> String {
        logical(&visual.chars().collect::<Vec<_>>())
    }

    #[test]
    fn lines_are_read_from_the_side_where_they_begin() {
        assert_eq!(read("plain (text) 12."), "plain (text) 12.");
        // Hebrew, drawn from the right: shalom olam.
        assert_eq!(
            read("\u{5DD}\u{5DC}\u{5D5}\u{5E2} \u{5DD}\u{5D5}\u{5DC}\u{5E9}"),
            "\u{5E9}\u{5DC}\u{5D5}\u{5DD} \u{5E2}\u{5D5}\u{5DC}\u{5DD}"
        );
        // Left-to-right words and numbers keep their order; brackets keep their meaning.
        assert_eq!(read(".(Py 3.12) \u{5D2}\u{5D1}\u{5D0}"), "\u{5D0}\u{5D1}\u{5D2} (Py 3.12).");
        assert_eq!(read("a \u{5D1}\u{5D0} b and c"), "a \u{5D0}\u{5D1} b and c");
        assert_eq!(read("50% \u{5D1}\u{5D0}"), "\u{5D0}\u{5D1} 50%");
        // Combining marks stay after their letter.
        assert_eq!(read("\u{5D1}\u{5B8}\u{5D0}\u{5B7}"), "\u{5D0}\u{5B7}\u{5D1}\u{5B8}");
        assert!(is_from_right("\u{5D0}\u{5D1}\u{5D2} ab") && !is_from_right("ab"));
    }
}
