//! Notices: statements of a source about itself, which tell what document it is an edition of and
//! when it is in force. They are taken from its metadata, title, file name and the first lines of
//! its text, by rules for English, German, French and Spanish.

use std::collections::BTreeSet;
use std::sync::{LazyLock, OnceLock};

use crate::text::dates::{self, Dated, Day, Grain};
use crate::text::terms::terms;
use crate::text::words::{contains_any, entries, is_entry, spaced};
use crate::versions::amendments::Changes;
use crate::versions::head::{FROM, Head, UNTIL};
use crate::versions::withdrawals::{Ended, is_ending, is_notice, is_numbered};
use lodestone_types::SourceRecord;

/// Words in names and titles that distinguish editions rather than documents.
const MARKS: &str = "\
    version|v|rev|revision|edition|ed|issue|ausgabe|fassung|édition|versión|edición|final|new|old|\
    current|copy|updated|update|neu|alt|aktuell|nouveau|ancien|nuevo|anterior";
const DRAFT: &str = "\
    draft|entwurf|brouillon|borrador|never approved|not approved|not yet approved|unapproved|\
    nicht freigegeben|nicht genehmigt|non approuvé|no aprobado";
pub(super) const WITHDRAWN: &str = "\
    superseded|obsolete|withdrawn|archived|outdated|expired|deprecated|revoked|no longer valid|\
    no longer in force|no longer applies|not valid any more|veraltet|ungültig|zurückgezogen|\
    aufgehoben|nicht mehr gültig|ersetzt durch|abgelöst durch|außer kraft|obsolète|périmé|annulé|\
    abrogé|remplacé par|remplacée par|obsoleto|derogado|anulado|sustituido por";
/// Words of an opening sentence that is about the document rather than its subject.
pub(crate) const OF_DOCUMENT: &str = "\
    version|edition|status|state|document|policy|procedure|guide|list|sheet|page|sop|rules|terms|\
    conditions|regulations|prices|handbook|manual|draft|approved|valid|superseded|\
    fassung|ausgabe|dokument|richtlinie|entwurf|gültig|document|procédure|valable|documento|\
    procedimiento|válido";
/// Terms of [`OF_DOCUMENT`].
static KINDS: LazyLock<BTreeSet<String>> =
    LazyLock::new(|| entries(OF_DOCUMENT).flat_map(terms).collect());
/// Kinds of documents that are independent of each other, however similar their names.
const SERIES: &str = "\
    minutes|meeting|chat|mail|email|re|fwd|aw|wg|newsletter|incident|log|diary|invoice|ticket|\
    protokoll|rechnung|réunion|facture|acta|factura";

/// Kinds of documents about one time, of which a newer one takes no place: each still holds for its
/// own. If both are found, the newer one answers.
const YEARLY: &str = "\
    report|reports|accounts|figures|results|statistics|survey|review|budget|programme|program|\
    calendar|roster|rota|season|bericht|jahresbericht|geschäftsbericht|haushalt|dienstplan|\
    rapport|bilan|calendrier|informe|memoria|balance|calendario";

/// State of a document by its own words or metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Plain,
    Draft,
    Withdrawn,
}

/// The statements of a source about itself.
#[derive(Debug)]
pub(crate) struct Notice {
    /// The names that identify the document, from the file name (or the id) and from the title.
    /// Empty if only marks of editions remain.
    pub(crate) file: Name,
    pub(crate) title: Name,
    pub(crate) state: State,
    /// Numbers of the version, major first.
    pub(crate) version: Vec<u32>,
    /// The day from which it is in force, if known.
    pub(crate) since: Option<Dated>,
    /// The last day on which it is in force, if stated.
    pub(crate) until: Option<Day>,
    /// File name, title and first line, as written.
    written: [String; 3],
    /// The document that it says it replaces, as words in lower case.
    pub(crate) replaces: String,
    /// Days and document kinds in `replaces`: "the rules of 2019".
    replaced: (Vec<Dated>, BTreeSet<String>),
    /// Terms of its names, computed on first use.
    name_terms: OnceLock<BTreeSet<String>>,
    /// The parts of an older document that it changes.
    pub(crate) changes: Option<Changes>,
    /// Codes of documents in its names and first line: "LG-1" is `lg1`.
    codes: Vec<String>,
    /// Whether it is a notice about others, which it ends.
    is_notice: bool,
    /// Documents that it declares no longer in force.
    ends: Vec<Ended>,
}

