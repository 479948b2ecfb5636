//! `lodestone mcp`: offers the tools of a server to programs that start their tools as processes.
//!
//! ```text
//! stdin, one JSON-RPC message a line -> POST <server>/mcp -> its messages, one a line -> stdout
//! ```

use std::collections::BTreeSet;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::{Mutex, PoisonError};
use std::thread;

use clap::Args;
use serde_json::{Value, json};

use super::connection::Connection;
use super::failure::Failure;
use super::options::ServerOptions;
use super::{ClientVerb, EXIT_CODES};
use crate::cli::transport::query;
use lodestone_types::limits;

/// Longest message from the client in bytes.
const LINE_BYTES_MAX: u64 = 32 << 20;
/// Number of concurrent requests; at this limit, the next line is read when one has finished.
const REQUESTS_MAX: usize = 16;
/// JSON-RPC error code for a request without an answer.
const NO_ANSWER: i64 = -32000;
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Speak MCP over standard input and output, for applications that start their tools as processes.
/// It provides the tools that the role of the key permits.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct McpOptions {
    #[command(flatten)]
    server: ServerOptions,
}

impl ClientVerb for McpOptions {
    fn run(&self) -> Result<(), Failure> {
        let connection = Connection::new(&self.server)?;
        let bridge = Bridge::new(&connection);
        bridge.carry(io::stdin().lock(), &Mutex::new(io::stdout()))
    }
}

struct Bridge<'a> {
    connection: &'a Connection,
    path: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Protocol version agreed on by `initialize`.
    version: Option<String>,
    /// Requests whose answer is no longer wanted.
    cancelled: BTreeSet<String>,
}

impl<'a> Bridge<'a> {
    fn new(connection: &'a Connection) -> Self {
        let scope = [
            ("tenant_id", connection.tenant_if_named().unwrap_or_default()),
            ("sub_tenant_id", connection.sub_tenant()),
        ];
        let named: Vec<_> = scope.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        let path = format!("/mcp{}", query(&named));
        Self { connection, path, state: Mutex::default() }
    }

    /// Relays messages until `input` ends and every request has been answered.
    fn carry<W: Write + Send>(
        &self,
        input: impl BufRead,
        output: &Mutex<W>,
    ) -> Result<(), Failure> {
        let mut input = BufReader::new(input);
        let (give, take) = std::sync::mpsc::sync_channel::<Value>(0);
        let take = Mutex::new(take);
        thread::scope(|scope| {
            for _ in 0..REQUESTS_MAX {
                scope.spawn(|| {
                    loop {
                        let next = held(&take).recv();
                        let Ok(message) = next else { return };
                        self.pass(&message, output);
                    }
                });
            }
            let mut line = Vec::new();
            loop {
                line.clear();
                let mut bounded = io::Read::take(&mut input, LINE_BYTES_MAX);
                let read = bounded.read_until(b'\n', &mut line);
                let failed = |problem: String| Err(Failure::Failed(problem));
                match read {
                    Ok(0) => break,
                    Ok(_) if line.len() as u64 == LINE_BYTES_MAX => {
                        return failed("standard input: a message of more than 32 MiB".to_owned());
                    }
                    Ok(_) => {}
                    Err(error) => return failed(format!("standard input: {error}")),
                }
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let Ok(message) = serde_json::from_slice::<Value>(&line) else {
                    write(output, &failure(&Value::Null, PARSE_ERROR, "this is not JSON"));
                    continue;
                };
                if let Some(problem) = unfit(&message, line.len()) {
                    let id = message.get("id").unwrap_or(&Value::Null);
                    write(output, &failure(id, INVALID_REQUEST, &problem));
                    continue;
                }
                if message["method"] == "notifications/cancelled" {
                    let id = message["params"]["requestId"].to_string();
                    held(&self.state).cancelled.insert(id);
                }
                // `initialize` changes the meaning of later requests, so it must finish first.
                if message["method"] == "initialize" {
                    self.pass(&message, output);
                } else if give.send(message).is_err() {
                    break;
                }
            }
            drop(give);
            Ok(())
        })
    }

    /// Relays one message and writes the answers to it.
    fn pass<W: Write>(&self, message: &Value, output: &Mutex<W>) {
        let id = message.get("id").filter(|id| !id.is_null());
        let is_wanted =
            || id.is_none_or(|id| !held(&self.state).cancelled.contains(&id.to_string()));
        let headers = self.headers(message);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let answered = self.connection.speak(&self.path, &headers, message, |line| {
            let text = line.strip_prefix("data:").unwrap_or(line).trim();
            let Ok(answer) = serde_json::from_str::<Value>(text) else { return };
            if !answer.is_object() {
                return;
            }
            if message["method"] == "initialize"
                && let Some(version) = answer["result"]["protocolVersion"].as_str()
            {
                held(&self.state).version = Some(version.to_owned());
            }
            if is_wanted() {
                write(output, &answer);
            }
        });
        if let (Err(problem), Some(id)) = (answered, id)
            && is_wanted()
        {
            write(output, &failure(id, NO_ANSWER, &problem.to_string()));
        }
        if let Some(id) = id {
            held(&self.state).cancelled.remove(&id.to_string());
        }
    }

    /// Returns the headers that streamable HTTP requires to repeat parts of the message.
    fn headers(&self, message: &Value) -> Vec<(&'static str, String)> {
        let params = &message["params"];
        let own = params["_meta"][VERSION_KEY].as_str().map(str::to_owned);
        let version = own.or_else(|| held(&self.state).version.clone());
        let name = params["name"].as_str().or(params["uri"].as_str()).map(str::to_owned);
        let method = message["method"].as_str().map(str::to_owned);
        let headers =
            [("mcp-protocol-version", version), ("mcp-method", method), ("mcp-name", name)];
        let is_header = |value: &String| value.bytes().all(|byte| (0x20..0x7F).contains(&byte));
        let given = headers.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.filter(|(_, value)| is_header(value)).collect()
    }
}

/// Returns the reason why a line cannot be relayed: the server would not answer it, or not with its
/// id.
fn unfit(message: &Value, bytes: usize) -> Option<String> {
    if !message.is_object() {
        return Some("a line must be one message, a JSON object".to_owned());
    }
    let max = limits::MCP_MESSAGE_BYTES_MAX;
    (bytes > max)
        .then(|| format!("the message has {bytes} bytes; the server accepts at most {max}"))
}

/// Builds the error response for a request that the server did not answer.
fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// Writes one line. A closed client is noticed at the end of standard input instead.
fn write<W: Write>(output: &Mutex<W>, message: &Value) {
    let mut output = held(output);
    let _ = writeln!(output, "{message}").and_then(|()| output.flush());
}

/// Locks a mutex even if poisoned: a panicking thread leaves no inconsistent state here.
fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
