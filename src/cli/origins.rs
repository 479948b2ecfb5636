//! Settings as they hold, each with its origin, and secrets out of files.

use std::error::Error;
use std::ffi::OsString;
use std::fmt::Display;
use std::path::Path;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};

/// A secret in a file is one line; a longer file is not one.
const SECRET_BYTES_MAX: usize = 65_536;

/// A flag that was put together from elsewhere than the command line.
#[derive(Debug)]
pub struct Added {
    /// Id of the flag.
    pub id: String,
    /// Its origin.
    pub origin: String,
}

/// The variable that names a file with the secret of a setting; none for other settings.
pub fn variable_of_file(flag: &Arg) -> Option<String> {
    let variable = flag.get_env().filter(|_| flag.is_hide_env_values_set())?;
    Some(format!("{}_FILE", variable.to_string_lossy()))
}

/// Adds to a command line the secrets whose files the environment names.
///
/// # Errors
/// A file that cannot be read, is empty or too long; a secret that is given twice.
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
                return Err(
                    format!("{direct} and {name} are both set: one of them is enough").into()
                );
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
            Err(format!("{} bytes, of {SECRET_BYTES_MAX} at most", secret.len()).into())
        }
        secret => Ok(secret.to_owned()),
    }
}

/// The settings that hold as a settings file, each with its origin; secrets are masked.
pub fn report(verb: &Command, given: &ArgMatches, held: &ArgMatches, added: &[Added]) -> String {
    let mut text = String::new();
    for flag in verb.get_arguments() {
        let (Some(variable), Some(key)) = (flag.get_env(), flag.get_long()) else { continue };
        let id = flag.get_id().as_str();
        let values = held.get_raw(id).into_iter().flatten();
        let values: Vec<String> = values.map(|value| value.to_string_lossy().into()).collect();
        // A string of JSON is one of TOML too.
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

/// A flag whose variable is set to an empty text has none.
pub fn without_empty_variable(flag: Arg) -> Arg {
    match flag.get_env().and_then(std::env::var_os) {
        Some(text) if text.is_empty() => flag.env(None::<&str>),
        _ => flag,
    }
}
