//! Builds lists from rows.

use crate::segment::lists::ListPolicy;
use crate::segment::lists::encode::encode;
use crate::segment::lists::source::{BuiltLists, FINITE, ListSource, Older, Trials, members_of};
use lodestone_compute::kmeans::{Centroids, CodeRows, lloyd, means};
use lodestone_compute::{code_stride, encode_row};

/// Rows of the sample, for each list, from which points are learnt.
const SAMPLE_A_LIST: usize = 64;
/// Rounds of k-means among all rows of the sample, and among those of one group.
const GROUP_ROUNDS: usize = 8;
const LIST_ROUNDS: usize = 6;
/// Rounds after the groups are put together again.
const JOINT_ROUNDS: usize = 2;
/// Groups whose lists a row is compared with. With the nearest 6 of 58, one neighbour in 200 was in
/// a list that no search read; with 12 one in 800 (1,000,000 clustered rows).
const GROUPS_PROBED: usize = 12;

/// Builds the lists of all rows of `source`; there is at least one.
pub fn build(source: &dyn ListSource, policy: ListPolicy) -> BuiltLists {
    let rows = source.row_count();
    let all: Vec<u32> = (0..rows as u32).collect();
    let older = source.older().filter(|older| older.points.len() > 1);
    let list_of = if rows < policy.listed_rows_min && older.is_none() {
        vec![0; rows]
    } else {
        let (mut points, mut list_of) = match older {
            Some(older) => keep(source, older),
            None => {
                let points = learn(source, rows / policy.list_rows);
                let list_of = Grouped::new(&points, source.dimension()).assign(source, &all);
                (points, list_of)
            }
        };
        balance(source, policy.list_rows, &mut points, &mut list_of);
        list_of
    };
    encode(source, &list_of, Trials::Every)
}

/// Points from a sample: groups first, then lists inside each group, then both together.
fn learn(source: &dyn ListSource, count: usize) -> Vec<Vec<f32>> {
    let (rows, dimension) = (source.row_count(), source.dimension());
    let size = (count * SAMPLE_A_LIST).min(rows);
    // Neighbouring rows are of one source; equal steps see all of them.
    let sample: Vec<u32> = (0..size).map(|at| (at * rows / size) as u32).collect();
    let groups = (count as f64).sqrt().ceil() as usize;
    let step = (size / (groups * 2 * SAMPLE_A_LIST)).max(1);
    let few: Vec<u32> = sample.iter().copied().step_by(step).collect();
    let group_points = lloyd(source, &few, groups, GROUP_ROUNDS, dimension);
    let mut members = vec![Vec::new(); group_points.len()];
    let group_points = Centroids::new(&group_points, dimension);
    source.assign(&group_points, &sample, 1, &mut |at, best| {
        members[best[0].1 as usize].push(sample[at]);
    });
    let mut points = Vec::with_capacity(count);
    for rows in members.iter().filter(|rows| !rows.is_empty()) {
        let share = (rows.len() * count).div_ceil(size);
        points.extend(lloyd(source, rows, share, LIST_ROUNDS, dimension));
    }
    for _ in 0..JOINT_ROUNDS {
        let list_of = Grouped::new(&points, dimension).assign(source, &sample);
        let found = means(source, &sample, &list_of, points.len(), dimension);
        points.iter_mut().zip(found).for_each(|(point, mean)| {
            if let Some(mean) = mean {
                *point = mean;
            }
        });
    }
    points
}

/// Keeps rows of an older segment in their lists and assigns the others.
fn keep(source: &dyn ListSource, older: &Older) -> (Vec<Vec<f32>>, Vec<u32>) {
    let Older { points, list_of: known } = older;
    let fresh: Vec<u32> =
        (0..known.len() as u32).filter(|row| known[*row as usize].is_none()).collect();
    let found = Grouped::new(points, source.dimension()).assign(source, &fresh);
    let mut list_of: Vec<u32> = known.iter().map(|list| list.unwrap_or(0)).collect();
    for (row, list) in fresh.iter().zip(found) {
        list_of[*row as usize] = list;
    }
    (points.clone(), list_of)
}

