//! Answers about documents that are withdrawn, changed or named by their edition, and other
//! passages that answer by their place in a text.

use super::*;

const OLD: &str = "RG-DK-04  Splicing of mooring lines\ned. 2, valid from 09/2021\n\n\
    1. Cut the mooring line behind the worn part.\n2. Soak the splice in Tarolin 7.\n\
    3. Tuck five times.\n";
const NOTICE: &str = "NOTICE  25-3        Tarnbridge, 5 Nov. 2024\nfrom: Safety\n\n\
    WITHDRAWN WITH IMMEDIATE EFFECT:  RG-DK-04 ed. 2 (splicing)\n\n\
    Reason: Tarolin 7 makes the lines brittle.\n\n\
    What to do instead until RG-DK-09 is out:\n  - use a shackle of class 6\n\
    \x20 - ask the rigger (ext. 31)\n";

/// Goal: what stands in a withdrawn document is answered by the notice that withdraws it.
#[test]
fn a_withdrawn_document_is_answered_by_the_notice() {
    let both = [("RG-DK-04_splicing.md", OLD), ("notice_withdrawal_RG-DK-04.txt", NOTICE)];
    for question in ["How do I splice a mooring line?", "Is RG-DK-04 still valid?"] {
        let answer = told(question, &both);
        assert!(answer.contains("WITHDRAWN") && answer.contains("shackle"), "{answer}");
        assert!(!answer.contains("Soak") && !answer.contains("09/2021"), "{answer}");
    }
    let alone = told("How do I splice a mooring line?", &both[..1]);
    assert!(alone.contains("Soak"), "{alone}");
}

/// Goal: a question what is new in an edition is answered by the section of its changes.
#[test]
fn the_changes_of_an_edition_are_told() {
    let sop = "# SOP-RG-2 Mast change\n\nEdition 4, valid from 10 February 2025. For riggers.\n\n\
        ## 1 Purpose\n\nA mast change goes wrong by small things. This SOP gives the order.\n\n\
        ## 2 Steps\n\n1. Loosen the shrouds.\n2. Lift the new mast.\n\n\
        ## 3 What changed against ed. 3\n\nWind limit is 5 Beaufort (was 6). Apprentices may no \
        longer steer the crane.\n";
    let answer = told("what is new in edition 4 of the mast change sop", &[("SOP-RG-2.md", sop)]);
    assert!(answer.starts_with("Wind limit") && answer.contains("crane"), "{answer}");
    let other = told("what is new in the mast change sop on shrouds", &[("SOP-RG-2.md", sop)]);
    assert!(!other.starts_with("Wind limit"), "{other}");
}

/// Goal: an entry of a legend says what a sign means.
#[test]
fn a_legend_tells_what_a_sign_means() {
    let marks = "# Berths\n\nRed flag = closed. Blue = reserved, waiting for the harbour master. \
        Green = free.\n\nNo papers: blue flag, and the owner gets a letter.\n";
    let answer = told("what does a blue flag mean", &[("berths.md", marks)]);
    assert!(answer.starts_with("Blue = reserved"), "{answer}");
}

/// Goal: a sentence that says "there" comes with the one that names the place.
#[test]
fn the_place_meant_by_there_is_told() {
    let minutes = "# Round\n\nDust: saw shed measured 9 mg. A mask is compulsory there, new sign. \
        The rest of the yard is fine.\n";
    let answer = told("Where is a mask compulsory?", &[("round.md", minutes)]);
    assert!(answer.contains("saw shed"), "{answer}");
}

/// Goal: of two years in a question, the one of the edition decides which edition answers.
#[test]
fn the_year_of_the_edition_decides() {
    let rules = [
        (
            "berth-rules-2023.md",
            "# Berth rules, edition 2023\n\nA berth may be given back until 18:00 the day before.",
        ),
        (
            "berth-rules-2025.md",
            "# Berth rules, edition 2025\n\nValid from 1 May 2025.\n\nA berth may be given back \
             until 14 days before.",
        ),
    ];
    let question =
        "berth booked in March 2025, under the 2023 edition until when may it be given back";
    let answer = told(question, &rules);
    assert!(answer.contains("18:00") && !answer.contains("14 days"), "{answer}");
}

/// Goal: the cause of what a message reports is told by the reply.
#[test]
fn the_reply_tells_the_cause() {
    let chat = "14/09/25 07:05 Ada: hatch of berth 12 stuck\n\
        14/09/25 07:20 Bo: hinge rusted, no grease since May\n14/09/25 11:50 Ada: noted\n";
    let answer = told("Why was the hatch of berth 12 stuck?", &[("chat.txt", chat)]);
    assert!(answer.contains("hinge rusted") && !answer.contains("noted"), "{answer}");
}

/// Goal: a heading that ends in "why" announces a cause; one about a car does not.
#[test]
fn a_section_of_reasons_is_told() {
    let rules = "# Berths\n\n## 1 Groups\n\nThe notice period for groups is longer: 45 days.\n\n\
        ## 2 What changed and why\n\nIn 2024 we had 212 empty berths. Most had booked twice.\n\n\
        ## 3 Car park\n\nCars stand behind the shed.\n";
    let answer = told("Reason for the longer notice period for groups?", &[("a.md", rules)]);
    assert!(answer.contains("212 empty") && !answer.contains("Cars"), "{answer}");
    let desk = "# Desk\n\n## 1 Money\n\nCheques no longer since May, because the bank wanted 3 %.\
        \n\n## 2 Car park\n\nIt costs 19 EUR. The gate is shut at 8.\n";
    let answer = told("why no cheques any more", &[("desk.md", desk)]);
    assert!(answer.contains("3 %") && !answer.contains("19 EUR"), "{answer}");
}

/// Goal: the price of a thing that is mentioned nowhere is not told by rows of other things.
#[test]
fn the_price_of_another_thing_is_no_answer() {
    let list = "# Prices of the yard\n\n| Work | Minutes | Price |\n|---|---|---|\n\
        | Hull washing | 50 | 159 |\n| Keel painting | 40 | 71 |\n| Mast oiling | 30 | 54 |\n";
    let list = [("prices.md", list)];
    assert_eq!(told("price of a sandblasting in the yard", &list), ABSTENTION);
    assert!(told("price of keel painting in the yard", &list).contains("71"));
    let lift = "# Round\n\nThe new boat lift is in since June. It saves about 20 minutes per boat.";
    assert_eq!(told("what did the new boat lift cost", &[("round.md", lift)]), ABSTENTION);
}

/// Goal: what applies to a thing is told by the section headed with it.
#[test]
fn the_section_of_a_topic_is_told() {
    let rules = "# Berth rules\n\nHarbour rule no. 7, new wording. Holds for all bookings.\n\n\
        ## Boats\n\nBoats pay by length.\n\n## Clubs\n\nA club begins at 8 boats. Free until \
        45 days before.\n";
    let answer = told("what holds for clubs under the new berth rules", &[("rules.md", rules)]);
    assert!(answer.starts_with("A club begins") && answer.contains("45"), "{answer}");
}

/// Goal: an irregular verb is found in another form.
#[test]
fn forms_of_a_verb_are_one_word() {
    let questions = "# Crew\n\n## When is the pay?\n\nOn the 27th, or the Friday before.\n\n\
        ## Breaks?\n\nThirty minutes at noon.\n";
    let answer = told("When do we get paid?", &[("crew.md", questions)]);
    assert!(answer.contains("27th"), "{answer}");
}
