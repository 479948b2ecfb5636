//! Operations that write: texts, documents, batches and their metadata.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::canary::Home;
use crate::model::{
    COLOURS, Life, Mode, REGIONS, Role, SOURCES, SUB_TENANTS, SubTenant, TenantAt, Version, WORDS,
};
use crate::server::Ask;
use crate::walk::{Need, Walk};

/// The number of sentences in a text of several chunks.
const SENTENCES_LONG: usize = 32;
/// The `Idempotency-Key` that all clients share.
const ONCE: &str = "first-try";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Text,
    UpdateText,
    BatchText,
    Document,
    UpdateDocument,
    BatchDocuments,
    BatchUpdate,
}

const WAYS: [Way; 7] = [
    Way::Text,
    Way::UpdateText,
    Way::BatchText,
    Way::Document,
    Way::UpdateDocument,
    Way::BatchDocuments,
    Way::BatchUpdate,
];

impl Way {
    fn is_file(self) -> bool {
        !matches!(self, Self::Text | Self::UpdateText | Self::BatchText)
    }

    fn is_update(self) -> bool {
        matches!(self, Self::UpdateText | Self::UpdateDocument | Self::BatchUpdate)
    }

    fn is_batch(self) -> bool {
        matches!(self, Self::BatchText | Self::BatchDocuments | Self::BatchUpdate)
    }

    fn ask(self) -> Ask {
        match self {
            Self::Text => Ask::new("POST", "/upload/upload_text"),
            Self::UpdateText => Ask::new("PATCH", "/upload/update_text"),
            Self::BatchText => Ask::new("POST", "/upload/batch_upload_text"),
            Self::Document => Ask::new("POST", "/upload/upload_document"),
            Self::UpdateDocument => Ask::new("PATCH", "/upload/update_document"),
            Self::BatchDocuments => Ask::new("POST", "/upload/batch_upload"),
            Self::BatchUpdate => Ask::new("PATCH", "/upload/batch_update"),
        }
    }
}

/// A document to be uploaded.
struct Item {
    id: Option<String>,
    version: Version,
}

impl Walk {
    /// Picks a scope and a key that probably has access to it.
    pub fn target(&mut self, mode: Mode, wanted: Role) -> (TenantAt, &'static str, usize) {
        let tenants: Vec<TenantAt> = (0..self.model.tenants.len())
            .filter(|at| self.model.tenants[*at].mode == mode || self.seeded.chance(5))
            .collect();
        let tenant = *self.seeded.pick(&tenants);
        let sub_tenant = self.seeded.word(&SUB_TENANTS);
        let keys = 0..self.model.keys.len();
        let fitting: Vec<usize> = keys
            .filter(|at| {
                let key = &self.model.keys[*at];
                key.role >= wanted && key.reaches(tenant, sub_tenant)
            })
            .collect();
        let key = match self.seeded.chance(70) {
            true => *self.seeded.pick(&fitting),
            false => self.seeded.below(self.model.keys.len()),
        };
        (tenant, sub_tenant, key)
    }

    fn maps(&mut self, home: Home) -> (Map<String, Value>, Map<String, Value>) {
        let (colour, region) = (self.seeded.word(&COLOURS), self.seeded.word(&REGIONS));
        let mut document = json!({"colour": colour, "mark": self.codes.canary(home)});
        if self.seeded.chance(40) {
            document["title"] = json!(format!("Report {}", self.codes.canary(home)));
        }
        let tenant = json!({"region": region, "mark": self.codes.canary(home)});
        let map = |value: Value| value.as_object().expect("a map").clone();
        (map(tenant), map(document))
    }

