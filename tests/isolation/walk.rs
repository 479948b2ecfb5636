//! A random walk: random operations with random keys, whose responses are compared with the model
//! and searched for the canaries of others.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::canary::{CANARY_LEN, Codes, Home, Seeded};
use crate::model::{Entry, Key, Mode, Model, Role, Tenant, TenantAt, Version};
use crate::patience::Patience;
use crate::server::{Ask, OPERATOR, Reply, TestServer};

const TICK_MILLIS: u64 = 1000;
const TRACE_MAX: usize = 40;
/// The index of the operator's key in [`Model::keys`].
pub const BY_OPERATOR: usize = 0;

/// The owners whose canaries a response may contain.
#[derive(Debug, Clone, Default)]
pub struct Sees {
    pub homes: BTreeSet<Home>,
    /// Canaries that the request itself contains and the response may repeat.
    pub echo: Vec<String>,
}

/// Requirements of an operation on its caller and on the scope it names.
#[derive(Debug, Clone, Copy)]
pub struct Need<'a> {
    pub role: Role,
    pub tenant: TenantAt,
    pub sub_tenant: Option<&'a str>,
    pub mode: Option<Mode>,
    pub may_create: bool,
}

/// A signed URL that was issued, and the original to which it gives access.
#[derive(Debug, Clone)]
pub struct Ticket {
    pub path: String,
    pub tenant: TenantAt,
    pub life: u32,
    pub sub_tenant: &'static str,
    pub source: String,
    pub ends_at: u64,
}

pub struct Walk {
    pub server: TestServer,
    pub seeded: Seeded,
    pub codes: Codes,
    pub model: Model,
    pub tickets: Vec<Ticket>,
    /// The keys and routes for which the idempotency key has been used.
    pub used_up: BTreeSet<(String, String)>,
    /// The first body of each kind of refusal that depends on the scope; all others must equal it.
    refusals: BTreeMap<(u16, String), Value>,
    pub trace: Vec<String>,
    pub answers: usize,
    pub refused: usize,
    pub sightings: usize,
    seed: u64,
}

impl Drop for Walk {
    fn drop(&mut self) {
        if std::thread::panicking() {
            println!("seed {}; the last operations:", self.seed);
            self.trace.iter().for_each(|line| println!("  {line}"));
        }
    }
}

impl Walk {
    pub fn new(seed: u64) -> Self {
        let mut codes = Codes::new(seed);
        let modes = [Mode::Standard, Mode::Standard, Mode::Standard, Mode::Embeddings];
        let modes = modes.into_iter().chain([Mode::Embeddings]);
        let tenants = modes.map(|mode| {
            let name_home = codes.home();
            let name = format!("t-{}", codes.code(name_home));
            Tenant { name, name_home, planned: mode, mode, life: None, lives: 0 }
        });
        let tenants = tenants.collect();
        let (home, mark, id) = (codes.home(), String::new(), String::new());
        let secret = OPERATOR.to_owned();
        let operator = Key { id, secret, role: Role::Admin, scope: None, home, mark };
        let mut walk = Self {
            server: TestServer::start(),
            seeded: Seeded::new(seed ^ 0xa5a5_a5a5),
            codes,
            model: Model { tenants, keys: vec![operator] },
            tickets: Vec::new(),
            used_up: BTreeSet::new(),
            refusals: BTreeMap::new(),
            trace: Vec::new(),
            answers: 0,
            refused: 0,
            sightings: 0,
            seed,
        };
        walk.begin();
        walk
    }

    fn begin(&mut self) {
        for tenant in 0..self.model.tenants.len() {
            self.create_tenant(BY_OPERATOR, tenant);
        }
        self.make_key(Role::Write, None);
        for tenant in 0..self.model.tenants.len() {
            self.make_keys_of(tenant);
        }
        self.make_key(Role::Read, Some(vec![(0, Some(vec!["west"])), (1, Some(vec!["default"]))]));
        self.make_key(Role::Write, Some(vec![(2, None), (3, Some(vec!["east"]))]));
    }

    /// Advances the clock by a tick, sends a request and searches the response.
    pub fn send(&mut self, key: usize, ask: &Ask, sees: &Sees) -> Reply {
        self.server.advance_millis(TICK_MILLIS);
        self.model.forget(self.server.now());
        let secret = self.model.keys[key].secret.clone();
        let reply = self.server.send(Some(&secret), ask);
        self.note(format!("key {key}: {ask} -> {}", reply.status));
        self.search(&reply, sees);
        reply
    }

    pub fn note(&mut self, line: String) {
        if self.trace.len() == TRACE_MAX {
            self.trace.remove(0);
        }
        self.trace.push(line);
    }

