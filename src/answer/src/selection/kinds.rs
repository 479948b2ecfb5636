//! The table of the kind of things that a question means, when the question uses another word than
//! the table: "the heaviest boat" for the models in `products.csv`.

use std::collections::BTreeSet;

use unicode_segmentation::UnicodeSegmentation;

use crate::passages::blocks::{Cell, Form};
use crate::passages::candidates::Shape;
use crate::question::extremes;
use crate::question::phrases::{BEFORE_NOUN, MONEY};
use crate::question::qualities::Quality;
use crate::question::wish::Question;
use crate::rows::evaluate::{is_code, tells_amount};
use crate::selection::choose::Choice;
use crate::text::terms::{is_common, terms};
use crate::text::values::{has_money, quantities};
use crate::text::words::{
    begins_with, contains, contains_any, entries, is_entry, is_interrogative, spaced,
};

/// Titles and headings of tables of goods, whatever the goods are called.
const OF_GOODS: &str = "\
    product|products|catalogue|catalog|assortment|articles|goods|stock|inventory|equipment|fleet|\
    produkte|artikel|sortiment|katalog|bestand|inventar|ausrüstung|fuhrpark|produits|matériel|\
    productos|catálogo|existencias|equipos|flota";
/// Words for things done with an item, whose price is not that of the item.
const DEEDS: &str = "\
    rental|rent|hire|lease|loan|repair|service|servicing|maintenance|storage|cleaning|delivery|\
    shipping|transport|installation|insurance|deposit|disposal|training|miete|verleih|reparatur|\
    wartung|lagerung|reinigung|lieferung|versand|montage|kaution|location|réparation|entretien|\
    nettoyage|livraison|caution|alquiler|reparación|mantenimiento|limpieza|entrega|fianza";
/// Openings that ask for a price without a word for price.
const HOW_MUCH: &str = "how much is|how much are|wie viel ist|combien vaut|cuánto vale";
/// Words in the names of columns that hold sums paid.
const SUMS_OF_ROWS: &str = "\
    total|sum|amount|paid|revenue|summe|betrag|gesamt|umsatz|montant|somme|importe|suma";
/// Words before things that are counted.
const MANY: &str = "many|viele|cuántos|cuántas";
/// Minimum number of values in a column that name rows of another table.
const SHARED_MIN: usize = 2;

/// Degree to which a table holds the kind of things asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    None,
    /// A table of goods, of which other texts speak by this name.
    Goods,
    /// The table or some of its values have the name of the kind.
    Named,
    /// Another table calls the rows by the name of the kind.
    Told,
}

