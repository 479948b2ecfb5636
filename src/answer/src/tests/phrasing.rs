//! Questions as people phrase them: keywords, fragments, and words with two meanings.

use super::*;

/// "Change" is a comparison only where it is not an action.
#[test]
fn a_change_that_somebody_makes_is_a_procedure() {
    let faq = "### How do I change my bank details?\n\n1. Log in to Hearth\n2. Open \"My money\"\n\
        3. Enter the new account\n4. Confirm with the code\n\nIt must be done by the 24th.\n";
    let answer = told("how do I change my bank details", &[("faq.md", faq)]);
    let steps = ["1. Log in", "2. Open", "3. Enter", "4. Confirm"].map(|step| answer.find(step));
    assert!(steps.iter().all(Option::is_some) && steps.is_sorted(), "{answer}");
}

/// A title that repeats the question does not answer it; the steps below it do.
#[test]
fn the_steps_below_a_title_are_told() {
    let note = "laundry - how to empty the coin boxes        pinned in U1\n\
        every other Monday, two people, never alone\n1. stop the machine (grey key to 0)\n\
        2. open box w. key 7C\n3. count at once, write on slip W\n4. bag + slip into the safe\n\
        Coins stuck: do not hit. Tokens are sold at the office only, bag of ten.\n";
    let answer = told("how to empty the coin boxes", &[("note.txt", note)]);
    assert!(answer.contains("key 7C") && answer.contains("safe"), "{answer}");
}

/// Keywords with a plural noun ask for everything listed below it.
#[test]
fn keywords_ask_for_a_list_too() {
    let report = "# Report on the outage in Tallow Bank\n\nThe strainer was full of rust.\n\n\
        **Measures**\n- strainer on our list, every six months\n- sticker with the right number\n\
        - spare strainer in the store at Tallow Bank\n";
    let texts = [("report.md", report)];
    let answer = told("measures after the Tallow Bank outage", &texts);
    assert!(answer.contains("six months") && answer.contains("sticker"), "{answer}");
}

/// An ordinal identifies a row like a code does, and prose may spell it out.
#[test]
fn a_row_is_that_of_the_ordinal() {
    let table = "| Floor | Key |\n|---|---|\n| 2nd | under the mat |\n| 3rd | at the desk |\n";
    let asked = |floor: &str| {
        told(&format!("Where is the key of the {floor} floor?"), &[("keys.md", table)])
    };
    let answer = asked("3rd");
    assert!(answer.contains("at the desk") && !answer.contains("mat"), "{answer}");
    assert_eq!(asked("4th"), ABSTENTION);
    let text = "The key of the third floor is at the desk.";
    assert!(told("Where is the key of the 3rd floor?", &[("keys.txt", text)]).contains("desk"));
}

/// A sentence with "this" or "these" is quoted with the sentence it refers to.
#[test]
fn what_a_demonstrative_means_is_told_with_it() {
    let text = "Divers are brought to the pressure chamber in Tarn. Burns and the bends are \
        treated in this building too. Visitors wait outside.";
    let answer = told("Where are the bends treated?", &[("harbour.txt", text)]);
    assert!(answer.starts_with("Divers are brought to the pressure chamber in Tarn."), "{answer}");
}

/// A missing year counts less against a text without any year than against one with another year.
#[test]
fn a_text_without_a_year_may_be_of_any() {
    let of = |when: &str| {
        let text = format!("So many rescues did the Tarn lifeboat crew make{when}: 24 rescues.");
        told("How many rescues did the Tarn lifeboat crew make in 2015?", &[("crew.txt", &text)])
    };
    assert!(of("").contains("24"), "{}", of(""));
    assert_eq!(of(" in 2019"), ABSTENTION);
}

/// The name asked for may be that of a process, which need not be capitalised.
#[test]
fn a_name_need_not_be_capitalised() {
    let text = "A slow way to test whether a number is prime is known as trial division. It takes \
        long.";
    let question = "What is the name of the slow way to test whether a number is prime?";
    assert!(told(question, &[("primes.txt", text)]).contains("trial division"));
}

