//! Rows that meet the conditions of a question, and synonyms for its words.

use super::*;

const PUMPS: &str = "# Pumps of the works\n\n| Pump | Site | Bought | Lift (m) | State |\n\
    |---|---|---|---|---|\n\
    | P1 | North well | 2012-04-02 | 14 | in use |\n\
    | P2 | North well | 2019-06-11 | 31 | broken |\n\
    | P3 | Harbour | 2021-09-30 | 22 | in use |\n\
    | P4 | Harbour | 2023-01-15 | 40 | in use |\n";

fn told(question: &str) -> String {
    extracted(question, &titled(&[("pumps.md", PUMPS)])).text
}

/// The pumps that an answer contains.
fn pumps(question: &str) -> Vec<&'static str> {
    let answer = told(question);
    ["P1", "P2", "P3", "P4"].into_iter().filter(|name| answer.contains(name)).collect()
}

#[test]
fn rows_are_selected_by_bounds() {
    assert_eq!(pumps("Which pumps lift more than 22 m?"), ["P2", "P4"]);
    assert_eq!(pumps("Which pumps lift at least 22 m?"), ["P2", "P3", "P4"]);
    assert_eq!(pumps("Which pumps were bought before 2020?"), ["P1", "P2"]);
    assert_eq!(pumps("Which pumps at the Harbour were bought after 2021?"), ["P4"]);
    assert_eq!(pumps("Which pump has the second highest lift?"), ["P2"]);
    assert_eq!(pumps("Which pumps lift between 20 and 35 m?"), ["P2", "P3"]);
    assert_eq!(pumps("Which pumps lift 31 m or more?"), ["P2", "P4"]);
    assert_eq!(told("Which pumps lift more than 50 m?"), ABSTENTION, "none does");
}

/// A superlative finds its column by name or unit; without such a column there is no answer.
#[test]
fn the_extreme_of_a_quality_is_told() {
    let ropes = "code,rope,maker,length_m,diameter_mm,weight,price_eur\n";
    let rows = [
        ["R1", "Gecko", "Lumo", "60", "9.8", "900 g", "149.00"],
        ["R2", "Anvil", "Orrin", "40", "10.2", "1.2 kg", "98.00"],
        ["R3", "Spider", "Tarn", "80", "9.2", "0.8 kg", "229.00"],
    ];
    let names: Vec<&str> = ropes.trim().split(',').collect();
    let record = |row: &[&str; 7]| {
        names.iter().zip(row).map(|(name, value)| format!("{name}: {value}\n")).collect::<String>()
    };
    let list = rows.iter().map(record).collect::<Vec<_>>().join("\n");
    let told = |question: &str| {
        let answer = extracted(question, &titled(&[("ropes.csv", &list)])).text;
        let named = |name: &&str| answer.contains(*name);
        ["Gecko", "Anvil", "Spider"].into_iter().filter(named).collect::<Vec<_>>()
    };
    assert_eq!(told("Which rope is the longest?"), ["Spider"]);
    assert_eq!(told("Which rope is the thinnest?"), ["Spider"]);
    assert_eq!(told("Which rope is the heaviest?"), ["Anvil"]);
    assert_eq!(told("Which rope is the cheapest?"), ["Anvil"]);
    assert_eq!(told("Which rope is the loudest?"), [""; 0], "no column is of it");
    assert_eq!(told("Which is the cheapest rope over 60 m?"), ["Spider"], "one row is left");
    assert_eq!(told("Which ropes are longer than 50 m?"), ["Gecko", "Spider"]);
    assert_eq!(told("Which ropes weigh more than 850 g?"), ["Gecko", "Anvil"]);
    assert_eq!(told("Which ropes are not from Lumo?"), ["Anvil", "Spider"]);
    assert_eq!(told("Which ropes not from Tarn are longer than 50 m?"), ["Gecko"]);
}

/// An extreme is sought only among rows whose first value contains the kind asked for.
#[test]
fn the_extreme_is_that_of_the_kind_that_is_asked_for() {
    let list = "# Price list\n\n| item | weight | price |\n|---|---|---|\n\
        | harness A | 420 g | 89 EUR |\n| harness B | 480 g | 120 EUR |\n\
        | harness C | 650 g | 99 EUR |\n| rope | 3 kg | 140 EUR |\n";
    let told = |question: &str| {
        let answer = extracted(question, &titled(&[("prices.md", list)])).text;
        let named = |name: &&str| answer.contains(*name);
        ["harness A", "harness B", "harness C", "rope"]
            .into_iter()
            .filter(named)
            .collect::<Vec<_>>()
    };
    assert_eq!(told("Which harness is the most expensive?"), ["harness B"]);
    assert_eq!(told("Which harness is the lightest?"), ["harness A"]);
    assert_eq!(told("most expensive harness over 500 g"), ["harness C"]);
    assert_eq!(told("What is the most expensive harness over 450 g?"), ["harness B"]);
    assert_eq!(told("Which harness weighs over 500 g?"), ["harness C"]);
    assert_eq!(told("Which is the most expensive item?"), ["rope"]);
}

