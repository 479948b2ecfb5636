//! Noun phrases of a question, found by form: "the BX-2", "an API key", "the head of sales".
//!
//! There is no grammar behind this. A phrase begins at a determiner or a name and ends before a
//! function word or punctuation; what stands before it tells whether its last word is a verb ("how
//! much does the pump weigh").

use std::ops::Range;

use crate::question::several::is_plural;
use crate::text::values::is_calendar_word;
use crate::text::words::{is_entry, is_interrogative};
use crate::translation::Language;

/// Words that end an English phrase, apart from those of the next lists.
const STOPS: &str = "\
    and|or|but|if|when|while|because|so|that|which|who|whom|whose|where|why|how|what|not|i|you|we|\
    he|she|it|they|me|us|him|them|his|her|its|their|this|these|those|there|here|now|today|then|\
    again|usually|still|also|ever|never|already|currently|please|up|out|off|down|let";
pub(crate) const PREPOSITIONS: &str = "\
    of|in|at|on|to|for|from|by|with|without|about|into|onto|over|under|between|during|before|after|\
    until|since|than|as|per|via|near|against|von|vom|für|mit|bei|beim|im|am|zum|zur|aus|auf|de|du|\
    des|d|dans|pour|avec|chez|en|sur|del|con|para|por";
/// Prepositions before the thing that has what precedes them: "the price of the pump".
const OWNING: &str = "of|von|vom|de|du|des|del";
const BE: &str = "is|are|was|were|be|been|being|am|isn't|aren't|wasn't|ist|sind|war|est|sont|son";
pub(crate) const AUXILIARIES: &str = "\
    do|does|did|can|could|will|would|shall|should|may|might|must|has|have|had|don't|doesn't|didn't";
pub(crate) const DETERMINERS: &str = "\
    the|a|an|my|our|your|each|every|der|die|das|den|dem|ein|eine|einen|einem|einer|mein|meine|\
    unser|unsere|le|la|les|un|une|mon|ma|notre|votre|el|los|las|una|mi|nuestro|nuestra";
/// Words that say something of a subject before them: "when is the shop open". Participles in "-ed"
/// count too.
const PREDICATES: &str = "\
    told|sent|paid|made|done|kept|held|sold|built|born|known|given|taken|due|open|closed|free|new|\
    next|missing|liable|exempt|full|empty|ready|late|available|responsible|eligible|valid|allowed|\
    bought|found|shown|spent|drawn|grown|written|chosen|broken|worn|hung|run|set|shut|put";
/// Superlatives that may stand without a noun.
const SUPERLATIVES: &str = "most|least|first|last|best|worst|next|only|same";
/// Adverbs between a subject and its verb.
const ADVERBS: &str = "also|still|already|usually|currently|normally|never|ever|not|now";
/// Words before a verb whose subject follows it, "do" and its forms apart.
const BEFORE_VERBS: &str = "where|when|why|how";
const DO: &str = "do|does|did";
/// Adjectives that are no subjects either: "what is wrong and how is it mended".
const ADJECTIVES: &str =
    "wrong|different|special|important|necessary|possible|good|bad|best|worst|better|worse";
/// Maximum number of words in a plural without a determiner.
const PLURAL_WORDS_MAX: usize = 2;
const PARTICLES_OF_NAMES: &str = "of|van|von|de|der|den|del|di|da|bin|al";
/// Maximum number of words in a phrase.
const WORDS_MAX: usize = 5;

/// A word between white space, without the punctuation around it and a possessive ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Word<'t> {
    pub(crate) start: usize,
    pub(crate) text: &'t str,
    /// The punctuation before and after it; an apostrophe for a possessive ending.
    pub(crate) before: &'t str,
    pub(crate) after: &'t str,
}

