//! Goal: a message reaches only the receiver that was named, and no receiver holds up its sender
//! longer than a message may take.

use std::sync::{Arc, Mutex, mpsc};

use crate::tests::world::{HASTE, Handler, Listener, World, certificate, pages};
use lodestone_types::{BlockedReason, FetchProblem, PostFailure, WebPost, WebUrl, WebhookClient};

const BODY: &str = "{\"type\":\"source.success\"}";

fn post(world: &World, url: &str) -> Result<u16, PostFailure> {
    let url = WebUrl::parse(url).unwrap();
    let headers = [("webhook-id", "evt_1".to_owned())];
    world.fetcher().post(&WebPost { url: &url, headers: &headers, body: BODY })
}

#[test]
fn a_message_arrives_as_it_is() {
    let site = Listener::site(pages(&[("/hook?x=1", 204, "", "")]));
    assert_eq!(post(&World::of(&site), "http://www.test/hook?x=1"), Ok(204));
    assert_eq!(site.bodies(), [BODY.as_bytes()]);
    let head = site.requests()[0].to_ascii_lowercase();
    assert!(head.starts_with("post /hook?x=1 http/1.1\r\n"), "{head}");
    for line in ["webhook-id: evt_1", "content-type: application/json", "host: www.test"] {
        assert!(head.contains(line), "{head}");
    }
}

#[test]
fn no_redirect_is_followed() {
    let canary = Listener::canary("127.0.0.1:0");
    for location in ["http://127.0.0.1/", "http://169.254.169.254/", "http://www.test/other"] {
        let header = format!("location: {location}\r\n");
        for status in [301, 302, 303, 307, 308] {
            let site = Listener::site(pages(&[("/", status, &header, "")]));
            let world = World::of(&site);
            world.map.watch(&canary);
            assert_eq!(post(&world, "http://www.test/"), Ok(status));
            assert_eq!(world.map.dialled().len(), 1, "{location}");
        }
    }
    assert_eq!(canary.accepts(), 0);
}

#[test]
fn what_is_not_public_is_refused_at_each_message() {
    let canary = Listener::canary("127.0.0.1:0");
    let site = Listener::site(pages(&[("/", 200, "", "")]));
    let world = World::of(&site);
    world.map.watch(&canary);
    world.names.set("inside.test", &[&["10.0.0.7"]]);
    world.names.set("both.test", &[&["93.184.215.14", "127.0.0.1"]]);
    // Public at registration, and for the first message.
    world.names.set("turns.test", &[&["93.184.215.14"], &["169.254.169.254"]]);
    let blocked = Err(PostFailure::Blocked(BlockedReason::Address));
    for url in ["http://127.0.0.1/", "http://[::1]/", "http://inside.test/", "http://both.test/"] {
        assert_eq!(post(&world, url), blocked, "{url}");
    }
    assert_eq!(post(&world, "http://turns.test/"), Ok(200));
    assert_eq!(post(&world, "http://turns.test/"), blocked);
    let port = Err(PostFailure::Blocked(BlockedReason::Port { port: 8443 }));
    assert_eq!(post(&world, "https://www.test:8443/"), port);
    assert_eq!(canary.accepts(), 0);
    let permits = |url: &str| world.fetcher().permits(&WebUrl::parse(url).unwrap());
    assert_eq!(permits("http://127.0.0.1/"), Err(BlockedReason::Address));
    assert_eq!(permits("http://localhost/"), Err(BlockedReason::Address));
    assert_eq!(permits("https://hooks.LOCALHOST/"), Err(BlockedReason::Address));
    assert_eq!(permits("https://www.test/"), Ok(()));
    assert_eq!(world.names.asked().len(), 4, "no name was looked up for it");
}

#[test]
fn a_certificate_for_somebody_else_is_not_believed() {
    let (config, roots) = certificate();
    let site = Listener::secure_site(config, pages(&[("/", 200, "", "")]));
    let mut world = World::new();
    world.map.put("93.184.215.14:443", &site);
    world.names.set("wrong.test", &[&["93.184.215.14"]]);
    let insecure = Err(PostFailure::Failed(FetchProblem::Insecure));
    assert_eq!(post(&world, "https://www.test/"), insecure, "nobody vouches for it");
    world.roots = roots;
    assert_eq!(post(&world, "https://www.test/"), Ok(200));
    assert_eq!(post(&world, "https://wrong.test/"), insecure);
}

#[test]
fn silence_and_endless_answers_end() {
    let (_open, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let silent: Handler = Arc::new(move |_, _| {
        // The sender is dropped at the end of the test.
        let _ = held.lock().unwrap().recv();
        Ok(())
    });
    let endless: Handler = Arc::new(|_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\n")?;
        loop {
            write!(stream, "x-filler: {}\r\n", "x".repeat(1000))?;
        }
    });
    let dripping: Handler = Arc::new(|_, stream| {
        loop {
            stream.write_all(b"H")?;
        }
    });
    let mut problems = Vec::new();
    for handler in [silent, endless, dripping] {
        let site = Listener::site(handler);
        let mut world = World::of(&site);
        world.rules.time_max = HASTE;
        problems.push(post(&world, "http://www.test/").unwrap_err());
    }
    assert_eq!(problems[0], PostFailure::Failed(FetchProblem::TimedOut { seconds: 1 }));
    let whole = Listener::site(Arc::new(|_, stream| {
        write!(stream, "HTTP/1.1 200 OK\r\n\r\n")?;
        loop {
            stream.write_all(&[b'x'; 65536])?;
        }
    }));
    assert_eq!(post(&World::of(&whole), "http://www.test/"), Ok(200), "its body is not read");
}
