//! Number formats of cells: number, percentage, date or time.

use std::collections::BTreeMap;

use crate::ExtractError;
use crate::events::{Event, Events};
use crate::office::workbook::figure::Figure;
use crate::package::Package;
use crate::sheet::dates;

/// Maximum formats per workbook; Excel stops at 65,490.
const FORMATS_MAX: usize = 70_000;

/// The way a number is displayed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) enum Shown {
    /// The plain number.
    #[default]
    Number,
    /// A number with a unit or a fixed number of digits.
    Figure(Figure),
    /// A percentage with this many decimals.
    Percent(usize),
    /// A date, a time of day, or both.
    Moment {
        /// Whether the date is shown.
        has_date: bool,
        /// Whether the time is shown.
        has_time: bool,
    },
    /// A duration in hours.
    Elapsed,
}

/// The formats of a workbook, by the index used in cells.
#[derive(Debug, Default)]
pub(super) struct Formats {
    shown: Vec<Shown>,
    has_late_epoch: bool,
}

impl Formats {
    /// Reads the part called `name`.
    pub(super) fn read(
        package: &Package<'_>,
        name: &str,
        has_late_epoch: bool,
    ) -> Result<Self, ExtractError> {
        let mut found = Self { shown: Vec::new(), has_late_epoch };
        let Some(part) = package.part(name)? else { return Ok(found) };
        let mut events = Events::new(part)?;
        let mut codes: BTreeMap<i64, Shown> = BTreeMap::new();
        let mut is_cells = false;
        loop {
            match events.next()? {
                Event::Open(element) => match element.name() {
                    "numFmt" => {
                        let code = element.attribute("formatCode").unwrap_or_default();
                        let id = element.number("numFmtId").unwrap_or(0);
                        codes.insert(id, of_code(&code));
                    }
                    "cellXfs" => is_cells = true,
                    "xf" if is_cells && found.shown.len() < FORMATS_MAX => {
                        let id = element.number("numFmtId").unwrap_or(0);
                        found.shown.push(codes.get(&id).cloned().unwrap_or_else(|| built_in(id)));
                    }
                    _ => {}
                },
                Event::Close(name) if name.as_str() == "cellXfs" => is_cells = false,
                Event::Close(_) | Event::Text(_) => {}
                Event::End => return Ok(found),
            }
        }
    }

    /// Formats the value `raw` with the format at this index.
    pub(super) fn written(&self, raw: &str, format: usize) -> String {
        // An integer keeps all its digits.
        let is_plain = raw.len() <= 15 && raw.bytes().all(|b| b.is_ascii_digit());
        let Ok(value) = raw.trim().parse::<f64>() else { return raw.to_owned() };
        match self.shown.get(format).unwrap_or(&Shown::Number) {
            Shown::Number if is_plain => raw.to_owned(),
            Shown::Number => number(value),
            Shown::Figure(figure) => figure.written(value).unwrap_or_else(|| number(value)),
            Shown::Percent(decimals) => percent(value, *decimals),
            Shown::Elapsed => dates::elapsed(value),
            Shown::Moment { has_date, has_time } => {
                let days = if self.has_late_epoch { value + 1462.0 } else { value };
                dates::moment(days, *has_date, *has_time).unwrap_or_else(|| number(value))
            }
        }
    }
}

/// Formats a number with the 15 digits that a spreadsheet keeps.
pub(crate) fn number(value: f64) -> String {
    let rounded: f64 = format!("{value:.14e}").parse().unwrap_or(value);
    if rounded == 0.0 || (1e-6..1e15).contains(&rounded.abs()) {
        return rounded.to_string();
    }
    format!("{rounded:e}")
}

/// Formats a percentage without trailing zeros.
pub(crate) fn percent(value: f64, decimals: usize) -> String {
    let written = format!("{:.*}", decimals.min(6), value * 100.0);
    let written = match written.contains('.') {
        true => written.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => written,
    };
    format!("{written}%")
}

/// The built-in formats, which have no code.
fn built_in(id: i64) -> Shown {
    match id {
        1 | 3 | 5 | 6 | 37 | 38 | 41 | 42 => Shown::Figure(Figure::with_decimals(0)),
        2 | 4 | 7 | 8 | 39 | 40 | 43 | 44 => Shown::Figure(Figure::with_decimals(2)),
        9 => Shown::Percent(0),
        10 => Shown::Percent(2),
        14..=17 | 27..=31 | 34..=36 | 50..=58 => Shown::Moment { has_date: true, has_time: false },
        18..=21 | 32 | 33 | 45 | 47 => Shown::Moment { has_date: false, has_time: true },
        22 => Shown::Moment { has_date: true, has_time: true },
        46 => Shown::Elapsed,
        _ => Shown::Number,
    }
}

/// Parses a format code by its letters outside quotes, brackets and escapes.
fn of_code(code: &str) -> Shown {
    let mut letters = String::new();
    let mut characters = code.chars();
    let (mut is_elapsed, mut is_conditional) = (false, false);
    while let Some(c) = characters.next() {
        match c {
            ';' => break,
            '"' => {
                characters.by_ref().find(|c| *c == '"');
            }
            '\\' | '_' | '*' => {
                characters.next();
            }
            '[' => {
                let inside: String = characters.by_ref().take_while(|c| *c != ']').collect();
                let inside = inside.to_ascii_lowercase();
                is_conditional |= inside.starts_with(['<', '>', '=']);
                is_elapsed |=
                    !inside.is_empty() && inside.chars().all(|c| matches!(c, 'h' | 'm' | 's'));
            }
            other => letters.push(other.to_ascii_lowercase()),
        }
    }
    let letters = letters.replace("am/pm", "h").replace("general", "");
    let has = |wanted: &[char]| letters.contains(wanted);
    if is_elapsed {
        return Shown::Elapsed;
    }
    let has_date = has(&['y', 'd']) || (has(&['m']) && !has(&['h', 's']));
    let has_time = has(&['h', 's']);
    if has_date || has_time {
        return Shown::Moment { has_date, has_time };
    }
    if has(&['%']) && !is_conditional {
        let decimals = letters.split_once('.').map_or(0, |(_, rest)| {
            rest.chars().take_while(|c| matches!(c, '0' | '#' | '?')).count()
        });
        return Shown::Percent(decimals);
    }
    Figure::of_code(code).map_or(Shown::Number, Shown::Figure)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_tell_what_numbers_mean() {
        let date = Shown::Moment { has_date: true, has_time: false };
        let time = Shown::Moment { has_date: false, has_time: true };
        assert_eq!(of_code("yyyy\\-mm\\-dd;@"), date);
        assert_eq!(
            of_code("[$-409]d/m/yy h:mm AM/PM"),
            Shown::Moment { has_date: true, has_time: true }
        );
        assert_eq!(of_code("mm:ss.0"), time);
        assert_eq!(of_code("[h]:mm:ss"), Shown::Elapsed);
        let days = of_code("#,##0.00\\ \"days\";[Red]-#,##0");
        assert!(matches!(days, Shown::Figure(_)), "{days:?}");
        assert_eq!(of_code("0.0%"), Shown::Percent(1));
        assert_eq!(of_code("General"), Shown::Number);
        assert_eq!(of_code("[>=1]0%;0.0%"), Shown::Number);
        assert_eq!(of_code("[>=1000]0.0,\"K\";0"), Shown::Number);
        assert_eq!(number(0.1 + 0.2), "0.3");
        assert_eq!(number(1e300), "1e300");
        assert_eq!(percent(0.125, 2), "12.5%");
    }
}
