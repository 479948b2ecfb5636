//! Formats numbers with the unit, decimals and zeros of their number format.

use std::str::Chars;

/// Maximum characters of the text before or after a number; longer text is left out.
const WORDS_CHARS_MAX: usize = 24;
/// Maximum digits before and after the decimal point that a format can require.
const DIGITS_MAX: usize = 15;
/// From this value on, an `f64` has no meaningful decimals.
const EXACT_MAX: f64 = 1e15;

/// The form of a number. Thousands separators are left out, since they depend on the locale.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Figure {
    before: String,
    after: String,
    /// Minimum digits before the decimal point.
    digits: usize,
    /// Minimum and maximum decimals.
    decimals: (usize, usize),
    /// The number of thousands scalings.
    thousands: i32,
    /// The form of negative numbers, if it has other words.
    negative: Option<Box<Figure>>,
    /// Whether the words of a negative number stand for its sign.
    hides_sign: bool,
}

impl Figure {
    /// A number with this many decimals.
    pub(super) fn with_decimals(decimals: usize) -> Self {
        Self { digits: 1, decimals: (decimals, decimals), ..Self::default() }
    }

    /// Parses a format code; `None` if it shows no number, a fraction, an exponent or text between
    /// digits, or depends on a condition.
    pub(super) fn of_code(code: &str) -> Option<Self> {
        let mut characters = code.chars();
        let (mut figure, _) = Self::of_section(&mut characters)?;
        if let Some((mut negative, has_sign)) = Self::of_section(&mut characters) {
            if has_sign {
                for words in [&mut negative.before, &mut negative.after] {
                    *words = words.trim_matches(['-', '(', ')']).to_owned();
                }
            }
            let has_words = !negative.before.is_empty() || !negative.after.is_empty();
            negative.hides_sign = has_words && !has_sign;
            let is_like = |a: &str, b: &str| a.trim() == b.trim();
            if !is_like(&negative.before, &figure.before)
                || !is_like(&negative.after, &figure.after)
            {
                figure.negative = Some(Box::new(negative));
            }
        }
        Some(figure)
    }

    /// Parses the next section of a format code, and whether it has a minus sign or a parenthesis.
    fn of_section(characters: &mut Chars<'_>) -> Option<(Self, bool)> {
        let mut figure = Self::default();
        let mut has_sign = false;
        let (mut has_digits, mut is_behind_point, mut has_words_behind) = (false, false, false);
        while let Some(c) = characters.next() {
            match c {
                ';' => break,
                '0' | '#' | '?' if has_words_behind => return None,
                '0' | '#' | '?' => {
                    has_digits = true;
                    figure.thousands = 0;
                    figure.after.clear();
                    figure.count(c, is_behind_point);
                }
                '.' if !is_behind_point => is_behind_point = true,
                ',' if has_digits && !has_words_behind => figure.thousands += 1,
                '/' | 'E' | 'e' | '@' | 'G' | '%' => return None,
                '[' if characters.as_str().starts_with(['<', '>', '=']) => return None,
                _ => {
                    let words = words_of(c, characters);
                    has_sign |= matches!(c, '-' | '(') || matches!(words.trim(), "-" | "(");
                    has_words_behind |= has_digits && !words.trim().is_empty();
                    let side = if has_digits { &mut figure.after } else { &mut figure.before };
                    side.push_str(&words);
                }
            }
        }
        for words in [&mut figure.before, &mut figure.after] {
            if words.trim().is_empty() || words.chars().count() > WORDS_CHARS_MAX {
                words.clear();
            }
        }
        has_digits.then_some((figure, has_sign))
    }

    fn count(&mut self, digit: char, is_behind_point: bool) {
        if is_behind_point {
            self.decimals.1 = (self.decimals.1 + 1).min(DIGITS_MAX);
            if digit == '0' {
                self.decimals.0 = self.decimals.1;
            }
        } else if digit == '0' {
            self.digits = (self.digits + 1).min(DIGITS_MAX);
        }
    }

