//! Flags, environment variables and the settings file: flag > environment > file > default.

use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use clap::{Args, Parser, Subcommand};
use lodestone_embed::Precision;
use lodestone_engine::settings::{DeviceChoice, RateLimit, Settings, parse_bytes};
use lodestone_fetch::Allowed;
use serde::Deserialize;

use crate::cli::generator::GeneratorOptions;
use crate::cli::ingest::IngestOptions;
use crate::cli::model::ModelVerb;

/// Self-hosted retrieval: documents in, hybrid search and cited answers out.
#[derive(Debug, Parser)]
#[command(version, about)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verb of a confined child.
pub const PARSE: &str = "parse";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Run the server.
    Serve(Box<ServeOptions>),
    /// Say what a server started like this would run on, and what is in its way.
    Doctor(Box<ServeOptions>),
    /// Send files, folders and web pages to a running server.
    Ingest(Box<IngestOptions>),
    /// List models, and install one that is on this machine.
    #[command(subcommand)]
    Model(ModelVerb),
    /// Check every byte in the data directory of a server that is not running.
    Verify(VerifyOptions),
    /// Read one document from standard input in a confined process, as the server has it done.
    #[command(name = PARSE, hide = true)]
    Parse,
    /// Measure parts of the product on your own data.
    #[command(subcommand)]
    Bench(Bench),
}

/// What to measure.
#[derive(Debug, Subcommand)]
pub enum Bench {
    /// The GPU's part of a search over random rows, reports times and rates as JSON.
    Device(BenchDevice),
    /// Embedding: passages to vectors as ingestion does it, reports the rate as JSON.
    Embed(BenchEmbed),
    /// Vector search: builds a segment as the server does, reports speed and recall as JSON.
    Vectors(BenchVectors),
}

/// How much to search on the GPU.
#[derive(Debug, Args)]
pub struct BenchDevice {
    /// Rows on the device.
    #[arg(long, default_value_t = 1_000_000)]
    pub rows: usize,
    /// Components of a row.
    #[arg(long, default_value_t = 384)]
    pub dimension: usize,
    /// Neighbours to find.
    #[arg(long, default_value_t = 10)]
    pub k: usize,
    /// Queries that are asked together.
    #[arg(long, value_delimiter = ',', default_value = "1,8,16,64,256,1024")]
    pub batch: Vec<usize>,
    /// Where to write the report; standard output otherwise.
    #[arg(long)]
    pub json: Option<PathBuf>,
}

/// What to embed, and with what.
#[derive(Debug, Args)]
pub struct BenchEmbed {
    /// Passages, one a line.
    #[arg(long)]
    pub texts: PathBuf,
    /// Threads that embed.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: u16,
    /// f32, or fast: int16 where the processor has the instructions.
    #[arg(long, default_value_t)]
    pub precision: Precision,
    /// Where to write the report; standard output otherwise.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Where to write the vectors: float32 .npy, one row a passage.
    #[arg(long)]
    pub vectors: Option<PathBuf>,
    /// Directory of the embedding model.
    #[arg(long, env = "LODESTONE_MODEL_DIR", default_value = "models/all-MiniLM-L6-v2")]
    pub model_dir: PathBuf,
}

