//! `lodestone import --from`: stand-ins for the APIs of Qdrant and Chroma, and JSON Lines files.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use serde_json::{Value, json};

use crate::archives::text;
use crate::process::http::Client;
use crate::process::lodestone;
use crate::{Installation, KEY, ask, settled};

const KEY_THERE: &str = "key-of-the-other-server";
const POINTS: usize = 1200;

/// Starts a server that requires a key in a header, and whose second response fails as during a
/// restart; returns its address.
fn serve(
    header: &'static str,
    answer: impl Fn(&str, &Value) -> (u16, Value) + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = format!("http://{}", listener.local_addr().expect("an address"));
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let stream = stream.expect("a connection");
            let told = |request: &str, key: Option<&str>, body: &Value| match (number, key) {
                (_, Some(KEY_THERE)) if number != 1 => answer(request, body),
                (1, Some(KEY_THERE)) => (500, Value::Null),
                _ => (401, Value::Null),
            };
            // A client that was killed has closed its end of the connection.
            let _ = exchange(&stream, header, told);
        }
    });
    address
}

/// Reads a request and writes its response.
fn exchange(
    stream: &TcpStream,
    header: &str,
    answer: impl Fn(&str, Option<&str>, &Value) -> (u16, Value),
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end() {
            "" => break,
            line => head.push(line.to_owned()),
        }
    }
    let value = |name: &str| {
        head.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")).map(str::to_owned)
    };
    let length = value("content-length").map_or(0, |text| text.parse().expect("a number"));
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body: Value = serde_json::from_slice(&body).unwrap_or_default();
    let request = head.first().and_then(|line| line.rsplit_once(' ')).map_or("", |line| line.0);
    let (status, answer) = answer(request, value(header).as_deref(), &body);
    let answer = answer.to_string();
    let length = answer.len();
    let head = "content-type: application/json\r\nconnection: close";
    write!(&*stream, "HTTP/1.1 {status} X\r\n{head}\r\ncontent-length: {length}\r\n\r\n{answer}")
}

/// A server with a single collection, `books`, that responds as Qdrant's documentation describes.
#[derive(Clone)]
struct Qdrant {
    points: Arc<Mutex<Vec<Value>>>,
    distance: &'static str,
    /// Receives a message for every requested page; responses wait until the receiver is dropped.
    pages: Arc<Mutex<Option<mpsc::SyncSender<()>>>>,
}

impl Qdrant {
    /// Starts the server; returns its address.
    fn start(&self) -> String {
        let qdrant = self.clone();
        serve("api-key", move |request, body| match request {
            "GET /collections/books" => (200, qdrant.collection()),
            "POST /collections/books/points/scroll" => (200, qdrant.page(body)),
            _ => (404, json!({"status": {"error": "Not found"}})),
        })
    }

    fn collection(&self) -> Value {
        let vectors = json!({"size": 2, "distance": self.distance});
        let sparse = json!({"words": {}});
        let params = json!({"vectors": vectors, "sparse_vectors": sparse});
        json!({"result": {"status": "green", "config": {"params": params}}, "status": "ok"})
    }

    fn page(&self, body: &Value) -> Value {
        if let Some(pages) = &*self.pages.lock().expect("no panic") {
            // Blocks from the second page on.
            let _ = pages.send(());
        }
        assert_eq!(body["with_payload"], true);
        let points = self.points.lock().expect("no panic");
        let begin = match &body["offset"] {
            Value::Null => 0,
            id => points.iter().position(|point| point["id"] == *id).expect("a known id"),
        };
        let limit = body["limit"].as_u64().expect("a limit") as usize;
        let page: Vec<&Value> = points.iter().skip(begin).take(limit).collect();
        let next = points.get(begin + limit).map(|point| &point["id"]);
        json!({"result": {"points": page, "next_page_offset": next}, "status": "ok", "time": 0.1})
    }
}

