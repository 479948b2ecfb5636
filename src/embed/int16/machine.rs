//! The only door to the inner loops: looks at the processor, once a call.

use crate::embed::config::Activation;
use crate::embed::elementwise;
use crate::embed::int16::product::Dense;
use crate::embed::int16::quantize::Codes;
#[cfg(target_arch = "x86_64")]
use crate::embed::int16::x86;

/// Memory of attention over one passage.
#[derive(Debug, Default)]
pub(super) struct Attention {
    /// (head, keys filled up to whole tiles).
    pub keys: Vec<f32>,
    /// (keys, head).
    pub values: Vec<f32>,
    /// (queries of a strip, keys filled up to whole tiles).
    pub scores: Vec<f32>,
}

/// Whether the processor has the instructions of the inner loops.
pub(super) fn has_instructions() -> bool {
    #[cfg(target_arch = "x86_64")]
    {
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vnni")
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        false
    }
}

/// `codes` times `layer` into `output`, (tokens, outputs).
pub(super) fn multiply(layer: &Dense, codes: &Codes, output: &mut [f32]) {
    assert!(has_instructions(), "layers are made only where the instructions are");
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instructions are there, as was found above.
    #[allow(unsafe_code)]
    unsafe {
        x86::multiply(layer, codes, output);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (layer, codes, output);
}

/// Attention of one passage: `fused` (tokens, 3, heads, head) are queries, already divided by the
/// square root of `head`, keys and values; `context` is (tokens, heads, head).
pub(super) fn attend(
    fused: &[f32],
    heads: usize,
    head: usize,
    context: &mut [f32],
    scratch: &mut Attention,
) {
    assert!(has_instructions(), "layers are made only where the instructions are");
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instructions are there, as was found above.
    #[allow(unsafe_code)]
    unsafe {
        x86::attend(fused, heads, head, context, scratch);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (fused, heads, head, context, scratch);
}

/// Adds `bias` to `row` and applies the activation.
pub(super) fn add_bias_activate(row: &mut [f32], bias: &[f32], activation: Activation) {
    #[cfg(target_arch = "x86_64")]
    if activation == Activation::Gelu && has_instructions() {
        // SAFETY: the instructions are there, as was found above.
        #[allow(unsafe_code)]
        unsafe {
            x86::add_bias_gelu(row, bias);
        }
        return;
    }
    elementwise::add_bias_activate(row, bias, activation);
}
