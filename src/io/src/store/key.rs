//! Names of blobs.

use std::fmt;
use std::sync::Arc;

use crate::store::StoreError;

/// First component of every key: the version of the layout.
const FIRST_COMPONENT: &str = "v1";
/// Maximum bytes of one component.
const COMPONENT_BYTES_MAX: usize = 128;
/// Maximum bytes of a key; a limit of object stores.
const KEY_BYTES_MAX: usize = 1024;

/// The name of a blob, or a prefix of such names: `v1/` and one or more components of
/// `[A-Za-z0-9._-]{1,128}`, none of them `.` or `..`, joined by `/`; at most 1,024 bytes. Keys sort
/// by bytes. A key is safe as a relative path and never contains user-chosen names.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Arc<str>);

impl Key {
    /// Validates a name.
    ///
    /// # Errors
    /// [`StoreError::InvalidKey`] with the violated rule.
    pub fn parse(name: &str) -> Result<Self, StoreError> {
        match problem_of(name) {
            None => Ok(Self(name.into())),
            Some(problem) => Err(StoreError::InvalidKey { key: name.to_owned(), problem }),
        }
    }

    /// Appends components, separated by `/`.
    ///
    /// # Errors
    /// [`StoreError::InvalidKey`] with the violated rule.
    pub fn join(&self, more: &str) -> Result<Self, StoreError> {
        Self::parse(&format!("{self}/{more}"))
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether the key equals `prefix` or lies below it.
    pub fn begins_with(&self, prefix: &Self) -> bool {
        let rest = self.0.strip_prefix(&*prefix.0);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// The last component.
    pub fn last(&self) -> &str {
        self.0.rsplit('/').next().expect("a key has components")
    }
}

fn problem_of(name: &str) -> Option<&'static str> {
    if name.len() > KEY_BYTES_MAX {
        return Some("is longer than 1024 bytes");
    }
    let mut components = name.split('/');
    if components.next() != Some(FIRST_COMPONENT) {
        return Some("does not begin with 'v1/'");
    }
    let mut count = 0;
    for component in components {
        count += 1;
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        if component.is_empty() {
            return Some("has an empty component");
        }
        if component.len() > COMPONENT_BYTES_MAX {
            return Some("has a component longer than 128 bytes");
        }
        if component == "." || component == ".." {
            return Some("has a component '.' or '..'");
        }
        if !component.bytes().all(is_allowed) {
            return Some("may only contain ASCII letters, digits and . _ -");
        }
    }
    (count == 0).then_some("names nothing below 'v1'")
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", &*self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_types::ErrorKind;

    #[test]
    fn keys_follow_the_grammar() {
        let long = format!("v1/{}", "x".repeat(128));
        for good in ["v1/a", "v1/c/0123/m/00000000000000000001", "v1/..a/a..", "v1/-", &long] {
            assert_eq!(Key::parse(good).unwrap().as_str(), good);
        }
        let too_long = format!("v1/{}", "x".repeat(129));
        let too_deep = format!("v1{}", "/abcdefg".repeat(128));
        for bad in [
            "", "v1", "v1/", "/v1/a", "v2/a", "v1a/b", "v1/a/", "v1//a", "v1/.", "v1/../a",
            "v1/a/..", "v1/a b", "v1/a\\b", "v1/é", "v1/a\0", "v1/a:b", &too_long, &too_deep,
        ] {
            let error = Key::parse(bad).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Internal, "users make no keys: {error}");
            assert!(error.to_string().starts_with(&format!("key {bad:?} ")), "{error}");
        }
        let shown = format!("{:?}", Key::parse("v1/a").unwrap());
        assert_eq!(shown, "\"v1/a\"", "as a name in messages");
    }

    #[test]
    fn joining_keeps_the_grammar() {
        let key = Key::parse("v1/c").unwrap();
        assert_eq!(key.join("x/m").unwrap().as_str(), "v1/c/x/m");
        assert_eq!(key.join("x/m").unwrap().last(), "m");
        assert!(key.join("../x").is_err());
        assert!(key.join("").is_err());
    }
}
