//! Listings of sources, jobs and sub-tenants; deletion; statistics; schemas.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::contract::encode;
use crate::gate::gated_server;
use crate::support::TestServer;

fn ids(sources: &Value) -> Vec<String> {
    let sources = sources.as_array().expect("an array");
    sources.iter().map(|source| source["id"].as_str().expect("an id").to_owned()).collect()
}

#[test]
fn a_listed_source_has_all_fields() {
    let server = TestServer::start();
    let body = json!({
        "content": "# Falling\n\napples fall", "file_id": "a", "tenant_metadata": {"t": 1},
        "document_metadata": {"d": [1, {"x": null}]},
    });
    server.post("/upload/upload_text?tenant_id=acme", body).ok();
    server.settled("acme", "default", "a");
    let source = server.source("acme", "default", "a");
    assert_eq!(source["id"], "a");
    assert_eq!(source["title"], "Falling");
    assert_eq!(source["type"], "text");
    assert!(source["description"].as_str().unwrap().contains("apples fall"));
    assert_eq!(source["tenant_metadata"], json!({"t": 1}));
    assert_eq!(source["document_metadata"], json!({"d": [1, {"x": null}]}));
    for name in ["timestamp", "updated_at"] {
        let seconds: f64 = source[name].as_str().unwrap().parse().unwrap();
        assert!(seconds > 1.7e9, "{name} is {seconds}");
    }
    assert_eq!(
        (&source["status"], &source["indexing_status"]),
        (&json!("success"), &json!("success"))
    );
    assert_eq!((&source["version"], &source["chunk_count"]), (&json!("v1"), &json!(1)));
}

#[test]
fn a_source_is_listed_in_every_state() {
    let (server, gate) = gated_server();
    let body = json!({"content": "<!-- nothing -->", "file_id": "bad"});
    server.post("/upload/upload_text?tenant_id=acme", body).ok();
    let settled = server.settled("acme", "default", "bad");
    let is_errored = settled["status"] == "errored";
    let shown = server.source("acme", "default", "bad");
    assert_eq!(shown["error_code"], settled["error_code"]);
    assert_eq!(shown["error_message"] == "", !is_errored, "{shown}");
    server.index("acme", "default", "good", "apples");
    gate.close();
    let body =
        json!({"content": "pears", "file_id": "waiting", "document_metadata": {"title": "W"}});
    server.post("/upload/upload_text?tenant_id=acme", body).ok();
    let waiting = server.source("acme", "default", "waiting");
    assert_eq!((&waiting["title"], &waiting["description"]), (&json!("W"), &json!("")));
    assert_eq!((&waiting["version"], &waiting["chunk_count"]), (&Value::Null, &Value::Null));
    let of = |status: &str| {
        let path = format!("/list/sources?tenant_id=acme&status={status}");
        ids(&server.get(&path).ok()["sources"])
    };
    assert_eq!(of("errored").len(), usize::from(is_errored));
    assert!(of("success").contains(&"good".to_owned()));
    // It may start between the two requests.
    let mut unfinished = [of("queued"), of("in_progress")].concat();
    unfinished.dedup();
    assert_eq!(unfinished, ["waiting"]);
    server.get("/list/sources?tenant_id=acme&status=done").error(400, "invalid_value");
    gate.open();
    server.settled("acme", "default", "waiting");
}

