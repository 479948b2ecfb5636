//! Recognition of time values in metadata texts.

use time::{Date, Month};

/// Whether a text denotes a time: epoch seconds, a date (`2026-03-01`), or a date and time of day
/// as in RFC 3339, where seconds and zone are optional.
pub(crate) fn is_datetime(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    is_decimal(text) || (is_date(date) && time.is_none_or(is_time))
}

/// Parses a number of exactly `digits` ASCII digits.
fn number(text: &str, digits: usize) -> Option<u32> {
    let is_plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Whether the text is a decimal such as `1757402409.727`; negative values are before 1970.
fn is_decimal(text: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let text = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    is_digits(whole) && is_digits(fraction)
}

/// Whether the text is `YYYY-MM-DD` and a valid calendar date.
fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    let [year, month, day] = parts[..] else { return false };
    let date = || {
        let month = Month::try_from(number(month, 2)? as u8).ok()?;
        Date::from_calendar_date(number(year, 4)? as i32, month, number(day, 2)? as u8).ok()
    };
    date().is_some()
}

/// Whether the text is a time of day with an optional zone.
fn is_time(text: &str) -> bool {
    let (clock, zone) = text.split_at(text.find(['Z', 'z', '+', '-']).unwrap_or(text.len()));
    let is_zone = match zone.split_at_checked(1) {
        None => true,
        Some(("Z" | "z", rest)) => rest.is_empty(),
        Some((_, offset)) => offset.len() == "00:00".len() && is_clock(offset),
    };
    is_zone && is_clock(clock)
}

/// Whether the text is `HH:MM`, `HH:MM:SS` or `HH:MM:SS.fraction`.
fn is_clock(text: &str) -> bool {
    let mut parts = text.splitn(3, ':');
    let mut is_below =
        |max| parts.next().and_then(|part| number(part, 2)).is_some_and(|number| number < max);
    if !is_below(24) || !is_below(60) {
        return false;
    }
    parts.next().is_none_or(|part| {
        let (second, fraction) = part.split_once('.').unwrap_or((part, "0"));
        let is_fraction = !fraction.is_empty() && fraction.bytes().all(|b| b.is_ascii_digit());
        // A minute with a leap second has 61 seconds.
        number(second, 2).is_some_and(|second| second <= 60) && is_fraction
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_other_texts() {
        for good in [
            "2026-03-01", "2024-02-29", "2000-02-29", "1902-12-31", "2026-03-01T08:30",
            "2026-03-01T08:30:00", "2026-03-01 08:30:60.25", "2026-03-01T08:30:00Z",
            "2026-03-01t08:30:00.5z", "2026-03-01T08:30+02:00", "2026-03-01T08:30:00-11:30",
            "1757402409.727", "1757402409", "0", "-86400.5",
        ] {
            assert!(is_datetime(good), "{good}");
        }
        for bad in [
            "", "yesterday", "2026-13-45", "2026-00-01", "2026-04-31", "2026-02-29", "1900-02-29",
            "2026-3-1", "2026-03", "2026-03-01T", "2026-03-01T24:00", "2026-03-01T08:60",
            "2026-03-01T08:30:61", "2026-03-01T08:30:00.", "2026-03-01T08",
            "2026-03-01T08:30+2:00", "2026-03-01T08:30Zx", "2026-03-01T08:30+02:00:00",
            "2026-03-01T08:30+25:00", " 5", "5 ", "1e9", "inf", "0x10", "-", ".5", "5.",
            "2026-03-01é08:30", "01.03.2026",
        ] {
            assert!(!is_datetime(bad), "{bad}");
        }
    }
}
