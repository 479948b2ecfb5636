//! Combines accents drawn as separate glyphs with their letters.
//!
//! Typesetting systems without accented fonts draw a letter and place an accent on it. Read one
//! after the other, the two would split the word.

use unicode_normalization::char::compose;

use crate::pdf::glyphs::Glyph;

/// Maximum distance between the centres of accent and letter, in letter widths.
const ASIDE: f32 = 0.4;
/// Maximum distance of their baselines, in em: accents of capitals are set higher.
const APART_EM: f32 = 0.4;
/// Glyphs searched for the letter on either side of the accent, in line order.
const NEAR: usize = 300;

/// Merges accents into the letters they are placed on, if there is one.
pub(super) fn set(glyphs: &mut Vec<Glyph>) {
    if !glyphs.iter().any(|glyph| mark(glyph.c).is_some()) {
        return;
    }
    glyphs.sort_by(|a, b| a.baseline.total_cmp(&b.baseline).then(a.left.total_cmp(&b.left)));
    let mut is_set = vec![false; glyphs.len()];
    for at in 0..glyphs.len() {
        let Some(mark) = mark(glyphs[at].c) else { continue };
        let near = at.saturating_sub(NEAR)..(at + NEAR).min(glyphs.len());
        let place = near.filter(|other| *other != at && is_under(&glyphs[at], &glyphs[*other]));
        let nearest = place.min_by(|a, b| {
            let aside = |other: usize| middle(&glyphs[at]) - middle(&glyphs[other]);
            aside(*a).abs().total_cmp(&aside(*b).abs())
        });
        let Some(letter) = nearest else { continue };
        if let Some(whole) = compose(dotted(glyphs[letter].c), mark) {
            glyphs[letter].c = whole;
            is_set[at] = true;
        }
    }
    let mut is_set = is_set.into_iter();
    glyphs.retain(|_| !is_set.next().unwrap_or(false));
}

fn middle(glyph: &Glyph) -> f32 {
    (glyph.left + glyph.right) / 2.0
}

fn is_under(sign: &Glyph, letter: &Glyph) -> bool {
    letter.c.is_alphabetic()
        && (sign.baseline - letter.baseline).abs() < APART_EM * letter.size
        && (middle(sign) - middle(letter)).abs() < ASIDE * (letter.right - letter.left)
}

/// Replaces dotless i and j, which are used under an accent.
fn dotted(c: char) -> char {
    match c {
        'ı' => 'i',
        'ȷ' => 'j',
        other => other,
    }
}

/// The combining mark for a spacing accent.
fn mark(sign: char) -> Option<char> {
    Some(match sign {
        '`' | '\u{2CB}' => '\u{300}',
        '\u{B4}' | '\u{2CA}' => '\u{301}',
        '^' | '\u{2C6}' => '\u{302}',
        '~' | '\u{2DC}' => '\u{303}',
        '\u{AF}' | '\u{2C9}' => '\u{304}',
        '\u{2D8}' => '\u{306}',
        '\u{2D9}' => '\u{307}',
        '\u{A8}' => '\u{308}',
        '\u{2DA}' => '\u{30A}',
        '\u{2DD}' => '\u{30B}',
        '\u{2C7}' => '\u{30C}',
        '\u{B8}' => '\u{327}',
        '\u{2DB}' => '\u{328}',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn glyph(c: char, left: f32, baseline: f32) -> Glyph {
        let (right, size) = (left + 5.0, 10.0);
        Glyph { c, left, right, baseline, ascent: 8.0, descent: 2.0, size, face: 0 }
    }

    #[test]
    fn signs_become_part_of_the_letter_below_them() {
        let mut glyphs = vec![
            glyph('\u{B4}', 5.5, 100.0),
            glyph('J', 0.0, 100.0),
            glyph('e', 5.0, 100.0),
            glyph('\u{2C7}', 20.5, 98.0),
            glyph('S', 20.0, 100.0),
            // Next to a letter, over one that takes no accent, and alone.
            glyph('\u{B4}', 25.0, 100.0),
            glyph('~', 40.0, 100.0),
            glyph('m', 40.0, 100.0),
            glyph('^', 60.0, 100.0),
        ];
        set(&mut glyphs);
        glyphs.sort_by(|a, b| a.left.total_cmp(&b.left));
        let text: String = glyphs.iter().map(|glyph| glyph.c).collect();
        assert_eq!(text, "JéŠ\u{B4}~m^");
    }
}
