//! Answers found by the headings above them, and the marks of quoted mails.

use super::*;
use crate::passages::blocks::blocks;

const KENNEL: &str = "# Kennel questions\n\n\
    **Where do I leave the lead?**\nOn the hook beside the blue door.\n\n\
    **Which vaccinations are needed?**\n\nDistemper and parvo. The card is shown on \
    the first day.\n\n\
    **How can I pay?**\nBy card or in cash. Cheques are not taken.\n\n\
    **Can I bring my dog's own bed for the nights it stays with you?**\n\
    No. But tell us when it needs a soft one.\n";

/// A question in bold is the heading of what follows.
#[test]
fn a_question_in_bold_gives_what_stands_below_it() {
    let asked = |question: &str| told(question, &[("kennel.md", KENNEL)]);
    for (question, start) in [
        ("Where do I leave the lead?", "On the hook beside the blue door. [1]"),
        ("Which vaccinations are needed?", "Distemper and parvo. [1]"),
        ("How can I pay?", "By card or in cash. [1]"),
        ("Can I bring my dog's own bed?", "No. [1] But tell us"),
    ] {
        let answer = asked(question);
        assert!(answer.starts_with(start) && !answer.contains('?'), "{question}: {answer}");
    }
    let short = "**Who feeds the cats?**\nThe night warden\n\n**Who pays?**\nThe owner\n";
    let answer = told("Who feeds the cats?", &[("cats.md", short)]);
    assert_eq!(answer, "The night warden [1]");
}

/// A sentence that names the document with the answer is none.
#[test]
fn a_sentence_that_points_to_a_contract_is_not_the_answer() {
    let terms = "# Stable terms\n\n**FDL and PDL**: the days that a horse may stand idle free or \
        paid for. The values for each rider are in the contract.\n";
    let contract = "# Contract with Tarn Riders\n\nThe free day limit (FDL) is 6 days, the paid \
        day limit (PDL) is 15 days. Stables are cleaned daily.\n";
    let answer = told(
        "What is the PDL in the Tarn contract?",
        &[("terms.md", terms), ("tarn.md", contract)],
    );
    assert!(answer.contains("15 days") && !answer.contains("for each rider"), "{answer}");
}

const GRAFTING: &str = "# How to graft an apple tree\n\nGrafting an apple tree is best done in \
    March. An apple tree grafted later seldom takes. You need a sharp knife.\n\n\
    ## Tools\n\n- knife\n- tape\n- wax\n\n\
    ## Steps\n\n1. Cut the stock aslant.\n2. Cut the scion to match.\n3. Press both together.\n\
    4. Bind them with tape.\n\n## Aftercare\n\nWater it in May.\n";

/// Steps below a heading such as "Steps" belong to the heading above that.
#[test]
fn steps_below_a_general_heading_are_told() {
    let answer = told("How do I graft my apple tree?", &[("graft.md", GRAFTING)]);
    let steps = ["1. Cut", "2. Cut", "3. Press", "4. Bind"].map(|step| answer.find(step));
    assert!(steps.iter().all(Option::is_some) && steps.is_sorted(), "{answer}");
    let german = "# Apfelbaum veredeln\n\nEinen Apfelbaum veredeln wir im März.\n\n## Ablauf\n\n\
        1. Unterlage schneiden.\n2. Reis schneiden.\n3. Beides binden.\n";
    let answer = told("Wie kann ich einen Apfelbaum veredeln?", &[("veredeln.md", german)]);
    assert!(answer.contains("1. Unterlage") && answer.contains("3. Beides"), "{answer}");
}

/// Steps for something else are not told, however general their heading is.
#[test]
fn steps_of_another_matter_are_not_told() {
    let answer = told("How do I water a grafted apple tree?", &[("graft.md", GRAFTING)]);
    assert!(!answer.contains("Bind them"), "{answer}");
    let two = "# Orchard\n\n## Pruning a pear\n\nPruning a pear is done in frost.\n\n### Steps\n\n\
        1. Saw the crown.\n2. Tar the cuts.\n\n## Felling a pear\n\nFelling a pear needs two.\n\n\
        ### Steps\n\n1. Rope the trunk.\n2. Saw the trunk.\n";
    let answer = told("How do I fell a pear?", &[("orchard.md", two)]);
    assert!(!answer.contains("Tar the cuts"), "{answer}");
}

const TENT: &str = "# Lumo T-4 tent\n\nThe T-4 is a tent for four.\n\n## What is in the bag\n\n\
    - outer skin\n- four poles\n- twelve pegs\n- mallet\n\n## Care\n\n\
    - Dry the bag and the tent before packing.\n- Keep the bag of the T-4 out of the sun.\n\n\
    ## Return policy\n\n- Unused tents within 30 days.\n- Used ones not at all.\n";

