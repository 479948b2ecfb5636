//! Exceptions with which an operator lets the fetcher reach more than the public web.

use std::net::IpAddr;

use crate::address::{Network, plain};
use lodestone_types::{WebHost, WebUrl};

/// Maximum number of entries in the setting.
const ENTRIES_MAX: usize = 1000;

/// Hosts and networks that may be reached even if private, and on ports other than 80 and 443.
///
/// Written as a comma-separated list of `host`, `host:port`, `address`, `[v6 address]:port`,
/// `network` and `network:port`, where a network is an address, a slash and a number of bits. An
/// entry without a port applies to all ports, one with a port only to that one. A host entry
/// matches the exact name, whatever its addresses; an address or network entry matches the address
/// that is connected to, whatever name led there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    target: Target,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Name(String),
    Network(Network),
}

/// Errors in the setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AllowedError {
    /// An entry names nothing that can be reached.
    #[error("entry {entry:?} {problem}")]
    Entry {
        /// The entry as written.
        entry: String,
        /// Description of the error.
        problem: &'static str,
    },
    /// There are too many entries.
    #[error("there are more than {max} entries")]
    TooMany {
        /// The limit.
        max: usize,
    },
}

impl Allowed {
    /// Whether an entry names this host and allows `port`.
    pub(super) fn has_name(&self, host: &str, port: u16) -> bool {
        self.has(port, |target| matches!(target, Target::Name(name) if name == host))
    }

    /// Whether a network entry contains `address` and allows `port`.
    pub(super) fn has_address(&self, address: IpAddr, port: u16) -> bool {
        let address = plain(address);
        let is_around = |target: &Target| match target {
            Target::Network(network) => network.contains(address),
            Target::Name(_) => false,
        };
        self.has(port, is_around)
    }

    /// Whether any network entry allows `port`.
    pub(super) fn has_port(&self, port: u16) -> bool {
        self.has(port, |target| matches!(target, Target::Network(_)))
    }

    fn has(&self, port: u16, is_it: impl Fn(&Target) -> bool) -> bool {
        let fits = |entry: &Entry| entry.port.is_none_or(|only| only == port);
        self.entries.iter().any(|entry| fits(entry) && is_it(&entry.target))
    }
}

impl std::str::FromStr for Allowed {
    type Err = AllowedError;

    fn from_str(text: &str) -> Result<Self, AllowedError> {
        let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
        let mut entries = Vec::new();
        for part in parts {
            if entries.len() == ENTRIES_MAX {
                return Err(AllowedError::TooMany { max: ENTRIES_MAX });
            }
            let wrong = |problem| AllowedError::Entry { entry: part.to_owned(), problem };
            entries.push(Entry::parse(part).map_err(wrong)?);
        }
        Ok(Self { entries })
    }
}

impl Entry {
    fn parse(part: &str) -> Result<Self, &'static str> {
        if part.contains("://") {
            return Err("is the address of a page: name only its host");
        }
        if part.contains('*') {
            return Err("contains a *: name whole hosts or networks");
        }
        // A bare IPv6 address contains colons itself; a port can only follow its bracket.
        let is_bare_v6 = !part.starts_with('[') && part.matches(':').count() > 1;
        let (target, port) = match part.rsplit_once(':') {
            Some((target, port)) if !is_bare_v6 && !port.contains(']') => {
                let number = port.parse().ok().filter(|&port: &u16| port > 0);
                (target, Some(number.ok_or("has no valid port")?))
            }
            _ => (part, None),
        };
        let target = match target.split_once('/') {
            Some((base, bits)) => Target::network(base.trim_matches(['[', ']']), bits)?,
            None => Target::host(target)?,
        };
        Ok(Self { target, port })
    }
}

