//! The settings of a server, defined once: each field of [`Settings`] is a flag, an environment
//! variable and a key of the settings file.

mod backups;
mod beside;
mod embedding;
mod reembed;
mod scrub;
mod store;
mod tenants;
mod tls;
mod values;
mod watch;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args, Command, FromArgMatches};
use lodestone_answer::generate::{CONTEXT_TOKENS_DEFAULT, GeneratorSettings};
use lodestone_catalog::KeyText;
use lodestone_embed::Precision;
use lodestone_fetch::Allowed;
use lodestone_types::Secret;

pub use backups::{BackupSettings, BucketSettings};
pub use beside::BesideSettings;
pub use embedding::EmbeddingSettings;
pub use reembed::ReembedSettings;
pub use scrub::ScrubSettings;
pub use store::{NodeRole, NodeSettings, StoreSettings};
pub use tenants::TenantSettings;
pub use tls::TlsSettings;
pub use values::{DeviceChoice, RateLimit};
use values::{parse_address, parse_bytes, parse_seconds};
pub use watch::{LogFormat, WatchSettings};

/// Settings of the server. Each flag's environment variable is given next to it.
#[derive(Debug, Clone, PartialEq, Args)]
pub struct Settings {
    /// Directory for all data. Only one process may use it at a time.
    #[arg(long, env = "LODESTONE_DATA_DIR", value_name = "PATH", default_value = "data")]
    pub data_dir: PathBuf,
    /// Address and port to listen on.
    #[arg(
        long,
        env = "LODESTONE_LISTEN",
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:8080",
        value_parser = parse_address
    )]
    pub listen: SocketAddr,
    /// Directory of the embedding model, containing config.json, tokenizer.json and
    /// model.safetensors.
    #[arg(
        long,
        env = "LODESTONE_MODEL_DIR",
        value_name = "PATH",
        default_value = "models/all-MiniLM-L6-v2"
    )]
    pub model_dir: PathBuf,
    /// Optional models beside the embedding model.
    #[command(flatten)]
    pub beside: BesideSettings,
    /// Admin key for all tenants, at least 32 characters [default: generated at the first start and
    /// shown once].
    #[arg(
        long,
        alias = "api-key",
        env = "LODESTONE_ADMIN_KEY",
        value_name = "KEY",
        hide_env_values = true
    )]
    pub admin_key: Option<String>,
    /// Device for vector computations: `auto` uses a GPU if one is usable; `cuda` refuses to start
    /// without one.
    #[arg(
        long,
        env = "LODESTONE_DEVICE",
        value_name = "DEVICE",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub device: DeviceChoice,
    /// Maximum GPU memory for vectors, for example 8GiB [default: most of the free memory].
    #[arg(
        long,
        env = "LODESTONE_GPU_MEMORY_LIMIT",
        value_name = "BYTES",
        value_parser = parse_bytes
    )]
    pub gpu_memory_limit: Option<u64>,
    /// Memory limit for work, for example 4GiB. At the limit, documents and large requests wait and
    /// merges are split up. Parser processes count towards it, memory-mapped files do not [default:
    /// three quarters of the machine's or container's memory].
    #[arg(long, env = "LODESTONE_MEMORY_LIMIT", value_name = "BYTES", value_parser = parse_bytes)]
    pub memory_limit: Option<u64>,
    /// Threads for embedding, at least 1 [default: one per core].
    #[arg(
        long,
        env = "LODESTONE_EMBED_THREADS",
        value_name = "THREADS",
        default_value_t = cores(),
        hide_default_value = true
    )]
    pub embed_threads: usize,
    /// Precision of embedding and reranking on the CPU: `auto` (int16 with AVX-512 VNNI, otherwise
    /// f32) or `f32`.
    #[arg(long, env = "LODESTONE_EMBEDDING_PRECISION", value_name = "PRECISION", default_value_t)]
    pub embedding_precision: Precision,
    // One more than embeds: while one builds a segment the others keep the model busy.
    /// Threads that process the documents of one tenant, at least 1. One additional thread is
    /// reserved for other tenants [default: cores + 1].
    #[arg(
        long,
        env = "LODESTONE_INGEST_THREADS",
        value_name = "THREADS",
        default_value_t = cores() + 1,
        hide_default_value = true
    )]
    pub ingest_threads: usize,
    /// Maximum number of idle tenants kept open, at least 1.
    #[arg(long, env = "LODESTONE_OPEN_COLLECTIONS", value_name = "TENANTS", default_value_t = 256)]
    pub open_collections: usize,
    /// Time limit of a search or an answer in seconds, for example 2.5. The time that a generator
    /// takes to write is not counted.
    #[arg(
        long,
        env = "LODESTONE_QUERY_TIMEOUT",
        value_name = "SECONDS",
        default_value = "60",
        value_parser = parse_seconds
    )]
    pub query_timeout: Duration,
    /// Whether the first upload to an unknown tenant creates it.
    #[arg(
        long,
        env = "LODESTONE_AUTO_CREATE_TENANTS",
        value_name = "BOOLEAN",
        action = ArgAction::Set,
        default_value_t = true
    )]
    pub auto_create_tenants: bool,
    /// Hours after which an idle session is discarded; 0 keeps sessions forever.
    #[arg(long, env = "LODESTONE_SESSION_IDLE_HOURS", value_name = "HOURS", default_value_t = 24)]
    pub session_idle_hours: u64,
    /// Requests per second per API key, as `R` or `R/BURST` [default: no limit].
    #[arg(long, env = "LODESTONE_RATE_LIMIT", value_name = "RATE")]
    pub rate_limit: Option<RateLimit>,
    /// Maximum number of concurrent connections, at least 16. At the limit, idle connections are
    /// closed, those without a key first.
    #[arg(long, env = "LODESTONE_CONNECTIONS", value_name = "CONNECTIONS", default_value_t = 1024)]
    pub connections: usize,
    /// Maximum number of concurrent connections from one public address; 0 means no limit. Loopback
    /// and private addresses, where proxies run, are never limited.
    #[arg(
        long,
        env = "LODESTONE_CONNECTIONS_PER_ADDRESS",
        value_name = "CONNECTIONS",
        default_value_t = 256
    )]
    pub connections_per_address: usize,
    /// Seconds for which idle connections stay open, at least 1; longer than at the proxy in front.
    #[arg(
        long,
        env = "LODESTONE_KEEP_ALIVE_SECONDS",
        value_name = "SECONDS",
        default_value_t = 75
    )]
    pub keep_alive_seconds: u64,
    /// Seconds of waiting for a client after which its transfer rate is checked, at least 1.
    #[arg(
        long,
        env = "LODESTONE_SLOW_CLIENT_SECONDS",
        value_name = "SECONDS",
        default_value_t = 30
    )]
    pub slow_client_seconds: u64,
    /// Minimum rate, in bytes per second of waiting, at which a client must send a request body and
    /// read a response. Slower clients are disconnected.
    #[arg(
        long,
        env = "LODESTONE_SLOW_CLIENT_RATE",
        value_name = "BYTES",
        value_parser = parse_bytes,
        default_value = "4KiB"
    )]
    pub slow_client_rate: u64,
    /// Comma-separated origins whose pages may call the server from a browser [default: none].
    #[arg(long, env = "LODESTONE_CORS_ORIGINS", value_name = "ORIGINS", value_delimiter = ',')]
    pub cors_origins: Vec<String>,
    /// Comma-separated hosts, host:port pairs and networks to which page fetches and webhooks are
    /// allowed even if they are private or use a port other than 80 and 443 [default: none].
    #[arg(
        long,
        env = "LODESTONE_FETCH_ALLOW",
        value_name = "HOSTS",
        default_value = "",
        hide_default_value = true
    )]
    pub fetch_allow: Allowed,
    /// Base URL of the generator that writes answers, without `/chat/completions`, for example
    /// http://127.0.0.1:11434/v1 [default: none, answers are extracted from the documents].
    #[arg(long, env = "LODESTONE_LLM_BASE_URL", value_name = "URL")]
    pub llm_base_url: Option<String>,
    /// API key of the generator [default: none].
    #[arg(long, env = "LODESTONE_LLM_API_KEY", value_name = "KEY", hide_env_values = true)]
    pub llm_api_key: Option<Secret>,
    /// Model name of the generator; required with llm-base-url.
    #[arg(long, env = "LODESTONE_LLM_MODEL", value_name = "NAME")]
    pub llm_model: Option<String>,
    /// Context size of the generator in tokens, prompt and answer together, 2048 to 2000000.
    #[arg(
        long,
        env = "LODESTONE_LLM_CONTEXT_TOKENS",
        value_name = "TOKENS",
        default_value_t = CONTEXT_TOKENS_DEFAULT
    )]
    pub llm_context_tokens: usize,
    /// Whether answers are extracted from the documents while the generator fails; otherwise such
    /// questions get status 503.
    #[arg(
        long,
        env = "LODESTONE_LLM_FALLBACK",
        value_name = "BOOLEAN",
        action = ArgAction::Set,
        default_value_t = true
    )]
    pub llm_fallback: bool,
    /// Whether the generator also reads documents to extend the knowledge graph. Each document then
    /// waits for it, for a few minutes at most.
    #[arg(
        long,
        env = "LODESTONE_LLM_GRAPH",
        value_name = "BOOLEAN",
        action = ArgAction::Set,
        default_value_t = false
    )]
    pub llm_graph: bool,
    /// Storage of the data.
    #[command(flatten)]
    pub store: StoreSettings,
    /// Embedding model on another server.
    #[command(flatten)]
    pub embedding: EmbeddingSettings,
    /// Default limits of tenants.
    #[command(flatten)]
    pub tenants: TenantSettings,
    /// Backups.
    #[command(flatten)]
    pub backups: BackupSettings,
    /// Background verification of stored data.
    #[command(flatten)]
    pub scrub: ScrubSettings,
    /// Changes of the embedding model.
    #[command(flatten)]
    pub reembed: ReembedSettings,
    /// Metrics, logs and traces.
    #[command(flatten)]
    pub watch: WatchSettings,
    /// TLS.
    #[command(flatten)]
    pub tls: TlsSettings,
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// A setting with an invalid value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {name} {problem}")]
pub struct InvalidSetting {
    /// Name of the setting, spelled as on the command line.
    pub name: &'static str,
    /// Description of the error.
    pub problem: String,
}

