//! Safe access to the inner loops: checks the processor's instructions once a call.

use crate::config::Activation;
use crate::elementwise;
use crate::int16::Attention;
#[cfg(target_arch = "x86_64")]
use crate::int16::attention;
use crate::int16::panel::Panel;
use crate::int16::quantize::Codes;
#[cfg(target_arch = "x86_64")]
use crate::int16::x86;

/// Memory of attention, where there is none.
#[cfg(not(target_arch = "x86_64"))]
#[derive(Debug, Default)]
pub(super) struct Attention;

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

/// `codes` times the `panels`, which have `width` outputs together, and their bias; the products
/// replace the numbers of `output` (tokens, outputs) or are added to them.
pub(super) fn multiply<'p>(
    (panels, width): (impl Iterator<Item = Panel<'p>>, usize),
    codes: &Codes,
    output: &mut [f32],
    adds: bool,
) {
    assert!(has_instructions(), "layers are made only where the instructions are");
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instructions are there, as was found above.
    #[allow(unsafe_code)]
    unsafe {
        x86::multiply((panels, width), codes, output, adds);
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (panels, width, codes, output, adds);
}

/// Attention of one head over one passage: `rows` (tokens, 3, head) are queries, already divided
/// by the square root of `head`, keys and values; the results go to the columns from `at` on of
/// `context`, rows of `hidden` numbers. With a `reach`, a token attends to those that are at most
/// so far away.
pub(super) fn attend(
    rows: &[f32],
    (head, reach): (usize, Option<usize>),
    context: &mut [f32],
    (at, hidden): (usize, usize),
    scratch: &mut Attention,
) {
    assert!(has_instructions(), "layers are made only where the instructions are");
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the instructions are there, as was found above.
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
        // SAFETY: the instructions are there, as was found above.
        #[allow(unsafe_code)]
        unsafe {
            x86::activate(row);
        }
        return;
    }
    elementwise::activate(row, activation);
}
