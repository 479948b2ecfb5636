//! Selects the documents in force among those that an answer may come from.
//!
//! Of several editions of a document the one in force wins: not a draft, not withdrawn, begun and
//! not over, with the highest version or the latest day. The other editions are superseded and are
//! not quoted as if they applied. A question that names an edition ("in 2022", "version 3", "the
//! draft") or a document by its time (`dated`) gets that one; a question about a change gets all.
//! Sections changed by an amendment in force are superseded by it, the other sections are not
//! (`amendments`). Documents that state nothing of the kind are left alone.

use std::cmp::Ordering;

use crate::passages::blocks::Cell;
use crate::text::dates::{self, Dated, Day, Grain};
use crate::text::values::year;
use crate::text::words::{contains, contains_any, entries, is_entry, spaced};
use crate::versions::amendments::{are_of_one, is_numbered, part_number};
use crate::versions::asked::{relative_year, years_of_editions};
use crate::versions::dated::Named;
use crate::versions::notices::{Notice, OF_DOCUMENT, State, numbers};
use lodestone_types::{RetrievedChunk, Timestamp};

/// Phrases of questions that want more than the current state.
const CHANGES: &str = "\
    what changed|has changed|have changed|was changed|were changed|changed since|changed from|\
    changed to|change since|change from|changes since|increase|increased|decrease|decreased|\
    before and after|then and now|now and then|old and new|so far and|\
    previous|previously|former|formerly|earlier|older|used to|in the past|so far|until now|\
    geändert|änderung|früher|frühere|vorher|bisher|alte|alten|changé|changement|auparavant|ancien|\
    ancienne|cambiado|cambio|anterior|draft|entwurf|brouillon|borrador|superseded";

/// The word for an older edition, and the words before it that keep this meaning: "our old prices",
/// but not "where do I throw old paint".
const OLD: &str = "old";
const BEFORE_OLD: &str = "\
    the|our|your|their|his|her|its|my|this|that|an|and|or|than|to|from|under|was|were";

/// Phrases for an earlier time, and words that compare with it.
const BEFORE: &str = "\
    last year|last season|last spring|last summer|last autumn|last winter|last month|last time|\
    year before|year ago|letztes jahr|letzten jahr|vorjahr|l'année dernière|l'an dernier|\
    el año pasado";
const COMPARING: &str = "\
    since|than|compared|dearer|cheaper|more expensive|gone up|gone down|went up|went down|go up|\
    go down|risen|rise|rose|fallen|fell|raised|lowered|different|differ|differs|seit|als|teurer|\
    billiger|gestiegen|gesunken|depuis|que|augmenté|desde|subido|bajado";
/// Words that ask for differences, and words that name the current edition.
const DIFFERENCE: &str = "different|difference|differences|differ|differs|unterschied|anders";
const NEW: &str = "new|newest|latest|current|now|neu|neue|neuen|aktuell";

/// Words of the two halves of a question about then and now.
const THEN: &str = "was|were|did|before|had|war|waren|hatte|était|avant|era|antes";
const TODAY: &str = "now|today|currently|these days|jetzt|heute|maintenant|aujourd'hui|ahora|hoy";

/// Openings that want all editions if a word for change follows.
const HOW_DID: &str = "how did|how has|how have|how does";
const CHANGE: &str = "change|changed|differ|develop|developed";

/// Phrases that ask whether a document is in force.
const VALIDITY: &str = "\
    still valid|still in force|still in effect|still apply|still applies|still current|still hold|\
    still holds|still good|still up to date|noch gültig|noch in kraft|gilt noch|gelten noch|\
    encore valable|toujours valable|encore en vigueur|toujours en vigueur|sigue vigente|\
    todavía vigente|aún vigente|todavía válido|aún válido";

/// Words before the last day of something, and names of columns that hold it.
const UNTIL: &str = "until|till|bis|jusqu'au|hasta";
const UNTIL_NAMES: &str = "until|valid until|valid to|gültig bis|bis|jusqu'au|válido hasta|hasta";

/// The standing of a source among its editions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// In force, as far as is known.
    Holds,
    /// A draft, withdrawn, over or not yet in force, with no better edition known.
    Doubtful,
    /// Superseded by another edition, or not the edition or document asked for.
    Overtaken,
}

