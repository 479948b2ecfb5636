//! Cores for the parts of an answer by a generator that keep one busy.

use std::any::Any;
use std::ops::ControlFlow;

use crate::app::App;
use crate::error::ApiError;
use lodestone_engine::TenantAccess;
use lodestone_engine::qna::{AnswerSink, QnaAnswer, QnaRequest};
use lodestone_types::RequestContext;

/// Lets the engine answer a question. Beside a generator, it reranks, and extracts an answer that
/// the generator failed to write, with the permit that answers without a generator take.
pub(super) fn answer(
    app: &App,
    access: &TenantAccess,
    request: &QnaRequest,
    sink: Option<AnswerSink<'_>>,
) -> Result<QnaAnswer, ApiError> {
    let mut refused = None;
    let mut turn = |context: &RequestContext| match app.core_permit(context, access) {
        Ok(permit) => ControlFlow::Continue(Box::new(permit) as Box<dyn Any>),
        Err(error) => {
            refused = Some(error);
            ControlFlow::Break(())
        }
    };
    let answer = app.engine.qna(access, request, sink, &mut turn);
    answer.map_err(|error| refused.unwrap_or_else(|| error.into()))
}
