//! A world on loopback: sites that stand in for public addresses, canaries that nobody may touch,
//! and a resolver with scripted results.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use ureq::tls::{Certificate, RootCerts};

use crate::{Connection, Dialer, Fetcher, NameError, Resolver, Rules};
use lodestone_types::{WebClient, WebFailure, WebPage, WebUrl};

/// Longer than anything here takes; a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(180);
/// Time limit of fetches that are meant to exceed it.
pub const HASTE: Duration = Duration::from_millis(300);

/// A stream with or without TLS.
pub trait Duplex: Read + Write {}
impl<T: Read + Write> Duplex for T {}

/// Handles a site's request for a path.
pub type Handler = Arc<dyn Fn(&str, &mut dyn Duplex) -> io::Result<()> + Send + Sync>;

/// A listener with a thread that ends with it.
#[derive(Debug)]
pub struct Listener {
    pub address: SocketAddr,
    accepts: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Request>>>,
    is_over: Arc<AtomicBool>,
}

/// The head and the body of a received request.
type Request = (String, Vec<u8>);

impl Listener {
    /// Starts a listener that counts connections and closes them.
    pub fn canary(address: &str) -> Self {
        Self::start(address, Arc::new(|_| Ok(())))
    }

    /// Starts an HTTP server.
    pub fn site(handler: Handler) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let serve = move |mut stream: TcpStream| answer(&mut stream, &handler, &seen);
        let mut listener = Self::start("127.0.0.1:0", Arc::new(serve));
        listener.requests = requests;
        listener
    }

    /// Starts an HTTPS server.
    pub fn secure_site(config: Arc<ServerConfig>, handler: Handler) -> Self {
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let serve = move |stream: TcpStream| {
            let connection =
                ServerConnection::new(Arc::clone(&config)).map_err(io::Error::other)?;
            let mut stream = StreamOwned::new(connection, stream);
            answer(&mut stream, &handler, &seen)?;
            stream.conn.send_close_notify();
            stream.flush()
        };
        let mut listener = Self::start("127.0.0.1:0", Arc::new(serve));
        listener.requests = requests;
        listener
    }

    fn start(address: &str, serve: Arc<dyn Fn(TcpStream) -> io::Result<()> + Send + Sync>) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let accepts = Arc::new(AtomicUsize::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let (counted, over) = (Arc::clone(&accepts), Arc::clone(&is_over));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                if over.load(Ordering::SeqCst) {
                    break;
                }
                counted.fetch_add(1, Ordering::SeqCst);
                let (serve, stream) = (Arc::clone(&serve), stream.unwrap());
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                stream.set_write_timeout(Some(PATIENCE)).unwrap();
                // Errors are ignored: clients that hang up are the point of many tests.
                std::thread::spawn(move || drop(serve(stream)));
            }
        });
        Self { address, accepts, requests: Arc::default(), is_over }
    }

    /// The number of connections so far.
    pub fn accepts(&self) -> usize {
        // A connection by the test itself shows that all earlier ones have been counted.
        let before = self.accepts.load(Ordering::SeqCst);
        TcpStream::connect(self.address).unwrap();
        let start = Instant::now();
        loop {
            let now = self.accepts.load(Ordering::SeqCst);
            if now > before || start.elapsed() > PATIENCE {
                self.accepts.fetch_sub(1, Ordering::SeqCst);
                return now - 1;
            }
            std::thread::yield_now();
        }
    }

    /// The heads of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().iter().map(|(head, _)| head.clone()).collect()
    }

    /// The bodies of the requests so far.
    pub fn bodies(&self) -> Vec<Vec<u8>> {
        self.requests.lock().unwrap().iter().map(|(_, body)| body.clone()).collect()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

fn answer(
    stream: &mut (impl Read + Write),
    handler: &Handler,
    seen: &Mutex<Vec<Request>>,
) -> io::Result<()> {
    let mut head = String::new();
    let mut reader = BufReader::with_capacity(1, &mut *stream);
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Ok(());
        }
    }
    let path = head.split(' ').nth(1).unwrap_or("").to_owned();
    // Closing a connection with an unread body would reset it, and lose the response.
    let lower = head.to_ascii_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body)?;
    seen.lock().unwrap().push((head, body));
    handler(&path, stream)?;
    stream.flush()
}

/// Writes a response with a content length.
pub fn reply(stream: &mut dyn Duplex, status: u16, headers: &str, body: &[u8]) -> io::Result<()> {
    write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n", body.len())?;
    stream.write_all(body)
}

/// A site of fixed pages: path, status, headers (each with its line end), body. Others are 404.
pub fn pages(pages: &[(&str, u16, &str, &str)]) -> Handler {
    let known: HashMap<String, (u16, String, Vec<u8>)> = pages
        .iter()
        .map(|(path, status, headers, body)| {
            ((*path).to_owned(), (*status, (*headers).to_owned(), body.as_bytes().to_vec()))
        })
        .collect();
    Arc::new(move |path, stream| match known.get(path) {
        Some((status, headers, body)) => reply(stream, *status, headers, body),
        None => reply(stream, 404, "", b""),
    })
}

/// The content type header of an HTML page.
pub const HTML: &str = "content-type: text/html\r\n";

/// The result of a lookup.
pub type NameAnswer = Result<Vec<IpAddr>, NameError>;