/// Lower bound of the memory limit: the model, the catalog and one document need this much.
const MEMORY_LIMIT_MIN: u64 = 512 << 20;
/// Lower bound of the connection limit.
const CONNECTIONS_MIN: usize = 16;
/// Minimum length of the operator's key in characters.
const ADMIN_KEY_CHARS_MIN: usize = 32;

impl Settings {
    /// Returns the defaults with `data_dir` and the model in `model_dir`, ignoring the environment.
    ///
    /// # Panics
    /// If a default of the definition above is invalid, which a test rules out.
    pub fn new(data_dir: PathBuf, model_dir: PathBuf) -> Self {
        let flags = Self::augment_args(Command::new("defaults"));
        let flags = flags.mut_args(|flag| flag.env(None::<&str>));
        let matches = flags.try_get_matches_from(["defaults"]);
        let defaults = matches.and_then(|matches| Self::from_arg_matches(&matches));
        let defaults = defaults.expect("every default is valid");
        Self { data_dir, model_dir, ..defaults }
    }

    /// Uses the clients' variable as the operator's key, as earlier versions did; returns whether
    /// it was usable. A text in the form of a catalog key is never used: it has the rights that it
    /// was issued with, and none once it is revoked, so it must not become the operator's.
    pub fn adopt_client_key(&mut self, key: &str) -> bool {
        let is_usable = !KeyText::has_form(key) && key.chars().count() >= ADMIN_KEY_CHARS_MIN;
        if is_usable {
            self.admin_key = Some(key.to_owned());
        }
        is_usable
    }

