//! Finds the names in a sentence: runs of capitalised words, quoted titles, dates, codes.

use std::collections::HashSet;
use std::ops::Range;

use crate::dates::date_at;
use crate::nouns;
use crate::row::{EntityKind, NAME_BYTES_MAX};
use crate::sentences::{is_shouted, mark};
use crate::tokens::{Form, Token};
use crate::words;

/// Maximum tokens searched for a closing quotation mark.
const QUOTE_TOKENS_MAX: usize = 14;

/// A name in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NameSpan {
    /// The tokens of the name.
    pub tokens: Range<usize>,
    /// The bytes of the name proper, without quotation marks and a person's titles.
    pub bytes: Range<usize>,
    /// The kind, if the form alone determines it.
    pub kind: Option<EntityKind>,
}

/// Words of the whole chunk, used as evidence when looking for names.
#[derive(Debug, Default)]
pub(super) struct Surroundings<'a> {
    /// Words of the title.
    pub title: &'a [String],
    /// Words that occur in lower case somewhere.
    pub lower: HashSet<&'a str>,
    /// Words capitalised in the middle of a sentence.
    pub capital: HashSet<&'a str>,
    /// Whether the language capitalises nouns: German.
    pub has_capital_nouns: bool,
}

impl<'a> Surroundings<'a> {
    /// Records the words of a sentence.
    pub(super) fn note(&mut self, text: &'a str, sentence: &[Token]) {
        for (at, token) in sentence.iter().enumerate() {
            let is_inside = at > 0 && sentence[at - 1].is_word();
            if token.form == Form::Lower {
                self.lower.insert(token.text(text));
            } else if token.form == Form::Capital && is_inside {
                self.capital.insert(token.text(text));
            }
        }
    }

    /// Determines the properties that depend on all words.
    pub(super) fn settle(&mut self) {
        let count = |words: &[&str]| words.iter().filter(|w| self.lower.contains(**w)).count();
        let german = count(&["der", "die", "das", "und", "ist", "von", "mit", "nicht", "den"]);
        let english = count(&["the", "of", "and", "is", "to", "was", "for", "with", "that"]);
        self.has_capital_nouns = german >= 3 && german > english;
    }
}

/// Finds the names of a sentence, in order and without overlaps.
pub(super) fn names(
    text: &str,
    sentence: &[Token],
    around: &Surroundings<'_>,
    is_heading: bool,
) -> Vec<NameSpan> {
    let is_shouted = is_shouted(sentence);
    let scan = Scan { text, tokens: sentence, around, is_shouted, is_heading };
    let mut found = Vec::new();
    let mut at = 0;
    while at < sentence.len() {
        let (end, name) = scan.name_at(at);
        at = end.max(at + 1);
        found.extend(name.filter(|name| name.bytes.len() <= NAME_BYTES_MAX));
    }
    found
}

/// A sentence while its names are being found.
pub(super) struct Scan<'a> {
    pub text: &'a str,
    pub tokens: &'a [Token],
    pub around: &'a Surroundings<'a>,
    is_shouted: bool,
    /// Whether capitals are those of a heading.
    is_heading: bool,
}