/// A name without the marks that distinguish editions.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Name {
    /// The remaining words, in lower case.
    pub(crate) stem: String,
    version: Vec<u32>,
    pub(crate) date: Option<Dated>,
    state: State,
    is_series: bool,
}

impl Notice {
    /// Reads the notice of a source whose text begins with `text`.
    pub(crate) fn of(source: &SourceRecord, text: &str) -> Self {
        let named = match source.filename.is_empty() {
            true => source.id.as_str(),
            false => &source.filename,
        };
        let bare = named.rsplit_once('.').map_or(named, |(bare, _)| bare);
        let (file, title) = (Name::of(bare), Name::of(&source.title));
        let head = Head::of(text);
        let told = |key: &str| {
            let value = [&source.document_metadata, &source.tenant_metadata];
            value.into_iter().find_map(|map| map.get(key)).map(|value| match value.as_str() {
                Some(text) => text.to_owned(),
                None => value.to_string(),
            })
        };
        let day = |keys: &[&str]| keys.iter().find_map(|key| dates::first(&told(key)?));
        let status = spaced(&told("status").unwrap_or_default());
        let is_replaced = ["superseded_by", "replaced_by"].iter().any(|key| told(key).is_some());
        let begun = head.behind(FROM).or(file.date).or(title.date);
        let names = [bare, source.title.as_str(), head.first()];
        let mut ends = head.ends();
        ends.retain(|ended| !names.iter().any(|name| is_numbered(name, &ended.code)));
        let is_notice = !ends.is_empty() && is_notice(names);
        // A notice that ends another document is not withdrawn itself.
        let is_of_other =
            |one: &str| is_notice && is_ending(one) && !Ended::in_sentence(one).is_empty();
        let said =
            |list| contains_any(&status, list) || head.says_of_itself(list, begun, is_of_other);
        let state = match () {
            () if is_replaced || said(WITHDRAWN) => State::Withdrawn,
            () if said(DRAFT) => State::Draft,
            () if file.state != State::Plain => file.state,
            () => title.state,
        };
        let given = numbers(&told("version").unwrap_or_default());
        let versions = [&given, &file.version, &title.version, &head.version()];
        let version = versions.into_iter().find(|version| !version.is_empty());
        let version = version.cloned().unwrap_or_default();
        let replaces = head.replaces();
        Self {
            state,
            version,
            since: day(&["valid_from", "effective_from", "effective_date", "effective"])
                .or(begun)
                .or_else(|| day(&["date", "published", "approved"]))
                .or_else(|| source.detail.source_time.map(Dated::of))
                .or_else(|| head.any()),
            until: day(&["valid_until", "valid_to", "expires"])
                .or_else(|| head.behind(UNTIL))
                .map(|dated| dated.last()),
            replaced: (dates::all(&replaces), &terms(&replaces) & &KINDS),
            name_terms: OnceLock::new(),
            replaces,
            changes: Changes::told_by(&head.sentences),
            codes: names
                .into_iter()
                .flat_map(codes)
                .filter(|code| !(is_notice && ends.iter().any(|ended| ended.code == *code)))
                .collect(),
            is_notice,
            ends,
            written: [bare, &source.title, head.first()].map(str::to_owned),
            file,
            title,
        }
    }

