//! A model's repository on a hub: the commit of a revision, and the files needed from it.

use lodestone_embed::{ModelFiles, REQUIRED_FILES};
use serde::Deserialize;
use serde_json::Value;

use super::client::is_sha256;
use super::place::is_commit;

/// Largest file other than weights; a tokenizer with 250,000 tokens takes 17 MB.
const SMALL_BYTES_MAX: u64 = 256 << 20;
/// Largest file of weights, which is read into memory as a whole.
const WEIGHTS_BYTES_MAX: u64 = 32 << 30;

/// The files of a commit.
#[derive(Debug, PartialEq, Eq)]
pub struct Repository {
    /// The commit id, 40 hexadecimal digits.
    pub commit: String,
    files: Vec<RemoteFile>,
}

/// A file of a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteFile {
    /// Path in the repository.
    pub path: String,
    /// Its length, if the hub states it.
    pub size: Option<u64>,
    /// Its SHA-256, which the hub states only for large files.
    pub sha256: Option<String>,
}

#[derive(Deserialize)]
struct RawRepository {
    sha: String,
    #[serde(default)]
    siblings: Vec<RawFile>,
}

#[derive(Deserialize)]
struct RawFile {
    rfilename: String,
    size: Option<u64>,
    lfs: Option<RawLarge>,
}

#[derive(Deserialize)]
struct RawLarge {
    sha256: Option<String>,
    size: Option<u64>,
}

impl Repository {
    /// Parses the hub's response.
    ///
    /// # Errors
    /// If the response has another form.
    pub fn read(answer: Value) -> Result<Self, String> {
        let raw: RawRepository = serde_json::from_value(answer)
            .map_err(|error| format!("the hub's response is not a list of files: {error}"))?;
        if !is_commit(&raw.sha) {
            return Err(format!("the hub returned {:?} as the commit", raw.sha));
        }
        let file = |RawFile { rfilename, size, lfs }: RawFile| {
            let (sha256, lfs_size) = lfs.map_or((None, None), |lfs| (lfs.sha256, lfs.size));
            let sha256 = sha256.filter(|hash| is_sha256(hash)).map(|hash| hash.to_lowercase());
            RemoteFile { path: rfilename, size: lfs_size.or(size), sha256 }
        };
        Ok(Self { commit: raw.sha, files: raw.siblings.into_iter().map(file).collect() })
    }

    /// Returns the file at a path, if it exists.
    pub fn file(&self, path: &str) -> Option<&RemoteFile> {
        self.files.iter().find(|file| file.path == path)
    }

    /// Selects the files that a model needs, small ones first. `modules` is the text of its
    /// `modules.json`, `router` that of [`ModelFiles::router_file`]. Paths are built only from
    /// names known to this program and from permitted folders, so a malicious list cannot point
    /// elsewhere.
    ///
    /// # Errors
    /// The missing files, and what was found instead; a file that is too large.
    pub fn needed(
        &self,
        modules: Option<&[u8]>,
        router: Option<&[u8]>,
    ) -> Result<Vec<&RemoteFile>, String> {
        let of_modules = ModelFiles::part_files(modules, router);
        let of_modules = of_modules.map_err(|error| error.to_string())?;
        let mut wanted: Vec<String> =
            REQUIRED_FILES.map(|name| format!("{}{name}", of_modules.encoder)).to_vec();
        let mut missing: Vec<&String> =
            wanted.iter().filter(|path| self.file(path).is_none()).collect();
        if modules.is_some() {
            missing.extend(of_modules.required.iter().filter(|path| self.file(path).is_none()));
        }
        if !missing.is_empty() {
            return Err(self.lacks(&missing));
        }
        wanted.extend(of_modules.required);
        wanted.extend(of_modules.optional);
        let mut needed: Vec<&RemoteFile> =
            wanted.iter().filter_map(|path| self.file(path)).collect();
        needed.sort_by_key(|file| (file.is_weights(), file.path.clone()));
        let too_large = needed.iter().find(|file| file.size > Some(file.bytes_max()));
        match too_large {
            Some(file) => Err(format!(
                "{} has {} bytes; at most {} are allowed",
                file.path,
                file.size.unwrap_or_default(),
                file.bytes_max()
            )),
            None => Ok(needed),
        }
    }

