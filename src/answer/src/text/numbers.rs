//! Numbers written as words, in a few languages.

use crate::text::words::{entries, is_entry};

/// Numbers written as words.
const NUMBER_WORDS: &str = "\
    one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|twenty|thirty|forty|fifty|\
    hundred|thousand|million|billion|half|twice|third|zwei|drei|vier|fünf|sechs|sieben|acht|neun|\
    zehn|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|deux|trois|quatre|cinq|sept|huit|neuf|\
    dix|два|две|три|четыре|пять|шесть|семь|восемь|девять|десять";

/// Words for the numbers from 1 on.
const SMALL_NUMBERS: [&str; 12] = [
    "one", "two|zwei|dos|deux|два|две", "three|drei|tres|trois|три",
    "four|vier|cuatro|quatre|четыре", "five|fünf|cinco|cinq|пять", "six|sechs|seis|шесть",
    "seven|sieben|siete|sept|семь", "eight|acht|ocho|huit|восемь", "nine|neun|nueve|neuf|девять",
    "ten|zehn|diez|dix|десять", "eleven|elf|once|onze", "twelve|zwölf|doce|douze",
];

/// Whether a word is a number written as a word.
pub(crate) fn is_number(word: &str) -> bool {
    is_entry(NUMBER_WORDS, word)
}

/// The value of a number in digits, or of a small number's word in lower case.
pub(crate) fn number_of(word: &str) -> Option<f64> {
    let told = || SMALL_NUMBERS.iter().position(|words| entries(words).any(|one| one == word));
    match word.starts_with(|c: char| c.is_ascii_digit()) {
        true => word.parse().ok(),
        false => told().map(|at| (at + 1) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: digits and small numbers' words have a value, larger words are numbers without one.
    #[test]
    fn numbers_are_read_from_digits_and_words() {
        assert_eq!(number_of("12.5"), Some(12.5));
        assert_eq!(number_of("sieben"), Some(7.0));
        assert_eq!(number_of("twelve"), Some(12.0));
        assert_eq!(number_of("forty"), None);
        assert!(is_number("Forty") && is_number("dix") && !is_number("often"));
    }
}
