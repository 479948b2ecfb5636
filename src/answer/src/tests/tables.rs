//! The rows of tables that a question means: by bounds, by what has run out, by the sides of a
//! comparison, by the actions of a meeting.

use super::*;

const FARES: &str = "# Who approves what\n\n| up to EUR | approved by | quotes |\n|---|---|---|\n\
    | 300 | foreman | none |\n| 1,500 | head of the yard | 1 |\n\
    | 9,000 | harbour master | 2 |\n| above | council | 3 |\n";

/// Goal: a number between two bounds means the row of the higher one.
#[test]
fn an_amount_between_two_bounds_means_the_higher_one() {
    let told = |question: &str| told(question, &[("approval.md", FARES)]);
    let answer = told("purchase for 4000 euro who approves it");
    assert!(answer.contains("harbour master") && !answer.contains("head of the"), "{answer}");
    let answer = told("Who approves a purchase of 20,000 EUR?");
    assert!(answer.contains("council") && !answer.contains("harbour master"), "{answer}");
    let answer = told("Who approves purchases over 1,500 EUR?");
    assert!(answer.contains("harbour master") && answer.contains("council"), "{answer}");
    assert!(!answer.contains("foreman") && !answer.contains("head of"), "{answer}");
    let answer = told("Who approves purchases over 9,000 EUR?");
    assert!(answer.contains("council") && !answer.contains("harbour master"), "{answer}");
    let answer = told("Who approves a purchase of 1,500 EUR?");
    assert!(answer.contains("head of the yard") && !answer.contains("foreman"), "{answer}");
}

/// Goal: all things with a stock of zero are told, and no others.
#[test]
fn everything_that_has_run_out_is_told() {
    let seeds = "seed no: S-1\nname: rye\nstock: 0\nminimum: 3\n\n\
        seed no: S-2\nname: oats\nstock: 12\nminimum: 0\n\n\
        seed no: S-3\nname: peas\nstock: 0\nminimum: 5\n\n\
        seed no: S-4\nname: vetch\nstock: 1\nminimum: 5\n";
    for question in ["which seeds do we have none of", "Which seeds are out of stock?"] {
        let answer = told(question, &[("seeds.csv", seeds)]);
        assert!(answer.contains("S-1") && answer.contains("S-3"), "{question}: {answer}");
        assert!(!answer.contains("S-2") && !answer.contains("S-4"), "{question}: {answer}");
    }
    let answer = told("which seeds are below the minimum", &[("seeds.csv", seeds)]);
    assert!(["S-1", "S-3", "S-4"].iter().all(|one| answer.contains(one)), "{answer}");
    assert!(!answer.contains("S-2"), "{answer}");
}

/// Goal: a row whose name is part of another one's is a side of a comparison, too.
#[test]
fn both_sides_of_a_comparison_are_told() {
    let tours = "| Tour | Hours | Price | Guide |\n|---|---|---|---|\n\
        | Reef | 3 | 40 | Ada |\n| Long Reef | 6 | 75 | Bo |\n| Bay | 2 | 31 | Ada |\n";
    for question in
        ["price difference reef vs long reef tour", "price difference long reef vs reef tour"]
    {
        let answer = told(question, &[("tours.md", tours)]);
        assert!(answer.contains("40") && answer.contains("75"), "{question}: {answer}");
        assert!(!answer.contains("31"), "{question}: {answer}");
    }
}

const MINUTES: &str = "# Minutes, crew meeting, Thu 12.9.24, boat house\n\n\
    Present: Ada Holm (harbour), Bo Tarn (boats), Cy Marsh\n\n\
    **1. Pump** The pump is loud. Decision: it gets a cover.\n\n\
    | action | who | until |\n|---|---|---|\n\
    | order a cover for the pump | Bo | 20 Sept |\n\
    | tell the club about the buoys | Ada | 13.9. |\n\
    | paint the slip | Cy | wk 40 |\n\
    | put the rota to the crew meeting | Bo | Oct |\n\nNext: 10 Oct\n";

/// Goal: the actions of a meeting are all rows of its table, those of a person only that one's.
#[test]
fn all_actions_of_a_meeting_are_told() {
    let told = |question: &str| told(question, &[("minutes-crew-2024-09-12.md", MINUTES)]);
    let answer = told("action items of the september crew meeting");
    for one in ["cover", "buoys", "slip", "rota"] {
        assert!(answer.contains(one), "{one}: {answer}");
    }
    let answer = told("what did bo have to do after the crew meeting");
    assert!(answer.contains("cover") && answer.contains("rota"), "{answer}");
    assert!(!answer.contains("buoys") && !answer.contains("Present"), "{answer}");
    let answer = told("Which actions are about the pump?");
    assert!(answer.contains("cover") && !answer.contains("slip"), "{answer}");
    let answer = told("action items of the may crew meeting in May");
    assert!(!(answer.contains("cover") && answer.contains("slip")), "another month: {answer}");
}

