//! The server from an operator's point of view: scraped under load, also by Prometheus itself; its
//! log; and the trace of a question at a collector.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::exposition::Scrape;
use crate::process::http::Client;
use crate::process::patience::{Patience, STILL};
use crate::process::{Server, value_of};
use crate::{Installation, KEY, ask, settled, upload};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const CALLER: &str = "b7ad6b7169203331";

/// Sends one request with its own headers; returns the complete response as text.
fn raw(address: SocketAddr, method: &str, path: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(STILL)).expect("a time above zero");
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: lodestone\r\nconnection: close\r\n");
    let request = format!("{head}{headers}content-length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).expect("the server reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer in UTF-8");
    answer
}

/// A header of a complete response.
fn header<'a>(answer: &'a str, name: &str) -> Option<&'a str> {
    let lines = answer.lines().take_while(|line| !line.is_empty());
    let mut found = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
    found.next()
}

fn scrape(client: &Client) -> (Scrape, String) {
    let reply = client.call("GET", "/metrics", &Value::Null).expect("an answer");
    assert_eq!(reply.status, 200);
    let text = String::from_utf8(reply.body).expect("UTF-8");
    (Scrape::read(&text), text)
}

/// The address of the metrics listener.
fn metrics_address(server: &mut Server) -> SocketAddr {
    let output = server.output();
    let url = output.lines().find_map(|line| value_of(line, "metrics")).expect("a line");
    let address = url.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
    address.expect("an address and a path").0.parse().expect("an address and a port")
}

/// Whether a Prometheus tool is installed; if not, prints that the test is skipped.
fn is_installed(tool: &str, test: &str) -> bool {
    let run = Command::new(tool).arg("--version").output();
    let is_there = run.is_ok_and(|run| run.status.success());
    if !is_there {
        println!("SKIPPED {test}: {tool} is not installed; Debian's package prometheus has it");
    }
    is_there
}

