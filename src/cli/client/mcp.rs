//! `lodestone mcp`: the tools of a server for a program that starts its tools as processes.
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

/// Bytes of one message from the client; a longer line is not one.
const LINE_BYTES_MAX: u64 = 32 << 20;
/// Requests that wait for their answer at once; a further line is read when one has ended.
const REQUESTS_MAX: usize = 16;
/// JSON-RPC's code of an error of the server's own.
const NO_ANSWER: i64 = -32000;
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// Speak MCP on standard input and output, for programs that start their tools: the tools are those
/// that the key may use.
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
    /// The version that `initialize` agreed on.
    version: Option<String>,
    /// Requests whose answer nobody waits for any more.
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

    /// Passes messages on until `input` ends and every request has its answer.
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
                    write(output, &failure(&Value::Null, PARSE_ERROR, "this is no JSON"));
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
                // A request that changes what the next ones mean is waited for.
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

    /// Sends one message and writes the answers to it.
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

    /// Headers that repeat parts of the message, as streamable HTTP wants them.
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

/// The reason why a line is not sent: no answer to it would have its id, or come at all.
fn unfit(message: &Value, bytes: usize) -> Option<String> {
    if !message.is_object() {
        return Some("a line has to be one message, which is an object".to_owned());
    }
    let max = limits::MCP_MESSAGE_BYTES_MAX;
    (bytes > max).then(|| format!("the message has {bytes} bytes, and the server takes {max}"))
}

/// The error of a request that the server did not answer.
fn failure(id: &Value, code: i64, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}

/// One line; a client that has gone is noticed at the end of standard input.
fn write<W: Write>(output: &Mutex<W>, message: &Value) {
    let mut output = held(output);
    let _ = writeln!(output, "{message}").and_then(|()| output.flush());
}

/// A thread that panicked held no half-made state.
fn held<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
