//! URLs of pages, and the robots rules of sites.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use lodestone_fetch::{Allowed, Authorities, Fetcher, NameError, Resolver, Robots, Rules};
use lodestone_types::{WebClient, WebHost, WebUrl};

use crate::chance::Chance;
use crate::mutations::Shape;
use crate::runner::{Target, fingerprint, run};

/// A resolver that knows no name.
struct Nobody;

impl Resolver for Nobody {
    fn addresses(&self, _: &str) -> Result<Vec<IpAddr>, NameError> {
        Err(NameError::Unknown)
    }
}

static FETCHER: LazyLock<Fetcher> =
    LazyLock::new(|| Fetcher::new(Rules::new(Allowed::default()), Nobody, &Authorities::default()));

const PARTS: &[&str] = &[
    "http://", "https://", "HTTP:", "//", "/", "\\", "@", ":", ":80", ":443", ":0", ":65536", "[",
    "]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[fe80::1%25lo]", "127.0.0.1", "127.1",
    "0x7f.1", "017700000001", "2130706433", "0", "0.0.0.0", "10.0.0.1", "169.254.169.254",
    "192.168.0.1", ".", "。", "\u{ff0e}", "\u{ff11}", "\u{2460}", "é", "ß", "xn--", "xn--a", "%2e",
    "%00", "%31", "\u{ad}", "\u{200d}", "?", "#", "localhost", "user:pass", "..", "0x", "08",
    "1e3", "-", "_",
];

/// Whether an address is certainly not public, determined independently of the code under test.
fn is_forbidden(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            v4.is_private()
                || v4.is_loopback()
                || v4.is_link_local()
                || v4.is_multicast()
                || v4.is_documentation()
                || a == 0
                || a >= 240
                || (a == 100 && b & 0xC0 == 64)
                || (a == 198 && b & 0xFE == 18)
        }
        IpAddr::V6(v6) => {
            let [a, b, c, d, e, f, g, h] = v6.segments();
            let v4 = |high: u16, low: u16| {
                let bits = u32::from(high) << 16 | u32::from(low);
                is_forbidden(Ipv4Addr::from_bits(bits).into())
            };
            v6.is_loopback()
                || v6.is_unspecified()
                || v6.is_multicast()
                || v6.is_unique_local()
                || v6.is_unicast_link_local()
                || ([a, b, c, d, e] == [0; 5] && matches!(f, 0 | 0xFFFF) && v4(g, h))
                || (a == 0x64 && b == 0xFF9B && [c, d, e, f] == [0; 4] && v4(g, h))
                || (a == 0x2002 && v4(b, c))
        }
    }
}

/// Whether the C library would parse a name as an IPv4 address: one to four numbers in base 8, 10
/// or 16.
fn is_number(name: &str) -> bool {
    let parts: Vec<&str> = name.split('.').collect();
    let is_one = |part: &&str| match part.strip_prefix("0x").or(part.strip_prefix("0X")) {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_hexdigit()),
        None => !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()),
    };
    parts.len() <= 4 && parts.iter().all(is_one)
}

/// Checks that no forbidden address passes the filter, and that a URL parses to itself.
fn check(url: &WebUrl) {
    let again = WebUrl::parse(url.as_str()).map(|again| again.as_str().to_owned());
    if url.as_str().chars().count() <= 2048 {
        assert_eq!(again.as_deref(), Ok(url.as_str()), "an address has one spelling");
    }
    assert!(url.target().starts_with('/'), "a path begins with a slash");
    assert!(url.origin().starts_with("http") && url.port() > 0);
    match url.host() {
        WebHost::Name(name) => assert!(!is_number(name), "a number passes for a name: {name}"),
        // Public addresses are not fetched: tests connect to nobody.
        WebHost::Address(address) if is_forbidden(address) => {
            let outcome = FETCHER.fetch(url);
            assert!(outcome.is_err_and(|failure| failure.is_blocked()), "{url} is not blocked");
        }
        WebHost::Address(_) => {}
    }
}

#[test]
fn addresses() {
    let read = |bytes: &[u8]| {
        let text = String::from_utf8_lossy(bytes);
        let base = WebUrl::parse("https://example.com/a/b?c").expect("an address");
        for url in [WebUrl::parse(&text), base.join(&text)].into_iter().flatten() {
            check(&url);
        }
    };
    let seeds = [
        "https://example.com:8443/a/../b;c?d=e&f#g",
        "http://[2001:db8::1]:80/",
        "http://bücher.example./%7ejoe",
        "http://127.0.0.1/",
        "//other.example/x",
        "http://\u{ff11}\u{ff12}\u{ff17}。0.0.1/",
    ];
    run(Target {
        name: "addresses",
        seeds: seeds.map(|seed| seed.as_bytes().to_vec()).to_vec(),
        shape: Shape::Text(PARTS),
        read: Box::new(read),
        is_contained: |_| false,
    });
}

