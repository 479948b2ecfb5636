//! The analysed question: the form of its answer and its subject.

use std::collections::BTreeSet;

use crate::passages::blocks::{Form, Kind};
use crate::passages::candidates::Shape;
use crate::passages::registers::code_of;
use crate::question::bounds::conditions;
use crate::question::condition::{Condition, unbound};
use crate::question::definitions::{asks_meaning, thing};
use crate::question::exclusions::{left_out, others_than};
use crate::question::extremes::{Extreme, extreme, rank};
use crate::question::measures::Measure;
use crate::question::openers::{INDIRECT_STEPS, asking, asks_deeds, asks_how, is_order};
use crate::question::phrases::{
    BEFORE_NOUN, COMPARATIVES, COUNTS, DECISIONS, EITHER, ENDED, FORBIDDEN, HOW_IT_WORKS, LEARNT,
    LESSONS, LISTINGS, LISTS, MEANS, MONEY, OF_AMOUNTS, OPEN, SUMS, TO_DO, WHO_OR_WHERE, WISHES,
    asks_cause,
};
use crate::question::qualities::Quality;
use crate::question::several::{is_of_pairs, is_plural, noun, wants_several};
use crate::question::sides::{named_sides, sides};
use crate::question::values::values_in;
use crate::text::terms::terms;
use crate::text::values::{Day, Quantity};
use crate::text::words::{self, Asked, asked, asks_for_thing, contains, entries, is_entry, spaced};

const STEPS: &str = "\
    how do i|how do we|how do you|how can i|how can we|how should i|how should we|how must i|\
    walk me through|talk me through|take me through|guide me through|how to|how is|how are|\
    what do i do|what do we do|what should i do|what should we do|what to do|\
    what must i do|has to be done|needs to be done|must be done|should be done|what steps|\
    which steps|the steps|next steps|steps to|needs doing|what is done|what's done|\
    what has to happen|how does one|what comes first|what do you do|\
    what's the procedure|the procedure for|what is the process|what's the process|\
    was ist der ablauf|wie läuft|quelle est la procédure|cuál es el procedimiento|\
    what's the order|what is the order|what order|which order|\
    order of things|step by step|which sequence|what sequence|what is the procedure|what now|\
    what happens when|what happens if|\
    wie mache ich|wie kann ich|wie gehe ich|wie wird|wie werden|was muss ich tun|was mache ich|\
    was ist zu tun|was tun|welche schritte|wie muss ich|welcher reihenfolge|dans quel ordre|\
    en qué orden|comment|que faire|que dois je faire|\
    quelles étapes|quelles sont les étapes|cómo|qué hago|qué hay que hacer|qué debo hacer|\
    qué pasos";
/// Words in and at the end of a question that ask for steps unless it asks for something else:
/// "roll back a release, how?", but not "who wrote the procedure", "how many steps of the ladder".
const STEPS_NAMED: &str = "\
    steps for|steps of|steps when|steps if|steps after|first steps|two steps|three steps|\
    four steps";
const STEPS_LAST: &str = "how|steps|procedure|wie|schritte|pasos|étapes";
/// Openings that ask what was done about something, and the noun they stand for.
const DONE: &str = "\
    what was to be done|what was done|what has been done|what have we done|what did we do|\
    what did we change|what was changed|what have we changed|what was introduced";
const DEEDS_DONE: &str = "measures";
/// Openings that ask how to do something.
const DEEDS: &str = "\
    how do i|how do we|how do you|how can i|how can we|how should i|how should we|how must i|\
    how to|what do i do|what do we do|what should i do|what should we do|what to do|\
    wie mache ich|wie kann ich|wie gehe ich|wie muss ich|was muss ich tun|was mache ich|\
    que faire|cómo puedo|qué hago|qué debo hacer";
/// Words for the past, or for things that are over.
const PAST: &str = "\
    was|were|did|used to|until|before|previous|previously|old|earlier|last|over|history|all|\
    war|waren|bisher|früher|frühere|alte|ancien|avant|était|anterior|antes|era";
