//! Goal: no response takes more time or memory than a fetch is allowed, whatever its shape.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::tests::world::{HASTE, HTML, Handler, Listener, PATIENCE, World, reply};
use crate::{Connection, Dialer, Fetcher, Rules};
use lodestone_types::limits::WEB_HEAD_BYTES_MAX;
use lodestone_types::{FetchProblem, WebClient, WebFailure, WebStep, WebUrl};

/// A site without rules that answers every other path with `page`.
fn site(
    page: impl Fn(&mut dyn super::world::Duplex) -> std::io::Result<()> + Send + Sync + 'static,
) -> Listener {
    let handler: Handler = Arc::new(move |path, stream| match path {
        "/robots.txt" => reply(stream, 404, "", b""),
        _ => page(stream),
    });
    Listener::site(handler)
}

fn problem(world: &World) -> FetchProblem {
    match world.fetch("http://www.test/").unwrap_err() {
        WebFailure::Failed { problem, .. } => problem,
        blocked => panic!("{blocked}"),
    }
}

#[test]
fn pages_beyond_the_bound_are_refused_and_pages_at_it_are_not() {
    const BYTES_MAX: usize = 100_000;
    let world_of = |bytes: usize, framing: &'static str| {
        let site = site(move |stream| {
            let length = match framing {
                "length" => format!("content-length: {bytes}\r\n"),
                _ => String::new(),
            };
            write!(stream, "HTTP/1.1 200 OK\r\n{HTML}{length}\r\n")?;
            stream.write_all(&vec![b'x'; bytes])
        });
        let mut world = World::of(&site);
        world.rules.page_bytes_max = BYTES_MAX;
        (site, world)
    };
    for framing in ["length", "close"] {
        let (_site, world) = world_of(BYTES_MAX, framing);
        assert_eq!(world.fetch("http://www.test/").unwrap().bytes.len(), BYTES_MAX);
        let (_site, world) = world_of(BYTES_MAX + 1, framing);
        assert_eq!(problem(&world), FetchProblem::TooLarge { bytes_max: BYTES_MAX as u64 });
    }
}

#[test]
fn endless_answers_end() {
    let endless = site(|stream| {
        write!(stream, "HTTP/1.1 200 OK\r\n{HTML}\r\n")?;
        loop {
            stream.write_all(&[b'x'; 65536])?;
        }
    });
    let mut world = World::of(&endless);
    world.rules.page_bytes_max = 1 << 20;
    assert_eq!(problem(&world), FetchProblem::TooLarge { bytes_max: 1 << 20 });
    // A one-byte chunk costs six bytes on the wire, so the byte allowance ends the fetch.
    let chunks = site(|stream| {
        write!(stream, "HTTP/1.1 200 OK\r\n{HTML}transfer-encoding: chunked\r\n\r\n")?;
        loop {
            stream.write_all(&b"1\r\nx\r\n".repeat(1000))?;
        }
    });
    let mut world = World::of(&chunks);
    world.rules.wire_bytes_max = 1 << 20;
    assert_eq!(problem(&world), FetchProblem::TooLarge { bytes_max: 1 << 20 });
    // Empty gzip members decompress to nothing.
    let empty = flate2::write::GzEncoder::new(Vec::new(), Default::default()).finish().unwrap();
    let members = site(move |stream| {
        write!(stream, "HTTP/1.1 200 OK\r\n{HTML}content-encoding: gzip\r\n\r\n")?;
        loop {
            stream.write_all(&empty.repeat(1000))?;
        }
    });
    let mut world = World::of(&members);
    world.rules.wire_bytes_max = 1 << 20;
    assert_eq!(problem(&world), FetchProblem::TooLarge { bytes_max: 1 << 20 });
}