/// Checks that the dashboard shows only existing metrics, and that the documentation names all
/// metrics.
fn every_metric_is_shown(scrape: &Scrape) {
    let read = |path: &str| {
        let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let dashboard = read("deploy/grafana/lodestone.json");
    let parsed: Value = serde_json::from_str(&dashboard).expect("JSON");
    assert!(parsed["panels"].as_array().is_some_and(|panels| panels.len() > 20));
    let mut shown = 0;
    for (at, _) in dashboard.match_indices("lodestone_") {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = dashboard[at..].split(|c| !is_name(c)).next().unwrap_or_default();
        let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        // GPU counters exist only with a GPU.
        let is_known = scrape.types.contains_key(family.unwrap_or(name))
            || name == "lodestone_device_events_total";
        assert!(is_known, "the dashboard shows {name}, which is not there");
        shown += 1;
    }
    assert!(shown > 30);
    let page = read("docs/operations.md");
    for name in scrape.types.keys() {
        let name = name.trim_start_matches("lodestone_");
        assert!(page.contains(&format!("`{name}`")), "{name} is not documented");
    }
}

/// Goal: under load, scrapes are complete, counters never decrease and no label contains a name;
/// the separate listener serves only metrics, without a key.
#[test]
fn metrics_are_scraped_under_load() {
    let Some(installation) = Installation::new("metrics_are_scraped_under_load") else { return };
    let variables = [("LODESTONE_METRICS_LISTEN", "127.0.0.1:0")];
    let (mut server, client) = installation.start_with(&variables);
    let for_metrics = metrics_address(&mut server);
    let is_over = AtomicBool::new(false);
    let (mut last, mut text) = scrape(&client);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..20 {
                upload(&client, &format!("namesecret{n}"), &"Granite is a rock. ".repeat(50));
            }
            (0..20)
                .for_each(|n| assert_eq!(settled(&client, &format!("namesecret{n}")), "success"));
            is_over.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::SeqCst) {
                let query = json!({"tenant_id": "acme", "query": "granite"});
                client.call("POST", "/search/retrieve", &query).expect("an answer");
            }
        });
        while !is_over.load(Ordering::SeqCst) {
            let (next, _) = scrape(&client);
            for (series, count) in &last.series {
                let family = series.split('{').next().unwrap_or_default();
                if family.ends_with("_total") || family.ends_with("_count") {
                    assert!(next.series[series] >= *count, "{series} went back");
                }
            }
            last = next;
        }
    });
    let mut patience = Patience::new();
    while last.get("ingest_jobs_total{outcome=\"success\"}") < 20.0 {
        (last, text) = scrape(&client);
        assert!(!patience.is_over(()), "the last jobs are not counted");
    }
    for lane in ["query", "bulk"] {
        let batches = last.get(&format!("embed_batch_tokens_count{{lane=\"{lane}\"}}"));
        let texts = last.get(&format!("embed_queue_seconds_count{{lane=\"{lane}\"}}"));
        assert!(batches >= 1.0 && texts >= batches, "{lane}: {batches}, {texts}");
    }
    assert!(last.get("embed_tokens_total") > 1000.0);
    assert!(!text.contains("secret") && !text.contains("acme") && !text.contains(KEY));
    every_metric_is_shown(&last);
    let open = raw(for_metrics, "GET", "/metrics", "", "");
    assert!(open.starts_with("HTTP/1.1 200 "), "{open}");
    assert!(raw(for_metrics, "GET", "/tenant/list", "", "").starts_with("HTTP/1.1 404 "));
    assert!(raw(client.address, "GET", "/metrics", "", "").starts_with("HTTP/1.1 401 "));
    if is_installed("promtool", "metrics_are_scraped_under_load") {
        let mut promtool = Command::new("promtool");
        promtool.args(["check", "metrics"]).stdin(Stdio::piped()).stderr(Stdio::piped());
        let mut promtool = promtool.stdout(Stdio::null()).spawn().expect("promtool starts");
        let mut input = promtool.stdin.take().expect("a pipe");
        input.write_all(text.as_bytes()).expect("promtool reads");
        drop(input);
        let judged = promtool.wait_with_output().expect("promtool ends");
        let told = String::from_utf8_lossy(&judged.stderr).into_owned();
        assert!(judged.status.success() && told.is_empty(), "{told}");
    }
}

