//! Messages between the process that ingests documents and its ingest nodes.
//!
//! ```text
//! GET  /ingest                            -> Description
//! POST /ingest/embed   EmbedTask          -> the vectors one after the other, f32, little-endian
//! POST /ingest/sparse  EmbedTask          -> [[[token, weight], ...], ...]
//! POST /ingest/parse?format=Pdf  a file   -> lodestone_extract::sandbox::parsed_to_bytes
//! ```
//! Every request carries the key of the nodes. Status 503 means that the node is busy.

use serde::{Deserialize, Serialize};

use lodestone_embed::SparseVector;
use lodestone_extract::Format;
use lodestone_types::limits::SPARSE_TERMS_MAX;

/// Path of a node's description.
pub const DESCRIPTION: &str = "/ingest";
/// Path for embedding passages.
pub const EMBED: &str = "/ingest/embed";
/// Path for embedding passages with a sparse model.
pub const SPARSE: &str = "/ingest/sparse";
/// Path for parsing a document.
pub const PARSE: &str = "/ingest/parse";
/// Maximum concurrent tasks from one process to one node: one is computed while others are in
/// transit.
pub const TASKS_MAX: usize = 4;
/// Maximum bytes of an embedding task. A slice of passages is usually a few hundred kilobytes.
pub const EMBED_BYTES_MAX: usize = 16 << 20;

/// Upper bound of the vocabulary of a sparse model.
const SPARSE_TOKENS_MAX: u32 = 1 << 20;

/// A node's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Description {
    /// Its release. Only nodes of the same release parse, so that a document always yields the same
    /// text.
    pub version: String,
    /// Fingerprints of its embedding models.
    pub models: Vec<String>,
    /// Fingerprint of its sparse model, if any.
    pub sparse: Option<String>,
    /// Name of the device that computes.
    pub device: String,
}

/// Passages to embed.
#[derive(Debug, Serialize, Deserialize)]
pub struct EmbedTask {
    /// Fingerprint of the model.
    pub model: String,
    /// The passages.
    pub texts: Vec<String>,
}

/// The format of a document to parse, sent as the query of the request.
#[derive(Debug, Serialize, Deserialize)]
pub struct ParseTask {
    /// The detected format.
    pub format: Format,
}

/// Encodes vectors.
pub fn vectors_to_bytes(vectors: &[Vec<f32>]) -> Vec<u8> {
    vectors.iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
}

/// Maximum deviation of a vector's length from 1.
const LENGTH_TOLERANCE: f32 = 0.01;

/// Decodes `count` vectors of `dimension` numbers and unit length.
///
/// # Errors
/// A description of the mismatch.
pub fn vectors_from_bytes(
    bytes: &[u8],
    count: usize,
    dimension: usize,
) -> Result<Vec<Vec<f32>>, String> {
    if bytes.len() != count * dimension * 4 {
        let found = bytes.len();
        return Err(format!("{found} bytes are not {count} vectors of {dimension} numbers"));
    }
    let vector = |bytes: &[u8]| -> Vec<f32> {
        bytes.as_chunks::<4>().0.iter().map(|number| f32::from_le_bytes(*number)).collect()
    };
    let vectors: Vec<_> = bytes.chunks_exact(dimension * 4).map(vector).collect();
    // A NaN fails the comparison as well.
    let is_unit = |vector: &Vec<f32>| {
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        (length - 1.0).abs() <= LENGTH_TOLERANCE
    };
    match vectors.iter().all(is_unit) {
        true => Ok(vectors),
        false => Err("a vector is not normalized".to_owned()),
    }
}

/// Decodes `count` vectors of a sparse model.
///
/// # Errors
/// A description of the mismatch.
pub fn sparse_from_bytes(bytes: &[u8], count: usize) -> Result<Vec<SparseVector>, String> {
    let vectors: Vec<SparseVector> = serde_json::from_slice(bytes)
        .map_err(|error| format!("invalid sparse vectors: {error}"))?;
    if vectors.len() != count {
        return Err(format!("{} vectors, not {count}", vectors.len()));
    }
    let is_vector = |vector: &SparseVector| {
        let ascends = vector.is_sorted_by(|(a, _), (b, _)| a < b);
        let is_weight = |(token, weight): &(u32, f32)| {
            *token < SPARSE_TOKENS_MAX && *weight > 0.0 && weight.is_finite()
        };
        ascends && vector.len() <= SPARSE_TERMS_MAX && vector.iter().all(is_weight)
    };
    match vectors.iter().all(is_vector) {
        true => Ok(vectors),
        false => Err("a sparse vector must have ascending tokens and weights above 0".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_come_as_they_were_sent_or_not_at_all() {
        let vectors = vec![vec![0.6, 0.8], vec![1.0, 0.0]];
        let bytes = vectors_to_bytes(&vectors);
        assert_eq!(vectors_from_bytes(&bytes, 2, 2), Ok(vectors));
        vectors_from_bytes(&bytes, 1, 2).unwrap_err();
        vectors_from_bytes(&bytes[1..], 2, 2).unwrap_err();
        for wrong in [[f32::NAN, 1.0], [0.0, 0.0], [2.0, 0.0], [f32::INFINITY, 0.0]] {
            vectors_from_bytes(&vectors_to_bytes(&[wrong.to_vec()]), 1, 2).unwrap_err();
        }
    }

    #[test]
    fn sparse_vectors_likewise() {
        let vectors = vec![vec![(3, 0.1_f32), (70_000, 2.75)], vec![]];
        let bytes = serde_json::to_vec(&vectors).unwrap();
        assert_eq!(sparse_from_bytes(&bytes, 2), Ok(vectors));
        sparse_from_bytes(&bytes, 1).unwrap_err();
        for wrong in ["[[[3,0.0]]]", "[[[3,1.0],[3,1.0]]]", "[[[1048576,1.0]]]", "[[[1,-1.0]]]"] {
            sparse_from_bytes(wrong.as_bytes(), 1).unwrap_err();
        }
    }

    #[test]
    fn a_format_has_one_spelling_both_ways() {
        let task = serde_json::to_value(ParseTask { format: Format::WebPage }).unwrap();
        assert_eq!(task, serde_json::json!({"format": "WebPage"}));
        assert_eq!(serde_json::from_value::<ParseTask>(task).unwrap().format, Format::WebPage);
    }
}
