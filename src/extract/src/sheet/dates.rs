//! Days and times as spreadsheets count them: days since the end of 1899, times as parts of a day.

/// Days after which no calendar goes: the end of the year 9999.
const DAYS_MAX: f64 = 2_958_466.0;

/// A day, a time of day, or both, in the order of ISO 8601; `None` for no day of any calendar.
pub(crate) fn moment(days: f64, has_date: bool, has_time: bool) -> Option<String> {
    if !(0.0..DAYS_MAX).contains(&days) {
        return None;
    }
    let seconds = (days * 86_400.0).round();
    let (day, second) = ((seconds / 86_400.0).floor() as i64, (seconds % 86_400.0) as i64);
    let time = || {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        match second {
            0 => format!("{hour:02}:{minute:02}"),
            _ => format!("{hour:02}:{minute:02}:{second:02}"),
        }
    };
    // Day 0 is no day: such cells hold a time, whatever their format.
    if !has_date || day == 0 {
        return Some(time());
    }
    // Day 60 is 29 February 1900, which did not exist: days before it are one later.
    let since_1970 = day - 25_569 + i64::from(day < 60);
    let (year, month, day) = civil(since_1970);
    let date = format!("{year:04}-{month:02}-{day:02}");
    // A time of midnight is mostly a day that was formatted with a time.
    Some(if has_time && second != 0 { format!("{date} {}", time()) } else { date })
}

/// A length of time in hours, minutes and seconds.
pub(crate) fn elapsed(days: f64) -> String {
    let seconds = (days.abs().min(DAYS_MAX) * 86_400.0).round() as i64;
    let sign = if days < 0.0 { "-" } else { "" };
    format!("{sign}{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Year, month and day of a day since 1970 (Hinnant, "chrono-compatible low-level date algorithms",
/// `civil_from_days`).
pub(crate) fn civil(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
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
        assert_eq!(civil(-1), (1969, 12, 31));
    }
}