impl Word<'_> {
    fn is_of(&self, list: &str) -> bool {
        is_entry(list, self.text)
    }

    fn ends(&self) -> bool {
        self.after.contains([',', ';', ':', '(', ')', '.', '?', '!', '\'', '\u{2019}'])
    }

    /// Whether it tells of whom the next word is: "the tenants' meeting".
    fn is_owner_of_next(&self) -> bool {
        self.before.is_empty()
            && matches!(self.after, "'" | "\u{2019}")
            && self.text.ends_with('s')
            && self.text.starts_with(char::is_lowercase)
    }

    fn is_capital(&self) -> bool {
        self.text.starts_with(char::is_uppercase)
    }

    /// Whether it holds a digit and a letter, or only capitals.
    pub(crate) fn is_code(&self) -> bool {
        let letters = self.text.chars().filter(|c| c.is_alphabetic()).count();
        let has_digit = self.text.contains(|c: char| c.is_ascii_digit());
        let is_acronym = letters > 1 && !self.text.contains(char::is_lowercase);
        letters > 0 && (has_digit || is_acronym)
    }
}

/// The words of a text.
pub(crate) fn words(text: &str) -> Vec<Word<'_>> {
    let word = |piece: &'_ str| {
        let bare = piece.trim_start_matches(|c: char| !c.is_alphanumeric());
        let lead = piece.len() - bare.len();
        let bare = bare.trim_end_matches(|c: char| !c.is_alphanumeric());
        let bare =
            ["'s", "\u{2019}s"].iter().find_map(|end| bare.strip_suffix(end)).unwrap_or(bare);
        (lead..lead + bare.len(), !bare.is_empty())
    };
    let mut at = 0;
    let pieces = text.split_whitespace().map(|piece| {
        let start = at + text[at..].find(piece).unwrap_or_default();
        at = start + piece.len();
        (start, piece)
    });
    let words = pieces.filter_map(|(start, piece)| {
        let (bytes, is_word) = word(piece);
        is_word.then(|| Word {
            start: start + bytes.start,
            text: &piece[bytes.clone()],
            before: &piece[..bytes.start],
            after: &piece[bytes.end..],
        })
    });
    words.collect()
}

/// A noun phrase, as a range of words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phrase {
    pub(crate) words: Range<usize>,
    /// Whether it holds a name or code.
    pub(crate) is_named: bool,
    /// Whether it is a name of two or more words without digits, as persons have.
    pub(crate) is_full_name: bool,
    pub(crate) is_plural: bool,
    /// Whether it follows a preposition, and whether that is one of [`OWNING`].
    pub(crate) is_behind: bool,
    pub(crate) is_owner: bool,
}

/// Whether the word at `at` is a name or code.
pub(crate) fn is_name(words: &[Word<'_>], at: usize) -> bool {
    let word = &words[at];
    let is_listed = word.is_of(STOPS)
        || word.is_of(BE)
        || word.is_of(AUXILIARIES)
        || word.is_of(DETERMINERS)
        || word.is_of(PREPOSITIONS);
    let is_long = word.text.chars().nth(1).is_some();
    let is_word =
        is_long && !is_listed && !is_interrogative(word.text) && !is_calendar_word(word.text);
    // A capital at the beginning says nothing.
    is_word && ((at > 0 && word.is_capital()) || word.is_code())
}

/// Whether a word says something of the subject before it.
pub(crate) fn is_predicate(word: &str) -> bool {
    is_entry(PREDICATES, word) || (word.len() > 4 && word.ends_with("ed"))
}

/// Whether a word is a form of "be".
pub(crate) fn is_be(word: &str) -> bool {
    is_entry(BE, word)
}

/// The noun phrases of a question, in order.
pub(crate) fn phrases(words: &[Word<'_>], language: Language) -> Vec<Phrase> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        match phrase_at(words, at, language) {
            Some(phrase) => {
                at = phrase.words.end;
                found.push(phrase);
            }
            None => at += 1,
        }
    }
    found
}

