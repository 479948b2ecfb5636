//! Goal: no spelling, name, redirect or rule file leads to an address that is not public. Method:
//! whatever passes the gate is connected to a canary, which must never be touched.

use std::net::{IpAddr, Ipv4Addr};

use crate::NameError;
use crate::tests::world::{HTML, Listener, World, pages};
use lodestone_types::{BlockedReason, FetchProblem, WebFailure, WebStep, WebUrl};

/// At least one address of every block that is not public, and the clouds' metadata addresses.
const PRIVATE_V4: [[u8; 4]; 30] = [
    [0, 0, 0, 0],
    [0, 1, 2, 3],
    [10, 0, 0, 1],
    [10, 255, 255, 254],
    [100, 64, 0, 1],
    [100, 100, 100, 200],
    [127, 0, 0, 1],
    [127, 0, 0, 53],
    [127, 255, 255, 254],
    [168, 63, 129, 16],
    [169, 254, 0, 1],
    [169, 254, 169, 254],
    [169, 254, 170, 2],
    [172, 16, 0, 1],
    [172, 31, 255, 254],
    [192, 0, 0, 1],
    [192, 0, 0, 192],
    [192, 0, 2, 1],
    [192, 88, 99, 1],
    [192, 168, 0, 1],
    [192, 168, 255, 254],
    [198, 18, 0, 1],
    [198, 19, 255, 254],
    [198, 51, 100, 1],
    [203, 0, 113, 1],
    [224, 0, 0, 1],
    [239, 255, 255, 250],
    [240, 0, 0, 1],
    [254, 1, 2, 3],
    [255, 255, 255, 255],
];

const PRIVATE_V6: [&str; 24] = [
    "::", "::1", "::2", "0:0:0:0:0:0:0:1", "100::1", "fc00::1", "fd00::1", "fd00:ec2::254",
    "fd20:ce::254", "fe80::1", "fe80::a9fe:a9fe", "febf::1", "fec0::1", "feff::1", "ff02::1",
    "ff05::1:3", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1",
    "5f00::1", "64:ff9b:1::1",
];

/// The ways in which an IPv4 address can be written in a URL.
fn spellings(octets: [u8; 4]) -> Vec<String> {
    let [a, b, c, d] = octets;
    let number = u32::from_be_bytes(octets);
    let dotted = format!("{a}.{b}.{c}.{d}");
    let wide = |text: &str| -> String {
        let wide = |digit: char| char::from_u32(digit as u32 - 0x30 + 0xFF10).unwrap();
        text.chars().map(|c| if c.is_ascii_digit() { wide(c) } else { c }).collect()
    };
    let (high, low) = (number >> 16, number & 0xFFFF);
    let turned = !number;
    vec![
        dotted.clone(),
        format!("{dotted}."),
        number.to_string(),
        format!("{number}."),
        format!("0x{number:x}"),
        format!("0X{number:08X}"),
        format!("0{number:o}"),
        format!("000000{number:o}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a}.{}", number & 0xFF_FFFF),
        format!("{a}.{b}.{low}"),
        format!("0x{a:x}.0{b:o}.{c}.{d}"),
        wide(&dotted),
        dotted.replace('.', "。"),
        dotted.replace('.', "\u{ff0e}"),
        dotted.replace('.', "%2e"),
        dotted.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        format!("[::ffff:{dotted}]"),
        format!("[::ffff:{high:x}:{low:x}]"),
        format!("[0:0:0:0:0:ffff:{high:x}:{low:x}]"),
        format!("[::{dotted}]"),
        format!("[::ffff:0:{dotted}]"),
        format!("[64:ff9b::{dotted}]"),
        format!("[64:ff9b:1::{dotted}]"),
        format!("[2002:{high:x}:{low:x}::1]"),
        format!("[2001:0:808:808:0:0:{:x}:{:x}]", turned >> 16, turned & 0xFFFF),
        format!("[2001:0:{high:x}:{low:x}::f7f7:f7f7]"),
        format!("[2a00:1450::5efe:{dotted}]"),
        format!("[::ffff:{dotted}%25lo]"),
    ]
}

