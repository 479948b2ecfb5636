//! The oracle that other backends are tested against: slow and simple, everything in f64.

use half::f16;

use crate::backend::ComputeBackend;
use crate::backend_steps::{begin, cosine, settled};
use crate::rows::estimate;
use crate::{ComputeError, FullRows, PreparedQuery, Selection, VectorRows};
use lodestone_types::RowId;

/// Computes with plain loops in f64, on any processor.
#[derive(Debug, Clone, Copy, Default)]
pub struct ScalarBackend;

impl ComputeBackend for ScalarBackend {
    fn name(&self) -> &'static str {
        "scalar"
    }

    fn scan(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        selection: Selection<'_>,
        estimates: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        begin(rows, query, selection, estimates)?;
        selection.for_each(rows.len(), |row| {
            let pairs = query.codes().iter().zip(rows.codes(row));
            let dot: f64 = pairs.map(|(&q, &x)| f64::from(q) * f64::from(x)).sum();
            estimates.push(estimate(dot, rows, row, query));
        });
        Ok(())
    }

    fn exact(
        &self,
        rows: &VectorRows<'_>,
        query: &PreparedQuery,
        listed: &[RowId],
        scores: &mut Vec<f32>,
    ) -> Result<(), ComputeError> {
        begin(rows, query, Selection::Listed(listed), scores)?;
        let dimension = rows.dimension();
        for row in listed {
            let first = row.0 as usize * dimension;
            let cosine = match rows.full() {
                FullRows::F16(bits) => {
                    let pairs = query.unit().iter().zip(&bits[first..first + dimension]);
                    pairs.map(|(&q, &x)| f64::from(q) * f16::from_bits(x).to_f64()).sum()
                }
                FullRows::F32 { values, .. } => {
                    cosine(query.unit(), &values[first..first + dimension])
                }
            };
            scores.push(settled(cosine));
        }
        Ok(())
    }
}
