//! Rotary positions (Su et al. 2021): number i of a query or key and number i + head / 2 are turned
//! as one point of the plane, by its position times theta^(-2 i / head).

use std::ops::Range;

/// Angles of every position of the window.
#[derive(Debug)]
pub(super) struct Rotation {
    /// Numbers of half a head.
    half: usize,
    /// (window, half): cosine and sine.
    angles: Vec<(f32, f32)>,
}

impl Rotation {
    /// The angles of `window` positions for heads of `head` numbers.
    pub fn new(window: usize, head: usize, theta: f64) -> Self {
        let half = head / 2;
        let angle = |at: usize| {
            let step = theta.powf(-((at % half) as f64) / half as f64);
            let (sine, cosine) = ((at / half) as f64 * step).sin_cos();
            (cosine as f32, sine as f32)
        };
        Self { half, angles: (0..window * half).map(angle).collect() }
    }

    /// Turns queries and keys of `fused`, (tokens, 3 * hidden), by their place in their span.
    pub fn turn(&self, fused: &mut [f32], spans: &[Range<usize>], heads: usize) {
        let Self { half, angles } = self;
        let head = 2 * half;
        let width = 3 * heads * head;
        for span in spans {
            let rows = fused[span.start * width..span.end * width].chunks_exact_mut(width);
            for (row, angles) in rows.zip(angles.chunks_exact(*half)) {
                for numbers in row[..2 * heads * head].chunks_exact_mut(head) {
                    let (first, second) = numbers.split_at_mut(*half);
                    for ((x, y), (cosine, sine)) in first.iter_mut().zip(second).zip(angles) {
                        (*x, *y) = (*x * cosine - *y * sine, *y * cosine + *x * sine);
                    }
                }
            }
        }
    }
}
