//! Questions as people put them: keywords, parts of sentences, words that mean two things.

use super::*;

fn told(question: &str, texts: &[(&str, &str)]) -> String {
    extracted(question, &titled(texts)).text
}

/// "Change" compares two things only where it is no deed.
#[test]
fn a_change_that_somebody_makes_is_a_procedure() {
    let faq = "### How do I change my bank details?\n\n1. Log in to Hearth\n2. Open \"My money\"\n\
        3. Enter the new account\n4. Confirm with the code\n\nIt must be done by the 24th.\n";
    let answer = told("how do I change my bank details", &[("faq.md", faq)]);
    let steps = ["1. Log in", "2. Open", "3. Enter", "4. Confirm"].map(|step| answer.find(step));
    assert!(steps.iter().all(Option::is_some) && steps.is_sorted(), "{answer}");
}

/// A title that holds the question says nothing: the steps below it do.
#[test]
fn the_steps_below_a_title_are_told() {
    let note = "laundry - how to empty the coin boxes        pinned in U1\n\
        every other Monday, two people, never alone\n1. stop the machine (grey key to 0)\n\
        2. open box w. key 7C\n3. count at once, write on slip W\n4. bag + slip into the safe\n\
        Coins stuck: do not hit. Tokens are sold at the office only, bag of ten.\n";
    let answer = told("how to empty the coin boxes", &[("note.txt", note)]);
    assert!(answer.contains("key 7C") && answer.contains("safe"), "{answer}");
}

/// Keywords with a plural noun ask for all that stands below it.
#[test]
fn keywords_ask_for_a_list_too() {
    let report = "# Report on the outage in Tallow Bank\n\nThe strainer was full of rust.\n\n\
        **Measures**\n- strainer on our list, every six months\n- sticker with the right number\n\
        - spare strainer in the store at Tallow Bank\n";
    let texts = [("report.md", report)];
    let answer = told("measures after the Tallow Bank outage", &texts);
    assert!(answer.contains("six months") && answer.contains("sticker"), "{answer}");
}

/// "Which goes where" asks for all pairs.
#[test]
fn two_question_words_ask_for_all() {
    let colours = "# Colours of the cages\n\n- Blue: Coldwick\n- White: Ulverfoss\n\
        - Yellow: Scarrow\n- Green: Morrick\n- Red: reject, do not load\n";
    let answer = told("which cage colour goes where", &[("welcome.md", colours)]);
    assert!(answer.contains("Yellow") && answer.contains("Red"), "{answer}");
}

/// A code or a year that stands nowhere is missed in keywords too.
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
