//! The vectors of an open segment: T0 to T2, verified together when they are first used.

use bytes::Bytes;

use crate::segment::flat::Tiers;
use crate::segment::format::{Section, VectorKind, section_bytes};
use crate::segment::lists::Lists;
use crate::segment::{Segment, SegmentError};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{FullRows, VectorRows};
use lodestone_types::RowId;

/// The vector sections. Verified on the first vector search, so that listing an idle tenant does
/// not read its vectors.
#[derive(Debug)]
pub(super) struct VectorSections {
    codes: Bytes,
    factors: Bytes,
    originals: Bytes,
    norms: Bytes,
    lists: Option<ListSections>,
}

#[derive(Debug)]
struct ListSections {
    lists: Bytes,
    one_bit: Bytes,
    rotation: Rotation,
}

impl Segment {
    /// The vector tiers.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if a checksum does not match or a section has another length.
    pub fn vectors(&self) -> Result<VectorRows<'_>, SegmentError> {
        let sections = self.vector_sections()?;
        let rows = self.header.rows as usize;
        let factors = self.cast::<f32>(&sections.factors)?;
        let (scales, residuals) = factors
            .split_at_checked(rows)
            .ok_or_else(|| self.damaged("the factors have another length"))?;
        let codes = self.cast(&sections.codes)?;
        let full = match self.header.vector_kind {
            VectorKind::F16 => FullRows::F16(self.cast(&sections.originals)?),
            VectorKind::F32 => FullRows::F32 {
                values: self.cast(&sections.originals)?,
                norms: self.cast(&sections.norms)?,
            },
        };
        let view = VectorRows::new(self.dimension(), codes, scales, residuals, full)?;
        Ok(view.with_identity(self.meta.id.0.as_u128()))
    }

    /// The lists, in segments of many rows.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn lists(&self) -> Result<Option<Lists<'_>>, SegmentError> {
        Ok(self.listed()?.map(|(lists, _)| lists))
    }

    /// The vector tiers and lists that a search reads.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn tiers(&self) -> Result<Tiers<'_>, SegmentError> {
        Ok(Tiers { rows: self.vectors()?, listed: self.listed()? })
    }

    fn listed(&self) -> Result<Option<(Lists<'_>, &Rotation)>, SegmentError> {
        let Some(sections) = &self.vector_sections()?.lists else { return Ok(None) };
        let lists = Lists::view(self.dimension(), &sections.lists, &sections.one_bit);
        Ok(Some((lists.map_err(|problem| self.damaged(problem))?, &sections.rotation)))
    }

    fn vector_sections(&self) -> Result<&VectorSections, SegmentError> {
        if let Some(sections) = self.vectors.get() {
            return Ok(sections);
        }
        let _only_one = self.verifying.lock();
        if self.vectors.get().is_none() {
            self.prepare_vectors()?;
        }
        Ok(self.vectors.get().expect("prepared"))
    }

    /// Verifies the vectors, if no search has done so. For background threads, which hold no lock
    /// here: a search never waits for a thread of low priority.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn prepare_vectors(&self) -> Result<(), SegmentError> {
        if self.vectors.get().is_none() {
            let loaded = self.load_vectors()?;
            self.vectors.get_or_init(|| loaded);
        }
        Ok(())
    }

    fn load_vectors(&self) -> Result<VectorSections, SegmentError> {
        let name = self.meta.id.to_string();
        let bytes = |section| section_bytes(&name, &self.footer, &self.file, section);
        let lists = match self.footer.entry(Section::Lists) {
            None => None,
            Some(_) => {
                let rotation = Rotation::new(self.dimension());
                let (lists, one_bit) = (bytes(Section::Lists)?, bytes(Section::OneBit)?);
                let view = Lists::view(self.dimension(), &lists, &one_bit);
                let checked = view.and_then(|view| view.check(self.header.rows as usize));
                checked.map_err(|problem| self.damaged(problem))?;
                Some(ListSections { lists, one_bit, rotation })
            }
        };
        Ok(VectorSections {
            lists,
            codes: bytes(Section::Codes)?,
            factors: bytes(Section::Factors)?,
            originals: bytes(Section::Originals)?,
            norms: bytes(Section::Norms)?,
        })
    }

    fn cast<'a, T: bytemuck::AnyBitPattern>(
        &self,
        bytes: &'a [u8],
    ) -> Result<&'a [T], SegmentError> {
        bytemuck::try_cast_slice(bytes)
            .map_err(|error| self.damaged(format!("a vector section is malformed: {error}")))
    }

    /// The original vector of a row, scaled to length 1; zeroes for a zero vector.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn unit_vector(&self, row: RowId) -> Result<Vec<f32>, SegmentError> {
        let mut vector = self.original_vector(row)?;
        let norm = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        if norm > 0.0 {
            vector.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
        }
        Ok(vector)
    }

    /// The original vector of a row: exactly what the client sent, or the stored half floats.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn original_vector(&self, row: RowId) -> Result<Vec<f32>, SegmentError> {
        let vectors = self.vectors()?;
        let range = row.0 as usize * self.dimension()..(row.0 as usize + 1) * self.dimension();
        Ok(match vectors.full() {
            FullRows::F16(bits) => {
                bits[range].iter().map(|bits| half::f16::from_bits(*bits).to_f32()).collect()
            }
            FullRows::F32 { values, .. } => values[range].to_vec(),
        })
    }
}
