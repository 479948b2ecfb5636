//! The lines of an archive as serde types.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lodestone_graph::{
    ENTITY_ALIASES_MAX, EntityKind, NAME_BYTES_MAX, Predicate, ROW_ENTITIES_MAX, ROW_TRIPLETS_MAX,
    RowEntity, RowGraph, RowTriplet,
};
use lodestone_storage::collection::uploads::UploadLabel;
use lodestone_types::{LineBox, Metadata, PageBox, PageRef, SourceDetail, TenantSchema};
use serde::{Deserialize, Serialize};

/// The format version that this release writes, and the newest that it reads.
pub const FORMAT: u32 = 1;
/// Maximum bytes of a line. A chunk with the widest vector and the longest metadata is far smaller.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// Bytes of an original per line; a multiple of three, so that base64 needs no padding in between.
pub const PIECE_BYTES: usize = 768 << 10;

/// One line of an archive.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "member", rename_all = "snake_case")]
pub enum Member<'a> {
    /// The first line.
    Archive(Head),
    /// Declares a sub-tenant, even one without sources.
    SubTenant {
        /// Name of the sub-tenant.
        sub_tenant_id: String,
    },
    /// A source. Its original and its chunks follow.
    Source(Box<SourceLine>),
    /// A piece of the original of the preceding source.
    Original {
        /// The bytes in base64.
        base64: String,
    },
    /// A chunk of the preceding source.
    Chunk(Box<ChunkLine<'a>>),
    /// The last line.
    End(End),
}

impl Member<'_> {
    /// The value of the `member` field.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Archive(_) => "archive",
            Self::SubTenant { .. } => "sub_tenant",
            Self::Source(_) => "source",
            Self::Original { .. } => "original",
            Self::Chunk(_) => "chunk",
            Self::End(_) => "end",
        }
    }
}

/// The header line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// Version of the archive format.
    pub format: u32,
    /// The release that wrote the archive.
    pub release: String,
    /// Id of the exported tenant.
    pub tenant_id: String,
    /// Mode of the tenant: `standard`, or `embeddings` for the cosine metric, or `embeddings_dot`
    /// or `embeddings_l2` for another metric.
    pub mode: String,
    /// Declared metadata keys of the tenant.
    pub schema: Option<TenantSchema>,
    /// Fingerprint of the model that made the vectors; null for client vectors.
    pub model: Option<String>,
    /// Name of the embedding model chosen for the tenant, if one was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// Dimension of the vectors; null if there are none.
    pub dimension: Option<u32>,
    /// Time of the export in milliseconds since the Unix epoch.
    pub exported_at: u64,
}

/// The record of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SourceLine {
    pub sub_tenant_id: String,
    pub file_id: String,
    pub kind: String,
    pub title: String,
    pub description: String,
    pub filename: String,
    pub url: String,
    pub content_type: String,
    pub size_bytes: u64,
    pub tenant_metadata: Metadata,
    pub document_metadata: Metadata,
    /// Milliseconds since the Unix epoch, like `last_updated_at`.
    pub uploaded_at: u64,
    pub last_updated_at: u64,
    pub version: u32,
    /// Rank of this version among all that the tenant accepted. Chunk ids depend on it.
    pub sequence: u64,
    pub detail: SourceDetail,
    /// Label of the stored original; null if there is no original.
    pub upload: Option<UploadLabel>,
    /// Length of the original in bytes.
    pub original_bytes: u64,
    /// Number of chunks that follow.
    pub chunks: u32,
}

/// A chunk of a source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChunkLine<'a> {
    pub index: u32,
    pub text: Cow<'a, str>,
    /// Offset in the text of the source, offset on the page, and length; all in characters.
    pub start: u32,
    pub page_start: u32,
    pub chars: u32,
    pub page: PageRef,
    /// Headings and table header that apply to the text.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub context: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<PageBox>,
    /// Positions of the text's lines on their pages; offsets in characters of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineBox>,
    #[serde(default, skip_serializing_if = "GraphLine::is_empty")]
    pub graph: GraphLine,
    /// Little-endian `f32` values in base64.
    pub vector: String,
}

