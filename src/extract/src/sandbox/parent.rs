//! The parent's side of child processes: spawning, feeding, waiting, killing.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use wait_timeout::ChildExt;

use crate::sandbox::{Answer, Parser, Request};
use crate::{ExtractError, Format, extract};
use lodestone_types::Extracted;

/// Time that a child may take in all; its CPU time is limited in the child.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Time between closing its output and its end.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const NONE: Duration = Duration::ZERO;
/// Bytes of an answer: the text at its largest, escaped, with its structure.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Reads documents in children of this program.
#[derive(Debug, Clone)]
pub struct Sandbox {
    program: PathBuf,
    arguments: Vec<String>,
    timeout: Duration,
}

/// The end of a child that gave no answer.
#[derive(Debug)]
enum ChildError {
    /// It was killed after the timeout.
    TooSlow,
    /// It ended by itself, or by the kernel.
    Ended(ExitStatus),
    /// It could not be started, or a pipe failed.
    Failed(io::Error),
}

/// The outcome of a child.
#[derive(Debug)]
struct Exchange {
    /// Its whole output, if it came in time.
    answer: Option<io::Result<Vec<u8>>>,
    /// Its exit status, if it ended by itself.
    ended: Option<ExitStatus>,
}

impl Sandbox {
    /// Children run `program` with `arguments`, which must end in a call of
    /// [`super::serve_one`].
    pub fn new(program: PathBuf, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Self { program, arguments, timeout: TIMEOUT }
    }

    /// Children of the program that is running, under `verb`. On Linux that is the very file, even
    /// if another has taken its name since.
    pub fn of_this_program(verb: &str) -> Self {
        let own = std::env::current_exe().unwrap_or_else(|_| "lodestone".into());
        let program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { own };
        Self::new(program, &[verb])
    }

    /// The same with another timeout.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    fn ask(&self, format: Format, bytes: &[u8]) -> Result<Answer, ChildError> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(ChildError::Failed)?;
        let Exchange { answer, ended } = self.exchange(&mut child, format, bytes)?;
        let answer = answer.ok_or(ChildError::TooSlow)?.map_err(ChildError::Failed)?;
        serde_json::from_slice(&answer)
            .map_err(|_| ended.map_or(ChildError::TooSlow, ChildError::Ended))
    }

    /// Sends the document and receives everything that the child writes.
    fn exchange(
        &self,
        child: &mut Child,
        format: Format,
        bytes: &[u8],
    ) -> Result<Exchange, ChildError> {
        let mut input = child.stdin.take().expect("it was asked for");
        let output = child.stdout.take().expect("it was asked for");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // A child that ends early closes the pipe: its answer says why.
                let request = serde_json::to_vec(&Request { format }).unwrap_or_default();
                let sent = input.write_all(&request).and_then(|()| input.write_all(b"\n"));
                let _ = sent.and_then(|()| input.write_all(bytes));
            });
            let (send, receive) = mpsc::channel();
            scope.spawn(move || {
                let mut answer = Vec::new();
                let read = output.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
                let _ = send.send(read.map(|_| answer));
            });
            let answer = receive.recv_timeout(self.timeout).ok();
            // Both threads end with the child's ends of the pipes: it must have ended here.
            let exit_timeout = if answer.is_some() { EXIT_TIMEOUT.min(self.timeout) } else { NONE };
            let ended = child.wait_timeout(exit_timeout).unwrap_or_default();
            if ended.is_none() {
                child.kill().and_then(|()| child.wait()).map_err(ChildError::Failed)?;
            }
            Ok(Exchange { answer, ended })
        })
    }
}

impl Parser for Sandbox {
    /// Reads in a child. One that crashes is retried once: the machine may have been the cause.
    fn parse(&self, format: Format, bytes: &[u8]) -> Result<Extracted, ExtractError> {
        if format.is_plain() {
            return extract(format, bytes);
        }
        let mut lost = None;
        for _ in 0..2 {
            match self.ask(format, bytes) {
                Ok(answer) => return answer.into_result(),
                Err(error) => {
                    let is_final = error.is_out_of_time();
                    tracing::warn!(
                        format = format.as_str(),
                        ?error,
                        "a parser process gave no answer"
                    );
                    lost = Some(error);
                    if is_final {
                        break;
                    }
                }
            }
        }
        Err(match lost.expect("the loop ran") {
            ChildError::Failed(error) => ExtractError::NoParser { problem: error.to_string() },
            error if error.is_out_of_time() => ExtractError::TooSlow { format: format.as_str() },
            _ => ExtractError::Crashed { format: format.as_str() },
        })
    }
}

impl ChildError {
    fn is_out_of_time(&self) -> bool {
        match self {
            Self::TooSlow => true,
            #[cfg(unix)]
            Self::Ended(status) => {
                use std::os::unix::process::ExitStatusExt;
                // Past the limit the kernel sends SIGXCPU, or SIGKILL where both limits are equal.
                status
                    .signal()
                    .is_some_and(|signal| [libc::SIGXCPU, libc::SIGKILL].contains(&signal))
            }
            _ => false,
        }
    }
}
