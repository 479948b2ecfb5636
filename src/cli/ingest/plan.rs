//! Plans a run: files in a fixed order with their ids, web pages, and counts of skipped files.

use std::collections::{HashMap, HashSet};
use std::fs::{self, Metadata};
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;

use glob::{MatchOptions, Pattern};
use walkdir::{DirEntry, WalkDir};

use super::failure::Failure;
use super::ids;

/// Maximum number of files per run; the plan takes about half a KiB of memory per file.
pub const FILES_MAX: usize = 4_000_000;

const MATCHING: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: true,
};

/// Errors that prevent a run.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// An argument names nothing.
    #[error("{}: {problem}", path.display())]
    Input {
        /// The argument.
        path: PathBuf,
        /// Description of the error.
        problem: String,
    },
    /// A glob pattern is invalid.
    #[error("glob '{pattern}': {problem}")]
    Glob {
        /// The invalid pattern.
        pattern: String,
        /// Description of the error.
        problem: String,
    },
    /// Two files of one run would replace each other.
    #[error(
        "{} and {} would both get the id '{id}': name a folder that contains both",
        first.display(), second.display()
    )]
    SameId {
        /// The id that they share.
        id: String,
        /// The first of the files.
        first: PathBuf,
        /// The other file.
        second: PathBuf,
    },
    /// There are more files than a run may hold.
    #[error("more than {max} files: send them folder by folder")]
    TooMany {
        /// The maximum number of files.
        max: usize,
    },
}

/// One file or web page to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The file, or the address of a page.
    pub origin: Origin,
    /// Id of the source.
    pub id: String,
    /// Size and time of a file when it was found.
    pub stamp: Stamp,
}

/// Origin of an item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A file.
    File(PathBuf),
    /// The address of a page, which the server fetches.
    Page(String),
}

/// Properties that tell a changed file from an unchanged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stamp {
    /// Size in bytes.
    pub bytes: u64,
    /// Last modification in nanoseconds since 1970; 0 if unknown.
    pub mtime_ns: u64,
}

impl Stamp {
    /// Takes the stamp from file metadata.
    pub fn of(metadata: &Metadata) -> Self {
        let since = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let mtime_ns = since.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(0);
        Self { bytes: metadata.len(), mtime_ns }
    }
}

impl Item {
    /// Returns the path or address, for messages.
    pub fn name(&self) -> String {
        match &self.origin {
            Origin::File(path) => path.display().to_string(),
            Origin::Page(url) => url.clone(),
        }
    }
}

/// Counts of files that were skipped, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct LeftOut {
    /// Files and directories with a name that begins with a dot.
    pub hidden: usize,
    /// Symbolic links to a directory above them.
    pub loops: usize,
    /// Files skipped because of `--include` or `--exclude`, and excluded directories.
    pub filtered: usize,
    /// Sockets, pipes and devices.
    pub special: usize,
}

/// Everything that the arguments name.
#[derive(Debug, Default)]
pub struct Plan {
    /// Items in the order of the arguments, and within directories in order of name.
    pub items: Vec<Item>,
    /// Counts of skipped files.
    pub left_out: LeftOut,
    /// Paths that could not be read.
    pub failures: Vec<Failure>,
}

/// The patterns of `--include` and `--exclude`.
#[derive(Debug, Default)]
pub struct Filters {
    include: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

impl Filters {
    /// Parses the patterns.
    ///
    /// # Errors
    /// [`PlanError::Glob`] for the first invalid pattern.
    pub fn new(include: &[String], exclude: &[String]) -> Result<Self, PlanError> {
        let read = |patterns: &[String]| -> Result<Vec<Pattern>, PlanError> {
            patterns.iter().map(|text| pattern(text)).collect()
        };
        Ok(Self { include: read(include)?, exclude: read(exclude)? })
    }

    fn excludes(&self, below: &Path) -> bool {
        self.exclude.iter().any(|pattern| matches(pattern, below))
    }

