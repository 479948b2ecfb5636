//! Classifies IP addresses. Public are those that no registry of special-purpose addresses (IANA,
//! RFC 6890) reserves and that no cloud provider uses for instance metadata.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A block of addresses that share their first `bits` bits with `base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    base: IpAddr,
    bits: u8,
}

impl Network {
    /// The block of addresses that share `bits` bits with `base`; `None` if an address has fewer.
    pub(super) fn new(base: IpAddr, bits: u8) -> Option<Self> {
        let width = if base.is_ipv4() { 32 } else { 128 };
        (bits <= width).then_some(Self { base, bits })
    }

    /// Whether the block contains `address`.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                (base.to_bits() ^ address.to_bits()) & mask == 0
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                (base.to_bits() ^ address.to_bits()) & mask == 0
            }
            _ => false,
        }
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Network {
    Network { base: IpAddr::V4(Ipv4Addr::new(a, b, c, d)), bits }
}

const fn v6(a: u16, b: u16, c: u16, bits: u8) -> Network {
    Network { base: IpAddr::V6(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0)), bits }
}

/// IPv4 blocks that are not public.
const RESERVED_V4: [Network; 16] = [
    v4(0, 0, 0, 0, 8),        // this network; the unspecified address
    v4(10, 0, 0, 0, 8),       // private
    v4(100, 64, 0, 0, 10),    // shared by carriers; the metadata of Alibaba's cloud
    v4(127, 0, 0, 0, 8),      // loopback
    v4(168, 63, 129, 16, 32), // public by registry, the metadata of Azure in truth
    v4(169, 254, 0, 0, 16),   // link-local; the metadata of most clouds
    v4(172, 16, 0, 0, 12),    // private
    v4(192, 0, 0, 0, 24),     // protocol assignments; the metadata of Oracle's cloud
    v4(192, 0, 2, 0, 24),     // documentation
    v4(192, 88, 99, 0, 24),   // relays of 6to4, withdrawn
    v4(192, 168, 0, 0, 16),   // private
    v4(198, 18, 0, 0, 15),    // benchmarks
    v4(198, 51, 100, 0, 24),  // documentation
    v4(203, 0, 113, 0, 24),   // documentation
    v4(224, 0, 0, 0, 4),      // multicast
    v4(240, 0, 0, 0, 4),      // reserved; broadcast
];

/// The only IPv6 block from which global addresses are assigned. Loopback, unspecified, unique
/// local, link-local, site-local and multicast addresses are outside.
const GLOBAL_V6: Network = v6(0x2000, 0, 0, 3);

/// IPv6 blocks inside [`GLOBAL_V6`] that are not public.
const RESERVED_V6: [Network; 3] = [
    v6(0x2001, 0, 0, 23), // protocol assignments, benchmarks, ORCHID; Teredo is asked before
    v6(0x2001, 0xdb8, 0, 32), // documentation
    v6(0x3fff, 0, 0, 20), // documentation
];

const TEREDO: Network = v6(0x2001, 0, 0, 32);
const SIX_TO_FOUR: Network = v6(0x2002, 0, 0, 16);
const NAT64: Network = v6(0x64, 0xff9b, 0, 96);

