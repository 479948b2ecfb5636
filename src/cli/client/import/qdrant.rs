//! Import from a Qdrant collection, read over its REST interface: `GET /collections/{name}` for
//! width and metric, `POST .../points/scroll` for the points, page by page in order of id.

use lodestone_types::{Metadata, Metric, limits};
use serde_json::{Map, Value, json};

use super::ImportOptions;
use super::record::{Record, id_text, taken};
use super::remote::Remote;
use super::sender::{Contents, Sender};
use crate::cli::client::failure::Failure;
use crate::cli::ingest::stop::Stop;
use crate::cli::transport::escaped;

/// Maximum number of points per page, and of vector components in it.
const PAGE_POINTS: usize = 500;
const PAGE_NUMBERS: usize = 1 << 18;

/// Sends the points of a collection.
///
/// # Errors
/// [`Failure`] if the collection cannot be read or has an unsupported metric, or the server fails.
pub fn read(options: &ImportOptions, stop: &Stop, sender: &mut Sender<'_>) -> Result<(), Failure> {
    let qdrant = Remote::new(options, stop, "api-key", "QDRANT_API_KEY")?;
    let path = format!("/collections/{}", escaped(qdrant.collection));
    let found = qdrant.ask(path.clone(), None)?;
    let shape = shape_of(&found["result"]["config"]["params"], options.vector.as_deref());
    let named = |problem| Failure::Usage(format!("collection {}: {problem}", qdrant.collection));
    let shape = shape.map_err(named)?;
    if shape.has_sparse {
        sender.tally.leave_out("sparse vectors");
    }
    let metric = match options.metric {
        Some(metric) => metric,
        None => metric_of(&shape.distance)?,
    };
    sender.open_vectors(Some(metric))?;
    let limit = (PAGE_NUMBERS / shape.width.max(1)).clamp(1, PAGE_POINTS);
    let mut offset = Value::Null;
    loop {
        let body = scroll(&shape, limit, &offset);
        let mut answer = qdrant.ask(format!("{path}/points/scroll"), Some(&body))?;
        let Value::Array(points) = taken(&mut answer, "/result/points") else {
            return Err(qdrant.failed("its response contains no points; is it a Qdrant server?"));
        };
        let next = taken(&mut answer, "/result/next_page_offset");
        for point in points {
            let Some(id) = id_text(&point["id"]) else {
                sender.tally.refuse(&point["id"].to_string(), "an id of an unknown type");
                continue;
            };
            match record(&id, point, shape.name.as_deref()) {
                Ok(record) => drop(sender.push(Contents::Vectors, &id, record)),
                Err(reason) => sender.tally.refuse(&id, &reason),
            }
        }
        sender.flush(Contents::Vectors)?;
        if next.is_null() {
            return Ok(());
        }
        if next == offset {
            return Err(qdrant.failed("it returned the same page twice"));
        }
        offset = next;
    }
}

/// The vectors of a collection that are imported.
#[derive(Debug, PartialEq)]
struct Shape {
    /// Name of the vectors, if they are named.
    name: Option<String>,
    width: usize,
    distance: String,
    has_sparse: bool,
}

/// Builds the request for a page of points, starting at an id.
fn scroll(shape: &Shape, limit: usize, offset: &Value) -> Value {
    let with_vector = shape.name.as_ref().map_or(json!(true), |name| json!([name]));
    let mut body = json!({"limit": limit, "with_payload": true, "with_vector": with_vector});
    if !offset.is_null() {
        body["offset"] = offset.clone();
    }
    body
}

/// Returns the metric that corresponds to a Qdrant distance.
fn metric_of(distance: &str) -> Result<Metric, Failure> {
    match distance {
        "Cosine" => Ok(Metric::Cosine),
        "Dot" => Ok(Metric::Dot),
        "Euclid" => Ok(Metric::L2),
        other => Err(Failure::Usage(format!(
            "the collection uses the metric {other}, which is not supported: choose another with \
             --metric"
        ))),
    }
}

