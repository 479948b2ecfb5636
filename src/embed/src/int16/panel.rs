//! The tiles of the inner loops: strips of tokens times panels of outputs.

use crate::int16::LANES;

/// Tokens whose sums are held in registers: with two registers of outputs, 24 of 32.
pub(super) const STRIP: usize = 12;
/// Tokens per strip after the last whole one. Six keep two multipliers busy for the latency of one
/// multiplication; fewer would wait for their sums.
pub(super) const TAIL: usize = STRIP / 2;
/// Registers per panel.
pub(super) const REGISTERS: usize = 2;
/// Outputs per panel. A panel of 384 inputs takes 24 KiB and fits a level-1 cache.
pub(super) const PANEL: usize = REGISTERS * LANES;
/// Inputs that one instruction multiplies.
pub(super) const STEP: usize = 2;

/// The codes of a panel for one step, aligned so that no register load crosses a cache line.
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
    /// Value of one code step, per output.
    pub steps: &'a [f32; PANEL],
    pub bias: &'a [f32; PANEL],
}