/// Totals and means cover the rows that the question means, which are shown.
#[test]
fn columns_are_added_up() {
    let answer = told("What is the total lift of the pumps at the Harbour?");
    assert!(answer.starts_with("Total of Lift (m): 62 (2 rows). Pump: P3;"), "{answer}");
    assert!(answer.contains("P4") && !answer.contains("P1"), "{answer}");
    let answer = told("What is the average lift of the pumps?");
    assert!(answer.starts_with("Average of Lift (m): 26.75 (4 rows)."), "{answer}");
    let answer = told("What is the mean lift of the pumps?");
    assert!(answer.starts_with("Average of Lift (m): 26.75 (4 rows)."), "{answer}");
    let many: Vec<String> = (1..=30).map(|at| format!("Lane {at},{at}.50")).collect();
    let many = records("Lane,Rent", &many.iter().map(String::as_str).collect::<Vec<_>>());
    let question = "What is the average rent of the lanes?";
    let answer = extracted(question, &titled(&[("lanes.csv", &many)])).text;
    assert!(answer.starts_with("Average of Rent: 16.00 (30 rows)."), "{answer}");
    assert_eq!(answer.matches("Rent: ").count(), 1 + 20, "{answer}");
    let answer = told("How many pumps are in the list?");
    assert!(answer.starts_with("4 of 4: "), "{answer}");
}

/// Counted rows are shown with their number; things that are not in the rows are not counted.
#[test]
fn rows_are_counted_and_shown() {
    let answer = told("How many pumps are in use?");
    assert!(answer.starts_with("3 of 4: ") && !answer.contains("P2"), "{answer}");
    let answer = told("How many pumps of the works are at the Harbour?");
    assert!(answer.starts_with("2 of 4: "), "{answer}");
    assert_eq!(told("How many engineers work on Sundays?"), ABSTENTION);
}

/// A table that was read only in part is not counted.
#[test]
fn what_is_read_in_part_is_not_counted() {
    let mut chunks = titled(&[("pumps.md", PUMPS), ("pumps.md", "The list goes on.")]);
    chunks[1].place.document_start = 5000;
    let answer = extracted("How many pumps are in use?", &chunks).text;
    assert!(!answer.starts_with("3 of"), "{answer}");
}

#[test]
fn the_largest_of_a_part_is_told_as_such() {
    let mut chunks = titled(&[("pumps.md", PUMPS), ("pumps.md", "The list goes on.")]);
    let asked = "Which pump has the highest lift?";
    assert!(!told(asked).contains("that were read"));
    chunks[1].place.document_start = 5000;
    let answer = extracted(asked, &chunks).text;
    assert!(answer.starts_with("Of 4 rows that were read:"), "{answer}");
}

/// A missing word may be replaced by a synonym, but a missing attribute may not.
#[test]
fn other_words_for_the_same_answer() {
    let rules = "# Rules of the house\n\nWhen a washing machine is out of order, leave a note.\n\n\
        Cats and birds are permitted.\n";
    let told = |question: &str| extracted(question, &titled(&[("rules.md", rules)])).text;
    assert!(told("What if the washing machine is faulty?").contains("out of order"));
    let people = "# People\n\n| Name | Job | Room |\n|---|---|---|\n| Ada Tarn | porter | 12 |\n\
        | Bo Reed | cook | 4 |\n";
    let answer = extracted("What is the salary of Ada Tarn?", &titled(&[("people.md", people)]));
    assert_eq!(answer.text, ABSTENTION);
}

/// Rows of a file that is read as records; empty values are left out.
fn records(names: &str, rows: &[&str]) -> String {
    let record = |row: &&str| {
        let pairs = names.split(',').zip(row.split(',')).filter(|(_, value)| !value.is_empty());
        pairs.map(|(name, value)| format!("{name}: {value}\n")).collect::<String>()
    };
    rows.iter().map(record).collect::<Vec<_>>().join("\n")
}

#[test]
fn what_has_no_end_is_open_and_all_that_are_meant_are_counted() {
    let list = records(
        "defect,date,class,found_by,closed",
        &[
            "D-1 pump hot,2025-01-09,major,customer,2025-01-16",
            "D-2 belt torn,2025-02-04,minor,staff,2025-02-27",
            "D-3 fuse blown,2025-03-18,major,customer,",
            "D-4 door stuck,2025-04-18,minor,customer,",
        ],
    );
    let told = |question: &str| extracted(question, &titled(&[("Defects 2025", &list)])).text;
    let named = |question: &str| {
        let answer = told(question);
        ["D-1", "D-2", "D-3", "D-4"].into_iter().filter(|name| answer.contains(name)).collect()
    };
    let open: Vec<&str> = named("Which defects are still open?");
    assert_eq!(open, ["D-3", "D-4"]);
    let answer = told("How many defects are minor?");
    assert!(answer.starts_with("2 of 4:") && !answer.contains("D-1"), "{answer}");
    let answer = told("How many of the 2025 defects were found by a customer?");
    assert!(answer.starts_with("3 of 4:") && !answer.contains("D-2"), "{answer}");
}

