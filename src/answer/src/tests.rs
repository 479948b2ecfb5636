//! Tests of answers over whole chunks: rules with a stand-in model, quality with the real model.

mod absent;
mod changing;
mod columns;
mod deciding;
mod groups;
mod headed;
mod listed;
mod owners;
mod phrasing;
mod reading;
mod refusing;
mod repeated;
mod selecting;
mod tables;
mod withdrawing;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::Value;

use crate::testing::chunk;
use crate::*;
use lodestone_embed::{
    EmbedError, EmbedStats, Embedder, HashEmbedder, Lane, Model, ModelFiles, Role,
};
use lodestone_types::*;

/// The text of the answer from titled texts.
pub(crate) fn told(question: &str, texts: &[(&str, &str)]) -> String {
    extracted(question, &titled(texts)).text
}

fn extracted(question: &str, chunks: &[RetrievedChunk]) -> Answer {
    let answerer = Answerer::new(Arc::new(HashEmbedder));
    answerer.answer(&RequestContext::default(), question, chunks, &[], SourceOrder::ByUse).unwrap()
}

/// Goal: the row whose key the question names wins over other rows that hold the key's words.
#[test]
fn the_row_of_the_key_is_told() {
    let list = "Prices in pounds\n\n| Item | Harbour | Lake |\n|---|---|---|\n\
        | Family swim (2 adults, 2 children) | 16.50 | 18.00 |\n| Adult swim | 6.40 | 7.00 |\n\
        | Ten swims adult | 57.60 | 63.00 |\n";
    let mut list = [chunk("prices", 0, list, 0.6)];
    list[0].parts.cosine = Some(0.6);
    let answer = extracted("How much is an adult swim?", &list);
    assert!(
        answer.text.starts_with("Item: Adult swim; Harbour: 6.40; Lake: 7.00"),
        "{}",
        answer.text
    );
    let answer = extracted("Which is cheaper, an adult swim or a family swim?", &list);
    let told: Vec<&str> = answer.citations.iter().map(|one| one.sentence.as_str()).collect();
    assert!(told.len() == 2 && told[0].contains("6.40") && told[1].contains("16.50"), "{told:?}");
}

/// One chunk for each titled text, each with a source of its own and the same cosine.
fn titled(texts: &[(&str, &str)]) -> Vec<RetrievedChunk> {
    let one = |(title, text): &(&str, &str)| {
        let mut one = chunk(title, 0, text, 0.6);
        one.parts.cosine = Some(0.6);
        Arc::make_mut(&mut one.source).filename = (*title).to_owned();
        one
    };
    texts.iter().map(one).collect()
}

/// Goal: of two documents with different figures for one thing, only the later one is quoted.
#[test]
fn the_later_of_two_figures_is_told() {
    let both = titled(&[
        ("handbook-2023.md", "Speed in the yard is 15 km/h for all vehicles."),
        ("memo-2025-03.txt", "Speed in the yard is now 10 km/h for all vehicles."),
    ]);
    let now = extracted("What is the speed for vehicles in the yard?", &both).text;
    assert!(now.contains("10 km/h") && !now.contains("15 km/h"), "{now}");
    let then = extracted("What was the speed for vehicles in the yard in 2023?", &both).text;
    assert!(then.contains("15 km/h"), "{then}");
}

/// Goal: an item of later minutes replaces the one with its number; another week is another item.
#[test]
fn corrections_of_minutes_go_before_what_they_correct() {
    let both = titled(&[
        (
            "minutes-2025-03-04.txt",
            "Yard meeting, 4 March 2025\n\n1. New crane. It comes in calendar week 20.\n\
             2. Move of the mast store: Ada: Sunday 6 April, 9 to 12.\n",
        ),
        (
            "minutes-2025-04-01.txt",
            "Yard meeting, 1 April 2025\n\nTo the minutes of 4 March\n\
             \x20item 2: the mast store is moved one week later, on 13 April.\n\
             \x20item 4: it was 12 masts, not 21.\n\nNew\n\
             1. Crane: the maker sends the new crane a week later, in week 21.\n",
        ),
    ]);
    let moved = extracted("When is the mast store moved?", &both).text;
    assert!(moved.contains("13 April") && !moved.contains("6 April"), "{moved}");
    let crane = extracted("In which week does the new crane come?", &both).text;
    assert!(crane.contains("week 21") && !crane.contains("week 20"), "{crane}");
}

