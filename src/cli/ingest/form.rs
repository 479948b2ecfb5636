//! A multipart form that is read from disk while it is sent, without holding files in memory.

use std::fs::File;
use std::io::{self, Cursor, Read, Take};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::plan::Stamp;

/// Boundary prefix that no sensible document contains. If a file contains it anyway, only its own
/// batch fails, because every form appends a number of its own.
const BOUNDARY: &str = "lodestone-ingest-7d1f0c52b8e94a36";

/// An open file, with its size and time at opening.
#[derive(Debug)]
pub struct OpenFile {
    /// The file, positioned at its beginning.
    pub file: File,
    /// The file name to send to the server.
    pub filename: String,
    /// Size and time at opening, which determine what is sent and recorded in the state file.
    pub stamp: Stamp,
}

/// A local error while a form was read.
#[derive(Debug)]
pub struct ReadError {
    /// Position of the file in the form.
    pub index: usize,
    /// Description of the error.
    pub problem: String,
}

/// One form: text parts, then files.
#[derive(Debug)]
pub struct Form {
    texts: Vec<u8>,
    files: Vec<(Vec<u8>, OpenFile)>,
    end: Vec<u8>,
    boundary: String,
    error: Mutex<Option<ReadError>>,
}

impl Form {
    /// Creates a form of `texts` (name, value) and of files in the field `files`; `number` makes
    /// its boundary unique.
    pub fn new(texts: &[(&str, String)], files: Vec<OpenFile>, number: u64) -> Self {
        let boundary = format!("{BOUNDARY}-{number}");
        let mut head = String::new();
        for (name, value) in texts {
            head += &format!("--{boundary}\r\ncontent-disposition: form-data; name=\"{name}\"");
            head += &format!("\r\n\r\n{value}\r\n");
        }
        let with_head = |(index, file): (usize, OpenFile)| {
            // The line break before a boundary is part of the boundary, not of the preceding file.
            let line = if index == 0 { "" } else { "\r\n" };
            let name = quoted(&file.filename);
            let head = format!(
                "{line}--{boundary}\r\ncontent-disposition: form-data; name=\"files\"; \
                 filename=\"{name}\"\r\ncontent-type: application/octet-stream\r\n\r\n"
            );
            (head.into_bytes(), file)
        };
        let end = format!("\r\n--{boundary}--\r\n").into_bytes();
        let files = files.into_iter().enumerate().map(with_head).collect();
        Self { texts: head.into_bytes(), files, end, boundary, error: Mutex::new(None) }
    }

    /// Returns the `content-type` header of the form.
    pub fn content_type(&self) -> String {
        format!("multipart/form-data; boundary={}", self.boundary)
    }

    /// Returns the length of the whole form in bytes.
    pub fn content_length(&self) -> u64 {
        let parts = self.files.iter().map(|(head, file)| head.len() as u64 + file.stamp.bytes);
        self.texts.len() as u64 + parts.sum::<u64>() + self.end.len() as u64
    }

    /// Takes the local error that occurred while the form was read.
    pub fn take_error(&self) -> Option<ReadError> {
        self.error.lock().take()
    }

    /// Whether a local error occurred.
    pub fn has_fault(&self) -> bool {
        self.error.lock().is_some()
    }

    /// Returns a reader of the form from its beginning; `read_bytes` counts what it reads. A form
    /// may have only one reader at a time, because readers share the file positions.
    ///
    /// # Errors
    /// If a file cannot be rewound.
    pub fn reader<'a>(&'a self, read_bytes: &'a AtomicU64) -> io::Result<FormReader<'a>> {
        let mut pieces = vec![Piece::Text(Cursor::new(&self.texts))];
        for (index, (head, open)) in self.files.iter().enumerate() {
            io::Seek::rewind(&mut &open.file)?;
            pieces.push(Piece::Text(Cursor::new(head)));
            pieces.push(Piece::File { index, rest: (&open.file).take(open.stamp.bytes) });
        }
        pieces.push(Piece::Text(Cursor::new(&self.end)));
        pieces.reverse();
        Ok(FormReader { form: self, pieces, read_bytes })
    }
}

