//! Counts of the records that an import stored, and of those it rejected with reasons.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::json;

use crate::cli::client::screen::{one_line, print_json};

/// Number of records listed per reason.
const NAMED_MAX: usize = 5;
/// Number of reasons, and of unsupported members, listed separately; further ones are combined.
const KINDS_MAX: usize = 50;

/// The result of an import.
#[derive(Debug, Default)]
pub struct Tally {
    /// Records stored on the server.
    pub taken: u64,
    /// Records stored by an earlier run.
    pub known: u64,
    /// Parts of records that cannot be imported.
    pub parts: BTreeSet<String>,
    refused: BTreeMap<String, (u64, Vec<String>)>,
}

impl Tally {
    /// Counts a record that was rejected.
    pub fn refuse(&mut self, record: &str, reason: &str) {
        let is_known = self.refused.contains_key(reason);
        let reason = if is_known || self.refused.len() < KINDS_MAX { reason } else { "other" };
        let (count, named) = self.refused.entry(reason.to_owned()).or_default();
        *count += 1;
        if named.len() < NAMED_MAX {
            named.push(record.to_owned());
        }
    }

    /// Notes a part of records that is not imported.
    pub fn leave_out(&mut self, part: &str) {
        if self.parts.len() < KINDS_MAX {
            self.parts.insert(part.to_owned());
        }
    }

    /// Returns the number of rejected records.
    pub fn refused(&self) -> u64 {
        self.refused.values().map(|(count, _)| count).sum()
    }

    /// Prints the result.
    pub fn print(&self, is_json: bool) {
        if is_json {
            let mut refused = Vec::new();
            for (reason, (count, named)) in &self.refused {
                refused.push(json!({"reason": reason, "count": count, "first": named}));
            }
            let told = json!({
                "taken": self.taken, "known": self.known, "not_taken": refused,
                "parts_left_out": self.parts,
            });
            return print_json(told.to_string().as_bytes());
        }
        println!("{} taken", self.taken);
        if self.known > 0 {
            println!("{} already there", self.known);
        }
        for part in &self.parts {
            println!("left out of every record: {}", one_line(part));
        }
        for (reason, (count, named)) in &self.refused {
            let more = if *count > named.len() as u64 { ", ..." } else { "" };
            println!(
                "{count} not taken, {}: {}{more}",
                one_line(reason),
                one_line(&named.join(", "))
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_bounded() {
        let mut tally = Tally::default();
        for number in 0..200 {
            tally.refuse(&number.to_string(), "blank");
            tally.refuse("x", &format!("reason {number}"));
            tally.leave_out(&format!("part {number}"));
        }
        assert_eq!(tally.refused(), 400);
        assert_eq!(
            tally.refused["blank"],
            (200, ["0", "1", "2", "3", "4"].map(String::from).into())
        );
        assert_eq!(tally.refused.len(), KINDS_MAX + 1);
        assert_eq!(tally.refused["other"].0, 200 - (KINDS_MAX as u64 - 1));
        assert_eq!(tally.parts.len(), KINDS_MAX);
    }
}