#[test]
fn pages_hold_every_source_once_newest_first() {
    let server = TestServer::start();
    let items: Vec<Value> =
        (0..25).map(|n| json!({"content": "x", "file_id": format!("s{n:02}")})).collect();
    for items in items.chunks(5) {
        server.post("/upload/batch_upload_text?tenant_id=acme", json!({"items": items})).ok();
    }
    for n in 0..25 {
        server.settled("acme", "default", &format!("s{n:02}"));
    }
    let whole = server.get("/list/sources?tenant_id=acme").ok();
    assert_eq!((&whole["total"], &whole["next_cursor"]), (&json!(25), &Value::Null));
    let whole = ids(&whole["sources"]);
    let sources = server.sources("acme", "default");
    let order = |source: &Value| {
        let seconds: f64 = source["timestamp"].as_str().unwrap().parse().unwrap();
        (std::cmp::Reverse((seconds * 1000.0) as u64), source["id"].to_string())
    };
    assert!(sources.is_sorted_by_key(order));
    for limit in [1, 7, 25, 1000] {
        let (mut paged, mut cursor) = (Vec::new(), String::new());
        loop {
            let path = format!("/list/sources?tenant_id=acme&limit={limit}&cursor={cursor}");
            let page = server.get(&path).ok();
            assert_eq!(page["total"], 25);
            paged.extend(ids(&page["sources"]));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = encode(next),
                None => break,
            }
        }
        assert_eq!(paged, whole, "pages of {limit}");
    }
}

#[test]
fn a_page_goes_on_where_its_last_source_was_deleted() {
    let server = TestServer::start();
    for n in 0..4 {
        server.index("acme", "default", &format!("s{n}"), "x");
    }
    let whole = ids(&server.get("/list/sources?tenant_id=acme").ok()["sources"]);
    let page = server.get("/list/sources?tenant_id=acme&limit=2").ok();
    let body = json!({"tenant_id": "acme", "source_ids": [whole[1], whole[2]]});
    server.call("DELETE", "/delete_source", body).ok();
    let cursor = encode(page["next_cursor"].as_str().unwrap());
    let rest = server.get(&format!("/list/sources?tenant_id=acme&limit=2&cursor={cursor}")).ok();
    assert_eq!(ids(&rest["sources"]), &whole[3..]);
    for cursor in ["x", "%00", "bnVsbA", "WzEsIC4uXQ"] {
        let path = format!("/list/sources?tenant_id=acme&limit=2&cursor={cursor}");
        server.get(&path).error(400, "invalid_value");
    }
    for limit in ["0", "1001", "-1", "x", "1.5"] {
        let path = format!("/list/sources?tenant_id=acme&limit={limit}");
        server.get(&path).error(400, "invalid_value");
    }
}

#[test]
fn chunks_come_in_reading_order_page_by_page() {
    let server = TestServer::start();
    let text: String = (0..40)
        .map(|n| format!("# Part {n}\n\nSentence {n} tells of lamp number {n} in hall {n}.\n\n"))
        .collect();
    server.index_items("acme", "default", &[json!({"file_id": "lamps", "content": text})]);
    let ask = |changes: Value| {
        let mut body = json!({"tenant_id": "acme", "file_id": "lamps"});
        body.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        server.post("/list/chunks", body)
    };
    let all = ask(json!({"limit": 200})).ok();
    let chunks = all["chunks"].as_array().unwrap().clone();
    assert!(chunks.len() > 1 && all["total"] == chunks.len(), "{all}");
    assert_eq!((&all["version"], &all["next_offset"]), (&json!("v1"), &Value::Null));
    let read: String =
        chunks.iter().map(|chunk| chunk["chunk_content"].as_str().unwrap()).collect();
    for n in 0..40 {
        assert_eq!(read.matches(&format!("lamp number {n} in")).count(), 1, "{read}");
    }

    // Paging returns every chunk exactly once.
    let (mut stepped, mut offset) = (Vec::new(), Some(0));
    while let Some(at) = offset {
        let page = ask(json!({"limit": 1, "offset": at})).ok();
        stepped.extend(page["chunks"].as_array().unwrap().clone());
        offset = page["next_offset"].as_u64();
    }
    assert_eq!(stepped, chunks);

    let found = server.ask("retrieve", "lamp number 7", &json!({"join_neighbours": false})).ok();
    let listed = |chunk: &Value| chunks.iter().any(|own| own["chunk_uuid"] == chunk["chunk_uuid"]);
    assert!(found["chunks"].as_array().unwrap().iter().all(listed), "{found}");

    assert_eq!(ask(json!({"page": 1})).ok()["total"], all["total"]);
    assert_eq!(ask(json!({"page": 2})).ok()["chunks"], json!([]));
    assert_eq!(ask(json!({"offset": 5000})).ok()["next_offset"], Value::Null);
    for (wrong, named) in [
        (json!({"file_id": "none"}), "source does not exist"),
        (json!({"limit": 0}), "limit"),
        (json!({"page": 0}), "page"),
    ] {
        let told = ask(wrong);
        assert!(told.status == 400 || told.status == 404, "{told:?}");
        assert!(told.json().to_string().contains(named), "{told:?}");
    }
}