/// Files are .npy (row-major), .fvecs or .ivecs.
#[derive(Debug, Args)]
pub struct BenchVectors {
    /// Vectors to search, float32.
    #[arg(long)]
    pub base: PathBuf,
    /// Vectors to search for, float32.
    #[arg(long)]
    pub queries: PathBuf,
    /// Rows of the base nearest to each query by cosine, best first; at least k of them.
    #[arg(long)]
    pub truth: PathBuf,
    /// One bool a row of the base: which may be found. The truth must know of it.
    #[arg(long)]
    pub filter: Option<PathBuf>,
    /// Neighbours to find.
    #[arg(long, default_value_t = 10)]
    pub k: usize,
    /// `auto` is what the server does, `flat` exact, `ivf` the least effort for each target.
    #[arg(long, value_enum, default_value = "auto")]
    pub kind: IndexKind,
    /// Queries that are asked together.
    #[arg(long, value_delimiter = ',', default_value = "1")]
    pub batch: Vec<usize>,
    /// Threads over which a batch is spread.
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Recalls to reach with `--kind ivf`.
    #[arg(long, value_delimiter = ',', default_value = ".90,.95,.99")]
    pub targets: Vec<f64>,
    /// Seconds for each measurement; every query is asked at least once.
    #[arg(long, default_value_t = 10.0)]
    pub budget_s: f64,
    /// Where to write the report; standard output otherwise.
    #[arg(long)]
    pub json: Option<PathBuf>,
    /// Folder for the segment while it is measured; the system's temporary one otherwise.
    #[arg(long)]
    pub dir: Option<PathBuf>,
}

/// How to search.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum IndexKind {
    /// As the server does.
    Auto,
    /// Exactly.
    Flat,
    /// Through lists.
    Ivf,
}

/// Settings of the server. Each flag's environment variable stands beside it.
#[derive(Debug, Args)]
pub struct ServeOptions {
    /// TOML file with the names of these flags as keys.
    #[arg(long, env = "LODESTONE_CONFIG")]
    pub config: Option<PathBuf>,
    /// Where everything is kept [default: ./data].
    #[arg(long, env = "LODESTONE_DATA_DIR")]
    pub data_dir: Option<PathBuf>,
    /// Address and port to listen on [default: 127.0.0.1:8080].
    #[arg(long, env = "LODESTONE_LISTEN")]
    pub listen: Option<SocketAddr>,
    /// Directory of the embedding model [default: ./models/all-MiniLM-L6-v2].
    #[arg(long, env = "LODESTONE_MODEL_DIR")]
    pub model_dir: Option<PathBuf>,
    /// Directory of a reranker for `accurate` searches [default: reranker beside the embedding
    /// model, if it is there].
    #[arg(long, env = "LODESTONE_RERANKER_DIR")]
    pub reranker_dir: Option<PathBuf>,
    /// An admin key of at least 32 characters; without it one is made and shown once.
    #[arg(long, env = "LODESTONE_API_KEY", hide_env_values = true)]
    pub api_key: Option<String>,
    /// What computes over vectors: auto, cpu or cuda [default: auto].
    #[arg(long, env = "LODESTONE_DEVICE")]
    pub device: Option<DeviceChoice>,
    /// GPU memory that vectors may take, for example 8GiB [default: most of what is free].
    #[arg(long, env = "LODESTONE_GPU_MEMORY_LIMIT", value_parser = parse_bytes)]
    pub gpu_memory_limit: Option<u64>,
    /// Memory beyond which documents wait to be processed, for example 4GiB.
    #[arg(long, env = "LODESTONE_MEMORY_LIMIT", value_parser = parse_bytes)]
    pub memory_limit: Option<u64>,
    /// Threads that embed [default: one a core].
    #[arg(long, env = "LODESTONE_EMBED_THREADS")]
    pub embed_threads: Option<usize>,
    /// How exactly the CPU embeds: f32, or fast, which is int16 with AVX-512 VNNI and f32 elsewhere
    /// [default: f32].
    #[arg(long, env = "LODESTONE_EMBEDDING_PRECISION")]
    pub embedding_precision: Option<Precision>,
    /// Threads that process documents [default: cores + 1].
    #[arg(long, env = "LODESTONE_INGEST_THREADS")]
    pub ingest_threads: Option<usize>,
    /// Tenants that are kept open while nobody uses them [default: 256].
    #[arg(long, env = "LODESTONE_OPEN_COLLECTIONS")]
    pub open_collections: Option<usize>,
    /// Whether a first upload creates its tenant [default: true].
    #[arg(long, env = "LODESTONE_AUTO_CREATE_TENANTS")]
    pub auto_create_tenants: Option<bool>,
    /// Hours after which an idle session is forgotten, 0 for never [default: 24].
    #[arg(long, env = "LODESTONE_SESSION_IDLE_HOURS")]
    pub session_idle_hours: Option<u64>,
    /// Requests per second and key, `R` or `R/BURST` [default: no limit].
    #[arg(long, env = "LODESTONE_RATE_LIMIT")]
    pub rate_limit: Option<RateLimit>,
    /// Origins whose pages may call the server, comma-separated [default: none].
    #[arg(long, env = "LODESTONE_CORS_ORIGINS", value_delimiter = ',')]
    pub cors_origins: Vec<String>,
    /// Hosts, host:port and networks that pages may be fetched from although they are private or on
    /// another port than 80 and 443, separated by commas.
    #[arg(long, env = "LODESTONE_FETCH_ALLOW")]
    pub fetch_allow: Option<Allowed>,
    /// What writes answers.
    #[command(flatten)]
    pub llm: GeneratorOptions,
}