fn phrase_at(words: &[Word<'_>], at: usize, language: Language) -> Option<Phrase> {
    let has_determiner = words[at].is_of(DETERMINERS) && !words[at].ends();
    if !has_determiner && !names(words, at, language) {
        return None;
    }
    let head = if has_determiner { at + 1 } else { at };
    let end = end_of(words, head, language);
    let name = (head..end).find(|at| names(words, *at, language));
    let named = name.map(|name| name..name_end(words, name, end));
    if head == end {
        return None;
    }
    let before = at.checked_sub(1).map_or("", |before| words[before].text);
    let end = match (&named, language) {
        (Some(named), Language::English) => {
            named.end + kept_behind(words, at, named, named.end..end, has_determiner)
        }
        (Some(named), _) => named.end,
        (None, Language::English) => kept(words, head..end, before),
        (None, Language::German) => return None,
        (None, _) => head + 1,
    };
    let last = words[end - 1].text;
    let is_bare = named.is_none() && end == head + 1;
    if is_bare && (is_entry(SUPERLATIVES, last) || last.ends_with("est")) {
        return None;
    }
    let full = named.as_ref().is_some_and(|named| {
        named.len() > 1 && words[named.clone()].iter().all(|word| !word.is_code())
    });
    Some(Phrase {
        words: at..end,
        is_named: named.is_some() && !(has_determiner && is_noun(&words[end - 1], language)),
        is_full_name: full && !has_determiner,
        is_plural: is_plural(last) && named.is_none_or(|named| named.end < end),
        is_behind: is_entry(PREPOSITIONS, before),
        is_owner: is_entry(OWNING, before),
    })
}

/// The plural subject of an English question, if it has no determiner: "passwords" in "how long do
/// passwords last".
pub(crate) fn bare_plural(words: &[Word<'_>]) -> Option<Range<usize>> {
    let verb = words.iter().position(|word| word.is_of(BE) || word.is_of(AUXILIARIES))?;
    let has_subject = match &words[..verb] {
        [] => true,
        [.., how, size] if how.text.eq_ignore_ascii_case("how") => !size.is_of("many"),
        [.., before] => before.is_of(BEFORE_VERBS),
    };
    // "Who has keys?", "What can visitors see?".
    let is_of_persons = words[..verb].iter().any(|word| word.is_of("who|whom|whose"));
    if is_of_persons || !(has_subject || words[verb].is_of(DO)) {
        return None;
    }
    let start = verb + 1;
    let end = end_of(words, start, Language::English).min(start + PLURAL_WORDS_MAX);
    let last = (start..end).find(|at| is_plural(words[*at].text))?;
    let is_subject = !words[start..=last].iter().any(|word| is_predicate(word.text));
    is_subject.then_some(start..last + 1)
}

/// The subject of an English question that is a noun in the singular without a determiner:
/// "glazing" in "what is glazing and how long does it take".
pub(crate) fn bare_singular(words: &[Word<'_>]) -> Option<usize> {
    let verb = words.iter().position(|word| word.is_of(BE) || word.is_of(AUXILIARIES))?;
    let before = verb.checked_sub(1).map(|before| &words[before]);
    let has_subject = words[verb].is_of(BE)
        || words[verb].is_of(DO)
        || before.is_none_or(|before| before.is_of(BEFORE_VERBS));
    if !has_subject || words[..verb].iter().any(|word| word.is_of("who|whom|whose")) {
        return None;
    }
    let at = verb + 1;
    let is_open = end_of(words, at, Language::English) > at;
    let is_noun = |word: &Word<'_>| {
        !is_interrogative(word.text)
            && !is_predicate(word.text)
            && !word.is_of(ADJECTIVES)
            && !is_plural(word.text)
    };
    (is_open && is_noun(&words[at])).then_some(at)
}

/// Whether a capital may be that of any noun.
fn is_noun(word: &Word<'_>, language: Language) -> bool {
    language == Language::German && !word.is_code()
}

/// Whether the word at `at` is a name or, in German, a noun.
fn names(words: &[Word<'_>], at: usize, language: Language) -> bool {
    let is_asked = language == Language::German
        && at.checked_sub(1).is_some_and(|at| words[at].text.to_lowercase().starts_with("welche"));
    is_name(words, at) && !is_asked
}

/// The end of the words that may belong to a phrase from `head`.
fn end_of(words: &[Word<'_>], head: usize, language: Language) -> usize {
    let mut end = head;
    while end < words.len().min(head + WORDS_MAX) {
        let word = &words[end];
        let is_particle = end > head
            && word.is_of(PARTICLES_OF_NAMES)
            && words.get(end + 1).is_some_and(Word::is_capital)
            && words[end - 1].is_capital()
            && !words[end - 1].is_code();
        let is_stop = match language {
            Language::English => word.is_of(STOPS) || word.is_of(BE) || word.is_of(AUXILIARIES),
            _ => language.is_function_word(&word.text.to_lowercase()),
        };
        let is_end = is_stop || word.is_of(DETERMINERS) || word.is_of(PREPOSITIONS);
        if !word.before.is_empty() && end > head || (is_end && !is_particle) {
            break;
        }
        end += 1;
        let is_followed = words.get(end).is_some_and(|next| next.before.is_empty());
        if word.ends() && !(is_followed && word.is_owner_of_next()) {
            break;
        }
    }
    end
}

/// The end of the name that begins at `start`.
fn name_end(words: &[Word<'_>], start: usize, end: usize) -> usize {
    let goes_on = |at: &usize| {
        let is_number = words[*at].text.bytes().all(|byte| byte.is_ascii_digit());
        let is_particle = words[*at].is_of(PARTICLES_OF_NAMES);
        is_name(words, *at) || is_number || is_particle
    };
    start + 1 + (start + 1..end).take_while(goes_on).count()
}

/// The number of words kept of those behind a name: the noun of "an API key", but no verb.
fn kept_behind(
    words: &[Word<'_>],
    at: usize,
    named: &Range<usize>,
    behind: Range<usize>,
    has_determiner: bool,
) -> usize {
    // Another name is an object, and what precedes it a verb.
    if behind.clone().any(|at| is_name(words, at)) {
        return 0;
    }
    let before = at.checked_sub(1).map(|before| &words[before]);
    let is_of = |list: &str| before.is_some_and(|before| before.is_of(list));
    if !has_determiner {
        let is_acronym = named.len() == 1
            && words[named.start].is_code()
            && words[named.start].text.chars().all(char::is_alphabetic);
        let is_object = before.is_some() && !is_of(BE) && !is_of(AUXILIARIES);
        return usize::from(is_acronym && is_object && !behind.is_empty());
    }
    if is_of(AUXILIARIES) && !is_before_verb(words, behind.end) {
        return usize::from(behind.len() > 1);
    }
    unpredicated(words, behind.clone()) - behind.start
}

/// The end of what is kept of a phrase without a name.
fn kept(words: &[Word<'_>], content: Range<usize>, before: &str) -> usize {
    let has_verb = is_entry(AUXILIARIES, before) && !is_before_verb(words, content.end);
    if has_verb && content.len() > 1 {
        return content.end - 1;
    }
    unpredicated(words, content.clone()).max(content.start + 1)
}

/// Whether the verb of a question comes after the words before `end`, so that the last of these is
/// none: "what does the boat lift do", "when will the boat lift be closed".
fn is_before_verb(words: &[Word<'_>], end: usize) -> bool {
    if end.checked_sub(1).is_none_or(|last| words[last].ends()) {
        return false;
    }
    let is_adverb = |word: &&Word<'_>| word.is_of(ADVERBS) && !word.ends();
    let adverbs = words[end..].iter().take(2).take_while(is_adverb).count();
    words.get(end + adverbs).is_some_and(|next| {
        let is_closed = [STOPS, DETERMINERS, PREPOSITIONS].iter().any(|list| next.is_of(list));
        next.is_of(BE) || next.is_of(AUXILIARIES) || (adverbs > 0 && !is_closed)
    })
}

/// The end of words without the predicates at their end.
fn unpredicated(words: &[Word<'_>], mut range: Range<usize>) -> usize {
    while !range.is_empty() && is_predicate(words[range.end - 1].text) {
        range.end -= 1;
    }
    range.end
}