#[test]
fn bombs_do_not_go_off() {
    let zeros = vec![0_u8; 64 << 20];
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    gzip.write_all(&zeros).unwrap();
    let gzip = gzip.finish().unwrap();
    let zstd = zstd::encode_all(&zeros[..], 3).unwrap();
    let mut br = Vec::new();
    brotli::BrotliCompress(&mut &zeros[..], &mut br, &Default::default()).unwrap();
    for (encoding, bomb) in [("gzip", gzip), ("zstd", zstd), ("br", br)] {
        assert!(bomb.len() < 1 << 20, "{encoding}: it would be no bomb");
        let site = site(move |stream| {
            reply(stream, 200, &format!("{HTML}content-encoding: {encoding}\r\n"), &bomb)
        });
        let bytes_max = 20 << 20;
        assert_eq!(problem(&World::of(&site)), FetchProblem::TooLarge { bytes_max }, "{encoding}");
    }
}

#[test]
fn heads_are_bounded_in_size_and_number() {
    let long = |bytes: usize| {
        site(move |stream| {
            let head = format!("{HTML}x-long: {}\r\n", "x".repeat(bytes));
            reply(stream, 200, &head, b"<p>here")
        })
    };
    let fine = long(WEB_HEAD_BYTES_MAX / 2);
    assert!(World::of(&fine).fetch("http://www.test/").is_ok());
    for bytes in [WEB_HEAD_BYTES_MAX, 1 << 20] {
        assert_eq!(problem(&World::of(&long(bytes))), FetchProblem::HeadTooLarge, "{bytes}");
    }
    let many = site(|stream| reply(stream, 200, &"a: b\r\n".repeat(5000), b"<p>here"));
    let problem_of_many = problem(&World::of(&many));
    let is_refused =
        matches!(problem_of_many, FetchProblem::HeadTooLarge | FetchProblem::Malformed);
    assert!(is_refused, "{problem_of_many:?}");
    let endless = site(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
        loop {
            stream.write_all(&b"a: b\r\n".repeat(1000))?;
        }
    });
    let problem_of_endless = problem(&World::of(&endless));
    let is_refused =
        matches!(problem_of_endless, FetchProblem::HeadTooLarge | FetchProblem::Malformed);
    assert!(is_refused, "{problem_of_endless:?}");
}

/// Goal: a site that sends a byte at a time, or stalls, is cut off when the fetch's time is over.
#[test]
fn slow_answers_end_with_the_fetch() {
    for front in [
        "",
        "HTTP/1.1 200 OK\r\nx-slow: ",
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 1000000\r\n\r\n",
        "HTTP/1.1 302 Found\r\nlocation: ",
    ] {
        for is_dripping in [true, false] {
            if is_dripping && front.is_empty() {
                continue; // Such an answer is no HTTP from its first byte on.
            }
            // Waits between bytes, and until the end of the test, on a channel that receives
            // nothing.
            let (over, wait) = mpsc::channel::<()>();
            let wait = Mutex::new(wait);
            let site = site(move |stream| {
                stream.write_all(front.as_bytes())?;
                stream.flush()?;
                loop {
                    let pause = if is_dripping { Duration::from_millis(10) } else { PATIENCE };
                    match wait.lock().unwrap().recv_timeout(pause) {
                        Err(RecvTimeoutError::Timeout) => stream.write_all(b"x")?,
                        _ => return Ok(()),
                    }
                    stream.flush()?;
                }
            });
            let mut world = World::of(&site);
            world.rules.time_max = HASTE;
            let start = Instant::now();
            let failure = world.fetch("http://www.test/").unwrap_err();
            assert!(start.elapsed() < PATIENCE / 2, "{front:?}");
            // On a busy machine, the time may be over before the page is requested.
            let timed_out = FetchProblem::TimedOut { seconds: 1 };
            let is_expected = matches!(
                &failure,
                WebFailure::Failed { step: WebStep::Page | WebStep::Robots, problem }
                    if *problem == timed_out
            );
            assert!(is_expected, "{front:?}: {failure}");
            assert!(failure.is_temporary());
            drop(over);
        }
    }
}

