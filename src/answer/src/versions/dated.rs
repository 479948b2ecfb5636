//! Documents that a question names by their time: "the minutes of 10 February", "the Q1 report",
//! "the newsletter of March". It does not mean those of other times.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::text::dates::month_behind;
use crate::text::values::{days, month, year};
use crate::text::words::{is_entry, spaced};
use crate::versions::notices::Notice;

/// Names of documents that recur over time.
const DOCUMENTS: &str = "\
    minutes|round|meeting|session|letter|mail|email|memo|note|notes|report|invoice|bill|receipt|\
    newsletter|bulletin|circular|protocol|statement|offer|quote|quotation|log|rota|roster|sheet|\
    sheets|chat|issue|edition|protokoll|sitzung|besprechung|brief|bericht|rechnung|angebot|\
    rundschreiben|réunion|lettre|rapport|facture|acta|reunión|carta|informe|factura";
/// Words between such a document and its time, and names of periods.
const BETWEEN: &str = "of|from|on|in|for|dated|at|the|vom|von|im|am|du|de|del";
const WEEKS: &str = "week|kw|woche|semaine|semana";
const QUARTERS: &str = "quarter|quartal|trimestre";
const ORDINALS: [&str; 4] = ["first|1st", "second|2nd", "third|3rd", "fourth|4th"];
/// Maximum number of words between a document and its time.
const BETWEEN_MAX: usize = 2;

/// A day, month, week or quarter, as far as it is stated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Period {
    year: Option<u32>,
    month: Option<u32>,
    day: Option<u32>,
    week: Option<u32>,
    quarter: Option<u32>,
}

impl Period {
    fn quarter(self) -> Option<u32> {
        self.quarter.or(self.month.map(|month| (month - 1) / 3 + 1))
    }

    /// Whether both may denote the same time; `None` if they share nothing comparable.
    fn meets(self, other: Self) -> Option<bool> {
        let pair = |a: Option<u32>, b: Option<u32>| a.zip(b).map(|(a, b)| a == b);
        let has_quarter = self.quarter.is_some() || other.quarter.is_some();
        let of_quarter = pair(self.quarter(), other.quarter()).filter(|_| has_quarter);
        let told = [
            pair(self.month, other.month),
            pair(self.day, other.day),
            pair(self.week, other.week),
            of_quarter,
        ];
        let is_told = told.iter().any(Option::is_some);
        let mut told = told.into_iter().chain([pair(self.year, other.year)]);
        is_told.then(|| !told.any(|same| same == Some(false)))
    }
}

/// The documents that a question names by their times.
#[derive(Debug, Default)]
pub(crate) struct Named {
    periods: Vec<Period>,
    /// Names of these documents, in lower case.
    nouns: Vec<String>,
}

impl Named {
    /// Finds the periods and documents that a question names.
    pub(crate) fn of(question: &str) -> Self {
        let words: Vec<String> = question.unicode_words().map(str::to_lowercase).collect();
        let mut named = Self::default();
        for (place, period) in periods(question) {
            let before = words[..place.start].iter().rev();
            let near = before.take(BETWEEN_MAX + 1).skip_while(|word| is_entry(BETWEEN, word));
            let behind = words.get(place.end);
            let is_one = |word: &&String| is_entry(DOCUMENTS, word);
            if let Some(noun) = near.take(1).find(is_one).or(behind.filter(is_one)) {
                named.periods.push(period);
                named.nouns.push(noun.clone());
            }
        }
        named
    }

    /// For each of the `notices`, whether its document is of another time than those named. If some
    /// document matches a named time, this applies to documents of any kind; else only to those of
    /// the named kind.
    pub(crate) fn are_others(&self, notices: &[Notice]) -> Vec<bool> {
        let meets = |own: &[Period]| -> Option<bool> {
            let pairs = self.periods.iter().flat_map(|one| own.iter().map(|own| one.meets(*own)));
            pairs.flatten().reduce(|one, other| one || other)
        };
        let own = |notice: &Notice| -> Vec<Period> {
            let told = notice.names().map(periods).find(|told| !told.is_empty());
            told.into_iter().flatten().map(|(_, period)| period).collect()
        };
        let met: Vec<Option<bool>> = notices.iter().map(|notice| meets(&own(notice))).collect();
        let is_there = met.contains(&Some(true));
        let is_of_kind = |notice: &Notice| {
            let names = spaced(&notice.names().collect::<Vec<_>>().join(" "));
            self.nouns.iter().any(|noun| names.contains(&format!(" {noun} ")))
        };
        let is_other = |(notice, met): (&Notice, &Option<bool>)| {
            *met == Some(false) && (is_there || is_of_kind(notice))
        };
        notices.iter().zip(&met).map(is_other).collect()
    }
}

