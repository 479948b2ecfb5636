//! Parser of `/chat/completions` replies, as a stream of events or a single JSON body.

use std::io::Read;
use std::ops::ControlFlow;

use serde::Deserialize;
use serde_json::Value;

use crate::generate::events::{EVENT_BYTES_MAX, EventReader};
use crate::generate::thinking::Thinking;
use crate::generate::{CALLS_MAX, Ended, GenerateError, Tell, ToolCall, Usage};

/// Maximum number of bytes in a reply, including framing and reasoning.
const REPLY_BYTES_MAX: usize = 8 << 20;
/// Maximum number of bytes in the text and tool arguments of a reply.
const TEXT_BYTES_MAX: usize = 256 << 10;
const BUFFER_BYTES: usize = 16 << 10;

/// A piece of a reply, or all of it.
#[derive(Debug, Deserialize)]
struct Piece {
    #[serde(default)]
    choices: Vec<Choice>,
    usage: Option<Counted>,
    error: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    #[serde(alias = "message")]
    delta: Option<Said>,
    finish_reason: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Said {
    content: Option<Value>,
    tool_calls: Option<Vec<CallPiece>>,
}

/// A piece of a tool call, or all of it.
#[derive(Debug, Deserialize)]
struct CallPiece {
    /// Position among the calls of the reply; some servers omit it for complete calls.
    index: Option<usize>,
    id: Option<String>,
    #[serde(default)]
    function: FunctionPiece,
}

#[derive(Debug, Default, Deserialize)]
struct FunctionPiece {
    name: Option<String>,
    arguments: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Counted {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

/// State of a reply being read.
struct Progress<'a> {
    tell: Tell<'a>,
    thinking: Thinking,
    text_bytes: usize,
    ended: Ended,
    is_done: bool,
}

/// Reads a reply to its end. `explain` interprets an I/O error of the body.
pub(super) fn read(
    mut body: impl Read,
    is_stream: bool,
    explain: &dyn Fn(&std::io::Error) -> GenerateError,
    tell: Tell<'_>,
) -> Result<Ended, GenerateError> {
    let mut progress = Progress {
        tell,
        thinking: Thinking::default(),
        text_bytes: 0,
        ended: Ended::default(),
        is_done: false,
    };
    let mut events = EventReader::default();
    let mut whole = Vec::new();
    let mut buffer = [0; BUFFER_BYTES];
    let mut bytes_left = REPLY_BYTES_MAX;
    while !progress.is_done {
        let count = match body.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(explain(&error)),
        };
        let too_long = GenerateError::TooLong { bytes_max: REPLY_BYTES_MAX };
        bytes_left = bytes_left.checked_sub(count).ok_or(too_long)?;
        if is_stream {
            let too_long = |_| GenerateError::TooLong { bytes_max: EVENT_BYTES_MAX };
            for event in events.push(&buffer[..count]).map_err(too_long)? {
                progress.event(&event)?;
            }
        } else {
            whole.extend_from_slice(&buffer[..count]);
        }
    }
    if !is_stream {
        progress.event(&whole)?;
    } else if !progress.is_done
        && let Some(event) = events.finish()
    {
        progress.event(&event)?;
    }
    progress.finish()
}

impl Progress<'_> {
    fn event(&mut self, data: &[u8]) -> Result<(), GenerateError> {
        if self.is_done {
            return Ok(());
        }
        if data == b"[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        let piece: Piece = serde_json::from_slice(data)
            .map_err(|error| broken(&format!("an event is not what it should be: {error}")))?;
        if piece.error.is_some_and(|error| !error.is_null()) {
            return Err(broken("it ends with an error of the generator's own"));
        }
        if let Some(Counted { prompt_tokens, completion_tokens }) = piece.usage {
            let usage = Usage { input_tokens: prompt_tokens, output_tokens: completion_tokens };
            self.ended.usage = Some(usage);
        }
        for choice in piece.choices.into_iter().filter(|choice| choice.index == 0) {
            if let Some(Said { content, tool_calls }) = choice.delta {
                if let Some(text) = content.as_ref().and_then(Value::as_str) {
                    let text = self.thinking.push(text);
                    self.say(&text)?;
                }
                tool_calls.into_iter().flatten().try_for_each(|piece| self.call(piece))?;
            }
            self.ended.finish_reason = choice.finish_reason.or(self.ended.finish_reason.take());
        }
        Ok(())
    }

