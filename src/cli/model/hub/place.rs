//! Validates names of models and revisions, and locates a hub and its cache from the environment.

use std::ffi::OsString;
use std::path::PathBuf;

use ureq::http::Uri;

/// The hub used if the environment names no other.
const ENDPOINT: &str = "https://huggingface.co";
/// Longest part of a repository name in characters, the hub's own limit.
const NAME_PART_CHARS_MAX: usize = 96;
const REVISION_CHARS_MAX: usize = 255;
const TOKEN_BYTES_MAX: usize = 4096;

/// A hub and its local cache, as configured by the variables of the hub's own client libraries.
#[derive(Debug)]
pub struct HubPlace {
    /// Address without a trailing slash.
    pub endpoint: String,
    /// Token, sent only to that address.
    pub token: Option<Token>,
    /// Whether network access is disabled.
    pub is_offline: bool,
    /// Directory of the cache; `None` if there is no home directory.
    pub cache: Option<PathBuf>,
}

/// A token that is hidden in debug output.
#[derive(Clone)]
pub struct Token(pub(super) String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

impl HubPlace {
    /// Reads the location from environment variables; empty ones count as unset.
    ///
    /// # Errors
    /// Names the variable whose value is invalid.
    pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, String> {
        let path = |name: &str| {
            let value = variable(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let text = |name: &str| {
            path(name)
                .map(|value| value.into_os_string().into_string())
                .transpose()
                .map_err(|_| format!("{name}: not UTF-8"))
        };
        let endpoint = text("HF_ENDPOINT")?.unwrap_or_else(|| ENDPOINT.to_owned());
        let endpoint = endpoint.trim_end_matches('/').to_owned();
        let uri: Option<Uri> = endpoint.parse().ok();
        let is_address = uri.is_some_and(|uri| {
            let host = uri.authority().is_some_and(|host| !host.as_str().contains('@'));
            host && matches!(uri.scheme_str(), Some("http" | "https")) && uri.query().is_none()
        });
        if !is_address {
            return Err(
                "HF_ENDPOINT: must be an http or https address without credentials".to_owned()
            );
        }
        let home = path("HF_HOME").or_else(|| {
            let cache = path("XDG_CACHE_HOME").or_else(|| Some(path("HOME")?.join(".cache")))?;
            Some(cache.join("huggingface"))
        });
        let token = match text("HF_TOKEN")? {
            Some(token) => Some(checked("HF_TOKEN", &token)?),
            None => {
                let named = path("HF_TOKEN_PATH");
                let file = named.clone().or_else(|| Some(home.as_ref()?.join("token")));
                let read = file.map(|file| (std::fs::read_to_string(&file), file));
                match read {
                    Some((Ok(token), file)) => Some(checked(&file.display().to_string(), &token)?),
                    Some((Err(error), file)) if named.is_some() => {
                        return Err(format!("HF_TOKEN_PATH {}: {error}", file.display()));
                    }
                    Some((Err(_), _)) | None => None,
                }
            }
        };
        let offline = text("HF_HUB_OFFLINE")?.unwrap_or_default().to_ascii_uppercase();
        let cache = path("HF_HUB_CACHE").or_else(|| Some(home?.join("hub")));
        let is_offline = matches!(offline.as_str(), "1" | "ON" | "YES" | "TRUE");
        Ok(Self { endpoint, token, is_offline, cache })
    }
}

fn checked(name: &str, token: &str) -> Result<Token, String> {
    let token = token.trim();
    let is_token = !token.is_empty()
        && token.len() <= TOKEN_BYTES_MAX
        && token.chars().all(|c| c.is_ascii_graphic());
    match is_token {
        true => Ok(Token(token.to_owned())),
        false => Err(format!(
            "{name}: a token must be 1 to {TOKEN_BYTES_MAX} ASCII characters without spaces"
        )),
    }
}

/// Whether a text can be the name of a repository, OWNER/NAME.
pub fn is_repository(name: &str) -> bool {
    let is_part = |part: &str| {
        (1..=NAME_PART_CHARS_MAX).contains(&part.len())
            && !part.starts_with(['.', '-'])
            && !part.contains("..")
            && !part.contains("--")
            && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    name.split_once('/').is_some_and(|(owner, name)| is_part(owner) && is_part(name))
}

/// Whether a text can be the name of a branch, tag or commit.
pub fn is_revision(revision: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.contains("..");
    revision.len() <= REVISION_CHARS_MAX
        && revision.split('/').all(is_part)
        && revision.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '/'))
}

/// Whether a text is a full commit id.
pub fn is_commit(text: &str) -> bool {
    text.len() == 40 && text.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(variables: &[(&str, &str)]) -> Result<HubPlace, String> {
        HubPlace::of(|name| {
            variables.iter().find(|(own, _)| *own == name).map(|(_, value)| value.into())
        })
    }

    #[test]
    fn names_that_leave_their_directory_are_none() {
        assert!(is_repository("intfloat/multilingual-e5-small") && is_repository("a/b_1.5"));
        for wrong in ["", "a", "a/", "/b", "a/..", "../b", "a/b/c", "a/b c", "a/b--c", "a/.b"] {
            assert!(!is_repository(wrong), "{wrong}");
        }
        assert!(is_revision("main") && is_revision("refs/pr/4") && is_revision("v1.0"));
        for wrong in ["", "a//b", "../x", "a/..", "a b", "a?b"] {
            assert!(!is_revision(wrong), "{wrong}");
        }
    }

    #[test]
    fn the_variables_of_the_hubs_own_clients_are_followed() {
        let usual = place(&[("HOME", "/home/a")]).unwrap();
        assert_eq!(usual.endpoint, ENDPOINT);
        assert_eq!(usual.cache, Some("/home/a/.cache/huggingface/hub".into()));
        assert!(!usual.is_offline && usual.token.is_none());
        let given = place(&[
            ("HF_ENDPOINT", "http://127.0.0.1:1/hub/"),
            ("HF_HOME", "/h"),
            ("HF_TOKEN", "hf_secret\n"),
            ("HF_HUB_OFFLINE", "true"),
        ]);
        let given = given.unwrap();
        assert_eq!(given.endpoint, "http://127.0.0.1:1/hub");
        assert_eq!(given.cache, Some("/h/hub".into()));
        assert!(given.is_offline && !format!("{given:?}").contains("secret"));
        for (name, value) in [
            ("HF_ENDPOINT", "ftp://a"),
            ("HF_ENDPOINT", "http://me:pw@a"),
            ("HF_TOKEN", "a b"),
            ("HF_TOKEN_PATH", "/nowhere/at/all"),
        ] {
            assert!(place(&[(name, value)]).unwrap_err().starts_with(name), "{name} {value}");
        }
    }
}
