//! Accents that were drawn as signs of their own, above or below a letter.
//!
//! Typesetting systems without accented fonts draw a letter and set a sign on it. The two are one
//! letter; read one after the other they would tear the word apart.

use unicode_normalization::char::compose;

use crate::pdf::glyphs::Glyph;

/// Distance of the middle of a sign from that of its letter, in widths of the letter.
const ASIDE: f32 = 0.4;
/// Distance of their baselines, in sizes: signs of capitals are set higher.
const APART_EM: f32 = 0.4;
/// Glyphs on either side, in the order of lines, among which the letter is looked for.
const NEAR: usize = 300;

/// Sets signs on the letters that they stand over, where there is such a letter.
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

/// Under an accent, i and j have no dot.
fn dotted(c: char) -> char {
    match c {
        'ı' => 'i',
        'ȷ' => 'j',
        other => other,
    }
}

/// The mark that a sign becomes on a letter.
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
            // Beside a letter, over one that takes none, and alone.
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