/// Whether the URL is refused, by the parser or by the gate, before anything is connected to.
fn is_refused(world: &World, url: &str) -> bool {
    let Ok(url) = WebUrl::parse(url) else { return true };
    let failure = world.fetch(url.as_str()).unwrap_err();
    let reason = BlockedReason::Address;
    failure == WebFailure::Blocked { step: WebStep::Page, reason }
}

#[test]
fn no_spelling_of_a_private_address_is_connected_to() {
    let canary = Listener::canary("127.0.0.1:0");
    // One exception opens every port, so that no request is refused for its port.
    let world = World::new().allowing("8.8.8.8");
    world.map.watch(&canary);
    let mut cases = 0;
    for octets in PRIVATE_V4 {
        for host in spellings(octets) {
            for url in [
                format!("http://{host}/"),
                format!("https://{host}:443/x?y#z"),
                format!("HTTP://{host}:{}/", canary.address.port()),
            ] {
                assert!(is_refused(&world, &url), "{url}");
                cases += 1;
            }
        }
    }
    for host in PRIVATE_V6 {
        for url in [
            format!("http://[{host}]/"),
            format!("https://[{host}]/latest/meta-data"),
            format!("http://[{host}]:{}/", canary.address.port()),
        ] {
            assert!(is_refused(&world, &url), "{url}");
            cases += 1;
        }
    }
    assert!(cases >= 400, "{cases} cases");
    assert!(world.map.dialled().is_empty());
    assert_eq!(world.names.asked(), Vec::<String>::new());
    assert_eq!(canary.accepts(), 0);
}

/// Goal: a name that resolves to a private address is refused, whatever other addresses it has and
/// in whichever order.
#[test]
fn no_name_of_a_private_address_is_connected_to() {
    let canary = Listener::canary("127.0.0.1:0");
    let world = World::new();
    world.map.watch(&canary);
    let private: Vec<String> = PRIVATE_V4
        .iter()
        .map(|&octets| Ipv4Addr::from(octets).to_string())
        .chain(PRIVATE_V6.iter().map(|text| (*text).to_owned()))
        .chain(["::ffff:127.0.0.1", "64:ff9b::10.0.0.1", "2002:7f00:1::"].map(str::to_owned))
        .collect();
    for address in &private {
        let address = address.as_str();
        let many: Vec<&str> = vec!["8.8.8.8"; 99].into_iter().chain([address]).collect();
        let answers: [&[&str]; 5] = [
            &[address],
            &["8.8.8.8", address],
            &[address, "2a00:1450::1"],
            &["2a00:1450::1", "8.8.8.8", address],
            &many,
        ];
        for answer in answers {
            world.names.set("evil.test", &[answer]);
            for url in ["http://evil.test/", "https://EVIL.test./"] {
                assert!(is_refused(&world, url), "{url} at {answer:?}");
            }
        }
    }
    assert!(world.map.dialled().is_empty());
    assert_eq!(canary.accepts(), 0);
}

#[test]
fn a_name_that_changes_its_mind_is_judged_each_time() {
    let canary = Listener::canary("127.0.0.1:0");
    let site = Listener::site(pages(&[("/", 200, HTML, "<p>here")]));
    let world = World::of(&site);
    world.map.watch(&canary);
    // The first lookup serves robots.txt, the second the page.
    world.names.set("evil.test", &[&["93.184.215.14"], &["127.0.0.1"]]);
    assert!(is_refused(&world, "http://evil.test/"));
    assert_eq!(world.names.asked(), ["evil.test", "evil.test"]);
    // One lookup per request, and the connection goes to its result.
    world.names.set("evil.test", &[&["93.184.215.14"], &["93.184.215.14"], &["127.0.0.1"]]);
    world.fetch("http://evil.test/").unwrap();
    assert!(is_refused(&world, "http://evil.test/"));
    assert_eq!(canary.accepts(), 0);
}

