//! `lodestone model install`: checks a model, fetching it first if it is on a hub, and copies it
//! under its final name only once it is complete.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt::Display;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use lodestone_embed::{CrossEncoder, EmbedError, ModelFiles};
use lodestone_io::{Disk, RealDisk};
use lodestone_rank::Reranker;
use sha2::{Digest, Sha256};

use crate::cli::authorities;
use crate::cli::model::hub::{Fetched, HubModel, Known, of_weights};
use crate::cli::model::reranker::{NAME_FILE, read};
use crate::cli::model::{InstallOptions, embeds, expands};

/// Name of a file beside an installed model that records its repository and commit.
pub const ORIGIN_FILE: &str = "ORIGIN";

/// The files of a model to install.
struct Source {
    dir: PathBuf,
    fetched: Option<Fetched>,
    known: Option<&'static Known>,
    /// The name given by the user, else that on the hub.
    name: Option<String>,
}

/// Installs a reranker (cross-encoder).
pub fn reranker(options: &InstallOptions) -> Result<(), Box<dyn Error>> {
    let InstallOptions { query_prefix, passage_prefix, dimension, .. } = options;
    if query_prefix.is_some() || passage_prefix.is_some() || dimension.is_some() {
        return Err("prefixes and a dimension do not apply to a reranker".into());
    }
    let place = options.places.reranker();
    let source = Source::find(options, |_| place.clone())?;
    let mut files = read(&source.dir).map_err(|error| source.told(&error))?;
    files.name = source.name.clone().unwrap_or(files.name);
    check_hash(options, &files)?;
    CrossEncoder::load(&files, 1).map_err(|error| source.told(&error))?.close();
    install(options, &files, &place, source, &[(NAME_FILE, files.name.as_bytes())])?;
    println!(
        "{} is installed in {}; a server uses it from its next start",
        files.name,
        place.display()
    );
    Ok(())
}

/// Installs a sparse model.
pub fn sparse(options: &InstallOptions) -> Result<(), Box<dyn Error>> {
    let InstallOptions { query_prefix, passage_prefix, dimension, .. } = options;
    if query_prefix.is_some() || passage_prefix.is_some() || dimension.is_some() {
        return Err("prefixes and a dimension do not apply to a sparse model".into());
    }
    let place = options.places.sparse();
    let source = Source::find(options, |_| place.clone())?;
    let mut files = read(&source.dir).map_err(|error| source.told(&error))?;
    files.name = source.name.clone().unwrap_or(files.name);
    check_hash(options, &files)?;
    let described = expands(&files).map_err(|error| source.told(&error))?;
    install(options, &files, &place, source, &[(NAME_FILE, files.name.as_bytes())])?;
    println!("{}: {described}", files.name);
    println!("it is installed in {}; a server uses it from its next start", place.display());
    Ok(())
}

/// Installs an embedding model under its own name beside the one in use.
pub fn embedding(options: &InstallOptions) -> Result<(), Box<dyn Error>> {
    let place = |name: &str| options.places.model_dir.with_file_name(name);
    let source = Source::find(options, place)?;
    let told = |error: EmbedError| source.told(&error);
    let mut files = ModelFiles::read(&source.dir, &|path| std::fs::read(path)).map_err(told)?;
    let hash = check_hash(options, &files)?;
    // A known model keeps its name even if its directory is called something else.
    let known = || of_weights(&hash).map(|known| known.name().to_owned());
    files.name = source.name.clone().or_else(known).unwrap_or(files.name);
    let InstallOptions { dimension, .. } = options;
    let present = files.prompts().map_err(told)?;
    let usual = |own: &str, known: fn(&Known) -> &'static str| {
        source.known.map(known).filter(|text| own.is_empty() && !text.is_empty())
    };
    let query = options.query_prefix.as_deref();
    let query = query.or_else(|| usual(&present.query, |known| known.query_prefix));
    let passage = options.passage_prefix.as_deref();
    let passage = passage.or_else(|| usual(&present.document, |known| known.passage_prefix));
    if query.is_some() || passage.is_some() || dimension.is_some() {
        files.set(query, passage, *dimension).map_err(told)?;
    }
    let described = embeds(&files).map_err(told)?;
    let place = place(&files.name);
    if place.exists() && place.canonicalize()? == source.dir {
        return Err(
            format!("{} is the model itself: choose another directory", place.display()).into()
        );
    }
    install(options, &files, &place, source, &[])?;
    println!("{}: {described}", files.name);
    match place == options.places.model_dir {
        true => println!("it is installed in {}, where a server looks for it", place.display()),
        false => {
            let place = place.display();
            println!("it is installed in {place}; start the server with --model-dir {place}");
        }
    }
    Ok(())
}

