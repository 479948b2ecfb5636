//! Rewrites statements from the first to the third person, where only the first words change.
//!
//! This is done for English alone, since its verbs change only one ending. A sentence stays as it
//! was said if it refers to its speaker a second time, since "Ann likes my brother" is about
//! another brother. It also stays if it already contains the name, or a conjunction that may
//! introduce a second verb ("I live in Oslo and travel by train").

use crate::statements::phrases::Word;

/// Verbs in the first person, with their third person.
const VERBS: &[(&str, &str)] = &[
    ("adore", "adores"),
    ("am", "is"),
    ("avoid", "avoids"),
    ("can't", "can't"),
    ("cannot", "cannot"),
    ("decided", "decided"),
    ("dislike", "dislikes"),
    ("don't", "doesn't"),
    ("drink", "drinks"),
    ("drive", "drives"),
    ("eat", "eats"),
    ("enjoy", "enjoys"),
    ("graduated", "graduated"),
    ("grew", "grew"),
    ("hate", "hates"),
    ("have", "has"),
    ("like", "likes"),
    ("live", "lives"),
    ("love", "loves"),
    ("moved", "moved"),
    ("need", "needs"),
    ("own", "owns"),
    ("play", "plays"),
    ("prefer", "prefers"),
    ("speak", "speaks"),
    ("studied", "studied"),
    ("study", "studies"),
    ("teach", "teaches"),
    ("use", "uses"),
    ("want", "wants"),
    ("was", "was"),
    ("work", "works"),
];
/// Words that refer to the speaker again.
const OWN_WORDS: &[&str] = &[
    "i", "i'm", "i've", "i'd", "i'll", "me", "my", "mine", "myself", "we", "us", "our", "ours",
    "we're", "we've", "ourselves",
];

/// Words that may introduce another verb of the same speaker.
const CONJUNCTIONS: &[&str] = &["and", "but", "or", "so", "because", "then"];

/// Rewrites a statement to be about `name`; `None` where that is not safe.
pub(super) fn told(statement: &str, name: &str) -> Option<String> {
    let words = Word::all(statement);
    let (first, rest) = words.split_first()?;
    let second = rest.first()?;
    let holds = |of: &[&str]| rest.iter().any(|word| of.contains(&word.key.as_str()));
    if name.is_empty() || holds(OWN_WORDS) || holds(&[&name.to_lowercase()]) {
        return None;
    }
    match first.key.as_str() {
        "my" => Some(format!("{name}'s {}", &statement[second.start..])),
        _ if holds(CONJUNCTIONS) => None,
        "i'm" => Some(format!("{name} is {}", &statement[second.start..])),
        "i" => {
            let third = rest.get(1)?;
            let told = match second.key.as_str() {
                "do" if third.key == "not" => "does",
                verb => VERBS.iter().find(|(own, _)| *own == verb)?.1,
            };
            Some(format!("{name} {told} {}", &statement[third.start..]))
        }
        _ => None,
    }
}