/// Goal: Prometheus itself, with the sample configuration, scrapes the metrics with a key.
#[test]
fn prometheus_takes_the_metrics() {
    let test = "prometheus_takes_the_metrics";
    let Some(installation) = Installation::new(test) else { return };
    if !is_installed("prometheus", test) {
        return;
    }
    let (_server, client) = installation.start();
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/prometheus.yml");
    let sample = std::fs::read_to_string(sample).expect("the sample");
    let key = installation.dir.path().join("key");
    std::fs::write(&key, KEY).expect("a file");
    let config = sample.replace("lodestone:8080", &client.address.to_string());
    let config = config.replace("/etc/prometheus/lodestone_key", &key.display().to_string());
    let config = config.replace("15s", "1s");
    for part in [client.address.to_string(), key.display().to_string()] {
        assert!(config.contains(&part), "the sample has a place for {part}");
    }
    let path = installation.dir.path().join("prometheus.yml");
    std::fs::write(&path, config).expect("a file");
    // Free until a moment ago; Prometheus cannot report the port it chose.
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a port");
    let mut prometheus = Command::new("prometheus")
        .arg(format!("--config.file={}", path.display()))
        .arg(format!("--storage.tsdb.path={}", installation.dir.path().join("tsdb").display()))
        .arg(format!("--web.listen-address={port}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("Prometheus starts");
    let mut patience = Patience::new();
    let asked = "/api/v1/query?query=lodestone_build_info";
    let told = loop {
        if TcpStream::connect(port).is_ok() {
            let answer = raw(port, "GET", asked, "", "");
            if answer.contains("lodestone_build_info") && answer.contains("all-MiniLM") {
                break answer;
            }
        }
        let has_ended = prometheus.try_wait().expect("a child").is_some();
        assert!(!has_ended && !patience.is_over(()), "Prometheus has no metrics");
    };
    prometheus.kill().expect("a child can be killed");
    prometheus.wait().expect("a child can be waited for");
    assert!(told.contains("\"job\":\"lodestone\""), "{told}");
}

/// The lines of a JSON log with a given target.
fn lines_of(output: &str, target: &str) -> Vec<Value> {
    let parsed = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    parsed.filter(|line| line["target"] == target).collect()
}

fn stopped(mut server: Server) -> String {
    server.terminate();
    assert!(server.ended().is_some_and(|status| status.success()));
    server.output().to_owned()
}

/// Goal: each request, administrative action and slow query is logged with its ids; no line
/// contains a secret or a name.
#[test]
fn the_log_tells_requests_acts_and_slow_queries() {
    let Some(installation) = Installation::new("the_log_tells_requests") else { return };
    let (server, client) = installation.start_with(&[
        ("LODESTONE_LOG_FORMAT", "json"),
        ("LODESTONE_ACCESS_LOG", "true"),
        ("LODESTONE_SLOW_QUERY_MILLIS", "0"),
        ("RUST_LOG", "warn,lodestone_access=info"),
    ]);
    let body = json!({"name": "namesecret", "role": "read"});
    let made = ask(&client, "POST", "/admin/api_keys", body);
    let (key_id, secret) = (made["key_id"].clone(), made["api_key"].as_str().expect("a key"));
    ask(&client, "POST", "/user/create_tenant?tenant_id=acme", Value::Null);
    upload(&client, "sourcesecret", "Granite is an igneous rock.");
    assert_eq!(settled(&client, "sourcesecret"), "success");
    let headers = format!(
        "authorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
         traceparent: 00-{TRACE}-{CALLER}-01\r\nx-request-id: my-request\r\n"
    );
    let query = json!({"tenant_id": "acme", "query": "querysecret"}).to_string();
    let answer = raw(client.address, "POST", "/search/retrieve", &headers, &query);
    assert!(header(&answer, "traceparent").expect("a header").starts_with(&format!("00-{TRACE}-")));
    let reader = Client { key: secret.to_owned(), ..client.clone() };
    let refused = reader.call("POST", "/user/create_tenant?tenant_id=b", &Value::Null);
    assert_eq!(refused.expect("an answer").status, 403);
    let delete = json!({"tenant_id": "acme", "source_ids": ["sourcesecret"]});
    ask(&client, "DELETE", "/upload/delete_source", delete);
    let path = format!("/admin/api_keys/{}", key_id.as_str().expect("an id"));
    ask(&client, "DELETE", &path, Value::Null);
    ask(&client, "DELETE", "/tenant/delete?tenant_id=acme&confirm=acme", Value::Null);
    ask(&client, "GET", "/healthz", Value::Null);
    let told = stopped(server);

    let access = lines_of(&told, "lodestone_access");
    let search = access.iter().find(|line| line["fields"]["route"] == "/search/retrieve");
    let search = search.expect("a line for the search");
    assert_eq!(search["fields"]["status"], 200);
    assert_eq!(search["fields"]["from"], "127.0.0.1");
    assert_eq!(
        (&search["span"]["request_id"], &search["span"]["trace_id"]),
        (&"my-request".into(), &TRACE.into())
    );
    assert!(access.iter().all(|line| line["fields"]["route"] != "/healthz"), "no probes");
    assert!(
        access
            .iter()
            .all(|line| line["span"]["trace_id"].as_str().is_some_and(|id| id.len() == 32))
    );

    let slow = lines_of(&told, "lodestone_slow_query");
    assert_eq!(slow.len(), 1, "{slow:?}");
    assert_eq!(slow[0]["span"]["trace_id"], TRACE);
    for stage in ["embed_ms", "semantic_ms", "keyword_ms", "fuse_ms", "total_ms"] {
        assert!(slow[0]["fields"][stage].as_f64().is_some_and(|ms| ms > 0.0), "{stage}: {slow:?}");
    }

    let acts: Vec<[String; 4]> = lines_of(&told, "lodestone_audit")
        .iter()
        .map(|line| {
            assert_eq!(line["fields"]["from"], "127.0.0.1", "{line}");
            assert!(line["fields"]["key_id"].is_string() && line["span"]["request_id"].is_string());
            ["route", "outcome", "reason", "subject"]
                .map(|name| line["fields"][name].as_str().expect("a text").to_owned())
        })
        .collect();
    let route = |act: &[String; 4]| act[..3].join(" ").trim().to_owned();
    let routes: Vec<String> = acts.iter().map(route).collect();
    assert_eq!(
        routes,
        [
            "/admin/api_keys done",
            "/user/create_tenant done",
            "/user/create_tenant refused insufficient_role",
            "/upload/delete_source done",
            "/admin/api_keys/{key_id} done",
            "/tenant/delete done",
        ]
    );
    let key_id = key_id.as_str().expect("an id");
    assert_eq!((&*acts[0][3], &*acts[4][3]), (key_id, key_id));
    assert_eq!(acts[1][3], acts[5][3], "the collection of the tenant");
    assert_eq!(acts[3][3], format!("1 sources of {}", acts[1][3]));
    for unwanted in ["secret", secret, KEY, "acme"] {
        let line = told.lines().find(|line| line.contains(unwanted));
        assert_eq!(line, None, "{unwanted} is in the log");
    }
}

/// Goal: by default requests are not logged, and the log has the chosen format.
#[test]
fn the_log_is_quiet_and_of_the_form_chosen() {
    let Some(installation) = Installation::new("the_log_is_quiet") else { return };
    for (format, is_json) in [("text", false), ("auto", true), ("json", true)] {
        let (server, client) = installation.start_with(&[("LODESTONE_LOG_FORMAT", format)]);
        ask(&client, "GET", "/tenant/list", Value::Null);
        let told = stopped(server);
        let last = told.lines().last().expect("the line of its end");
        assert!(last.contains("stopped"), "{last}");
        assert_eq!(serde_json::from_str::<Value>(last).is_ok(), is_json, "{format}: {last}");
        assert!(!told.contains("/tenant/list"), "{told}");
    }
}

/// A trace collector: a thread that accepts every body posted to it.
fn collector() -> (SocketAddr, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let (sender, bodies) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let mut reader = BufReader::new(stream);
            // The exporter keeps its connection open.
            while let Some(body) = received(&mut reader) {
                let answer = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                              content-length: 2\r\n\r\n{}";
                let written = reader.get_mut().write_all(answer.as_bytes());
                if sender.send(body).is_err() || written.is_err() {
                    return;
                }
            }
        }
    });
    (address, bodies)
}

