//! Spherical k-means on codes: balanced lists for IVF.
//!
//! ```text
//! sample -> k1 coarse centroids -> the rows of each, split again -> k centroids
//!        -> rounds of: assign through the nearest coarse ones, take means
//! ```
//! Two levels cost `k1 + k / k1 * probes` products per row and round instead of k. Means are
//! normalised for assignment (Dhillon and Modha 2001); an empty list takes half of the largest.

use std::fmt;

use crate::rows::VectorRows;
use crate::tiles::{PackedCodes, STRIP};
use crate::{code_stride, encode_row};

/// Receives the nearest centroids of one row, best first, as pairs of product and centroid number.
/// The first argument is the position of the row in the list.
pub type TakeNearest<'a> = dyn FnMut(usize, &[(f32, u32)]) + 'a;

/// T1 codes of rows by row id; the input of k-means.
pub trait CodeRows {
    /// Returns the padded codes of a row.
    fn codes(&self, row: u32) -> &[i8];
    /// Returns the scale of a row.
    fn scale(&self, row: u32) -> f32;

    /// Assigns listed rows like [`Centroids::assign`], calling `take` once per row. Rows held on a
    /// device may be assigned there in less time.
    fn assign(
        &self,
        points: &Centroids,
        listed: &[u32],
        nearest: usize,
        take: &mut TakeNearest<'_>,
    ) {
        points.assign(self, listed, nearest, take);
    }
}

/// The nearest centroids of some rows, equally many per row.
#[derive(Debug, Clone, PartialEq)]
pub struct Nearest {
    pub(super) rows: usize,
    pub(super) each: usize,
    pub(super) points: Vec<(f32, u32)>,
}

impl Nearest {
    /// Iterates over the rows: centroids of each and their products with it, without the row's
    /// scale, best first.
    pub fn rows(&self) -> impl Iterator<Item = &[(f32, u32)]> {
        (0..self.rows).map(|row| &self.points[row * self.each..][..self.each])
    }
}

/// Rows of codes that a device holds while lists are built from them.
pub trait HeldRows: fmt::Debug {
    /// Returns the `nearest` centroids of each listed row, as [`Centroids::assign`] finds them;
    /// `None` if the CPU has to do it.
    fn nearest(&self, points: &Centroids, listed: &[u32], nearest: usize) -> Option<Nearest>;
}

impl CodeRows for VectorRows<'_> {
    fn codes(&self, row: u32) -> &[i8] {
        VectorRows::codes(self, row as usize)
    }

    fn scale(&self, row: u32) -> f32 {
        VectorRows::scale(self, row as usize)
    }
}

/// Normalised centroids in codes, packed for products.
#[derive(Debug)]
pub struct Centroids {
    packed: PackedCodes,
    scales: Vec<f32>,
}

impl Centroids {
    /// Packs centroids of `dimension` components; they need not be normalised.
    pub fn new(centroids: &[Vec<f32>], dimension: usize) -> Self {
        let mut codes = Vec::with_capacity(centroids.len() * code_stride(dimension));
        let scales = centroids
            .iter()
            .map(|centroid| encode_row(centroid, &mut codes).expect("means of finite rows").scale)
            .collect();
        Self { packed: PackedCodes::new(codes, code_stride(dimension)), scales }
    }

