//! TLS of the listener: a certificate and a key from PEM files, reloaded when they change.
//!
//! ```text
//! accept -> first byte: a TLS record -> handshake -> HTTP/1.1 as without TLS
//!                       anything else -> 400 that names https, without TLS
//! files change | SIGHUP -> valid   -> used from the next handshake on; connections stay open
//!                          invalid -> old certificate stays; log, /readyz and metrics report it
//! ```
//! The handshake runs in the task of its connection and under the header deadline, so it holds up
//! nobody else, and a slow handshake is closed like a slow header.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, RootCertStore, ServerConfig};
use tokio::net::TcpStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use lodestone_metrics::{Counter, Gauge, Labelled, Registry};
use lodestone_types::{Clock, SystemClock};

/// Interval at which the files are checked for changes.
const LOOK: Duration = Duration::from_secs(2);
/// The first byte of a handshake record (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// A time by which every certificate has expired: 31 December 9999.
const FAR: u64 = 253_402_300_799;
const RELOADED: usize = 0;
const REFUSED: usize = 1;

/// A certificate or key file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct TlsError {
    /// The file.
    pub file: PathBuf,
    /// Description of the problem.
    pub problem: String,
}

/// The certificate of the listener, as last loaded.
#[derive(Debug)]
pub struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    state: Mutex<State>,
    /// Expiry of the certificate in use, in seconds since 1970.
    expires: Gauge,
    reloads: Labelled<Counter, 2>,
}

#[derive(Debug)]
struct State {
    current: Arc<CertifiedKey>,
    expires: u64,
    /// The file stamps at the time of the last reading.
    seen: [Option<Stamp>; 2],
    /// The reason why the current files are not in use.
    problem: Option<TlsError>,
}

/// File attributes that reveal that a file was replaced or rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Certificates {
    /// Loads a certificate chain and its key.
    ///
    /// # Errors
    /// A file that cannot be read or does not contain the expected PEM data, a key that does not
    /// match the certificate, or a certificate that has expired or is not yet valid.
    pub fn read(certificate: &Path, key: &Path) -> Result<Arc<Self>, TlsError> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let seen = [stamp(certificate), stamp(key)];
        let (current, end) = read(certificate, key, &provider)?;
        let expires = Gauge::default();
        expires.set(end);
        let state = State { current, expires: end, seen, problem: None };
        Ok(Arc::new(Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            provider,
            state: Mutex::new(state),
            expires,
            reloads: Labelled::new("outcome", ["reloaded", "refused"], Counter::default),
        }))
    }

    /// Registers the metrics.
    pub(crate) fn enter(&self, registry: &mut Registry) {
        let help = "Expiry time of the certificate in use, in seconds since 1970";
        registry.enter("tls_certificate_expires_seconds", help, &self.expires);
        let help = "Certificate reloads, by whether the new certificate is in use";
        registry.enter("tls_reloads_total", help, &self.reloads);
    }

    /// Returns the problem that the operator has to fix, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let state = self.state.lock();
        match &state.problem {
            _ if state.expires < now() => Some("the certificate has expired"),
            Some(_) => Some(
                "the new certificate cannot be used (see the server log); the old one \
                stays in use",
            ),
            None => None,
        }
    }

    /// Returns the expiry of the certificate in use, in seconds since 1970.
    pub fn expires(&self) -> u64 {
        self.state.lock().expires
    }

    /// Returns the TLS acceptor, which asks for the current certificate at each handshake.
    pub(super) fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        let config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has the suites of its versions");
        let mut config = config.with_no_client_auth().with_cert_resolver(Arc::clone(self) as _);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    /// Starts a task that reloads the files when they change or on SIGHUP.
    ///
    /// # Errors
    /// If the operating system rejects the signal handler.
    pub fn watch(self: &Arc<Self>) -> std::io::Result<()> {
        let mut hangups = signal(SignalKind::hangup())?;
        let certificates = Arc::clone(self);
        tokio::spawn(async move {
            loop {
                let is_asked = tokio::select! {
                    _ = hangups.recv() => true,
                    () = sleep(LOOK) => false,
                };
                let certificates = Arc::clone(&certificates);
                // A hanging disk must not hold up requests.
                let _ = tokio::task::spawn_blocking(move || certificates.look(is_asked)).await;
            }
        });
        Ok(())
    }

    /// Reloads the files if they have changed or if `is_asked`.
    fn look(&self, is_asked: bool) {
        let seen = [stamp(&self.certificate), stamp(&self.key)];
        if !is_asked && self.state.lock().seen == seen {
            return;
        }
        let found = read(&self.certificate, &self.key, &self.provider);
        let mut state = self.state.lock();
        state.seen = seen;
        match found {
            Ok((current, expires)) => {
                (state.current, state.expires, state.problem) = (current, expires, None);
                drop(state);
                self.expires.set(expires);
                self.reloads.at(RELOADED).inc();
                tracing::info!(expires, "certificate reloaded");
            }
            // Certificate and key are two files, and one may be replaced before the other.
            Err(error) => {
                self.reloads.at(REFUSED).inc();
                tracing::error!(%error, "the new certificate cannot be used; keeping the old one");
                state.problem = Some(error);
            }
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.state.lock().current))
    }
}

