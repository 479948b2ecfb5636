//! Rows that are on the device while lists are built from them, and the encoding of their T0.
//!
//! These rows belong to no segment yet and are not in the cache: they take a share of the free
//! memory in addition to its budget, and free it when the lists are built. Results are
//! bit-identical to the CPU's (`assign`, `encode`), so a segment is the same file whichever
//! processor built it.

use std::sync::Arc;

use crate::cuda::DeviceError;
use crate::cuda::assign::assign;
use crate::cuda::counters::Counters;
use crate::cuda::encode::{OneBitSlots, encode_one_bit};
use crate::cuda::manager::{ActiveDevice, DeviceManager};
use crate::cuda::numbers::{Numbers, ResidentRows};
use crate::cuda::workspace::Workspace;
use crate::kmeans::{Centroids, CodeRows, HeldRows, Nearest};
use crate::one_bit::{BLOCK_ROWS, ListUnits};
use crate::rotation::Rotation;

/// Rows of a build may take one part in this many of the free memory.
const SHARE_OF_FREE: u64 = 4;
/// Maximum bytes that are uploaded at a time.
const STAGED_BYTES: usize = 16 << 20;
/// Minimum products for which the device is used: about 10 ms of work for a CPU, several times as
/// much as a run and its copies take on the device.
const PRODUCTS_MIN: usize = 1 << 22;

/// Rows on a device, and the device.
#[derive(Debug)]
pub(super) struct DeviceRows {
    manager: Arc<DeviceManager>,
    device: Arc<ActiveDevice>,
    counters: Arc<Counters>,
    rows: ResidentRows,
}

impl DeviceRows {
    /// Uploads `count` rows to the device.
    pub(super) fn new(
        manager: &Arc<DeviceManager>,
        counters: &Arc<Counters>,
        rows: &dyn CodeRows,
        count: usize,
    ) -> Result<Self, DeviceError> {
        let device = manager.active()?;
        let uploaded = upload(&device, rows, count);
        let rows = uploaded.inspect_err(|error| manager.report(&device, error))?;
        let (manager, counters) = (Arc::clone(manager), Arc::clone(counters));
        Ok(Self { manager, device, counters, rows })
    }
}

fn upload(
    device: &ActiveDevice,
    rows: &dyn CodeRows,
    count: usize,
) -> Result<ResidentRows, DeviceError> {
    let stride = rows.codes(0).len();
    let bytes = count * stride;
    if bytes as u64 > device.device().memory()?.free_bytes / SHARE_OF_FREE {
        return Err(DeviceError::OutOfMemory { bytes });
    }
    device.with_workspace(|workspace| {
        let codes = workspace.device().allocate(bytes)?;
        let mut staged: Vec<i8> = Vec::new();
        let rows_at_once = (STAGED_BYTES / stride).max(1);
        for first in (0..count).step_by(rows_at_once) {
            staged.clear();
            let until = count.min(first + rows_at_once);
            (first..until).for_each(|row| staged.extend_from_slice(rows.codes(row as u32)));
            workspace.queue.upload(&codes, first * stride, bytemuck::cast_slice(&staged))?;
        }
        workspace.queue.synchronise()?;
        // The nearest centroid does not depend on the scale of a row.
        let none = || workspace.device().allocate(0);
        let (scales, residuals) = (none()?, none()?);
        let (rows, stride) = (count as u32, stride as u32);
        Ok(ResidentRows { numbers: Numbers::Codes, rows, stride, codes, scales, residuals })
    })
}

impl HeldRows for DeviceRows {
    fn nearest(&self, points: &Centroids, listed: &[u32], nearest: usize) -> Option<Nearest> {
        if listed.len().saturating_mul(points.len()) < PRODUCTS_MIN {
            return None;
        }
        let found = self.device.with_workspace(|w| assign(w, &self.rows, listed, points, nearest));
        match found {
            Ok(found) => {
                self.counters.assigned(listed.len());
                Some(found)
            }
            Err(error) => {
                self.manager.report(&self.device, &error);
                self.counters.fell_back(&error);
                tracing::debug!(%error, "CPU fallback of assignment");
                None
            }
        }
    }
}

/// Encodes lists as blocks of T0, like `one_bit::encode_lists`.
pub(super) fn encoded(
    workspace: &mut Workspace,
    rotation: &Rotation,
    lists: &[ListUnits<'_>],
) -> Result<Vec<u8>, DeviceError> {
    let (mut units, mut references) = (Vec::new(), Vec::new());
    let (mut rows_of_slots, mut lists_of_blocks) = (Vec::new(), Vec::new());
    let mut row = 0;
    for (at, list) in lists.iter().enumerate() {
        let until = row + (list.units.len() / rotation.dimension()) as u32;
        rows_of_slots.extend(row..until);
        rows_of_slots.resize(rows_of_slots.len().next_multiple_of(BLOCK_ROWS), u32::MAX);
        lists_of_blocks.resize(rows_of_slots.len() / BLOCK_ROWS, at as u32);
        units.extend_from_slice(list.units);
        references.extend_from_slice(list.reference);
        row = until;
    }
    let slots = OneBitSlots { rows_of_slots: &rows_of_slots, lists_of_blocks: &lists_of_blocks };
    encode_one_bit(workspace, rotation, &units, &references, slots)
}