    /// Checks the property under test: a response contains nothing of others, and nothing deleted.
    pub fn search(&mut self, reply: &Reply, sees: &Sees) {
        self.answers += 1;
        let mut found = self.codes.sightings(&reply.bytes);
        for (name, value) in &reply.headers {
            found.extend(self.codes.sightings(name.as_str().as_bytes()));
            found.extend(self.codes.sightings(value.as_bytes()));
        }
        self.sightings += found.len();
        let mut live: BTreeMap<Home, BTreeSet<String>> = BTreeMap::new();
        for sighting in found {
            if sees.echo.iter().any(|word| word.starts_with(&sighting.word)) {
                continue;
            }
            let body = String::from_utf8_lossy(&reply.bytes);
            let home = sighting.home;
            let is_allowed = sees.homes.contains(&home);
            assert!(is_allowed, "{sighting:?} is foreign: {:?} {body}", reply.headers);
            if sighting.word.len() < CANARY_LEN {
                continue;
            }
            let live = live.entry(home).or_insert_with(|| self.model.canaries_of(home));
            assert!(live.contains(&sighting.word), "{sighting:?} is gone: {body}");
        }
    }

    /// The expected outcome of the access check; an error holds the status and reason of the
    /// refusal.
    pub fn gate(&self, key: usize, need: Need<'_>) -> Result<(), (u16, &'static str)> {
        let (key, tenant) = (&self.model.keys[key], &self.model.tenants[need.tenant]);
        if key.role < need.role {
            return Err((403, "insufficient_role"));
        }
        let is_there = tenant.life.is_some();
        if !is_there && need.may_create && key.scope.is_none() {
            return Ok(());
        }
        if !is_there || !key.reaches_tenant(need.tenant) {
            return Err((404, "tenant_not_found"));
        }
        if need.sub_tenant.is_some_and(|name| !key.reaches(need.tenant, name)) {
            return Err((404, "sub_tenant_not_found"));
        }
        match need.mode.is_some_and(|mode| mode != tenant.mode) {
            true => Err((409, "tenant_mode_mismatch")),
            false => Ok(()),
        }
    }

    /// Sends a request; if it is to be refused, checks the refusal and returns `None`.
    pub fn ask(&mut self, key: usize, need: Need<'_>, ask: &Ask, sees: &Sees) -> Option<Reply> {
        let gate = self.gate(key, need);
        let mut nothing = Sees::default();
        // The only refusal that names the tenant is sent only to keys that can access it.
        if gate.is_err_and(|(status, _)| status == 409) {
            nothing.homes.insert(self.model.tenants[need.tenant].name_home);
        }
        let reply = self.send(key, ask, if gate.is_ok() { sees } else { &nothing });
        let Err((status, reason)) = gate else { return Some(reply) };
        self.expect_refusal(&reply, status, reason);
        None
    }

    pub fn expect_refusal(&mut self, reply: &Reply, status: u16, reason: &str) {
        self.refused += 1;
        let mut body = reply.json();
        assert_eq!((reply.status, body["reason"].as_str()), (status, Some(reason)), "{body}");
        let members = body.as_object_mut().expect("an error body");
        members.remove("request_id");
        if status == 404 {
            let key = (status, reason.to_owned());
            let first = self.refusals.entry(key).or_insert_with(|| body.clone());
            assert_eq!(*first, body, "refusals of one kind tell nothing apart");
        }
    }

    /// The owners whose canaries a response about one scope may contain.
    pub fn sees(&self, tenant: TenantAt, sub_tenant: &str) -> Sees {
        let mut homes = BTreeSet::from([self.model.tenants[tenant].name_home]);
        homes.extend(self.model.sub_tenant(tenant, sub_tenant).map(|scope| scope.home));
        Sees { homes, echo: Vec::new() }
    }

    /// The names of the tenants that a key can access.
    pub fn sees_names(&self, key: usize) -> Sees {
        let key = &self.model.keys[key];
        let tenants = self.model.tenants.iter().enumerate();
        let reached = tenants.filter(|(at, _)| key.reaches_tenant(*at));
        Sees { homes: reached.map(|(_, tenant)| tenant.name_home).collect(), echo: Vec::new() }
    }

