//! Command-line arguments. Precedence: flag, then environment variable, then settings file, then
//! default.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand};
use lodestone_embed::Precision;
use lodestone_engine::settings::Settings;
use lodestone_fetch::bucket::BucketUrl;
use serde_json::{Map, Value};

use crate::cli::backup::{BackupOptions, RestoreArguments, StoreOptions};
use crate::cli::client::options::hide_scope;
use crate::cli::client::{
    AskOptions, ExportOptions, GraphOptions, ImportOptions, JobsOptions, KeyOptions, McpOptions,
    MemoryOptions, ReembedOptions, SearchOptions, SourcesOptions, TenantOptions, WebhookOptions,
};
use crate::cli::ingest::IngestOptions;
use crate::cli::model::ModelVerb;
use crate::cli::origins::{self, Added, without_empty_variable};
use crate::cli::store::StoreVerb;

/// Self-hosted retrieval: documents in, hybrid search and cited answers out.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Arguments {
    /// Verb to run.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verb that runs a confined parser process.
pub const PARSE: &str = "parse";

/// Verbs of the command line.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run the server.
    Serve(Box<ServeOptions>),
    /// Check that a server with these settings can run here, and what it depends on.
    Doctor(Box<ServeOptions>),
    /// Upload files, folders and web pages to a running server.
    Ingest(Box<IngestOptions>),
    /// Find passages by meaning and keywords.
    Search(Box<SearchOptions>),
    /// Ask a question; the answer is based on the documents and cites them.
    Ask(Box<AskOptions>),
    /// List, show and delete sources.
    Sources(Box<SourcesOptions>),
    /// List ingestion jobs, and retry failed ones.
    Jobs(Box<JobsOptions>),
    /// List the relations of an entity, or those stated by sources.
    Graph(Box<GraphOptions>),
    /// Add, list, delete and search memories.
    Memory(Box<MemoryOptions>),
    /// List, create and delete tenants; show their usage and set their limits.
    Tenant(Box<TenantOptions>),
    /// Change the embedding model of tenants while they are searched; requires an admin key.
    Reembed(Box<ReembedOptions>),
    /// List, create and revoke API keys; requires an admin key.
    Key(Box<KeyOptions>),
    /// List, add, test and remove webhooks, and list their deliveries; requires an admin key.
    Webhook(Box<WebhookOptions>),
    /// Provide the tools of a server to a language model application over stdin and stdout.
    Mcp(Box<McpOptions>),
    /// Back up the data of a running or stopped server; list, verify and remove backups.
    Backup(Box<BackupOptions>),
    /// Restore a backup into a new data directory.
    Restore(Box<RestoreArguments>),
    /// Copy the data of a stopped server between a data directory and a bucket.
    #[command(subcommand)]
    Store(StoreVerb),
    /// Export a tenant of a running server to an archive file.
    Export(Box<ExportOptions>),
    /// Import an archive, or data of another product, into a tenant of a running server.
    Import(Box<ImportOptions>),
    /// Install models, and list the installed ones.
    #[command(subcommand)]
    Model(ModelVerb),
    /// Verify every byte in the data directory of a stopped server, or in a bucket.
    Verify(Box<VerifyOptions>),
    /// Print a shell completion script.
    Completions {
        /// Shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Parse one document from standard input in a sandboxed process, as the server does.
    #[command(name = PARSE, hide = true)]
    Parse,
    /// Benchmark parts of the product on your own data.
    #[command(subcommand)]
    Bench(Bench),
}

/// Benchmarks.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// Search random rows on the GPU; reports times and rates as JSON.
    Device(BenchDevice),
    /// Embed passages as ingestion does; reports the rate as JSON.
    Embed(BenchEmbed),
    /// Build a segment of vectors as the server does and search it; reports speed and recall as
    /// JSON.
    Vectors(Box<BenchVectors>),
}

