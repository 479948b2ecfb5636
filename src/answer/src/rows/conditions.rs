//! Rows whose values meet the conditions of a question: "over 25 kg", "before May 2024".

use crate::passages::blocks::Cell;
use crate::question::condition::{Bound, Condition, Relation};
use crate::question::phrases::OF_AMOUNTS;
use crate::question::qualities::{Quality, size, unit};
use crate::question::scales::scaled;
use crate::rows::evaluate::{columns, is_code, is_of_money};
use crate::text::clock::times;
use crate::text::currencies::{is_currency, is_same_unit};
use crate::text::terms::terms;
use crate::text::values::{Day, days, has_money, measure, quantities, year};
use crate::text::words::{contains, entries, spaced};

/// Phrases that ask for opening times, where one column holds the opening and the next the closing.
const IS_OPEN: &str = "\
    are open|is open|stay open|stays open|still open|be open|geöffnet|offen|ouvert|ouverts|\
    ouverte|ouvertes|abierto|abiertos|abierta|abiertas";
/// Minutes per day.
const DAY_MINUTES: f64 = 1440.0;
/// Upper bound for the last day of any month.
const MONTH_END: u32 = 31;

impl Condition {
    /// Positions of the rows that meet the condition; `None` if it is unclear which column it
    /// applies to.
    pub(crate) fn met(&self, question: &str, rows: &[&[Cell]]) -> Option<Vec<usize>> {
        let column = self.column(question, rows)?;
        let is_met = |row: &&[Cell]| {
            let cell = row.iter().find(|cell| cell.name == column);
            cell.is_some_and(|cell| self.holds(&cell.name, &cell.value))
        };
        let met = rows.iter().enumerate().filter(|(_, row)| is_met(row));
        Some(met.map(|(at, _)| at).collect())
    }