/// The address that packets to `address` actually reach: an IPv4-mapped one becomes IPv4.
pub(super) fn plain(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Whether `address` is a host on the public internet. An address that embeds an IPv4 address, to
/// be unwrapped by a relay or a translator, is public if the embedded one is.
///
/// Translators with local prefixes (64:ff9b:1::/48) put that address wherever each network chooses.
/// They are outside of [`GLOBAL_V6`] and are rejected altogether, like IPv4-compatible addresses.
pub(super) fn is_public(address: IpAddr) -> bool {
    match plain(address) {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => {
            let within = |network: Network| network.contains(address.into());
            let is_carrier = within(TEREDO) || within(NAT64) || within(SIX_TO_FOUR);
            let is_global =
                within(GLOBAL_V6) && !RESERVED_V6.iter().any(|&network| within(network));
            (is_carrier || is_global) && carried(address).into_iter().all(is_public_v4)
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !RESERVED_V4.iter().any(|network| network.contains(address.into()))
}

/// The IPv4 addresses embedded in `address`.
fn carried(address: Ipv6Addr) -> Vec<Ipv4Addr> {
    let bits = address.to_bits();
    let at = |shift: u32| Ipv4Addr::from_bits((bits >> shift) as u32);
    let within = |network: Network| network.contains(address.into());
    let segments = address.segments();
    // ISATAP: the interface id is 0:5efe or 200:5efe and an IPv4 address, in any network.
    let is_isatap = matches!(segments[4], 0 | 0x200) && segments[5] == 0x5efe;
    match () {
        () if within(NAT64) => vec![at(0)],
        () if within(SIX_TO_FOUR) => vec![at(80)],
        // The server, and the client with inverted bits (RFC 4380, section 4).
        () if within(TEREDO) => vec![at(64), Ipv4Addr::from_bits(!(bits as u32))],
        () if is_isatap => vec![at(0)],
        () => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    fn is_public(address: &str) -> bool {
        super::is_public(address.parse().unwrap())
    }

    #[test]
    fn the_edges_of_every_reserved_block_are_where_the_registries_say() {
        let blocks = [
            ("0.0.0.0", "0.255.255.255", None, Some("1.0.0.0")),
            ("10.0.0.0", "10.255.255.255", Some("9.255.255.255"), Some("11.0.0.0")),
            ("100.64.0.0", "100.127.255.255", Some("100.63.255.255"), Some("100.128.0.0")),
            ("127.0.0.0", "127.255.255.255", Some("126.255.255.255"), Some("128.0.0.0")),
            ("168.63.129.16", "168.63.129.16", Some("168.63.129.15"), Some("168.63.129.17")),
            ("169.254.0.0", "169.254.255.255", Some("169.253.255.255"), Some("169.255.0.0")),
            ("172.16.0.0", "172.31.255.255", Some("172.15.255.255"), Some("172.32.0.0")),
            ("192.0.0.0", "192.0.0.255", Some("191.255.255.255"), Some("192.0.1.0")),
            ("192.0.2.0", "192.0.2.255", Some("192.0.1.255"), Some("192.0.3.0")),
            ("192.88.99.0", "192.88.99.255", Some("192.88.98.255"), Some("192.88.100.0")),
            ("192.168.0.0", "192.168.255.255", Some("192.167.255.255"), Some("192.169.0.0")),
            ("198.18.0.0", "198.19.255.255", Some("198.17.255.255"), Some("198.20.0.0")),
            ("198.51.100.0", "198.51.100.255", Some("198.51.99.255"), Some("198.51.101.0")),
            ("203.0.113.0", "203.0.113.255", Some("203.0.112.255"), Some("203.0.114.0")),
            ("224.0.0.0", "255.255.255.255", Some("223.255.255.255"), None),
            ("2001::", "2001:1ff:ffff::", None, Some("2001:200::")),
            ("2001:db8::", "2001:db8:ffff::1", Some("2001:db7::1"), Some("2001:db9::1")),
            ("3fff::", "3fff:fff:ffff::1", Some("3ffe::1"), Some("3fff:1000::1")),
            ("::", "1fff:ffff::", None, Some("2000::")),
            ("4000::", "ffff:ffff::", Some("3ffe:ffff::"), None),
        ];
        for (first, last, before, after) in blocks {
            assert!(!is_public(first) && !is_public(last), "{first} to {last}");
            for neighbour in [before, after].into_iter().flatten() {
                assert!(is_public(neighbour), "{neighbour}");
            }
        }
    }

    #[test]
    fn carriers_are_as_public_as_what_they_carry() {
        for (address, expected) in [
            ("::ffff:8.8.8.8", true),
            ("::ffff:10.0.0.1", false),
            ("::8.8.8.8", false),
            ("::127.0.0.1", false),
            ("::ffff:0:8.8.8.8", false),
            ("64:ff9b::8.8.8.8", true),
            ("64:ff9b::169.254.169.254", false),
            ("64:ff9b:1::8.8.8.8", false),
            ("2002:808:808::1", true),
            ("2002:7f00:1::1", false),
            ("2002:a9fe:a9fe::", false),
            // Server 8.8.8.8, clients 8.8.4.4 and 127.0.0.1; then server 10.0.0.1.
            ("2001:0:808:808:0:0:f7f7:fbfb", true),
            ("2001:0:808:808:0:0:80ff:fffe", false),
            ("2001:0:a00:1:0:0:f7f7:fbfb", false),
            ("2a00:1450::5efe:10.0.0.1", false),
            ("2a00:1450::200:5efe:8.8.8.8", true),
            ("fe80::5efe:8.8.8.8", false),
        ] {
            assert_eq!(is_public(address), expected, "{address}");
        }
    }
}
