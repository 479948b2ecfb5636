//! Settings as plain data. Where they come from (flags, environment, file) is the command line's
//! affair; what they mean and which values make sense is said here.

use std::net::SocketAddr;
use std::path::PathBuf;

use crate::answer::generate::GeneratorSettings;
use lodestone_embed::Precision;
use lodestone_fetch::Allowed;

/// Everything an operator can choose.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Where everything is kept. One process at a time.
    pub data_dir: PathBuf,
    /// Where to listen. Loopback unless told.
    pub listen: SocketAddr,
    /// Directory of the embedding model: `config.json`, `tokenizer.json`, `model.safetensors`.
    pub model_dir: PathBuf,
    /// Directory of a reranker, with the same files; `None` for the usual place, where there may be
    /// none: [`Self::reranker_place`].
    pub reranker_dir: Option<PathBuf>,
    /// A key given by the operator, at least 32 characters; all tenants, all roles.
    pub api_key: Option<String>,
    /// What computes over vectors.
    pub device: DeviceChoice,
    /// Bytes of GPU memory that vectors may take; `None` leaves it to the free memory.
    pub gpu_memory_limit: Option<u64>,
    /// Bytes of memory beyond which documents wait to be processed; `None` for no bound. Mapped
    /// files and confined parsers do not count.
    pub memory_limit: Option<u64>,
    /// Threads that embed; each computes on its own. At least 1.
    pub embed_threads: usize,
    /// How exactly the CPU embeds.
    pub embedding_precision: Precision,
    /// Threads that process documents. At least 1.
    pub ingest_threads: usize,
    /// Collections that are kept open while nobody uses them. At least 1.
    pub open_collections: usize,
    /// Whether a first upload may create its tenant.
    pub auto_create_tenants: bool,
    /// Hours after which an idle session is forgotten; 0 keeps sessions for good.
    pub session_idle_hours: u64,
    /// Requests per second and key, and how many may come at once; `None` does not limit.
    pub rate_limit: Option<RateLimit>,
    /// Hosts and networks that pages may be fetched from although they are not public, and ports
    /// other than 80 and 443; none by default.
    pub fetch_allow: Allowed,
    /// Origins whose pages may call the server from a browser; none by default.
    pub cors_origins: Vec<String>,
    /// What writes answers; without it they are extracted from the documents.
    pub llm: Option<GeneratorSettings>,
    /// Whether answers are extracted while the generator fails; else such a question is refused.
    pub llm_fallback: bool,
    /// Whether the generator reads what is ingested and adds to the graph; each document then
    /// waits for it, some minutes at most.
    pub llm_graph: bool,
}

/// What computes over vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeviceChoice {
    /// The GPU where there is one that can be used, the CPU elsewhere.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The GPU; without one the server does not start.
    Cuda,
}

/// A token bucket.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RateLimit {
    /// Requests per second, above 0.
    pub per_second: f64,
    /// Requests that may come at once, at least 1.
    pub burst: f64,
}

