//! `lodestone model install`: checks a model and copies it, under its final name only when it is
//! complete.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lodestone_embed::{CrossEncoder, ModelFiles};
use lodestone_io::{Disk, RealDisk};
use lodestone_rank::Reranker;
use sha2::{Digest, Sha256};

use crate::cli::model::reranker::{NAME_FILE, read};
use crate::cli::model::{InstallOptions, embeds};

/// Installs a cross-encoder.
pub fn reranker(options: &InstallOptions) -> Result<(), Box<dyn Error>> {
    let InstallOptions { query_prefix, passage_prefix, dimension, .. } = options;
    if query_prefix.is_some() || passage_prefix.is_some() || dimension.is_some() {
        return Err("a reranker has no prefixes and no dimension".into());
    }
    let from = source(options)?;
    let files = read(&from).map_err(|error| format!("{}: {error}", from.display()))?;
    check_hash(options, &files)?;
    CrossEncoder::load(&files, 1).map_err(|error| format!("{}: {error}", from.display()))?.close();
    let place = options.places.reranker();
    install(options, &files, &place, &[(NAME_FILE, files.name.as_bytes())])?;
    println!("{} is in {}; a server uses it from its next start on", files.name, place.display());
    Ok(())
}

/// Installs an embedding model under its own name beside the one that is in use.
pub fn embedding(options: &InstallOptions) -> Result<(), Box<dyn Error>> {
    let from = source(options)?;
    let told = |error| format!("{}: {error}", from.display());
    let mut files = ModelFiles::read(&from, &|path| std::fs::read(path)).map_err(told)?;
    check_hash(options, &files)?;
    let InstallOptions { query_prefix, passage_prefix, dimension, .. } = options;
    if query_prefix.is_some() || passage_prefix.is_some() || dimension.is_some() {
        let set = files.set(query_prefix.as_deref(), passage_prefix.as_deref(), *dimension);
        set.map_err(told)?;
    }
    let described = embeds(&files).map_err(told)?;
    let place = options.places.model_dir.with_file_name(&files.name);
    if place.exists() && place.canonicalize()? == from {
        return Err(format!("{} is the model itself", place.display()).into());
    }
    install(options, &files, &place, &[])?;
    println!("{}: {described}", files.name);
    println!("it is in {}; a server takes it with --model-dir", place.display());
    Ok(())
}

/// The directory to install from, resolved, so that `.` has a name too.
fn source(options: &InstallOptions) -> Result<PathBuf, String> {
    let from = options.dir.as_ref().or(options.from.as_ref()).expect("one of the two is required");
    from.canonicalize().map_err(|error| format!("{}: {error}", from.display()))
}

fn check_hash(options: &InstallOptions, files: &ModelFiles) -> Result<(), String> {
    let hash = sha256(&files.weights);
    match &options.sha256 {
        Some(wanted) if !wanted.trim().eq_ignore_ascii_case(&hash) => {
            Err(format!("model.safetensors has the SHA-256 {hash}, not {wanted}"))
        }
        _ => Ok(()),
    }
}

/// Writes the files of a model that was checked, and `more` beside them, and tells their hashes.
fn install(
    options: &InstallOptions,
    files: &ModelFiles,
    place: &Path,
    more: &[(&str, &[u8])],
) -> Result<(), Box<dyn Error>> {
    if place.exists() && !options.replace {
        let place = place.display();
        return Err(format!("{place} holds a model; --replace puts this in its place").into());
    }
    write(files, place, more)?;
    println!("model.safetensors {}", sha256(&files.weights));
    println!("tokenizer.json    {}", sha256(&files.tokenizer));
    Ok(())
}

/// Writes the files beside `place` and renames. With a crash in between there is no model, or the
/// old one, and remains beside it; never half of one.
fn write(files: &ModelFiles, place: &Path, more: &[(&str, &[u8])]) -> Result<(), Box<dyn Error>> {
    let disk = RealDisk;
    let parent = match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    disk.create_dir_all(parent)?;
    let (incoming, outgoing) = (beside(place, "incoming"), beside(place, "outgoing"));
    disk.create_dir(&incoming)?;
    let encoder = [
        ("config.json", files.config.as_slice()),
        ("tokenizer.json", &files.tokenizer),
        ("model.safetensors", &files.weights),
    ];
    let parts = files.parts.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice()));
    let mut folders = BTreeSet::from([incoming.clone()]);
    for (name, bytes) in encoder.into_iter().chain(parts).chain(more.iter().copied()) {
        let path = incoming.join(name);
        let folder = path.parent().expect("a file below a folder").to_owned();
        disk.create_dir_all(&folder)?;
        folders.insert(folder);
        disk.write_new(&path, &mut |file| file.write_all(bytes))?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o644))?;
    }
    for folder in folders {
        // No secret: the server may run as another user than who installs.
        std::fs::set_permissions(&folder, Permissions::from_mode(0o755))?;
        disk.sync_dir(&folder)?;
    }
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
