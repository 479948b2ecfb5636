//! Handling of undeclared parameter names: ignored and reported in the response, or refused if they
//! resemble a declared name.
//!
//! With `Prefer: handling=lenient` (RFC 7240) all of them are ignored, with `handling=strict` all
//! are refused.

use http::HeaderMap;
use strsim::osa_distance;

use crate::error::{ApiError, Location};
use crate::request::field::Field;
use crate::request::indexed::is_named;

/// Number of unknown names per request that are examined; further ones are ignored and not listed.
const NAMES_MAX: usize = 32;
/// Last entry of a list of ignored names that was cut short.
const MORE: &str = "...";
/// Number of characters kept of a name.
const NAME_CHARS_MAX: usize = 64;
/// Names up to this length count as similar at one edit, longer ones at two.
const SHORT_CHARS_MAX: usize = 5;
/// Prefixes refused in the unknown names of a request that changes data, so that a write does not
/// end up in another place than intended.
const ADDRESSES: [&str; 4] = ["tenant", "sub_tenant", "file_id", "source_id"];
/// Names that other products use for parameters that restrict or address a search, with our name
/// for each. Ignoring them would return more than was asked for.
const SYNONYMS: [(&str, &str); 10] = [
    ("filter", "document_metadata"),
    ("filters", "document_metadata"),
    ("where", "document_metadata"),
    ("metadata_filter", "document_metadata"),
    ("metadata_filters", "document_metadata"),
    ("custom_metadata", "document_metadata"),
    ("tenant", "tenant_id"),
    ("sub_tenant", "sub_tenant_id"),
    ("subtenant", "sub_tenant_id"),
    ("namespace", "sub_tenant_id"),
];
/// The client's preference for handling unknown names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Handling {
    /// Refuses names that look like misspellings and ignores the rest.
    #[default]
    Usual,
    /// Ignores all unknown names.
    Lenient,
    /// Refuses all unknown names.
    Strict,
}

impl Handling {
    /// Reads the preference from the `Prefer` headers; the first one counts.
    pub fn of(headers: &HeaderMap) -> Self {
        let texts = headers.get_all("prefer").into_iter().filter_map(|value| value.to_str().ok());
        for preference in texts.flat_map(|text| text.split(',')) {
            let preference = preference.split(';').next().unwrap_or_default();
            let (name, value) = preference.split_once('=').unwrap_or_default();
            if name.trim().eq_ignore_ascii_case("handling") {
                match value.trim().trim_matches('"').to_ascii_lowercase().as_str() {
                    "lenient" => return Self::Lenient,
                    "strict" => return Self::Strict,
                    _ => {}
                }
            }
        }
        Self::Usual
    }
}

/// Names found in a location where they are not declared, each once.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unknown {
    names: Vec<(Location, String)>,
    has_more: bool,
}

impl Unknown {
    /// Adds a name.
    pub fn add(&mut self, location: Location, name: &str) {
        let entry = (location, name.chars().take(NAME_CHARS_MAX).collect());
        match self.names.contains(&entry) {
            true => {}
            false if self.names.len() >= NAMES_MAX => self.has_more = true,
            false => self.names.push(entry),
        }
    }

    /// Adds the names collected in another part of the request.
    pub fn join(&mut self, others: Self) {
        others.names.iter().for_each(|(location, name)| self.add(*location, name));
        self.has_more |= others.has_more;
    }

    /// Adds those of `names` that no field declares at `location`.
    pub fn add_all<'a>(
        &mut self,
        location: Location,
        names: impl Iterator<Item = &'a str>,
        fields: &[&Field],
    ) {
        for name in names {
            if !fields.iter().any(|field| is_named(field, name, location)) {
                self.add(location, name);
            }
        }
    }

    /// Returns the names, all of which may be ignored.
    ///
    /// # Errors
    /// 400 `unknown_parameter` for a name refused by `rules`, with the name that was probably
    /// meant.
    pub fn checked(self, fields: &[&Field], rules: Rules) -> Result<Vec<String>, ApiError> {
        for (location, name) in &self.names {
            if let Some(problem) = problem(name, *location, fields, rules) {
                return Err(ApiError::field("unknown_parameter", *location, name, &problem));
            }
        }
        let more = self.has_more.then(|| MORE.to_owned());
        Ok(self.names.into_iter().map(|(_, name)| name).chain(more).collect())
    }
}

/// The rules by which the names of one request are judged.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rules {
    /// The client's preference.
    pub handling: Handling,
    /// Whether the operation changes data.
    pub is_mutation: bool,
}

/// Returns our parameter for a name that other products use.
pub fn synonym(name: &str) -> Option<&'static str> {
    SYNONYMS.iter().find(|(other, _)| *other == name).map(|(_, meant)| *meant)
}

