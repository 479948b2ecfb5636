//! Rows, queries and selections that are likely to reveal bugs.

use lodestone_compute::{
    BoundedQuery, ErrorBound, FullKind, PreparedQuery, RowMask, Selection, VectorColumns,
    VectorRows,
};
use lodestone_types::{IdSource, RowId, SeededIds};

/// The distribution of the rows.
#[derive(Debug, Clone, Copy)]
pub enum Data {
    /// Independent directions.
    Random,
    /// Eight centres with a little noise, so that many rows are within each other's bound.
    Clustered,
    /// Five vectors, repeated, one of them zero, which causes many ties.
    Duplicates,
    /// Includes huge, subnormal, one-hot and zero rows.
    Extremes,
}

/// The selection of rows that may be found.
#[derive(Debug, Clone, Copy)]
pub enum Chosen {
    All,
    /// Every n-th row, starting with the second.
    Masked(usize),
    /// A run of consecutive rows, which leaves most words of the mask empty.
    MaskedRun,
    /// Every n-th row, in descending order.
    Listed(usize),
}

/// A comparison of the device with the CPU.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    pub dimension: usize,
    pub rows: usize,
    pub queries: usize,
    pub k: usize,
    pub data: Data,
    pub chosen: Chosen,
    /// Whether to use the certain error bound instead of the likely one.
    pub is_certain: bool,
}

fn uniform(ids: &SeededIds) -> f32 {
    let mut bytes = [0; 8];
    ids.fill(&mut bytes);
    (u64::from_le_bytes(bytes) >> 40) as f32 / (1 << 23) as f32 - 1.0
}

fn vector(ids: &SeededIds, dimension: usize) -> Vec<f32> {
    (0..dimension).map(|_| uniform(ids)).collect()
}

fn row(case: &Case, ids: &SeededIds, centres: &[Vec<f32>], row: usize) -> Vec<f32> {
    let mut own = vector(ids, case.dimension);
    match case.data {
        Data::Random => {}
        Data::Clustered => {
            let centre = &centres[row * 5 % 8];
            own.iter_mut().zip(centre).for_each(|(own, centre)| *own = centre + 0.01 * *own);
        }
        Data::Duplicates if row % 5 == 4 => own.fill(0.0),
        Data::Duplicates => own.clone_from(&centres[row * 7 % 5]),
        Data::Extremes => match row % 6 {
            0 => own.iter_mut().for_each(|value| *value *= 1e30),
            1 => own.iter_mut().for_each(|value| *value *= 1e-40),
            2 => own.fill(0.0),
            3 => {
                own.fill(0.0);
                own[case.dimension / 2] = -3.0;
            }
            _ => {}
        },
    }
    own
}

/// The rows, queries and selection of a case.
pub struct Asked {
    pub columns: VectorColumns,
    pub queries: Vec<PreparedQuery>,
    mask: Option<RowMask>,
    listed: Option<Vec<RowId>>,
    is_certain: bool,
}

impl Asked {
    pub fn new(case: &Case, seed: u64) -> Self {
        let ids = SeededIds::new(seed);
        let centres: Vec<Vec<f32>> = (0..8).map(|_| vector(&ids, case.dimension)).collect();
        let mut columns = VectorColumns::new(case.dimension, FullKind::F32).unwrap();
        (0..case.rows).for_each(|at| columns.push(&row(case, &ids, &centres, at)).unwrap());
        let query = |at: usize| {
            // Some queries equal rows, which then share the best score with their duplicates.
            let own = match at % 3 {
                0 => centres[at % 8].clone(),
                _ => vector(&ids, case.dimension),
            };
            PreparedQuery::new(&own).unwrap()
        };
        let queries = (0..case.queries).map(query).collect();
        let rows = 0..case.rows as u32;
        let mask = match case.chosen {
            Chosen::Masked(step) => Some(rows.clone().skip(1).step_by(step).collect()),
            Chosen::MaskedRun => {
                let run = case.rows as u32 / 3..(case.rows as u32 / 3 + 70).min(case.rows as u32);
                Some(run.collect())
            }
            Chosen::All | Chosen::Listed(_) => None,
        };
        let mask = mask.map(|bitmap| RowMask::from_bitmap(case.rows, &bitmap));
        let listed = match case.chosen {
            Chosen::Listed(step) => Some(rows.rev().step_by(step).map(RowId).collect()),
            Chosen::All | Chosen::Masked(_) | Chosen::MaskedRun => None,
        };
        Self { columns, queries, mask, listed, is_certain: case.is_certain }
    }

    pub fn selection(&self) -> Selection<'_> {
        match (&self.mask, &self.listed) {
            (Some(mask), _) => Selection::Masked(mask),
            (_, Some(listed)) => Selection::Listed(listed),
            (None, None) => Selection::All,
        }
    }

    pub fn bounded(&self, rows: &VectorRows<'_>) -> Vec<BoundedQuery<'_>> {
        let bound = |query| match self.is_certain {
            true => ErrorBound::new(query, rows),
            false => ErrorBound::likely(query, rows),
        };
        self.queries.iter().map(|query| BoundedQuery { query, bound: bound(query) }).collect()
    }
}