#[test]
fn a_peer_that_is_not_who_was_called_hears_nothing() {
    let site = Listener::site(pages(&[("/", 200, HTML, "<p>here")]));
    let world = World::of(&site);
    for claimed in ["127.0.0.1:80", "93.184.215.14:81", "93.184.215.15:80"] {
        *world.map.claimed.lock().unwrap() = Some(claimed.parse().unwrap());
        assert!(is_refused(&world, "http://www.test/"), "{claimed}");
    }
    assert_eq!(site.requests(), Vec::<String>::new());
    *world.map.claimed.lock().unwrap() = Some("[::ffff:93.184.215.14]:80".parse().unwrap());
    world.fetch("http://www.test/").unwrap();
}

#[test]
fn only_the_ports_of_the_web_are_asked() {
    let canary = Listener::canary("127.0.0.1:0");
    let world = World::new();
    world.map.watch(&canary);
    for port in [1, 7, 21, 22, 23, 25, 53, 79, 81, 110, 143, 444, 2375, 3306, 5432, 6379, 8080] {
        for host in ["www.test", "8.8.8.8", "[2a00:1450::1]", "[::ffff:8.8.8.8]"] {
            for scheme in ["http", "https"] {
                let url = format!("{scheme}://{host}:{port}/");
                let expected = WebFailure::Blocked {
                    step: WebStep::Page,
                    reason: BlockedReason::Port { port },
                };
                assert_eq!(world.fetch(&url), Err(expected), "{url}");
            }
        }
    }
    assert_eq!(world.names.asked(), Vec::<String>::new());
    assert_eq!(canary.accepts(), 0);
}

/// Forbidden redirect targets.
fn bad_targets(canary: &Listener) -> Vec<String> {
    let port = canary.address.port();
    let mut targets: Vec<String> = [
        "http://127.0.0.1/",
        "https://127.0.0.1/",
        "//127.0.0.1/x",
        "http:\\\\127.0.0.1\\",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://100.100.100.200/",
        "http://168.63.129.16/",
        "http://[fd00:ec2::254]/",
        "http://0/",
        "http://127.0.0.1%2e/",
        "http://inner.test/",
        "http://mixed.test/",
        "https://inner.test./",
        "//inner.test",
        "http://www.test:22/",
        "http://8.8.8.8:6379/",
        "http://u:p@www.test/",
        "//u@www.test/",
        "http://www.test@127.0.0.1/",
        "http://www.test:80@127.0.0.1/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_x",
        "ftp://127.0.0.1/",
        "data:text/html,x",
        "dict://127.0.0.1/",
        "jar:http://www.test!/",
        "javascript:alert(1)",
        "ldap://127.0.0.1",
        "http://",
        "http://[::1",
        "http://a:99999/",
        "tftp://127.0.0.1/x",
        "ws://127.0.0.1/",
        "http://\t127.0.0.1/",
        "h\tttp://127.0.0.1/",
        "HTTP://LOCALHOST.inner.test/",
        "///127.0.0.1/",
        "/\\127.0.0.1/",
        "\\\\127.0.0.1\\",
        "https:127.0.0.1:22",
        "about:blank",
        "blob:http://127.0.0.1/x",
    ]
    .map(str::to_owned)
    .into();
    targets.push(format!("http://127.0.0.1:{port}/"));
    targets.push(format!("http://localhost.inner.test:{port}/"));
    targets.push(format!("http://www.test/{}", "x".repeat(2048)));
    targets
}