#[test]
fn all_decisions_of_the_minutes_are_told() {
    let minutes = titled(&[(
        "minutes.txt",
        "Managers' meeting of 6 May\n\nPool. Teachers cannot see the floor.\n\
         DECIDED: the pool takes no more than 24 from\n12 May.\n\n\
         Lanes. Clubs were told. DECIDED: 16.50 a lane.\n\nSkates. Not decided, figures wanted.",
    )]);
    let told = extracted("What was decided at the managers' meeting of 6 May?", &minutes).text;
    assert!(told.contains("12 May") && told.contains("16.50"), "{told}");
    assert!(!told.contains("figures"), "{told}");
}

#[test]
fn a_term_is_told_with_its_own_explanation() {
    let words = titled(&[(
        "words.md",
        "# Words\n\n**cage** - roll container\n**shunter** - tractor of the yard\n\
         **trunk** - night run between depots",
    )]);
    let told = extracted("What is a shunter?", &words).text;
    assert_eq!(told, "shunter: tractor of the yard [1]");
}

/// The part of the relevance that comes from the form of the unit with a text.
fn form_of(question: &str, text: &str, unit: &str) -> f32 {
    use crate::passages::candidates::read;
    let chunks = [chunk("guide", 0, text, 0.6)];
    let chunks: Vec<&RetrievedChunk> = chunks.iter().collect();
    let editions = crate::versions::editions::Editions::read(question, &chunks, Timestamp(0));
    let reading = read(&RequestContext::default(), &chunks, (1, 1), |_| true).unwrap();
    let asked = crate::question::wish::Question::new(question);
    let candidates = &reading.candidates;
    let (scores, _) = crate::relevance::score::by_words(&asked, candidates, &chunks, &editions);
    let at = candidates.iter().position(|one| one.shown() == unit);
    scores[at.unwrap_or_else(|| panic!("{unit}: {candidates:?}"))].form
}

/// Goal: JSON does not tell what something is; steps are told from the beginning of the section
/// that is named after them, and not by what supposes them.
#[test]
fn definitions_and_steps_have_their_form() {
    let json = "\"gamma\": \"a number\",";
    let page = format!("# Errors\n\n```json\n{json}\n```\n\nGamma is a number.\n");
    let loss = form_of("Is gamma a number?", &page, json) - form_of("What is gamma?", &page, json);
    assert!(loss > 0.15, "{loss}");
    let page = "# Install\n\nStop the line. Start the line. If a pump is installed, stop.\n";
    let form = |unit| form_of("How do I install a pump?", page, unit);
    let [first, next, supposed] =
        ["Stop the line.", "Start the line.", "If a pump is installed, stop."].map(form);
    assert!(first > next + 0.05 && next > supposed + 0.1, "{first} {next} {supposed}");
}

#[test]
fn a_letter_beside_its_column_is_a_key() {
    let classes = titled(&[(
        "classes.md",
        "| Class | Start within |\n|---|---|\n| D | 60 days |\n| C | 7 days |\n| A | 1 hour |\n",
    )]);
    let told = extracted("How soon is a class A repair started?", &classes).text;
    assert!(told.starts_with("Class: A; Start within: 1 hour"), "{told}");
}

#[test]
fn a_mail_goes_before_the_one_that_it_quotes() {
    let mail = titled(&[(
        "heads.eml",
        "I was wrong: the thermostat heads are tightened by hand.\n\n\
         > The thermostat heads are tightened with the pliers.\n",
    )]);
    let told = extracted("How are the thermostat heads tightened?", &mail).text;
    assert!(told.starts_with("I was wrong"), "{told}");
}

/// Checks that a row or record has all its values, and only text that it or its header holds.
fn check_values(citation: &Citation, chunks: &[RetrievedChunk], stands: &str) {
    let (chunk, head) = citation.head.clone().unwrap_or_default();
    let head: String = chunks[chunk].text.chars().skip(head.start).take(head.len()).collect();
    let words = |text: &str| -> BTreeSet<String> {
        let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        words.map(str::to_owned).collect()
    };
    let (said, row) = (words(&citation.sentence), words(stands));
    let both: BTreeSet<String> = row.union(&words(&head)).cloned().collect();
    assert!(row.is_subset(&said) && said.is_subset(&both), "{} {stands}", citation.sentence);
}