#[test]
fn sources_by_id_come_in_the_order_asked_for() {
    let server = TestServer::start();
    for id in ["a", "b", "c"] {
        server.index("acme", "default", id, "x");
    }
    let ask = |ids: Value| {
        server.post("/list/sources_by_id", json!({"tenant_id": "acme", "source_ids": ids}))
    };
    let found = ask(json!(["c", "nope", "a", "c", "gone", "nope"])).ok();
    assert_eq!(ids(&found["sources"]), ["c", "a"]);
    assert_eq!(found["not_found"], json!(["nope", "gone"]));
    assert_eq!(found["message"], "Successfully fetched sources");
    assert_eq!(found["sources"][1], server.source("acme", "default", "a"));
    assert_eq!(ask(json!([])).ok()["sources"], json!([]));
    let many: Vec<String> = (0..1000).map(|n| format!("n{n}")).collect();
    assert_eq!(ask(json!(many)).ok()["not_found"].as_array().unwrap().len(), 1000);
    let more: Vec<String> = (0..1001).map(|n| format!("n{n}")).collect();
    ask(json!(more)).error(400, "too_many_items");
    ask(Value::Null).error(400, "missing_field");
}

#[test]
fn a_deleted_source_is_gone_at_once() {
    let server = TestServer::start();
    for path in ["/upload/delete_source", "/delete_source"] {
        for id in ["a", "b"] {
            server.index("acme", "default", id, &format!("apples of {id}"));
        }
        let delete = || {
            let body = json!({"tenant_id": "acme", "source_ids": ["a", "unknown"]});
            server.call("DELETE", path, body).ok()
        };
        let deleted = delete();
        assert_eq!(deleted["message"], "Memory deleted successfully");
        assert_eq!((&deleted["deleted"], &deleted["deleted_count"]), (&json!(["a"]), &json!(1)));
        assert_eq!(deleted["not_found"], json!(["unknown"]));
        let stats = server.get("/tenant/stats?tenant_id=acme").ok();
        assert_eq!((&stats["object_count"], &stats["source_count"]), (&json!(1), &json!(1)));
        for chunks in [
            server.retrieve("acme", "default", "apples of a"),
            server.full_text("acme", "default", "apples"),
        ] {
            let found: BTreeSet<&str> =
                chunks.iter().filter_map(|chunk| chunk["source_id"].as_str()).collect();
            assert_eq!(found, BTreeSet::from(["b"]));
        }
        let question = json!({"tenant_id": "acme", "question": "apples?"});
        let answer = server.post("/search/qna", question).ok();
        assert!(answer["sources"].as_array().unwrap().iter().all(|source| source["id"] == "b"));
        assert_eq!(ids(&json!(server.sources("acme", "default"))), ["b"]);
        let fetch = json!({"tenant_id": "acme", "file_id": "a"});
        server.post("/fetch/fetch_content", fetch).error(404, "source_not_found");
        let again = delete();
        assert_eq!((&again["success"], &again["deleted_count"]), (&json!(true), &json!(0)));
        assert_ne!(again["message"], deleted["message"], "the message says that nothing matched");
    }
}

