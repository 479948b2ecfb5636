//! Settings of backups.

use std::time::Duration;

use clap::{ArgAction, Args};

use super::InvalidSetting;
use super::values::parse_bytes;
use crate::backup::{Location, Opener};
use lodestone_fetch::Authorities;
use lodestone_fetch::bucket::BucketOptions;

/// Settings of backups made by the server.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct BackupSettings {
    /// Absolute path of the folder in which backups of the running server are stored, directly or
    /// in subfolders, or a bucket: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or
    /// `az://CONTAINER/PREFIX` [default: none, the server makes no backups].
    #[arg(
        long,
        env = "LODESTONE_BACKUP_TO",
        value_name = "FOLDER",
        value_parser = Location::parse
    )]
    pub backup_to: Option<Location>,
    /// Hours between scheduled backups, for example 24 or 0.5 [default: none, backups are made only
    /// on request by `lodestone backup`].
    #[arg(
        long,
        env = "LODESTONE_BACKUP_EVERY",
        value_name = "HOURS",
        value_parser = parse_hours
    )]
    pub backup_every: Option<Duration>,
    /// Number of complete backups that the schedule keeps, at least 1 [default: all].
    #[arg(long, env = "LODESTONE_BACKUP_KEEP", value_name = "BACKUPS")]
    pub backup_keep: Option<usize>,
    /// Maximum copy rate of a backup in bytes per second, at least 1MiB, so that searches keep disk
    /// bandwidth.
    #[arg(
        long,
        env = "LODESTONE_BACKUP_RATE",
        value_name = "BYTES",
        value_parser = parse_bytes,
        default_value = "100MiB"
    )]
    pub backup_rate: u64,
    /// Whether scheduled backups include the names, scopes and hashes of API keys.
    #[arg(
        long,
        env = "LODESTONE_BACKUP_WITH_KEYS",
        value_name = "BOOLEAN",
        action = ArgAction::Set,
        default_value_t = false
    )]
    pub backup_with_keys: bool,
    /// Access to S3-compatible buckets.
    #[command(flatten)]
    pub bucket: BucketSettings,
}

/// Access to S3-compatible buckets, for data and for backups. Credentials come from the AWS
/// variables and files.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct BucketSettings {
    /// Endpoint of the S3-compatible store for buckets with `s3://` URLs [default:
    /// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL or endpoint_url of the AWS profile, else Amazon S3].
    #[arg(long, env = "LODESTONE_S3_ENDPOINT", value_name = "URL")]
    pub s3_endpoint: Option<String>,
    /// Region of these buckets [default: AWS_REGION, AWS_DEFAULT_REGION or region of the AWS
    /// profile, else us-east-1].
    #[arg(long, env = "LODESTONE_S3_REGION", value_name = "REGION")]
    pub s3_region: Option<String>,
    /// Whether the bucket name is part of the path instead of the host name [default: true with an
    /// endpoint, false with Amazon S3].
    #[arg(
        long,
        env = "LODESTONE_S3_PATH_STYLE",
        value_name = "BOOLEAN",
        action = ArgAction::Set
    )]
    pub s3_path_style: Option<bool>,
}

impl BucketSettings {
    pub(crate) fn options(&self) -> BucketOptions {
        let Self { s3_endpoint, s3_region, s3_path_style } = self.clone();
        BucketOptions { endpoint: s3_endpoint, region: s3_region, is_path_style: s3_path_style }
    }
}

impl BackupSettings {
    pub(super) fn validate(&self) -> Result<(), InvalidSetting> {
        let invalid =
            |name, problem: &str| Err(InvalidSetting { name, problem: problem.to_owned() });
        match &self.backup_to {
            Some(Location::Folder(folder)) if !folder.is_absolute() => {
                return invalid("backup-to", "must be an absolute path or a bucket URL");
            }
            None if self.backup_every.is_some() => {
                return invalid("backup-every", "needs backup-to");
            }
            _ => {}
        }
        if self.backup_keep == Some(0) {
            return invalid("backup-keep", "must be at least 1");
        }
        match self.backup_rate < 1 << 20 {
            true => invalid("backup-rate", "must be at least 1MiB"),
            false => Ok(()),
        }
    }

    /// Checks that a bucket has an endpoint and credentials. The bucket itself is not contacted; a
    /// role that provides the credentials is.
    ///
    /// # Errors
    /// [`InvalidSetting`] naming what is missing.
    pub fn check_bucket(&self, authorities: &Authorities) -> Result<(), InvalidSetting> {
        let Some(to) = &self.backup_to else { return Ok(()) };
        let opener = Opener { settings: self.bucket.clone(), authorities: authorities.clone() };
        opener.check(to).map_err(|error| {
            let problem = format!("cannot be used: {error}");
            InvalidSetting { name: "backup-to", problem }
        })
    }
}

/// Parses hours, with or without a fraction, into a duration above 0.
fn parse_hours(text: &str) -> Result<Duration, String> {
    let hours = text.trim().parse::<f64>().ok();
    let time = hours.and_then(|hours| Duration::try_from_secs_f64(hours * 3600.0).ok());
    let wrong = || format!("{text:?} is not a number of hours above 0, for example 24 or 0.5");
    time.filter(|time| time.as_millis() > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn hours_are_above_zero() {
        assert_eq!(parse_hours("24"), Ok(Duration::from_secs(86_400)));
        assert_eq!(parse_hours(" 0.5"), Ok(Duration::from_secs(1800)));
        for wrong in ["", "0", "-1", "inf", "1d", "1e300"] {
            assert!(parse_hours(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let refused = |change: fn(&mut BackupSettings)| {
            let mut settings = Settings::new("data".into(), "models".into()).backups;
            change(&mut settings);
            settings.validate().map_err(|error| error.name)
        };
        assert_eq!(refused(|_| ()), Ok(()));
        assert_eq!(refused(|it| it.backup_to = Location::parse("x").ok()), Err("backup-to"));
        assert_eq!(refused(|it| it.backup_every = Some(Duration::MAX)), Err("backup-every"));
        assert_eq!(refused(|it| it.backup_keep = Some(0)), Err("backup-keep"));
        assert_eq!(refused(|it| it.backup_rate = 1), Err("backup-rate"));
    }
}
