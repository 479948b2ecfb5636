//! The expected state of the server: tenants, sub-tenants, sources and keys in plain maps.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::canary::Home;

pub const SUB_TENANTS: [&str; 3] = ["default", "east", "west"];
/// Ids of sources and batches, shared by all scopes.
pub const SOURCES: [&str; 5] = ["s1", "s2", "s3", "report.txt", "a b"];
/// Ids of memories, shared by all scopes; one is also the id of a source.
pub const MEMORIES: [&str; 3] = ["m1", "m2", "s1"];
/// Ids of sessions, shared by all scopes.
pub const SESSIONS: [&str; 2] = ["talk", "chat"];
/// Words that occur in the documents of all scopes.
pub const WORDS: [&str; 8] =
    ["harbour", "lantern", "orchard", "granite", "meadow", "copper", "violin", "glacier"];
pub const COLOURS: [&str; 3] = ["red", "green", "blue"];
pub const REGIONS: [&str; 2] = ["north", "south"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Standard,
    Embeddings,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    Read,
    Write,
    Admin,
}

impl Role {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Admin => "admin",
        }
    }
}

/// The index of a tenant in [`Model::tenants`].
pub type TenantAt = usize;

/// An accepted version of a source.
#[derive(Debug, Clone)]
pub struct Version {
    pub number: u32,
    pub kind: &'static str,
    pub bytes: Vec<u8>,
    pub filename: String,
    /// The canaries in the text and in the file name.
    pub marks: Vec<String>,
    pub words: BTreeSet<&'static str>,
    pub tenant_metadata: Map<String, Value>,
    pub document_metadata: Map<String, Value>,
    /// Milliseconds since the Unix epoch.
    pub uploaded_at: u64,
    pub chunks: u64,
    pub vectors: BTreeMap<u32, Vec<f32>>,
}

impl Version {
    /// The expected title of a text without a heading.
    pub fn title(&self, id: &str) -> String {
        let given = self.document_metadata.get("title").and_then(Value::as_str);
        let chain = [given, Some(self.filename.as_str()), Some(id)];
        let chosen = chain.into_iter().flatten().find(|title| !title.is_empty());
        chosen.expect("an id is not empty").to_owned()
    }

    /// The canary in the text.
    pub fn text_mark(&self) -> &str {
        &self.marks[0]
    }

    /// All canaries of this version.
    pub fn canaries(&self) -> Vec<String> {
        let maps = self.tenant_metadata.values().chain(self.document_metadata.values());
        let texts = maps.filter_map(Value::as_str);
        // A title ends with its canary.
        let last = texts.filter_map(|text| text.split(' ').next_back()).map(str::to_owned);
        self.marks.iter().cloned().chain(last).collect()
    }
}

/// A memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    pub text: String,
    /// The canary in the text.
    pub mark: String,
    /// Milliseconds since the Unix epoch.
    pub added_at: u64,
    pub ends_at: Option<u64>,
}

/// A source: its visible version, and one that was accepted but is not yet visible.
#[derive(Debug, Clone, Default)]
pub struct Source {
    pub visible: Option<Version>,
    pub pending: Option<Version>,
}

/// A sub-tenant in one of its lives, from creation to deletion.
#[derive(Debug, Clone)]
pub struct SubTenant {
    pub home: Home,
    pub sources: BTreeMap<String, Source>,
    pub memories: BTreeMap<String, Remembered>,
    /// The source and upload time of each job that the server may still list.
    pub jobs: BTreeSet<(String, u64)>,
}

impl SubTenant {
    pub fn new(home: Home) -> Self {
        Self { home, sources: BTreeMap::new(), memories: BTreeMap::new(), jobs: BTreeSet::new() }
    }

    /// The visible sources and their ids.
    pub fn visible(&self) -> impl Iterator<Item = (&str, &Version)> {
        self.sources
            .iter()
            .filter_map(|(id, source)| source.visible.as_ref().map(|shown| (id.as_str(), shown)))
    }

    pub fn objects(&self) -> u64 {
        self.visible().map(|(_, version)| version.chunks).sum()
    }

    fn canaries(&self) -> BTreeSet<String> {
        let sources = self.sources.values();
        let versions = sources.flat_map(|source| source.visible.iter().chain(&source.pending));
        let marks = self.memories.values().map(|memory| memory.mark.clone());
        versions.flat_map(Version::canaries).chain(marks).collect()
    }
}

/// A tenant name, with the tenant that currently has it, if any, as `life`.
#[derive(Debug, Clone)]
pub struct Tenant {
    pub name: String,
    pub name_home: Home,
    /// The kind of tenant that the operator creates under this name.
    pub planned: Mode,
    /// The kind of the current tenant, or of the one the operator will create. A tenant created by
    /// a first upload is standard.
    pub mode: Mode,
    pub life: Option<Life>,
    /// The number of tenants that have had this name.
    pub lives: u32,
}

