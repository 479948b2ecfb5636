//! Attention of all heads over the passages of a block.

use std::ops::Range;

use crate::EmbedError;
use crate::config::ModelConfig;
use crate::int16::Attention;
use crate::int16::machine::attend;
use crate::int16::product::Dense;
use crate::int16::quantize::Codes;

/// Tokens that go through a layer at a time; more only to complete the last passage.
const BLOCK: usize = 192;

/// Scratch memory that one forward pass reuses.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) codes: Codes,
    /// (tokens, 3, head) of one head.
    of_head: Vec<f32>,
    pub(super) context: Vec<f32>,
    pub(super) share: Vec<f32>,
    /// The second half of the outputs of a gated layer.
    pub(super) gates: Vec<f32>,
    pub(super) share_codes: Codes,
    attention: Attention,
}

/// The dense layer from states to queries, keys and values, grouped by head.
#[derive(Debug)]
pub(super) struct Heads {
    count: usize,
    query_key_value: Dense,
}

impl Heads {
    /// Builds the layer from weights, (hidden, 3 * hidden), and a bias, both with all queries
    /// before all keys.
    pub fn new(
        config: &ModelConfig,
        name: &str,
        (weights, bias): (Vec<f32>, Vec<f32>),
    ) -> Result<Self, EmbedError> {
        let [weights, bias] = [weights, bias].map(|rows| by_head(&rows, config));
        let query_key_value = Dense::named(name, (&weights, bias), config.hidden)?;
        Ok(Self { count: config.heads, query_key_value })
    }

    /// Returns the dense layer. The caller encodes states with it into `Scratch::codes`.
    pub fn dense(&self) -> &Dense {
        &self.query_key_value
    }

    /// Computes attention within the passages at `spans`, from `codes` to `context`. Applies `turn`
    /// to the rows, (tokens, 3, head), of each passage. With a `reach`, a token attends only to
    /// tokens at most that far away.
    pub fn mix(
        &self,
        spans: &[Range<usize>],
        reach: Option<usize>,
        turn: impl Fn(&mut [f32]),
        scratch: &mut Scratch,
    ) {
        let hidden = self.query_key_value.inputs();
        let head = hidden / self.count;
        let Scratch { codes, of_head, context, attention, .. } = scratch;
        let first = spans[0].start;
        context.resize(codes.steps().len() * hidden, 0.0);
        for number in 0..self.count {
            let columns = number * 3 * head..(number + 1) * 3 * head;
            self.query_key_value.multiply(codes, columns, of_head);
            for span in spans {
                let (start, end) = (span.start - first, span.end - first);
                let rows = &mut of_head[start * 3 * head..end * 3 * head];
                turn(rows);
                let context = &mut context[start * hidden..end * hidden];
                attend(rows, (head, reach), context, (number * head, hidden), attention);
            }
        }
    }
}

/// Groups passages that go through a layer together.
pub(super) fn blocks(spans: &[Range<usize>]) -> impl Iterator<Item = &[Range<usize>]> {
    let mut rest = spans;
    std::iter::from_fn(move || {
        let start = rest.first()?.start;
        let filled = rest.iter().position(|span| span.end - start >= BLOCK);
        let (block, behind) = rest.split_at(filled.map_or(rest.len(), |at| at + 1));
        rest = behind;
        Some(block)
    })
}

/// Reorders rows of (3, heads, head) to (heads, 3, head), so that a head's columns are contiguous.
fn by_head(rows: &[f32], config: &ModelConfig) -> Vec<f32> {
    let (hidden, head) = (config.hidden, config.head());
    let mut turned = Vec::with_capacity(rows.len());
    for row in rows.chunks_exact(3 * hidden) {
        for number in 0..config.heads {
            for part in row.chunks_exact(hidden) {
                turned.extend_from_slice(&part[number * head..(number + 1) * head]);
            }
        }
    }
    turned
}