    /// Returns the number of centroids.
    pub fn len(&self) -> usize {
        self.scales.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Returns the padded codes of all centroids and their scales.
    pub fn codes(&self) -> (&[i8], &[f32]) {
        (self.packed.all_codes(), &self.scales)
    }

    /// Finds the `nearest` centroids of each row, best first, calling `take` once per row.
    pub fn assign<R: CodeRows + ?Sized>(
        &self,
        rows: &R,
        listed: &[u32],
        nearest: usize,
        mut take: impl FnMut(usize, &[(f32, u32)]),
    ) {
        let mut best: [Vec<(f32, u32)>; STRIP] = Default::default();
        for (strip, listed) in listed.chunks(STRIP).enumerate() {
            best.iter_mut().for_each(Vec::clear);
            let mut codes = [&[][..]; STRIP];
            for (codes, row) in codes.iter_mut().zip(listed) {
                *codes = rows.codes(*row);
            }
            self.packed.multiply(&codes[..listed.len()], |row, first, dots| {
                let best = &mut best[row];
                let scales = &self.scales[first..first + dots.len()];
                let mut threshold =
                    if best.len() < nearest { f32::NEG_INFINITY } else { best[nearest - 1].0 };
                let scored = dots.iter().zip(scales).map(|(dot, scale)| *dot as f32 * scale);
                // Branch-free, so that the compiler tests several centroids at a time.
                let any = scored.clone().fold(0, |any, score| any | u32::from(score > threshold));
                if any == 0 {
                    return;
                }
                for (at, score) in scored.enumerate() {
                    if score > threshold {
                        let place = best.partition_point(|(other, _)| *other >= score);
                        best.insert(place, (score, (first + at) as u32));
                        best.truncate(nearest);
                        if best.len() == nearest {
                            threshold = best[nearest - 1].0;
                        }
                    }
                }
            });
            for (at, best) in best.iter().enumerate().take(listed.len()) {
                take(strip * STRIP + at, best);
            }
        }
    }
}

/// Returns the mean of the rows of each list; `None` for an empty list.
pub fn means(
    rows: &dyn CodeRows,
    listed: &[u32],
    list_of: &[u32],
    count: usize,
    dimension: usize,
) -> Vec<Option<Vec<f32>>> {
    let mut sums = vec![0.0_f32; count * dimension];
    let mut sizes = vec![0_u32; count];
    for (row, list) in listed.iter().zip(list_of) {
        let (codes, scale) = (rows.codes(*row), rows.scale(*row));
        let sum = &mut sums[*list as usize * dimension..][..dimension];
        sum.iter_mut().zip(codes).for_each(|(sum, code)| *sum += f32::from(*code) * scale);
        sizes[*list as usize] += 1;
    }
    let mean = |(sum, size): (&[f32], &u32)| {
        (*size > 0).then(|| sum.iter().map(|value| value / *size as f32).collect())
    };
    sums.chunks_exact(dimension).zip(&sizes).map(mean).collect()
}

/// Returns `count` centroids of the listed rows after `rounds` rounds of Lloyd's algorithm.
pub fn lloyd(
    rows: &dyn CodeRows,
    listed: &[u32],
    count: usize,
    rounds: usize,
    dimension: usize,
) -> Vec<Vec<f32>> {
    let count = count.min(listed.len()).max(1);
    let decode = |row: u32| -> Vec<f32> {
        rows.codes(row)[..dimension].iter().map(|code| f32::from(*code)).collect()
    };
    // Initial centroids: rows at equal distances in the list, which is in random order.
    let mut centroids: Vec<Vec<f32>> =
        (0..count).map(|at| decode(listed[at * listed.len() / count])).collect();
    let mut list_of = vec![0; listed.len()];
    for _ in 0..rounds {
        let points = Centroids::new(&centroids, dimension);
        rows.assign(&points, listed, 1, &mut |at, best| list_of[at] = best[0].1);
        let found = means(rows, listed, &list_of, count, dimension);
        refill(&mut centroids, found, &list_of);
    }
    centroids
}

/// Replaces centroids by new means; that of an empty list moves next to the largest list's.
fn refill(centroids: &mut [Vec<f32>], found: Vec<Option<Vec<f32>>>, list_of: &[u32]) {
    let mut sizes = vec![0_u32; centroids.len()];
    list_of.iter().for_each(|list| sizes[*list as usize] += 1);
    for (list, mean) in found.into_iter().enumerate() {
        if let Some(mean) = mean {
            centroids[list] = mean;
        }
    }
    for list in 0..centroids.len() {
        if sizes[list] > 0 {
            continue;
        }
        let largest = (0..sizes.len()).max_by_key(|at| sizes[*at]).expect("there are lists");
        let mut moved = centroids[largest].clone();
        for (at, value) in moved.iter_mut().enumerate() {
            let side = if at % 2 == 0 { 1.01 } else { 0.99 };
            *value *= side;
        }
        centroids[list] = moved;
        sizes[largest] /= 2;
        sizes[list] = sizes[largest];
    }
}
