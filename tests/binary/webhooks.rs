//! Webhooks against receivers that fail, hang, redirect and impersonate, through kills of the
//! server.
//!
//! Receivers listen on the loopback interface, which a setting allows for their ports only.

#![allow(clippy::disallowed_methods)] // Receivers are sockets of these tests.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver as Channel, Sender, channel};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::process::http::Client;
use crate::process::patience::{Patience, STILL};
use crate::{Installation, ask, settled, upload};

/// A message as received.
#[derive(Debug, Clone)]
struct Message {
    headers: HashMap<String, String>,
    body: String,
}

impl Message {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }

    /// The kind of the event and its source.
    fn event(&self) -> (String, String) {
        let body = self.json();
        let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
        (text("type"), text("file_id"))
    }
}

/// The response of a receiver to its nth connection, counted from 0.
type Behaviour = Arc<dyn Fn(usize) -> Answer + Send + Sync>;

#[derive(Debug, Clone)]
enum Answer {
    Status(u16),
    Redirect(String),
    /// No response until the test ends.
    Nothing,
}

/// A receiver on a port of its own.
struct Receiver {
    address: SocketAddr,
    messages: Channel<Message>,
    connections: Arc<AtomicUsize>,
}

impl Receiver {
    fn new(behaviour: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let (sender, messages) = channel();
        let (behaviour, connections): (Behaviour, _) = (Arc::new(behaviour), Arc::default());
        let counter: Arc<AtomicUsize> = Arc::clone(&connections);
        std::thread::spawn(move || {
            let held = Arc::new(Mutex::new(Vec::new()));
            for stream in listener.incoming().map_while(Result::ok) {
                let number = counter.fetch_add(1, Ordering::SeqCst);
                let (answer, sender, held) = (behaviour(number), sender.clone(), Arc::clone(&held));
                std::thread::spawn(move || {
                    // Clients that disconnect are part of these tests.
                    let kept = serve(stream, &answer, &sender).ok().flatten();
                    held.lock().expect("a lock").extend(kept);
                });
            }
        });
        Self { address, messages, connections }
    }

    fn ok() -> Self {
        Self::new(|_| Answer::Status(200))
    }

    fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    fn next(&self) -> Message {
        self.messages.recv_timeout(STILL).expect("a message arrives")
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

/// Reads one request, reports it and responds; returns the stream if it must stay open.
fn serve(
    stream: TcpStream,
    answer: &Answer,
    messages: &Sender<Message>,
) -> std::io::Result<Option<TcpStream>> {
    stream.set_read_timeout(Some(STILL))?;
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut headers = HashMap::new();
    let mut line = String::new();
    reader.read_line(&mut line)?;
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            // A server that is killed meanwhile leaves half a request.
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.insert(name.to_ascii_lowercase(), value.to_owned());
    }
    let length = headers.get("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = String::from_utf8(body).expect("UTF-8");
    let _ = messages.send(Message { headers, body });
    let end = "content-length: 0\r\nconnection: close\r\n\r\n";
    match answer {
        Answer::Nothing => return Ok(Some(stream)),
        Answer::Status(status) => write!(&stream, "HTTP/1.1 {status} X\r\n{end}")?,
        Answer::Redirect(to) => write!(&stream, "HTTP/1.1 307 X\r\nlocation: {to}\r\n{end}")?,
    }
    Ok(None)
}

/// A TLS receiver whose certificate, made by `openssl`, is for another name.
struct Liar {
    server: Child,
    address: String,
}

impl Liar {
    fn new(dir: &Path) -> Self {
        let run = |command: &str| {
            let mut words = command.split_whitespace();
            let mut command = Command::new(words.next().expect("a program"));
            command.current_dir(dir).args(words).stdin(Stdio::null());
            command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("openssl")
        };
        let made =
            run("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 \
             -keyout other.key -out other.pem -subj /CN=other.example \
             -addext subjectAltName=DNS:other.example");
        assert!(made.wait_with_output().expect("an end").status.success());
        let serve = "openssl s_server -accept 127.0.0.1:0 -cert other.pem -key other.key -www";
        let mut server = run(serve);
        let lines = BufReader::new(server.stdout.take().expect("a pipe")).lines();
        let mut lines = lines.map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.strip_prefix("ACCEPT ")?.to_owned()));
        Self { server, address: address.expect("a port") }
    }
}

