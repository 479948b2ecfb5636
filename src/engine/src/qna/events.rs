//! Events of an answer for its caller while it is made, and the cores it asks for.

use std::any::Any;
use std::ops::ControlFlow;

use super::Grounds;
use crate::EngineError;
use lodestone_answer::generate::GenerateError;
use lodestone_answer::{AnswerSource, deltas};
use lodestone_types::RequestContext;

/// An event while an answer is being made: one `Start`, then one `Sources`, then any number of
/// `Token`.
#[derive(Debug)]
pub enum AnswerEvent<'a> {
    /// The search is done. Contains the model that will write the answer, if one is wanted.
    Start(Option<&'a str>),
    /// The sources of the answer, in the order of their numbers.
    Sources(&'a Grounds, &'a [AnswerSource]),
    /// The next piece of the text. At most [`lodestone_answer::DELTAS_MAX`] pieces, unless a
    /// generator writes.
    Token(&'a str),
}

/// Receives the events of an answer; returning `Break` cancels the work.
pub type AnswerSink<'a> = &'a mut dyn FnMut(AnswerEvent<'_>) -> ControlFlow<()>;

/// Blocks until work beside the generator may keep a core busy: reranking, or extracting an answer
/// that the generator failed to write. The core is given back when the returned value is dropped;
/// `Break` cancels the work. The context has the time limit that holds from here on.
pub type CoreTurn<'a> = &'a mut dyn FnMut(&RequestContext) -> ControlFlow<(), Box<dyn Any>>;

/// Sends a complete text in pieces.
pub(super) fn tell_text(sink: AnswerSink<'_>, text: &str) -> Result<(), EngineError> {
    deltas(text).iter().try_for_each(|piece| told(sink(AnswerEvent::Token(piece))))
}

/// Converts a break of the sink or of a turn to an error.
pub(super) fn told<T>(flow: ControlFlow<(), T>) -> Result<T, EngineError> {
    match flow {
        ControlFlow::Continue(value) => Ok(value),
        ControlFlow::Break(()) => Err(GenerateError::Cancelled.into()),
    }
}
