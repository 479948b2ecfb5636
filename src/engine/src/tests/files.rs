//! Tests of files that are not sources, and of sources made from them.

use super::*;
use crate::ingest::NewFile;

fn new_file(text: &str) -> NewFile {
    NewFile {
        purpose: "assistants".into(),
        filename: "a.txt".into(),
        content_type: "text/plain".into(),
        content: text.to_owned().into(),
    }
}

/// Goal: if a file is deleted while it is made a source, nothing is left, whichever comes first.
#[test]
fn a_deletion_and_a_taking_in_at_once_leave_nothing() {
    let rig = Rig::new();
    let (engine, access) = (&rig.engine, access(&rig.engine));
    let tenant = scope().tenant;
    let (mut taken, mut refused) = (0, 0);
    for n in 0..40 {
        let new = new_file(&format!("words of file {n}"));
        let file = engine.add_file(&grant(), &scope(), new).unwrap();
        let outcome = std::thread::scope(|scope| {
            let taking = scope.spawn(|| engine.take_in(&access, &file, Metadata::new()));
            assert!(engine.delete_file(&grant(), &tenant, &file.id).unwrap());
            taking.join().unwrap()
        });
        match outcome {
            Ok(_) => taken += 1,
            Err(EngineError::SourceNotFound { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        assert_eq!(engine.file(&grant(), &tenant, &file.id).unwrap(), None);
        assert_eq!(engine.source(&access, &file.id).unwrap(), None, "round {n}");
    }
    assert_eq!(taken + refused, 40);
    assert_eq!(engine.usage(&grant(), &tenant).unwrap().allowance.used.sources, 0);
}

/// Goal: a file added to a sub-tenant twice, even while it is processed, is one source.
#[test]
fn a_file_is_one_source_of_each_sub_tenant() {
    let rig = Rig::new();
    let (engine, tenant) = (&rig.engine, scope().tenant);
    let file = engine.add_file(&grant(), &scope(), new_file("some words")).unwrap();
    let north = SubTenantId::parse("north").unwrap();
    let north = Scope { tenant: tenant.clone(), sub_tenant: north };
    let places = [access(engine), engine.open_or_create(&grant(), &north).unwrap()];
    for _ in 0..2 {
        for access in &places {
            engine.take_in(access, &file, Metadata::new()).unwrap();
        }
    }
    for access in &places {
        wait_for("the source", || {
            let found = engine.source(access, &file.id).unwrap().unwrap();
            (found.status == JobStatus::Success).then_some(())
        });
        assert_eq!(engine.source_count(access).unwrap(), 1);
    }
    let original = engine.original(&places[1], &file.id).unwrap();
    assert_eq!(original.len(), file.size_bytes);
    assert!(engine.delete_file(&grant(), &tenant, &file.id).unwrap());
    assert!(!engine.delete_file(&grant(), &tenant, &file.id).unwrap());
    for access in &places {
        assert_eq!(engine.source_count(access).unwrap(), 0);
    }
}
