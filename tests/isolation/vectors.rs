//! Operations on client vectors.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::model::{Mode, Role, SOURCES, Source, TenantAt, Version};
use crate::server::Ask;
use crate::walk::{Need, Walk};

const SCORE_ERROR: f64 = 1e-5;
/// The maximum number of hits of one search, which exceeds the content of any scope of a walk.
const HITS_MAX: usize = 200;

impl Walk {
    fn vector_need(role: Role, tenant: TenantAt, sub_tenant: &str) -> Need<'_> {
        let mode = Some(Mode::Embeddings);
        Need { role, tenant, sub_tenant: Some(sub_tenant), mode, may_create: false }
    }

    /// The dimension of a tenant's vectors, which differs from tenant to tenant.
    fn width(&self, tenant: TenantAt) -> usize {
        3 + tenant
    }

    /// Returns a vector of multiples of 1/8, which 32-bit floats and JSON represent exactly. The
    /// first component is never 0.
    fn vector(&mut self, width: usize) -> Vec<f32> {
        let mut vector: Vec<f32> =
            (0..width).map(|_| (self.seeded.below(401) as f32 - 200.0) / 8.0).collect();
        vector[0] = (1 + self.seeded.below(200)) as f32 / 8.0;
        vector
    }

    pub fn upload_vectors(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Embeddings, Role::Write);
        let width = self.width(tenant);
        let count = 1 + self.seeded.below(4);
        let rows: Vec<Vec<f32>> = (0..count).map(|_| self.vector(width)).collect();
        let id = self.seeded.word(&SOURCES).to_string();
        let name = self.model.tenants[tenant].name.clone();
        let ask = Ask::new("POST", "/upload/upload_embeddings").of(&name, sub_tenant);
        let ask = ask.json(json!({"embeddings": rows, "file_id": id}));
        let sees = self.sees(tenant, sub_tenant);
        let need = Self::vector_need(Role::Write, tenant, sub_tenant);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        assert_eq!(reply.status, 200, "{body}");
        let (home, now) = (self.codes.home(), self.server.now());
        self.come_to_life(tenant, sub_tenant, home, now);
        let life = self.model.tenants[tenant].life.as_mut().expect("it was asked");
        life.width = Some(width);
        let scope = life.sub_tenants.get_mut(sub_tenant).expect("it was made");
        let before = scope.sources.get(&id).and_then(|source| source.visible.as_ref());
        assert_eq!(body["overwritten"], before.is_some(), "{body}");
        let version = Version {
            number: before.map_or(1, |before| before.number + 1),
            kind: "embeddings",
            bytes: Vec::new(),
            filename: String::new(),
            marks: Vec::new(),
            words: BTreeSet::new(),
            tenant_metadata: Map::new(),
            document_metadata: Map::new(),
            uploaded_at: now,
            chunks: count as u64,
            vectors: (0..).zip(rows).collect(),
        };
        scope.sources.insert(id, Source { visible: Some(version), pending: None });
    }

    /// All stored rows of a scope.
    fn rows(&self, tenant: TenantAt, sub_tenant: &str) -> BTreeMap<String, Vec<f32>> {
        let scope = self.model.sub_tenant(tenant, sub_tenant);
        let visible = scope.into_iter().flat_map(|scope| scope.visible());
        visible
            .flat_map(|(id, version)| {
                let rows = version.vectors.iter();
                rows.map(move |(index, row)| (format!("{id}_{index}"), row.clone()))
            })
            .collect()
    }

    pub fn search_vectors(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Embeddings, Role::Read);
        let stored = self.rows(tenant, sub_tenant);
        let rows: Vec<&Vec<f32>> = stored.values().collect();
        let query = match rows.is_empty() || self.seeded.chance(50) {
            true => self.vector(self.width(tenant)),
            false => self.seeded.pick(&rows).to_vec(),
        };
        let name = self.model.tenants[tenant].name.clone();
        let body = json!({
            "tenant_id": name, "sub_tenant_id": sub_tenant, "embeddings": query,
            "max_chunks": HITS_MAX,
        });
        let sees = self.sees(tenant, sub_tenant);
        let need = Self::vector_need(Role::Read, tenant, sub_tenant);
        let ask = Ask::new("POST", "/embeddings/search").json(body);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        assert_eq!(reply.status, 200, "{body}");
        let ids = body["chunk_ids"].as_array().expect("ids");
        let scores = body["scores"].as_array().expect("scores");
        let found: BTreeSet<&str> = ids.iter().filter_map(Value::as_str).collect();
        let expected: BTreeSet<&str> = stored.keys().map(String::as_str).collect();
        assert_eq!((found, ids.len()), (expected, scores.len()), "{body}");
        for (id, score) in ids.iter().zip(scores) {
            let cosine = cosine(&stored[id.as_str().expect("an id")], &query);
            let score = score.as_f64().expect("a number");
            assert!((score - cosine).abs() < SCORE_ERROR, "{id}: {score} is not {cosine}");
        }
    }

    /// Chunk ids, some of which exist only in other scopes.
    fn chunk_ids(&mut self) -> Vec<String> {
        let mut ids: Vec<String> = Vec::new();
        for _ in 0..3 {
            let (batch, index) = (self.seeded.word(&SOURCES), self.seeded.below(4));
            ids.push(format!("{batch}_{index}"));
        }
        ids.sort();
        ids.dedup();
        ids
    }

    pub fn retrieve_vectors(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Embeddings, Role::Read);
        let ids = self.chunk_ids();
        let name = self.model.tenants[tenant].name.clone();
        let body = json!({"tenant_id": name, "sub_tenant_id": sub_tenant, "chunk_ids": ids});
        let sees = self.sees(tenant, sub_tenant);
        let need = Self::vector_need(Role::Read, tenant, sub_tenant);
        let ask = Ask::new("POST", "/embeddings/retrieve_by_ids").json(body);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        let stored = self.rows(tenant, sub_tenant);
        let (known, unknown): (Vec<&String>, Vec<&String>) =
            ids.iter().partition(|id| stored.contains_key(*id));
        let known: BTreeMap<&String, &Vec<f32>> =
            known.into_iter().map(|id| (id, &stored[id])).collect();
        assert_eq!(body["embeddings"], json!(known), "{body}");
        assert_eq!(body["not_found_chunk_ids"], json!(unknown), "{body}");
    }

    pub fn delete_vectors(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Embeddings, Role::Write);
        let ids = self.chunk_ids();
        let name = self.model.tenants[tenant].name.clone();
        let body = json!({"tenant_id": name, "sub_tenant_id": sub_tenant, "chunk_ids": ids});
        let sees = self.sees(tenant, sub_tenant);
        let need = Self::vector_need(Role::Write, tenant, sub_tenant);
        let ask = Ask::new("DELETE", "/embeddings/delete").json(body);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        let stored = self.rows(tenant, sub_tenant);
        let status: BTreeMap<&String, bool> =
            ids.iter().map(|id| (id, stored.contains_key(id))).collect();
        assert_eq!(body["status"], json!(status), "{body}");
        let Some(scope) = self.model.sub_tenant_mut(tenant, sub_tenant) else { return };
        for id in &ids {
            let (batch, index) = id.rsplit_once('_').expect("a chunk id");
            let Some(source) = scope.sources.get_mut(batch) else { continue };
            let version = source.visible.as_mut().expect("vectors never wait");
            version.vectors.remove(&index.parse().expect("a number"));
            version.chunks = version.vectors.len() as u64;
        }
        scope.sources.retain(|_, source| {
            source.visible.as_ref().is_some_and(|version| !version.vectors.is_empty())
        });
    }

    pub fn update_vectors(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Embeddings, Role::Write);
        let batch = self.seeded.word(&SOURCES).to_string();
        let mut rows: BTreeMap<u32, Vec<f32>> = BTreeMap::new();
        for _ in 0..2 {
            let width = self.width(tenant);
            rows.insert(self.seeded.below(3) as u32, self.vector(width));
        }
        let named: BTreeMap<String, &Vec<f32>> =
            rows.iter().map(|(index, row)| (format!("{batch}_{index}"), row)).collect();
        let name = self.model.tenants[tenant].name.clone();
        let ask = Ask::new("PATCH", "/upload/update_embeddings").of(&name, sub_tenant);
        let ask = ask.json(json!({"embeddings": named}));
        let sees = self.sees(tenant, sub_tenant);
        let need = Self::vector_need(Role::Write, tenant, sub_tenant);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        let stored = self.rows(tenant, sub_tenant);
        let missing: Vec<&String> = named.keys().filter(|id| !stored.contains_key(*id)).collect();
        if !missing.is_empty() {
            assert_eq!((reply.status, &body["not_found"]), (404, &json!(missing)), "{body}");
            return;
        }
        assert_eq!(reply.status, 200, "{body}");
        let scope = self.model.sub_tenant_mut(tenant, sub_tenant).expect("it holds rows");
        let source = scope.sources.get_mut(&batch).expect("the batch");
        let version = source.visible.as_mut().expect("vectors never wait");
        version.vectors.extend(rows);
        version.number += 1;
    }
}

fn cosine(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}
