//! The device manager: opens the device, and reopens it some time after it was lost.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::cuda::cache::{CacheLookup, DeviceCache, Part};
use crate::cuda::chosen::ChosenRows;
use crate::cuda::counters::Counters;
use crate::cuda::device::DeviceSource;
use crate::cuda::numbers::{Numbers, ResidentRows};
use crate::cuda::uploads::Uploads;
use crate::cuda::workspace::{Scratch, Workspace};
use crate::cuda::{Device, DeviceError};
use crate::{RowMask, VectorRows};
use lodestone_types::{Clock, Timestamp};

/// Pause before a lost device is reopened; doubled after each failure.
const PAUSE_MILLIS_MIN: u64 = 10_000;
/// Maximum pause.
const PAUSE_MILLIS_MAX: u64 = 600_000;
/// Share of the initially free memory that vectors may take; the rest is for scratch memory, the
/// model and other processes.
const BUDGET_SHARE: (u64, u64) = (3, 4);
/// Masks may take one part in this many of the budget, in addition to it.
const MASKS_SHARE: u64 = 64;
/// Maximum number of idle workspaces that are kept; more concurrent requests create more, and drop
/// them.
const WORKSPACES_MAX: usize = 8;

/// A device in use.
pub struct ActiveDevice {
    device: Arc<dyn Device>,
    cache: Arc<DeviceCache>,
    masks: Arc<DeviceCache>,
    uploads: Uploads,
    /// The error of an upload that found the device lost, which the next search reports.
    lost: OnceLock<DeviceError>,
    workspaces: Mutex<Vec<Workspace>>,
    scratch: Scratch,
    counters: Arc<Counters>,
}

impl ActiveDevice {
    fn new(
        device: Arc<dyn Device>,
        limits: &ManagerLimits,
        clock: &Arc<dyn Clock>,
        counters: &Arc<Counters>,
    ) -> Result<Self, DeviceError> {
        let budget = match limits.budget_bytes {
            Some(bytes) => bytes,
            None => device.memory()?.free_bytes / BUDGET_SHARE.1 * BUDGET_SHARE.0,
        };
        let cache =
            |bytes| Arc::new(DeviceCache::new(bytes, Arc::clone(clock), Arc::clone(counters)));
        let (cache, masks) = (cache(budget), cache(budget / MASKS_SHARE));
        let (uploads, lost) = (Uploads::default(), OnceLock::new());
        let (workspaces, counters) = (Mutex::default(), Arc::clone(counters));
        let scratch = limits.scratch;
        Ok(Self { device, cache, masks, uploads, lost, workspaces, scratch, counters })
    }

    /// Returns the device.
    pub fn device(&self) -> &dyn Device {
        &*self.device
    }

    /// Returns T1 of the rows on the device, or T2 as f16. Absent rows are uploaded, in the
    /// background if they have an owner.
    ///
    /// # Errors
    /// [`DeviceError::Uploading`], [`DeviceError::OutOfMemory`], or errors of the device.
    pub fn resident(
        self: &Arc<Self>,
        identity: u128,
        rows: &VectorRows<'_>,
        numbers: Numbers,
    ) -> Result<Arc<ResidentRows>, DeviceError> {
        if let Some(error) = self.lost.get() {
            return Err(error.clone());
        }
        let key = (identity, Part::Rows(numbers));
        let reservation = match self.cache.find(key, ResidentRows::bytes_of(rows, numbers))? {
            CacheLookup::Hit(rows) => return Ok(rows),
            CacheLookup::Reserved(reservation) => reservation,
        };
        let Some(owner) = rows.owner() else {
            return reservation
                .fill(|| self.with_workspace(|w| ResidentRows::upload(rows, numbers, w)));
        };
        let device = Arc::clone(self);
        self.uploads.start(Box::new(move || {
            let brought = reservation.fill(|| {
                let (action, reason) = ("copy rows", "they are damaged".to_owned());
                let rows = owner.rows().ok_or(DeviceError::Refused { action, reason })?;
                device.with_workspace(|w| ResidentRows::upload(&rows, numbers, w))
            });
            if let Err(error) = brought {
                tracing::debug!(%error, "a segment was not brought to the GPU");
                if matches!(error, DeviceError::Lost { .. }) {
                    device.lost.get_or_init(|| error);
                }
            }
        }));
        Err(DeviceError::Uploading)
    }

    /// Returns the rows of a mask over a segment, on the device; `None` if there is no space to
    /// keep them, or while another search uploads them.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn resident_mask(
        &self,
        identity: u128,
        mask: &RowMask,
    ) -> Result<Option<Arc<ChosenRows>>, DeviceError> {
        let key = (identity, Part::Mask(mask.identity()));
        let kept = self.masks.get(key, ChosenRows::own_bytes(mask), || {
            self.with_workspace(|workspace| ChosenRows::own(workspace, mask))
        });
        match kept {
            Ok(kept) => Ok(Some(kept)),
            Err(DeviceError::OutOfMemory { .. } | DeviceError::Uploading) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn fresh_workspace(&self) -> Result<Workspace, DeviceError> {
        let workspace = Workspace::new(Arc::clone(&self.device), self.scratch)?;
        if !workspace.queue.is_page_locked() {
            self.counters.unpinned();
        }
        Ok(workspace)
    }

    /// Runs `work` on a queue of its own. When this returns, all of the work has ended, even on an
    /// error.
    ///
    /// # Errors
    /// The error of `work`.
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
            // Launched kernels may still use the memory. The first error is the one to report.
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

impl fmt::Debug for ActiveDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ActiveDevice")
            .field("device", &self.device)
            .field("cache", &self.cache)
            .finish()
    }
}