    fn document(&mut self, home: Home, way: Way) -> Version {
        let mark = self.codes.canary(home);
        let mut words = BTreeSet::new();
        while words.len() < 3 {
            words.insert(self.seeded.word(&WORDS));
        }
        let [a, b, c] = [0, 1, 2].map(|at| *words.iter().nth(at).expect("three words"));
        let sentence = format!("The {a} and the {b} stand by the {c} of {mark}. ");
        let is_long = self.seeded.chance(15);
        let mut bytes = sentence.repeat(if is_long { SENTENCES_LONG } else { 1 }).into_bytes();
        let (mut marks, mut filename) = (vec![mark], String::new());
        if way.is_file() {
            marks.push(self.codes.canary(home));
            filename = format!("notes {}.txt", marks[1]);
            if self.seeded.chance(50) {
                // Not UTF-8, so that the original is returned in base64.
                bytes.extend(b"Un caf\xe9 cr\xe8me pr\xe8s du mus\xe9e, d\xe9j\xe0 ferm\xe9.");
            }
        }
        let (tenant_metadata, document_metadata) = self.maps(home);
        Version {
            number: 0,
            kind: if way.is_file() { "file" } else { "text" },
            bytes,
            filename,
            marks,
            words,
            tenant_metadata,
            document_metadata,
            uploaded_at: 0,
            chunks: if is_long { 2 } else { 1 },
            vectors: BTreeMap::new(),
        }
    }

    fn items(&mut self, home: Home, way: Way) -> Vec<Item> {
        let count = if way.is_batch() { 1 + self.seeded.below(3) } else { 1 };
        let mut items: Vec<Item> = Vec::new();
        while items.len() < count {
            let has_id = way.is_update() || self.seeded.chance(90);
            let id = has_id.then(|| self.seeded.word(&SOURCES).to_string());
            if id.is_none() || !items.iter().any(|item| item.id == id) {
                items.push(Item { id, version: self.document(home, way) });
            }
        }
        items
    }

    /// Uploads in a randomly chosen way.
    pub fn upload(&mut self) {
        let way = *self.seeded.pick(&WAYS);
        let (tenant, sub_tenant, key) = self.target(Mode::Standard, Role::Write);
        self.upload_as(way, tenant, sub_tenant, key);
    }

    fn upload_as(&mut self, way: Way, tenant: TenantAt, sub_tenant: &'static str, key: usize) {
        if way.is_update() {
            self.settle(tenant, sub_tenant);
        }
        let mode = Some(Mode::Standard);
        let (role, may_create) = (Role::Write, true);
        let need = Need { role, tenant, sub_tenant: Some(sub_tenant), mode, may_create };
        let known = self.model.sub_tenant(tenant, sub_tenant).map(|scope| scope.home);
        let home = match known.filter(|_| self.gate(key, need).is_ok()) {
            Some(home) => home,
            None => self.codes.home(),
        };
        let items = self.items(home, way);
        let keeps = way.is_update() && self.seeded.chance(40);
        let name = self.model.tenants[tenant].name.clone();
        let mut ask = request(way, &name, sub_tenant, &items, keeps);
        let is_named = items.iter().all(|item| item.id.is_some());
        let is_there = self.model.tenants[tenant].life.is_some();
        if !way.is_update() && !is_named && is_there {
            ask.once = Some(ONCE.to_owned());
        }
        let mut sees = self.sees(tenant, sub_tenant);
        sees.echo = items.iter().flat_map(|item| item.version.marks.clone()).collect();
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let used = (self.model.keys[key].secret.clone(), ask.path.clone());
        if ask.once.is_some() && self.used_up.contains(&used) {
            // Every body is new, so that reusing the idempotency key is a conflict and does not
            // replay a response.
            return self.expect_refusal(&reply, 409, "idempotency_conflict");
        }
        let body = reply.json();
        assert_eq!((reply.status, &body["success"]), (200, &json!(true)), "{body}");
        let now = self.server.now();
        self.come_to_life(tenant, sub_tenant, home, now);
        self.accept(way, tenant, sub_tenant, items, keeps, &body);
        if ask.once.is_some() {
            self.used_up.insert(used);
            let again = self.send(key, &ask, &sees);
            assert_eq!(again.json(), body, "a replay");
        }
    }

