//! The graph of one chunk as plain data.

use std::ops::Range;

/// Maximum number of entities in one chunk.
pub const ROW_ENTITIES_MAX: usize = 128;
/// Maximum number of triplets in one chunk.
pub const ROW_TRIPLETS_MAX: usize = 128;
/// Maximum number of other keys of one entity in one chunk.
pub const ENTITY_ALIASES_MAX: usize = 4;
/// Maximum bytes of a name.
pub const NAME_BYTES_MAX: usize = 160;
/// Maximum bytes of a supporting sentence; longer ones are truncated.
pub const CONTEXT_BYTES_MAX: usize = 600;

// Triplets refer to entities of their row by one byte.
const _: () = assert!(ROW_ENTITIES_MAX <= 256);

/// Declares an enum whose values have upper-case names, and whose stored codes follow their order.
macro_rules! names {
    ($(#[$about:meta])* $type:ident { $($(#[$doc:meta])* $value:ident = $name:literal,)+ }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum $type { $($(#[$doc])* $value,)+ }

        impl $type {
            /// All values; the stored code of a value is its index. Append-only.
            pub const ALL: &[Self] = &[$(Self::$value,)+];

            /// The name used in responses.
            pub fn name(self) -> &'static str {
                match self { $(Self::$value => $name,)+ }
            }

            /// Looks up the value with this name.
            pub fn of_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }
    };
}

names! {
    /// The kind of an entity.
    EntityKind {
        /// A human being.
        Person = "PERSON",
        /// A company, an institution, or a named group of people.
        Organization = "ORGANIZATION",
        /// A place on the map, or a building.
        Location = "LOCATION",
        /// Something made to be read, heard or seen.
        Work = "WORK",
        /// Something that happens or happened at some time.
        Event = "EVENT",
        /// Something made to be used: a machine, a program, a language, a brand.
        Product = "PRODUCT",
        /// A day, month or year.
        Date = "DATE",
        /// A code, a program symbol, an address.
        Identifier = "IDENTIFIER",
        /// A word or phrase that the text defines.
        Term = "TERM",
        /// The name of anything else.
        Other = "OTHER",
    }
}

names! {
    /// The relation of a triplet's source to its target, read as "source PREDICATE target".
    Predicate {
        /// Connected in a sentence by a verb that has no predicate of its own.
        RelatedTo = "RELATED_TO",
        /// "X is a Y".
        IsA = "IS_A",
        /// Another name of the same thing.
        AlsoKnownAs = "ALSO_KNOWN_AS",
        /// A person's place of birth.
        BornIn = "BORN_IN",
        /// A person's day of birth.
        BornOn = "BORN_ON",
        /// A person's place of death.
        DiedIn = "DIED_IN",
        /// A person's day of death.
        DiedOn = "DIED_ON",
        /// A person's home.
        LivesIn = "LIVES_IN",
        /// Parent of, stated by the child.
        ChildOf = "CHILD_OF",
        /// Child of, stated by the parent.
        ParentOf = "PARENT_OF",
        /// Brother or sister.
        SiblingOf = "SIBLING_OF",
        /// Husband or wife.
        SpouseOf = "SPOUSE_OF",
        /// Nephew, uncle, cousin and so on.
        RelativeOf = "RELATIVE_OF",
        /// School or teacher of a person.
        EducatedAt = "EDUCATED_AT",
        /// Employer of a person.
        WorksFor = "WORKS_FOR",
        /// Head of an organisation, a country, a team.
        LeaderOf = "LEADER_OF",
        /// A person or a group in a larger group.
        MemberOf = "MEMBER_OF",
        /// A thing in a larger thing.
        PartOf = "PART_OF",
        /// A larger thing with its parts.
        Contains = "CONTAINS",
        /// A place.
        LocatedIn = "LOCATED_IN",
        /// Director of a film.
        DirectedBy = "DIRECTED_BY",
        /// Author of a text or composer of a piece.
        WrittenBy = "WRITTEN_BY",
        /// Producer of a film or an album; maker of goods.
        ProducedBy = "PRODUCED_BY",
        /// Singer, band or actor of a work.
        PerformedBy = "PERFORMED_BY",
        /// A film with its actors.
        Stars = "STARS",
        /// Publisher, label, distributor.
        PublishedBy = "PUBLISHED_BY",
        /// Day of publication.
        PublishedOn = "PUBLISHED_ON",
        /// Inventor, designer, architect, developer.
        CreatedBy = "CREATED_BY",
        /// Founder of an organisation or a place.
        FoundedBy = "FOUNDED_BY",
        /// Day of foundation.
        FoundedOn = "FOUNDED_ON",
        /// A purchase of one company by another.
        Acquired = "ACQUIRED",
        /// An owner or a parent company.
        OwnedBy = "OWNED_BY",
        /// The tool or means of something.
        Uses = "USES",
        /// An import, a requirement.
        DependsOn = "DEPENDS_ON",
        /// A consequence.
        Causes = "CAUSES",
        /// The model of an adaptation; the ground of a conclusion.
        BasedOn = "BASED_ON",
        /// The eponym.
        NamedAfter = "NAMED_AFTER",
        /// The predecessor in an office or a series.
        Succeeds = "SUCCEEDS",
        /// An award or a competition.
        Won = "WON",
        /// An opponent.
        Defeated = "DEFEATED",
        /// A day on which it happened.
        HappenedOn = "HAPPENED_ON",
        /// A symbol of a program that a symbol or file declares.
        Defines = "DEFINES",
        /// The kind of which a type is a special case.
        Extends = "EXTENDS",
        /// A field of a form or a table with its value.
        HasProperty = "HAS_PROPERTY",
    }
}

/// A named thing in one chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowEntity {
    /// The key, unique in the row.
    pub key: String,
    /// The longest form of the name in the text.
    pub name: String,
    /// The kind, as far as the text reveals it.
    pub kind: EntityKind,
    /// Keys of its other names in the chunk, ascending.
    pub aliases: Vec<String>,
}

/// A relation between two entities stated in one chunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowTriplet {
    /// Index of the source among the row's entities.
    pub source: u8,
    /// Index of the target; differs from the source.
    pub target: u8,
    /// The relation.
    pub predicate: Predicate,
    /// The supporting sentence as a byte range of the chunk's text; empty if the title supports it.
    pub context: Range<u32>,
}

/// The entities and the triplets of one chunk.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RowGraph {
    /// Entities in order of first mention.
    pub entities: Vec<RowEntity>,
    /// Triplets in text order.
    pub triplets: Vec<RowTriplet>,
}
