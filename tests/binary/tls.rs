//! TLS on the listener with certificates made by `openssl`: certificates rejected at the start,
//! renewed certificates, and clients that speak plain HTTP or nothing at all.

#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use lodestone_fetch::Authorities;
use tempfile::TempDir;

use crate::process::patience::{Patience, STILL};
use crate::process::{Server, lodestone};
use crate::{Installation, KEY};

/// A certificate authority in a directory of its own, and the certificates that it signs.
pub struct Authority {
    dir: TempDir,
}

impl Authority {
    /// Creates an authority, or prints that the test is skipped and returns `None`.
    pub fn new(test: &str) -> Option<Self> {
        let authority = Self { dir: TempDir::new().expect("a temporary directory") };
        let names = "subjectAltName=IP:127.0.0.1,DNS:localhost\n";
        std::fs::write(authority.path("names"), names).expect("a file");
        let made = openssl(
            authority.dir.path(),
            "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key \
             -out ca.pem -subj /CN=authority -days 2",
        );
        if !made {
            println!("SKIPPED {test}: openssl is missing");
        }
        made.then_some(authority)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Creates a certificate for this machine; with -1 days it has already expired.
    pub fn certificate(&self, name: &str, days: i32) -> (PathBuf, PathBuf) {
        let request = format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key \
             -out {name}.csr -subj /CN=localhost"
        );
        let sign = format!(
            "x509 -req -in {name}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days {days} \
             -extfile names -out {name}.pem"
        );
        assert!(openssl(self.dir.path(), &request) && openssl(self.dir.path(), &sign));
        (self.path(&format!("{name}.pem")), self.path(&format!("{name}.key")))
    }

    /// A client that trusts this authority.
    pub fn agent(&self) -> ureq::Agent {
        agent(&self.path("ca.pem"), 1)
    }
}

fn openssl(dir: &Path, arguments: &str) -> bool {
    let run = Command::new("openssl").current_dir(dir).args(arguments.split_whitespace()).output();
    run.is_ok_and(|run| run.status.success())
}

/// A client that trusts the certificates of a file and keeps up to `kept` idle connections.
fn agent(authorities: &Path, kept: usize) -> ureq::Agent {
    let config = Authorities::read(authorities).expect("certificates").client(None);
    let config = config.max_idle_connections(kept).max_idle_age(STILL);
    config.timeout_global(Some(STILL)).build().into()
}

/// A server whose certificate and key are in its folder as `cert.pem` and `key.pem`.
struct Secure {
    installation: Installation,
    server: Server,
    address: SocketAddr,
}

impl Secure {
    fn start(test: &str, pair: &(PathBuf, PathBuf)) -> Option<Self> {
        let installation = Installation::new(test)?;
        let file = |name: &str| installation.dir.path().join(name).display().to_string();
        let (certificate, key) = (file("cert.pem"), file("key.pem"));
        std::fs::copy(&pair.0, &certificate).expect("a copy");
        std::fs::copy(&pair.1, &key).expect("a copy");
        let variables = [("LODESTONE_TLS_CERT", &*certificate), ("LODESTONE_TLS_KEY", &*key)];
        let (server, client) = installation.start_with(&variables);
        Some(Self { address: client.address, installation, server })
    }

    /// Replaces the files atomically, as tools that renew certificates do.
    fn replace(&self, pair: &(PathBuf, PathBuf)) {
        for (from, to) in [(&pair.0, "cert.pem"), (&pair.1, "key.pem")] {
            let to = self.installation.dir.path().join(to);
            std::fs::copy(from, to.with_extension("new")).expect("a copy");
            std::fs::rename(to.with_extension("new"), to).expect("a new name");
        }
    }

    fn hang_up(&self) {
        let command = format!("kill -HUP {}", self.server.id());
        assert!(Command::new("sh").args(["-c", &command]).status().expect("a shell").success());
    }

    fn get(&self, agent: &ureq::Agent, path: &str) -> Result<(u16, String), String> {
        get(self.address, agent, path)
    }

    /// Waits until a page contains a text.
    fn wait_for(&self, agent: &ureq::Agent, path: &str, text: &str) {
        let mut patience = Patience::new();
        loop {
            let found = self.get(agent, path);
            if matches!(&found, Ok((_, page)) if page.contains(text)) {
                return;
            }
            assert!(!patience.is_over(()), "{text} is not in {found:?}");
        }
    }
}