    /// Waits until everything accepted in a scope is visible.
    pub fn settle(&mut self, tenant: TenantAt, sub_tenant: &str) {
        let name = self.model.tenants[tenant].name.clone();
        let Some(scope) = self.model.sub_tenant(tenant, sub_tenant) else { return };
        let waiting = scope.sources.iter().filter(|(_, source)| source.pending.is_some());
        let waiting: Vec<String> = waiting.map(|(id, _)| id.clone()).collect();
        for id in waiting {
            let status = self.settled(&name, sub_tenant, &id);
            let scope = self.model.sub_tenant_mut(tenant, sub_tenant).expect("the scope");
            let source = scope.sources.get_mut(&id).expect("the source");
            let mut version = source.pending.take().expect("it waits");
            assert_eq!(status["status"], "success", "{id}: {status}");
            assert_eq!(status["version"], format!("v{}", version.number), "{id}: {status}");
            let chunks = status["chunk_count"].as_u64().expect("a count");
            assert!(chunks >= version.chunks, "{id}: {status}");
            version.chunks = chunks;
            source.visible = Some(version);
        }
    }

    fn settled(&self, tenant: &str, sub_tenant: &str, id: &str) -> Value {
        let ask = Ask::new("POST", "/upload/verify_processing").of(tenant, sub_tenant);
        let ask = ask.with("file_id", id);
        let mut patience = Patience::new();
        loop {
            let status = self.server.send(Some(OPERATOR), &ask).json();
            if !["queued", "in_progress"].contains(&status["status"].as_str().unwrap_or("none")) {
                return status;
            }
            assert!(!patience.is_over(status.clone()), "{id} is stuck: {status}");
        }
    }

    pub fn settle_tenant(&mut self, tenant: TenantAt) {
        for name in crate::model::SUB_TENANTS {
            self.settle(tenant, name);
        }
    }

    pub fn settle_all(&mut self) {
        (0..self.model.tenants.len()).for_each(|tenant| self.settle_tenant(tenant));
    }

    /// A canary that a search in this scope must not find: of another scope, or of something that
    /// was in this scope and is gone.
    pub fn foreign_canary(&mut self, tenant: TenantAt, sub_tenant: &str) -> String {
        let mut foreign: Vec<String> = Vec::new();
        for (at, other) in self.model.tenants.iter().enumerate() {
            for (name, scope) in other.life.iter().flat_map(|life| &life.sub_tenants) {
                if (at, name.as_str()) != (tenant, sub_tenant) {
                    foreign.extend(scope.visible().flat_map(|(_, version)| version.canaries()));
                    foreign.extend(scope.memories.values().map(|memory| memory.mark.clone()));
                }
            }
        }
        foreign.retain(|word| word.len() == CANARY_LEN);
        match foreign.is_empty() {
            true => self.codes.stray(),
            false => self.seeded.pick(&foreign).clone(),
        }
    }

    /// Creates a key and records it in the model.
    pub fn make_key(&mut self, role: Role, scope: Option<Vec<Entry>>) -> usize {
        let home = self.codes.home();
        let mark = self.codes.canary(home);
        let tenants = scope.as_ref().map(|scope| {
            let entry = |(at, names): &Entry| {
                json!({"tenant_id": self.model.tenants[*at].name, "sub_tenant_ids": names})
            };
            scope.iter().map(entry).collect::<Vec<_>>()
        });
        let name = format!("key {mark}");
        let body = json!({"name": name, "role": role.as_str(), "tenants": tenants});
        let mut sees = self.sees_names(BY_OPERATOR);
        sees.echo.push(mark.clone());
        let reply = self.send(BY_OPERATOR, &Ask::new("POST", "/admin/api_keys").json(body), &sees);
        let made = reply.json();
        let text = |name: &str| made[name].as_str().expect("a text").to_owned();
        let (id, secret) = (text("key_id"), text("api_key"));
        self.model.keys.push(Key { id, secret, role, scope, home, mark });
        self.model.keys.len() - 1
    }

    /// Creates the keys that every tenant gets in each of its lives.
    pub fn make_keys_of(&mut self, tenant: TenantAt) {
        self.make_key(Role::Admin, Some(vec![(tenant, None)]));
        self.make_key(Role::Write, Some(vec![(tenant, Some(vec!["east"]))]));
        self.make_key(Role::Read, Some(vec![(tenant, Some(vec!["default", "west"]))]));
    }

    /// Removes from a body everything that differs between requests or changes when segments merge.
    pub fn anonymous(mut body: Value) -> Value {
        if let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("request_id");
            metadata.remove("timings_ms");
            metadata.remove("vector_paths");
        }
        if let Some(members) = body.as_object_mut() {
            members.remove("session_id");
        }
        body
    }

    pub fn version(&self, tenant: TenantAt, sub_tenant: &str, id: &str) -> Option<&Version> {
        self.model.visible(tenant, sub_tenant, id)
    }
}
