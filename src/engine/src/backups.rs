//! The backup operations of this engine, as operators call them.

use crate::backup::{BackupError, BackupState, Listed, Location, TakeOptions};
use crate::{ComponentState, Engine, EngineError};
use lodestone_io::DataDir;
use lodestone_types::Grant;

impl Engine {
    /// Starts a backup in the background; [`Self::backup_state`] reports its progress. `to` is the
    /// location of the settings, also the default, or one inside it. `of`, if given, must be the
    /// [`DataDir::identity`] of this engine's data, which guards against backing up the wrong
    /// server.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key without the scope of all tenants; a location, tenant or
    /// option that is refused; a backup already under way; an `of` that does not match.
    pub fn begin_backup(
        &self,
        grant: &Grant,
        to: Option<&Location>,
        of: Option<&str>,
        options: TakeOptions,
    ) -> Result<(), EngineError> {
        require_all(grant)?;
        let directory = &self.settings.data_dir;
        if of.is_some_and(|of| DataDir::identity(directory).is_ok_and(|own| own != of)) {
            return Err(BackupError::OtherData { directory: directory.clone() }.into());
        }
        Ok(self.backups.request(to, options)?)
    }

    /// The state of the backups.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key without the scope of all tenants.
    pub fn backup_state(&self, grant: &Grant) -> Result<BackupState, EngineError> {
        require_all(grant)?;
        Ok(self.backups.state())
    }

    /// The backups at the configured location, oldest first.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key without the scope of all tenants; errors of the
    /// location.
    pub fn backups(&self, grant: &Grant) -> Result<Vec<Listed>, EngineError> {
        require_all(grant)?;
        Ok(self.backups.list()?)
    }

    /// Whether scheduled backups are being made; `None` without a schedule.
    pub fn backup_health(&self) -> Option<ComponentState> {
        self.settings.backups.backup_every?;
        Some(self.backups.problem().map_or(ComponentState::Usable, ComponentState::Degraded))
    }
}

/// Requires a key for all tenants, since a backup holds the data of every one.
fn require_all(grant: &Grant) -> Result<(), EngineError> {
    match grant.is_all_tenants() {
        true => Ok(()),
        false => Err(EngineError::Forbidden { need: "backups require a key for all tenants" }),
    }
}
