//! A strict parser of the Prometheus text exposition format 0.0.4. It rejects every line that a
//! scraper could interpret in more than one way.

use std::collections::{BTreeMap, BTreeSet};

/// The metrics of one scrape.
#[derive(Debug, Clone, Default)]
pub struct Scrape {
    /// Value of each series, keyed by the series as written, labels included.
    pub series: BTreeMap<String, f64>,
    /// Type of each metric family.
    pub types: BTreeMap<String, String>,
    /// All values of all labels.
    pub label_values: BTreeSet<String>,
}

impl Scrape {
    /// Parses a complete exposition; panics on any deviation from the format.
    pub fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line ends");
        let mut scrape = Self::default();
        let (mut helped, mut family) = (String::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a name and a help text");
                assert!(is_name(name, true) && help.len() > 5, "{line}");
                helped = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a name and a type");
                assert_eq!(name, helped, "the type follows the help text");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
                let before = scrape.types.insert(name.to_owned(), kind.to_owned());
                assert_eq!(before, None, "{name} comes once");
                family = name.to_owned();
            } else {
                scrape.sample(line, &family);
            }
        }
        scrape.check_histograms();
        scrape
    }

    fn sample(&mut self, line: &str, family: &str) {
        let (series, value) = line.rsplit_once(' ').expect("a series and a value");
        let (name, labels) = match series.split_once('{') {
            Some((name, labels)) => (name, labels.strip_suffix('}').expect("a closing brace")),
            None => (series, ""),
        };
        let kind = self.types.get(family).expect("a type comes before its samples");
        let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{name} in {family}"));
        let is_suffix = match kind.as_str() {
            "histogram" => ["_sum", "_count", "_bucket"].contains(&suffix),
            _ => suffix.is_empty(),
        };
        assert!(is_suffix && is_name(name, true), "{line}");
        let mut names = BTreeSet::new();
        let mut rest = labels;
        while !rest.is_empty() {
            let (label, after) = rest.split_once("=\"").expect("a label and its value");
            assert!(is_name(label, false) && names.insert(label), "{line}");
            let end = after.find('"').expect("a closing quote");
            assert!(!after[..end].contains('\\'), "no value of ours needs an escape: {line}");
            self.label_values.insert(after[..end].to_owned());
            rest = &after[end + 1..];
            rest = rest.strip_prefix(',').unwrap_or(rest);
        }
        assert_eq!(names.contains("le"), suffix == "_bucket", "{line}");
        let value: f64 = value.parse().expect("a number");
        assert!(value.is_finite() && value >= 0.0, "{line}");
        assert_eq!(self.series.insert(series.to_owned(), value), None, "{series} comes once");
    }

    fn check_histograms(&self) {
        let is_histogram = |(_, kind): &(&String, &String)| *kind == "histogram";
        for (family, _) in self.types.iter().filter(is_histogram) {
            let prefix = format!("{family}_count");
            for (series, count) in self.series.iter().filter(|(s, _)| s.starts_with(&prefix)) {
                let labels = &series[prefix.len()..];
                let inner = labels.trim_start_matches('{').trim_end_matches('}');
                let of_bucket = |series: &str| {
                    let labels = series.strip_prefix(&format!("{family}_bucket{{"))?;
                    let (bound, others) = labels.strip_prefix("le=\"")?.split_once('"')?;
                    let others = others.trim_start_matches(',').trim_end_matches('}');
                    (others == inner).then(|| bound.parse::<f64>().expect("a bound"))
                };
                let found = self.series.iter().filter_map(|(s, n)| Some((of_bucket(s)?, *n)));
                let mut buckets: Vec<(f64, f64)> = found.collect();
                buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
                assert!(buckets.len() > 5, "{series} has buckets");
                assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{buckets:?}");
                assert_eq!(buckets.last(), Some(&(f64::INFINITY, *count)), "{series}");
                assert!(self.series.contains_key(&format!("{family}_sum{labels}")), "{series}");
            }
        }
    }

    /// Returns the value of a series named without the `lodestone_` prefix; 0 if it does not exist
    /// yet.
    pub fn get(&self, series: &str) -> f64 {
        self.series.get(&format!("lodestone_{series}")).copied().unwrap_or(0.0)
    }
}

fn is_name(name: &str, may_have_colon: bool) -> bool {
    let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || may_have_colon && c == ':';
    name.starts_with(is_letter) && name.chars().all(|c| is_letter(c) || c.is_ascii_digit())
}
