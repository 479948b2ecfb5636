//! Texts of documents. Each version contains a unique word that encodes its tenant, sub-tenant,
//! document and version.

use std::collections::BTreeSet;

/// A word that occurs in every chunk of every document.
pub const EVERYWHERE: &str = "everychunk";

/// The kinds of upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Markdown,
    Table,
}

/// The version to which a word belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub tenant: u32,
    pub sub_tenant: u32,
    pub document: u32,
    pub version: u32,
}

/// The word of a version: letters only, so that every tokenizer keeps it as one word.
pub fn word(owner: Owner) -> String {
    let letters = |number: u32| -> String {
        number.to_string().bytes().map(|digit| (digit - b'0' + b'a') as char).collect()
    };
    let Owner { tenant, sub_tenant, document, version } = owner;
    let parts = [tenant, sub_tenant, document, version].map(letters);
    format!("qx{}z", parts.join("z"))
}

fn owner(word: &str) -> Option<Owner> {
    let mut parts = word.strip_prefix("qx")?.strip_suffix('z')?.split('z');
    let mut number = || {
        let digits = parts.next()?.bytes().map(|letter| (letter - b'a' + b'0') as char);
        digits.collect::<String>().parse().ok()
    };
    let (tenant, sub_tenant) = (number()?, number()?);
    Some(Owner { tenant, sub_tenant, document: number()?, version: number()? })
}

/// The owners of all words in a text.
pub fn owners(text: &str) -> BTreeSet<Owner> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(owner).collect()
}

/// The complete content of a version.
pub fn content(owner: Owner, kind: Kind) -> String {
    let word = word(owner);
    // One in sixteen is long enough for several chunks.
    let sentences = match owner.version % 16 {
        7 => 40,
        other => 1 + other % 3,
    };
    let sentence = |n: u32| format!("The {EVERYWHERE} of {word} turns valve {n} in the cold hall.");
    let prose = |from: u32| (from..sentences + from).map(sentence).collect::<Vec<_>>().join(" ");
    match kind {
        Kind::Text => prose(1),
        Kind::Markdown => {
            format!("# The {EVERYWHERE} {word}\n\n{}\n\n- {}\n", prose(1), sentence(99))
        }
        Kind::Table => {
            let row = |n: u32| format!("{n},{EVERYWHERE},{word}\n");
            let rows: String = (1..=sentences + 1).map(row).collect();
            format!("number,kind,name\n{rows}")
        }
    }
}
