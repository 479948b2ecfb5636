//! The model's tensors as f16, on the host and on the device.

use half::f16;

use crate::EmbedError;
use crate::config::ModelConfig;
use crate::elementwise;
use crate::weights::Weights;
use lodestone_compute::cuda::encoder::Norm;
use lodestone_compute::cuda::{Buffer, Device, DeviceError, Queue};

/// A layer of the model, generic over the types of dense layers `D` and of norms `N`.
#[derive(Debug)]
pub(super) struct Layer<D, N> {
    pub query_key_value: D,
    pub attended: D,
    pub attended_norm: N,
    pub widen: D,
    pub narrow: D,
    pub output_norm: N,
}

/// The whole model, generic over the type of tables `M`, and as [`Layer`].
#[derive(Debug)]
pub(super) struct Encoder<M, D, N> {
    pub words: M,
    pub positions: M,
    pub norm: N,
    pub layers: Vec<Layer<D, N>>,
}

/// A dense layer on the host.
#[derive(Debug)]
pub(super) struct HostDense {
    /// (outputs, inputs).
    weight: Vec<f16>,
    bias: Vec<f32>,
}

/// A dense layer on the device.
#[derive(Debug)]
pub(super) struct DeviceDense {
    /// f16 (outputs, inputs).
    pub weight: Buffer,
    /// f32.
    pub bias: Buffer,
}

/// A layer norm on the device.
#[derive(Debug)]
pub(super) struct DeviceNorm {
    scale: Buffer,
    shift: Buffer,
    epsilon: f32,
}

impl DeviceNorm {
    /// Returns the norm in the form that launchers take.
    pub fn view(&self) -> Norm<'_> {
        Norm { scale: &self.scale, shift: &self.shift, epsilon: self.epsilon }
    }
}

/// The model in host memory, ready to be copied.
#[derive(Debug)]
pub(crate) struct HostWeights(Encoder<Vec<f16>, HostDense, elementwise::Norm>);

/// The model on the device.
pub(super) type DeviceWeights = Encoder<Buffer, DeviceDense, DeviceNorm>;

impl HostWeights {
    /// Loads the encoder's tensors from `weights`.
    ///
    /// # Errors
    /// As [`Weights`], and [`EmbedError::Unsupported`] for values beyond the range of f16.
    pub fn new(config: &ModelConfig, weights: &Weights) -> Result<Self, EmbedError> {
        let ModelConfig { hidden, norm_epsilon, .. } = *config;
        let name = "embeddings.word_embeddings.weight";
        let words = weights.table(name, config.vocabulary, hidden)?;
        let positions = weights.positions(config)?;
        let norm = weights.norm("embeddings.LayerNorm", hidden, norm_epsilon)?;
        let layers = (0..config.layers).map(|index| host_layer(config, weights, index));
        Ok(Self(Encoder {
            words: halves(&words)?,
            positions: halves(&positions)?,
            norm,
            layers: layers.collect::<Result<_, _>>()?,
        }))
    }

    /// Returns the number of bytes that the model takes on the device.
    pub(super) fn bytes(&self) -> usize {
        let Encoder { words, positions, norm, layers } = &self.0;
        let of_norm = |norm: &elementwise::Norm| 8 * norm.scale.len();
        let of_dense = |dense: &HostDense| 2 * dense.weight.len() + 4 * dense.bias.len();
        let of_layer = |layer: &Layer<HostDense, elementwise::Norm>| {
            let Layer { query_key_value, attended, attended_norm, widen, narrow, output_norm } =
                layer;
            let dense = [query_key_value, attended, widen, narrow].map(of_dense);
            dense.iter().sum::<usize>() + of_norm(attended_norm) + of_norm(output_norm)
        };
        let layers = layers.iter().map(of_layer).sum::<usize>();
        2 * (words.len() + positions.len()) + of_norm(norm) + layers
    }

    /// Copies the model to a device and waits for the copy to complete.
    ///
    /// # Errors
    /// Errors of the device; nothing remains allocated there.
    pub(super) fn upload(&self, device: &dyn Device) -> Result<DeviceWeights, DeviceError> {
        let mut copy = Copy { device, queue: device.queue()? };
        let copied = copy.encoder(&self.0)?;
        copy.queue.synchronise()?;
        Ok(copied)
    }
}

struct Copy<'a> {
    device: &'a dyn Device,
    queue: Box<dyn Queue>,
}

