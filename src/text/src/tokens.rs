//! The analysis as tokenizers for the index library.

use tantivy::tokenizer::{TextAnalyzer, Token, TokenStream, Tokenizer, TokenizerManager};

use crate::analysis::{Analyser, Kind, Term};
use crate::normal::nfkc;

/// Name of the tokenizer for the analysed fields.
pub(super) const HYBRID: &str = "hybrid";
/// Name of the tokenizer for the whole-words field.
pub(super) const WHOLE: &str = "whole";

/// Registers both tokenizers under their names.
pub(super) fn tokenizers() -> TokenizerManager {
    let manager = TokenizerManager::new();
    for (name, is_whole) in [(HYBRID, false), (WHOLE, true)] {
        let terms = Terms { is_whole, analyser: Analyser::new(), found: TermBuffer::default() };
        manager.register(name, TextAnalyzer::builder(terms).build());
    }
    manager
}

#[derive(Clone)]
struct Terms {
    is_whole: bool,
    analyser: Analyser,
    found: TermBuffer,
}

/// The terms of one text, in a single buffer.
#[derive(Clone, Default)]
struct TermBuffer {
    text: String,
    /// End of each term in `text`, and its token position.
    terms: Vec<(usize, usize)>,
}

impl TermBuffer {
    /// Appends a term. A run leaves a gap before itself, so that a phrase never spans two runs.
    fn push(&mut self, term: &Term<'_>) {
        let step = match term.kind {
            Kind::First => 2,
            Kind::Piece => 0,
            Kind::Word | Kind::Gram | Kind::Lone | Kind::Next => 1,
        };
        let position = self.terms.last().map_or(0, |(_, last)| last + step);
        self.text.push_str(term.text);
        self.terms.push((self.text.len(), position));
    }
}

impl Tokenizer for Terms {
    type TokenStream<'a> = TermStream<'a>;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> TermStream<'a> {
        let Self { is_whole, analyser, found } = self;
        found.text.clear();
        found.terms.clear();
        let text = nfkc(text);
        if *is_whole {
            analyser.whole(&text, |term| found.push(&term));
        } else {
            analyser.hybrid(&text, |term| found.push(&term));
        }
        TermStream { found, next: 0, start: 0, token: Token::default() }
    }
}

struct TermStream<'a> {
    found: &'a TermBuffer,
    next: usize,
    start: usize,
    token: Token,
}

impl TokenStream for TermStream<'_> {
    fn advance(&mut self) -> bool {
        let Some(&(end, position)) = self.found.terms.get(self.next) else { return false };
        self.token.text.clear();
        self.token.text.push_str(&self.found.text[self.start..end]);
        self.token.position = position;
        (self.next, self.start) = (self.next + 1, end);
        true
    }

    fn token(&self) -> &Token {
        &self.token
    }

    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}