#[test]
fn all_who_are_meant_are_told_and_those_that_are_excepted_not() {
    let list = records(
        "person,method,authorised_since",
        &[
            "Ada Solheim,tensile,2023-02-14", "Bo Linde,tensile,2024-06-03",
            "Cy Marsh,tensile,2025-05-12", "Di Holm,tensile,2025-05-13",
            "Ed Fenn,hardness,2025-05-12", "Flo Gray,hardness,2025-05-12",
        ],
    );
    let named = |question: &str| {
        let answer = extracted(question, &titled(&[("Training matrix", &list)])).text;
        let names = ["Ada", "Bo", "Cy", "Di", "Ed", "Flo"];
        names.into_iter().filter(|name| answer.contains(name)).collect()
    };
    let all: Vec<&str> = named("Who is authorised for tensile tests?");
    assert_eq!(all, ["Ada", "Bo", "Cy", "Di"]);
    let others: Vec<&str> = named("Who besides Ada is authorised for tensile?");
    assert_eq!(others, ["Bo", "Cy", "Di"]);
    let other: Vec<&str> = named("Who besides Ed is authorised for hardness?");
    assert_eq!(other, ["Flo"]);
}

/// The row with the code of the question wins over a closer sentence without it.
#[test]
fn a_code_that_is_named_is_met() {
    let codes = "# Press\n\n| Code | Meaning | What to do |\n|---|---|---|\n\
        | E16 | oil low | top up the oil |\n| E30 | grip pressure | pump up to 120 bar |\n";
    let help = "What do I do when the press shows nothing? Switch the press off and on again.";
    let chunks = titled(&[("help.md", help), ("codes.md", codes)]);
    let answer = extracted("The press shows E30, what do I do?", &chunks).text;
    assert!(answer.contains("120 bar") && !answer.contains("oil"), "{answer}");
}

/// A number in a name is not a value.
#[test]
fn names_with_numbers_are_no_measures() {
    let list = records(
        "instrument,bought,price_eur",
        &["Balance 2,2015,900", "Press 600,1998,61200", "Oven 3,2009,2700"],
    );
    let told = |question: &str| extracted(question, &titled(&[("Register", &list)])).text;
    let answer = told("What is the oldest instrument on the register?");
    assert!(answer.contains("Press 600") && !answer.contains("Balance"), "{answer}");
}

/// Aligned lines in a mail are the list that the sentences before them announce.
#[test]
fn lines_of_columns_are_the_list_that_is_asked_for() {
    let mail = "Dear all,\n\nthe company rates from 1 March 2026. All per night, breakfast \
        included:\n\n  Harbour Works     Classic    104 EUR\n  Tallis Law        Loft       \
        168 EUR\n  Orrin Timber      Forest     109 EUR\n\nBrightwater has not signed again.\n";
    let chunks = titled(&[("Company rates 2026", mail)]);
    let answer = extracted("Which companies have a rate from March 2026 on?", &chunks).text;
    let all =
        ["Harbour Works", "Tallis Law", "Orrin Timber"].iter().all(|one| answer.contains(one));
    assert!(all && !answer.contains("Brightwater"), "{answer}");
}

/// Columns that say yes or no, are closed on a day, or lack a value distinguish rows.
#[test]
fn rows_are_selected_by_what_their_columns_say() {
    let rooms = records(
        "Room,Floor,Accessible,Booked until",
        &[
            "Alder,1,yes,2026-03-01", "Birch,1,no,", "Cedar,2,Yes (ramp),2026-05-12",
            "Dogwood,2,no,n/a", "Elm,3,yes,tbd",
        ],
    );
    let told = |question: &str| extracted(question, &titled(&[("rooms.csv", &rooms)])).text;
    let named = |question: &str| -> Vec<&str> {
        let answer = told(question);
        let names = ["Alder", "Birch", "Cedar", "Dogwood", "Elm"];
        names.into_iter().filter(|name| answer.contains(name)).collect()
    };
    assert!(told("How many rooms are accessible?").starts_with("3 of 5: "));
    assert!(told("How many rooms are not accessible?").starts_with("2 of 5: "));
    assert_eq!(named("How many rooms are accessible?"), ["Alder", "Cedar", "Elm"]);
    assert_eq!(named("Which rooms are accessible?"), ["Alder", "Cedar", "Elm"]);
    assert_eq!(named("Which rooms are not accessible?"), ["Birch", "Dogwood"]);
    assert_eq!(named("Which rooms on floor 2 are accessible?"), ["Cedar"]);
    assert_eq!(named("Which rooms are not booked yet?"), ["Birch", "Dogwood", "Elm"]);
    assert_eq!(named("Which accessible rooms are not booked yet?"), ["Elm"]);
    assert_eq!(named("Which room is booked last?"), ["Cedar"], "those without a day are passed");
    let shops = "# Shops in the centre\n\n| Shop | Monday | Sunday |\n|---|---|---|\n\
        | Baker Holm | 7-18 | closed |\n| Florist Ivy | closed | 10-12 |\n\
        | Books & Co | 9-18 | closed |\n";
    let told = |question: &str| extracted(question, &titled(&[("shops.md", shops)])).text;
    for question in ["Which shops are closed on Sunday?", "Which shops are not open on Sunday?"] {
        let answer = told(question);
        assert!(answer.contains("Baker") && answer.contains("Books"), "{answer}");
        assert!(!answer.contains("Florist"), "{answer}");
    }
    assert!(told("How many shops are closed on Sunday?").starts_with("2 of 3: "));
}

