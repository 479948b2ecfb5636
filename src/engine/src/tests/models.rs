//! Tests of collections whose vectors come from a model that is not loaded.

use serde_json::json;

use super::*;
use crate::ingest::{Amendment, IngestError};
use lodestone_types::JobErrorCode;

/// Goal: vectors of two models are never mixed in one collection. Accepted jobs fail with that
/// reason, new content is refused, and with the previous model everything continues.
#[test]
fn vectors_of_two_models_are_not_mixed() {
    let rig = Rig::new();
    rig.upload("doc", "everywhere is wind");
    let rig = rig.restart(GatedEmbedder::with_passes(0), |_| {});
    submit(&rig.engine, "late", "everywhere is snow", &Metadata::new());
    let rig = rig.restart(GatedEmbedder::another(), |_| {});
    let engine = &rig.engine;
    let late = settled(engine, "late");
    assert_eq!(
        (late.status, late.error_code),
        (JobStatus::Errored, Some(JobErrorCode::EmbeddingFailed))
    );
    assert!(late.message.contains("another model"), "{}", late.message);
    let is_refused = |result: Result<(), EngineError>| {
        matches!(result, Err(EngineError::Ingest(IngestError::ModelMismatch { .. })))
    };
    let new = submission("new", "everywhere is sand", &Metadata::new());
    assert!(is_refused(engine.submit(&access(engine), new).map(drop)));
    let amend = |map| {
        let amendment = Amendment { tenant_metadata: None, document_metadata: Some(map) };
        engine.amend(&access(engine), &id("doc"), amendment)
    };
    assert!(is_refused(amend(map(json!({"title": "Other words"})))));
    amend(map(json!({"pages": 7}))).unwrap();
    assert_eq!(rig.gate.embedded(), 0);
    assert!(matches!(engine.health().index, ComponentState::Degraded(_)));

    let rig = rig.restart(GatedEmbedder::default(), |_| {});
    rig.upload("late", "everywhere is snow");
    assert!(!access(&rig.engine).has_foreign_model());
    let rig = rig.restart(GatedEmbedder::another(), |_| {});
    let engine = &rig.engine;
    engine.delete_sources(&access(engine), &[id("doc"), id("late")]).unwrap();
    rig.upload("new", "an empty tenant takes any model");
}