/// Checks every invariant of an answer that the crate documents.
fn check(answer: &Answer, chunks: &[RetrievedChunk]) {
    let chars: Vec<char> = answer.text.chars().collect();
    let mut expected = String::new();
    for citation in &answer.citations {
        assert!((1..=answer.sources.len()).contains(&citation.number));
        assert!(answer.sources[citation.number - 1].chunks.contains(&citation.chunk));
        let said: String = chars[citation.answer_chars.clone()].iter().collect();
        assert_eq!(said, citation.sentence);
        let text = &chunks[citation.chunk].text;
        let range = &citation.chunk_chars;
        let stands: String = text.chars().skip(range.start).take(range.len()).collect();
        if crate::text::shown::shown(&stands, crate::text::notes::are_in(text)) != citation.sentence
        {
            check_values(citation, chunks, &stands);
        }
        let gap = if expected.is_empty() { "" } else { " " };
        expected += &format!("{gap}{} [{}]", citation.sentence, citation.number);
    }
    assert_eq!(answer.text, if answer.is_abstained { ABSTENTION } else { &expected });
    let numbers: Vec<usize> = answer
        .text
        .split('[')
        .skip(1)
        .filter_map(|rest| rest.split_once(']').and_then(|(number, _)| number.parse().ok()))
        .collect();
    let cited: Vec<usize> = answer.citations.iter().map(|citation| citation.number).collect();
    assert_eq!(numbers, cited, "only our own marks are in {}", answer.text);
    let first_uses = cited.iter().fold(Vec::new(), |mut uses: Vec<usize>, number| {
        if !uses.contains(number) {
            uses.push(*number);
        }
        uses
    });
    assert!(first_uses.iter().copied().eq(1..=first_uses.len()), "{cited:?}");
    let mut all: Vec<usize> = answer.sources.iter().flat_map(|s| s.chunks.clone()).collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..chunks.len()));
}

#[test]
fn the_sentence_that_answers_is_cited() {
    let chunks = [
        chunk("cats", 0, "Cats sleep most of the day. Cats eat fish.", 0.9),
        chunk("pumps", 2, "Pumps move water. The blue pump lifts 42 litres. It is loud.", 0.8),
        chunk("pumps", 0, "A pump needs power. Blue paint is sold apart.", 0.7),
    ];
    let question = "How many litres does the blue pump lift?";
    let answer = extracted(question, &chunks);
    check(&answer, &chunks);
    assert!(!answer.is_abstained);
    assert!(answer.text.starts_with("The blue pump lifts 42 litres. [1]"), "{}", answer.text);
    assert_eq!(answer.sources[0].source.id.as_str(), "pumps");
    assert_eq!(answer.sources[0].chunks, [1, 2]);
    assert_eq!(answer.sources[1].source.id.as_str(), "cats");
    assert!(answer.sources[0].snippet.contains("42"));
    assert_eq!(answer, extracted(question, &chunks));
}

#[test]
fn nothing_relevant_is_an_abstention_with_sources() {
    let chunks = [chunk("cats", 0, "Cats sleep most of the day.", 0.9)];
    let answer = extracted("Which valve controls hydraulic pressure?", &chunks);
    check(&answer, &chunks);
    assert!(answer.is_abstained && answer.citations.is_empty());
    assert_eq!(answer.sources.len(), 1);
    let empty = extracted("What?", &[]);
    assert!(empty.is_abstained && empty.sources.is_empty());
    assert_eq!(sources_only("cats", &chunks), answer.sources);
}

#[test]
fn the_edition_in_force_is_quoted() {
    let rules = |version: u32, year: u32, days: u32| {
        format!(
            "Version {version}, valid from 1 January {year}.\n\n\
             Staff receive {days} days of annual leave."
        )
    };
    let chunks = [
        chunk("leave-2022", 0, &rules(1, 2022, 25), 0.9),
        chunk("leave-2025", 0, &rules(2, 2025, 28), 0.8),
        chunk("leave-2099", 0, &rules(3, 2099, 30), 0.8),
    ];
    let question = "How many days of annual leave do staff receive?";
    let answer = extracted(question, &chunks);
    check(&answer, &chunks);
    assert!(answer.text.starts_with("Staff receive 28 days of annual leave. [1]"), "{answer:?}");
    assert!(!answer.text.contains("25 days") && !answer.has_conflict, "{answer:?}");
    assert!(!answer.text.contains("Version"), "{answer:?}");
    // If nothing else answers, a document that is not yet in force is better than none.
    let answer = extracted(question, &chunks[2..]);
    assert!(answer.text.starts_with("Staff receive 30 days of annual leave. [1]"), "{answer:?}");
    let answer = extracted("How many days of annual leave did staff receive in 2022?", &chunks);
    assert!(answer.text.starts_with("Staff receive 25 days of annual leave. [1]"), "{answer:?}");
}

