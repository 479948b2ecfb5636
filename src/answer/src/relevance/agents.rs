//! Agents: columns named after the doer of what a question asks about, "teacher" for "who teaches".

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::candidates::Candidate;
use crate::question::wish::Question;
use crate::text::words::spaced;

/// Bonus for a row with such a column.
pub(crate) const AGENT_BONUS: f32 = 0.2;
/// Endings of verbs in the third person and in the past, the longer ones first, and of doers.
const OF_VERBS: [&str; 6] = ["ies", "ied", "es", "ed", "s", "e"];
const OF_DOERS: [&str; 4] = ["er", "or", "ers", "ors"];
/// Minimum number of letters in what remains of a verb.
const STEM_MIN: usize = 3;

/// Whether a row has a filled column named after the one who does what the question asks about.
pub(crate) fn has_agent(question: &Question, row: &Candidate) -> bool {
    if row.cells.len() < 2 {
        return false;
    }
    let Some(verb) = verb(question.last()) else { return false };
    row.cells.iter().any(|cell| {
        let name = cell.name.replace('_', " ").to_lowercase();
        !cell.value.trim().is_empty() && name.unicode_words().any(|word| does(word, &verb))
    })
}

/// The verb right after "who".
fn verb(question: &str) -> Option<String> {
    let words = spaced(question);
    let mut words = words.split_whitespace().skip_while(|word| *word != "who").skip(1);
    words.next().map(str::to_owned)
}

/// Whether a noun names the doer of a verb: "driver" of "drives", "drove" apart.
fn does(noun: &str, verb: &str) -> bool {
    let stems = OF_VERBS.iter().filter_map(|ending| verb.strip_suffix(ending));
    let mut stems = stems.chain([verb]).filter(|stem| stem.len() >= STEM_MIN);
    stems.any(|stem| {
        let rest = noun.strip_prefix(stem);
        rest.is_some_and(|rest| {
            OF_DOERS.contains(&rest) || OF_DOERS.contains(&rest.trim_start_matches('i'))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: the noun for a doer is known by its verb.
    #[test]
    fn the_doer_of_a_verb_is_known() {
        for (noun, verb) in [
            ("teacher", "teaches"),
            ("driver", "drives"),
            ("owner", "owned"),
            ("carrier", "carries"),
            ("operators", "operates"),
            ("keeper", "keeps"),
        ] {
            assert!(does(noun, verb), "{noun} {verb}");
        }
        for (noun, verb) in [("order", "orders"), ("number", "is"), ("water", "waits")] {
            assert!(!does(noun, verb), "{noun} {verb}");
        }
        assert_eq!(verb("For the ketch, who sails it?").as_deref(), Some("sails"));
        assert_eq!(verb("The ketch sails"), None);
    }
}
