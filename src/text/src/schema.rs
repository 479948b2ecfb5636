//! The three fields of the index.

use serde::{Deserialize, Serialize};
use tantivy::schema::{Field as Column, IndexRecordOption, Schema, TextFieldIndexing, TextOptions};

use crate::tokens::{HYBRID, WHOLE};

/// A field of the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Field {
    /// Analysed text and searchable values.
    Body,
    /// Analysed title.
    Title,
    /// Whole words of text and searchable values, with positions.
    Words,
}

impl Field {
    /// All fields, in index order.
    pub(super) const ALL: [Self; 3] = [Self::Body, Self::Title, Self::Words];

    /// The field's index in [`Self::ALL`].
    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// The index library's field.
    pub(super) fn column(self) -> Column {
        Column::from_field_id(self as u32)
    }
}

/// The index schema. Nothing is stored and there are no fast fields: the segment itself stores
/// texts and values.
pub(super) fn schema() -> Schema {
    let text = |tokenizer, record| {
        let indexing =
            TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(record);
        TextOptions::default().set_indexing_options(indexing)
    };
    let mut schema = Schema::builder();
    schema.add_text_field("body", text(HYBRID, IndexRecordOption::WithFreqs));
    schema.add_text_field("title", text(HYBRID, IndexRecordOption::WithFreqs));
    schema.add_text_field("words", text(WHOLE, IndexRecordOption::WithFreqsAndPositions));
    schema.build()
}
