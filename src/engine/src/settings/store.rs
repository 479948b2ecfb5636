//! Settings of the place of all data.

mod nodes;

use std::path::Path;

use clap::Args;

use super::InvalidSetting;
use super::values::parse_bytes;
use lodestone_fetch::bucket::BucketUrl;
pub use nodes::{NodeRole, NodeSettings};

/// Minimum cache size: room for a segment and for originals being processed.
const CACHE_MIN: u64 = 64 << 20;

/// Settings of data in a bucket. The data directory is then only a cache, and may be lost.
#[derive(Debug, Clone, Default, PartialEq, Args)]
pub struct StoreSettings {
    /// Bucket that stores the data: `s3://BUCKET/PREFIX`, `gs://BUCKET/PREFIX` or
    /// `az://CONTAINER/PREFIX`. The data directory then only caches what is in use. Only one
    /// process may write to a bucket at a time [default: none, data is stored in the data
    /// directory].
    #[arg(long, env = "LODESTONE_STORE", value_name = "URL")]
    pub store: Option<BucketUrl>,
    /// Size of the local cache of bucket data in the data directory, at least 64MiB. Files of open
    /// tenants are kept even beyond it [default: 80 percent of the space that is free or used by
    /// the cache, not counting 17 percent of the disk, at most 32GiB].
    #[arg(long, env = "LODESTONE_STORE_CACHE", value_name = "BYTES", value_parser = parse_bytes)]
    pub store_cache: Option<u64>,
    /// Role of this process among several that share a bucket.
    #[command(flatten)]
    pub nodes: NodeSettings,
}

impl StoreSettings {
    pub(super) fn validate(&self, data_dir: &Path) -> Result<(), InvalidSetting> {
        if BucketUrl::is_meant(&data_dir.to_string_lossy()) {
            let problem = "must be a bucket, not a directory".to_owned();
            return Err(InvalidSetting { name: "data-dir", problem });
        }
        let invalid = |problem: &str| {
            Err(InvalidSetting { name: "store-cache", problem: problem.to_owned() })
        };
        match self.store_cache {
            Some(_) if self.store.is_none() => invalid("needs store"),
            Some(bytes) if bytes < CACHE_MIN => invalid("must be at least 64MiB"),
            _ => self.nodes.validate(self.store.is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_make_no_sense_are_named() {
        let refused = |store: Option<&str>, store_cache: Option<u64>| {
            let store = store.map(|url| url.parse().unwrap());
            StoreSettings { store, store_cache, nodes: NodeSettings::default() }
                .validate(Path::new("data"))
                .map_err(|error| error.problem)
        };
        assert_eq!(refused(None, None), Ok(()));
        assert_eq!(refused(Some("s3://data/prod"), Some(1 << 30)), Ok(()));
        assert_eq!(refused(None, Some(1 << 30)), Err("needs store".to_owned()));
        assert_eq!(refused(Some("s3://data"), Some(1)), Err("must be at least 64MiB".to_owned()));
    }
}
