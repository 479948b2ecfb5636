//! A connection to one server, with one key and one scope.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

use serde_json::{Value, json};
use ureq::http::Uri;

use super::failure::Failure;
use super::options::ServerOptions;
use super::profile::{self, Profile};
use super::screen;
use crate::cli::authorities;
use crate::cli::transport::{Http, Lost, Opened, Payload, Request, escaped, query};
use crate::cli::write_text;

/// The default address of `lodestone serve`.
const SERVER: &str = "http://127.0.0.1:8080";
/// Size of the pieces in which a download is written.
const PART_BYTES: usize = 64 << 10;
/// Largest file read as a key.
const KEY_FILE_BYTES_MAX: usize = 4096;

/// A server that is queried with one key in one scope.
pub struct Connection {
    http: Http,
    server: String,
    tenant: Option<String>,
    sub_tenant: String,
    /// Whether to print responses unchanged as JSON.
    pub is_json: bool,
}

impl Connection {
    /// Creates the connection that flags, environment and profile describe, in this order of
    /// precedence.
    ///
    /// # Errors
    /// [`Failure::Usage`] if they are invalid.
    pub fn new(options: &ServerOptions) -> Result<Self, Failure> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = profile::path(variable);
        let profile = profile::read(path.as_deref(), options.profile.as_deref())?;
        let given = options.server.as_deref().map(|server| server.trim_end_matches('/'));
        let own = profile.server.as_deref().map(|server| server.trim_end_matches('/'));
        let server = given.or(own).unwrap_or(SERVER).to_owned();
        if !server.starts_with("http://") && !server.starts_with("https://") {
            let problem = format!("server {server}: must begin with http:// or https://");
            return Err(Failure::Usage(problem));
        }
        if !names_host(&server) {
            let problem = format!("server {server}: must be an address such as {SERVER}");
            return Err(Failure::Usage(problem));
        }
        // The key for one server must not be sent to another.
        let is_of_profile = own.is_none_or(|own| own == server);
        let of_profile = if is_of_profile { profile.clone() } else { Profile::default() };
        let key = key(options, &of_profile, variable)?.map(|key| key.trim().to_owned());
        if key.as_ref().is_some_and(|key| !key.chars().all(|c| matches!(c, ' '..='~'))) {
            let problem = "the API key contains a line break or a non-ASCII character: check \
                --api-key, LODESTONE_API_KEY or the profile";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let file = options.ca_file.as_ref().or(profile.ca_file.as_ref());
        let authorities = authorities(file.map(PathBuf::as_path)).map_err(Failure::Usage)?;
        Ok(Self {
            http: Http::new(&server, key.as_deref(), &authorities),
            server,
            tenant: options.tenant.clone().or(profile.tenant),
            sub_tenant: options.sub_tenant.clone().or(profile.sub_tenant).unwrap_or_default(),
            is_json: options.json,
        })
    }

    /// Returns the tenant.
    ///
    /// # Errors
    /// [`Failure::Usage`] if none is named.
    pub fn tenant(&self) -> Result<&str, Failure> {
        self.tenant.as_deref().ok_or_else(|| {
            let problem = "no tenant: set one with --tenant, LODESTONE_TENANT or a profile";
            Failure::Usage(problem.to_owned())
        })
    }

    /// Returns the HTTP client.
    pub fn http(&self) -> &Http {
        &self.http
    }

