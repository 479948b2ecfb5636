//! Steps: rows whose first values are the bounds of ranges, of which one is meant by a number.
//!
//! ```text
//! | up to EUR | approved by |
//! | 500       | foreman     |
//! | 5,000     | head        |   for 620 EUR: the narrowest range that contains it
//! | above     | board       |   for 9,000 EUR: the last row, which has no bound
//! ```

use std::cmp::Ordering;
use std::ops::RangeInclusive;

use crate::passages::blocks::Cell;
use crate::rows::ranges::{has_pairs, in_unit, range};
use crate::text::values::{Quantity, days};

/// Minimum number of rows with a bound.
const STEPS_MIN: usize = 2;

/// The position of the row whose step contains a number with a unit; `None` if the rows are not
/// steps of that unit, or none contains it.
pub(crate) fn step_of(asked: &Quantity, rows: &[&[Cell]]) -> Option<usize> {
    let firsts = rows.iter().map(|row| row.first().filter(|_| row.len() > 1 && !has_pairs(row)));
    let firsts = firsts.collect::<Option<Vec<&Cell>>>()?;
    let name = &firsts.first()?.name;
    if asked.unit.is_empty() || firsts.iter().any(|cell| cell.name != *name) {
        return None;
    }
    let bound = |cell: &&Cell| {
        let range = range(&format!("{} {}", cell.name, cell.value))?;
        days(&cell.value).is_empty().then_some(range)
    };
    let mut steps: Vec<Option<RangeInclusive<f64>>> = firsts.iter().map(bound).collect();
    let is_open = steps.last()?.is_none();
    let last = steps.len() - 1;
    if is_open {
        steps.pop();
    }
    let steps = steps.into_iter().collect::<Option<Vec<_>>>()?;
    let value = firsts.iter().find_map(|cell| in_unit(asked, cell))?;
    if steps.len() < STEPS_MIN || !are_distinct(&steps) {
        return None;
    }
    let holding = steps.iter().enumerate().filter(|(_, step)| step.contains(&value));
    let narrowest = holding.min_by(|(_, one), (_, other)| by_width(one, other));
    // "Above" follows all bounds.
    let is_above = || is_open && steps.iter().all(|step| *step.end() < value);
    narrowest.map(|(at, _)| at).or_else(|| is_above().then_some(last))
}

/// Orders ranges by their widths: of two that are open below, that with the lower end is narrower;
/// of two that are open above, that with the higher start.
fn by_width(one: &RangeInclusive<f64>, other: &RangeInclusive<f64>) -> Ordering {
    let width = |step: &RangeInclusive<f64>| match (step.start().is_finite(), *step.end()) {
        (true, end) if end.is_finite() => (false, end - step.start()),
        (true, _) => (true, -step.start()),
        (false, end) => (true, end),
    };
    let ((is_open, one), (is_other_open, other)) = (width(one), width(other));
    is_open.cmp(&is_other_open).then(one.total_cmp(&other))
}

/// Whether no two ranges are the same.
fn are_distinct(steps: &[RangeInclusive<f64>]) -> bool {
    let mut later = steps.iter().enumerate();
    later.all(|(at, step)| !steps[at + 1..].contains(step))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::values::quantities;

    fn step(asked: &str, names: [&str; 2], values: &[&str]) -> Option<usize> {
        let row = |value: &&str| {
            let cell =
                |(name, value): (&str, &str)| Cell { name: name.into(), value: value.into() };
            [(names[0], *value), (names[1], "x")].map(cell).to_vec()
        };
        let rows: Vec<Vec<Cell>> = values.iter().map(row).collect();
        let rows: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        step_of(&quantities(asked)[0], &rows)
    }

    /// Goal: the first bound that is not below the number decides, whatever the form of the bounds.
    #[test]
    fn the_narrowest_step_contains_the_number() {
        let names = ["up to EUR", "approved by"];
        let values = ["500", "5,000", "40,000", "above"];
        let of = |asked| step(asked, names, &values);
        assert_eq!([of("620 euros"), of("500 EUR"), of("9,000 €")], [Some(1), Some(0), Some(2)]);
        assert_eq!(of("90,000 EUR"), Some(3), "the last row has no bound");
        assert_eq!((of("620 kg"), of("620")), (None, None), "another unit, or none");
        let of = |asked| step(asked, ["from guests", "cooks"], &["10", "30", "80"]);
        assert_eq!([of("45 guests"), of("80 guests"), of("4 guests")], [Some(1), Some(2), None]);
        assert_eq!(step("0.04 mm", ["up to mm", "cloth"], &["0.06", "0.05"]), Some(1), "close");
        let of = |asked| step(asked, ["load", "van"], &["up to 1 t", "1 - 3 t", "over 3 t"]);
        assert_eq!([of("500 kg"), of("2 tons"), of("7 t")], [Some(0), Some(1), Some(2)]);
    }

    /// Goal: numbers that bound nothing are no steps.
    #[test]
    fn plain_numbers_are_no_steps() {
        assert_eq!(step("12 guests", ["guests", "table"], &["10", "20"]), None);
        assert_eq!(step("12 kg", ["up to kg", "price"], &["10", "10"]), None);
    }
}
