//! Tests of requests to a store that does not respond.

#![allow(clippy::disallowed_methods)] // A store of the test's own.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use super::*;
use lodestone_types::SystemClock;

fn bucket(store: &TcpListener) -> Bucket {
    let endpoint = format!("http://{}", store.local_addr().unwrap());
    let variable = |name: &str| match name {
        "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => Some("x".to_owned()),
        "AWS_ENDPOINT_URL_S3" => Some(endpoint.clone()),
        _ => None,
    };
    let (url, options) = ("s3://bucket/prefix".parse().unwrap(), BucketOptions::default());
    let (authorities, clock) = (Authorities::default(), Arc::new(SystemClock));
    let pause = Box::new(|_| false);
    Bucket::with_variables(&variable, url, &options, &authorities, clock, pause).unwrap()
}

/// Goal: a silently lost connection delays a small request by a few seconds, less than a process's
/// lease lasts. Method: the first connection is never answered.
#[test]
fn a_small_request_does_not_wait_for_a_lost_connection() {
    let store = TcpListener::bind("127.0.0.1:0").unwrap();
    let bucket = bucket(&store);
    let answering = std::thread::spawn(move || {
        let _lost: TcpStream = store.accept().unwrap().0;
        let (mut second, _) = store.accept().unwrap();
        let mut head = [0; 8 << 10];
        assert!(second.read(&mut head).unwrap() > 0);
        second.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nme").unwrap();
    });
    let begun = Instant::now();
    assert_eq!(bucket.get("owner").unwrap().unwrap(), b"me");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    answering.join().unwrap();
}

/// Goal: a small request to a store that never responds is given up within 15 seconds; large
/// requests have more time, and one that is not retried has less than a large one.
#[test]
fn a_store_that_hangs_is_given_up_soon() {
    let small = Ask { is_small: true, ..Ask::default() };
    let mut waited = Duration::ZERO;
    let begun = Instant::now();
    let long_ago = begun.checked_sub(Duration::from_secs(12)).unwrap();
    for tries in 0..3 {
        waited += small.answer_time(tries);
        assert!(small.is_tried_again(tries, begun));
    }
    assert_eq!(waited, Duration::from_secs(14));
    assert!(!small.is_tried_again(3, long_ago), "no fourth one");
    assert!(!small.is_tried_again(limits::RETRIES, begun), "nor many that fail at once");
    let large = Ask::default();
    assert!(large.is_tried_again(3, long_ago));
    assert_eq!((large.answer_time(0), small.answer_time(6)), (ANSWER, ANSWER));
    let once = Ask { is_once: true, ..Ask::default() };
    assert!(once.answer_time(0) < ANSWER / 2);
}

/// Goal: a listing whose pages lead to themselves is an error, not an endless loop.
#[test]
fn a_listing_that_does_not_move_ends() {
    let store = TcpListener::bind("127.0.0.1:0").unwrap();
    let bucket = bucket(&store);
    std::thread::spawn(move || {
        let body = "<ListBucketResult><Contents><Key>prefix/a</Key><Size>1</Size></Contents>\
            <NextContinuationToken>here</NextContinuationToken></ListBucketResult>";
        let (bytes, connection) = (body.len(), "connection: close");
        let answer =
            format!("HTTP/1.1 200 OK\r\n{connection}\r\ncontent-length: {bytes}\r\n\r\n{body}");
        for mut connection in store.incoming().flatten() {
            let mut head = [0; 8 << 10];
            let _ = connection.read(&mut head);
            let _ = connection.write_all(answer.as_bytes());
        }
    });
    for problem in [bucket.list("").unwrap_err(), bucket.holds_only(|_| true).unwrap_err()] {
        assert!(problem.to_string().contains("the same page twice"), "{problem}");
    }
}
