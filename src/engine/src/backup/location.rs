//! Locations of backups, and opening them.

use std::fmt;
use std::path::{Component, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::bucket::InBucket;
use super::{BackupError, BackupStore, Folder};
use crate::settings::BucketSettings;
use lodestone_fetch::Authorities;
use lodestone_fetch::bucket::{Bucket, BucketUrl, Pause};
use lodestone_types::{RandomIds, SystemClock};

/// A location of backups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// A folder.
    Folder(PathBuf),
    /// A bucket, or a prefix in one.
    Bucket(BucketUrl),
}

impl Location {
    /// Parses the address of a bucket or the path of a folder.
    ///
    /// # Errors
    /// The rule for buckets and prefixes that the text violates.
    pub fn parse(text: &str) -> Result<Self, String> {
        match BucketUrl::is_meant(text) {
            true => text.parse().map(Self::Bucket),
            false => Ok(Self::Folder(PathBuf::from(text))),
        }
    }

    /// Whether this location is `other` or inside it.
    pub(super) fn is_within(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Folder(own), Self::Folder(other)) => {
                let is_plain = own.components().all(|part| !matches!(part, Component::ParentDir));
                is_plain && own.starts_with(other)
            }
            (Self::Bucket(own), Self::Bucket(other)) => own.is_within(other),
            _ => false,
        }
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(path) => path.display().fmt(f),
            Self::Bucket(url) => url.fmt(f),
        }
    }
}

/// Opens locations, with the settings for buckets.
#[derive(Debug, Clone)]
pub struct Opener {
    /// Endpoint and region of S3-compatible buckets.
    pub settings: BucketSettings,
    /// Certificate authorities trusted for the connection.
    pub authorities: Authorities,
}

impl Opener {
    /// Checks that an endpoint and credentials are known for a bucket. The bucket itself is not
    /// contacted, but a role that issues credentials is.
    ///
    /// # Errors
    /// [`BackupError::Bucket`], which says what is missing.
    pub fn check(&self, at: &Location) -> Result<(), BackupError> {
        match at {
            Location::Folder(_) => Ok(()),
            Location::Bucket(url) => self.bucket(url, Box::new(wait)).map(drop),
        }
    }

    /// Opens a location for reading.
    ///
    /// # Errors
    /// [`BackupError::Refused`] if it holds no backups; errors of the bucket.
    pub fn open(
        &self,
        at: &Location,
        pause: Box<Pause>,
    ) -> Result<Box<dyn BackupStore>, BackupError> {
        Ok(match at {
            Location::Folder(path) => Box::new(Folder::open(path)?),
            Location::Bucket(url) => Box::new(InBucket::open(self.bucket(url, pause)?)?),
        })
    }

    /// Opens a location for adding or removing backups, and creates it if it is missing.
    ///
    /// # Errors
    /// [`BackupError::Busy`] while another process does so; [`BackupError::Refused`] for a location
    /// that holds other things; errors of the bucket.
    pub fn create(
        &self,
        at: &Location,
        pause: Box<Pause>,
    ) -> Result<Box<dyn BackupStore>, BackupError> {
        Ok(match at {
            Location::Folder(path) => Box::new(Folder::create(path)?),
            Location::Bucket(url) => {
                Box::new(InBucket::create(self.bucket(url, pause)?, &RandomIds)?)
            }
        })
    }

    fn bucket(&self, url: &BucketUrl, pause: Box<Pause>) -> Result<Bucket, BackupError> {
        let (options, clock) = (self.settings.options(), Arc::new(SystemClock));
        Ok(Bucket::new(url.clone(), &options, &self.authorities, clock, pause)?)
    }
}

/// Waits without interruption; for callers that cannot be stopped early.
pub fn wait(time: Duration) -> bool {
    std::thread::park_timeout(time);
    false
}