/// The editions among the sources of some chunks.
#[derive(Debug)]
pub(crate) struct Editions {
    notices: Vec<Notice>,
    /// For each chunk, the index of its notice.
    of_chunk: Vec<usize>,
    /// For each notice, its standing.
    standing: Vec<Standing>,
    /// For each notice, the parts that another document has changed.
    changed: Vec<Vec<String>>,
    /// Whether the question wants all editions.
    are_wanted: bool,
    /// Whether the question asks about the present.
    is_of_now: bool,
    today: Day,
    /// The days and years that the question names.
    asked: Vec<Dated>,
}

impl Editions {
    /// Evaluates the sources of chunks for a question asked at `now`.
    pub(crate) fn read(question: &str, chunks: &[&RetrievedChunk], now: Timestamp) -> Self {
        let mut sources: Vec<usize> = Vec::new();
        let mut of_chunk = Vec::with_capacity(chunks.len());
        let is_same = |a: usize, b: usize| {
            let (a, b) = (&chunks[a].source, &chunks[b].source);
            a.id == b.id && a.sub_tenant == b.sub_tenant
        };
        for at in 0..chunks.len() {
            let known = sources.iter().position(|first| is_same(*first, at));
            of_chunk.push(known.unwrap_or(sources.len()));
            if known.is_none() {
                sources.push(at);
            }
        }
        let notice = |first: &usize| {
            let beginning =
                (0..chunks.len()).find(|at| chunks[*at].index == 0 && is_same(*first, *at));
            let source = &chunks[*first].source;
            let text = beginning.map_or(source.description.as_str(), |at| chunks[at].text.as_str());
            Notice::of(source, text)
        };
        let notices: Vec<Notice> = sources.iter().map(notice).collect();
        let today = Day::of(now);
        let mut asked = dates::all(question);
        asked.extend(relative_year(question, today));
        let wish = Wish::of(question, &asked);
        let others = Named::of(question).are_others(&notices);
        let standing = |at: usize| match others[at] {
            true => Standing::Overtaken,
            false => wish.standing(&notices, at, today),
        };
        let standing = (0..notices.len()).map(standing).collect();
        let changed = (0..notices.len()).map(|at| wish.changed(&notices, at, today)).collect();
        let is_of_now = !wish.wants_all && wish.years.is_empty() && wish.version.is_empty();
        let are_wanted = wish.wants_all;
        Self { notices, of_chunk, standing, changed, are_wanted, is_of_now, today, asked }
    }

    /// Whether a cell says that its row ended before today and before every day of the question:
    /// "until: 2025-05-31", "(until 31 May 2025)".
    pub(crate) fn is_over(&self, cell: &Cell) -> bool {
        let lower = cell.value.to_lowercase();
        let place = |word: &str| lower.find(&format!("{word} ")).map(|at| at + word.len());
        // The capital of "May" is needed to read it as a month; the original text serves only if
        // lower-casing kept its length.
        let value = if lower.len() == cell.value.len() { &cell.value } else { &lower };
        let end = match is_entry(UNTIL_NAMES, &cell.name.to_lowercase()) {
            true => dates::first(value),
            false => entries(UNTIL).find_map(place).and_then(|at| dates::first(value.get(at..)?)),
        };
        end.map(Dated::last)
            .is_some_and(|end| end < self.today && self.asked.iter().all(|asked| asked.day > end))
    }

    /// Whether all columns of a row but the first name past years, and the question names none:
    /// "price 2024" beside a newer list.
    pub(crate) fn is_of_past_year(&self, row: &[Cell]) -> bool {
        let year_of = |cell: &Cell| cell.name.split(|c: char| !c.is_ascii_digit()).find_map(year);
        let values = row.get(1..).unwrap_or_default();
        let is_over = |cell| year_of(cell).is_some_and(|year| year < self.today.year);
        self.asked.is_empty() && !values.is_empty() && values.iter().all(is_over)
    }

    /// The day on which the question is asked.
    pub(crate) fn today(&self) -> Day {
        self.today
    }

    /// The file name and title of a chunk's source, in lower case and without the marks of
    /// editions.
    pub(crate) fn names(&self, chunk: usize) -> [&str; 2] {
        let notice = &self.notices[self.of_chunk[chunk]];
        [&notice.file.stem, &notice.title.stem]
    }

    /// The day in the file name or title of a chunk's source.
    pub(crate) fn named_day(&self, chunk: usize) -> Option<Day> {
        let notice = &self.notices[self.of_chunk[chunk]];
        let named = notice.file.date.or(notice.title.date);
        named.filter(|date| date.grain == Grain::Day).map(|date| date.day)
    }