    fn lacks(&self, missing: &[&String]) -> String {
        let names: Vec<&str> = missing.iter().map(|name| name.as_str()).collect();
        let instead = ["model.safetensors.index.json", "pytorch_model.bin"];
        let instead = instead.into_iter().find(|name| self.file(name).is_some());
        let hint = match instead.filter(|_| names.contains(&"model.safetensors")) {
            Some("pytorch_model.bin") => {
                "; it has pytorch_model.bin, which can be converted (docs/models.md)"
            }
            Some(_) => "; its weights are in several files, which is not supported",
            None => "",
        };
        format!("it lacks {}{hint}", names.join(" and "))
    }
}

impl RemoteFile {
    /// Whether this is a file of weights.
    pub fn is_weights(&self) -> bool {
        self.path.ends_with(".safetensors")
    }

    /// Returns the maximum size of the file in bytes.
    pub fn bytes_max(&self) -> u64 {
        if self.is_weights() { WEIGHTS_BYTES_MAX } else { SMALL_BYTES_MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn repository(names: &[&str]) -> Repository {
        let siblings: Vec<Value> = names.iter().map(|name| json!({"rfilename": name})).collect();
        Repository::read(json!({"sha": "a".repeat(40), "siblings": siblings})).unwrap()
    }

    #[test]
    fn only_what_a_model_needs_is_taken() {
        let names = [
            "../config.json", "README.md", "onnx/model.onnx", "model.safetensors", "config.json",
            "tokenizer.json", "modules.json", "1_Pooling/config.json", "pytorch_model.bin",
            "config_sentence_transformers.json",
        ];
        let modules =
            json!([{"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]);
        let found = repository(&names);
        let needed = found.needed(Some(modules.to_string().as_bytes()), None).unwrap();
        let paths: Vec<&str> = needed.iter().map(|file| file.path.as_str()).collect();
        let wanted = [
            "1_Pooling/config.json", "config.json", "config_sentence_transformers.json",
            "modules.json", "tokenizer.json", "model.safetensors",
        ];
        assert_eq!(paths, wanted);
        let away = json!([{"path": "../1_Pooling", "type": "a.Pooling"}]).to_string();
        assert!(found.needed(Some(away.as_bytes()), None).unwrap_err().contains("not the name"));
        let absent = json!([{"path": "2_Dense", "type": "a.Dense"}]).to_string();
        assert!(
            found
                .needed(Some(absent.as_bytes()), None)
                .unwrap_err()
                .contains("2_Dense/config.json")
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let told = |names: &[&str]| repository(names).needed(None, None).unwrap_err();
        let both = ["config.json", "tokenizer.json"];
        assert_eq!(told(&both), "it lacks model.safetensors");
        assert_eq!(told(&["config.json"]), "it lacks tokenizer.json and model.safetensors");
        assert!(told(&[&both[..], &["pytorch_model.bin"]].concat()).contains("can be converted"));
        assert!(told(&[&both[..], &["model.safetensors.index.json"]].concat()).contains("several"));
        assert!(Repository::read(json!({"sha": "main"})).is_err());
        assert!(Repository::read(json!({"error": "x"})).is_err());
        let large = json!([{"rfilename": "config.json"}, {"rfilename": "tokenizer.json"},
            {"rfilename": "model.safetensors", "lfs": {"size": 1_u64 << 50}}]);
        let large = Repository::read(json!({"sha": "a".repeat(40), "siblings": large})).unwrap();
        assert!(large.needed(None, None).unwrap_err().contains("at most"));
    }
}
