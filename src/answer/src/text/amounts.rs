//! Computed amounts, written in the style of their column's cells: with the same currency or unit,
//! thousands separators and decimals.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::currencies::is_currency;
use crate::text::values::{decimal_mark, number, quantities};

/// Maximum number of decimals in a value that is not itself in the column, such as a mean.
const DECIMALS_MAX: usize = 2;

/// The number style of a cell.
struct Style<'c> {
    /// A currency before the number, and the unit after it.
    before: &'c str,
    after: &'c str,
    decimals: usize,
    decimal_mark: Option<char>,
    thousands_mark: Option<char>,
}

/// Formats a value in the style of a column's cells; `None` if they are not plain numbers.
pub(crate) fn written_as(value: f64, cells: &[&str]) -> Option<String> {
    let styles = cells.iter().map(|cell| style(cell)).collect::<Option<Vec<_>>>()?;
    let first = styles.first()?;
    let decimals = styles.iter().map(|style| style.decimals).max()?;
    let thousands = styles.iter().find_map(|style| style.thousands_mark);
    let mark = styles.iter().find_map(|style| style.decimal_mark);
    let mark = mark.unwrap_or(if thousands == Some('.') { ',' } else { '.' });
    if thousands == Some(mark) {
        return None;
    }
    let plain = format!("{:.*}", decimals.max(DECIMALS_MAX), value.abs());
    let (whole, fraction) = plain.split_once('.')?;
    let kept = fraction.trim_end_matches('0').len().max(decimals);
    let fraction = match &fraction[..kept] {
        "" => String::new(),
        fraction => format!("{mark}{fraction}"),
    };
    let sign = if value < 0.0 { "-" } else { "" };
    let (before, after) = (first.before, first.after);
    Some(format!("{sign}{before}{}{fraction}{after}", grouped(whole, thousands)))
}

/// Digits with a thousands separator.
fn grouped(digits: &str, mark: Option<char>) -> String {
    let mut told = String::with_capacity(digits.len() * 2);
    for (at, digit) in digits.chars().enumerate() {
        let is_thousand = at > 0 && (digits.len() - at).is_multiple_of(3);
        told.extend(mark.filter(|_| is_thousand));
        told.push(digit);
    }
    told
}

fn style(cell: &str) -> Option<Style<'_>> {
    // Text in parentheses after a number is a remark.
    let bare = cell.split_once(" (").map_or(cell, |(bare, _)| bare);
    let [one] = &quantities(bare)[..] else { return None };
    let is_digit = |c: char| c.is_ascii_digit();
    let written = &bare[one.bytes.clone()];
    let start = one.bytes.start + written.find(is_digit)?;
    let end = one.bytes.start + written.rfind(is_digit)? + 1;
    let before = &bare[..start];
    let code = before.unicode_word_indices().next_back();
    let code = code.filter(|(at, code)| {
        is_currency(&code.to_lowercase()) && before[at + code.len()..].trim().is_empty()
    });
    let sign = before.trim_end().char_indices().next_back();
    let sign = sign.filter(|(_, sign)| matches!(sign, '£' | '$' | '€')).map(|(at, _)| at);
    let before = sign.or(code.map(|(at, _)| at)).map_or("", |at| &before[at..]);
    let is_money = is_currency(&one.unit) || !before.is_empty();
    let digits = &bare[start..end];
    // "1.2 million" is a different number from its digits.
    let is_plain = number(digits, is_money).is_some_and(|plain| plain == one.value.abs());
    let mark = decimal_mark(digits, is_money);
    let whole = &digits[..mark.unwrap_or(digits.len())];
    is_plain.then_some(Style {
        before,
        after: &bare[end..one.bytes.end],
        decimals: mark.map_or(0, |at| digits.len() - at - 1),
        decimal_mark: mark.and_then(|at| digits[at..].chars().next()),
        thousands_mark: whole.chars().find(|c| !c.is_ascii_digit()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_their_cells() {
        for (value, cells, told) in [
            (4520.5, &["£1,480.50", "£320.00"][..], Some("£4,520.50")),
            (3320.5, &["1.240,00 €", "980,50 €"], Some("3.320,50 €")),
            (1500.0, &["€1.250", "€250"], Some("€1.500")),
            (2250.0, &["EUR 1.250", "EUR 1.000"], Some("EUR 2.250")),
            (16.5, &["12.00 EUR", "15,50 EUR (members 9)"], Some("16.50 EUR")),
            (26.75, &["14", "31"], Some("26.75")),
            (62.0, &["22 kg", "40 kg"], Some("62 kg")),
            (1.234, &["0.617", "0.617"], Some("1.234")),
            (2000.0, &["1000", "1000"], Some("2000")),
            (2900.0, &["£1 900", "£1 000"], Some("£2 900")),
            (1e6 / 3.0, &["1,000,000"], Some("333,333.33")),
            (-5.0, &["-3", "-2"], Some("-5")),
            (2.2e6, &["£1.2 million", "£1 million"], None),
            (150.0, &["2 h 30 min"], None),
        ] {
            assert_eq!(written_as(value, cells).as_deref(), told, "{cells:?}");
        }
    }
}