    fn takes(&self, below: &Path) -> bool {
        let is_included =
            self.include.is_empty() || self.include.iter().any(|pattern| matches(pattern, below));
        is_included && !self.excludes(below)
    }
}

fn pattern(text: &str) -> Result<Pattern, PlanError> {
    Pattern::new(text)
        .map_err(|error| PlanError::Glob { pattern: text.into(), problem: error.to_string() })
}

fn matches(pattern: &Pattern, below: &Path) -> bool {
    // Hidden files were sorted out before, so a leading dot needs no literal match here.
    let options = MatchOptions { require_literal_leading_dot: false, ..MATCHING };
    match pattern.as_str().contains('/') {
        true => pattern.matches_path_with(below, options),
        false => below
            .file_name()
            .is_some_and(|name| pattern.matches_with(&name.to_string_lossy(), options)),
    }
}

/// Finds everything that `inputs` name, up to `files_max` files.
///
/// # Errors
/// [`PlanError`]; an unreadable entry within a directory becomes a failure of the plan instead.
pub fn plan(inputs: &[PathBuf], filters: &Filters, files_max: usize) -> Result<Plan, PlanError> {
    let mut planner = Planner { filters, files_max, plan: Plan::default(), seen: HashSet::new() };
    for input in inputs {
        planner.input(input)?;
    }
    let plan = planner.plan;
    let mut owners: HashMap<&str, &Item> = HashMap::with_capacity(plan.items.len());
    for item in &plan.items {
        if let Some(first) = owners.insert(&item.id, item) {
            let (id, first, second) = (item.id.clone(), first.name().into(), item.name().into());
            return Err(PlanError::SameId { id, first, second });
        }
    }
    Ok(plan)
}

struct Planner<'a> {
    filters: &'a Filters,
    files_max: usize,
    plan: Plan,
    /// Absolute paths and addresses already planned, so that overlapping arguments send a file
    /// once.
    seen: HashSet<PathBuf>,
}