/// Final words that ask for the earliest and the latest.
const FIRST: &str = "first|zuerst|en premier|primero";
const LAST: &str = "last|zuletzt|en dernier|último";
/// Words for the future.
const DUE: &str = "\
    due|has to|have to|must|need|needs|expire|expires|end|ends|run out|runs out|renew|renewed|will|\
    muss|müssen|fällig|doit|doivent|échoit|debe|deben|vence";
/// Words of comparison that denote an action after "how do I".
const CHANGES: &str = "change|changed|changé|geändert|cambiado";
/// Openings that ask for all that belongs to something.
const ALLS: &str = "\
    what should|what must|what do i need|what do we need|what was decided|what was agreed|\
    what has been|what changed|what has changed|was muss|was soll|was sollte|was wurde|\
    que dois|que doit|que faut|qu'a|qué debe|qué debo|qué se";
const OF_ALL: &str = "what|which|list|was|welche|quoi|quelles|que|qu'a|qué|cuáles";
/// Phrases in which a total is a count rather than a sum.
const WHOLE_COUNTS: &str = "total number of|nombre total de|número total de";
const AMOUNTS: &str = "\
    how much|what does|what do|what did|what is the|what's the|what are the|wie viel|was kostet|\
    was kosten|wie hoch|combien|quel est le|cuánto|cuál es el";
const OVER: &str = "\
    run out|runs out|expire|expires|end|ends|until when|terminate|terminates|valid until|läuft aus|\
    endet|bis wann|expire|prend fin|jusqu'à quand|vence|termina|hasta cuándo";
const WHERE: &str = "where|wo|où|dónde";
const WHICH: &str = "who|which|wer|welche|welcher|qui|quels|quelles|quién|quiénes|cuáles";
/// The form of answer that a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// All that has to be done, in order.
    Steps,
    /// Several things.
    List,
    /// A cause.
    Cause,
    /// Anything else.
    Fact,
}

/// A figure computed from several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Total {
    Sum,
    Mean,
}

/// Words of questions about a mail.
const MAIL: &str = "\
    mail|mails|email|emails|e mail|message|subject|sender|recipient|sent|send|wrote|write|written|\
    reply|replied|addressed|received|betreff|nachricht|schrieb|geschrieben|gesendet|geschickt|\
    courriel|objet|écrit|envoyé|correo|asunto|escribió|envió";

/// A question, analysed.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) text: String,
    pub(crate) lower: String,
    pub(crate) wanted: Wanted,
    /// Whether its words for steps ask for a fact just as often: "how does a frog breathe".
    pub(crate) may_be_fact: bool,
    /// Kind of thing that it asks for.
    pub(crate) asked: Asked,
    pub(crate) extreme: Option<Extreme>,
    /// Rank counted from the extreme: 1, or 2 for "the second highest".
    pub(crate) rank: usize,
    /// Whether it asks for a number of things.
    pub(crate) counts: bool,
    /// Whether it asks for some out of several.
    pub(crate) selects: bool,
    /// Whether it asks when something ends.
    pub(crate) asks_end: bool,
    /// Whether it asks for a place.
    pub(crate) asks_where: bool,
    /// Whether it asks who or which, which may be several.
    pub(crate) asks_which: bool,
    /// Bounds that it sets to values.
    pub(crate) conditions: Vec<Condition>,
    /// Whether it compares two things.
    pub(crate) compares: bool,
    /// The terms that distinguish the sides of a comparison, or two names in one phrase.
    pub(crate) sides: Option<(BTreeSet<String>, BTreeSet<String>)>,
    /// Whether it asks for unfinished things.
    pub(crate) is_of_open: bool,
    /// Whether it asks about the past or things that are over.
    pub(crate) is_of_past: bool,
    /// The quality whose extreme is asked for, if its word identifies one.
    pub(crate) quality: Option<&'static Quality>,
    pub(crate) total: Option<Total>,
    /// Whether it asks about everything in a list or table.
    pub(crate) is_of_list: bool,
    /// The terms that it excludes: "not from Ada".
    pub(crate) excluded: BTreeSet<String>,
    /// Excluded terms that it asks for others than: "besides Ada".
    pub(crate) others_than: BTreeSet<String>,
    /// Whether it asks for what is not so or not allowed.
    pub(crate) is_negated: bool,
    /// Whether it asks for all decisions.
    pub(crate) is_of_decisions: bool,
    /// The thing whose meaning may be asked for.
    pub(crate) thing: Option<String>,
    /// Whether it concerns an amount of money.
    pub(crate) is_of_money: bool,
    /// Whether it is about a mail: who sent it, when it arrived.
    pub(crate) is_of_mail: bool,
    /// Whether it asks, in English, for a thing (who, when, how many), rather than how, or for yes
    /// or no.
    pub(crate) asks_for_thing: bool,
    /// Whether it asks explicitly for the price of something.
    pub(crate) asks_amount: bool,
    /// The kind of value that it names, if any.
    pub(crate) measure: Option<Measure>,
    /// The noun of several things that it asks for: "which clinics", "list the measures".
    pub(crate) noun: Option<String>,
    pub(crate) days: Vec<Day>,
    pub(crate) quantities: Vec<Quantity>,
}