#[test]
fn ids_to_delete_may_stand_in_the_query() {
    let server = TestServer::start();
    for id in ["a", "b", "c"] {
        server.index("acme", "default", id, "x");
    }
    let path = "/delete_source?tenant_id=acme&source_ids=a&source_ids=b";
    assert_eq!(server.call("DELETE", path, Value::Null).ok()["deleted_count"], 2);
    assert_eq!(ids(&json!(server.sources("acme", "default"))), ["c"]);
    let none = json!({"tenant_id": "acme", "source_ids": []});
    assert_eq!(server.call("DELETE", "/delete_source", none).status, 400);
    let path = "/delete_source?tenant_id=acme";
    server.call("DELETE", path, Value::Null).error(400, "missing_field");
}

#[test]
fn statistics_follow_what_is_searchable() {
    let server = TestServer::start();
    server.post("/user/create_tenant?tenant_id=acme", Value::Null).ok();
    let stats = |suffix: &str| server.get(&format!("/tenant/stats?tenant_id=acme{suffix}")).ok();
    let new = stats("");
    assert_eq!((&new["object_count"], &new["source_count"]), (&json!(0), &json!(0)));
    assert_eq!((&new["mode"], &new["tenant_name"]), (&json!("standard"), &json!("acme")));
    assert_eq!(new["vector_dimension"], 64);
    server.index("acme", "default", "a", "apples");
    server.index("acme", "x", "b", "pears");
    assert_eq!(stats("")["object_count"], 1);
    assert_eq!(stats("")["tenant_object_count"], 2);
    assert_eq!(stats(""), stats("&sub_tenant_id=default"));
    assert_eq!(stats(""), stats("&sub_tenant_id="));
    let long = "One sentence of a long text. ".repeat(200);
    server.index("acme", "default", "a", &long);
    let grown = stats("")["object_count"].as_u64().unwrap();
    assert!(grown > 1);
    assert_eq!(server.source("acme", "default", "a")["chunk_count"], grown);
    let body = json!({"tenant_id": "acme", "source_ids": ["a"]});
    server.call("DELETE", "/delete_source", body).ok();
    assert_eq!(stats("")["object_count"], 0);
    assert_eq!(stats("")["tenant_object_count"], 1);
    let vectors = "/embeddings/create_tenant?tenant_id=vectors";
    server.post(vectors, Value::Null).ok();
    let empty = server.get("/tenant/stats?tenant_id=vectors").ok();
    assert_eq!((&empty["mode"], &empty["vector_dimension"]), (&json!("embeddings"), &Value::Null));
}

#[test]
fn a_sub_tenant_is_deleted_with_everything_in_it() {
    let server = TestServer::start();
    server.index("acme", "x", "a", "apples");
    server.index("acme", "default", "b", "apples");
    let delete = |suffix: &str| {
        let path = format!("/tenant/delete_sub_tenant?tenant_id=acme{suffix}");
        server.call("DELETE", &path, Value::Null)
    };
    for protected in ["", "&sub_tenant_id=", "&sub_tenant_id=default"] {
        delete(protected).error(400, "default_sub_tenant_protected");
    }
    let body = delete("&sub_tenant_id=nowhere").error(404, "sub_tenant_not_found");
    assert_eq!(body["error"], "Sub-tenant not found");
    let deleted = delete("&sub_tenant_id=x").ok();
    assert_eq!((&deleted["status"], &deleted["sub_tenant_id"]), (&json!("success"), &json!("x")));
    let names = server.get("/tenant/sub_tenant_ids?tenant_id=acme").ok();
    assert_eq!(names["sub_tenant_ids"], json!(["default"]));
    assert!(server.sources("acme", "x").is_empty());
    assert!(server.full_text("acme", "x", "apples").is_empty());
    let verify = "/upload/verify_processing?file_id=a";
    server.post(verify, Value::Null).error(404, "source_not_found");
    let jobs = server.get("/jobs?tenant_id=acme").ok();
    assert!(jobs["jobs"].as_array().unwrap().iter().all(|job| job["sub_tenant_id"] == "default"));
    delete("&sub_tenant_id=x").error(404, "sub_tenant_not_found");
    assert_eq!(server.full_text("acme", "default", "apples").len(), 1);
    server.index("acme", "x", "a", "pears");
    assert!(server.full_text("acme", "x", "apples").is_empty(), "a new one begins empty");
    assert_eq!(server.source("acme", "x", "a")["version"], "v1");
}