    /// Merges a piece of a tool call.
    fn call(&mut self, piece: CallPiece) -> Result<(), GenerateError> {
        let FunctionPiece { name, arguments } = piece.function;
        let calls = &mut self.ended.tool_calls;
        // Without an index, a piece with a name begins a call, and any other continues the last
        // one.
        let at = piece.index.unwrap_or(match &name {
            Some(_) => calls.len(),
            None => calls.len().saturating_sub(1),
        });
        if at > calls.len() || at >= CALLS_MAX {
            return Err(broken("a call of a tool is out of place"));
        }
        if at == calls.len() {
            calls.push(ToolCall::default());
        }
        let arguments = arguments.unwrap_or_default();
        self.text_bytes += arguments.len();
        if self.text_bytes > TEXT_BYTES_MAX {
            return Err(GenerateError::TooLong { bytes_max: TEXT_BYTES_MAX });
        }
        let call = &mut calls[at];
        call.arguments.push_str(&arguments);
        for (member, told) in [(&mut call.id, piece.id), (&mut call.name, name)] {
            if let Some(told) = told.filter(|told| !told.is_empty()) {
                *member = told;
            }
        }
        Ok(())
    }

    fn say(&mut self, text: &str) -> Result<(), GenerateError> {
        self.text_bytes += text.len();
        if self.text_bytes > TEXT_BYTES_MAX {
            return Err(GenerateError::TooLong { bytes_max: TEXT_BYTES_MAX });
        }
        if text.is_empty() {
            return Ok(());
        }
        match (self.tell)(text) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(GenerateError::Cancelled),
        }
    }

    fn finish(mut self) -> Result<Ended, GenerateError> {
        let held = std::mem::take(&mut self.thinking).finish();
        self.say(&held)?;
        if self.ended.tool_calls.iter().any(|call| call.name.is_empty() || call.id.is_empty()) {
            return Err(broken("a call of a tool lacks its name or its id"));
        }
        // A lost connection looks like the end of the stream; only an explicit end counts.
        match self.is_done || self.ended.finish_reason.is_some() {
            true => Ok(self.ended),
            false => Err(broken("it ends in the middle")),
        }
    }
}

fn broken(problem: &str) -> GenerateError {
    GenerateError::Broken { problem: problem.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(body: &[u8], is_stream: bool) -> (String, Result<Ended, GenerateError>) {
        let mut text = String::new();
        let lost = |_: &std::io::Error| broken("lost");
        let ended = read(body, is_stream, &lost, &mut |piece| {
            text.push_str(piece);
            ControlFlow::Continue(())
        });
        (text, ended)
    }

    #[test]
    fn a_stream_is_read_to_its_end() {
        let body = b": hello\n\n\
            data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":null}}]}\n\n\
            data: {\"choices\":[{\"delta\":{\"content\":\"It is\"}}],\"usage\":null}\n\n\
            data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"other\"}}]}\n\n\
            data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\" blue\"}}]}\n\n\
            data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":3}}\n\n\
            data: [DONE]\n\ndata: nonsense\n\n";
        let (text, ended) = run(body, true);
        let ended = ended.unwrap();
        assert_eq!(text, "It is blue");
        assert_eq!(ended.usage, Some(Usage { input_tokens: 5, output_tokens: 3 }));
        assert_eq!(ended.finish_reason.as_deref(), Some("length"));
        let end = body.len() - 70;
        let cut = body[..end].iter().rposition(|byte| *byte == b'{').unwrap();
        assert!(matches!(run(&body[..cut], true).1, Err(GenerateError::Broken { .. })));
    }

    #[test]
    fn plain_json_and_errors_are_understood() {
        let body = br#"{"choices":[{"message":{"role":"assistant","content":"Yes."},
            "finish_reason":"stop"}]}"#;
        let (text, ended) = run(body, false);
        assert_eq!((text.as_str(), ended.is_ok()), ("Yes.", true));
        for wrong in [
            &b"data: {\"error\":{\"message\":\"out of memory\"}}\n\n"[..],
            b"data: {\"choices\":\n\n",
            b"data: {\"choices\":[{\"delta\":{\"content\":\"half\"}}]}\n\n",
            b"",
        ] {
            let broken = run(wrong, true).1;
            assert!(matches!(broken, Err(GenerateError::Broken { .. })), "{broken:?}");
        }
    }

    #[test]
    fn breaking_off_and_bounds_end_a_reply() {
        let piece = format!(
            "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{}\"}}}}]}}\n\n",
            "x".repeat(1000)
        );
        let body = piece.repeat(TEXT_BYTES_MAX / 1000 + 1);
        let lost = |_: &std::io::Error| broken("lost");
        let mut told = 0;
        let ended = read(body.as_bytes(), true, &lost, &mut |_| {
            told += 1;
            ControlFlow::Break(())
        });
        assert_eq!((ended, told), (Err(GenerateError::Cancelled), 1));
        assert!(matches!(run(body.as_bytes(), true).1, Err(GenerateError::TooLong { .. })));
    }
}
