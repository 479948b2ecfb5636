//! Analysed queries: terms, their fields and their weights.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::analysis::{Analyser, Kind, is_stop_word};
use crate::normal::nfkc;
use crate::pattern::{Likeness, Pattern, SIMILAR_MAX, Similar, SimilarWords};
use crate::schema::Field;
use lodestone_types::script::is_unspaced;

/// Maximum number of distinct terms of a query, to bound the work of one search; further terms are
/// dropped.
pub const QUERY_TERMS_MAX: usize = 256;

/// Maximum characters of a run without spaces that full-text search compares; a longer run matches
/// where its beginning occurs.
pub const PHRASE_CHARS_MAX: usize = 256;

/// Maximum number of forms of all words of a full-text query together; every word has at least one.
const FORMS_MAX: usize = 1024;

/// Weight of a term's score in the title, added to its score in the body (which includes the
/// title). Of 0, .2, .4, .5, .6 and 1, the best nDCG@10 on cranfield, cacm, scifact and twowiki was
/// at .5 and .6; 0 costs 1 to 3 points on each.
pub(super) const TITLE_WEIGHT: f32 = 0.5;

/// The way in which the terms of a full-text search combine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Operator {
    /// At least one term must occur.
    #[default]
    Or,
    /// Every term must occur.
    And,
}

/// One unit to look up: a term or a phrase, with all forms that count as it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Clause {
    /// The field whose postings to read.
    pub field: Field,
    /// The field whose length normalises the frequency.
    pub length: Field,
    /// The forms, one of which has factor 1. The frequencies of all forms in a row are summed; the
    /// greatest factor applies.
    pub forms: Vec<Form>,
    /// Factor of the score: the number of times the query contains the clause.
    pub weight: f32,
    /// Whether to look in the title too. The title's score uses the same idf: how specific a term
    /// is does not depend on where it occurs.
    pub is_in_title: bool,
    /// A field whose occurrences of the first form are subtracted: to get the body without its
    /// title.
    pub less: Option<Field>,
}

/// One form of a clause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Form {
    /// One term, or the terms of a phrase in order.
    pub terms: Vec<String>,
    /// Factor of the score if no better form occurs: 1 as written, less for similar words.
    pub factor: f32,
}

impl Clause {
    fn written(field: Field, terms: Vec<String>, weight: f32) -> Self {
        let forms = vec![Form { terms, factor: 1.0 }];
        Self { field, length: field, forms, weight, is_in_title: false, less: None }
    }

    /// The term, if the clause consists of just one term.
    pub(super) fn plain_term(&self) -> Option<&str> {
        match (self.forms.as_slice(), self.less) {
            ([form], None) if form.terms.len() == 1 => Some(&form.terms[0]),
            _ => None,
        }
    }
}

/// A query in the form that the scorer reads.
pub trait TextQuery: sealed::Clauses + Sync {
    /// Whether the query cannot match anything.
    fn is_empty(&self) -> bool {
        self.clauses().is_empty()
    }
}

pub(super) mod sealed {
    use super::{Clause, Operator};

    /// Seals the set of query types.
    pub trait Clauses {
        /// The terms and phrases to look up, in the order in which their scores are added.
        fn clauses(&self) -> &[Clause];
        /// The way in which the clauses combine.
        fn operator(&self) -> Operator;
    }
}

/// A query of the hybrid text leg: any term may match, in the body or in the title.
#[derive(Debug, Clone, PartialEq)]
pub struct HybridQuery {
    terms: Vec<String>,
    clauses: Vec<Clause>,
}

impl HybridQuery {
    /// Analyses a query the way rows are analysed. A repeated term has a weight equal to its count;
    /// common English words are dropped as long as other terms remain.
    pub fn analyse(query: &str) -> Self {
        let mut distinct = Distinct::default();
        Analyser::new().hybrid(&nfkc(query), |term| {
            // The whole-words field holds Hangul by word, not by character.
            let is_lone = term.kind == Kind::Lone && term.text.chars().all(is_unspaced);
            distinct.add(term.text, is_lone);
        });
        let mut found = distinct.found;
        if found.iter().any(|(term, ..)| !is_stop_word(term)) {
            found.retain(|(term, ..)| !is_stop_word(term));
        }
        found.truncate(QUERY_TERMS_MAX);
        let clause = |(term, is_lone, count): &(String, bool, u32)| {
            // A single character is not a bigram of the body, but the whole-words field holds every
            // character.
            let field = if *is_lone { Field::Words } else { Field::Body };
            let clause = Clause::written(field, vec![term.clone()], *count as f32);
            Clause { length: Field::Body, is_in_title: true, ..clause }
        };
        let clauses = found.iter().map(clause).collect();
        Self { terms: found.into_iter().map(|(term, ..)| term).collect(), clauses }
    }

