//! Replies in a chat: the messages right after one that tells of a problem.

use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::question::troubles::tells_trouble;
use crate::question::wish::Wanted;
use crate::relevance::causes::tells_cause;
use crate::selection::choose::Choice;
use crate::text::words::{is_entry, is_interrogative};

/// Maximum number of minutes between two messages of one matter.
const GAP_MINUTES_MAX: u32 = 30;
/// Maximum number of messages told after the first.
const REPLIES_MAX: usize = 3;
/// Minimum number of words in a message that tells more than "ok, thanks".
const WORDS_MIN: usize = 4;
/// Maximum drop in relevance of a message that reports what happened.
const REPORT_DROP_MAX: f32 = 0.25;
/// Maximum number of words in the name of a sender.
const SENDER_WORDS_MAX: usize = 4;
/// Words that a log has in the place of a sender.
const LEVELS: &str = "trace|debug|info|notice|warn|warning|error|critical|fatal";

/// The day, the minute of the day and the text behind the sender of a message.
#[derive(Debug, PartialEq, Eq)]
struct Message<'t> {
    day: &'t str,
    minute: u32,
    text: &'t str,
}

impl Choice<'_> {
    /// A message of a chat and the replies to it: the first passage if the question asks what to do
    /// or tells of a problem itself; one that reports what happened if it asks why. For keywords
    /// without a word of trouble, a message with a number that they lack is the answer.
    pub(crate) fn with_replies(&self, first: usize) -> Option<Vec<usize>> {
        let mut words = self.question.last().unicode_words().map(str::to_lowercase);
        let first = match self.question.wanted {
            Wanted::Cause => self.report(first)?,
            Wanted::Steps => first,
            _ if words.any(|word| is_interrogative(&word)) => return None,
            _ if self.adds_number(first) && !tells_trouble(self.question.last()) => return None,
            _ => first,
        };
        let one = self.candidate(first);
        if one.shape != Shape::Unit(Kind::Line) {
            return None;
        }
        let shown = |at: usize| self.candidate(at).shown();
        let told = shown(first);
        let Message { day, mut minute, .. } = message(&told)?;
        let mut chosen = vec![first];
        for at in first + 1..self.reading.candidates.len() {
            let other = self.candidate(at);
            let told = shown(at);
            let Some(next) = message(&told).filter(|_| other.is_beside(one)) else { break };
            let is_near = next.day == day && next.minute.abs_diff(minute) <= GAP_MINUTES_MAX;
            if !is_near || chosen.len() > REPLIES_MAX {
                break;
            }
            minute = next.minute;
            if next.text.unicode_words().count() >= WORDS_MIN {
                chosen.push(at);
            }
        }
        (chosen.len() > 1).then_some(chosen)
    }

    /// Whether a message has a number that the question lacks.
    fn adds_number(&self, at: usize) -> bool {
        let shown = self.candidate(at).shown();
        let text = message(&shown).map_or("", |message| message.text);
        let asked = self.question.last().to_lowercase();
        text.unicode_words().any(|word| {
            word.contains(|c: char| c.is_ascii_digit()) && !asked.contains(&word.to_lowercase())
        })
    }

    /// A message about as relevant as the first passage, if neither tells a cause.
    fn report(&self, first: usize) -> Option<usize> {
        if tells_cause(&self.candidate(first).shown()) {
            return None;
        }
        self.best(|at| {
            let shown = self.candidate(at).shown();
            let reports = self.candidate(at).shape == Shape::Unit(Kind::Line)
                && message(&shown).is_some()
                && !tells_cause(&shown)
                && self.scores[at].confidence(&self.evidence) >= 1.0
                && self.relevance(at) >= self.relevance(first) - REPORT_DROP_MAX;
            reports.then(|| self.relevance(at))
        })
    }
}

/// Reads a message of a chat: "03.10.2025, 22:48 - Ada: it drips again".
fn message(line: &str) -> Option<Message<'_>> {
    let (minute, time) = time(line)?;
    let day = &line[..time.start];
    let behind = line[time.end..].trim_start_matches(|c: char| !c.is_alphabetic());
    let (sender, text) = behind.split_once(": ")?;
    let mut names = sender.split_whitespace();
    let is_name = names.clone().count() <= SENDER_WORDS_MAX
        && names.all(|word| !is_entry(LEVELS, &word.to_lowercase()));
    let is_message = is_name && day.contains(|c: char| c.is_ascii_digit());
    is_message.then_some(Message { day, minute, text })
}

/// The minute of the day that a line begins with after its day, and the place of its digits.
fn time(line: &str) -> Option<(u32, Range<usize>)> {
    let colon = line.find(':')?;
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let start = colon - line[..colon].bytes().rev().take_while(u8::is_ascii_digit).count();
    let end = colon + 1 + digits(&line[colon + 1..]);
    let (hour, minute) = (line[start..colon].parse::<u32>(), line[colon + 1..end].parse::<u32>());
    match (hour.ok()?, minute.ok()?) {
        (hour @ 0..24, minute @ 0..60) => Some((60 * hour + minute, start..end)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_day_minute_and_text() {
        for line in [
            "03.10.2025, 22:48 - Ada (floor): it drips again",
            "[2025-10-03 22:48] Ada: it drips again",
            "03/10/25 22:48:10 Ada Moss: it drips again",
        ] {
            let found = message(line).map(|one| (one.minute, one.text));
            assert_eq!(found, Some((22 * 60 + 48, "it drips again")), "{line}");
        }
        for line in [
            "2025-10-03 22:48:10 ERROR gateway: no route",
            "3 May: it drips",
            "It drips: again",
            "2025-10-03 22:48 started",
        ] {
            assert_eq!(message(line), None, "{line}");
        }
    }
}
