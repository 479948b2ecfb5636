//! The certificate authorities by which other servers are trusted.

use std::fmt::Display;
use std::path::Path;

use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

/// Authorities that vouch for other servers. Clones share them.
#[derive(Debug, Clone)]
pub struct Authorities(pub(crate) RootCerts);

impl Default for Authorities {
    /// Those of Mozilla, which come with the program.
    fn default() -> Self {
        Self(RootCerts::WebPki)
    }
}

impl Authorities {
    /// Reads certificates in PEM.
    ///
    /// # Errors
    /// The file, and the reason for which it cannot be used.
    pub fn read(file: &Path) -> Result<Self, String> {
        let error = |problem: &dyn Display| format!("{}: {problem}", file.display());
        let bytes = std::fs::read(file).map_err(|problem| error(&problem))?;
        let mut found = Vec::new();
        for item in parse_pem(&bytes) {
            if let PemItem::Certificate(certificate) = item.map_err(|problem| error(&problem))? {
                found.push(certificate);
            }
        }
        match found.is_empty() {
            true => Err(error(&"holds no certificate in PEM")),
            false => Ok(Self(RootCerts::from(found))),
        }
    }

    /// Settings of a client that trusts these.
    pub fn tls(&self) -> TlsConfig {
        TlsConfig::builder().root_certs(self.0.clone()).build()
    }
}