    /// Builds a query from words given by their forms, each a word of one term. The forms of one
    /// word count as a single term, whichever occurs (a synonym operator; Pirkola 1998).
    pub fn of_forms(words: impl IntoIterator<Item = Vec<String>>) -> Self {
        let (mut terms, mut clauses) = (Vec::new(), Vec::new());
        for forms in words {
            let analysed = forms.iter().filter_map(|form| Self::analyse(form).terms.pop());
            let mut forms: Vec<String> = analysed.collect();
            forms.sort_unstable();
            forms.dedup();
            let room = QUERY_TERMS_MAX - terms.len();
            forms.truncate(room);
            if forms.is_empty() {
                continue;
            }
            terms.extend(forms.iter().cloned());
            let form = |term| Form { terms: vec![term], factor: 1.0 };
            let forms = forms.into_iter().map(form).collect();
            let clause = Clause::written(Field::Body, Vec::new(), 1.0);
            clauses.push(Clause { forms, is_in_title: true, ..clause });
        }
        Self { terms, clauses }
    }

    /// The distinct analysed terms, in query order.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }
}

/// The number of misspellings that a full-text search tolerates per word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fuzzy {
    /// No misspellings.
    #[default]
    Off,
    /// One in words of four or more letters, two in those of eight or more.
    Auto,
    /// This many edits, 1 or 2, in words with more letters than edits.
    Edits(u8),
}

impl Fuzzy {
    /// Permitted edits of a folded word; none in numbers and identifiers, where every character
    /// matters.
    fn edits(self, word: &str) -> u8 {
        let letters = word.chars().count();
        if word.chars().any(|c| !c.is_alphabetic() && c != '\'') {
            return 0;
        }
        match self {
            Self::Off => 0,
            Self::Auto => u8::from(letters >= 4) + u8::from(letters >= 8),
            Self::Edits(edits) => edits.min(2).min(letters.saturating_sub(1) as u8),
        }
    }
}

/// A full-text query over whole words.
#[derive(Debug, Clone, PartialEq)]
pub struct WordQuery {
    operator: Operator,
    clauses: Vec<Clause>,
    fuzzy: Fuzzy,
    /// The clause whose word is to be matched as a prefix.
    prefix: Option<usize>,
    is_shortened: bool,
}

impl WordQuery {
    /// Analyses a query the way rows are analysed, except that it omits the pieces which rows index
    /// next to a word: a query for `main.rs` means the whole name. A run of a script without spaces
    /// is one phrase if all words must occur; otherwise its n-grams are terms (bigrams, or up to
    /// four letters), and common English words are dropped as long as others remain.
    pub fn analyse(query: &str, operator: Operator) -> Self {
        Self::new(query, operator, Fuzzy::Off, false)
    }

    /// Like [`Self::analyse`], but also matches words similar to those of the query, and words that
    /// begin with its last one. [`Self::expand`] adds them.
    pub fn new(query: &str, operator: Operator, fuzzy: Fuzzy, is_prefix: bool) -> Self {
        let query = nfkc(query);
        let mut grams = Vec::new();
        if operator == Operator::Or {
            Analyser::new().hybrid(&query, |term| {
                if term.kind == Kind::Gram && term.text.chars().all(is_unspaced) {
                    grams.push((term.range.start, term.text.to_owned()));
                }
            });
        }
        let mut grams = grams.into_iter().peekable();
        let mut found: Vec<(Field, Vec<String>)> = Vec::new();
        let mut is_last_word = false;
        Analyser::new().whole(&query, |term| {
            let is_in_run = matches!(term.kind, Kind::First | Kind::Next);
            if term.kind == Kind::Piece {
                return;
            }
            is_last_word = !is_in_run;
            let begin = found.len();
            while let Some((_, gram)) = grams.next_if(|(at, _)| *at <= term.range.start) {
                found.push((Field::Body, vec![gram]));
            }
            let has_grams = found.len() > begin;
            match (term.kind, found.last_mut()) {
                (Kind::Next, Some((Field::Words, phrase))) if operator == Operator::And => {
                    phrase.push(term.text.to_owned());
                }
                (Kind::Next, _) => {}
                _ if has_grams => {}
                _ => found.push((Field::Words, vec![term.text.to_owned()])),
            }
        });
        let last = found.len().checked_sub(1).filter(|_| is_prefix && is_last_word);
        Self::of_terms(found, operator, fuzzy, last)
    }