#[test]
fn rules_that_do_not_come_are_named() {
    let (over, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let site = Listener::site(Arc::new(move |_, _| {
        // Returns without a response when the test ends.
        let _ = wait.lock().unwrap().recv_timeout(PATIENCE);
        Ok(())
    }));
    let mut world = World::of(&site);
    world.rules.time_max = HASTE;
    let failure = world.fetch("http://www.test/").unwrap_err();
    let problem = FetchProblem::TimedOut { seconds: 1 };
    assert_eq!(failure, WebFailure::Failed { step: WebStep::Robots, problem });
    drop(over);
}

#[test]
fn slow_names_end_with_the_fetch_and_do_not_pile_up() {
    let world = World { rules: rules_in_haste(), ..World::new() };
    let fetcher = world.fetcher();
    let url = WebUrl::parse("http://www.test/").unwrap();
    let held = world.names.slow.write().unwrap();
    for _ in 0..32 {
        let failure = fetcher.fetch(&url).unwrap_err();
        let problem = FetchProblem::TimedOut { seconds: 1 };
        assert_eq!(failure, WebFailure::Failed { step: WebStep::Page, problem });
    }
    let failure = fetcher.fetch(&url).unwrap_err();
    let problem = FetchProblem::Busy;
    assert_eq!(failure, WebFailure::Failed { step: WebStep::Page, problem });
    // Once they have been answered, lookups are possible again: here for a site that does not
    // exist.
    drop(held);
    let start = Instant::now();
    loop {
        match fetcher.fetch(&url).unwrap_err() {
            WebFailure::Failed { problem: FetchProblem::Refused, .. } => break,
            WebFailure::Failed { problem, .. } => assert!(problem.is_temporary(), "{problem}"),
            other => panic!("{other}"),
        }
        assert!(start.elapsed() < PATIENCE);
        std::thread::yield_now();
    }
}

/// A dialer that never connects, and records the timeout of each attempt.
#[derive(Debug, Clone, Default)]
struct Deaf(Arc<Mutex<Vec<Duration>>>);

impl Dialer for Deaf {
    fn dial(&self, _: SocketAddr, timeout: Duration) -> io::Result<Connection> {
        self.0.lock().unwrap().push(timeout);
        Err(io::ErrorKind::TimedOut.into())
    }
}

#[test]
fn the_last_address_of_a_name_has_all_the_time_that_is_left() {
    let World { names, rules, roots, .. } = World::new();
    names.set("www.test", &[&["8.8.8.1", "8.8.8.2", "8.8.8.3", "8.8.8.4", "8.8.8.5"]]);
    let deaf = Deaf::default();
    let fetcher = Fetcher::over(rules, names, deaf.clone(), roots);
    let failure = fetcher.fetch(&WebUrl::parse("http://www.test/").unwrap()).unwrap_err();
    let problem = FetchProblem::Refused;
    assert_eq!(failure, WebFailure::Failed { step: WebStep::Page, problem });
    let given = deaf.0.lock().unwrap();
    assert_eq!(given[..given.len() - 1], [Duration::from_secs(8); 3]);
    assert!(given[3] > Duration::from_secs(8), "{given:?}");
}

fn rules_in_haste() -> Rules {
    let rules = Rules::new("".parse().unwrap());
    Rules { time_max: Duration::from_millis(50), ..rules }
}

#[test]
fn answers_that_break_off_or_are_no_http_are_no_pages() {
    let cases: [(&'static str, &[FetchProblem]); 7] = [
        ("", &[FetchProblem::Lost, FetchProblem::Malformed]),
        ("HTTP/1.1 200 OK\r\ncontent-ty", &[FetchProblem::Lost, FetchProblem::Malformed]),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 100\r\n\r\n<p>half",
            &[FetchProblem::Lost],
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\
             transfer-encoding: chunked\r\n\r\n5\r\nab",
            &[FetchProblem::Lost],
        ),
        (
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\
             transfer-encoding: chunked\r\n\r\nzz\r\n",
            &[FetchProblem::Malformed],
        ),
        ("SSH-2.0-OpenSSH_9.7\r\n\r\n", &[FetchProblem::Malformed]),
        ("\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n", &[FetchProblem::Malformed]),
    ];
    for (words, expected) in cases {
        let site = site(move |stream| stream.write_all(words.as_bytes()));
        let problem = problem(&World::of(&site));
        assert!(expected.contains(&problem), "{words:?}: {problem:?}");
    }
}
