//! Temporary directories of commands.

use std::error::Error;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use lodestone_types::{IdSource as _, RandomIds};

/// A temporary directory that is removed when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the directory, for the current user only.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn new() -> Result<Self, Box<dyn Error>> {
        let name = format!("lodestone-{}", RandomIds.uuid().simple());
        let path = std::env::temp_dir().join(name);
        let made = DirBuilder::new().mode(0o700).create(&path);
        made.map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            tracing::debug!(%error, "removing a temporary directory failed");
        }
    }
}
