//! Keyword search for a question's words in texts of other languages.

use crate::query::hydrate::{Ranked, hydrate};
use crate::query::legs::SegmentScope;
use crate::query::texts::Texts;
use crate::query::words::{best_by_words, corpus_stats};
use crate::query::{Query, QueryError, RetrieveRequest};
use lodestone_answer::translation::{Gloss, Language, Lexicon, Wanted};
use lodestone_storage::collection::Snapshot;
use lodestone_text::HybridQuery;
use lodestone_types::{RequestContext, RetrievedChunk, ScoreParts, SubTenantId, TenantSchema};

/// Number of a question's words whose translations must occur, or all of them if it has fewer.
const WORDS_MIN: usize = 2;
/// Maximum words of the scope with a given beginning that are read from a segment's dictionary.
const LISTED_MAX: usize = 256;
/// Maximum words read from dictionaries for all words of a question in one language, of whichever
/// sub-tenants: some 200 ms.
const DICTIONARY_WORDS_MAX: usize = 1 << 16;
/// Maximum forms of one word's translations that are searched for.
const FORMS_MAX: usize = 32;
/// Minimum letters of a beginning; a shorter word is looked up as it is.
const BEGINNING_LETTERS_MIN: usize = 3;
/// Maximum chunks per language whose text is read to detect its language; below, how many are kept.
const READ_MAX: usize = 48;
const TAKEN_MAX: usize = 8;

impl Query {
    /// The chunks in other languages that contain most of a question's words, best first: one
    /// keyword search per language in which its words occur. Scores are relative to the best
    /// chunk's.
    ///
    /// # Errors
    /// [`QueryError::Filter`] for an invalid filter; [`QueryError::Stopped`]; errors of the disk.
    pub(crate) fn translated(
        &self,
        context: &RequestContext,
        snapshot: &Snapshot,
        sub_tenant: &SubTenantId,
        schema: Option<&TenantSchema>,
        (request, gloss): (&RetrieveRequest, &Gloss),
    ) -> Result<Vec<RetrievedChunk>, QueryError> {
        let filter = request.filter.for_schema(schema).map_err(QueryError::Filter)?;
        let segments = self.in_scope(context, snapshot, sub_tenant, filter)?;
        let mut ranked = Vec::new();
        for language in Language::ALL {
            if language != gloss.language() {
                ranked.extend(of_language(context, &segments, gloss, language)?);
            }
        }
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.address.cmp(&b.address)));
        if let Some(most) = request.per_source_max {
            let source = |row: &Ranked| {
                let segment = &segments[row.address.segment].live.segment;
                (row.address.segment, segment.source_of(row.address.row))
            };
            lodestone_rank::cap_per_source(&mut ranked, most, source);
        }
        ranked.truncate(request.max_chunks);
        let best = ranked.first().map_or(1.0, |row| row.score);
        for row in &mut ranked {
            row.score = lodestone_rank::settle(row.score / best);
        }
        hydrate(context, &segments, &ranked)
    }
}

/// The best rows in one language; none if too few of the words occur in it.
fn of_language(
    context: &RequestContext,
    segments: &[SegmentScope],
    gloss: &Gloss,
    language: Language,
) -> Result<Vec<Ranked>, QueryError> {
    let (mut words, mut found, mut known) = (Vec::new(), 0, 0);
    let mut left = DICTIONARY_WORDS_MAX;
    for wanted in gloss.wanted() {
        if wanted.concepts.is_empty() {
            // Names and codes are the same in all languages.
            words.push(vec![wanted.text.clone()]);
            continue;
        }
        let forms = forms(context, segments, (wanted, language), &mut left)?;
        known += 1;
        found += usize::from(!forms.is_empty());
        words.push(forms);
    }
    let query = HybridQuery::of_forms(words);
    if found < WORDS_MIN.min(known) {
        return Ok(Vec::new());
    }
    let stats = corpus_stats(context, segments, &query)?;
    let mut first = best_by_words(context, segments, &query, &stats, READ_MAX)?;
    first.truncate(READ_MAX);
    let (texts, mut taken) = (Texts::of(segments), Vec::new());
    for (address, score) in first {
        context.check()?;
        let text = texts.text(address)?;
        if Lexicon::get().language_of(&text) == Some(language) {
            let parts = ScoreParts { keyword: Some(score), ..ScoreParts::default() };
            taken.push(Ranked { address, score, parts });
        }
        if taken.len() == TAKEN_MAX {
            break;
        }
    }
    Ok(taken)
}

