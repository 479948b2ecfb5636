//! Answers from whole lists: votes, troubles, cases, chains and prohibitions; rows of stocks.

use super::*;

/// Goal: steps below the heading of a trouble do not tell what must not be done, even if one of
/// them says "never".
#[test]
fn what_must_never_be_done_is_a_prohibition() {
    let kiln = "# Kiln handbook\n\n## 2. Kiln controller does not answer\n\n\
        1. Look at the kiln controller lamp.\n2. Run `kilnctl prune` on the kiln controller.\n\
        3. Wake one coil, never all of them at the same time.\n4. Note it in the kiln log.\n\n\
        Never run `kilnctl wipe`; it empties the curves.\n";
    let answer = told("What must I never run on the kiln controller?", &[("kiln.md", kiln)]);
    assert!(answer.starts_with("Never run `kilnctl wipe`"), "{answer}");
    assert!(!answer.contains("kilnctl prune"), "{answer}");
    let ropes = "# If you are not content\n\n1. Tell the rope maker.\n2. Write to the guild of \
        rope makers.\n3. Ask for a judge of ropes.\n";
    let asked = "We are not content with the rope. What are the stages of a dispute on ropes?";
    let answer = told(asked, &[("ropes.md", ropes)]);
    assert!(answer.contains("rope maker") && answer.contains("judge"), "{answer}");
    let boats = "# Boats\n\n## Boats that are not let this year\n\n\
        Rowing the ketch is planned, but not yet allowed. Yawl and skiff are sold. The gig may \
        come back this year if we find a mast.\n";
    let answer = told("Which boats are not let this year?", &[("boats.md", boats)]);
    assert!(answer.contains("ketch") && answer.contains("Yawl and skiff"), "{answer}");
}

const HARBOUR: &str = "# Harbour council, minutes of 4 May\n\n\
    **New berths.** The plan of the harbour master was put to the vote.\n\n\
    - West pier: carried, 5 to 2.\n- Fuel dock: rejected, 3 to 4.\n- Night lights: carried.\n\
    - Slipway of stone: carried.\n- Toll on rafts: rejected.\n\n**Next meeting** on 2 June.\n";

/// Goal: all votes of a list are told if the question asks for them, one if it names that.
#[test]
fn all_votes_of_a_list_are_told() {
    let minutes = [("minutes.md", HARBOUR)];
    let answer = told(
        "What did the council vote on for the new berths, and how did each vote go?",
        &minutes,
    );
    for part in ["West pier", "Fuel dock", "Night lights", "Slipway", "Toll on rafts"] {
        assert!(answer.contains(part), "{answer}");
    }
    let answer = told("How did the council vote on the fuel dock?", &minutes);
    assert!(answer.contains("rejected") && !answer.contains("Night lights"), "{answer}");
}

/// Goal: a stated trouble is answered by the list below the heading that states it.
#[test]
fn a_stated_trouble_gets_the_whole_list() {
    let loom = "# Loom care\n\n## Loom does not stop\n\n- Pull the red cord.\n\
        - Loosen the belt.\n- Oil the brake.\n- Call Ada.\n- Wait for the warp.\n\n\
        ## Loom is dusty\n\n- Brush it.\n- Wipe it.\n";
    let answer = told("old loom wont stop in the cold", &[("loom.md", loom)]);
    let steps = ["Pull the red cord", "Loosen the belt", "Oil the brake", "Call Ada", "warp"];
    assert!(steps.iter().all(|step| answer.contains(step)), "{answer}");
    assert!(!answer.contains("Brush"), "{answer}");
}