/// Where to verify.
#[derive(Debug, Args)]
pub struct VerifyOptions {
    /// The data directory.
    #[arg(long, env = "LODESTONE_DATA_DIR", default_value = "data")]
    pub data_dir: PathBuf,
}

/// The settings file. Unknown keys are refused, so that a misspelt one is noticed.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct SettingsFile {
    data_dir: Option<PathBuf>,
    listen: Option<SocketAddr>,
    model_dir: Option<PathBuf>,
    reranker_dir: Option<PathBuf>,
    api_key: Option<String>,
    device: Option<String>,
    gpu_memory_limit: Option<String>,
    memory_limit: Option<String>,
    embed_threads: Option<usize>,
    embedding_precision: Option<String>,
    ingest_threads: Option<usize>,
    open_collections: Option<usize>,
    auto_create_tenants: Option<bool>,
    session_idle_hours: Option<u64>,
    rate_limit: Option<String>,
    cors_origins: Vec<String>,
    fetch_allow: Option<String>,
    llm_base_url: Option<String>,
    llm_api_key: Option<String>,
    llm_model: Option<String>,
    llm_context_tokens: Option<usize>,
    llm_fallback: Option<bool>,
    llm_graph: Option<bool>,
}

impl ServeOptions {
    /// Flags and environment over the file over the defaults.
    ///
    /// # Errors
    /// A file that cannot be read, and keys or values that make no sense.
    pub fn settings(&self) -> Result<Settings, Box<dyn Error>> {
        let file = match &self.config {
            Some(path) => read_file(path)?,
            None => SettingsFile::default(),
        };
        let rate_of_file = file.rate_limit.as_deref().map(str::parse::<RateLimit>).transpose()?;
        let device_of_file = file.device.as_deref().map(str::parse::<DeviceChoice>).transpose()?;
        let memory_of_file = file.memory_limit.as_deref().map(parse_bytes).transpose()?;
        let precision_of_file = file.embedding_precision.as_deref();
        let precision_of_file = precision_of_file.map(str::parse::<Precision>).transpose()?;
        let limit_of_file = file.gpu_memory_limit.as_deref().map(parse_bytes).transpose()?;
        let data_dir = self.data_dir.clone().or(file.data_dir).unwrap_or_else(|| "data".into());
        let model_dir = self.model_dir.clone().or(file.model_dir);
        let model_dir = model_dir.unwrap_or_else(|| "models/all-MiniLM-L6-v2".into());
        let default = Settings::new(data_dir, model_dir);
        let first = |flag: Option<usize>, file: Option<usize>, default: usize| {
            flag.or(file).unwrap_or(default)
        };
        let of_file = GeneratorOptions {
            llm_base_url: file.llm_base_url,
            llm_api_key: file.llm_api_key,
            llm_model: file.llm_model,
            llm_context_tokens: file.llm_context_tokens,
            llm_fallback: file.llm_fallback,
            llm_graph: file.llm_graph,
        };
        let (llm, llm_fallback) = self.llm.over(&of_file).settings()?;
        let allowed_by_file = file.fetch_allow.as_deref().map(str::parse::<Allowed>).transpose()?;
        let cors_origins = match self.cors_origins.is_empty() {
            true => file.cors_origins,
            false => self.cors_origins.clone(),
        };
        let settings = Settings {
            listen: self.listen.or(file.listen).unwrap_or(default.listen),
            reranker_dir: self.reranker_dir.clone().or(file.reranker_dir),
            api_key: self.api_key.clone().or(file.api_key),
            device: self.device.or(device_of_file).unwrap_or(default.device),
            memory_limit: self.memory_limit.or(memory_of_file),
            gpu_memory_limit: self.gpu_memory_limit.or(limit_of_file),
            embed_threads: first(self.embed_threads, file.embed_threads, default.embed_threads),
            embedding_precision: self
                .embedding_precision
                .or(precision_of_file)
                .unwrap_or(default.embedding_precision),
            ingest_threads: first(self.ingest_threads, file.ingest_threads, default.ingest_threads),
            open_collections: first(
                self.open_collections,
                file.open_collections,
                default.open_collections,
            ),
            auto_create_tenants: self
                .auto_create_tenants
                .or(file.auto_create_tenants)
                .unwrap_or(default.auto_create_tenants),
            session_idle_hours: self
                .session_idle_hours
                .or(file.session_idle_hours)
                .unwrap_or(default.session_idle_hours),
            rate_limit: self.rate_limit.or(rate_of_file),
            fetch_allow: self.fetch_allow.clone().or(allowed_by_file).unwrap_or_default(),
            cors_origins,
            llm,
            llm_fallback,
            llm_graph: self.llm.llm_graph.or(of_file.llm_graph).unwrap_or(default.llm_graph),
            ..default
        };
        settings.validate()?;
        Ok(settings)
    }
}

