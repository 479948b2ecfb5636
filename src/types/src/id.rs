//! Identifiers. Names chosen by users are validated once, here, and never appear in a path.

use std::fmt;
use std::sync::Arc;

use unicode_normalization::UnicodeNormalization;
use uuid::Uuid;

use crate::limits;

/// A user-chosen name that breaks a rule for identifiers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {problem}")]
pub struct InvalidIdentifier {
    /// The field that carried the name, as the caller spelled it.
    pub field: &'static str,
    /// The rule it breaks, including the limit.
    pub problem: &'static str,
}

/// Normalises a name to Unicode NFC, the form in which names are stored and compared.
pub fn normalized(name: &str) -> String {
    name.nfc().collect()
}

fn check_length(field: &'static str, name: &str) -> Result<(), InvalidIdentifier> {
    if name.is_empty() {
        return Err(InvalidIdentifier { field, problem: "must not be empty" });
    }
    if name.chars().count() > limits::ID_CHARS_MAX {
        return Err(InvalidIdentifier { field, problem: "is longer than 256 characters" });
    }
    if name == "." || name == ".." {
        return Err(InvalidIdentifier { field, problem: "must not be '.' or '..'" });
    }
    Ok(())
}

/// Checks a tenant or sub-tenant name: ASCII letters, digits and `. _ - : @ # $ + = ~`, starting
/// with a letter or a digit.
fn check_scope_name(field: &'static str, name: &str) -> Result<(), InvalidIdentifier> {
    check_length(field, name)?;
    let first_is_alphanumeric = name.as_bytes()[0].is_ascii_alphanumeric();
    if !first_is_alphanumeric {
        return Err(InvalidIdentifier { field, problem: "must begin with a letter or a digit" });
    }
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-:@#$+=~".contains(&b);
    if !name.bytes().all(is_allowed) {
        let problem = "may only contain ASCII letters, digits and . _ - : @ # $ + = ~";
        return Err(InvalidIdentifier { field, problem });
    }
    Ok(())
}

/// Checks a source, memory or session name: any Unicode except control characters, line and
/// paragraph separators, slash and backslash; no leading or trailing white space; at most 1,024
/// bytes.
fn check_content_name(field: &'static str, name: &str) -> Result<(), InvalidIdentifier> {
    check_length(field, name)?;
    if name.len() > limits::ID_BYTES_MAX {
        return Err(InvalidIdentifier { field, problem: "is longer than 1024 bytes" });
    }
    if name.trim() != name {
        return Err(InvalidIdentifier { field, problem: "must not begin or end with white space" });
    }
    let is_refused = |c: char| c.is_control() || matches!(c, '/' | '\\' | '\u{2028}' | '\u{2029}');
    if name.chars().any(is_refused) {
        let problem = "must not contain control characters, line separators, '/' or '\\'";
        return Err(InvalidIdentifier { field, problem });
    }
    Ok(())
}

macro_rules! user_name {
    ($(#[$doc:meta])* $name:ident, $field:literal, $check:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Validates and normalises (Unicode NFC) a name.
            ///
            /// # Errors
            /// [`InvalidIdentifier`] names the rule that is broken.
            pub fn parse(name: &str) -> Result<Self, InvalidIdentifier> {
                Self::parse_field($field, name)
            }

            /// Like [`Self::parse`], but errors name the field as the caller spelled it.
            ///
            /// # Errors
            /// [`InvalidIdentifier`] names the rule that is broken.
            pub fn parse_field(
                field: &'static str,
                name: &str,
            ) -> Result<Self, InvalidIdentifier> {
                let name = normalized(name);
                $check(field, &name)?;
                Ok(Self(name.into()))
            }

            /// The name, in Unicode NFC.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", &*self.0)
            }
        }
    };
}

user_name!(
    /// A tenant: the unit of isolation, placement and deletion.
    TenantId, "tenant_id", check_scope_name
);
user_name!(
    /// A sub-tenant: an isolated part of one tenant. Every tenant has one called `default`.
    SubTenantId, "sub_tenant_id", check_scope_name
);
user_name!(
    /// A source (also called file) inside one scope.
    SourceId, "file_id", check_content_name
);
user_name!(
    /// A conversation inside one scope.
    SessionId, "session_id", check_content_name
);

/// First character of the name of a memory scope; no user-chosen name begins with it.
const MEMORIES_MARK: char = '!';

impl SubTenantId {
    /// The sub-tenant that every tenant has.
    pub const DEFAULT: &'static str = "default";

    /// Returns the name `default`.
    pub fn default_name() -> Self {
        Self(Self::DEFAULT.into())
    }