/// Size of a search on the GPU.
#[derive(Debug, Args)]
pub struct BenchDevice {
    /// Number of rows on the device.
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: usize,
    /// Dimension of the vectors.
    #[arg(long, default_value_t = 384)]
    pub dimension: usize,
    /// Number of neighbours to find.
    #[arg(long, default_value_t = 10)]
    pub k: usize,
    /// Number of queries per batch, comma-separated; each is measured.
    #[arg(long, value_delimiter = ',', default_value = "1,8,16,64,256,1024")]
    pub batch: Vec<usize>,
    /// Output file for the report [default: standard output].
    #[arg(long)]
    pub json: Option<PathBuf>,
}

/// Passages to embed, and the model.
#[derive(Debug, Args)]
pub struct BenchEmbed {
    /// File of passages, one per line.
    #[arg(long)]
    pub texts: PathBuf,
    /// Number of embedding threads.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// `auto` (int16 if the processor has the instructions) or `f32`.
    #[arg(long, default_value_t)]
    pub precision: Precision,
    /// Output file for the report [default: standard output].
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Output file for the vectors: float32 .npy, one row per passage.
    #[arg(long)]
    pub vectors: Option<PathBuf>,
    /// Directory of the embedding model.
    #[arg(long, env = "LODESTONE_MODEL_DIR", default_value = "models/all-MiniLM-L6-v2")]
    pub model_dir: PathBuf,
}

/// Benchmark of vector search. Files are .npy (row-major), .fvecs or .ivecs.
#[derive(Debug, Args)]
pub struct BenchVectors {
    /// File of the vectors to search, float32.
    #[arg(long, required_unless_present = "open")]
    pub base: Option<PathBuf>,
    /// File of the query vectors, float32.
    #[arg(long)]
    pub queries: PathBuf,
    /// File of the exact nearest neighbours of each query: row numbers of the base by cosine, best
    /// first, at least k. Given once without a filter, if wanted, then once per filter in order.
    #[arg(long, required = true)]
    pub truth: Vec<PathBuf>,
    /// File with one bool per row of the base, true if the row may be found. May be repeated; each
    /// filter is measured separately.
    #[arg(long)]
    pub filter: Vec<PathBuf>,
    /// Number of neighbours to find.
    #[arg(long, default_value_t = 10)]
    pub k: usize,
    /// Search method: `auto` as the server, `fast` as the server with `mode: fast`, `flat` exact,
    /// `ivf` with the least effort that reaches each target.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "auto")]
    pub kind: Vec<IndexKind>,
    /// With `--kind ivf`: lists searched without a new result before a search ends; no targets.
    #[arg(long, value_delimiter = ',')]
    pub patience: Vec<usize>,
    /// With `--patience`: width of the T0 bound in standard deviations.
    #[arg(long, default_value_t = 2.5, requires = "patience")]
    pub deviations: f32,
    /// Number of queries per batch, comma-separated; each is measured.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    pub batch: Vec<usize>,
    /// Number of threads that share a batch.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Target recalls for `--kind ivf`.
    #[arg(long, value_delimiter = ',', default_value = ".90,.95,.99")]
    pub targets: Vec<f64>,
    /// Seconds per measurement; every query is run at least once.
    #[arg(long, default_value_t = 10.0)]
    pub budget_s: f64,
    /// Output file for the report [default: standard output].
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Folder for the segment during the measurement [default: the system's temporary folder].
    #[arg(long)]
    pub dir: Option<PathBuf>,
    /// New folder in which the segment is kept, for `--open`.
    #[arg(long)]
    pub keep: Option<PathBuf>,
    /// Folder left by `--keep`; its segment is searched instead of building one.
    #[arg(long, conflicts_with_all = ["base", "keep", "dir"])]
    pub open: Option<PathBuf>,
}

/// Search methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum IndexKind {
    /// As the server searches.
    Auto,
    /// As the server searches with `mode: fast`.
    Fast,
    /// Exact search.
    Flat,
    /// Search through inverted lists.
    Ivf,
}

