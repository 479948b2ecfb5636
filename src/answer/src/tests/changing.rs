//! Answers about things that have changed, have ended, or are not stated at all.

use super::*;

/// A row that has ended only answers questions about the past.
#[test]
fn a_row_that_is_over_gives_way() {
    let bakers = [(
        "bakers.md",
        "| Baker | Brings | Until | Phone |\n|---|---|---|---|\n\
         | Ostra | bread | 2021-05-31 | 640 |\n| Chelm | bread | - | 771 |\n",
    )];
    assert!(told("Which baker brings bread?", &bakers).starts_with("Baker: Chelm"));
    assert!(told("Which baker brought bread in May 2021?", &bakers).starts_with("Baker: Ostra"));
}

/// A row of a later document takes precedence over the same row of an earlier one, and a number
/// that a later text calls former is replaced, however that text words it.
#[test]
fn the_later_document_is_told() {
    let levels = |mark: &str, low: &str| {
        format!("# Frost plan\n\n| Level | Below |\n|---|---|\n| 1{mark} | {low} °C |\n")
    };
    let (old, new) = (levels("", "-4"), levels(" (new)", "-2"));
    let plans = [("plan-2023.md", old.as_str()), ("addition-2025.md", &new)];
    let answer = told("Below which temperature is frost level 1?", &plans);
    assert!(answer.contains("-2 °C") && !answer.contains("-4 °C"), "{answer}");
    let texts = [
        ("tariff-2024.md", "The fuel surcharge is 14.5 % for all customers."),
        ("letter-2025-09.md", "The fuel surcharge is 17.2 % for all customers (so far 14.5)."),
    ];
    let answer = told("What is the fuel surcharge for all customers?", &texts);
    assert!(answer.contains("17.2 %"), "{answer}");
}

/// Of two amendments of one section the later one answers.
#[test]
fn the_later_amendment_is_told() {
    let lease = "# Lease of the boat house, 2019\n\n## Section 8\n\n\
        (3) The deposit is paid on signing and amounts to 70 francs.\n";
    let first = "# First amendment to the lease of the boat house\n\n\
        In force from 1 May 2021.\n\n1. In section 8 (3) the deposit becomes 80 francs.\n";
    let second = "# Second amendment to the lease of the boat house\n\n\
        In force from 1 May 2023.\n\n1. Section 8 (3) as amended in 2021: the deposit becomes \
        95 francs.\n";
    let all = [
        ("boat-lease.md", lease),
        ("boat-lease-amendment-1.md", first),
        ("boat-lease-amendment-2.md", second),
    ];
    let answer = told("How much is the deposit?", &all);
    assert!(answer.contains("95 francs") && !answer.contains("80 francs"), "{answer}");
}

/// A question for a name is only answered by a passage with a name.
#[test]
fn what_names_nothing_gives_no_name() {
    let girl = [("report.md", "A girl was hit in the flume.")];
    assert_eq!(told("What was the name of the girl who was hit in the flume?", &girl), ABSTENTION);
    let named = [("report.md", "The girl who was hit in the flume was Ada Tarn.")];
    assert!(
        told("What was the name of the girl who was hit in the flume?", &named).contains("Ada")
    );
}

/// The sentence labelled as the cause answers, not the one that repeats the question.
#[test]
fn a_labelled_cause_is_told() {
    let report = "# Report\n\n**What happened.** At 3:12 the drain pump of Crow Lane did not \
        start.\n\n**Cause.** A tie had slipped over the arm.\n\n**Effects.** Two motors were \
        dried.\n";
    let answer = told("Why did the drain pump of Crow Lane not start?", &[("report.md", report)]);
    assert!(answer.contains("A tie had slipped"), "{answer}");
}

/// A cause may stand below "WHY", in the first line of a record, or in a sentence that answers by
/// itself.
#[test]
fn causes_are_told_in_many_forms() {
    let headed = "Pip adrift off Skerrow\n\nAfter 8 minutes the engine of Pip died off Skerrow.\n\n\
        WHY\nnot dirty fuel, as first written. The tank was EMPTY.\n\nDONE\n- gauge replaced\n";
    let answer = told("Why did the engine of Pip die off Skerrow?", &[("report.txt", headed)]);
    assert!(answer.contains("EMPTY"), "{answer}");
    let record = "Masts out\n\n19:47 mast C and mast D go dark.\n\nwhy: fryer on a full breaker.\n\
        NOT the fault of: the lamps\n\ncost: fine 4,000\n";
    let answer = told("What made mast C and mast D go dark?", &[("report.txt", record)]);
    assert!(answer.contains("fryer"), "{answer}");
    let told_itself = "# Queues\n\n## Cause\n\nThe list was long. The readers were old. The update \
        was late.\n\nNobody called Code Indigo, since the supervisor had two gates.\n";
    let answer = told("Why did nobody call Code Indigo?", &[("report.md", told_itself)]);
    assert!(answer.starts_with("Nobody called"), "{answer}");
}

