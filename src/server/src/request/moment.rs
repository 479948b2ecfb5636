//! Parses points in time in the two forms that callers use: epoch seconds and RFC 3339.

use time::{Date, Month};

use lodestone_types::Timestamp;

/// The Julian day number of 1 January 1970.
const EPOCH: i32 = 2_440_588;

/// The last second that RFC 3339 can express, 9999-12-31T23:59:59Z.
const SECONDS_MAX: f64 = 253_402_300_799.0;

/// Parses epoch seconds or an RFC 3339 time.
pub(super) fn parse(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    match text.parse::<f64>() {
        Ok(seconds) => from_seconds(seconds),
        Err(_) => from_rfc_3339(text),
    }
}

/// Converts epoch seconds; `None` outside the years 1970 to 9999.
pub(super) fn from_seconds(seconds: f64) -> Option<Timestamp> {
    (0.0..=SECONDS_MAX).contains(&seconds).then(|| Timestamp::from_seconds(seconds))
}

/// Parses `YYYY-MM-DDTHH:MM:SS[.fraction](Z|+HH:MM|-HH:MM)`.
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
    if !has_form || hour >= 24 || minute >= 60 || second > 60 {
        return None;
    }
    let month = Month::try_from(month as u8).ok()?;
    let date = Date::from_calendar_date(year as i32, month, day as u8).ok()?;
    let days = i64::from(date.to_julian_day() - EPOCH);
    let seconds = ((days * 24 + hour) * 60 + minute - offset_minutes) * 60 + second;
    from_seconds(seconds as f64 + fraction)
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
            "", "-1", "nan", "inf", "1e99", "2025-02-29T00:00:00Z", "2025-13-01T00:00:00Z",
            "2025-09-09", "2025-09-09T07:20:09", "2025-09-09T07:20:09+2:00",
            "2025-09-09T24:00:00Z", "2025-09-09T07:20:09.xZ", "yesterday, at ten o'clock",
        ] {
            assert_eq!(parse(bad), None, "{bad}");
        }
    }
}
