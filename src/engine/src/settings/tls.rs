//! Settings of TLS: the certificate of the listener, and the authorities that vouch for others.

use std::path::{Path, PathBuf};

use clap::Args;
use lodestone_fetch::Authorities;

use super::InvalidSetting;

/// Settings of TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct TlsSettings {
    /// Certificate of the listener with its chain, in PEM; with it the server speaks HTTPS alone.
    /// It is read again when it changes [default: none, plain HTTP].
    #[arg(long, env = "LODESTONE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// Private key of the certificate, in PEM without a password; needed beside tls-cert.
    #[arg(long, env = "LODESTONE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Certificates in PEM of the authorities that vouch for fetched pages, the generator, the
    /// embedding server, other nodes and the collector of traces, for example
    /// /etc/ssl/certs/ca-certificates.crt [default: those of Mozilla, which come with the program].
    #[arg(long, env = "LODESTONE_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

impl TlsSettings {
    /// Certificate and key of the listener, if it has them.
    pub fn certificate(&self) -> Option<(&Path, &Path)> {
        self.tls_cert.as_deref().zip(self.tls_key.as_deref())
    }

    /// Reads the authorities that other servers are trusted by.
    ///
    /// # Errors
    /// A file that cannot be read or holds no certificate.
    pub fn authorities(&self) -> Result<Authorities, InvalidSetting> {
        let Some(file) = &self.ca_file else { return Ok(Authorities::default()) };
        Authorities::read(file).map_err(|problem| InvalidSetting { name: "ca-file", problem })
    }

    pub(super) fn validate(&self) -> Result<(), InvalidSetting> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => {
                let problem = "is needed beside tls-cert".to_owned();
                Err(InvalidSetting { name: "tls-key", problem })
            }
            (None, Some(_)) => {
                let problem = "is needed beside tls-key".to_owned();
                Err(InvalidSetting { name: "tls-cert", problem })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::Settings;

    #[test]
    fn half_a_pair_is_refused() {
        let mut settings = Settings::new("data".into(), "models".into());
        settings.tls.tls_cert = Some("cert.pem".into());
        assert_eq!(settings.validate().unwrap_err().name, "tls-key");
        settings.tls.tls_key = Some("key.pem".into());
        assert_eq!(settings.validate(), Ok(()));
        settings.tls.tls_cert = None;
        assert_eq!(settings.validate().unwrap_err().name, "tls-cert");
    }
}