#[test]
fn a_deleted_tenant_is_gone_and_its_name_is_free() {
    let server = TestServer::start();
    server.index("acme", "default", "a", "apples");
    let delete = |confirm: &str| {
        let path = format!("/tenant/delete?tenant_id=acme&confirm={confirm}");
        server.call("DELETE", &path, Value::Null)
    };
    assert_eq!(delete("").status, 400);
    assert_eq!(delete("other").status, 400);
    assert_eq!(server.full_text("acme", "default", "apples").len(), 1);
    delete("acme").ok();
    assert_eq!(server.get("/tenant/list").ok()["tenants"], json!([]));
    server.get("/list/sources?tenant_id=acme").error(404, "tenant_not_found");
    delete("acme").error(404, "tenant_not_found");
    server.index("acme", "default", "b", "pears");
    assert!(server.full_text("acme", "default", "apples").is_empty());
    assert_eq!(server.sources("acme", "default").len(), 1);
}

fn schema() -> Value {
    json!([
        {"key": "region", "type": "string", "searchable": true},
        {"key": "year", "type": "number"},
        {"key": "tags", "type": "array", "filterable": false},
        {"key": "open", "type": "boolean"},
        {"key": "at", "type": "datetime"},
    ])
}

#[test]
fn a_schema_shows_in_the_listing_and_cannot_change() {
    let server = TestServer::start();
    let create = |schema: Value| {
        let path = "/user/create_tenant?tenant_id=acme";
        server.post(path, json!({"tenant_metadata_schema": schema}))
    };
    create(schema()).ok();
    let shown =
        || server.get("/tenant/sub_tenant_ids?tenant_id=acme").ok()["tenant_schema"].clone();
    let first = shown();
    let property = |index: usize| first["properties"][index].clone();
    assert_eq!(
        property(0),
        json!({
            "field_name": "region", "index_filterable": true, "index_searchable": true,
            "type": "string",
        })
    );
    assert_eq!(property(2)["index_filterable"], false);
    assert_eq!(first["properties"].as_array().unwrap().len(), 5);
    for again in [schema(), json!([]), json!([{"key": "other", "type": "string"}])] {
        let body = create(again).error(409, "tenant_exists");
        assert_eq!((&body["error"], &body["error_code"]), (&json!("Conflict"), &json!("CONFLICT")));
    }
    let path = "/embeddings/create_tenant?tenant_id=acme";
    server.post(path, Value::Null).error(409, "tenant_exists");
    assert_eq!(shown(), first);
    let listed = server.get("/tenant/list").ok();
    assert_eq!(listed["tenants"][0]["tenant_schema"], first);
}

