//! Topics: what a document says below the heading that a question names, "what applies to boats
//! under the harbour rules".

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::Kind;
use crate::passages::candidates::Shape;
use crate::relevance::weights::matter;
use crate::selection::choose::{Choice, PASSAGES_MAX};
use crate::text::terms::terms;
use crate::text::words::{entries, is_entry, spaced};

/// Openings of a question for all that is said on a topic.
const OPENINGS: &str = "\
    what holds for|what applies to|what applies for|what goes for|what is valid for|\
    what are the rules for|what are the rules on|what is the rule for|what is the rule on|\
    what do the rules say on|what do the rules say about|was gilt für|was gilt bei|\
    qu'est ce qui vaut pour|qué se aplica a|qué vale para";
/// Words that end the topic.
const BEHIND: &str = "\
    under|in|by|according|with|from|since|at|of|now|this|after|before|nach|in|laut|bei|seit|ab|\
    selon|dans|según|en";

impl Choice<'_> {
    /// For a question what applies to something: the passages of the section in the source of the
    /// first passage whose heading consists of the words for that thing.
    pub(crate) fn of_topic(&self, first: usize) -> Option<Vec<usize>> {
        let asked = spaced(self.question.last());
        let behind = entries(OPENINGS).find_map(|one| asked.strip_prefix(&format!(" {one} ")))?;
        let topic: Vec<&str> =
            behind.unicode_words().take_while(|word| !is_entry(BEHIND, word)).collect();
        let matter = matter(self.question);
        let topic: BTreeSet<String> =
            terms(&topic.join(" ")).intersection(&matter).cloned().collect();
        let stretch = self.candidate(first).stretch;
        let is_below = |at: &usize| {
            let one = self.candidate(*at);
            one.stretch == stretch
                && matches!(one.shape, Shape::Unit(Kind::Sentence | Kind::Item | Kind::Row))
                && one.units == 1
                && !one.is_lead
                && terms(&one.heading) == topic
        };
        let found = (0..self.reading.candidates.len()).filter(is_below);
        let found: Vec<usize> = found.take(PASSAGES_MAX).collect();
        (!topic.is_empty() && !found.is_empty()).then_some(found)
    }
}