    /// Returns the address of the server.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// Returns the tenant, if one is named.
    pub fn tenant_if_named(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// Returns the sub-tenant as given; empty means `default`.
    pub fn sub_tenant(&self) -> &str {
        &self.sub_tenant
    }

    /// Builds a request body from the scope and `members`, leaving out null ones.
    ///
    /// # Errors
    /// [`Failure::Usage`] if no tenant is named.
    pub fn body(&self, members: Value) -> Result<Value, Failure> {
        let mut body = json!({"tenant_id": self.tenant()?, "sub_tenant_id": self.sub_tenant});
        if let (Some(body), Value::Object(members)) = (body.as_object_mut(), members) {
            body.extend(members.into_iter().filter(|(_, value)| !value.is_null()));
        }
        Ok(body)
    }

    /// Builds a path whose query holds the scope and `pairs`.
    ///
    /// # Errors
    /// [`Failure::Usage`] if no tenant is named.
    pub fn scoped(&self, path: &str, pairs: &[(&str, &str)]) -> Result<String, Failure> {
        let scope = [("tenant_id", self.tenant()?), ("sub_tenant_id", &self.sub_tenant)];
        Ok(format!("{path}{}", query(&[&scope, pairs].concat())))
    }

    /// Sends a GET and shows the response.
    ///
    /// # Errors
    /// [`Failure`] if there is no successful response.
    pub fn get(&self, path: String, show: impl FnOnce(&Value)) -> Result<(), Failure> {
        self.show(&Request { path, body: None }, show).map(drop)
    }

    /// Sends a POST and shows the response.
    ///
    /// # Errors
    /// [`Failure`] if there is no successful response.
    pub fn post(
        &self,
        path: impl Into<String>,
        body: &Value,
        show: impl FnOnce(&Value),
    ) -> Result<(), Failure> {
        self.show(&Request { path: path.into(), body: Some(Payload::Json(body)) }, show).map(drop)
    }

    /// Creates something with a secret that only the response contains, and shows it like
    /// [`Connection::show`]. If it cannot be shown it is deleted again, as nobody could use it.
    ///
    /// # Errors
    /// [`Failure`]; [`Failure::Failed`] if the response could not be printed, which says what
    /// became of the thing created, whose id is the member `id` of the response.
    pub fn make(
        &self,
        path: &str,
        body: &Value,
        id: &str,
        show: impl FnOnce(&Value) -> String,
    ) -> Result<(), Failure> {
        let body = Some(Payload::Json(body));
        let (answer, json) = self.answer(&Request { path: path.to_owned(), body })?;
        let text = if self.is_json { screen::json_text(&answer) } else { show(&json) };
        let Err(error) = write_text(&format!("{text}\n")) else { return Ok(()) };
        let name = json[id].as_str().unwrap_or_default();
        let path = format!("{path}/{}", escaped(name));
        let ending = match self.answer(&Request { path, body: Some(Payload::Delete) }) {
            Ok(_) => "was deleted again, as its secret could not be shown".to_owned(),
            Err(problem) => {
                format!("exists, but its secret could not be shown: delete it ({problem})")
            }
        };
        Err(Failure::Failed(format!("standard output: {error}; {name} {ending}")))
    }

    /// Sends a DELETE and shows the response.
    ///
    /// # Errors
    /// [`Failure`] if there is no successful response.
    pub fn delete(&self, path: String, show: impl FnOnce(&Value)) -> Result<(), Failure> {
        self.show(&Request { path, body: Some(Payload::Delete) }, show).map(drop)
    }

    /// Sends a request and shows the response: as JSON unchanged if requested, otherwise with
    /// `show`.
    ///
    /// # Errors
    /// [`Failure`] if there is no successful response.
    pub fn show(&self, request: &Request<'_>, show: impl FnOnce(&Value)) -> Result<Value, Failure> {
        let (answer, json) = self.answer(request)?;
        if self.is_json {
            screen::print_json(&answer);
        } else {
            show(&json);
        }
        Ok(json)
    }

    /// Sends a request and returns the whole response, as received and as JSON.
    ///
    /// # Errors
    /// [`Failure`] if there is no successful response.
    pub fn answer(&self, request: &Request<'_>) -> Result<(Vec<u8>, Value), Failure> {
        let answer = self.open(request)?.whole().map_err(|error| self.lost(&error))?;
        let json = serde_json::from_slice(&answer).map_err(|_| {
            let problem = "the answer is not JSON; is it a Lodestone server?";
            Failure::Failed(format!("{}: {problem}", self.server))
        })?;
        Ok((answer, json))
    }

    /// Sends a request and returns as soon as a successful response begins.
    ///
    /// # Errors
    /// [`Failure`] otherwise; with JSON output, the error body is printed unchanged.
    pub fn open(&self, request: &Request<'_>) -> Result<Opened, Failure> {
        let opened = self.http.open(request, &AtomicU64::new(0));
        self.good(opened.map_err(|error| self.lost(&error))?)
    }

    /// Posts a JSON message with additional headers, and passes each line of a successful response
    /// to `see` as it arrives.
    ///
    /// # Errors
    /// [`Failure`] if there is no successful response, or it breaks off.
    pub fn speak(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        message: &Value,
        mut see: impl FnMut(&str),
    ) -> Result<(), Failure> {
        let opened = self.http.post_with(path, headers, message);
        let opened = self.good(opened.map_err(|error| self.lost(&error))?)?;
        for line in BufReader::new(opened.body).lines() {
            see(&line
                .map_err(|error| Failure::Failed(format!("the answer ended early: {error}")))?);
        }
        Ok(())
    }

    /// Writes the response of a GET, of any length, to `out`, which is called `name` in errors.
    ///
    /// # Errors
    /// [`Failure`] if there is no successful response, or writing fails.
    pub fn download(&self, path: &str, out: &mut dyn Write, name: &str) -> Result<(), Failure> {
        let opened = self.http.open_whole(path).map_err(|error| self.lost(&error))?;
        let mut body = BufReader::with_capacity(PART_BYTES, self.good(opened)?.body);
        let failed = |what: &str, error| Failure::Failed(format!("{what}: {error}"));
        loop {
            let part = body.fill_buf().map_err(|error| failed("the answer ended early", error))?;
            if part.is_empty() {
                return out.flush().map_err(|error| failed(name, error));
            }
            out.write_all(part).map_err(|error| failed(name, error))?;
            let bytes = part.len();
            body.consume(bytes);
        }
    }

    /// Sends JSON Lines and returns the response.
    ///
    /// # Errors
    /// [`Failure`] if there is no successful response.
    pub fn send_lines(&self, path: &str, lines: &mut dyn Read) -> Result<Vec<u8>, Failure> {
        let opened = self.http.send_lines(path, lines).map_err(|error| {
            // A server that refuses a long body while it is being sent closes the connection.
            Failure::Failed(format!(
                "{} did not accept all data: {error}; it is unreachable or its disk is full: see \
                 its log",
                self.server
            ))
        });
        self.good(opened?)?.whole().map_err(|error| self.lost(&error))
    }

    /// Returns a successful response; converts any other into a failure.
    fn good(&self, opened: Opened) -> Result<Opened, Failure> {
        let (status, retry_after_s) = (opened.status, opened.retry_after_s);
        if (200..300).contains(&status) {
            return Ok(opened);
        }
        let answer = opened.whole().map_err(|error| self.lost(&error))?;
        let json = serde_json::from_slice(&answer).unwrap_or(Value::Null);
        if self.is_json && !json.is_null() {
            screen::print_json(&answer);
        }
        Err(Failure::of(&self.server, status, retry_after_s, &json))
    }

    fn lost(&self, error: &Lost) -> Failure {
        Failure::Failed(format!(
            "no server answers at {}: {error}; start one with lodestone serve, or set its address \
             with --server, LODESTONE_SERVER or a profile",
            self.server
        ))
    }
}

/// Whether an address has a host and, if it has a port, a valid one.
fn names_host(server: &str) -> bool {
    let address = server.parse::<Uri>().ok();
    let authority = address.and_then(|address| address.into_parts().authority);
    authority.is_some_and(|authority| {
        let (host, port) = (authority.host(), authority.port_u16());
        !host.is_empty() && (port.is_some() || authority.as_str().ends_with(host))
    })
}

fn key(
    options: &ServerOptions,
    profile: &Profile,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<Option<String>, Failure> {
    if let Some(key) = &options.api_key {
        return Ok(Some(key.clone()));
    }
    if let Some(path) = &options.api_key_file {
        return key_of_file("--api-key-file", path).map(Some);
    }
    if let Some(key) = variable("LODESTONE_API_KEY") {
        let unreadable = |_| Failure::Usage("LODESTONE_API_KEY: not UTF-8".to_owned());
        return key.into_string().map(Some).map_err(unreadable);
    }
    if let Some(path) = variable("LODESTONE_API_KEY_FILE") {
        return key_of_file("LODESTONE_API_KEY_FILE", Path::new(&path)).map(Some);
    }
    match (&profile.api_key, &profile.api_key_file) {
        (Some(key), _) => Ok(Some(key.clone())),
        (None, Some(path)) => key_of_file("api-key-file of the profile", path).map(Some),
        (None, None) => Ok(None),
    }
}

fn key_of_file(name: &str, path: &Path) -> Result<String, Failure> {
    let wrong = |problem: &str| Failure::Usage(format!("{name} {}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
    match text.trim() {
        "" => Err(wrong("the file is empty")),
        key if key.len() > KEY_FILE_BYTES_MAX => {
            Err(wrong(&format!("{} bytes; it must be at most {KEY_FILE_BYTES_MAX}", key.len())))
        }
        key if key.contains(char::is_control) => Err(wrong("the file has more than one line")),
        key => Ok(key.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_a_host_and_a_port_that_can_be_one() {
        for server in ["http://a", "https://a.example/lodestone", "http://[::1]:8080", "http://b:1"]
        {
            assert!(names_host(server), "{server}");
        }
        for server in
            ["http:", "http://", "http://[::1", "http://a:99999", "http://a:b", "http://:1"]
        {
            assert!(!names_host(server), "{server}");
        }
    }
}