fn read_file(path: &Path) -> Result<SettingsFile, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("settings file {}: {error}", path.display()))?;
    let file = toml::from_str(&text)
        .map_err(|error| format!("settings file {}: {error}", path.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(arguments: &[&str]) -> ServeOptions {
        let arguments = ["lodestone", "serve"].iter().chain(arguments);
        match Arguments::parse_from(arguments).verb {
            Verb::Serve(options) => *options,
            other => unreachable!("{other:?} is not serve"),
        }
    }

    #[test]
    fn a_flag_wins_over_the_file_and_the_file_over_the_default() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lodestone.toml");
        let text = "listen = \"127.0.0.1:9000\"\ningest-threads = 7\n\
                    device = \"cuda\"\nembedding-precision = \"fast\"\n\
                    gpu-memory-limit = \"2GiB\"\n";
        std::fs::write(&path, text).unwrap();
        let config = format!("--config={}", path.display());
        let settings = parse(&[&config, "--listen=127.0.0.1:9001", "--device=cpu"]).settings();
        let settings = settings.unwrap();
        assert_eq!(settings.device, DeviceChoice::Cpu);
        assert_eq!(settings.gpu_memory_limit, Some(2 << 30));
        assert_eq!(settings.listen.port(), 9001);
        assert_eq!(settings.ingest_threads, 7);
        assert_eq!(settings.embedding_precision, Precision::Fast);
        let exact = parse(&[&config, "--embedding-precision=f32"]).settings().unwrap();
        assert_eq!(exact.embedding_precision, Precision::F32);
        assert_eq!(settings.session_idle_hours, 24);
    }

    #[test]
    fn a_misspelt_key_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lodestone.toml");
        std::fs::write(&path, "listne = \"127.0.0.1:9000\"\n").unwrap();
        let config = format!("--config={}", path.display());
        assert!(parse(&[&config]).settings().unwrap_err().to_string().contains("listne"));
        assert!(parse(&["--api-key=short"]).settings().is_err());
    }
}