/// Selects the vectors from a collection's parameters; an error is a message for people.
fn shape_of(params: &Value, wanted: Option<&str>) -> Result<Shape, String> {
    let has_sparse = params["sparse_vectors"].as_object().is_some_and(|map| !map.is_empty());
    let all = params["vectors"].as_object().cloned().unwrap_or_default();
    let (name, one) = match (wanted, all.get("size")) {
        (None, Some(Value::Number(_))) => (None, Value::Object(all)),
        (Some(_), Some(Value::Number(_))) => return Err("its vector has no name".to_owned()),
        (wanted, _) => {
            let names = all.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
            let name = match (wanted, all.len()) {
                (Some(name), _) => name.to_owned(),
                (None, 1) => names.clone(),
                (None, 0) => return Err("it has no dense vectors".to_owned()),
                (None, _) => return Err(format!("choose one of {names} with --vector")),
            };
            let one = all.get(&name).cloned();
            (Some(name), one.ok_or_else(|| format!("it has no such vector, only {names}"))?)
        }
    };
    if !one["multivector_config"].is_null() {
        return Err("its points have several vectors each, which is not supported".to_owned());
    }
    let width = one["size"].as_u64().unwrap_or(0) as usize;
    let max = limits::VECTOR_DIMENSION_MAX;
    if !(1..=max).contains(&width) {
        return Err(format!("its vectors have {width} dimensions; 1 to {max} are allowed"));
    }
    let distance = one["distance"].as_str().unwrap_or("nothing").to_owned();
    Ok(Shape { name, width, distance, has_sparse })
}

/// Converts a point to a record; an error is the reason why it cannot be imported.
fn record(id: &str, mut point: Value, vector: Option<&str>) -> Result<Record, String> {
    let mut found = taken(&mut point, "/vector");
    if let Some(name) = vector {
        found = found.get_mut(name).map_or(Value::Null, Value::take);
    }
    let vector = match found {
        Value::Array(vector) => vector,
        _ => return Err("without a vector".to_owned()),
    };
    let metadata: Metadata = match taken(&mut point, "/payload") {
        Value::Object(payload) => payload,
        _ => Map::new(),
    };
    Record::new(id, None, Some(vector), metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_of_a_collection_is_found_or_asked_for() {
        let one = json!({"size": 4, "distance": "Dot"});
        let of = |vectors: Value, wanted| shape_of(&json!({"vectors": vectors}), wanted);
        let plain = of(one.clone(), None).unwrap();
        assert_eq!((plain.name, plain.width, plain.distance.as_str()), (None, 4, "Dot"));
        let named = json!({"small": one, "large": {"size": 9, "distance": "Euclid"}});
        assert_eq!(of(named.clone(), Some("large")).unwrap().width, 9);
        assert_eq!(of(json!({"small": one}), None).unwrap().name.as_deref(), Some("small"));
        let multi = json!({"size": 4, "distance": "Dot", "multivector_config": {"a": 1}});
        for (vectors, wanted, problem) in [
            (named.clone(), None, "with --vector"),
            (named, Some("other"), "no such vector"),
            (one, Some("x"), "no name"),
            (json!({}), None, "no dense"),
            (multi, None, "several vectors"),
            (json!({"size": 90_000, "distance": "Dot"}), None, "90000 dimensions"),
        ] {
            assert!(of(vectors, wanted).unwrap_err().contains(problem), "{problem}");
        }
        assert!(metric_of("Manhattan").is_err());
    }

    #[test]
    fn points_of_another_form_are_refused() {
        for point in [json!(null), json!("x"), json!([1]), json!({"vector": 1}), json!({})] {
            for vector in [None, Some("a")] {
                let refused = record("1", point.clone(), vector).unwrap_err();
                assert_eq!(refused, "without a vector", "{point}");
            }
        }
        assert!(record("1", json!({"vector": [1]}), Some("a")).is_err(), "it has no name");
        assert!(record("1", json!({"vector": {"a": [1]}, "payload": 3}), Some("a")).is_ok());
    }
}