/// An existing tenant.
#[derive(Debug, Clone)]
pub struct Life {
    pub created_at: u64,
    pub has_schema: bool,
    pub width: Option<usize>,
    pub sub_tenants: BTreeMap<String, SubTenant>,
    /// The words asked in each conversation, by sub-tenant and session. Asking a question does not
    /// create a sub-tenant.
    pub sessions: BTreeMap<(String, String), Vec<String>>,
}

impl Life {
    pub fn new(created_at: u64, has_schema: bool) -> Self {
        let (sub_tenants, sessions) = (BTreeMap::new(), BTreeMap::new());
        Self { created_at, has_schema, width: None, sub_tenants, sessions }
    }
}

/// A tenant in a key's scope, with the sub-tenants included; `None` means all of them.
pub type Entry = (TenantAt, Option<Vec<&'static str>>);

/// An API key. A scope of `None` means all tenants.
#[derive(Debug, Clone)]
pub struct Key {
    pub id: String,
    pub secret: String,
    pub role: Role,
    pub scope: Option<Vec<Entry>>,
    pub home: Home,
    pub mark: String,
}

impl Key {
    pub fn reaches_tenant(&self, tenant: TenantAt) -> bool {
        let Some(scope) = &self.scope else { return true };
        scope.iter().any(|(at, _)| *at == tenant)
    }

    pub fn reaches_whole_tenant(&self, tenant: TenantAt) -> bool {
        let Some(scope) = &self.scope else { return true };
        scope.iter().any(|(at, names)| *at == tenant && names.is_none())
    }

    pub fn reaches(&self, tenant: TenantAt, sub_tenant: &str) -> bool {
        let Some(scope) = &self.scope else { return true };
        scope.iter().any(|(at, names)| {
            *at == tenant && names.as_ref().is_none_or(|names| names.contains(&sub_tenant))
        })
    }

    /// Whether this key may see `other` in listings. A key whose tenants have all been deleted is
    /// visible only to the operator.
    pub fn sees(&self, other: &Key) -> bool {
        let Some(scope) = &other.scope else { return self.scope.is_none() };
        let is_within = |(tenant, names): &Entry| match names {
            None => self.reaches_whole_tenant(*tenant),
            Some(names) => names.iter().all(|name| self.reaches(*tenant, name)),
        };
        self.scope.is_none() || !scope.is_empty() && scope.iter().all(is_within)
    }
}

/// The expected state of the whole server.
#[derive(Debug)]
pub struct Model {
    pub tenants: Vec<Tenant>,
    pub keys: Vec<Key>,
}

impl Model {
    pub fn sub_tenant(&self, tenant: TenantAt, name: &str) -> Option<&SubTenant> {
        self.tenants[tenant].life.as_ref()?.sub_tenants.get(name)
    }

    pub fn sub_tenant_mut(&mut self, tenant: TenantAt, name: &str) -> Option<&mut SubTenant> {
        self.tenants[tenant].life.as_mut()?.sub_tenants.get_mut(name)
    }

    pub fn visible(&self, tenant: TenantAt, name: &str, id: &str) -> Option<&Version> {
        self.sub_tenant(tenant, name)?.sources.get(id)?.visible.as_ref()
    }

    /// Removes memories that have expired.
    pub fn forget(&mut self, now: u64) {
        let lives = self.tenants.iter_mut().filter_map(|tenant| tenant.life.as_mut());
        for scope in lives.flat_map(|life| life.sub_tenants.values_mut()) {
            scope.memories.retain(|_, memory| memory.ends_at.is_none_or(|end| now < end));
        }
    }

    /// The existing scopes that a key can access.
    pub fn reached(&self, key: &Key) -> Vec<(TenantAt, String)> {
        let lives = self.tenants.iter().enumerate().filter_map(|(at, tenant)| {
            let names = tenant.life.as_ref()?.sub_tenants.keys();
            Some(names.map(move |name| (at, name.clone())))
        });
        lives.flatten().filter(|(at, name)| key.reaches(*at, name)).collect()
    }

    /// The canaries that a home currently holds.
    pub fn canaries_of(&self, home: Home) -> BTreeSet<String> {
        let lives = self.tenants.iter().filter_map(|tenant| tenant.life.as_ref());
        let mut sub_tenants = lives.flat_map(|life| life.sub_tenants.values());
        let of_key = self.keys.iter().find(|key| key.home == home);
        let of_key = of_key.map(|key| BTreeSet::from([key.mark.clone()]));
        let of_scope = sub_tenants.find(|sub_tenant| sub_tenant.home == home);
        of_key.or_else(|| of_scope.map(SubTenant::canaries)).unwrap_or_default()
    }
}
