//! OpenAI-compatible files and vector stores: lifecycle, paging, isolation and limits.

use std::collections::HashSet;

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::contract::check_error;
use crate::gate::gated_server;
use crate::patience::Patience;
use crate::support::{KEY, Part, Reply, TestServer};

/// A key used the way the `openai` package uses it.
struct Client<'a> {
    server: &'a TestServer,
    key: String,
}

impl<'a> Client<'a> {
    /// Creates a tenant and a key for all of it.
    fn of(server: &'a TestServer, tenant: &str) -> Self {
        server.post(&format!("/user/create_tenant?tenant_id={tenant}"), Value::Null).ok();
        Self::limited(server, "write", json!([{"tenant_id": tenant}]))
    }

    fn limited(server: &'a TestServer, role: &str, tenants: Value) -> Self {
        Self { server, key: server.make_key(role, tenants) }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Reply {
        self.server.call_as(&self.key, method, &format!("/v1{path}"), body)
    }

    fn get(&self, path: &str) -> Value {
        self.call("GET", path, &Value::Null).ok()
    }

    fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", path, &body).ok()
    }

    fn delete(&self, path: &str) -> Value {
        self.call("DELETE", path, &Value::Null).ok()
    }

    fn try_file(&self, name: &str, bytes: &[u8]) -> Reply {
        let parts: [Part<'_>; 2] = [("purpose", None, b"assistants"), ("file", Some(name), bytes)];
        self.server.form_as(&self.key, "POST", "/v1/files", &parts)
    }

    fn file(&self, name: &str, text: &str) -> String {
        text_of(&self.try_file(name, text.as_bytes()).ok()["id"])
    }

    fn store(&self, name: &str) -> String {
        text_of(&self.post("/vector_stores", json!({"name": name}))["id"])
    }

    /// Attaches a file to a vector store and waits until it is processed.
    fn attach(&self, store: &str, file: &str, attributes: Value) {
        let body = json!({"file_id": file, "attributes": attributes});
        let taken = self.post(&format!("/vector_stores/{store}/files"), body);
        assert_eq!((&taken["object"], &taken["id"]), (&json!("vector_store.file"), &json!(file)));
        self.completed(store, file);
    }

    fn completed(&self, store: &str, file: &str) {
        let mut patience = Patience::new();
        loop {
            let seen = self.get(&format!("/vector_stores/{store}/files/{file}"));
            match seen["status"].as_str() {
                Some("completed") => return,
                Some("in_progress") => assert!(!patience.is_over(()), "{file} is stuck"),
                _ => panic!("{seen}"),
            }
        }
    }

    /// The ids of the files that a search finds, best first.
    fn found(&self, store: &str, body: Value) -> Vec<String> {
        let found = self.post(&format!("/vector_stores/{store}/search"), body);
        assert_eq!(found["object"], "vector_store.search_results.page");
        ids(&found, "file_id")
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned()
}

fn ids(list: &Value, name: &str) -> Vec<String> {
    let data = list["data"].as_array().expect("entries");
    data.iter().map(|entry| text_of(&entry[name])).collect()
}

fn counts(store: &Value) -> [u64; 5] {
    let names = ["in_progress", "completed", "failed", "cancelled", "total"];
    names.map(|name| store["file_counts"][name].as_u64().expect("a number"))
}

const TOWER: &str = "The Eiffel Tower was designed by Gustave Eiffel.";
const BRIDGE: &str = "The Forth Bridge was opened in 1890 in Scotland.";

#[test]
fn a_file_is_uploaded_taken_in_searched_and_deleted() {
    let server = TestServer::start();
    let client = Client::of(&server, "acme");
    let made = client.try_file("tower.txt", TOWER.as_bytes()).ok();
    assert_eq!((&made["object"], &made["status"]), (&json!("file"), &json!("processed")));
    assert_eq!((&made["bytes"], &made["filename"]), (&json!(TOWER.len()), &json!("tower.txt")));
    let file = text_of(&made["id"]);
    assert!(file.starts_with("file-"), "{file}");
    let path = format!("/files/{file}");
    assert_eq!(client.get(&path), made);
    assert_eq!(client.get("/files")["data"], json!([made]));
    let content = client.call("GET", &format!("{path}/content"), &Value::Null);
    assert_eq!((content.status, content.bytes.as_slice()), (200, TOWER.as_bytes()));
    // It is not a source in any other interface.
    assert!(server.retrieve("acme", "default", "Eiffel").is_empty());
    assert_eq!(server.sources("acme", "default"), Vec::<Value>::new());

    let store = client.store("Buildings");
    let empty = client.get(&format!("/vector_stores/{store}"));
    assert_eq!((&empty["name"], &empty["status"]), (&json!("Buildings"), &json!("completed")));
    assert_eq!((counts(&empty), &empty["usage_bytes"]), ([0; 5], &json!(0)));
    client.attach(&store, &file, json!({"year": 1889, "city": "Paris", "open": true}));
    let full = client.get(&format!("/vector_stores/{store}"));
    assert_eq!((counts(&full), &full["usage_bytes"]), ([0, 1, 0, 0, 1], &json!(TOWER.len())));

    let search = format!("/vector_stores/{store}/search");
    let found = client.post(&search, json!({"query": ["Who designed", "the Eiffel Tower?"]}));
    assert_eq!(found["search_query"], json!(["Who designed", "the Eiffel Tower?"]));
    let first = &found["data"][0];
    assert_eq!((&first["file_id"], &first["filename"]), (&json!(file), &json!("tower.txt")));
    assert_eq!(first["attributes"], json!({"year": 1889, "city": "Paris", "open": true}));
    assert_eq!(first["content"], json!([{"type": "text", "text": TOWER}]));
    let score = first["score"].as_f64().expect("a score");
    assert!(score > 0.0 && score <= 1.0, "{score}");
    let above = |query: &str, min: f64| {
        let options = json!({"score_threshold": min, "ranker": "auto"});
        client.found(&store, json!({"query": query, "ranking_options": options}))
    };
    assert_eq!(above("Eiffel", 0.0), [file.as_str()]);
    assert!(above("Eiffel", 1.0).is_empty());
    assert!(above("zebras graze", 0.5).is_empty(), "though nothing else is nearer");
    let text = client.get(&format!("/vector_stores/{store}/files/{file}/content"));
    assert_eq!(text["data"], json!([{"type": "text", "text": TOWER}]));
    assert_eq!((&text["has_more"], &text["next_page"]), (&json!(false), &Value::Null));

    let one = format!("/vector_stores/{store}/files/{file}");
    let changed = client.post(&one, json!({"attributes": {"city": "Lyon"}}));
    assert_eq!(changed["attributes"], json!({"city": "Lyon"}));
    assert_eq!(client.post(&one, json!({}))["attributes"], json!({"city": "Lyon"}));
    let city = |city: &str| {
        let filters = json!({"type": "eq", "key": "city", "value": city});
        json!({"query": "tower", "filters": filters})
    };
    assert_eq!(client.found(&store, city("Lyon")), [file.as_str()]);
    assert!(client.found(&store, city("Paris")).is_empty());

    // Removing it from a store keeps the file; deleting the file removes it from all stores.
    assert_eq!(client.delete(&one)["object"], "vector_store.file.deleted");
    client.call("GET", &one, &Value::Null).error(404, "file_not_found");
    client.call("DELETE", &one, &Value::Null).error(404, "file_not_found");
    assert!(client.found(&store, json!({"query": "Eiffel"})).is_empty());
    let other = client.store("Others");
    for store in [&store, &other] {
        client.attach(store, &file, json!({}));
    }
    assert_eq!(client.delete(&path)["deleted"], true);
    for store in [&store, &other] {
        assert!(client.found(store, json!({"query": "Eiffel"})).is_empty());
        assert_eq!(counts(&client.get(&format!("/vector_stores/{store}")))[4], 0);
    }
    for (method, path) in
        [("GET", path.clone()), ("GET", format!("{path}/content")), ("DELETE", path)]
    {
        client.call(method, &path, &Value::Null).error(404, "file_not_found");
    }
    assert_eq!(client.get("/files")["data"], json!([]));
}

#[test]
fn a_vector_store_is_a_sub_tenant() {
    let server = TestServer::start();
    let client = Client::of(&server, "acme");
    server.index("acme", "north", "bridge", BRIDGE);
    let north = client.get("/vector_stores/north");
    assert_eq!((&north["name"], counts(&north)), (&json!("north"), [0, 1, 0, 0, 1]));
    assert_eq!(client.found("north", json!({"query": "Forth Bridge"})), ["bridge"]);
    let store = client.store("");
    assert_eq!(client.get(&format!("/vector_stores/{store}"))["name"], json!(store));
    let file = client.file("tower.md", TOWER);
    client.attach(&store, &file, json!({"kind": "tower"}));
    let source = server.source("acme", &store, &file);
    assert_eq!(source["document_metadata"], json!({"kind": "tower"}));
    assert_eq!(server.retrieve("acme", &store, "Eiffel").len(), 1);
    let body = json!({"model": format!("acme/{store}"), "messages": [
        {"role": "user", "content": "Who designed the Eiffel Tower?"}]});
    let said = client.post("/chat/completions", body);
    assert!(said["choices"][0]["message"]["content"].as_str().unwrap().contains("Gustave"));

    let path = format!("/vector_stores/{store}");
    let named = client.post(&path, json!({"name": "Towers", "metadata": {"team": "red"}}));
    assert_eq!((&named["name"], &named["metadata"]), (&json!("Towers"), &json!({"team": "red"})));
    let kept = client.post(&path, json!({"metadata": {}}));
    assert_eq!((&kept["name"], &kept["metadata"]), (&json!("Towers"), &json!({})));
    assert_eq!(client.post("/vector_stores/default", json!({"name": "Main"}))["name"], "Main");
    let with_files = json!({"name": "With", "file_ids": [file]});
    let with_files = text_of(&client.post("/vector_stores", with_files)["id"]);
    client.completed(&with_files, &file);
    let absent = json!({"name": "No", "file_ids": ["file-none"]});
    let refused = client.call("POST", "/vector_stores", &absent).error(404, "file_not_found");
    assert_eq!(refused["error"]["param"], "file_id");

    assert_eq!(client.delete(&path)["object"], "vector_store.deleted");
    client.call("GET", &path, &Value::Null).error(404, "vector_store_not_found");
    let search = client.call("POST", &format!("{path}/search"), &json!({"query": "x"}));
    search.error(404, "vector_store_not_found");
    assert_eq!(client.get(&format!("/files/{file}"))["id"], json!(file), "files outlive it");
    let default = client.call("DELETE", "/vector_stores/default", &Value::Null);
    default.error(400, "default_sub_tenant_protected");
    let names = server.get("/tenant/sub_tenant_ids?tenant_id=acme").ok();
    assert_eq!(names["sub_tenant_ids"], json!(["default", "north", with_files]));
}

#[test]
fn listings_come_in_pages_in_both_directions() {
    let server = TestServer::start();
    let client = Client::of(&server, "acme");
    let stores: Vec<String> = (0..5).map(|n| client.store(&format!("s{n}"))).collect();
    let files: Vec<String> = (0..5).map(|n| client.file(&format!("f{n}.txt"), TOWER)).collect();
    for file in &files {
        client.attach(&stores[0], file, json!({}));
    }
    let newest_first = |ids: &[String]| ids.iter().rev().cloned().collect::<Vec<_>>();
    // Stores created within one millisecond are ordered by their ids, which are random.
    let all = ids(&client.get("/vector_stores"), "id");
    assert_eq!(all.len(), 6, "and the one that every tenant has: {all:?}");
    assert!(stores.iter().all(|store| all.contains(store)));
    let listed = ids(&client.get("/files"), "id");
    let in_store = format!("/vector_stores/{}/files", stores[0]);
    let attached = ids(&client.get(&in_store), "id");
    let batch = json!({"file_ids": files});
    let batch = client.post(&format!("/vector_stores/{}/file_batches", stores[1]), batch);
    let in_batch =
        format!("/vector_stores/{}/file_batches/{}/files", stores[1], text_of(&batch["id"]));
    let of_batch = ids(&client.get(&in_batch), "id");
    assert_eq!(of_batch, newest_first(&files));
    for (path, all, has_before) in [
        ("/vector_stores", all, true),
        ("/files", listed, false),
        (in_store.as_str(), attached, true),
        (in_batch.as_str(), of_batch, true),
    ] {
        let separator = "?limit=2";
        let page = |more: &str| client.get(&format!("{path}{separator}{more}"));
        let walk = |order: &str| {
            let mut seen = Vec::new();
            let mut after = String::new();
            loop {
                let page = page(&format!("&order={order}{after}"));
                let own = ids(&page, "id");
                assert_eq!(page["first_id"], json!(own[0]), "{path}");
                assert_eq!(page["last_id"], json!(own[own.len() - 1]), "{path}");
                after = format!("&after={}", own[own.len() - 1]);
                seen.extend(own);
                if page["has_more"] == false {
                    return seen;
                }
            }
        };
        assert_eq!(walk("desc"), all, "{path}");
        assert_eq!(walk("asc"), newest_first(&all), "{path}");
        if !has_before {
            continue;
        }
        let before = page(&format!("&before={}", all[3]));
        assert_eq!((ids(&before, "id"), &before["has_more"]), (all[1..3].to_vec(), &json!(true)));
        let before = page(&format!("&order=asc&before={}", all[3]));
        let expected = newest_first(&all[4..]);
        assert_eq!((ids(&before, "id"), &before["has_more"]), (expected, &json!(all.len() > 6)));
        let refused = client.call("GET", &format!("{path}?after=file-none"), &Value::Null);
        assert_eq!(refused.error(400, "invalid_value")["error"]["param"], "after", "{path}");
        let both = format!("{path}?after={0}&before={0}", all[0]);
        client.call("GET", &both, &Value::Null).error(400, "conflicting_values");
    }
    let refused = client.call("GET", "/files?after=file-none", &Value::Null);
    assert_eq!(refused.error(400, "invalid_value")["error"]["param"], "after");
    assert_eq!(ids(&client.get("/files?purpose=vision"), "id"), Vec::<String>::new());
    assert_eq!(client.get("/files?purpose=assistants&limit=3")["has_more"], true);
    let of_state = |state: &str| ids(&client.get(&format!("{in_store}?filter={state}")), "id");
    assert_eq!((of_state("completed").len(), of_state("failed").len()), (5, 0));
    client.call("GET", "/files?limit=10001", &Value::Null).error(400, "invalid_value");
    client.call("GET", "/vector_stores?limit=101", &Value::Null).error(400, "invalid_value");
}

#[test]
fn filters_are_translated_and_what_is_none_is_named() {
    let server = TestServer::start();
    let client = Client::of(&server, "acme");
    let store = client.store("Buildings");
    let mut made = Vec::new();
    for (n, city) in [(1, "Paris"), (2, "Rome"), (3, "Paris")] {
        let file = client.file(&format!("f{n}.txt"), &format!("Tower number {n}."));
        client.attach(&store, &file, json!({"n": n, "city": city, "even": n == 2}));
        made.push(file);
    }
    let eq = |key: &str, value: Value| json!({"type": "eq", "key": key, "value": value});
    let cmp = |kind: &str, value: Value| json!({"type": kind, "key": "n", "value": value});
    for (filters, expected) in [
        (eq("city", json!("Paris")), &[0, 2][..]),
        (json!({"type": "ne", "key": "city", "value": "Paris"}), &[1]),
        (cmp("gt", json!(1)), &[1, 2]),
        (cmp("gte", json!(2.0)), &[1, 2]),
        (cmp("lt", json!(2)), &[0]),
        (cmp("lte", json!(2)), &[0, 1]),
        (cmp("in", json!([1, 3, 9])), &[0, 2]),
        (cmp("nin", json!([1])), &[1, 2]),
        (eq("even", json!(true)), &[1]),
        (
            json!({"type": "and", "filters": [eq("city", json!("Paris")), cmp("gt", json!(1))]}),
            &[2],
        ),
        (json!({"type": "or", "filters": [eq("n", json!(1)), eq("n", json!(2))]}), &[0, 1]),
        (eq("city", json!("paris")), &[]),
        (eq("n", json!("1")), &[]),
        (eq("absent", json!("x")), &[]),
    ] {
        let mut found = client.found(&store, json!({"query": "tower number", "filters": filters}));
        found.sort();
        let mut expected: Vec<&String> = expected.iter().map(|at| &made[*at]).collect();
        expected.sort();
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filters}");
    }
    let search = format!("/vector_stores/{store}/search");
    let told = client.call("POST", &search, &json!({"query": "x", "filters": eq("n", json!("1"))}));
    let told = told.headers["x-lodestone-warnings"].to_str().expect("ASCII");
    assert!(told.starts_with("filters.n is compared with texts"), "{told}");
    let mut deep = eq("n", json!(1));
    for _ in 0..40 {
        deep = json!({"type": "and", "filters": [deep]});
    }
    for filters in [
        json!({"type": "like", "key": "n", "value": 1}),
        json!({"type": "eq", "key": "n", "value": {"$gt": 1}}),
        json!({"type": "eq", "key": "n", "value": null}),
        json!({"type": "eq", "key": "", "value": 1}),
        json!({"type": "and", "filters": {}}),
        json!({"$or": []}),
        json!([1]),
        deep,
    ] {
        let refused = client.call("POST", &search, &json!({"query": "x", "filters": filters}));
        let error = refused.error(400, "invalid_filter");
        let told = error["error"]["param"].as_str().expect("a place");
        assert!(told.starts_with("filters"), "{error}");
    }
    let long = json!({"query": "x", "filters": cmp("in", json!(vec![1; 5000]))});
    client.call("POST", &search, &long).error(400, "too_many_items");
    for (changes, param) in [
        (json!({"query": " "}), "query"),
        (json!({"query": ["a", 7]}), "query"),
        (json!({"query": "x".repeat(17_000)}), "query"),
        (json!({"query": "x", "max_num_results": 51}), "max_num_results"),
        (json!({"query": "x", "max_num_results": 0}), "max_num_results"),
        (json!({"query": "x", "ranking_options": {"ranker": "best"}}), "ranking_options.ranker"),
        (
            json!({"query": "x", "ranking_options": {"score_threshold": 2}}),
            "ranking_options.score_threshold",
        ),
    ] {
        let error = client.call("POST", &search, &changes).error(400, "invalid_value");
        assert_eq!(error["error"]["param"], param, "{error}");
    }
    let ignored = json!({"query": "tower", "rewrite_query": true});
    let reply = client.call("POST", &search, &ignored);
    reply.ok();
    assert_eq!(reply.headers["x-ignored-parameters"], "rewrite_query");
}

#[test]
fn batches_tell_of_each_file() {
    let (server, gate) = gated_server();
    let client = Client::of(&server, "acme");
    let store = client.store("Buildings");
    let tower = client.file("tower.txt", TOWER);
    let picture = text_of(&client.try_file("a.png", b"\x89PNG\r\n\x1a\n\0\0").ok()["id"]);
    let blank = client.file("blank.txt", " ");
    let path = format!("/vector_stores/{store}/file_batches");
    gate.close();
    let files = json!([
        {"file_id": tower, "attributes": {"n": 1}}, {"file_id": picture}, {"file_id": blank},
    ]);
    let made = client.post(&path, json!({"files": files}));
    assert_eq!(made["object"], "vector_store.files_batch");
    let batch = format!("{path}/{}", text_of(&made["id"]));
    assert_eq!(client.get(&batch)["status"], "in_progress");
    assert_eq!(client.get(&format!("/vector_stores/{store}"))["status"], "in_progress");
    gate.open();
    let mut patience = Patience::new();
    let ended = loop {
        let seen = client.get(&batch);
        if seen["status"] != "in_progress" {
            break seen;
        }
        assert!(!patience.is_over(()), "{seen}");
    };
    assert_eq!((&ended["status"], counts(&ended)), (&json!("completed"), [0, 1, 2, 0, 3]));
    let listed = client.get(&format!("{batch}/files?order=asc"));
    assert_eq!(ids(&listed, "id"), [tower.as_str(), &picture, &blank]);
    let error = |at: usize| listed["data"][at]["last_error"]["code"].clone();
    assert_eq!(
        (error(0), error(1), error(2)),
        (Value::Null, json!("unsupported_file"), json!("invalid_file"))
    );
    assert_eq!(listed["data"][0]["attributes"], json!({"n": 1}));
    assert_eq!(ids(&client.get(&format!("{batch}/files?filter=failed")), "id").len(), 2);
    // Attached on its own, it is rejected immediately.
    let alone = format!("/vector_stores/{store}/files");
    let refused = client.call("POST", &alone, &json!({"file_id": picture}));
    refused.error(400, "unsupported_file_format");

    // Cancelling stops the files that still wait; what the store already holds remains.
    let bridge = client.file("bridge.txt", BRIDGE);
    gate.close();
    let made = client.post(&path, json!({"file_ids": [bridge, tower, bridge]}));
    assert_eq!(counts(&made)[4], 2, "a file stands in a batch once");
    let batch = format!("{path}/{}", text_of(&made["id"]));
    let canceled = client.post(&format!("{batch}/cancel"), Value::Null);
    assert_eq!(canceled["status"], "cancelled");
    assert_eq!(counts(&canceled)[3], 1, "{canceled}");
    gate.open();
    client.completed(&store, &tower);
    assert!(
        client.found(&store, json!({"query": "Forth Bridge 1890"})).iter().all(|id| *id == tower)
    );
    let listed = client.get(&format!("{batch}/files?filter=cancelled"));
    assert_eq!(ids(&listed, "id"), [bridge]);

    for (body, code, param) in [
        (json!({}), "missing_field", "file_ids"),
        (json!({"file_ids": []}), "invalid_value", "file_ids"),
        (json!({"file_ids": vec!["x"; 501]}), "too_many_items", "file_ids"),
        (json!({"file_ids": ["a"], "files": [{"file_id": "a"}]}), "conflicting_values", "files"),
        (json!({"files": [{"file_id": "a/b"}]}), "invalid_identifier", "files[0].file_id"),
        (json!({"files": [{"attributes": {}}]}), "missing_field", "files[0].file_id"),
        (
            json!({"files": [{"file_id": "a", "attributes": {"a": []}}]}),
            "invalid_value",
            "files[0].attributes",
        ),
    ] {
        let error = client.call("POST", &path, &body).error(400, code);
        assert_eq!(error["error"]["param"], param, "{body}");
    }
    client.call("POST", &path, &json!({"file_ids": ["none"]})).error(404, "file_not_found");
    let absent = format!("{path}/vsfb_none");
    client.call("GET", &absent, &Value::Null).error(404, "file_batch_not_found");
}

#[test]
fn keys_reach_what_is_theirs_and_nothing_else() {
    let server = TestServer::start();
    let client = Client::of(&server, "acme");
    let stranger = Client::of(&server, "other");
    let narrow = json!([{"tenant_id": "acme", "sub_tenant_ids": ["north"]}]);
    let narrow = Client::limited(&server, "write", narrow);
    let store = client.store("Secret");
    let file = client.file("tower.txt", TOWER);
    client.attach(&store, &file, json!({}));
    let batch =
        client.post(&format!("/vector_stores/{store}/file_batches"), json!({"file_ids": [file]}));
    client.completed(&store, &file);
    let batch = text_of(&batch["id"]);

    // A key without access gets the same response as for an object that does not exist.
    let body = json!({"query": "x", "file_id": file, "file_ids": [file], "name": "y"});
    for other in [&stranger, &narrow] {
        for (method, path) in [
            ("GET", "/files/{f}"),
            ("GET", "/files/{f}/content"),
            ("DELETE", "/files/{f}"),
            ("GET", "/vector_stores/{s}"),
            ("POST", "/vector_stores/{s}"),
            ("DELETE", "/vector_stores/{s}"),
            ("POST", "/vector_stores/{s}/search"),
            ("GET", "/vector_stores/{s}/files"),
            ("POST", "/vector_stores/{s}/files"),
            ("GET", "/vector_stores/{s}/files/{f}"),
            ("POST", "/vector_stores/{s}/files/{f}"),
            ("DELETE", "/vector_stores/{s}/files/{f}"),
            ("GET", "/vector_stores/{s}/files/{f}/content"),
            ("POST", "/vector_stores/{s}/file_batches"),
            ("GET", "/vector_stores/{s}/file_batches/{b}"),
            ("GET", "/vector_stores/{s}/file_batches/{b}/files"),
            ("POST", "/vector_stores/{s}/file_batches/{b}/cancel"),
        ] {
            let ask = |store: &str, file: &str, batch: &str| {
                let path = path.replace("{s}", store).replace("{f}", file).replace("{b}", batch);
                let reply =
                    other.call(method, &path, if method == "POST" { &body } else { &Value::Null });
                check_error(&reply, &path);
                assert_eq!(reply.status, 404, "{path}: {}", reply.json());
                reply.json()
            };
            assert_eq!(ask(&store, &file, &batch), ask("none", "none", "none"), "{method} {path}");
        }
        assert!(ids(&other.get("/files"), "id").is_empty());
    }
    assert_eq!(
        client.found(&store, json!({"query": "Eiffel"})),
        [file.as_str()],
        "it is all there"
    );

    // A key limited to a sub-tenant sees that one as its store even before it holds anything.
    assert_eq!(ids(&narrow.get("/vector_stores"), "id"), ["north"]);
    let refused = narrow.call("POST", "/vector_stores", &json!({"name": "x"}));
    refused.error(403, "insufficient_scope");
    let own = narrow.file("bridge.txt", BRIDGE);
    narrow.attach("north", &own, json!({}));
    assert_eq!(narrow.found("north", json!({"query": "Forth Bridge"})), [own.as_str()]);
    assert_eq!(client.get(&format!("/files/{own}"))["id"], json!(own), "of the whole tenant");
    // A key cannot attach a file to which it has no access.
    let theft = narrow.call("POST", "/vector_stores/north/files", &json!({"file_id": file}));
    theft.error(404, "file_not_found");
    // Deleting a file affects only the stores that the key can access.
    client.attach(&store, &own, json!({}));
    narrow.delete(&format!("/files/{own}"));
    assert!(narrow.found("north", json!({"query": "Forth Bridge"})).is_empty());
    assert!(client.found(&store, json!({"query": "Forth Bridge"})).contains(&own));

    // A file is deleted with the sub-tenant to which it belongs.
    let last = narrow.file("bridge.txt", BRIDGE);
    let path = "/tenant/delete_sub_tenant?tenant_id=acme&sub_tenant_id=north";
    server.call("DELETE", path, Value::Null).ok();
    client.call("GET", &format!("/files/{last}"), &Value::Null).error(404, "file_not_found");

    // A key for several tenants must name the tenant it means.
    let unnamed = server.get("/v1/files").error(400, "missing_field");
    assert_eq!(unnamed["error"]["param"], "x-lodestone-tenant");
    let named = |tenant: &str| {
        let request = Request::get("/v1/files").header("x-lodestone-tenant", tenant);
        let request = request.header("authorization", format!("Bearer {KEY}"));
        server.send(request.body(Body::empty()).expect("a request"))
    };
    assert_eq!(ids(&named("acme").ok(), "id"), [file]);
    named("nowhere").error(404, "tenant_not_found");
    named("../x").error(400, "invalid_identifier");
    let several = json!([{"tenant_id": "acme", "sub_tenant_ids": ["a", "b"]}]);
    let several = Client::limited(&server, "write", several);
    let error = several.try_file("a.txt", b"x").error(400, "missing_field");
    assert_eq!(error["error"]["param"], "x-lodestone-sub-tenant");
    server.post("/embeddings/create_tenant?tenant_id=vectors", Value::Null).ok();
    let vectors = Client::limited(&server, "write", json!([{"tenant_id": "vectors"}]));
    vectors.call("GET", "/vector_stores", &Value::Null).error(409, "tenant_mode_mismatch");
    vectors.try_file("a.txt", b"x").error(409, "tenant_mode_mismatch");
}

#[test]
fn the_first_upload_makes_the_tenant_that_a_key_may_make() {
    let server = TestServer::start();
    let post = |key: &str, body: &Value| {
        let request = Request::post("/v1/vector_stores").header("x-lodestone-tenant", "fresh");
        let request = request.header("authorization", format!("Bearer {key}"));
        let request = request.header("content-type", "application/json");
        server.send(request.body(Body::from(body.to_string())).expect("a request"))
    };
    let scoped = server.make_key("write", json!([{"tenant_id": "fresh"}]));
    post(&scoped, &json!({"name": "s"})).error(404, "tenant_not_found");
    post(KEY, &json!({"expires_after": {}})).error(400, "unsupported_parameter");
    assert_eq!(server.get("/tenant/list").ok()["tenants"], json!([]));
    post(KEY, &json!({"name": "s"})).ok();
    assert_eq!(server.get("/tenant/list").ok()["tenants"][0]["tenant_id"], "fresh");
}

#[test]
fn the_text_of_a_long_file_comes_whole() {
    let server = TestServer::start();
    let client = Client::of(&server, "acme");
    let store = client.store("s");
    let words: Vec<String> = (0..160_000).map(|n| format!("w{n:06}")).collect();
    let text: String = words.chunks(40).map(|words| words.join(" ") + ".\n\n").collect();
    let file = client.file("long.txt", &text);
    client.attach(&store, &file, json!({}));
    let content = format!("/vector_stores/{store}/files/{file}/content");
    let whole = client.get(&content);
    let chunks = server.source("acme", &store, &file)["chunk_count"].as_u64().expect("a number");
    let pieces = whole["data"].as_array().expect("pieces");
    assert_eq!((pieces.len() as u64, &whole["has_more"]), (chunks, &json!(false)));
    assert!(chunks > 1000, "more than are read at once: {chunks}");
    let text: String = pieces.iter().map(|piece| text_of(&piece["text"]) + " ").collect();
    let said: HashSet<&str> = text.split([' ', '.', '\n']).collect();
    assert!(words.iter().all(|word| said.contains(word.as_str())), "every word");
    let last = client.get(&format!("{content}?page={}", chunks - 1));
    assert_eq!(last["data"], json!([pieces[pieces.len() - 1]]));
    assert_eq!(client.get(&format!("{content}?page={chunks}"))["data"], json!([]));
}

#[test]
fn files_count_against_the_limits_of_their_tenant() {
    let server = TestServer::start();
    let client = Client::of(&server, "acme");
    let limit = |sources: Value, bytes: Value| {
        let body = json!({"tenant_id": "acme", "max_sources": sources, "max_bytes": bytes});
        server.post("/admin/tenant_limits", body).ok();
    };
    let used = || {
        let usage = server.get("/tenant/usage?tenant_id=acme").ok();
        (usage["sources"].as_u64().unwrap(), usage["bytes"].as_u64().unwrap())
    };
    limit(json!(2), json!(100));
    let first = client.file("a.txt", &"a".repeat(60));
    client.try_file("b.txt", &[b'b'; 41]).error(507, "limit_reached");
    assert_eq!(used(), (1, 60));
    let second = client.file("b.txt", "The bridge.");
    client.try_file("c.txt", b"c").error(507, "limit_reached");
    // Every store that has the file attached holds a copy, which counts.
    let store = client.store("s");
    let attach = format!("/vector_stores/{store}/files");
    client.call("POST", &attach, &json!({"file_id": second})).error(507, "limit_reached");
    client.delete(&format!("/files/{first}"));
    assert_eq!(used(), (1, 11));
    client.attach(&store, &second, json!({}));
    assert_eq!(used(), (2, 22));
    let batch = json!({"file_ids": [second]});
    let other = client.store("t");
    let refused = client.call("POST", &format!("/vector_stores/{other}/file_batches"), &batch);
    assert_eq!(counts(&refused.ok()), [0, 0, 1, 0, 1], "a failed file of the batch");
    client.delete(&format!("/files/{second}"));
    assert_eq!(used(), (0, 0));
}

#[test]
fn what_cannot_be_kept_is_refused_and_changes_nothing() {
    let server = TestServer::start();
    let client = Client::of(&server, "acme");
    let store = client.store("s");
    let file = client.file("tower.txt", TOWER);
    let before = (client.get("/vector_stores"), client.get("/files"));
    let keys = |count: usize| -> Value {
        let pairs = (0..count).map(|n| (format!("k{n}"), json!("v")));
        Value::Object(pairs.collect())
    };
    let attach = format!("/vector_stores/{store}/files");
    for attributes in [
        keys(17),
        json!({"k".repeat(65): "v"}),
        json!({"": "v"}),
        json!({"k": "v".repeat(513)}),
        json!({"k": null}),
        json!({"k": ["v"]}),
        json!({"k": {"a": 1}}),
        json!("k"),
    ] {
        let body = json!({"file_id": file, "attributes": attributes});
        let error = client.call("POST", &attach, &body).error(400, "invalid_value");
        assert_eq!(error["error"]["param"], "attributes", "{attributes}");
    }
    let huge = json!({"file_id": file, "attributes": keys(100_000)});
    let reply = client.call("POST", &attach, &huge);
    assert!([400, 413].contains(&reply.status), "{}", reply.status);
    check_error(&reply, "huge attributes");
    for (body, code, param) in [
        (json!({"metadata": {"k": 1}}), "invalid_value", "metadata"),
        (json!({"metadata": keys(17)}), "invalid_value", "metadata"),
        (json!({"name": "n".repeat(257)}), "invalid_value", "name"),
        (
            json!({"expires_after": {"anchor": "last_active_at", "days": 1}}),
            "unsupported_parameter",
            "expires_after",
        ),
    ] {
        let error = client.call("POST", "/vector_stores", &body).error(400, code);
        assert_eq!(error["error"]["param"], param, "{error}");
    }
    // Ids that no object can have.
    for id in ["..", "%2e%2e%2fx", "a%2Fb", "%00", "%0a", &"x".repeat(300), "caf%C3%A9", "a%5Cb"] {
        for path in [
            format!("/files/{id}"),
            format!("/files/{id}/content"),
            format!("/vector_stores/{id}"),
            format!("/vector_stores/{id}/files"),
            format!("/vector_stores/{store}/files/{id}"),
            format!("/vector_stores/{store}/file_batches/{id}"),
        ] {
            let reply = client.call("GET", &path, &Value::Null);
            check_error(&reply, &path);
            assert_eq!(reply.status, 404, "{path}");
        }
    }
    let no_file: [Part<'_>; 1] = [("purpose", None, b"assistants")];
    let form = |parts: &[Part<'_>]| server.form_as(&client.key, "POST", "/v1/files", parts);
    form(&no_file).error(400, "missing_field");
    let text: (&str, Option<&str>, &[u8]) = ("file", Some("a.txt"), b"x");
    form(&[text]).error(400, "missing_field");
    form(&[text, ("purpose", None, b"world peace")]).error(400, "invalid_value");
    form(&[("file", Some("a.txt"), b""), ("purpose", None, b"vision")]).error(400, "invalid_value");
    let expiring = ("expires_after[anchor]", None, &b"created_at"[..]);
    let error = form(&[text, ("purpose", None, b"vision"), expiring]);
    assert_eq!(error.error(400, "unsupported_parameter")["error"]["param"], "expires_after");
    assert_eq!((client.get("/vector_stores"), client.get("/files")), before);

    let sizes = json!({"type": "static", "static": {"max_chunk_size_tokens": 800,
        "chunk_overlap_tokens": 400}});
    let body = json!({"file_id": file, "chunking_strategy": sizes});
    let reply = client.call("POST", &attach, &body);
    let own = json!({"type": "static", "static": {"max_chunk_size_tokens": 200,
        "chunk_overlap_tokens": 32}});
    assert_eq!(reply.ok()["chunking_strategy"], own, "it says what holds");
    assert_eq!(reply.headers["x-ignored-parameters"], "chunking_strategy");
}

#[test]
fn files_names_and_batches_are_there_after_a_restart() {
    let server = TestServer::start();
    let client = Client::of(&server, "acme");
    let store = client.store("Buildings");
    let file = client.file("tower.txt", TOWER);
    client.attach(&store, &file, json!({"n": 1}));
    let batch =
        client.post(&format!("/vector_stores/{store}/file_batches"), json!({"file_ids": [file]}));
    client.completed(&store, &file);
    let gone = client.file("gone.txt", BRIDGE);
    client.delete(&format!("/files/{gone}"));
    let paths = [
        "/files".to_owned(),
        "/vector_stores".to_owned(),
        format!("/vector_stores/{store}/files"),
        format!("/vector_stores/{store}/file_batches/{}", text_of(&batch["id"])),
    ];
    let before: Vec<Value> = paths.iter().map(|path| client.get(path)).collect();
    let key = client.key.clone();
    let server = server.restart();
    let client = Client { server: &server, key };
    let after: Vec<Value> = paths.iter().map(|path| client.get(path)).collect();
    assert_eq!(after, before);
    assert_eq!(client.found(&store, json!({"query": "Eiffel"})), [file.as_str()]);
    let content = client.call("GET", &format!("/files/{file}/content"), &Value::Null);
    assert_eq!(content.bytes, TOWER.as_bytes());
}
