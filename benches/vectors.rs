//! Seeded vectors that are distributed like embeddings, shared by the benches of segments.

use lodestone_compute::{FullKind, PreparedQuery, VectorColumns};
use lodestone_types::{IdSource, SeededIds};

/// Number of components per row, as in the default model.
const DIMENSION: usize = 384;
const CENTRES: usize = 64;
const SEED: u64 = 0x10DE;

/// Generates `rows` f16 rows around 64 centres, and a query near one of them. A row is its centre
/// plus noise of the same magnitude, so that cosines within a cluster are about 0.5, as between
/// passages on one topic.
pub fn clustered(rows: usize) -> (VectorColumns, PreparedQuery) {
    clustered_as(rows, FullKind::F16)
}

/// Generates vectors like [`clustered`] with rows of the given kind.
pub fn clustered_as(rows: usize, kind: FullKind) -> (VectorColumns, PreparedQuery) {
    let ids = SeededIds::new(SEED);
    let centres: Vec<Vec<f32>> = (0..CENTRES).map(|_| noise(&ids)).collect();
    let near = |position: usize| -> Vec<f32> {
        let centre = &centres[position * 31 % CENTRES];
        noise(&ids).iter().zip(centre).map(|(noise, centre)| noise + centre).collect()
    };
    let mut columns = VectorColumns::new(DIMENSION, kind).expect("384 is supported");
    for position in 0..rows {
        columns.push(&near(position)).expect("rows are finite");
    }
    let query = PreparedQuery::new(&near(7)).expect("the query is finite");
    (columns, query)
}

/// Approximately normal noise: the centred sum of eight uniform bytes per component.
fn noise(ids: &SeededIds) -> Vec<f32> {
    let mut bytes = vec![0; DIMENSION * 8];
    ids.fill(&mut bytes);
    let sums = bytes.chunks(8).map(|part| part.iter().map(|&b| u32::from(b)).sum::<u32>());
    sums.map(|sum| sum as f32 - 1020.0).collect()
}
