//! Errors of a device. They never reach a client, because the CPU takes over.

use lodestone_types::ErrorKind;

/// Reason why the device did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// Not enough memory is free, on the device or within the budget.
    #[error("out of device memory: {bytes} bytes needed")]
    OutOfMemory {
        /// Bytes needed.
        bytes: usize,
    },
    /// The device or its context is gone, along with all memory on it.
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
    /// The shape of a launch violates its buffers or the limits of its kernel; it was not sent.
    #[error("kernel {kernel} cannot run on this: {rule}")]
    Shape {
        /// Name of the kernel.
        kernel: &'static str,
        /// The violated rule.
        rule: &'static str,
    },
    /// There are more candidates than the device has memory for.
    #[error("more candidates than the device has memory for")]
    TooManyCandidates,
    /// The rows are still being copied to the device.
    #[error("the rows are still being copied to the device")]
    Uploading,
    /// A kernel does not compile or load.
    #[error("the kernels of {family} do not load: {reason}")]
    Kernel {
        /// Name of the source file.
        family: &'static str,
        /// Message of the compiler or driver.
        reason: String,
    },
    /// There is no usable device.
    #[error("{reason}")]
    NoDevice {
        /// The reason, as one line for the operator.
        reason: String,
    },
}

impl DeviceError {
    /// Returns the kind of the error, which tells the caller how to react.
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
