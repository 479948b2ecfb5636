//! Settings of the scrub.

use std::time::Duration;

use clap::Args;

use super::InvalidSetting;
use super::values::parse_bytes;

/// Lowest scrub rate in bytes per second; at a lower one, a pass would outlast the disk.
const RATE_MIN: u64 = 64 << 10;

/// Settings of the scrub, which rereads all stored data to find damage early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Args)]
pub struct ScrubSettings {
    /// Hours between the starts of two scrub passes, each of which reads all stored bytes to find
    /// damage before a request meets it; 0 disables them.
    #[arg(
        long,
        env = "LODESTONE_SCRUB_PERIOD",
        value_name = "HOURS",
        default_value = "168",
        value_parser = parse_hours
    )]
    pub scrub_period: Duration,
    /// Maximum read rate of a scrub pass in bytes per second, at least 64KiB, so that searches keep
    /// disk bandwidth.
    #[arg(
        long,
        env = "LODESTONE_SCRUB_RATE",
        value_name = "BYTES",
        value_parser = parse_bytes,
        default_value = "8MiB"
    )]
    pub scrub_rate: u64,
}

impl ScrubSettings {
    pub(super) fn validate(&self) -> Result<(), InvalidSetting> {
        if self.scrub_rate < RATE_MIN {
            let problem = "must be at least 64KiB".to_owned();
            return Err(InvalidSetting { name: "scrub-rate", problem });
        }
        Ok(())
    }
}

/// Parses hours, with or without a fraction, into a duration; 0 is valid.
fn parse_hours(text: &str) -> Result<Duration, String> {
    let hours = text.trim().parse::<f64>().ok();
    let time = hours.and_then(|hours| Duration::try_from_secs_f64(hours * 3600.0).ok());
    time.ok_or_else(|| format!("{text:?} is not a number of hours from 0, for example 168 or 0.5"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn hours_may_be_none_and_a_rate_may_not_be_too_low() {
        assert_eq!(parse_hours("0"), Ok(Duration::ZERO));
        assert_eq!(parse_hours("0.5"), Ok(Duration::from_secs(1800)));
        for wrong in ["", "-1", "inf", "7d", "1e300"] {
            assert!(parse_hours(wrong).is_err(), "{wrong}");
        }
        let mut settings = Settings::new("data".into(), "models".into());
        assert_eq!(settings.validate(), Ok(()));
        settings.scrub.scrub_rate = 1000;
        assert_eq!(settings.validate().unwrap_err().name, "scrub-rate");
    }
}