impl IndexKind {
    /// Returns the name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Fast => "fast",
            Self::Flat => "flat",
            Self::Ivf => "ivf",
        }
    }
}

/// Flags of a server, and the settings file that may hold the same settings.
#[derive(Debug, Args)]
pub struct ServeOptions {
    /// TOML settings file whose keys are the names of these flags.
    #[arg(long, env = "LODESTONE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Print the effective settings with their origins, secrets masked, and exit.
    #[arg(long)]
    pub print_config: bool,
    /// Output of `--print-config`.
    #[arg(skip)]
    pub report: String,
    #[command(flatten)]
    pub settings: Settings,
}

/// Data directory or bucket to verify.
#[derive(Debug, Args)]
pub struct VerifyOptions {
    /// Data directory of a stopped server.
    #[arg(long, env = "LODESTONE_DATA_DIR", default_value = "data")]
    pub data_dir: PathBuf,
    /// URL of a bucket with a server's data, instead of a data directory; the server may be
    /// running.
    #[arg(long, value_name = "URL")]
    pub store: Option<BucketUrl>,
    /// Directory of the server's embedding model, to report tenants with vectors of another model.
    #[arg(long, env = "LODESTONE_MODEL_DIR")]
    pub model_dir: Option<PathBuf>,
    #[command(flatten)]
    pub(super) s3: StoreOptions,
}

impl Arguments {
    /// Parses a command line. A flag takes precedence over the environment, which takes precedence
    /// over the settings file and then the default. A variable set to an empty text counts as
    /// unset.
    ///
    /// # Errors
    /// An invalid argument, variable, file, key or value. A request for help is also reported as an
    /// error, which clap prints.
    pub fn read(line: impl Iterator<Item = OsString>) -> Result<Self, Box<dyn Error>> {
        let mut line: Vec<OsString> = line.collect();
        let command = Self::command()
            .mut_subcommands(|verb| hide_scope(verb.mut_args(without_empty_variable)));
        let matches =
            command.clone().try_get_matches_from(&line).map_err(|error| {
                match serve_flag(&error, &command) {
                    Some(flag) => {
                        format!("{flag} is a flag of lodestone serve: add the command").into()
                    }
                    None => Box::<dyn Error>::from(error),
                }
            })?;
        let mut arguments = Self::from_arg_matches(&matches)?;
        if let (Verb::Backup(options), Some((_, given))) =
            (&mut arguments.verb, matches.subcommand())
        {
            let is_flag = |id: &str| given.value_source(id) == Some(ValueSource::CommandLine);
            options.note_flags(is_flag);
        }
        if let (Verb::Key(_) | Verb::Webhook(_), Some((_, given))) =
            (&arguments.verb, matches.subcommand())
        {
            refuse_scope(&command, given)?;
        }
        let (Verb::Serve(options) | Verb::Doctor(options)) = &arguments.verb else {
            return Ok(arguments);
        };
        let (name, given) = matches.subcommand().ok_or("no command given")?;
        let verb = command.find_subcommand(name).ok_or("unknown command")?;
        let mut added =
            origins::add_secrets(&mut line, verb, given, |name| std::env::var_os(name))?;
        if let Some(path) = &options.config {
            let in_file =
                |error: &dyn Display| format!("settings file {}: {error}", path.display());
            let text = std::fs::read_to_string(path).map_err(|error| in_file(&error))?;
            let table = basic_toml::from_str(&text).map_err(|error| in_file(&error))?;
            add_file(&mut line, verb, given, &table, path, &mut added)
                .map_err(|error| in_file(&error))?;
        }
        let held = command.clone().try_get_matches_from(&line);
        let held = match &options.config {
            Some(path) => {
                held.map_err(|error| format!("settings file {}: {error}", path.display()))?
            }
            None => held?,
        };
        let mut arguments = Self::from_arg_matches(&held)?;
        if let Verb::Serve(options) | Verb::Doctor(options) = &mut arguments.verb
            && options.print_config
            && let Some((_, held)) = held.subcommand()
        {
            options.report = origins::report(verb, given, held, &added);
        }
        Ok(arguments)
    }
}