    /// The column that the condition applies to. Among columns with such values, the first rule
    /// with exactly one match decides: its unit, the quality named in the question, opening hours,
    /// money, its name; else it must be the only such column.
    fn column<'r>(&self, question: &str, rows: &[&'r [Cell]]) -> Option<&'r str> {
        let mut columns = columns(rows);
        columns.retain(|(name, values)| {
            let fit = values.iter().filter(|value| self.fits(name, value)).count();
            fit >= rows.len().min(2) && 2 * fit > rows.len()
        });
        // Columns of another kind of quantity are ruled out.
        if columns.iter().any(|(name, values)| self.has_unit(name, values, true)) {
            columns.retain(|(name, values)| self.has_unit(name, values, true));
        }
        let quality = Quality::named_in(&spaced(question));
        let of_quality = quality.map_or(Vec::new(), |quality| quality.columns(&columns));
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let rest = format!("{} {}", &question[..self.bytes.start], &question[self.bytes.end..]);
        let asked = terms(&rest);
        let mut named: Vec<&str> = names
            .iter()
            .copied()
            .filter(|name| !terms(&name.replace('_', " ")).is_disjoint(&asked))
            .collect();
        let with_unit = columns.iter().filter(|(name, values)| self.has_unit(name, values, false));
        let with_unit: Vec<&str> = with_unit.map(|(name, _)| *name).collect();
        let ends = self.ends(question, &names);
        // "Orders" names the things, not the column of their numbers.
        let key = rows.first().and_then(|row| row.first()).map(|cell| cell.name.as_str());
        let is_amount = self.is_of_amount(question) && named.iter().all(|name| Some(*name) == key);
        if is_amount {
            named.clear();
        }
        let of_money =
            columns.iter().filter(|(name, values)| is_amount && is_of_money(name, values));
        let of_money: Vec<&str> = of_money.map(|(name, _)| *name).collect();
        let all = [with_unit, of_quality, ends, of_money, named, names];
        all.into_iter().find_map(|found| match found[..] {
            [one] => Some(one),
            _ => None,
        })
    }

    /// Picks one of two columns of times for a question about what is open: the first holds the
    /// opening time, the second the closing time.
    fn ends<'r>(&self, question: &str, names: &[&'r str]) -> Vec<&'r str> {
        let said = spaced(question);
        match (&self.bound, names, self.relation) {
            (Bound::Time(_), [opens, closes], relation)
                if entries(IS_OPEN).any(|phrase| contains(&said, phrase)) =>
            {
                let is_of_end = matches!(relation, Relation::Over | Relation::UpTo);
                vec![if is_of_end { *closes } else { *opens }]
            }
            _ => Vec::new(),
        }
    }

    /// Whether a number without a unit is an amount of money, because the things it bounds have
    /// amounts: "orders over 500".
    fn is_of_amount(&self, question: &str) -> bool {
        let said = spaced(question);
        matches!(&self.bound, Bound::Number { unit, .. } if unit.is_empty())
            && entries(OF_AMOUNTS).any(|thing| contains(&said, thing))
    }

    /// Whether a row has a value of the same kind as the bound.
    pub(crate) fn is_of(&self, row: &[Cell]) -> bool {
        row.iter().any(|cell| self.fits(&cell.name, &cell.value))
    }

    /// Whether a value is of the same kind as the bound.
    fn fits(&self, name: &str, value: &str) -> bool {
        match &self.bound {
            Bound::Number { unit, .. } => {
                let is_of_money = is_currency(unit);
                days(value).is_empty()
                    && quantities(value).len() == 1
                    && !is_code(value)
                    && (!is_of_money || has_money(&format!("{name} {value}")))
            }
            Bound::Day(_) => days(value).len() == 1,
            Bound::Year(_) => days(value).len() == 1 || year(value).is_some(),
            Bound::Time(_) => span(value).is_some(),
        }
    }

    /// Whether a column has the unit of the bound or, with `scales`, a unit of the same kind.
    fn has_unit(&self, name: &str, values: &[&str], scales: bool) -> bool {
        let Bound::Number { unit: of_bound, .. } = &self.bound else { return false };
        let words = terms(&name.replace('_', " "));
        let kind = |unit: &str| scaled(1.0, unit).map(|(kind, _)| kind);
        let is_one = |own: String| {
            is_same_unit(&own, of_bound)
                || (scales && kind(&own).is_some_and(|own| kind(of_bound) == Some(own)))
        };
        !of_bound.is_empty()
            && (!terms(of_bound).is_disjoint(&words)
                || values.iter().filter_map(|value| unit(name, value)).any(is_one))
    }

    fn holds(&self, name: &str, value: &str) -> bool {
        let relation = |value: f64, low: f64, high: f64| match self.relation {
            Relation::Over => value > high,
            Relation::From => value >= low,
            Relation::Under => value < low,
            Relation::UpTo => value <= high,
            Relation::Exactly => low <= value && value <= high,
        };
        match &self.bound {
            Bound::Number { value: bound, unit: of_bound } => {
                let scaled_bound = scaled(*bound, of_bound);
                let is_scaled = unit(name, value)
                    .and_then(|unit| scaled(1.0, &unit))
                    .is_some_and(|(kind, _)| scaled_bound.is_some_and(|(own, _)| own == kind));
                let (value, bound) = match scaled_bound.filter(|_| is_scaled) {
                    Some((_, bound)) => (size(name, value), bound),
                    None => (measure(value), *bound),
                };
                value.is_some_and(|value| relation(value, bound, bound))
            }
            Bound::Day(bound) => {
                let [(_, day)] = days(value)[..] else { return false };
                let has_years = bound.year.is_some() && day.year.is_some();
                let number = |one: Day, day: u32| {
                    let year = one.year.filter(|_| has_years).unwrap_or_default();
                    f64::from(year * 10_000 + one.month * 100 + one.day.unwrap_or(day))
                };
                relation(number(day, 1), number(*bound, 1), number(*bound, MONTH_END))
            }
            Bound::Year(bound) => {
                let year =
                    days(value).first().and_then(|(_, day)| day.year).or_else(|| year(value));
                let bound = f64::from(*bound);
                year.is_some_and(|year| relation(f64::from(year), bound, bound))
            }
            // A span of time is before a time if its start is.
            Bound::Time(bound) => span(value).is_some_and(|(start, end)| match self.relation {
                Relation::Over | Relation::UpTo => relation(end, *bound, *bound),
                Relation::From | Relation::Under | Relation::Exactly => {
                    relation(start, *bound, *bound)
                }
            }),
        }
    }
}

