//! Column names: words and years, in one or two header rows.

/// Maximum characters of a column name; a longer cell is prose.
pub(crate) const NAME_CHARS_MAX: usize = 100;
/// Maximum columns of a table with two header rows.
const WIDTH_MAX: usize = 512;
/// Minimum rows below names, needed to tell them from values.
const ROWS_BELOW_MIN: usize = 2;
/// Signs that stand for a word as the name of a column of numbers.
const SIGNS: &str = "#%‰№€$£¥°";

/// The column names from two header rows: the first names groups of columns, in the first column of
/// each group, the second the columns. `rows` are the first rows of a table, with an empty text for
/// each empty cell.
pub(crate) fn in_two_lines(rows: &[Vec<&str>]) -> Option<Vec<String>> {
    let [upper, lower, below @ ..] = rows else { return None };
    let is_named = |cell: &&str| cell.is_empty() || is_plain_word(cell) || is_year(cell);
    let is_table = (2..=WIDTH_MAX).contains(&upper.len());
    if !is_table || !upper.iter().chain(lower).all(is_named) {
        return None;
    }
    let mut names: Vec<String> = Vec::with_capacity(upper.len());
    let (mut group, mut is_spanning, mut is_single) = ("", false, false);
    for (column, over) in upper.iter().copied().enumerate() {
        let own = lower.get(column).copied().unwrap_or_default();
        let is_part = !own.is_empty() && own != over;
        if !is_part || !over.is_empty() {
            group = if is_part { over } else { "" };
        } else {
            is_spanning |= !group.is_empty();
        }
        is_single |= !is_part && !over.is_empty();
        let name = match (is_part, group) {
            (false, _) => over.to_owned(),
            (true, "") => own.to_owned(),
            (true, group) => format!("{group} {own}"),
        };
        // The corner of a table is often empty.
        if (name.is_empty() && column > 0) || names.contains(&name) {
            return None;
        }
        names.push(name);
    }
    let is_told = is_single || is_repeated(lower);
    let is_above = is_spanning && is_told && are_above(lower, below);
    is_above.then_some(names)
}

/// Whether two non-empty cells are equal.
pub(crate) fn is_repeated(cells: &[&str]) -> bool {
    let mut cells: Vec<&str> = cells.iter().copied().filter(|cell| !cell.is_empty()).collect();
    cells.sort_unstable();
    cells.windows(2).any(|pair| pair[0] == pair[1])
}

/// Whether in some column a word or sign is above numbers, or a year above other values.
pub(crate) fn are_above(names: &[&str], below: &[Vec<&str>]) -> bool {
    names.iter().enumerate().any(|(column, name)| {
        let cells = below.iter().filter_map(|row| row.get(column)).filter(|cell| !cell.is_empty());
        let is_unlike = |cell: &&str| match is_year(name) {
            true => !is_year(cell),
            false => (is_plain_word(name) || is_sign(name)) && is_amount(cell),
        };
        cells.clone().count() >= ROWS_BELOW_MIN && cells.copied().all(|cell| is_unlike(&cell))
    })
}

/// Whether a cell can be a column name: short, with a letter, and not a number.
pub(crate) fn is_word(cell: &str) -> bool {
    cell.parse::<f64>().is_err()
        && cell.chars().any(char::is_alphabetic)
        && cell.chars().count() <= NAME_CHARS_MAX
}

/// Whether cells that are not words can be column names next to words: signs, long texts, and
/// numbers that count from 0 or 1.
pub(crate) fn are_rare_names(cells: &[&str]) -> bool {
    let is_number = |cell: &&str| cell.bytes().all(|b| b.is_ascii_digit());
    let (numbers, others): (Vec<&str>, Vec<&str>) = cells.iter().copied().partition(is_number);
    let is_counted = |from: usize| numbers.iter().zip(from..).all(|(n, at)| **n == at.to_string());
    (is_counted(0) || is_counted(1)) && others.iter().all(|cell| is_sign(cell) || is_long(cell))
}