    /// Returns the generator that writes answers, or `None` if none is configured. An empty text
    /// counts as not set.
    ///
    /// # Errors
    /// A model without the URL of its server, or an invalid value.
    pub fn generator(&self) -> Result<Option<GeneratorSettings>, InvalidSetting> {
        let filled = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let model = filled(&self.llm_model);
        let Some(base_url) = filled(&self.llm_base_url) else {
            let problem = "is required with llm-model".to_owned();
            return match model {
                Some(_) => Err(InvalidSetting { name: "llm-base-url", problem }),
                None => Ok(None),
            };
        };
        let settings = GeneratorSettings {
            base_url,
            api_key: self.llm_api_key.clone().filter(|key| !key.is_empty()),
            model: model.unwrap_or_default(),
            context_tokens: self.llm_context_tokens,
        };
        match settings.validate() {
            Ok(()) => Ok(Some(settings)),
            Err((name, problem)) => Err(InvalidSetting { name, problem }),
        }
    }

    /// Returns the directory of the reranker: the configured one, or `reranker` beside the model.
    pub fn reranker_path(&self) -> PathBuf {
        self.beside
            .reranker_dir
            .clone()
            .unwrap_or_else(|| self.model_dir.with_file_name("reranker"))
    }

    /// Returns the directory of the sparse model: the configured one, or `sparse` beside the model.
    pub fn sparse_path(&self) -> PathBuf {
        self.beside.sparse_dir.clone().unwrap_or_else(|| self.model_dir.with_file_name("sparse"))
    }