/// The topic of an item helps to find its sentences, but is not an answer.
#[test]
fn the_sentences_of_an_item_answer_and_not_its_topic() {
    let minutes = "# Round\n\n1. **New boat lift Marwick.** Two offers: Tarn 412,000 EUR, Ostra \
        389,500 EUR. Tarn is taken for the shorter delivery, and since the spare parts are the \
        same as those of the crane in the outer harbour. Installation from 6 July to 24 July; the \
        slipway is closed in that time, boats are hauled out in Sandhithe by the crane there, as \
        two years ago.\n2. Shop: rebuilt from 13 April.\n";
    let plain = minutes.replace("**", "");
    for minutes in [minutes, &plain] {
        let answer =
            told("When will the new boat lift be installed in Marwick?", &[("a", minutes)]);
        assert!(answer.contains("6 July"), "{answer}");
    }
}

/// A question that names minutes by their day is answered from these minutes or not at all.
#[test]
fn a_document_named_by_its_day_is_bound() {
    let minutes = [
        ("minutes-2026-02-10.md", "# Round\n\n1. Salt: decided, 1.9 % from May."),
        ("minutes-2026-03-10.md", "# Round\n\n1. Salt: decided, 1.7 % in the sourdough."),
    ];
    let of = |day: &str| told(&format!("What did the minutes of {day} decide on salt?"), &minutes);
    let (february, march) = (of("10 February"), of("10 March 2026"));
    assert!(february.contains("1.9") && !february.contains("1.7"), "{february}");
    assert!(march.contains("1.7") && !march.contains("1.9"), "{march}");
    assert_eq!(of("3 April"), ABSTENTION);
}

/// The author and date of a report are not part of the cause.
#[test]
fn a_cause_is_told_without_the_head_of_the_report() {
    let report = "# Cause of the flood in the pump house\n\nDate of the flood: 8 May.\n\n\
        Flood report written by Ada Tarn.\n\nThe pump house was flooded because a sleeve had \
        burst.\n";
    let answer = told("Why was the pump house flooded?", &[("report.md", report)]);
    assert!(answer.contains("sleeve"), "{answer}");
    assert!(!answer.contains("written by") && !answer.contains("Date of"), "{answer}");
}

/// Settings are quoted as written.
#[test]
fn settings_are_quoted() {
    let settings = "; Pawlog production\n[login]\nmax_attempts = 5\nlock_minutes = 30\n";
    let answer = told("Pawlog login lock minutes", &[("pawlog.ini", settings)]);
    assert!(answer.contains("lock_minutes = 30"), "{answer}");
}

/// Of two sentences with the same words of the question but different numbers, the one from the
/// later document answers, however it is framed.
#[test]
fn the_later_wording_of_a_clause_is_told() {
    let texts = [
        (
            "manual-2024.md",
            "# Manual\n\nValid from 3 March 2024.\n\n13.3 The customer gets an acknowledgement \
             within three working days and an answer within 20 working days.",
        ),
        (
            "amendment.md",
            "# Amendment\n\nValid from 1 September 2025. Replaces three clauses.\n\n**Clause \
             13.3, new wording.** The customer gets an acknowledgement within one working day and \
             an answer within 15 working days.",
        ),
    ];
    let answer = told("Within how many days does the customer get an acknowledgement?", &texts);
    assert!(answer.contains("one working day") && !answer.contains("three"), "{answer}");
    let hours = [
        ("rules-2024.md", "Core time is 9:00 to 15:00 for all of us."),
        ("letter-2025-09.md", "Core time is 9:30 to 14:30 (the rules still say 9:00 to 15:00)."),
    ];
    let answer = told("What is the core time?", &hours);
    assert!(answer.starts_with("Core time is 9:30"), "{answer}");
}

