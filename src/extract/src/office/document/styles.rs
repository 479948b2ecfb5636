//! Paragraph styles: headings and numbered paragraphs.

use std::collections::BTreeMap;

use crate::ExtractError;
use crate::events::{Event, Events};
use crate::office::document::properties::{self, Properties};
use crate::package::Package;

/// Maximum length of a chain of styles based on one another.
const CHAIN_MAX: usize = 20;

/// Heading style names in programs that translate built-in names: the words before the number, in
/// lowercase.
const HEADING_WORDS: [&str; 14] = [
    "heading", "überschrift", "berschrift", "titre", "título", "titolo", "kop", "rubrik",
    "overskrift", "otsikko", "nagłówek", "заголовок", "标题", "見出し",
];

#[derive(Debug, Default)]
struct Style {
    name: String,
    based_on: Option<String>,
    properties: Properties,
}

/// The effect of a style on a paragraph.
#[derive(Debug, Default, Clone)]
pub(super) struct Effect {
    /// The heading level, from 1.
    pub heading: Option<u8>,
    /// Whether it is the title of the whole document.
    pub is_title: bool,
    /// The list that numbers it.
    pub list: Option<String>,
    /// Its level in that list.
    pub list_level: Option<usize>,
}

/// All styles of a document.
#[derive(Debug, Default)]
pub(super) struct Styles {
    all: BTreeMap<String, Style>,
}

impl Styles {
    /// Reads the part called `name`.
    pub(super) fn read(package: &Package<'_>, name: &str) -> Result<Self, ExtractError> {
        let Some(part) = package.part(name)? else { return Ok(Self::default()) };
        let mut events = Events::new(part)?;
        let mut styles = Self::default();
        let mut id = String::new();
        let mut style = Style::default();
        loop {
            match events.next()? {
                Event::Open(element) => match element.name() {
                    "style" => {
                        id = element.attribute("styleId").unwrap_or_default();
                        style = Style::default();
                    }
                    "name" => style.name = element.attribute("val").unwrap_or_default(),
                    "basedOn" => style.based_on = element.attribute("val"),
                    "pPr" => style.properties = properties::of_paragraph(&mut events)?,
                    "rPr" | "tblPr" | "tcPr" | "tblStylePr" | "docDefaults" | "latentStyles" => {
                        events.skip()?;
                    }
                    _ => {}
                },
                Event::Close(name) if name.as_str() == "style" => {
                    styles.all.insert(std::mem::take(&mut id), std::mem::take(&mut style));
                }
                Event::Close(_) | Event::Text(_) => {}
                Event::End => return Ok(styles),
            }
        }
    }

    /// The effect of the style called `id`, including the styles it is based on.
    pub(super) fn effect(&self, id: &str) -> Effect {
        let mut effect = Effect::default();
        let mut outline = None;
        let mut next = Some(id);
        for _ in 0..CHAIN_MAX {
            let Some(name) = next else { break };
            let Some(style) = self.all.get(name) else {
                // A style that is used but not defined may still have a built-in name.
                effect.heading = effect.heading.or_else(|| named_level(name));
                break;
            };
            effect.heading = effect.heading.or_else(|| named_level(&style.name));
            effect.is_title |= style.name.eq_ignore_ascii_case("title");
            outline = outline.or(style.properties.outline);
            effect.list = effect.list.or_else(|| style.properties.list.clone());
            effect.list_level = effect.list_level.or(style.properties.list_level);
            next = style.based_on.as_deref();
        }
        // Outline level 10 is body text.
        let by_outline = outline.filter(|level| *level < 9).map(|level| level + 1);
        effect.heading = by_outline.or(effect.heading.filter(|_| outline.is_none()));
        effect
    }
}

/// The level in a name such as `heading 2` or `berschrift2`.
fn named_level(name: &str) -> Option<u8> {
    let lower = name.trim().to_lowercase();
    let digit = lower.chars().next_back().filter(|c| ('1'..='9').contains(c))?;
    let word = lower[..lower.len() - 1].trim_end();
    let level = u8::try_from(digit.to_digit(10)?).ok()?;
    HEADING_WORDS.contains(&word).then_some(level)
}
