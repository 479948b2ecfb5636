//! Safe access to the inner loops: checks the processor's instructions on every call.

use crate::config::Activation;
use crate::elementwise;
use crate::int16::Attention;
#[cfg(target_arch = "x86_64")]
use crate::int16::attention;
use crate::int16::panel::Panel;
use crate::int16::quantize::Codes;
#[cfg(target_arch = "x86_64")]
use crate::int16::x86;

/// Placeholder for attention's scratch memory on other architectures.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Debug, Default)]
pub(super) struct Attention;

/// Whether the processor supports the instructions of the inner loops.
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

/// Multiplies `codes` by `panels`, which have `width` outputs in total, and adds the bias. The
/// results replace `output`, (tokens, outputs), or are added to it if `adds`.
pub(super) fn multiply<'p>(
    (panels, width): (impl Iterator<Item = Panel<'p>>, usize),
    codes: &Codes,
    output: &mut [f32],
    adds: bool,
) {
    assert!(has_instructions(), "layers are made only where the instructions are");
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the assertion above ensures that the instructions are present.
    #[allow(unsafe_code)]
    unsafe {
        x86::multiply((panels, width), codes, output, adds);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (panels, width, codes, output, adds);
}

/// Computes attention of one head over one passage. `rows`, (tokens, 3, head), holds queries,
/// already divided by the square root of `head`, keys and values. Writes the results to the columns
/// of `context` from `at` on, whose rows have `hidden` values. With a `reach`, a token attends only
/// to tokens at most that far away.
pub(super) fn attend(
    rows: &[f32],
    (head, reach): (usize, Option<usize>),
    context: &mut [f32],
    (at, hidden): (usize, usize),
    scratch: &mut Attention,
) {
    assert!(has_instructions(), "layers are made only where the instructions are");
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the assertion above ensures that the instructions are present.
    #[allow(unsafe_code)]
    unsafe {
        attention::attend(rows, (head, reach), context, (at, hidden), scratch);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (rows, head, reach, context, at, hidden, scratch);
}

/// Applies the activation to `row`.
pub(super) fn activate(row: &mut [f32], activation: Activation) {
    #[cfg(target_arch = "x86_64")]
    if activation == Activation::Gelu && has_instructions() {
        // SAFETY: the condition above ensures that the instructions are present.
        #[allow(unsafe_code)]
        unsafe {
            x86::activate(row);
        }
        return;
    }
    elementwise::activate(row, activation);
}
