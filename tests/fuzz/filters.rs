//! Filters as in requests.

use lodestone_storage::filter;

use crate::mutations::Shape;
use crate::runner::{Target, run};

const SEEDS: [&str; 3] = [
    r#"{"$and":[{"a.b":{"$gte":1,"$lt":2.5}},{"$not":{"c":{"$in":["x",true,null]}}}],"d":"e"}"#,
    r#"{"source_id":"a","source_upload_time":{"$gt":"2024-01-01T00:00:00Z"},"$or":[{"k":[1,2]}]}"#,
    r#"{"a":{"b":{"c":{"$exists":true,"$ne":-1e3}}},"x":{"$nin":[],"$contains":"y"}}"#,
];

#[test]
fn filters() {
    let read = |bytes: &[u8]| {
        if let Ok(value) = serde_json::from_slice::<serde_json::Value>(bytes) {
            let _ = filter::parse(value.as_object(), None, None);
            let _ = filter::parse(None, value.as_object(), value.as_object());
        }
    };
    run(Target {
        name: "filters",
        seeds: SEEDS.iter().map(|seed| seed.as_bytes().to_vec()).collect(),
        shape: Shape::Values,
        read: Box::new(read),
        is_contained: |_| false,
    });
}
