//! Analysed queries: which terms, in which fields, with which weight.

use std::collections::HashMap;

use crate::analysis::{Analyser, Kind, is_stop_word};
use crate::normal::nfkc;
use crate::schema::Field;
use lodestone_types::script::is_unspaced;

/// Distinct terms of a query; those beyond are left out. Bounds the work of one search.
pub const QUERY_TERMS_MAX: usize = 256;

/// Characters of one run without spaces that are compared in full-text search; a longer run
/// matches where its beginning stands.
pub const PHRASE_CHARS_MAX: usize = 256;

/// Weight of a term's score in the title, added to its score in the body (which holds the title
/// too). Of 0, .2, .4, .5, .6 and 1 the best over cranfield, cacm, scifact and twowiki, by nDCG@10,
/// lay at .5 and .6; 0 costs 1 to 3 points on each of them.
pub(super) const TITLE_WEIGHT: f32 = 0.5;

/// The combination of the terms of a full-text search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Operator {
    /// At least one term occurs.
    #[default]
    Or,
    /// Every term occurs.
    And,
}

/// One thing to look up: a term or a phrase.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    /// The field whose postings are read.
    pub field: Field,
    /// The field whose length normalises the frequency.
    pub length: Field,
    /// One term, or the terms of a phrase in order.
    pub terms: Vec<String>,
    /// Factor of the score: how often the query says it.
    pub weight: f32,
    /// Whether the title is looked at too. Its score uses the same idf: how special a term is
    /// does not depend on where it stands.
    pub is_in_title: bool,
}

/// A query as the scorer reads it.
pub trait TextQuery: sealed::Clauses + Sync {
    /// Whether nothing can match.
    fn is_empty(&self) -> bool {
        self.clauses().is_empty()
    }
}

pub(super) mod sealed {
    use super::{Clause, Operator};

    /// Keeps the set of query types closed.
    pub trait Clauses {
        /// Terms and phrases to look up, in the order in which scores are added.
        fn clauses(&self) -> &[Clause];
        /// The combination of clauses.
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
    /// Analyses a query as rows are analysed. A term that is repeated weighs as often as it
    /// occurs; common English words are left out while other terms remain.
    pub fn analyse(query: &str) -> Self {
        let mut distinct = Distinct::default();
        Analyser::new().hybrid(&nfkc(query), |term| {
            // The whole words hold Hangul by the word, not by the character.
            let is_lone = term.kind == Kind::Lone && term.text.chars().all(is_unspaced);
            distinct.add(term.text, is_lone);
        });
        let mut found = distinct.found;
        if found.iter().any(|(term, ..)| !is_stop_word(term)) {
            found.retain(|(term, ..)| !is_stop_word(term));
        }
        found.truncate(QUERY_TERMS_MAX);
        let clause = |(term, is_lone, count): &(String, bool, u32)| Clause {
            // A lone character is no bigram of the body; the whole words hold every character.
            field: if *is_lone { Field::Words } else { Field::Body },
            length: Field::Body,
            terms: vec![term.clone()],
            weight: *count as f32,
            is_in_title: true,
        };
        let clauses = found.iter().map(clause).collect();
        Self { terms: found.into_iter().map(|(term, ..)| term).collect(), clauses }
    }

    /// The distinct analysed terms, in the order of the query.
    pub fn terms(&self) -> &[String] {
        &self.terms
    }
}

/// A full-text query over whole words.
#[derive(Debug, Clone, PartialEq)]
pub struct WordQuery {
    operator: Operator,
    clauses: Vec<Clause>,
}

impl WordQuery {
    /// Analyses a query as rows are analysed, but for the pieces of a word, which rows hold beside
    /// it: who writes `main.rs` means the whole. A run of a script without spaces is one phrase.
    pub fn analyse(query: &str, operator: Operator) -> Self {
        let mut phrases: Vec<Vec<String>> = Vec::new();
        Analyser::new().whole(&nfkc(query), |term| match (term.kind, phrases.last_mut()) {
            (Kind::Next, Some(phrase)) => phrase.push(term.text.to_owned()),
            (Kind::Piece, _) => {}
            _ => phrases.push(vec![term.text.to_owned()]),
        });
        let mut seen: HashMap<&[String], usize> = HashMap::new();
        let mut clauses: Vec<Clause> = Vec::new();
        for phrase in &phrases {
            let terms = &phrase[..phrase.len().min(PHRASE_CHARS_MAX)];
            if let Some(&at) = seen.get(terms) {
                clauses[at].weight += 1.0;
            } else if clauses.len() < QUERY_TERMS_MAX {
                seen.insert(terms, clauses.len());
                clauses.push(Clause {
                    field: Field::Words,
                    length: Field::Words,
                    terms: terms.to_vec(),
                    weight: 1.0,
                    is_in_title: false,
                });
            }
        }
        Self { operator, clauses }
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

/// Counts terms, in the order of their first occurrence.
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
    fn terms_are_bounded() {
        let many: Vec<String> = (0..1000).map(|n| format!("{n}")).collect();
        assert_eq!(HybridQuery::analyse(&many.join(" ")).terms().len(), QUERY_TERMS_MAX);
        let query = WordQuery::analyse(&many.join(" "), Operator::And);
        assert_eq!(query.clauses().len(), QUERY_TERMS_MAX);
        let long = WordQuery::analyse(&"机".repeat(1000), Operator::Or);
        assert_eq!(long.clauses()[0].terms.len(), PHRASE_CHARS_MAX);
    }

    #[test]
    fn runs_are_phrases() {
        let query = WordQuery::analyse("AI 机器, 器", Operator::And);
        let lengths: Vec<_> = query.clauses().iter().map(|clause| clause.terms.len()).collect();
        assert_eq!(lengths, [1, 2, 1]);
        assert!(WordQuery::analyse("?!", Operator::Or).is_empty());
    }
}
