//! Rotary position embeddings (Su et al. 2021): components i and i + head / 2 of a query or key are
//! rotated as a point in the plane, by its position times theta^(-2 i / head).

use pulp::{Arch, Simd, WithSimd};

/// Angles of every position of the window, (window, half).
#[derive(Debug)]
pub(crate) struct Rotation {
    /// Half the number of components of a head.
    half: usize,
    cosines: Vec<f32>,
    sines: Vec<f32>,
}

impl Rotation {
    /// Computes the angles of `window` positions for heads of `head` components.
    pub fn new(window: usize, head: usize, theta: f64) -> Self {
        let half = head / 2;
        let angle = |at: usize| {
            let step = theta.powf(-((at % half) as f64) / half as f64);
            let (sine, cosine) = ((at / half) as f64 * step).sin_cos();
            (cosine as f32, sine as f32)
        };
        let (cosines, sines) = (0..window * half).map(angle).unzip();
        Self { half, cosines, sines }
    }

    /// Rotates the queries and keys of a passage's rows, (tokens, 3, heads, head), by their
    /// position in the passage.
    pub fn turn(&self, rows: &mut [f32], heads: usize) {
        Arch::new().dispatch(Turn { rotation: self, rows, heads });
    }
}

struct Turn<'a> {
    rotation: &'a Rotation,
    rows: &'a mut [f32],
    heads: usize,
}

impl WithSimd for Turn<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        let Self { rotation: Rotation { half, cosines, sines }, rows, heads } = self;
        let head = 2 * half;
        let angles = cosines.chunks_exact(*half).zip(sines.chunks_exact(*half));
        for (row, (cosines, sines)) in rows.chunks_exact_mut(3 * heads * head).zip(angles) {
            for numbers in row[..2 * heads * head].chunks_exact_mut(head) {
                let (first, second) = numbers.split_at_mut(*half);
                let points = first.iter_mut().zip(second);
                for ((x, y), (cosine, sine)) in points.zip(cosines.iter().zip(sines)) {
                    (*x, *y) = (*x * cosine - *y * sine, *y * cosine + *x * sine);
                }
            }
        }
    }
}
