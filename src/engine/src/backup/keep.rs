//! Lists, checks and prunes backups.

use std::collections::HashSet;

use super::format::{BACKUPS, FileEntry, STARTED, read_files};
use super::store::{BackupStore, Object};
use super::{BackupError, BackupManifest};
use lodestone_types::Timestamp;

/// A backup in a listing.
#[derive(Debug, Clone)]
pub enum Listed {
    /// A finished backup.
    Finished(Box<BackupManifest>),
    /// A backup without a manifest: it was interrupted or is running.
    CutOff(String),
    /// A backup whose manifest cannot be read: its id and the problem.
    Damaged(String, String),
}

/// Lists all backups at a location, oldest first.
///
/// # Errors
/// Errors of the store.
pub fn list(backups: &dyn BackupStore) -> Result<Vec<Listed>, BackupError> {
    let finished = backups.names(BACKUPS)?;
    let cut_off = backups.names(STARTED)?.into_iter().filter(|id| !finished.contains(id));
    let mut all: Vec<(String, bool)> = cut_off.map(|id| (id, false)).collect();
    all.extend(finished.iter().map(|id| (id.clone(), true)));
    all.sort_unstable();
    let listed = |(id, is_finished): (String, bool)| match is_finished {
        false => Listed::CutOff(id),
        true => match BackupManifest::read(backups, &id) {
            Ok(manifest) => Listed::Finished(Box::new(manifest)),
            Err(error) => Listed::Damaged(id, error.to_string()),
        },
    };
    Ok(all.into_iter().map(listed).collect())
}

/// The result of a check.
#[derive(Debug, Default)]
pub struct Checked {
    /// Number of backups checked.
    pub backups: u64,
    /// Number of files read.
    pub files: u64,
    /// Total bytes of these files.
    pub bytes: u64,
    /// All problems, each with the file concerned.
    pub problems: Vec<String>,
    /// Ids of the backups that never held everything, with the numbers of tenants and of originals
    /// that they lack.
    pub lacking: Vec<(String, u64, u64)>,
    /// Ids of the backups by earlier releases, which did not count the originals that they lack.
    pub uncounted: Vec<String>,
}

/// Reads every file of the backups, or only of the backup `at`, and compares it with its hash. A
/// file used by several backups is read once.
///
/// # Errors
/// Errors of the store. Damage is no error, but a problem in the result.
pub fn check(backups: &dyn BackupStore, at: Option<&str>) -> Result<Checked, BackupError> {
    let ids = match at {
        Some(id) => vec![id.to_owned()],
        None => backups.names(BACKUPS)?,
    };
    let (mut checked, mut seen) = (Checked::default(), HashSet::new());
    for id in ids {
        let manifest = match BackupManifest::read(backups, &id) {
            Ok(manifest) => manifest,
            Err(error) => {
                checked.problems.push(error.to_string());
                continue;
            }
        };
        checked.backups += 1;
        if !manifest.counts_originals() {
            checked.uncounted.push(id.clone());
        }
        if !manifest.lacks_nothing() {
            let originals = manifest.missing_originals().map(|(_, count)| count).sum();
            checked.lacking.push((id, manifest.left_out.len() as u64, originals));
        }
        for tenant in &manifest.tenants {
            let of_tenant =
                check_lists(backups, [&tenant.rows, &tenant.files], &mut seen, &mut checked)
                    .and_then(|is_sound| match is_sound {
                        false => Ok(()),
                        true => read_files(backups, &tenant.files, |FileEntry(_, object)| {
                            check_object(backups, &object, &mut seen, &mut checked).map(|_| ())
                        }),
                    });
            of_tenant?;
        }
        if let Some(keys) = &manifest.keys {
            check_lists(backups, [keys, &Vec::new()], &mut seen, &mut checked)?;
        }
    }
    Ok(checked)
}

fn check_lists(
    backups: &dyn BackupStore,
    lists: [&Vec<Object>; 2],
    seen: &mut HashSet<Object>,
    checked: &mut Checked,
) -> Result<bool, BackupError> {
    let mut is_sound = true;
    for object in lists.into_iter().flatten() {
        is_sound &= check_object(backups, object, seen, checked)?;
    }
    Ok(is_sound)
}

/// Reads an object unless that was done before; returns whether it is sound, as far as is known.
fn check_object(
    backups: &dyn BackupStore,
    object: &Object,
    seen: &mut HashSet<Object>,
    checked: &mut Checked,
) -> Result<bool, BackupError> {
    if !seen.insert(object.clone()) {
        return Ok(backups.object_len(&object.sha256)? == Some(object.bytes));
    }
    checked.files += 1;
    checked.bytes += object.bytes;
    match backups.read_object(object, &mut |_| Ok(())) {
        Ok(()) => Ok(true),
        Err(error @ BackupError::Damaged { .. }) => {
            checked.problems.push(error.to_string());
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// The result of pruning.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pruned {
    /// Backups that were removed, including interrupted ones.
    pub removed: Vec<String>,
    /// Number of backups left.
    pub kept: u64,
    /// Number of files that no backup needed any more and that were removed.
    pub files: u64,
}

/// Keeps the newest `keep` complete backups and everything newer than the oldest of them. Backups
/// dated in the future, made while a clock was ahead, are kept and not counted, since later backups
/// have earlier dates. If there are no more than `keep` complete ones, only leftovers of
/// interrupted backups are removed. Manifests go first, so an interrupted prune only leaves files
/// for the next one to remove.
///
/// # Errors
/// A backup to be kept cannot be read, in which case no file is removed; errors of the store.
pub fn prune(
    backups: &dyn BackupStore,
    keep: usize,
    now: Timestamp,
) -> Result<Pruned, BackupError> {
    let mut pruned = Pruned::default();
    let ids = backups.names(BACKUPS)?;
    let mut complete = 0;
    let mut kept = Vec::new();
    for id in ids.iter().rev() {
        if complete >= keep {
            pruned.removed.push(id.clone());
            continue;
        }
        let manifest = BackupManifest::read(backups, id)?;
        complete += usize::from(manifest.is_complete() && manifest.started_at <= now.0);
        kept.push(manifest);
    }
    let mut needed: HashSet<String> = HashSet::new();
    for manifest in &kept {
        needed.extend(manifest.lists().map(|object| object.sha256.clone()));
        for tenant in &manifest.tenants {
            read_files(backups, &tenant.files, |FileEntry(_, object)| {
                needed.insert(object.sha256);
                Ok(())
            })?;
        }
    }
    for id in &pruned.removed {
        backups.remove(BACKUPS, id)?;
    }
    // Nobody else is writing, so a backup that was begun and not finished was interrupted.
    for id in backups.names(STARTED)? {
        backups.remove(STARTED, &id)?;
        if !ids.contains(&id) {
            pruned.removed.push(id);
        }
    }
    for sha256 in backups.objects()? {
        if !needed.contains(&sha256) {
            backups.remove_object(&sha256)?;
            pruned.files += 1;
        }
    }
    pruned.kept = kept.len() as u64;
    Ok(pruned)
}