    /// File name, title and first line.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.written.iter().map(String::as_str)
    }

    /// Whether both are editions of one document: their names differ only in marks of editions, or
    /// one says that it replaces the other.
    pub(crate) fn is_edition_with(&self, other: &Self) -> bool {
        let is_same = |a: &Name, b: &Name| !a.stem.is_empty() && a.stem == b.stem;
        let is_series = self.is_of_series() && other.is_of_series();
        // Different documents may share a title; editions are marked as such.
        let is_marked = |one: &Self| {
            one.state != State::Plain || !one.version.is_empty() || one.title.date.is_some()
        };
        let of_title = is_same(&self.title, &other.title) && (is_marked(self) || is_marked(other));
        let of_names = is_same(&self.file, &other.file) || of_title;
        (of_names && !is_series) || self.is_replacing(other) || other.is_replacing(self)
    }

    /// Whether its names or its first lines state which edition of a document it is, and it is no
    /// report or plan of one time.
    pub(crate) fn is_edition(&self) -> bool {
        let is_named = self.file.date.is_some() || self.title.date.is_some();
        let is_stated = !self.version.is_empty() || self.state != State::Plain;
        let names = spaced(&format!("{} {}", self.file.stem, self.title.stem));
        !self.is_of_series()
            && !contains_any(&names, YEARLY)
            && (is_named || is_stated || !self.replaces.trim().is_empty())
    }

    /// Whether it is a notice that ends the other, which it names by its code.
    pub(crate) fn is_ending(&self, other: &Self) -> bool {
        self.is_notice && self.ends_code_of(other)
    }

    /// Whether a text says that something ends which it names, as one of the documents ended here.
    pub(crate) fn is_ended_in(&self, text: &str) -> bool {
        let is_one = |one: &Ended| self.ends.iter().any(|ended| ended.code == one.code);
        is_ending(text) && Ended::in_sentence(text).iter().any(is_one)
    }

    fn ends_code_of(&self, other: &Self) -> bool {
        let is_other = |ended: &Ended| {
            other.codes.contains(&ended.code)
                && !self.codes.contains(&ended.code)
                && ended.is_of(&other.version)
        };
        self.ends.iter().any(is_other)
    }

    /// Whether it says that it replaces the other, by title, by code, or by kind and day.
    pub(crate) fn is_replacing(&self, other: &Self) -> bool {
        self.ends_code_of(other) || self.replaces_title_of(other) || self.replaces_by_time(other)
    }

    fn replaces_title_of(&self, other: &Self) -> bool {
        other.title.stem.contains(' ')
            && self.title.stem != other.title.stem
            && self.replaces.contains(&format!(" {} ", other.title.stem))
    }

    /// Whether it says that it replaces a document of the other's kind and day ("the rules of
    /// 2019"), and the names of both share a word for their subject.
    fn replaces_by_time(&self, other: &Self) -> bool {
        let (days, kinds) = &self.replaced;
        let is_of_day = |since: Dated| {
            days.iter().any(|of| of.meets(since))
                && self.since.is_none_or(|own| own.day > since.day)
        };
        let is_of_kind = || !kinds.is_disjoint(other.name_terms());
        let is_of_matter = || {
            let mut shared = self.name_terms().intersection(other.name_terms());
            shared.any(|term| !KINDS.contains(term))
        };
        other.since.is_some_and(is_of_day) && is_of_kind() && is_of_matter()
    }

    fn name_terms(&self) -> &BTreeSet<String> {
        self.name_terms.get_or_init(|| {
            let names = spaced(&format!("{} {}", self.file.stem, self.title.stem));
            names.split_whitespace().flat_map(terms).collect()
        })
    }

    /// Whether it changes parts of the other.
    pub(crate) fn is_changing(&self, other: &Self) -> bool {
        let names = [&other.title.stem, &other.file.stem];
        !std::ptr::eq(self, other)
            && self.changes.as_ref().is_some_and(|changes| changes.are_of(other.since, names))
    }

    fn is_of_series(&self) -> bool {
        self.file.is_series || self.title.is_series
    }
}