#[test]
fn a_schema_that_breaks_a_rule_makes_no_tenant() {
    let server = TestServer::start();
    let field = |key: &str| json!([{"key": key, "type": "string"}]);
    let many: Vec<Value> =
        (0..65).map(|n| json!({"key": format!("k{n}"), "type": "string"})).collect();
    let reserved = [
        "source_id", "source_title", "source_url", "source_type", "source_collection",
        "source_owner", "source_collaborator", "source_upload_time", "source_last_updated_time",
        "chunk_id", "chunk_uuid", "chunk_content", "document_metadata", "base_metadata", "layout",
        "description", "tenant_metadata", "tenant_id", "sub_tenant_id", "file_id", "version", "$x",
        "_x",
    ];
    let mut cases: Vec<(Value, &str)> =
        reserved.iter().map(|key| (field(key), "reserved_key")).collect();
    for key in ["", "1a", "a-b", "a b", "é", &"k".repeat(65)] {
        cases.push((field(key), "invalid_value"));
    }
    cases.push((
        json!([{"key": "a", "type": "string"}, {"key": "a", "type": "number"}]),
        "schema_violation",
    ));
    cases.push((json!(many), "too_many_items"));
    cases.push((json!([{"key": "a", "type": "text"}]), "invalid_value"));
    cases.push((json!([{"key": "a"}]), "missing_field"));
    cases.push((json!([{"type": "string"}]), "missing_field"));
    let mistyped = json!([{"key": "a", "type": "string", "filtrable": false}]);
    cases.push((mistyped, "unknown_parameter"));
    cases.push((json!([{"key": "a", "type": "string", "filterable": "yes"}]), "invalid_value"));
    cases.push((json!({"key": "a"}), "invalid_value"));
    for (schema, reason) in cases {
        let path = "/user/create_tenant?tenant_id=acme";
        let reply = server.post(path, json!({"tenant_metadata_schema": schema}));
        assert_eq!((reply.status, &reply.json()["reason"]), (400, &json!(reason)), "{schema:.80}");
    }
    assert_eq!(server.get("/tenant/list").ok()["tenants"], json!([]));
}

#[test]
fn values_keep_to_the_schema() {
    let server = TestServer::start();
    let path = "/user/create_tenant?tenant_id=acme";
    server.post(path, json!({"tenant_metadata_schema": schema()})).ok();
    let upload = |tenant_metadata: Value| {
        let body = json!({"content": "x", "file_id": "a", "tenant_metadata": tenant_metadata});
        server.post("/upload/upload_text?tenant_id=acme", body)
    };
    for wrong in [
        json!({"region": 7}),
        json!({"year": "2024"}),
        json!({"tags": "a"}),
        json!({"tags": [1]}),
        json!({"open": "true"}),
        json!({"at": false}),
    ] {
        upload(wrong.clone()).error(400, "schema_violation");
        let body = json!({"tenant_id": "acme", "source_id": "a", "tenant_metadata": wrong});
        let status = server.call("PATCH", "/upload/update_metadata", body).status;
        assert!([400, 404].contains(&status), "{wrong}: {status}");
    }
    assert!(server.sources("acme", "default").is_empty());
    let right = json!({
        "region": "north", "year": 2024, "tags": ["a"], "open": true, "at": "2024-01-01",
        "free": {"x": 1},
    });
    upload(right.clone()).ok();
    server.settled("acme", "default", "a");
    assert_eq!(server.source("acme", "default", "a")["tenant_metadata"], right);
    let search = |filter: Value| {
        let body = json!({"tenant_id": "acme", "query": "x", "tenant_metadata": filter});
        server.post("/search/full-text-search", body)
    };
    assert_eq!(search(json!({"year": 2024})).ok().as_array().unwrap().len(), 1);
    search(json!({"tags": ["a"]})).error(400, "field_not_filterable");
}

#[test]
fn jobs_are_listed_newest_first_in_pages() {
    let server = TestServer::start();
    for n in 0..7 {
        server.index("acme", if n % 2 == 0 { "default" } else { "x" }, &format!("s{n}"), "x");
    }
    server.index("other", "default", "o", "x");
    let (mut files, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = server.get(&format!("/jobs?tenant_id=acme&limit=3&cursor={cursor}")).ok();
        assert_eq!(page["counts"]["success"], 7, "counts are of everything addressed");
        for job in page["jobs"].as_array().unwrap() {
            assert_eq!((&job["tenant_id"], &job["status"]), (&json!("acme"), &json!("success")));
            assert!(job["job_id"].as_str().unwrap().starts_with("job_"));
            assert!(job["finished_at"].as_str() >= job["started_at"].as_str());
            files.push(job["file_id"].as_str().unwrap().to_owned());
        }
        match page["next_cursor"].as_str() {
            Some(next) => cursor = encode(next),
            None => break,
        }
    }
    assert_eq!(files, ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]);
    assert_eq!(server.get("/jobs").ok()["counts"]["success"], 8);
    let of_x = server.get("/jobs?tenant_id=acme&sub_tenant_id=x").ok();
    assert_eq!(of_x["jobs"].as_array().unwrap().len(), 3);
    assert_eq!(server.get("/jobs?status=errored").ok()["jobs"], json!([]));
    server.get("/jobs?status=done").error(400, "invalid_value");
    server.get("/jobs?cursor=x").error(400, "invalid_value");
    server.get("/jobs?tenant_id=nowhere").error(404, "tenant_not_found");
    for limit in ["0", "1001"] {
        server.get(&format!("/jobs?limit={limit}")).error(400, "invalid_value");
    }
}