#[test]
fn no_redirect_leads_where_an_address_may_not() {
    let canary = Listener::canary("127.0.0.1:0");
    let inner: &[&str] = &["10.0.0.1"];
    let mut cases = 0;
    for target in bad_targets(&canary) {
        for status in [301, 302, 303, 307, 308] {
            for depth in [1, 5] {
                let locations: Vec<(String, String)> = (1..=depth)
                    .map(|hop| match hop == depth {
                        true => (format!("/{hop}"), format!("location: {target}\r\n")),
                        false => (format!("/{hop}"), format!("location: /{}\r\n", hop + 1)),
                    })
                    .collect();
                let known: Vec<_> = locations
                    .iter()
                    .map(|(path, location)| (path.as_str(), status, location.as_str(), ""))
                    .collect();
                let site = Listener::site(pages(&known));
                let world = World::of(&site);
                world.map.watch(&canary);
                for name in ["inner.test", "localhost.inner.test"] {
                    world.names.set(name, &[inner]);
                }
                world.names.set("mixed.test", &[&["8.8.8.8", "::1"]]);
                let failure = world.fetch("http://www.test/1").unwrap_err();
                let is_expected =
                    matches!(failure, WebFailure::Blocked { step: WebStep::Redirect, .. });
                assert!(is_expected, "{status} to {target}: {failure}");
                let words = failure.to_string();
                assert!(!words.contains("127.0") && !words.contains("10.0"), "{words}");
                assert_eq!(site.requests().len(), depth + 1, "robots.txt and {depth}");
                cases += 1;
            }
        }
    }
    assert!(cases >= 400, "{cases} cases");
    assert_eq!(canary.accepts(), 0);
}

#[test]
fn rules_of_sites_are_fetched_under_the_same_rules() {
    let canary = Listener::canary("127.0.0.1:0");
    for target in bad_targets(&canary) {
        let location = format!("location: {target}\r\n");
        let site = Listener::site(pages(&[
            ("/robots.txt", 302, &location, ""),
            ("/", 200, HTML, "<p>here"),
        ]));
        let world = World::of(&site);
        world.map.watch(&canary);
        for name in ["inner.test", "localhost.inner.test"] {
            world.names.set(name, &[&["10.0.0.1"]]);
        }
        world.names.set("mixed.test", &[&["8.8.8.8", "::1"]]);
        let failure = world.fetch("http://www.test/").unwrap_err();
        let is_expected = matches!(failure, WebFailure::Blocked { step: WebStep::Robots, .. });
        assert!(is_expected, "{target}: {failure}");
    }
    assert_eq!(canary.accepts(), 0);
}

#[test]
fn nothing_on_a_page_or_beside_it_is_fetched() {
    let canary = Listener::canary("127.0.0.1:0");
    let to = format!("http://127.0.0.1:{}/", canary.address.port());
    let page = format!(
        "<!doctype html><html><head><meta http-equiv=refresh content='0;url={to}'>\
         <link rel=canonical href='{to}'><link rel=stylesheet href='{to}'><base href='{to}'>\
         <script src='{to}'></script></head><body onload=\"location='{to}'\"><img src='{to}'>\
         <iframe src='{to}'></iframe><object data='{to}'></object>text</body></html>"
    );
    let robots = format!("Sitemap: {to}\n");
    let headers = format!(
        "{HTML}refresh: 0;url={to}\r\nlink: <{to}>; rel=preload\r\n\
         set-cookie: a=b\r\ncontent-location: {to}\r\nalt-svc: h3=\"127.0.0.1:{}\"\r\n",
        canary.address.port()
    );
    let site =
        Listener::site(pages(&[("/robots.txt", 200, "", &robots), ("/", 200, &headers, &page)]));
    let world = World::of(&site);
    world.map.watch(&canary);
    let found = world.fetch("http://www.test/").unwrap();
    assert_eq!(found.canonical_url, found.final_url);
    world.fetch("http://www.test/").unwrap();
    let requests = site.requests();
    assert_eq!(requests.len(), 4);
    for request in &requests {
        let lower = request.to_lowercase();
        assert!(!lower.contains("cookie") && !lower.contains("authorization"), "{request}");
        assert!(!lower.contains("referer"), "{request}");
        assert!(lower.contains("user-agent: lodestone/"), "{request}");
        assert!(lower.contains("host: www.test\r\n"), "{request}");
    }
    assert!(world.map.dialled().iter().all(|to| to.to_string() == "93.184.215.14:80"));
    assert_eq!(canary.accepts(), 0);
}