#[test]
fn overlapping_chunks_say_a_sentence_once() {
    let shared = "The blue pump lifts 42 litres.";
    let chunks = [
        chunk("pumps", 0, &format!("Pumps move water. {shared}"), 0.9),
        chunk("pumps", 1, &format!("blue pump lifts 42 litres. {shared} It is loud."), 0.8),
    ];
    let answer = extracted("What does the blue pump lift?", &chunks);
    check(&answer, &chunks);
    assert_eq!(answer.text.matches("lifts 42").count(), 1, "{}", answer.text);
}

#[test]
fn a_pronoun_brings_the_sentence_before_it() {
    let chunks = [chunk("pumps", 0, "Pump A is blue. It lifts 42 litres of water daily.", 0.9)];
    let question = "How many litres of water are lifted daily?";
    let answer = extracted(question, &chunks);
    check(&answer, &chunks);
    assert_eq!(answer.text, "Pump A is blue. It lifts 42 litres of water daily. [1]");
}

#[test]
fn a_question_in_the_text_gives_what_stands_below_it() {
    let text = "## How do I reset my password?\nPress the red button for five seconds.";
    let chunks = [chunk("faq", 0, text, 0.9)];
    let answer = extracted("How do I reset my password?", &chunks);
    check(&answer, &chunks);
    assert_eq!(answer.text, "Press the red button for five seconds. [1]");
}

#[test]
fn a_row_is_told_with_the_names_of_its_columns() {
    let text = "Pumps in stock\n\n| Pump | Lift (litres) | Price |\n| --- | ---: | --- |\n\
        | Blue | 42 | 310 EUR |\n| Red | 17 | 120 EUR |";
    let chunks = [chunk("list", 0, text, 0.9)];
    let answer = extracted("How many litres does the red pump lift?", &chunks);
    check(&answer, &chunks);
    let row = "Pump: Red; Lift (litres): 17; Price: 120 EUR";
    let cites = |citation: &&Citation| citation.sentence == row;
    let citation = answer.citations.iter().find(cites).expect("the row of the red pump");
    let of = |range: &std::ops::Range<usize>| &text[range.clone()];
    assert_eq!(of(&citation.chunk_chars), "| Red | 17 | 120 EUR |");
    assert_eq!(of(&citation.head.as_ref().unwrap().1), "| Pump | Lift (litres) | Price |");
}

#[test]
fn a_record_is_told_as_a_whole() {
    let text = "Name: Ada Brown\nRoom: 214\nPhone: 5531\n\nName: Tom Reed\nRoom: 117\nPhone: 5532";
    let chunks = [chunk("staff", 0, text, 0.9)];
    let answer = extracted("Which room has Tom Reed?", &chunks);
    check(&answer, &chunks);
    assert!(answer.text.starts_with("Name: Tom Reed; Room: 117; Phone: 5532 [1]"), "{answer:?}");
    let tasks: String = (0..20).map(|n| format!("Task {n}: has been done\n")).collect();
    let long = format!("Name: Tom Reed\n{tasks}Phone: 5532");
    let chunks = [chunk("staff", 0, &long, 0.9)];
    let answer = extracted("Which phone has Tom Reed?", &chunks);
    check(&answer, &chunks);
    assert!(answer.text.contains("Name: Tom Reed; Phone: 5532 [1]"), "{answer:?}");
}

#[test]
fn marks_of_documents_do_not_become_citations() {
    let chunks = [chunk("paper", 0, "Lift grows with speed [7], as shown in [3, 4].", 0.9)];
    let answer = extracted("Does lift grow with speed?", &chunks);
    check(&answer, &chunks);
    assert_eq!(answer.text, "Lift grows with speed (7), as shown in (3, 4). [1]");
    let text = "The pump[2] was built in 1889.[7][8] It lifts water.";
    let chunks = [chunk("wiki", 0, text, 0.9)];
    let answer = extracted("When was the pump built?", &chunks);
    check(&answer, &chunks);
    assert!(answer.text.starts_with("The pump was built in 1889. [1]"), "{}", answer.text);
}

