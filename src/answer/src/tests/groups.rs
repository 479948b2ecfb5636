//! Answers from lists below headings, parts of tables, and conversations.

use super::*;

const PITCHES: &str = "# Campsite: what guests ask\n\n## What is forbidden?\n\n\
    - drones\n- fires on the grass\n- generators after nine\n- drums\n- tents by the weir\n\n\
    ## Who should not take the big slide or the raft?\n\n\
    - people with a weak heart\n- anybody under 8\n- wearers of glasses\n\n\
    In doubt the guard says no, and nobody overrules the guard.\n\n\
    ## Must be on each pitch card\n\n- name and car number\n- day of leaving\n\
    - colour of the tent\n";

/// Goal: a list below a heading that asks or says what is asked is told whole.
#[test]
fn a_list_below_its_question_is_told_whole() {
    let asked = |question: &str| told(question, &[("campsite.md", PITCHES)]);
    for (question, all) in [
        (
            "what is forbidden on the campsite",
            &["drones", "fires", "generators", "drums", "weir"][..],
        ),
        ("who should not take the raft", &["weak heart", "under 8", "glasses"]),
        ("what has to be written on every pitch card", &["car number", "leaving", "colour"]),
    ] {
        let answer = asked(question);
        assert!(all.iter().all(|one| answer.contains(one)), "{question}: {answer}");
        assert!(!answer.contains("guard"), "{question}: {answer}");
    }
}

const REPAIRS: &str = "# Repairs\n\n| Repair | Minutes | Price | Done by |\n|---|---|---|---|\n\
    | WHEELS | | | |\n| Standard | 30 | 24 | anyone |\n| New rim | 55 | 61 | Ada |\n\
    | BRAKES AND GEARS | | | |\n| Standard | 20 | 19 | Bo |\n| New cable | 15 | 12 | anyone |\n\
    | FRAMES | | | |\n| Paint | 90 | 140 | Ada |\n| Sticker | 5 | 4 | anyone |\n";

/// Goal: a line that only names the rows below it is no row, and sets them apart.
#[test]
fn the_parts_of_a_table_are_told_apart() {
    let asked = |question: &str| told(question, &[("repairs.md", REPAIRS)]);
    let answer = asked("what is the cheapest repair of brakes and gears?");
    assert!(answer.contains("New cable") && !answer.contains("Sticker"), "{answer}");
    let answer = asked("how much is the standard repair of brakes and gears?");
    assert!(answer.contains("19") && !answer.contains("24"), "{answer}");
    assert!(answer.contains("BRAKES AND GEARS: Repair: Standard"), "{answer}");
    let answer = asked("which repairs count as wheels?");
    assert!(answer.contains("Standard") && answer.contains("New rim"), "{answer}");
    assert!(!answer.contains("Paint") && !answer.contains("cable"), "{answer}");
}

/// Goal: a row without values among others is a row.
#[test]
fn a_row_that_lacks_all_values_is_told() {
    let staff = "# Dairy\n\n| Name | Phone | Room |\n|---|---|---|\n| Ada | 12 | 3 |\n\
        | Bo | | |\n| Cy | 14 | 5 |\n| Di | 15 | 5 |\n";
    let answer = told("Who has no phone?", &[("staff.md", staff)]);
    assert!(answer.contains("Bo") && !answer.contains("Cy"), "{answer}");
}

const CHAT: &str = "[Export] group \"kilns\"\n\n\
    12.03.2025, 08:10 - Ada: kiln 2 shows H7 and is cold\n\
    12.03.2025, 08:14 - Bo (workshop): H7 is the door switch. open the door, blow the dust out, \
    close it hard, then hold reset\n\
    12.03.2025, 08:15 - Ada: thanks\n\
    12.03.2025, 11:40 - Cem: clay arrives on friday, two pallets\n\
    14.03.2025, 17:02 - Cem: the glaze on order 88 came out matt\n\
    14.03.2025, 17:20 - Ada: cooled too fast, somebody opened the vent\n";

/// Goal: the replies to a message about a problem are told with it.
#[test]
fn replies_are_told_with_the_message() {
    let asked = |question: &str| told(question, &[("kilns.txt", CHAT)]);
    let answer = asked("kiln 2 shows H7 what to do");
    assert!(answer.contains("blow the dust out") && !answer.contains("pallets"), "{answer}");
    let answer = asked("why did the glaze on order 88 come out matt");
    assert!(answer.contains("opened the vent"), "{answer}");
}

/// Goal: a message that answers keywords by a number is told without what follows.
#[test]
fn a_message_with_the_number_asked_for_is_told_alone() {
    let chat = "12.03.2025, 08:10 - Ada: door code of the cheese cellar is 4711\n\
        12.03.2025, 08:14 - Bo: rennet arrives on friday in two boxes\n\
        12.03.2025, 08:15 - Cy: i take the early shift on monday\n";
    let answer = told("door code of the cheese cellar", &[("dairy.txt", chat)]);
    assert!(answer.contains("4711") && !answer.contains("rennet"), "{answer}");
    let chat = "12.03.2025, 08:10 - Ada: separator stopped at 6200 turns, belt smells\n\
        12.03.2025, 08:14 - Bo: switch it off and lift the belt guard first\n";
    let answer = told("separator stopped, belt smells again", &[("dairy.txt", chat)]);
    assert!(answer.contains("belt guard"), "{answer}");
}

/// Goal: "steps when ..." and a question that ends in "how" are answered by the whole procedure.
#[test]
fn a_procedure_asked_for_in_few_words_is_told_whole() {
    let text = "# Boathouse questions\n\n## My boat was stolen. What then?\n\n1. Ring Ada on 71.\n\
        2. Write down the number of the boat.\n3. Report it to the harbour police.\n\
        4. Send Bo the number of the report.\n\n## Paint\n\nPaint is in the shed.\n";
    for question in ["steps when my boat gets stolen", "boat stolen, report it how"] {
        let answer = told(question, &[("boats.md", text)]);
        let steps = ["1. Ring", "2. Write", "3. Report", "4. Send"].map(|step| answer.find(step));
        assert!(steps.iter().all(Option::is_some) && steps.is_sorted(), "{question}: {answer}");
    }
}

/// Goal: a "No." is told with the sentence that says more.
#[test]
fn a_mere_no_is_told_with_what_follows() {
    let text = "# Invoices\n\nQuestions of clients, answered by the office.\n\n\
        Is there a discount for early payment?\n\nNo. We used to give 2 % and stopped in 2023 \
        because many deducted it even when late.\n\nWhen is the bill due?\n\nAfter 21 days.\n";
    let answer = told("why no discount for early payment any more", &[("invoices.md", text)]);
    assert!(answer.contains("even when late"), "{answer}");
}
