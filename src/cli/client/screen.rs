//! Text output to a terminal or pipe, filtered so that document content cannot control the
//! terminal.

use std::io::{BufRead, IsTerminal, Write};
use std::os::fd::AsFd;

use serde_json::Value;
use time::OffsetDateTime;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::failure::Failure;
use crate::cli::print_text;

/// Minimum column width when a table has to be narrowed.
const COLUMN_MIN: usize = 6;
/// Width assumed for a terminal that does not report it.
const TERMINAL: usize = 80;
const GAP: &str = "  ";

/// Whether a character moves the cursor, starts an escape sequence or changes the text direction.
fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
        )
}

/// Replaces characters that could control a terminal in multi-line text.
pub fn lines(text: &str) -> String {
    let harmless = |c| match c {
        '\n' => '\n',
        '\t' | '\r' => ' ',
        c if is_harmful(c) => char::REPLACEMENT_CHARACTER,
        c => c,
    };
    text.chars().map(harmless).collect()
}

/// Returns text as a single line without control characters.
pub fn one_line(text: &str) -> String {
    lines(text).replace('\n', " ")
}

/// Formats a value of a response in one line; empty for null.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => one_line(text),
        other => one_line(&other.to_string()),
    }
}

/// Formats an API time (seconds since 1970) as UTC to the second.
pub fn moment(value: &Value) -> String {
    let seconds = value.as_str().and_then(|text| text.parse::<f64>().ok());
    let time = seconds.and_then(|s| OffsetDateTime::from_unix_timestamp(s as i64).ok());
    let Some(time) = time else { return cell(value) };
    let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
    let (hour, minute, second) = time.to_hms();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// Prints JSON as [`json_text`] returns it.
pub fn print_json(answer: &[u8]) {
    print_text(&json_text(answer));
    print_text("\n");
}

/// JSON unchanged. On a terminal, characters that could control it are replaced by equivalent JSON
/// escapes.
pub fn json_text(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    match std::io::stdout().is_terminal() {
        true => escaped(&text),
        false => text.into_owned(),
    }
}

fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        match is_harmful(c) && !matches!(c, '\n' | '\r' | '\t') {
            true => text.push_str(&format!("\\u{:04x}", u32::from(c))),
            false => text.push(c),
        }
    }
    text
}

/// Prints rows: on a terminal as a table fitted to its width, otherwise separated by tabs.
pub fn print_table(head: &[&str], rows: Vec<Vec<String>>) {
    if !std::io::stdout().is_terminal() {
        for row in rows {
            println!("{}", row.join("\t"));
        }
        return;
    }
    for line in table(head, &rows, columns(std::io::stdout())) {
        println!("{line}");
    }
}

/// Returns the width of the terminal behind a stream.
pub fn columns(stream: impl AsFd) -> usize {
    match rustix::termios::tcgetwinsize(stream) {
        Ok(size) if size.ws_col > 0 => size.ws_col.into(),
        _ => TERMINAL,
    }
}

/// Shortens text to `width` columns, ending it with an ellipsis.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut columns = 0;
    let fits = |c: &char| {
        columns += c.width().unwrap_or(0);
        columns < width
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.push('…');
    cut
}

/// Formats a table of at most `columns` width, narrowing the widest columns first.
fn table(head: &[&str], rows: &[Vec<String>], columns: usize) -> Vec<String> {
    let head: Vec<String> = head.iter().map(ToString::to_string).collect();
    let all = || std::iter::once(&head).chain(rows);
    let widest = |at: usize| all().map(|row| row[at].width()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..head.len()).map(widest).collect();
    let gaps = GAP.len() * head.len().saturating_sub(1);
    while widths.iter().sum::<usize>() + gaps > columns {
        match widths.iter_mut().max() {
            Some(width) if *width > COLUMN_MIN => *width -= 1,
            _ => break,
        }
    }
    let line = |row: &Vec<String>| {
        let fitted = row.iter().zip(&widths).map(|(text, &width)| {
            let text = cut(text, width);
            let rest = width - text.width();
            text + &" ".repeat(rest)
        });
        fitted.collect::<Vec<_>>().join(GAP).trim_end().to_owned()
    };
    all().map(line).collect()
}

/// Prints names and values, one pair per line.
pub fn print_pairs(pairs: &[(&str, String)]) {
    let is_terminal = std::io::stdout().is_terminal();
    let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in pairs {
        match is_terminal {
            true => println!("{name:<width$}  {value}"),
            false => println!("{name}\t{value}"),
        }
    }
}

/// Asks for confirmation before data is lost; without a terminal, requires `--yes`.
///
/// # Errors
/// [`Failure::Usage`] without a terminal, [`Failure::Failed`] if the answer is no.
pub fn confirm(what: &str, yes: bool) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let what = one_line(what);
    let mut stderr = std::io::stderr();
    if !std::io::stdin().is_terminal() || !stderr.is_terminal() {
        return Err(Failure::Usage(format!(
            "{what}: --yes is required without a terminal to confirm on"
        )));
    }
    let _ = write!(stderr, "{what}? [y/N] ").and_then(|()| stderr.flush());
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match (read, answer.trim()) {
        (Ok(_), "y" | "Y" | "yes") => Ok(()),
        _ => Err(Failure::Failed("cancelled".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nothing_steers_the_terminal() {
        let hostile = "a\u{1b}]0;owned\u{7}b\u{9b}2Jc\r\nd\u{202e}e\u{7f}\u{8}";
        let shown = one_line(hostile);
        assert!(!shown.contains(is_harmful), "{shown:?}");
        assert_eq!(lines("a\nb\tc"), "a\nb c");
        let json = json!({"title": "x\u{9b}2J\u{202e}\u{7f}\u{1b}"});
        let text = escaped(&json.to_string());
        assert!(!text.contains(is_harmful), "{text:?}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json);
    }

    #[test]
    fn tables_fit_and_wide_characters_count_twice() {
        let rows = vec![
            vec!["1".to_owned(), "日本語の長い題名です".to_owned(), "end".to_owned()],
            vec!["22".to_owned(), "short".to_owned(), "x".to_owned()],
        ];
        let shown = table(&["N", "TITLE", "LAST"], &rows, 24);
        for line in &shown {
            assert!(line.width() <= 24, "{line}");
        }
        assert!(shown[1].contains('…') && shown[1].ends_with("end"), "{shown:?}");
        let wide = table(&["N", "TITLE", "LAST"], &rows, 200);
        let place = |line: &str, text: &str| {
            let (before, _) = line.split_once(text).unwrap();
            before.width()
        };
        assert_eq!(place(&wide[1], "end"), place(&wide[2], "x"), "{wide:?}");
    }

    #[test]
    fn moments_are_utc() {
        assert_eq!(moment(&json!("1757402409.727")), "2025-09-09T07:20:09Z");
        assert_eq!([moment(&Value::Null), moment(&json!("x"))], ["", "x"]);
    }
}