/// Reads the next request body on a connection.
fn received(reader: &mut BufReader<TcpStream>) -> Option<Value> {
    let mut length = 0;
    let mut first = String::new();
    reader.read_line(&mut first).ok().filter(|bytes| *bytes > 0)?;
    assert!(first.starts_with("POST /v1/traces HTTP/1.1"), "{first}");
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|bytes| *bytes > 0)?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body).expect("JSON"))
}

/// The spans of a trace by name, after checking that each one's parent exists.
fn spans_of<'a>(
    spans: &'a [Value],
    trace: &str,
    root_parent: Option<&str>,
) -> BTreeMap<&'a str, &'a Value> {
    let own: Vec<&Value> = spans.iter().filter(|span| span["traceId"] == trace).collect();
    for span in &own {
        let parent = span.get("parentSpanId").and_then(Value::as_str);
        let is_there = own.iter().any(|other| other["spanId"].as_str() == parent);
        assert!(is_there || parent == root_parent, "{span} stands alone");
        let time =
            |name: &str| span[name].as_str().expect("a text").parse::<u64>().expect("a time");
        assert!(time("startTimeUnixNano") <= time("endTimeUnixNano"), "{span}");
    }
    own.iter().map(|span| (span["name"].as_str().expect("a name"), *span)).collect()
}

