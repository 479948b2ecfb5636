//! One server, one key and one scope; a request and its answer.

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
use crate::cli::transport::{Http, Lost, Opened, Payload, Request, query};

/// Address that `lodestone serve` listens on by default.
const SERVER: &str = "http://127.0.0.1:8080";
/// Bytes of a download that are written at once.
const PART_BYTES: usize = 64 << 10;
/// A file of a key that is longer is not one.
const KEY_FILE_BYTES_MAX: usize = 4096;

/// A server, asked with one key about one scope.
pub struct Connection {
    http: Http,
    server: String,
    tenant: Option<String>,
    sub_tenant: String,
    /// Whether answers are printed as they come.
    pub is_json: bool,
}

impl Connection {
    /// The connection that flags, environment and profile name, in this order.
    ///
    /// # Errors
    /// [`Failure::Usage`].
    pub fn new(options: &ServerOptions) -> Result<Self, Failure> {
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = profile::path(variable);
        let profile = profile::read(path.as_deref(), options.profile.as_deref())?;
        let given = options.server.as_deref().map(|server| server.trim_end_matches('/'));
        let own = profile.server.as_deref().map(|server| server.trim_end_matches('/'));
        let server = given.or(own).unwrap_or(SERVER).to_owned();
        if !server.starts_with("http://") && !server.starts_with("https://") {
            let problem = format!("server {server}: begins with neither http:// nor https://");
            return Err(Failure::Usage(problem));
        }
        if !names_host(&server) {
            let problem = format!("server {server}: not an address such as {SERVER}");
            return Err(Failure::Usage(problem));
        }
        // The key of one server is not shown to another.
        let is_of_profile = own.is_none_or(|own| own == server);
        let of_profile = if is_of_profile { profile.clone() } else { Profile::default() };
        let key = key(options, &of_profile, variable)?.map(|key| key.trim().to_owned());
        if key.as_ref().is_some_and(|key| !key.chars().all(|c| matches!(c, ' '..='~'))) {
            let problem = "the API key has a line break or a character beyond ASCII in it: see \
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

    /// The tenant.
    ///
    /// # Errors
    /// [`Failure::Usage`] where none is named.
    pub fn tenant(&self) -> Result<&str, Failure> {
        self.tenant.as_deref().ok_or_else(|| {
            let problem = "no tenant: name one with --tenant, LODESTONE_TENANT or a profile";
            Failure::Usage(problem.to_owned())
        })
    }

    /// The way to the server.
    pub fn http(&self) -> &Http {
        &self.http
    }

    /// Its address.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The tenant, where one is named.
    pub fn tenant_if_named(&self) -> Option<&str> {
        self.tenant.as_deref()
    }

    /// The sub-tenant as it was named; empty means `default`.
    pub fn sub_tenant(&self) -> &str {
        &self.sub_tenant
    }

    /// A body with the scope and `members`.
    ///
    /// # Errors
    /// [`Failure::Usage`] where no tenant is named.
    pub fn body(&self, members: Value) -> Result<Value, Failure> {
        let mut body = json!({"tenant_id": self.tenant()?, "sub_tenant_id": self.sub_tenant});
        if let (Some(body), Value::Object(members)) = (body.as_object_mut(), members) {
            body.extend(members.into_iter().filter(|(_, value)| !value.is_null()));
        }
        Ok(body)
    }

    /// A path with the scope and `pairs` as its query.
    ///
    /// # Errors
    /// [`Failure::Usage`] where no tenant is named.
    pub fn scoped(&self, path: &str, pairs: &[(&str, &str)]) -> Result<String, Failure> {
        let scope = [("tenant_id", self.tenant()?), ("sub_tenant_id", &self.sub_tenant)];
        Ok(format!("{path}{}", query(&[&scope, pairs].concat())))
    }

    /// Asks with GET.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn get(&self, path: String, show: impl FnOnce(&Value)) -> Result<(), Failure> {
        self.show(&Request { path, body: None }, show).map(drop)
    }

    /// Asks with POST.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn post(
        &self,
        path: impl Into<String>,
        body: &Value,
        show: impl FnOnce(&Value),
    ) -> Result<(), Failure> {
        self.show(&Request { path: path.into(), body: Some(Payload::Json(body)) }, show).map(drop)
    }