/// Returns the reason for refusing a name, if there is one.
fn problem(name: &str, location: Location, fields: &[&Field], rules: Rules) -> Option<String> {
    if rules.handling == Handling::Lenient {
        return None;
    }
    if let Some(field) = fields.iter().find(|field| field.names().any(|known| known == name)) {
        let (belongs, came) = (field.location.as_str(), location.as_str());
        return Some(format!("must be sent in the {belongs}, not in the {came}"));
    }
    let distances = fields.iter().flat_map(|field| field.names()).map(|known| {
        let chars = known.chars().count().min(name.chars().count());
        (osa_distance(known, name), if chars > SHORT_CHARS_MAX { 2 } else { 1 }, known)
    });
    let similar = distances.clone().filter(|(edits, edits_max, _)| edits <= edits_max).min();
    let is_address =
        rules.is_mutation && ADDRESSES.iter().any(|beginning| name.starts_with(beginning));
    let is_refused = similar.is_some() || is_address || rules.handling == Handling::Strict;
    let knows = |meant: &&str| fields.iter().any(|field| field.names().any(|name| name == *meant));
    let nearest = || distances.filter(|_| is_address).min();
    let meant = synonym(name).filter(knows);
    let meant = meant.or_else(|| similar.or_else(nearest).map(|(_, _, known)| known));
    is_refused.then(|| match meant {
        Some(known) => format!("is not a parameter of this operation; did you mean {known}?"),
        None => "is not a parameter of this operation".to_owned(),
    })
}

/// Sorts and deduplicates ignored names, and cuts the list at its maximum length.
pub(super) fn cut(names: &mut Vec<String>) {
    names.sort_unstable();
    names.dedup();
    let count = names.len();
    names.retain(|name| name != MORE);
    if count > names.len() || count > NAMES_MAX {
        names.truncate(NAMES_MAX);
        names.push(MORE.to_owned());
    }
}

/// Returns the full name of an ignored name within the member `outer`.
pub(super) fn inside(outer: &str, name: &str) -> String {
    if name == MORE { MORE.to_owned() } else { format!("{outer}.{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::field::Kind;

    static QUERY: Field =
        Field::body("query", Kind::Text { chars_max: 9, is_filled: true }, "a query");
    static TENANT: Field = Field::body("tenant_id", Kind::Identifier, "a tenant");
    static MAX: Field = Field::body("max_chunks", Kind::Alpha, "a number").or(&["top_n"]);
    static FIELDS: &[&Field] = &[&QUERY, &TENANT, &MAX];

    fn check(name: &str, rules: Rules) -> Result<Vec<String>, String> {
        let mut unknown = Unknown::default();
        unknown.add_all(Location::Body, [name, name].into_iter(), FIELDS);
        unknown.checked(FIELDS, rules).map_err(|error| {
            assert_eq!(error.reason(), "unknown_parameter");
            error.message().to_owned()
        })
    }

    fn meant(name: &str, rules: Rules) -> Option<String> {
        let message = check(name, rules).err()?;
        Some(message.rsplit_once("did you mean ")?.1.trim_end_matches('?').to_owned())
    }

    #[test]
    fn similar_names_are_mistakes_and_others_are_ignored() {
        let read = Rules::default();
        for (name, known) in [
            ("max_chunk", Some("max_chunks")),
            ("maxchunks", Some("max_chunks")),
            ("mx_chnks", Some("max_chunks")),
            ("qurey", Some("query")),
            ("topn", Some("top_n")),
            ("tennant_id", Some("tenant_id")),
            ("top_10", None),
            ("chunks", None),
            ("tenant", None),
            ("question", None),
        ] {
            assert_eq!(meant(name, read).as_deref(), known, "{name}");
        }
        assert_eq!(check("question", read), Ok(vec!["question".to_owned()]));
        assert_eq!(check("query", read), Ok(Vec::new()));
    }

    #[test]
    fn a_write_takes_no_other_address() {
        let write = Rules { is_mutation: true, ..Rules::default() };
        assert_eq!(meant("tenant", write).as_deref(), Some("tenant_id"));
        assert!(check("source_identifier", write).is_err());
        assert_eq!(check("question", write), Ok(vec!["question".to_owned()]));
        let lenient = Rules { handling: Handling::Lenient, ..write };
        assert_eq!(check("tenant", lenient), Ok(vec!["tenant".to_owned()]));
        let strict = Rules { handling: Handling::Strict, ..Rules::default() };
        assert!(check("question", strict).is_err());
        assert_eq!(meant("tenant", strict).as_deref(), Some("tenant_id"));
    }

    #[test]
    fn a_preference_stands_among_others() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append("prefer", value.parse().unwrap());
            }
            Handling::of(&headers)
        };
        assert_eq!(of(&[]), Handling::Usual);
        assert_eq!(of(&["return=minimal, Handling = \"strict\""]), Handling::Strict);
        assert_eq!(of(&["wait=10", "handling=lenient; x=1, handling=strict"]), Handling::Lenient);
        assert_eq!(of(&["handling=odd"]), Handling::Usual);
    }

    #[test]
    fn a_flood_of_names_is_cut() {
        let mut unknown = Unknown::default();
        for number in 0..1000 {
            unknown.add(Location::Body, &format!("{number}{}", "é".repeat(1000)));
        }
        let mut names = unknown.checked(FIELDS, Rules::default()).unwrap();
        assert_eq!((names.len(), names[0].chars().count()), (NAMES_MAX + 1, NAME_CHARS_MAX));
        let mut inner: Vec<String> = names.iter().map(|name| inside("list", name)).collect();
        for names in [&mut names, &mut inner] {
            cut(names);
            assert_eq!((names.len(), names[NAMES_MAX].as_str()), (NAMES_MAX + 1, MORE));
        }
        let mut few: Vec<String> = (0..NAMES_MAX).map(|number| number.to_string()).collect();
        let mut many = [few.clone(), vec!["x".to_owned()]].concat();
        cut(&mut few);
        cut(&mut many);
        assert_eq!((few.len(), &few[NAMES_MAX - 1], &many[NAMES_MAX][..]), (32, &"9".into(), MORE));
    }
}