/// A code or year that occurs nowhere is missed in keywords too.
#[test]
fn keywords_name_codes_and_years() {
    let codes = "# Handheld errors\n\n| Code | On the screen | Do this |\n|---|---|---|\n\
        | S3 | Time wrong | dock it |\n| S4 | No radio | go outside |\n";
    assert_eq!(told("handheld error S7", &[("codes.md", codes)]), ABSTENTION);
    assert!(told("handheld error S4", &[("codes.md", codes)]).contains("No radio"));
    let figures = "# Sick days per head\n\n| Depot | Staff | Sick days per head |\n|---|---|---|\n\
        | Tarn | 118 | 13.1 |\n| Cold | 40 | 9.2 |\n";
    let figures = [("figures-2024.md", figures)];
    assert_eq!(told("sick days per head Tarn 2025", &figures), ABSTENTION);
    assert!(told("sick days per head Tarn 2024", &figures).contains("13.1"));
}

/// "In February 25" is a month of a year, "on February 25" a day.
#[test]
fn a_month_may_have_a_short_year() {
    let minutes = |day: &str, matter: &str| {
        format!("# Committee, {day}\n\n| No | Subject | Result |\n|---|---|---|\n{matter}")
    };
    let first = minutes("18 February 2025", "| 1 | Lift | adopted |\n| 2 | Roof | postponed |\n");
    let other = minutes("20 May 2025", "| 1 | Bees | adopted |\n| 2 | Garden | rejected |\n");
    let texts = [("minutes-1.md", first.as_str()), ("minutes-2.md", other.as_str())];
    let answer = told("what was decided in the committee in february 25", &texts);
    assert!(answer.contains("Roof") && !answer.contains("Bees"), "{answer}");
}

/// A question with two names is answered for both, each from its own document.
#[test]
fn two_names_are_told_side_by_side() {
    let sheet = |name: &str, often: &str| {
        format!(
            "# Site sheet {name}\n\n| Item | Where or what |\n|---|---|\n| Fire drill | {often} |\n\
            | Stopcock | cellar |\n"
        )
    };
    let (marlow, oxley) = (sheet("Marlow Lane", "every six months"), sheet("Oxley", "once a year"));
    let texts = [("site-marlow-lane.md", marlow.as_str()), ("site-oxley.md", oxley.as_str())];
    let answer = told("fire drills at Marlow Lane and Oxley, how often each", &texts);
    let places = ["every six months", "once a year"].map(|often| answer.find(often));
    assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{answer}");
}

/// An amendment changes the sections that it names, and no others.
#[test]
fn an_amended_section_does_not_hold() {
    let rules = "# Kennel: rules\n\n1 March 2023\n\n## 1 Age\nDogs from six months.\n\n\
        ## 3 Booking\nDeposit 30 EUR per animal.\n\n## 5 Food\nOwn food may be brought.\n";
    let change = "# Changes to the rules\n\nIn force from 1 May 2025. Changes sections 1 and 3 of \
        the rules of 1 March 2023. The others stay.\n\n\
        **3 Booking (new)** Deposit 50 EUR per animal.\n";
    let texts = [("kennel-rules-2023.md", rules), ("kennel-change-2025.md", change)];
    let answer = told("how much is the deposit for an animal", &texts);
    assert!(answer.contains("50 EUR") && !answer.contains("30 EUR"), "{answer}");
    assert!(told("may own food be brought", &texts).contains("Own food"));
    let answer = told("how much was the deposit for an animal in 2023", &texts);
    assert!(answer.contains("30 EUR"), "the old section where it is asked for: {answer}");
}

/// Neither a sentence that a mail retracts nor a former supplier leads the answer.
#[test]
fn what_is_taken_back_or_over_does_not_lead() {
    let mail = "# Correction\n\nIn the slides it says the alarm of the fridge is set to 10 \
        degrees. That is wrong. The alarm of every fridge is set to 8.5 degrees from today.\n";
    let answer = told("What is the fridge alarm set to?", &[("mail.md", mail)]);
    assert!(answer.starts_with("The alarm of every fridge"), "{answer}");
    let firms = "# Suppliers\n\n| Name | Goods | State |\n|---|---|---|\n\
        | Gasco | oxygen | ended 2025-04-30 |\n| Aerolind | oxygen | since 2025-05-01 |\n";
    let answer = told("who delivers our oxygen now?", &[("suppliers.md", firms)]);
    assert!(answer.find("Aerolind") < answer.find("Gasco").or(Some(usize::MAX)), "{answer}");
}