impl Planner<'_> {
    fn input(&mut self, input: &Path) -> Result<(), PlanError> {
        let text = input.to_str().unwrap_or_default();
        if text.starts_with("http://") || text.starts_with("https://") {
            return self.page(text);
        }
        let refuse = |problem: String| PlanError::Input { path: input.into(), problem };
        match fs::metadata(input) {
            Ok(found) if found.is_dir() => self.directory(input),
            Ok(found) => self.file(input, named_parts(input), input, &found),
            // A file name may contain brackets, so only an argument that is not a file is a
            // pattern.
            Err(_) if text.contains(['*', '?', '[']) => self.glob(text),
            Err(error) => Err(refuse(error.to_string())),
        }
    }

    fn page(&mut self, url: &str) -> Result<(), PlanError> {
        let url = url.split('#').next().unwrap_or(url);
        if self.seen.insert(url.into()) {
            let (origin, id) = (Origin::Page(url.to_owned()), ids::of_url(url));
            self.push(Item { origin, id, stamp: Stamp::default() })?;
        }
        Ok(())
    }

    fn glob(&mut self, text: &str) -> Result<(), PlanError> {
        let found = glob::glob_with(text, MATCHING).map_err(|error| PlanError::Glob {
            pattern: text.into(),
            problem: error.to_string(),
        })?;
        let base = literal_base(Path::new(text));
        let mut count = 0;
        for path in found {
            let path = match path {
                Ok(path) => path,
                Err(error) => {
                    self.unreadable(error.path(), &error.error().to_string());
                    continue;
                }
            };
            match fs::metadata(&path) {
                Ok(found) if found.is_dir() => {}
                Ok(found) => {
                    count += 1;
                    let parts = match text.starts_with('/') {
                        true => parts_below(&base, &path),
                        false => named_parts(&path),
                    };
                    self.file(&path, parts, &path, &found)?;
                }
                Err(error) => self.unreadable(&path, &error.to_string()),
            }
        }
        match count {
            0 => Err(PlanError::Input { path: text.into(), problem: "matches no file".into() }),
            _ => Ok(()),
        }
    }

    fn directory(&mut self, root: &Path) -> Result<(), PlanError> {
        let is_hidden = |entry: &DirEntry| {
            entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".")
        };
        let mut walk = WalkDir::new(root).follow_links(true).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    self.not_walked(root, &error);
                    continue;
                }
            };
            let is_directory = entry.file_type().is_dir();
            let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
            if is_hidden(&entry) {
                self.plan.left_out.hidden += 1;
            } else if is_directory && entry.depth() > 0 && self.filters.excludes(below) {
                self.plan.left_out.filtered += 1;
            } else {
                if !is_directory {
                    match entry.metadata() {
                        Ok(found) => {
                            let parts = parts_below(root, entry.path());
                            self.file(entry.path(), parts, below, &found)?;
                        }
                        Err(error) => self.not_walked(root, &error),
                    }
                }
                continue;
            }
            if is_directory {
                walk.skip_current_dir();
            }
        }
        Ok(())
    }

    fn file(
        &mut self,
        path: &Path,
        parts: Vec<Vec<u8>>,
        below: &Path,
        found: &Metadata,
    ) -> Result<(), PlanError> {
        if !found.is_file() {
            self.plan.left_out.special += 1;
            return Ok(());
        }
        if !self.filters.takes(below) {
            self.plan.left_out.filtered += 1;
            return Ok(());
        }
        let path = std::path::absolute(path).unwrap_or_else(|_| path.into());
        if self.seen.insert(path.clone()) {
            let id = ids::of_components(parts.iter().map(Vec::as_slice));
            self.push(Item { origin: Origin::File(path), id, stamp: Stamp::of(found) })?;
        }
        Ok(())
    }

    fn push(&mut self, item: Item) -> Result<(), PlanError> {
        if self.plan.items.len() >= self.files_max {
            return Err(PlanError::TooMany { max: self.files_max });
        }
        self.plan.items.push(item);
        Ok(())
    }

    fn not_walked(&mut self, root: &Path, error: &walkdir::Error) {
        if error.loop_ancestor().is_some() {
            self.plan.left_out.loops += 1;
            return;
        }
        let problem = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
        self.unreadable(error.path().unwrap_or(root), &problem);
    }

    fn unreadable(&mut self, path: &Path, problem: &str) {
        let name = path.display().to_string();
        self.plan.failures.push(Failure::local(name, "", "UNREADABLE_FILE", problem));
    }
}

/// Returns the path components of a file argument, or only the file name if the components would
/// reveal outer folders: for an absolute path, or one that leaves the working directory.
fn named_parts(path: &Path) -> Vec<Vec<u8>> {
    let is_inside =
        path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let mut names = path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.as_encoded_bytes().to_vec()),
        _ => None,
    });
    match is_inside {
        true => names.collect(),
        false => names.next_back().into_iter().collect(),
    }
}

/// Returns the path components from the folder `root` on, including its own name.
fn parts_below(root: &Path, path: &Path) -> Vec<Vec<u8>> {
    let below = path.strip_prefix(root).unwrap_or(path);
    // "." and ".." use the name of the folder that they refer to.
    let own = match root.components().next_back() {
        Some(Component::Normal(name)) => Some(name.to_owned()),
        _ => fs::canonicalize(root).ok().and_then(|root| root.file_name().map(Into::into)),
    };
    let own = own.iter().map(|name| name.as_encoded_bytes().to_vec());
    own.chain(below.iter().map(|name| name.as_encoded_bytes().to_vec())).collect()
}

/// Returns the components of a pattern before its first wildcard.
fn literal_base(pattern: &Path) -> PathBuf {
    let is_literal =
        |part: &Component<'_>| !part.as_os_str().to_string_lossy().contains(['*', '?', '[']);
    pattern.components().take_while(is_literal).collect()
}
