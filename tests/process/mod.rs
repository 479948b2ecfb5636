//! Runs the real binary as a child process: starts it, sends it HTTP requests and kills it.
//!
//! Shared by the test binaries that need a whole process. A thread drains the stderr of the process
//! continuously, so that a full pipe never blocks it; failures print the output.

pub mod http;
pub mod model;
pub mod patience;

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use http::Client;
use patience::STILL;

/// Builds a command that runs the binary without the caller's `LODESTONE_` settings.
pub fn lodestone(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lodestone"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("LODESTONE_") {
            command.env_remove(name);
        }
    }
    command.env("RUST_LOG", "info");
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped());
    command
}

/// A running server process.
#[derive(Debug)]
pub struct Server {
    child: Child,
    lines: Receiver<String>,
    output: String,
    begun: Instant,
}

impl Server {
    /// Starts a server on a free port without waiting until it is ready.
    pub fn spawn(data_dir: &Path, model_dir: &Path, api_key: Option<&str>) -> Self {
        let mut command = lodestone(&["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--data-dir").arg(data_dir).arg("--model-dir").arg(model_dir);
        if let Some(key) = api_key {
            command.env("LODESTONE_ADMIN_KEY", key);
        }
        Self::run(command)
    }

    /// Starts a server from a command that is expected to listen on a free port.
    pub fn run(mut command: Command) -> Self {
        let begun = Instant::now();
        let mut child = command.stdout(Stdio::null()).spawn().expect("the binary starts");
        let stderr = child.stderr.take().expect("stderr is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines, output: String::new(), begun }
    }

    /// Waits for the startup banner; returns it and the time since the start.
    pub fn ready(&mut self) -> (Banner, Duration) {
        match self.try_ready() {
            Some(ready) => ready,
            None => panic!("the server did not become ready:\n{}", self.output()),
        }
    }

    /// Waits for the startup banner like [`Self::ready`]; returns `None` if the process ends
    /// without one.
    pub fn try_ready(&mut self) -> Option<(Banner, Duration)> {
        let mut banner = Banner::default();
        while let Some(line) = self.next_line() {
            if let Some(url) = value_of(&line, "url") {
                let address = url.trim_start_matches("https://").trim_start_matches("http://");
                banner.address = Some(address.parse().expect("an address and a port"));
            }
            let place =
                value_of(&line, "key").and_then(|key| Some(key.strip_prefix("in ")?.into()));
            if let Some(place) = place {
                let place: PathBuf = place;
                let key = std::fs::read_to_string(&place).expect("a file with the key");
                banner.key = Some(key.trim().to_owned());
            }
            if banner.address.is_some() && line.is_empty() {
                return Some((banner, self.begun.elapsed()));
            }
        }
        None
    }

    /// Kills the process with SIGKILL, waits until it is gone and returns its output.
    pub fn kill(mut self) -> String {
        self.child.kill().expect("a child can be killed");
        self.child.wait().expect("a child can be waited for");
        self.output().to_owned()
    }

    /// Returns everything that the process has written to stderr so far.
    pub fn output(&mut self) -> &str {
        while let Ok(line) = self.lines.try_recv() {
            self.keep(&line);
        }
        &self.output
    }

    /// Waits until the process exits by itself; returns `None` if it writes nothing for minutes.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        loop {
            match self.lines.recv_timeout(STILL) {
                Ok(line) => self.keep(&line),
                // EOF on stderr means that the process has exited: nobody else holds the pipe.
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => return None,
            }
        }
        Some(self.child.wait().expect("a child can be waited for"))
    }

    /// Sends SIGTERM, as an operator would.
    pub fn terminate(&self) {
        let command = format!("kill -TERM {}", self.id());
        let status = Command::new("sh").args(["-c", &command]).status().expect("a shell");
        assert!(status.success(), "no signal could be sent");
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    fn next_line(&mut self) -> Option<String> {
        let line = self.lines.recv_timeout(STILL).ok()?;
        self.keep(&line);
        Some(line)
    }

    fn keep(&mut self, line: &str) {
        self.output.push_str(line);
        self.output.push('\n');
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // A failed test leaves no process behind; after `kill` this does nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The startup banner of a server that is ready.
#[derive(Debug, Default, Clone)]
pub struct Banner {
    address: Option<SocketAddr>,
    /// The admin key, if the server generated one because none was configured.
    pub key: Option<String>,
}

impl Banner {
    /// Creates a client of this server.
    pub fn client(&self, key: &str) -> Client {
        Client { address: self.address.expect("a ready server has an address"), key: key.into() }
    }
}

/// Returns the value of the named line of the banner, if `line` is that line.
pub fn value_of(line: &str, name: &str) -> Option<String> {
    let rest = line.strip_prefix("  ")?.strip_prefix(name)?;
    rest.starts_with(' ').then(|| rest.trim().to_owned())
}
