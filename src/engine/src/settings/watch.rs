//! Settings of what an operator watches: metrics, logs and traces.

use std::net::{Ipv4Addr, SocketAddr};

use clap::{Args, ValueEnum};

use crate::settings::{InvalidSetting, parse_address};

/// Settings of metrics, logs and traces.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub struct WatchSettings {
    /// Port, or address and port, of a second listener that serves only `/metrics` and requires no
    /// key. A port alone listens on loopback [default: none, `/metrics` requires a key].
    #[arg(
        long,
        env = "LODESTONE_METRICS_LISTEN",
        value_name = "ADDRESS:PORT",
        value_parser = parse_metrics_address
    )]
    pub metrics_listen: Option<SocketAddr>,
    /// Log format on standard error: text, json, or auto (text on a terminal, otherwise JSON).
    #[arg(
        long,
        env = "LODESTONE_LOG_FORMAT",
        value_name = "FORMAT",
        value_enum,
        default_value_t,
        hide_possible_values = true
    )]
    pub log_format: LogFormat,
    /// Log one line per request.
    #[arg(
        long,
        env = "LODESTONE_ACCESS_LOG",
        value_name = "BOOLEAN",
        num_args = 0..=1,
        require_equals = true,
        default_value_t = false,
        default_missing_value = "true",
        action = clap::ArgAction::Set
    )]
    pub access_log: bool,
    /// Log searches and answers that take at least this many milliseconds, with the duration of
    /// each stage [default: none].
    #[arg(long, env = "LODESTONE_SLOW_QUERY_MILLIS", value_name = "MILLISECONDS")]
    pub slow_query_millis: Option<u64>,
    /// Base URL of an OpenTelemetry collector that accepts OTLP over HTTP as JSON, for example
    /// http://127.0.0.1:4318. Traces of requests and ingestion are sent to it [default: none].
    #[arg(long, env = "LODESTONE_OTLP_ENDPOINT", value_name = "URL")]
    pub otlp_endpoint: Option<String>,
    /// Service name of this server in traces.
    #[arg(
        long,
        env = "LODESTONE_OTLP_SERVICE_NAME",
        value_name = "NAME",
        default_value = "lodestone"
    )]
    pub otlp_service_name: String,
}

/// Log format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    /// Text on a terminal, otherwise JSON.
    #[default]
    Auto,
    /// Human-readable text.
    Text,
    /// One JSON object per line.
    Json,
}

impl WatchSettings {
    /// Returns the trace collector, if configured. An empty text counts as not set.
    pub fn collector(&self) -> Option<&str> {
        self.otlp_endpoint.as_deref().filter(|url| !url.is_empty())
    }

    /// Validates the values without accessing the machine.
    ///
    /// # Errors
    /// The first setting with an invalid value.
    pub fn validate(&self) -> Result<(), InvalidSetting> {
        let is_url = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        if self.collector().is_some_and(|url| !is_url(url)) {
            let problem = "must be a URL that begins with http:// or https://".to_owned();
            return Err(InvalidSetting { name: "otlp-endpoint", problem });
        }
        if self.otlp_service_name.is_empty() {
            let problem = "must not be empty".to_owned();
            return Err(InvalidSetting { name: "otlp-service-name", problem });
        }
        Ok(())
    }
}

/// Parses an address and port; a port alone means loopback.
fn parse_metrics_address(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<u16>() {
        Ok(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        Err(_) => parse_address(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    #[test]
    fn a_port_alone_is_on_loopback() {
        assert_eq!(parse_metrics_address("9464"), Ok(([127, 0, 0, 1], 9464).into()));
        assert_eq!(parse_metrics_address("0.0.0.0:9464"), Ok(([0, 0, 0, 0], 9464).into()));
        assert!(
            parse_metrics_address("metrics").is_err() && parse_metrics_address("70000").is_err()
        );
    }

    #[test]
    fn nonsense_is_named() {
        let mut settings = Settings::new("data".into(), "models".into());
        assert_eq!((settings.validate(), settings.watch.collector()), (Ok(()), None));
        settings.watch.otlp_endpoint = Some("127.0.0.1:4318".to_owned());
        assert_eq!(settings.validate().unwrap_err().name, "otlp-endpoint");
        settings.watch.otlp_endpoint = Some(String::new());
        assert_eq!((settings.validate(), settings.watch.collector()), (Ok(()), None));
        settings.watch.otlp_service_name = String::new();
        assert_eq!(settings.validate().unwrap_err().name, "otlp-service-name");
    }
}
