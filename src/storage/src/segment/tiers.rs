//! The vector tiers of an open segment, T0 to T2. Blocks are verified when they are first read.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::segment::flat::Tiers;
use crate::segment::format::{Section, VectorKind, place_of};
use crate::segment::lists::Lists;
use crate::segment::lists::view::HEAD_BYTES;
use crate::segment::tier_blocks::{ListSections, TierBlocks, Unverified, VectorSections};
use crate::segment::{Segment, SegmentError};
use lodestone_compute::one_bit::block_bytes;
use lodestone_compute::rotation::{Rotation, rotated_width};
use lodestone_compute::{FullRows, RowsOwner, VectorRows, code_stride};
use lodestone_io::{BlockFile, IoError};
use lodestone_types::RowId;

impl VectorSections {
    fn all(&self) -> impl Iterator<Item = &Unverified> {
        let lists = self.lists.iter().flat_map(|lists| [&lists.lists, &lists.one_bit]);
        [&self.codes, &self.factors, &self.originals, &self.norms].into_iter().chain(lists)
    }

    fn verify_all(&self, file: &BlockFile) -> Result<(), IoError> {
        self.all().try_for_each(|section| file.verify(section.place.clone()))
    }

    /// Whether every block is verified.
    fn is_verified(&self, file: &BlockFile) -> bool {
        let is_verified = self.is_verified.get().is_some()
            || self.all().all(|section| file.is_verified(&section.place));
        if is_verified {
            self.is_verified.get_or_init(|| ());
        }
        is_verified
    }
}