impl Question {
    pub(crate) fn new(text: &str) -> Self {
        let last = last_of(text);
        let conditions = conditions(last);
        // "At least 3" does not ask for the least.
        let rest = unbound(last, &conditions);
        let unbound = spaced(&rest);
        let spaced = spaced(last);
        let has = |list: &str| words::contains_any(&spaced, list);
        let opening = words::spaced(asking(last));
        let begins = |list: &str| words::begins_with(&opening, list);
        let is_deed = begins(DEEDS);
        let asks_which = has(BEFORE_NOUN) || has(WHO_OR_WHERE);
        let compares =
            |word: &str| contains(&spaced, word) && !(is_deed && is_entry(CHANGES, word));
        let excluded = left_out(&rest);
        let is_either = has(EITHER) && asks_which && excluded.is_empty();
        let is_comparing = entries(COMPARATIVES).any(compares) || is_either;
        let wanted = wanted_by(&spaced, &opening);
        let ends = |list: &str| asks_which && words::ends_with(&spaced, list);
        let superlative = Quality::of_superlative(&unbound)
            .or_else(|| ends(LAST).then_some((Quality::time(), true)))
            .or_else(|| ends(FIRST).then_some((Quality::of_first(has(DUE)), false)));
        let (days, quantities) = values_in(text);
        let asks_meaning = asks_meaning(&spaced);
        let kind = match asked(last) {
            _ if asks_meaning => Asked::Other,
            Asked::Other if has(MONEY) && !is_comparing => Asked::Number,
            kind => kind,
        };
        Self {
            text: text.to_owned(),
            lower: text.to_lowercase(),
            wanted,
            may_be_fact: asks_how(&opening) || asks_deeds(&opening),
            asked: kind,
            measure: Measure::of(last, has(MONEY) && kind == Asked::Number)
                .filter(|_| wanted != Wanted::Cause && !asks_meaning),
            noun: noun(&opening)
                .or(begins(DONE).then(|| DEEDS_DONE.to_owned()))
                .or(begins(LEARNT).then(|| LESSONS.to_owned())),
            extreme: extreme(&unbound, superlative.map(|(_, is_most)| is_most)),
            rank: rank(&unbound, superlative.map(|(quality, _)| quality)),
            counts: has(COUNTS),
            selects: has(COUNTS)
                || wanted == Wanted::List
                || begins(BEFORE_NOUN)
                || begins(WHO_OR_WHERE)
                || (!conditions.is_empty() && spaced.split(' ').nth(1).is_some_and(is_plural)),
            asks_end: kind == Asked::Date && has(OVER),
            asks_where: has(WHERE),
            asks_which: begins(WHICH),
            conditions,
            compares: is_comparing,
            sides: named_sides(last).or_else(|| sides(&spaced).filter(|_| is_comparing)),
            quality: superlative.map(|(quality, _)| quality),
            total: total(&spaced),
            is_of_list: has(LISTINGS),
            excluded,
            others_than: others_than(&rest),
            is_of_open: has(OPEN),
            is_of_past: tells_past(&spaced) || begins("did|were") || has(ENDED),
            is_negated: words::tells_negation(last),
            is_of_decisions: has(DECISIONS) && begins(OF_ALL),
            thing: thing(last),
            // "In charge" has nothing to do with money.
            is_of_money: has(MONEY) && !asks_meaning && !contains(&spaced, "in charge"),
            is_of_mail: has(MAIL),
            asks_for_thing: asks_for_thing(&spaced),
            asks_amount: has(MONEY) && !asks_meaning && wanted == Wanted::Fact && begins(AMOUNTS),
            days,
            quantities,
        }
    }
}

