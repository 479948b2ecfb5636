//! The extent of names: capitalised words, and the particles and punctuation that may connect them.

use std::ops::Range;

use crate::dates::date_at;
use crate::names::Scan;
use crate::nouns;
use crate::row::EntityKind;
use crate::tokens::{Form, Token};
use crate::words;

/// Maximum words of a name, including particles.
const NAME_TOKENS_MAX: usize = 12;

impl Scan<'_> {
    /// Returns the end of the run of words starting at `at` that can form one name.
    pub(super) fn run_end(&self, at: usize) -> usize {
        let mut end = at + 1;
        while end < self.tokens.len() && end - at < NAME_TOKENS_MAX {
            match self.joined(at, end) {
                Some(next) => end = next,
                None => break,
            }
        }
        end
    }

    /// If the token at `end` belongs to the name that started at `at`, returns the new end of the
    /// name.
    fn joined(&self, at: usize, end: usize) -> Option<usize> {
        let (last, next) = (&self.tokens[end - 1], &self.tokens[end]);
        if last.is_owner {
            let kind = nouns::kind_of_noun(next.text(self.text));
            let is_company = kind == Some(EntityKind::Organization);
            return (next.is_capital() && is_company).then_some(end + 1);
        }
        match next.form {
            Form::Capital | Form::Capitals | Form::Initial => {
                let is_plain = !self.is_grammar(end) || next.senses.is_foreign();
                let is_roman = next.form == Form::Initial && "IVX".contains(self.word(end));
                let is_date = date_at(self.text, self.tokens, end).is_some();
                let is_joined = next.is_apart && (is_plain || is_roman) && !is_date;
                is_joined.then_some(end + 1)
            }
            Form::Number => self.numbered(at, end),
            Form::Lower => self.particles(at, end),
            Form::Mark => self.marked(end),
            Form::Code | Form::Unspaced => None,
        }
    }

    /// Extends a name by a number: "Apollo 11", "Interstate 5".
    fn numbered(&self, at: usize, end: usize) -> Option<usize> {
        let number = self.word(end);
        let before = self.word(end - 1).to_ascii_lowercase();
        let counts = ["figure", "fig", "table", "section", "chapter", "page", "step", "line"];
        let is_plain = number.len() <= 4 && number.bytes().all(|b| b.is_ascii_digit());
        let is_year = number.len() == 4;
        let follows_quantity = self
            .tokens
            .get(end + 1)
            .filter(|token| token.form == Form::Lower && !token.senses.is_grammar())
            .is_some_and(|token| token.text(self.text).ends_with('s'));
        let is_name = is_plain
            && !is_year
            && !follows_quantity
            && !counts.contains(&&*before)
            && !words::is_month(&before)
            && !self.tokens[at].senses.is_grammar();
        is_name.then_some(end + 1)
    }

    /// Extends a name by particles that occur inside names, followed by a capitalised word.
    fn particles(&self, at: usize, end: usize) -> Option<usize> {
        let first = self.word(end);
        let before = &self.tokens[end - 1];
        let head = nouns::kind_of_noun(self.word(at));
        let is_company = head == Some(EntityKind::Organization) || self.has_company(at..end);
        let is_office = head == Some(EntityKind::Person) || self.tokens[at].senses.is_honorific();
        let is_allowed = match first {
            "von" | "van" | "de" | "zu" => true,
            _ if self.around.has_capital_nouns => false,
            "of" => {
                let is_plain = before.senses.is_ordinary() || before.senses.kind.is_some();
                let is_roman = self.word(end - 1).bytes().all(|b| b"IVX".contains(&b));
                let is_given =
                    |token: &Token| token.senses.is_given() || token.senses.is_honorific();
                let given = self.tokens[at..end - usize::from(is_roman)].iter();
                let is_person = end - at > usize::from(is_roman)
                    && given.clone().all(is_given)
                    && given.clone().any(|token| token.senses.is_given());
                let is_style = is_office && !is_person && end - at == 1;
                (is_plain || is_person) && !is_style && before.form != Form::Capitals
                    || is_person && before.form == Form::Capitals
            }
            "for" => is_company || self.word(end - 1) == "Award",
            "and" => is_company && self.has_of(at, end) || self.is_pair(end),
            "da" | "di" | "du" | "del" | "della" | "des" | "der" | "den" | "bin" | "ibn" | "al"
            | "y" | "la" | "af" | "av" | "do" | "dos" | "e" => true,
            "sur" | "les" | "le" | "en" | "el" | "los" => before.form != Form::Lower,
            _ => false,
        };
        if !is_allowed {
            return None;
        }
        let rest = &self.tokens[end + 1..];
        let skipped = rest.iter().take(2).take_while(|token| {
            let word = token.text(self.text);
            matches!(word, "the" | "la" | "le" | "les" | "der" | "den" | "los" | "las" | "el")
        });
        let next = end + 1 + skipped.count();
        let token = self.tokens.get(next)?;
        let is_name = token.form == Form::Capital || token.form == Form::Capitals;
        let is_date = words::is_month(&self.word(next).to_ascii_lowercase());
        (is_name && token.is_apart && !token.senses.is_grammar() && !is_date).then_some(next + 1)
    }

    pub(super) fn has_company(&self, tokens: Range<usize>) -> bool {
        let is_company = |token: &Token| {
            token.senses.kind == Some(EntityKind::Organization) && token.is_capital()
        };
        self.tokens[tokens].iter().any(is_company)
    }

    fn has_of(&self, at: usize, end: usize) -> bool {
        self.tokens[at..end].iter().any(|token| matches!(token.text(self.text), "of" | "for"))
    }

    /// "Victoria and Albert Museum": an institution named after two people.
    fn is_pair(&self, end: usize) -> bool {
        let is_company = |token: &Token| {
            nouns::kind_of_noun(token.text(self.text))
                .is_some_and(|kind| !matches!(kind, EntityKind::Person | EntityKind::Work))
        };
        let [before, _, next, head, ..] = &self.tokens[end - 1..] else { return false };
        let is_run = next.is_capital() && head.is_capital() && !head.text(self.text).ends_with('s');
        is_run && is_company(head) && !is_company(next) && !is_company(before)
    }

    /// Extends a name across stops of initials, hyphens followed by a space, and commas before a
    /// legal form.
    fn marked(&self, end: usize) -> Option<usize> {
        let next = self.tokens.get(end + 1)?;
        let last = &self.tokens[end - 1];
        let word = next.text(self.text);
        match self.mark(end)? {
            '.' => {
                let letters = self.word(end - 1);
                let is_company = next.senses.kind == Some(EntityKind::Organization);
                let is_dotted = letters.contains('.') && (!letters.is_ascii() || is_company);
                let is_short = last.form == Form::Initial
                    || is_dotted
                    || last.senses.is_honorific() && last.end - last.start <= 4;
                (is_short && next.is_capital() && !next.senses.is_grammar()).then_some(end + 2)
            }
            '\u{2013}' => {
                let is_tight = !self.tokens[end].is_apart && !next.is_apart;
                (is_tight && next.form == Form::Capital).then_some(end + 2)
            }
            '-' => {
                let is_joined = !self.tokens[end].is_apart && next.form == Form::Capital;
                is_joined.then_some(end + 2)
            }
            '&' => {
                // "Huang & Shen 1998" are two authors.
                let behind = self.tokens.get(end + 2).map(|token| token.form);
                let is_company = next.is_capital() && next.is_apart && behind != Some(Form::Number);
                is_company.then_some(end + 2)
            }
            ',' => ["Inc", "Ltd", "LLC", "Jr", "Sr", "Corp"].contains(&word).then_some(end + 2),
            _ => None,
        }
    }
}
