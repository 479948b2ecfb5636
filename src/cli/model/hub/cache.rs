//! The cache that the hub's own client libraries keep on this machine.
//!
//! ```text
//! <cache>/models--OWNER--NAME/refs/<revision>          the commit of a branch or tag
//! <cache>/models--OWNER--NAME/snapshots/<commit>/...   its files, links into blobs/
//! ```

use std::path::{Path, PathBuf};

use lodestone_embed::REQUIRED_FILES;

use super::place::is_commit;

/// Finds the files of a model in the cache, and their commit; `None` if the revision is missing or
/// incomplete.
pub fn find(cache: &Path, repository: &str, revision: &str) -> Option<(PathBuf, String)> {
    let folder = cache.join(format!("models--{}", repository.replace('/', "--")));
    let commit = match is_commit(revision) {
        true => revision.to_owned(),
        false => std::fs::read_to_string(folder.join("refs").join(revision)).ok()?,
    };
    let commit = commit.trim();
    let snapshot = folder.join("snapshots").join(commit);
    let is_whole =
        is_commit(commit) && REQUIRED_FILES.iter().all(|name| snapshot.join(name).is_file());
    is_whole.then(|| (snapshot, commit.to_owned()))
}