/// Goal: a stated situation is answered by all numbered steps for it.
#[test]
fn a_stated_situation_gets_all_steps() {
    let card = "# Kiln card\n\n## Smoke in the kiln shed\n\n1. Close the gas tap.\n\
        2. All out, upwind.\n3. Ring the fire service.\n4. Nobody opens the door.\n\n\
        ## Prices\n\n1. A firing costs 40 francs.\n2. Clay costs 2 francs.\n";
    let answer = told("Smoke is coming out of the gas kiln!", &[("card.md", card)]);
    for step in ["Close the gas tap", "upwind", "fire service", "Nobody opens"] {
        assert!(answer.contains(step), "{answer}");
    }
    let answer = told("How much is clay?", &[("card.md", card)]);
    assert!(answer.contains("2 francs") && !answer.contains("gas tap"), "{answer}");
}

/// Goal: of cases of one thing that a question compares, each is told.
#[test]
fn compared_cases_of_a_list_are_told() {
    let rules = "# Berths\n\n## Giving a berth back\n\n\
        - What is paid back goes to your account in 40 days.\n\
        - Return of a berth up to 30 days before the season, paid back: the whole price.\n\
        - Return later, but not after the first night: a third of it.\n\
        - Later than 3 days before that, nothing is paid back.\n";
    let answer = told(
        "return 40 days before vs 3 days before the season: what is paid back?",
        &[("rules.md", rules)],
    );
    assert!(answer.contains("the whole price") && answer.contains("a third"), "{answer}");
}

/// Goal: whom to turn to next is told with whom to turn to first.
#[test]
fn a_chain_of_complaints_is_told_whole() {
    let rules = "# House rules\n\n## Noise\n\nFirst ring the neighbour. If that does not help, \
        ring the warden of the stairs. If you are still not content with the noise, write to the \
        board of the house, which settles it. The bins are emptied by the neighbour on Monday.\n";
    let answer = told(
        "My neighbour's party was loud and nobody cared. Who do I write to about the noise?",
        &[("rules.md", rules)],
    );
    for part in ["First ring", "warden of the stairs", "board of the house"] {
        assert!(answer.contains(part), "{answer}");
    }
}

/// Goal: an owner named before the question that is asked is not what it asks for.
#[test]
fn what_a_statement_before_the_question_owns_is_not_asked_for() {
    let rules = far("rules.md", "Complaints about dancers at night go to the warden.", 0.5);
    let asked = "I hate my neighbour's manners at night. Who do I complain to about dancers?";
    let answer = extracted(asked, &[rules]).text;
    assert!(answer.contains("the warden"), "{answer}");
}

/// One chunk whose cosine with the question is small.
fn far(title: &str, text: &str, cosine: f32) -> RetrievedChunk {
    let mut one = chunk(title, 0, text, 0.6);
    one.parts.cosine = Some(cosine);
    one
}

/// Goal: the number in the column of stock counts the thing that a row names.
#[test]
fn a_column_of_stock_counts_the_thing_of_its_row() {
    let list = "| no | part | quantity | price |\n|---|---|---|---|\n| 7 | mast long | 4 | 300 |\n\
        | 8 | mast short | 9 | 200 |\n| 9 | rudder | 2 | 90 |\n";
    let answer = extracted("how many long masts do we have", &[far("parts.md", list, 0.2)]).text;
    assert!(answer.contains("quantity: 4") && !answer.contains("quantity: 9"), "{answer}");
}

/// Goal: the row that names the doer is told before one that merely names the thing.
#[test]
fn who_does_it_is_in_the_column_of_the_doer() {
    let routes = "| route | driver | bus |\n|---|---|---|\n| Tarn line | Ada Solheim | B4 |\n\
        | Moor line | Bo Lind | B5 |\n";
    let maps = "| line | map | printed by |\n|---|---|---|\n| Tarn line | M1 | Cy Moss |\n\
        | Moor line | M2 | Cy Moss |\n";
    let both = [far("maps.md", maps, 0.7), far("routes.md", routes, 0.6)];
    let answer = extracted("who drives the Tarn line", &both).text;
    assert!(answer.contains("Ada Solheim"), "{answer}");
}