    fn of_terms(
        found: Vec<(Field, Vec<String>)>,
        operator: Operator,
        fuzzy: Fuzzy,
        last: Option<usize>,
    ) -> Self {
        let is_common = |at: usize| last != Some(at) && found[at].1.iter().all(|t| is_stop_word(t));
        let drops_common = operator == Operator::Or && (0..found.len()).any(|at| !is_common(at));
        let (mut seen, mut clauses) = (HashMap::<&[String], usize>::new(), Vec::<Clause>::new());
        let (mut prefix, mut is_shortened) = (None, false);
        for (at, (field, terms)) in found.iter().enumerate() {
            if drops_common && is_common(at) {
                continue;
            }
            is_shortened |= terms.len() > PHRASE_CHARS_MAX;
            let terms = &terms[..terms.len().min(PHRASE_CHARS_MAX)];
            if let Some(&at) = seen.get(terms) {
                clauses[at].weight += 1.0;
            } else if clauses.len() < QUERY_TERMS_MAX {
                seen.insert(terms, clauses.len());
                let less = (*field == Field::Body).then_some(Field::Title);
                clauses.push(Clause { less, ..Clause::written(*field, terms.to_vec(), 1.0) });
            } else {
                is_shortened = true;
            }
            if last == Some(at) {
                prefix = seen.get(terms).copied();
            }
        }
        Self { operator, clauses, fuzzy, prefix, is_shortened }
    }

    /// Whether part of the query is not compared, because it has more than [`QUERY_TERMS_MAX`]
    /// terms or a run of more than [`PHRASE_CHARS_MAX`] characters.
    pub fn is_shortened(&self) -> bool {
        self.is_shortened
    }

    /// The words of the query for which to find similar ones, each with the index of its clause.
    pub(super) fn patterns(&self) -> Vec<(usize, Pattern)> {
        let patterns = self.clauses.iter().enumerate().filter_map(|(at, clause)| {
            let word = clause.plain_term()?;
            let is_run = word.chars().all(is_unspaced);
            let is_prefix = self.prefix == Some(at);
            (!is_run).then(|| (at, Pattern::new(word, self.fuzzy.edits(word), is_prefix)))
        });
        patterns.collect()
    }

    /// Adds the forms of each word found in the segments of the scope; `found` has the similar
    /// words of each segment.
    pub fn expand(&mut self, found: impl IntoIterator<Item = SimilarWords>) {
        let mut words: BTreeMap<usize, BTreeMap<String, (Likeness, u64)>> = BTreeMap::new();
        for SimilarWords(similar) in found {
            for Similar { clause, word, likeness, rows } in similar {
                let of_clause = words.entry(clause).or_default();
                of_clause.entry(word).or_insert((likeness, 0)).1 += rows;
            }
        }
        let most = (FORMS_MAX / self.clauses.len().max(1)).clamp(1, SIMILAR_MAX);
        for (clause, words) in words {
            let mut words: Vec<(String, (Likeness, u64))> = words.into_iter().collect();
            words.sort_by_key(|(_, (likeness, rows))| (*likeness, Reverse(*rows)));
            words.truncate(most);
            let Some((_, (best, _))) = words.first() else { continue };
            let scale = 1.0 / best.factor();
            let form = |(word, (likeness, _)): (String, (Likeness, u64))| Form {
                terms: vec![word],
                factor: likeness.factor() * scale,
            };
            self.clauses[clause].forms = words.into_iter().map(form).collect();
        }
    }

