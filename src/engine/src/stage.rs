//! Stages of the pipelines as spans, for traces.

/// A span that lasts as long as the value that it gives. The log never shows it, and where no
/// traces are collected it costs a comparison.
macro_rules! stage {
    ($name:literal $(, $field:ident = $value:expr)*) => {
        tracing::info_span!(target: "lodestone_stage", $name $(, $field = $value)*).entered()
    };
}

pub(crate) use stage;
