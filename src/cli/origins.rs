//! Effective settings with their origins, and secrets read from files.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// Largest file read as a secret, which is a single line.
const SECRET_BYTES_MAX: usize = 65_536;

/// A flag added to the command line from another origin.
#[derive(Debug)]
pub struct Added {
    /// Id of the flag.
    pub id: String,
    /// Description of its origin.
    pub origin: String,
}

/// Returns the variable that names a file with the secret of a setting; `None` for other settings.
pub fn variable_of_file(flag: &Arg) -> Option<String> {
    let variable = flag.get_env().filter(|_| flag.is_hide_env_values_set())?;
    Some(format!("{}_FILE", variable.to_string_lossy()))
}

/// Adds to a command line the secrets in files that the environment names.
///
/// # Errors
/// If a file cannot be read, is empty or too long, or a secret is given twice.
pub fn add_secrets(
    line: &mut Vec<OsString>,
    verb: &Command,
    given: &ArgMatches,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Vec<Added>, Box<dyn Error>> {
    let mut added = Vec::new();
    for flag in verb.get_arguments() {
        let (Some(name), Some(key)) = (variable_of_file(flag), flag.get_long()) else { continue };
        let Some(path) = variable(&name).filter(|path| !path.is_empty()) else { continue };
        match given.value_source(flag.get_id().as_str()) {
            Some(ValueSource::CommandLine) => continue,
            Some(ValueSource::EnvVariable) => {
                let direct = name.trim_end_matches("_FILE");
                return Err(format!("{direct} and {name} are both set: set only one").into());
            }
            _ => {}
        }
        let path = Path::new(&path);
        let secret =
            secret(path).map_err(|problem| format!("{name} {}: {problem}", path.display()))?;
        line.push(format!("--{key}={secret}").into());
        let origin = format!("{name} {}", path.display());
        added.push(Added { id: flag.get_id().to_string(), origin });
    }
    Ok(added)
}

fn secret(path: &Path) -> Result<String, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    match text.trim() {
        "" => Err("the file is empty".into()),
        secret if secret.len() > SECRET_BYTES_MAX => {
            Err(format!("{} bytes; it must be at most {SECRET_BYTES_MAX}", secret.len()).into())
        }
        secret => Ok(secret.to_owned()),
    }
}

/// Formats the effective settings as a settings file with the origin of each; secrets are masked.
pub fn report(verb: &Command, given: &ArgMatches, held: &ArgMatches, added: &[Added]) -> String {
    let mut text = String::new();
    for flag in verb.get_arguments() {
        let (Some(variable), Some(key)) = (flag.get_env(), flag.get_long()) else { continue };
        let id = flag.get_id().as_str();
        let values = held.get_raw(id).into_iter().flatten();
        let values: Vec<String> = values.map(|value| value.to_string_lossy().into()).collect();
        // A JSON string is also a valid TOML string.
        let value = serde_json::Value::String(values.join(","));
        let origin: &dyn Display = match given.value_source(id) {
            Some(ValueSource::CommandLine) => &"flag",
            Some(ValueSource::EnvVariable) => &variable.to_string_lossy(),
            _ => match added.iter().find(|added| added.id == id) {
                Some(added) => &added.origin,
                None => &"default",
            },
        };
        let line = match (values.is_empty(), flag.is_hide_env_values_set()) {
            (true, _) => format!("# {key} is not set"),
            (false, true) => format!("# {key} = \"***\"  # {origin}"),
            (false, false) if key == "config" => format!("# {key} = {value}  # {origin}"),
            (false, false) => format!("{key} = {value}  # {origin}"),
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// Ignores the variable of a flag if it is set to an empty text.
pub fn without_empty_variable(flag: Arg) -> Arg {
    match flag.get_env().and_then(std::env::var_os) {
        Some(text) if text.is_empty() => flag.env(None::<&str>),
        _ => flag,
    }
}