/// Escapes a file name as browsers do. A backslash is replaced, because servers treat what follows
/// it as the whole name.
fn quoted(name: &str) -> String {
    let mut quoted = String::with_capacity(name.len());
    for character in name.chars() {
        match character {
            '"' => quoted.push_str("%22"),
            character if character.is_control() || character == '\\' => quoted.push('_'),
            character => quoted.push(character),
        }
    }
    quoted
}

#[derive(Debug)]
enum Piece<'a> {
    Text(Cursor<&'a Vec<u8>>),
    File { index: usize, rest: Take<&'a File> },
}

/// Reads a form piece by piece.
#[derive(Debug)]
pub struct FormReader<'a> {
    form: &'a Form,
    /// Pieces still to be read, in reverse order.
    pieces: Vec<Piece<'a>>,
    read_bytes: &'a AtomicU64,
}

impl Read for FormReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while let Some(piece) = self.pieces.last_mut() {
            let (read, error) = match piece {
                Piece::Text(text) => (text.read(buffer), None),
                Piece::File { index, rest } => {
                    let read = rest.read(buffer);
                    // The length was already announced, so a file that ends early cannot be sent.
                    let read = match read {
                        Ok(0) if rest.limit() > 0 => {
                            Err(io::Error::other("it was truncated while being read"))
                        }
                        read => read,
                    };
                    (read, Some(*index))
                }
            };
            match (read, error) {
                (Ok(0), _) => drop(self.pieces.pop()),
                (Ok(count), _) => {
                    self.read_bytes.fetch_add(count as u64, Ordering::Relaxed);
                    return Ok(count);
                }
                (Err(error), index) if error.kind() != io::ErrorKind::Interrupted => {
                    if let Some(index) = index {
                        let problem = error.to_string();
                        *self.form.error.lock() = Some(ReadError { index, problem });
                    }
                    return Err(error);
                }
                (Err(error), _) => return Err(error),
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(dir: &std::path::Path, name: &str, content: &[u8]) -> OpenFile {
        let path = dir.join("file");
        std::fs::write(&path, content).unwrap();
        let file = File::open(&path).unwrap();
        let stamp = Stamp { bytes: content.len() as u64, mtime_ns: 0 };
        OpenFile { file, filename: name.into(), stamp }
    }

    #[test]
    fn a_form_is_as_long_as_it_says_and_can_be_read_twice() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let files = vec![open(one.path(), "a \"b\\.txt", b"hello"), open(two.path(), "empty", b"")];
        let form = Form::new(&[("file_ids", "[\"a\"]".into())], files, 7);
        let count = AtomicU64::new(0);
        for turn in 1..=2 {
            let mut text = String::new();
            form.reader(&count).unwrap().read_to_string(&mut text).unwrap();
            assert_eq!(text.len() as u64, form.content_length());
            assert_eq!(count.load(Ordering::Relaxed), turn * form.content_length());
            let boundary = format!("--{BOUNDARY}-7");
            let parts: Vec<&str> = text.split(&boundary).collect();
            assert_eq!(parts.len(), 5, "{text}");
            assert!(parts[1].ends_with("name=\"file_ids\"\r\n\r\n[\"a\"]\r\n"), "{text}");
            assert!(
                parts[2].contains("filename=\"a %22b_.txt\"") && parts[2].ends_with("hello\r\n")
            );
            assert!(parts[3].ends_with("\r\n\r\n\r\n"), "{text}");
            assert_eq!(parts[4], "--\r\n");
        }
    }

    #[test]
    fn a_file_that_shrinks_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = open(dir.path(), "a", b"hello");
        file.stamp.bytes = 6;
        let form = Form::new(&[], vec![file], 0);
        let count = AtomicU64::new(0);
        let mut bytes = Vec::new();
        form.reader(&count).unwrap().read_to_end(&mut bytes).unwrap_err();
        let error = form.take_error().unwrap();
        assert_eq!(error.index, 0);
        assert!(error.problem.contains("truncated"), "{}", error.problem);
        assert!(form.take_error().is_none());
    }
}
