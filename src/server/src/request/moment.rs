//! Points in time as callers write them (API 8.15).

use lodestone_types::Timestamp;

/// Seconds of the last moment that RFC 3339 can write, 9999-12-31T23:59:59Z.
const SECONDS_MAX: f64 = 253_402_300_799.0;

/// Epoch seconds in text, or an RFC 3339 time.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(seconds) => from_seconds(seconds),
        Err(_) => from_rfc_3339(text),
    }
}

/// Epoch seconds; `None` outside 1970 to 9999.
pub(super) fn from_seconds(seconds: f64) -> Option<Timestamp> {
    (0.0..=SECONDS_MAX).contains(&seconds).then(|| Timestamp::from_seconds(seconds))
}

/// `YYYY-MM-DDTHH:MM:SS[.fraction](Z|+HH:MM|-HH:MM)`.
fn from_rfc_3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    if bytes.len() < 20 || !text.is_ascii() {
        return None;
    }
    let is_at = |at: usize, allowed: &[u8]| allowed.contains(&bytes[at]);
    let has_form =
        is_at(4, b"-") && is_at(7, b"-") && is_at(10, b"Tt ") && is_at(13, b":") && is_at(16, b":");
    let number = |from: usize, to: usize| {
        let digits = text.get(from..to)?;
        digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse::<i64>().ok())?
    };
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let zone_at = 19 + text[19..].find(['Z', 'z', '+', '-'])?;
    let fraction: f64 = match &text[19..zone_at] {
        "" => 0.0,
        fraction if fraction.starts_with('.') => format!("0{fraction}").parse().ok()?,
        _ => return None,
    };
    let offset_minutes = match (&text[zone_at..=zone_at], &text[zone_at + 1..]) {
        ("Z" | "z", "") => 0,
        (sign @ ("+" | "-"), rest) if rest.len() == 5 && rest.as_bytes()[2] == b':' => {
            let minutes =
                number(zone_at + 1, zone_at + 3)? * 60 + number(zone_at + 4, zone_at + 6)?;
            if sign == "-" { -minutes } else { minutes }
        }
        _ => return None,
    };
    let is_in_range = (1..=12).contains(&month)
        && (1..=days_of_month(year, month)).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !has_form || !is_in_range {
        return None;
    }
    let days = days_from_civil(year, month, day);
    let seconds = ((days * 24 + hour) * 60 + minute - offset_minutes) * 60 + second;
    from_seconds(seconds as f64 + fraction)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year - era * 400;
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_published_forms_are_read() {
        let at = |millis| Some(Timestamp(millis));
        assert_eq!(parse("1757402409.727"), at(1_757_402_409_727));
        assert_eq!(parse("0"), at(0));
        assert_eq!(parse("1970-01-01T00:00:00Z"), at(0));
        assert_eq!(parse("2025-09-09T07:20:09.727Z"), at(1_757_402_409_727));
        assert_eq!(parse("2025-09-09T09:20:09.727+02:00"), at(1_757_402_409_727));
        assert_eq!(parse("2024-02-29T00:00:00-00:30"), at(1_709_166_600_000));
        for bad in [
            "",
            "-1",
            "nan",
            "inf",
            "1e99",
            "2025-02-29T00:00:00Z",
            "2025-13-01T00:00:00Z",
            "2025-09-09",
            "2025-09-09T07:20:09",
            "2025-09-09T07:20:09+2:00",
            "2025-09-09T24:00:00Z",
            "2025-09-09T07:20:09.xZ",
            "yesterday, at ten o'clock",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
