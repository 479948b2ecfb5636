//! The kind of a name, judged by its words and the words next to it.

use crate::entities::Entities;
use crate::key::key;
use crate::names::NameSpan;
use crate::nouns;
use crate::row::EntityKind;
use crate::sentences::mark;
use crate::tokens::{Form, Token};
use crate::words;

/// Weight of a vote that no other can overrule.
const CERTAIN: u16 = 200;

/// Votes for the kind of an entity, based on one of its names.
pub(super) fn judge(
    text: &str,
    sentence: &[Token],
    found: &NameSpan,
    entities: &mut Entities,
    at: usize,
) {
    let name = &text[found.bytes.clone()];
    match found.kind {
        Some(kind @ (EntityKind::Date | EntityKind::Identifier | EntityKind::Term)) => {
            return entities.vote(at, kind, CERTAIN);
        }
        Some(kind) => entities.vote(at, kind, 6),
        None => {}
    }
    let words: Vec<&Token> = sentence[found.tokens.clone()]
        .iter()
        .filter(|token| token.start >= found.bytes.start && token.end <= found.bytes.end)
        .collect();
    by_form(text, name, &words, &mut |kind, weight| entities.vote(at, kind, weight));
    let has_article = found.tokens.start > 0
        && sentence[found.tokens.start - 1].text(text).eq_ignore_ascii_case("the");
    let is_plain = words.len() >= 2
        && words.len() <= 4
        && found.kind.is_none()
        && words.iter().all(|token| is_personal(text, token));
    if is_plain && !has_article {
        entities.vote(at, EntityKind::Person, 2);
    }
    by_neighbours(text, sentence, found, &mut |kind, weight| entities.vote(at, kind, weight));
}

/// Whether the word can be part of a person's name.
fn is_personal(text: &str, token: &Token) -> bool {
    let word = token.text(text);
    match token.form {
        Form::Capital => {
            !is_common(word)
                && !token.senses.is_ordinary()
                && !token.senses.is_demonym()
                && token.senses.kind.is_none_or(|kind| kind == EntityKind::Person)
                && !words::is_place(&word.to_lowercase())
                || token.senses.is_given()
        }
        Form::Initial | Form::Mark => true,
        Form::Lower => {
            ["de", "van", "von", "der", "del", "di", "da", "bin", "al", "la"].contains(&word)
        }
        Form::Capitals => word.bytes().all(|b| b"IVX".contains(&b)),
        _ => false,
    }
}

/// Whether the ending or the letters of a word rule out a person's name: "Intelligence", "Awards",
/// "NaturallySpeaking".
fn is_common(word: &str) -> bool {
    let ends = ["ence", "tion", "ment", "ness", "ity", "ism", "logy", "ware"];
    let singular = word.strip_suffix('s').map(nouns::senses_of);
    let is_plural = singular.is_some_and(|one| one.is_ordinary() && !one.is_given());
    let inner = word.char_indices().skip(3).any(|(_, c)| c.is_uppercase());
    let is_joined = word.contains(['-', '\'', '\u{2019}']);
    word.len() > 6 && ends.iter().any(|end| word.ends_with(end))
        || is_plural
        || inner && !is_joined && !word.starts_with("Mac")
}

/// Votes for the kind of a title, which has no sentence around it.
pub(super) fn judge_title(
    name: &str,
    tokens: &[Token],
    text: &str,
    vote: &mut dyn FnMut(EntityKind, u16),
) {
    let words: Vec<&Token> = tokens.iter().collect();
    let is_thing = tokens.last().is_some_and(|last| last.senses.kind.is_some());
    if tokens.len() > 1 && tokens[0].senses.is_honorific() && !is_thing {
        vote(EntityKind::Person, 8);
    }
    by_form(text, name, &words, vote);
    let is_dashed = words.iter().any(|token| matches!(token.text(text), "-" | "|" | "\u{2013}"));
    let is_personal = words.len() <= 4 && words.iter().all(|token| is_personal(text, token));
    if !is_dashed && words.len() >= 2 && is_personal {
        vote(EntityKind::Person, 2);
    }
}