/// Open tickets are those whose state is not a finished one.
#[test]
fn all_that_is_not_finished_is_listed() {
    let tickets = "# Pump tickets\n\n| Ticket | Station | Status |\n|---|---|---|\n\
        | T-1 | Weir | closed |\n| T-2 | Oak | open |\n| T-3 | Mill | waiting for parts |\n\
        | T-4 | Lane | done |\n| T-5 | Quay | in repair |\n";
    let answer = told("which pump tickets are open at the moment", &[("tickets.md", tickets)]);
    assert!(["T-2", "T-3", "T-5"].iter().all(|key| answer.contains(key)), "{answer}");
    assert!(!answer.contains("T-1") && !answer.contains("T-4"), "{answer}");
}

/// A state named together with its column is matched exactly.
#[test]
fn a_state_that_is_named_is_exact() {
    let jobs = "# Jobs in the boatyard\n\n| Job | Boat | Status |\n|---|---|---|\n\
        | J-1 | Tern | closed |\n| J-2 | Heron | open |\n| J-3 | Gull | waiting for parts |\n\
        | J-4 | Wren | open |\n";
    let texts = [("jobs.md", jobs)];
    let answer = told("Which jobs have the status open?", &texts);
    assert!(["J-2", "J-4"].iter().all(|key| answer.contains(key)), "{answer}");
    assert!(!answer.contains("J-3"), "{answer}");
    assert!(told("Which jobs are open?", &texts).contains("J-3"));
}

/// "For the mole: ..." says of the mole what the previous sentence says of something else.
#[test]
fn a_sentence_that_goes_on_for_something_else_is_told() {
    let text = "# Safety\n\nAda, 2 May\n\nRing 112 and leave. \
        Meeting point for the boat hall: the old oak at the slip. \
        For the mole: the lamp at its end. The warden counts.\n";
    let answer = told("Where is the meeting point for the mole?", &[("safety.md", text)]);
    assert!(answer.starts_with("For the mole: the lamp"), "{answer}");
    let answer = told("Where is the meeting point for the boat hall?", &[("safety.md", text)]);
    assert!(answer.starts_with("Meeting point for the boat hall"), "{answer}");
}

/// Text below a negated heading is negated.
#[test]
fn what_is_denied_by_its_heading_is_told() {
    let text = "# The radio\n\n### What you can do with it\n\n- call the harbour with it\n\
        - hear the weather\n\n### What you cannot do with it\n\n\
        Call from below deck, change the channel of others.\n";
    let answer = told("What can't I do with the radio?", &[("radio.md", text)]);
    assert!(answer.starts_with("Call from below deck"), "{answer}");
}

/// Notes below a table state the cause of a row, which they name by its code.
#[test]
fn the_note_on_a_row_tells_its_cause() {
    let log = "# Log of the harbour lift\n\n| No. | Day | What was seen |\n|---|---|---|\n\
        | K-11 | 2025-03-02 | gate stood open |\n| K-12 | 2025-05-09 | lift stopped half way |\n\n\
        ## Notes\n\nK-11: the latch was worn. K-12: a hose had burst in the frost.\n";
    let answer = told("Why did the lift stop half way on 9 May?", &[("log.md", log)]);
    assert!(answer.starts_with("K-12: a hose had burst in the frost."), "{answer}");
}

/// A sentence without a person is followed by the one that names the person to ask.
#[test]
fn somebody_behind_a_sentence_without_anybody_is_told() {
    let book = "# Handbook\n\nBerth contracts are in the Mooringbook cabinet. \
        Questions: Ada Solheim. The gate is locked at ten.\n";
    let answer = told("Who can tell me more of my berth contract?", &[("book.md", book)]);
    assert!(answer.contains("Ada Solheim"), "{answer}");
}

