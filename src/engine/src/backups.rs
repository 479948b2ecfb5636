//! Backups of this engine, as operators ask for them.

use crate::backup::{BackupError, BackupState, Listed, Location, TakeOptions};
use crate::{ComponentState, Engine, EngineError};
use lodestone_io::DataDir;
use lodestone_types::Grant;

impl Engine {
    /// Begins a backup; [`Self::backup_state`] tells of it. `to` is the location of the settings,
    /// which is taken where none is named, or one in it. `of` is the [`DataDir::identity`] of the
    /// data that are meant.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key that is not for all tenants; a location, tenant or
    /// choice that is refused; a backup that is under way; other data than are meant.
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

    /// State of the backups.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key that is not for all tenants.
    pub fn backup_state(&self, grant: &Grant) -> Result<BackupState, EngineError> {
        require_all(grant)?;
        Ok(self.backups.state())
    }

    /// The backups in the location of the settings, oldest first.
    ///
    /// # Errors
    /// [`EngineError::Forbidden`] for a key that is not for all tenants; errors of the location.
    pub fn backups(&self, grant: &Grant) -> Result<Vec<Listed>, EngineError> {
        require_all(grant)?;
        Ok(self.backups.list()?)
    }

    /// Whether backups are made as the settings want them; `None` without a schedule.
    pub fn backup_health(&self) -> Option<ComponentState> {
        self.settings.backups.backup_every?;
        Some(self.backups.problem().map_or(ComponentState::Usable, ComponentState::Degraded))
    }
}

/// A backup holds the data of every tenant.
fn require_all(grant: &Grant) -> Result<(), EngineError> {
    match grant.is_all_tenants() {
        true => Ok(()),
        false => {
            Err(EngineError::Forbidden { need: "backups need a key with the scope of all tenants" })
        }
    }
}
