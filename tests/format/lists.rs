//! The list and T0 sections of version 1, read and searched as they were written.
//!
//! They are separate files because only segments of 16,384 rows or more have lists, which would
//! make a fixture of several megabytes.

use std::fs;
use std::path::PathBuf;

use lodestone_compute::rotation::Rotation;
use lodestone_compute::{FullKind, PreparedQuery, VectorColumns, VectorRows};
use lodestone_storage::segment::lists::{Effort, ListPolicy, Lists, NearRows, build, probe};
use lodestone_types::{IdSource, RowId, SeededIds};

use crate::are_written_now;

const DIMENSION: usize = 40;
const ROWS: usize = 700;
const LISTS: usize = 7;
const K: usize = 10;

/// Bytes aligned to eight, as sections are.
struct Aligned {
    words: Vec<u64>,
    len: usize,
}

impl Aligned {
    fn new(bytes: &[u8]) -> Self {
        let mut words = vec![0; bytes.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
        Self { words, len: bytes.len() }
    }

    fn read(section: &str) -> Self {
        Self::new(&fs::read(path(section)).unwrap())
    }

    fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }
}

/// The T1 scores of all rows for one query.
struct Seen<'a> {
    rows: VectorRows<'a>,
    query: &'a PreparedQuery,
}

impl NearRows for Seen<'_> {
    fn passes(&self, _: RowId) -> bool {
        true
    }

    fn fetch(&self, _: RowId) {}

    fn estimate(&self, row: RowId) -> (f32, f32) {
        (self.rows.estimate(row.0 as usize, self.query), 0.0)
    }
}

/// Rows in seven directions, generated from a seed so that they are identical everywhere.
fn rows() -> VectorColumns {
    let ids = SeededIds::new(0x1157);
    let bytes = |ids: &SeededIds| {
        let mut bytes = [0; DIMENSION];
        ids.fill(&mut bytes);
        bytes.map(|byte| f32::from(byte) - 127.5)
    };
    let centres: Vec<_> = (0..LISTS).map(|_| bytes(&ids)).collect();
    let mut columns = VectorColumns::new(DIMENSION, FullKind::F16).unwrap();
    for row in 0..ROWS {
        let (noise, centre) = (bytes(&ids), &centres[row % LISTS]);
        let vector: Vec<f32> = noise.iter().zip(centre).map(|(n, c)| n * 0.5 + c).collect();
        columns.push(&vector).unwrap();
    }
    columns
}

fn path(section: &str) -> PathBuf {
    crate::version_1::parts().join(section)
}

/// Writes the fixtures on request; see `main.rs`.
#[test]
fn write_list_fixtures() {
    if !are_written_now(&path("lists")) {
        return;
    }
    let policy = ListPolicy { listed_rows_min: 0, list_rows: ROWS / LISTS };
    let built = build(&rows().view(), policy);
    fs::create_dir_all(path("")).unwrap();
    fs::write(path("lists"), built.lists).unwrap();
    fs::write(path("one_bit"), built.one_bit).unwrap();
}

#[test]
fn lists_are_read_and_searched_as_they_were_written() {
    let (head, blocks) = (Aligned::read("lists"), Aligned::read("one_bit"));
    let lists = Lists::view(DIMENSION, head.bytes(), blocks.bytes()).unwrap();
    lists.check(ROWS).unwrap();
    assert_eq!((lists.len(), lists.one_bit(0).len()), (LISTS, 2));

    let (columns, rotation) = (rows(), Rotation::new(DIMENSION));
    let rows = columns.view();
    let mut unit = vec![0.0; DIMENSION];
    for asked in [0, 99, 311, ROWS - 1] {
        rows.unit(asked, &mut unit);
        let query = PreparedQuery::new(&unit).unwrap();
        let mut best: Vec<u32> = (0..ROWS as u32).collect();
        let score = |row: &u32| rows.estimate(*row as usize, &query);
        best.sort_by(|a, b| score(b).total_cmp(&score(a)));
        let found =
            probe(&lists, &rotation, &query, K, Effort::EXACT, Seen { rows, query: &query });
        let found: Vec<u32> = found.candidates.iter().map(|hit| hit.row.0).collect();
        assert_eq!(best[0], asked as u32);
        for row in &best[..K] {
            assert!(found.contains(row), "row {row} of the best {K} is not among {found:?}");
        }
        // One bit per component suffices to rule out most rows.
        assert!(found.len() < ROWS / 4, "{} rows were not ruled out", found.len());
    }
}

#[test]
fn cut_sections_are_refused() {
    let (head, blocks) = (fs::read(path("lists")).unwrap(), Aligned::read("one_bit"));
    for keep in [0, 63, 64, head.len() / 2, head.len() - 1] {
        let cut = Aligned::new(&head[..keep]);
        assert!(Lists::view(DIMENSION, cut.bytes(), blocks.bytes()).is_err(), "{keep} bytes");
    }
    let cut = Aligned::new(&blocks.bytes()[..blocks.len / 2]);
    assert!(Lists::view(DIMENSION, &head, cut.bytes()).is_err());
}
