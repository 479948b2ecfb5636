//! The passages that may answer: sentences, rows and records of the best chunks, each once.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::answer::compose::shown;
use crate::answer::notes;
use crate::answer::sentences::{SENTENCE_CHARS_MAX, Sentence, Shape, sentences};
use crate::answer::tables::{Table, bare, labelled, tables};
use crate::answer::words::begins_with_reference;
use lodestone_types::RetrievedChunk;

/// Chunks that are read; later ones cost time and hardly ever hold the answer.
const CHUNKS_MAX: usize = 8;
/// Passages that are compared with the question. Bounds the work of the model for one answer, at
/// some 30 tokens each.
const CANDIDATES_MAX: usize = 80;
/// Characters of a sentence, with the one that it was widened to, at most.
const PASSAGE_CHARS_MAX: usize = 600;

/// A passage that may answer: a sentence, widened to the one before it where it points there, a
/// row of a table under its header, or a record.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Candidate {
    /// Position in the chunks given.
    pub(super) chunk: usize,
    /// Its characters in the chunk's text.
    pub(super) chars: Range<usize>,
    /// Characters of the line above that says what its values are, where it is shown with it.
    pub(super) head_chars: Option<Range<usize>>,
    /// As an answer shows it.
    pub(super) shown: String,
    /// The text that is compared with the question: with the lead above it.
    pub(super) compared: String,
    /// Whether it announces text instead of being it.
    pub(super) is_lead: bool,
}

impl Candidate {
    /// Whether both say the same: a sentence is a candidate by itself and, where the next one
    /// refers to it, together with that one too.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        let overlaps = self.chars.start < other.chars.end && other.chars.start < self.chars.end;
        (self.chunk == other.chunk && overlaps)
            || self.shown.contains(&other.shown)
            || other.shown.contains(&self.shown)
    }

    /// Whether both are rows below one header.
    pub(super) fn shares_header(&self, other: &Self) -> bool {
        self.head_chars.is_some()
            && (self.chunk, &self.head_chars) == (other.chunk, &other.head_chars)
    }
}

/// The candidates, in the order of the chunks and of the sentences in them.
pub(super) fn candidates(chunks: &[RetrievedChunk]) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = Vec::new();
    for (position, chunk) in chunks.iter().enumerate().take(CHUNKS_MAX) {
        of_chunk(position, &chunk.text, &mut found);
    }
    let mut kept = distinct(found, chunks);
    kept.truncate(CANDIDATES_MAX);
    kept
}

fn of_chunk(position: usize, text: &str, found: &mut Vec<Candidate>) {
    let sentences = sentences(text);
    let reader = Reader { text, tables: tables(text), has_marks: notes::are_in(text) };
    let mut lead: Option<&Sentence> = None;
    let mut at = 0;
    while let Some(sentence) = sentences.get(at) {
        let next = sentences.get(at + 1);
        let announces = sentence.shape == Shape::Lead || reader.is_header(sentence);
        if announces && next.is_some_and(|next| next.shape != Shape::Lead) {
            // The names of columns are shown with each row; what stands above them is the lead.
            if !reader.is_header(sentence) {
                lead = Some(sentence);
            }
            at += 1;
            continue;
        }
        let passage = reader.passage(&sentences, at);
        at += passage.sentences;
        let compared = match lead {
            Some(lead) if lead.bytes.end <= passage.start => {
                format!("{} {}", &text[lead.bytes.clone()], passage.shown)
            }
            _ => passage.shown.clone(),
        };
        found.push(Candidate {
            chunk: position,
            chars: passage.chars,
            head_chars: passage.head_chars,
            shown: passage.shown,
            compared,
            is_lead: sentence.shape == Shape::Lead,
        });
        // A lead speaks for all items of a list, and for one sentence of prose.
        if sentence.shape == Shape::Prose {
            lead = None;
        }
    }
}

/// One or more sentences as one passage.
struct Span {
    /// First byte in the text.
    start: usize,
    chars: Range<usize>,
    head_chars: Option<Range<usize>>,
    shown: String,
    /// Number of sentences that it spans.
    sentences: usize,
}

struct Reader<'t> {
    text: &'t str,
    tables: Vec<Table>,
    has_marks: bool,
}

