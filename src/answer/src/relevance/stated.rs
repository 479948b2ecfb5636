//! Lists without a word for their kind, recognised by what each of their items states: "the reply:
//! 3 days" and "the repair: 10 days" are deadlines.

use crate::passages::candidates::Candidate;
use crate::question::wish::Question;
use crate::text::values::has_money;
use crate::text::words::{is_entry, tells_time};

/// Nouns for limits and points of time, and for amounts of money.
const TIMES: &str = "\
    deadlines|periods|dates|times|fristen|termine|délais|échéances|plazos|fechas";
const AMOUNTS: &str = "\
    prices|costs|fees|rates|charges|fines|preise|kosten|gebühren|prix|tarifs|frais|precios|tarifas";

/// Whether every part of a list states what the noun of the question stands for.
pub(crate) fn states_each(question: &Question, list: &Candidate) -> bool {
    let Some(noun) = &question.noun else { return false };
    let states = |text: &str| match () {
        () if is_entry(TIMES, noun) => tells_time(text) && text.contains(char::is_numeric),
        () if is_entry(AMOUNTS, noun) => has_money(text),
        () => false,
    };
    list.parts.len() > 1 && list.parts.iter().all(|part| states(&part.shown))
}