/// Bounds may be in words, on times of day, or on the amounts of orders.
#[test]
fn rows_are_selected_by_bounds_in_words() {
    let orders = records(
        "Order,Customer,Date,Amount,Pieces",
        &[
            "O-1,Harbour Works,2024-03-02,£480.50,700",
            "O-2,Tallis Law,2024-04-11,£1320.00,20",
            "O-3,Orrin Timber,2024-06-19,£2720.00,650",
            "O-4,Reed & Son,2024-02-01,£510.00,3",
        ],
    );
    let courses = records(
        "Course,Duration,Guests,Starts",
        &["C-1,45 min,8,18:30", "C-2,2 h,2,20:15", "C-3,50 min,20,8:45", "C-4,3 h,1,21:00"],
    );
    let named = |question: &str| -> Vec<&str> {
        let texts = titled(&[("orders.csv", &orders), ("courses.csv", &courses)]);
        let answer = extracted(question, &texts).text;
        let names = ["O-1", "O-2", "O-3", "O-4", "C-1", "C-2", "C-3", "C-4"];
        names.into_iter().filter(|name| answer.contains(name)).collect()
    };
    assert_eq!(named("Which orders over 500 before May 2024?"), ["O-2", "O-4"]);
    assert_eq!(named("Which orders are over 500?"), ["O-2", "O-3", "O-4"]);
    assert_eq!(named("Which courses start after 8 pm?"), ["C-2", "C-4"]);
    assert_eq!(named("Which courses start before 9:30?"), ["C-3"]);
    assert_eq!(named("Which courses have more than two guests?"), ["C-1", "C-3"]);
}

/// A sentence that lists the offers answers which one is the cheapest.
#[test]
fn offers_in_a_sentence_are_compared() {
    let minutes = "# Round\n\nThere were 5,140 visitors.\n\nThree offers for the roof of the hall: \
        Ada 148,000 EUR, Bo 131,500 EUR, Cy 163,200 EUR. Decision: Ada.\n";
    let stock = "| plant | price EUR | location |\n|---|---|---|\n| Olive | 68.00 | hall |\n\
        | Palm | 90.00 | hall |\n";
    let both = [("minutes.md", minutes), ("stock.md", stock)];
    let answer = super::told("Which offer for the roof of the hall was the cheapest?", &both);
    assert!(answer.contains("131,500"), "{answer}");
}

/// A state named in the question matches rows in that state, but not rows in a state that may or
/// may not be finished.
#[test]
fn the_state_that_is_named_is_meant() {
    let repairs = records(
        "repair,bicycle,state,brought",
        &[
            "F-1,Tarn 7,collected,2026-02-01", "F-2,Lumo,Open,2026-02-03",
            "F-3,Orrin,collected,2026-02-04", "F-4,Gecko,open (parts),2026-02-09",
            "F-5,Reed,scrapped,2026-02-11",
        ],
    );
    let told = |question: &str| extracted(question, &titled(&[("repairs.csv", &repairs)])).text;
    let named = |question: &str| -> Vec<&str> {
        let answer = told(question);
        ["F-1", "F-2", "F-3", "F-4", "F-5"].into_iter().filter(|it| answer.contains(it)).collect()
    };
    assert!(told("How many repairs are open?").starts_with("2 of 5: "));
    for question in [
        "How many repairs are open?", "Which repairs are still open?", "Which repairs are open?",
        "repairs with state open",
    ] {
        assert_eq!(named(question), ["F-2", "F-4"], "{question}");
    }
    assert_eq!(named("Which repairs are unfinished?"), ["F-2", "F-4", "F-5"]);
}