/// A setting that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("setting {name} {problem}")]
pub struct InvalidSetting {
    /// The setting, as the command line spells it.
    pub name: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

/// The model, the catalog and one document need as much.
const MEMORY_LIMIT_MIN: u64 = 512 << 20;
/// Characters that a key given by the operator must have.
const API_KEY_CHARS_MIN: usize = 32;

impl Settings {
    /// The settings of a server in `data_dir` with a model in `model_dir`.
    pub fn new(data_dir: PathBuf, model_dir: PathBuf) -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            data_dir,
            listen: SocketAddr::from(([127, 0, 0, 1], 8080)),
            model_dir,
            reranker_dir: None,
            api_key: None,
            device: DeviceChoice::Auto,
            gpu_memory_limit: None,
            memory_limit: None,
            embed_threads: cores,
            embedding_precision: Precision::F32,
            // One more than embeds: while one builds a segment the others keep the model busy.
            ingest_threads: cores + 1,
            open_collections: 256,
            auto_create_tenants: true,
            session_idle_hours: 24,
            rate_limit: None,
            fetch_allow: Allowed::default(),
            cors_origins: Vec::new(),
            llm: None,
            llm_fallback: true,
            llm_graph: false,
        }
    }

    /// Where a reranker is looked for: the directory that was named, else `reranker` beside the
    /// embedding model.
    pub fn reranker_place(&self) -> PathBuf {
        let usual = || self.model_dir.with_file_name("reranker");
        self.reranker_dir.clone().unwrap_or_else(usual)
    }

    /// Checks what can be checked without touching the machine.
    ///
    /// # Errors
    /// The first setting that makes no sense.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let counts = [
            ("embed-threads", self.embed_threads),
            ("ingest-threads", self.ingest_threads),
            ("open-collections", self.open_collections),
        ];
        if let Some((name, _)) = counts.iter().find(|(_, count)| *count == 0) {
            return Err(InvalidSetting { name, problem: "must be at least 1".to_owned() });
        }
        if self.memory_limit.is_some_and(|bytes| bytes < MEMORY_LIMIT_MIN) {
            let problem = format!("must be at least {MEMORY_LIMIT_MIN} bytes");
            return Err(InvalidSetting { name: "memory-limit", problem });
        }
        if let Some(key) = &self.api_key
            && key.chars().count() < API_KEY_CHARS_MIN
        {
            let problem = format!("must have at least {API_KEY_CHARS_MIN} characters");
            return Err(InvalidSetting { name: "api-key", problem });
        }
        if let Some(limit) = self.rate_limit
            && !(limit.per_second > 0.0 && limit.per_second.is_finite() && limit.burst >= 1.0)
        {
            let problem = "must be R or R/BURST with R above 0 and BURST at least 1".to_owned();
            return Err(InvalidSetting { name: "rate-limit", problem });
        }
        if let Some(Err((name, problem))) = self.llm.as_ref().map(GeneratorSettings::validate) {
            return Err(InvalidSetting { name, problem });
        }
        if self.llm_graph && self.llm.is_none() {
            let problem = "needs llm-base-url".to_owned();
            return Err(InvalidSetting { name: "llm-graph", problem });
        }
        Ok(())
    }
}

impl std::str::FromStr for DeviceChoice {
    type Err = String;

    /// `auto`, `cpu` or `cuda`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda),
            _ => Err(format!("{text:?} is not auto, cpu or cuda")),
        }
    }
}

/// Bytes from `N` with a unit or none: `8GiB`, `500MB`, `1073741824`.
///
/// # Errors
/// What is expected instead.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a number of bytes, for example 8GiB or 500MB");
    let digits = text.trim().find(|c: char| !c.is_ascii_digit()).unwrap_or(text.trim().len());
    let (number, unit) = text.trim().split_at(digits);
    let unit: u64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(unit).ok_or_else(wrong)
}

impl std::str::FromStr for RateLimit {
    type Err = String;

    /// `R` or `R/BURST`.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not R or R/BURST, for example 20 or 20/100");
        let number = |part: &str| part.trim().parse::<f64>().map_err(|_| wrong());
        let (per_second, burst) = match text.split_once('/') {
            Some((rate, burst)) => (number(rate)?, number(burst)?),
            None => (number(text)?, number(text)?.max(1.0)),
        };
        match per_second > 0.0 && per_second.is_finite() && burst >= 1.0 && burst.is_finite() {
            true => Ok(Self { per_second, burst }),
            false => Err(wrong()),
        }
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
    fn bytes_have_units() {
        assert_eq!(parse_bytes("1024"), Ok(1024));
        assert_eq!(parse_bytes("8GiB"), Ok(8 << 30));
        assert_eq!(parse_bytes(" 500 mb"), Ok(500_000_000));
        for wrong in ["", "GiB", "8GX", "-1", "1.5GiB", "99999999999TiB"] {
            assert!(parse_bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!("cuda".parse(), Ok(DeviceChoice::Cuda));
        assert!("gpu".parse::<DeviceChoice>().is_err());
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
        settings.api_key = Some("short".to_owned());
        assert_eq!(settings.validate().unwrap_err().name, "api-key");
        settings.api_key = None;
        settings.llm_graph = true;
        assert_eq!(settings.validate().unwrap_err().name, "llm-graph");
    }
}
