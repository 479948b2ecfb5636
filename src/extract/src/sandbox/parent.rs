//! The parent side of child processes: spawning, feeding, waiting, killing.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, PoisonError, RwLock, mpsc};
use std::time::Duration;

use wait_timeout::ChildExt;

use crate::sandbox::{Answer, Drawn, InProcess, Parsed, Parser, Request};
use crate::{Drawing, ExtractError, Format};

/// Wall-clock limit of a child; its CPU time is limited in the child.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Time limit for rendering a page: someone is waiting for it, and others may be queued. A page of
/// text takes a tenth of a second.
const DRAWING_TIMEOUT: Duration = Duration::from_secs(10);
/// Time from closing its output until the child must have exited.
const EXIT_TIMEOUT: Duration = Duration::from_secs(2);
const NONE: Duration = Duration::ZERO;
/// Maximum bytes of an answer: the largest text, escaped, with its structure.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Maximum bytes kept of the error output of a child.
const LAST_WORDS_BYTES_MAX: u64 = 4 << 10;
/// Error messages of a Rust program that runs out of memory: for infallible and for fallible
/// allocations.
const OUT_OF_MEMORY: [&str; 2] = ["memory allocation of", "out of memory"];
/// Keeps mimalloc from reserving address space in advance. It would reserve a gigabyte before the
/// child limits itself, and memory reserved before then does not count.
const NO_RESERVE: (&str, &str) = ("MIMALLOC_ARENA_RESERVE", "0");

/// Reads documents in child processes of this program.
#[derive(Debug, Clone)]
pub struct Sandbox {
    program: PathBuf,
    arguments: Vec<String>,
    timeout: Duration,
    /// Locked for writing by a child that must run alone.
    pub(super) beside: Arc<RwLock<()>>,
}

/// The reason a child gave no answer.
#[derive(Debug)]
enum ChildError {
    /// Killed after the timeout.
    TooSlow,
    /// Exited by itself or killed by the kernel.
    Ended(ExitStatus),
    /// Exceeded its memory limit.
    OutOfMemory,
    /// Could not be started, or a pipe failed.
    Failed(io::Error),
}

/// The outcome of a child.
#[derive(Debug)]
struct Exchange {
    /// Its complete output, if it arrived in time.
    answer: Option<io::Result<Vec<u8>>>,
    /// Its exit status, if it exited by itself.
    ended: Option<ExitStatus>,
    /// The start of its error output.
    last_words: String,
}

impl Sandbox {
    /// Children run `program` with `arguments`, which must lead to a call of [`super::serve_one`].
    pub fn new(program: PathBuf, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Self { program, arguments, timeout: TIMEOUT, beside: Arc::default() }
    }

    /// Children run the current program with `verb`. On Linux that is the same file, even if it has
    /// been replaced on disk since.
    pub fn of_this_program(verb: &str) -> Self {
        let own = std::env::current_exe().unwrap_or_else(|_| "lodestone".into());
        let program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { own };
        Self::new(program, &[verb])
    }

    /// Sets the time after which a child is killed.
    #[must_use]
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Runs a child and returns its answer and the bytes that follow.
    fn ask(&self, request: &Request, bytes: &[u8]) -> Result<(Answer, Vec<u8>), ChildError> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .env(NO_RESERVE.0, NO_RESERVE.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(ChildError::Failed)?;
        let Exchange { answer, ended, last_words } = self.exchange(&mut child, request, bytes)?;
        let mut answer = answer.ok_or(ChildError::TooSlow)?.map_err(ChildError::Failed)?;
        let mut parsed = serde_json::Deserializer::from_slice(&answer).into_iter();
        if let Some(Ok(found)) = parsed.next() {
            let behind = parsed.byte_offset();
            return Ok((found, answer.split_off(behind)));
        }
        Err(match ended {
            Some(_) if OUT_OF_MEMORY.iter().any(|words| last_words.contains(words)) => {
                ChildError::OutOfMemory
            }
            Some(status) => ChildError::Ended(status),
            None => ChildError::TooSlow,
        })
    }

    /// Runs a child, and once more if the first was lost to a possibly transient cause: a crash due
    /// to the machine, or too little memory for everything running.
    fn retried(&self, request: &Request, bytes: &[u8]) -> Result<(Answer, Vec<u8>), ChildError> {
        let shared = self.beside.read().unwrap_or_else(PoisonError::into_inner);
        let lost = match self.ask(request, bytes) {
            Err(error @ (ChildError::Ended(_) | ChildError::Failed(_))) => error,
            outcome => return outcome,
        };
        if lost.is_out_of_time() {
            return Err(lost);
        }
        let format = request.format.as_str();
        tracing::warn!(format, error = ?lost, "a parser process was lost");
        if !lost.is_killed() {
            return self.ask(request, bytes);
        }
        drop(shared);
        let _alone = self.beside.write().unwrap_or_else(PoisonError::into_inner);
        self.ask(request, bytes)
    }

