//! Client data attached to one vector: an id chosen by the client, and metadata.
//!
//! A segment stores it as the text of the row, so it takes no space where there is none and moves
//! with the row. Keyword search does not read it.

use serde::{Deserialize, Serialize};

use crate::{Metadata, SourceId};

/// Id and metadata of a client vector.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RowPayload {
    /// The chunk id chosen by the client; `None` where it is derived from batch and index.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The metadata; `None` where the client sent none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

impl RowPayload {
    /// Serialises to the text stored in the segment; empty if there is nothing to store.
    pub fn to_text(&self) -> String {
        match (&self.id, &self.metadata) {
            (None, None) => String::new(),
            _ => serde_json::to_string(self).expect("texts and maps always print"),
        }
    }

    /// Parses the output of [`Self::to_text`].
    ///
    /// # Errors
    /// The JSON error if the text is not a payload.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        match text {
            "" => Ok(Self::default()),
            text => serde_json::from_str(text),
        }
    }
}

/// Builds the derived chunk id of row `index` of a batch.
pub fn derived_chunk_id(batch: &str, index: u32) -> String {
    format!("{batch}_{index}")
}

/// Splits a derived chunk id, at its last underscore, into the batch and the decimal row index.
pub fn split_chunk_id(chunk_id: &str) -> Option<(SourceId, u32)> {
    let (batch, index) = chunk_id.rsplit_once('_')?;
    // Each index has exactly one spelling: no sign and no leading zero.
    let is_canonical = index == "0" || !index.starts_with(['0', '+']);
    let index = index.parse().ok().filter(|_| is_canonical)?;
    Some((SourceId::parse(batch).ok()?, index))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn payloads_survive_and_nothing_takes_no_room() {
        let metadata = json!({"n": 0.1, "big": u64::MAX, "of": {"x": [null, "é"]}});
        let whole =
            RowPayload { id: Some("own".to_owned()), metadata: metadata.as_object().cloned() };
        assert_eq!(RowPayload::parse(&whole.to_text()).unwrap(), whole);
        assert_eq!(RowPayload::default().to_text(), "");
        assert_eq!(RowPayload::parse("").unwrap(), RowPayload::default());
        assert!(RowPayload::parse("{").is_err());
    }

    #[test]
    fn derived_ids_are_split_at_the_last_underscore() {
        let (batch, index) = split_chunk_id("a_b_12").unwrap();
        assert_eq!((batch.as_str(), index), ("a_b", 12));
        assert_eq!(derived_chunk_id("a_b", 12), "a_b_12");
        for bad in ["", "a", "_1", "a_", "a_x", "a_+1", "a_01", "a_-1", "a_4294967296", "a/b_1"] {
            assert!(split_chunk_id(bad).is_none(), "{bad}");
        }
    }
}
