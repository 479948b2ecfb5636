//! Pages of sources rendered as images, with the boxes of cited sentences.

use std::io::Cursor;

use axum::body::Body;
use http::Request;
use serde_json::{Value, json};

use crate::support::{Reply, TestServer};
use crate::uploads::pdf;

const KESTREL: &str = "The kestrel hovers over the field.";
const HERON: &str = "The heron waits at the pond.";

/// Starts a server with a source `birds` of two pages.
fn start() -> TestServer {
    let server = TestServer::start();
    send(&server, "birds", &[KESTREL, HERON]);
    server
}

fn send(server: &TestServer, id: &str, lines: &[&str]) {
    let file = pdf(lines);
    let form = [
        ("tenant_id", None, &b"acme"[..]),
        ("file_id", None, id.as_bytes()),
        ("file", Some("birds.pdf"), &file),
    ];
    server.form("POST", "/upload/upload_document", &form).ok();
    assert_eq!(server.settled("acme", "default", id)["status"], "success");
}

/// Requests an image of a page, with additional members in the body.
fn page(server: &TestServer, id: &str, page: u32, more: Value) -> Reply {
    let mut body = json!({"tenant_id": "acme", "file_id": id, "page": page});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    server.post("/fetch/page_image", body)
}

/// The width, height, number of channels and pixel data of an image.
fn decoded(reply: &Reply) -> (usize, usize, usize, Vec<u8>) {
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.bytes));
    assert_eq!(reply.headers["content-type"], "image/png");
    let mut reader = png::Decoder::new(Cursor::new(&reply.bytes)).read_info().unwrap();
    let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
    let told = reader.next_frame(&mut bytes).unwrap();
    let (width, height) = (told.width as usize, told.height as usize);
    (width, height, bytes.len() / (width * height), bytes)
}

/// Counts an image's dark pixels inside and outside a box, and the coloured pixels inside it.
fn counted(reply: &Reply, area: &Value) -> (usize, usize, usize) {
    let (width, height, channels, bytes) = decoded(reply);
    let points: f64 = reply.headers["x-page-width"].to_str().unwrap().parse().unwrap();
    let scale = width as f64 / points;
    let of = |name: &str| area[name].as_f64().unwrap() * scale;
    let (left, top) = (of("x") - 1.0, of("y") - 1.0);
    let (right, bottom) = (left + of("width") + 2.0, top + of("height") + 2.0);
    let (mut inside, mut outside, mut coloured) = (0, 0, 0);
    for at in 0..width * height {
        let pixel = &bytes[at * channels..(at + 1) * channels];
        let (x, y) = ((at % width) as f64, (at / width) as f64);
        let is_inside = (left..right).contains(&x) && (top..bottom).contains(&y);
        if pixel.iter().all(|channel| *channel < 128) {
            *if is_inside { &mut inside } else { &mut outside } += 1;
        }
        let has_colour = channels == 3 && pixel[0] > pixel[2].saturating_add(20);
        coloured += usize::from(is_inside && has_colour);
    }
    (inside, outside, coloured)
}

#[test]
fn a_cited_sentence_lies_in_its_box_on_the_picture_of_its_page() {
    let server = start();
    let check = |server: &TestServer| {
        let question = json!({"question": "Where does the heron wait?", "tenant_id": "acme"});
        let answer = server.post("/search/qna", question).ok();
        let cited = &answer["citations"][0];
        assert_eq!((&cited["text"], &cited["page"]), (&json!(HERON), &json!(2)), "{answer}");
        // The chunk covers both pages; the sentence is a line of the second.
        let boxes = cited["boxes"].as_array().unwrap();
        assert_eq!((boxes.len(), &boxes[0]["page"]), (1, &json!(2)), "{cited}");
        let plain = page(server, "birds", 2, json!({}));
        assert_eq!(decoded(&plain).0, 1024);
        let (inside, outside, coloured) = counted(&plain, &boxes[0]);
        assert!(inside > 500 && outside == 0 && coloured == 0, "{inside} {outside} {coloured}");
        let marked = page(server, "birds", 2, json!({"width": 600, "highlight": boxes}));
        assert_eq!((decoded(&marked).0, decoded(&marked).2), (600, 3));
        let (inside, outside, coloured) = counted(&marked, &boxes[0]);
        assert!(inside > 100 && outside == 0 && coloured > 1000, "{inside} {outside} {coloured}");
        // Nothing is highlighted on the other page.
        let other = page(server, "birds", 1, json!({"highlight": boxes}));
        assert_eq!(decoded(&other).2, 1, "grey");
        assert_eq!(other.headers["x-page-count"], "2");
        assert_eq!(
            (&other.headers["x-page-width"], &other.headers["x-page-height"]),
            (&http::HeaderValue::from_static("612"), &http::HeaderValue::from_static("792"),)
        );
        assert!(other.headers["content-security-policy"].to_str().unwrap().contains("sandbox"));
        // Rendered recently: the image comes from the cache, byte for byte.
        assert_eq!(page(server, "birds", 2, json!({})).bytes, plain.bytes);
    };
    check(&server);
    check(&server.restart());
}

