//! The rows of a search on the device: a mask, or a list made from a mask that few rows pass.

use std::sync::Arc;

use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError, gather};
use crate::{RowMask, Selection};

/// Minimum rows per passing row for which a mask is converted to a list first, so that a pass
/// computes only what is needed. An estimate.
const ROWS_A_LISTED_ROW: usize = 4;

/// Rows of one segment that a run visits.
#[derive(Debug)]
pub struct ChosenRows {
    /// Number of rows of the segment.
    pub(super) rows: usize,
    /// Number of rows that pass.
    pub(super) passing: usize,
    /// One bit per row; absent if all rows pass or `listed` is present.
    pub(super) mask: Option<Arc<Buffer>>,
    /// The `passing` ids as u32; absent if rows are visited in order.
    pub(super) listed: Option<Arc<Buffer>>,
}

impl ChosenRows {
    /// Copies a selection among `rows` rows into scratch memory.
    ///
    /// # Errors
    /// [`DeviceError::Shape`] for rows that do not exist, otherwise errors of the device.
    pub(super) fn scratch(
        workspace: &mut Workspace,
        rows: usize,
        selection: Selection<'_>,
    ) -> Result<Self, DeviceError> {
        let rule = "rows of the segment";
        selection.check(rows).map_err(|_| DeviceError::Shape { kernel: "search", rule })?;
        let passing = selection.count(rows);
        let mut chosen = Self { rows, passing, mask: None, listed: None };
        match selection {
            Selection::All => {}
            Selection::Masked(mask) => {
                let words = workspace.filled("mask", bytemuck::cast_slice(mask.words()))?;
                if is_listed(mask) {
                    let listed = workspace.slot("listed", passing * size_of::<u32>())?;
                    list(workspace, mask, &words, &listed)?;
                    chosen.listed = Some(listed);
                } else {
                    chosen.mask = Some(words);
                }
            }
            Selection::Listed(rows) => {
                let ids: Vec<u32> = rows.iter().map(|row| row.0).collect();
                let listed = workspace.filled("listed", bytemuck::cast_slice(&ids))?;
                chosen.listed = Some(listed);
            }
        }
        Ok(chosen)
    }

    /// Copies the rows of a mask into memory of their own, for the searches that repeat it.
    ///
    /// # Errors
    /// Errors of the device.
    pub(super) fn own(workspace: &mut Workspace, mask: &RowMask) -> Result<Self, DeviceError> {
        let (rows, passing) = (mask.rows(), mask.passing());
        let words = bytemuck::cast_slice(mask.words());
        let buffer = Arc::new(workspace.device().allocate(Self::own_bytes(mask) as usize)?);
        let mut chosen = Self { rows, passing, mask: None, listed: None };
        if is_listed(mask) {
            let words = workspace.filled("mask", words)?;
            list(workspace, mask, &words, &buffer)?;
            chosen.listed = Some(buffer);
        } else {
            workspace.queue.upload(&buffer, 0, words)?;
            chosen.mask = Some(buffer);
        }
        // Runs on other queues will use it.
        workspace.queue.synchronise()?;
        Ok(chosen)
    }

    /// Returns the bytes that [`Self::own`] allocates.
    pub(super) fn own_bytes(mask: &RowMask) -> u64 {
        match is_listed(mask) {
            true => (mask.passing() * size_of::<u32>()) as u64,
            false => size_of_val(mask.words()) as u64,
        }
    }
}

/// Whether so few rows pass that they are listed.
fn is_listed(mask: &RowMask) -> bool {
    mask.passing() > 0 && mask.passing() * ROWS_A_LISTED_ROW < mask.rows()
}

/// Builds the list of a mask's rows on the device.
fn list(
    workspace: &mut Workspace,
    mask: &RowMask,
    words: &Buffer,
    listed: &Buffer,
) -> Result<(), DeviceError> {
    let rows = mask.rows();
    let run_counts = workspace.slot("run counts", gather::runs(rows) * size_of::<u32>())?;
    gather::list_mask(workspace, (words, rows), &run_counts, (listed, mask.passing()))
}