impl Drop for Liar {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// The setting that lets the server reach these receivers and nothing else on the loopback
/// interface.
fn allowing(receivers: &[&Receiver]) -> String {
    receivers.iter().map(|one| one.address.to_string()).collect::<Vec<_>>().join(",")
}

fn add(client: &Client, url: &str, events: &[&str]) -> (String, String) {
    let body = json!({"url": url, "events": events});
    let made = ask(client, "POST", "/admin/webhooks", body);
    let text = |name: &str| made[name].as_str().expect("a text").to_owned();
    (text("webhook_id"), text("secret"))
}

const SOURCES: &[&str] = &["source.success", "source.errored", "source.deleted"];

fn delete(client: &Client, id: &str) {
    let body = json!({"tenant_id": "acme", "source_ids": [id]});
    ask(client, "DELETE", "/delete_source", body);
}

fn log_of(client: &Client, webhook: &str) -> Vec<Value> {
    let path = format!("/admin/webhooks/{webhook}/deliveries");
    ask(client, "GET", &path, Value::Null)["deliveries"].as_array().expect("a list").clone()
}

/// Waits until the latest deliveries satisfy a condition.
fn log_with(client: &Client, webhook: &str, is_right: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let mut patience = Patience::new();
    loop {
        let log = log_of(client, webhook);
        if is_right(&log) {
            return log;
        }
        assert!(!patience.is_over(log.clone()), "{log:?}");
    }
}

fn test(client: &Client, webhook: &str) -> Value {
    ask(client, "POST", &format!("/admin/webhooks/{webhook}/test"), Value::Null)
}

/// Goal: events arrive signed and in the order of their source, even if the receiver fails at
/// first. Method: the receiver rejects the first message; a deletion follows while it waits.
#[test]
fn events_arrive_signed_and_in_order_after_failures() {
    let Some(installation) = Installation::new("events_arrive_signed_and_in_order") else { return };
    let receiver = Receiver::new(|number| Answer::Status(if number == 0 { 500 } else { 200 }));
    let allow = allowing(&[&receiver]);
    let (_server, client) = installation.start_with(&[("LODESTONE_FETCH_ALLOW", &allow)]);
    let (id, secret) = add(&client, &receiver.url(), SOURCES);
    upload(&client, "a", "A text about pears.");
    let first = receiver.next();
    assert_eq!(first.event(), ("source.success".into(), "a".into()));
    delete(&client, "a");
    upload(&client, "b", "A text about apples.");
    // The other source does not wait; the first one is redelivered before its deletion.
    assert_eq!(receiver.next().event(), ("source.success".into(), "b".into()));
    let again = receiver.next();
    assert_eq!((again.event(), &again.body), (first.event(), &first.body));
    assert_eq!(receiver.next().event(), ("source.deleted".into(), "a".into()));
    check_signature(&secret, &first);
    check_signature(&secret, &again);
    let body = first.json();
    assert_eq!((&body["tenant_id"], &body["chunk_count"]), (&json!("acme"), &json!(1)));
    assert_eq!(first.headers["webhook-id"], body["id"].as_str().expect("an id"));
    let log = log_with(&client, &id, |log| log.iter().all(|one| one["state"] == "delivered"));
    let attempts: Vec<_> = log.iter().map(|one| (&one["type"], &one["attempts"])).collect();
    assert_eq!(attempts.len(), 3);
    assert!(attempts.contains(&(&json!("source.success"), &json!(2))), "{attempts:?}");
    let listed = ask(&client, "GET", "/admin/webhooks", Value::Null);
    assert!(!listed.to_string().contains(&secret[6..]), "the secret is shown once");
    let metrics = client.call("GET", "/metrics", &Value::Null).expect("an answer").body;
    let metrics = String::from_utf8(metrics).expect("UTF-8");
    for line in [
        "lodestone_webhook_attempts_total{outcome=\"delivered\"} 3",
        "lodestone_webhook_attempts_total{outcome=\"failed\"} 1",
        "lodestone_webhook_backlog 0",
    ] {
        assert!(metrics.contains(line), "{line} in\n{metrics}");
    }
}

/// Verifies a signature with another implementation, `openssl`.
fn check_signature(secret: &str, message: &Message) {
    let script = "KEY=$(printf %s \"${SECRET#whsec_}\" | openssl base64 -d -A | od -An -v -tx1)
        KEY=$(printf %s \"$KEY\" | tr -d ' \\n')
        printf %s \"$SIGNED\" | openssl dgst -sha256 -mac HMAC -macopt \"hexkey:$KEY\" -binary |
        openssl base64 -A";
    let of = |name: &str| message.headers[name].clone();
    let signed = format!("{}.{}.{}", of("webhook-id"), of("webhook-timestamp"), message.body);
    let run = Command::new("sh")
        .args(["-c", script])
        .env("SECRET", secret)
        .env("SIGNED", signed)
        .output()
        .expect("a shell");
    let computed = String::from_utf8(run.stdout).expect("UTF-8");
    assert!(!computed.is_empty(), "openssl: {}", String::from_utf8_lossy(&run.stderr));
    assert_eq!(of("webhook-signature"), format!("v1,{computed}"));
}

/// Goal: a receiver that hangs does not delay others, and nothing is given up because of it.
#[test]
fn a_receiver_that_hangs_delays_no_other() {
    let Some(installation) = Installation::new("a_receiver_that_hangs_delays_no_other") else {
        return;
    };
    let (hanging, other) = (Receiver::new(|_| Answer::Nothing), Receiver::ok());
    let allow = allowing(&[&hanging, &other]);
    let (_server, client) = installation.start_with(&[("LODESTONE_FETCH_ALLOW", &allow)]);
    let (stuck, _) = add(&client, &hanging.url(), SOURCES);
    add(&client, &other.url(), SOURCES);
    let names: Vec<String> = (0..12).map(|n| format!("s{n}")).collect();
    for name in &names {
        upload(&client, name, &format!("The text {name}."));
    }
    let mut told: Vec<String> = names.iter().map(|_| other.next().event().1).collect();
    told.sort();
    let mut expected = names.clone();
    expected.sort();
    assert_eq!(told, expected);
    // By now the first attempt at the other receiver has not even timed out.
    assert!(hanging.connections() <= 2, "two at once at most");
    let log = log_of(&client, &stuck);
    assert!(log.iter().all(|one| one["state"] == "pending"), "{log:?}");
    let log = log_with(&client, &stuck, |log| log.iter().any(|one| one["attempts"] == 1));
    let failed = log.iter().find(|one| one["attempts"] == 1).expect("one");
    assert_eq!(failed["problem"], "not delivered: it took longer than 10 seconds");
    assert!(failed["status"].is_null() && !failed["next_attempt_at"].is_null(), "{failed}");
}

/// Goal: nothing is sent to an address that is not allowed, whether given directly, by redirect or
/// by name.
#[test]
fn nothing_is_sent_where_it_may_not() {
    let Some(installation) = Installation::new("nothing_is_sent_where_it_may_not") else { return };
    let inside = Receiver::ok();
    let target = format!("http://{}/secret", inside.address);
    let redirecting = Receiver::new(move |_| Answer::Redirect(target.clone()));
    let liar = Liar::new(installation.dir.path());
    let allow = format!("{},{}", allowing(&[&redirecting]), liar.address);
    // Its certificate authority is trusted, but the certificate is for another address.
    let authority = installation.dir.path().join("other.pem").display().to_string();
    let variables = [("LODESTONE_FETCH_ALLOW", &*allow), ("LODESTONE_CA_FILE", &*authority)];
    // Names are resolved at each attempt; by then the address may have changed or be forbidden.
    let (server, client) = installation.start_with(&[("LODESTONE_FETCH_ALLOW", "127.0.0.0/8")]);
    let (by_name, _) = add(&client, "http://localhost/", SOURCES);
    drop(server);
    let (_server, client) = installation.start_with(&variables);
    for url in [
        inside.url(),
        "http://localhost/".to_owned(),
        "http://169.254.169.254/latest".to_owned(),
        "http://10.0.0.1/".to_owned(),
        "http://[::1]/".to_owned(),
        "http://0x7f.1/".to_owned(),
        "https://hooks.example:8443/".to_owned(),
    ] {
        let body = json!({"url": url});
        let reply = client.call("POST", "/admin/webhooks", &body).expect("an answer");
        assert_eq!(reply.status, 400, "{url}");
        assert_eq!(reply.json()["reason"], "url_blocked", "{url}");
        assert_eq!(reply.json()["detail"]["errors"][0]["field"], "url");
    }
    let tested = test(&client, &by_name);
    assert_eq!((&tested["delivered"], &tested["status"]), (&json!(false), &Value::Null));
    let problem = tested["problem"].as_str().expect("a text");
    assert!(problem.starts_with("not sent: its host is on a private"), "{problem}");

    let (redirected, _) = add(&client, &redirecting.url(), SOURCES);
    let tested = test(&client, &redirected);
    assert_eq!((&tested["delivered"], &tested["status"]), (&json!(false), &json!(307)));
    let https = format!("https://{}/", liar.address);
    let (lied, _) = add(&client, &https, SOURCES);
    let tested = test(&client, &lied);
    let problem = tested["problem"].as_str().expect("a text");
    assert!(problem.contains("no secure connection could be made"), "{problem}");

    upload(&client, "a", "A text about pears.");
    assert_eq!(settled(&client, "a"), "success");
    for webhook in [&by_name, &redirected, &lied] {
        let log = log_with(&client, webhook, |log| log.len() == 1 && log[0]["attempts"] != 0);
        assert_eq!(log[0]["state"], "pending", "it is tried again");
    }
    assert_eq!(inside.connections(), 0, "nobody came");
    assert!(inside.messages.try_recv().is_err());
}

/// Goal: a kill between commit and delivery loses no event. Method: the receiver accepts no message
/// until the server has been killed and restarted.
#[test]
fn a_kill_before_the_delivery_loses_nothing() {
    let Some(installation) = Installation::new("a_kill_before_the_delivery") else { return };
    let is_open = Arc::new(AtomicUsize::new(0));
    let open = Arc::clone(&is_open);
    let receiver = Receiver::new(move |_| match open.load(Ordering::SeqCst) {
        0 => Answer::Nothing,
        _ => Answer::Status(204),
    });
    let allow = allowing(&[&receiver]);
    let variables = [("LODESTONE_FETCH_ALLOW", &*allow)];
    let (server, client) = installation.start_with(&variables);
    let events = [SOURCES, &["jobs.drained"]].concat();
    add(&client, &receiver.url(), &events);
    upload(&client, "a", "A text about pears.");
    assert_eq!(settled(&client, "a"), "success");
    delete(&client, "a");
    let first = receiver.next();
    server.kill();
    is_open.store(1, Ordering::SeqCst);
    let (_server, client) = installation.start_with(&variables);
    let mut told = Vec::new();
    while !(told.contains(&"source.deleted".to_owned()) && told.contains(&"jobs.drained".into())) {
        let message = receiver.next();
        if message.event().0 == first.event().0 {
            assert_eq!(message.body, first.body, "the same event again");
        }
        told.push(message.event().0);
    }
    let place = |kind: &str| told.iter().position(|one| one == kind).expect(kind);
    assert!(place("source.success") < place("source.deleted"), "{told:?}");
    let webhooks = ask(&client, "GET", "/admin/webhooks", Value::Null);
    let id = webhooks["webhooks"][0]["webhook_id"].as_str().expect("an id").to_owned();
    log_with(&client, &id, |log| {
        log.len() == 3 && log.iter().all(|one| one["state"] == "delivered")
    });
}

/// Goal: the events of a job arrive as they happen, from the queue to its end, and then the stream
/// ends.
#[test]
fn a_job_is_followed_to_its_end() {
    let Some(installation) = Installation::new("a_job_is_followed_to_its_end") else { return };
    let (_server, client) = installation.start();
    upload(&client, "a", &"A text about pears and the months in which they ripen. ".repeat(400));
    let jobs = ask(&client, "GET", "/jobs?tenant_id=acme", Value::Null);
    let job_id = jobs["jobs"][0]["job_id"].as_str().expect("an id").to_owned();
    let mut stream = TcpStream::connect(client.address).expect("a connection");
    stream.set_read_timeout(Some(STILL)).expect("a time above zero");
    let head = format!(
        "GET /jobs/{job_id}/events HTTP/1.1\r\nhost: lodestone\r\nauthorization: Bearer {}\r\n\
         last-event-id: 7\r\nconnection: close\r\n\r\n",
        client.key
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("the stream ends by itself");
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    let names: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    let (last, before) = names.split_last().expect("events");
    assert_eq!(*last, "done");
    assert!(before.iter().all(|name| *name == "job"), "{names:?}");
    let data: Vec<Value> = (text.lines().filter_map(|line| line.strip_prefix("data: ")))
        .map(|data| serde_json::from_str(data).expect("JSON"))
        .collect();
    let end = data.last().expect("an event");
    assert_eq!((&end["status"], &end["job_id"]), (&json!("success"), &json!(job_id)));
    assert!(data.windows(2).all(|pair| pair[0] != pair[1]), "changes alone: {data:?}");
    let missing = client.call("GET", "/jobs/job_none/events", &Value::Null).expect("an answer");
    assert_eq!((missing.status, &missing.json()["reason"]), (404, &json!("job_not_found")));
}

/// Goal: a stream ends with an error when its key is revoked and when the server stops. Method: the
/// stream follows a job that waits behind others; the next event or heartbeat notices that the key
/// is gone.
#[test]
fn the_events_of_a_job_end_with_the_key_and_with_the_server() {
    let Some(installation) = Installation::new("the_events_of_a_job_end") else { return };
    let variables = [("LODESTONE_INGEST_THREADS", "1")];
    let (server, client) = installation.start_with(&variables);
    let made = json!({"name": "k", "role": "read", "tenants": [{"tenant_id": "acme"}]});
    ask(&client, "POST", "/user/create_tenant?tenant_id=acme", Value::Null);
    let made = ask(&client, "POST", "/admin/api_keys", made);
    let text = |name: &str| made[name].as_str().unwrap_or_else(|| panic!("{name} of {made}"));
    let (key, key_id) = (text("api_key"), text("key_id"));
    let rest = follow_and(&client, key, || {
        ask(&client, "DELETE", &format!("/admin/api_keys/{key_id}"), Value::Null);
    });
    assert!(rest.contains("invalid_api_key"), "{rest}");
    let rest = follow_and(&client, &client.key, || server.terminate());
    assert!(rest.contains("\"reason\":\"stopping\""), "{rest}");
}

/// Follows a job that waits behind others and calls `deed` after the first event; returns the rest
/// of the stream, which must end with an error.
fn follow_and(client: &Client, key: &str, deed: impl FnOnce()) -> String {
    for number in 0..20 {
        let pears = format!("Number {number}: pears, and the months in which they ripen. ");
        upload(client, &format!("s{number}"), &pears.repeat(2000));
    }
    let jobs = ask(client, "GET", "/jobs?tenant_id=acme", Value::Null);
    let job = jobs["jobs"].as_array().expect("a list").iter().find(|job| job["file_id"] == "s19");
    let job_id = job.and_then(|job| job["job_id"].as_str()).unwrap_or_else(|| panic!("{jobs}"));
    let mut stream = TcpStream::connect(client.address).expect("a connection");
    stream.set_read_timeout(Some(STILL)).expect("a time above zero");
    let head = format!(
        "GET /jobs/{job_id}/events HTTP/1.1\r\nhost: lodestone\r\nauthorization: Bearer {key}\r\n\
         connection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).expect("the server reads");
    let mut begun = Vec::new();
    while !begun.windows(10).any(|bytes| bytes == b"event: job") {
        let mut bytes = [0; 256];
        let count = stream.read(&mut bytes).expect("an event");
        assert!(count > 0, "{}", String::from_utf8_lossy(&begun));
        begun.extend_from_slice(&bytes[..count]);
    }
    deed();
    let mut rest = String::new();
    stream.read_to_string(&mut rest).expect("the stream ends by itself");
    assert!(rest.contains("event: error") && !rest.contains("event: done"), "{rest}");
    rest
}
