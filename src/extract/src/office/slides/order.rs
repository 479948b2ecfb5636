//! Reading order of the shapes on a slide, by recursive X-Y cut: split into rows where gaps allow
//! it, else into columns, and recurse; shapes without a gap between them go from top to bottom.

use crate::office::slides::shape::{Bounds, Shape};

/// Maximum depth of cuts. Slides need three; more only cost time.
const CUTS_MAX: usize = 8;
/// Edges may overlap by this fraction (1/n) of their length and still count as separate.
const OVERLAP_PART: i64 = 8;

/// Sorts shapes into reading order. Shapes without a position follow the one before them.
pub(super) fn sorted(shapes: Vec<Shape>) -> Vec<Shape> {
    let mut places = Vec::with_capacity(shapes.len());
    let mut last = Bounds::default();
    for shape in &shapes {
        last = shape.bounds.unwrap_or(last);
        places.push(last);
    }
    let mut sorted = Vec::with_capacity(shapes.len());
    // Groups still to split, the next on top, with the number of cuts that produced them.
    let mut waiting: Vec<(Vec<usize>, usize)> = vec![((0..shapes.len()).collect(), 0)];
    while let Some((mut group, cuts)) = waiting.pop() {
        let parts = match () {
            () if group.len() < 2 || cuts >= CUTS_MAX => Vec::new(),
            () => {
                let rows = parted(&mut group, |n| (places[n].y, places[n].height));
                if rows.len() > 1 {
                    rows
                } else {
                    parted(&mut group, |n| (places[n].x, places[n].width))
                }
            }
        };
        if parts.len() > 1 {
            waiting.extend(parts.into_iter().rev().map(|part| (part, cuts + 1)));
        } else {
            group.sort_by_key(|&n| (places[n].y, places[n].x, n));
            sorted.extend(group);
        }
    }
    let mut shapes: Vec<Option<Shape>> = shapes.into_iter().map(Some).collect();
    sorted.into_iter().filter_map(|n| shapes[n].take()).collect()
}

/// Splits a group at gaps that no shape crosses. `extent` gives start and length of a shape.
fn parted(group: &mut [usize], extent: impl Fn(usize) -> (i64, i64)) -> Vec<Vec<usize>> {
    let inner = |n: usize| {
        let (start, length) = extent(n);
        let slack = length.max(0) / OVERLAP_PART;
        (start.saturating_add(slack), start.saturating_add(length.max(0)).saturating_sub(slack))
    };
    group.sort_by_key(|&n| (inner(n).0, n));
    let mut parts: Vec<Vec<usize>> = Vec::new();
    let mut end = i64::MIN;
    for &n in group.iter() {
        let (start, stop) = inner(n);
        match parts.last_mut() {
            Some(part) if start < end => part.push(n),
            _ => parts.push(vec![n]),
        }
        end = end.max(stop);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(places: &[(i64, i64, i64, i64)]) -> Vec<i64> {
        let shape = |(number, &(x, y, width, height)): (usize, &(i64, i64, i64, i64))| Shape {
            bounds: Some(Bounds { x, y, width, height }),
            index: Some(number as i64),
            ..Shape::default()
        };
        let shapes = places.iter().enumerate().map(shape).collect();
        sorted(shapes).iter().filter_map(|shape| shape.index).collect()
    }

    #[test]
    fn columns_are_read_one_after_the_other_where_no_row_parts_them() {
        // One tall box on the right next to three on the left.
        let tall =
            [(500, 100, 400, 400), (0, 380, 400, 100), (0, 100, 400, 100), (0, 240, 400, 100)];
        assert_eq!(order(&tall), [2, 3, 1, 0]);
        // Two by two: rows.
        let square = [(500, 300, 90, 90), (0, 300, 90, 90), (500, 0, 90, 90), (0, 0, 90, 90)];
        assert_eq!(order(&square), [3, 2, 1, 0]);
        // Overlapping slightly, or entirely.
        assert_eq!(order(&[(0, 95, 900, 100), (0, 0, 900, 100)]), [1, 0]);
        assert_eq!(order(&[(0, 0, 9, 9), (0, 0, 9, 9)]), [0, 1]);
        assert_eq!(order(&[(i64::MAX, i64::MAX, i64::MAX, 1), (0, 0, -5, -5)]), [1, 0]);
    }
}
