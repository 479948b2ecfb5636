//! Errors of a device. None of them reaches a client: the CPU answers instead.

use lodestone_types::ErrorKind;

/// Error of a device.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No memory of this size is free, on the device or within the budget.
    #[error("out of device memory: {bytes} bytes needed")]
    OutOfMemory {
        /// Bytes needed.
        bytes: usize,
    },
    /// The device or its context is gone, with all memory on it.
    #[error("the device is lost: {reason}")]
    Lost {
        /// Message of the driver.
        reason: String,
    },
    /// The driver refused one call; others may succeed.
    #[error("the device refused to {action}: {reason}")]
    Refused {
        /// The refused action.
        action: &'static str,
        /// Message of the driver.
        reason: String,
    },
    /// A launch whose shape contradicts its buffers or the limits of its kernel; never sent.
    #[error("kernel {kernel} cannot run on this: {rule}")]
    Shape {
        /// The kernel.
        kernel: &'static str,
        /// The broken rule.
        rule: &'static str,
    },
    /// More candidates than the device has memory for.
    #[error("more candidates than the device has memory for")]
    TooManyCandidates,
    /// The rows are on their way to the device.
    #[error("the rows are still being copied to the device")]
    Uploading,
    /// A kernel that does not compile or load.
    #[error("the kernels of {family} do not load: {reason}")]
    Kernel {
        /// The source file.
        family: &'static str,
        /// Message of the compiler or driver.
        reason: String,
    },
    /// There is no usable device.
    #[error("{reason}")]
    NoDevice {
        /// Why, as one line for the operator.
        reason: String,
    },
}

impl DeviceError {
    /// Its kind, which says what a caller should do.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::OutOfMemory { .. } | Self::TooManyCandidates | Self::Uploading => {
                ErrorKind::Overloaded
            }
            Self::Lost { .. } | Self::NoDevice { .. } => ErrorKind::Unavailable,
            Self::Refused { .. } | Self::Shape { .. } | Self::Kernel { .. } => ErrorKind::Internal,
        }
    }
}