/// A question with an unknown code or number is not answered by rows with others.
#[test]
fn what_has_another_number_is_no_answer() {
    let loans = records(
        "loan_no,reader,due,state",
        &["L-4001,Ada Tarn,2026-03-02,lent", "L-4002,Bo Reed,2026-03-09,back", "L-4003,Cy,-,lent"],
    );
    let rules = "# Loans\n\nA loan lasts four weeks. The state of a loan is shown at the desk.\n";
    let told = |question: &str| super::told(question, &[("loans.csv", &loans), ("r.md", rules)]);
    assert!(told("What is the state of loan L-4002?").contains("Bo Reed"));
    for question in [
        "What is the state of loan L-4009?", "When is loan L-4009 due?",
        "Who has loan number 4009?", "what is the status of L-4009",
    ] {
        assert_eq!(told(question), ABSTENTION, "{question}");
    }
}

/// Tables are recognised by their content, whatever a question calls their rows.
#[test]
fn the_table_of_the_kind_is_told() {
    let tents = records(
        "Code,Model,Weight (kg),Price (EUR),In stock,Max load (kg)",
        &[
            "T-1,Alder 2,2.4,290,yes,40", "T-2,Birch 3,3.9,410,no,70",
            "T-3,Cedar 4,5.6,690,yes,160", "T-4,Elm solo,1.3,340,yes,30",
        ],
    );
    let lent = records(
        "loan,customer,tent,days,total_eur",
        &["L-1,Ada,Alder 2,3,45", "L-2,Bo,Cedar 4,7,140", "L-3,Cy,Birch 3,2,38"],
    );
    let fees = "# Prices 2026\n\n| Service | Price |\n|---|---|\n| Repair, per hour | 48 EUR |\n\
        | Rental, solo, per day | 12 EUR |\n| Cleaning | 25 EUR |\n";
    let minutes = "# Meeting\n\nAgenda:\n\n- Tents: two were torn in the storm\n\
        - Shelters: three were torn\n- Party on 3 May\n";
    let texts = [
        ("products.csv", tents.as_str()),
        ("lent.csv", &lent),
        ("prices-2026.md", fees),
        ("minutes.md", minutes),
    ];
    let named = |question: &str| -> Vec<&str> {
        let answer = super::told(question, &texts);
        let names = ["T-1", "T-2", "T-3", "T-4", "L-1", "L-2", "L-3", "Service", "Party"];
        names.into_iter().filter(|name| answer.contains(name)).collect()
    };
    assert_eq!(named("What's the most expensive tent?"), ["T-3"]);
    assert_eq!(named("which tent is the lightest?"), ["T-4"]);
    assert_eq!(named("what is the heaviest shelter"), ["T-3"], "a word of other texts");
    assert_eq!(named("list all tents under 400 euro"), ["T-1", "T-4"]);
    assert_eq!(named("Which tents carry more than 50 kg?"), ["T-2", "T-3"]);
    assert_eq!(named("which tents are in stock?"), ["T-1", "T-3", "T-4"]);
    assert_eq!(named("which shelters are in stock?"), ["T-1", "T-3", "T-4"]);
    let lent = super::told("What's the most expensive tent?", &[("lent.csv", &lent)]);
    assert_eq!(lent, ABSTENTION, "what was paid is no price");
    let done = super::told("list all tents under 400 euro", &[("prices-2026.md", fees)]);
    assert_eq!(done, ABSTENTION, "deeds are no tents");
    assert_eq!(named("How much is the solo tent?"), ["T-4"], "and not its rental");
    assert_eq!(named("How much is the rental of a solo tent per day?"), ["Service"]);
}

/// Sums, extremes and counts of things with amounts use the column of amounts.
#[test]
fn amounts_of_things_are_computed() {
    let bills = records(
        "invoice_no,customer,date,amount_eur",
        &[
            "1001,Tallis Law,2026-01-12,400", "1002,Orrin,2026-02-03,250",
            "1003,Tallis Law,2026-03-01,90",
        ],
    );
    let falls = "# Accidents 2025\n\n| Date | Place | Days lost |\n|---|---|---|\n\
        | 2025-02-11 | kitchen | 2 |\n| 2025-06-30 | yard | 1 |\n| 2025-09-19 | yard | 5 |\n";
    let staff = records(
        "Name,Team,Start",
        &["Ada Tarn,kitchen,2019-05-06", "Bo Reed,yard,2011-02-15", "Cy Holm,yard,2024-11-04"],
    );
    let texts = [("invoices.csv", bills.as_str()), ("accidents.md", falls), ("staff.csv", &staff)];
    let told = |question: &str| super::told(question, &texts);
    let begins = |question: &str, beginning: &str| {
        let answer = told(question);
        assert!(answer.starts_with(beginning), "{question}: {answer}");
    };
    begins("total invoice value", "Total of amount_eur: 740 (3 rows).");
    begins("What is the sum of the invoices of Tallis Law?", "Total of amount_eur: 490 (2 rows).");
    begins("Which invoice was the biggest?", "invoice_no: 1001;");
    begins("How many accidents in 2025?", "3 of 3: ");
    begins("Who has been here the longest?", "Name: Bo Reed;");
    begins("Who joined most recently?", "Name: Cy Holm;");
    assert!(!told("How many invoices in total?").contains("Total of"));
}