/// Limits of the use of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ManagerLimits {
    /// Maximum bytes for rows; `None` means a share of the initially free memory.
    pub budget_bytes: Option<u64>,
    /// Allocation policy of scratch memory.
    pub scratch: Scratch,
}

/// Check that a newly opened device must pass before it is used.
pub type Check = fn(&ActiveDevice) -> Result<(), DeviceError>;

/// The device, which is reopened some time after it was lost.
#[derive(Debug)]
pub struct DeviceManager {
    source: Arc<dyn DeviceSource>,
    clock: Arc<dyn Clock>,
    limits: ManagerLimits,
    counters: Arc<Counters>,
    check: Check,
    state: Mutex<State>,
}

#[derive(Debug)]
enum State {
    Active(Arc<ActiveDevice>),
    Lost { again_at: Timestamp, pause_millis: u64, reason: String },
}

impl DeviceManager {
    /// Opens the device.
    ///
    /// # Errors
    /// The reason why there is no device, or the error of `check`.
    pub fn open(
        source: Arc<dyn DeviceSource>,
        clock: Arc<dyn Clock>,
        limits: ManagerLimits,
        counters: Arc<Counters>,
        check: Check,
    ) -> Result<Self, DeviceError> {
        let active = fresh(&*source, &limits, &clock, &counters, check)?;
        let state = Mutex::new(State::Active(Arc::new(active)));
        Ok(Self { source, clock, limits, counters, check, state })
    }

    /// Returns the time of the clock that paces reopening.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Returns the active device. The first call after a pause reopens it; concurrent calls get an
    /// error meanwhile.
    ///
    /// # Errors
    /// [`DeviceError::Lost`] during a pause.
    pub fn active(&self) -> Result<Arc<ActiveDevice>, DeviceError> {
        let now = self.clock.now();
        let pause = {
            let mut state = self.state.lock();
            match &mut *state {
                State::Active(active) => return Ok(Arc::clone(active)),
                State::Lost { again_at, reason, .. } if now < *again_at => {
                    return Err(DeviceError::Lost { reason: reason.clone() });
                }
                State::Lost { again_at, pause_millis, .. } => {
                    *pause_millis = (*pause_millis * 2).min(PAUSE_MILLIS_MAX);
                    // Only one caller opens it, however long that takes: a second one would destroy
                    // the context of the first.
                    *again_at = Timestamp(u64::MAX);
                    *pause_millis
                }
            }
        };
        let Self { source, limits, clock, counters, check, .. } = self;
        let open = || fresh(&**source, limits, clock, counters, *check).map(Arc::new);
        // Catch a panic, because otherwise no caller would ever reopen the device.
        let opened = catch_unwind(AssertUnwindSafe(open)).unwrap_or_else(|_| {
            Err(DeviceError::NoDevice { reason: "opening the GPU panicked".to_owned() })
        });
        let mut state = self.state.lock();
        match &opened {
            Ok(active) => {
                tracing::info!(device = active.device.traits().name, "the GPU is usable again");
                *state = State::Active(Arc::clone(active));
            }
            Err(error) => {
                let again_at = self.clock.now().plus_millis(pause);
                let reason = error.to_string();
                tracing::warn!(reason, pause_ms = pause, "the GPU is still unusable");
                *state = State::Lost { again_at, pause_millis: pause, reason };
            }
        }
        opened
    }

    /// Runs `work` on the device, and gives the device up if `work` reports it lost.
    ///
    /// # Errors
    /// As [`Self::active`], or the error of `work`.
    pub fn run<T>(
        &self,
        work: impl FnOnce(&Arc<ActiveDevice>) -> Result<T, DeviceError>,
    ) -> Result<T, DeviceError> {
        let active = self.active()?;
        work(&active).inspect_err(|error| self.report(&active, error))
    }

    /// Records an `error` of `device`. A lost device is given up and reopened only after a pause.
    pub fn report(&self, device: &Arc<ActiveDevice>, error: &DeviceError) {
        if !matches!(error, DeviceError::Lost { .. }) {
            return;
        }
        let mut state = self.state.lock();
        if matches!(&*state, State::Active(current) if Arc::ptr_eq(current, device)) {
            let (reason, pause_millis) = (error.to_string(), PAUSE_MILLIS_MIN);
            tracing::warn!(reason, "the GPU is lost: using the CPU; a restart may bring it back");
            self.counters.device_lost();
            let again_at = self.clock.now().plus_millis(pause_millis);
            *state = State::Lost { again_at, pause_millis, reason };
        }
    }
}

fn fresh(
    source: &dyn DeviceSource,
    limits: &ManagerLimits,
    clock: &Arc<dyn Clock>,
    counters: &Arc<Counters>,
    check: Check,
) -> Result<ActiveDevice, DeviceError> {
    let active = ActiveDevice::new(source.open()?, limits, clock, counters)?;
    check(&active)?;
    Ok(active)
}