impl Copy<'_> {
    fn bytes(&mut self, bytes: &[u8]) -> Result<Buffer, DeviceError> {
        let buffer = self.device.allocate(bytes.len());
        let copied = buffer.and_then(|buffer| {
            let sent = self.queue.upload(&buffer, 0, bytes);
            sent.map(|()| buffer)
        });
        if copied.is_err() {
            // Earlier copies may still be in progress, and their buffers are about to be freed. The
            // first error is the one to report.
            let _ = self.queue.synchronise();
        }
        copied
    }

    fn matrix(&mut self, numbers: &[f16]) -> Result<Buffer, DeviceError> {
        // As bits, which is the form that the kernels take.
        let bits: Vec<u16> = numbers.iter().map(|x| x.to_bits()).collect();
        self.bytes(bytemuck::cast_slice(&bits))
    }

    fn vector(&mut self, numbers: &[f32]) -> Result<Buffer, DeviceError> {
        self.bytes(bytemuck::cast_slice(numbers))
    }

    fn dense(&mut self, dense: &HostDense) -> Result<DeviceDense, DeviceError> {
        Ok(DeviceDense { weight: self.matrix(&dense.weight)?, bias: self.vector(&dense.bias)? })
    }

    fn norm(&mut self, norm: &elementwise::Norm) -> Result<DeviceNorm, DeviceError> {
        let (scale, shift) = (self.vector(&norm.scale)?, self.vector(&norm.shift)?);
        Ok(DeviceNorm { scale, shift, epsilon: norm.epsilon })
    }

    fn encoder(
        &mut self,
        host: &Encoder<Vec<f16>, HostDense, elementwise::Norm>,
    ) -> Result<DeviceWeights, DeviceError> {
        let mut layers = Vec::with_capacity(host.layers.len());
        for layer in &host.layers {
            layers.push(Layer {
                query_key_value: self.dense(&layer.query_key_value)?,
                attended: self.dense(&layer.attended)?,
                attended_norm: self.norm(&layer.attended_norm)?,
                widen: self.dense(&layer.widen)?,
                narrow: self.dense(&layer.narrow)?,
                output_norm: self.norm(&layer.output_norm)?,
            });
        }
        Ok(Encoder {
            words: self.matrix(&host.words)?,
            positions: self.matrix(&host.positions)?,
            norm: self.norm(&host.norm)?,
            layers,
        })
    }
}

fn host_layer(
    config: &ModelConfig,
    weights: &Weights,
    index: usize,
) -> Result<Layer<HostDense, elementwise::Norm>, EmbedError> {
    let ModelConfig { hidden, intermediate, norm_epsilon, .. } = *config;
    let at = |part: &str| format!("encoder.layer.{index}.{part}");
    let dense = |part: &str, inputs, outputs| host_dense(weights, &at(part), inputs, outputs);
    let norm = |part: &str| weights.norm(&at(part), hidden, norm_epsilon);
    Ok(Layer {
        query_key_value: host_query_key_value(weights, &at("attention.self"), config)?,
        attended: dense("attention.output.dense", hidden, hidden)?,
        attended_norm: norm("attention.output.LayerNorm")?,
        widen: dense("intermediate.dense", hidden, intermediate)?,
        narrow: dense("output.dense", intermediate, hidden)?,
        output_norm: norm("output.LayerNorm")?,
    })
}

fn host_dense(
    weights: &Weights,
    name: &str,
    inputs: usize,
    outputs: usize,
) -> Result<HostDense, EmbedError> {
    let weight = halves(&weights.table(&format!("{name}.weight"), outputs, inputs)?)?;
    Ok(HostDense { weight, bias: weights.vector(&format!("{name}.bias"), outputs)? })
}

/// As on the CPU: one layer for all three, with the scale of attention folded into the queries.
fn host_query_key_value(
    weights: &Weights,
    attention: &str,
    config: &ModelConfig,
) -> Result<HostDense, EmbedError> {
    let hidden = config.hidden;
    let scale = (1.0 / (config.head() as f64).sqrt()) as f32;
    let (mut weight, mut bias) = (Vec::new(), Vec::new());
    for (part, scale) in [("query", scale), ("key", 1.0), ("value", 1.0)] {
        let name = format!("{attention}.{part}");
        weight.extend(weights.table(&format!("{name}.weight"), hidden, hidden)?);
        bias.extend(weights.vector(&format!("{name}.bias"), hidden)?);
        let (first_weight, first_bias) = (weight.len() - hidden * hidden, bias.len() - hidden);
        for number in weight[first_weight..].iter_mut().chain(&mut bias[first_bias..]) {
            *number *= scale;
        }
    }
    Ok(HostDense { weight: halves(&weight)?, bias })
}

fn halves(numbers: &[f32]) -> Result<Vec<f16>, EmbedError> {
    let halves: Vec<f16> = numbers.iter().map(|x| f16::from_f32(*x)).collect();
    match halves.iter().zip(numbers).find(|(half, _)| !half.is_finite()) {
        None => Ok(halves),
        Some((_, number)) => Err(EmbedError::Unsupported {
            field: "a weight",
            found: number.to_string(),
            expected: "within the range of f16 on a GPU",
        }),
    }
}
