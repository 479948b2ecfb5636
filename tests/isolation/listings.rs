//! Operations that list, count, look up and fetch.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::canary::Home;
use crate::model::{Mode, Role, SOURCES, SUB_TENANTS, TenantAt, Version};
use crate::searches::seconds;
use crate::server::Ask;
use crate::walk::{Need, Sees, Ticket, Walk};

const TICKET_MILLIS: u64 = 3_600_000;

fn reading(tenant: TenantAt, sub_tenant: Option<&str>, mode: Option<Mode>) -> Need<'_> {
    Need { role: Role::Read, tenant, sub_tenant, mode, may_create: false }
}

impl Walk {
    fn any_mode(&mut self) -> Mode {
        if self.seeded.chance(70) { Mode::Standard } else { Mode::Embeddings }
    }

    /// Picks a key and a scope in which nothing is being processed.
    fn quiet_target(&mut self, mode: Mode) -> (TenantAt, &'static str, usize) {
        let target = self.target(mode, Role::Read);
        self.settle(target.0, target.1);
        target
    }

    fn check_source(&self, source: &Value, id: &str, version: &Version) {
        assert_eq!(source["id"], id, "{source}");
        assert_eq!(source["title"], version.title(id), "{source}");
        assert_eq!(source["type"], version.kind, "{source}");
        assert_eq!(source["timestamp"], seconds(version.uploaded_at), "{source}");
        assert_eq!(source["tenant_metadata"], json!(version.tenant_metadata), "{source}");
        assert_eq!(source["document_metadata"], json!(version.document_metadata), "{source}");
        assert_eq!(source["version"], format!("v{}", version.number), "{source}");
        assert_eq!(source["chunk_count"], version.chunks, "{source}");
        assert_eq!(source["status"], "success", "{source}");
        let description = source["description"].as_str().expect("a text");
        let is_of_it = version.vectors.is_empty() && description.contains(version.text_mark());
        assert!(is_of_it || !version.vectors.is_empty() && description.is_empty(), "{source}");
    }

