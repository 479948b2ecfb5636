//! The check that every fetch and webhook passes: it returns the addresses to which the request may
//! connect, or refuses it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

use crate::address::{is_public, plain};
use crate::allowed::Allowed;
use crate::error::RequestError;
use crate::names::Names;
use lodestone_types::{BlockedReason, WebHost, WebUrl};

/// Ports that need no exception.
const PORTS: [u16; 2] = [80, 443];

/// The rules for addresses and ports, with the name resolver.
#[derive(Clone)]
pub(super) struct Gate {
    /// The operator's exceptions.
    pub allowed: Allowed,
    /// The name resolver.
    pub names: Names,
}

impl Gate {
    /// Returns all addresses of `url`'s host; fails unless every one is permitted. The caller must
    /// connect to these and nothing else, because resolving the name again may give other
    /// addresses.
    pub(super) fn addresses(
        &self,
        url: &WebUrl,
        deadline: Instant,
    ) -> Result<Vec<SocketAddr>, RequestError> {
        self.permits(url)?;
        let port = url.port();
        let (found, is_allowed) = match url.host() {
            WebHost::Address(address) => (vec![address], false),
            WebHost::Name(name) => {
                (self.names.addresses(name, deadline)?, self.allowed.has_name(name, port))
            }
        };
        if !is_allowed {
            found.iter().try_for_each(|&address| self.check(address, port))?;
        }
        Ok(found.iter().map(|&address| SocketAddr::new(plain(address), port)).collect())
    }

    /// Checks `url` before its name is resolved, so that nothing leaves the machine for an address
    /// or a port that no exception could permit.
    pub(super) fn permits(&self, url: &WebUrl) -> Result<(), BlockedReason> {
        let port = url.port();
        match url.host() {
            WebHost::Address(address) => self.check(address, port),
            WebHost::Name(name) => {
                let is_named = self.allowed.has_name(name, port);
                // RFC 6761: these names mean this machine, whatever a resolver says.
                let is_own = name == "localhost" || name.ends_with(".localhost");
                if is_own && !is_named {
                    return self
                        .check(IpAddr::V4(Ipv4Addr::LOCALHOST), port)
                        .or_else(|_| self.check(IpAddr::V6(Ipv6Addr::LOCALHOST), port));
                }
                let is_open = PORTS.contains(&port) || is_named || self.allowed.has_port(port);
                if is_open { Ok(()) } else { Err(BlockedReason::Port { port }) }
            }
        }
    }

    fn check(&self, address: IpAddr, port: u16) -> Result<(), BlockedReason> {
        if self.allowed.has_address(address, port) {
            return Ok(());
        }
        if !is_public(address) {
            return Err(BlockedReason::Address);
        }
        if !PORTS.contains(&port) {
            return Err(BlockedReason::Port { port });
        }
        Ok(())
    }
}