/// Whether a row is one of values because a cell that could be a rare name is like those below it:
/// a sign above signs, a long text above long ones, or a number from which they count on.
pub(crate) fn is_like_below(row: &[&str], below: &[Vec<&str>]) -> bool {
    row.iter().enumerate().any(|(column, cell)| {
        let cells = below.iter().filter_map(|row| row.get(column).copied());
        let cells: Vec<&str> = cells.filter(|cell| !cell.is_empty()).collect();
        let are_all = |is: fn(&str) -> bool| is(cell) && cells.iter().all(|cell| is(cell));
        let counted = cell.parse::<u32>().map_or(0, |first| {
            let numbers = cells.iter().zip(u64::from(first) + 1..);
            numbers.take_while(|(cell, number)| cell.parse::<u64>() == Ok(*number)).count()
        });
        let is_counted = counted >= ROWS_BELOW_MIN && counted * 2 >= cells.len();
        cells.len() >= ROWS_BELOW_MIN && (are_all(is_sign) || are_all(is_long) || is_counted)
    })
}

fn is_sign(cell: &str) -> bool {
    !cell.is_empty() && cell.chars().all(|c| SIGNS.contains(c))
}

fn is_long(cell: &str) -> bool {
    cell.chars().count() > NAME_CHARS_MAX
}

/// A word that is not a number with a unit: `0-10 kg` is a column name and also occurs below
/// others.
fn is_plain_word(cell: &str) -> bool {
    is_word(cell) && !is_amount(cell)
}

/// Whether a cell is a year from 1900 to 2099.
pub(crate) fn is_year(cell: &str) -> bool {
    cell.len() == 4 && cell.parse::<u16>().is_ok_and(|year| (1900..2100).contains(&year))
}

/// Whether a cell is a number, optionally with a sign before and a unit after it.
fn is_amount(cell: &str) -> bool {
    let digits = cell.chars().filter(char::is_ascii_digit).count();
    let letters = cell.chars().filter(|c| c.is_alphabetic()).count();
    digits > 0 && letters <= digits + 2 && !cell.starts_with(char::is_alphabetic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(rows: &[&str]) -> Option<String> {
        let rows: Vec<Vec<&str>> = rows.iter().map(|row| row.split(',').collect()).collect();
        in_two_lines(&rows).map(|names| names.join(","))
    }

    #[test]
    fn names_in_two_lines_are_joined() {
        let told = |rows: &[&str]| joined(rows).unwrap_or_default();
        let rows = ["Item,2023,,2024,", ",Units,Sum,Units,Sum", "Chair,1,2,3,4", "Desk,5,6,7,8"];
        assert_eq!(told(&rows), "Item,2023 Units,2023 Sum,2024 Units,2024 Sum");
        let rows = ["Item,Sales,,Note", "Item,2023,2024,Note", "Chair,1,2,a", "Desk,5,6,b"];
        assert_eq!(told(&rows), "Item,Sales 2023,Sales 2024,Note");
        let rows = [",A,,B,", ",Q1,Q2,Q1,Q2", "Chair,1.5,2,3,4", "Desk,5 kg,6,7,8"];
        assert_eq!(told(&rows), ",A Q1,A Q2,B Q1,B Q2");
    }

    #[test]
    fn rows_of_values_are_no_names() {
        for rows in [
            &["Name,Value,", "Anna,x,note", "Bo,12,a", "Eve,13,b"][..],
            &["Region,2022,2023", "North,10,20", "South,5,6", "East,1,2"],
            &["Name,Phone,", "Anna,,work", "Bo,12,home", "Eve,13,home"],
            &["Item,A,,B,", ",Q1,Q2,Q1,Q2", "Chair,a,b,c,d", "Desk,e,f,g,h"],
            &["Item,A,,A,", ",Q1,Q2,Q1,Q2", "Chair,1,2,3,4", "Desk,5,6,7,8"],
        ] {
            assert_eq!(joined(rows), None, "{rows:?}");
        }
    }
}
