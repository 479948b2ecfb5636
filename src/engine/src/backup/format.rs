//! The manifest of a backup, and the lists that it names.
//!
//! A sealed file ([`lodestone_io::sealed`]) of the words "lodestone backup 1" with JSON inside.
//! Parts that grow with the data are in lists: lines of JSON, cut into objects where the hash of a
//! line says so. A line that is added or removed therefore changes one object and not those after
//! it, and a tenant that did not change adds nothing to the next backup.

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
/// Lines of one object of a list, on average.
const LINES_MEAN: u64 = 256;
/// Bytes of one object of a list at most, but for its last line.
const LIST_BYTES_MAX: usize = 1 << 20;

/// One finished backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// Its name, ascending with time.
    pub id: String,
    /// When it began, in milliseconds since the epoch.
    pub started_at: u64,
    /// The release that made it.
    pub release: String,
    /// Format of the rows.
    pub catalog_format: usize,
    /// Whether all tenants were asked for.
    pub is_whole: bool,
    /// Its tenants.
    pub tenants: Vec<TenantEntry>,
    /// Rows of keys; none unless they were asked for.
    pub keys: Option<Vec<Object>>,
    /// Tenants that could not be taken, each with the reason.
    pub left_out: Vec<LeftOut>,
    /// The highest sequence that was given before it ended.
    pub newest_sequence: u64,
    /// Bytes that it added to the place.
    pub new_bytes: u64,
    /// Files that it added.
    pub new_files: u64,
    /// Damage of earlier backups that was found meanwhile; files that it needs were written anew.
    #[serde(default)]
    pub damage: Vec<String>,
}

/// One tenant in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantEntry {
    /// Its name.
    pub name: String,
    /// Its collection.
    pub collection: Uuid,
    /// The version of the collection.
    pub version: u64,
    /// Visible sources.
    pub sources: u64,
    /// Searchable rows.
    pub chunks: u64,
    /// Bytes of its files.
    pub bytes: u64,
    /// List of its rows in the catalog.
    pub rows: Vec<Object>,
    /// List of its files: name, hash, length.
    pub files: Vec<Object>,
}

/// A tenant that could not be taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Its name.
    pub tenant: String,
    /// The reason.
    pub reason: String,
}

/// A file of a tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct FileEntry(pub(super) String, pub(super) Object);

impl BackupManifest {
    /// Whether it holds every tenant that the server had.
    pub fn is_complete(&self) -> bool {
        self.is_whole && self.left_out.is_empty()
    }

    /// The objects that hold its lists.
    pub(super) fn lists(&self) -> impl Iterator<Item = &Object> {
        let of_tenants =
            self.tenants.iter().flat_map(|tenant| tenant.rows.iter().chain(&tenant.files));
        of_tenants.chain(self.keys.iter().flatten())
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        sealed::seal(FIRST_WORDS, &serde_json::to_vec(self).expect("plain data always prints"))
    }

    /// Reads a manifest.
    ///
    /// # Errors
    /// [`BackupError::Damaged`] names its file; [`BackupError::CutOff`]; [`BackupError::Unknown`].
    pub fn read(backups: &dyn BackupStore, id: &str) -> Result<Self, BackupError> {
        // A name that a person gave must not lead out of the folder.
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

    /// The newest finished backup that is wanted.
    ///
    /// # Errors
    /// [`BackupError::Empty`] where there is none; as [`Self::read`].
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

/// The name of a backup that begins now: `20260131T235959.123Z`.
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

/// Writes a list.
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

/// Gives every line of a list to `see`, after the object that holds it was compared with its hash.
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

/// The files of a tenant.
pub(super) fn read_files(
    backups: &dyn BackupStore,
    list: &[Object],
    mut see: impl FnMut(FileEntry) -> Result<(), BackupError>,
) -> Result<(), BackupError> {
    read_list(backups, list, |line| {
        see(serde_json::from_value(line).map_err(|error| bad_line("of files", &error))?)
    })
}
