//! The device as long as it lives, and a new one after it.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::cuda::counters::Counters;
use crate::cuda::device::DeviceSource;
use crate::cuda::lists::ResidentLists;
use crate::cuda::numbers::Numbers;
use crate::cuda::resident::{Residency, Tier};
use crate::cuda::workspace::{Scratch, Workspace};
use crate::cuda::{Buffer, Device, DeviceError};
use crate::{ListColumns, VectorRows};
use lodestone_types::{Clock, Timestamp};

/// Pause before a lost device is asked for again; doubled each time that fails.
const PAUSE_MILLIS_MIN: u64 = 10_000;
/// The longest pause.
const PAUSE_MILLIS_MAX: u64 = 600_000;
/// Of the memory that is free at the start, what vectors may take; the rest is for scratch memory,
/// the model and other processes.
const BUDGET_SHARE: (u64, u64) = (3, 4);
/// Workspaces that are kept; more requests at a time make more, and drop them.
const WORKSPACES_MAX: usize = 8;

/// The rows of a segment on the device.
#[derive(Debug)]
pub struct ResidentRows {
    /// What they are made of.
    pub numbers: Numbers,
    /// How many.
    pub rows: u32,
    /// Bytes from one row to the next.
    pub stride: u32,
    /// i8 codes or halves, `rows * stride` bytes.
    pub codes: Buffer,
    /// One f32 a row.
    pub scales: Buffer,
    /// One f32 a row.
    pub residuals: Buffer,
}

impl ResidentRows {
    /// Bytes that T1 takes.
    pub fn bytes_of(rows: &VectorRows<'_>) -> u64 {
        (rows.len() * rows.scan_bytes_per_row()) as u64
    }

    /// Copies T1 to the device.
    ///
    /// # Errors
    /// As `Device::allocate` and `Queue::upload`.
    pub fn upload(rows: &VectorRows<'_>, workspace: &mut Workspace) -> Result<Self, DeviceError> {
        let (codes, scales, residuals) = rows.columns();
        let mut copy = |bytes: &[u8]| {
            let buffer = workspace.device().allocate(bytes.len())?;
            workspace.queue.upload(&buffer, 0, bytes)?;
            Ok(buffer)
        };
        let resident = Self {
            numbers: Numbers::Codes,
            rows: rows.len() as u32,
            stride: rows.stride() as u32,
            codes: copy(bytemuck::cast_slice(codes))?,
            scales: copy(bytemuck::cast_slice(scales))?,
            residuals: copy(bytemuck::cast_slice(residuals))?,
        };
        // Runs in other queues use it next.
        workspace.queue.synchronise()?;
        Ok(resident)
    }
}

/// A device in use.
pub struct Live {
    device: Arc<dyn Device>,
    held: Residency,
    workspaces: Mutex<Vec<Workspace>>,
    scratch: Scratch,
    counters: Arc<Counters>,
}

impl Live {
    fn new(
        device: Arc<dyn Device>,
        limits: &SupplyLimits,
        counters: &Arc<Counters>,
    ) -> Result<Self, DeviceError> {
        let budget = match limits.budget_bytes {
            Some(bytes) => bytes,
            None => device.memory()?.free_bytes / BUDGET_SHARE.1 * BUDGET_SHARE.0,
        };
        let held = Residency::new(budget, Arc::clone(counters));
        let (workspaces, counters) = (Mutex::default(), Arc::clone(counters));
        Ok(Self { device, held, workspaces, scratch: limits.scratch, counters })
    }

    /// The device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// What stands on it.
    pub fn residency(&self) -> &Residency {
        &self.held
    }

    /// T1 of the rows on the device, brought there if need be.
    ///
    /// # Errors
    /// [`DeviceError::Uploading`], [`DeviceError::OutOfMemory`], or what the device says.
    pub fn resident(
        &self,
        identity: u128,
        rows: &VectorRows<'_>,
    ) -> Result<Arc<ResidentRows>, DeviceError> {
        let bytes = ResidentRows::bytes_of(rows);
        self.held.get((identity, Tier::T1), bytes, || {
            self.with_workspace(|workspace| ResidentRows::upload(rows, workspace))
        })
    }

    /// The same of T2, as f16.
    ///
    /// # Errors
    /// As [`Self::resident`].
    pub fn resident_halves(
        &self,
        identity: u128,
        rows: &VectorRows<'_>,
    ) -> Result<Arc<ResidentRows>, DeviceError> {
        let bytes = ResidentRows::bytes_of_halves(rows);
        self.held.get((identity, Tier::T2), bytes, || {
            self.with_workspace(|workspace| ResidentRows::upload_halves(rows, workspace))
        })
    }

    /// The lists over `rows`, which stand there.
    ///
    /// # Errors
    /// As [`Self::resident`].
    pub fn resident_lists(
        &self,
        identity: u128,
        lists: &ListColumns<'_>,
        rows: &ResidentRows,
    ) -> Result<Arc<ResidentLists>, DeviceError> {
        self.held.get((identity, Tier::T0), ResidentLists::bytes_of(lists), || {
            self.with_workspace(|workspace| ResidentLists::upload(lists, rows, workspace))
        })
    }