/// Goal: actions in a list are told like those in a table.
#[test]
fn actions_in_a_list_belong_to_people_as_well() {
    let minutes = "# Minutes, crew meeting, 12 September 2024\n\n\
        Present: Ada Holm (harbour), Bo Tarn (boats), Cy Marsh\n\n\
        1. Pump. The pump is loud.\n\n## Actions\n\n\
        - Bo: order a cover for the pump, by 20 Sept\n- Ada tells the club about the buoys\n\
        - paint the slip (Cy, week 40)\n- Bo / Cy: put the rota up\n";
    let told = |question: &str| told(question, &[("minutes-crew-2024-09-12.md", minutes)]);
    let answer = told("action items of the crew meeting of 12 September 2024");
    for one in ["cover", "buoys", "slip", "rota"] {
        assert!(answer.contains(one), "{one}: {answer}");
    }
    for (person, all) in [("bo", ["cover", "rota"]), ("cy", ["slip", "rota"])] {
        let answer = told(&format!("what did {person} have to do after the crew meeting"));
        assert!(all.iter().all(|one| answer.contains(one)), "{person}: {answer}");
        assert!(!answer.contains("buoys") && !answer.contains("Present"), "{person}: {answer}");
    }
    let answer = told("what does ada have to do after the crew meeting");
    assert!(answer.contains("buoys") && !answer.contains("cover"), "{answer}");
}

/// Goal: a head without a subject line is a head of a mail all the same.
#[test]
fn the_head_of_a_mail_answers_nothing_but_who_sent_it() {
    let mail = "From: \"Ada Holm\" <ada@reef.example>\nTo: claims@bay.example\n\
        Date: Tue, 22 Apr 2025 09:14:00 +0200\n\n\
        Dear Bo,\n\nthe claim for the reef sail has these limits: the reply is due in 3 days, \
        the repair in 10 days.\n";
    let answer = told("limits of the reef sail claim of ada holm", &[("claim.eml", mail)]);
    assert!(!answer.contains("From:") && answer.contains("3 days"), "{answer}");
    let answer = told("who claims a new reef sail", &[("claim.eml", mail)]);
    assert!(answer.contains("Ada Holm"), "{answer}");
}

/// Goal: a list whose items all state a time answers a question for limits without their name.
#[test]
fn a_list_of_days_is_one_of_deadlines() {
    let mail = "From: \"Ada Holm\" <ada@reef.example>\nTo: claims@bay.example\n\
        Subject: Claim Q-71 / sail, torn\nDate: Tue, 22 Apr 2025 09:14:00 +0200\n\nDear Bo,\n\n\
        the sail of the yawl tore on the first day. It has two tears.\n\n\
        According to our contract we expect:\n- a new sail on loan: within 24 hours\n\
        - the first report: 3 working days\n- the repair: 10 working days\n\n\
        The rig was not hurt.\n\nAda\n\n-----\n> From: Bo Tarn\n> Sent: 22 April 2025 11:40\n\
        > To: Ada Holm\n>\n> Dear Ada, received, the sail of the claim is here.\n";
    let answer = told("deadlines reef wants in the torn sail claim", &[("claim.eml", mail)]);
    for one in ["24 hours", "3 working days", "10 working days"] {
        assert!(answer.contains(one), "{one}: {answer}");
    }
}

/// Goal: the row of the range with a number goes before a row that counts as many.
#[test]
fn a_range_with_the_number_is_as_good_as_the_number() {
    let rates = "## Cabins 2027\n\nRates 2027 a night, EUR\n\n\
        Type: Bay\nCabins: 20\nLow: 90\nHigh: 120\n\nType: Reef\nCabins: 18\nLow: 110\n\
        High: 150\n\nType: Cliff\nCabins: 4\nLow: 160\nHigh: 210\n\n\
        Group discount\n\nCabins: 8\u{2013}14\nLow: 7 %\nHigh: 2 %\n\n\
        Cabins: 15\u{2013}24\nLow: 11 %\nHigh: 4 %\n";
    let question = "group of 18 cabins in low season 2027, how much discount";
    let answer = told(question, &[("rates.xlsx", rates)]);
    assert!(answer.contains("11 %") && !answer.contains("7 %"), "{answer}");
}

/// Goal: a column whose name is an open bound belongs to its record like any other.
#[test]
fn the_price_for_an_amount_is_in_the_row_of_the_thing() {
    let one = |art: &str, low: &str, high: &str| {
        format!(
            "art: {art}\nrope: kernmantle\n< 1 t: {low}\n1 - 5 t: {high}\n\
             > 5 t: on request\npack: reel\n"
        )
    };
    let list = [one("K-104", "8.5", "7.9"), one("K-107", "9.5", "8.2"), one("K-108", "4.8", "3.1")];
    let list = format!("Prices, EUR per kg\n\n{}", list.join("\n"));
    let question = "what do we pay per kg K-107 if we order 2 tons";
    let answer = told(question, &[("rope.xlsx", &list)]);
    assert!(answer.contains("9.5") && answer.contains("1 - 5 t: 8.2"), "{answer}");
}

/// Goal: an item that begins with a verb belongs to nobody.
#[test]
fn the_verb_of_an_action_is_no_name() {
    let text = "# Vat care\n\n## Tasks\n\n- Clean the vat\n- Oil the hinges\n- Mend wires\n\n\
        ## Cleaning\n\nTo clean the vat, let it cool for an hour, and brush it from the back.\n";
    let answer = told("what do I have to do to clean the vat", &[("dairy.md", text)]);
    assert!(answer.contains("brush it"), "{answer}");
}

/// The row that a question names beside a superlative is a limit, not one of several compared.
#[test]
fn a_named_limit_is_told() {
    let crane = "# Crane\n\n## Limits\n\n| | K3 | K5 |\n|---|---|---|\n| load in all | 900 kg | \
        750 kg |\n| single crate | 200 kg | 150 kg |\n| speed | 24 km/h | 20 km/h |\n";
    let answer = told("Heaviest single crate on the K5?", &[("crane.md", crane)]);
    assert!(answer.contains("150 kg") && !answer.contains("km/h"), "{answer}");
}