    /// Sends the document and receives the complete output of the child.
    fn exchange(
        &self,
        child: &mut Child,
        request: &Request,
        bytes: &[u8],
    ) -> Result<Exchange, ChildError> {
        let mut input = child.stdin.take().expect("it was asked for");
        let output = child.stdout.take().expect("it was asked for");
        let mut errors = child.stderr.take().expect("it was asked for");
        std::thread::scope(|scope| {
            scope.spawn(move || {
                // A child that exits early closes the pipe; its answer gives the reason.
                let request = serde_json::to_vec(request).unwrap_or_default();
                let sent = input.write_all(&request).and_then(|()| input.write_all(b"\n"));
                let _ = sent.and_then(|()| input.write_all(bytes));
            });
            let (send, receive) = mpsc::channel();
            scope.spawn(move || {
                let mut answer = Vec::new();
                let read = output.take(ANSWER_BYTES_MAX).read_to_end(&mut answer);
                let _ = send.send(read.map(|_| answer));
            });
            let errors = scope.spawn(move || {
                let mut words = Vec::new();
                let _ = errors.by_ref().take(LAST_WORDS_BYTES_MAX).read_to_end(&mut words);
                // The rest is read as well, so that the child does not block on writing.
                let _ = io::copy(&mut errors, &mut io::sink());
                String::from_utf8_lossy(&words).into_owned()
            });
            let answer = receive.recv_timeout(self.timeout).ok();
            // The threads end when the child closes its pipes, so it must have exited by then.
            let exit_timeout = if answer.is_some() { EXIT_TIMEOUT.min(self.timeout) } else { NONE };
            let ended = child.wait_timeout(exit_timeout).unwrap_or_default();
            if ended.is_none() {
                child.kill().and_then(|()| child.wait()).map_err(ChildError::Failed)?;
            }
            let last_words = errors.join().unwrap_or_default();
            Ok(Exchange { answer, ended, last_words })
        })
    }

    /// Like [`Self::retried`], with an error for the caller.
    fn answer(&self, request: &Request, bytes: &[u8]) -> Result<(Answer, Vec<u8>), ExtractError> {
        let error = match self.retried(request, bytes) {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let format = request.format;
        tracing::warn!(format = format.as_str(), ?error, "a parser process gave no answer");
        let format = format.as_str();
        Err(match error {
            ChildError::Failed(error) => ExtractError::NoParser { problem: error.to_string() },
            ChildError::OutOfMemory => ExtractError::OutOfMemory { format },
            error if error.is_out_of_time() => ExtractError::TooSlow { format },
            error if error.is_killed() => ExtractError::Killed { format },
            _ => ExtractError::Crashed { format },
        })
    }
}

impl Parser for Sandbox {
    /// Reads in a child process.
    fn parse(&self, format: Format, bytes: &[u8]) -> Parsed {
        if format.is_plain() {
            return InProcess.parse(format, bytes);
        }
        self.answer(&Request { format, drawing: None }, bytes)?.0.into_text()
    }

    /// Renders in a child process.
    fn draw(&self, format: Format, bytes: &[u8], drawing: &Drawing) -> Drawn {
        if format != Format::Pdf {
            return Err(ExtractError::NoPages { format: format.as_str() });
        }
        let request = Request { format, drawing: Some(drawing.clone()) };
        let sandbox = self.clone().with_timeout(self.timeout.min(DRAWING_TIMEOUT));
        let page = drawing.page;
        let not_drawn = |problem| ExtractError::NotDrawn { page, problem };
        let (answer, picture) = sandbox.answer(&request, bytes).map_err(|error| match error {
            ExtractError::TooSlow { .. } => not_drawn("it takes longer than 10 seconds"),
            ExtractError::Crashed { .. } => not_drawn("the renderer crashes on it"),
            error => error,
        })?;
        answer.into_picture(picture)
    }
}

impl ChildError {
    fn is_out_of_time(&self) -> bool {
        matches!(self, Self::TooSlow) || self.signal() == Some(libc::SIGXCPU)
    }

    /// Whether it was killed by someone else: the kernel does so when out of memory.
    fn is_killed(&self) -> bool {
        self.signal() == Some(libc::SIGKILL)
    }

    /// The signal that ended it.
    fn signal(&self) -> Option<i32> {
        match self {
            #[cfg(unix)]
            Self::Ended(status) => std::os::unix::process::ExitStatusExt::signal(status),
            _ => None,
        }
    }
}