/// Rows beyond a bound are not added to closer passages.
#[test]
fn rows_beyond_a_bound_are_no_part_of_an_answer() {
    let orders = records(
        "order_no,customer,date",
        &["O-501,Ada,2026-01-12", "O-502,Bo,2026-01-19", "O-503,Cy,2026-04-01"],
    );
    let log: String =
        (1..40).map(|at| format!("Entry {at}: orders before orders, rope.\n")).collect();
    let texts = [("orders.csv", orders.as_str()), ("log.txt", &log)];
    let answer = super::told("which orders are from before February 2026?", &texts);
    assert!(!answer.contains("O-503"), "{answer}");
    let falls = "# Accidents\n\n| Date | Place |\n|---|---|\n| 2025-02-11 | kitchen |\n\
        | 2025-06-30 | yard |\n";
    let texts = [("falls.md", falls), ("orders.csv", orders.as_str())];
    let answer = super::told("which orders were placed before February 2026?", &texts);
    assert!(answer.contains("O-501") && answer.contains("O-502"), "{answer}");
    assert!(!answer.contains("O-503") && !answer.contains("kitchen"), "{answer}");
}

/// Flow mappings in settings are rows.
#[test]
fn mappings_in_one_line_are_rows() {
    let yards = "updated: 2026-02-01\nyards:\n\
        \x20 North: {sat: \"09:00-12:00\", sun: closed, cranes: 2}\n\
        \x20 Mole: {sat: closed, sun: \"10:00-14:00\", cranes: 1}   # only in summer\n\
        \x20 Lock: {sat: \"09:00-12:00\", sun: \"09:00-11:00\", cranes: 4}\nphone: 0555 20\n";
    let chunks = titled(&[("yards.yaml", yards)]);
    let answer = extracted("Which yards are open on Sundays?", &chunks).text;
    assert!(answer.contains("yards: Mole; sat: closed") && answer.contains("Lock"), "{answer}");
    assert!(answer.contains("only in summer") && !answer.contains("North"), "{answer}");
    let answer = extracted("Which yard has the most cranes?", &chunks).text;
    assert!(answer.contains("Lock") && !answer.contains("Mole"), "{answer}");
    let parts = "north:\n  hours: {sat: \"09:00-12:00\"}\n  phone: 20\n\
        mole:\n  hours: {sat: closed}\n  phone: 21\n";
    let chunks = titled(&[("parts.yaml", parts)]);
    let answer = extracted("What are the hours of the mole on Saturdays?", &chunks).text;
    assert!(answer.starts_with("mole: hours: {sat: closed}"), "{answer}");
}

/// Text below the heading of another version does not answer for the version asked for.
#[test]
fn another_version_is_another_thing() {
    let notes = "# Notes on the chart plotter\n\n## 4.2 (3 May 2025)\n\n- New: night colours.\n\
        - Fixed: the tide was an hour late.\n\n## 4.1 (6 March 2025)\n\n- New: lake charts.\n\
        - New in this version: alarm of the anchor.\n";
    let chunks = titled(&[("notes.md", notes)]);
    let answer = extracted("What was new in version 4.2?", &chunks).text;
    assert!(answer.contains("night colours") && !answer.contains("lake"), "{answer}");
    let answer = extracted("What was new in version 4.1?", &chunks).text;
    assert!(answer.contains("lake") && !answer.contains("night"), "{answer}");
}

/// "The most hours" means a row of the table with hours, however similar another sentence is.
#[test]
fn an_extreme_of_a_column_that_is_named_is_told() {
    let dives = "# Dives in the first half\n\n\
        | Dive | Place | Divers | Hours |\n|---|---|---|---|\n\
        | D1 | Weir | 2 | 3.5 |\n| D2 | Mole | 4 | 1.0 |\n| D3 | Lock | 3 | 6.5 |\n";
    let rules = "# Diving rules\n\nEach dive of the first half hour needs two hours of rest.\n";
    let texts = [("rules.md", rules), ("dives.md", dives)];
    let answer = extracted("Which dive of the first half took the most hours?", &titled(&texts));
    assert!(answer.text.contains("D3") && !answer.text.contains("D1"), "{}", answer.text);
}

