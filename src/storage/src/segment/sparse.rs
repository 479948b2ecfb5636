//! Vectors of a sparse model: per row while a segment is written, and inverted by term in the open
//! segment. [`ImpactIndex`] defines their format.

use std::sync::Arc;

use crate::segment::format::Section;
use crate::segment::section::LazySection;
use crate::segment::{Segment, SegmentError};
use lodestone_text::{ImpactIndex, SparseModelId};

/// A row's vector from a sparse model.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseRow {
    /// The model that produced the vector.
    pub model: SparseModelId,
    /// Tokens of the model's vocabulary, each once, with weights greater than 0.
    pub weights: Vec<(u32, f32)>,
}

/// Returns the one model that every row has a vector of, if there is such a model.
pub(super) fn model_of_all<'a>(
    mut rows: impl Iterator<Item = Option<&'a SparseRow>>,
) -> Option<SparseModelId> {
    let first = rows.next()??.model;
    rows.all(|row| row.is_some_and(|row| row.model == first)).then_some(first)
}

/// The weights of a row; empty if it has no vector.
pub(super) fn weights(row: Option<&SparseRow>) -> &[(u32, f32)] {
    row.map_or(&[], |row| &row.weights)
}

impl Segment {
    /// The inverted index of the sparse vectors, read in place; `None` if the rows have none.
    ///
    /// # Errors
    /// [`SegmentError::Text`] if the section breaks a rule of its format; damage of the file.
    pub fn impacts(&self) -> Result<Option<&ImpactIndex>, SegmentError> {
        if self.impacts.get().is_none() {
            if self.footer.entry(Section::Sparse).is_none() {
                return Ok(None);
            }
            let section = LazySection::new(&self.file, self.place_of(Section::Sparse)?)?;
            let opened = ImpactIndex::open(Arc::new(section), self.header.rows)?;
            self.impacts.get_or_init(|| opened);
        }
        Ok(self.impacts.get())
    }
}