    /// Formats a number; `None` if it has more digits than are exact.
    pub(super) fn written(&self, value: f64) -> Option<String> {
        if let Some(negative) = self.negative.as_ref().filter(|_| value < 0.0) {
            return negative.written(if negative.hides_sign { -value } else { value });
        }
        let unit = 10_f64.powi(self.decimals.1 as i32);
        let scaled = value.abs() / 1000_f64.powi(self.thousands) * unit;
        if scaled.is_nan() || scaled >= EXACT_MAX {
            return None;
        }
        // Rounded in decimal: 2.675, slightly less in binary, becomes 2.68.
        let scaled: f64 = format!("{scaled:.14e}").parse().unwrap_or(scaled);
        let rounded = scaled.round() / unit;
        let (least, most) = self.decimals;
        let mut digits = format!("{rounded:.most$}");
        for _ in least..most {
            if digits.ends_with('0') {
                digits.pop();
            }
        }
        let digits = digits.trim_end_matches('.');
        let whole = digits.find('.').unwrap_or(digits.len());
        let zeros = "0".repeat(self.digits.saturating_sub(whole));
        let sign = if value < 0.0 && rounded > 0.0 { "-" } else { "" };
        Some(format!("{sign}{}{zeros}{digits}{}", self.before, self.after).trim().to_owned())
    }
}

/// The text introduced by a character of a format code: a quoted string, an escaped character, a
/// currency in brackets, or the character itself.
fn words_of(first: char, rest: &mut Chars<'_>) -> String {
    match first {
        '"' => rest.by_ref().take_while(|c| *c != '"').collect(),
        '\\' => rest.next().into_iter().collect(),
        // A space as wide as a character, or fill up to the cell width.
        '_' | '*' => {
            rest.next();
            String::new()
        }
        '[' => {
            let inside: String = rest.by_ref().take_while(|c| *c != ']').collect();
            let currency = inside.strip_prefix('$').unwrap_or_default();
            currency.split('-').next().unwrap_or_default().to_owned()
        }
        // The sign comes from the number itself.
        '-' | '+' | '(' | ')' => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_and_the_digits_that_are_shown() {
        let shown = |code, value| Figure::of_code(code).and_then(|figure| figure.written(value));
        for (code, value, expected) in [
            ("#,##0.00\\ \"€\"", 1234.5, "1234.50 €"),
            ("#,##0.00\\ [$€-407];[Red]\\-#,##0.00\\ [$€-407]", -1234.5, "-1234.50 €"),
            ("_(\"$\"* #,##0.00_);_(\"$\"* \\(#,##0.00\\)", -99.9, "-$99.90"),
            ("[$CHF]\\ #,##0", 1200.0, "CHF 1200"),
            ("£#,##0", 12.5, "£13"),
            ("0\" kg\"", 25.0, "25 kg"),
            ("00000", 1067.0, "01067"),
            ("0.00", 2.675, "2.68"),
            ("0.0##", 1.0, "1.0"),
            ("#.##", 7.0, "7"),
            ("#,##0", -0.2, "0"),
            ("0.0,,\"M\"", 2_500_000.0, "2.5M"),
            ("\"Inv-\"0000", 42.0, "Inv-0042"),
            ("0.00\" CR\";0.00\" DR\"", 5.0, "5.00 CR"),
            ("0.00\" CR\";0.00\" DR\"", -5.0, "5.00 DR"),
            ("#,##0\" CR\";-#,##0\" DR\"", -5.0, "-5 DR"),
            ("\"$\"#,##0;[Red]\"$\"#,##0", -5.0, "-$5"),
            ("\"$\"#,##0;[Red]#,##0", -5.0, "-5"),
        ] {
            assert_eq!(shown(code, value).as_deref(), Some(expected), "{code}");
        }
        for code in ["General", "@", "# ?/?", "0.00E+00", "\"none\"", "000\\-00", "0.0%"] {
            assert_eq!(shown(code, 1.0), None, "{code}");
        }
        let conditional = "[>=1000000]0.0,,\"M\";[>=1000]0.0,\"K\";0";
        assert_eq!(shown(conditional, 500.0), None);
        assert_eq!(shown("0.00", 1e14), None);
        assert_eq!(shown("0", f64::NAN), None);
    }
}
