//! Parses a generator's reply item by item: unreadable items are skipped, the rest counts.

use serde_json::Value;

/// Maximum bytes of a reply.
pub const REPLY_BYTES_MAX: usize = 64 << 10;

/// An entity claimed by a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimedEntity {
    pub name: String,
    pub kind: String,
}

/// A relation claimed by a reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ClaimedTriplet {
    pub source: String,
    pub predicate: String,
    pub target: String,
    pub sentence: String,
}

/// The claims of a reply about one passage.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Claims {
    pub entities: Vec<ClaimedEntity>,
    pub triplets: Vec<ClaimedTriplet>,
}

/// Parses the claims about each of `count` passages; `None` if the reply has no JSON of the
/// expected shape. Models wrap the JSON in prose and code fences, so the outermost braces are
/// taken.
pub(super) fn claims(reply: &str, count: usize) -> Option<Vec<Claims>> {
    if reply.len() > REPLY_BYTES_MAX {
        return None;
    }
    let (start, end) = (reply.find('{')?, reply.rfind('}')?);
    let whole: Value = serde_json::from_str(reply.get(start..=end)?).ok()?;
    let passages = whole.get("passages")?.as_array()?;
    let mut claims = vec![Claims::default(); count];
    for (at, passage) in passages.iter().enumerate() {
        // If there is only one passage, its number may be missing.
        let number = passage.get("n").and_then(Value::as_u64).unwrap_or(at as u64 + 1);
        let at = usize::try_from(number).ok().and_then(|number| number.checked_sub(1));
        let Some(own) = at.and_then(|at| claims.get_mut(at)) else { continue };
        own.entities.extend(list(passage, "entities").iter().filter_map(|item| {
            let kind = text(item, "type").unwrap_or_default();
            Some(ClaimedEntity { name: text(item, "name")?, kind })
        }));
        own.triplets.extend(list(passage, "triplets").iter().filter_map(|item| {
            Some(ClaimedTriplet {
                source: text(item, "source")?,
                predicate: text(item, "predicate").unwrap_or_default(),
                target: text(item, "target")?,
                sentence: text(item, "sentence").unwrap_or_default(),
            })
        }));
    }
    Some(claims)
}

fn list<'a>(of: &'a Value, name: &str) -> &'a [Value] {
    of.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn text(of: &Value, name: &str) -> Option<String> {
    of.get(name).and_then(Value::as_str).map(|text| text.trim().to_owned())
}
