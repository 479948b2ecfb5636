//! The passages that an answer rests on, each with the chunk that contains it.

use std::collections::BTreeSet;
use std::ops::Range;

use lodestone_answer::{Answer, AnswerSource, question_terms, sentences};
use lodestone_text::HybridQuery;
use lodestone_types::RetrievedChunk;

/// Maximum number of citation marks of a generated answer for which passages are searched.
const MARKS_MAX: usize = 40;

/// A passage that an answer cites.
#[derive(Debug, Clone, PartialEq)]
pub struct Quote {
    /// The `n` of the mark `[n]`.
    pub number: usize,
    /// The chunk that contains it; not always a retrieved one, but of the same source.
    pub chunk: RetrievedChunk,
    /// The passage: as in an extracted answer or, for a generated answer, as in the chunk.
    pub text: String,
    /// Range of the passage in the text of the source, in Unicode characters.
    pub document_chars: Range<usize>,
}

/// The passages of an extracted answer, which cites first the found chunks, then the surrounding
/// ones.
pub(super) fn extracted(
    answer: &Answer,
    chunks: &[RetrievedChunk],
    around: &[RetrievedChunk],
) -> Vec<Quote> {
    let quote = |citation: &lodestone_answer::Citation| Quote {
        number: citation.number,
        chunk: chunks.iter().chain(around).nth(citation.chunk).expect("a chunk given").clone(),
        text: citation.sentence.clone(),
        document_chars: citation.document_chars.clone(),
    };
    answer.citations.iter().map(quote).collect()
}

/// The passages behind a generated answer: for each citation mark, the sentence of the cited source
/// that shares most terms with the sentence before the mark. Marks without shared terms get no
/// passage.
pub(super) fn generated(
    text: &str,
    sources: &[AnswerSource],
    chunks: &[RetrievedChunk],
) -> Vec<Quote> {
    let mut quotes: Vec<Quote> = Vec::new();
    let mut before = 0;
    for (at, _) in text.match_indices('[').take(MARKS_MAX) {
        let Some((inside, _)) = text[at + 1..].split_once(']') else { break };
        let Ok(number) = inside.parse::<usize>() else { continue };
        let source = number.checked_sub(1).and_then(|position| sources.get(position));
        let Some(source) = source else { continue };
        // Several marks may follow one sentence.
        let said = match text[before..at].contains(char::is_alphanumeric) {
            true => &text[before..at],
            false => text[..before].trim_end(),
        };
        let last = sentences(said).pop().map_or("", |sentence| &said[sentence.bytes]);
        quotes.extend(nearest(last, source, chunks).map(|(chunk, text, document_chars)| Quote {
            number,
            chunk: chunk.clone(),
            text,
            document_chars,
        }));
        before = at + inside.len() + 2;
    }
    let mut seen = BTreeSet::new();
    quotes.retain(|quote| seen.insert((quote.number, quote.document_chars.start)));
    quotes
}

/// The sentence of a source that shares most terms with `said`.
fn nearest<'c>(
    said: &str,
    source: &AnswerSource,
    chunks: &'c [RetrievedChunk],
) -> Option<(&'c RetrievedChunk, String, Range<usize>)> {
    let wanted = question_terms(said);
    let wanted: BTreeSet<&String> = wanted.terms().iter().collect();
    let mut best: Option<(usize, &RetrievedChunk, String, Range<usize>)> = None;
    for chunk in source.chunks.iter().map(|position| &chunks[*position]) {
        let start = chunk.place.document_start as usize;
        for sentence in sentences(&chunk.text) {
            let passage = &chunk.text[sentence.bytes];
            let terms = HybridQuery::analyse(passage);
            let shared = terms.terms().iter().filter(|term| wanted.contains(term)).count();
            if shared > best.as_ref().map_or(0, |best| best.0) {
                let chars = start + sentence.chars.start..start + sentence.chars.end;
                best = Some((shared, chunk, passage.to_owned(), chars));
            }
        }
    }
    best.map(|(_, chunk, passage, chars)| (chunk, passage, chars))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_answer::sources_only;
    use lodestone_answer::testing::chunk;

    #[test]
    fn generated_sentences_have_their_passages() {
        let chunks = [
            chunk("pumps", 0, "Pumps move water. The blue pump lifts 42 litres.", 0.9),
            chunk("cats", 1, "Cats sleep by day.", 0.8),
        ];
        let sources = sources_only("pumps", &chunks);
        let text = "The blue one lifts 42 litres.[1] Cats sleep [2][1]. Nothing [7] and [x].";
        let quotes = generated(text, &sources, &chunks);
        let told: Vec<_> = quotes.iter().map(|q| (q.number, q.text.as_str())).collect();
        assert_eq!(told, [(1, "The blue pump lifts 42 litres."), (2, "Cats sleep by day.")]);
        assert_eq!(quotes[0].document_chars, 18..48);
        assert_eq!(quotes[1].document_chars.start, 1000);
    }
}