impl Segment {
    /// T1 and T2 of all rows, verified up front. For callers that read most rows.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] if a checksum does not match or a section has the wrong length.
    pub fn vectors(&self) -> Result<VectorRows<'_>, SegmentError> {
        let sections = self.vector_sections()?;
        let VectorSections { codes, factors, originals, norms, .. } = sections;
        for section in [codes, factors, originals, norms] {
            self.file.verify(section.place.clone())?;
        }
        self.view(sections)
    }

    /// T1 and T2, verified only for `rows`; nothing else may be read.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub(super) fn vectors_of(
        &self,
        rows: impl IntoIterator<Item = RowId>,
    ) -> Result<VectorRows<'_>, SegmentError> {
        let sections = self.vector_sections()?;
        let view = self.view(sections)?;
        if let Some(blocks) = self.blocks(sections) {
            for RowId(row) in rows {
                blocks.check_codes(row as usize)?;
                blocks.check_original(row as usize)?;
            }
        }
        Ok(view)
    }

    /// T1 and T2 with only T2 of `rows` verified; nothing else may be read.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn originals_of(
        &self,
        rows: impl IntoIterator<Item = RowId>,
    ) -> Result<VectorRows<'_>, SegmentError> {
        let sections = self.vector_sections()?;
        let view = self.view(sections)?;
        if let Some(blocks) = self.blocks(sections) {
            rows.into_iter().try_for_each(|row| blocks.check_original(row.0 as usize))?;
        }
        Ok(view)
    }

    /// The inverted lists, fully verified and checked; `None` in segments with few rows.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn lists(&self) -> Result<Option<Lists<'_>>, SegmentError> {
        let sections = self.vector_sections()?;
        let Some(ListSections { lists, one_bit, .. }) = &sections.lists else { return Ok(None) };
        self.file.verify(lists.place.clone())?;
        self.file.verify(one_bit.place.clone())?;
        let (lists, _) = self.listed(sections)?.expect("there are lists");
        lists.check(self.header.rows as usize).map_err(|problem| self.damaged(problem))?;
        Ok(Some(lists))
    }

    /// The vector tiers and lists for a search, which verifies what it reads as it goes. Damage
    /// does not end the search: the caller calls [`Self::check`] afterwards.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn tiers(&self) -> Result<Tiers<'_>, SegmentError> {
        let sections = self.vector_sections()?;
        let blocks = self.blocks(sections);
        Ok(Tiers::new(self.view(sections)?, self.listed(sections)?).behind(blocks))
    }

    /// The tiers for a search whose backend may cache the rows.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn shared_tiers(self: &Arc<Self>) -> Result<Tiers<'_>, SegmentError> {
        let mut tiers = self.tiers()?;
        tiers.rows = tiers.rows.with_owner(self.meta.id.0.as_u128(), self);
        Ok(tiers)
    }

    /// Verifies all vectors and lists up front, so that no search has to.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn prepare_vectors(&self) -> Result<(), SegmentError> {
        Ok(self.vector_sections()?.verify_all(&self.file)?)
    }

    fn view<'a>(&'a self, sections: &'a VectorSections) -> Result<VectorRows<'a>, SegmentError> {
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
        VectorRows::new(self.dimension(), codes, scales, residuals, full)
            .map_err(|error| self.damaged(error.to_string()))
    }

    fn listed<'a>(
        &self,
        sections: &'a VectorSections,
    ) -> Result<Option<(Lists<'a>, &'a Rotation)>, SegmentError> {
        let Some(ListSections { lists, one_bit, rotation, .. }) = &sections.lists else {
            return Ok(None);
        };
        let lists = Lists::view(self.dimension(), &lists.bytes, &one_bit.bytes);
        Ok(Some((lists.map_err(|problem| self.damaged(problem))?, rotation)))
    }

    /// The verifier of the vector blocks; `None` once all are verified.
    fn blocks<'a>(&'a self, sections: &'a VectorSections) -> Option<TierBlocks<'a>> {
        (!sections.is_verified(&self.file)).then(|| TierBlocks {
            file: &self.file,
            sections,
            rows: self.header.rows as usize,
            code_bytes: code_stride(self.dimension()),
            original_bytes: self.dimension() * self.header.vector_kind.component_bytes(),
            one_bit_bytes: block_bytes(rotated_width(self.dimension())),
        })
    }

    fn vector_sections(&self) -> Result<&VectorSections, SegmentError> {
        if self.vectors.get().is_none() {
            let opened = self.open_vectors()?;
            self.vectors.get_or_init(|| opened);
        }
        Ok(self.vectors.get().expect("just opened"))
    }

    /// Locates the sections. Verifies only the arrays of the lists, which every search reads.
    fn open_vectors(&self) -> Result<VectorSections, SegmentError> {
        let name = self.meta.id.to_string();
        let section = |section| -> Result<Unverified, SegmentError> {
            let place = place_of(&name, &self.footer, section)?;
            Ok(Unverified { bytes: self.file.unverified(place.clone())?, place })
        };
        let mut sections = VectorSections {
            codes: section(Section::Codes)?,
            factors: section(Section::Factors)?,
            originals: section(Section::Originals)?,
            norms: section(Section::Norms)?,
            lists: None,
            is_verified: OnceLock::new(),
        };
        if self.footer.entry(Section::Lists).is_some() {
            let (lists, one_bit) = (section(Section::Lists)?, section(Section::OneBit)?);
            let verify = |range: Range<usize>| {
                let range = lists.place.start + range.start..lists.place.start + range.end;
                self.file.verify(range)
            };
            verify(0..HEAD_BYTES.min(lists.place.len()))?;
            let damaged = |problem| self.damaged(problem);
            let view = Lists::view(self.dimension(), &lists.bytes, &one_bit.bytes);
            let view = view.map_err(damaged)?;
            let slots_at = lists.place.len() - size_of_val(view.slots());
            verify(0..slots_at)?;
            view.check_order(self.header.rows as usize).map_err(damaged)?;
            let rotation = Rotation::new(self.dimension());
            // A search through lists reads a few hundred rows of T1, some of T2 and some texts.
            let texts = place_of(&name, &self.footer, Section::Texts)?;
            let VectorSections { codes, factors, originals, norms, .. } = &sections;
            let rows = [codes, factors, originals, norms].map(|section| section.place.clone());
            for place in rows.into_iter().chain([texts]) {
                self.file.mapped().expect_single_reads(place);
            }
            sections.lists = Some(ListSections { lists, slots_at, one_bit, rotation });
        }
        Ok(sections)
    }

    fn cast<'a, T: bytemuck::AnyBitPattern>(
        &self,
        section: &'a Unverified,
    ) -> Result<&'a [T], SegmentError> {
        bytemuck::try_cast_slice(&section.bytes)
            .map_err(|error| self.damaged(format!("a vector section is malformed: {error}")))
    }

    /// The original vector of a row, scaled to length 1; zeros for a zero vector.
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

    /// The original vector of a row: exactly the numbers the client sent, or the stored half
    /// floats.
    ///
    /// # Errors
    /// As [`Self::vectors`].
    pub fn original_vector(&self, row: RowId) -> Result<Vec<f32>, SegmentError> {
        let vectors = self.originals_of([row])?;
        let range = row.0 as usize * self.dimension()..(row.0 as usize + 1) * self.dimension();
        let vector = match vectors.full() {
            FullRows::F16(bits) => bits
                .get(range)
                .map(|bits| bits.iter().map(|bits| half::f16::from_bits(*bits).to_f32()).collect()),
            FullRows::F32 { values, .. } => values.get(range).map(<[f32]>::to_vec),
        };
        self.check()?;
        vector.ok_or_else(|| self.damaged("it has no such row"))
    }
}

/// Damage is remembered by the file, as it is after a search.
impl RowsOwner for Segment {
    fn rows(&self) -> Option<VectorRows<'_>> {
        self.prepare_vectors().ok()?;
        self.vectors().ok()
    }
}