proptest! {
    #[test]
    fn any_chunks_give_a_sound_answer(
        texts in proptest::collection::vec(
            "([a-e\\[\\]0-9]{1,4}[ .\n?]{1,2}){0,20}|\\PC{0,60}|\
             ([a-e]{1,4}(: |\n| \\| |\n\\| |\n\\|---\\|\n)){0,20}", 0..7),
        sources in proptest::collection::vec(0_usize..3, 7),
        question in "[a-e]{1,3}( [a-e0-9]{1,3}){0,4}\\?",
    ) {
        let chunks: Vec<RetrievedChunk> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| {
                chunk(["x", "y", "z"][sources[at]], at as u32, text, 1.0 - at as f32 / 10.0)
            })
            .collect();
        let answer = extracted(&question, &chunks);
        check(&answer, &chunks);
        prop_assert_eq!(deltas(&answer.text).concat(), answer.text);
    }
}

/// An embedder that records the roles and texts it is given.
#[derive(Debug, Default)]
struct Roles(Mutex<Vec<(Role, String)>>);

impl Embedder for Roles {
    fn dimension(&self) -> usize {
        HashEmbedder.dimension()
    }

    fn name(&self) -> &str {
        HashEmbedder.name()
    }

    fn fingerprint(&self) -> &str {
        HashEmbedder.fingerprint()
    }

    fn token_offsets(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        HashEmbedder.token_offsets(text)
    }

    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        HashEmbedder.embed_within(lane, context, texts)
    }

    fn embed_as(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<(Role, String)>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        self.0.lock().extend(texts.iter().cloned());
        self.embed_within(lane, context, texts.into_iter().map(|(_, text)| text).collect())
    }

    fn stats(&self) -> EmbedStats {
        HashEmbedder.stats()
    }

    fn close(&self) {}
}

#[test]
fn the_question_is_a_query_and_sentences_are_documents() {
    let roles = Arc::new(Roles::default());
    let chunks = [chunk("parking", 0, "Visitors park on level 1. Employees park on level 2.", 0.9)];
    let question = "Where do visitors park?";
    let answer = Answerer::new(roles.clone()).answer(
        &RequestContext::default(),
        question,
        &chunks,
        &[],
        SourceOrder::ByUse,
    );
    assert!(answer.unwrap().text.contains("level 1"));
    let seen = roles.0.lock();
    assert_eq!(seen[0], (Role::Query, question.to_owned()));
    assert!(seen.len() > 1 && seen[1..].iter().all(|(role, _)| *role == Role::Document));
}

/// A model that caches its vectors, because the tests compare the same sentences repeatedly.
#[derive(Debug)]
pub(crate) struct Remembering {
    model: Model,
    vectors: Mutex<BTreeMap<String, Vec<f32>>>,
}

impl Embedder for Remembering {
    fn dimension(&self) -> usize {
        self.model.dimension()
    }

    fn name(&self) -> &str {
        self.model.name()
    }

    fn fingerprint(&self) -> &str {
        self.model.fingerprint()
    }

    fn token_offsets(&self, text: &str) -> Vec<std::ops::Range<usize>> {
        self.model.token_offsets(text)
    }

    fn embed_within(
        &self,
        lane: Lane,
        context: &RequestContext,
        texts: Vec<String>,
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let mut vectors = self.vectors.lock();
        let is_new = |text: &&String| !vectors.contains_key(*text);
        let new: Vec<String> = texts.iter().filter(is_new).cloned().collect();
        if !new.is_empty() {
            let fresh = self.model.embed_within(lane, context, new.clone())?;
            vectors.extend(new.into_iter().zip(fresh));
        }
        Ok(texts.iter().map(|text| vectors[text].clone()).collect())
    }

    fn stats(&self) -> EmbedStats {
        self.model.stats()
    }

    fn close(&self) {
        self.model.close();
    }
}

/// The model in the repository's `models` folder, if it is installed.
pub(crate) fn model(test: &str) -> Option<Arc<Remembering>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/all-MiniLM-L6-v2");
    if !directory.is_dir() {
        println!("skipped: {test} needs {}", directory.display());
        return None;
    }
    let files = ModelFiles::read(&directory, &|path| std::fs::read(path)).unwrap();
    let model = Model::load(&files, 2).unwrap();
    Some(Arc::new(Remembering { model, vectors: Mutex::default() }))
}

