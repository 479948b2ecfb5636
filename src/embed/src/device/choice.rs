//! Chooses the implementation that runs a model on a device: our kernels, candle, or neither.

use std::sync::Arc;

use crate::bert::Bert;
#[cfg(feature = "candle-cuda")]
use crate::candle::CandleModel;
use crate::config::{Activation, ModelConfig};
use crate::device::weights::HostWeights;
use crate::device::{CpuFallback, DeviceBert, EmbedDevice};
use crate::forward::{BatchPolicy, Forward};
use crate::weights::Weights;
use lodestone_compute::cuda::encoder::{HEADS, HIDDEN_MAX, WIDTH_STEP};

/// Returns a forward pass on `device` with `bert` as CPU fallback: by our own kernels if they
/// support the model and pass the check, otherwise by candle if this build has it for GPUs and it
/// passes the check. `None` if neither supports the model.
pub(crate) fn with_fallback(
    config: &ModelConfig,
    bert: &Arc<Bert>,
    weights: &Weights,
    device: EmbedDevice,
    cpu: BatchPolicy,
) -> Option<Arc<dyn Forward>> {
    let fallback = || CpuFallback::new(Arc::clone(bert), cpu);
    let host = match unsupported(config) {
        None => HostWeights::new(config, weights).map_err(|error| error.to_string()),
        Some(reason) => Err(reason),
    };
    let own = host.map(|host| DeviceBert::new(fallback(), config.clone(), host, device.clone()));
    let reason = match &own {
        Ok(own) => own.refusal().map(|error| error.to_string()),
        Err(reason) => Some(reason.clone()),
    };
    if let Some(reason) = reason {
        #[cfg(feature = "candle-cuda")]
        match CandleModel::open(config, fallback(), weights, device) {
            Ok(candle) => {
                tracing::info!(reason, "embedding on the GPU with candle instead of our kernels");
                return Some(Arc::new(candle));
            }
            Err(candle) => tracing::warn!(candle, "candle cannot embed on the GPU"),
        }
        tracing::warn!(reason, "our kernels cannot embed on the GPU: using the CPU");
    }
    // Kernels that fail the check on this device may pass on one that replaces it.
    own.ok().map(|own| Arc::new(own) as Arc<dyn Forward>)
}

/// Returns the reason why our kernels do not support a model, if they do not.
fn unsupported(config: &ModelConfig) -> Option<String> {
    let ModelConfig { hidden, intermediate, activation, .. } = *config;
    if activation == Activation::Silu {
        return Some("silu has no kernel".to_owned());
    }
    if !HEADS.contains(&config.head()) {
        return Some(format!("heads of {} numbers, not 32 or 64", config.head()));
    }
    if hidden > HIDDEN_MAX {
        return Some(format!("states of {hidden} numbers, more than {HIDDEN_MAX}"));
    }
    let is_whole = intermediate.is_multiple_of(WIDTH_STEP);
    (!is_whole).then(|| format!("{intermediate} intermediate numbers, not a multiple of 8"))
}
