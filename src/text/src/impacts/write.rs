//! Writing impacts, of new rows and of rows of existing indexes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use super::{ImpactIndex, SparseModelId, impact};
use crate::TextError;
use crate::impact_postings::{BLOCK_POSTINGS, word};

/// Maximum number of postings in an index, which is stored in four bytes.
const POSTINGS_MAX: usize = u32::MAX as usize;

/// Writes the postings of new rows to `out`, and returns the bytes that go before them. `weights`
/// are the terms of each row with their weights, in any order.
///
/// # Errors
/// [`TextError::Write`] if `out` fails.
pub fn write_impacts<'a>(
    model: &SparseModelId,
    weights: impl Iterator<Item = &'a [(u32, f32)]>,
    out: &mut dyn Write,
) -> Result<Vec<u8>, TextError> {
    let mut terms: BTreeMap<u32, Vec<(u32, u8)>> = BTreeMap::new();
    let mut rows = 0;
    for row in weights {
        for (term, weight) in row {
            let impact = impact(*weight);
            if impact > 0 {
                terms.entry(*term).or_default().push((rows, impact));
            }
        }
        rows += 1;
    }
    let mut writer = Writer::new(out);
    for (term, postings) in terms {
        for (row, impact) in postings {
            writer.add(row, impact).map_err(TextError::write)?;
        }
        writer.end(term).map_err(TextError::write)?;
    }
    Ok(writer.head(model, rows))
}

/// Rows of existing indexes to be merged into a new one.
#[derive(Debug)]
pub struct ImpactMerge<'a> {
    /// Each index with the new number of each of its rows; `u32::MAX` for dropped rows. New numbers
    /// are ascending, with those of one index before those of the next.
    pub inputs: Vec<(&'a ImpactIndex, Vec<u32>)>,
    /// Number of rows of the new index.
    pub rows: u32,
}

impl ImpactMerge<'_> {
    /// Copies impacts term by term: writes the postings to `out` and returns the bytes before them.
    ///
    /// # Errors
    /// [`TextError::Damaged`] if postings cannot be read, [`TextError::Write`] if `out` fails.
    pub fn write(&self, model: &SparseModelId, out: &mut dyn Write) -> Result<Vec<u8>, TextError> {
        let terms_of = |index: &ImpactIndex| -> Vec<u32> {
            index.terms.chunks_exact(4).map(|it| word(it, 0)).collect()
        };
        let terms: BTreeSet<u32> =
            self.inputs.iter().flat_map(|(index, _)| terms_of(index)).collect();
        let mut writer = Writer::new(out);
        for term in terms {
            for (index, new) in &self.inputs {
                let Some(at) = index.position(term) else { continue };
                let mut written = Ok(());
                index.impacts_at(at)?.each(|row, impact| {
                    // A row out of range means damage, which the next check reports.
                    let row = new.get(row as usize).copied().unwrap_or(u32::MAX);
                    if row != u32::MAX && written.is_ok() {
                        written = writer.add(row, impact);
                    }
                });
                written.map_err(TextError::write)?;
            }
            writer.end(term).map_err(TextError::write)?;
        }
        Ok(writer.head(model, self.rows))
    }
}

/// Writes postings in blocks to a file, and builds the tables that lead to them.
struct Writer<'w> {
    out: &'w mut dyn Write,
    terms: Vec<u32>,
    firsts: Vec<u32>,
    entries: Vec<u8>,
    blocks: u32,
    postings: usize,
    /// The block being filled.
    block: Vec<(u32, u8)>,
}

impl<'w> Writer<'w> {
    fn new(out: &'w mut dyn Write) -> Self {
        Self {
            out,
            terms: Vec::new(),
            firsts: vec![0],
            entries: Vec::new(),
            blocks: 0,
            postings: 0,
            block: Vec::new(),
        }
    }

    fn add(&mut self, row: u32, impact: u8) -> io::Result<()> {
        let is_far = |(first, _): &(u32, u8)| row - first > u32::from(u16::MAX);
        if self.block.len() == BLOCK_POSTINGS || self.block.first().is_some_and(is_far) {
            self.end_block()?;
        }
        self.block.push((row, impact));
        Ok(())
    }

    fn end_block(&mut self) -> io::Result<()> {
        let (Some((first, _)), Some((last, _))) = (self.block.first(), self.block.last()) else {
            return Ok(());
        };
        if self.postings + self.block.len() > POSTINGS_MAX {
            return Err(io::Error::other("more postings of a sparse model than a segment takes"));
        }
        let most = self.block.iter().map(|(_, impact)| *impact).max().unwrap_or(0);
        self.entries.extend(first.to_le_bytes());
        self.entries.extend((self.postings as u32).to_le_bytes());
        self.entries.extend(((last - first) as u16).to_le_bytes());
        self.entries.extend([most, (self.block.len() - 1) as u8]);
        for (row, _) in &self.block {
            self.out.write_all(&((row - first) as u16).to_le_bytes())?;
        }
        let impacts: Vec<u8> = self.block.iter().map(|(_, impact)| *impact).collect();
        self.out.write_all(&impacts)?;
        self.postings += self.block.len();
        self.blocks += 1;
        self.block.clear();
        Ok(())
    }

    /// Ends the postings of a term; a term without any is omitted.
    fn end(&mut self, term: u32) -> io::Result<()> {
        self.end_block()?;
        if self.firsts.last() != Some(&self.blocks) {
            self.terms.push(term);
            self.firsts.push(self.blocks);
        }
        Ok(())
    }

    fn head(self, model: &SparseModelId, rows: u32) -> Vec<u8> {
        let mut head = model.to_vec();
        let counts = [rows, self.terms.len() as u32, self.blocks, self.postings as u32];
        for number in counts.into_iter().chain(self.terms).chain(self.firsts) {
            head.extend(number.to_le_bytes());
        }
        head.extend(self.entries);
        head
    }
}
