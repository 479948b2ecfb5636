//! Reads `model.safetensors` into the tensors of an encoder, checking every shape.

use std::borrow::Cow;
use std::collections::HashMap;

#[cfg(any(test, feature = "candle-cuda"))]
use candle_core::{Device, Tensor};
use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors};

use crate::EmbedError;
use crate::config::ModelConfig;
use crate::elementwise::{self, Norm};
use crate::product::Packed;

/// A dense layer: `input x weight + bias`.
#[derive(Debug)]
pub(super) struct Dense {
    /// (inputs, outputs), packed for multiplication.
    pub weight: Packed,
    /// One component per output, added in the step after the product.
    pub bias: Vec<f32>,
}

/// Byte value that encodes 0 in a quantised adapter tensor.
const ZERO: f32 = 128.0;
/// Prefixes of the encoder's tensors in exports that include a head.
const PREFIXES: [&str; 3] = ["bert.", "roberta.", "model."];

impl Dense {
    /// Applies the layer to `states`, (tokens, inputs): (tokens, outputs).
    pub fn forward(&self, states: &[f32]) -> Vec<f32> {
        let mut output = self.weight.multiply(states);
        elementwise::add_bias(&mut output, &self.bias);
        output
    }
}

/// The tensors of a file by name, without the prefixes that some exports add.
#[derive(Debug)]
pub(super) struct Weights<'f> {
    /// Folder of the file within the model's directory, empty or ending in `/`.
    folder: String,
    tensors: HashMap<String, Stored<'f>>,
}

/// A tensor as stored in a file, little endian, or computed from such tensors.
#[derive(Debug, Clone)]
struct Stored<'f> {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Cow<'f, [u8]>,
}

impl Stored<'_> {
    fn computed(numbers: &[f32], shape: &[usize]) -> Self {
        let bytes = bytemuck::must_cast_slice::<f32, u8>(numbers).to_vec().into();
        Self { dtype: Dtype::F32, shape: shape.to_vec(), bytes }
    }
}

impl<'f> Weights<'f> {
    /// Parses the bytes of a safetensors file. Each tensor is copied once, when it is requested;
    /// mapping the file instead of reading it would require unsafe code here.
    pub fn parse(bytes: &'f [u8]) -> Result<Self, EmbedError> {
        Self::parse_in("", bytes)
    }