/// A question for an end gets that day and no other, and a price list of a past year is superseded.
#[test]
fn ends_and_years_that_are_over_are_seen() {
    let contract = [(
        "contract.md",
        "# Contract on laundry\n\nSigned on 9 September 2024.\n\nFrom 1 October 2024 to 30 \
         September 2027, then for a year each time.",
    )];
    let answer = told("When does the contract on laundry run out?", &contract);
    assert!(answer.contains("30 September 2027"), "{answer}");
    let prices = [(
        "prices.md",
        "# Old\n\n| Treatment | Price 2021 EUR |\n|---|---|\n| Foot massage | 81 |\n| Peeling | 50 \
         |\n\n# Now\n\n| Code | Treatment | Minutes | Price EUR |\n|---|---|---|---|\n| T02 | Foot \
         massage with oil | 50 | 86 |\n| T03 | Peeling | 30 | 58 |\n",
    )];
    let answer = told("price of foot massage", &prices);
    assert!(answer.contains("86") && !answer.contains("81"), "{answer}");
}

/// A register entry ended by a later one only answers questions about the past.
#[test]
fn entries_that_others_end_give_way() {
    let register = [(
        "decisions.md",
        "# Decisions\n\n- D-37 The alarm limit of the fridges is 8 °C. Replaces D-22.\n\
         - D-35 Harbour Road opens on Saturdays.\n- D-22 The alarm limit of the fridges is 10 \
         °C.\n",
    )];
    let answer = told("What is the alarm limit of the fridges?", &register);
    assert!(answer.contains("8 °C") && !answer.contains("10 °C"), "{answer}");
    let answer = told("Which alarm limit does D-22 name?", &register);
    assert!(answer.contains("D-22 The alarm limit"), "{answer}");
    let answer = told("What was the old alarm limit of the fridges?", &register);
    assert!(answer.contains("10 °C"), "{answer}");
}

/// Later minutes that correct an item replace it, as a sentence that denies a plan replaces the
/// plan and a message that retracts another one replaces that.
#[test]
fn what_was_put_right_is_told() {
    let minutes = [
        (
            "minutes-2026-02-16.md",
            "# Minutes 16 February 2026\n\n1. Yard swept.\n2. The summer \
          party is on 26 June in the loft.\n",
        ),
        (
            "minutes-2026-03-16.md",
            "# Minutes 16 March 2026\n\nCorrections to the minutes of \
          16 February:\n- item 2: it is in the yard on 3 July.\n",
        ),
    ];
    let answer = told("When is the summer party in the loft?", &minutes);
    assert!(answer.starts_with("item 2: it is in the yard on 3 July"), "{answer}");
    let plan = [
        (
            "rota.csv",
            "date,early,night duty\n2026-04-15,Ada Tarn,Bo Lind\n2026-04-16,Cy Marr,Di Oss\n",
        ),
        ("mail.md", "One change: the night duty on 16 April is done by Ed Voss, not Di Oss."),
    ];
    let answer = told("Who does the night duty on 16 April?", &plan);
    assert!(answer.starts_with("One change"), "{answer}");
    let chat = [(
        "chat.txt",
        "[06.04. 16:45] Min: we take hedgehogs until they weigh 500 g\n\
         [07.04. 08:15] Min: sorry, wrong: 600 g, the trust has changed it\n\
         [08.04. 09:00] Cal: the heater is out\n",
    )];
    let answer = told("until what weight do we take hedgehogs", &chat);
    assert!(answer.contains("600 g") && !answer.contains("500 g"), "{answer}");
}

/// An item of minutes is replaced by a correction anywhere in later minutes, and a message by a
/// later one that retracts it.
#[test]
fn what_is_put_right_later_is_told() {
    let february = "# Round, 10 February 2026\n\n**2 Roof.** Work from 7 September.\n\n\
        **3 Plant fair.** 16 and 17 May, 42 stalls, stall fee 95 pounds.";
    let march = "ROUND 17 MARCH 2026\n\n1. Minutes of 10 Feb approved, with two corrections. \
        Item 2: work begins on 21 September. Item 3: the fee is 105 pounds; the date stays.\n\n\
        2. Tank: built in October. No\n";
    let minutes = [("minutes-2026-02-10.md", february), ("minutes-2026-03-17.txt", march)];
    let answer = told("What is the stall fee at the plant fair?", &minutes);
    assert!(answer.contains("105") && !answer.contains("95"), "{answer}");
    let chat = [(
        "chat.txt",
        "[23.03. 09:00] Ada: thank-you tea is on 5 June at 15:30\n[24.03. 10:00] Bo: who has the \
         key?\n[27.03. 09:15] Ada: Correction! thank-you tea 12 June, the tent is taken\n",
    )];
    let answer = told("What date is the thank-you tea?", &chat);
    assert!(answer.contains("12 June") && !answer.contains("5 June at"), "{answer}");
}