/// The start and end of a span of times in minutes, which may end on the next day; both are equal
/// for a single time.
fn span(value: &str) -> Option<(f64, f64)> {
    match times(value)[..] {
        [(_, one)] if days(value).is_empty() => Some((one, one)),
        [(_, start), (_, end)] if days(value).is_empty() => {
            Some((start, if end < start { end + DAY_MINUTES } else { end }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::bounds::conditions;

    fn met(question: &str, names: &[&str], table: &[&[&str]]) -> Option<Vec<usize>> {
        let cell = |(name, value): (&&str, &&str)| Cell {
            name: (*name).to_owned(),
            value: (*value).to_owned(),
        };
        let rows: Vec<Vec<Cell>> =
            table.iter().map(|row| names.iter().zip(row.iter()).map(cell).collect()).collect();
        let rows: Vec<&[Cell]> = rows.iter().map(Vec::as_slice).collect();
        let conditions = conditions(question);
        let mut all = conditions.iter().map(|one| one.met(question, &rows));
        let first = all.next()??;
        all.try_fold(first, |met, other| {
            let other = other?;
            Some(met.into_iter().filter(|at| other.contains(at)).collect())
        })
    }

    #[test]
    fn bounds_of_numbers_and_days_are_met() {
        let names = ["pump", "bought", "lift (m)", "price"];
        let table: &[&[&str]] = &[
            &["A", "2019-03-01", "12", "£300"],
            &["B", "2021-06-30", "25", "£410"],
            &["C", "2024-01-15", "40", "£90"],
        ];
        let met = |question: &str| met(question, &names, table);
        assert_eq!(met("Which pumps lift more than 12 m?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps lift at least 25 m?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps were bought before 2021?"), Some(vec![0]));
        assert_eq!(met("Which pumps were bought after June 2021?"), Some(vec![2]));
        assert_eq!(met("Which pumps were bought since 30 June 2021?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps cost under £300?"), Some(vec![2]));
        assert_eq!(met("Which pumps lift 25 m or more?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps cost exactly £410?"), Some(vec![1]));
        assert_eq!(met("Which pumps cost under £50?"), Some(vec![]));
        assert_eq!(met("Which pumps lift between 12 and 30 m?"), Some(vec![0, 1]));
        assert_eq!(met("Which pumps were bought between 2021 and 2024?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps have more than 12?"), None, "of what is not said");
        assert_eq!(
            met("Which pumps that cost over 300 were bought before May 2024?"),
            Some(vec![1])
        );
        assert_eq!(met("Which pumps cost £300 or more?"), Some(vec![0, 1]));
        assert_eq!(met("Which pumps do not lift more than 25 m?"), Some(vec![0, 1]));
        assert_eq!(met("Which pumps are not higher than 25 m?"), Some(vec![0, 1]));
        assert_eq!(met("Which pumps were not bought before 2021?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps don't lift more than 25 m?"), Some(vec![0, 1]));
        assert_eq!(met("Which pumps lift no less than 25 m?"), Some(vec![1, 2]));
        assert_eq!(met("Which pumps with no lid lift over 25 m?"), Some(vec![2]));
        assert!(conditions("Which pumps do not lift between 12 and 30 m?").is_empty());
        assert_eq!(met("Which pumps were bought on 30 June 2021?"), None);
        let one = |question: &str| self::met(question, &names, &table[..1]);
        assert_eq!(one("Which pumps were bought before 2021?"), Some(vec![0]));
        assert_eq!(one("Which pumps were bought before 2019?"), Some(vec![]), "one row is judged");
    }

    #[test]
    fn numbers_in_words_and_times_of_day_are_bounds() {
        let names = ["course", "duration", "guests", "starts"];
        let table: &[&[&str]] = &[
            &["Yoga", "45 min", "8", "18:30"],
            &["Pottery", "2 h", "2", "20:15"],
            &["Dance", "50 min", "20", "8:45"],
            &["Chess", "3 h", "1", "9.30 pm"],
        ];
        let met = |question: &str| met(question, &names, table);
        assert_eq!(met("Which courses take less than one hour?"), Some(vec![0, 2]));
        assert_eq!(met("Welche Kurse dauern weniger als eine Stunde?"), Some(vec![0, 2]));
        assert_eq!(met("Quels cours durent moins d'une heure ?"), Some(vec![0, 2]));
        assert_eq!(met("Quels cours durent plus d\u{2019}une heure ?"), Some(vec![1, 3]));
        assert_eq!(met("¿Qué cursos duran más de dos horas?"), Some(vec![3]));
        assert_eq!(met("Which courses have more than two guests?"), Some(vec![0, 2]));
        assert_eq!(met("Which courses have at least eight guests?"), Some(vec![0, 2]));
        assert_eq!(met("Which courses have two or more guests?"), Some(vec![0, 1, 2]));
        assert_eq!(met("Which courses have between two and ten guests?"), Some(vec![0, 1]));
        assert_eq!(met("Which courses start after 8 pm?"), Some(vec![1, 3]));
        assert_eq!(met("Which courses start before 9:30?"), Some(vec![2]));
        assert_eq!(met("Which courses do not start before 20:15?"), Some(vec![1, 3]));
        assert_eq!(met("Welche Kurse beginnen nach 20 Uhr?"), Some(vec![1, 3]));
        assert_eq!(met("Quels cours commencent avant 19h ?"), Some(vec![0, 2]));
        assert_eq!(met("¿Qué cursos empiezan después de las 20:00?"), Some(vec![1, 3]));
        for question in [
            "Which courses are held under one roof?",
            "Which courses meet at least once a week?",
            "Which courses have more than two hundred guests?",
            "Which one is it?",
        ] {
            assert!(conditions(question).is_empty(), "{question}");
        }
        let hours = ["shop", "hours"];
        let of_hours: &[&[&str]] =
            &[&["A", "9:00-17:00"], &["B", "18-2 Uhr"], &["C", "7:30-13:00"]];
        let of_hours = |question: &str| self::met(question, &hours, of_hours);
        assert_eq!(of_hours("Which shops are open after 5 pm?"), Some(vec![1]));
        assert_eq!(of_hours("Which shops are open before 9:30?"), Some(vec![0, 2]));
        let two: &[&[&str]] = &[&["A", "9:00", "17:00"], &["B", "10:00", "21:00"]];
        let two = |question: &str| self::met(question, &["shop", "opens", "closes"], two);
        assert_eq!(two("Which shops are open after 8 pm?"), Some(vec![1]));
        assert_eq!(two("Which shops open before 9:30?"), Some(vec![0]));
    }

    #[test]
    fn orders_are_bounded_by_their_amount() {
        let table: &[&[&str]] = &[
            &["O-1", "2024-03-02", "£1,480.50", "700"],
            &["O-2", "2024-04-11", "£320.00", "20"],
            &["O-3", "2024-06-19", "£2,720.00", "650"],
        ];
        let of =
            |question: &str, amount| met(question, &["Order", "Date", amount, "Pieces"], table);
        assert_eq!(of("Which orders over 500 before May 2024?", "Amount"), Some(vec![0]));
        assert_eq!(of("Which orders are over 500?", "Net"), Some(vec![0, 2]), "by the currency");
        assert_eq!(of("Which orders have over 650 pieces?", "Amount"), Some(vec![0]));
        assert_eq!(of("Which trips are over 500?", "Amount"), None);
        let plain: &[&[&str]] = &[&["1001", "900", "3"], &["1002", "90", "700"]];
        let plain = |names: &[&str]| met("Which invoices are over 500?", names, plain);
        assert_eq!(plain(&["Invoice", "Total", "Items"]), Some(vec![0]));
        assert_eq!(plain(&["Invoice", "Total", "Value"]), None, "one of two");
    }
}
