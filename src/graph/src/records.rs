//! Statements of fields ("Name: value") and tables: each value belongs to the subject of its record
//! or row.

use std::ops::Range;

use crate::extract::{Chunk, UnitKind};
use crate::nouns;
use crate::relations::Statement;
use crate::row::{EntityKind, Predicate};

/// Maximum words of a class in a field: "Type: sailing ship".
const CLASS_WORDS_MAX: usize = 3;

impl Chunk<'_> {
    /// Adds a table row; the row above a rule becomes the header.
    pub(super) fn add_row(&mut self, cells: Vec<Range<usize>>) {
        let is_mark = |byte: &u8| b"-: ".contains(byte);
        let is_rule =
            cells.iter().all(|cell| self.text.as_bytes()[cell.clone()].iter().all(is_mark))
                && cells.iter().any(|cell| !cell.is_empty());
        if is_rule {
            for header in self.rows.last().cloned().unwrap_or(0..0) {
                self.units[header].kind = UnitKind::Header;
            }
            return;
        }
        let first = self.units.len();
        cells.into_iter().for_each(|cell| self.add(cell, UnitKind::Cell));
        self.rows.push(first..self.units.len());
    }

    /// States the fields of each record, about the thing that one of the fields names, or else
    /// about the main entity of the text.
    pub(super) fn relate_fields(&mut self) {
        let mut at = 0;
        while at < self.units.len() {
            let is_field = |unit: usize| matches!(self.units[unit].kind, UnitKind::Value(_));
            let end = (at..self.units.len()).find(|at| !is_field(*at));
            let record = at..end.unwrap_or(self.units.len());
            at = record.end + 1;
            let naming = record.clone().find(|at| self.field(*at).is_some_and(names_record));
            let subject = match naming {
                Some(naming) if record.len() > 1 => self.whole(naming),
                _ => self.main,
            };
            let Some(subject) = subject else { continue };
            for unit in record {
                if let UnitKind::Value(name) = self.units[unit].kind.clone() {
                    self.relate_value(subject, name, unit);
                }
            }
        }
    }

    fn field(&self, unit: usize) -> Option<&str> {
        match &self.units[unit].kind {
            UnitKind::Value(name) => Some(&self.text[name.clone()]),
            _ => None,
        }
    }

    /// States the rows of each table, about the thing in the column that names it. A table of two
    /// columns may be a single record, about the main entity of the text.
    pub(super) fn relate_rows(&mut self) {
        let mut header: Range<usize> = 0..0;
        let mut before = 0;
        for row in self.rows.clone() {
            let is_header = self.units[row.start].kind == UnitKind::Header;
            if is_header || row.start != before {
                header = if is_header { row.clone() } else { 0..0 };
            }
            before = row.end;
            let is_pair = row.len() == 2;
            let label = self.span(row.start);
            let is_known = known_field(&self.text[label.clone()]).is_some();
            if let Some(main) = self.main.filter(|_| is_pair && is_known) {
                self.relate_value(main, label, row.start + 1);
            } else if !is_header && header.len() == row.len() {
                self.relate_row(&header, &row);
            }
        }
    }

    fn relate_row(&mut self, header: &Range<usize>, row: &Range<usize>) {
        let is_naming = |at: &usize| names_record(&self.text[self.span(header.start + *at)]);
        let column = (0..row.len()).find(is_naming).unwrap_or(0);
        let Some(subject) = self.whole(row.start + column) else { return };
        for other in (0..row.len()).filter(|other| *other != column) {
            let name = self.span(header.start + other);
            if !name.is_empty() {
                let line = self.span(row.start + column);
                self.relate_cell(subject, name, row.start + other, line);
            }
        }
    }

    fn relate_value(&mut self, subject: usize, name: Range<usize>, unit: usize) {
        let label = name.clone();
        self.relate_cell(subject, name, unit, label);
    }

    /// States what a value says about the subject. The supporting context extends from `beside`,
    /// which is the field's name or the subject's cell, to the value, whichever comes first.
    fn relate_cell(
        &mut self,
        subject: usize,
        name: Range<usize>,
        unit: usize,
        beside: Range<usize>,
    ) {
        let name = self.text[name].trim_end_matches(':');
        if is_caption(name) {
            return;
        }
        let (predicate, is_reversed) = known_field(name).unwrap_or((Predicate::HasProperty, false));
        let value = self.span(unit);
        let mut targets: Vec<usize> = self.units[unit].entities.iter().flatten().copied().collect();
        if targets.is_empty() && predicate == Predicate::IsA {
            let class = &self.text[value.clone()];
            let is_class = class.split_whitespace().count() <= CLASS_WORDS_MAX
                && class.chars().all(|c| c.is_alphabetic() || c == ' ' || c == '-');
            targets.extend(self.entities.named(class).filter(|_| is_class));
            targets.iter().for_each(|class| self.entities.vote(*class, EntityKind::Term, 1));
        }
        let kind = name.rsplit(' ').next().and_then(nouns::kind_of_noun);
        for target in targets.into_iter().filter(|target| *target != subject) {
            if let Some(kind) = kind.filter(|_| self.entities.kind(target) != EntityKind::Date) {
                self.entities.vote(target, kind, 3);
            }
            let kinds = [subject, target].map(|entity| self.entities.kind(entity));
            let Some(predicate) = fitting(predicate, kinds) else { continue };
            let (source, target) = if is_reversed { (target, subject) } else { (subject, target) };
            let support = beside.start.min(value.start)..beside.end.max(value.end);
            self.triplets.push((Statement { source, target, predicate }, support));
        }
    }

    /// The byte range of a unit.
    fn span(&self, unit: usize) -> Range<usize> {
        let tokens = &self.tokens[self.units[unit].tokens.clone()];
        match (tokens.first(), tokens.last()) {
            (Some(first), Some(last)) => first.start..last.end,
            _ => 0..0,
        }
    }

    /// The entity whose name spans the whole unit.
    fn whole(&self, unit: usize) -> Option<usize> {
        let unit = &self.units[unit];
        match (&unit.names[..], &unit.entities[..]) {
            ([name], [entity]) if name.tokens.len() == unit.tokens.len() => *entity,
            _ => None,
        }
    }
}