/// The times stated in a text, except years alone, with their ranges of words.
fn periods(text: &str) -> Vec<(Range<usize>, Period)> {
    let text = text.replace('_', " ");
    let words: Vec<(usize, &str)> = text.unicode_word_indices().collect();
    let lower: Vec<String> = words.iter().map(|(_, word)| word.to_lowercase()).collect();
    let days = days(&text);
    let mut found = Vec::new();
    for (bytes, day) in &days {
        let is_in = |at: &usize| bytes.contains(&words[*at].0);
        let mut inside = (0..words.len()).filter(is_in);
        let first = inside.next().unwrap_or(0);
        let period =
            Period { year: day.year, month: Some(day.month), day: day.day, ..Period::default() };
        found.push((first..inside.next_back().unwrap_or(first) + 1, period));
    }
    for at in 0..words.len() {
        let number = |word: Option<&String>| word.and_then(|word| word.parse::<u32>().ok());
        let is_in_day = days.iter().any(|(bytes, _)| bytes.contains(&words[at].0));
        let word = lower[at].as_str();
        let marked = |mark: char| word.strip_prefix(mark).and_then(|rest| rest.parse().ok());
        let ordinal = || ORDINALS.iter().position(|names| is_entry(names, word));
        let next = lower.get(at + 1);
        let month_of_year = month_behind(&text[words[at].0 + words[at].1.len()..]);
        let of_year = number(next.filter(|year| year.len() == 4));
        let (count, period) = match () {
            () if is_in_day => continue,
            () if year(word).is_some() && month_of_year.is_some() => {
                (2, Period { year: year(word), month: month_of_year, ..Period::default() })
            }
            () if is_entry(WEEKS, word) && number(next).is_some_and(|week| week <= 53) => {
                (2, Period { week: number(next), ..Period::default() })
            }
            () if marked('w').is_some_and(|week| week <= 53) => {
                (1, Period { week: marked('w'), ..Period::default() })
            }
            () if marked('q').is_some_and(|quarter| (1..=4).contains(&quarter)) => {
                (1, Period { quarter: marked('q'), year: of_year, ..Period::default() })
            }
            () if ordinal().is_some() && next.is_some_and(|next| is_entry(QUARTERS, next)) => {
                let quarter = ordinal().map(|at| at as u32 + 1);
                (2, Period { quarter, ..Period::default() })
            }
            () => match month(words[at].1) {
                Some(month) => (1, Period { month: Some(month), ..Period::default() }),
                None => continue,
            },
        };
        found.push((at..at + count, period));
    }
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::chunk;

    /// For each title, whether the document is of another time.
    fn others(question: &str, titles: &[&str]) -> Vec<bool> {
        let notice = |title: &&str| {
            let mut one = chunk("file", 0, "Text.", 0.5);
            Arc::make_mut(&mut one.source).title = (*title).to_owned();
            Notice::of(&one.source, "Text.")
        };
        let notices: Vec<Notice> = titles.iter().map(notice).collect();
        Named::of(question).are_others(&notices)
    }

    #[test]
    fn a_time_names_one_document() {
        let minutes = ["Minutes 2026-02-10", "Minutes 10 March 2026", "Handbook"];
        let of = |question| others(question, &minutes);
        assert_eq!(of("What did the minutes of 10 February decide?"), [false, true, false]);
        assert_eq!(of("What do the March minutes say about salt?"), [true, false, false]);
        assert_eq!(of("What was decided at the meeting on 10 March 2026?"), [true, false, false]);
        assert_eq!(of("What did the minutes of 3 April decide?"), [true, true, false], "neither");
        assert_eq!(of("Who came on 10 March?"), [false; 3], "no document");
        assert_eq!(of("What do the minutes of 2026 say?"), [false; 3], "a year is no time");
        assert_eq!(of("What do the minutes of February and the minutes of March say?"), [false; 3]);
        assert_eq!(of("What did the minutes of the first quarter say?"), [false; 3]);
    }

    #[test]
    fn weeks_and_quarters_are_times() {
        let sheets = ["batch-sheets-2026-w10", "Batch sheets week 11"];
        assert_eq!(others("How many loaves in the sheets of week 10?", &sheets), [false, true]);
        let reports = ["Report Q1 2026", "Report 2026-05", "Letter of 3 May 2026"];
        let of = |question| others(question, &reports);
        assert_eq!(of("What does the Q1 report say?"), [false, true, true]);
        assert_eq!(of("What does the report of May say?"), [true, false, false]);
        assert_eq!(of("Who wrote the letter of 3 May?"), [true, false, false]);
    }
}
