//! The columns and values of a source.

use std::collections::BTreeMap;
use std::ops::Range;

use roaring::RoaringBitmap;
use serde_json::Value;

use crate::filter::key;
use lodestone_types::{FilterMap, Metadata, RowPayload, SourceRecord, Timestamp};

const SYSTEM_KEYS: [&str; 8] = [
    "source_id", "source_title", "source_type", "source_url", "source_collection",
    "source_upload_time", "source_last_updated_time", "description",
];

/// The system key that holds the id of a source.
pub(super) const SOURCE_ID: &str = SYSTEM_KEYS[0];

/// The column of sub-tenants in [`Root::Scope`].
pub(super) const SUB_TENANT: &str = "sub_tenant";

/// The column of ids given by clients, in [`Root::Scope`]; no filter can name it.
pub(super) const CHUNK_ID: &str = "chunk_id";

/// Whether a path is a system key.
pub(super) fn is_system_key(path: &str) -> bool {
    SYSTEM_KEYS.contains(&path)
}

/// Whether a system key is a time, which is stored both as text and as a number.
pub(super) fn is_system_time(path: &str) -> bool {
    matches!(path, "source_upload_time" | "source_last_updated_time")
}

/// The maps that columns belong to; the numbers are part of the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Root {
    Tenant = 0,
    Document = 1,
    System = 2,
    Scope = 3,
}

/// Number of maps.
pub(super) const ROOTS: usize = 4;

impl From<FilterMap> for Root {
    fn from(map: FilterMap) -> Self {
        match map {
            FilterMap::Tenant => Self::Tenant,
            FilterMap::Document => Self::Document,
            FilterMap::System => Self::System,
        }
    }
}

/// Rows of a value under construction; few values have more than one run.
#[derive(Debug)]
pub(super) enum Rows {
    Run(Range<u32>),
    Bitmap(RoaringBitmap),
}

impl Rows {
    fn add(&mut self, rows: &Range<u32>) {
        match self {
            Self::Run(run) if run.start <= rows.start && rows.end <= run.end => {}
            Self::Run(run) if run.end == rows.start => run.end = rows.end,
            Self::Run(run) => {
                let mut bitmap = RoaringBitmap::from_iter(run.clone());
                bitmap.insert_range(rows.clone());
                *self = Self::Bitmap(bitmap);
            }
            Self::Bitmap(bitmap) => {
                bitmap.insert_range(rows.clone());
            }
        }
    }
}

/// The columns of all maps under construction. Two flat maps, because one map per part took 1.6 KB
/// for a part of one letter.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Numbers of the path parts, by the number of the part or map above and by name.
    pub(super) parts: BTreeMap<(u32, Box<str>), u32>,
    /// Rows of each value, by the number of its part and by key.
    pub(super) entries: BTreeMap<(u32, Box<[u8]>), Rows>,
}

impl Tree {
    fn child(&mut self, parent: u32, name: &str) -> Node<'_> {
        let next = (ROOTS + self.parts.len()) as u32;
        let part = *self.parts.entry((parent, name.into())).or_insert(next);
        Node { tree: self, part }
    }

    fn root(&mut self, root: Root) -> Node<'_> {
        Node { tree: self, part: root as u32 }
    }
}

/// One part of a path, or a whole map.
struct Node<'a> {
    tree: &'a mut Tree,
    part: u32,
}

impl Node<'_> {
    fn child(&mut self, name: &str) -> Node<'_> {
        self.tree.child(self.part, name)
    }

    fn mark(&mut self, key: &[u8], rows: &Range<u32>) {
        let entry = self.tree.entries.entry((self.part, key.into()));
        entry.and_modify(|marked| marked.add(rows)).or_insert_with(|| Rows::Run(rows.clone()));
    }

    fn add_scalar(&mut self, key: &[u8], rows: &Range<u32>) {
        self.mark(key::PRESENT, rows);
        self.mark(key, rows);
    }

    fn add_value(&mut self, value: &Value, rows: &Range<u32>) {
        match value {
            Value::Null => self.mark(key::NULL, rows),
            Value::Bool(value) => self.add_scalar(&key::of_bool(*value), rows),
            Value::Number(value) => self.add_scalar(&key::of_number(value), rows),
            Value::String(value) => self.add_scalar(&key::of_text(value), rows),
            Value::Array(items) => {
                self.mark(key::PRESENT, rows);
                for item in items {
                    self.add_value(item, rows);
                }
            }
            Value::Object(map) => {
                self.mark(key::PRESENT, rows);
                self.add_map(map, rows);
            }
        }
    }

    fn add_map(&mut self, map: &Metadata, rows: &Range<u32>) {
        for (key, value) in map {
            let mut parts = key.split('.');
            let first = parts.next().expect("a split has a first part");
            let mut node = self.child(first);
            for part in parts {
                node.mark(key::PRESENT, rows);
                let Node { tree, part: above } = node;
                node = tree.child(above, part);
            }
            node.add_value(value, rows);
        }
    }

    /// Adds a text field of the source itself. An empty one counts both as `""`, as the API shows
    /// it, and as missing.
    fn add_system_text(&mut self, name: &str, text: &str, rows: &Range<u32>) {
        let mut node = self.child(name);
        node.mark(&key::of_text(text), rows);
        node.mark(if text.is_empty() { key::NULL } else { key::PRESENT }, rows);
    }

    /// Adds a list of texts of the source itself. An empty one counts as missing.
    fn add_system_texts(&mut self, name: &str, texts: &[String], rows: &Range<u32>) {
        if texts.is_empty() {
            return;
        }
        let mut node = self.child(name);
        node.mark(key::PRESENT, rows);
        for text in texts {
            node.add_scalar(&key::of_text(text), rows);
        }
    }

    /// Adds a time of the source itself, both as the text that the API shows and as seconds.
    fn add_system_time(&mut self, name: &str, time: Timestamp, rows: &Range<u32>) {
        self.add_system_text(name, &time.to_string(), rows);
        self.child(name).add_value(&Value::from(time.as_seconds()), rows);
    }
}

/// Adds all values of one source.
pub(super) fn add(tree: &mut Tree, source: &SourceRecord, rows: &Range<u32>) {
    tree.root(Root::Tenant).add_map(&source.tenant_metadata, rows);
    tree.root(Root::Document).add_map(&source.document_metadata, rows);
    let mut system = tree.root(Root::System);
    system.add_system_text(SOURCE_ID, source.id.as_str(), rows);
    system.add_system_text("source_title", &source.title, rows);
    system.add_system_text("source_type", source.source_type(), rows);
    system.add_system_text("source_url", &source.url, rows);
    system.add_system_texts("source_collection", &source.detail.collections, rows);
    system.add_system_text("description", &source.description, rows);
    system.add_system_time("source_upload_time", source.uploaded_at, rows);
    system.add_system_time("source_last_updated_time", source.last_updated_at, rows);
    let mut scope = tree.root(Root::Scope);
    scope.child(SUB_TENANT).mark(&key::of_text(source.sub_tenant.as_str()), rows);
}

/// Adds the payload of one row of client vectors; its metadata joins that of its source.
pub(super) fn add_payload(tree: &mut Tree, payload: &RowPayload, row: u32) {
    let rows = row..row + 1;
    if let Some(metadata) = &payload.metadata {
        tree.root(Root::Document).add_map(metadata, &rows);
    }
    if let Some(id) = &payload.id {
        tree.root(Root::Scope).child(CHUNK_ID).mark(&key::of_text(id), &rows);
    }
}
