//! `profiles.toml`: named combinations of server, key and tenant.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::failure::Failure;

/// File permissions of group and others.
const OTHERS: u32 = 0o077;
/// The profile used if none is named.
const DEFAULT: &str = "default";

/// One section of the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Profile {
    /// Address of the server.
    pub server: Option<String>,
    /// The API key.
    pub api_key: Option<String>,
    /// File that holds the API key.
    pub api_key_file: Option<PathBuf>,
    /// Certificates of the authorities trusted for the server.
    pub ca_file: Option<PathBuf>,
    /// The tenant.
    pub tenant: Option<String>,
    /// The sub-tenant.
    pub sub_tenant: Option<String>,
}

/// Locates the file from environment variables.
pub fn path(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let absolute = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let config = absolute("XDG_CONFIG_HOME");
    let config = config.or_else(|| absolute("HOME").map(|home| home.join(".config")))?;
    Some(config.join("lodestone/profiles.toml"))
}

/// Reads the profile `name`; without a name, the default profile, or an empty one if there is none.
///
/// # Errors
/// [`Failure::Usage`] if the file is invalid, lacks the named profile, or holds a key although
/// others can read it.
pub fn read(path: Option<&Path>, name: Option<&str>) -> Result<Profile, Failure> {
    let lacking = || match (name, path) {
        (None, _) => Ok(Profile::default()),
        (Some(name), Some(path)) => {
            Err(Failure::Usage(format!("{}: profile {name} not found", path.display())))
        }
        (Some(name), None) => {
            Err(Failure::Usage(format!("profile {name}: neither XDG_CONFIG_HOME nor HOME is set")))
        }
    };
    let Some(path) = path else { return lacking() };
    let wrong =
        |problem: &dyn std::fmt::Display| Failure::Usage(format!("{}: {problem}", path.display()));
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return lacking(),
        text => text.map_err(|error| wrong(&error))?,
    };
    // Parser messages name the line but never quote it, since it may contain a key.
    let mut profiles: BTreeMap<String, Profile> =
        basic_toml::from_str(&text).map_err(|error| wrong(&error))?;
    let mode = std::fs::metadata(path).map_err(|error| wrong(&error))?.mode();
    if mode & OTHERS != 0 && profiles.values().any(|profile| profile.api_key.is_some()) {
        let mode = mode & 0o777;
        return Err(wrong(&format!(
            "it contains a key and others can read it (mode {mode:03o}); run chmod 600 on it"
        )));
    }
    match profiles.remove(name.unwrap_or(DEFAULT)) {
        Some(profile) => Ok(profile),
        None => lacking(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn file(text: &str, mode: u32) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("profiles.toml");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        (dir, path)
    }

    #[test]
    fn the_place_follows_xdg() {
        let of = |pairs: &[(&str, &str)]| {
            path(|name| pairs.iter().find(|pair| pair.0 == name).map(|pair| pair.1.into()))
        };
        let home = ("HOME", "/home/a");
        let below = |dir: &str| Some(PathBuf::from(dir).join("lodestone/profiles.toml"));
        assert_eq!(of(&[home]), below("/home/a/.config"));
        assert_eq!(of(&[home, ("XDG_CONFIG_HOME", "/etc/x")]), below("/etc/x"));
        assert_eq!(of(&[home, ("XDG_CONFIG_HOME", "")]), below("/home/a/.config"));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn profiles_are_read_by_name() {
        let text =
            "[default]\ntenant = \"acme\"\n[work]\nserver = \"https://a\"\napi-key = \"k\"\n";
        let (_dir, path) = file(text, 0o600);
        assert_eq!(read(Some(&path), None).unwrap().tenant.as_deref(), Some("acme"));
        assert_eq!(read(Some(&path), Some("work")).unwrap().api_key.as_deref(), Some("k"));
        let error = read(Some(&path), Some("other")).unwrap_err();
        assert!(error.to_string().contains("profile other not found"), "{error}");
        let absent = path.with_extension("none");
        assert_eq!(read(Some(&absent), None).unwrap(), Profile::default());
        assert_eq!(read(Some(&absent), Some("work")).unwrap_err().exit_code(), 2);
    }

    #[test]
    fn a_key_that_others_can_read_is_refused() {
        for mode in [0o640, 0o604, 0o644] {
            let (_dir, path) = file("[work]\napi-key = \"k\"\n", mode);
            let error = read(Some(&path), None).unwrap_err().to_string();
            assert!(error.contains(&format!("{mode:03o}")) && error.contains("chmod"), "{error}");
        }
        let (_dir, path) = file("[default]\ntenant = \"acme\"\n", 0o644);
        assert!(read(Some(&path), None).is_ok());
    }

    #[test]
    fn a_fault_does_not_show_the_key() {
        let (_dir, path) = file("[default]\napi-key = \"secret-text\nserver = 1\n", 0o600);
        let error = read(Some(&path), None).unwrap_err().to_string();
        assert!(error.contains("line 2") && !error.contains("secret-text"), "{error}");
    }
}
