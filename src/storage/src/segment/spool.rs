//! Buffers for bytes that are produced before their position in a file is known.

use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

use crate::segment::row_feed::Scratch;

/// Most bytes held in memory; beyond them everything moves to a file.
const MEMORY_BYTES_MAX: usize = 8 << 20;

/// A buffer that starts in memory and spills to an unnamed temporary file once it is large.
pub(super) struct Spool<'a> {
    scratch: &'a Scratch<'a>,
    memory: Vec<u8>,
    file: Option<BufWriter<File>>,
}

impl<'a> Spool<'a> {
    pub(super) fn new(scratch: &'a Scratch<'a>) -> Self {
        Self { scratch, memory: Vec::new(), file: None }
    }

    /// Copies everything written so far to `out`.
    pub(super) fn copy_to(self, out: &mut dyn Write) -> io::Result<()> {
        let Some(file) = self.file else { return out.write_all(&self.memory) };
        let mut file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        io::copy(&mut file, out).map(|_| ())
    }
}

impl Write for Spool<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            return file.write(bytes);
        }
        self.memory.extend_from_slice(bytes);
        if self.memory.len() > MEMORY_BYTES_MAX {
            let mut file = BufWriter::new((self.scratch)()?);
            file.write_all(&std::mem::take(&mut self.memory))?;
            self.file = Some(file);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_bytes_go_to_a_file_and_come_back() {
        let made = std::cell::Cell::new(0);
        let scratch = || {
            made.set(made.get() + 1);
            tempfile::tempfile()
        };
        for (pieces, files) in [(0_u32, 0), (1000, 0), (3000, 1)] {
            made.set(0);
            let mut spool = Spool::new(&scratch);
            let mut expected = Vec::new();
            for piece in 0..pieces {
                let bytes = [piece.to_le_bytes(); 1024].concat();
                spool.write_all(&bytes).unwrap();
                expected.extend(bytes);
            }
            let mut out = Vec::new();
            spool.copy_to(&mut out).unwrap();
            assert!(out == expected, "{pieces} pieces");
            assert_eq!(made.get(), files);
        }
    }
}
