//! Answers that are extracted because the generator failed to write them.

use std::ops::ControlFlow;

use crate::app::App;
use crate::error::ApiError;
use lodestone_engine::TenantAccess;
use lodestone_engine::qna::{AnswerSink, QnaAnswer, QnaRequest};
use lodestone_types::RequestContext;

/// Lets the engine answer a question. If the generator fails, the engine extracts the answer with
/// the permit that answers without a generator take.
pub(super) fn answer(
    app: &App,
    access: &TenantAccess,
    request: &QnaRequest,
    sink: Option<AnswerSink<'_>>,
) -> Result<QnaAnswer, ApiError> {
    let (mut permit, mut refused) = (None, None);
    let mut turn = |context: &RequestContext| match app.extraction_permit(context, access) {
        Ok(given) => {
            permit = Some(given);
            ControlFlow::Continue(())
        }
        Err(error) => {
            refused = Some(error);
            ControlFlow::Break(())
        }
    };
    let answer = app.engine.qna(access, request, sink, &mut turn);
    drop(permit);
    answer.map_err(|error| refused.unwrap_or_else(|| error.into()))
}