/// Dissolves lists below a quarter of the mean size and splits those above twice of it, so that a
/// list costs about the same whichever it is (LIRE, SPFresh, SOSP 2023).
fn balance(
    source: &dyn ListSource,
    list_rows: usize,
    points: &mut Vec<Vec<f32>>,
    list_of: &mut [u32],
) {
    let dimension = source.dimension();
    let mean = source.row_count().div_ceil(points.len()).clamp(list_rows / 2, list_rows * 2);
    let members = members_of(list_of, points.len());
    let is_kept: Vec<bool> = members.iter().map(|rows| rows.len() * 4 >= mean).collect();
    if is_kept.contains(&true) && is_kept.contains(&false) {
        let kept: Vec<u32> = (0..points.len() as u32).filter(|l| is_kept[*l as usize]).collect();
        let mut new_of = vec![0; points.len()];
        kept.iter().enumerate().for_each(|(new, old)| new_of[*old as usize] = new as u32);
        *points = kept.iter().map(|list| std::mem::take(&mut points[*list as usize])).collect();
        let (settled, homeless): (Vec<u32>, Vec<u32>) =
            (0..list_of.len() as u32).partition(|row| is_kept[list_of[*row as usize] as usize]);
        let found = Grouped::new(points, dimension).assign(source, &homeless);
        for row in settled {
            list_of[row as usize] = new_of[list_of[row as usize] as usize];
        }
        for (row, list) in homeless.iter().zip(found) {
            list_of[*row as usize] = list;
        }
    }
    for (list, rows) in members_of(list_of, points.len()).into_iter().enumerate() {
        if rows.len() <= 2 * mean {
            continue;
        }
        let parts = lloyd(source, &rows, rows.len().div_ceil(mean), LIST_ROUNDS, dimension);
        let first_new = points.len() as u32;
        source.assign(&Centroids::new(&parts, dimension), &rows, 1, &mut |at, best| {
            let part = best[0].1;
            let to = if part == 0 { list as u32 } else { first_new + part - 1 };
            list_of[rows[at] as usize] = to;
        });
        let mut parts = parts.into_iter();
        points[list] = parts.next().expect("a list over its size splits into two or more");
        points.extend(parts);
    }
}

/// Points in groups, so that a row need not be compared with all.
struct Grouped {
    groups: Centroids,
    members: Vec<Vec<u32>>,
    points: Vec<Centroids>,
}

impl Grouped {
    fn new(points: &[Vec<f32>], dimension: usize) -> Self {
        let encoded = EncodedPoints::new(points, dimension);
        let all: Vec<u32> = (0..points.len() as u32).collect();
        let count = (points.len() as f64).sqrt().ceil() as usize;
        let groups =
            Centroids::new(&lloyd(&encoded, &all, count, GROUP_ROUNDS, dimension), dimension);
        let mut members = vec![Vec::new(); groups.len()];
        groups.assign(&encoded, &all, 1, |at, best| members[best[0].1 as usize].push(at as u32));
        let of = |members: &Vec<u32>| {
            let points: Vec<Vec<f32>> =
                members.iter().map(|point| points[*point as usize].clone()).collect();
            Centroids::new(&points, dimension)
        };
        let points = members.iter().map(of).collect();
        Self { groups, members, points }
    }

    /// The nearest point of each listed row.
    fn assign(&self, rows: &dyn CodeRows, listed: &[u32]) -> Vec<u32> {
        let mut asked = vec![Vec::new(); self.members.len()];
        rows.assign(&self.groups, listed, GROUPS_PROBED, &mut |at, best| {
            best.iter().for_each(|(_, group)| asked[*group as usize].push(at as u32));
        });
        let mut best = vec![(f32::NEG_INFINITY, 0); listed.len()];
        for (group, places) in asked.iter().enumerate() {
            if self.members[group].is_empty() {
                continue;
            }
            let of_group: Vec<u32> = places.iter().map(|at| listed[*at as usize]).collect();
            rows.assign(&self.points[group], &of_group, 1, &mut |at, found| {
                let best = &mut best[places[at] as usize];
                let (score, point) = found[0];
                if score > best.0 {
                    *best = (score, self.members[group][point as usize]);
                }
            });
        }
        best.into_iter().map(|(_, list)| list).collect()
    }
}

/// Points as rows of codes.
struct EncodedPoints {
    codes: Vec<i8>,
    scales: Vec<f32>,
    stride: usize,
}

impl EncodedPoints {
    fn new(points: &[Vec<f32>], dimension: usize) -> Self {
        let mut codes = Vec::with_capacity(points.len() * code_stride(dimension));
        let encode = |point: &Vec<f32>| encode_row(point, &mut codes).expect(FINITE).scale;
        let scales = points.iter().map(encode).collect();
        Self { codes, scales, stride: code_stride(dimension) }
    }
}

impl CodeRows for EncodedPoints {
    fn codes(&self, row: u32) -> &[i8] {
        &self.codes[row as usize * self.stride..][..self.stride]
    }

    fn scale(&self, row: u32) -> f32 {
        self.scales[row as usize]
    }
}
