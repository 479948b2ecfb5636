//! The status of a source requested without its tenant: with many tenants, after a restart, and
//! next to damaged data.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::{Reply, TestServer};

fn status(server: &TestServer, id: &str) -> Reply {
    server.post(&format!("/upload/verify_processing?file_id={id}"), Value::Null)
}

/// Creates a tenant of vectors with one batch.
fn vectors(server: &TestServer, tenant: &str, batch: &str) {
    server.post(&format!("/embeddings/create_tenant?tenant_id={tenant}"), Value::Null).ok();
    let body = json!({"file_id": batch, "embeddings": [[1.0, 0.0], [0.0, 1.0]]});
    server.post(&format!("/upload/upload_embeddings?tenant_id={tenant}"), body).ok();
}

/// Corrupts all files of one kind in all collections except the `spared` ones.
fn harm(data: &Path, kind: &str, spared: &BTreeSet<PathBuf>) {
    for collection in collections(data).difference(spared) {
        for file in fs::read_dir(collection.join(kind)).unwrap() {
            let path = file.unwrap().path();
            let mut bytes = fs::read(&path).unwrap();
            let at = bytes.len() - 9;
            bytes[at] ^= 1;
            fs::write(&path, bytes).unwrap();
        }
    }
}

fn collections(data: &Path) -> BTreeSet<PathBuf> {
    let found = fs::read_dir(data.join("v1/c")).unwrap();
    found.map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn a_batch_is_found_without_its_tenant_however_many_tenants_are_closed() {
    let server = TestServer::start();
    for n in 0..70 {
        vectors(&server, &format!("t{n}"), &format!("b{n}"));
    }
    let server = server.restart();
    for n in 0..70 {
        let found = status(&server, &format!("b{n}")).ok();
        assert_eq!(found["tenant_id"], format!("t{n}"));
        assert_eq!((&found["status"], &found["chunk_count"]), (&json!("success"), &json!(2)));
    }
    status(&server, "b70").error(404, "source_not_found");
}

#[test]
fn damage_of_one_tenant_is_seen_in_its_own_answers_only() {
    let server = TestServer::start();
    vectors(&server, "sound", "here");
    server.index("documents", "default", "text", "a text");
    let mut spared = BTreeSet::new();
    let server = server.restart_with(|settings| spared = collections(&settings.data_dir));
    vectors(&server, "damaged", "there");
    let server = server.restart_with(|settings| harm(&settings.data_dir, "m", &spared));
    assert_eq!(status(&server, "here").ok()["tenant_id"], "sound");
    assert_eq!(status(&server, "text").ok()["tenant_id"], "documents");
    status(&server, "nowhere").error(404, "source_not_found");
    assert!(status(&server, "there").status >= 500);
}

#[test]
fn what_may_be_in_a_damaged_part_is_not_called_absent() {
    let server = TestServer::start();
    vectors(&server, "v", "batch");
    let server = server.restart_with(|settings| harm(&settings.data_dir, "s", &BTreeSet::new()));
    let reply = status(&server, "batch");
    reply.error(503, "quarantined");
    assert!(reply.headers["x-lodestone-degraded"].to_str().unwrap().contains("1 segment"));
    status(&server, "nowhere").error(404, "source_not_found");
}

/// Goal: of several sources with one id the last one accepted is meant, unless it was deleted.
#[test]
fn the_source_that_was_accepted_last_is_meant() {
    let server = TestServer::start();
    server.index("a", "default", "same", "first");
    server.index("b", "x", "same", "second");
    vectors(&server, "v", "same");
    let tenant = || status(&server, "same").ok()["tenant_id"].as_str().unwrap().to_owned();
    assert_eq!(tenant(), "v");
    for (deleted, sub_tenant, left) in [("v", "default", "b"), ("b", "x", "a")] {
        let body =
            json!({"tenant_id": deleted, "sub_tenant_id": sub_tenant, "source_ids": ["same"]});
        server.call("DELETE", "/delete_source", body).ok();
        assert_eq!(tenant(), left);
    }
    server.call("DELETE", "/tenant/delete?tenant_id=a&confirm=a", Value::Null).ok();
    status(&server, "same").error(404, "source_not_found");
}