    /// Whether a chunk belongs to a document in force, as far as is known.
    pub(crate) fn holds(&self, chunk: usize) -> bool {
        self.of(chunk) == Standing::Holds
    }

    /// Whether it is doubtful that a chunk's document is in force.
    pub(crate) fn is_doubtful(&self, chunk: usize) -> bool {
        self.of(chunk) == Standing::Doubtful
    }

    /// Whether a passage is in a part that a later document has changed, judged by the headings
    /// above it or by its own number.
    pub(crate) fn is_changed(&self, chunk: usize, headings: &[String], text: &str) -> bool {
        let changed = &self.changed[self.of_chunk[chunk]];
        let texts = headings.iter().map(String::as_str);
        let mut texts = texts.chain(is_numbered(text).then_some(text));
        let is_one = |text| part_number(text).is_some_and(|number| changed.contains(&number));
        !changed.is_empty() && texts.any(is_one)
    }

    /// Whether the chunk at `newer` belongs to a later amendment of the document that the one at
    /// `older` amends.
    pub(crate) fn is_amended_later(&self, newer: usize, older: usize) -> bool {
        self.is_later(newer, older) && are_of_one(self.names(newer), self.names(older))
    }

    /// The notice in force that ends the document of a chunk, if the question does not want this
    /// document all the same.
    pub(crate) fn notice_ending(&self, chunk: usize) -> Option<usize> {
        let this = &self.notices[self.of_chunk[chunk]];
        let is_one = |one: &Notice| one.is_ending(this) && is_in_force(one, self.today);
        let mut all = self.notices.iter().enumerate().filter(|(_, one)| is_one(one));
        all.next().map(|(at, _)| at).filter(|_| self.of(chunk) == Standing::Overtaken)
    }

    /// Whether a chunk belongs to a notice.
    pub(crate) fn is_of(&self, chunk: usize, notice: usize) -> bool {
        self.of_chunk[chunk] == notice
    }

    /// Whether a text says that a document ends that a notice ends.
    pub(crate) fn is_ending(&self, notice: usize, text: &str) -> bool {
        self.notices[notice].is_ended_in(text)
    }

    fn of(&self, chunk: usize) -> Standing {
        self.standing[self.of_chunk[chunk]]
    }

    /// Whether the chunk at `newer` takes precedence over a conflicting one at `older`: its
    /// document is dated later, and the question is about the present.
    pub(crate) fn is_later(&self, newer: usize, older: usize) -> bool {
        let since = |at: usize| self.notices[self.of_chunk[at]].since.map(|since| since.day);
        let is_ascending = || since(older).zip(since(newer)).is_some_and(|(a, b)| a < b);
        self.is_of_now && is_ascending()
    }

    /// Whether the chunk at `newer` may be as recent as the one at `older`, or more, and the
    /// question does not ask for all editions.
    pub(crate) fn may_follow(&self, newer: usize, older: usize) -> bool {
        let since = |at: usize| self.notices[self.of_chunk[at]].since.map(|since| since.day);
        let is_before = || since(older).zip(since(newer)).is_some_and(|(a, b)| b < a);
        !self.are_wanted && !is_before()
    }

    /// Whether two chunks belong to two editions of one document, both of which the question wants.
    pub(crate) fn are_compared(&self, a: usize, b: usize) -> bool {
        self.are_wanted && self.are_mixed([a, b].into_iter())
    }

    /// Whether the chunks include several editions of one document.
    pub(crate) fn are_mixed(&self, chunks: impl Iterator<Item = usize>) -> bool {
        let told: Vec<usize> = chunks.map(|chunk| self.of_chunk[chunk]).collect();
        let is_pair = |a: usize, b: usize| {
            let (one, other) = (&self.notices[a], &self.notices[b]);
            a != b && (one.is_edition_with(other) || one.is_changing(other))
        };
        told.iter().any(|a| told.iter().any(|b| is_pair(*a, *b)))
    }
}

/// The editions that a question wants.
pub(super) struct Wish {
    pub(super) wants_all: bool,
    /// Whether the question asks if a document is in force, which the one that replaces it tells.
    is_of_validity: bool,
    years: Vec<u32>,
    version: Vec<u32>,
}