fn by_form(text: &str, name: &str, tokens: &[&Token], vote: &mut dyn FnMut(EntityKind, u16)) {
    let word = |token: &&Token| token.text(text);
    if words::is_place(key(name).as_str()) {
        vote(EntityKind::Location, 7);
    }
    let (Some(first), Some(last)) = (tokens.first(), tokens.last()) else { return };
    // "University of Iowa": the head precedes the particle.
    let particle =
        tokens.iter().position(|token| matches!(word(token), "of" | "for" | "de" | "in"));
    let is_roman = |token: &&Token| word(token).bytes().all(|b| b"IVX".contains(&b));
    let plain = if tokens.len() > 1 && is_roman(last) { &tokens[tokens.len() - 2] } else { last };
    let head = particle.and_then(|at| tokens.get(at.checked_sub(1)?)).unwrap_or(plain);
    let of_head = nouns::kind_of_noun(word(head)).filter(|kind| *kind != EntityKind::Person);
    let is_alone = tokens.len() == 1;
    if word(head) == "House" && particle.is_some() {
        vote(EntityKind::Organization, 8);
    }
    let is_head = !is_alone && !head.senses.is_given();
    if let Some(kind) = of_head.filter(|_| is_head) {
        vote(kind, 6);
    }
    let before = ["Lake", "Mount", "Fort", "Camp", "Gare", "River", "Cape", "Port", "Interstate"];
    let is_way = ["Route", "SR", "Highway", "Villa", "Rio", "Isle", "San", "Santa"];
    if !is_alone && (before.contains(&word(first)) || is_way.contains(&word(first))) {
        vote(EntityKind::Location, 5);
    }
    if first.senses.is_given() && of_head.is_none() {
        vote(EntityKind::Person, if is_alone { 2 } else { 6 });
    }
    let initials = tokens[..tokens.len() - 1].iter().filter(|one| one.form == Form::Initial);
    if !is_alone && initials.count() > 0 && last.form == Form::Capital {
        vote(EntityKind::Person, 5);
    }
    let has_digit = word(first).bytes().any(|b| b.is_ascii_digit() || b == b'-');
    if is_alone && first.form == Form::Capitals && has_digit {
        vote(EntityKind::Identifier, 6);
    }
    if last.form == Form::Number && !is_alone {
        vote(EntityKind::Product, 1);
    }
}

/// Whether the word is a plural acronym, such as "LLMs".
fn is_plural_acronym(word: &str) -> bool {
    let letters = word.strip_suffix('s');
    letters.is_some_and(|letters| letters.len() > 1 && letters.chars().all(char::is_uppercase))
}

fn by_neighbours(
    text: &str,
    sentence: &[Token],
    found: &NameSpan,
    vote: &mut dyn FnMut(EntityKind, u16),
) {
    let word = |at: Option<usize>| at.and_then(|at| sentence.get(at)).map_or("", |t| t.text(text));
    let (start, end) = (found.tokens.start, found.tokens.end);
    let before = word(start.checked_sub(1));
    // A noun right before the name denotes its kind: "the novel Dracula", "director Andrew Lau".
    let noun = sentence[..start].last().filter(|token| token.form == Form::Lower);
    if let Some(kind) = noun.and_then(|token| nouns::kind_of_noun(token.text(text))) {
        vote(kind, 5);
    }
    let is_single = end - start == 1;
    match before {
        "in" | "near" | "In" | "at" if is_single && !is_plural_acronym(word(Some(start))) => {
            vote(EntityKind::Location, 3);
        }
        "in" | "near" | "In" => vote(EntityKind::Location, 1),
        "from" if is_single => vote(EntityKind::Location, 2),
        "by" | "By" if !is_single => vote(EntityKind::Person, 1),
        "the" | "The" if is_single && sentence[start].form == Form::Capitals => {
            vote(EntityKind::Organization, 2);
        }
        _ => {}
    }
    // "X, France": a name before a comma and the name of a place is a place as well.
    let has_comma = sentence.get(end).and_then(|token| mark(text, token)) == Some(',');
    let is_place_next = |count: usize| {
        let run = sentence.get(end + 1..end + 1 + count);
        let run = run.filter(|run| run.iter().all(Token::is_capital));
        run.is_some_and(|run| {
            words::is_place(key(&text[run[0].start..run[count - 1].end]).as_str())
        })
    };
    let name = &sentence[start..end];
    let is_worded = name.iter().all(|token| matches!(token.form, Form::Capital | Form::Lower));
    if has_comma && is_worded && (1..=3).any(is_place_next) {
        vote(EntityKind::Location, 4);
    }
    if is_single && sentence[start].form == Form::Capitals && sentence[start].is_owner {
        vote(EntityKind::Organization, 2);
    }
    let mut next = end;
    let opens = |at: usize| sentence.get(at).and_then(|token| mark(text, token)) == Some('(');
    if opens(next) {
        next += 1;
        let is_born = matches!(word(Some(next)), "born" | "b" | "died");
        let begins_span = sentence.get(next).is_some_and(|token| token.form == Form::Number);
        let is_span = begins_span
            && sentence[next..]
                .iter()
                .take(9)
                .any(|token| matches!(mark(text, token), Some('\u{2013}' | '-' | '\u{2014}')));
        if is_born || is_span {
            vote(EntityKind::Person, 6);
        }
    }
    let next = [word(Some(end)), word(Some(end + 1))];
    if let Some((kind, weight)) = by_next(next, is_single) {
        vote(kind, weight);
    }
}

/// The kind implied by the two words after a name, and the weight of the vote.
fn by_next(next: [&str; 2], is_single: bool) -> Option<(EntityKind, u16)> {
    use EntityKind::{Organization, Person};
    Some(match next {
        ["was", "born"] | ["died" | "who", _] | ["was", "married"] => (Person, 5),
        [",", "who"] => (Person, 4),
        ["said" | "wrote" | "married" | "argued", _] => (Person, 3),
        ["announced" | "acquired" | "launched" | "unveiled" | "hired", _] if is_single => {
            (Organization, 2)
        }
        ["released" | "introduced" | "purchased" | "sued" | "sells" | "offers" | "plans", _]
            if is_single =>
        {
            (Organization, 1)
        }
        ["CEO" | "shares" | "stock" | "employees" | "subsidiary" | "headquarters", _] => {
            (Organization, 3)
        }
        _ => return None,
    })
}