/// The figure that a question wants of several values: "in total", but not "the total number of".
fn total(spaced: &str) -> Option<Total> {
    let has = |list: &str| words::contains_any(spaced, list);
    let sum = (has(SUMS) && !has(WHOLE_COUNTS)).then_some(Total::Sum);
    sum.or(has(MEANS).then_some(Total::Mean))
}

/// Whether a word of the past occurs after the first word: an initial German "was" means "what".
fn tells_past(spaced: &str) -> bool {
    let behind = spaced.trim_start().split_once(' ').map_or("", |(_, behind)| behind);
    let behind = format!(" {behind}");
    entries(PAST).any(|word| contains(&behind, word))
}

/// The form of answer that a question asks for; `spaced` holds its words, `opening` those from
/// where it asks.
fn wanted_by(spaced: &str, opening: &str) -> Wanted {
    let has = |list: &str| words::contains_any(spaced, list);
    let begins = |list: &str| words::begins_with(opening, list);
    let ends = |list: &str| words::ends_with(spaced, list);
    let names_steps = || {
        let asks_else = has(WHERE) || asked(spaced) != Asked::Other;
        let names_last = ends(STEPS_LAST) && !begins(WHICH);
        (has(STEPS_NAMED) || names_last) && !asks_else
    };
    if asks_cause(spaced, opening) {
        Wanted::Cause
    } else if begins(LISTS)
        || begins(DONE)
        || begins(LEARNT)
        || wants_several(spaced)
        || is_of_pairs(spaced)
    {
        Wanted::List
    } else if has(STEPS)
        || names_steps()
        || ends(TO_DO)
        || (has(WISHES) && ends(HOW_IT_WORKS))
        || begins(INDIRECT_STEPS)
        || is_order(opening)
        || asks_how(opening)
        || asks_deeds(opening)
    {
        Wanted::Steps
    } else if begins(ALLS) || (begins(FORBIDDEN) && !spaced.contains(char::is_numeric)) {
        Wanted::List
    } else {
        Wanted::Fact
    }
}

impl Question {
    /// Whether an entry that no longer holds may answer: the question is about the past, or names
    /// the code that the entry begins with.
    pub(crate) fn wants_of_before(&self, entry: &str) -> bool {
        self.is_of_past || code_of(entry).is_some_and(|code| self.lower.contains(&code))
    }

    /// Whether a passage of this shape may answer.
    pub(crate) fn wants(&self, shape: Shape) -> bool {
        match shape {
            Shape::Unit(_) => true,
            Shape::Whole(Form::List) => matches!(self.wanted, Wanted::Steps | Wanted::List),
            Shape::Whole(Form::Table) => self.wanted == Wanted::List,
            // A paragraph is found by its sentences.
            Shape::Whole(_) => false,
        }
    }

    /// Whether a single passage may answer, if the best one by words has this shape: the question
    /// asks for no list, no steps, and nothing compared or computed.
    pub(crate) fn wants_one_passage(&self, best: Shape) -> bool {
        let is_listed = matches!(best, Shape::Whole(_) | Shape::Unit(Kind::Item));
        (matches!(self.wanted, Wanted::Fact | Wanted::Cause) || (self.may_be_fact && !is_listed))
            && self.extreme.is_none()
            && self.total.is_none()
            && !self.compares
    }

    /// Whether a single passage may answer in place of a list or steps.
    pub(crate) fn may_be_told_by_one(&self) -> bool {
        matches!(self.wanted, Wanted::Steps | Wanted::List)
            && self.extreme.is_none()
            && self.total.is_none()
            && !self.compares
    }