impl Reader<'_> {
    fn is_header(&self, sentence: &Sentence) -> bool {
        self.tables.iter().any(|table| table.header.contains(&sentence.bytes.start))
    }

    /// The passage that begins with the sentence at `at`.
    fn passage(&self, sentences: &[Sentence], at: usize) -> Span {
        match sentences[at].shape {
            Shape::Line => self.row(&sentences[at]),
            Shape::Field => Some(self.record(sentences, at)),
            Shape::Prose | Shape::Lead => None,
        }
        .unwrap_or_else(|| self.prose(sentences, at))
    }

    fn prose(&self, sentences: &[Sentence], at: usize) -> Span {
        let (text, sentence) = (self.text, &sentences[at]);
        let before = at.checked_sub(1).map(|at| &sentences[at]);
        let widened = before.filter(|before| {
            begins_with_reference(&text[sentence.bytes.clone()])
                && !matches!(before.shape, Shape::Line | Shape::Field)
                && sentence.chars.end - before.chars.start <= PASSAGE_CHARS_MAX
        });
        let first = widened.unwrap_or(sentence);
        Span {
            start: first.bytes.start,
            chars: first.chars.start..sentence.chars.end,
            head_chars: None,
            shown: shown(&text[first.bytes.start..sentence.bytes.end], self.has_marks),
            sentences: 1,
        }
    }

    /// A whole row of a table, under the header that names its values where one does.
    fn row(&self, sentence: &Sentence) -> Option<Span> {
        let (text, start) = (self.text, sentence.bytes.start);
        let row = &text[sentence.bytes.clone()];
        let names = |table: &&Table| {
            let names = &text[table.header.clone()];
            table.rows.contains(&start) && names.contains(char::is_alphanumeric)
        };
        let (told, head_chars) = match self.tables.iter().find(names) {
            Some(table) => {
                let behind = text[sentence.bytes.end..].trim_start_matches([' ', '\t']);
                let is_whole = behind.is_empty() || behind.starts_with(['\n', '\r']);
                let header = text[..table.header.start].chars().count();
                let names = &text[table.header.clone()];
                let told = is_whole.then(|| labelled(names, row))?;
                (told, Some(header..header + names.chars().count()))
            }
            None => (bare(row)?, None),
        };
        (told.chars().count() <= PASSAGE_CHARS_MAX).then(|| Span {
            start,
            chars: sentence.chars.clone(),
            head_chars,
            shown: shown(&told, self.has_marks),
            sentences: 1,
        })
    }

    /// The fields that stand together, or one of them behind the first where they are too long.
    fn record(&self, sentences: &[Sentence], at: usize) -> Span {
        let is_next = |pair: &[Sentence]| {
            let between = &self.text[pair[0].bytes.end..pair[1].bytes.start];
            let are_fields = pair.iter().all(|sentence| sentence.shape == Shape::Field);
            are_fields && between.matches('\n').count() == 1
        };
        let joined = |part: &[Sentence]| {
            let fields =
                part.iter().map(|field| shown(&self.text[field.bytes.clone()], self.has_marks));
            fields.collect::<Vec<_>>().join("; ")
        };
        let first = at - sentences[..=at].windows(2).rev().take_while(|pair| is_next(pair)).count();
        let end = at + 1 + sentences[at..].windows(2).take_while(|pair| is_next(pair)).count();
        let chars = sentences[first].chars.start..sentences[end - 1].chars.end;
        if chars.len() <= SENTENCE_CHARS_MAX {
            return Span {
                start: sentences[at].bytes.start,
                chars,
                head_chars: None,
                shown: joined(&sentences[at..end]),
                sentences: end - at,
            };
        }
        let (head, field) = (&sentences[first], &sentences[at.max(first + 1)]);
        let is_bare = head.chars.len() + field.chars.len() > PASSAGE_CHARS_MAX;
        let field = if is_bare { &sentences[at] } else { field };
        Span {
            start: field.bytes.start,
            chars: field.chars.clone(),
            head_chars: (!is_bare).then(|| head.chars.clone()),
            shown: match is_bare {
                true => joined(&sentences[at..=at]),
                false => joined(&[head.clone(), field.clone()]),
            },
            sentences: if is_bare || first < at { 1 } else { 2 },
        }
    }
}

/// Drops sentences that are said already: equal ones, and pieces of another one of the same
/// source, which the overlap of chunks leaves at their borders.
fn distinct(found: Vec<Candidate>, chunks: &[RetrievedChunk]) -> Vec<Candidate> {
    let folded: Vec<String> = found.iter().map(|one| one.shown.to_lowercase()).collect();
    let mut seen = BTreeSet::new();
    let is_same_source = |a: usize, b: usize| {
        let (a, b) = (&chunks[found[a].chunk].source, &chunks[found[b].chunk].source);
        a.id == b.id && a.sub_tenant == b.sub_tenant
    };
    let is_piece = |at: usize| {
        folded.iter().enumerate().any(|(other, text)| {
            found[other].chunk != found[at].chunk
                && text.len() > folded[at].len()
                && is_same_source(at, other)
                && (text.starts_with(&folded[at]) || text.ends_with(&folded[at]))
        })
    };
    let keep: Vec<bool> =
        (0..found.len()).map(|at| seen.insert(&folded[at]) && !is_piece(at)).collect();
    found.into_iter().zip(keep).filter_map(|(one, keep)| keep.then_some(one)).collect()
}