impl Choice<'_> {
    /// A row of a table that tells what is asked about a kind of things, if the first passage does
    /// not or belongs to a table that fits the kind less.
    pub(crate) fn of_kind(&self, first: usize) -> Option<usize> {
        let kind = kind(self.question)?;
        let one = self.candidate(first);
        let is_table = one.has_values() || one.shape == Shape::Whole(Form::Table);
        let least = match self.mates(first).first().filter(|_| is_table) {
            Some(row) if self.has_asked(*row) => self.fit(*row, &kind),
            Some(_) => Fit::None,
            None if self.says_asked(first) => return None,
            None => Fit::None,
        };
        let mut best: Option<(Fit, usize)> = None;
        for at in self.first_rows().into_iter().filter(|at| self.has_asked(*at)) {
            let fit = self.fit(at, &kind);
            if fit > least && best.is_none_or(|(known, _)| fit > known) {
                best = Some((fit, at));
            }
        }
        best.map(|(_, at)| at)
    }

    /// The first row of each table.
    fn first_rows(&self) -> Vec<usize> {
        let mut rows: Vec<usize> = Vec::new();
        for (at, one) in self.reading.candidates.iter().enumerate() {
            let is_row = one.has_values() && one.cells.len() > 1;
            let is_known = rows.last().is_some_and(|row| self.candidate(*row).is_beside(one));
            if is_row && !is_known {
                rows.push(at);
            }
        }
        rows
    }

    /// Whether the table of a row has the column that the question asks by.
    fn has_asked(&self, row: usize) -> bool {
        let question = self.question;
        let mates = self.mates(row);
        match () {
            () if mates.len() < 2 => false,
            () if question.extreme.is_some() => self.extreme(row).is_some(),
            () if !question.conditions.is_empty() => {
                let cells = self.cells(&mates);
                question.conditions.iter().all(|one| one.met(question.last(), &cells).is_some())
            }
            () => self.marks(row).is_some(),
        }
    }

    /// Whether a passage in prose states what the question asks by.
    fn says_asked(&self, at: usize) -> bool {
        let question = self.question;
        let shown = self.candidate(at).shown();
        let said = spaced(&shown);
        match question.quality {
            Some(quality) => {
                quality.is_told_in(&shown)
                    || quality.superlatives().any(|word| contains(&said, word))
            }
            None if !question.conditions.is_empty() => !quantities(&shown).is_empty(),
            None => {
                let mut marks = self.matches.marks.values().flat_map(|marks| &marks.terms);
                marks.all(|term| self.matches.own[at].contains(term))
            }
        }
    }

    fn fit(&self, row: usize, kind: &BTreeSet<String>) -> Fit {
        let is_kind = |text: &str| kind.is_subset(&terms(&text.replace('_', " ")));
        let one = self.candidate(row);
        for other in self.first_rows() {
            // The first column names the rows themselves.
            let column = self.candidate(other).cells.iter().skip(1).find(|one| is_kind(&one.name));
            let is_other = !self.candidate(other).is_beside(one);
            if column.is_some_and(|cell| is_other && self.are_rows_of(row, other, &cell.name)) {
                return Fit::Told;
            }
        }
        // "Rental of a boat" is not a boat.
        let is_one =
            |cell: &Cell| is_kind(&cell.value) && !contains_any(&spaced(&cell.value), DEEDS);
        let has_value = |at: usize| self.candidate(at).cells.iter().any(is_one);
        if self.is_titled(row, &is_kind) || self.mates(row).into_iter().any(has_value) {
            return Fit::Named;
        }
        let title = self.title(row);
        let is_of_goods = contains_any(&title, OF_GOODS);
        let is_known = || self.matches.own.iter().any(|own| kind.is_subset(own));
        let has_own = || self.first_rows().into_iter().any(|other| self.is_titled(other, &is_kind));
        if is_of_goods && is_known() && !has_own() { Fit::Goods } else { Fit::None }
    }

    /// The words of the document's names and of the headings of a row.
    fn title(&self, row: usize) -> String {
        let one = self.candidate(row);
        let [file, title] = self.editions.names(one.hit);
        spaced(&format!("{file} {title} {}", one.context))
    }

    /// Whether the title, the headings or the key column of a table name a kind; after a column of
    /// codes, the second column counts too.
    fn is_titled(&self, row: usize, is_kind: &dyn Fn(&str) -> bool) -> bool {
        let cells = &self.candidate(row).cells;
        let has_codes = cells.first().is_some_and(|cell| is_code(&cell.value));
        let mut keys = cells.iter().take(if has_codes { 2 } else { 1 });
        is_kind(&self.title(row)) || keys.any(|cell| is_kind(&cell.name))
    }

    /// Whether the values of a column in another table name rows of the table of `row`.
    fn are_rows_of(&self, row: usize, other: usize, column: &str) -> bool {
        let values = |of: usize, is_one: &dyn Fn(&Cell) -> bool| -> BTreeSet<String> {
            let cells = self.mates(of).into_iter().flat_map(|at| &self.candidate(at).cells);
            cells.filter(|cell| is_one(cell)).map(|cell| cell.value.to_lowercase()).collect()
        };
        let told = values(other, &|cell| cell.name == column);
        let is_word = |cell: &Cell| cell.value.contains(char::is_alphabetic);
        let shared = told.intersection(&values(row, &is_word)).count();
        shared >= SHARED_MIN && shared * 2 >= told.len()
    }

    /// Whether the table of a candidate is about something other than the things asked for:
    /// services that cost something, or bookings of a boat with the sums paid.
    pub(crate) fn is_of_others(&self, at: usize) -> bool {
        let Some(kind) = kind(self.question) else { return false };
        let asked = spaced(self.question.last());
        let mates = self.mates(at);
        if mates.len() > 1 && mates.into_iter().all(|row| self.is_of_deed(row, &asked)) {
            return true;
        }
        if !self.question.quality.is_some_and(Quality::is_money) {
            return false;
        }
        let mut behind = self.candidate(at).cells.iter().skip(1);
        let is_kind = |cell: &Cell| kind.is_subset(&terms(&cell.name.replace('_', " ")));
        behind.any(is_kind) && self.tells_sums(at)
    }

    /// Whether the only amounts of money in a row are sums paid.
    fn tells_sums(&self, at: usize) -> bool {
        let is_amount = |cell: &&Cell| has_money(&format!("{} {}", cell.name, cell.value));
        let mut amounts = self.candidate(at).cells.iter().filter(is_amount).peekable();
        let is_sum = |cell: &Cell| {
            let name = spaced(&cell.name.replace('_', " "));
            contains_any(&name, SUMS_OF_ROWS) && !contains_any(&name, MONEY)
        };
        amounts.peek().is_some() && amounts.all(is_sum)
    }

    /// Whether a row is about a service that the question does not name.
    fn is_of_deed(&self, row: usize, asked: &str) -> bool {
        let key = self.candidate(row).cells.first().map_or("", |cell| &cell.value);
        let key = spaced(key);
        entries(DEEDS).any(|deed| contains(&key, deed) && !contains(asked, deed))
    }

    /// A row with the price of a thing, if the first one has the price of a service on it: "the
    /// tent" against "rental of a tent".
    pub(crate) fn of_thing(&self, first: usize) -> Option<usize> {
        let asked = spaced(self.question.last());
        let asks_amount = begins_with(&asked, HOW_MUCH) || self.question.asks_amount;
        if !asks_amount || !self.is_of_deed(first, &asked) {
            return None;
        }
        let held = &self.matches.own[first];
        self.best(|at| {
            let one = self.candidate(at);
            let is_one = one.has_values()
                && !one.is_beside(self.candidate(first))
                && tells_amount(&one.cells)
                && !self.tells_sums(at)
                && !self.is_of_deed(at, &asked)
                && !held.is_empty()
                && held.is_subset(&self.matches.own[at]);
            is_one.then(|| self.relevance(at))
        })
    }
}