/// A resolver with scripted results: each lookup of a name takes the next list; the last one stays.
#[derive(Clone, Default)]
pub struct Names {
    known: Arc<Mutex<HashMap<String, Vec<NameAnswer>>>>,
    asked: Arc<Mutex<Vec<String>>>,
    /// Lookups block while a test holds the write lock.
    pub slow: Arc<RwLock<()>>,
}

impl Names {
    pub fn set(&self, name: &str, answers: &[&[&str]]) {
        let parse =
            |answer: &&[&str]| Ok(answer.iter().map(|text| text.parse().unwrap()).collect());
        self.set_raw(name, answers.iter().map(parse).collect());
    }

    pub fn set_raw(&self, name: &str, answers: Vec<NameAnswer>) {
        self.known.lock().unwrap().insert(name.to_owned(), answers);
    }

    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

impl Resolver for Names {
    fn addresses(&self, name: &str) -> NameAnswer {
        self.asked.lock().unwrap().push(name.to_owned());
        drop(self.slow.read().unwrap());
        let mut known = self.known.lock().unwrap();
        let answers = known.get_mut(name).ok_or(NameError::Unknown)?;
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    }
}

/// A network on which public addresses lead to listeners on loopback and all other addresses to a
/// canary, so that a forbidden connection that passes the gate is noticed.
#[derive(Debug, Clone, Default)]
pub struct Map {
    known: Arc<Mutex<HashMap<SocketAddr, SocketAddr>>>,
    dialled: Arc<Mutex<Vec<SocketAddr>>>,
    canary: Arc<Mutex<Option<SocketAddr>>>,
    /// The peer address that connections report, if not the one dialled.
    pub claimed: Arc<Mutex<Option<SocketAddr>>>,
}

impl Map {
    pub fn put(&self, public: &str, listener: &Listener) {
        self.known.lock().unwrap().insert(public.parse().unwrap(), listener.address);
    }

    /// Leads all unknown addresses to `canary`.
    pub fn watch(&self, canary: &Listener) {
        *self.canary.lock().unwrap() = Some(canary.address);
    }

    pub fn dialled(&self) -> Vec<SocketAddr> {
        self.dialled.lock().unwrap().clone()
    }
}

impl Dialer for Map {
    fn dial(&self, address: SocketAddr, timeout: Duration) -> io::Result<Connection> {
        self.dialled.lock().unwrap().push(address);
        let known = self.known.lock().unwrap().get(&address).copied();
        let known = known.or(*self.canary.lock().unwrap());
        // No connection leaves this machine in a test.
        let address_here = known.ok_or(io::ErrorKind::ConnectionRefused)?;
        let stream = TcpStream::connect_timeout(&address_here, timeout)?;
        let peer = self.claimed.lock().unwrap().unwrap_or(address);
        Ok(Connection { stream, peer })
    }
}

/// A self-signed certificate for `www.test`, valid until 2126. Made by `openssl req -x509 -newkey
/// ec -pkeyopt ec_paramgen_curve:prime256v1 -days 36500 -addext subjectAltName=DNS:www.test`.
pub fn certificate() -> (Arc<ServerConfig>, RootCerts) {
    self_signed(include_bytes!("tls/www.test.cert.der"), include_bytes!("tls/www.test.key.der"))
}

/// A self-signed certificate for `127.0.0.1`, made as [`certificate`] with
/// `subjectAltName=IP:127.0.0.1` and `basicConstraints=CA:FALSE`.
pub fn loopback_certificate() -> (Arc<ServerConfig>, RootCerts) {
    self_signed(include_bytes!("tls/loopback.cert.der"), include_bytes!("tls/loopback.key.der"))
}

fn self_signed(certificate: &[u8], key: &'static [u8]) -> (Arc<ServerConfig>, RootCerts) {
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key));
    let chain = vec![CertificateDer::from(certificate.to_vec())];
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    let root = Certificate::from_der(certificate).to_owned();
    (Arc::new(config), RootCerts::Specific(Arc::new(vec![root])))
}

/// The parts of a test's world.
pub struct World {
    pub names: Names,
    pub map: Map,
    pub rules: Rules,
    pub roots: RootCerts,
}

impl World {
    /// A world in which `www.test` and `other.test` are public and there are no exceptions.
    pub fn new() -> Self {
        let names = Names::default();
        names.set("www.test", &[&["93.184.215.14"]]);
        names.set("other.test", &[&["2606:2800:21f::1"]]);
        let rules = Rules { time_max: PATIENCE, ..Rules::new("".parse().unwrap()) };
        Self { names, map: Map::default(), rules, roots: RootCerts::WebPki }
    }

    /// A world in which `site` serves `www.test`.
    pub fn of(site: &Listener) -> Self {
        let world = Self::new();
        world.map.put("93.184.215.14:80", site);
        world
    }

    /// Sets the operator's exceptions.
    pub fn allowing(mut self, entries: &str) -> Self {
        self.rules.allowed = entries.parse().unwrap();
        self
    }

    pub fn fetcher(&self) -> Fetcher {
        Fetcher::over(self.rules.clone(), self.names.clone(), self.map.clone(), self.roots.clone())
    }

    pub fn fetch(&self, url: &str) -> Result<WebPage, WebFailure> {
        self.fetcher().fetch(&WebUrl::parse(url).unwrap())
    }
}
