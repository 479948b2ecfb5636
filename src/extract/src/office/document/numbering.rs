//! Word lists: the label of each item, counted as Word does.

use std::collections::BTreeMap;

use crate::ExtractError;
use crate::events::{Event, Events};
use crate::numerals;
use crate::package::Package;

/// Levels of a list.
const LEVELS: usize = 9;

#[derive(Debug, Clone)]
struct Level {
    start: i64,
    format: String,
    /// The pattern of the label, such as `%1.%2`.
    pattern: String,
}

impl Default for Level {
    fn default() -> Self {
        Self { start: 1, format: String::new(), pattern: String::new() }
    }
}

#[derive(Debug, Default)]
struct List {
    /// The definition it counts with.
    definition: String,
    /// Start numbers of restarted levels.
    starts: BTreeMap<usize, i64>,
    is_begun: bool,
}

/// The lists of a document and their counters.
#[derive(Debug, Default)]
pub(super) struct Numbering {
    definitions: BTreeMap<String, Vec<Level>>,
    lists: BTreeMap<String, List>,
    counts: BTreeMap<String, [Option<i64>; LEVELS]>,
}

/// The label of a list item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Mark {
    /// A bullet without a number.
    Bullet,
    /// A number as displayed.
    Number(String),
    /// No label.
    None,
}

impl Numbering {
    /// Reads the part called `name`.
    pub(super) fn read(package: &Package<'_>, name: &str) -> Result<Self, ExtractError> {
        let Some(part) = package.part(name)? else { return Ok(Self::default()) };
        let mut events = Events::new(part)?;
        let mut found = Self::default();
        let mut definition = String::new();
        let mut list = String::new();
        let mut level = 0;
        loop {
            let Some(element) = (match events.next()? {
                Event::Open(element) => Some(element),
                Event::Close(_) | Event::Text(_) => None,
                Event::End => return Ok(found),
            }) else {
                continue;
            };
            let value = || element.attribute("val").unwrap_or_default();
            match element.name() {
                "abstractNum" => {
                    list.clear();
                    definition = element.attribute("abstractNumId").unwrap_or_default();
                    found.definitions.insert(definition.clone(), Vec::new());
                }
                "num" => {
                    definition.clear();
                    list = element.attribute("numId").unwrap_or_default();
                    found.lists.insert(list.clone(), List::default());
                }
                "abstractNumId" => {
                    if let Some(list) = found.lists.get_mut(&list) {
                        list.definition = value();
                    }
                }
                "lvl" | "lvlOverride" => {
                    let number = element.number("ilvl").and_then(|n| usize::try_from(n).ok());
                    level = number.unwrap_or(0).min(LEVELS - 1);
                }
                "startOverride" => {
                    if let Some(list) = found.lists.get_mut(&list) {
                        list.starts.insert(level, element.number("val").unwrap_or(1));
                    }
                }
                "start" | "numFmt" | "lvlText" => {
                    let Some(levels) = found.definitions.get_mut(&definition) else { continue };
                    if levels.len() <= level {
                        levels.resize(level + 1, Level::default());
                    }
                    match element.name() {
                        "start" => levels[level].start = element.number("val").unwrap_or(1),
                        "numFmt" => levels[level].format = value(),
                        _ => levels[level].pattern = value().chars().take(50).collect(),
                    }
                }
                _ => {}
            }
        }
    }

    /// Counts an item of the list called `id` and returns its label.
    pub(super) fn next(&mut self, id: &str, level: usize) -> Mark {
        let level = level.min(LEVELS - 1);
        let Some(list) = self.lists.get_mut(id) else { return Mark::Bullet };
        let Some(levels) = self.definitions.get(&list.definition) else { return Mark::Bullet };
        let counts = self.counts.entry(list.definition.clone()).or_default();
        if !std::mem::replace(&mut list.is_begun, true) {
            for (&level, &start) in &list.starts {
                counts[level] = Some(start.saturating_sub(1));
                counts[level + 1..].fill(None);
            }
        }
        let start = |level: usize| levels.get(level).map_or(1, |level| level.start);
        counts[level] = Some(counts[level].map_or(start(level), |count| count.saturating_add(1)));
        counts[level + 1..].fill(None);
        let Some(shown) = levels.get(level) else { return Mark::Bullet };
        match shown.format.as_str() {
            "bullet" => return Mark::Bullet,
            "none" => return Mark::None,
            _ => {}
        }
        let mut mark = String::new();
        let mut pattern = shown.pattern.chars().peekable();
        while let Some(c) = pattern.next() {
            let digit = pattern.peek().and_then(|c| c.to_digit(10)).filter(|_| c == '%');
            let Some(digit) = digit.filter(|digit| *digit > 0) else {
                mark.push(c);
                continue;
            };
            pattern.next();
            let of = digit as usize - 1;
            let count = counts[of].unwrap_or_else(|| start(of));
            let format = levels.get(of).map_or("decimal", |level| level.format.as_str());
            mark.push_str(&numerals::written(count, format));
        }
        let mark = mark.trim().to_owned();
        // A pattern without a number is a bullet.
        if mark.is_empty() {
            Mark::None
        } else if mark.chars().any(char::is_alphanumeric) {
            Mark::Number(mark)
        } else {
            Mark::Bullet
        }
    }
}
