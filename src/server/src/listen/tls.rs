//! TLS of the listener: a certificate and a key from PEM files, which are read again when they
//! change.
//!
//! ```text
//! accept -> first byte: a TLS record -> handshake -> HTTP/1.1 as without TLS
//!                       anything else -> 400 that names https, without TLS
//! files change | SIGHUP -> read, checked -> the next handshake has it; connections stay
//!                          refused       -> the one before stays; log, /readyz, metrics say so
//! ```
//! The handshake runs in the task of its connection, below the times for a header: it holds nobody
//! else up, and one that takes too long goes as a slow header does.

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

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_secs(2);
/// The first byte of a handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// A moment after the end of every certificate: 31 December 9999.
const FAR: u64 = 253_402_300_799;
const RELOADED: usize = 0;
const REFUSED: usize = 1;

/// A certificate or key that cannot be used; names its file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {problem}", file.display())]
pub struct TlsError {
    /// The file.
    pub file: PathBuf,
    /// Description of the error.
    pub problem: String,
}

/// The certificate of the listener, as it was last read.
#[derive(Debug)]
pub struct Certificates {
    certificate: PathBuf,
    key: PathBuf,
    provider: Arc<CryptoProvider>,
    state: Mutex<State>,
    /// End of the certificate in use, in seconds since 1970.
    expires: Gauge,
    reloads: Labelled<Counter, 2>,
}

#[derive(Debug)]
struct State {
    current: Arc<CertifiedKey>,
    expires: u64,
    /// The files as they were when they were read last.
    seen: [Option<Stamp>; 2],
    /// The reason for which the files, as they are now, are not used.
    problem: Option<TlsError>,
}

/// Marks by which a file that was replaced or rewritten is told from the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Certificates {
    /// Reads a certificate with its chain, and its key.
    ///
    /// # Errors
    /// A file that cannot be read or holds no such thing, a key of another certificate, a
    /// certificate that has expired or is not valid yet.
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

    /// Enters what is measured.
    pub(crate) fn enter(&self, registry: &mut Registry) {
        let help = "End of the certificate in use, in seconds since 1970";
        registry.enter("tls_certificate_expires_seconds", help, &self.expires);
        let help = "Certificates read again, by whether the new one is in use";
        registry.enter("tls_reloads_total", help, &self.reloads);
    }

    /// The problem that an operator has to see to, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let state = self.state.lock();
        match &state.problem {
            _ if state.expires < now() => Some("the certificate has expired"),
            Some(_) => Some("the new certificate cannot be used, see the log; the old one is"),
            None => None,
        }
    }

    /// The end of the certificate in use, in seconds since 1970.
    pub fn expires(&self) -> u64 {
        self.state.lock().expires
    }

    /// The settings of handshakes, which ask for the certificate each time.
    pub(super) fn acceptor(self: &Arc<Self>) -> TlsAcceptor {
        let config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()
            .expect("the provider has the suites of its versions");
        let mut config = config.with_no_client_auth().with_cert_resolver(Arc::clone(self) as _);
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        TlsAcceptor::from(Arc::new(config))
    }

    /// Reads the files again whenever they change or SIGHUP comes.
    ///
    /// # Errors
    /// When the operating system refuses the handler of the signal.
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
                // The disk may hang; requests do not wait for it.
                let _ = tokio::task::spawn_blocking(move || certificates.look(is_asked)).await;
            }
        });
        Ok(())
    }

    /// Reads the files again if they changed or `is_asked`.
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
                tracing::info!(expires, "the certificate was read again");
            }
            // Certificate and key are two files: one of them may be there before the other.
            Err(error) => {
                self.reloads.at(REFUSED).inc();
                tracing::error!(%error, "the new certificate is not used, the old one stays");
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

/// The first word of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FirstWord {
    /// A handshake.
    Tls,
    /// Something else.
    Plain,
    /// Nothing, for too long or for ever.
    Nothing,
}

/// Waits for the first byte of a client, which stays unread.
pub(super) async fn first_word(stream: &TcpStream, time: Duration) -> FirstWord {
    let mut first = [0];
    match timeout(time, stream.peek(&mut first)).await {
        Ok(Ok(1)) if first[0] == HANDSHAKE => FirstWord::Tls,
        Ok(Ok(1)) => FirstWord::Plain,
        _ => FirstWord::Nothing,
    }
}

/// The certificate with its key, and its end in seconds since 1970.
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
        return Err(of(certificate, "holds no certificate in PEM".to_owned()));
    };
    let private = PrivateKeyDer::from_pem_slice(&bytes(key)?)
        .map_err(|error| of(key, format!("holds no private key in PEM: {error}")))?;
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
            let problem = format!("is not the key of the certificate in {}", certificate.display());
            Err(of(key, problem))
        }
        Err(error) => Err(of(certificate, error.to_string())),
    }
}

/// The end of a certificate that is valid now, in seconds since 1970.
///
/// A verifier looks at the time before it looks for an issuer, so it is asked without one: whether
/// clients know the issuer is not ours to say.
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
                return Err("the certificate is not valid yet".to_owned());
            }
            BadEncoding => return Err("holds no certificate that can be read".to_owned()),
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
