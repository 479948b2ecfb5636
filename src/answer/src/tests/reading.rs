//! Tests of the reader's influence on answers.

use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::*;
use lodestone_rank::{RerankError, Reranker, Verdicts};

/// A reader that is certain of passages with one text and of no others. Records what it reads.
#[derive(Debug, Default)]
struct Sure {
    of: &'static str,
    read: Mutex<Vec<String>>,
    /// Maximum number of passages that it scores; `fails` makes it fail instead.
    most: Option<usize>,
    fails: bool,
}

impl Reranker for Sure {
    fn name(&self) -> &str {
        "sure"
    }

    fn score(
        &self,
        _: &RequestContext,
        _: Option<Instant>,
        query: &str,
        passages: &[&str],
    ) -> Result<Verdicts, RerankError> {
        self.read.lock().extend([query].iter().chain(passages).map(|text| (*text).to_owned()));
        if self.fails {
            return Err(RerankError::new(ErrorKind::Internal, "no weights"));
        }
        let sure = |passage: &&str| if passage.contains(self.of) { 0.999 } else { 0.001 };
        let most = self.most.unwrap_or(passages.len());
        let scores: Vec<f32> = passages.iter().take(most).map(sure).collect();
        Ok(Verdicts { is_cut_short: scores.len() < passages.len(), scores })
    }
}

fn read_by(reader: &Arc<Sure>, question: &str) -> Answer {
    read_of(reader, question, "Locking rules", RULES)
}

fn read_of(reader: &Arc<Sure>, question: &str, title: &str, text: &str) -> Answer {
    let chunks = [chunk(title, 0, text, 0.9)];
    let reader: Option<Arc<dyn Reranker>> = Some(Arc::clone(reader) as _);
    let answerer = Answerer::new(Arc::new(HashEmbedder)).read_by(reader);
    let order = SourceOrder::ByUse;
    answerer.answer(&RequestContext::default(), question, &chunks, &[], order).unwrap()
}

const RULES: &str = "The north gate is locked by the guard in the evening. The south gate is \
    locked by the clerk in the evening.";
const QUESTION: &str = "Who locks the gate in the evening?";

#[test]
fn the_passage_of_which_the_reader_is_sure_is_told() {
    for (of, other) in [("guard", "clerk"), ("clerk", "guard")] {
        let reader = Arc::new(Sure { of, ..Sure::default() });
        let text = read_by(&reader, QUESTION).text;
        let first = text.split_once('.').map_or(text.as_str(), |(first, _)| first);
        assert!(first.contains(of) && !first.contains(other), "{text}");
        let read = reader.read.lock();
        assert_eq!(read[0], QUESTION);
        assert!(read[1..].iter().all(|passage| passage.starts_with("Locking rules: ")), "{read:?}");
    }
}

/// Goal: a reader that fails, or has scored only some of the passages, changes nothing.
#[test]
fn an_answer_goes_without_a_reader_that_is_not_done() {
    let without = {
        let chunks = [chunk("Locking rules", 0, RULES, 0.9)];
        let answerer = Answerer::new(Arc::new(HashEmbedder));
        let context = RequestContext::default();
        answerer.answer(&context, QUESTION, &chunks, &[], SourceOrder::ByUse).unwrap()
    };
    assert_ne!(without.text, ABSTENTION);
    let done = read_by(&Arc::new(Sure { of: "guard", ..Sure::default() }), QUESTION);
    let failing = Arc::new(Sure { of: "clerk", fails: true, ..Sure::default() });
    let slow = Arc::new(Sure { of: "clerk", most: Some(1), ..Sure::default() });
    let (failing, slow) = (read_by(&failing, QUESTION), read_by(&slow, QUESTION));
    assert_eq!((&failing.text, &slow.text), (&without.text, &without.text));
    assert!(failing.text.contains("guard") && done.text.contains("guard"));
}

#[test]
fn other_languages_are_not_read() {
    let german = "Das Nordtor wird am Abend von dem Wächter abgeschlossen. Der Schlüssel liegt in \
        der Loge.";
    for (question, text) in [
        ("Wer schließt am Abend das Tor ab?", RULES),
        ("Кто закрывает ворота вечером?", RULES),
        (QUESTION, german),
        // The language of neither text is recognised.
        ("Milloin portti avataan?", "Portti avataan klo 7."),
    ] {
        let reader = Arc::new(Sure::default());
        let _ = read_of(&reader, question, "Locking rules", text);
        assert!(reader.read.lock().is_empty(), "{question}");
    }
    let reader = Arc::new(Sure::default());
    let _ = read_by(&reader, "gate locked evening");
    assert!(!reader.read.lock().is_empty(), "the text tells the language of key words");
}

