//! A model that candle runs on a GPU.

use std::sync::Arc;

use candle_core::Device;

use crate::candle::bert::PaddedBert;
use crate::candle::run;
use crate::config::ModelConfig;
use crate::device::{
    CpuFallback, DeviceLimits, EmbedDevice, Engine, OnDevice, Vectors, check, checked,
};
use crate::weights::Weights;
use lodestone_compute::cuda::DeviceError;
use lodestone_compute::cuda::manager::ActiveDevice;

/// A model that candle runs on a GPU, with a CPU fallback.
#[derive(Debug)]
pub(crate) struct CandleModel {
    bert: PaddedBert,
    fallback: CpuFallback,
    device: EmbedDevice,
    /// candle's memory is valid only while this is the active device.
    active: Arc<ActiveDevice>,
}

impl CandleModel {
    /// Opens the model on `device` and checks its vectors against the CPU's.
    ///
    /// # Errors
    /// The reason why candle cannot be used.
    pub fn open(
        config: &ModelConfig,
        fallback: CpuFallback,
        weights: &Weights,
        device: EmbedDevice,
    ) -> Result<Self, String> {
        let active = device.manager.active().map_err(|error| error.to_string())?;
        let card = Device::new_cuda(active.device().traits().ordinal);
        let card = card.map_err(|error| error.to_string())?;
        let bert = PaddedBert::new(config, weights, card).map_err(|error| error.to_string())?;
        let DeviceLimits { batch_tokens, check_tokens, .. } = device.limits;
        let run = |batch: &[&[u32]]| run(&bert, batch, batch_tokens, &mut || {});
        let checked = check(config, fallback.bert(), check_tokens, &run);
        checked.map_err(|error| error.to_string())?;
        Ok(Self { bert, fallback, device, active })
    }
}

impl OnDevice for CandleModel {
    const ENGINE: Engine = Engine::Candle;

    fn fallback(&self) -> &CpuFallback {
        &self.fallback
    }

    fn batch_tokens(&self) -> usize {
        self.device.limits.batch_tokens
    }

    fn on_device(&self, batch: &[&[u32]], pause: &mut dyn FnMut()) -> Vectors {
        if !Arc::ptr_eq(&self.device.manager.active()?, &self.active) {
            return Err(DeviceError::Lost { reason: "candle's memory is gone".to_owned() });
        }
        run(&self.bert, batch, self.device.limits.batch_tokens, pause).and_then(checked)
    }
}
