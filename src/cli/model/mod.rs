//! `lodestone model`: lists models, and installs them in the directories that the server reads.
//!
//! - `install`: installs a checked copy of a directory; `hub`: fetches directories from a model hub
//! - `reranker`: paths and loading of the reranker and the sparse model

mod hub;
mod install;
pub mod reranker;

use std::error::Error;
use std::fs::DirEntry;
use std::path::{Component, Path, PathBuf};

use clap::{Args, Subcommand, ValueEnum};
use lodestone_embed::{
    CrossEncoder, EmbedError, Embedder, Model, ModelFiles, Precision, Prompts, SparseModel,
};
use lodestone_engine::settings::Settings;
use lodestone_rank::Reranker;

use install::holds_model;

/// Maximum number of model names listed in the error about a missing model.
const MODELS_TOLD_MAX: usize = 8;

/// Operations on models.
#[derive(Debug, Subcommand)]
pub enum ModelVerb {
    /// Install a model from a directory or a model hub, after loading it to verify it.
    Install(Box<InstallOptions>),
    /// List the models that a server would load.
    Ls(ModelPlaces),
}

/// The model to install.
#[derive(Debug, Args)]
pub struct InstallOptions {
    /// Purpose of the model.
    #[arg(value_enum)]
    kind: ModelKind,
    /// Directory of the model, with config.json, tokenizer.json, model.safetensors and the files of
    /// sentence-transformers, if any; or its name on a model hub: OWNER/NAME, or a short name
    /// listed in docs/models.md.
    #[arg(value_name = "DIR|NAME", required_unless_present = "from")]
    model: Option<PathBuf>,
    /// Directory of the model, instead of the argument.
    #[arg(long, value_name = "DIR", conflicts_with = "model")]
    from: Option<PathBuf>,
    /// Name under which it is installed [default: its name on the hub; the name of the known model
    /// with the same weights; the name of its directory].
    #[arg(long = "as", value_name = "NAME", value_parser = folder_name)]
    name: Option<String>,
    /// Branch, tag or commit of a model on a hub [default: main, or the pinned commit].
    #[arg(long, value_name = "REVISION", conflicts_with = "from")]
    revision: Option<String>,
    /// PEM file with the certificate authorities trusted for the hub [default: Mozilla's, which are
    /// built in].
    #[arg(long, env = "LODESTONE_CA_FILE", value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// Expected SHA-256 of model.safetensors.
    #[arg(long)]
    sha256: Option<String>,
    /// Replace an installed model.
    #[arg(long)]
    replace: bool,
    /// Prefix that an embedding model expects before queries, if its files do not specify one
    /// ("query: " for models of the E5 family).
    #[arg(long, value_name = "TEXT")]
    query_prefix: Option<String>,
    /// Prefix that an embedding model expects before documents, if its files do not specify one
    /// ("passage: " for models of the E5 family).
    #[arg(long, value_name = "TEXT")]
    passage_prefix: Option<String>,
    /// Shorten the vectors of an embedding model to this dimension, if its config.json allows it.
    #[arg(long, value_name = "N")]
    dimension: Option<usize>,
    #[command(flatten)]
    places: ModelPlaces,
}

/// Checks that a name is a single path component.
fn folder_name(text: &str) -> Result<String, String> {
    let mut parts = Path::new(text).components();
    match (parts.next(), parts.next()) {
        (Some(Component::Normal(name)), None) if name == text => Ok(text.to_owned()),
        _ => Err("must be the name of a single folder".to_owned()),
    }
}

/// Purposes of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ModelKind {
    /// Converts texts to vectors; installed under its own name next to `--model-dir`.
    Embedding,
    /// Scores a query and a passage together; used by `accurate` searches.
    Reranker,
    /// Converts texts to term weights; searched in addition to vectors and keywords.
    Sparse,
}

/// Directories of the models.
#[derive(Debug, Args)]
pub struct ModelPlaces {
    /// Directory of the embedding model.
    #[arg(long, env = "LODESTONE_MODEL_DIR", default_value = "models/all-MiniLM-L6-v2")]
    model_dir: PathBuf,
    /// Directory of the reranker [default: reranker next to the embedding model].
    #[arg(long, env = "LODESTONE_RERANKER_DIR")]
    reranker_dir: Option<PathBuf>,
    /// Directory of the sparse model [default: sparse next to the embedding model].
    #[arg(long, env = "LODESTONE_SPARSE_DIR")]
    sparse_dir: Option<PathBuf>,
}

impl ModelPlaces {
    /// Returns the directory of the reranker, by the rule of the server.
    fn reranker(&self) -> PathBuf {
        let mut settings = Settings::new(PathBuf::new(), self.model_dir.clone());
        settings.beside.reranker_dir.clone_from(&self.reranker_dir);
        settings.reranker_path()
    }

    /// Returns the directory of the sparse model, by the rule of the server.
    fn sparse(&self) -> PathBuf {
        let mut settings = Settings::new(PathBuf::new(), self.model_dir.clone());
        settings.beside.sparse_dir.clone_from(&self.sparse_dir);
        settings.sparse_path()
    }
}

