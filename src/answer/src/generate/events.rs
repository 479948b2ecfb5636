//! Parser of server-sent events: turns bytes in pieces of any size into the data of complete
//! events.
//!
//! The other parts of the format (names, ids, retry times, keep-alive comments) are ignored.

/// Maximum number of bytes in an event.
pub(super) const EVENT_BYTES_MAX: usize = 256 << 10;

/// Error for an event longer than [`EVENT_BYTES_MAX`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventTooLong;

/// Bytes that do not form a complete event yet.
#[derive(Debug, Default)]
pub(super) struct EventReader {
    line: Vec<u8>,
    data: Option<Vec<u8>>,
    /// Whether the last byte was a carriage return; a line feed after it is part of the same line
    /// end.
    has_returned: bool,
}

impl EventReader {
    /// Feeds the next bytes and returns the data of each event they complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, EventTooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let ends_return = std::mem::replace(&mut self.has_returned, byte == b'\r');
            match byte {
                b'\n' if ends_return => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                _ => self.line.push(byte),
            }
            let held = self.line.len() + self.data.as_ref().map_or(0, Vec::len);
            if held > EVENT_BYTES_MAX {
                return Err(EventTooLong);
            }
        }
        Ok(events)
    }

    /// Ends the stream and returns its last event. The final empty line is optional, as some
    /// servers omit it.
    pub(super) fn finish(mut self) -> Option<Vec<u8>> {
        let _ = self.end_line();
        self.data
    }

    /// Ends a line; an empty line ends an event.
    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&line);
        if line.is_empty() {
            return self.data.take();
        }
        let value = line.strip_prefix(b"data:")?;
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &[u8] = b"\xEF\xBB\xBFdata: {\"a\":\ndata: \"\xC3\xA4\"}\n\n: keep-alive\n\n\
        event: x\r\nid: 7\r\ndata:two\r\n\r\ndata: three\r\rretry: 5\n\ndata: [DONE]";

    fn read(pieces: &[&[u8]]) -> Vec<String> {
        let mut reader = EventReader::default();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(reader.push(piece).unwrap());
        }
        events.extend(reader.finish());
        events.into_iter().map(|event| String::from_utf8(event).unwrap()).collect()
    }

    #[test]
    fn any_cut_gives_the_same_events() {
        let whole = ["{\"a\":\n\"ä\"}", "two", "three", "[DONE]"];
        assert_eq!(read(&[STREAM]), whole);
        for cut in 0..=STREAM.len() {
            assert_eq!(read(&[&STREAM[..cut], &STREAM[cut..]]), whole, "cut at {cut}");
        }
        let bytes: Vec<&[u8]> = STREAM.chunks(1).collect();
        assert_eq!(read(&bytes), whole);
    }

    #[test]
    fn an_endless_event_is_refused() {
        let mut reader = EventReader::default();
        let block = [b'x'; 4096];
        let refused = (0..=EVENT_BYTES_MAX / block.len()).any(|_| reader.push(&block).is_err());
        assert!(refused);
    }
}
