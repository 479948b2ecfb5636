//! `model.safetensors` into the tensors of an encoder, every shape checked.

use std::collections::HashMap;

use candle_core::{DType, Device, Tensor};

use crate::EmbedError;
use crate::config::ModelConfig;
use crate::elementwise::{self, Norm};
use crate::product::Packed;

/// A dense layer: `input x weight + bias`.
#[derive(Debug)]
pub(super) struct Dense {
    /// (inputs, outputs), packed for the product.
    pub weight: Packed,
    /// One number for each output; added by the step after the product.
    pub bias: Vec<f32>,
}

/// The tensors of a file by name, without the prefix that some exports put before them.
#[derive(Debug)]
pub(super) struct Weights {
    tensors: HashMap<String, Tensor>,
}

impl Weights {
    /// Parses the bytes of a safetensors file. Copies them: mapping the file would need unsafe
    /// code here, and a change of the file would change vectors of a running server.
    pub fn parse(bytes: &[u8]) -> Result<Self, EmbedError> {
        let malformed = |problem| EmbedError::Malformed { file: "model.safetensors", problem };
        let loaded = candle_core::safetensors::load_buffer(bytes, &Device::Cpu)
            .map_err(|error| malformed(error.to_string()))?;
        let mut tensors = HashMap::with_capacity(loaded.len());
        for (name, tensor) in loaded {
            let bare = name.strip_prefix("bert.").unwrap_or(&name).to_owned();
            if tensors.insert(bare, tensor).is_some() {
                return Err(malformed(format!("two tensors of the name {name}")));
            }
        }
        Ok(Self { tensors })
    }

    /// A matrix of `rows` by `columns` as it is in the file.
    pub fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Tensor, EmbedError> {
        self.shaped(name, &[rows, columns])
    }

    /// The numbers of a matrix, row by row.
    pub fn table(&self, name: &str, rows: usize, width: usize) -> Result<Vec<f32>, EmbedError> {
        Ok(self.matrix(name, rows, width)?.flatten_all()?.to_vec1()?)
    }

    /// Whether the file has a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Vectors added to the words at each position of a passage: the position's and that of the
    /// first token type, (window, hidden).
    pub fn positions(&self, config: &ModelConfig) -> Result<Vec<f32>, EmbedError> {
        let hidden = config.hidden;
        let name = "embeddings.position_embeddings.weight";
        let mut positions = self.table(name, config.positions, hidden)?;
        positions.truncate(config.window() * hidden);
        elementwise::add_bias(&mut positions, &self.types(config)?[..hidden]);
        Ok(positions)
    }

    /// Difference of the second token type from the first; zeros in a model of one type.
    pub fn second_type(&self, config: &ModelConfig) -> Result<Vec<f32>, EmbedError> {
        let types = self.types(config)?;
        let (first, others) = types.split_at(config.hidden);
        let second = if others.is_empty() { first } else { others };
        Ok(second.iter().zip(first).map(|(second, first)| second - first).collect())
    }

    /// (token types, hidden).
    fn types(&self, config: &ModelConfig) -> Result<Vec<f32>, EmbedError> {
        let name = "embeddings.token_type_embeddings.weight";
        self.table(name, config.token_types, config.hidden)
    }

    /// The numbers of a vector.
    pub fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, EmbedError> {
        Ok(self.shaped(name, &[length])?.to_vec1()?)
    }

    /// The dense layer `name`.
    pub fn dense(&self, name: &str, inputs: usize, outputs: usize) -> Result<Dense, EmbedError> {
        let (weight, bias) = self.plain(name, inputs, outputs)?;
        Ok(Dense { weight: Packed::new(&weight, inputs, outputs), bias })
    }

    /// Query, key and value of `attention` as one dense layer, as
    /// [`Self::plain_query_key_value`] gives it.
    pub fn query_key_value(
        &self,
        attention: &str,
        hidden: usize,
        head: usize,
    ) -> Result<Dense, EmbedError> {
        let (weight, bias) = self.plain_query_key_value(attention, hidden, head)?;
        Ok(Dense { weight: Packed::new(&weight, hidden, 3 * hidden), bias })
    }

