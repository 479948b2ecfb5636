//! Times of day in text: "9:30", "8 pm", "20 Uhr", "20h30", "9-17 Uhr".

use std::ops::Range;

/// Minutes in half a day.
const HALF_DAY: f64 = 720.0;
/// Words after an hour that make it a time of day; those for the halves of the day come first.
static HALVES: [&[&str]; 2] = [&["am", "a.m."], &["pm", "p.m."]];
static CLOCK: [&str; 3] = ["uhr", "o'clock", "o\u{2019}clock"];
/// Bytes after an hour within which such a word must lie.
const SUFFIX_BYTES_MAX: usize = 12;
/// Words and marks between two times.
const TO: [&str; 8] = ["-", "\u{2013}", "to", "until", "bis", "à", "a", "hasta"];

/// The times in a text, in minutes, with their byte ranges. In a span, the first time may be a bare
/// hour.
pub(crate) fn times(text: &str) -> Vec<(Range<usize>, f64)> {
    let mut found: Vec<(Range<usize>, f64)> = Vec::new();
    let mut at = 0;
    while let Some(digit) = text[at..].find(|c: char| c.is_ascii_digit()) {
        let start = at + digit;
        let end = number_end(text, start);
        let before = text[..start].chars().next_back();
        let is_inside = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | ',' | ':'));
        let time = time_at(&text[start..]).filter(|_| !is_inside);
        at = time.as_ref().map_or(end, |(length, ..)| start + length);
        let Some((length, minutes, is_of_half)) = time else { continue };
        let first = hour_before(text, start)
            .filter(|(hour, _)| found.last().is_none_or(|(known, _)| known.end <= hour.start));
        if let Some((bytes, hour)) = first {
            let is_same_half = is_of_half && minutes >= HALF_DAY && hour + HALF_DAY <= minutes;
            found.push((bytes, if is_same_half { hour + HALF_DAY } else { hour }));
        }
        found.push((start..start + length, minutes));
    }
    found
}

/// The end of the digits that start at a byte.
fn number_end(text: &str, start: usize) -> usize {
    text[start..].find(|c: char| !c.is_ascii_digit()).map_or(text.len(), |length| start + length)
}

/// The time at the start of a text: its bytes, its minutes, and whether it states the half of the
/// day.
fn time_at(text: &str) -> Option<(usize, f64, bool)> {
    let hours = number_end(text, 0);
    let hour: u32 = text[..hours].parse().ok().filter(|hour| hours <= 2 && *hour <= 24)?;
    let rest = &text[hours..];
    let mark = rest.chars().next().filter(|mark| matches!(mark, ':' | '.' | 'h' | 'H'));
    let minute = mark.and_then(|_| {
        let end = number_end(rest, 1);
        rest[1..end].parse::<u32>().ok().filter(|minute| end == 3 && *minute < 60)
    });
    let is_hour = matches!(mark, Some('h' | 'H'));
    let length = match (minute, is_hour) {
        (Some(_), _) => hours + 3,
        (None, true) => hours + 1,
        (None, false) => hours,
    };
    let behind = text[length..].trim_start_matches([' ', '\u{A0}', '\u{202F}']);
    let gap = text.len() - length - behind.len();
    let lower = behind[..behind.floor_char_boundary(SUFFIX_BYTES_MAX)].to_lowercase();
    let word = |words: &'static [&'static str]| {
        words.iter().rev().find(|word| {
            let rest = lower.strip_prefix(**word);
            rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
        })
    };
    let half = HALVES.iter().position(|words| word(words).is_some());
    let suffix = HALVES.iter().find_map(|words| word(words)).or_else(|| word(&CLOCK));
    let is_time = suffix.is_some()
        || is_hour && !text[length..].starts_with(char::is_alphanumeric)
        || mark == Some(':') && minute.is_some();
    let hour = half.filter(|_| hour <= 12).map_or(hour, |half| hour % 12 + 12 * half as u32);
    let minutes = f64::from(hour * 60 + minute.unwrap_or(0));
    let length = length + suffix.map_or(0, |suffix| gap + suffix.len());
    is_time.then_some((length, minutes, half.is_some()))
}

/// A bare hour joined by a dash or word to a time that starts at a byte: "9-17 Uhr".
fn hour_before(text: &str, at: usize) -> Option<(Range<usize>, f64)> {
    let before = text[..at].trim_end();
    let before = TO.iter().find_map(|mark| before.strip_suffix(mark))?.trim_end();
    let start = before
        .rfind(|c: char| !c.is_ascii_digit())
        .map_or(0, |last| last + before[last..].chars().next().map_or(0, char::len_utf8));
    let is_inside =
        before[..start].ends_with(|c: char| c.is_alphanumeric() || matches!(c, '.' | ',' | ':'));
    let hour: u32 = before[start..].parse().ok().filter(|hour| *hour <= 24 && !is_inside)?;
    Some((start..before.len(), f64::from(hour * 60)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_day_are_read_in_many_forms() {
        for (text, minutes) in [
            ("9:30", &[570.0][..]),
            ("after 8 pm?", &[1200.0]),
            ("before 9.30 a.m. on Monday", &[570.0]),
            ("12 am, 12 pm", &[0.0, 720.0]),
            ("nach 20 Uhr", &[1200.0]),
            ("20.15 Uhr", &[1215.0]),
            ("avant 9h30, apr\u{E8}s 20h", &[570.0, 1200.0]),
            ("9:00\u{2013}17:00", &[540.0, 1020.0]),
            ("9-17 Uhr", &[540.0, 1020.0]),
            ("8-10 pm", &[1200.0, 1320.0]),
            ("11-2 pm", &[660.0, 840.0]),
            ("9 o'clock", &[540.0]),
            ("3 hours, 2.50, 25:00, 9-17, room 20.15, 1:5, v1.10 uhr", &[]),
        ] {
            let found: Vec<f64> = times(text).into_iter().map(|(_, minutes)| minutes).collect();
            assert_eq!(found, minutes, "{text}");
        }
        let text = "open after 8 pm today";
        assert_eq!(&text[times(text)[0].0.clone()], "8 pm");
    }
}
