//! Canaries: words that identify their owner, and the search for them in everything a server sends.
//!
//! ```text
//! canary = code of the home (8 letters) + letters of its own (8)
//! ```
//! They contain no vowels, so that no stemmer changes them and no other word contains them. The
//! code alone identifies the home, so that truncated canaries are found too. Names of tenants
//! contain a code as well. A response is searched both raw and decoded: JSON escapes,
//! percent-encoding and base64, nested in each other.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

const LETTERS: &[u8; 18] = b"bcdfghjklmnpqrtvwx";
const CODE_LEN: usize = 8;
pub const CANARY_LEN: usize = 16;
/// Maximum depth of nested encodings.
const DEPTH_MAX: usize = 3;
/// The number of base64 characters that encode a code.
const BASE64_LEN_MIN: usize = 11;

/// A deterministic sequence of pseudo-random numbers (splitmix64).
#[derive(Debug, Clone)]
pub struct Seeded(u64);

impl Seeded {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    pub fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }

    pub fn word(&mut self, of: &[&'static str]) -> &'static str {
        of[self.below(of.len())]
    }

    fn letters(&mut self, count: usize) -> String {
        (0..count).map(|_| char::from(*self.pick(LETTERS))).collect()
    }
}

/// The owner of a code: a life of a sub-tenant, a key, or the name of a tenant.
pub type Home = usize;

/// All codes that have been issued.
#[derive(Debug)]
pub struct Codes {
    seeded: Seeded,
    homes: BTreeMap<String, Home>,
    codes: Vec<String>,
}

/// A code that was found, with as many of the following letters of its canary as are present.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    pub home: Home,
    pub word: String,
}

impl Codes {
    pub fn new(seed: u64) -> Self {
        Self { seeded: Seeded::new(seed), homes: BTreeMap::new(), codes: Vec::new() }
    }

    /// Registers a new home.
    pub fn home(&mut self) -> Home {
        let code = loop {
            let code = self.seeded.letters(CODE_LEN);
            if !self.homes.contains_key(&code) {
                break code;
            }
        };
        self.homes.insert(code.clone(), self.codes.len());
        self.codes.push(code);
        self.codes.len() - 1
    }

    /// The code of a home.
    pub fn code(&self, home: Home) -> &str {
        &self.codes[home]
    }

    /// Creates a new canary of a home.
    pub fn canary(&mut self, home: Home) -> String {
        let own = self.seeded.letters(CANARY_LEN - CODE_LEN);
        format!("{}{own}", self.codes[home])
    }

    /// Returns a word of the same form that belongs to no home.
    pub fn stray(&mut self) -> String {
        loop {
            let word = self.seeded.letters(CANARY_LEN);
            if !word.as_bytes().windows(CODE_LEN).any(|window| self.home_of(window).is_some()) {
                return word;
            }
        }
    }

    fn home_of(&self, window: &[u8]) -> Option<Home> {
        self.homes.get(std::str::from_utf8(window).ok()?).copied()
    }

    /// Finds all codes in `bytes` and in everything encoded in them.
    pub fn sightings(&self, bytes: &[u8]) -> BTreeSet<Sighting> {
        let mut found = BTreeSet::new();
        self.look(bytes, 0, &mut found);
        found
    }

    fn look(&self, bytes: &[u8], depth: usize, found: &mut BTreeSet<Sighting>) {
        let lower = bytes.to_ascii_lowercase();
        let runs = lower.chunk_by(|a, b| LETTERS.contains(a) == LETTERS.contains(b));
        for run in runs.filter(|run| run.len() >= CODE_LEN && LETTERS.contains(&run[0])) {
            for (at, window) in run.windows(CODE_LEN).enumerate() {
                if let Some(home) = self.home_of(window) {
                    let end = run.len().min(at + CANARY_LEN);
                    let word = String::from_utf8_lossy(&run[at..end]).into_owned();
                    found.insert(Sighting { home, word });
                }
            }
        }
        if depth == DEPTH_MAX {
            return;
        }
        for decoded in [json_unescaped(bytes), percent_decoded(bytes)].into_iter().flatten() {
            self.look(&decoded, depth + 1, found);
        }
        for decoded in base64_decoded(bytes) {
            self.look(&decoded, depth + 1, found);
        }
    }
}

/// Removes all canaries from a text.
pub fn blank(text: &str) -> String {
    let is_canary =
        |word: &str| word.len() >= CANARY_LEN && word.bytes().all(|b| LETTERS.contains(&b));
    let words = text.split_inclusive(|c: char| !c.is_ascii_lowercase());
    let kept = words.map(|word| {
        let bare = word.trim_end_matches(|c: char| !c.is_ascii_lowercase());
        if is_canary(bare) { &word[bare.len()..] } else { word }
    });
    kept.collect()
}

