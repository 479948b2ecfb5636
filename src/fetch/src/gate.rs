//! The check that every outbound request passes: it gives the addresses that the request may
//! connect to, or refuses it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Instant;

use crate::address::{is_public, plain};
use crate::allowed::Allowed;
use crate::error::RequestError;
use crate::names::Names;
use lodestone_types::{BlockedReason, WebHost, WebUrl};

/// Ports that are allowed without an exception.
const PORTS: [u16; 2] = [80, 443];

/// The rules for addresses and ports, and the resolver of names.
#[derive(Clone)]
pub(super) struct Gate {
    /// Exceptions of the operator.
    pub allowed: Allowed,
    /// Resolver of names.
    pub names: Names,
}

impl Gate {
    /// Every address behind `url`, all of them permitted. The caller connects to these and to
    /// nothing else: a name that is looked up again may mean something else.
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

    /// Checks `url` before a name is looked up: nothing leaves the machine for an address or a port
    /// that no entry could open.
    pub(super) fn permits(&self, url: &WebUrl) -> Result<(), BlockedReason> {
        let port = url.port();
        match url.host() {
            WebHost::Address(address) => self.check(address, port),
            WebHost::Name(name) => {
                let is_named = self.allowed.has_name(name, port);
                // RFC 6761: this machine, whatever a resolver says.
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