/// Refuses `--tenant` as a flag when something is created for all tenants, because `--scope` was
/// probably meant. A tenant from the environment or a profile is meant for other verbs and ignored.
fn refuse_scope(command: &Command, given: &ArgMatches) -> Result<(), clap::Error> {
    let is_made = matches!(given.subcommand_name(), Some("create" | "add"));
    let is_flag = |id: &&str| given.value_source(id) == Some(ValueSource::CommandLine);
    match ["tenant", "sub_tenant"].iter().any(is_flag) && is_made {
        true => {
            let problem = "--tenant and --sub-tenant have no effect here; use --scope TENANT or \
                --scope TENANT/SUB_TENANT";
            Err(command.clone().error(ErrorKind::ArgumentConflict, problem))
        }
        false => Ok(()),
    }
}

/// Returns the flag of `serve` that was given without a verb.
fn serve_flag(error: &clap::Error, command: &Command) -> Option<String> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    let is_verb_missing = matches!(
        error.get(ContextKind::Usage),
        Some(ContextValue::StyledStr(usage)) if usage.to_string().contains("<COMMAND>")
    );
    let name = flag.strip_prefix("--")?.split('=').next()?;
    let mut flags = command.find_subcommand("serve")?.get_arguments();
    let is_of_serve = flags.any(|flag| flag.get_long() == Some(name));
    (is_verb_missing && is_of_serve).then(|| flag.clone())
}

/// Adds to a command line the settings of a file that neither a flag nor a variable sets.
fn add_file(
    line: &mut Vec<OsString>,
    verb: &Command,
    given: &ArgMatches,
    table: &Map<String, Value>,
    path: &Path,
    added: &mut Vec<Added>,
) -> Result<(), String> {
    for (key, value) in table {
        let is_named = |flag: &&Arg| {
            let mut names = flag.get_long_and_visible_aliases().unwrap_or_default();
            names.extend(flag.get_all_aliases().unwrap_or_default());
            names.contains(&key.as_str()) && key != "config" && key != "print-config"
        };
        let flag = verb.get_arguments().find(is_named);
        let id = flag.ok_or_else(|| format!("unknown key {key}"))?.get_id().as_str();
        let is_given = matches!(
            given.value_source(id),
            Some(ValueSource::CommandLine | ValueSource::EnvVariable)
        );
        if !is_given && !added.iter().any(|added| added.id == id) {
            line.push(format!("--{key}={}", text_of(value)).into());
            added.push(Added { id: id.to_owned(), origin: path.display().to_string() });
        }
    }
    Ok(())
}

