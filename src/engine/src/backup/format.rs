//! The manifest of a backup, and the lists that it refers to.
//!
//! The manifest is a sealed file ([`lodestone_io::sealed`]) with the words "lodestone backup 1" and
//! JSON inside. Parts that grow with the data are in lists: lines of JSON, split into objects
//! wherever the hash of a line says so (content-defined chunking). Adding or removing a line
//! therefore changes one object and not those after it, and an unchanged tenant adds nothing to the
//! next backup.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::BackupError;
use super::store::{BackupStore, Object};
use lodestone_io::{checksum, sealed};
use lodestone_types::Timestamp;

const FIRST_WORDS: &str = "lodestone backup 1";
pub(super) const BACKUPS: &str = "backups";
pub(super) const STARTED: &str = "started";
/// Average number of lines per object of a list.
const LINES_MEAN: u64 = 256;
/// Maximum bytes per object of a list, apart from its last line.
const LIST_BYTES_MAX: usize = 1 << 20;

/// The manifest of a finished backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// Id of the backup; ids sort by time.
    pub id: String,
    /// When the backup began, in milliseconds since the Unix epoch.
    pub started_at: u64,
    /// The release that made it.
    pub release: String,
    /// Format version of the catalog's rows.
    pub catalog_format: usize,
    /// Whether all tenants were requested.
    pub is_whole: bool,
    /// The tenants in the backup.
    pub tenants: Vec<TenantEntry>,
    /// List of the rows of API keys; `None` unless they were requested.
    pub keys: Option<Vec<Object>>,
    /// Tenants that could not be backed up, each with the reason.
    pub left_out: Vec<LeftOut>,
    /// The highest sequence assigned before the backup ended.
    pub newest_sequence: u64,
    /// Bytes that this backup added to the location.
    pub new_bytes: u64,
    /// Number of files that it added.
    pub new_files: u64,
    /// Damage found in earlier backups; files that this one needs were written again.
    #[serde(default)]
    pub damage: Vec<String>,
}

/// A tenant in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantEntry {
    /// Id of the tenant.
    pub name: String,
    /// Its collection.
    pub collection: Uuid,
    /// Version of the collection.
    pub version: u64,
    /// Number of visible sources.
    pub sources: u64,
    /// Number of searchable rows.
    pub chunks: u64,
    /// Total bytes of the files.
    pub bytes: u64,
    /// List of the tenant's rows in the catalog.
    pub rows: Vec<Object>,
    /// List of its files: name, hash, length.
    pub files: Vec<Object>,
    /// Number of originals of visible sources, unfinished jobs and files that neither the server
    /// nor an earlier backup had; `None` if an older release made the backup, which did not count
    /// them.
    #[serde(default)]
    pub missing_originals: Option<u64>,
}

/// A tenant that could not be backed up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Id of the tenant.
    pub tenant: String,
    /// The reason.
    pub reason: String,
}

/// A file of a tenant: its name and content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry(pub(super) String, pub(super) Object);

impl BackupManifest {
    /// Whether it contains every tenant that the server had, with all originals.
    pub fn is_complete(&self) -> bool {
        self.is_whole && self.lacks_nothing()
    }

    /// Whether no requested tenant and no original is missing.
    pub fn lacks_nothing(&self) -> bool {
        self.left_out.is_empty() && self.missing_originals().next().is_none()
    }

    /// The tenants whose originals are not all in the backup, with the number of missing ones, as
    /// far as they were counted.
    pub fn missing_originals(&self) -> impl Iterator<Item = (&str, u64)> {
        let missing = |tenant: &TenantEntry| tenant.missing_originals.filter(|count| *count > 0);
        self.tenants.iter().filter_map(move |tenant| Some((&*tenant.name, missing(tenant)?)))
    }

    /// Whether missing originals were counted for every tenant.
    pub fn counts_originals(&self) -> bool {
        self.tenants.iter().all(|tenant| tenant.missing_originals.is_some())
    }

    /// The objects that hold the lists.
    pub(super) fn lists(&self) -> impl Iterator<Item = &Object> {
        let of_tenants =
            self.tenants.iter().flat_map(|tenant| tenant.rows.iter().chain(&tenant.files));
        of_tenants.chain(self.keys.iter().flatten())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        sealed::seal(FIRST_WORDS, &serde_json::to_vec(self).expect("plain data always prints"))
    }