/// All decisions of the meeting on the given day are listed, even with blank lines between them.
#[test]
fn the_decisions_of_a_day_are_told() {
    let one = |title: &str, text: &str| {
        let mut one = chunk(title, 0, text, 0.6);
        Arc::make_mut(&mut one.source).title = title.to_owned();
        one
    };
    let both = [
        one("Round of 10 February 2026", "Decided: the roof is mended. Decided: no peacocks."),
        one(
            "Round of 17 March 2026",
            "ROUND OF 17 MARCH\n\n1. Tank: decided in this round, built in October.\n\n\
             2. Piano stays.\n\n3. Party: 8 July.",
        ),
    ];
    let answer = extracted("What was decided in the round of 17 March 2026?", &both).text;
    assert!(answer.contains("October") && answer.contains("8 July"), "{answer}");
    assert!(!answer.contains("peacocks"), "{answer}");
}

/// A value that a later text moves or raises is given in its new state; the earlier mail does not
/// lead the answer, and its header is not part of it.
#[test]
fn what_is_moved_later_holds() {
    let mail = "From: Ada <ada@tarn.example>\nTo: all@tarn.example\nDate: 10 March 2026\n\n\
        The library moves to the new hall on 18 May 2026. The lease had ended.\n";
    let minutes = "# Minutes, 7 April 2026\n\n1. Book fund: raised from 1,900 to 2,100 EUR.\n\
        2. The move of the library is postponed from 18 May to 8 June 2026.\n";
    let before = "# Minutes, 3 March 2026\n\n1. Book fund 2026: approved at 1,900 EUR.\n";
    let texts =
        [("mail.eml", mail), ("minutes-2026-04.md", minutes), ("minutes-2026-03.md", before)];
    let answer = told("When does the library move to the new hall?", &texts);
    assert!(answer.starts_with("2. The move of the library is postponed"), "{answer}");
    assert!(!answer.contains("From:"), "{answer}");
    let answer = told("What is the book fund for 2026?", &texts);
    assert!(answer.starts_with("1. Book fund: raised from 1,900 to 2,100 EUR."), "{answer}");
}

/// Goal: an addendum at the end of a document outweighs what stands above it, but only on what it
/// gives a number for.
#[test]
fn an_addendum_is_told_before_what_it_changes() {
    let text = "# Lease of the kiln\n\n## Rent\n\nThe rent is 310 francs a month.\n\n\
        ## Deposit\n\nThe deposit is 900 francs.\n\n\
        ## Addendum of 2 May 2025\n\nThe rent is 345 francs from this date.\n";
    let answer = told("How much is the rent of the kiln?", &[("lease.md", text)]);
    assert!(answer.starts_with("The rent is 345 francs"), "{answer}");
    let answer = told("How much is the deposit for the kiln?", &[("lease.md", text)]);
    assert!(answer.starts_with("The deposit is 900 francs"), "{answer}");
}

/// Goal: minutes that correct one value of an item leave the others of that item as they are.
#[test]
fn a_correction_holds_only_for_what_it_denies() {
    let texts = [
        (
            "minutes-2025-02-12.md",
            "# Minutes of 12 February 2025\n\n2 Outdoor pool. The season begins on 9 May.\n\n\
             3 Sauna. The stove costs 940 francs.\n",
        ),
        (
            "minutes-2025-03-12.md",
            "# Minutes of 12 March 2025\n\n1 Corrections to the last minutes: in item 2 the ticket \
             costs 89 francs, not 94 francs; in item 3 the stove costs 990 francs.\n",
        ),
    ];
    let answer = told("When does the season of the outdoor pool begin?", &texts);
    assert!(answer.contains("9 May"), "{answer}");
    let answer = told("What does the stove of the sauna cost?", &texts);
    assert!(answer.contains("990") && !answer.starts_with("3 Sauna"), "{answer}");
}

/// Goal: the minutes of the next meeting correct a price that the last ones state in other words.
#[test]
fn a_price_that_the_next_minutes_deny_is_put_right() {
    let texts = [
        (
            "ops-minutes-2026-01.md",
            "# Operations meeting, 19 January 2026\n\n**7. Any other business.** Patrol gets two \
             new sledges (toboggan \"Alk 3\"), 2,150 each. Staff party on 24 April.\n",
        ),
        (
            "ops-minutes-2026-02.txt",
            "OPERATIONS MEETING 16 FEBRUARY 2026\n\n1  Minutes of 19 January: correction by Signe \
             - the toboggans cost 2,510 each, not 2,150. Otherwise agreed.\n",
        ),
    ];
    let answer = told("What did one of the new patrol toboggans cost?", &texts);
    let right = answer.find("2,510");
    assert!(right.is_some() && right < answer.find("2,150"), "{answer}");
}
