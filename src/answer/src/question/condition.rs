//! Conditions that questions set to values: "over 25 kg", "before May 2024", "3 or more", "between
//! 2 and 5".

use std::ops::Range;

use crate::text::values::Day;

/// Relation of a value to a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Over,
    From,
    Under,
    UpTo,
    Exactly,
}

impl Relation {
    /// The opposite relation; `Exactly` stays.
    pub(crate) fn denied(self) -> Self {
        match self {
            Self::Over => Self::UpTo,
            Self::From => Self::Under,
            Self::Under => Self::From,
            Self::UpTo => Self::Over,
            Self::Exactly => Self::Exactly,
        }
    }
}

/// A condition on values: a relation to a bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Condition {
    pub(crate) relation: Relation,
    pub(crate) bound: Bound,
    /// Bytes of the condition in the question, including its phrase.
    pub(crate) bytes: Range<usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Bound {
    Number {
        value: f64,
        unit: String,
    },
    Day(Day),
    Year(u32),
    /// A time of day, in minutes.
    Time(f64),
}

/// A question without its conditions.
pub(crate) fn unbound(question: &str, conditions: &[Condition]) -> String {
    let mut places: Vec<&Range<usize>> = conditions.iter().map(|one| &one.bytes).collect();
    places.sort_by_key(|bytes| bytes.start);
    let (mut rest, mut at) = (String::with_capacity(question.len()), 0);
    for bytes in places {
        rest.push_str(question.get(at..bytes.start).unwrap_or_default());
        rest.push(' ');
        at = at.max(bytes.end);
    }
    rest + &question[at..]
}
