//! Rows of a table by days, such as a roster, for a question about "today" or "tomorrow".

use crate::passages::blocks::Cell;
use crate::question::relative::relative_day;
use crate::selection::choose::Choice;
use crate::selection::rows::SELECTED_MAX;
use crate::text::dates::Day;
use crate::text::values::{days, weekdays};

/// Minimum number of rows of a table by days.
const ROWS_MIN: usize = 2;

/// The kind of cell that names the day of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Date,
    Weekday,
}

impl Choice<'_> {
    /// If the question names a day relative to today and the first passage belongs to a table
    /// whose rows are days: the rows of that day, which may be none.
    pub(crate) fn of_today(&self, first: usize) -> Option<Vec<usize>> {
        let question = self.question;
        if question.extreme.is_some() || question.total.is_some() {
            return None;
        }
        let day = relative_day(question.last(), self.editions.today())?;
        let mates = self.mates(first);
        let keys = mates.iter().map(|at| key(&self.candidate(*at).cells));
        let keys = keys.collect::<Option<Vec<_>>>().filter(|keys| keys.len() >= ROWS_MIN)?;
        let is_meant = |(key, cell): &(Key, &Cell)| match key {
            Key::Date => is_day(&cell.value, day),
            Key::Weekday => weekdays(&cell.value) == [format!("weekday {}", day.weekday())],
        };
        let found = mates.iter().zip(&keys).filter(|(_, key)| is_meant(key)).map(|(at, _)| *at);
        let found: Vec<usize> = found.collect();
        (found.len() <= SELECTED_MAX).then_some(found)
    }
}

/// The cell that names the only day of a row: the first one, or the one behind a weekday.
fn key(cells: &[Cell]) -> Option<(Key, &Cell)> {
    let is_date = |cell: &&Cell| days(&cell.value).len() == 1;
    let is_weekday = |cell: &&Cell| weekdays(&cell.value).len() == 1;
    let first = cells.first()?;
    let date = Some(first).filter(is_date);
    let date = date.or_else(|| cells.get(1).filter(|_| is_weekday(&first)).filter(is_date));
    let weekday = || Some(first).filter(is_weekday).map(|cell| (Key::Weekday, cell));
    (cells.len() > 1).then(|| date.map(|cell| (Key::Date, cell)).or_else(weekday))?
}

/// Whether a value with one day names this one; a day without a year is of any.
fn is_day(value: &str, day: Day) -> bool {
    days(value).first().is_some_and(|(_, told)| {
        told.year.is_none_or(|year| year == day.year)
            && (told.month, told.day) == (day.month, Some(day.day))
    })
}