/// The graph of a chunk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GraphLine {
    /// Each entity as key, name, kind and other keys.
    pub entities: Vec<(String, String, String, Vec<String>)>,
    /// Each triplet as indices of source and target entity, predicate, and byte range of the
    /// supporting sentence (start, end).
    pub triplets: Vec<(u8, u8, String, u32, u32)>,
}

/// The trailer line: totals and checksum.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub sources: u64,
    pub chunks: u64,
    pub original_bytes: u64,
    /// SHA-256 of every byte before this line, in hexadecimal.
    pub sha256: String,
}

/// Encodes a vector as base64.
pub fn encode_vector(vector: &[f32]) -> String {
    STANDARD.encode(bytemuck::cast_slice::<f32, u8>(vector))
}

/// Decodes a vector; an error names the violated rule.
pub fn decode_vector(text: &str, dimension: usize) -> Result<Vec<f32>, String> {
    let bytes = STANDARD.decode(text).map_err(|error| format!("vector is not base64: {error}"))?;
    if bytes.len() != dimension * size_of::<f32>() {
        let found = bytes.len() as f64 / size_of::<f32>() as f64;
        return Err(format!("vector has {found} numbers, the archive says {dimension}"));
    }
    let numbers = bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
    let vector: Vec<f32> = numbers.collect();
    match vector.iter().all(|value| value.is_finite()) {
        true => Ok(vector),
        false => Err("vector has a number that is not finite".to_owned()),
    }
}

impl GraphLine {
    /// Whether the graph names no entity.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// Converts the graph of a stored row.
    pub fn of(graph: &RowGraph) -> Self {
        let entity = |one: &RowEntity| {
            (one.key.clone(), one.name.clone(), one.kind.name().to_owned(), one.aliases.clone())
        };
        let triplet = |one: &RowTriplet| {
            let predicate = one.predicate.name().to_owned();
            (one.source, one.target, predicate, one.context.start, one.context.end)
        };
        Self {
            entities: graph.entities.iter().map(entity).collect(),
            triplets: graph.triplets.iter().map(triplet).collect(),
        }
    }

    /// Converts back to a graph and checks it against the chunk's text; an error names the violated
    /// rule.
    pub fn graph(self, text: &str) -> Result<RowGraph, &'static str> {
        if self.entities.len() > ROW_ENTITIES_MAX || self.triplets.len() > ROW_TRIPLETS_MAX {
            return Err("graph has too many entities or triplets for one chunk");
        }
        let mut entities: Vec<RowEntity> = Vec::with_capacity(self.entities.len());
        for (key, name, kind, aliases) in self.entities {
            let is_name = |text: &str| !text.is_empty() && text.len() <= NAME_BYTES_MAX;
            let are_names = is_name(&key) && is_name(&name) && aliases.iter().all(|a| is_name(a));
            if !are_names || aliases.len() > ENTITY_ALIASES_MAX || !aliases.is_sorted() {
                return Err("graph has an entity with invalid names");
            }
            if entities.iter().any(|other| other.key == key) {
                return Err("graph has a duplicate entity");
            }
            let kind = EntityKind::of_name(&kind).ok_or("graph has an unknown kind")?;
            entities.push(RowEntity { key, name, kind, aliases });
        }
        let mut triplets = Vec::with_capacity(self.triplets.len());
        for (source, target, predicate, start, end) in self.triplets {
            let has_ends = source != target && usize::from(source.max(target)) < entities.len();
            if !has_ends || text.get(start as usize..end as usize).is_none() {
                return Err("graph has a triplet with a missing entity or sentence");
            }
            let predicate =
                Predicate::of_name(&predicate).ok_or("graph has an unknown predicate")?;
            triplets.push(RowTriplet { source, target, predicate, context: start..end });
        }
        Ok(RowGraph { entities, triplets })
    }
}