    /// Returns the scope that holds the memories of this sub-tenant. Clients cannot name it,
    /// because its first character is not allowed in user-chosen names: only memory operations
    /// reach it. Segments, filters, scores, deletion and recovery treat it like any other scope.
    /// The catalog has no sub-tenant of this name.
    #[must_use]
    pub fn of_memories(&self) -> Self {
        debug_assert!(!self.is_of_memories(), "memories have no memories");
        Self(format!("{MEMORIES_MARK}{}", self.0).into())
    }

    /// Whether this scope holds the memories of a sub-tenant.
    pub fn is_of_memories(&self) -> bool {
        self.0.starts_with(MEMORIES_MARK)
    }

    /// Returns the sub-tenant that the user named: this one, or the one whose memories this scope
    /// holds.
    #[must_use]
    pub fn named(&self) -> Self {
        Self(self.0.strip_prefix(MEMORIES_MARK).unwrap_or(&self.0).into())
    }

    /// Parses a stored name: a user-chosen one, or the scope of its memories.
    ///
    /// # Errors
    /// [`InvalidIdentifier`] names the rule that is broken.
    pub fn parse_stored(name: &str) -> Result<Self, InvalidIdentifier> {
        match name.strip_prefix(MEMORIES_MARK) {
            Some(named) => Ok(Self::parse(named)?.of_memories()),
            None => Self::parse(name),
        }
    }

    /// Whether this is the protected sub-tenant `default`.
    pub fn is_default(&self) -> bool {
        &*self.0 == Self::DEFAULT
    }

    /// Parses an optional name; absent and empty both mean `default`.
    ///
    /// # Errors
    /// [`InvalidIdentifier`] if a name is given and breaks the rules.
    pub fn parse_optional(name: Option<&str>) -> Result<Self, InvalidIdentifier> {
        match name {
            None | Some("") => Ok(Self::default_name()),
            Some(name) => Self::parse(name),
        }
    }
}

macro_rules! opaque_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub Uuid);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}", self.0.as_simple())
            }
        }

        impl std::str::FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                Uuid::try_parse(text).map(Self)
            }
        }
    };
}

opaque_id!(
    /// The storage of one tenant. Opaque, so that no user-chosen name is ever part of a path and
    /// the name of a deleted tenant can be reused at once.
    CollectionId
);
opaque_id!(
    /// One immutable segment file of a collection.
    SegmentId
);

/// A row of one segment: its position in every column, which is also its tantivy document id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RowId(pub u32);

/// The position of an accepted operation in the server-wide order of acceptance. Of two operations
/// on the same source, the one with the higher sequence wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sequence(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scope_names_follow_the_grammar() {
        for good in ["a", "0", "a.b_c-d:e@f#g$h+i=j~k", &"x".repeat(256)] {
            assert_eq!(TenantId::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", ".", "..", "_a", "-a", "a/b", "a\\b", "a b", "é", "a\0", &"x".repeat(257)]
        {
            assert!(TenantId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn source_names_are_any_text_without_separators() {
        for good in ["a b", "日本語", "..a", "x.pdf", &"é".repeat(256)] {
            assert!(SourceId::parse(good).is_ok(), "{good:?}");
        }
        let long_in_bytes = "\u{1F600}".repeat(256);
        assert_eq!(long_in_bytes.len(), 1024);
        assert!(SourceId::parse(&long_in_bytes).is_ok());
        for bad in [" a", "a ", "a\tb", "a/b", "a\\b", "\u{2028}", "a\0", &"é".repeat(257)] {
            assert!(SourceId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn names_are_compared_after_normalisation() {
        assert_eq!(SourceId::parse("e\u{301}").unwrap(), SourceId::parse("é").unwrap());
    }

    #[test]
    fn no_user_can_name_a_scope_of_memories() {
        let named = SubTenantId::parse("team").unwrap();
        let hidden = named.of_memories();
        assert!(hidden.is_of_memories() && !named.is_of_memories() && hidden != named);
        assert!(SubTenantId::parse(hidden.as_str()).is_err());
        assert_eq!(SubTenantId::parse_stored(hidden.as_str()).unwrap(), hidden);
        assert_eq!(SubTenantId::parse_stored("team").unwrap(), named);
        assert_eq!((hidden.named(), named.named()), (named.clone(), named));
        for bad in ["!", "!!team", "!te/am", "! team", ""] {
            assert!(SubTenantId::parse_stored(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_absent_sub_tenant_is_default() {
        for absent in [None, Some(""), Some("default")] {
            assert!(SubTenantId::parse_optional(absent).unwrap().is_default());
        }
    }
}