/// Goal: a question is one trace, its caller's, with the stages of its search and answer; a
/// document is one trace, from its original to its commit; traces that the caller does not record
/// are not sent.
#[test]
fn a_collector_gets_one_trace_a_question() {
    let Some(installation) = Installation::new("a_collector_gets_one_trace") else { return };
    let (address, bodies) = collector();
    let (server, client) = installation.start_with(&[
        ("LODESTONE_OTLP_ENDPOINT", &format!("http://{address}/")),
        ("LODESTONE_OTLP_SERVICE_NAME", "library"),
    ]);
    upload(&client, "rocks", "Granite is an igneous rock. It forms deep below the surface.");
    assert_eq!(settled(&client, "rocks"), "success");
    let asked = |flags: &str, trace: &str| {
        let headers = format!(
            "authorization: Bearer {KEY}\r\ncontent-type: application/json\r\n\
             traceparent: 00-{trace}-{CALLER}-{flags}\r\n"
        );
        let question = json!({"tenant_id": "acme", "question": "what is granite?"}).to_string();
        raw(client.address, "POST", "/search/qna", &headers, &question)
    };
    let answer = asked("01", TRACE);
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    let other = TRACE.replace('0', "1");
    assert!(asked("00", &other).starts_with("HTTP/1.1 200 "));
    stopped(server);
    let mut spans = Vec::new();
    for body in bodies.try_iter() {
        let resource = &body["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "library");
        let new = resource["scopeSpans"][0]["spans"].as_array().expect("spans");
        spans.extend(new.iter().cloned());
    }
    assert!(spans.iter().all(|span| span["traceId"] != other.as_str()), "it is not recorded");
    let question = spans_of(&spans, TRACE, Some(CALLER));
    let request = question["request"];
    let traceparent = header(&answer, "traceparent").expect("a header");
    assert_eq!(
        traceparent,
        format!("00-{TRACE}-{}-01", request["spanId"].as_str().expect("an id"))
    );
    assert_eq!((&request["kind"], &request["parentSpanId"]), (&json!(2), &CALLER.into()));
    let route = json!({"key": "http.route", "value": {"stringValue": "/search/qna"}});
    assert!(request["attributes"].as_array().expect("attributes").contains(&route), "{request}");
    for stage in ["understand", "retrieve", "embed", "semantic", "keyword", "fuse", "answer"] {
        assert!(question.contains_key(stage), "{stage} in {:?}", question.keys());
    }
    assert_eq!(question["embed"]["parentSpanId"], question["retrieve"]["spanId"]);
    assert_eq!(question["retrieve"]["parentSpanId"], request["spanId"]);
    let ingest =
        spans.iter().find(|span| span["name"] == "ingest").expect("a trace of the document");
    let document = spans_of(&spans, ingest["traceId"].as_str().expect("an id"), None);
    for stage in ["read", "parse", "chunk", "embed", "graph", "index", "commit"] {
        assert!(document.contains_key(stage), "{stage} in {:?}", document.keys());
    }
    let told = serde_json::to_string(&spans).expect("JSON");
    assert!(!told.contains("acme") && !told.contains("rocks") && !told.contains(KEY));
}

/// Goal: a missing collector costs the server nothing but one line in the log.
#[test]
fn a_missing_collector_is_told_once() {
    let Some(installation) = Installation::new("a_missing_collector_is_told_once") else { return };
    let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a port");
    let url = format!("http://{free}");
    let (server, client) = installation.start_with(&[("LODESTONE_OTLP_ENDPOINT", &url)]);
    upload(&client, "rocks", "Granite is an igneous rock.");
    assert_eq!(settled(&client, "rocks"), "success");
    let told = stopped(server);
    let lines = told.lines().filter(|line| line.contains("the collector of traces"));
    assert!(lines.count() <= 1, "{told}");
}
