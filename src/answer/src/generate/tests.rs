//! Tests of generated answers with a scripted generator.

use std::ops::ControlFlow;
use std::sync::Arc;

use parking_lot::Mutex;
use proptest::prelude::*;

use crate::generate::marks::{Mark, MarkedText};
use crate::generate::prompt::{Shown, show};
use crate::generate::support::doubts;
use crate::generate::tokens::estimate;
use crate::generate::*;
use crate::sources_only;
use crate::testing::chunk;
use crate::tests::model;
use lodestone_embed::HashEmbedder;
use lodestone_types::{RandomIds, RequestContext, RetrievedChunk};

/// A generator that emits fixed pieces, then ends or fails, and records its prompts.
#[derive(Debug)]
struct Scripted {
    pieces: Vec<&'static str>,
    failure: Option<GenerateError>,
    asked: Mutex<Vec<Prompt>>,
}

impl Generator for Scripted {
    fn model(&self) -> &str {
        "scripted"
    }

    fn place(&self) -> &str {
        "nowhere"
    }

    fn context_tokens(&self) -> usize {
        4096
    }

    fn generate(
        &self,
        prompt: &Prompt,
        _: &CancellationToken,
        tell: Tell<'_>,
    ) -> Result<Ended, GenerateError> {
        self.asked.lock().push(prompt.clone());
        for piece in &self.pieces {
            if tell(piece).is_break() {
                return Err(GenerateError::Cancelled);
            }
        }
        self.failure.clone().map_or_else(|| Ok(Ended::default()), Err)
    }

    fn look(&self) -> Result<String, GenerateError> {
        Ok("it answers".to_owned())
    }
}

