//! The lists of a segment on the device.

use crate::ListColumns;
use crate::cuda::launch::LaunchBuilder;
use crate::cuda::manager::ResidentRows;
use crate::cuda::workspace::Workspace;
use crate::cuda::{Buffer, DeviceError};
use crate::one_bit::{BLOCK_ROWS, block_bytes};

/// The lists of a segment on the device.
#[derive(Debug)]
pub struct ResidentLists {
    pub(super) width: usize,
    largest_slots: Vec<usize>,
    pub(super) codes: Buffer,
    pub(super) scales: Buffer,
    pub(super) squares: Buffer,
    pub(super) spreads: Buffer,
    pub(super) first_blocks: Buffer,
    pub(super) sizes_here: Buffer,
    pub(super) rows_of_slots: Buffer,
    pub(super) one_bit: Buffer,
    pub(super) slots: usize,
}

impl ResidentLists {
    /// Bytes that lists take.
    pub fn bytes_of(lists: &ListColumns<'_>) -> u64 {
        let values = 5 * lists.sizes.len() + lists.rows_of_slots.len();
        (lists.codes.len() + lists.one_bit.len() + values * size_of::<u32>()) as u64
    }

    /// Copies lists over `rows` to the device.
    ///
    /// # Errors
    /// [`DeviceError::Shape`] for columns that contradict each other; as `Device::allocate` and
    /// `Queue::upload`.
    pub fn upload(
        lists: &ListColumns<'_>,
        rows: &ResidentRows,
        workspace: &mut Workspace,
    ) -> Result<Self, DeviceError> {
        let builder = LaunchBuilder::new("one_bit_scan");
        let (count, slots) = (lists.sizes.len(), lists.rows_of_slots.len());
        let columns = [lists.scales.len(), lists.squares.len(), lists.spreads.len()];
        let is_even = columns.into_iter().chain([lists.first_blocks.len()]).all(|len| len == count);
        builder.check(is_even && count > 0, "as many values as lists")?;
        let is_wide = lists.codes.len() == count * rows.stride as usize;
        builder.check(is_wide && lists.width.is_multiple_of(64), "points as wide as the rows")?;
        let blocks = slots / BLOCK_ROWS;
        let is_whole = slots.is_multiple_of(BLOCK_ROWS) && u32::try_from(slots).is_ok();
        let is_coded = lists.one_bit.len() == blocks * block_bytes(lists.width);
        builder.check(is_whole && is_coded, "whole blocks of T0")?;
        let mut pairs = lists.first_blocks.iter().zip(lists.sizes);
        let is_inside = pairs
            .all(|(first, size)| *first as usize + (*size as usize).div_ceil(BLOCK_ROWS) <= blocks);
        let is_row = |row: &u32| *row == u32::MAX || *row < rows.rows;
        let is_there = is_inside && lists.rows_of_slots.iter().all(is_row);
        builder.check(is_there, "lists of rows that are there")?;
        let mut copy = |bytes: &[u8]| {
            let buffer = workspace.device().allocate(bytes.len())?;
            workspace.queue.upload(&buffer, 0, bytes)?;
            Ok(buffer)
        };
        let resident = Self {
            width: lists.width,
            largest_slots: largest_slots(lists.sizes),
            codes: copy(bytemuck::cast_slice(lists.codes))?,
            scales: copy(bytemuck::cast_slice(lists.scales))?,
            squares: copy(bytemuck::cast_slice(lists.squares))?,
            spreads: copy(bytemuck::cast_slice(lists.spreads))?,
            first_blocks: copy(bytemuck::cast_slice(lists.first_blocks))?,
            sizes_here: copy(bytemuck::cast_slice(lists.sizes))?,
            rows_of_slots: copy(bytemuck::cast_slice(lists.rows_of_slots))?,
            one_bit: copy(lists.one_bit)?,
            slots,
        };
        workspace.queue.synchronise()?;
        Ok(resident)
    }

    /// Number of lists.
    pub(super) fn count(&self) -> usize {
        self.largest_slots.len()
    }

    /// Slots that the largest `probes` lists take: no query needs more.
    pub(super) fn slots_of(&self, probes: usize) -> usize {
        let last = probes.min(self.count()).checked_sub(1);
        last.map_or(0, |last| self.largest_slots[last])
    }
}

/// Slots of the largest list, of the largest two, and so on.
fn largest_slots(sizes: &[u32]) -> Vec<usize> {
    let padded = |size: &u32| (*size as usize).next_multiple_of(BLOCK_ROWS);
    let mut slots: Vec<usize> = sizes.iter().map(padded).collect();
    slots.sort_unstable_by(|a, b| b.cmp(a));
    let mut until = 0;
    for slots in &mut slots {
        until += *slots;
        *slots = until;
    }
    slots
}