    /// Parses a safetensors file in a folder of the model's directory.
    pub fn parse_in(folder: &str, bytes: &'f [u8]) -> Result<Self, EmbedError> {
        let folder = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        let file = format!("{folder}model.safetensors");
        let malformed = |problem| EmbedError::Malformed { file: file.clone(), problem };
        let found =
            SafeTensors::deserialize(bytes).map_err(|error| malformed(error.to_string()))?;
        let mut tensors = HashMap::with_capacity(found.len());
        for (name, view) in found.tensors() {
            let bare = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix));
            let bare = bare.unwrap_or(&name).to_owned();
            let (shape, bytes) = (view.shape().to_vec(), Cow::Borrowed(view.data()));
            if tensors.insert(bare, Stored { dtype: view.dtype(), shape, bytes }).is_some() {
                return Err(malformed(format!("two tensors of the name {name}")));
            }
        }
        Ok(Self { folder, tensors })
    }

    /// Applies a low-rank adapter (Hu et al. 2021): adds the product of the adapter's tensors
    /// `x.up`, (outputs, rank), and `x.down`, (rank, inputs), to the weight of each layer `x`. The
    /// adapter's other tensors replace the model's.
    ///
    /// # Errors
    /// [`EmbedError::MissingTensor`] and [`EmbedError::WrongShape`] if the adapter does not fit.
    pub fn adapt(&mut self, adapter: &Weights<'f>) -> Result<(), EmbedError> {
        for name in adapter.tensors.keys() {
            let (adapted, tensor) = match name.rsplit_once('.') {
                Some((_, "down" | "scale")) => continue,
                Some((layer, "up")) => {
                    let down = format!("{layer}.down");
                    let [outputs, rank] = adapter.sides(name)?;
                    let [_, inputs] = adapter.sides(&down)?;
                    adapter.shaped(&down, &[rank, inputs])?;
                    let (up, down) = (adapter.unpacked(name)?, adapter.unpacked(&down)?);
                    let weight = format!("{layer}.weight");
                    let mut sum = self.table(&weight, outputs, inputs)?;
                    add_product(&mut sum, &up, &down, inputs);
                    (weight, Stored::computed(&sum, &[outputs, inputs]))
                }
                _ if adapter.contains(&format!("{name}.scale")) => {
                    let numbers = adapter.unpacked(name)?;
                    (name.clone(), Stored::computed(&numbers, &adapter.sides(name)?))
                }
                _ => (name.clone(), adapter.tensor(name)?.clone()),
            };
            self.tensors.insert(adapted, tensor);
        }
        Ok(())
    }

    /// Returns the values of a matrix in row-major order. A byte tensor with a `name.scale` next to
    /// it is quantised: values are offset by 128, and each row has its own scale.
    fn unpacked(&self, name: &str) -> Result<Vec<f32>, EmbedError> {
        let [rows, width] = self.sides(name)?;
        let mut numbers = self.table(name, rows, width)?;
        let scale = format!("{name}.scale");
        if self.contains(&scale) {
            let scales = self.vector(&scale, rows)?;
            for (row, scale) in numbers.chunks_exact_mut(width).zip(scales) {
                row.iter_mut().for_each(|number| *number = (*number - ZERO) * scale);
            }
        }
        Ok(numbers)
    }

    /// Returns a matrix of `rows` by `columns`.
    #[cfg(any(test, feature = "candle-cuda"))]
    pub fn matrix(&self, name: &str, rows: usize, columns: usize) -> Result<Tensor, EmbedError> {
        let numbers = self.table(name, rows, columns)?;
        Ok(Tensor::from_vec(numbers, (rows, columns), &Device::Cpu)?)
    }

    /// Returns the values of a matrix in row-major order.
    pub fn table(&self, name: &str, rows: usize, width: usize) -> Result<Vec<f32>, EmbedError> {
        self.numbers(name, &[rows, width])
    }

    /// Whether the file has a tensor of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    /// Returns the vectors added to the word embedding at each position of a passage: position plus
    /// first token type, (window, hidden).
    pub fn positions(&self, config: &ModelConfig) -> Result<Vec<f32>, EmbedError> {
        let hidden = config.hidden;
        let name = "embeddings.position_embeddings.weight";
        let mut positions = self.table(name, config.positions, hidden)?;
        positions.drain(..config.first_position() * hidden);
        positions.truncate(config.window() * hidden);
        elementwise::add_bias(&mut positions, &self.types(config)?[..hidden]);
        Ok(positions)
    }

    /// Returns the second token type minus the first; zeros for a model with one type.
    pub fn second_type(&self, config: &ModelConfig) -> Result<Vec<f32>, EmbedError> {
        let types = self.types(config)?;
        let (first, others) = types.split_at(config.hidden);
        let second = if others.is_empty() { first } else { others };
        Ok(second.iter().zip(first).map(|(second, first)| second - first).collect())
    }

    /// Returns the table (token types, hidden).
    fn types(&self, config: &ModelConfig) -> Result<Vec<f32>, EmbedError> {
        let name = "embeddings.token_type_embeddings.weight";
        self.table(name, config.token_types, config.hidden)
    }

    /// Returns the values of a vector.
    pub fn vector(&self, name: &str, length: usize) -> Result<Vec<f32>, EmbedError> {
        self.numbers(name, &[length])
    }

    /// Returns the dense layer `name`.
    pub fn dense(&self, name: &str, inputs: usize, outputs: usize) -> Result<Dense, EmbedError> {
        self.dense_with(name, (inputs, outputs), true)
    }

    /// Returns query, key and value of `attention` as one dense layer, built as by
    /// [`Self::plain_query_key_value`].
    pub fn query_key_value(
        &self,
        attention: &str,
        hidden: usize,
        head: usize,
    ) -> Result<Dense, EmbedError> {
        let (weight, bias) = self.plain_query_key_value(attention, hidden, head)?;
        Ok(Dense { weight: Packed::new(&weight, hidden, 3 * hidden), bias })
    }

    /// Returns the dense layer `name`; without a bias, its bias is zeros.
    pub fn dense_with(
        &self,
        name: &str,
        (inputs, outputs): (usize, usize),
        has_bias: bool,
    ) -> Result<Dense, EmbedError> {
        let (weight, bias) = self.plain(name, (inputs, outputs), has_bias)?;
        Ok(Dense { weight: Packed::new(&weight, inputs, outputs), bias })
    }

    /// Returns the weights, (inputs, outputs) in row-major order, and the bias of the dense layer
    /// `name`; zeros if it has none.
    pub fn plain(
        &self,
        name: &str,
        (inputs, outputs): (usize, usize),
        has_bias: bool,
    ) -> Result<(Vec<f32>, Vec<f32>), EmbedError> {
        let weight = self.table(&format!("{name}.weight"), outputs, inputs)?;
        let bias = match has_bias {
            true => self.vector(&format!("{name}.bias"), outputs)?,
            false => vec![0.0; outputs],
        };
        Ok((beside_each_other(&[&weight], inputs), bias))
    }

    /// Returns query, key and value of `attention` side by side, (hidden, 3 * hidden), so that one
    /// product computes all three. The factor 1/sqrt(head) of attention is folded into the query.
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

    /// Like [`Self::plain_query_key_value`], for a file that stores the three as one layer, (3 *
    /// hidden, hidden).
    pub fn plain_query_key_value_in_one(
        &self,
        name: &str,
        hidden: usize,
        head: usize,
        has_bias: bool,
    ) -> Result<(Vec<f32>, Vec<f32>), EmbedError> {
        let scale = (1.0 / (head as f64).sqrt()) as f32;
        let mut weight = self.table(&format!("{name}.weight"), 3 * hidden, hidden)?;
        weight[..hidden * hidden].iter_mut().for_each(|number| *number *= scale);
        let mut bias = vec![0.0; 3 * hidden];
        if has_bias {
            bias = self.vector(&format!("{name}.bias"), 3 * hidden)?;
            bias[..hidden].iter_mut().for_each(|number| *number *= scale);
        }
        Ok((beside_each_other(&[&weight], hidden), bias))
    }

    /// Returns the layer norm `name`; exports from TensorFlow call its parts gamma and beta.
    pub fn norm(&self, name: &str, width: usize, epsilon: f32) -> Result<Norm, EmbedError> {
        let is_old = self.contains(&format!("{name}.gamma"));
        let (scale, shift) = if is_old { ("gamma", "beta") } else { ("weight", "bias") };
        let scale = self.vector(&format!("{name}.{scale}"), width)?;
        let shift = self.vector(&format!("{name}.{shift}"), width)?;
        Ok(Norm { scale, shift, epsilon })
    }

    fn tensor(&self, name: &str) -> Result<&Stored<'f>, EmbedError> {
        let missing = || EmbedError::MissingTensor { tensor: format!("{}{name}", self.folder) };
        self.tensors.get(name).ok_or_else(missing)
    }

    /// Returns the rows and columns of a matrix.
    fn sides(&self, name: &str) -> Result<[usize; 2], EmbedError> {
        let shape = &self.tensor(name)?.shape;
        <[usize; 2]>::try_from(&shape[..]).map_err(|_| self.misshapen(name, vec![0, 0], shape))
    }

    fn shaped(&self, name: &str, expected: &[usize]) -> Result<&Stored<'f>, EmbedError> {
        let tensor = self.tensor(name)?;
        if tensor.shape != expected {
            return Err(self.misshapen(name, expected.to_vec(), &tensor.shape));
        }
        Ok(tensor)
    }

    fn misshapen(&self, name: &str, expected: Vec<usize>, found: &[usize]) -> EmbedError {
        let tensor = format!("{}{name}", self.folder);
        EmbedError::WrongShape { tensor, expected, found: found.to_vec() }
    }

    /// Converts a tensor to f32, from the types that weights come in.
    fn numbers(&self, name: &str, shape: &[usize]) -> Result<Vec<f32>, EmbedError> {
        let Stored { dtype, bytes, .. } = self.shaped(name, shape)?;
        let halves = || bytes.chunks_exact(2).map(|two| [two[0], two[1]]);
        Ok(match dtype {
            Dtype::F32 => plain_numbers(bytes),
            Dtype::F64 => {
                let eight = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().expect("eight"));
                bytes.chunks_exact(8).map(|bytes| eight(bytes) as f32).collect()
            }
            Dtype::F16 => halves().map(|two| f16::from_le_bytes(two).to_f32()).collect(),
            Dtype::BF16 => halves().map(|two| bf16::from_le_bytes(two).to_f32()).collect(),
            Dtype::U8 => bytes.iter().copied().map(f32::from).collect(),
            other => {
                return Err(EmbedError::Unsupported {
                    field: "the type of a tensor",
                    found: format!("{other:?} ({}{name})", self.folder),
                    expected: "F32, F16, BF16, F64 or U8",
                });
            }
        })
    }
}

