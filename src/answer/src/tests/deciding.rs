//! Decisions on a matter, votes, and what changed between versions and editions.

use super::*;

const MINUTES: &str = "Minutes of the sailing club, 3 May 2025\n\n\
    1. Slipway\nAda reports that the slipway crumbles. Decision: the slipway is repaved in June. \
    The cost is shared by the berths.\n\n\
    2. Rescue boat\nBo asks for a tender with a diesel engine. Decision: Skua, because its engine \
    runs cold. It is collected on 9 May. Two helmsmen are trained.\n\n\
    3. Bar\nCy offers to clean the pipes. Decision: the bar opens at five.\n";

/// Only the decision on the matter asked for is told, with the sentences after it.
#[test]
fn the_decision_on_a_matter_is_told_alone() {
    let asked = |question: &str| told(question, &[("minutes-2025-05-03.txt", MINUTES)]);
    let answer = asked("What was decided about the rescue boat?");
    assert!(answer.contains("Skua") && answer.contains("9 May"), "{answer}");
    assert!(!answer.contains("repaved") && !answer.contains("opens at five"), "{answer}");
    let answer = asked("What did the club decide about the diesel engine?");
    assert!(answer.contains("Skua") && !answer.contains("repaved"), "{answer}");
    let answer = asked("What was decided on 3 May 2025?");
    for one in ["repaved", "Skua", "opens at five"] {
        assert!(answer.contains(one), "{answer}");
    }
    let answer = asked("What was decided about the rescue boat on 5 April 2025?");
    assert_eq!(answer, ABSTENTION);
}

/// A day beside the matter need not be that of the meeting.
#[test]
fn the_day_of_a_matter_is_not_taken_for_that_of_the_meeting() {
    let text = "Minutes of the sailing club, 3 May 2025\n\n\
        1. Summer party\nAda proposes 20 June for it. Decision: the summer party is held in the \
        yard.\n\n2. Bar\nCy offers to clean the pipes. Decision: the bar opens at five.\n";
    let minutes = [("minutes-2025-05-03.txt", text)];
    let answer = told("What was decided about the summer party on 20 June?", &minutes);
    assert!(answer.contains("in the yard") && !answer.contains("five"), "{answer}");
    let answer = told("What was decided on 20 June?", &minutes);
    assert_eq!(answer, ABSTENTION);
    let text = "The board met on 3 May 2025 in the hall.\n\n1. Roof\nCy reports that it leaks. \
        Decision: the roof is mended in June.\n\n2. Bar\nAda has the keys. Decision: the bar opens \
        at five.\n";
    let saved_later = [("minutes-2025-05-05.txt", text)];
    let answer = told("What was decided on 3 May 2025?", &saved_later);
    assert!(answer.contains("mended") && answer.contains("at five"), "{answer}");
}

/// A vote is told with what was voted on.
#[test]
fn a_vote_is_told_with_its_decision() {
    let text = "Allotments, autumn meeting\n\nTom showed plans of the well. Decision: the hand \
        pump for 640 EUR is bought in spring. 21 in favour, 4 against, 2 abstentions. The tools \
        are stored in the shed.\n";
    let answer = told("How many voted for the hand pump?", &[("autumn.md", text)]);
    assert!(
        answer.contains("hand pump for 640 EUR") && answer.contains("21 in favour"),
        "{answer}"
    );
    assert!(!answer.contains("shed"), "{answer}");
}

/// A question for the changes of a version is answered with all of its parts.
#[test]
fn all_changes_of_a_version_are_told() {
    let text = "# Changes of the tide clock\n\n## 1.8.0 - 2025-06-02\n\n### Fixed\n\n\
        - The hand no longer stops at low water.\n- Leap years are counted.\n\n### Security\n\n\
        - The lid is locked by a pin.\n\n## 1.7.0 - 2025-02-11\n\n### Added\n\n- A moon dial.\n";
    let asked = |question: &str| told(question, &[("clock.md", text)]);
    let answer = asked("What changed in 1.8.0?");
    let all = "Fixed: The hand no longer stops at low water. [1] Leap years are counted. [1] \
        Security: The lid is locked by a pin. [1]";
    assert_eq!(answer, all);
    let answer = asked("What changed in the lid in 1.8.0?");
    assert!(!answer.contains("Leap years"), "{answer}");
}

/// For the difference of two editions, what each says on the matter is told.
#[test]
fn the_difference_of_editions_has_the_sentences_of_both() {
    let texts = [
        (
            "camp-rules-2023.md",
            "# Camp rules\n\nEdition 2023, valid from 1 March 2023.\n\n## Fires\n\nCamp fires may \
             be lit beside the lake. Wood is sold at the gate.\n",
        ),
        (
            "camp-rules-2025.md",
            "# Camp rules\n\nEdition 2025, valid from 1 March 2025.\n\n## Fires\n\nCamp fires are \
             forbidden. For one evening a warden lends out a camp fire bowl. Wood is free.\n",
        ),
    ];
    let question =
        "What is the difference between the old and the new camp rules about camp fires?";
    let answer = told(question, &texts);
    for one in ["beside the lake", "Camp fires are forbidden", "fire bowl"] {
        assert!(answer.contains(one), "{answer}");
    }
    assert!(!answer.contains("Wood"), "{answer}");
}

/// Goal: minutes whose items tell what comes of them without saying "decided" are told whole.
#[test]
fn the_items_of_minutes_are_told() {
    let may = "# Board of the marina, 3 May 2025\n\n1. Minutes of April: accepted.\n\
        2. Crane: decided, the job goes to Orrin & Sons for 9,400.\n\
        3. Berths: the price goes to 21 from June.\n\
        4. Second watchman: Lena Vos starts on 1 July.\n\
        5. Sauna: discussed, comes back in autumn.\n\nNext meeting: 7 June 2025.\n";
    let april = "# Board of the marina, 5 April 2025\n\n1. Crane: two offers wanted.\n\
        2. Berths: price stays at 19.\n3. Flags: rejected.\n\nNext meeting: 3 May 2025.\n";
    let texts = [("minutes-2025-05-03.md", may), ("minutes-2025-04-05.md", april)];
    let answer = told("What did the board decide on 3 May 2025?", &texts);
    for one in ["9,400", "21 from June", "Lena Vos"] {
        assert!(answer.contains(one), "{answer}");
    }
    assert!(!answer.contains("stays at 19"), "{answer}");
}

/// Goal: the open entries of a register are told, not the head of the register.
#[test]
fn open_entries_are_told_instead_of_the_head() {
    let text = "log: faults of the lifts\nyear: 2025\nkeeper: Ada Holm\n\n\
        entries.no: F-1\nentries.lift: north\nentries.what: door noisy\nentries.status: closed\n\n\
        entries.no: F-2\nentries.lift: south\nentries.what: button dark\n\
        entries.status: open, part ordered\n\n\
        entries.no: F-3\nentries.lift: north\nentries.what: stops late\n\
        entries.status: open, waiting\n";
    let answer = told("Which faults of 2025 are still open?", &[("faults.json", text)]);
    assert!(answer.contains("F-2") && answer.contains("F-3"), "{answer}");
    assert!(!answer.contains("F-1"), "{answer}");
}
