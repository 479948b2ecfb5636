//! The objects of earlier backups, and how far a new backup trusts them.
//!
//! An object that is referred to instead of being written again must exist with the right length.
//! Lists are also compared with their hashes, because a damaged list loses a tenant. So are about
//! [`COMPARED_BYTES`] of files, different ones in each backup, or all files if there are no more
//! than that. A damaged object is reported and written again.

use std::collections::{HashMap, HashSet};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::format::{BACKUPS, FileEntry, read_files};
use super::store::{BackupStore, OBJECTS, Object};
use super::{BackupError, BackupManifest};

/// Number of earlier backups whose files are reused; a tenant in none of them is copied entirely.
const EARLIER_MAX: usize = 8;
/// Approximate bytes of files that a backup compares with their hashes.
const COMPARED_BYTES: u64 = 64 << 20;
/// Maximum number of damaged objects that are reported by name.
const NAMED_MAX: usize = 100;
/// Outcomes of damage: for an object that the server has, and for one that it has lost.
const REWRITTEN: &str = "rewritten";
const LOST: &str = "the server has lost it too";

/// The objects of earlier backups.
pub(super) struct Earlier<'a> {
    backups: &'a dyn BackupStore,
    /// Id of the new backup, which determines the files to compare.
    id: String,
    /// Lists of files, by collection.
    lists: HashMap<Uuid, Vec<Object>>,
    /// Lists that an earlier, finished backup contains.
    stored: HashSet<Object>,
    /// Objects that were compared, or written by the new backup.
    sound: HashSet<Object>,
    /// The largest total size of the files of an earlier backup.
    bytes: u64,
    damage: Vec<String>,
    unnamed: u64,
}

impl<'a> Earlier<'a> {
    /// Starts as if there were no earlier backups.
    pub(super) fn none(backups: &'a dyn BackupStore) -> Self {
        let (lists, stored, sound) = Default::default();
        let (id, damage) = Default::default();
        Self { backups, id, lists, stored, sound, bytes: 0, damage, unnamed: 0 }
    }

    /// Reads the backups that the backup `id` builds on.
    pub(super) fn read(backups: &'a dyn BackupStore, id: &str) -> Result<Self, BackupError> {
        let mut own = Self { id: id.to_owned(), ..Self::none(backups) };
        for id in backups.names(BACKUPS)?.iter().rev().take(EARLIER_MAX) {
            let manifest = match BackupManifest::read(backups, id) {
                Ok(manifest) => manifest,
                // A file that is no backup.
                Err(BackupError::Unknown { .. }) => continue,
                Err(error) => {
                    own.note(error, "this backup cannot be restored")?;
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
                    self.note(error, "its files are rewritten")?;
                    self.stored.remove(&list);
                }
            }
        }
        Ok(files)
    }

    /// Whether a list exists and is sound.
    pub(super) fn has_list(&mut self, list: &Object) -> Result<bool, BackupError> {
        let is_known = self.sound.contains(list) || self.stored.contains(list);
        Ok(is_known && self.is_there(list, REWRITTEN)? && self.is_sound(list, REWRITTEN)?)
    }

    /// Whether a file named by an earlier backup exists and, if it is chosen for comparison, is
    /// sound.
    pub(super) fn has_file(&mut self, file: &Object) -> Result<bool, BackupError> {
        let is_there = self.is_there(file, REWRITTEN)?;
        Ok(is_there && (!self.is_chosen(file) || self.is_sound(file, REWRITTEN)?))
    }

    /// Whether a file that the server has lost is still in an earlier backup, and sound.
    pub(super) fn has_lost(&mut self, file: &Object) -> Result<bool, BackupError> {
        Ok(self.is_there(file, LOST)? && self.is_sound(file, LOST)?)
    }

    /// Records an object that the new backup has written.
    pub(super) fn wrote(&mut self, object: &Object) {
        self.sound.insert(object.clone());
    }

    /// The damage found so far, one line each.
    pub(super) fn damage(&mut self) -> Vec<String> {
        if self.unnamed > 0 {
            self.damage.push(format!("and {} more", self.unnamed));
        }
        std::mem::take(&mut self.damage)
    }

    fn is_there(&mut self, object: &Object, outcome: &str) -> Result<bool, BackupError> {
        let sha256 = &object.sha256;
        let length = self.backups.object_len(sha256)?;
        if length == Some(object.bytes) {
            return Ok(true);
        }
        let problem = match length {
            Some(length) => format!("it has {length} bytes instead of {}", object.bytes),
            None => "the file is missing".to_owned(),
        };
        let group = sha256.get(..2).unwrap_or("");
        let file = format!("{}/{OBJECTS}/{group}/{sha256}", self.backups.name());
        self.note(BackupError::Damaged { file, problem }, outcome)?;
        Ok(false)
    }

    /// Whether a file is chosen for comparison: pseudo-randomly, and differently for each backup.
    fn is_chosen(&self, file: &Object) -> bool {
        let hash = Sha256::new().chain_update(&self.id).chain_update(&file.sha256).finalize();
        let chance = u32::from_le_bytes([hash[0], hash[1], hash[2], hash[3]]);
        f64::from(chance) * self.bytes as f64 <= f64::from(u32::MAX) * COMPARED_BYTES as f64
    }

    /// Compares an object with its hash, once.
    fn is_sound(&mut self, object: &Object, outcome: &str) -> Result<bool, BackupError> {
        if self.sound.contains(object) {
            return Ok(true);
        }
        match self.backups.read_object(object, &mut |_| Ok(())) {
            Ok(()) => Ok(self.sound.insert(object.clone())),
            Err(error) => self.note(error, outcome).map(|()| false),
        }
    }

    /// Records damage; an error of any other kind ends the backup.
    fn note(&mut self, error: BackupError, outcome: &str) -> Result<(), BackupError> {
        let (BackupError::Damaged { .. } | BackupError::File { .. }) = &error else {
            return Err(error);
        };
        let damage = format!("{error}: {outcome}");
        tracing::error!("damaged backup file: {damage}");
        match self.damage.len() < NAMED_MAX {
            true => self.damage.push(damage),
            false => self.unnamed += 1,
        }
        Ok(())
    }
}