/// "First" and "last" at the end ask for the earliest and the latest.
#[test]
fn the_first_is_the_earliest() {
    let pumps = "# Pumps\n\n| Pump | Station | Built in |\n|---|---|---|\n| P1 | Weir | 2011 |\n\
        | P2 | Oak | 1998 |\n| P3 | Mill | 2019 |\n";
    let answer = told("which pump was built first", &[("pumps.md", pumps)]);
    assert!(answer.contains("P2") && !answer.contains("P1"), "{answer}");
    let answer = told("which pump was built last", &[("pumps.md", pumps)]);
    assert!(answer.contains("P3") && !answer.contains("P2"), "{answer}");
}

#[test]
fn the_head_of_a_mail_answers_only_questions_of_the_mail() {
    let mail = "From: Jonas\nTo: all@kettenwerk\nSubject: Re: vacation and cover\n\nI am off from \
        14 to 28 July. Abdul does the battery checks while I am away.";
    let texts = [("holiday_mail.txt", mail)];
    let cover = told("Who covers the battery checks for Jonas in July?", &texts);
    assert!(cover.contains("Abdul") && !cover.contains("From: Jonas"), "{cover}");
    let sender = told("Who sent the mail on vacation and cover?", &texts);
    assert!(sender.contains("From: Jonas"), "{sender}");
}

/// A list of things to do does not answer a question for things not to do.
#[test]
fn a_list_of_the_opposite_is_none() {
    let terms = [(
        "terms.md",
        "# Kennel\n\n## What to bring\n\nPlease bring to the kennel:\n- the vaccination card\n\
         - food for three days\n- a blanket\n\nDo not bring glass bowls to the kennel.\n",
    )];
    let answer = told("Which things should I not bring to the kennel?", &terms);
    assert!(answer.starts_with("Do not bring glass bowls"), "{answer}");
    let answer = told("Which things should I bring to the kennel?", &terms);
    assert!(answer.contains("a blanket"), "{answer}");
}

/// A question for a meaning is answered by a definition, and keywords for instructions by the
/// steps.
#[test]
fn keywords_of_a_help_page_are_understood() {
    let texts = [
        ("codes.csv", "code,meaning\nE4,cost tag does not exist\nE5,too many requests\n"),
        (
            "manual.md",
            "# Manual\n\n- **Cost tag**: a short code on a booking.\n- **Shift**: a day.\n",
        ),
    ];
    let answer = told("cost tag definition", &texts);
    assert!(answer.contains("a short code"), "{answer}");
    let guide = "# Webhooks\n\n1. Go to Settings and press New.\n2. Enter an address.\n\
        3. Copy the secret.\n\nAn event is sent seven times.\n";
    for question in ["Set up a webhook", "webhooks instructions"] {
        let answer = told(question, &[("guide.md", guide)]);
        assert!(answer.contains("1. Go to") && answer.contains("Copy the secret"), "{answer}");
    }
}

/// A question may follow a statement.
#[test]
fn a_statement_may_come_first() {
    let procedure = "HOW TO PUT IN A MICROCHIP\n\n1  Scan the animal first.\n2  Lift a fold and \
        push the needle.\n3  Hold a finger on the hole.\n\nNot in kittens.\n";
    let answer = told(
        "I am going to put in my first microchip tomorrow. How is that done?",
        &[("chip.txt", procedure)],
    );
    assert!(answer.contains("Lift a fold") && answer.contains("Hold a finger"), "{answer}");
}

