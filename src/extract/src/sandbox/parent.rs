//! Children from the outside: spawned, fed, waited for, killed.

use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use wait_timeout::ChildExt;

use crate::sandbox::{Answer, Parser, Request};
use crate::{ExtractError, Format, extract};
use lodestone_types::Extracted;

/// Time that a child may take in all; its CPU time is limited by itself.
const PATIENCE: Duration = Duration::from_secs(60);
/// Time between closing its output and its end.
const FAREWELL: Duration = Duration::from_secs(2);
const NONE: Duration = Duration::ZERO;
/// Bytes of an answer: the text at its largest, escaped, with its structure.
const ANSWER_BYTES_MAX: u64 = 256 << 20;

/// Reads documents in children of this program.
#[derive(Debug, Clone)]
pub struct Sandbox {
    program: PathBuf,
    arguments: Vec<String>,
    patience: Duration,
}

/// MiB to which one stream of a PDF may unfold: its library asks the environment, and would let
/// 256 pass, which with what it copies is more than a child has.
const PDF_STREAM_MIB: (&str, &str) = ("PDF_OXIDE_MAX_DECOMPRESS_MB", "64");

/// How a child ended that gave no answer.
#[derive(Debug)]
enum Lost {
    /// It was killed for its time.
    TooSlow,
    /// It ended by itself, or by the kernel.
    Ended(ExitStatus),
    /// It could not be started or spoken with.
    Failed(io::Error),
}

/// What came of a child.
#[derive(Debug)]
struct Conversation {
    /// All that it wrote, if it did so in time.
    answer: Option<io::Result<Vec<u8>>>,
    /// How it ended, if by itself.
    ended: Option<ExitStatus>,
}

impl Sandbox {
    /// Children run `program` with `arguments`, which must end in a call of
    /// [`super::serve_one`].
    pub fn new(program: PathBuf, arguments: &[&str]) -> Self {
        let arguments = arguments.iter().map(|word| (*word).to_owned()).collect();
        Self { program, arguments, patience: PATIENCE }
    }

    /// Children of the program that is running, under `verb`. On Linux that is the very file, even
    /// if another has taken its name since.
    pub fn of_this_program(verb: &str) -> Self {
        let own = std::env::current_exe().unwrap_or_else(|_| "lodestone".into());
        let program = if cfg!(target_os = "linux") { "/proc/self/exe".into() } else { own };
        Self::new(program, &[verb])
    }

    /// With another time to wait.
    #[must_use]
    pub fn with_patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    fn ask(&self, format: Format, bytes: &[u8]) -> Result<Answer, Lost> {
        let mut child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .env(PDF_STREAM_MIB.0, PDF_STREAM_MIB.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(Lost::Failed)?;
        let Conversation { answer, ended } = self.converse(&mut child, format, bytes)?;
        let answer = answer.ok_or(Lost::TooSlow)?.map_err(Lost::Failed)?;
        serde_json::from_slice(&answer).map_err(|_| ended.map_or(Lost::TooSlow, Lost::Ended))
    }

    /// Sends the document and receives everything that the child writes.
    fn converse(
        &self,
        child: &mut Child,
        format: Format,
        bytes: &[u8],
    ) -> Result<Conversation, Lost> {
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
            let answer = receive.recv_timeout(self.patience).ok();
            // Both threads end with the child's ends of the pipes: it must be gone behind here.
            let farewell = if answer.is_some() { FAREWELL.min(self.patience) } else { NONE };
            let ended = child.wait_timeout(farewell).unwrap_or_default();
            if ended.is_none() {
                child.kill().and_then(|()| child.wait()).map_err(Lost::Failed)?;
            }
            Ok(Conversation { answer, ended })
        })
    }
}

impl Parser for Sandbox {
    /// A child that breaks down is given a second try: it may have been the machine.
    fn parse(&self, format: Format, bytes: &[u8]) -> Result<Extracted, ExtractError> {
        if format.is_plain() {
            return extract(format, bytes);
        }
        let mut lost = None;
        for _ in 0..2 {
            match self.ask(format, bytes) {
                Ok(answer) => return answer.into_result(),
                Err(how) => {
                    let is_final = matches!(how, Lost::TooSlow) || how.is_out_of_time();
                    tracing::warn!(format = format.as_str(), ?how, "a parser gave no answer");
                    lost = Some(how);
                    if is_final {
                        break;
                    }
                }
            }
        }
        Err(match lost.expect("the loop ran") {
            Lost::Failed(error) => ExtractError::NoParser { problem: error.to_string() },
            how if how.is_out_of_time() => ExtractError::TooSlow { format: format.as_str() },
            _ => ExtractError::BrokeDown { format: format.as_str() },
        })
    }
}

impl Lost {
    fn is_out_of_time(&self) -> bool {
        match self {
            Self::TooSlow => true,
            #[cfg(unix)]
            Self::Ended(status) => {
                use std::os::unix::process::ExitStatusExt;
                // Past the limit the kernel sends SIGXCPU, and SIGKILL where both limits are one.
                status
                    .signal()
                    .is_some_and(|signal| [libc::SIGXCPU, libc::SIGKILL].contains(&signal))
            }
            _ => false,
        }
    }
}
