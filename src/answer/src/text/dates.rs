//! Days with a year, as documents state their validity: `2025-03-01`, `March 2025`, `2025`.

use time::{Date, Month};

use crate::text::values;
use lodestone_types::Timestamp;

/// Julian day number of 1 January 1970.
const EPOCH: i32 = 2_440_588;
const MILLIS_A_DAY: u64 = 86_400_000;
const DAYS_A_WEEK: i32 = 7;

/// Maximum number of characters of a text that are searched for days.
const CHARS_MAX: usize = 4000;
/// Years that a four-digit number may denote.
const YEARS: std::ops::RangeInclusive<u32> = 1900..=2199;

/// A day; for a bare month or year, its first day. Ordered by time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Day {
    pub(crate) year: u32,
    pub(crate) month: u32,
    pub(crate) day: u32,
}

/// Precision of a stated day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Grain {
    Year,
    Month,
    Day,
}

/// A day stated in a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dated {
    pub(crate) day: Day,
    pub(crate) grain: Grain,
}

impl Day {
    /// The day of a timestamp, in UTC.
    pub(crate) fn of(moment: Timestamp) -> Self {
        let days = i32::try_from(moment.0 / MILLIS_A_DAY).unwrap_or(i32::MAX);
        Self { year: 1970, month: 1, day: 1 }.plus(days)
    }

    /// The day a number of days later.
    pub(crate) fn plus(self, days: i32) -> Self {
        let date = Date::from_julian_day(self.julian().saturating_add(days)).unwrap_or(Date::MAX);
        let (year, month, day) = date.to_calendar_date();
        Self { year: year as u32, month: u32::from(u8::from(month)), day: u32::from(day) }
    }

    /// The day of the week, counted from Monday as 0.
    pub(crate) fn weekday(self) -> u32 {
        // Julian day 0 was a Monday.
        self.julian().rem_euclid(DAYS_A_WEEK) as u32
    }

    fn julian(self) -> i32 {
        let month = u8::try_from(self.month).ok().and_then(|month| Month::try_from(month).ok());
        let date = month
            .zip(u8::try_from(self.day).ok())
            .and_then(|(month, day)| Date::from_calendar_date(self.year as i32, month, day).ok());
        date.map_or(EPOCH, Date::to_julian_day)
    }
}

impl Dated {
    /// Whether both may denote the same day, at the coarser precision.
    pub(crate) fn meets(self, other: Self) -> bool {
        match self.grain.min(other.grain) {
            Grain::Year => self.day.year == other.day.year,
            Grain::Month => (self.day.year, self.day.month) == (other.day.year, other.day.month),
            Grain::Day => self.day == other.day,
        }
    }

    /// The day of a timestamp, in UTC.
    pub(crate) fn of(moment: Timestamp) -> Self {
        Self { day: Day::of(moment), grain: Grain::Day }
    }

    /// The last day denoted.
    pub(crate) fn last(self) -> Day {
        let Day { year, month, day } = self.day;
        match self.grain {
            Grain::Year => Day { year, month: 12, day: 31 },
            Grain::Month => Day { year, month, day: 31 },
            Grain::Day => Day { year, month, day },
        }
    }
}

/// The first day named in a text.
pub(crate) fn first(text: &str) -> Option<Dated> {
    all(text).into_iter().next()
}

/// The days named in a text, in order.
pub(crate) fn all(text: &str) -> Vec<Dated> {
    let end = text.char_indices().nth(CHARS_MAX).map_or(text.len(), |(at, _)| at);
    // Names may join words by underscores.
    let text = text[..end].replace('_', " ");
    let mut found: Vec<(usize, Dated)> = Vec::new();
    let days = values::days(&text);
    for (bytes, day) in &days {
        let Some(year) = day.year.filter(|year| YEARS.contains(year)) else { continue };
        let grain = if day.day.is_some() { Grain::Day } else { Grain::Month };
        let day = Day { year, month: day.month, day: day.day.unwrap_or(1) };
        found.push((bytes.start, Dated { day, grain }));
    }
    let mut at = 0;
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let start = at;
        at += word.len() + text[start + word.len()..].chars().next().map_or(0, char::len_utf8);
        let year = year(word).filter(|_| !days.iter().any(|(bytes, _)| bytes.contains(&start)));
        found.extend(year.map(|year| {
            let (month, grain) = match month_behind(&text[start + word.len()..]) {
                Some(month) => (month, Grain::Month),
                None => (1, Grain::Year),
            };
            (start, Dated { day: Day { year, month, day: 1 }, grain })
        }));
    }
    found.sort_by_key(|(start, _)| *start);
    found.into_iter().map(|(_, dated)| dated).collect()
}

/// The month of "-03" after a year.
pub(crate) fn month_behind(text: &str) -> Option<u32> {
    let rest = text.strip_prefix('-')?;
    let digits = rest.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    digits.parse().ok().filter(|month| digits.len() == 2 && (1..=12).contains(month))
}

fn year(word: &str) -> Option<u32> {
    let is_year = word.len() == 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    is_year.then(|| word.parse().ok()).flatten().filter(|year| YEARS.contains(year))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_read_in_their_forms() {
        for (text, expected) in [
            ("valid from 2025-03-01.", (2025, 3, 1, Grain::Day)),
            ("as of 3 April 2023", (2023, 4, 3, Grain::Day)),
            ("March 1, 2025", (2025, 3, 1, Grain::Day)),
            ("gültig ab 1. März 2025", (2025, 3, 1, Grain::Day)),
            ("à partir du 1er mars 2025", (2025, 3, 1, Grain::Day)),
            ("desde el 1 de marzo de 2025", (2025, 3, 1, Grain::Day)),
            ("Stand 01.03.2025", (2025, 3, 1, Grain::Day)),
            ("DRAFT of May 2023", (2023, 5, 1, Grain::Month)),
            ("price-list_2024.csv", (2024, 1, 1, Grain::Year)),
            ("yard-memo-2025-03.txt", (2025, 3, 1, Grain::Month)),
            ("Tue, 14 May 2024 15:40:03", (2024, 5, 14, Grain::Day)),
        ] {
            let (year, month, day, grain) = expected;
            assert_eq!(first(text), Some(Dated { day: Day { year, month, day }, grain }), "{text}");
        }
        assert_eq!(first("ring 0555 010 733 for 12 of them in May"), None);
        assert_eq!(all("from 2023 to 5 June 2024").len(), 2);
    }

    #[test]
    fn a_moment_has_its_day() {
        for (seconds, expected) in
            [(0, (1970, 1, 1)), (951_782_400, (2000, 2, 29)), (1_795_392_000, (2026, 11, 23))]
        {
            let day = Day::of(Timestamp(seconds * 1000));
            assert_eq!((day.year, day.month, day.day), expected);
        }
    }
}