    /// Validates the values without accessing the machine.
    ///
    /// # Errors
    /// The first setting with an invalid value.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let amounts = [
            ("embed-threads", self.embed_threads as u64),
            ("ingest-threads", self.ingest_threads as u64),
            ("open-collections", self.open_collections as u64),
            ("keep-alive-seconds", self.keep_alive_seconds),
            ("slow-client-seconds", self.slow_client_seconds),
        ];
        if let Some((name, _)) = amounts.iter().find(|(_, amount)| *amount == 0) {
            return Err(InvalidSetting { name, problem: "must be at least 1".to_owned() });
        }
        if self.connections < CONNECTIONS_MIN {
            let problem = format!("must be at least {CONNECTIONS_MIN}");
            return Err(InvalidSetting { name: "connections", problem });
        }
        if self.memory_limit.is_some_and(|bytes| bytes < MEMORY_LIMIT_MIN) {
            let problem = format!("must be at least {MEMORY_LIMIT_MIN} bytes");
            return Err(InvalidSetting { name: "memory-limit", problem });
        }
        if let Some(key) = &self.admin_key
            && key.chars().count() < ADMIN_KEY_CHARS_MIN
        {
            let problem = format!("must have at least {ADMIN_KEY_CHARS_MIN} characters");
            return Err(InvalidSetting { name: "admin-key", problem });
        }
        if let Some(limit) = self.rate_limit
            && !(limit.per_second > 0.0 && limit.per_second.is_finite() && limit.burst >= 1.0)
        {
            let problem = "must be R or R/BURST with R above 0 and BURST at least 1".to_owned();
            return Err(InvalidSetting { name: "rate-limit", problem });
        }
        if self.generator()?.is_none() && self.llm_graph {
            let problem = "needs llm-base-url".to_owned();
            return Err(InvalidSetting { name: "llm-graph", problem });
        }
        self.embedding.server()?;
        self.store.validate(&self.data_dir)?;
        self.backups.validate()?;
        self.scrub.validate()?;
        self.tls.validate()?;
        self.watch.validate()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_and_nonsense_is_refused() {
        assert_eq!("20".parse(), Ok(RateLimit { per_second: 20.0, burst: 20.0 }));
        assert_eq!("0.5/3".parse(), Ok(RateLimit { per_second: 0.5, burst: 3.0 }));
        assert_eq!("0.5".parse(), Ok(RateLimit { per_second: 0.5, burst: 1.0 }));
        for wrong in ["", "x", "0", "-1", "5/0", "inf", "5/x"] {
            assert!(wrong.parse::<RateLimit>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_name_is_an_address_too() {
        assert_eq!(parse_address("localhost:8095"), Ok(([127, 0, 0, 1], 8095).into()));
        assert_eq!(parse_address("[::1]:80").map(|address| address.port()), Ok(80));
        for wrong in ["", "localhost", "127.0.0.1", "127.0.0.1:x", "example.com:80"] {
            assert!(parse_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bytes_have_units() {
        assert_eq!(parse_bytes("1024"), Ok(1024));
        assert_eq!(parse_bytes("8GiB"), Ok(8 << 30));
        assert_eq!(parse_bytes(" 500 mb"), Ok(500_000_000));
        for wrong in ["", "GiB", "8GX", "-1", "1.5GiB", "99999999999TiB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_seconds_above_zero() {
        assert_eq!(parse_seconds("60"), Ok(Duration::from_secs(60)));
        assert_eq!(parse_seconds(" 0.001"), Ok(Duration::from_millis(1)));
        for wrong in ["", "0", "-1", "inf", "NaN", "1e300", "5s"] {
            assert!(parse_seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nonsense_is_named() {
        let mut settings = Settings::new("data".into(), "models".into());
        assert_eq!(settings.validate(), Ok(()));
        settings.ingest_threads = 0;
        assert_eq!(settings.validate().unwrap_err().name, "ingest-threads");
        settings.ingest_threads = 1;
        settings.memory_limit = Some(1);
        assert_eq!(settings.validate().unwrap_err().name, "memory-limit");
        settings.memory_limit = None;
        settings.admin_key = Some("short".to_owned());
        assert_eq!(settings.validate().unwrap_err().name, "admin-key");
        settings.admin_key = None;
        settings.llm_graph = true;
        assert_eq!(settings.validate().unwrap_err().name, "llm-graph");
        settings.llm_model = Some("small".to_owned());
        settings.llm_base_url = Some(String::new());
        assert_eq!(settings.validate().unwrap_err().name, "llm-base-url");
        settings.llm_base_url = Some("http://localhost:1/v1".to_owned());
        settings.llm_api_key = Some(Secret::new(""));
        let generator = settings.generator().unwrap().unwrap();
        assert_eq!((generator.api_key, generator.context_tokens), (None, CONTEXT_TOKENS_DEFAULT));
    }
}
