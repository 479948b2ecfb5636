//! Goal: the invariants of the module hold for any text. Method: a fake tokenizer, properties.

use std::ops::Range;

use proptest::prelude::*;

use crate::chunk::{CHARS_PER_TOKEN_MAX, ChunkSizes, TokenOffsets, chunk};
use lodestone_types::{Block, BlockKind, ChunkDraft};

/// Tokens are runs of letters and digits, and any other character that is not white space.
struct Words;

impl TokenOffsets for Words {
    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        let mut tokens: Vec<Range<usize>> = Vec::new();
        let mut in_word = false;
        for (at, c) in text.char_indices() {
            let end = at + c.len_utf8();
            match tokens.last_mut() {
                Some(last) if in_word && c.is_alphanumeric() => last.end = end,
                _ if !c.is_whitespace() => tokens.push(at..end),
                _ => {}
            }
            in_word = c.is_alphanumeric();
        }
        tokens
    }
}

/// Every character is a token, including white space.
struct Characters;

impl TokenOffsets for Characters {
    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        text.char_indices().map(|(at, c)| at..at + c.len_utf8()).collect()
    }
}

/// Gives up: one token for any input.
struct Unknown;

impl TokenOffsets for Unknown {
    fn token_offsets(&self, text: &str) -> Vec<Range<usize>> {
        std::iter::once(0..text.len()).collect()
    }
}

const SMALL: ChunkSizes = ChunkSizes { tokens: 20, overlap: 6 };

fn paragraphs(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut at = 0;
    for part in text.split("\n\n") {
        if !part.trim().is_empty() {
            let kind = match part.bytes().take_while(|&b| b == b'#').count() {
                0 => BlockKind::Paragraph,
                level => BlockKind::Heading { level: level as u8 },
            };
            let start = at + part.len() - part.trim_start().len();
            blocks.push(Block { kind, range: start..at + part.trim_end().len() });
        }
        at += part.len() + 2;
    }
    blocks
}

fn characters(text: &str, from: u32, count: u32) -> String {
    text.chars().skip(from as usize).take(count as usize).collect()
}

/// Checks the invariants that hold for every text; returns the chunks' ranges in characters.
fn check(text: &str, drafts: &[ChunkDraft], sizes: ChunkSizes) -> Vec<Range<u32>> {
    let mut covered = vec![false; text.chars().count()];
    let mut ranges: Vec<Range<u32>> = Vec::new();
    for draft in drafts {
        let place = draft.place;
        assert_eq!(draft.text, characters(text, place.document_start, place.chars));
        assert_eq!(place.page_start, place.document_start);
        assert_eq!(draft.text.trim(), draft.text);
        assert!(!draft.text.is_empty());
        assert!(draft.text.chars().count() <= sizes.tokens.max(1) * CHARS_PER_TOKEN_MAX);
        let range = place.document_start..place.document_start + place.chars;
        if let Some(last) = ranges.last() {
            assert!(last.start < range.start && last.end < range.end, "{last:?} {range:?}");
        }
        covered[range.start as usize..range.end as usize].fill(true);
        ranges.push(range);
    }
    for (c, is_covered) in text.chars().zip(&covered) {
        assert!(*is_covered || c.is_whitespace());
    }
    ranges
}

fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-zA-Z]{1,12}",
        2 => Just(" ".to_owned()),
        1 => Just("\n".to_owned()),
        1 => Just("\n\n".to_owned()),
        1 => Just("\n\n## Head\n\n".to_owned()),
        1 => Just(". ".to_owned()),
        1 => "[一-丠]{1,9}。",
        1 => Just("e\u{301}\u{1F468}\u{200D}\u{1F469}".to_owned()),
        1 => "\\PC{0,9}",
        1 => "[a-z]{100,300}",
        1 => (50_usize..900).prop_map(|count| " ".repeat(count)),
        1 => (50_usize..900).prop_map(|count| "\n".repeat(count)),
    ];
    prop::collection::vec(piece, 0..80).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn every_text_is_covered_by_bounded_chunks(
        text in hostile_text(),
        with_blocks: bool,
        tokens in 1_usize..40,
        overlap in 0_usize..60,
    ) {
        let sizes = ChunkSizes { tokens, overlap };
        let blocks = if with_blocks { paragraphs(&text) } else { Vec::new() };
        for tokenizer in [&Words as &dyn TokenOffsets, &Characters, &Unknown] {
            let drafts = chunk(&text, &blocks, tokenizer, sizes);
            check(&text, &drafts, sizes);
            prop_assert_eq!(&drafts, &chunk(&text, &blocks, tokenizer, sizes));
        }
        for draft in chunk(&text, &blocks, &Words, sizes) {
            prop_assert!(Words.token_offsets(&draft.text).len() <= tokens);
        }
    }

    #[test]
    fn overlap_is_real_where_there_are_no_sections(
        words in prop::collection::vec("[a-z]{1,8}[.,]?", 60..300),
    ) {
        let text = words.join(" ");
        let ranges = check(&text, &chunk(&text, &[], &Words, SMALL), SMALL);
        prop_assert!(ranges.len() > 1);
        for pair in ranges.windows(2) {
            prop_assert!(pair[1].start < pair[0].end);
            let shared = characters(&text, pair[1].start, pair[0].end - pair[1].start);
            let count = Words.token_offsets(&shared).len();
            prop_assert!((1..=9).contains(&count), "{count} tokens in {shared:?}");
        }
    }
}