    /// Asks with DELETE.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn delete(&self, path: String, show: impl FnOnce(&Value)) -> Result<(), Failure> {
        self.show(&Request { path, body: Some(Payload::Delete) }, show).map(drop)
    }

    /// Sends a request, and shows the answer: for people by `show`, otherwise as it came.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn show(&self, request: &Request<'_>, show: impl FnOnce(&Value)) -> Result<Value, Failure> {
        let (answer, json) = self.answer(request)?;
        if self.is_json {
            screen::print_json(&answer);
        } else {
            show(&json);
        }
        Ok(json)
    }

    /// Sends a request; returns the whole answer, as it came and as JSON.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn answer(&self, request: &Request<'_>) -> Result<(Vec<u8>, Value), Failure> {
        let answer = self.open(request)?.whole().map_err(|error| self.lost(&error))?;
        let json = serde_json::from_slice(&answer).map_err(|_| {
            let problem = "the answer is no JSON; is it a Lodestone server?";
            Failure::Failed(format!("{}: {problem}", self.server))
        })?;
        Ok((answer, json))
    }

    /// Sends a request; returns when a good answer begins.
    ///
    /// # Errors
    /// [`Failure`]; for machines the error body is printed as it came.
    pub fn open(&self, request: &Request<'_>) -> Result<Opened, Failure> {
        let opened = self.http.open(request, &AtomicU64::new(0));
        self.good(opened.map_err(|error| self.lost(&error))?)
    }

    /// Posts a JSON message with headers of its own; `see` gets each line of a good answer as it
    /// comes.
    ///
    /// # Errors
    /// [`Failure`].
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
            see(&line.map_err(|error| Failure::Failed(format!("the answer broke off: {error}")))?);
        }
        Ok(())
    }

    /// Writes the answer of a GET to `out`, which is called `name`, whatever its length.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn download(&self, path: &str, out: &mut dyn Write, name: &str) -> Result<(), Failure> {
        let opened = self.http.open_whole(path).map_err(|error| self.lost(&error))?;
        let mut body = BufReader::with_capacity(PART_BYTES, self.good(opened)?.body);
        let failed = |what: &str, error| Failure::Failed(format!("{what}: {error}"));
        loop {
            let part = body.fill_buf().map_err(|error| failed("the answer broke off", error))?;
            if part.is_empty() {
                return out.flush().map_err(|error| failed(name, error));
            }
            out.write_all(part).map_err(|error| failed(name, error))?;
            let bytes = part.len();
            body.consume(bytes);
        }
    }

    /// Sends JSON Lines; returns the answer.
    ///
    /// # Errors
    /// [`Failure`].
    pub fn send_lines(&self, path: &str, lines: &mut dyn Read) -> Result<Vec<u8>, Failure> {
        let opened = self.http.send_lines(path, lines).map_err(|error| {
            // A server that refuses a long body in the middle of it closes the connection.
            Failure::Failed(format!(
                "{} did not take it all: {error}; it is not there, or its disk is full: its log \
                 says why",
                self.server
            ))
        });
        self.good(opened?)?.whole().map_err(|error| self.lost(&error))
    }

    /// An answer that is no error.
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
            "no server answers at {}: {error}; start one with lodestone serve, or name its address \
             with --server, LODESTONE_SERVER or a profile",
            self.server
        ))
    }
}

/// Whether an address has a host, and a port that can be one if any.
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
            Err(wrong(&format!("{} bytes, of {KEY_FILE_BYTES_MAX} at most", key.len())))
        }
        key if key.contains(char::is_control) => Err(wrong("more than one line")),
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
