//! Tracing spans for the stages of the pipelines.

/// Opens a span that lasts as long as the returned guard. Its target keeps it out of the log, and
/// without a trace collector it costs one comparison.
macro_rules! stage {
    ($name:literal $(, $field:ident = $value:expr)*) => {
        tracing::info_span!(target: "lodestone_stage", $name $(, $field = $value)*).entered()
    };
}

pub(crate) use stage;