fn hex(digits: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Decodes `\uABCD` escapes; `None` if there are none.
fn json_unescaped(bytes: &[u8]) -> Option<Vec<u8>> {
    replaced(bytes, b"\\u", 6, |escape| {
        let c = char::from_u32(hex(&escape[2..])?)?;
        Some(c.to_string().into_bytes())
    })
}

/// Decodes `%AB` escapes; `None` if there are none.
fn percent_decoded(bytes: &[u8]) -> Option<Vec<u8>> {
    replaced(bytes, b"%", 3, |escape| Some(vec![hex(&escape[1..])? as u8]))
}

fn replaced(
    bytes: &[u8],
    mark: &[u8],
    len: usize,
    read: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Option<Vec<u8>> {
    let (mut decoded, mut at, mut is_changed) = (Vec::with_capacity(bytes.len()), 0, false);
    while at < bytes.len() {
        let escape = bytes.get(at..at + len).filter(|escape| escape.starts_with(mark));
        match escape.and_then(&read) {
            Some(read) => {
                decoded.extend(read);
                at += len;
                is_changed = true;
            }
            None => {
                decoded.push(bytes[at]);
                at += 1;
            }
        }
    }
    is_changed.then_some(decoded)
}

/// Decodes each run of base64 characters, starting at each of its first four characters.
fn base64_decoded(bytes: &[u8]) -> Vec<Vec<u8>> {
    let is_in = |b: &u8| b.is_ascii_alphanumeric() || b"+/-_".contains(b);
    let runs = bytes.chunk_by(|a, b| is_in(a) == is_in(b));
    let mut decoded = Vec::new();
    for run in runs.filter(|run| run.len() >= BASE64_LEN_MIN && is_in(&run[0])) {
        let plain = |b: &u8| match b {
            b'-' => b'+',
            b'_' => b'/',
            b => *b,
        };
        let run: Vec<u8> = run.iter().map(plain).collect();
        for begin in 0..4 {
            let part = &run[begin..];
            // An incomplete last character is dropped, as it holds less than a byte.
            let whole = part.len() - usize::from(part.len() % 4 == 1);
            let loose = part.len() - part.len() % 4;
            let read = |end: usize| STANDARD_NO_PAD.decode(&part[..end]).ok();
            decoded.extend(read(whole).or_else(|| read(loose)));
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

    fn planted() -> (Codes, Home, String) {
        let mut codes = Codes::new(7);
        for _ in 0..20 {
            codes.home();
        }
        let home = codes.home();
        let canary = codes.canary(home);
        (codes, home, canary)
    }

    fn finds(text: &str, (codes, home, canary): &(Codes, Home, String)) -> bool {
        let word = canary.clone();
        codes.sightings(text.as_bytes()).contains(&Sighting { home: *home, word })
    }

    fn escaped(text: &str) -> String {
        text.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect()
    }

    fn percent(text: &str) -> String {
        text.bytes().map(|b| format!("%{b:02X}")).collect()
    }

    #[test]
    fn a_planted_canary_is_found_in_every_coat() {
        let planted = planted();
        let canary = planted.2.clone();
        for lead in ["", "a", "ab", "abc"] {
            let text = format!("{lead} notes {canary} end");
            for coat in [
                text.clone(),
                format!("{{\"a\":{{\"{canary}\":[1]}}}}"),
                format!("xx{canary}yy"),
                text.to_ascii_uppercase(),
                format!("{{\"a\":\"{}\"}}", escaped(&text)),
                format!("attachment; filename*=UTF-8''{}", percent(&text)),
                format!("{{\"file_content\":\"{}\"}}", STANDARD.encode(&text)),
                format!("/fetch/download/{}.seal", URL_SAFE_NO_PAD.encode(&text)),
                format!("word{}", STANDARD.encode(&text)),
                STANDARD.encode(escaped(&text)),
                percent(&STANDARD.encode(&text)),
                escaped(&STANDARD.encode(percent(&text))),
            ] {
                assert!(finds(&coat, &planted), "not found in {coat}");
            }
        }
    }

    #[test]
    fn a_canary_that_was_cut_off_is_found_by_its_code() {
        let (codes, home, canary) = planted();
        let found = codes.sightings(format!("a snippet ends in {}", &canary[..11]).as_bytes());
        let word = canary[..11].to_owned();
        assert_eq!(found, BTreeSet::from([Sighting { home, word }]));
        assert!(codes.sightings(&canary.as_bytes()[..7]).is_empty());
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        let (mut codes, _, _) = planted();
        let mut text =
            String::from("{\"answer\": \"plain words, no strangers\", \"n\": 0.12345678}");
        for _ in 0..2000 {
            text.push_str(&codes.stray());
            text.push(' ');
        }
        assert!(codes.sightings(text.as_bytes()).is_empty());
        assert!(codes.sightings(STANDARD.encode(&text).as_bytes()).is_empty());
    }

    #[test]
    fn blanking_takes_canaries_and_nothing_else() {
        let (_, _, canary) = planted();
        let text = format!("The {canary}, and {canary}. Rhythms {canary}");
        assert_eq!(blank(&text), "The , and . Rhythms ");
    }
}