    fn accept(
        &mut self,
        way: Way,
        tenant: TenantAt,
        sub_tenant: &str,
        items: Vec<Item>,
        keeps: bool,
        body: &Value,
    ) {
        let now = self.server.now();
        for (at, Item { id, mut version }) in items.into_iter().enumerate() {
            let told = if way.is_batch() { &body["uploaded"][at] } else { body };
            let told_id = told["file_id"].as_str().expect("an id").to_owned();
            let id = id.unwrap_or_else(|| told_id.clone());
            assert_eq!(told_id, id, "{body}");
            let scope = self.model.sub_tenant_mut(tenant, sub_tenant).expect("it was made");
            scope.jobs.insert((id.clone(), now));
            let source = scope.sources.entry(id).or_default();
            let before = source.pending.as_ref().or(source.visible.as_ref());
            assert_eq!(told["overwritten"], before.is_some(), "{body}");
            version.number = before.map_or(1, |before| before.number + 1);
            version.uploaded_at = now;
            if keeps {
                version.tenant_metadata =
                    before.map(|before| before.tenant_metadata.clone()).unwrap_or_default();
                version.document_metadata =
                    before.map(|before| before.document_metadata.clone()).unwrap_or_default();
            }
            source.pending = Some(version);
        }
    }

    /// Records the tenant and sub-tenant that a first write creates.
    pub fn come_to_life(&mut self, tenant: TenantAt, sub_tenant: &str, home: Home, now: u64) {
        let default = self.codes.home();
        let owner = &mut self.model.tenants[tenant];
        if owner.life.is_none() {
            owner.mode = Mode::Standard;
            owner.lives += 1;
        }
        let life = owner.life.get_or_insert_with(|| Life::new(now, false));
        life.sub_tenants.entry(sub_tenant.to_owned()).or_insert_with(|| SubTenant::new(home));
        life.sub_tenants.entry("default".to_owned()).or_insert_with(|| SubTenant::new(default));
    }

    /// Replaces metadata maps. A new title is indexed again.
    pub fn update_metadata(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Standard, Role::Write);
        self.settle(tenant, sub_tenant);
        let mode = Some(Mode::Standard);
        let (role, may_create) = (Role::Write, false);
        let need = Need { role, tenant, sub_tenant: Some(sub_tenant), mode, may_create };
        let id = self.seeded.word(&SOURCES).to_string();
        let known = self.model.sub_tenant(tenant, sub_tenant).map(|scope| scope.home);
        let home = match known.filter(|_| self.gate(key, need).is_ok()) {
            Some(home) => home,
            None => self.codes.home(),
        };
        let (tenant_map, document_map) = self.maps(home);
        let gives_tenant_map = self.seeded.chance(50);
        let name = &self.model.tenants[tenant].name;
        let mut body = json!({
            "tenant_id": name, "sub_tenant_id": sub_tenant, "source_id": id,
            "document_metadata": document_map,
        });
        if gives_tenant_map {
            body["tenant_metadata"] = json!(tenant_map);
        }
        let ask = Ask::new("PATCH", "/upload/update_metadata").json(body);
        let sees = self.sees(tenant, sub_tenant);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        if self.version(tenant, sub_tenant, &id).is_none() {
            return self.expect_refusal(&reply, 404, "source_not_found");
        }
        assert_eq!(reply.status, 200, "{}", reply.json());
        let scope = self.model.sub_tenant_mut(tenant, sub_tenant).expect("the scope");
        let source = scope.sources.get_mut(&id).expect("the source");
        let version = source.visible.as_mut().expect("it is visible");
        let title = version.title(&id);
        version.document_metadata = document_map;
        if gives_tenant_map {
            version.tenant_metadata = tenant_map;
        }
        if version.title(&id) != title {
            let number = version.number + 1;
            scope.jobs.insert((id, version.uploaded_at));
            source.pending = Some(Version { number, ..version.clone() });
        }
    }

    /// Deletes sources by ids, some of which exist only in other scopes.
    pub fn delete_sources(&mut self) {
        let mode = if self.seeded.chance(75) { Mode::Standard } else { Mode::Embeddings };
        let (tenant, sub_tenant, key) = self.target(mode, Role::Write);
        let (role, may_create) = (Role::Write, false);
        let need = Need { role, tenant, sub_tenant: Some(sub_tenant), mode: None, may_create };
        let mut ids: Vec<&str> = vec![self.seeded.word(&SOURCES), self.seeded.word(&SOURCES)];
        ids.dedup();
        let name = &self.model.tenants[tenant].name;
        let body = json!({"tenant_id": name, "sub_tenant_id": sub_tenant, "source_ids": ids});
        let path = *self.seeded.pick(&["/delete_source", "/upload/delete_source"]);
        let ask = Ask::new("DELETE", path).json(body);
        let sees = self.sees(tenant, sub_tenant);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        assert_eq!(reply.status, 200, "{body}");
        let (mut deleted, mut not_found) = (Vec::new(), Vec::new());
        let mut scope = self.model.sub_tenant_mut(tenant, sub_tenant);
        for id in ids {
            let gone = scope.as_mut().and_then(|scope| scope.sources.remove(id));
            if gone.is_some() {
                deleted.push(id)
            } else {
                not_found.push(id)
            }
            if let Some(scope) = &mut scope {
                scope.jobs.retain(|(source, _)| source != id);
            }
        }
        assert_eq!(body["deleted_count"], deleted.len(), "{body}");
        assert_eq!((&body["deleted"], &body["not_found"]), (&json!(deleted), &json!(not_found)));
    }
}

