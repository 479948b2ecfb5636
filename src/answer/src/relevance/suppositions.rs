//! Sentences that suppose what a question asks how to do: "If a ranker is installed, it is used"
//! does not tell how to install one.

use crate::question::wish::{Question, Wanted};
use crate::text::terms::terms;
use crate::text::words::{contains, is_entry, spaced};

/// Words that open a condition, and forms of "to be" before what has been done.
const CONDITIONS: &str = "if|when|once|after|where|unless|while|since";
const BEING: &str = "is|are|was|were|been|being";

/// Whether a text begins with a condition by which the thing that the question asks how to do is
/// done already.
pub(crate) fn supposes(question: &Question, text: &str) -> bool {
    if question.wanted != Wanted::Steps {
        return false;
    }
    let condition = spaced(text.split(',').next().unwrap_or_default());
    let words: Vec<&str> = condition.split_whitespace().collect();
    if !words.first().is_some_and(|first| is_entry(CONDITIONS, first)) {
        return false;
    }
    // "What happens when the alarm rings?" is answered by such a sentence.
    let asked_how = spaced(question.last());
    let has_condition = || asked_how.split(' ').any(|word| is_entry(CONDITIONS, word));
    if !contains(&asked_how, "how") || has_condition() {
        return false;
    }
    let asked = terms(question.last());
    words.windows(2).any(|pair| {
        let deed = terms(pair[1]);
        is_entry(BEING, pair[0]) && !deed.is_empty() && deed.is_subset(&asked)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_that_are_met_tell_no_steps() {
        let how = Question::new("How do I install a ranker?");
        assert!(supposes(&how, "If a ranker is installed, it reads the query."));
        assert!(!supposes(&how, "If a ranker is large, install it at night."));
        assert!(!supposes(&how, "A ranker is installed by hand, if at all."));
        for other in ["What is done when a ranker is installed?", "What installs a ranker?"] {
            let other = Question::new(other);
            assert!(!supposes(&other, "If a ranker is installed, it reads the query."));
        }
    }
}