impl Scan<'_> {
    /// Returns the token at which to continue, and the name before it, if any.
    fn name_at(&self, at: usize) -> (usize, Option<NameSpan>) {
        if let Some(end) = date_at(self.text, self.tokens, at) {
            return (end, Some(self.found(at..end, Some(EntityKind::Date))));
        }
        let is_capital = self.tokens[at].is_capital();
        let run_end = if is_capital { self.run_end(at) } else { at };
        if let Some(end) = self.title_end(at).filter(|end| *end >= run_end) {
            return (end, Some(self.found(at..end, None)));
        }
        if let Some(end) = self.inverted_end(at) {
            return (end, Some(self.found(at..end, Some(EntityKind::Person))));
        }
        let found = match self.tokens[at].form {
            Form::Mark => self.quoted(at),
            Form::Code => self.code(at),
            Form::Capital | Form::Capitals | Form::Initial if !self.is_shouted => {
                return self.run(at);
            }
            _ => None,
        };
        (found.as_ref().map_or(at + 1, |found| found.tokens.end), found)
    }

    /// Returns the end of the source's title if the text repeats it here. A single ordinary word
    /// does not count: in the middle of a text it has its ordinary meaning.
    fn title_end(&self, at: usize) -> Option<usize> {
        let title = self.around.title;
        let rest = self.tokens.get(at..at + title.len())?;
        let is_same = rest.iter().zip(title).all(|(token, word)| token.text(self.text) == word);
        let is_telling = title.len() > 1 || !rest.first()?.senses.is_ordinary();
        let is_name = rest.iter().any(Token::is_capital);
        (is_same && is_telling && is_name).then_some(at + title.len())
    }

    fn found(&self, tokens: Range<usize>, kind: Option<EntityKind>) -> NameSpan {
        let last = &self.tokens[tokens.end - 1];
        let mut bytes = self.tokens[tokens.start].start..last.end;
        // "U.S." keeps its final stop.
        let is_dotted = last.form == Form::Capitals && last.text(self.text).contains('.');
        bytes.end += usize::from(is_dotted && self.text[last.end..].starts_with('.'));
        NameSpan { tokens, bytes, kind }
    }

    pub(super) fn mark(&self, at: usize) -> Option<char> {
        mark(self.text, self.tokens.get(at)?)
    }

    pub(super) fn word(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text(self.text))
    }

    /// Recognises a title between quotation marks: most of its words are capitalised, or the marks
    /// are ones used only for titles.
    fn quoted(&self, at: usize) -> Option<NameSpan> {
        let open = self.mark(at)?;
        let (close, is_title) = match open {
            '"' => ('"', false),
            '\u{201c}' => ('\u{201d}', false),
            '\u{201e}' => ('\u{201c}', false),
            '\u{ab}' => ('\u{bb}', false),
            '《' => ('》', true),
            '「' => ('」', true),
            '『' => ('』', true),
            _ => return None,
        };
        let length = self.tokens[at + 1..]
            .iter()
            .take(QUOTE_TOKENS_MAX)
            .position(|token| mark(self.text, token) == Some(close))?;
        let mut inner = at + 1..at + 1 + length;
        while inner.len() > 1 && matches!(self.mark(inner.end - 1), Some(',' | '.')) {
            inner.end -= 1;
        }
        let words = || self.tokens[inner.clone()].iter().filter(|token| token.is_word());
        let capitals = words().filter(|token| token.is_capital()).count();
        let first = words().next()?;
        let is_term = self.introduces_term(at);
        let is_capital = first.is_capital() || first.form == Form::Number;
        let is_name = is_title || is_capital && capitals * 2 >= words().count();
        let is_short_term = is_term && words().count() <= 4;
        if !is_name && !is_short_term {
            return None;
        }
        let kind = if is_term { EntityKind::Term } else { EntityKind::Work };
        let name = self.found(inner, Some(kind));
        Some(NameSpan { tokens: at..at + length + 2, ..name })
    }

    /// Whether the preceding words indicate that the word itself is meant.
    fn introduces_term(&self, at: usize) -> bool {
        let before = if at == 0 { "" } else { self.word(at - 1) };
        ["term", "word", "called", "termed", "phrase", "concept"].contains(&before)
            || before == "as" && at > 1 && ["known", "to"].contains(&self.word(at - 2))
    }

    /// Recognises a code: an address, a file name, a symbol of a program.
    fn code(&self, at: usize) -> Option<NameSpan> {
        let word = self.word(at);
        let letters = word.chars().filter(|c| c.is_alphabetic()).count();
        let has_mark = word.contains(['_', '@', '.']);
        let is_brand = !has_mark && word.chars().any(char::is_uppercase);
        let has_digit = word.bytes().any(|b| b.is_ascii_digit());
        let is_slashed = word.contains('/') && !has_mark && !(is_brand && has_digit);
        let is_symbol = letters >= 3 && (has_mark || is_brand) && !is_slashed;
        let kind = if is_brand { None } else { Some(EntityKind::Identifier) };
        is_symbol.then(|| self.found(at..at + 1, kind))
    }

    /// Recognises a run of capitalised words with particles between them.
    fn run(&self, at: usize) -> (usize, Option<NameSpan>) {
        let mut start = at;
        let run_end = self.run_end(at);
        let mut end = run_end;
        let mut kind = None;
        while start < end {
            let senses = self.tokens[start].senses;
            let has_more = start + 1 < end;
            let is_first = start == 0 || matches!(self.mark(start - 1), Some('"' | ':' | '('));
            let is_opening = is_first && has_more && self.is_opening(start);
            let is_loud = self.tokens[start].form == Form::Capitals;
            let is_particle = senses.is_foreign() && (start > 0 && has_more || is_loud);
            if self.is_grammar(start) && !is_particle || is_opening {
                start += 1;
            } else if has_more && senses.is_honorific() && !self.holds_office(start, end) {
                let is_style = !words::is_article(self.word(start.wrapping_sub(1)));
                kind = if is_style { Some(EntityKind::Person) } else { None };
                start += 1;
            } else if has_more && senses.is_demonym() && self.tokens[start + 1].senses.is_given() {
                start += 1;
            } else {
                break;
            }
            while start < end && !self.tokens[start].is_capital() {
                start += 1;
            }
        }
        while end > start + 1 && self.tokens[end - 1].senses.is_grammar() {
            end -= 1;
        }
        let is_name = start < end
            && match end - start {
                1 => self.is_name_alone(start, kind.is_some()),
                _ => self.is_name_together(start..end),
            };
        // The stop of a final initial belongs to the name, unless the sentence ends with it.
        let has_initial = end > at && self.tokens[end - 1].form == Form::Initial;
        let has_stop = has_initial && self.mark(end) == Some('.') && end + 1 < self.tokens.len();
        let behind = end + usize::from(has_stop);
        let name = || NameSpan { tokens: at..behind, ..self.found(start..end, kind) };
        (run_end.max(behind), is_name.then(name))
    }

    /// Whether the token is a function word, however it is capitalised.
    pub(super) fn is_grammar(&self, at: usize) -> bool {
        let is_article = matches!(self.word(at), "A" | "I") && self.mark(at + 1) != Some('.');
        self.tokens[at].senses.is_grammar() || is_article
    }

    /// Whether the word is capitalised only because it starts the sentence.
    fn is_opening(&self, at: usize) -> bool {
        let token = &self.tokens[at];
        let word = token.text(self.text);
        if token.form == Form::Capitals {
            let next = &self.tokens[at + 1];
            return word.len() > 2 && token.senses.is_ordinary() && next.form != Form::Capitals;
        }
        if token.form != Form::Capital {
            return false;
        }
        let is_adverb = word.ends_with("ly") && word.len() > 4 && !token.senses.is_given();
        is_adverb || self.around.lower.contains(&*word.to_lowercase())
    }

    /// Whether an office is part of the name of something else: "General Motors", "King Street".
    fn holds_office(&self, start: usize, end: usize) -> bool {
        let last = &self.tokens[end - 1];
        let is_other = |kind| kind != EntityKind::Person;
        let is_thing = nouns::kind_of_noun(last.text(self.text)).is_some_and(is_other);
        let word = self.word(start);
        let is_ruler = ["King", "Queen", "Prince", "Princess", "Pope", "Saint", "St", "Emperor"];
        is_thing
            || is_ruler.contains(&word)
            || word == "General" && !self.tokens[start + 1].senses.is_given()
    }

    fn is_name_alone(&self, at: usize, is_person: bool) -> bool {
        let token = &self.tokens[at];
        let word = token.text(self.text);
        let senses = token.senses;
        if is_person && token.form == Form::Capital {
            return true;
        }
        let folded = word.to_lowercase();
        let is_place = words::is_place(&folded);
        match token.form {
            Form::Initial => false,
            Form::Capitals => {
                let is_roman = word.bytes().all(|b| b"IVX".contains(&b));
                let is_money = ["USD", "EUR", "GBP", "JPY", "CHF"].contains(&word);
                let is_word = senses.is_ordinary() && !senses.is_foreign()
                    || self.around.lower.contains(&*folded);
                !is_roman && !is_money && !is_word && word.chars().count() <= 24
            }
            _ if senses.is_month() || word.ends_with("day") && senses.is_ordinary() => false,
            _ if is_place => true,
            // The only word of a label or a cell.
            _ if self.is_heading && !senses.is_given() => self.around.capital.contains(word),
            _ if senses.is_ordinary() || senses.is_demonym() || senses.is_honorific() => false,
            _ if nouns::kind_of_noun(word).is_some() => false,
            _ if self.around.has_capital_nouns => {
                let uppers = word.chars().filter(|c| c.is_uppercase()).count();
                senses.is_given() || uppers > 1 && !word.contains('-')
            }
            _ if self.opens_sentence(at) => self.is_name_in_front(at),
            _ => true,
        }
    }

    /// Whether a capital at this position carries no information.
    fn opens_sentence(&self, at: usize) -> bool {
        let is_opener = |c| matches!(c, '"' | '\u{201c}' | '(' | ':' | '-' | '\u{2022}' | '*');
        at == 0 || at == 1 && self.mark(0).is_some_and(is_opener) || self.mark(at - 1) == Some(':')
    }

    /// Whether a single capitalised word at the start of a sentence is a name, which needs further
    /// evidence.
    fn is_name_in_front(&self, at: usize) -> bool {
        let token = &self.tokens[at];
        let word = token.text(self.text);
        if self.around.capital.contains(word) || token.is_owner || token.senses.is_given() {
            return true;
        }
        let is_derived = ["ly", "ing", "tion", "tions", "ment", "ments", "ness", "ed", "ity"]
            .iter()
            .any(|end| word.ends_with(end));
        if is_derived || self.around.lower.contains(&*word.to_lowercase()) {
            return false;
        }
        let Some(next) = self.tokens.get(at + 1) else { return true };
        let follows = next.text(self.text);
        let is_verb =
            next.senses.is_verb() || ["is", "was", "has", "had", "also"].contains(&follows);
        let lists = follows == "," && self.tokens.get(at + 2).is_some_and(Token::is_capital);
        let is_listed = lists && token.senses == Default::default();
        is_verb || is_listed || follows == "("
    }

    fn is_name_together(&self, tokens: Range<usize>) -> bool {
        let words = || self.tokens[tokens.clone()].iter().filter(|token| token.is_capital());
        let plain = words().filter(|token| {
            self.is_heading && token.senses.kind.is_some() && !token.senses.is_given()
                || token.senses.is_ordinary()
                || token.senses.is_demonym()
                || token.senses.is_month()
        });
        let is_plain = plain.count() == words().count();
        let is_office = words().all(|token| {
            token.senses.kind == Some(EntityKind::Person) || token.senses.is_honorific()
        });
        let last = self.word(tokens.end - 1);
        let is_company = nouns::kind_of_noun(last).is_some() || self.has_company(tokens.clone());
        let is_seen =
            |token: &Token| self.around.lower.contains(&*token.text(self.text).to_lowercase());
        // Initials without stops occur in reference lists, where names cannot be recognised.
        let bare = tokens.clone().filter(|at| {
            let is_roman = "IVX".contains(self.word(*at));
            self.tokens[*at].form == Form::Initial && self.mark(at + 1) != Some('.') && !is_roman
        });
        if bare.count() > 1 {
            return false;
        }
        let is_numbered = self.tokens[tokens.end - 1].form == Form::Number;
        let is_all_seen = words().all(is_seen) && !is_company && !is_numbered;
        let key = crate::key(&self.text[self.found(tokens.clone(), None).bytes]);
        if words::is_place(key.as_str()) {
            return true;
        }
        let is_title_case = self.is_heading && (is_plain || words().any(is_seen));
        let is_free = !is_plain || !self.opens_sentence(tokens.start);
        !is_office && !is_all_seen && !is_title_case && is_free
    }
}
