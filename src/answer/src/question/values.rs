//! Days and numbers of a question.

use unicode_segmentation::UnicodeSegmentation;

use crate::text::numbers::number_of;
use crate::text::terms::is_common;
use crate::text::values::{Day, Quantity, days, quantities, word_behind};
use crate::text::words::is_entry;

/// Words for small numbers that mean something else in another language.
const NO_NUMBERS: &str = "once|sept|elf";
/// Maximum number of days, and of other numbers, taken from a question.
const VALUES_MAX: usize = 16;

/// The days of a question, and the numbers outside them in digits or small ones in words.
pub(crate) fn values_in(text: &str) -> (Vec<Day>, Vec<Quantity>) {
    let (found, mut quantities) = (days(text), quantities(text));
    quantities.extend(spelled(text));
    quantities.sort_by_key(|one| one.bytes.start);
    let is_in_day = |one: &Quantity| {
        let (start, end) = (one.bytes.start, one.bytes.end);
        found.iter().any(|(bytes, _)| bytes.start < end && start < bytes.end)
    };
    quantities.retain(|one| !is_in_day(one));
    quantities.truncate(VALUES_MAX);
    (found.into_iter().take(VALUES_MAX).map(|(_, day)| day).collect(), quantities)
}

/// The numbers from two to twelve written as words before what they count: "six years".
fn spelled(text: &str) -> impl Iterator<Item = Quantity> {
    text.unicode_word_indices().filter_map(|(at, word)| {
        let lower = word.to_lowercase();
        let is_word = word.starts_with(char::is_alphabetic) && !is_entry(NO_NUMBERS, &lower);
        let value = number_of(&lower).filter(|value| is_word && *value > 1.0)?;
        let (unit, end) = word_behind(text, at + word.len());
        let is_counted = !unit.is_empty() && !is_common(&unit);
        is_counted.then_some(Quantity { value, unit, bytes: at..end })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_may_be_written_as_words() {
        let told = |text: &str| -> Vec<(f64, String)> {
            values_in(text).1.into_iter().map(|one| (one.value, one.unit)).collect()
        };
        assert_eq!(
            told("after six years, for 3 dogs"),
            [(6.0, "years".into()), (3.0, "dogs".into())]
        );
        assert_eq!(told("once a week, on 7 May, for the two of us, one day"), []);
    }
}
