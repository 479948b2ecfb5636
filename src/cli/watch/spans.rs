//! A `tracing` layer that converts spans of requests and stages into finished spans.
//!
//! The span of a request carries its ids in fields. A nested span belongs to the trace of its
//! parent, and any other span starts a trace. Spans within one that is not recorded are not
//! recorded either. An event with the target of stages adds its fields to the enclosing span.

use std::fmt;
use std::time::Instant;

use lodestone_types::{IdSource, RandomIds};
use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

use crate::cli::watch::REQUESTS;
use crate::cli::watch::exporter::SpanQueue;
use crate::cli::watch::otlp::FinishedSpan;

/// Lowest status that counts as a fault of the server.
const FAULTS: u64 = 500;
const STATUS: &str = "http.response.status_code";

/// Returns the name of an attribute in the OpenTelemetry conventions.
fn conventional(name: &'static str) -> &'static str {
    match name {
        "method" => "http.request.method",
        "route" => "http.route",
        "status" => STATUS,
        name => name,
    }
}

/// The layer that records spans.
#[derive(Debug)]
pub struct SpanLayer {
    queue: SpanQueue,
}

/// A span in progress, kept as an extension of the `tracing` span.
struct Open {
    span: FinishedSpan,
    begun: Instant,
}

impl SpanLayer {
    /// Creates a layer that sends finished spans to `queue`.
    pub fn new(queue: SpanQueue) -> Self {
        Self { queue }
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for SpanLayer {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let around = span.parent().map(|parent| {
            parent.extensions().get::<Open>().map(|open| (open.span.trace, open.span.id))
        });
        let (trace, parent) = match around {
            Some(Some(around)) => around,
            // The enclosing span is not recorded.
            Some(None) => return,
            None => (fields.trace.unwrap_or_else(random::<16>), 0),
        };
        let finished = FinishedSpan {
            trace,
            id: fields.span.unwrap_or_else(|| random::<8>() as u64),
            parent,
            name: attributes.metadata().name(),
            is_request: attributes.metadata().target() == REQUESTS,
            start: self.queue.now(),
            end: 0,
            attributes: fields.others,
            is_error: false,
        };
        span.extensions_mut().insert(Open { span: finished, begun: Instant::now() });
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        values.record(&mut fields);
        let mut extensions = span.extensions_mut();
        if fields.is_left_out {
            extensions.remove::<Open>();
        } else if let Some(open) = extensions.get_mut::<Open>() {
            open.span.parent = fields.parent.unwrap_or(open.span.parent);
            open.span.attributes.append(&mut fields.others);
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let Some(span) = context.event_span(event) else { return };
        let mut fields = Fields::default();
        event.record(&mut fields);
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            let status = fields.others.iter().find(|(name, _)| *name == STATUS);
            let status = status.and_then(|(_, status)| status.as_u64());
            open.span.is_error |= status.is_some_and(|status| status >= FAULTS);
            open.span.attributes.append(&mut fields.others);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let open = span.extensions_mut().remove::<Open>();
        if let Some(Open { mut span, begun }) = open {
            span.end = span.start + begun.elapsed().as_nanos() as u64;
            self.queue.push(span);
        }
    }
}

/// Returns a random number that is never 0.
fn random<const BYTES: usize>() -> u128 {
    let mut bytes = [0; BYTES];
    RandomIds.fill(&mut bytes);
    bytes.iter().fold(0_u128, |number, byte| number << 8 | u128::from(*byte)).max(1)
}

/// Fields of a span or an event: the ids of a request, and attributes.
#[derive(Default)]
struct Fields {
    trace: Option<u128>,
    span: Option<u64>,
    parent: Option<u64>,
    is_left_out: bool,
    others: Vec<(&'static str, Value)>,
}

impl Fields {
    fn take(&mut self, field: &Field, text: &str) {
        let number = || u128::from_str_radix(text, 16).ok();
        match field.name() {
            "trace_id" => self.trace = number(),
            "span_id" => self.span = number().map(|id| id as u64),
            "parent_id" => self.parent = number().map(|id| id as u64),
            "message" => {}
            name => self.others.push((conventional(name), text.into())),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.others.push((conventional(field.name()), value.into()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.others.push((conventional(field.name()), value.into()));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.others.push((conventional(field.name()), value.into()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        match field.name() {
            "sampled" => self.is_left_out = !value,
            name => self.others.push((conventional(name), value.into())),
        }
    }
}