#[test]
fn names_that_lead_nowhere_are_told_apart() {
    let world = World::new();
    let failed = |problem| Err(WebFailure::Failed { step: WebStep::Page, problem });
    assert_eq!(world.fetch("http://nobody.test/"), failed(FetchProblem::UnknownHost));
    world.names.set("empty.test", &[&[]]);
    assert_eq!(world.fetch("http://empty.test/"), failed(FetchProblem::UnknownHost));
    world.names.set_raw("down.test", vec![Err(NameError::Unavailable)]);
    assert_eq!(world.fetch("http://down.test/"), failed(FetchProblem::NameLookup));
    let many: Vec<IpAddr> = vec![[8, 8, 8, 8].into(); 513];
    world.names.set_raw("most.test", vec![Ok(many[1..].to_vec())]);
    world.names.set_raw("many.test", vec![Ok(many)]);
    assert_eq!(world.fetch("http://many.test/"), failed(FetchProblem::NameLookup));
    assert_eq!(world.fetch("http://www.test/"), failed(FetchProblem::Refused));
    assert_eq!(world.map.dialled().len(), 1);
    assert_eq!(world.fetch("http://most.test/"), failed(FetchProblem::Refused));
}

#[test]
fn the_operator_may_open_what_is_closed_and_opens_nothing_else() {
    let site = Listener::site(pages(&[
        ("/", 200, HTML, "<p>inside"),
        ("/out", 302, "location: http://10.0.0.2/\r\n", ""),
    ]));
    let port = site.address.port();
    let world = |entries: &str| {
        let world = World::new().allowing(entries);
        world.map.put(&site.address.to_string(), &site);
        world.names.set("wiki.test", &[&["127.0.0.1"]]);
        world
    };
    let url = format!("http://127.0.0.1:{port}/");
    let named = format!("http://wiki.test:{port}/");
    for entry in ["127.0.0.1", "127.0.0.0/8", &format!("127.0.0.1:{port}"), "::ffff:127.0.0.1"] {
        world(entry).fetch(&url).unwrap();
        world(entry).fetch(&named).unwrap();
        let failure = world(entry).fetch(&format!("{url}out")).unwrap_err();
        assert!(failure.is_blocked(), "{failure}");
    }
    for entry in ["wiki.test", &format!("WIKI.test:{port}")] {
        world(entry).fetch(&named).unwrap();
        assert!(world(entry).fetch(&url).unwrap_err().is_blocked());
    }
    for entry in ["", "127.0.0.2", "127.0.0.1:1", "wiki.test:1", "wiki", "10.0.0.0/8", "::1"] {
        assert!(world(entry).fetch(&url).unwrap_err().is_blocked(), "{entry}");
        assert!(world(entry).fetch(&named).unwrap_err().is_blocked(), "{entry}");
    }
}

/// Goal: proxies from the environment are not used. Method: this test runs itself in a child
/// process in which all common proxy variables are set.
#[test]
fn proxies_of_the_environment_are_not_used() {
    const CHILD: &str = "LODESTONE_TEST_PROXY_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let site = Listener::site(pages(&[("/", 200, HTML, "<p>here")]));
        World::of(&site).fetch("http://www.test/").unwrap();
        let requests = site.requests();
        assert!(requests.len() == 2 && requests[1].starts_with("GET / HTTP/1.1\r\n"));
        return;
    }
    let canary = Listener::canary("127.0.0.1:0");
    let path = std::thread::current().name().unwrap().to_owned();
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    child.args([path.as_str(), "--exact"]).env(CHILD, "1");
    for name in ["http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
    {
        child.env(name, format!("http://{}/", canary.address));
    }
    let output = child.output().unwrap();
    let words = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && words.contains("1 passed"), "{words}");
    assert_eq!(canary.accepts(), 0);
}
