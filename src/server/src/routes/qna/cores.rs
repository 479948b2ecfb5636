//! Permits of questions, and cores for the parts of an answer by a generator that keep one busy.

use std::any::Any;
use std::ops::ControlFlow;

use super::Asked;
use crate::app::App;
use crate::error::ApiError;
use crate::fair_queue::RunPermit;
use lodestone_engine::TenantAccess;
use lodestone_engine::qna::{AnswerSink, QnaAnswer, QnaRequest};
use lodestone_types::{CollectionId, RequestContext};

/// Waits for the permit that a question takes before its search: to answer it, or to rerank if no
/// answer is wanted; `None` for a plain search.
pub(super) async fn permit(
    asked: &Asked,
    access: &TenantAccess,
) -> Result<Option<RunPermit<CollectionId>>, ApiError> {
    let Asked { app, call, input, context } = asked;
    Ok(match input.ai_generation {
        true => Some(app.answer_permit(call, context, access).await?),
        false if app.reranks(input.request.mode) => {
            Some(app.run_permit(call, context, access).await?)
        }
        false => None,
    })
}

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
