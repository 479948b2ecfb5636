//! Exclusions and refusals of a text, the measures of a report, and several questions in one.

use super::*;

const HIRE: &str = "# Boat hire at the weir\n\n## Boats\n\n\
    Rowing boats and canoes leave from the jetty, no sailing boats, no rafts. Boats with a motor \
    need the licence of the lake.\n\n## Who cannot hire a boat\n\n\
    Anybody who has been drinking, groups without an adult, and hirers who still owe us a \
    deposit. The jetty master decides.\n\n## Price\n\nIn it: life vests, two paddles, a dry bag.\n\
    Not in it: fishing rods, the lock fee, a map.\n\n## What must stay outside the boats\n\n\
    - glass\n- grills\n- dogs over 20 kg\n\nBoats are not cleaned by the hirer.\n";

/// Goal: what is left out or refused is told from its heading, its list or its sentence, not from
/// any sentence with a negation.
#[test]
fn exclusions_are_told_whole() {
    let asked = |question: &str| told(question, &[("boat-hire.md", HIRE)]);
    for (question, all, other) in [
        ("Who can't hire a boat?", &["drinking", "without an adult", "deposit"][..], "sailing"),
        ("what is not in the price of a boat", &["rods", "lock fee", "map"], "glass"),
        ("what must not come on the boats of the weir", &["glass", "grills", "dogs"], "cleaned"),
    ] {
        let answer = asked(question);
        assert!(all.iter().all(|one| answer.contains(one)), "{question}: {answer}");
        assert!(!answer.contains(other), "{question}: {answer}");
    }
}

/// Goal: a passage that denies as much of the question itself is not replaced, and steps below a
/// negated heading are no exclusions.
#[test]
fn a_denial_in_the_sentence_itself_is_told() {
    let text = "# Ticket machines\n\n## Cards\n\nFuel cards and cards of the staff shop cannot be \
        used at a ticket machine.\n\n## The machine does not take cards\n\n1. Never pull the card \
        of a guest.\n2. Switch the machine off, wait, switch it on.\n3. Call the hotline.\n";
    let answer = told("Which cards cannot be used at a ticket machine?", &[("till.md", text)]);
    assert!(answer.starts_with("Fuel cards and cards of the staff shop"), "{answer}");
    assert!(!answer.contains("hotline"), "{answer}");
}

/// Goal: the measures after an event are those of the report on it, although a register and another
/// report name it too.
#[test]
fn the_measures_of_the_report_are_told() {
    let report = "# Report: crane 4 hit the gantry\n\nDate of the event: 3 May.\n\n## Cause\n\n\
        The limit switch of the crane was bridged.\n\n## Measures\n\n| No | What | Who |\n\
        |---|---|---|\n\
        | 1 | Seal on every limit switch | Ada |\n\
        | 2 | Radio for the banksman | Bo |\n\
        | 3 | Gantry painted yellow | Cy |\n\n\
        The crane was back at work on 9 May.\n";
    let log = "no,machine,event,cost\n17,crane 4,hit the gantry,2100\n18,crane 2,rope worn,300\n";
    let other = "# Report: pallet fell\n\n## Measures\n\n- nets on all racks\n- helmets\n";
    let texts = [("log.csv", log), ("report-crane.md", report), ("report-pallet.md", other)];
    let answer = told("Which measures were taken after crane 4 hit the gantry?", &texts);
    for one in ["Seal on every", "Radio for", "painted yellow"] {
        assert!(answer.contains(one), "{answer}");
    }
    assert!(!answer.contains("nets") && !answer.contains("rope worn"), "{answer}");
}

/// Goal: of two questions in one, what the second adds follows the answer to the whole, unless the
/// first has no answer.
#[test]
fn each_of_several_questions_is_answered() {
    let text = "# Climbing hall\n\nOn Sundays the hall is open from 9:00 to 20:00. On Mondays it \
        is closed.\n\n## Shoes\n\nShoes are lent at the desk for 4 euros a pair.\n\n\
        ## Children\n\nChildren under 14 climb with an adult.\n";
    let asked = |question: &str| {
        let parts = crate::questions_of(question, &[], &RequestContext::default()).unwrap();
        let answerer = Answerer::new(Arc::new(HashEmbedder)).for_parts(parts);
        let chunks = titled(&[("hall.md", text)]);
        let context = RequestContext::default();
        answerer.answer(&context, question, &chunks, &[], SourceOrder::ByUse).unwrap().text
    };
    let answer = asked("until when is the hall open on sundays and what do lent shoes cost?");
    assert!(answer.contains("20:00") && answer.contains("4 euros"), "{answer}");
    let answer = asked("When is the hall open on sundays? Can children under 14 climb alone?");
    assert!(answer.contains("9:00") && answer.contains("with an adult"), "{answer}");
    let answer = asked("What do crampons cost in Zermatt and how much are lent shoes?");
    assert!(!answer.contains("Sundays"), "{answer}");
}
