//! Operations on memories.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::model::{MEMORIES, Mode, Remembered, Role, TenantAt, WORDS};
use crate::server::Ask;
use crate::walk::{Need, Walk};

const LIFE_SECONDS_MAX: usize = 60;
const MILLIS_PER_SECOND: u64 = 1000;

fn need(role: Role, tenant: TenantAt, sub_tenant: &str, may_create: bool) -> Need<'_> {
    let mode = Some(Mode::Standard);
    Need { role, tenant, sub_tenant: Some(sub_tenant), mode, may_create }
}

impl Walk {
    /// Adds or replaces a memory: a text, or the statements of a message.
    pub fn add_memory(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Standard, Role::Write);
        let need = need(Role::Write, tenant, sub_tenant, true);
        let known = self.model.sub_tenant(tenant, sub_tenant).map(|scope| scope.home);
        let home = match known.filter(|_| self.gate(key, need).is_ok()) {
            Some(home) => home,
            None => self.codes.home(),
        };
        let mark = self.codes.canary(home);
        let text = format!("I like the {} of {mark}", self.seeded.word(&WORDS));
        let is_generated = self.seeded.chance(20);
        let id = self.seeded.word(&MEMORIES).to_owned();
        let life = self.seeded.chance(30).then(|| 1 + self.seeded.below(LIFE_SECONDS_MAX) as u64);
        let name = self.model.tenants[tenant].name.clone();
        let ask = match is_generated {
            true => Ask::new("POST", "/user_memory/generate_user_memory")
                .json(json!({"user_message": format!("Hi! {text}")})),
            false => Ask::new("POST", "/user_memory/add_user_memory")
                .json(json!({"user_memory": text, "memory_id": id, "expiry_time": life})),
        };
        let mut sees = self.sees(tenant, sub_tenant);
        sees.echo = vec![mark.clone()];
        let Some(reply) = self.ask(key, need, &ask.of(&name, sub_tenant), &sees) else { return };
        let body = reply.json();
        assert_eq!((reply.status, &body["success"]), (200, &json!(true)), "{body}");
        let now = self.server.now();
        self.come_to_life(tenant, sub_tenant, home, now);
        let told = match is_generated {
            true => &body["generated_user_memories"][0]["memory_id"],
            false => &body["memory_id"],
        };
        let told = told.as_str().expect("an id").to_owned();
        assert!(is_generated || told == id, "{body}");
        let life = life.filter(|_| !is_generated).map(|seconds| seconds * MILLIS_PER_SECOND);
        let ends_at = life.map(|life| now + life);
        let scope = self.model.sub_tenant_mut(tenant, sub_tenant).expect("it was made");
        scope.memories.insert(told, Remembered { text, mark, added_at: now, ends_at });
    }

    fn remembered(&self, tenant: TenantAt, sub_tenant: &str) -> BTreeMap<String, Remembered> {
        let scope = self.model.sub_tenant(tenant, sub_tenant);
        scope.map(|scope| scope.memories.clone()).unwrap_or_default()
    }

    /// Compares memories with the model: which exist, and every field.
    fn check_memories(&self, tenant: TenantAt, sub_tenant: &str, memories: &Value) {
        let expected = self.remembered(tenant, sub_tenant);
        let memories = memories.as_array().expect("memories");
        assert_eq!(memories.len(), expected.len(), "{memories:?}");
        for memory in memories {
            let id = memory["memory_id"].as_str().expect("an id");
            let known = expected.get(id).unwrap_or_else(|| panic!("not in this scope: {memory}"));
            assert_eq!(memory["memory_content"], known.text.as_str(), "{memory}");
            let seconds = |millis: u64| json!(crate::searches::seconds(millis));
            assert_eq!(memory["created_at"], seconds(known.added_at), "{memory}");
            assert_eq!(memory["expires_at"], json!(known.ends_at.map(seconds)), "{memory}");
        }
    }

    pub fn list_memories(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Standard, Role::Read);
        let name = self.model.tenants[tenant].name.clone();
        let ask = Ask::new("GET", "/user_memory/list_user_memories").of(&name, sub_tenant);
        let sees = self.sees(tenant, sub_tenant);
        let need = need(Role::Read, tenant, sub_tenant, false);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        assert_eq!(reply.status, 200, "{body}");
        self.check_memories(tenant, sub_tenant, &body["user_memories"]);
    }

    /// A search for a word of another scope finds all memories of this scope and no others.
    pub fn retrieve_memories(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Standard, Role::Read);
        let name = self.model.tenants[tenant].name.clone();
        let query = match self.seeded.chance(50) {
            true => self.foreign_canary(tenant, sub_tenant),
            false => self.seeded.word(&WORDS).to_owned(),
        };
        let ask = Ask::new("POST", "/user_memory/retrieve_user_memory").of(&name, sub_tenant);
        let ask = ask.with("max_count", "100").json(json!({ "query": query }));
        let sees = self.sees(tenant, sub_tenant);
        let need = need(Role::Read, tenant, sub_tenant, false);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let body = reply.json();
        assert_eq!(reply.status, 200, "{body}");
        self.check_memories(tenant, sub_tenant, &body["retrieved_user_memories"]);
        assert_eq!(body["retrieved_user_memories"], body["user_memories"]);
    }

    pub fn delete_memory(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Standard, Role::Write);
        let mut ids: Vec<String> = MEMORIES.map(str::to_owned).to_vec();
        ids.extend(self.remembered(tenant, sub_tenant).into_keys());
        let id = self.seeded.pick(&ids).clone();
        let name = self.model.tenants[tenant].name.clone();
        let ask = Ask::new("DELETE", "/user_memory/delete_user_memory").of(&name, sub_tenant);
        let sees = self.sees(tenant, sub_tenant);
        let need = need(Role::Write, tenant, sub_tenant, false);
        let ask = ask.with("memory_id", &id);
        let Some(reply) = self.ask(key, need, &ask, &sees) else { return };
        let scope = self.model.sub_tenant_mut(tenant, sub_tenant);
        match scope.and_then(|scope| scope.memories.remove(&id)) {
            Some(_) => assert_eq!(reply.status, 200, "{}", reply.json()),
            None => self.expect_refusal(&reply, 404, "memory_not_found"),
        }
    }
}