/// Unfinished rows are those of what the question names; finished ones of it are no reason to tell
/// others.
#[test]
fn unfinished_rows_are_those_of_what_is_named() {
    let list = records(
        "repair,boat,owner,state,note",
        &[
            "R-1,Heron,Orrin Sails,closed,new mast",
            "R-2,Teal,Tarn Ferry,open,waits for paint",
            "R-3,Heron,Orrin Sails,open,rope for Tarn Ferry",
            "R-4,Wigeon,Lumo,waiting,new keel",
            "R-5,Coot,Marsh,closed,leak",
        ],
    );
    let told = |question: &str| {
        let answer = super::told(question, &[("repairs.csv", &list)]);
        let found = ["R-1", "R-2", "R-3", "R-4", "R-5"].into_iter();
        found.filter(|name| answer.contains(name)).collect::<Vec<_>>()
    };
    assert_eq!(told("Which repairs of Orrin Sails are still open?"), ["R-3"]);
    assert_eq!(told("which repairs of Lumo are still open"), ["R-4"]);
    assert_eq!(told("Which repairs of Marsh are still open?"), [""; 0], "all are closed");
    assert_eq!(told("Which repairs are still open?"), ["R-2", "R-3", "R-4"]);
    let list = records(
        "ticket,device,state",
        &["T-1,printer,closed", "T-2,printer in the hall,open", "T-3,scanner,open"],
    );
    let answer = super::told("Which printer tickets are still open?", &[("tickets.csv", &list)]);
    assert!(answer.contains("T-2") && !answer.contains("T-1"), "{answer}");
    assert!(!answer.contains("T-3"), "{answer}");
}

/// A number that falls into a column identifies no row that has it as a value.
#[test]
fn a_number_within_the_name_of_a_column_is_no_key() {
    let list = "# Hall hire\n\n| Part | Up to 40 guests | 41 to 90 guests | Over 90 guests |\n\
        |---|---|---|---|\n| Cleaning (EUR) | 60 | 60 | 110 |\n| Deposit (EUR) | 90 | 180 | 300 |\n\
        | Tables | 8 | 18 | 30 |\n";
    let answer = super::told("How high is the deposit for 60 guests?", &[("hire.md", list)]);
    assert!(answer.starts_with("Part: Deposit") && !answer.contains("Cleaning"), "{answer}");
    let list = "# Rooms\n\n| Room | Guests | Price |\n|---|---|---|\n| Oak | 40 | 90 |\n\
        | Elm | 60 | 120 |\n| Ash | 90 | 150 |\n";
    let answer = super::told("Which room is for 60 guests?", &[("rooms.md", list)]);
    assert!(answer.starts_with("Room: Elm;") && !answer.contains("Oak"), "{answer}");
}

/// A number behind the name of a column is looked for in that column, not in dates.
#[test]
fn a_number_is_that_of_the_column_before_it() {
    let list = records(
        "Berth,From,To,Boat",
        &[
            "41,2027-05-30,2027-06-30,Heron", "42,2027-04-14,2027-05-20,Teal",
            "43,2027-06-01,2027-06-14,Wigeon",
        ],
    );
    let mut list = titled(&[("berths.csv", &list)]);
    list[0].parts.cosine = Some(0.3);
    let told = |question: &str| extracted(question, &list).text;
    assert!(told("Which boat lies in berth 42?").contains("Teal"));
    assert!(told("Which boats lie in berths 42 and 43?").contains("Wigeon"));
    for question in ["Which boat lies in berth 30?", "Which boat lies in berth 14?"] {
        assert_eq!(told(question), ABSTENTION);
    }
}

/// A number behind the name of a column is no number of a row if it is a year, or if the column
/// counts things.
#[test]
fn a_year_or_a_count_behind_a_column_is_no_number_of_a_row() {
    use crate::passages::candidates::read;
    use crate::question::wish::Question;
    use crate::rows::keys::has_other_number;
    let list = "# Budget 2026\n\n| Department | Budget |\n|---|---|\n| Marketing | 40000 |\n\
        | Sales | 55000 |\n";
    let answer = super::told("What is the budget 2026 for marketing?", &[("budget.md", list)]);
    assert!(answer.starts_with("Department: Marketing; Budget: 40000 [1]"), "{answer}");
    let chunks = [chunk("list", 0, list, 0.6)];
    let reading = read(&RequestContext::default(), &[&chunks[0]], (1, 1), |_| true).unwrap();
    let mut row = reading.candidates.into_iter().find(|one| one.cells.len() > 1).unwrap();
    let mut is_other = |question: &str, name: &str, value: &str| {
        row.cells[1].name = name.to_owned();
        row.cells[1].value = value.to_owned();
        has_other_number(&Question::new(question), &row)
    };
    assert!(!is_other("Which rooms seat 40 people?", "Seats", "50"));
    assert!(is_other("Who sails in week 30?", "Week", "31"));
    assert!(is_other("Who won in the year 2024?", "Year", "2023"));
    assert!(!is_other("Who sails in the winter?", "Week", "31"));
}

