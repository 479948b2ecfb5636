//! Attention within the passages of a packed batch, in f32.

use std::ops::Range;

use candle_core::{CpuStorage, Device, InplaceOp1, InplaceOp2, Layout, Tensor};

use crate::elementwise;

/// Computes scaled dot-product attention within each span. `fused` holds (query, key, value) of
/// every token, (tokens, 3 * hidden), with the scale already applied to the query; the result is
/// (tokens, hidden). With a `reach`, a token attends only to tokens at most that far away.
pub(super) fn mixed(
    fused: &Tensor,
    spans: &[Range<usize>],
    heads: usize,
    reach: Option<usize>,
) -> candle_core::Result<Tensor> {
    let (tokens, width) = fused.dims2()?;
    let hidden = width / 3;
    let head = hidden / heads;
    let context = Tensor::zeros((tokens, hidden), fused.dtype(), &Device::Cpu)?;
    for span in spans {
        let length = span.len();
        // (3, heads, length, head), all views of `fused`.
        let parts = fused.narrow(0, span.start, length)?;
        let parts = parts.reshape((length, 3, heads, head))?.permute((1, 2, 0, 3))?;
        let (query, key, value) = (parts.get(0)?, parts.get(1)?, parts.get(2)?);
        let scores = query.matmul(&key.transpose(1, 2)?)?;
        scores.inplace_op1(&InPlace(|rows: &mut [f32]| match reach {
            Some(reach) if reach + 1 < length => softmax_within(rows, length, reach),
            _ => elementwise::softmax(rows, length),
        }))?;
        let mixed = scores.matmul(&value)?;
        let place = |context: &mut [f32], mixed: &[f32]| {
            let rows = &mut context[span.start * hidden..span.end * hidden];
            interleave_heads(rows, mixed, heads, head);
        };
        context.inplace_op2(&mixed, &InPlaceWith(place))?;
    }
    Ok(context)
}

/// Replaces the scores of each token by their softmax over the tokens within `reach`, and 0 for the
/// others. Rows have `length` scores, all tokens of a head before those of the next. Masking by
/// lowering the scores instead would produce denormal weights, which are slow to compute with.
fn softmax_within(rows: &mut [f32], length: usize, reach: usize) {
    for (at, row) in rows.chunks_exact_mut(length).enumerate() {
        let token = at % length;
        let (from, to) = (token.saturating_sub(reach), (token + reach + 1).min(length));
        elementwise::softmax(&mut row[from..to], to - from);
        row[..from].fill(0.0);
        row[to..].fill(0.0);
    }
}

/// Transposes (heads, length, head) into (length, heads, head).
fn interleave_heads(rows: &mut [f32], mixed: &[f32], heads: usize, head: usize) {
    let length = rows.len() / (heads * head);
    for (number, of_head) in mixed.chunks_exact(length * head).enumerate() {
        for (token, numbers) in of_head.chunks_exact(head).enumerate() {
            let start = (token * heads + number) * head;
            rows[start..start + head].copy_from_slice(numbers);
        }
    }
}

/// Wraps a function over the values of a contiguous tensor as a candle in-place operation.
pub(super) struct InPlace<F>(pub F);

impl<F: Fn(&mut [f32])> InplaceOp1 for InPlace<F> {
    fn name(&self) -> &'static str {
        "in-place"
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> candle_core::Result<()> {
        (self.0)(contiguous_mut(storage, layout)?);
        Ok(())
    }
}

/// Like [`InPlace`], with a second contiguous tensor as input.
pub(super) struct InPlaceWith<F>(pub F);

impl<F: Fn(&mut [f32], &[f32])> InplaceOp2 for InPlaceWith<F> {
    fn name(&self) -> &'static str {
        "in-place with"
    }

    fn cpu_fwd(
        &self,
        storage: &mut CpuStorage,
        layout: &Layout,
        other: &CpuStorage,
        other_layout: &Layout,
    ) -> candle_core::Result<()> {
        let Some((start, end)) = other_layout.contiguous_offsets() else {
            candle_core::bail!("the second tensor is not contiguous");
        };
        let other = &other.as_slice::<f32>()?[start..end];
        (self.0)(contiguous_mut(storage, layout)?, other);
        Ok(())
    }
}

fn contiguous_mut<'a>(
    storage: &'a mut CpuStorage,
    layout: &Layout,
) -> candle_core::Result<&'a mut [f32]> {
    let Some((start, end)) = layout.contiguous_offsets() else {
        candle_core::bail!("the tensor is not contiguous");
    };
    match storage {
        CpuStorage::F32(numbers) => Ok(&mut numbers[start..end]),
        _ => candle_core::bail!("the numbers are not f32"),
    }
}