impl Wish {
    /// Derives the wish from a question that names the days and years `asked`.
    pub(super) fn of(question: &str, asked: &[Dated]) -> Self {
        let words = spaced(question);
        let mut years = years_of_editions(question);
        if years.is_empty() {
            years = asked.iter().map(|dated| dated.day.year).collect();
        }
        years.dedup();
        let is_of_version = ["version", "v", "revision", "edition", "fassung", "versión"]
            .iter()
            .any(|word| contains(&words, word) || words.contains(&format!(" {word}")));
        Self {
            wants_all: contains_any(&words, CHANGES)
                || speaks_of_old(&words)
                || asks_then_and_now(&words)
                || (contains_any(&words, HOW_DID) && contains_any(&words, CHANGE))
                || (contains_any(&words, BEFORE) && contains_any(&words, COMPARING))
                || (contains_any(&words, NEW) && contains_any(&words, DIFFERENCE))
                || years.len() > 1,
            is_of_validity: contains_any(&words, VALIDITY),
            version: if is_of_version { numbers(question) } else { Vec::new() },
            years,
        }
    }

    pub(super) fn names(&self, notice: &Notice) -> bool {
        let is_year = notice.since.is_some_and(|since| self.years.contains(&since.day.year));
        let is_version = !self.version.is_empty() && notice.version.starts_with(&self.version);
        is_year || is_version
    }

    /// The parts of the notice at `at` that another document in force has changed; empty if the
    /// question wants this edition or all.
    fn changed(&self, notices: &[Notice], at: usize, today: Day) -> Vec<String> {
        if self.wants_all || self.names(&notices[at]) {
            return Vec::new();
        }
        let is_changing =
            |other: &&Notice| other.is_changing(&notices[at]) && is_in_force(other, today);
        let changes = notices.iter().filter(is_changing).filter_map(|one| one.changes.as_ref());
        changes.flat_map(|changes| changes.parts.clone()).collect()
    }

    /// Whether a notice in force says that it replaces one that the question names.
    fn is_replacing_named(&self, this: &Notice, notices: &[Notice], today: Day) -> bool {
        let is_one = |other: &Notice| {
            !std::ptr::eq(this, other) && self.names(other) && this.is_replacing(other)
        };
        is_in_force(this, today) && notices.iter().any(is_one)
    }

    /// The standing of the notice at `at`.
    fn standing(&self, notices: &[Notice], at: usize, today: Day) -> Standing {
        let this = &notices[at];
        let mut others = notices.iter().filter(|other| !std::ptr::eq(*other, this));
        if self.wants_all || (self.is_of_validity && self.is_replacing_named(this, notices, today))
        {
            return Standing::Holds;
        }
        let mut replacing =
            others.clone().filter(|other| other.is_replacing(this) && is_in_force(other, today));
        if self.names(this) {
            let is_replaced = self.is_of_validity && replacing.next().is_some();
            return if is_replaced { Standing::Overtaken } else { Standing::Holds };
        }
        let is_named = |other: &Notice| this.is_edition_with(other) && self.names(other);
        if others.clone().any(is_named) {
            return Standing::Overtaken;
        }
        let is_newer = |other: &Notice| {
            this.is_edition_with(other) && order(this, other, today) == Ordering::Less
        };
        match () {
            () if others.any(is_newer) => Standing::Overtaken,
            () if !is_in_force(this, today) => Standing::Doubtful,
            () => Standing::Holds,
        }
    }
}

/// Whether the words of a question refer to an older edition: "our old prices", "old rules".
fn speaks_of_old(spaced: &str) -> bool {
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let is_edition = |at: usize| {
        let before = at.checked_sub(1).map(|at| words[at]);
        let is_document =
            |word: &&str| is_entry(OF_DOCUMENT, word) || is_entry(OF_DOCUMENT, &format!("{word}s"));
        before.is_none_or(|word| is_entry(BEFORE_OLD, word))
            || words.get(at + 1).is_some_and(is_document)
    };
    (0..words.len()).any(|at| words[at] == OLD && is_edition(at))
}

/// Whether the words of a question ask about then and now: "what did it cost in 2020 and what now".
fn asks_then_and_now(spaced: &str) -> bool {
    spaced.split_once(" and ").is_some_and(|(then, now)| {
        contains_any(&format!("{then} "), THEN) && contains_any(&format!(" {now}"), TODAY)
    })
}