#[test]
fn a_text_that_fits_is_one_chunk() {
    let text = "# Title\n\nOne. Two.\n\n## Part\n\nThree.";
    let drafts = chunk(text, &paragraphs(text), &Words, SMALL);
    assert_eq!(drafts.len(), 1);
    assert_eq!(drafts[0].text, text);
    assert!(chunk(" \n\t ", &[], &Words, SMALL).is_empty());
    assert!(chunk("", &[], &Words, SMALL).is_empty());
}

#[test]
fn a_long_run_of_white_space_is_no_part_of_a_chunk() {
    let text = format!("alpha{}omega", " ".repeat(100_000));
    let drafts = chunk(&text, &[], &Words, SMALL);
    let texts: Vec<&str> = drafts.iter().map(|draft| draft.text.as_str()).collect();
    assert_eq!(texts, ["alpha", "omega"]);
}

#[test]
fn a_heading_stays_with_what_follows_and_a_section_repeats_nothing() {
    let body = "one two three four five six seven eight nine ten eleven.";
    let text = format!("## First\n\n{body}\n\n## Second\n\n{body}\n\n## Third\n\n{body}");
    let drafts = chunk(&text, &paragraphs(&text), &Words, SMALL);
    let starts: Vec<&str> = drafts.iter().map(|d| d.text.lines().next().unwrap()).collect();
    assert_eq!(starts, ["## First", "## Second", "## Third"]);
}

#[test]
fn a_line_that_announces_a_list_stays_with_it() {
    let body = "one two three four five six seven eight nine ten eleven.";
    let text = format!(
        "{body}\n\nYou need:\n\n- a passport of your own country\n- a photograph of the face"
    );
    let item = |part: &str| {
        let at = text.find(part).unwrap();
        Block { kind: BlockKind::ListItem, range: at..at + part.len() }
    };
    let items = [item("- a passport of your own country"), item("- a photograph of the face")];
    let blocks: Vec<Block> = paragraphs(&text).into_iter().take(2).chain(items).collect();
    let drafts = chunk(&text, &blocks, &Words, ChunkSizes { tokens: 20, overlap: 0 });
    let texts: Vec<&str> = drafts.iter().map(|draft| draft.text.as_str()).collect();
    assert_eq!(texts, [body, &text[body.len() + 2..]]);
}

#[test]
fn no_chunk_begins_with_the_rest_of_a_record() {
    let sizes = ChunkSizes { tokens: 100, overlap: 32 };
    let chunks_of = |text: &str| {
        let blocks = paragraphs(text).into_iter();
        let blocks: Vec<Block> =
            blocks.map(|block| Block { kind: BlockKind::Record, ..block }).collect();
        chunk(text, &blocks, &Words, sizes)
    };
    let record = |n: usize| {
        format!("name: Person {n}\ncity: Oslo\nprice: {n}\nstock: 7\ncolour: red\nnote: none")
    };
    let text = (0..50).map(record).collect::<Vec<_>>().join("\n\n");
    let drafts = chunks_of(&text);
    check(&text, &drafts, sizes);
    assert!(drafts.iter().all(|draft| draft.text.starts_with("name: Person")), "{drafts:?}");
    let count = drafts.iter().map(|draft| draft.text.matches("name").count()).sum::<usize>();
    assert!(count > 50, "whole records overlap");
    // A record longer than a chunk overlaps with itself.
    let long = format!("{}\n\nname: Long{}", record(1), "\nline: word".repeat(100));
    let ranges = check(&long, &chunks_of(&long), sizes);
    assert!(ranges.windows(2).all(|pair| pair[1].start < pair[0].end), "{ranges:?}");
}