#[test]
fn sub_tenants_are_listed_default_first_then_by_name() {
    let server = TestServer::start();
    for name in ["zeta", "alpha", "Beta", "0"] {
        server.index("acme", name, "a", "x");
    }
    let names = server.get("/tenant/sub_tenant_ids?tenant_id=acme").ok();
    assert_eq!(names["sub_tenant_ids"], json!(["default", "0", "Beta", "alpha", "zeta"]));
    assert_eq!((&names["count"], &names["tenant_id"]), (&json!(5), &json!("acme")));
}

/// Goal: a failed job can be retried from its original, and no other job can.
#[test]
fn failed_jobs_are_tried_again() {
    let server = TestServer::start();
    let send = || {
        let torn = &b"%PDF-1.4\nthis is not a document"[..];
        let form = [
            ("tenant_id", None, &b"acme"[..]),
            ("file_id", None, &b"torn"[..]),
            ("file", Some("torn.pdf"), torn),
        ];
        server.form("POST", "/upload/upload_document", &form).ok();
        assert_eq!(server.settled("acme", "default", "torn")["status"], "errored");
        server.get("/jobs?status=errored").ok()["jobs"][0].clone()
    };
    let failed = send();
    assert_eq!((&failed["attempts"], &failed["error_code"]), (&json!(1), &json!("CORRUPT_FILE")));
    let path = |job: &Value| format!("/jobs/{}/retry", job["job_id"].as_str().unwrap());
    let told = server.post(&path(&failed), json!({})).ok();
    assert_eq!(told["job"]["job_id"], failed["job_id"]);
    assert_ne!(told["job"]["created_at"], Value::Null);
    assert_eq!(server.settled("acme", "default", "torn")["status"], "errored");
    let again = server.get("/jobs?status=errored").ok()["jobs"][0].clone();
    assert_eq!((&again["job_id"], &again["attempts"]), (&failed["job_id"], &json!(1)));
    assert_ne!(again["finished_at"], failed["finished_at"]);

    send();
    let replaced = server.post(&path(&failed), json!({})).error(409, "job_not_retried");
    assert!(
        replaced["message"]
            .as_str()
            .unwrap()
            .ends_with("superseded by a later upload of its source")
    );
    server.index("acme", "default", "note", "apples fall");
    let done = server.get("/jobs?status=success").ok()["jobs"][0].clone();
    assert_eq!(done["attempts"], 1);
    server.post(&path(&done), json!({})).error(409, "job_not_retried");
    server.post("/jobs/job_none/retry", json!({})).error(404, "job_not_found");
    server.index("other", "default", "note", "pears fall");
    for scope in ["tenant_id=other", "tenant_id=acme&sub_tenant_id=north"] {
        let path = format!("{}?{scope}", path(&failed));
        server.post(&path, json!({})).error(404, "job_not_found");
    }
    let path_of_scope = format!("{}?tenant_id=acme&sub_tenant_id=default", path(&failed));
    server.post(&path_of_scope, json!({})).error(409, "job_not_retried");
    let ask = |key: &str| server.call_as(key, "POST", &path(&failed), &json!({}));
    ask(&server.make_key("read", json!([{"tenant_id": "acme"}]))).error(403, "insufficient_role");
    ask(&server.make_key("write", json!([{"tenant_id": "b"}]))).error(404, "job_not_found");
}
