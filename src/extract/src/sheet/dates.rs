//! Spreadsheet dates and times: days since the end of 1899, with times as fractions of a day.

use time::Date;

/// The day after the last valid date, 31 December 9999.
const DAYS_MAX: f64 = 2_958_466.0;
/// The Julian day of day 0, 30 December 1899.
const DAY_ZERO: i32 = 2_415_019;

/// Formats a date, a time of day, or both in ISO 8601; `None` if it is not a valid date.
pub(crate) fn moment(days: f64, has_date: bool, has_time: bool) -> Option<String> {
    if !(0.0..DAYS_MAX).contains(&days) {
        return None;
    }
    let seconds = (days * 86_400.0).round();
    let (day, second) = ((seconds / 86_400.0).floor() as i32, (seconds % 86_400.0) as i32);
    let time = || {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        match second {
            0 => format!("{hour:02}:{minute:02}"),
            _ => format!("{hour:02}:{minute:02}:{second:02}"),
        }
    };
    // Day 0 is not a date: such cells contain a time, regardless of their format.
    if !has_date || day == 0 {
        return Some(time());
    }
    // Day 60 is 29 February 1900, which did not exist: days before it are off by one.
    let date = Date::from_julian_day(DAY_ZERO + day + i32::from(day < 60)).ok()?;
    // A time of midnight is usually a date formatted with a time.
    Some(if has_time && second != 0 { format!("{date} {}", time()) } else { date.to_string() })
}

/// Formats a duration in hours, minutes and seconds.
pub(crate) fn elapsed(days: f64) -> String {
    let seconds = (days.abs().min(DAYS_MAX) * 86_400.0).round() as i64;
    let sign = if days < 0.0 { "-" } else { "" };
    format!("{sign}{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_those_of_the_calendar() {
        assert_eq!(moment(45_351.0, true, false).as_deref(), Some("2024-02-29"));
        assert_eq!(moment(1.0, true, false).as_deref(), Some("1900-01-01"));
        assert_eq!(moment(61.0, true, false).as_deref(), Some("1900-03-01"));
        assert_eq!(moment(45_351.75, true, true).as_deref(), Some("2024-02-29 18:00"));
        assert_eq!(moment(0.5, true, true).as_deref(), Some("12:00"));
        assert_eq!(moment(45_350.999_999_9, true, true).as_deref(), Some("2024-02-29"));
        assert_eq!(moment(f64::NAN, true, true), None);
        assert_eq!(elapsed(1.5), "36:00:00");
    }
}