/// Goal: rules alone choose rows, lists, and steps that are in a list.
#[test]
fn lists_steps_and_comparisons_are_not_read() {
    let steps = "# The north gate\n\nHow to lock the north gate:\n\n1. Close the north gate.\n\
        2. Lock the bolt of the gate.\n";
    let reader = Arc::new(Sure::default());
    let _ = read_of(&reader, "How do I lock the north gate?", "Locking rules", steps);
    assert!(reader.read.lock().is_empty(), "steps in a list");
    for question in [
        "Which gates are locked in the evening?",
        "Which gate is locked earliest?",
        "What is the difference between the two gates?",
    ] {
        let reader = Arc::new(Sure::default());
        let _ = read_by(&reader, question);
        assert!(reader.read.lock().is_empty(), "{question}");
    }
}

#[test]
fn a_few_passages_are_read_behind_a_short_title() {
    let sentences: Vec<String> =
        (0..30).map(|at| format!("The gate number {at} is locked in the evening.")).collect();
    let reader = Arc::new(Sure::default());
    let _ = read_of(&reader, QUESTION, "Long title ".repeat(21).trim(), &sentences.join(" "));
    let read = reader.read.lock();
    assert_eq!(read.len(), 1 + 8);
    let fits = |passage: &String| passage.len() < 300 && passage.contains("is locked");
    assert!(read[1..].iter().all(fits), "{read:?}");
}

/// Goal: a sentence that states an end date does not count as a row identified by its value, so the
/// reader may prefer another one.
#[test]
fn a_sentence_that_tells_an_end_gives_way_to_what_the_reader_is_sure_of() {
    let text = "Until 30 June the gate is locked at ten. Reeds are cut between October and March.";
    let reader = Arc::new(Sure { of: "Reeds", ..Sure::default() });
    let answer = read_of(&reader, "Until when may the reeds be mown?", "Pond", text);
    assert!(answer.text.starts_with("Reeds are cut"), "{}", answer.text);
}

/// Goal: single passages are read if no list is confident enough.
#[test]
fn single_passages_are_read_for_want_of_steps() {
    let text = "# Storm\n\n1. Close the hatch.\n2. Lower the mast.\n\n# Insects\n\n\
        Wasps in the cabin: the harbour master smokes them out.\n";
    let question = "There are wasps on board, how should I react?";
    let unsure = Arc::new(Sure { of: "nothing", ..Sure::default() });
    let answer = read_of(&unsure, question, "Boats", text);
    assert!(answer.is_abstained, "{}", answer.text);
    let read = unsure.read.lock();
    assert!(read.iter().any(|passage| passage.contains("Wasps in the cabin")), "{read:?}");
    assert!(!read.iter().any(|passage| passage.contains("hatch. 2. Lower")), "{read:?}");
}

/// A code that only one row has says which row is meant, whatever the reader thinks of it.
#[test]
fn a_code_leaves_no_doubt_about_its_row() {
    let reader = Arc::new(Sure { of: "never said", ..Sure::default() });
    let faults = "The kiln shows faults on its display.\n\n| Code | Meaning |\n|---|---|\n\
        | K1 | door open |\n| K2 | probe broken |\n| K7 | cooling down by itself |\n";
    let told = |question: &str| read_of(&reader, question, "Kiln", faults).text;
    let answer = told("the display shows K7, what does it mean?");
    assert!(answer.contains("cooling down") && !answer.contains("K1"), "{answer}");
    for question in
        ["the display shows K9, what does it mean?", "Who invented K7?", "What does a K7 cost?"]
    {
        assert_eq!(told(question), ABSTENTION, "{question}");
    }
}

/// Goal: a passage of another section that the reader judges as likely as the first is told after
/// it, and one that it denies is not.
#[test]
fn a_second_opinion_of_the_reader_is_told() {
    let text = "## Gates\n\nThe north gate is locked by the guard in the evening.\n\n## Keys\n\n\
        The south gate is shut by the clerk in the evening.\n\n## Bells\n\nThe bell rings \
        at noon.\n";
    for (of, has_second) in [("gate", true), ("guard", false)] {
        let reader = Arc::new(Sure { of, ..Sure::default() });
        let answer = read_of(&reader, QUESTION, "Locking rules", text).text;
        assert!(answer.starts_with("The north gate is locked by the guard"), "{answer}");
        assert_eq!(answer.contains("clerk"), has_second, "{of}: {answer}");
        assert!(!answer.contains("bell"), "{answer}");
    }
}

/// Goal: a field with nothing but the name asked about does not outweigh what the reader prefers.
#[test]
fn a_field_with_the_name_alone_tells_nothing() {
    let settings = "site: north\nreservoir:\n  name: Tarn\n  volume_m3: 92000\n";
    let reader = Arc::new(Sure { of: "volume", ..Sure::default() });
    let question = "What is the volume of the Tarn reservoir?";
    let answer = read_of(&reader, question, "settings.yaml", settings).text;
    assert!(answer.contains("volume_m3: 92000"), "{answer}");
}