/// Formats a value of the settings file as it would be written on the command line.
fn text_of(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(text_of).collect::<Vec<_>>().join(","),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lodestone_engine::settings::DeviceChoice;

    fn parse(arguments: &[&str]) -> Result<Settings, Box<dyn Error>> {
        let line = ["lodestone", "serve"].iter().chain(arguments);
        match Arguments::read(line.map(OsString::from))?.verb {
            Verb::Serve(options) => Ok(options.settings),
            other => unreachable!("{other:?} is not serve"),
        }
    }

    fn file(text: &str) -> (tempfile::TempDir, String) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lodestone.toml");
        std::fs::write(&path, text).unwrap();
        let flag = format!("--config={}", path.display());
        (dir, flag)
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let text = "listen = \"127.0.0.1:9000\"\ningest-threads = 7\n\
                    device = \"cuda\"\nembedding-precision = \"f32\"\n\
                    gpu-memory-limit = \"2GiB\"\nllm-fallback = false\n\
                    cors-origins = [\"http://a\", \"http://b\"]\n";
        let (_dir, config) = file(text);
        let settings = parse(&[&config, "--listen=127.0.0.1:9001", "--device=cpu"]).unwrap();
        assert_eq!(settings.device, DeviceChoice::Cpu);
        assert_eq!(settings.gpu_memory_limit, Some(2 << 30));
        assert_eq!(settings.listen.port(), 9001);
        assert_eq!(settings.ingest_threads, 7);
        assert_eq!(settings.cors_origins, ["http://a", "http://b"]);
        assert!(!settings.llm_fallback);
        assert_eq!(settings.embedding_precision, Precision::F32);
        let auto = parse(&[&config, "--embedding-precision=auto"]).unwrap();
        assert_eq!(auto.embedding_precision, Precision::Auto);
        assert_eq!(settings.session_idle_hours, 24);
    }

    #[test]
    fn a_flag_of_serve_without_the_verb_is_told() {
        for (line, is_told) in [
            (["lodestone", "--listen=127.0.0.1:1"], true),
            (["lodestone", "--no-such-flag"], false),
        ] {
            let error = Arguments::read(line.iter().map(OsString::from)).unwrap_err().to_string();
            assert_eq!(error.contains("is a flag of lodestone serve"), is_told, "{error}");
        }
    }

    #[test]
    fn a_wrong_key_or_value_of_the_file_is_named() {
        for (text, named) in [
            ("listne = \"127.0.0.1:9000\"\n", "unknown key listne"),
            ("config = \"other.toml\"\n", "unknown key config"),
            ("ingest-threads = \"many\"\n", "--ingest-threads"),
            ("listen 1\n", "settings file"),
        ] {
            let (_dir, config) = file(text);
            let error = parse(&[&config]).unwrap_err().to_string();
            assert!(error.contains(named) && error.contains("lodestone.toml"), "{error}");
        }
        assert!(parse(&["--config=/no/such/file.toml"]).is_err());
    }

    /// The table between the markers in docs/configuration.md matches the flag definitions;
    /// `UPDATE_DOCS=1` rewrites it.
    #[test]
    fn the_settings_are_documented() {
        let (begin, end) = ("<!-- settings: begin -->\n", "<!-- settings: end -->");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/configuration.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, rest) = page.split_once(begin).expect("a marker");
        let (_, after) = rest.split_once(end).expect("a marker");
        let expected = format!("{before}{begin}{}{end}{after}", table());
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &expected).unwrap();
        } else {
            assert_eq!(page, expected, "UPDATE_DOCS=1 writes docs/configuration.md");
        }
    }

    /// Formats a row for each setting: flag, variable, key in the file, kind of value, default,
    /// description.
    fn table() -> String {
        let head = "| Flag | Variable | Key | Value | Default | Meaning |";
        let mut lines = vec![head.to_owned(), "|---|---|---|---|---|---|".to_owned()];
        let command = Arguments::command();
        for flag in command.find_subcommand("serve").unwrap().get_arguments() {
            let (Some(variable), Some(key)) = (flag.get_env(), flag.get_long()) else { continue };
            let help = flag.get_help().unwrap().to_string();
            let (meaning, told) = match help.split_once(" [default: ") {
                Some((meaning, told)) => (meaning, told.trim_end_matches(']').to_owned()),
                None => (help.as_str(), String::new()),
            };
            let mut defaults = flag.get_default_values().iter().map(|text| text.to_string_lossy());
            let default = match defaults.next() {
                Some(text) if told.is_empty() => format!("`{text}`"),
                _ => told,
            };
            let value = flag.get_value_names().unwrap()[0].to_lowercase();
            let of_file = if key == "config" { String::new() } else { format!("`{key}`") };
            let variable = variable.to_string_lossy();
            lines.push(format!(
                "| `--{key}` | `{variable}` | {of_file} | {value} | {default} | {meaning} |"
            ));
        }
        lines.join("\n") + "\n"
    }
}
