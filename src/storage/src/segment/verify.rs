//! Verification: of all blocks against their checksums, and a walk over a whole segment that checks
//! every invariant between its parts.

use crate::segment::{Segment, SegmentError};
use lodestone_compute::FullRows;
use lodestone_types::RowId;

/// Counts gathered by [`verify()`], for reports.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SegmentCensus {
    /// Rows seen.
    pub rows: u64,
    /// Sources seen.
    pub sources: u64,
    /// Bytes of uncompressed text seen.
    pub text_bytes: u64,
}

impl Segment {
    /// Reads every block of the file and compares it with its checksum.
    ///
    /// # Errors
    /// Damage, naming the first block that does not match.
    pub fn verify_blocks(&self) -> Result<(), SegmentError> {
        Ok(self.file.verify_all()?)
    }

    /// Like [`Self::verify_blocks`], but throttled as in
    /// [`lodestone_io::BlockFile::verify_slowly`].
    ///
    /// # Errors
    /// As [`Self::verify_blocks`].
    pub(crate) fn verify_slowly(
        &self,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, SegmentError> {
        Ok(self.file.verify_slowly(go_on)?)
    }

    /// Marks the segment as damaged from now on, although it stays open and keeps serving.
    pub(crate) fn condemn(&self, problem: &str) {
        self.file.condemn(problem);
    }
}

/// Reads everything and checks that every block matches its checksum; that the rows of every source
/// point back at it, with ascending indices; that every row belongs to one source; that the
/// sub-tenant column agrees with the source records; that every text decompresses to the number of
/// characters its place states and contains the sentences that its triplets cite; that every T1
/// code decodes to within its residual of T2; that the norms are the lengths of the T2 vectors; and
/// that every row is in exactly one list, if there are lists.
///
/// # Errors
/// [`SegmentError::Damaged`] naming the first invariant that does not hold.
pub fn verify(segment: &Segment) -> Result<SegmentCensus, SegmentError> {
    segment.verify_blocks()?;
    let damaged = |problem: String| segment.damaged(problem);
    let mut census = SegmentCensus::default();
    for source in 0..segment.source_count() {
        let record = segment.record(source)?;
        if segment.find_source(&record.sub_tenant, &record.id) != Some(source) {
            return Err(damaged(format!("source {source} is not found under its own name")));
        }
        let of_sub_tenant = segment.rows_of_sub_tenant(&record.sub_tenant);
        let rows = segment.rows_of(source);
        // Strictly ascending, so no row occurs twice. The row count was checked on opening, so no
        // row is missing either.
        if !rows.is_sorted_by(|a, b| segment.index(RowId(*a)) < segment.index(RowId(*b))) {
            return Err(damaged(format!("rows of source {source} are not in order")));
        }
        for row in rows {
            if segment.source_of(RowId(*row)) != source || !of_sub_tenant.contains(*row) {
                return Err(damaged(format!("row {row} does not belong to source {source}")));
            }
            census.text_bytes += check_text(segment, RowId(*row))? as u64;
        }
        census.sources += 1;
        census.rows += rows.len() as u64;
    }
    let in_columns: u64 = segment.sub_tenants().iter().map(|(_, rows)| rows).sum();
    if in_columns != census.rows {
        return Err(damaged("the columns count other rows".into()));
    }
    check_vectors(segment)?;
    // Opening the lists checks that every row is in one of them.
    segment.lists()?;
    segment.impacts()?;
    Ok(census)
}

fn check_text(segment: &Segment, row: RowId) -> Result<usize, SegmentError> {
    let text = segment.text(row)?;
    if segment.header.has_payloads {
        let named = segment.payload(row)?.id.map(|id| segment.rows_named(&id)).transpose()?;
        return match named.is_none_or(|rows| rows.contains(row.0)) {
            true => Ok(text.len()),
            false => Err(segment.damaged(format!("the id of row {} leads elsewhere", row.0))),
        };
    }
    if text.chars().count() != segment.place(row).chars as usize {
        let problem = format!("the text of row {} has another length than its place", row.0);
        return Err(segment.damaged(problem));
    }
    segment.lines(row)?;
    if let Some(graph) = segment.graph()? {
        let contexts = graph.row(row.0).triplets.into_iter().map(|triplet| triplet.context);
        for context in contexts {
            if text.get(context.start as usize..context.end as usize).is_none() {
                return Err(segment.damaged(format!("a triplet of row {} has no text", row.0)));
            }
        }
    }
    Ok(text.len())
}

fn check_vectors(segment: &Segment) -> Result<(), SegmentError> {
    /// f16 originals were rounded after the code was made. Half a unit in the last place of each
    /// component, at most 2^-11 of a vector of length one, adds to the residual.
    const ROUNDING: f64 = 1.0 / 2048.0;
    /// Relative error of a norm due to summation order and rounding to f32.
    const NORM_ROUNDING: f64 = 1e-6;
    let vectors = segment.vectors()?;
    for row in 0..segment.row_count() {
        let (at, unit) = (row as usize, segment.unit_vector(RowId(row))?);
        let scale = f64::from(vectors.scale(at));
        let lost = unit
            .iter()
            .zip(vectors.codes(at))
            .map(|(value, code)| (f64::from(*value) - f64::from(*code) * scale).powi(2));
        let lost = lost.sum::<f64>().sqrt();
        // Also false for NaN.
        let is_near = lost <= f64::from(vectors.residual(at)) + 2.0 * ROUNDING;
        if !is_near {
            return Err(segment.damaged(format!("the code of row {row} is {lost} from its vector")));
        }
        let FullRows::F32 { values, norms } = vectors.full() else { continue };
        let values = &values[at * vectors.dimension()..][..vectors.dimension()];
        let length = values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
        let is_length = (f64::from(norms[at]) - length).abs() <= length * NORM_ROUNDING;
        if !is_length && norms[at] != length as f32 {
            return Err(segment.damaged(format!("the norm of row {row} is not its length")));
        }
    }
    Ok(())
}
