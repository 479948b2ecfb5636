//! `lodestone export` and `lodestone import`: writes a tenant of a running server to an archive,
//! and imports it into another.

use std::fs::{self, File, TryLockError};
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::Value;

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::screen::{one_line, print_json};
use super::{ClientVerb, EXIT_CODES};
use crate::cli::counted;
use crate::cli::transport::query;

/// The first bytes of an archive.
const BEGINNING: &[u8] = br#"{"member":"archive""#;
/// Length of the end of an archive that is searched for its last line, in bytes.
const END_BYTES: u64 = 4096;

/// Export a tenant, or one of its sub-tenants if given, to an archive: originals, metadata, chunks,
/// vectors and memories.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct ExportOptions {
    /// Archive file to create; it must not exist. `-` means standard output.
    to: PathBuf,
    #[command(flatten)]
    server: ServerOptions,
}

impl ClientVerb for ExportOptions {
    /// Writes a tenant to a file, which gets its final name only once it is complete.
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        let tenant = connection.tenant()?;
        let mut pairs = vec![("tenant_id", tenant)];
        let sub_tenant = connection.sub_tenant();
        pairs.extend((!sub_tenant.is_empty()).then_some(("sub_tenant_id", sub_tenant)));
        let path = format!("/tenant/export{}", query(&pairs));
        if self.to == Path::new("-") {
            let mut out = io::stdout().lock();
            if out.is_terminal() {
                let problem = "an archive is not written to a terminal: name a file or use a pipe";
                return Err(Failure::Usage(problem.to_owned()));
            }
            return connection.download(&path, &mut out, "standard output");
        }
        let to = self.to.display();
        if self.to.exists() {
            return Err(Failure::Usage(format!("{to} exists")));
        }
        let part = part_of(&self.to);
        let named = |error: io::Error| failed(&format!("{}: {error}", part.display()));
        let file = begin(&part).map_err(named)?;
        let written = write_whole(&connection, &path, file, &part, &named);
        let bytes = written.and_then(|bytes| {
            publish(&part, &self.to).map_err(|error| failed(&format!("{to}: {error}")))?;
            Ok(bytes)
        });
        let bytes = bytes.inspect_err(|_| _ = fs::remove_file(&part))?;
        println!("{tenant}: {bytes} bytes in {to}");
        Ok(())
    }
}

fn failed(error: &dyn std::fmt::Display) -> Failure {
    Failure::Failed(error.to_string())
}

fn part_of(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    to.with_file_name(name)
}

/// Opens the partial file of an export. Leftovers of an interrupted export are overwritten; an
/// export in progress holds a lock on its file.
fn begin(part: &Path) -> io::Result<File> {
    let file = File::options().read(true).write(true).create(true).truncate(false).open(part)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            return Err(io::Error::other("another export is writing to it"));
        }
        Err(TryLockError::Error(error)) => return Err(error),
    }
    file.set_len(0)?;
    Ok(file)
}

/// Renames a complete file to its final name, unless that has been taken in the meantime.
fn publish(part: &Path, to: &Path) -> io::Result<()> {
    match fs::hard_link(part, to) {
        Ok(()) => fs::remove_file(part),
        // The file system does not support hard links.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !to.exists() => {
            fs::rename(part, to)
        }
        Err(error) => Err(error),
    }
}

fn write_whole(
    connection: &Connection,
    path: &str,
    mut file: File,
    part: &Path,
    named: &dyn Fn(io::Error) -> Failure,
) -> Result<u64, Failure> {
    let name = part.display().to_string();
    connection.download(path, &mut file, &name)?;
    file.sync_all().map_err(named)?;
    let bytes = file.metadata().map_err(named)?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(END_BYTES))).map_err(named)?;
    let mut end = Vec::new();
    file.read_to_end(&mut end).map_err(named)?;
    let last = end.strip_suffix(b"\n").unwrap_or(&end).rsplit(|byte| *byte == b'\n').next();
    match last.is_some_and(|line| line.starts_with(br#"{"member":"end""#)) {
        true => Ok(bytes),
        false => Err(failed(&"the server aborted the export; see its log")),
    }
}

/// Creates a tenant from an archive, or fills one into which nothing was uploaded. Without a name
/// given, it is named as in the archive.
///
/// # Errors
/// [`Failure`] if the archive is not usable or the server refuses it.
pub fn import(connection: &Connection, from: &Path) -> Result<(), Failure> {
    let pairs: Vec<_> =
        connection.tenant_if_named().map(|name| ("tenant_id", name)).into_iter().collect();
    let path = format!("/tenant/import{}", query(&pairs));
    let mut archive: Box<dyn Read> = match from == Path::new("-") {
        true => Box::new(io::stdin()),
        false => {
            let named = |error| Failure::Usage(format!("{}: {error}", from.display()));
            if from.is_dir() {
                let problem = "is a folder, not an archive; use --from jsonl to import its JSON \
                    Lines files";
                return Err(Failure::Usage(format!("{}: {problem}", from.display())));
            }
            let mut archive = BufReader::new(File::open(from).map_err(named)?);
            if !archive.fill_buf().map_err(named)?.starts_with(BEGINNING) {
                return Err(Failure::Usage(format!(
                    "{}: not an archive of lodestone export; use --from jsonl to import lines with \
                     text or vector",
                    from.display()
                )));
            }
            Box::new(archive)
        }
    };
    let answer = connection.send_lines(&path, &mut archive)?;
    if connection.is_json {
        print_json(&answer);
        return Ok(());
    }
    let made: Value = serde_json::from_slice(&answer).map_err(|error| failed(&error))?;
    let number = |name: &str| made[name].as_u64().unwrap_or(0);
    let tenant = one_line(made["tenant_id"].as_str().unwrap_or_default());
    let (sources, chunks) =
        (counted(number("sources"), "source"), counted(number("chunks"), "chunk"));
    println!("{tenant}: {sources}, {chunks}");
    if made["reembedded"] == true {
        println!("the archive's vectors were made by another model: the texts were embedded again");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_takes_no_name_that_is_taken() {
        let dir = tempfile::tempdir().unwrap();
        let (part, to) = (dir.path().join("a.part"), dir.path().join("a"));
        fs::write(&part, "new").unwrap();
        fs::write(&to, "old").unwrap();
        assert_eq!(publish(&part, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&to).unwrap(), b"old");
        fs::remove_file(&to).unwrap();
        publish(&part, &to).unwrap();
        assert_eq!((fs::read(&to).unwrap(), part.exists()), (b"new".to_vec(), false));
    }
}
