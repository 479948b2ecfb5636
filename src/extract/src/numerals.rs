//! Formats list numbers.

/// The largest number written in Roman numerals or letters.
const SPELT_MAX: i64 = 3999;

/// Writes `count` in the given word processor number format; decimal if the format is unknown.
pub(super) fn written(count: i64, format: &str) -> String {
    match format {
        "lowerRoman" | "i" => roman(count).to_lowercase(),
        "upperRoman" | "I" => roman(count),
        "lowerLetter" | "a" => letters(count).to_lowercase(),
        "upperLetter" | "A" => letters(count),
        "decimalZero" => format!("{count:02}"),
        _ => count.to_string(),
    }
}

fn roman(count: i64) -> String {
    const SIGNS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..=SPELT_MAX).contains(&count) {
        return count.to_string();
    }
    let mut rest = count;
    let mut written = String::new();
    for (value, sign) in SIGNS {
        while rest >= value {
            written.push_str(sign);
            rest -= value;
        }
    }
    written
}

/// A to Z, then AA to ZZ, as in Word.
fn letters(count: i64) -> String {
    if !(1..=SPELT_MAX).contains(&count) {
        return count.to_string();
    }
    let zero_based = count - 1;
    let letter = char::from(b'A' + u8::try_from(zero_based % 26).unwrap_or(0));
    std::iter::repeat_n(letter, usize::try_from(zero_based / 26 + 1).unwrap_or(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_lists_show_them() {
        assert_eq!(written(14, "lowerRoman"), "xiv");
        assert_eq!(written(1999, "upperRoman"), "MCMXCIX");
        assert_eq!(written(28, "upperLetter"), "BB");
        assert_eq!(written(0, "upperLetter"), "0");
        assert_eq!(written(7, "decimalZero"), "07");
    }
}