    /// All forms of all words of the query.
    pub(super) fn forms(&self) -> impl Iterator<Item = &Form> {
        self.clauses.iter().flat_map(|clause| &clause.forms)
    }
}

impl sealed::Clauses for HybridQuery {
    fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    fn operator(&self) -> Operator {
        Operator::Or
    }
}

impl TextQuery for HybridQuery {}

impl sealed::Clauses for WordQuery {
    fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    fn operator(&self) -> Operator {
        self.operator
    }
}

impl TextQuery for WordQuery {}

/// The part of a query that determines scores, in the form sent between processes.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SentQuery {
    operator: Operator,
    clauses: Vec<Clause>,
}

impl SentQuery {
    /// Extracts the part of `query` that determines scores.
    pub fn of(query: &impl TextQuery) -> Self {
        Self { operator: query.operator(), clauses: query.clauses().to_vec() }
    }
}

impl sealed::Clauses for SentQuery {
    fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    fn operator(&self) -> Operator {
        self.operator
    }
}

impl TextQuery for SentQuery {}

/// Counts terms, keeping the order of their first occurrence.
#[derive(Default)]
struct Distinct {
    found: Vec<(String, bool, u32)>,
    places: HashMap<String, usize>,
}

impl Distinct {
    fn add(&mut self, term: &str, is_lone: bool) {
        if let Some(&at) = self.places.get(term) {
            self.found[at].2 += 1;
            return;
        }
        self.places.insert(term.to_owned(), self.found.len());
        self.found.push((term.to_owned(), is_lone, 1));
    }
}

#[cfg(test)]
mod tests {
    use super::sealed::Clauses;
    use super::*;

    #[test]
    fn stop_words_go_while_others_remain() {
        assert_eq!(
            HybridQuery::analyse("what is the boundary of it").terms(),
            ["what", "boundari"]
        );
        assert_eq!(HybridQuery::analyse("to be or not to be").terms(), ["to", "be", "or", "not"]);
        assert!(HybridQuery::analyse(" ?! ").is_empty());
    }

    #[test]
    fn repeated_terms_weigh_more() {
        let query = HybridQuery::analyse("wing wings tail");
        assert_eq!(query.terms(), ["wing", "tail"]);
        assert_eq!(query.clauses()[0].weight, 2.0);
        assert_eq!(query.clauses()[1].weight, 1.0);
    }

    #[test]
    fn forms_of_one_word_are_one_clause() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        let query = HybridQuery::of_forms([words("Hund hunde hunden"), words("Katze")]);
        let forms: Vec<usize> = query.clauses().iter().map(|one| one.forms.len()).collect();
        assert_eq!(query.terms(), ["hund", "hunden", "katz"]);
        assert_eq!(forms, [2, 1]);
        let many = (0..1000).map(|n| vec![n.to_string(), format!("x{n}")]);
        assert_eq!(HybridQuery::of_forms(many).terms().len(), QUERY_TERMS_MAX);
    }

    #[test]
    fn terms_are_bounded() {
        let many: Vec<String> = (0..1000).map(|n| format!("{n}")).collect();
        assert_eq!(HybridQuery::analyse(&many.join(" ")).terms().len(), QUERY_TERMS_MAX);
        let query = WordQuery::analyse(&many.join(" "), Operator::And);
        assert_eq!(query.clauses().len(), QUERY_TERMS_MAX);
        assert!(query.is_shortened());
        let most = WordQuery::analyse(&many[..QUERY_TERMS_MAX].join(" "), Operator::And);
        assert!(!most.is_shortened());
        let long = WordQuery::analyse(&"机".repeat(1000), Operator::And);
        assert_eq!(long.clauses()[0].forms[0].terms.len(), PHRASE_CHARS_MAX);
        assert!(long.is_shortened());
    }

    #[test]
    fn runs_are_phrases() {
        let query = WordQuery::analyse("AI 机器, 器", Operator::And);
        let lengths: Vec<_> =
            query.clauses().iter().map(|clause| clause.forms[0].terms.len()).collect();
        assert_eq!(lengths, [1, 2, 1]);
        assert!(WordQuery::analyse("?!", Operator::Or).is_empty());
    }
}