/// The kind of data that a client sends first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstWord {
    /// A TLS handshake.
    Tls,
    /// Anything else, such as plain HTTP.
    Plain,
    /// Nothing, within the time limit or before the connection ended.
    Nothing,
}

/// Waits for the first byte of a client without consuming it.
pub(super) async fn first_word(stream: &TcpStream, time: Duration) -> FirstWord {
    let mut first = [0];
    match timeout(time, stream.peek(&mut first)).await {
        Ok(Ok(1)) if first[0] == HANDSHAKE => FirstWord::Tls,
        Ok(Ok(1)) => FirstWord::Plain,
        _ => FirstWord::Nothing,
    }
}

/// Loads the certificate with its key, and its expiry in seconds since 1970.
fn read(
    certificate: &Path,
    key: &Path,
    provider: &Arc<CryptoProvider>,
) -> Result<(Arc<CertifiedKey>, u64), TlsError> {
    let of = |file: &Path, problem: String| TlsError { file: file.to_owned(), problem };
    let bytes = |file: &Path| std::fs::read(file).map_err(|error| of(file, error.to_string()));
    let bad = |error: rustls::pki_types::pem::Error| of(certificate, error.to_string());
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&bytes(certificate)?)
        .collect::<Result<_, _>>()
        .map_err(bad)?;
    let Some(leaf) = chain.first().cloned() else {
        return Err(of(certificate, "contains no PEM certificate".to_owned()));
    };
    let private = PrivateKeyDer::from_pem_slice(&bytes(key)?)
        .map_err(|error| of(key, format!("contains no PEM private key: {error}")))?;
    let expires = validity(&leaf, provider).map_err(|problem| of(certificate, problem))?;
    let signing = provider
        .key_provider
        .load_private_key(private)
        .map_err(|error| of(key, format!("cannot be used: {error}")))?;
    let certified = CertifiedKey::new(chain, signing);
    match certified.keys_match() {
        Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
            Ok((Arc::new(certified), expires))
        }
        Err(rustls::Error::InconsistentKeys(_)) => {
            let problem = format!("does not match the certificate in {}", certificate.display());
            Err(of(key, problem))
        }
        Err(error) => Err(of(certificate, error.to_string())),
    }
}

/// Returns the expiry of a certificate, in seconds since 1970, after checking that it is valid now.
///
/// The verifier is given no issuer, because it checks the validity period first; whether clients
/// trust the issuer is not for the server to decide.
fn validity(leaf: &CertificateDer<'static>, provider: &Arc<CryptoProvider>) -> Result<u64, String> {
    let mut roots = RootCertStore::empty();
    roots.add(leaf.clone()).map_err(|error| format!("cannot be used: {error}"))?;
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
            .build()
            .map_err(|error| format!("cannot be used: {error}"))?;
    let name = ServerName::try_from("localhost").expect("a constant is a name");
    let at = |seconds| {
        let time = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        verifier.verify_server_cert(leaf, &[], &name, &[], time).err()
    };
    use CertificateError::{BadEncoding, Expired, ExpiredContext, NotValidYet, NotValidYetContext};
    if let Some(rustls::Error::InvalidCertificate(error)) = at(now()) {
        match error {
            Expired | ExpiredContext { .. } => return Err("the certificate has expired".to_owned()),
            NotValidYet | NotValidYetContext { .. } => {
                return Err("the certificate is not yet valid".to_owned());
            }
            BadEncoding => return Err("contains no readable certificate".to_owned()),
            _ => {}
        }
    }
    match at(FAR) {
        Some(rustls::Error::InvalidCertificate(ExpiredContext { not_after, .. })) => {
            Ok(not_after.as_secs())
        }
        _ => Ok(FAR),
    }
}

fn now() -> u64 {
    SystemClock.now().0 / 1000
}

fn stamp(file: &Path) -> Option<Stamp> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(file).ok()?;
    let changed = (found.ctime(), found.ctime_nsec());
    Some(Stamp { inode: found.ino(), bytes: found.len(), changed })
}
