//! The certificate authorities trusted for outgoing connections.

use std::fmt::Display;
use std::path::Path;

use ureq::config::ConfigBuilder;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::typestate::AgentScope;
use ureq::{Agent, Proxy};

const USER_AGENT: &str = concat!("Lodestone/", env!("CARGO_PKG_VERSION"));

/// Trusted certificate authorities. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Authorities(pub(crate) RootCerts);

impl Default for Authorities {
    /// Mozilla's root certificates, compiled into the program.
    fn default() -> Self {
        Self(RootCerts::WebPki)
    }
}

impl Authorities {
    /// Reads PEM certificates from a file.
    ///
    /// # Errors
    /// A message that names the file and the reason why it cannot be used.
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
            true => Err(error(&"contains no PEM certificate")),
            false => Ok(Self(RootCerts::from(found))),
        }
    }

    /// Configuration of a client for a server that the operator sets, trusting these authorities.
    /// Every status is returned as a response, including redirects: following them could hand a
    /// key, a signature or an upload to another host.
    pub fn client(&self, proxy: Option<Proxy>) -> ConfigBuilder<AgentScope> {
        Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .proxy(proxy)
            .tls_config(TlsConfig::builder().root_certs(self.0.clone()).build())
            .user_agent(USER_AGENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_certificates_is_refused_by_its_name() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let problem = Authorities::read(file.path()).unwrap_err();
        let name = file.path().display();
        assert_eq!(problem, format!("{name}: contains no PEM certificate"));
    }
}