/// Copies the bytes of f32 numbers at once: weights are most of what a start reads.
fn plain_numbers(bytes: &[u8]) -> Vec<f32> {
    let mut numbers = vec![0.0; bytes.len() / 4];
    bytemuck::must_cast_slice_mut::<f32, u8>(&mut numbers).copy_from_slice(bytes);
    numbers
}

/// Adds the product of `up`, (outputs, rank), and `down`, (rank, inputs), to `sum`.
fn add_product(sum: &mut [f32], up: &[f32], down: &[f32], inputs: usize) {
    let rank = down.len() / inputs;
    for (sum, factors) in sum.chunks_exact_mut(inputs).zip(up.chunks_exact(rank)) {
        for (factor, row) in factors.iter().zip(down.chunks_exact(inputs)) {
            sum.iter_mut().zip(row).for_each(|(sum, number)| *sum += factor * number);
        }
    }
}

/// Transposes matrices of (outputs, inputs) and concatenates them into one of (inputs, sum of
/// outputs). Works in blocks of 16 by 16: consecutive values of a column are a whole row apart, and
/// blocking reuses their cache lines before they are evicted.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(tensors: &[(&str, &[f32], &[usize])]) -> Weights<'static> {
        let tensor = |(name, numbers, shape): &(&str, &[f32], &[usize])| {
            ((*name).to_owned(), Stored::computed(numbers, shape))
        };
        let tensors = tensors.iter().map(tensor).collect();
        Weights { folder: String::new(), tensors }
    }

    #[test]
    fn an_adapter_adds_products_and_replaces_what_has_no_factors() {
        let mut model = weights(&[
            ("layer.weight", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]),
            ("layer.bias", &[0.5, 0.5], &[2]),
            ("head.weight", &[9.0, 9.0], &[1, 2]),
        ]);
        let adapter = weights(&[
            ("layer.up", &[1.0, -1.0], &[2, 1]),
            ("layer.down", &[10.0, 20.0, 30.0], &[1, 3]),
            ("head.weight", &[7.0, 8.0], &[1, 2]),
            ("head.bias", &[0.25], &[1]),
        ]);
        model.adapt(&adapter).expect("they fit");
        let table = model.table("layer.weight", 2, 3).expect("a table");
        assert_eq!(table, [11.0, 22.0, 33.0, -6.0, -15.0, -24.0]);
        assert_eq!(model.vector("layer.bias", 2).expect("as before"), [0.5, 0.5]);
        assert_eq!(model.table("head.weight", 1, 2).expect("replaced"), [7.0, 8.0]);
        assert_eq!(model.vector("head.bias", 1).expect("added"), [0.25]);
    }

    #[test]
    fn numbers_of_every_type_of_weights_are_read_and_others_refused() {
        let mut model = weights(&[]);
        let tensors = [
            ("f16", Dtype::F16, [1.5, -2.0].map(|n| f16::from_f32(n).to_le_bytes()).concat()),
            ("bf16", Dtype::BF16, [1.5, -2.0].map(|n| bf16::from_f32(n).to_le_bytes()).concat()),
            ("f64", Dtype::F64, [1.5_f64, -2.0].map(f64::to_le_bytes).concat()),
            ("ids", Dtype::I64, [1_i64, 2].map(i64::to_le_bytes).concat()),
        ];
        for (name, dtype, bytes) in tensors {
            let tensor = Stored { dtype, shape: vec![2], bytes: bytes.into() };
            model.tensors.insert(name.to_owned(), tensor);
        }
        for name in ["f16", "bf16", "f64"] {
            assert_eq!(model.vector(name, 2).expect("a vector"), [1.5, -2.0], "{name}");
        }
        let refused = model.vector("ids", 2).expect_err("no numbers of weights").to_string();
        assert!(refused.contains("I64 (ids)"), "{refused}");
    }

    #[test]
    fn bytes_of_an_adapter_are_scaled_row_by_row() {
        let mut model = weights(&[("layer.weight", &[0.0; 4], &[2, 2])]);
        let mut adapter = weights(&[
            ("layer.up.scale", &[0.5, 0.25], &[2]),
            ("layer.down", &[1.0, 10.0], &[1, 2]),
            ("head.weight.scale", &[0.5, 0.25], &[2]),
        ]);
        let bytes = vec![130_u8, 124].into();
        let bytes = Stored { dtype: Dtype::U8, shape: vec![2, 1], bytes };
        adapter.tensors.insert("layer.up".to_owned(), bytes.clone());
        adapter.tensors.insert("head.weight".to_owned(), bytes);
        model.adapt(&adapter).expect("they fit");
        assert_eq!(model.table("head.weight", 2, 1).expect("replaced"), [1.0, -1.0]);
        let table = model.table("layer.weight", 2, 2).expect("a table");
        assert_eq!(table, [1.0, 10.0, -1.0, -10.0]);
    }

    #[test]
    fn an_adapter_of_another_model_is_refused() {
        let model = || weights(&[("layer.weight", &[1.0; 6], &[2, 3])]);
        let up = ("layer.up", &[1.0; 3][..], &[3, 1][..]);
        let down = ("layer.down", &[1.0; 3][..], &[1, 3][..]);
        let refused = |adapter: &Weights| model().adapt(adapter).expect_err("it does not fit");
        assert!(matches!(refused(&weights(&[up, down])), EmbedError::WrongShape { .. }));
        assert!(matches!(refused(&weights(&[up])), EmbedError::MissingTensor { .. }));
        let other = [("other.up", &[1.0; 2][..], &[2, 1][..]), ("other.down", down.1, down.2)];
        assert!(matches!(refused(&weights(&other)), EmbedError::MissingTensor { .. }));
    }
}