#[test]
fn lines_of_a_log_stay_whole() {
    let log: String =
        (10..40).map(|n| format!("10:{n} ERROR No room. It is tried again.\n")).collect();
    for draft in chunk(&log, &paragraphs(&log), &Words, ChunkSizes { tokens: 32, overlap: 0 }) {
        assert!(draft.text.starts_with("10:") && draft.text.ends_with("again."), "{draft:?}");
    }
    let prose = "The pump runs. It\nis red. The motor\nhums loudly. It is\ntried again.";
    let drafts = chunk(prose, &paragraphs(prose), &Words, ChunkSizes { tokens: 12, overlap: 0 });
    assert!(drafts[1].text.starts_with("The motor"), "{drafts:?}");
}

#[test]
fn cuts_prefer_sentences() {
    let text = "Dr. A. Smith paid 3.5 francs for it. He left soon. Was it late? Yes! \
                Nobody saw e.g. him go home that night. It rained.";
    let drafts = chunk(text, &[], &Words, ChunkSizes { tokens: 14, overlap: 0 });
    for draft in &drafts {
        assert!(draft.text.ends_with(['.', '?', '!']), "{:?}", draft.text);
        assert!(!draft.text.ends_with("Dr.") && !draft.text.ends_with("e.g."));
    }
    let chinese = "今天下雨。".repeat(8);
    for draft in chunk(&chinese, &[], &Characters, SMALL) {
        assert!(draft.text.ends_with('。'));
    }
}

#[test]
fn a_number_before_a_run_without_spaces_is_no_chunk() {
    let sizes = ChunkSizes { tokens: 100, overlap: 0 };
    for (number, run, count) in [("第二条\u{3000}", "法", 100), ("No 2 ", "b", 4)] {
        let text = format!("{number}{}", run.repeat(500));
        let drafts = chunk(&text, &[], &Characters, sizes);
        check(&text, &drafts, sizes);
        assert_eq!(drafts[0].text.chars().count(), count, "{drafts:?}");
    }
    let spaced = "漢字の文 ".repeat(100);
    for draft in chunk(&spaced, &[], &Characters, ChunkSizes { tokens: 98, overlap: 0 }) {
        assert!(draft.text.ends_with('文'), "{draft:?}");
    }
}

/// Goal: a chunk holds as many words of a spelt-out language as of one that the tokenizer knows.
#[test]
fn words_that_are_spelt_count_as_words() {
    let words_of_first = |text: &str| {
        let drafts = chunk(text, &[], &Characters, ChunkSizes { tokens: 90, overlap: 0 });
        check(text, &drafts, ChunkSizes { tokens: 90, overlap: 0 });
        drafts[0].text.split(' ').count()
    };
    // Here the spaces are tokens too.
    let counts = ["слово ", "कमल ", "λέξεις "].map(|word| words_of_first(&word.repeat(300)));
    assert!(counts.iter().all(|count| (35..=42).contains(count)), "{counts:?}");
    assert_eq!(words_of_first(&"slovo ".repeat(300)), 90 / 6);
    let characters = |text: &str| {
        let drafts = chunk(text, &[], &Characters, ChunkSizes { tokens: 90, overlap: 0 });
        drafts[0].text.chars().count()
    };
    assert_eq!(characters(&"語".repeat(900)), 90);
    assert!((260..=280).contains(&characters(&"ภ".repeat(900))));
}

#[test]
fn graphemes_stay_whole() {
    let text = "e\u{301}".repeat(200);
    for overlap in [2, 3] {
        for draft in chunk(&text, &[], &Characters, ChunkSizes { tokens: 7, overlap }) {
            assert!(draft.text.starts_with('e') && draft.text.ends_with('\u{301}'), "{overlap}");
        }
    }
}

/// Goal: ten megabytes of the worst shapes are chunked within a time that only a linear pass can
/// meet, even on a busy machine.
#[test]
fn size_and_shape_do_not_matter() {
    let sizes = ChunkSizes::default();
    let solid = "a".repeat(10 << 20);
    let started = std::time::Instant::now();
    for tokenizer in [&Words as &dyn TokenOffsets, &Characters, &Unknown] {
        let drafts = chunk(&solid, &[], tokenizer, sizes);
        assert!(drafts.len() > (10 << 20) / (200 * CHARS_PER_TOKEN_MAX));
    }
    for shape in ["\u{301}", "\u{1F1E9}", ". ", ".)", "\n", "\n\n", "a. ", "a\n\n"] {
        chunk(&shape.repeat(300_000), &[], &Words, sizes);
    }
    assert!(started.elapsed().as_secs() < 300, "{:?}", started.elapsed());
}
