//! The child process: confines itself, reads one document and writes one answer.

use std::io::{self, BufRead, Read, Write};

use crate::sandbox::confine::confine;
use crate::sandbox::{Answer, InProcess, Parser, Request};

/// Maximum bytes of the request line: a page to render has at most a few hundred highlights.
const REQUEST_BYTES_MAX: u64 = 64 << 10;
/// Maximum bytes of a document; uploads are limited to far less.
const DOCUMENT_BYTES_MAX: u64 = 256 << 20;

/// Drops every privilege a parser does not need, reads a document from standard input and writes
/// its text, or the image of a page, to standard output.
///
/// # Errors
/// Errors of the pipes, a malformed request, or a kernel that refuses to confine the process.
pub fn serve_one() -> io::Result<()> {
    confine()?;
    let mut input = io::stdin().lock();
    let mut line = Vec::new();
    input.by_ref().take(REQUEST_BYTES_MAX).read_until(b'\n', &mut line)?;
    let request: Request = serde_json::from_slice(&line)?;
    let mut document = Vec::new();
    input.take(DOCUMENT_BYTES_MAX).read_to_end(&mut document)?;
    let Request { format, drawing } = request;
    let (answer, picture) = match drawing {
        None => (Answer::of_text(InProcess.parse(format, &document)), Vec::new()),
        Some(drawing) => Answer::of_picture(InProcess.draw(format, &document, &drawing)),
    };
    let mut output = io::BufWriter::new(io::stdout().lock());
    serde_json::to_writer(&mut output, &answer)?;
    output.write_all(&picture)?;
    output.flush()
}
