//! Settings of TLS: the certificate of the listener, and the authorities that vouch for others.

use std::path::{Path, PathBuf};

use clap::Args;
use lodestone_fetch::Authorities;

use super::InvalidSetting;

/// Settings of TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub struct TlsSettings {
    /// PEM file with the listener's certificate and its chain. With it the server accepts only
    /// HTTPS. The file is reloaded when it changes [default: none, plain HTTP].
    #[arg(long, env = "LODESTONE_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,
    /// PEM file with the certificate's private key, without a password; required with tls-cert.
    #[arg(long, env = "LODESTONE_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// PEM file with the certificate authorities trusted for all outgoing connections (page
    /// fetches, webhooks, buckets, the generator, the embedding server, other nodes and the trace
    /// collector), for example /etc/ssl/certs/ca-certificates.crt [default: Mozilla's, which are
    /// built in].
    #[arg(long, env = "LODESTONE_CA_FILE", value_name = "FILE")]
    pub ca_file: Option<PathBuf>,
}

impl TlsSettings {
    /// Returns the certificate and key of the listener, if configured.
    pub fn certificate(&self) -> Option<(&Path, &Path)> {
        self.tls_cert.as_deref().zip(self.tls_key.as_deref())
    }

    /// Reads the authorities that other servers must be certified by.
    ///
    /// # Errors
    /// A file that cannot be read or contains no certificate.
    pub fn authorities(&self) -> Result<Authorities, InvalidSetting> {
        let Some(file) = &self.ca_file else { return Ok(Authorities::default()) };
        Authorities::read(file).map_err(|problem| InvalidSetting { name: "ca-file", problem })
    }

    pub(super) fn validate(&self) -> Result<(), InvalidSetting> {
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => {
                let problem = "is required with tls-cert".to_owned();
                Err(InvalidSetting { name: "tls-key", problem })
            }
            (None, Some(_)) => {
                let problem = "is required with tls-key".to_owned();
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