/// Requests a page; returns its status and text, or the error.
fn get(address: SocketAddr, agent: &ureq::Agent, path: &str) -> Result<(u16, String), String> {
    let url = format!("https://{address}{path}");
    let asked = agent.get(&url).header("authorization", &format!("Bearer {KEY}")).call();
    let mut answer = asked.map_err(|error| error.to_string())?;
    let text = answer.body_mut().read_to_string().map_err(|error| error.to_string())?;
    Ok((answer.status().as_u16(), text))
}

/// Goal: unusable certificates are rejected before anything is created, and the message names the
/// file.
#[test]
fn bad_certificates_are_refused_at_the_start() {
    let test = "bad_certificates_are_refused_at_the_start";
    let Some(authority) = Authority::new(test) else { return };
    let (good, key) = authority.certificate("good", 2);
    let (_, other) = authority.certificate("other", 2);
    let (expired, its_key) = authority.certificate("expired", -1);
    let (garbage, missing) = (authority.path("names"), authority.path("missing.pem"));
    let cases = [
        (&expired, &its_key, &expired, "has expired"),
        (&good, &other, &other, "does not match the certificate"),
        (&garbage, &key, &garbage, "no PEM certificate"),
        (&good, &garbage, &garbage, "no PEM private key"),
        (&missing, &key, &missing, "No such file"),
        (&good, &missing, &missing, "No such file"),
    ];
    for (certificate, key, named, problem) in cases {
        let data = authority.path("data");
        let mut command = lodestone(&["serve", "--listen", "127.0.0.1:0"]);
        command.arg("--data-dir").arg(&data).arg("--tls-cert").arg(certificate);
        let run = command.arg("--tls-key").arg(key).output().expect("it runs");
        let said = String::from_utf8_lossy(&run.stderr);
        let is_named = said.contains(&named.display().to_string()) && said.contains(problem);
        assert!(!run.status.success() && is_named, "{problem}: {said}");
        assert!(!data.exists(), "{problem}: a data directory was made");
    }
}