    /// Reads and checks the manifest of a backup.
    ///
    /// # Errors
    /// [`BackupError::Damaged`], which names the file; [`BackupError::CutOff`];
    /// [`BackupError::Unknown`].
    pub fn read(backups: &dyn BackupStore, id: &str) -> Result<Self, BackupError> {
        // An id given by a person must not lead out of the folder.
        let bytes = match is_id(id) {
            true => backups.get(BACKUPS, id)?,
            false => None,
        };
        let Some(bytes) = bytes else {
            let (id, place_name) = (id.to_owned(), backups.name());
            return Err(match backups.names(STARTED)?.contains(&id) {
                true => BackupError::CutOff { id, place: place_name },
                false => BackupError::Unknown { id, place: place_name },
            });
        };
        let damaged = |problem: String| BackupError::Damaged {
            file: format!("{}/{BACKUPS}/{id}", backups.name()),
            problem,
        };
        let body =
            sealed::open(FIRST_WORDS, &bytes).map_err(|problem| damaged(problem.to_owned()))?;
        let manifest: Self =
            serde_json::from_slice(body).map_err(|error| damaged(error.to_string()))?;
        match manifest.id == id {
            true => Ok(manifest),
            false => Err(damaged("it is the manifest of another backup".to_owned())),
        }
    }

    /// The newest finished backup that `is_wanted` accepts.
    ///
    /// # Errors
    /// [`BackupError::Empty`] if there is none; see [`Self::read`].
    pub fn newest(
        backups: &dyn BackupStore,
        is_wanted: impl Fn(&Self) -> bool,
    ) -> Result<Self, BackupError> {
        for id in backups.names(BACKUPS)?.iter().rev() {
            let manifest = Self::read(backups, id)?;
            if is_wanted(&manifest) {
                return Ok(manifest);
            }
        }
        Err(BackupError::Empty { place: backups.name() })
    }
}

/// The id of a backup that begins now, such as `20260131T235959.123Z`.
pub(super) fn id_of(now: Timestamp) -> String {
    let seconds = i64::try_from(now.0 / 1000).unwrap_or(0);
    let at = time::OffsetDateTime::from_unix_timestamp(seconds)
        .unwrap_or(time::OffsetDateTime::UNIX_EPOCH);
    let (date, clock) = (at.date(), at.time());
    format!(
        "{:04}{:02}{:02}T{:02}{:02}{:02}.{:03}Z",
        date.year(),
        u8::from(date.month()),
        date.day(),
        clock.hour(),
        clock.minute(),
        clock.second(),
        now.0 % 1000
    )
}

fn is_id(text: &str) -> bool {
    text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit() || b"TZ.".contains(&byte))
}

/// Writes the objects of a list.
pub(super) struct ListWriter<'a> {
    put: &'a mut dyn FnMut(&[u8]) -> Result<Object, BackupError>,
    buffer: Vec<u8>,
    objects: Vec<Object>,
}

impl<'a> ListWriter<'a> {
    pub(super) fn new(put: &'a mut dyn FnMut(&[u8]) -> Result<Object, BackupError>) -> Self {
        Self { put, buffer: Vec::new(), objects: Vec::new() }
    }

    pub(super) fn add(&mut self, line: &impl Serialize) -> Result<(), BackupError> {
        let line = serde_json::to_vec(line).expect("plain data always prints");
        self.buffer.extend_from_slice(&line);
        self.buffer.push(b'\n');
        match checksum(&line).is_multiple_of(LINES_MEAN) || self.buffer.len() >= LIST_BYTES_MAX {
            true => self.cut(),
            false => Ok(()),
        }
    }

    fn cut(&mut self) -> Result<(), BackupError> {
        if !self.buffer.is_empty() {
            self.objects.push((self.put)(&self.buffer)?);
            self.buffer.clear();
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Vec<Object>, BackupError> {
        self.cut()?;
        Ok(self.objects)
    }
}

/// Passes every line of a list to `see`, after the object that contains it was verified by its
/// hash.
pub(super) fn read_list(
    backups: &dyn BackupStore,
    list: &[Object],
    mut see: impl FnMut(Value) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    for object in list {
        let mut bytes = Vec::new();
        backups.read_object(object, &mut |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })?;
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            see(serde_json::from_slice(line).map_err(|error| bad_line(&object.sha256, &error))?)?;
        }
    }
    Ok(())
}

fn bad_line(sha256: &str, error: &serde_json::Error) -> BackupError {
    BackupError::Damaged { file: format!("list {sha256}"), problem: error.to_string() }
}

/// Passes every file of a tenant to `see`.
pub(super) fn read_files(
    backups: &dyn BackupStore,
    list: &[Object],
    mut see: impl FnMut(FileEntry) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    read_list(backups, list, |line| {
        see(serde_json::from_value(line).map_err(|error| bad_line("of files", &error))?)
    })
}