/// Whether the field or column names the subject of its record.
fn names_record(name: &str) -> bool {
    let names = ["name", "full name", "title", "product", "product name", "project", "model"];
    names.contains(&&*name.to_lowercase())
}

/// Whether text before a colon is not a property of anything: captions, references, notes.
fn is_caption(name: &str) -> bool {
    let first = name.split(' ').next().unwrap_or(name).to_lowercase();
    [
        "table", "figure", "fig", "see", "main", "further", "note", "notes", "example", "warning",
        "tip", "step", "chapter", "section", "page", "question", "answer", "retrieved", "archived",
        "re", "subject", "title", "name",
    ]
    .contains(&&*first)
}

/// Adjusts a predicate to the kinds of its ends: relations to a day need a date, and a place is not
/// located in a person.
fn fitting(predicate: Predicate, kinds: [EntityKind; 2]) -> Option<Predicate> {
    use Predicate::*;
    let is_date = kinds[1] == EntityKind::Date;
    let is_place = kinds[1] == EntityKind::Location;
    Some(match predicate {
        BornOn if is_place => BornIn,
        DiedOn if is_place => DiedIn,
        BornOn | DiedOn | FoundedOn | PublishedOn => return is_date.then_some(predicate),
        HasProperty => HasProperty,
        _ if is_date => return None,
        LocatedIn if kinds[1] == EntityKind::Person => return None,
        WorksFor if kinds[0] != EntityKind::Person => HasProperty,
        known => known,
    })
}

/// The predicate that the name of a field or column stands for, and whether the value is its
/// source.
fn known_field(name: &str) -> Option<(Predicate, bool)> {
    use Predicate::*;
    let predicate = match name.to_lowercase().as_str() {
        "author" | "authors" | "author(s)" | "writer" | "written by" | "composer" => WrittenBy,
        "director" | "directed by" => DirectedBy,
        "producer" | "produced by" | "manufacturer" | "maker" | "vendor" => ProducedBy,
        "publisher" | "label" | "distributor" => PublishedBy,
        "released" | "release date" | "published" | "publication date" => PublishedOn,
        "creator" | "developer" | "designer" | "architect" | "inventor" => CreatedBy,
        "founder" | "founders" | "founder(s)" | "founded by" => FoundedBy,
        "founded" | "established" => FoundedOn,
        "location" | "country" | "city" | "headquarters" | "place" => LocatedIn,
        "starring" | "cast" => Stars,
        "artist" | "singer" | "performer" => PerformedBy,
        "born" | "birth date" | "date of birth" => BornOn,
        "birthplace" | "place of birth" => BornIn,
        "died" | "date of death" => DiedOn,
        "place of death" => DiedIn,
        "residence" => LivesIn,
        "spouse" | "wife" | "husband" => SpouseOf,
        "alma mater" | "education" => EducatedAt,
        "employer" | "company" => WorksFor,
        "ceo" | "president" | "chairman" | "director general" => return Some((LeaderOf, true)),
        "owner" | "parent company" => OwnedBy,
        "subsidiaries" => return Some((OwnedBy, true)),
        "parent" | "part of" | "department" => PartOf,
        "member of" | "party" | "team" => MemberOf,
        "type" | "category" | "kind" | "occupation" | "profession" | "genre" => IsA,
        "also known as" | "alias" | "abbreviation" => AlsoKnownAs,
        "depends on" | "requires" => DependsOn,
        _ => return None,
    };
    Some((predicate, false))
}