/// The list below a heading that the question repeats is told whole.
#[test]
fn the_list_below_the_heading_of_the_question_is_told() {
    let asked = |question: &str| told(question, &[("tent.md", TENT)]);
    let answer = asked("What is in the bag of the T-4?");
    let all = "outer skin [1] four poles [1] twelve pegs [1] mallet [1]";
    assert_eq!(answer, all);
    let answer = asked("What is the return policy of the T-4 tent?");
    assert!(answer.contains("30 days") && answer.contains("not at all"), "{answer}");
    for question in ["What is in the bag of the T-9?", "Who checks what is in the bag of the T-4?"]
    {
        assert_ne!(asked(question), all, "{question}");
    }
}

/// A greeting is declined, also after a question was answered.
#[test]
fn greetings_are_declined() {
    let mail =
        [("mill.eml", "Hello Ada,\n\nthe test of the mill is on Monday.\n\n> Thanks Ada.\n")];
    for text in ["hello", "thanks!", "test", "ok"] {
        assert_eq!(told(text, &mail), ABSTENTION, "{text}");
        let past = [("When is the test of the mill?".to_owned(), "On Monday.".to_owned())];
        assert_eq!(contextualise(text, &past, &RequestContext::default()).unwrap(), text);
    }
    assert!(told("When is the test of the mill?", &mail).contains("Monday"));
}

/// Quoted lines are told without their marks, and never the line that announces them.
#[test]
fn marks_of_quoted_mails_are_left_out() {
    let mail = "Dear all,\n\nsee below for the bell frame of the church tower.\n\n\
        On Tue, 12 May 2026 at 17:20, Tom Reed wrote:\n\n\
        > The bell frame of the tower is\n> painted every six years. Red lead\n> is used.\n>\n\
        >> Who paints the bell frame?\n";
    let chunks = titled(&[("bells.txt", mail)]);
    let answer = extracted("How often is the bell frame of the tower painted?", &chunks);
    check(&answer, &chunks);
    let sentence = "The bell frame of the tower is painted every six years. [1]";
    assert!(answer.text.starts_with(sentence), "{}", answer.text);
    assert!(!answer.text.contains('>') && !answer.text.contains("wrote"), "{}", answer.text);
    let answer = extracted("What did Tom Reed write about the bell frame on 12 May?", &chunks);
    assert!(!answer.text.contains("wrote"), "{}", answer.text);
    let bound = "Rates for the swim\n\n> 65 years: half price\n";
    let answer = told("What is the rate for the swim from 65 years?", &[("swim.txt", bound)]);
    assert!(answer.contains("> 65 years") || answer == ABSTENTION, "{answer}");
}

/// Names in a long line above records are those of all of them.
#[test]
fn a_caption_says_what_its_rows_are_about() {
    let rows = "Work: new hull\nShare (EUR): 1180\nBefore (EUR): 1060\n\n\
        Work: varnish\nShare (EUR): 240\nBefore (EUR): 310\n";
    let caption = "Account of the boat yard 2026, berth 14, Ada Holm, ketch of 11.4 m, \
        period from 1 January to 31 December 2026";
    let list = format!("## Berth 14\n\n{caption}\n\n{rows}");
    let mut list = titled(&[("account.xlsx", &list)]);
    list[0].parts.cosine = Some(0.1);
    let answer = extracted("How high is Ada Holm's share of the varnish?", &list).text;
    assert!(answer.starts_with("Work: varnish; Share (EUR): 240"), "{answer}");
    let answer = extracted("Which berth is the account of the boat yard 2026 for?", &list).text;
    assert!(answer.contains("berth 14"), "{answer}");
    let below = crate::passages::blocks::blocks(&format!("Accounts\n\n{caption}\n\n{rows}"), None);
    let record = below.units.iter().find(|unit| unit.cells.len() > 1).unwrap();
    assert_eq!(below.sections[record.section], ["Accounts", caption], "below its heading");
    for note in ["Berths are paid for in advance.", "- Bring fenders"] {
        let noted = format!("{caption}\n\n{rows}\n{note}\n");
        let found = crate::passages::blocks::blocks(&noted, None);
        let last = found.units.last().unwrap();
        assert!(found.sections[last.section].is_empty(), "{note} is no row of the caption");
    }
    let prose = format!("{caption}, which was read to all members in the hall.\n\n{rows}");
    let found = crate::passages::blocks::blocks(&prose, None);
    assert_eq!(found.sections, [Vec::<String>::new()], "a sentence is no caption");
}

const QUARRY: &str = "# Quarry rules\n\n## 2 What is forbidden\n\n\
    - Drinking from the settling pond.\n- Riding on the belt conveyor or on its frame.\n\n\
    ## 3 Duties of drivers\n\n- Drivers of dumpers wear a helmet outside the cab.\n";

