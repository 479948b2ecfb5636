//! The vectors of a sparse model: those of a row, and of all rows by their terms. Their format is
//! that of [`ImpactIndex`].

use std::sync::Arc;

use crate::segment::format::Section;
use crate::segment::section::LazySection;
use crate::segment::{Segment, SegmentError};
use lodestone_text::{ImpactIndex, SparseModelId};

/// The vector of a row by a sparse model.
#[derive(Debug, Clone, PartialEq)]
pub struct SparseRow {
    /// The model.
    pub model: SparseModelId,
    /// Tokens of the model's vocabulary, each once, with weights greater than 0.
    pub weights: Vec<(u32, f32)>,
}

/// The model that all rows have vectors of, if there is one.
pub(super) fn model_of_all<'a>(
    mut rows: impl Iterator<Item = Option<&'a SparseRow>>,
) -> Option<SparseModelId> {
    let first = rows.next()??.model;
    rows.all(|row| row.is_some_and(|row| row.model == first)).then_some(first)
}

/// The weights of a row; none without a vector.
pub(super) fn weights(row: Option<&SparseRow>) -> &[(u32, f32)] {
    row.map_or(&[], |row| &row.weights)
}

impl Segment {
    /// The vectors of a sparse model by their terms, read in place; `None` where rows have none.
    ///
    /// # Errors
    /// [`SegmentError::Text`] where a rule of the section does not hold; damage of the file.
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
