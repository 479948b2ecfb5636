//! The tiles that the inner loops work on: strips of tokens times panels of outputs.

use crate::int16::LANES;

/// Tokens whose sums are in registers at once: with two registers of outputs, 24 of 32.
pub(super) const STRIP: usize = 12;
/// Tokens whose sums are in registers at once, behind the last whole strip. Six keep two
/// multipliers busy for the time that one multiplication takes; fewer would wait for their sums.
pub(super) const TAIL: usize = STRIP / 2;
/// Registers of a panel.
pub(super) const REGISTERS: usize = 2;
/// Outputs of a panel. A panel of 384 inputs takes 24 KiB and stays in a level-1 cache.
pub(super) const PANEL: usize = REGISTERS * LANES;
/// Inputs that one multiplication takes.
pub(super) const STEP: usize = 2;

/// The codes of a panel for one step; aligned, so that no register of them is on two cache lines.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(64))]
pub(super) struct PanelStep(pub [[i16; LANES * STEP]; REGISTERS]);

impl PanelStep {
    pub const ZERO: Self = Self([[0; LANES * STEP]; REGISTERS]);
}

/// A panel of a layer, with the steps and biases of its outputs.
#[derive(Debug)]
pub(super) struct Panel<'a> {
    pub codes: &'a [PanelStep],
    /// Value of one code step, for each output.
    pub steps: &'a [f32; PANEL],
    pub bias: &'a [f32; PANEL],
}
