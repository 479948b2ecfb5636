//! The lines of an archive as types.

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

/// The format that this release writes, and the newest that it reads.
pub const FORMAT: u32 = 1;
/// Bytes of a line: a chunk with the widest vector and the longest metadata is far smaller.
pub const LINE_BYTES_MAX: usize = 4 << 20;
/// Bytes of an original in one line; a multiple of three.
pub const PIECE_BYTES: usize = 768 << 10;

/// A line.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "member", rename_all = "snake_case")]
pub enum Member<'a> {
    /// The first line.
    Archive(Head),
    /// A sub-tenant, also one without sources.
    SubTenant {
        /// Its name.
        sub_tenant_id: String,
    },
    /// A source; its original and its chunks follow.
    Source(Box<SourceLine>),
    /// A piece of the original of the source above.
    Original {
        /// The bytes.
        base64: String,
    },
    /// A chunk of the source above.
    Chunk(Box<ChunkLine<'a>>),
    /// The last line.
    End(End),
}

impl Member<'_> {
    /// The word in `member`.
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

/// The line about the whole archive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The format of the archive.
    pub format: u32,
    /// The release that wrote it.
    pub release: String,
    /// The tenant that it is of.
    pub tenant_id: String,
    /// `standard`; `embeddings`, and `embeddings_dot` or `embeddings_l2` for another metric than
    /// cosine.
    pub mode: String,
    /// Declared metadata keys.
    pub schema: Option<TenantSchema>,
    /// Fingerprint of the model behind the vectors; null for client vectors.
    pub model: Option<String>,
    /// Name of the embedding model that was chosen for the tenant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// Width of the vectors; null where there are none.
    pub dimension: Option<u32>,
    /// When it was begun, milliseconds since the epoch.
    pub exported_at: u64,
}

/// A source.
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
    /// Milliseconds since the epoch, as the next.
    pub uploaded_at: u64,
    pub last_updated_at: u64,
    pub version: u32,
    /// Order of this version among all that the tenant accepted; ids of chunks depend on it.
    pub sequence: u64,
    pub detail: SourceDetail,
    /// Label of the stored original; null where there is no original.
    pub upload: Option<UploadLabel>,
    /// Bytes of the original.
    pub original_bytes: u64,
    /// Number of chunks.
    pub chunks: u32,
}

/// A chunk.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChunkLine<'a> {
    pub index: u32,
    pub text: Cow<'a, str>,
    /// First character in the text of the source, and on its page; number of characters.
    pub start: u32,
    pub page_start: u32,
    pub chars: u32,
    pub page: PageRef,
    /// Headings and header row over the text.
    #[serde(default, skip_serializing_if = "str::is_empty")]
    pub context: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boxes: Vec<PageBox>,
    /// Lines on pages, in characters of the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<LineBox>,
    #[serde(default, skip_serializing_if = "GraphLine::is_empty")]
    pub graph: GraphLine,
    /// Little-endian 32-bit floats in base64.
    pub vector: String,
}

/// The graph of a chunk.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GraphLine {
    /// Key, name, kind, other keys.
    pub entities: Vec<(String, String, String, Vec<String>)>,
    /// Positions of source and target, predicate, first byte and end of the supporting sentence.
    pub triplets: Vec<(u8, u8, String, u32, u32)>,
}

/// The last line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    pub sources: u64,
    pub chunks: u64,
    pub original_bytes: u64,
    /// SHA-256 of every byte before this line, in hexadecimal digits.
    pub sha256: String,
}

/// A vector as text.
pub fn encode_vector(vector: &[f32]) -> String {
    STANDARD.encode(bytemuck::cast_slice::<f32, u8>(vector))
}

/// A vector out of its text; an error is the broken rule.
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
    /// Whether nothing is named.
    pub fn is_empty(&self) -> bool {
        self.entities.is_empty()
    }

    /// The line of a graph.
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

    /// The graph, checked against the text that it is of; an error is the broken rule.
    pub fn graph(self, text: &str) -> Result<RowGraph, &'static str> {
        if self.entities.len() > ROW_ENTITIES_MAX || self.triplets.len() > ROW_TRIPLETS_MAX {
            return Err("graph has too many entities or triplets for one chunk");
        }
        let mut entities: Vec<RowEntity> = Vec::with_capacity(self.entities.len());
        for (key, name, kind, aliases) in self.entities {
            let is_name = |text: &str| !text.is_empty() && text.len() <= NAME_BYTES_MAX;
            let are_names = is_name(&key) && is_name(&name) && aliases.iter().all(|a| is_name(a));
            if !are_names || aliases.len() > ENTITY_ALIASES_MAX || !aliases.is_sorted() {
                return Err("graph has an entity whose names break the rules");
            }
            if entities.iter().any(|other| other.key == key) {
                return Err("graph names an entity twice");
            }
            let kind = EntityKind::of_name(&kind).ok_or("graph has an unknown kind")?;
            entities.push(RowEntity { key, name, kind, aliases });
        }
        let mut triplets = Vec::with_capacity(self.triplets.len());
        for (source, target, predicate, start, end) in self.triplets {
            let has_ends = source != target && usize::from(source.max(target)) < entities.len();
            if !has_ends || text.get(start as usize..end as usize).is_none() {
                return Err("graph has a triplet without its entities or its sentence");
            }
            let predicate =
                Predicate::of_name(&predicate).ok_or("graph has an unknown predicate")?;
            triplets.push(RowTriplet { source, target, predicate, context: start..end });
        }
        Ok(RowGraph { entities, triplets })
    }
}