/// Whether a question asks for rows of a table by a quality or a bound.
pub(crate) fn asks_for_rows(question: &Question) -> bool {
    let sets_apart = question.extreme.is_some() || !question.conditions.is_empty();
    sets_apart && kind(question).is_some()
}

/// The terms of the kind of things that a question selects by a quality, a bound or a mark.
fn kind(question: &Question) -> Option<BTreeSet<String>> {
    let asks = match question.extreme {
        Some(_) => question.quality.is_some_and(|quality| !quality.is_time()),
        None => question.selects,
    };
    let noun = question.noun.clone();
    let behind = || {
        question.extreme?;
        let lower = question.last().to_lowercase();
        let words = extremes::behind(&lower, question.quality).unicode_words();
        let noun = words.take_while(|word| !is_common(word) && !is_interrogative(word));
        noun.last().map(str::to_owned)
    };
    let asked = || {
        let lower = question.last().to_lowercase();
        let is_before = |word: &str| is_entry(BEFORE_NOUN, word) || is_entry(MANY, word);
        let mut words = lower.unicode_words().skip_while(|word| !is_before(word));
        words.nth(1).filter(|word| !is_common(word) && !is_interrogative(word)).map(str::to_owned)
    };
    let noun = noun.or_else(behind).or_else(asked).filter(|_| asks)?;
    Some(terms(&noun)).filter(|kind| !kind.is_empty())
}