impl Name {
    fn of(name: &str) -> Self {
        let words: Vec<String> = name
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let date = dates::first(name);
        let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit());
        let is_year = |word: &str| dates::first(word).is_some();
        let version = numbered(&words);
        let is_whole_day = date.is_some_and(|date| date.grain == Grain::Day);
        let mut stem: Vec<&str> = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let is_behind_mark = at > 0 && is_entry(MARKS, &words[at - 1]);
            // "2024-25" is one season.
            let is_season = || {
                let year = words[..at].last().and_then(|before| before.parse::<u32>().ok());
                year.is_some_and(|year| year > 1900 && Some((year + 1) % 100) == word.parse().ok())
            };
            let is_mark = is_entry(MARKS, word)
                || (is_number(word) && is_season())
                || is_entry(DRAFT, word)
                || is_entry(WITHDRAWN, word)
                || is_year(word)
                || (is_number(word) && (is_behind_mark || is_whole_day || version.1.contains(&at)))
                || version.1.contains(&at);
            if !is_mark {
                stem.push(word);
            }
        }
        // "Ticket terms" is not a ticket.
        let is_of_rules = stem.last().is_some_and(|last| is_entry(OF_DOCUMENT, last));
        let stem = stem.join(" ");
        let spaced = spaced(name);
        Self {
            stem: if stem.contains(char::is_alphabetic) { stem } else { String::new() },
            version: version.0,
            date,
            state: match () {
                () if contains_any(&spaced, WITHDRAWN) => State::Withdrawn,
                () if contains_any(&spaced, DRAFT) => State::Draft,
                () => State::Plain,
            },
            is_series: is_whole_day
                || (words.iter().any(|word| is_entry(SERIES, word)) && !is_of_rules),
        }
    }
}

/// The version numbers that the words name, with the positions of these words: `v3`, `version 2 1`,
/// `rev 4`.
fn numbered(words: &[String]) -> (Vec<u32>, Vec<usize>) {
    for (at, word) in words.iter().enumerate() {
        let digits = word.trim_start_matches(|c: char| c.is_alphabetic());
        let mark = &word[..word.len() - digits.len()];
        if !matches!(
            mark,
            "v" | "ver"
                | "rev"
                | "ed"
                | "version"
                | "revision"
                | "ausgabe"
                | "fassung"
                | "versión"
                | "edition"
        ) {
            continue;
        }
        let next = usize::from(digits.is_empty());
        let first: Option<u32> = digits.parse().ok();
        if first.is_none() && !digits.is_empty() {
            continue;
        }
        let rest = words[at + 1..].iter().map_while(|word| word.parse().ok()).take(2);
        let parts: Vec<u32> =
            first.into_iter().chain(rest).take_while(|part| *part < 1000).collect();
        if !parts.is_empty() {
            let end = at + next + parts.len();
            return (parts, (at..end).collect());
        }
    }
    (Vec::new(), Vec::new())
}

/// The document codes in a text: capitals with a number ("LG-1", "SOP 12", "RG-DK-04"), or letters
/// and digits in one word ("lg1"). Versions and years are excluded.
pub(super) fn codes(text: &str) -> Vec<String> {
    let words: Vec<(usize, &str)> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(|word| (word.as_ptr().addr() - text.as_ptr().addr(), word))
        .collect();
    let is_number = |word: &str| word.len() < 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_short =
        |word: &str| word.len() <= 5 && word.bytes().all(|byte| byte.is_ascii_uppercase());
    // "RG-DK-04": capitals before those next to the number belong to the code if joined to them.
    let is_joined = |at: &usize| {
        let ((start, word), (next, _)) = (words[*at], words[*at + 1]);
        is_short(word) && matches!(&text[start + word.len()..next], "-" | "_" | "/" | ".")
    };
    let is_pair = |at: &usize| is_short(words[*at].1) && is_number(words[*at + 1].1);
    let pairs = (0..words.len().saturating_sub(1)).filter(is_pair).map(|at| {
        let first = (0..at).rev().take_while(is_joined).last().unwrap_or(at);
        words[first..=at + 1].iter().map(|(_, word)| word.to_lowercase()).collect()
    });
    let is_mixed = |word: &&str| {
        let digits = word.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let letters = word.len() - digits.len();
        (2..=5).contains(&letters) && is_number(digits) && !digits.is_empty()
    };
    let mixed = words.iter().map(|(_, word)| *word).filter(is_mixed).map(str::to_lowercase);
    let is_version = |code: &String| numbered(std::slice::from_ref(code)).0.is_empty();
    pairs.chain(mixed).filter(is_version).collect()
}

/// The numbers of a version: `2.0`, `v3`, `version 1.3 of 2022`.
pub(crate) fn numbers(text: &str) -> Vec<u32> {
    let words: Vec<String> = text
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let (named, _) = numbered(&words);
    let bare = || -> Option<Vec<u32>> { words.iter().map(|word| word.parse().ok()).collect() };
    if named.is_empty() { bare().unwrap_or_default() } else { named }
}