/// An item that says something else without its heading is told with it.
#[test]
fn an_item_is_told_with_the_heading_that_forbids_it() {
    let chunks = titled(&[("quarry.md", QUARRY)]);
    let answer = extracted("Is riding on the belt conveyor allowed?", &chunks);
    check(&answer, &chunks);
    let riding = "What is forbidden: Riding on the belt conveyor or on its frame. [1]";
    assert!(answer.text.starts_with(riding), "{}", answer.text);
    let text = "# Hull cover\n\nIt ends at the harbour wall. The following are not covered:\n\
        - wear of the propeller shaft\n- worm in the planks\n";
    let answer = told("Is worm in the planks covered?", &[("hull.md", text)]);
    assert!(answer.contains("The following are not covered: "), "{answer}");
    assert_eq!(answer.matches("not covered").count(), 1, "{answer}");
    let other = told("What do drivers of dumpers wear outside the cab?", &[("quarry.md", QUARRY)]);
    assert!(other.starts_with("Drivers of dumpers wear a helmet"), "{other}");
}

/// An announcement between a heading and its items may turn the sense again.
#[test]
fn an_item_is_told_with_the_announcement_below_its_heading() {
    let text = "# Quarry rules\n\n## 2 What is forbidden\n\nRiding on the belt conveyor or on its \
        frame is forbidden to everybody in the quarry. Use instead:\n- the stairs by the silo\n\
        - the lift of the mill\n";
    let answer = told("May I use the lift of the mill?", &[("quarry.md", text)]);
    let lift = "What is forbidden, Use instead: the lift of the mill [1]";
    assert!(answer.starts_with(lift), "{answer}");
    let text = "# Boat trip\n\n**Not included:**\n- towels for the sauna\n- drinks\n";
    let answer = told("Is a towel for the sauna included?", &[("trip.md", text)]);
    assert!(answer.starts_with("Not included: towels for the sauna [1]"), "{answer}");
}

const FIRMWARE: &str = "# Firmware of the LX loom\n\n## 2.4.0 - 2025-03-11\n\n### Added\n\n\
    - Shuttle counter is now shown on the panel.\n- Night mode of the panel.\n\n### Removed\n\n\
    - Support for punched cards of 1978.\n\n## 2.3.1 - 2025-01-20\n\n### Fixed\n\n\
    - The weft brake no longer sticks.\n";

/// A change is told with its version, unless the question names it.
#[test]
fn a_change_is_told_with_its_version_and_part() {
    let asked = |question: &str| told(question, &[("firmware.md", FIRMWARE)]);
    let answer = asked("Does the loom still have support for punched cards of 1978?");
    let removed = "2.4.0 - 2025-03-11, Removed: Support for punched cards of 1978. [1]";
    assert!(answer.starts_with(removed), "{answer}");
    let answer = asked("Since which version is the shuttle counter shown on the panel?");
    assert!(answer.contains("2.4.0 - 2025-03-11, Added: Shuttle counter"), "{answer}");
}

/// A setting is told with the comment above it, and the name of a section of settings never.
#[test]
fn a_setting_is_told_with_its_comment() {
    let text = "; Press room heating\n\n[boiler]\nstart_hour = 5\n\n[vents]\n\
        ; vent 3 was shut because of the draught on the ink rollers\nvent3 = shut\ngap_mm = 6\n\n\
        [ink]\n; degrees of the ink store\nstore_temp = 18\n";
    let answer = told("Why was vent 3 shut?", &[("heating.ini", text)]);
    assert!(answer.contains("because of the draught on the ink rollers"), "{answer}");
    assert!(!answer.contains("[ink]"), "{answer}");
    let answer = told("What is the gap_mm of vent3?", &[("heating.ini", text)]);
    assert!(answer.contains("because of the draught on the ink rollers: vent3 = shut"), "{answer}");
}

/// Goal: a line in columns right above an indented list is the heading of that list, not a row, so
/// that the list before it does not swallow the next one.
#[test]
fn a_line_in_columns_above_an_indented_list_heads_it() {
    let text = "FROST PLAN\n\nLEVEL 1  below 0 degrees forecast\n  - sand the steps\n\
        \x20 - lamps on at four\n\nLEVEL 2     below -10 degrees forecast   (new)\n\
        \x20 - drain the pumps\n  - two guards stay overnight\n";
    let found = blocks(text, None);
    let unit = found.units.iter().find(|unit| text[unit.bytes.clone()].contains("drain")).unwrap();
    let heading = found.sections[unit.section].last().unwrap();
    assert!(heading.starts_with("LEVEL 2"), "{heading}");
}

/// Goal: fields that describe a report answer for its author and date, and nothing else.
#[test]
fn the_fields_of_a_report_tell_no_cause() {
    let text = "# Report 7: gate left open in March\n\nDate of incident: night of 14 March 2025\n\
        Written by: Goran Pell, 21 March 2025\n\n## Cause\n\nA nest on the rail jammed the \
        wheel.\n";
    let answer = told("Why was the gate left open that night in March?", &[("report.md", text)]);
    assert!(answer.starts_with("A nest on the rail"), "{answer}");
    let answer = told("Who wrote the report on the gate?", &[("report.md", text)]);
    assert!(answer.contains("Goran Pell"), "{answer}");
}