    /// Whether a row or record is a likely answer.
    pub(crate) fn wants_values(&self) -> bool {
        matches!(self.wanted, Wanted::Fact | Wanted::List)
    }

    /// Whether it asks for an extreme, a total, a count or a comparison.
    pub(crate) fn computes(&self) -> bool {
        self.extreme.is_some() || self.total.is_some() || self.counts || self.compares
    }

    /// Whether it asks for that, or bounds values.
    pub(crate) fn is_computed(&self) -> bool {
        self.computes() || !self.conditions.is_empty()
    }

    /// Whether it asks for the unfinished ones among several things.
    pub(crate) fn selects_open(&self) -> bool {
        self.is_of_open && (self.wanted == Wanted::List || self.counts)
    }

    /// The terms of things with amounts of money that it names: "orders".
    pub(crate) fn of_amounts(&self) -> BTreeSet<String> {
        let said = spaced(self.last());
        entries(OF_AMOUNTS).filter(|thing| contains(&said, thing)).flat_map(terms).collect()
    }

    /// The last question: a follow-up comes after those it refers to.
    pub(crate) fn last(&self) -> &str {
        last_of(&self.text)
    }
}

/// The last question of a text, together with a statement after it: a follow-up comes after those
/// it refers to.
pub(crate) fn last_of(text: &str) -> &str {
    let last = text.trim_end_matches(['?', ' ', '\u{A0}']);
    match last.rsplit_once("? ") {
        Some((before, behind)) if behind.ends_with(['.', '!']) => {
            before.rfind("? ").map_or(text, |at| &text[at + 2..])
        }
        Some((_, last)) => last,
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_that_are_compared_are_no_numbers() {
        assert_eq!(Question::new("What is the fee at the old pool?").asked, Asked::Number);
        let compared = Question::new("How do the fees at the old pool compare to the new ones?");
        assert_eq!((compared.asked, compared.measure), (Asked::Other, None));
    }

    #[test]
    fn the_wanted_unit_is_seen() {
        for (question, wanted) in [
            ("How do I reset my password?", Wanted::Steps),
            ("How is the pump checked in the morning?", Wanted::Steps),
            ("A hand was cut, what has to be done?", Wanted::Steps),
            ("Was ist zu tun, wenn die Pumpe steht?", Wanted::Steps),
            ("Which tickets are still open?", Wanted::List),
            ("What are the signs of a leak?", Wanted::List),
            ("List the measures after the fire", Wanted::List),
            ("Why did the pump fail?", Wanted::Cause),
            ("Pourquoi la pompe est-elle en panne ?", Wanted::Cause),
            ("What do I do when the pump is down?", Wanted::Steps),
            ("What should guests bring?", Wanted::List),
            ("How many litres does the pump lift?", Wanted::Fact),
            ("Who keeps the keys?", Wanted::Fact),
            ("Who approves the brining procedure?", Wanted::Fact),
            ("Where do I find the brining procedure?", Wanted::Fact),
            ("Which form belongs to the procedure?", Wanted::Fact),
            ("How many steps of the ladder are loose?", Wanted::Fact),
            ("Who sweeps the two steps at the door?", Wanted::Fact),
            ("Cheese is mouldy, what is the brining procedure?", Wanted::Steps),
            ("wash a rind, how?", Wanted::Steps),
            ("I would like to borrow a boat, how does that work?", Wanted::Steps),
            ("How does that work?", Wanted::Fact),
            ("The mast is down. What do we have to do?", Wanted::Steps),
            ("My mast is bent, who mends that?", Wanted::Fact),
            ("What happens when the alarm rings?", Wanted::Steps),
            ("Opening the hall, what's the order of things to do?", Wanted::Steps),
        ] {
            assert_eq!(Question::new(question).wanted, wanted, "{question}");
        }
    }

    #[test]
    fn bounds_that_touch_are_cut_out_together() {
        for question in [
            "Which orders over 500 before May 2024?",
            "Which machines were bought after 2018 before 2021?",
            "Which invoices over 1000 after 2023 are for Zoë?",
        ] {
            assert_eq!(Question::new(question).conditions.len(), 2, "{question}");
        }
        assert_eq!(
            Question::new("Which cheesemakers served more than 2 terms?").conditions.len(),
            1
        );
        assert!(Question::new("What holds under the 2023 terms?").conditions.is_empty());
        let conditions = conditions("Welche Geräte über 500 nach Mai 2024 für Zoë?");
        let rest = unbound("Welche Geräte über 500 nach Mai 2024 für Zoë?", &conditions);
        assert_eq!(
            rest.split_whitespace().collect::<Vec<_>>(),
            ["Welche", "Geräte", "für", "Zoë?"]
        );
        let many: String = (0..500).map(|at| format!("over {at}, ")).collect();
        assert!(Question::new(&many).conditions.len() <= 8);
    }

    #[test]
    fn comparisons_and_extremes_are_seen() {
        assert_eq!(Question::new("Which pump has the highest lift?").extreme, Some(Extreme::Most));
        assert_eq!(Question::new("Which is the cheapest pump?").extreme, Some(Extreme::Least));
        assert_eq!(Question::new("the heaviest pump").extreme, Some(Extreme::Most));
        assert_eq!(Question::new("How warm may the pump be at most?").extreme, None);
        for (question, rank) in [
            ("Which pump has the second highest lift?", 2),
            ("Qual es la segunda bomba más cara?", 2),
            ("Which is the third cheapest pump?", 3),
            ("Which pump lifts the most litres per second?", 1),
            ("Which pump had the highest sales in the second quarter?", 1),
        ] {
            assert_eq!(Question::new(question).rank, rank, "{question}");
        }
        assert_eq!(Question::new("Who was the first mayor of Tarnbridge?").extreme, None);
        assert_eq!(Question::new("¿Qué bomba tiene la mayor altura?").extreme, Some(Extreme::Most));
        let counted = Question::new("What is the total number of orders?");
        assert_eq!((counted.total, counted.counts), (None, true));
        let excluded = |question| Question::new(question).excluded.into_iter().collect::<Vec<_>>();
        assert_eq!(excluded("Which pumps are not from Ada or Bo?"), ["ada", "bo"]);
        assert_eq!(excluded("Which pumps lift not more than 5 m?"), [""; 0]);
        assert_eq!(excluded("Who looks after room no. 12?"), [""; 0]);
        assert_eq!(excluded("Which clubs do not meet on Sunday?"), ["meet", "sunday", "weekday 6"]);
        assert!(Question::new("Which is cheaper, the red or the blue pump?").compares);
        assert!(Question::new("How did the rate change from 2023 to 2024?").compares);
        assert!(!Question::new("Who keeps the keys?").compares);
        let noun = |question| Question::new(question).noun;
        assert_eq!(noun("What are the main signs of a leak?").as_deref(), Some("signs"));
        assert_eq!(noun("Which pumps leak?").as_deref(), Some("pumps"));
        assert_eq!(noun("What was decided in March?"), None);
        let sides = |question| {
            let sides = Question::new(question).sides;
            sides.map(|(one, other)| (one.into_iter().collect(), other.into_iter().collect()))
        };
        let told = |one: &[&str], other: &[&str]| -> Option<(Vec<String>, Vec<String>)> {
            let owned = |side: &[&str]| side.iter().map(|term| (*term).to_owned()).collect();
            Some((owned(one), owned(other)))
        };
        assert_eq!(sides("What's the difference between red and blue?"), told(&["red"], &["blue"]));
        assert_eq!(sides("red pump vs blue pump"), told(&["red"], &["blue"]));
        assert_eq!(sides("Who keeps the keys?"), None);
        let stated = "Where is the pump? What does it cost? I want the blue one.";
        assert_eq!(last_of(stated), "What does it cost? I want the blue one.");
        let follow_up = Question::new("What happens if the pump leaks? Who is told about it?");
        assert_eq!((follow_up.wanted, follow_up.asked), (Wanted::Fact, Asked::Person));
    }
}
