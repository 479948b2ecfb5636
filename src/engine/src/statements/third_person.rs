//! From the first person to the third, where only the first words change.
//!
//! English alone: its verbs have one ending to change. A sentence that speaks of its speaker a
//! second time stays as it was said, since "Ann likes my brother" is about another brother; so
//! does one that holds the name already, and one whose conjunction may bring a second verb ("I live
//! in Oslo and travel by train").

use crate::statements::phrases::Word;

/// Verbs in the first person, and the same in the third.
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
/// Words that speak of the speaker again.
const OWN_WORDS: &[&str] = &[
    "i", "i'm", "i've", "i'd", "i'll", "me", "my", "mine", "myself", "we", "us", "our", "ours",
    "we're", "we've", "ourselves",
];

/// Words behind which another verb of the same speaker may stand.
const CONJUNCTIONS: &[&str] = &["and", "but", "or", "so", "because", "then"];

/// The statement told of `name`; `None` where that is not safe.
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