#[test]
fn only_the_row_that_is_asked_for_is_told() {
    let Some(model) = model("only_the_row_that_is_asked_for_is_told") else { return };
    let text = "| Pump | Litres |\n|---|---|\n| Red | 17 |\n| Blue | 42 |";
    let chunks = [chunk("Pumps", 0, text, 0.9)];
    let question = "How many litres does the blue pump lift?";
    let answer = Answerer::new(model)
        .answer(&RequestContext::default(), question, &chunks, &[], SourceOrder::ByUse)
        .unwrap();
    check(&answer, &chunks);
    assert_eq!(answer.text, "Pump: Blue; Litres: 42 [1]");
}

#[test]
fn the_model_answers_and_abstains() {
    let Some(model) = model("the_model_answers_and_abstains") else { return };
    let answerer = Answerer::new(model);
    let chunks = [
        chunk(
            "Leave policy",
            0,
            "Employees get 28 days of paid leave. Requests go to the team \
            lead at least two weeks ahead. Unused days expire at the end of March.",
            0.8,
        ),
        chunk(
            "Office guide",
            0,
            "The office opens at eight. Dr. Ada Brown runs the reception. \
            Visitors sign in at the front desk. The kitchen is on the second floor.",
            0.7,
        ),
        chunk(
            "Backups",
            0,
            "Backups run every night at 02:00 and are kept for 30 days. Restores \
            are tested once a quarter.",
            0.6,
        ),
    ];
    for (question, part) in [
        ("How many vacation days do I have?", "28 days"),
        ("Who is responsible for the reception?", "Ada Brown"),
        ("When are backups made?", "02:00"),
        ("When do unused leave days expire?", "end of March"),
        ("Where can I find the kitchen?", "second floor"),
    ] {
        let answer = answerer
            .answer(&RequestContext::default(), question, &chunks, &[], SourceOrder::ByUse)
            .unwrap();
        check(&answer, &chunks);
        assert!(answer.text.contains(part), "{question} {}", answer.text);
    }
    for question in [
        "What is the capital of Mongolia?",
        "How do I bake sourdough bread?",
        "Who won the football world cup in 1990?",
        "Which enzyme breaks down lactose?",
        "What is the phone number of the finance department?",
        "When was the Magna Carta signed?",
        "How many paid parking spaces does the airport have?",
    ] {
        let answer = answerer
            .answer(&RequestContext::default(), question, &chunks, &[], SourceOrder::ByUse)
            .unwrap();
        assert!(answer.is_abstained, "{question} {}", answer.text);
    }
}

#[test]
fn the_model_finds_the_answer_in_a_later_source() {
    let Some(model) = model("the_model_finds_the_answer_in_a_later_source") else { return };
    let answerer = Answerer::new(model);
    let chunks = [
        chunk(
            "Travel policy",
            0,
            "Travel has to be approved by the team lead before it is booked. Flights are booked \
            by the travel desk. Travel in first class is not paid for. Travel by car is paid by \
            the kilometre.",
            0.9,
        ),
        chunk(
            "Expenses",
            0,
            "Receipts are handed in within 30 days. The daily allowance for meals on a business \
            trip is 28 euros. Gifts to clients are limited to 35 euros.",
            0.5,
        ),
        chunk(
            "Rates",
            0,
            "| Country | Hotel limit | Meals |\n| --- | --- | --- |\n\
            | France | 150 EUR | 58 EUR |\n| Poland | 110 EUR | 40 EUR |",
            0.4,
        ),
    ];
    for (question, part) in [
        ("How much can I spend on meals per day when I travel?", "28 euros"),
        ("What is the hotel limit for travel to Poland?", "Hotel limit: 110 EUR"),
        ("Who has to approve travel?", "team lead"),
    ] {
        let answer = answerer
            .answer(&RequestContext::default(), question, &chunks, &[], SourceOrder::ByUse)
            .unwrap();
        check(&answer, &chunks);
        assert!(answer.text.contains(part), "{question} {}", answer.text);
    }
}

/// The lines of a file of the shared collection of questions, if present.
fn lines(directory: &Path, name: &str) -> Option<Vec<Value>> {
    let path = directory.join(format!("{name}.jsonl.gz"));
    let output = Command::new("gzip").arg("-dc").arg(path).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|text| !text.is_empty())?;
    text.lines().map(|line| serde_json::from_str(line).ok()).collect()
}

fn text_of<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap()
}

