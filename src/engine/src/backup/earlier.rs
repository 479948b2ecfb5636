//! The objects of earlier backups, and how far a new backup believes that they are sound.
//!
//! An object that is referred to and not written again is there and has its length. Lists are
//! compared with their hashes, for one that is damaged loses a tenant. So are about
//! [`COMPARED_BYTES`] of files, other ones in each backup: all of them where there are not more.
//! A damaged one is named and written anew.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::format::{BACKUPS, FileEntry, read_files};
use super::store::{BackupStore, OBJECTS, Object};
use super::{BackupError, BackupManifest};

/// Earlier backups whose files are known; a tenant that is in none of them is copied whole.
const EARLIER_MAX: usize = 8;
/// Bytes of files that a backup compares with their hashes, about.
const COMPARED_BYTES: u64 = 64 << 20;
/// Damaged things that are named.
const NAMED_MAX: usize = 100;

/// The objects of earlier backups.
pub(super) struct Earlier<'a> {
    backups: &'a dyn BackupStore,
    /// The new backup: it decides which files are compared.
    id: String,
    /// Lists of files, by collection.
    lists: HashMap<Uuid, Vec<Object>>,
    /// Lists that an earlier backup has synced.
    stored: HashSet<Object>,
    /// Objects that were compared, or written by the new backup.
    sound: HashSet<Object>,
    /// Bytes of the files of the newest one.
    bytes: u64,
    damage: Vec<String>,
    unnamed: u64,
}

impl<'a> Earlier<'a> {
    /// As if there were none.
    pub(super) fn none(backups: &'a dyn BackupStore) -> Self {
        let (lists, stored, sound) = Default::default();
        let (id, damage) = Default::default();
        Self { backups, id, lists, stored, sound, bytes: 0, damage, unnamed: 0 }
    }

    /// Reads the backups that the backup `id` builds upon.
    pub(super) fn read(backups: &'a dyn BackupStore, id: &str) -> Result<Self, BackupError> {
        let mut own = Self { id: id.to_owned(), ..Self::none(backups) };
        for id in backups.names(BACKUPS)?.iter().rev().take(EARLIER_MAX) {
            let manifest = match BackupManifest::read(backups, id) {
                Ok(manifest) => manifest,
                // A file of somebody else.
                Err(BackupError::Unknown { .. }) => continue,
                Err(error) => {
                    own.note(error, "that backup cannot be restored")?;
                    continue;
                }
            };
            own.stored.extend(manifest.lists().cloned());
            let bytes = manifest.tenants.iter().map(|tenant| tenant.bytes).sum();
            own.bytes = own.bytes.max(bytes);
            for tenant in manifest.tenants {
                own.lists.entry(tenant.collection).or_insert(tenant.files);
            }
        }
        Ok(own)
    }

    /// The files of a collection by name, as far as their lists are sound.
    pub(super) fn files(&mut self, of: Uuid) -> Result<HashMap<String, Object>, BackupError> {
        let mut files = HashMap::new();
        for list in self.lists.remove(&of).unwrap_or_default() {
            let read = read_files(self.backups, std::slice::from_ref(&list), |entry| {
                let FileEntry(name, object) = entry;
                files.insert(name, object);
                Ok(())
            });
            match read {
                Ok(()) => drop(self.sound.insert(list)),
                Err(error) => {
                    self.note(error, "its files are written anew")?;
                    self.stored.remove(&list);
                }
            }
        }
        Ok(files)
    }

    /// Whether a list is there and sound.
    pub(super) fn has_list(&mut self, list: &Object) -> Result<bool, BackupError> {
        let is_known = self.sound.contains(list) || self.stored.contains(list);
        Ok(is_known && self.is_there(list)? && self.is_sound(list)?)
    }

    /// Whether a file that an earlier backup names is there, and sound as far as is compared.
    pub(super) fn has_file(&mut self, file: &Object) -> Result<bool, BackupError> {
        Ok(self.is_there(file)? && (!self.is_chosen(file) || self.is_sound(file)?))
    }

    /// Takes note of an object that the new backup has written.
    pub(super) fn wrote(&mut self, object: &Object) {
        self.sound.insert(object.clone());
    }

    /// The damage that was found, a line each.
    pub(super) fn damage(&mut self) -> Vec<String> {
        if self.unnamed > 0 {
            self.damage.push(format!("and {} more", self.unnamed));
        }
        std::mem::take(&mut self.damage)
    }

    fn is_there(&mut self, object: &Object) -> Result<bool, BackupError> {
        let sha256 = &object.sha256;
        let length = self.backups.object_len(sha256)?;
        if length == Some(object.bytes) {
            return Ok(true);
        }
        let problem = match length {
            Some(length) => format!("it has {length} bytes and should have {}", object.bytes),
            None => "the file is missing".to_owned(),
        };
        let group = sha256.get(..2).unwrap_or("");
        let file = format!("{}/{OBJECTS}/{group}/{sha256}", self.backups.name());
        self.note(BackupError::Damaged { file, problem }, "written anew")?;
        Ok(false)
    }

    /// Whether a file is compared: by chance, another one in each backup.
    fn is_chosen(&self, file: &Object) -> bool {
        let hash = Sha256::new().chain_update(&self.id).chain_update(&file.sha256).finalize();
        let chance = u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]);
        f64::from(chance) * self.bytes as f64 <= f64::from(u32::MAX) * COMPARED_BYTES as f64
    }

    /// Compares an object with its hash, once.
    fn is_sound(&mut self, object: &Object) -> Result<bool, BackupError> {
        if self.sound.contains(object) {
            return Ok(true);
        }
        match self.backups.read_object(object, &mut |_| Ok(())) {
            Ok(()) => Ok(self.sound.insert(object.clone())),
            Err(error) => self.note(error, "written anew").map(|()| false),
        }
    }

    /// Takes note of damage; an error of another kind ends the backup.
    fn note(&mut self, error: BackupError, outcome: &str) -> Result<(), BackupError> {
        let (BackupError::Damaged { .. } | BackupError::File { .. }) = &error else {
            return Err(error);
        };
        let damage = format!("{error}: {outcome}");
        tracing::error!("damage in the place of the backups: {damage}");
        match self.damage.len() < NAMED_MAX {
            true => self.damage.push(damage),
            false => self.unnamed += 1,
        }
        Ok(())
    }
}
