//! Diversity: limits the number of chunks of one source in a result.

use std::collections::HashMap;
use std::hash::Hash;

/// Keeps at most `most` results per source, the best ones, preserving the order of `results` (best
/// first).
pub fn cap_per_source<T, K: Eq + Hash>(
    results: &mut Vec<T>,
    most: usize,
    source: impl Fn(&T) -> K,
) {
    let mut kept: HashMap<K, usize> = HashMap::new();
    results.retain(|result| {
        let count = kept.entry(source(result)).or_default();
        *count += 1;
        *count <= most
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_of_each_source_stay_in_order() {
        let mut results = vec![('a', 1), ('a', 2), ('b', 3), ('a', 4), ('b', 5), ('c', 6)];
        cap_per_source(&mut results, 2, |(source, _)| *source);
        assert_eq!(results, [('a', 1), ('a', 2), ('b', 3), ('b', 5), ('c', 6)]);
        cap_per_source(&mut results, 1, |(source, _)| *source);
        assert_eq!(results, [('a', 1), ('b', 3), ('c', 6)]);
    }
}