/// Whether a document is in force today, as far as it states.
pub(super) fn is_in_force(notice: &Notice, today: Day) -> bool {
    notice.state == State::Plain
        && notice.since.is_none_or(|since| since.day <= today)
        && notice.until.is_none_or(|until| until >= today)
}

/// Orders two editions of one document; the one more likely in force is greater.
pub(super) fn order(a: &Notice, b: &Notice, today: Day) -> Ordering {
    let by_version = || match a.version.is_empty() || b.version.is_empty() {
        true => Ordering::Equal,
        false => a.version.cmp(&b.version),
    };
    let by_day = || match (a.since, b.since) {
        (Some(a), Some(b)) => a.day.cmp(&b.day),
        _ => Ordering::Equal,
    };
    is_in_force(a, today)
        .cmp(&is_in_force(b, today))
        .then_with(|| a.is_replacing(b).cmp(&b.is_replacing(a)))
        .then_with(by_version)
        .then_with(by_day)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::testing::chunk;
    use serde_json::json;

    /// 23 November 2026.
    const NOW: Timestamp = Timestamp(1_795_392_000_000);

    fn titled(id: &str, title: &str, text: &str) -> RetrievedChunk {
        let mut one = chunk(id, 0, text, 0.5);
        Arc::make_mut(&mut one.source).title = title.to_owned();
        one
    }

    /// The standing of each chunk's source: `+` in force, `?` doubtful, `-` superseded.
    fn standing(question: &str, chunks: &[RetrievedChunk]) -> String {
        let chunks: Vec<&RetrievedChunk> = chunks.iter().collect();
        let editions = Editions::read(question, &chunks, NOW);
        let word = |at: usize| match editions.of(at) {
            Standing::Holds => '+',
            Standing::Doubtful => '?',
            Standing::Overtaken => '-',
        };
        (0..chunks.len()).map(word).collect()
    }

    #[test]
    fn the_edition_in_force_leads() {
        let leave = [
            titled("leave-2022.md", "Leave", "# Leave\n\nVersion 1.3, valid from 1 January 2022."),
            titled(
                "leave-2025.md",
                "Leave",
                "# Leave\n\nVersion 2.0, valid from 1 January 2025. Replaces version 1.3.",
            ),
            titled("leave-2099.md", "Leave", "# Leave\n\nVersion 3, valid from 1 May 2099."),
            titled(
                "parking.md",
                "Parking",
                "Cars stand in the yard. The old yard is replaced by the new.",
            ),
        ];
        assert_eq!(standing("How many days of leave?", &leave), "-+-+");
        assert_eq!(standing("How many days of leave were there in 2022?", &leave), "+--+");
        assert_eq!(standing("How many days does version 3 give?", &leave), "--++");
        assert_eq!(standing("How did leave change?", &leave), "++++");
        assert_eq!(standing("How long was leave before and how long now?", &leave), "++++");
        assert_eq!(standing("What did the old rules on leave say?", &leave), "++++");
        assert_eq!(standing("longest leave, old rule and new rule", &leave), "++++");
        assert_eq!(standing("Where do I leave old paint?", &leave), "-+-+");
        assert_eq!(standing("When may a request be withdrawn?", &leave), "-+-+");
    }

    #[test]
    fn drafts_and_what_is_withdrawn_do_not_hold() {
        let cats = [
            titled(
                "cats (draft 2023).md",
                "Protocol: cats",
                "# Protocol\n\nDRAFT of May 2023, never approved.",
            ),
            titled("cats.md", "Protocol: cats", "# Protocol\n\nValid from October 2024."),
        ];
        assert_eq!(standing("Which vaccine?", &cats), "-+");
        assert_eq!(standing("Which vaccine?", &cats[..1]), "?");
        assert_eq!(standing("What does the draft say?", &cats), "++");
        let sop = [
            titled("sop-v3.md", "Drugs v3", "**Version 3. SUPERSEDED by version 4.**\n\n- Keys"),
            titled(
                "sop-v4.md",
                "Drugs v4",
                "Version 4, approved.\n\nThe paper register is replaced by the app.",
            ),
        ];
        assert_eq!(standing("Who has the key?", &sop), "-+");
        let ice = [
            titled("ice-2021.md", "Ice 2021", "# Ice plan\n\nEdition of 2 May 2021."),
            titled(
                "ice-2024.md",
                "Ice 2024",
                "# Ice plan\n\nEdition of 2 May 2024, valid until withdrawn.",
            ),
        ];
        assert_eq!(standing("Who clears the ice?", &ice), "-+", "it is not withdrawn yet");
    }

    #[test]
    fn metadata_and_names_tell_editions() {
        let mut old = titled("a.md", "Fees", "Fees are 5.");
        let map = json!({"status": "superseded", "version": "1"});
        Arc::make_mut(&mut old.source).document_metadata = map.as_object().unwrap().clone();
        let new = titled("b.md", "Fees", "Fees are 6.");
        assert_eq!(standing("What are the fees?", &[old, new]), "-+");
        let rules = [
            titled("rules-2019.md", "House rules", "# Rules\n\nof 1 June 2019\n\nQuiet from 22."),
            titled(
                "rules-2024.md",
                "House rules",
                "# Rules\n\nFrom 1 July 2024. The rules of 1 June 2019 are no longer valid.",
            ),
        ];
        assert_eq!(standing("When is it quiet?", &rules), "-+", "the older one is withdrawn");
        let lists = [
            titled("prices-2024.csv", "Prices 2024", "a,b"),
            titled("prices-2025.csv", "Prices 2025", "a,b"),
        ];
        assert_eq!(standing("What does it cost?", &lists), "-+");
        let years = [
            titled("fees-2025.md", "Fees 2025", "a,b"),
            titled("fees-2026.md", "Fees 2026", "a,b"),
        ];
        assert_eq!(standing("What did it cost last year?", &years), "+-");
        assert_eq!(standing("What does it cost? and last year?", &years), "+-");
        assert_eq!(standing("Is it dearer than last year?", &years), "++");
        assert_eq!(standing("What does it cost?", &years), "-+");
        let older = [
            titled("rules-2023.txt", "Ground rules", "Version 2, valid from 15 July 2023\n\nx"),
            titled(
                "rules-2026.md",
                "Ground rules",
                "Version 3, valid from 1 February 2026. All earlier versions are no longer valid.",
            ),
        ];
        assert_eq!(standing("How big may a flag be?", &older), "-+", "it speaks of older ones");
        let tickets = [
            titled("ticket-terms-2024.txt", "Ticket terms, version 4", "Return: 7 days."),
            titled("ticket-terms-2026.md", "Ticket terms, version 5", "Return: 72 hours."),
            titled("ticket-prices-2024-25.csv", "Ticket prices 2024/25", "a,b"),
            titled("ticket-prices-2025-26.csv", "Ticket prices 2025/26", "a,b"),
        ];
        assert_eq!(standing("Until when is it returned?", &tickets), "-+-+");
        assert_eq!(standing("Has it gone up since last season?", &tickets), "++++");
        assert_eq!(standing("What is different in the new terms?", &tickets), "++++");
        let renamed = [
            titled("h.md", "Holiday rules", "You get 20 days."),
            titled(
                "l.md",
                "Leave policy",
                "This policy replaces the Holiday Rules of 2019. You get 25 days.",
            ),
        ];
        assert_eq!(standing("How many days?", &renamed), "-+");
        let timed = [
            titled("dive-rules-2019.txt", "DIVES AND REST", "Valid from 1 May 2019\n\nTwo dives."),
            titled("dive-plan-2019.csv", "Dive plan", "Valid from 1 May 2019\n\na,b"),
            titled(
                "dive-and-rest-rules.md",
                "Dives, rest and pay",
                "Agreed and valid from 1 January 2025. Replaces the rules of 2019. Three dives.",
            ),
        ];
        assert_eq!(standing("How many dives a day?", &timed), "-++");
    }

    #[test]
    fn a_code_names_the_document_that_is_withdrawn() {
        let rules = [
            titled(
                "breaks-LG1-2021.txt",
                "breaks-LG1-2021",
                "RULE LG-1  BREAKS\n1. Every 30 minutes.",
            ),
            titled(
                "rotation-LG2.md",
                "rotation-LG2",
                "## LG-2 Rests\n\n*in force since 1 May 2025; LG-1 is withdrawn.*\n\n20 minutes.",
            ),
        ];
        assert_eq!(standing("How long is a turn?", &rules), "-+");
        assert_eq!(standing("How often do they change chairs?", &rules), "-+");
        assert_eq!(standing("How did the turns change?", &rules), "++");
        assert_eq!(standing("Old and new rule on turns", &rules), "++");
        let both: Vec<&RetrievedChunk> = rules.iter().collect();
        assert!(Editions::read("Old and new rule?", &both, NOW).are_compared(0, 1));
        assert!(!Editions::read("How long is a turn?", &both, NOW).are_compared(0, 1));
    }

    /// Goal: a notice that withdraws another document by its code is in force, the document is not,
    /// unless the notice names another edition of it.
    #[test]
    fn a_notice_ends_the_document_that_it_names() {
        let notice = |edition: &str| {
            let text = format!(
                "NOTICE  25-3        Tarnbridge, 5 Nov. 2024\nfrom: Safety\n\n\
                 WITHDRAWN WITH IMMEDIATE EFFECT:  RG-DK-04 ed. {edition} (splicing)\n\n\
                 What to do instead until RG-DK-09 is out:\n- ask the rigger\n- use a shackle"
            );
            titled("notice_withdrawal_RG-DK-04.txt", "Notice 25-3", &text)
        };
        let rules = "RG-DK-04  Splicing on deck\ned. 2, valid from 09/2021\n\n1. Cut the rope.";
        let rules = titled("RG-DK-04_splicing.md", "RG-DK-04 Splicing on deck", rules);
        let other = "RG-TL-04  Tallow\ned. 2, valid from 09/2021\n\n1. Warm it.";
        let other = titled("RG-TL-04_tallow.md", "RG-TL-04 Tallow", other);
        let all = [notice("2"), rules.clone(), other];
        assert_eq!(standing("How do I splice a rope?", &all), "+-+");
        assert_eq!(standing("Is RG-DK-04 still valid?", &all), "+-+");
        assert_eq!(standing("How do I splice a rope?", &[notice("1"), rules]), "++");
        let stamped = "WITHDRAWN: RG-DK-04, see RG-DK-09\n\n1. Cut the rope.";
        assert_eq!(standing("How?", &[titled("RG-DK-04.md", "RG-DK-04", stamped)]), "?");
        let stamped = "Safety bulletin CH-12\nWITHDRAWN: CH-12, see CH-14\n\n1. Wash the rind.";
        for title in ["Bulletin CH-12", "CH-12 Bulletin on rinds"] {
            assert_eq!(standing("How?", &[titled("ch12.md", title, stamped)]), "?", "{title}");
        }
    }

    #[test]
    fn whether_a_document_still_holds_is_told_by_the_one_that_replaces_it() {
        let orders = [
            titled(
                "n1",
                "Standing order 4/2021",
                "Standing order 4/2021\n\nValid from 1 May 2021. Replaces standing order 2/2018.",
            ),
            titled(
                "n2",
                "Standing order 9/2024",
                "Standing order 9/2024\n\nThis order replaces standing order 4/2021.",
            ),
            titled(
                "n3",
                "Standing order 7/2021",
                "Standing order 7/2021\n\nValid from 1 June 2021.",
            ),
        ];
        assert_eq!(standing("Is standing order 4/2021 still valid?", &orders), "-++");
        assert_eq!(standing("What does standing order 4/2021 say?", &orders), "+-+");
        assert_eq!(standing("Is standing order 4/2021 still valid?", &orders[..1]), "+");
    }

    #[test]
    fn documents_of_a_series_and_others_stand_beside_each_other() {
        let other = [
            titled("minutes-2024-11-12.txt", "Meeting, 12 November 2024", "Roof."),
            titled("minutes-2025-03-11.txt", "Meeting, 11 March 2025", "Roof."),
            titled("hours-north.md", "Opening hours", "9 to 5"),
            titled("hours-south.md", "Opening hours", "8 to 4"),
            titled("page-001", "Page 1", "x"),
            titled("page-002", "Page 2", "y"),
        ];
        assert_eq!(standing("What about the roof?", &other), "++++++");
    }

    #[test]
    fn editions_told_together_are_a_conflict() {
        let lists = [
            titled("prices-2024.csv", "Prices 2024", "a,b"),
            titled("prices-2025.csv", "Prices 2025", "a,b"),
            titled("x.md", "Other", "a,b"),
        ];
        let lists: Vec<&RetrievedChunk> = lists.iter().collect();
        let editions = Editions::read("How did prices change?", &lists, NOW);
        assert!(editions.are_mixed([0, 1].into_iter()));
        assert!(!editions.are_mixed([0, 2].into_iter()));
    }
}