impl Target {
    fn network(base: &str, bits: &str) -> Result<Self, &'static str> {
        let bits: u8 =
            bits.trim_end_matches(']').parse().map_err(|_| "has an invalid prefix length")?;
        let base: IpAddr =
            base.parse().map_err(|_| "is not a network: an IP address must come before /")?;
        let network = match (base, plain(base)) {
            // The first 96 bits of IPv4-mapped IPv6 addresses are fixed.
            (IpAddr::V6(_), plain @ IpAddr::V4(_)) => {
                bits.checked_sub(96).and_then(|bits| Network::new(plain, bits))
            }
            (base, _) => Network::new(base, bits),
        };
        network.map(Self::Network).ok_or("has an invalid prefix length")
    }

    /// Parses a host, in the normalised spelling of page URLs.
    fn host(host: &str) -> Result<Self, &'static str> {
        let wrong = "is neither a host, nor an IP address, nor a network";
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let url = match literal {
            Ok(IpAddr::V6(address)) => WebUrl::parse(&format!("http://[{address}]/")),
            _ => WebUrl::parse(&format!("http://{host}/")),
        };
        let url = url.ok().filter(|url| url.target() == "/").ok_or(wrong)?;
        match url.host() {
            WebHost::Name(name) => Ok(Self::Name(name.to_owned())),
            WebHost::Address(address) => {
                let address = plain(address);
                let bits = if address.is_ipv4() { 32 } else { 128 };
                Network::new(address, bits).map(Self::Network).ok_or(wrong)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(text: &str) -> Allowed {
        text.parse().unwrap()
    }

    #[test]
    fn entries_let_through_what_they_name_and_nothing_else() {
        let rules = allowed(
            "Wiki.Corp, intranet:8080,10.0.0.0/8, 192.168.1.1:81,[fd00::1]:82,fd01::/16, \
             [fd02::/16]:83,172.16.0.0/12:84,::ffff:127.0.0.1,fd03::3, büro.test,,",
        );
        for (name, port, expected) in [
            ("wiki.corp", 80, true),
            ("wiki.corp", 9200, true),
            ("a.wiki.corp", 80, false),
            ("intranet", 8080, true),
            ("intranet", 80, false),
            ("10.1.1.1", 80, false),
            ("xn--bro-hoa.test", 80, true),
        ] {
            assert_eq!(rules.has_name(name, port), expected, "{name}:{port}");
        }
        for (address, port, expected) in [
            ("10.1.2.3", 9, true),
            ("::ffff:10.1.2.3", 9, true),
            ("11.0.0.0", 80, false),
            ("192.168.1.1", 81, true),
            ("192.168.1.1", 80, false),
            ("192.168.1.2", 81, false),
            ("fd00::1", 82, true),
            ("fd00::1", 80, false),
            ("fd01:ffff::", 80, true),
            ("fd02::9", 83, true),
            ("fd02::9", 84, false),
            ("172.31.0.1", 84, true),
            ("127.0.0.1", 1, true),
            ("127.0.0.2", 1, false),
            ("fd03::3", 443, true),
        ] {
            let parsed = address.parse().unwrap();
            assert_eq!(rules.has_address(parsed, port), expected, "{address}:{port}");
        }
        assert!(!allowed("").has_address("127.0.0.1".parse().unwrap(), 80));
        assert!(allowed("0.0.0.0/0").has_address("127.0.0.1".parse().unwrap(), 80));
        assert!(allowed("::/0").has_address("::1".parse().unwrap(), 80));
        assert!(!allowed("::/0").has_address("127.0.0.1".parse().unwrap(), 80));
    }

    #[test]
    fn nonsense_is_named_with_its_entry() {
        for wrong in [
            "http://a/", "a:0", "a:65536", "a:x", "a:", "10.0.0.0/33", "fd00::/129", "10.0.0.0/",
            "10.0.0.0/x", "a/8", "*.corp", "a b", "u@a", "a/b", "[::1", "::ffff:10.0.0.0/95", "/8",
            "a?b", ":80", "10.0.0.0/-1",
        ] {
            let error = format!("ok.example,{wrong}").parse::<Allowed>().unwrap_err();
            let AllowedError::Entry { entry, .. } = &error else { panic!("{error}") };
            assert_eq!(entry, wrong.trim());
            assert!(error.to_string().starts_with(&format!("entry {:?} ", wrong.trim())));
        }
        let many = "a,".repeat(ENTRIES_MAX + 1);
        assert_eq!(many.parse::<Allowed>(), Err(AllowedError::TooMany { max: ENTRIES_MAX }));
    }
}