    /// Lists a scope, at once or page by page.
    pub fn list_sources(&mut self) {
        let mode = self.any_mode();
        let (tenant, sub_tenant, key) = self.quiet_target(mode);
        let name = self.model.tenants[tenant].name.clone();
        let sees = self.sees(tenant, sub_tenant);
        let is_paged = self.seeded.chance(50);
        let (mut listed, mut cursor, mut total) = (Vec::new(), None::<String>, None);
        loop {
            let mut ask = Ask::new("GET", "/list/sources").of(&name, sub_tenant);
            if is_paged {
                ask = ask.with("limit", "2");
            }
            if let Some(cursor) = &cursor {
                ask = ask.with("cursor", cursor);
            }
            let need = reading(tenant, Some(sub_tenant), None);
            let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
            let body = reply.json();
            listed.extend(body["sources"].as_array().expect("sources").clone());
            total = total.or_else(|| body["total"].as_u64());
            cursor = body["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        let scope = self.model.sub_tenant(tenant, sub_tenant);
        let mut expected: Vec<_> = scope.into_iter().flat_map(|scope| scope.visible()).collect();
        expected.sort_by(|(a_id, a), (b_id, b)| {
            b.uploaded_at.cmp(&a.uploaded_at).then_with(|| a_id.cmp(b_id))
        });
        assert_eq!((listed.len(), total), (expected.len(), Some(expected.len() as u64)));
        for (source, (id, version)) in listed.iter().zip(expected) {
            self.check_source(source, id, version);
        }
    }

    pub fn sources_by_id(&mut self) {
        let mode = self.any_mode();
        let (tenant, sub_tenant, key) = self.quiet_target(mode);
        let mut ids: Vec<String> = SOURCES.iter().map(ToString::to_string).collect();
        let stranger = self.foreign_canary(tenant, sub_tenant);
        ids.push(stranger.clone());
        ids.extend(self.generated_id());
        let name = self.model.tenants[tenant].name.clone();
        let body = json!({"tenant_id": name, "sub_tenant_id": sub_tenant, "source_ids": ids});
        let mut sees = self.sees(tenant, sub_tenant);
        sees.echo.push(stranger);
        let ask = Ask::new("POST", "/list/sources_by_id").json(body);
        let need = reading(tenant, Some(sub_tenant), None);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        let of = |id: &String| self.version(tenant, sub_tenant, id);
        let (known, unknown): (Vec<&String>, Vec<&String>) =
            ids.iter().partition(|id| of(id).is_some());
        assert_eq!(body["not_found"], json!(unknown), "{body}");
        assert_eq!(body["sources"].as_array().map(Vec::len), Some(known.len()), "{body}");
        for (source, id) in body["sources"].as_array().into_iter().flatten().zip(known) {
            self.check_source(source, id, of(id).expect("it is known"));
        }
    }

    /// An id that the server generated in any scope, if there is one.
    fn generated_id(&mut self) -> Option<String> {
        let lives = self.model.tenants.iter().filter_map(|tenant| tenant.life.as_ref());
        let scopes = lives.flat_map(|life| life.sub_tenants.values());
        let ids = scopes.flat_map(|scope| scope.sources.keys());
        let made: Vec<String> = ids.filter(|id| !SOURCES.contains(&id.as_str())).cloned().collect();
        (!made.is_empty()).then(|| self.seeded.pick(&made).clone())
    }

    pub fn stats(&mut self) {
        let mode = self.any_mode();
        let (tenant, sub_tenant, key) = self.target(mode, Role::Read);
        self.settle_tenant(tenant);
        let name = self.model.tenants[tenant].name.clone();
        let ask = Ask::new("GET", "/tenant/stats").of(&name, sub_tenant);
        let sees = self.sees(tenant, sub_tenant);
        let need = reading(tenant, Some(sub_tenant), None);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        let scope = self.model.sub_tenant(tenant, sub_tenant);
        let life = self.model.tenants[tenant].life.as_ref().expect("it was asked");
        let by = &self.model.keys[key];
        let reached = life.sub_tenants.iter().filter(|(name, _)| by.reaches(tenant, name));
        let in_tenant: u64 = reached.map(|(_, scope)| scope.objects()).sum();
        assert_eq!(body["object_count"], scope.map_or(0, |scope| scope.objects()), "{body}");
        let sources = scope.map_or(0, |scope| scope.visible().count());
        assert_eq!(body["source_count"], sources, "{body}");
        let memories = scope.map_or(0, |scope| scope.memories.len());
        assert_eq!(body["memory_count"], memories, "{body}");
        assert_eq!(body["tenant_object_count"], in_tenant, "{body}");
        if self.model.tenants[tenant].mode == Mode::Embeddings {
            assert_eq!(body["vector_dimension"], json!(life.width), "{body}");
        }
    }

    pub fn sub_tenant_ids(&mut self) {
        let mode = self.any_mode();
        let (tenant, _, key) = self.target(mode, Role::Read);
        let name = self.model.tenants[tenant].name.clone();
        let ask = Ask::new("GET", "/tenant/sub_tenant_ids").with("tenant_id", &name);
        let sees = self.sees(tenant, "none");
        let need = reading(tenant, None, None);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        let life = self.model.tenants[tenant].life.as_ref().expect("it was asked");
        let by = &self.model.keys[key];
        let names: Vec<&String> =
            life.sub_tenants.keys().filter(|name| by.reaches(tenant, name)).collect();
        assert_eq!(body["sub_tenant_ids"], json!(names), "{body}");
        assert_eq!(body["count"], names.len(), "{body}");
        assert_eq!(body["tenant_schema"].is_object(), life.has_schema, "{body}");
    }

    /// Looks up the state of a source in a scope, in a tenant, or everywhere.
    pub fn verify(&mut self) {
        self.settle_all();
        let mode = self.any_mode();
        let (tenant, sub_tenant, key) = self.target(mode, Role::Read);
        let id = match self.generated_id().filter(|_| self.seeded.chance(20)) {
            Some(id) => id,
            None => self.seeded.word(&SOURCES).to_string(),
        };
        let name = self.model.tenants[tenant].name.clone();
        let mut ask = Ask::new("POST", "/upload/verify_processing").with("file_id", &id);
        let how = self.seeded.below(3);
        let by = self.model.keys[key].clone();
        let mut places = self.model.reached(&by);
        let gate = self.gate(key, reading(tenant, (how == 0).then_some(sub_tenant), None));
        if how < 2 {
            ask = ask.with("tenant_id", &name);
            places.retain(|(at, _)| *at == tenant);
        }
        if how == 0 {
            ask = ask.with("sub_tenant_id", sub_tenant);
            places.retain(|(_, name)| name == sub_tenant);
        }
        places.retain(|(at, name)| self.version(*at, name, &id).is_some());
        let in_default = places.iter().find(|(_, name)| how == 1 && name == "default");
        let newest = |(at, name): &&(TenantAt, String)| {
            self.version(*at, name, &id).map(|version| version.uploaded_at)
        };
        let mut found = in_default.or_else(|| places.iter().max_by_key(newest)).cloned();
        let mut sees = match &found {
            Some((at, name)) if gate.is_ok() || how == 2 => self.sees(*at, name),
            _ => Sees::default(),
        };
        // The product may prefer documents over vectors; `regressions` covers that case.
        let is_text = |(at, _): &&(TenantAt, String)| {
            how == 2 && self.model.tenants[*at].mode == Mode::Standard
        };
        let newest_text = places.iter().filter(is_text).max_by_key(newest).cloned();
        if let Some((at, name)) = &newest_text {
            sees.homes.extend(self.sees(*at, name).homes);
        }
        let reply = self.send(key, &ask, &sees);
        if newest_text
            .as_ref()
            .is_some_and(|(at, _)| reply.json()["tenant_id"] == self.model.tenants[*at].name)
        {
            found = newest_text;
        }
        match (gate, found) {
            (Err((status, reason)), _) if how < 2 => self.expect_refusal(&reply, status, reason),
            (_, None) => self.expect_refusal(&reply, 404, "source_not_found"),
            (_, Some((at, name))) => {
                let body = reply.json();
                let version = self.version(at, &name, &id).expect("it was found");
                assert_eq!(body["tenant_id"], self.model.tenants[at].name, "{body}");
                assert_eq!(body["sub_tenant_id"], name, "{body}");
                assert_eq!(body["version"], format!("v{}", version.number), "{body}");
                assert_eq!(body["chunk_count"], version.chunks, "{body}");
            }
        }
    }

    /// Fetches an original directly, or through a URL that is used now and again later.
    pub fn fetch(&mut self) {
        let mode = if self.seeded.chance(90) { Mode::Standard } else { Mode::Embeddings };
        let (tenant, sub_tenant, key) = self.quiet_target(mode);
        let id = self.seeded.word(&SOURCES).to_string();
        let name = self.model.tenants[tenant].name.clone();
        let is_direct = self.seeded.chance(60);
        let body = json!({
            "tenant_id": name, "sub_tenant_id": sub_tenant, "file_id": id,
            "return_content": is_direct,
        });
        let ask = Ask::new("POST", "/fetch/fetch_content").json(body);
        let sees = self.sees(tenant, sub_tenant);
        let need = reading(tenant, Some(sub_tenant), Some(Mode::Standard));
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let Some(version) = self.version(tenant, sub_tenant, &id) else {
            return self.expect_refusal(&reply, 404, "source_not_found");
        };
        let body = reply.json();
        if is_direct {
            let content = body["file_content"].as_str().expect("a text");
            let bytes = match body["encoding"].as_str() {
                Some("base64") => STANDARD.decode(content).expect("base 64"),
                _ => content.as_bytes().to_vec(),
            };
            assert_eq!(bytes, version.bytes, "{body}");
            return;
        }
        let url = body["download_url"].as_str().expect("a URL");
        let path = url[url.find("/fetch/").expect("the path")..].to_owned();
        let (life, ends_at) = (self.model.tenants[tenant].lives, self.server.now() + TICKET_MILLIS);
        self.tickets.push(Ticket { path, tenant, life, sub_tenant, source: id, ends_at });
        self.redeem(self.tickets.len() - 1);
    }

    pub fn redeem_any(&mut self) {
        if !self.tickets.is_empty() {
            let at = self.seeded.below(self.tickets.len());
            self.redeem(at);
        }
    }

    /// Follows a URL, which gives access to its source in its life of the tenant, for an hour, and
    /// to nothing else.
    fn redeem(&mut self, at: usize) {
        let ticket = self.tickets[at].clone();
        let Ticket { path, tenant, life, sub_tenant, source, ends_at } = ticket;
        self.settle(tenant, sub_tenant);
        let owner = &self.model.tenants[tenant];
        let is_valid = owner.lives == life && self.server.now() < ends_at;
        let version = self.version(tenant, sub_tenant, &source).filter(|_| is_valid).cloned();
        let reply = self.server.send(None, &Ask::new("GET", &path));
        self.note(format!("GET {path} -> {}", reply.status));
        let homes: BTreeSet<Home> = match &version {
            Some(_) => self.sees(tenant, sub_tenant).homes,
            None => BTreeSet::new(),
        };
        self.search(&reply, &Sees { homes, echo: Vec::new() });
        match version {
            Some(version) => assert_eq!((reply.status, reply.bytes), (200, version.bytes)),
            None => self.expect_refusal(&reply, 404, "download_not_found"),
        }
    }

    /// Lists the jobs of a scope, of a tenant, or of everything that the key can access.
    pub fn jobs(&mut self) {
        self.settle_all();
        let (tenant, sub_tenant, key) = self.target(Mode::Standard, Role::Read);
        let how = self.seeded.below(3);
        let name = self.model.tenants[tenant].name.clone();
        let mut ask = Ask::new("GET", "/jobs").with("limit", "1000");
        let by = self.model.keys[key].clone();
        let mut places = self.model.reached(&by);
        if how < 2 {
            ask = ask.with("tenant_id", &name);
            places.retain(|(at, _)| *at == tenant);
        }
        if how == 0 {
            ask = ask.with("sub_tenant_id", sub_tenant);
            places.retain(|(_, name)| name == sub_tenant);
        }
        let names = places.iter().map(|(at, _)| self.model.tenants[*at].name_home);
        let sees = Sees { homes: names.collect(), echo: Vec::new() };
        let reply = match how {
            2 => self.send(key, &ask, &sees),
            _ => {
                let need = reading(tenant, (how == 0).then_some(sub_tenant), None);
                let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
                reply
            }
        };
        self.check_jobs(&reply.json(), &places);
    }

    fn check_jobs(&self, body: &Value, places: &[(TenantAt, String)]) {
        let (mut known, mut newest) = (BTreeSet::new(), BTreeSet::new());
        for (at, name) in places {
            let scope = self.model.sub_tenant(*at, name).expect("it is reached");
            let tenant = &self.model.tenants[*at].name;
            let job = |id: &str, time: u64| json!([tenant, name, id, seconds(time)]).to_string();
            known.extend(scope.jobs.iter().map(|(id, time)| job(id, *time)));
            let uploads = scope.visible().filter(|(_, version)| version.vectors.is_empty());
            newest.extend(uploads.map(|(id, version)| job(id, version.uploaded_at)));
        }
        let mut listed = BTreeSet::new();
        let jobs = body["jobs"].as_array().expect("jobs");
        for job in jobs {
            let place = ["tenant_id", "sub_tenant_id", "file_id", "created_at"]
                .map(|name| job[name].clone());
            let place = json!(place).to_string();
            assert!(known.contains(&place), "not a job of this scope: {job}");
            listed.insert(place);
        }
        assert!(newest.is_subset(&listed), "{newest:?} are not all in {listed:?}");
        assert_eq!(body["counts"]["success"], jobs.len(), "{:?}", body["counts"]);
    }

    pub fn list_tenants(&mut self) {
        let key = self.seeded.below(self.model.keys.len());
        let sees = self.sees_names(key);
        let reply = self.send(key, &Ask::new("GET", "/tenant/list"), &sees);
        let by = self.model.keys[key].clone();
        if by.role < Role::Admin {
            return self.expect_refusal(&reply, 403, "insufficient_role");
        }
        let body = reply.json();
        let tenants = self.model.tenants.iter().enumerate();
        let reached = tenants.filter(|(at, _)| by.reaches_tenant(*at));
        let expected: BTreeSet<(String, String)> = reached
            .filter_map(|(_, tenant)| {
                Some((tenant.name.clone(), seconds(tenant.life.as_ref()?.created_at)))
            })
            .collect();
        let text = |tenant: &Value, name: &str| tenant[name].as_str().expect("a text").to_owned();
        let listed = body["tenants"].as_array().expect("tenants").iter();
        let listed: BTreeSet<(String, String)> =
            listed.map(|tenant| (text(tenant, "tenant_id"), text(tenant, "created_at"))).collect();
        assert_eq!(listed, expected);
    }

    /// Tries every scope that a key could name without having access to it.
    pub fn knock(&mut self) {
        let key = self.seeded.below(self.model.keys.len());
        for tenant in 0..self.model.tenants.len() {
            for sub_tenant in SUB_TENANTS {
                self.settle(tenant, sub_tenant);
                let name = self.model.tenants[tenant].name.clone();
                let ask = Ask::new("GET", "/list/sources").of(&name, sub_tenant);
                let sees = self.sees(tenant, sub_tenant);
                let need = reading(tenant, Some(sub_tenant), None);
                if let Some(reply) = self.ask(key, need, &ask, &sees) {
                    let scope = self.model.sub_tenant(tenant, sub_tenant);
                    let count = scope.map_or(0, |scope| scope.visible().count());
                    assert_eq!(reply.json()["total"], count);
                }
            }
        }
    }
}