/// Goal: a renewed certificate is used without a signal, existing connections survive it, and an
/// unusable one changes nothing except for the message to the operator.
#[test]
fn a_new_certificate_is_used_and_a_bad_one_is_not() {
    let test = "a_new_certificate_is_used_and_a_bad_one_is_not";
    let (Some(first), Some(second)) = (Authority::new(test), Authority::new(test)) else { return };
    let Some(mut secure) = Secure::start(test, &first.certificate("a", 2)) else { return };
    let (old, new) = (first.agent(), second.agent());
    let (status, page) = secure.get(&old, "/readyz").expect("an answer");
    assert!(status == 200 && page.contains(r#""tls":"ok""#), "{page}");
    assert!(secure.get(&new, "/readyz").is_err(), "the authority is not the one that signed");

    secure.replace(&second.certificate("b", 2));
    secure.wait_for(&new, "/readyz", r#""tls":"ok""#);
    // This client would reject a new connection.
    assert_eq!(secure.get(&old, "/healthz").expect("the connection stayed").0, 200);
    assert!(secure.get(&first.agent(), "/healthz").is_err(), "the old certificate is shown");

    let (good, key) = second.certificate("c", 2);
    secure.replace(&(first.path("names"), key.clone()));
    secure.wait_for(&new, "/readyz", r#""tls":"degraded"#);
    assert_eq!(secure.get(&second.agent(), "/readyz").expect("the old one stays").0, 200);
    let said = secure.server.output().to_owned();
    assert!(said.contains("cert.pem") && said.contains("keeping the old one"), "{said}");
    let (expired, its_key) = second.certificate("expired", -1);
    secure.replace(&(expired, its_key));
    secure.wait_for(&new, "/metrics", "lodestone_tls_reloads_total{outcome=\"refused\"} 2");
    secure.replace(&(good, key));
    secure.hang_up();
    secure.wait_for(&new, "/readyz", r#""tls":"ok""#);
    let (_, page) = secure.get(&second.agent(), "/metrics").expect("an answer");
    let expires = page.lines().find_map(|line| {
        line.strip_prefix("lodestone_tls_certificate_expires_seconds ")?.parse::<u64>().ok()
    });
    assert!(expires.is_some_and(|at| at > 1_700_000_000), "{expires:?}");
}

/// Goal: certificates change ten times while clients open a connection per request, and no request
/// fails.
#[test]
fn certificates_change_under_load() {
    const CHANGES: u64 = 10;
    let test = "certificates_change_under_load";
    let Some(authority) = Authority::new(test) else { return };
    let pairs = [authority.certificate("a", 2), authority.certificate("b", 2)];
    let Some(secure) = Secure::start(test, &pairs[0]) else { return };
    let (asked, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    let (fresh, address) = (|| agent(&authority.path("ca.pem"), 0), secure.address);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let agent = fresh();
                while !is_over.load(Ordering::SeqCst) {
                    let found = get(address, &agent, "/list/sources?tenant_id=none");
                    assert!(matches!(found, Ok((404, _))), "{found:?}");
                    asked.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        let agent = fresh();
        let changed = || {
            let (_, page) = secure.get(&agent, "/metrics").expect("an answer");
            let prefix = "lodestone_tls_reloads_total{outcome=\"reloaded\"} ";
            let count = page.lines().find_map(|line| line.strip_prefix(prefix)?.parse().ok());
            count.unwrap_or(0_u64)
        };
        for number in 1..=CHANGES {
            let (before, requests) = (changed(), asked.load(Ordering::SeqCst));
            secure.replace(&pairs[number as usize % 2]);
            secure.hang_up();
            let mut patience = Patience::new();
            while changed() == before || asked.load(Ordering::SeqCst) < requests + 3 {
                assert!(!patience.is_over(()), "change {number} is not seen");
            }
        }
        is_over.store(true, Ordering::SeqCst);
    });
    assert!(asked.load(Ordering::SeqCst) >= 3 * CHANGES);
}

/// Goal: the URL of an original is one that the client can follow: it reflects the server's own
/// TLS, and the scheme that a proxy reports takes precedence.
#[test]
fn the_url_of_an_original_is_one_with_tls() {
    let test = "the_url_of_an_original_is_one_with_tls";
    let Some(authority) = Authority::new(test) else { return };
    let Some(secure) = Secure::start(test, &authority.certificate("a", 2)) else { return };
    let agent = authority.agent();
    let base = format!("https://{}", secure.address);
    let post = |path: &str, body: &str, scheme: Option<&str>| -> serde_json::Value {
        let mut asked = agent.post(format!("{base}{path}"));
        asked = asked.header("authorization", format!("Bearer {KEY}"));
        asked = asked.header("content-type", "application/json");
        if let Some(scheme) = scheme {
            asked = asked.header("x-forwarded-proto", scheme);
        }
        let text = asked.send(body).expect("an answer").body_mut().read_to_string();
        serde_json::from_str(&text.expect("a text")).expect("JSON")
    };
    let text = r#"{"file_id": "lamps", "content": "Forty lamps."}"#;
    post("/upload/upload_text?tenant_id=acme", text, None);
    let fetch = r#"{"tenant_id": "acme", "file_id": "lamps", "return_content": false}"#;
    let url = |scheme| {
        let answer = post("/fetch/fetch_content", fetch, scheme);
        answer["download_url"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    };
    let own = url(None);
    assert!(own.starts_with(&format!("{base}/fetch/download/")), "{own}");
    let file = agent.get(&own).call().expect("an answer").body_mut().read_to_string();
    assert_eq!(file.expect("a text"), "Forty lamps.");
    assert!(url(Some("http")).starts_with("http://"), "the client is said to be without TLS");
}

/// Goal: clients that stall in a handshake are disconnected and delay nobody; plain HTTP requests
/// are told where to go; a server shuts down despite them.
#[test]
fn slow_and_plain_clients_are_answered_or_ended() {
    const SLOW: usize = 200;
    let test = "slow_and_plain_clients_are_answered_or_ended";
    let Some(authority) = Authority::new(test) else { return };
    let Some(mut secure) = Secure::start(test, &authority.certificate("a", 2)) else { return };
    let slow: Vec<TcpStream> = (0..SLOW)
        .map(|number| {
            let mut stream = TcpStream::connect(secure.address).expect("a connection");
            // Nothing, or the beginning of a record whose rest never arrives.
            stream.write_all(&[22, 3, 1, 2, 0][..number % 6]).expect("it is sent");
            stream.set_read_timeout(Some(STILL)).expect("a time");
            stream
        })
        .collect();
    let agent = agent(&authority.path("ca.pem"), 0);
    assert_eq!(secure.get(&agent, "/healthz").expect("an answer beside them").0, 200);
    for mut stream in slow {
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).expect("the server closes it");
    }

    let mut plain = TcpStream::connect(secure.address).expect("a connection");
    plain.set_read_timeout(Some(STILL)).expect("a time");
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").expect("it is sent");
    let mut answer = String::new();
    plain.read_to_string(&mut answer).expect("an answer and the end");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("tls_required") && answer.contains("https://"), "{answer}");

    // A handshake in progress does not keep a server from stopping.
    let mut begun = TcpStream::connect(secure.address).expect("a connection");
    begun.write_all(&[22, 3, 1]).expect("it is sent");
    secure.server.terminate();
    assert!(secure.server.ended().expect("it ends").success());
}

/// Goal: client commands trust a server whose authority is in the given file, and no other.
#[test]
fn clients_trust_the_authorities_of_a_file() {
    let test = "clients_trust_the_authorities_of_a_file";
    let (Some(right), Some(wrong)) = (Authority::new(test), Authority::new(test)) else { return };
    let Some(secure) = Secure::start(test, &right.certificate("a", 2)) else { return };
    let file = secure.installation.dir.path().join("note.txt");
    std::fs::write(&file, "A wall of granite.").expect("a file");
    let url = format!("https://{}", secure.address);
    let ingest = |authorities: &Path| {
        let mut command = lodestone(&["ingest", "--tenant", "acme", "--server", &url]);
        command.arg("--no-state").arg("--ca-file").arg(authorities).arg(&file);
        let run = command.env("LODESTONE_API_KEY", KEY).output().expect("it runs");
        (run.status.success(), String::from_utf8_lossy(&run.stderr).into_owned())
    };
    let (is_done, said) = ingest(&right.path("ca.pem"));
    assert!(is_done, "{said}");
    let (is_done, said) = ingest(&right.path("names"));
    assert!(!is_done && said.contains("no PEM certificate"), "{said}");
    let (is_done, said) = ingest(&wrong.path("ca.pem"));
    assert!(
        !is_done && said.contains("set the certificate of its authority with --ca-file"),
        "{said}"
    );
    let key = secure.installation.dir.path().join("key");
    std::fs::write(&key, KEY).expect("a file");
    let mut backup = lodestone(&["backup", "/tmp/elsewhere", "--server", &url, "--api-key-file"]);
    backup.arg(&key).arg("--ca-file").arg(right.path("ca.pem"));
    let said = backup.output().expect("it runs").stderr;
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(said.contains("400") && said.contains("start it with --backup-to"), "{said}");
    // The generator check of `doctor` uses the same trust; this server asks for a key.
    let look = |authorities: &Path| {
        let model = secure.installation.model.display().to_string();
        let mut command = lodestone(&["doctor", "--model-dir", &model, "--llm-model", "none"]);
        command.args(["--listen", "127.0.0.1:0", "--llm-base-url", &format!("{url}/v1")]);
        command.arg("--data-dir").arg(secure.installation.dir.path().join("none"));
        let run = command.arg("--ca-file").arg(authorities).output().expect("it runs");
        String::from_utf8_lossy(&run.stdout).into_owned()
    };
    let (trusted, refused) = (look(&right.path("ca.pem")), look(&wrong.path("ca.pem")));
    let line = |text: &str| text.lines().find(|line| line.contains("generator")).map(str::to_owned);
    let (trusted, refused) = (line(&trusted).expect("a line"), line(&refused).expect("a line"));
    assert!(refused.contains("certificate") || refused.contains("TLS"), "{refused}");
    assert!(!trusted.contains("certificate") && trusted.contains("401"), "{trusted}");
}

/// Goal: the image's health check finds servers with and without TLS ready at their port, and
/// reports failure where none listens.
#[test]
fn the_health_check_of_the_image_speaks_to_both() {
    let test = "the_health_check_of_the_image_speaks_to_both";
    let Some(authority) = Authority::new(test) else { return };
    if Command::new("curl").arg("--version").output().is_err() {
        return println!("SKIPPED {test}: curl is missing");
    }
    let command = crate::image::health_check();
    let is_healthy = |address: SocketAddr| {
        let mut check = Command::new("sh");
        check.args(["-c", &command]).env("LODESTONE_LISTEN", format!("0.0.0.0:{}", address.port()));
        check.status().expect("a shell").success()
    };
    let Some(secure) = Secure::start(test, &authority.certificate("server", 2)) else { return };
    assert!(is_healthy(secure.address), "with TLS");
    let Some(installation) = Installation::new(test) else { return };
    let (server, client) = installation.start();
    assert!(is_healthy(client.address), "without TLS");
    server.kill();
    assert!(!is_healthy(client.address), "nobody listens");
}