    fn fresh_workspace(&self) -> Result<Workspace, DeviceError> {
        let workspace = Workspace::new(Arc::clone(&self.device), self.scratch)?;
        if !workspace.queue.is_page_locked() {
            self.counters.unpinned();
        }
        Ok(workspace)
    }

    /// Runs `work` in a queue of its own. All of it is done when this returns, however it ends.
    ///
    /// # Errors
    /// What `work` returned.
    pub fn with_workspace<T>(
        &self,
        work: impl FnOnce(&mut Workspace) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let kept = self.workspaces.lock().pop();
        let mut workspace = match kept {
            Some(workspace) => workspace,
            None => self.fresh_workspace()?,
        };
        let done = work(&mut workspace);
        if done.is_err() {
            // What was launched may still use its memory. The error that counts is the first.
            let _ = workspace.queue.synchronise();
            return done;
        }
        let mut kept = self.workspaces.lock();
        if kept.len() < WORKSPACES_MAX {
            kept.push(workspace);
        }
        done
    }
}

impl fmt::Debug for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("device", &self.device).field("held", &self.held).finish()
    }
}

/// Bounds of what is used of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SupplyLimits {
    /// Bytes that rows may take; `None` leaves it to the memory that is free at the start.
    pub budget_bytes: Option<u64>,
    /// Scratch memory.
    pub scratch: Scratch,
}

/// Checks a fresh device before it is used.
pub type Check = fn(&Live) -> Result<(), DeviceError>;

/// Hands out the device, and takes it again some time after it was lost.
#[derive(Debug)]
pub struct Supply {
    source: Arc<dyn DeviceSource>,
    clock: Arc<dyn Clock>,
    limits: SupplyLimits,
    counters: Arc<Counters>,
    check: Check,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Live(Arc<Live>),
    Lost { again_at: Timestamp, pause_millis: u64, reason: String },
}

impl Supply {
    /// Takes the device.
    ///
    /// # Errors
    /// Why there is none, or what `check` found.
    pub fn open(
        source: Arc<dyn DeviceSource>,
        clock: Arc<dyn Clock>,
        limits: SupplyLimits,
        counters: Arc<Counters>,
        check: Check,
    ) -> Result<Self, DeviceError> {
        let live = fresh(&*source, &limits, &counters, check)?;
        let state = Mutex::new(State::Live(Arc::new(live)));
        Ok(Self { source, clock, limits, counters, check, state })
    }

    /// The device. The first to ask after a pause brings a new one; others go without meanwhile.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] during a pause.
    pub fn live(&self) -> Result<Arc<Live>, DeviceError> {
        let now = self.clock.now();
        let pause = {
            let mut state = self.state.lock();
            match &mut *state {
                State::Live(live) => return Ok(Arc::clone(live)),
                State::Lost { again_at, reason, .. } if now < *again_at => {
                    return Err(DeviceError::Lost { reason: reason.clone() });
                }
                State::Lost { again_at, pause_millis, .. } => {
                    *pause_millis = (*pause_millis * 2).min(PAUSE_MILLIS_MAX);
                    *again_at = now.plus_millis(*pause_millis);
                    *pause_millis
                }
            }
        };
        let opened = fresh(&*self.source, &self.limits, &self.counters, self.check);
        let opened = opened.map(Arc::new);
        let mut state = self.state.lock();
        match &opened {
            Ok(live) => {
                tracing::info!(device = live.device.traits().name, "the GPU is back");
                *state = State::Live(Arc::clone(live));
            }
            Err(error) => {
                let again_at = self.clock.now().plus_millis(pause);
                let reason = error.to_string();
                tracing::warn!(reason, pause_ms = pause, "the GPU is still not usable");
                *state = State::Lost { again_at, pause_millis: pause, reason };
            }
        }
        opened
    }

    /// Gives `live` up after it said `error`; nobody asks for a device for some time.
    pub fn lost(&self, live: &Arc<Live>, error: &DeviceError) {
        let mut state = self.state.lock();
        if matches!(&*state, State::Live(current) if Arc::ptr_eq(current, live)) {
            let (reason, pause_millis) = (error.to_string(), PAUSE_MILLIS_MIN);
            tracing::warn!(reason, "the GPU is lost: the CPU answers");
            self.counters.device_lost();
            let again_at = self.clock.now().plus_millis(pause_millis);
            *state = State::Lost { again_at, pause_millis, reason };
        }
    }
}

fn fresh(
    source: &dyn DeviceSource,
    limits: &SupplyLimits,
    counters: &Arc<Counters>,
    check: Check,
) -> Result<Live, DeviceError> {
    let live = Live::new(source.open()?, limits, counters)?;
    check(&live)?;
    Ok(live)
}
