//! Currencies: names and signs used as units of numbers.

use crate::text::words::entries;

/// Names and signs of each currency.
const CURRENCIES: [&str; 4] = ["gbp|pounds|£", "eur|euro|euros|€", "usd|dollars|$", "chf|franken"];

/// Whether a unit is a currency.
pub(crate) fn is_currency(unit: &str) -> bool {
    unit.contains(['£', '$', '€']) || CURRENCIES.iter().any(|names| is_one_of(names, unit))
}

/// Whether two lower-case units are the same: spelt alike, or of one currency.
pub(crate) fn is_same_unit(one: &str, other: &str) -> bool {
    let are_names = |names: &&str| is_one_of(names, one) && is_one_of(names, other);
    one == other || CURRENCIES.iter().any(are_names)
}

fn is_one_of(names: &str, word: &str) -> bool {
    entries(names).any(|name| name == word)
}