/// Goal: of items that each tell of another weekday, the one of the weekday asked for is told.
#[test]
fn the_item_of_the_weekday_is_told() {
    let text = "# The hall is painted\n\n\
        - Choir (Monday) and band (Wednesday) go to the barn these weeks, the groups go too.\n\
        - Dancers (Tuesday) move to the mill.\n- Readers are told later.\n";
    let answer = told("Where does the Tuesday group go these weeks?", &[("hall.md", text)]);
    assert!(answer.starts_with("Dancers (Tuesday) move to the mill"), "{answer}");
}

/// Goal: a labelled reason in another document answers why something was changed.
#[test]
fn a_labelled_reason_is_told() {
    let minutes = "# Minutes\n\nThe raft limit was raised: carried, 5 to 2.\n";
    let change = "# First change of the canal rules\n\n1. In section 2 the number 4 is replaced by \
        the number 6.\n\n*Reason:* the raft limit was low.\n";
    let both = [("minutes.md", minutes), ("change.md", change)];
    let answer = told("reason raft limit was raised", &both);
    assert!(answer.starts_with("*Reason:* the raft limit was low"), "{answer}");
}

/// Goal: nothing is told of a winner or a mean if there is only a date.
#[test]
fn an_outcome_that_is_nowhere_told_is_declined() {
    let news = "# Lake news\n\nThe raft race of the lake is on 3 May, with music.\n\n\
        The eel catch of the lake runs from 1 to 9 June.\n";
    assert_eq!(told("who won the raft race of the lake", &[("news.md", news)]), ABSTENTION);
    let asked = "what was the average weight of the eel catch of the lake";
    assert_eq!(told(asked, &[("news.md", news)]), ABSTENTION);
}

/// Goal: what happened is told with the cause behind it in its paragraph.
#[test]
fn what_happened_is_told_with_its_cause() {
    let text = "# Wine cellar\n\n## Why we weigh the corks\n\nIn spring 2023 three lots of \
        Riesling turned cloudy in the bottle. The cause was dust from dry corks. Since then each \
        sack of corks is weighed.\n\n## Log\n\n#4 Ladder fell, press house. Ada Holm, bruised arm. \
        Ladder stood on must.\nCause: rubber foot missing. Measure: ladders checked.\n";
    let told = |question: &str| super::told(question, &[("cellar.md", text)]);
    let answer = told("why did the Riesling turn cloudy in 2023");
    assert!(answer.contains("dust from dry corks"), "{answer}");
    let answer = told("reason why the ladder fell in the press house");
    assert!(answer.contains("rubber foot"), "{answer}");
    let text = "# Report: labels printed twice\n\nOn 3 May 900 labels were printed twice. In two \
        cases the second was dearer, because a level was counted twice.\n\n\
        **Cause.** Two presses ran side by side.\n";
    let answer = super::told("Why were labels printed twice?", &[("report.md", text)]);
    assert!(answer.contains("side by side"), "{answer}");
}

/// Goal: what was learnt is told by the lessons, not by what was done first; all that is forbidden
/// by the whole list.
#[test]
fn lessons_and_prohibitions_are_told_whole() {
    let report = "# Report: oil in the pond\n\n## What was done\n\n- The pond was fenced off.\n\
        - The oil was skimmed from the pond.\n\n## Lessons\n\n1. Two people fill the tank.\n\
        2. The lid is tried first.\n";
    let answer = told("What did we learn from the oil in the pond?", &[("report.md", report)]);
    assert!(answer.contains("Two people") && answer.contains("lid"), "{answer}");
    assert!(!answer.contains("fenced"), "{answer}");
    let terms = "# Hire of the barn\n\n## Not allowed\n\n- candles and torches\n- confetti\n\
        - drones over the barn\n\n## Cleaning\n\nThe barn is swept by the guests.\n";
    let question = "What is forbidden when we hire the barn?";
    let answer = told(question, &[("hire.md", terms)]);
    assert!(["candles", "confetti", "drones"].iter().all(|one| answer.contains(one)), "{answer}");
}