/// The list below a heading for measures tells what was done about something, and questions for
/// what somebody does on some occasion get the procedure.
#[test]
fn deeds_are_asked_for_in_many_ways() {
    let report = "# Floodlights out, 8 November\n\nThe masts went dark.\n\n**Measures.**\n\
        1. Sockets are locked.\n2. The fryer gets its own line.\n";
    let report = [("report.md", report)];
    for asked in [
        "What measures were taken after the floodlights went out?",
        "What was to be done after the floodlights went out in November?",
    ] {
        let answer = told(asked, &report);
        assert!(answer.contains("Sockets") && answer.contains("fryer"), "{asked}: {answer}");
    }
    let plan = "# Evacuation\n\n## What to do\n\n1. Open the doors.\n2. Count your team.\n";
    let answer = told("Evacuation: what are my tasks?", &[("plan.md", plan)]);
    assert!(answer.contains("doors") && answer.contains("team"), "{answer}");
    let manual = "# The pitch\n\n## Before a match\n\n1. Two days before: cut to 26 mm.\n\n\
        2. The day before: mark the lines.\n\n3. Walk the pitch.\n\n## Lamps\n\nThey stand here.";
    let manual = [("manual.md", manual)];
    for asked in
        ["What does the team do before a match?", "How does the team mark the lines of the pitch?"]
    {
        let answer = told(asked, &manual);
        assert!(answer.contains("cut to") && answer.contains("Walk"), "{asked}: {answer}");
    }
}

/// Things may be listed in sentences below their name, or in a column named after them.
#[test]
fn things_below_their_name_are_listed() {
    let news = "# News\n\n## Courses\n\nGrafting apples: 28 March. Drawing in six evenings. Stone \
        walls in May. Ferns: 6 June. Book at the desk.\n\n## Fair\n\nIt is in May.";
    let answer = told("Which courses can I book?", &[("news.md", news)]);
    assert!(answer.contains("Grafting") && answer.contains("Ferns"), "{answer}");
    let dishes = [
        ("meals.md", "Vegetarian dishes always; vegan dishes please 7 days before."),
        (
            "dishes.md",
            "| dish | ship | remark |\n|---|---|---|\n| Stew | Lark | vegan |\n| Crab | Lark | |\n\
             | Curry | both | nuts; vegan |\n| Sorbet | both | vegan |\n",
        ),
    ];
    let answer = told("Which dishes are vegan?", &dishes);
    let all = ["Stew", "Curry", "Sorbet"].iter().all(|dish| answer.contains(dish));
    assert!(all && !answer.contains("Crab"), "{answer}");
}

/// The next sentence may name the person meant, and "in charge" has nothing to do with costs.
#[test]
fn the_next_sentence_tells_who() {
    let minutes = [
        (
            "minutes.md",
            "The plant fair is on 16 and 17 May, 42 stalls. Responsible: Saoirse Lomax.",
        ),
        ("news.md", "Entry to the fair for 9 EUR; friends come in free from 8:30."),
    ];
    let answer = told("Who is in charge of the plant fair?", &minutes);
    assert!(answer.contains("Saoirse Lomax"), "{answer}");
}

/// A passage with the words of the question but not its measure is replaced by one that has it.
#[test]
fn a_passage_without_the_measure_gives_way_to_one_with_it() {
    let texts = [
        ("minutes.md", "The lock basin of Tarn is too deep, boats of the basin lie in the shade."),
        ("lock.md", "The basin of the Tarn lock: 4 m of water."),
    ];
    let answer = told("How deep may the lock basin of Tarn be at most?", &texts);
    assert!(answer.starts_with("The basin of the Tarn lock: 4 m"), "{answer}");
    let texts = [texts[0], ("bridge.md", "The bridge of the Tarn road: 4 m of clearance.")];
    let answer = told("How deep may the lock basin of Tarn be at most?", &texts);
    assert_eq!(answer, ABSTENTION, "it is of another matter");
}

/// A setting with a number need not name the things it counts.
#[test]
fn a_setting_counts_what_its_name_says_in_other_words() {
    let settings = "mooring:\n  min_code_length: 7\n  lamp: on\n";
    let answer =
        told("How many digits must a mooring code have at least?", &[("m.yaml", settings)]);
    assert!(answer.contains("min_code_length: 7"), "{answer}");
    let table = "| Code | Opens |\n|---|---|\n| mooring code | 7 |\n| gate code | 4 |\n";
    let answer = told("How many digits must a mooring code have at least?", &[("m.md", table)]);
    assert_eq!(answer, ABSTENTION, "a row would name them");
}