/// Goal: the lowest accepted answer quality. Method: every ninth English question of XQuAD on its
/// first twelve articles, with its paragraph among the other four of the article, without it, and
/// with five of other articles.
#[test]
#[allow(clippy::too_many_lines)] // One measurement with its table.
fn questions_of_a_collection_are_answered() {
    let name = "questions_of_a_collection_are_answered";
    let Some(model) = model(name) else { return };
    let found = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|above| above.join("shared/data/xquad"))
        .find(|directory| directory.is_dir());
    let Some(directory) = found else {
        println!("skipped: {name} needs shared/data/xquad beside the repository");
        return;
    };
    let read = |file| lines(&directory, file);
    let (Some(corpus), Some(queries), Some(answers), Ok(judged)) = (
        read("corpus"),
        read("queries"),
        read("answers"),
        std::fs::read_to_string(directory.join("qrels/test.tsv")),
    ) else {
        println!("skipped: {name} needs gzip and {}", directory.display());
        return;
    };
    let is_english = |v: &&Value| v["metadata"]["lang"] == "en";
    let corpus: Vec<&Value> = corpus.iter().filter(is_english).take(60).collect();
    let answers: BTreeMap<&str, &Value> =
        answers.iter().map(|v| (text_of(v, "query-id"), &v["answers"])).collect();
    let right: BTreeMap<&str, &str> = judged
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(query, rest)| (query, rest.split('\t').next().unwrap()))
        .collect();
    let answerer = Answerer::new(model.clone());
    let ask = |question: &str, positions: &[usize]| {
        let mut chunks: Vec<RetrievedChunk> = positions
            .iter()
            .map(|at| {
                let texts = vec![question.to_owned(), text_of(corpus[*at], "text").to_owned()];
                let pair = model.embed(Lane::Query, texts).unwrap();
                let cosine = crate::relevance::score::dot(&pair[0], &pair[1]);
                let score = (1.0 + cosine) / 2.0;
                let title = text_of(corpus[*at], "title");
                let mut made = chunk(title, *at as u32, text_of(corpus[*at], "text"), score);
                made.place.document_start = (*at * 10_000) as u32;
                made.parts.cosine = Some(cosine);
                made
            })
            .collect();
        chunks.sort_by(|a, b| b.score.total_cmp(&a.score));
        let answer = answerer
            .answer(&RequestContext::default(), question, &chunks, &[], SourceOrder::ByUse)
            .unwrap();
        check(&answer, &chunks);
        answer
    };
    let (mut asked, mut right_answers, mut sentences) = (0, 0, 0);
    let (mut abstained, mut abstained_near, mut abstained_far) = (0, 0, 0);
    for query in queries.iter().filter(is_english).step_by(9) {
        let (id, question) = (text_of(query, "_id"), text_of(query, "text"));
        let Some(at) = corpus.iter().position(|v| text_of(v, "_id") == right[id]) else { continue };
        let article: Vec<usize> = (at / 5 * 5..at / 5 * 5 + 5).collect();
        let others: Vec<usize> = article.iter().copied().filter(|other| *other != at).collect();
        let far: Vec<usize> = (1..6).map(|n| (at + n * 10) % corpus.len()).collect();
        let answer = ask(question, &article);
        let is_right = answers[id].as_array().unwrap().iter().any(|expected| {
            answer.text.contains(&crate::text::shown::shown(expected.as_str().unwrap(), false))
        });
        asked += 1;
        right_answers += usize::from(is_right);
        sentences += answer.citations.len();
        abstained += usize::from(answer.is_abstained);
        abstained_near += usize::from(ask(question, &others).is_abstained);
        abstained_far += usize::from(ask(question, &far).is_abstained);
    }
    let share = |count: usize| count as f64 / f64::from(asked);
    println!(
        "{asked} questions: right {:.3}, abstained {:.3}, sentences {:.2}; abstained without the \
         paragraph {:.3}, among other articles {:.3}",
        share(right_answers),
        share(abstained),
        share(sentences),
        share(abstained_near),
        share(abstained_far),
    );
    // Measured: 0.917, 0.056, 1.81, 0.694, 1.000. Of what documents nearly answer more than half is
    // declined, which costs a few questions that they do answer.
    assert!(share(right_answers) >= 0.88);
    assert!(share(abstained) <= 0.08);
    assert!(share(sentences) <= 2.6);
    assert!(share(abstained_near) >= 0.6);
    assert!(share(abstained_far) >= 0.97);
}
