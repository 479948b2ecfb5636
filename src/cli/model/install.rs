//! `lodestone model install`: checks a model and copies it, under its final name only when it is
//! complete.

use std::error::Error;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lodestone_embed::{CrossEncoder, ModelFiles};
use lodestone_io::{Disk, RealDisk};
use lodestone_rank::Reranker;
use sha2::{Digest, Sha256};

use crate::cli::model::InstallOptions;
use crate::cli::model::reranker::{NAME_FILE, read};

/// Installs a cross-encoder.
pub fn reranker(options: &InstallOptions) -> Result<(), Box<dyn Error>> {
    let from = options.dir.as_ref().or(options.from.as_ref()).expect("one of the two is required");
    // Resolved, so that `.` has a name too.
    let from = from.canonicalize().map_err(|error| format!("{}: {error}", from.display()))?;
    let files = read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
    let hash = sha256(&files.weights);
    if let Some(wanted) = &options.sha256
        && !wanted.trim().eq_ignore_ascii_case(&hash)
    {
        return Err(format!("model.safetensors has the SHA-256 {hash}, not {wanted}").into());
    }
    CrossEncoder::load(&files, 1).map_err(|error| format!("{}: {error}", from.display()))?.close();
    let place = options.places.reranker();
    if place.exists() && !options.replace {
        let place = place.display();
        return Err(format!("{place} holds a reranker; --replace puts this in its place").into());
    }
    write(&files, &place)?;
    println!("model.safetensors {hash}");
    println!("tokenizer.json    {}", sha256(&files.tokenizer));
    println!("{} is in {}; a server uses it from its next start on", files.name, place.display());
    Ok(())
}

/// Writes the files beside `place` and renames. With a crash in between there is no reranker, or
/// the old one, and remains beside it; never half of one.
fn write(files: &ModelFiles, place: &Path) -> Result<(), Box<dyn Error>> {
    let disk = RealDisk;
    let parent = match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    disk.create_dir_all(parent)?;
    let (incoming, outgoing) = (beside(place, "incoming"), beside(place, "outgoing"));
    disk.create_dir(&incoming)?;
    let contents = [
        ("config.json", files.config.as_slice()),
        ("tokenizer.json", &files.tokenizer),
        ("model.safetensors", &files.weights),
        (NAME_FILE, files.name.as_bytes()),
    ];
    for (name, bytes) in contents {
        let path = incoming.join(name);
        disk.write_new(&path, &mut |file| file.write_all(bytes))?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o644))?;
    }
    // No secret: the server may run as another user than who installs.
    std::fs::set_permissions(&incoming, Permissions::from_mode(0o755))?;
    disk.sync_dir(&incoming)?;
    let is_replaced = place.exists();
    if is_replaced {
        disk.rename(place, &outgoing)?;
    }
    disk.rename(&incoming, place)?;
    disk.sync_dir(parent)?;
    if is_replaced {
        std::fs::remove_dir_all(&outgoing)?;
    }
    Ok(())
}

/// A name of this process beside `place`.
fn beside(place: &Path, what: &str) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    place.with_file_name(format!(".{name}-{what}-{}", std::process::id()))
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