impl Source {
    /// Finds the files: a local directory, canonicalized so that `.` has a name too; otherwise a
    /// model of a hub, which is fetched unless `place` shows that its destination is taken.
    fn find(
        options: &InstallOptions,
        place: impl Fn(&str) -> PathBuf,
    ) -> Result<Self, Box<dyn Error>> {
        let named = options.model.as_deref().filter(|named| !is_directory(named));
        let Some(named) = named else {
            let dir = options.model.as_ref().or(options.from.as_ref());
            let dir = dir.expect("one of the two is required");
            if options.revision.is_some() {
                return Err(format!(
                    "{} is a directory, so --revision does not apply",
                    dir.display()
                )
                .into());
            }
            let dir = dir.canonicalize().map_err(|error| format!("{}: {error}", dir.display()))?;
            return Ok(Self { dir, fetched: None, known: None, name: options.name.clone() });
        };
        let name = named.to_str().ok_or("the name of a model is UTF-8")?;
        let model = HubModel::parse(name, options.revision.as_deref())?;
        let own = options.name.as_deref().unwrap_or(model.name()).to_owned();
        let place = place(&own);
        check_free(options, &place)?;
        let fetched = model.fetch(parent(&place), &authorities(options.ca_file.as_deref())?)?;
        let (dir, known) = (fetched.dir.clone(), model.known);
        Ok(Self { dir, fetched: Some(fetched), known, name: Some(own) })
    }

    /// Formats an error about the model's files.
    fn told(&self, error: &EmbedError) -> String {
        let place: &dyn Display = match &self.fetched {
            Some(fetched) => &fetched.origin,
            None => &self.dir.display(),
        };
        format!("{place}: {error}")
    }
}

/// Whether a text is a local path rather than the name of a model on a hub.
fn is_directory(named: &Path) -> bool {
    let begins = |with: &str| named.as_os_str().as_encoded_bytes().starts_with(with.as_bytes());
    named.exists() || ["/", "./", "../", "~"].into_iter().any(begins)
}

/// Returns the SHA-256 of the weights, after comparing it with the one given, if any.
fn check_hash(options: &InstallOptions, files: &ModelFiles) -> Result<String, String> {
    let hash = sha256(&files.weights);
    match &options.sha256 {
        Some(wanted) if !wanted.trim().eq_ignore_ascii_case(&hash) => {
            Err(format!("model.safetensors has the SHA-256 {hash}, not {wanted}"))
        }
        _ => Ok(hash),
    }
}

/// Writes the files of a checked model, with `more` beside them, and prints their hashes.
fn install(
    options: &InstallOptions,
    files: &ModelFiles,
    place: &Path,
    source: Source,
    more: &[(&str, &[u8])],
) -> Result<(), Box<dyn Error>> {
    check_free(options, place)?;
    let origin = source.fetched.as_ref().map(|fetched| format!("{}\n", fetched.origin));
    let origin = origin.iter().map(|origin| (ORIGIN_FILE, origin.as_bytes()));
    let more: Vec<_> = more.iter().copied().chain(origin).collect();
    write(files, place, &more)?;
    if let Some(fetched) = source.fetched {
        println!("{}", fetched.origin);
        fetched.discard()?;
    }
    println!("model.safetensors {}", sha256(&files.weights));
    println!("tokenizer.json    {}", sha256(&files.tokenizer));
    Ok(())
}

fn check_free(options: &InstallOptions, place: &Path) -> Result<(), String> {
    let shown = place.display();
    match (place.exists(), holds_model(place)) {
        (true, false) => Err(format!(
            "{shown} exists and contains no model (config.json with model.safetensors, \
             modules.json, {NAME_FILE} or {ORIGIN_FILE}): it is not replaced"
        )),
        (true, true) if !options.replace => {
            Err(format!("{shown} already contains a model; use --replace to replace it"))
        }
        _ => Ok(()),
    }
}

/// Whether a directory holds a model, complete or not, so that it may be replaced.
pub fn holds_model(place: &Path) -> bool {
    let has = |name: &str| place.join(name).is_file();
    let is_encoder = has("config.json") && has("model.safetensors");
    is_encoder || ["modules.json", NAME_FILE, ORIGIN_FILE].into_iter().any(has)
}

/// Returns the parent directory of a model's destination.
fn parent(place: &Path) -> &Path {
    match place.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Writes the files beside `place` and renames the directory. After a crash in between, `place`
/// holds the old model or nothing, and there may be leftovers beside it, but never an incomplete
/// model.
fn write(files: &ModelFiles, place: &Path, more: &[(&str, &[u8])]) -> Result<(), Box<dyn Error>> {
    let disk = RealDisk;
    let parent = parent(place);
    disk.create_dir_all(parent)?;
    let (incoming, outgoing) = (beside(place, "incoming"), beside(place, "outgoing"));
    disk.create_dir(&incoming)?;
    let encoder = [
        ("config.json", files.config.as_slice()),
        ("tokenizer.json", &files.tokenizer),
        ("model.safetensors", &files.weights),
    ];
    let encoder = encoder.map(|(name, bytes)| (format!("{}{name}", files.encoder), bytes));
    let parts = files.parts.iter().map(|(name, bytes)| (name.clone(), bytes.as_slice()));
    let more = more.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes));
    let mut folders = BTreeSet::from([incoming.clone()]);
    for (name, bytes) in encoder.into_iter().chain(parts).chain(more) {
        let path = incoming.join(name);
        let folder = path.parent().expect("a file below a folder").to_owned();
        disk.create_dir_all(&folder)?;
        folders.insert(folder);
        disk.write_new(&path, &mut |file| file.write_all(bytes))?;
        std::fs::set_permissions(&path, Permissions::from_mode(0o644))?;
    }
    for folder in folders {
        // Models are not secret, and the server may run as another user than the installer.
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

/// Returns a name beside `place` that is unique to this process.
fn beside(place: &Path, what: &str) -> PathBuf {
    let name = place.file_name().unwrap_or_default().to_string_lossy();
    place.with_file_name(format!(".{name}-{what}-{}", std::process::id()))
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}