const FAULTS: &str = "# Faults of the kiln\n\nThe kiln shows faults on its display.\n\n\
    | Code | Meaning | Remedy |\n|---|---|---|\n\
    | K1 | door open | close the door |\n\
    | K2 | probe broken | call the potter |\n\
    | K7 | cooling down | nothing; the kiln opens by itself when it shows green |\n";

/// A row that is identified by a code or an owner stands alone.
#[test]
fn a_row_that_is_identified_is_told_without_its_neighbours() {
    let told = |question: &str| super::told(question, &[("kiln.md", FAULTS)]);
    let answer = told("What does the kiln mean by K2?");
    assert!(answer.contains("K2") && !answer.contains("K7"), "{answer}");
    let answer = told("What is the remedy for K1 and what is the one for K7?");
    assert!(answer.contains("K1") && answer.contains("K7"), "{answer}");
    let staff = records(
        "Name,Role,Extension",
        &["Ada Holm,potter,4711", "Bo Tarn,glazer not on an extension,4712", "Cy Marsh,clerk,4713"],
    );
    let answer = super::told("Ada's extension?", &[("staff.csv", &staff)]);
    assert!(answer.contains("4711") && !answer.contains("Bo"), "{answer}");
    let answer = super::told("the extensions of Ada Holm and Bo Tarn?", &[("staff.csv", &staff)]);
    assert!(answer.contains("4711") && answer.contains("4712"), "{answer}");
}

/// The numbers of things in the column of their name are no counts of them.
#[test]
fn things_with_numbers_are_counted() {
    let list = records(
        "claim,opened,member,kind,state",
        &[
            "4471,2026-03-09,Ada,storm,closed", "4502,2026-04-02,Bo,fire,closed",
            "4617,2026-09-14,Cy,fire,open", "4618,2026-09-15,Ada,storm,open",
            "4630,2026-10-01,Bo,fire,open",
        ],
    );
    let told = |question: &str| super::told(question, &[("claims.csv", &list)]);
    let answer = told("how many fire claims did we have");
    assert!(answer.starts_with("3 of 5: claim: 4502;"), "{answer}");
    let answer = told("How many claims did we have from Ada?");
    assert!(answer.starts_with("2 of 5: claim: 4471;"), "{answer}");
    let sites = records("Site,Claims,Since", &["Weir,14,2019", "Mole,22,2021", "Lock,9,2020"]);
    let answer = super::told("How many claims are there at Mole?", &[("sites.csv", &sites)]);
    assert!(answer.starts_with("Site: Mole; Claims: 22"), "{answer}");
}

/// Goal: a column of prices without a currency answers what something costs, even if another text
/// has the word for it.
#[test]
fn a_bare_price_is_what_a_thing_costs() {
    let prices = "Art.: D-11\nItem: Diver D11 serviced\nUnit: piece\nNet price: 139\n\n\
        Art.: D-22\nItem: Diver D22 serviced\nUnit: piece\nNet price: 199\n";
    let log = "no: 7\nmeasure: hose cut\ncost_eur: 18\n\nno: 8\nmeasure: valve\ncost_eur: 40\n";
    let texts = [("prices.xlsx", prices), ("complaints.csv", log)];
    let answer = super::told("what does a D22 cost?", &texts);
    assert!(answer.contains("199") && !answer.contains("139"), "{answer}");
}

/// Goal: the name of an object in JSON says what its fields are about.
#[test]
fn the_object_of_fields_is_what_they_are_about() {
    let text = "weddings.price: 140\nweddings.includes: ninety minutes, cards\n\
        weddings.guests_max: 12\n\ncamp.dates: 21 to 25 July\ncamp.price: 125\n\
        camp.places: 20\n";
    let answer = super::told("price of weddings", &[("programme.json", text)]);
    assert!(answer.contains("140") && !answer.contains("125"), "{answer}");
}

const PISTES: &str = "| Piste | Colour | Length m | Groomed |\n|---|---|---|---|\n\
    | Widow's Ladder | black | 1400 | on Saturdays |\n| Ox Wall | black | 1150 | never |\n\
    | Long Meadow | blue | 2300 | every night |\n| North Gully | black | 1600 | never |\n";

/// Goal: "never" is a value like any other where a column has it.
#[test]
fn what_is_never_done_is_selected_by_that_word() {
    let answer = super::told("pistes that are never groomed", &[("pistes.md", PISTES)]);
    assert!(answer.contains("Ox Wall") && answer.contains("North Gully"), "{answer}");
    assert!(!answer.contains("Meadow") && !answer.contains("Ladder"), "{answer}");
}

/// Goal: of two things that are compared, each row has only one name.
#[test]
fn two_rows_are_compared_by_their_names() {
    let question = "Which is longer, Widow's Ladder or the Ox Wall?";
    let answer = super::told(question, &[("pistes.md", PISTES)]);
    assert!(answer.contains("1400") && answer.contains("1150"), "{answer}");
    assert!(!answer.contains("Meadow"), "{answer}");
}
