//! Object stores that verify every signature and fail on demand: moto for S3, a program of these
//! tests for Google Cloud Storage, and Azurite for Azure.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use crate::KEY;
use crate::process::http::Client;
use crate::process::lodestone;

/// A kind of object store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    S3,
    Google,
    Azure,
}

impl Kind {
    /// The program that emulates it, and the software it requires.
    fn program(self) -> (&'static str, &'static str) {
        match self {
            Self::S3 => ("tests/bucket/store.py", "moto"),
            Self::Google => ("tests/bucket/google.py", "Python"),
            Self::Azure => ("tests/bucket/azure.py", "Azurite"),
        }
    }

    /// The URL of the only bucket.
    fn bucket(self) -> &'static str {
        match self {
            Self::S3 => "s3://backups",
            Self::Google => "gs://backups",
            Self::Azure => "az://backups",
        }
    }

    /// The environment variables for key id, secret and endpoint.
    fn names(self) -> [&'static str; 3] {
        match self {
            Self::S3 => ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL_S3"],
            Self::Google => ["GS_ACCESS_KEY_ID", "GS_SECRET_ACCESS_KEY", "STORAGE_EMULATOR_HOST"],
            Self::Azure => {
                ["AZURE_STORAGE_ACCOUNT", "AZURE_STORAGE_KEY", "AZURE_STORAGE_SERVICE_ENDPOINT"]
            }
        }
    }

    /// The way to install what a skipped test needs, and the variable that turns skipping into a
    /// failure.
    fn requirement(self) -> (&'static str, &'static str) {
        match self {
            Self::S3 | Self::Google => ("scripts/setup --test gets it", "REQUIRE_S3_SERVER"),
            Self::Azure => ("scripts/setup --test gets it, with npm", "REQUIRE_AZURITE"),
        }
    }

    /// The store's error messages for a wrong secret and for a missing bucket.
    pub(super) fn words(self) -> [&'static str; 2] {
        match self {
            Self::S3 | Self::Google => ["403 SignatureDoesNotMatch", "NoSuchBucket"],
            Self::Azure => ["403 AuthorizationFailure", "ContainerNotFound"],
        }
    }
}

/// A running store, killed at the end of the test.
pub(super) struct Store {
    process: Child,
    pub(super) kind: Kind,
    /// A client for the store's control interface, which needs no signature.
    pub(super) client: Client,
    key_id: String,
    secret: String,
}

impl Store {
    /// Starts an S3 store; prints the reason and returns `None` if moto is missing.
    pub(super) fn start(test: &str) -> Option<Self> {
        Self::of(Kind::S3, test)
    }

    /// Starts a store of the given kind; prints the reason and returns `None` if its software is
    /// missing.
    pub(super) fn of(kind: Kind, test: &str) -> Option<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (program, needed) = kind.program();
        let installed = root.join(".venv/bin/python");
        let is_installed = installed.exists();
        let mut command =
            if is_installed { Command::new(installed) } else { Command::new("python3") };
        command.arg(root.join(program)).stdout(Stdio::piped());
        let mut process = command.stderr(Stdio::null()).spawn().ok();
        let mut line = String::new();
        if let Some(stdout) = process.as_mut().and_then(|process| process.stdout.take()) {
            BufReader::new(stdout).read_line(&mut line).expect("a line");
        }
        let Some(process) = process.filter(|_| !line.is_empty()) else {
            let (how, variable) = kind.requirement();
            let is_required = std::env::var_os(variable).is_some();
            assert!(!is_required, "{test} needs {needed}, and {variable} is set");
            println!("SKIPPED {test}: no {needed}; {how}");
            return None;
        };
        let words: Vec<&str> = line.split_whitespace().collect();
        let [port, key_id, secret] = words[..] else { panic!("{line:?}") };
        let address = format!("127.0.0.1:{port}").parse().expect("an address");
        let (key_id, secret) = (key_id.to_owned(), secret.to_owned());
        let client = Client { address, key: String::new() };
        Some(Self { process, kind, client, key_id, secret })
    }

    /// The URL of a prefix in the bucket.
    pub(super) fn place(&self, prefix: &str) -> String {
        format!("{}/{prefix}", self.kind.bucket())
    }

    /// The variable for the secret, with a wrong value.
    pub(super) fn wrong_secret(&self) -> (&'static str, &'static str) {
        let secret = if self.kind == Kind::Azure { "b2Ygc29tZWJvZHk=" } else { "of-somebody-else" };
        (self.kind.names()[1], secret)
    }

    /// Makes every nth request fail; 0 means none, 1 means all.
    pub(super) fn fail(&self, every: usize) {
        self.client.call("POST", &format!("/failures/{every}"), &Value::Null).expect("an answer");
    }

    /// Breaks the store's condition that a name is created only once: always (`ignored`), or only
    /// for concurrent requests (`racy`).
    pub(super) fn break_conditions(&self, how: &str) {
        self.client.call("POST", &format!("/conditions/{how}"), &Value::Null).expect("an answer");
    }

    /// Expires all keys that the store has issued, ahead of time.
    pub(super) fn expire_keys(&self) {
        self.client.call("POST", "/expire", &Value::Null).expect("an answer");
    }

    /// A number that the store reports about itself.
    pub(super) fn number(&self, of: &str) -> u64 {
        let reply = self.client.call("GET", &format!("/{of}"), &Value::Null).expect("an answer");
        String::from_utf8_lossy(&reply.body).parse().expect("a number")
    }

    pub(super) fn variables(&self) -> [(&'static str, String); 4] {
        let [key_id, secret, address] = self.kind.names();
        let account =
            if self.kind == Kind::Azure { format!("/{}", self.key_id) } else { String::new() };
        [
            (key_id, self.key_id.clone()),
            (secret, self.secret.clone()),
            (address, format!("http://{}{account}", self.client.address)),
            ("RUST_LOG", "debug".to_owned()),
        ]
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = lodestone(arguments);
        command.env("LODESTONE_API_KEY", KEY).envs(self.variables());
        command
    }

    /// Runs a command; returns whether it succeeded, and its output, which must not contain the
    /// secret.
    pub(super) fn run(&self, arguments: &[&str]) -> (bool, String) {
        let output = self.command(arguments).output().expect("it runs");
        let said = String::from_utf8([output.stdout, output.stderr].concat()).expect("UTF-8");
        assert!(!said.contains(&self.secret), "{said}");
        (output.status.success(), said)
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}
