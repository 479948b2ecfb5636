//! `lodestone export` and `lodestone import`: tenants out of a running server and into another.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, IsTerminal, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::counted;
use crate::cli::ingest::transport::{Http, query};

/// The server of the defaults of `lodestone serve`.
const SERVER: &str = "http://127.0.0.1:8080";
/// Bytes of the end of an archive in which its last line stands.
const END_BYTES: u64 = 4096;

/// The server, and the key for it.
#[derive(Debug, Args)]
struct ServerOptions {
    /// Address of the server.
    #[arg(long, env = "LODESTONE_SERVER", default_value = SERVER)]
    server: String,
    /// An admin key.
    #[arg(long, env = "LODESTONE_API_KEY", hide_env_values = true)]
    api_key: Option<String>,
}

impl ServerOptions {
    fn http(&self) -> Http {
        Http::new(self.server.trim_end_matches('/'), self.api_key.as_deref())
    }
}

/// The tenant to export, and the file.
#[derive(Debug, Args)]
pub struct ExportOptions {
    /// The tenant.
    tenant: String,
    /// File of the archive, which must not exist; `-` is standard output.
    to: PathBuf,
    /// This sub-tenant alone.
    #[arg(long)]
    sub_tenant: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

/// The archive to import, and the tenant.
#[derive(Debug, Args)]
pub struct ImportOptions {
    /// File of the archive; `-` is standard input.
    from: PathBuf,
    /// The new tenant, or one into which nothing was uploaded [default: the name in the archive].
    #[arg(long)]
    tenant: Option<String>,
    #[command(flatten)]
    server: ServerOptions,
}

/// Writes a tenant of a server to a file. The file has its name when it is whole.
pub fn export(options: &ExportOptions) -> Result<(), Box<dyn Error>> {
    let mut pairs = vec![("tenant_id", options.tenant.as_str())];
    pairs.extend(options.sub_tenant.as_deref().map(|name| ("sub_tenant_id", name)));
    let path = format!("/tenant/export{}", query(&pairs));
    let http = options.server.http();
    if options.to == Path::new("-") {
        let mut out = io::stdout().lock();
        if out.is_terminal() {
            return Err("an archive is for a file or a pipe: name a file".into());
        }
        http.download(&path, &mut out)?;
        return Ok(out.flush()?);
    }
    let to = options.to.display();
    if options.to.exists() {
        return Err(format!("{to} exists").into());
    }
    let part = part_of(&options.to);
    let written = write_whole(&http, &path, &part);
    let bytes = written.and_then(|bytes| {
        fs::rename(&part, &options.to)?;
        Ok(bytes)
    });
    let bytes = bytes.inspect_err(|_| {
        // It may not have been made at all.
        let _ = fs::remove_file(&part);
    })?;
    println!("{}: {bytes} bytes in {to}", options.tenant);
    Ok(())
}

fn part_of(to: &Path) -> PathBuf {
    let mut name = to.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    to.with_file_name(name)
}

fn write_whole(http: &Http, path: &str, part: &Path) -> Result<u64, Box<dyn Error>> {
    let named = |error: io::Error| format!("{}: {error}", part.display());
    let file = File::options().read(true).write(true).create_new(true).open(part);
    let mut out = BufWriter::new(file.map_err(named)?);
    http.download(path, &mut out)?;
    let mut file = out.into_inner().map_err(|error| named(error.into_error()))?;
    file.sync_all().map_err(named)?;
    let bytes = file.metadata().map_err(named)?.len();
    file.seek(SeekFrom::Start(bytes.saturating_sub(END_BYTES))).map_err(named)?;
    let mut end = Vec::new();
    file.read_to_end(&mut end).map_err(named)?;
    let last = end.strip_suffix(b"\n").unwrap_or(&end).rsplit(|byte| *byte == b'\n').next();
    match last.is_some_and(|line| line.starts_with(br#"{"member":"end""#)) {
        true => Ok(bytes),
        false => Err("the server broke the export off: its log says why".into()),
    }
}

/// Makes a tenant of a server from an archive.
pub fn import(options: &ImportOptions) -> Result<(), Box<dyn Error>> {
    let pairs: Vec<_> =
        options.tenant.as_deref().map(|name| ("tenant_id", name)).into_iter().collect();
    let path = format!("/tenant/import{}", query(&pairs));
    let mut from: Box<dyn Read> = match options.from == Path::new("-") {
        true => Box::new(io::stdin()),
        false => {
            let named = |error| format!("{}: {error}", options.from.display());
            Box::new(BufReader::new(File::open(&options.from).map_err(named)?))
        }
    };
    let made = options.server.http().send_lines(&path, &mut from)?;
    let number = |name: &str| made[name].as_u64().unwrap_or(0);
    let tenant = made["tenant_id"].as_str().unwrap_or_default();
    let (sources, chunks) =
        (counted(number("sources"), "source"), counted(number("chunks"), "chunk"));
    println!("{tenant}: {sources}, {chunks}");
    if made["reembedded"] == true {
        println!("the vectors of the archive are of another model: the texts were embedded again");
    }
    Ok(())
}