/// Goal: a forbidden address is recognized in every spelling that some program accepts.
#[test]
fn literals() {
    let read = |bytes: &[u8]| {
        let mut chance = Chance::new(fingerprint(bytes));
        let text = format!("http://{}/", spelt(&mut chance));
        if let Ok(url) = WebUrl::parse(&text) {
            match url.host() {
                WebHost::Address(address) => assert!(is_forbidden(address), "{text} is {address}"),
                WebHost::Name(name) => panic!("{text} passes for the name {name}"),
            }
            check(&url);
        }
    };
    run(Target {
        name: "literals",
        seeds: vec![b"0".to_vec()],
        shape: Shape::Text(&["1"]),
        read: Box::new(read),
        is_contained: |_| false,
    });
}

/// A forbidden address in a spelling that an attacker might choose to bypass a check.
fn spelt(chance: &mut Chance) -> String {
    let networks: [[u8; 4]; 10] = [
        [127, 0, 0, 1],
        [10, 0, 0, 0],
        [172, 16, 0, 0],
        [192, 168, 0, 0],
        [169, 254, 169, 254],
        [100, 64, 0, 0],
        [0, 0, 0, 0],
        [224, 0, 0, 0],
        [255, 255, 255, 255],
        [198, 18, 0, 0],
    ];
    let mut octets = networks[chance.below(networks.len())];
    if chance.one_in(2) {
        octets[3] = chance.number() as u8;
    }
    let v4 = Ipv4Addr::from(octets);
    let bits = v4.to_bits();
    let (high, low) = ((bits >> 16) as u16, bits as u16);
    let number = |chance: &mut Chance, value: u32| match chance.below(4) {
        0 => format!("{value:#x}"),
        1 => format!("0X{value:08X}"),
        2 => format!("0{value:o}"),
        _ => value.to_string(),
    };
    let [a, b, c, d] = octets.map(u32::from);
    let plain = match chance.below(9) {
        0 => number(chance, bits),
        1 => format!("{}.{}", number(chance, a), number(chance, bits & 0xFF_FFFF)),
        2 => {
            format!("{}.{}.{}", number(chance, a), number(chance, b), number(chance, bits & 0xFFFF))
        }
        3 => [a, b, c, d].map(|part| number(chance, part)).join("."),
        4 => v4.to_string(),
        5 => format!("[{}]", v4.to_ipv6_mapped()),
        6 => format!("[::{v4}]"),
        7 => format!("[{}]", Ipv6Addr::new(0x64, 0xFF9B, 0, 0, 0, 0, high, low)),
        _ => format!("[{}]", Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1)),
    };
    let disguise = |chance: &mut Chance, c: char| match (c, chance.below(6)) {
        ('0'..='9', 0) if !plain.starts_with('[') => {
            char::from_u32(0xFF10 + c as u32 - '0' as u32).expect("a full-width digit").to_string()
        }
        ('.', 0) if !plain.starts_with('[') => '。'.to_string(),
        ('0'..='9', 1) if !plain.starts_with('[') => format!("%{:02x}", c as u32),
        _ => c.to_string(),
    };
    let disguised: String = plain.chars().map(|c| disguise(chance, c)).collect();
    let end = if plain.starts_with('[') { "" } else { chance.pick(&["", "."]) };
    format!("{disguised}{end}{}", chance.pick(&["", ":80", ":443", ":8080"]))
}

#[test]
fn robots() {
    const WORDS: &[&str] = &[
        "User-agent: *\n", "User-agent: lodestone\n", "Disallow: /", "Allow: /", "Disallow:\n",
        "*", "$", "**", "%2F", "%", "#", ":", "\r", "\n", "\u{FEFF}", "/a", "?", "Sitemap: x\n",
        "\0",
    ];
    let read = |bytes: &[u8]| {
        let (target, rules) = bytes.split_at(bytes.len().min(40));
        let robots = Robots::parse(rules);
        assert!(robots.allows("/robots.txt"), "the rules themselves may be read");
        let target = format!("/{}", String::from_utf8_lossy(target));
        assert_eq!(robots.allows(&target), robots.allows(&target));
        let _ = robots.allows(&target.repeat(40));
    };
    let seed = "/a/b.cgi?c=d%7e----------------------------User-agent: x\nDisallow: /\nUser-agent: \
        Lodestone/1\nDisallow: /a*b*c$\nAllow: /%7Ejoe # why\n\nUser-agent: *\nDisallow: /*?\n";
    run(Target {
        name: "robots",
        seeds: vec![seed.as_bytes().to_vec()],
        shape: Shape::Text(WORDS),
        read: Box::new(read),
        is_contained: |_| false,
    });
}