fn request(way: Way, tenant: &str, sub_tenant: &str, items: &[Item], keeps: bool) -> Ask {
    let ask = way.ask().of(tenant, sub_tenant);
    let object = |item: &Item| {
        let Version { bytes, tenant_metadata, document_metadata, .. } = &item.version;
        let mut body = json!({"content": String::from_utf8_lossy(bytes), "file_id": item.id});
        if !keeps {
            body["tenant_metadata"] = json!(tenant_metadata);
            body["document_metadata"] = json!(document_metadata);
        }
        body
    };
    let first = &items[0];
    let ask = match (way, &first.id) {
        (Way::UpdateText | Way::UpdateDocument, Some(id)) => ask.with("source_id", id),
        _ => ask,
    };
    if !way.is_file() {
        let objects: Vec<Value> = items.iter().map(object).collect();
        return match way.is_batch() {
            true => ask.json(json!({"items": objects})),
            false => ask.json(objects[0].clone()),
        };
    }
    let name = if way.is_batch() { "files" } else { "file" };
    let file =
        |item: &Item| (name, Some(item.version.filename.clone()), item.version.bytes.clone());
    let mut parts: Vec<_> = items.iter().map(file).collect();
    let ids: Vec<String> = items.iter().map(|item| item.id.clone().unwrap_or_default()).collect();
    let mut text = |name, value: Value| parts.push((name, None, value.to_string().into_bytes()));
    match way {
        Way::BatchDocuments => text("file_ids", json!(ids)),
        Way::BatchUpdate => text("source_ids", json!(ids)),
        _ => {}
    }
    if !keeps {
        let maps = |of: fn(&Version) -> &Map<String, Value>| match way.is_batch() {
            true => json!(items.iter().map(|item| of(&item.version)).collect::<Vec<_>>()),
            false => json!(of(&first.version)),
        };
        text("tenant_metadata", maps(|version| &version.tenant_metadata));
        text("document_metadata", maps(|version| &version.document_metadata));
    }
    if let (Way::Document, Some(id)) = (way, &first.id) {
        parts.push(("file_id", None, id.clone().into_bytes()));
    }
    ask.form(parts)
}