    /// Weights (inputs, outputs) of the dense layer `name`, row by row, and its bias.
    pub fn plain(
        &self,
        name: &str,
        inputs: usize,
        outputs: usize,
    ) -> Result<(Vec<f32>, Vec<f32>), EmbedError> {
        let weight = self.table(&format!("{name}.weight"), outputs, inputs)?;
        let bias = self.vector(&format!("{name}.bias"), outputs)?;
        Ok((beside_each_other(&[&weight], inputs), bias))
    }

    /// Query, key and value of `attention` side by side, (hidden, 3 * hidden), so that one product
    /// computes all three. The 1/sqrt(head) of attention is multiplied into the query here.
    pub fn plain_query_key_value(
        &self,
        attention: &str,
        hidden: usize,
        head: usize,
    ) -> Result<(Vec<f32>, Vec<f32>), EmbedError> {
        let scale = (1.0 / (head as f64).sqrt()) as f32;
        let part = |name: &str| -> Result<(Vec<f32>, Vec<f32>), EmbedError> {
            let name = format!("{attention}.{name}");
            let weight = self.table(&format!("{name}.weight"), hidden, hidden)?;
            Ok((weight, self.vector(&format!("{name}.bias"), hidden)?))
        };
        let (mut query, mut bias) = part("query")?;
        query.iter_mut().chain(&mut bias).for_each(|number| *number *= scale);
        let (key, key_bias) = part("key")?;
        let (value, value_bias) = part("value")?;
        bias.extend(key_bias);
        bias.extend(value_bias);
        Ok((beside_each_other(&[&query, &key, &value], hidden), bias))
    }

    /// The layer norm `name`; exports from TensorFlow call its parts gamma and beta.
    pub fn norm(&self, name: &str, width: usize, epsilon: f32) -> Result<Norm, EmbedError> {
        let is_old = self.contains(&format!("{name}.gamma"));
        let (scale, shift) = if is_old { ("gamma", "beta") } else { ("weight", "bias") };
        let scale = self.vector(&format!("{name}.{scale}"), width)?;
        let shift = self.vector(&format!("{name}.{shift}"), width)?;
        Ok(Norm { scale, shift, epsilon })
    }

    fn shaped(&self, name: &str, expected: &[usize]) -> Result<Tensor, EmbedError> {
        let tensor = self
            .tensors
            .get(name)
            .ok_or_else(|| EmbedError::MissingTensor { tensor: name.to_owned() })?;
        if tensor.dims() != expected {
            return Err(EmbedError::WrongShape {
                tensor: name.to_owned(),
                expected: expected.to_vec(),
                found: tensor.dims().to_vec(),
            });
        }
        Ok(tensor.to_dtype(DType::F32)?)
    }
}

/// Matrices of (outputs, inputs) each, turned into one of (inputs, sum of outputs). In squares of
/// 16 by 16 numbers: a column of the file lies a whole row apart, and its cache lines are used
/// while they are there.
fn beside_each_other(parts: &[&[f32]], inputs: usize) -> Vec<f32> {
    const SIDE: usize = 16;
    let width = parts.iter().map(|part| part.len() / inputs).sum::<usize>();
    let mut turned = vec![0.0; inputs * width];
    let mut first = 0;
    for part in parts {
        for (band, rows) in part.chunks(SIDE * inputs).enumerate() {
            for begin in (0..inputs).step_by(SIDE) {
                for (row, numbers) in rows.chunks_exact(inputs).enumerate() {
                    let output = first + band * SIDE + row;
                    for (input, number) in numbers.iter().enumerate().skip(begin).take(SIDE) {
                        turned[input * width + output] = *number;
                    }
                }
            }
        }
        first += part.len() / inputs;
    }
    turned
}
