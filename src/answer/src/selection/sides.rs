//! The rows that a comparison names by their keys: "the ketch or the big ketch".

use std::cmp::Reverse;

use crate::selection::choose::Choice;
use crate::text::terms::is_common;
use crate::text::words::spaced;

/// Number of rows that a comparison names.
const SIDES: usize = 2;

impl Choice<'_> {
    /// The two rows of the first one's table whose keys occur whole in a question that compares, in
    /// its order. A key within a longer one is not named by it, and a key of several rows names
    /// none.
    pub(crate) fn sides_by_key(&self, first: usize) -> Option<Vec<usize>> {
        let mates = self.mates(first);
        if !self.question.compares || mates.len() < SIDES {
            return None;
        }
        let names = self.keys_of(&mates);
        let keys = mates.iter().filter_map(|at| {
            let mut cells = self.candidate(*at).cells.iter();
            let key = cells.rfind(|cell| names.contains(cell.name.as_str()))?;
            Some((spaced(&key.value.replace('_', " ")), *at))
        });
        let mut keys: Vec<(String, usize)> = keys.collect();
        keys.sort_by_key(|(key, _)| Reverse(key.len()));
        let mut asked = spaced(self.question.last());
        let mut named: Vec<(usize, usize)> = Vec::new();
        for (key, at) in &keys {
            let said = key.trim();
            let is_name = said.chars().count() > 1 && !is_common(said);
            let Some(place) = asked.find(key.as_str()).filter(|_| is_name) else { continue };
            if keys.iter().filter(|(other, _)| other == key).count() > 1 {
                return None;
            }
            // Blanks keep the places of the words behind, and a blank on either side.
            let end = place + key.len();
            asked.replace_range(place + 1..end - 1, &" ".repeat(said.len()));
            named.push((place, *at));
        }
        named.sort_unstable();
        (named.len() == SIDES).then(|| named.into_iter().map(|(_, at)| at).collect())
    }
}
