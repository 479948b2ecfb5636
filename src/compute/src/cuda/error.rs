//! What can go wrong on a device. None of it reaches a client: the CPU answers instead.

use lodestone_types::ErrorKind;

/// Why a device did not do what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// No memory of this size is free, on the device or within the budget.
    #[error("{bytes} bytes of device memory are not to be had")]
    OutOfMemory {
        /// Bytes asked for.
        bytes: usize,
    },
    /// The device or its context is gone: everything that stood there is lost.
    #[error("the device is lost: {reason}")]
    Lost {
        /// What the driver said.
        reason: String,
    },
    /// The driver refused one call; others may go well.
    #[error("the device refused to {action}: {reason}")]
    Refused {
        /// What was asked.
        action: &'static str,
        /// What the driver said.
        reason: String,
    },
    /// A launch whose shape contradicts its buffers or the limits of its kernel; never sent.
    #[error("kernel {kernel} cannot run on this: {rule}")]
    Shape {
        /// The kernel.
        kernel: &'static str,
        /// The rule that is broken.
        rule: &'static str,
    },
    /// More rows may win than there is room to name.
    #[error("more rows may win than the device has room to name")]
    TooManyCandidates,
    /// The rows are on their way to the device for another query.
    #[error("the rows are still being copied to the device")]
    Uploading,
    /// A kernel that does not compile or load.
    #[error("the kernels of {family} do not load: {reason}")]
    Kernel {
        /// The source file.
        family: &'static str,
        /// What the compiler or driver said.
        reason: String,
    },
    /// There is no device to take.
    #[error("{reason}")]
    NoDevice {
        /// Why, as one line for the operator.
        reason: String,
    },
}

impl DeviceError {
    /// What a caller should do about it.
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