fn scripted(pieces: &[&'static str], failure: Option<GenerateError>) -> Arc<Scripted> {
    Arc::new(Scripted { pieces: pieces.to_vec(), failure, asked: Mutex::default() })
}

fn writer(generator: &Arc<Scripted>) -> Writer {
    let generator = Arc::clone(generator) as Arc<dyn Generator>;
    Writer::new(generator, Arc::new(RandomIds))
}

fn asked<'a>(text: &'a str, past: &'a [(String, String)]) -> Question<'a> {
    Question {
        text,
        past,
        user_name: "",
        user_instructions: "",
        sampling: Sampling::default(),
        tools: None,
        embedder: &HashEmbedder,
    }
}

fn write(
    writer: &Writer,
    chunks: &[RetrievedChunk],
    delivery: Delivery,
) -> (Vec<String>, Result<Written, GenerateError>) {
    let question = asked("What does the blue pump lift?", &[]);
    let sources = sources_only(question.text, chunks);
    let mut told = Vec::new();
    let mut tell = |piece: &str| {
        told.push(piece.to_owned());
        ControlFlow::Continue(())
    };
    let context = RequestContext::default();
    let written = writer.write(&question, &sources, chunks, delivery, &context, &mut tell);
    (told, written)
}

fn pumps() -> [RetrievedChunk; 3] {
    [
        chunk("pumps", 2, "The blue pump lifts 42 litres of water daily.", 0.9),
        chunk("cats", 0, "Cats sleep most of the day and eat fish.", 0.8),
        chunk("pumps", 0, "Pumps move water [3].", 0.7),
    ]
}

#[test]
fn an_answer_is_told_and_its_citations_are_checked() {
    let pieces = ["The blue pump lifts ", "42 litres [1", "]. Whales sing ", "in winter [2]."];
    let generator = scripted(&pieces, None);
    let (told, written) = write(&writer(&generator), &pumps(), Delivery::Streamed);
    let written = written.unwrap();
    assert_eq!(told.concat(), written.text);
    assert_eq!(written.text, "The blue pump lifts 42 litres [1]. Whales sing in winter [2].");
    let whales = Unsupported { number: 2, answer_chars: 35..61 };
    assert_eq!(written.unsupported, [whales]);
    assert_eq!(written.text.chars().skip(35).collect::<String>(), "Whales sing in winter [2].");
    let (_, whole) = write(&writer(&generator), &pumps(), Delivery::Whole);
    let whole = whole.unwrap();
    assert_eq!(whole.text, "The blue pump lifts 42 litres [1]. Whales sing in winter.");
    let whales = Unsupported { number: 2, answer_chars: 35..57 };
    assert_eq!((whole.unsupported, whole.chunks_shown), (vec![whales], 3));
    let prompt = &generator.asked.lock()[0].messages[1].text;
    let places = ["Pumps move water (3).", "The blue pump", "Cats sleep", "Question: "];
    let places = places.map(|text| prompt.find(text).expect(text));
    assert!(places.is_sorted(), "sources by relevance, chunks as in the document: {prompt}");
}

#[test]
fn failures_are_told_apart() {
    let away = GenerateError::Unreachable { cause: "gone".to_owned() };
    let generator = scripted(&[], Some(away.clone()));
    let broken = writer(&generator);
    assert_eq!(write(&broken, &pumps(), Delivery::Whole).1, Err(away));
    let again = write(&broken, &pumps(), Delivery::Whole).1.unwrap_err();
    assert_eq!(again.reason(), "unreachable");
    assert_eq!(generator.asked.lock().len(), 1, "it is left alone for a while");
    let empty = writer(&scripted(&[" ", "\n", "[9]"], None));
    assert_eq!(write(&empty, &pumps(), Delivery::Whole).1, Err(GenerateError::Empty));
    let said = writer(&scripted(&["So it is."], None));
    let gone = said.write(
        &asked("What?", &[]),
        &sources_only("What?", &pumps()),
        &pumps(),
        Delivery::Streamed,
        &RequestContext::default(),
        &mut |_| ControlFlow::Break(()),
    );
    assert_eq!(gone, Err(GenerateError::Cancelled));
    let long = "why ".repeat(4000);
    let generator = scripted(&["x"], None);
    let question = asked(&long, &[]);
    let none = writer(&generator).write(
        &question,
        &sources_only("why", &pumps()),
        &pumps(),
        Delivery::Whole,
        &RequestContext::default(),
        &mut |_| ControlFlow::Continue(()),
    );
    assert_eq!(none.unwrap_err().reason(), "question_too_long");
}

#[test]
fn understanding_falls_back_to_the_rule() {
    let past = [("Who designed the tower?".to_owned(), "Gustave Eiffel did. [1]".to_owned())];
    let context = RequestContext::default();
    let follow_up = "And when?";
    let understood = |generator: &Arc<Scripted>, question: &str, past: &[(String, String)]| {
        writer(generator).understand(question, past, true, &context).unwrap()
    };
    let failing = scripted(&["half a li"], Some(GenerateError::Empty));
    let by_rule = Understood::by_rule(follow_up, &past, &context).unwrap();
    let failed = Understood { failure: Some(GenerateError::Empty), ..by_rule.clone() };
    assert_eq!(understood(&failing, follow_up, &past), failed);
    assert_eq!(
        understood(&scripted(&["\n-\n"], None), follow_up, &past).question,
        by_rule.question
    );
    let good = scripted(&["When was the tower designed?\nWho?\nWhen?"], None);
    let whole = understood(&good, follow_up, &past);
    assert_eq!(whole.question, "When was the tower designed?");
    assert!(whole.is_generated && whole.parts.is_empty(), "it was not to be split");
    let parts = understood(&good, "Who designed the tower and when was it?", &past);
    assert_eq!(parts.parts, ["Who?", "When?"]);
    assert!(!understood(&good, "Who designed the tower?", &[]).is_generated);
    assert_eq!(good.asked.lock().len(), 2, "a plain question costs no call");
    let shown = &good.asked.lock()[0].messages[1].text;
    assert!(shown.contains("Gustave Eiffel did.\n"), "past answers have no marks: {shown}");
}

/// The fence of a prompt, and the lines of the prompt that contain it.
fn fenced(shown: &Shown) -> (String, Vec<String>) {
    let rules = &shown.messages[0].text;
    let fence = rules.split("<<< ").nth(1).unwrap().split_whitespace().next().unwrap();
    let lines = shown.messages[1].text.lines().filter(|line| line.contains(fence));
    (fence.to_owned(), lines.map(str::to_owned).collect())
}

proptest! {
    /// Goal: for any documents, turns and questions, the prompt fits its window, and the fence
    /// occurs only at the lines that open and close a fenced text.
    #[test]
    fn a_prompt_fits_and_keeps_its_fence(
        texts in proptest::collection::vec(
            "(>>> |<<< |source 1|\\PC|[a-z ]{0,9}\n|\\[1\\]){0,60}", 1..9),
        turns in proptest::collection::vec(("\\PC{0,200}", "(>>> |\\PC|\n){0,200}"), 0..12),
        question in "\\PC{1,200}",
        wishes in "(\n- Rule: |\\PC){0,50}",
        window in 2048_usize..6000,
    ) {
        let names = ["a", "b", "c"];
        let chunks: Vec<RetrievedChunk> = texts
            .iter()
            .enumerate()
            .map(|(at, text)| chunk(names[at % 3], at as u32, text, 1.0 - at as f32 / 10.0))
            .collect();
        let sources = sources_only(&question, &chunks);
        let asked = Question {
            text: &question, past: &turns, user_name: "x\ny", user_instructions: &wishes,
            sampling: Sampling::default(),
            tools: None,
            embedder: &HashEmbedder,
        };
        let shown = show(&asked, &sources, &chunks, window, &RandomIds).unwrap();
        let tokens: usize = shown.messages.iter().map(|message| estimate(&message.text)).sum();
        prop_assert!(tokens + shown.reply_tokens_max <= window, "{tokens}");
        let (fence, lines) = fenced(&shown);
        for (at, line) in lines.iter().enumerate() {
            let is_end = *line == format!(">>> {fence}");
            let is_begin = line.starts_with(&format!("<<< {fence} "));
            prop_assert!(if at % 2 == 0 { is_begin } else { is_end }, "{line}");
        }
        let of_sources = lines.iter().filter(|line| line.contains(" source ")).count();
        prop_assert_eq!(of_sources, shown.numbers.len());
    }
}

#[test]
fn what_does_not_fit_is_left_out_from_the_end() {
    let sentence = "The pump lifts water every day of the year without a pause. ";
    let chunks: Vec<RetrievedChunk> =
        (0..40).map(|at| chunk("a", at, &sentence.repeat(20), 0.5)).collect();
    let sources = sources_only("pump", &chunks);
    let show = |chunks: &[RetrievedChunk], past: &[(String, String)]| {
        show(&asked("pump?", past), &sources, chunks, 4096, &RandomIds).unwrap()
    };
    let shown = show(&chunks, &[]);
    assert!((3..40).contains(&shown.chunks.len()), "{:?}", shown.chunks);
    assert!(shown.chunks.iter().copied().eq(0..shown.chunks.len()));
    assert!(!shown.messages[1].text.contains("is not shown"), "chunks are left out whole");
    let turn = ("What is it?".to_owned(), sentence.repeat(10));
    let talked = show(&chunks, &vec![turn; 10]);
    let turns = talked.messages[1].text.matches("What is it?").count();
    assert!((1..10).contains(&turns), "a conversation has its share: {turns}");
    assert!(talked.chunks.len() >= shown.chunks.len() / 2);
    let long = [chunk("a", 0, &sentence.repeat(1000), 0.5)];
    let sources = sources_only("pump", &long);
    let cut = super::prompt::show(&asked("pump?", &[]), &sources, &long, 4096, &RandomIds).unwrap();
    assert!(cut.messages[1].text.contains("without a pause.\n(the rest is not shown)\n"));
}

#[test]
fn a_chunk_is_shown_below_the_lines_that_it_needs() {
    let above = "Pumps\n| Pump | Litres |".to_owned();
    let chunks = [RetrievedChunk { above, ..chunk("pumps", 3, "| A | 42 |", 0.9) }];
    let sources = sources_only("pump", &chunks);
    let shown = show(&asked("pump?", &[]), &sources, &chunks, 4096, &RandomIds).unwrap();
    let text = &shown.messages[1].text;
    assert!(text.contains("Pumps\n| Pump | Litres |\n| A | 42 |\n"), "{text}");
}

/// Goal: citations of the wrong source are detected and correct ones stay. Method: sentences of
/// documents, verbatim and reworded, are marked with their own source and with another.
#[test]
fn the_model_tells_right_citations_from_wrong_ones() {
    let Some(model) = model("the_model_tells_right_citations_from_wrong_ones") else { return };
    let chunks = [
        chunk(
            "leave",
            0,
            "Employees get 28 days of paid leave. Requests go to the team lead at \
            least two weeks ahead. Unused days expire at the end of March.",
            0.9,
        ),
        chunk(
            "backups",
            0,
            "Backups run every night at 02:00 and are kept for 30 days. Restores \
            are tested once a quarter.",
            0.8,
        ),
    ];
    let sources = sources_only("x", &chunks);
    let claims = [
        ("Staff have 28 days of paid holiday", 1),
        ("Unused leave days are lost after March", 1),
        ("Every night at two a backup is made", 2),
        ("They test restoring four times a year", 2),
    ];
    let doubted = |shift: usize| {
        let mut marked = MarkedText::default();
        for (at, (claim, number)) in claims.iter().enumerate() {
            // The first claim stays correct, so that the answer has a supported sentence.
            let number = if at == 0 { *number } else { (number - 1 + shift) % 2 + 1 };
            marked.plain.push_str(claim);
            marked.plain.push(' ');
            marked.marks.push(Mark { at: marked.plain.len(), number });
            marked.plain.push_str(". ");
        }
        let found =
            doubts(&*model, &RequestContext::default(), &marked, &sources, &chunks, &[0, 1]);
        let found = found.unwrap();
        found.into_iter().map(|doubt| doubt.mark).collect::<Vec<_>>()
    };
    assert_eq!(doubted(0), Vec::<usize>::new());
    assert_eq!(doubted(1), [1, 2, 3]);
}