/// Formats the error about a missing embedding model, with a remedy; `flag` is the setting that
/// names its directory.
pub fn not_there(error: &EmbedError, dir: &Path, flag: &str) -> String {
    let standing = models_beside(dir);
    let standing = match standing.first() {
        None => String::new(),
        Some(first) => {
            let (names, beside) = (standing.join(", "), dir.with_file_name(first));
            format!("; next to it: {names} ({flag} {} loads the first)", beside.display())
        }
    };
    let dir = dir.display();
    format!(
        "{error}; install a model into {dir} (the default of lodestone model install embedding \
         all-MiniLM-L6-v2), or set another directory: {flag}{standing}"
    )
}

/// Returns the sorted names of models beside a missing one, up to a limit.
fn models_beside(dir: &Path) -> Vec<String> {
    let beside = dir.parent().filter(|parent| !parent.as_os_str().is_empty());
    let found = std::fs::read_dir(beside.unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    // Models with a name file are rerankers and sparse models.
    let embeds = |at: &Path| holds_model(at) && !at.join(reranker::NAME_FILE).is_file();
    let is_model = |entry: &DirEntry| embeds(&entry.path()) && entry.path() != dir;
    let names = found.filter(is_model).filter_map(|entry| entry.file_name().into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort_unstable();
    names.truncate(MODELS_TOLD_MAX);
    names
}

/// Runs the operation given on the command line.
pub fn run(verb: &ModelVerb) -> Result<(), Box<dyn Error>> {
    match verb {
        ModelVerb::Install(options) => match options.kind {
            ModelKind::Embedding => install::embedding(options),
            ModelKind::Reranker => install::reranker(options),
            ModelKind::Sparse => install::sparse(options),
        },
        ModelVerb::Ls(places) => list(places),
    }
}

/// Loads the installed models and prints a line for each.
fn list(places: &ModelPlaces) -> Result<(), Box<dyn Error>> {
    let (at, place) = (&places.model_dir, places.reranker());
    let embedding = listed(at, ModelFiles::read(at, &|path| std::fs::read(path)), embeds);
    let reranker = match place.exists() {
        true => listed(&place, reranker::read(&place), reranks),
        false => Ok(format!("none in {}: see lodestone model install", place.display())),
    };
    let place = places.sparse();
    let sparse = place.exists().then(|| listed(&place, reranker::read(&place), expands));
    let sparse = sparse.map(|found| ("sparse", found));
    let mut unusable = Vec::new();
    for (kind, found) in
        [("embedding", embedding), ("reranker", reranker)].into_iter().chain(sparse)
    {
        match found {
            Ok(found) => println!("  {kind:<10} {found}"),
            Err(problem) => {
                unusable.push(kind);
                println!("! {kind:<10} {problem}");
            }
        }
    }
    match unusable.is_empty() {
        true => Ok(()),
        false => Err(format!("no model can be loaded as {}", unusable.join(", ")).into()),
    }
}

/// A function that loads a model and describes it.
type Describe = fn(&ModelFiles) -> Result<String, EmbedError>;

/// Formats name, directory, size, description and fingerprint of a model.
fn listed(
    dir: &Path,
    files: Result<ModelFiles, EmbedError>,
    describe: Describe,
) -> Result<String, String> {
    let place = dir.display();
    let files = files.map_err(|error| format!("{place}: {error}"))?;
    let described = describe(&files).map_err(|error| format!("{place}: {error}"))?;
    let megabytes = files.weights.len() as f64 / 1e6;
    let origin = std::fs::read_to_string(dir.join(install::ORIGIN_FILE)).unwrap_or_default();
    let origin = match origin.trim() {
        "" => String::new(),
        origin => format!(", from {origin}"),
    };
    Ok(format!("{} in {place}: {megabytes:.1} MB, {described}{origin}", files.name))
}

fn embeds(files: &ModelFiles) -> Result<String, EmbedError> {
    let model = Model::load(files, 1)?;
    model.close();
    let (dimension, fingerprint) = (model.dimension(), model.fingerprint());
    Ok(format!("{dimension} dimensions{}, fingerprint {fingerprint}", prompts(&model)))
}

/// Describes the prompts of a model, to follow its dimensions; empty if it has none.
pub fn prompts(model: &Model) -> String {
    let Prompts { query, document } = model.prompts();
    let told = |texts: &str, prompt: &str| match prompt {
        "" => String::new(),
        prompt => format!(", {texts} behind {prompt:?}"),
    };
    told("queries", query) + &told("documents", document)
}

fn expands(files: &ModelFiles) -> Result<String, EmbedError> {
    let model = SparseModel::load(files, 1, Precision::F32)?;
    model.close();
    let queries = if model.reads_queries() { "the model" } else { "a table of weights" };
    Ok(format!("queries by {queries}, fingerprint {}", model.fingerprint()))
}

fn reranks(files: &ModelFiles) -> Result<String, EmbedError> {
    let model = CrossEncoder::load(files, 1)?;
    model.close();
    Ok(format!("fingerprint {}", model.fingerprint()))
}