#[test]
fn what_cannot_be_drawn_says_why() {
    let server = start();
    server.index("acme", "default", "note", "apples fall");
    for return_content in [true, false] {
        let more = json!({"return_content": return_content});
        page(&server, "note", 1, more.clone()).error(400, "no_pages");
        page(&server, "none", 1, more).error(404, "source_not_found");
    }
    let told = page(&server, "birds", 3, json!({})).error(400, "page_not_found");
    assert_eq!(told["message"], "page 3 does not exist: the document has 2");
    assert_eq!(told["detail"]["errors"][0]["field"], "page");
    let area = json!({"x": 1, "y": 1, "width": 1, "height": 1});
    for (wrong, field) in [
        (json!({"page": 0}), "page"),
        (json!({"width": 63}), "width"),
        (json!({"width": 2049}), "width"),
        (json!({"format": "webp"}), "format"),
        (json!({"page": 5001}), "page must be from 1 to 5000"),
        (json!({"highlight": vec![&area; 65]}), "highlight must have at most 64"),
        (json!({"highlight": vec![&area; 1025]}), "highlight must have at most 1024"),
        (json!({"highlight": [{"x": 1, "y": 1, "width": -1, "height": 1}]}), "highlight[0].width"),
    ] {
        let reply = page(&server, "birds", 1, wrong);
        assert_eq!(reply.status, 400, "{field}");
        let told = reply.json()["message"].as_str().unwrap().to_owned();
        assert!(told.contains(field), "{told}");
    }
    // The boxes of a long answer may be sent along with each of its pages.
    let mut long = vec![json!({"page": 2, "x": 1, "y": 1, "width": 1, "height": 1}); 200];
    long.push(area);
    assert_eq!(decoded(&page(&server, "birds", 1, json!({"highlight": long}))).0, 1024);
    let missing = json!({"tenant_id": "acme", "file_id": "birds"});
    server.post("/fetch/page_image", missing).error(400, "missing_field");
    let elsewhere = json!({"tenant_id": "other", "file_id": "birds", "page": 1});
    server.post("/fetch/page_image", elsewhere).error(404, "tenant_not_found");
}

/// Goal: a cached image is not served for a source that was replaced or deleted since.
#[test]
fn pictures_end_with_their_source() {
    let server = start();
    let signed = page(&server, "birds", 1, json!({"return_content": false})).ok();
    assert_eq!((&signed["page"], &signed["content_type"]), (&json!(1), &json!("image/png")));
    let url = signed["download_url"].as_str().unwrap();
    let path = format!("/fetch/{}", url.split_once("/fetch/").unwrap().1);
    let follow = || server.send(Request::builder().uri(&path).body(Body::empty()).unwrap());
    let before = page(&server, "birds", 1, json!({}));
    assert_eq!(follow().bytes, before.bytes, "with no key");
    send(&server, "birds", &["The crane dances on the meadow."]);
    let after = page(&server, "birds", 1, json!({}));
    assert_eq!((decoded(&after).0, &after.headers["x-page-count"]), (1024, &"1".parse().unwrap()));
    assert_ne!(after.bytes, before.bytes);
    assert_eq!(follow().bytes, after.bytes);
    let body = json!({"tenant_id": "acme", "source_ids": ["birds"]});
    server.call("DELETE", "/delete_source", body).ok();
    page(&server, "birds", 1, json!({})).error(404, "source_not_found");
    follow().error(404, "download_not_found");
}