fn qdrant(distance: &'static str) -> Qdrant {
    let point = |id: usize| json!({"id": id, "vector": [id, 1], "payload": {"n": id % 10}});
    let mut points: Vec<Value> = (1..=POINTS).map(point).collect();
    points[6]["vector"] = json!({});
    points[7]["payload"] = json!({"deep": [[[[[[[[[1]]]]]]]]]});
    points.push(json!({
        "id": "5c56c793-69f3-4fbf-87e6-c4bf54c28c26", "vector": [0.5, 0], "payload": null,
    }));
    let (points, pages) = (Arc::new(Mutex::new(points)), Arc::default());
    Qdrant { points, distance, pages }
}

/// An import into tenant `books`.
fn import(client: &Client, arguments: &[&str]) -> Command {
    let mut command = lodestone(&["import"]);
    command.args(arguments).env("LODESTONE_SERVER", format!("http://{}", client.address));
    command.env("LODESTONE_API_KEY", KEY).env("LODESTONE_TENANT", "books");
    command.env("QDRANT_API_KEY", KEY_THERE).env("CHROMA_API_KEY", KEY_THERE);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs a command; returns its exit code and output.
fn ended(command: &mut Command) -> (Option<i32>, String) {
    let output: Output = command.output().expect("it runs");
    (output.status.code(), text(&output))
}

fn count(client: &Client) -> u64 {
    let stats = ask(client, "GET", "/tenant/stats?tenant_id=books", Value::Null);
    stats["object_count"].as_u64().expect("a number")
}

/// Goal: everything that can be imported from a collection is imported, with its ids and metric;
/// what cannot is named; and a run can be interrupted and repeated, even if the collection has
/// changed.
#[test]
fn a_collection_of_qdrant_comes_over() {
    let Some(installation) = Installation::new("a_collection_of_qdrant_comes_over") else { return };
    let (_server, client) = installation.start();
    let qdrant = qdrant("Euclid");
    let address = qdrant.start();
    let arguments = ["--from", "qdrant", &address, "--collection", "books"];

    // Killed while it waits for the second page, when the first may already be stored.
    let (pages, seen) = mpsc::sync_channel(0);
    *qdrant.pages.lock().expect("no panic") = Some(pages);
    let mut child = import(&client, &arguments).spawn().expect("it starts");
    seen.recv().expect("a first page");
    seen.recv().expect("a second page");
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    drop(seen);
    *qdrant.pages.lock().expect("no panic") = None;
    assert_eq!(count(&client), 498, "the first page is stored before the second is asked for");

    let (code, said) = ended(&mut import(&client, &arguments));
    assert_eq!(code, Some(1), "{said}");
    assert!(said.starts_with("1199 taken\n") && said.contains("sparse vectors"), "{said}");
    assert!(said.contains("1 not taken, without a vector: 7\n"), "{said}");
    assert!(said.contains("1 not taken, metadata") && said.contains(": 8\n"), "{said}");
    assert_eq!(count(&client), 1199);
    let query = json!({
        "tenant_id": "books", "embeddings": [[20, 1], [0.5, 0]], "filter": {}, "max_chunks": 2,
        "with_metadata": true,
    });
    let found = ask(&client, "POST", "/embeddings/search", query);
    assert_eq!(
        found["results"][0][0],
        json!({"chunk_id": "20", "score": 0.0, "metadata": {"n": 0}})
    );
    assert_eq!(found["results"][1][0]["chunk_id"], "5c56c793-69f3-4fbf-87e6-c4bf54c28c26");

    let (_, said) = ended(import(&client, &arguments).arg("--resume"));
    assert!(said.starts_with("0 taken\n1199 already there"), "{said}");
    // A new point within the first page is not mistaken for a known one.
    let new = json!({"id": 5000, "vector": [3, 1], "payload": {}});
    qdrant.points.lock().expect("no panic").insert(9, new);
    let (_, said) = ended(import(&client, &arguments).arg("--resume"));
    assert!(said.starts_with("1200 taken"), "{said}");
    assert_eq!(count(&client), 1200);
    // An additional first point shifts all pages, so that ids fall into other batches than before.
    let first = json!({"id": 0, "vector": [0, 1], "payload": {}});
    qdrant.points.lock().expect("no panic").insert(0, first);
    let (_, said) = ended(&mut import(&client, &arguments));
    assert!(said.starts_with("1201 taken"), "{said}");
    assert_eq!(count(&client), 1201);
}

#[test]
fn a_collection_of_chroma_comes_over() {
    let Some(installation) = Installation::new("a_collection_of_chroma_comes_over") else { return };
    let (_server, client) = installation.start();
    const ALL: &str = "/api/v2/tenants/default_tenant/databases/mine/collections";
    let address = serve("x-chroma-token", move |request, body| {
        if request == format!("GET {ALL}/books") {
            return (200, json!({"id": "c-1", "configuration_json": {"hnsw": {"space": "ip"}}}));
        }
        assert_eq!(request, format!("POST {ALL}/c-1/get"));
        let part = |name: &str| body[name].as_u64().expect("a number");
        let page = part("offset")..(part("offset") + part("limit")).min(POINTS as u64);
        let each = |of: &dyn Fn(u64) -> Value| page.clone().map(of).collect::<Value>();
        let answer = json!({
            "ids": each(&|at| json!(format!("id {at}"))),
            "embeddings": each(&|at| if at == 3 { Value::Null } else { json!([at, 1.0]) }),
            "documents": each(&|at| json!(format!("text {at}"))),
            "metadatas": each(&|at| if at % 2 == 0 { Value::Null } else { json!({"n": at}) }),
            "uris": null,
        });
        (200, answer)
    });
    let arguments = ["--from", "chroma", &address, "--collection", "books"];
    let (code, said) = ended(import(&client, &arguments).env("CHROMA_DATABASE", "mine"));
    assert!(code == Some(1) && said.starts_with("1199 taken\n"), "{said}");
    assert!(said.contains("1 not taken, without a vector: id 3"), "{said}");
    assert_eq!(count(&client), 1199);
    let query = json!({"tenant_id": "books", "embeddings": [1, 0], "with_metadata": true});
    let found = ask(&client, "POST", "/embeddings/search", query);
    let metadata = json!({"n": 1199, "text": "text 1199"});
    let best = json!({"chunk_id": "id 1199", "score": 1199.0, "metadata": metadata});
    assert_eq!(found["results"][0][0], best);
}

#[test]
fn what_cannot_be_imported_is_said() {
    let Some(installation) = Installation::new("what_cannot_be_imported_is_said") else { return };
    let (_server, client) = installation.start();
    let address = qdrant("Manhattan").start();
    let from = ["--from", "qdrant", &address];
    let (code, said) = ended(import(&client, &from).args(["--collection", "books"]));
    assert!(code == Some(2) && said.contains("Manhattan"), "{said}");
    let other = ["--collection", "other"];
    let (code, said) = ended(import(&client, &from).args(other));
    assert!(code == Some(3) && said.contains("collection other not found"), "{said}");
    let (code, said) = ended(import(&client, &from).args(other).env("QDRANT_API_KEY", "wrong"));
    assert!(code == Some(4) && said.contains("QDRANT_API_KEY"), "{said}");
    let (code, said) = ended(&mut import(&client, &from));
    assert!(code == Some(2) && said.contains("--collection"), "{said}");
    let nobody = "http://127.0.0.1:1";
    let from_nobody = ["--from", "qdrant", nobody, "--collection", "books"];
    let to_nobody = ["--from", "qdrant", &address, "--collection", "books", "--server", nobody];
    for arguments in [&from_nobody[..], &to_nobody] {
        let (code, said) = ended(&mut import(&client, arguments));
        let told = format!("{nobody}: no answer after 3 attempts");
        assert!(code == Some(1) && said.contains(&told), "{said}");
    }
    let (code, said) = ended(&mut import(&client, &["--from", "jsonl", "/no/such/file"]));
    assert!(code == Some(2) && said.contains("/no/such/file"), "{said}");
    ask(&client, "POST", "/user/create_tenant?tenant_id=books", Value::Null);
    let file = installation.dir.path().join("v.jsonl");
    std::fs::write(&file, "{\"vector\": [1, 2]}\n").expect("a new file");
    let (code, said) = ended(&mut import(&client, &["--from", "jsonl", path(&file)]));
    assert!(code == Some(2) && said.contains("stores documents"), "{said}");
    let (code, said) = ended(&mut import(&client, &[path(&file)]));
    assert!(code == Some(2) && said.contains("--from jsonl"), "{said}");
    let (code, said) = ended(&mut import(&client, &[path(&file), "--metric", "dot"]));
    assert!(code == Some(2) && said.contains("--metric"), "{said}");
    std::fs::write(&file, "{\"text\": \"Some words.\"}\n").expect("a new file");
    let texts = ["--from", "jsonl", path(&file), "--metric", "dot"];
    let (code, said) = ended(&mut import(&client, &texts));
    assert!(code == Some(2) && said.contains("--metric applies to vectors"), "{said}");
    let (code, said) = ended(&mut import(&client, &texts[..3]));
    assert!(code == Some(0) && said.contains("once they are processed"), "{said}");
}

/// Goal: an import that waits ends once its texts are searchable.
#[test]
fn an_import_waits_until_texts_can_be_searched() {
    let test = "an_import_waits_until_texts_can_be_searched";
    let Some(installation) = Installation::new(test) else { return };
    let (_server, client) = installation.start();
    let file = installation.dir.path().join("t.jsonl");
    let line = |at: usize| json!({"id": format!("t{at}"), "text": "A report about granite."});
    let lines: Vec<String> = (0..120).map(|at| line(at).to_string()).collect();
    std::fs::write(&file, lines.join("\n")).expect("a new file");
    let arguments = ["--from", "jsonl", path(&file), "--tenant", "acme", "--wait"];
    let (code, said) = ended(&mut import(&client, &arguments));
    assert!(code == Some(0) && said.starts_with("120 taken"), "{said}");
    assert_eq!(crate::found(&client, "granite").len(), 120);
}

/// Writes a file of vectors with these ids, `part.jsonl` in a folder; returns its path.
fn vectors_in(folder: PathBuf, ids: Range<usize>) -> PathBuf {
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("part.jsonl");
    let lines: Vec<String> =
        ids.map(|id| json!({"id": id, "vector": [id, 1]}).to_string()).collect();
    std::fs::write(&file, lines.join("\n")).expect("a writable file");
    file
}

/// Goal: a file of vectors replaces the vectors with its ids, and no others: neither those of
/// another file with its name, nor its own after it has become longer or shorter.
#[test]
fn files_of_one_name_keep_each_others_vectors() {
    let test = "files_of_one_name_keep_each_others_vectors";
    let Some(installation) = Installation::new(test) else { return };
    let (_server, client) = installation.start();
    let folder = |year: &str| installation.dir.path().join(year);
    for (year, ids, all) in [
        ("2024", 0..3, 3),
        ("2025", 3..6, 6),
        ("2025", 3..8, 8),
        ("2025", 4..8, 8),
        ("2026", 2..4, 8),
    ] {
        let file = vectors_in(folder(year), ids.clone());
        let (code, said) = ended(&mut import(&client, &["--from", "jsonl", path(&file)]));
        let taken = format!("{} taken\n", ids.len());
        assert!(code == Some(0) && said.starts_with(&taken), "{year} {ids:?}: {said}");
        assert_eq!(count(&client), all, "{year} {ids:?}");
    }
}

/// Goal: a run that resumes skips vectors only while all vectors of their batch are stored.
#[test]
fn a_resumed_import_skips_only_stored_vectors() {
    let test = "a_resumed_import_skips_only_stored_vectors";
    let Some(installation) = Installation::new(test) else { return };
    let (_server, client) = installation.start();
    let resumed = |ids: Range<usize>| {
        let file = vectors_in(installation.dir.path().join("vectors"), ids);
        let (code, said) =
            ended(&mut import(&client, &["--from", "jsonl", path(&file), "--resume"]));
        assert_eq!(code, Some(0), "{said}");
        said
    };
    let said = resumed(0..3);
    assert!(said.starts_with("3 taken\n") && !said.contains("already"), "{said}");
    let said = resumed(0..3);
    assert!(said.starts_with("0 taken\n3 already there\n"), "{said}");
    let said = resumed(0..4);
    assert!(said.starts_with("4 taken\n") && !said.contains("already"), "{said}");
    let one = json!({"tenant_id": "books", "chunk_ids": ["2"]});
    ask(&client, "DELETE", "/embeddings/delete", one);
    let said = resumed(0..4);
    assert!(said.starts_with("4 taken\n") && !said.contains("already"), "{said}");
    let said = resumed(0..4);
    assert!(said.starts_with("0 taken\n4 already there\n"), "{said}");
    assert_eq!(count(&client), 4);
}

fn path(file: &Path) -> &str {
    file.to_str().expect("UTF-8")
}

#[test]
fn json_lines_come_over_as_texts_or_vectors() {
    let test = "json_lines_come_over_as_texts_or_vectors";
    let Some(installation) = Installation::new(test) else { return };
    let (_server, client) = installation.start();
    let folder = installation.dir.path().join("texts");
    std::fs::create_dir(&folder).expect("a new folder");
    let write = |name: &str, lines: &str| {
        std::fs::write(folder.join(name), lines).expect("a new file");
    };
    write(
        "a.jsonl",
        "{\"id\": \"granite\", \"text\": \"A wall of granite.\", \"metadata\": {\"n\": 1}}\n",
    );
    write(
        "b.ndjson",
        "\n{\"text\": \"A boat of oak.\", \"lang\": \"en\"}\nnot json\n{\"text\": \"\"}",
    );
    write("c.txt", "is left alone");
    let arguments = ["--from", "jsonl", path(&folder), "--tenant", "acme"];
    let (code, said) = ended(&mut import(&client, &arguments));
    assert!(
        code == Some(1) && said.starts_with("2 taken\nleft out of every record: \"lang\"\n"),
        "{said}"
    );
    assert!(said.contains("b.ndjson:3") && said.contains("neither text nor vector: b.ndjson:4"));
    assert_eq!(settled(&client, "granite"), "success");
    assert_eq!(settled(&client, "b.ndjson:2"), "success");
    let (_, said) = ended(import(&client, &arguments).arg("--resume"));
    assert!(said.starts_with("0 taken\n2 already there"), "{said}");
    let mut broken = b"%PDF-1.7\n".to_vec();
    broken.resize(1000, 0xe9);
    let upload = "/upload/upload_document?tenant_id=acme";
    let reply = client.file(upload, "broken.pdf", &broken, &[("file_id", "granite")]);
    assert_eq!(reply.expect("an answer").status, 200);
    assert_eq!(settled(&client, "granite"), "errored");
    let (_, said) = ended(import(&client, &arguments).arg("--resume"));
    assert!(said.starts_with("1 taken\n1 already there"), "{said}");
    assert_eq!(settled(&client, "granite"), "success");

    let file = installation.dir.path().join("vectors.jsonl");
    let line = |at: usize| json!({"id": at, "vector": [at, 1.5], "text": format!("row {at}")});
    let mut lines: Vec<String> = (0..2300).map(|at| line(at).to_string()).collect();
    lines.push(json!({"id": "wide", "vector": [1, 2, 3]}).to_string());
    lines.push(json!({"id": "wordy", "text": "no vector"}).to_string());
    lines.push(json!({"id": 2299, "vector": [5, 5]}).to_string());
    std::fs::write(&file, lines.join("\n")).expect("a new file");
    let arguments = ["--from", "jsonl", path(&file), "--metric", "dot", "--json"];
    for _ in 0..2 {
        let (code, said) = ended(&mut import(&client, &arguments));
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains("\"taken\": 2300") || said.contains("\"taken\":2300"), "{said}");
        assert_eq!(count(&client), 2300);
    }
    let query = json!({"tenant_id": "books", "embeddings": [1, 0], "with_metadata": true});
    let found = ask(&client, "POST", "/embeddings/search", query);
    let best = json!({"chunk_id": "2298", "score": 2298.0, "metadata": {"text": "row 2298"}});
    assert_eq!(found["results"][0][0], best);
}