/// The words of the scope that are forms of a word's translations. Reads at most `left` words of
/// dictionaries, and counts them down.
fn forms(
    context: &RequestContext,
    segments: &[SegmentScope],
    (wanted, language): (&Wanted, Language),
    left: &mut usize,
) -> Result<Vec<String>, QueryError> {
    let lexicon = Lexicon::get();
    let mut forms: Vec<String> = Vec::new();
    let phrases = wanted.concepts.iter().flat_map(|concept| lexicon.words(*concept, language));
    for phrase in phrases {
        // A phrase is searched by its longest word.
        let longest = phrase.split_whitespace().max_by_key(|word| word.chars().count());
        let Some(longest) = longest else { continue };
        let is_phrase = longest.len() < phrase.len();
        let is_form = |word: &str| match is_phrase {
            true => language.key(word) == language.key(longest),
            false => lexicon
                .units(word, language)
                .iter()
                .any(|unit| unit.concepts.iter().any(|concept| wanted.concepts.contains(concept))),
        };
        for beginning in beginnings(longest, language) {
            for segment in segments {
                context.check()?;
                let index = segment.live.segment.text_index();
                let scope = segment.scope.mask();
                index.words_from(&beginning, scope, LISTED_MAX, left, |word| {
                    let bare = language.words(word).into_iter().next().map(|(_, bare)| bare);
                    let Some(bare) = bare else { return };
                    let is_new = !forms.iter().any(|form| form == bare);
                    if forms.len() < FORMS_MAX && is_new && is_form(bare) {
                        forms.push(bare.to_owned());
                    }
                })?;
            }
        }
    }
    Ok(forms)
}

/// The possible beginnings of a word's forms: in German also with an umlaut, in French also after
/// an elided article.
fn beginnings(word: &str, language: Language) -> Vec<String> {
    let mut beginning = language.beginning(word);
    if beginning.chars().count() < BEGINNING_LETTERS_MIN {
        beginning = word.to_lowercase();
    }
    let mut found = Vec::new();
    match language {
        Language::German => {
            let vowel = beginning.char_indices().rev().find(|(_, c)| "aou".contains(*c));
            if let Some((at, vowel)) = vowel {
                // In `au`, the umlaut is on the first letter.
                let is_au = vowel == 'u' && beginning[..at].ends_with('a');
                let (at, umlaut) = match vowel {
                    'u' if is_au => (at - 1, "ä"),
                    'u' => (at, "ü"),
                    'o' => (at, "ö"),
                    _ => (at, "ä"),
                };
                let mut changed = beginning.clone();
                changed.replace_range(at..at + 1, umlaut);
                found.push(changed);
            }
        }
        Language::French if beginning.starts_with(|c| "aeiouhéèêâîô".contains(c)) => {
            found.extend(["l'", "d'", "qu'"].map(|article| format!("{article}{beginning}")));
        }
        _ => {}
    }
    found.push(beginning);
    found
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tempfile::TempDir;

    use super::*;
    use crate::query::fixture::{self, source};
    use lodestone_compute::SimdBackend;
    use lodestone_embed::HashEmbedder;
    use lodestone_storage::segment::{NewSource, VectorKind};

    /// The chunks that a question finds in German texts of the scope `default`.
    fn found(question: &str, sources: Vec<NewSource>) -> Vec<RetrievedChunk> {
        let root = TempDir::new().unwrap();
        let collection = fixture::collection(&root, VectorKind::F16, [sources]);
        let gloss = Gloss::of(question).unwrap();
        let (request, scope) = (fixture::request(question), SubTenantId::default_name());
        let query = Query::new(Arc::new(SimdBackend), Arc::new(HashEmbedder));
        let (context, snapshot) = (RequestContext::default(), collection.snapshot());
        query.translated(&context, &snapshot, &scope, None, (&request, &gloss)).unwrap()
    }

    /// Goal: words of another sub-tenant in the same segment neither take the places of the scope's
    /// own nor count as found in it.
    #[test]
    fn words_of_other_scopes_change_no_translation() {
        let dogs = "Die Hunde und die Katzen haben das Brot nicht.";
        let bread = "Das Brot ist auf dem Tisch und nicht in der Schale.";
        let letter = |n: u8| char::from(b'a' + n);
        let many = (0..300_u16).map(|n| [n / 26, n % 26].map(|n| letter(n as u8)));
        let many: String = many.map(|[a, b]| format!("hunda{a}{b} ")).collect();
        for (text, other, count) in [(dogs, many.as_str(), 1), (bread, dogs, 0)] {
            let own = source("default", "own", &[text]);
            let alone = found("Is the bread for the dog?", vec![own.clone()]);
            assert_eq!(alone.len(), count, "{text}");
            let foreign = source("another", "other", &[other]);
            assert_eq!(found("Is the bread for the dog?", vec![own, foreign]), alone, "{text}");
        }
    }

    #[test]
    fn forms_begin_as_their_word_does() {
        assert_eq!(beginnings("Arzt", Language::German), ["ärzt", "arzt"]);
        assert_eq!(beginnings("Haus", Language::German), ["häus", "haus"]);
        assert_eq!(beginnings("Katze", Language::German), ["kätz", "katz"]);
        assert_eq!(beginnings("eau", Language::French), ["l'eau", "d'eau", "qu'eau", "eau"]);
        assert_eq!(beginnings("perro", Language::Spanish), ["perr"]);
    }
}
