//! The objects of earlier backups, and how far a new backup trusts them.
//!
//! An object that is referred to instead of being written again must exist with the right length.
//! Lists are also compared with their hashes, because a damaged list loses a tenant. So are about
//! [`COMPARED_BYTES`] of files, different ones in each backup, or all files if there are no more
//! than that. A damaged object is reported and written again.

use std::collections::{BTreeSet, HashMap, HashSet};

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::format::{BACKUPS, FileEntry, read_files};
use super::store::{BackupStore, OBJECTS, Object};
use super::{BackupError, BackupManifest, TenantEntry};

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
    /// Lists of the files that are reused, by collection: those of the newest backup.
    lists: HashMap<Uuid, Vec<Object>>,
    /// Lists of the other backups, newest first, in which lost originals are sought.
    older: HashMap<Uuid, Vec<Vec<Object>>>,
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
    /// Reads the backups that the backup `id` builds on. A full one reuses nothing of them, but
    /// takes over what the server has lost.
    pub(super) fn read(
        backups: &'a dyn BackupStore,
        id: &str,
        is_full: bool,
    ) -> Result<Self, BackupError> {
        let (lists, older, stored, sound) = Default::default();
        let (id, damage) = (id.to_owned(), Vec::new());
        let mut own =
            Self { backups, id, lists, older, stored, sound, bytes: 0, damage, unnamed: 0 };
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
            if !is_full {
                own.stored.extend(manifest.lists().cloned());
            }
            let bytes = manifest.tenants.iter().map(|tenant| tenant.bytes).sum();
            own.bytes = own.bytes.max(bytes);
            for TenantEntry { collection, files, .. } in manifest.tenants {
                if is_full || own.lists.contains_key(&collection) {
                    own.older.entry(collection).or_default().push(files);
                } else {
                    own.lists.insert(collection, files);
                }
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

    /// Finds originals that the server has lost and that are sound in an earlier backup; `known`
    /// are the files of the newest. That one may lack an original that those before it have.
    pub(super) fn find_lost(
        &mut self,
        of: Uuid,
        known: HashMap<String, Object>,
        mut lost: BTreeSet<String>,
    ) -> Result<Vec<FileEntry>, BackupError> {
        let (mut found, mut damaged) = (Vec::new(), HashSet::new());
        self.take_sound(known, &mut lost, &mut damaged, &mut found)?;
        for list in self.older.remove(&of).unwrap_or_default() {
            if lost.is_empty() {
                break;
            }
            let mut known = HashMap::new();
            let read = read_files(self.backups, &list, |FileEntry(name, object)| {
                if lost.contains(&name) {
                    known.insert(name, object);
                }
                Ok(())
            });
            if let Err(error) = read {
                self.note(error, "lost originals may be in it")?;
            }
            self.take_sound(known, &mut lost, &mut damaged, &mut found)?;
        }
        Ok(found)
    }

    /// Moves the lost originals whose files in `known` are sound to `found`. Damage is noted once.
    fn take_sound(
        &mut self,
        mut known: HashMap<String, Object>,
        lost: &mut BTreeSet<String>,
        damaged: &mut HashSet<Object>,
        found: &mut Vec<FileEntry>,
    ) -> Result<(), BackupError> {
        for name in std::mem::take(lost) {
            let object = known.remove(&name).filter(|object| !damaged.contains(object));
            match object {
                Some(object)
                    if self.is_there(&object, LOST)? && self.is_sound(&object, LOST)? =>
                {
                    found.push(FileEntry(name, object));
                }
                object => {
                    damaged.extend(object);
                    lost.insert(name);
                }
            }
        }
        Ok(())
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
