//! Searches and answers: which chunks a key can see, and that a foreign word behaves like an
//! unknown one.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::model::{COLOURS, Mode, REGIONS, Role, SESSIONS, SOURCES, TenantAt, Version, WORDS};
use crate::server::{Ask, Reply};
use crate::walk::{Need, Sees, Walk};

/// More than any scope holds.
const CHUNKS_MAX: usize = 1001;

/// A filter, both as sent and as evaluated by the model.
#[derive(Debug, Clone)]
pub enum Limit {
    Nothing,
    Colour(&'static str),
    Region(&'static str),
    Mark(String),
    Ids(Vec<&'static str>),
    /// A key that one tenant's schema excludes from filters, and that no document has.
    Level,
}

impl Limit {
    fn write(&self, body: &mut Value) {
        match self {
            Self::Nothing => {}
            Self::Colour(colour) => body["document_metadata"] = json!({"colour": colour}),
            Self::Region(region) => body["tenant_metadata"] = json!({"region": region}),
            Self::Mark(mark) => body["metadata"] = json!({"mark": mark}),
            Self::Ids(ids) => body["context_list"] = json!(ids),
            Self::Level => body["tenant_metadata"] = json!({"level": 3}),
        }
    }

    fn lets_pass(&self, id: &str, version: &Version) -> bool {
        match self {
            Self::Nothing => true,
            Self::Colour(colour) => version.document_metadata.get("colour") == Some(&json!(colour)),
            Self::Region(region) => version.tenant_metadata.get("region") == Some(&json!(region)),
            Self::Mark(mark) => {
                let maps = [&version.document_metadata, &version.tenant_metadata];
                let own = maps.iter().find_map(|map| map.get("mark"));
                own == Some(&json!(mark))
            }
            Self::Ids(ids) => ids.contains(&id),
            Self::Level => false,
        }
    }
}

/// A search of a scope.
pub struct Question {
    tenant: TenantAt,
    sub_tenant: &'static str,
    words: Vec<String>,
    limit: Limit,
    max_chunks: usize,
}

impl Question {
    fn need(&self) -> Need<'static> {
        let (tenant, sub_tenant) = (self.tenant, Some(self.sub_tenant));
        let (role, mode) = (Role::Read, Some(Mode::Standard));
        Need { role, tenant, sub_tenant, mode, may_create: false }
    }

    fn holds(&self, version: &Version, word: &str) -> bool {
        version.words.contains(word) || version.text_mark() == word
    }
}

impl Walk {
    fn question(&mut self, tenant: TenantAt, sub_tenant: &'static str) -> Question {
        let mut words = Vec::new();
        for _ in 0..1 + self.seeded.below(2) {
            words.push(match self.seeded.below(10) {
                0..4 => self.seeded.word(&WORDS).to_string(),
                4..7 => self.foreign_canary(tenant, sub_tenant),
                _ => self.own_canary(tenant, sub_tenant),
            });
        }
        let limit = match self.seeded.below(12) {
            0 => Limit::Colour(self.seeded.word(&COLOURS)),
            1 => Limit::Region(self.seeded.word(&REGIONS)),
            2 => Limit::Mark(self.foreign_canary(tenant, sub_tenant)),
            3 => Limit::Mark(self.own_canary(tenant, sub_tenant)),
            4 => Limit::Ids(vec![self.seeded.word(&SOURCES), self.seeded.word(&SOURCES)]),
            5 => Limit::Level,
            _ => Limit::Nothing,
        };
        let max_chunks = if self.seeded.chance(80) { CHUNKS_MAX } else { 2 };
        Question { tenant, sub_tenant, words, limit, max_chunks }
    }

    fn own_canary(&mut self, tenant: TenantAt, sub_tenant: &str) -> String {
        let scope = self.model.sub_tenant(tenant, sub_tenant);
        let visible = scope.into_iter().flat_map(|scope| scope.visible());
        let own: Vec<String> = visible.flat_map(|(_, version)| version.canaries()).collect();
        let own: Vec<&String> = own.iter().filter(|word| word.len() == 16).collect();
        match own.is_empty() {
            true => self.codes.stray(),
            false => self.seeded.pick(&own).to_string(),
        }
    }

    /// The chunks that the model allows a search to find, as counts per source.
    fn expected(&self, asked: &Question, hits: impl Fn(&Version) -> bool) -> BTreeMap<String, u64> {
        let scope = self.model.sub_tenant(asked.tenant, asked.sub_tenant);
        let visible = scope.into_iter().flat_map(|scope| scope.visible());
        visible
            .filter(|(id, version)| asked.limit.lets_pass(id, version) && hits(version))
            .map(|(id, version)| (id.to_owned(), version.chunks))
            .collect()
    }

    /// Compares chunks with the model: the sources, the number of chunks of each, and every field.
    fn check_chunks(&self, asked: &Question, chunks: &Value, expected: &BTreeMap<String, u64>) {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        let mut uuids = BTreeSet::new();
        for chunk in chunks.as_array().expect("chunks") {
            let id = chunk["source_id"].as_str().expect("an id");
            *counts.entry(id.to_owned()).or_default() += 1;
            assert!(uuids.insert(chunk["chunk_uuid"].to_string()), "twice: {chunk}");
            let version = self.version(asked.tenant, asked.sub_tenant, id);
            let version = version.unwrap_or_else(|| panic!("not in this scope: {chunk}"));
            let text = chunk["chunk_content"].as_str().expect("a text");
            assert!(text.contains(version.text_mark()) || version.chunks > 1, "{chunk}");
            assert_eq!(chunk["source_title"], version.title(id), "{chunk}");
            assert_eq!(chunk["tenant_metadata"], json!(version.tenant_metadata), "{chunk}");
            assert_eq!(chunk["document_metadata"], json!(version.document_metadata), "{chunk}");
            assert_eq!(chunk["version"], format!("v{}", version.number), "{chunk}");
            assert_eq!(chunk["source_upload_time"], seconds(version.uploaded_at), "{chunk}");
        }
        let total: u64 = expected.values().sum();
        if total <= asked.max_chunks as u64 {
            assert_eq!(counts, *expected);
            return;
        }
        assert_eq!(counts.values().sum::<u64>(), asked.max_chunks as u64);
        for (id, count) in counts {
            assert!(expected.get(&id).is_some_and(|all| count <= *all), "{id}: {count}");
        }
    }

    /// Sends a search; if a schema rejects its filter, checks that and returns `None`.
    fn search_for(&mut self, key: usize, asked: &Question, ask: &Ask) -> Option<Reply> {
        self.search_with(key, asked, ask, Vec::new())
    }

    /// Sends a search whose response may repeat the words of `echo`.
    fn search_with(
        &mut self,
        key: usize,
        asked: &Question,
        ask: &Ask,
        echo: Vec<String>,
    ) -> Option<Reply> {
        let sees = Sees { echo, ..self.sees(asked.tenant, asked.sub_tenant) };
        let reply = self.ask(key, asked.need(), ask, &sees)?;
        let life = self.model.tenants[asked.tenant].life.as_ref();
        if matches!(asked.limit, Limit::Level) && life.is_some_and(|life| life.has_schema) {
            self.expect_refusal(&reply, 400, "field_not_filterable");
            return None;
        }
        assert_eq!(reply.status, 200, "{}", reply.json());
        Some(reply)
    }

    /// Repeats a search with every canary of other scopes replaced by a word that exists nowhere;
    /// the response must be equal, including scores.
    fn check_twin(&mut self, key: usize, asked: &Question, ask: &Ask, reply: &Reply) {
        let scope = self.model.sub_tenant(asked.tenant, asked.sub_tenant);
        let own = scope.map(|scope| self.model.canaries_of(scope.home)).unwrap_or_default();
        let crate::server::Content::Json(body) = &ask.content else { return };
        let mut text = body.to_string();
        let mut words = asked.words.clone();
        words.extend(if let Limit::Mark(mark) = &asked.limit { Some(mark.clone()) } else { None });
        let before = text.clone();
        for word in words.iter().filter(|word| !WORDS.contains(&word.as_str())) {
            if !own.contains(word) {
                text = text.replace(word.as_str(), &self.codes.stray());
            }
        }
        if text == before {
            return;
        }
        let twin = Ask {
            content: crate::server::Content::Json(serde_json::from_str(&text).expect("JSON")),
            ..ask.clone()
        };
        let Some(other) = self.search_for(key, asked, &twin) else { return };
        let (a, b) = (Self::anonymous(reply.json()), Self::anonymous(other.json()));
        assert_eq!(a, b, "a foreign word is not like a word that is nowhere");
    }

    fn body(&self, asked: &Question, query: &str) -> Value {
        let name = &self.model.tenants[asked.tenant].name;
        let mut body = json!({"tenant_id": name, "sub_tenant_id": asked.sub_tenant});
        body[query] = json!(asked.words.join(" "));
        asked.limit.write(&mut body);
        body
    }

    pub fn retrieve(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Standard, Role::Read);
        self.settle(tenant, sub_tenant);
        let asked = self.question(tenant, sub_tenant);
        let mut body = self.body(&asked, "query");
        body["max_chunks"] = json!(asked.max_chunks);
        let alphas = [json!(0), json!(0.8), json!(1), json!("auto")];
        body["alpha"] = self.seeded.pick(&alphas).clone();
        body["mode"] = json!(*self.seeded.pick(&["fast", "fast", "accurate"]));
        body["recency_bias"] = json!(*self.seeded.pick(&[0.0, 0.5]));
        // The model counts chunks individually.
        body["join_neighbours"] = json!(false);
        let ask = Ask::new("POST", "/search/retrieve").json(body);
        let Some(reply) = self.search_for(key, &asked, &ask) else { return };
        let body = reply.json();
        let alpha = body["metadata"]["alpha"].as_f64().expect("an alpha");
        let by_words = |version: &Version| {
            let title = version.document_metadata.get("title").and_then(Value::as_str);
            asked.words.iter().any(|word| {
                asked.holds(version, word) || title.is_some_and(|title| title.contains(word))
            })
        };
        // A file's name is its title if it has no other; whether the words of the name count is
        // left open here.
        let is_of_file_name = asked.words.iter().any(|word| {
            let scope = self.model.sub_tenant(tenant, sub_tenant);
            scope.is_some_and(|scope| {
                scope.visible().any(|(_, version)| version.filename.contains(word))
            })
        });
        if alpha > 0.0 {
            self.check_chunks(&asked, &body["chunks"], &self.expected(&asked, |_| true));
        } else if !is_of_file_name {
            self.check_chunks(&asked, &body["chunks"], &self.expected(&asked, by_words));
        }
        self.check_twin(key, &asked, &ask, &reply);
    }

    pub fn full_text(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Standard, Role::Read);
        self.settle(tenant, sub_tenant);
        let asked = self.question(tenant, sub_tenant);
        let mut body = self.body(&asked, "query");
        body["max_chunks"] = json!(asked.max_chunks);
        let is_and = self.seeded.chance(50);
        body["operator"] = json!(if is_and { "and" } else { "or" });
        let ask = Ask::new("POST", "/search/full-text-search").json(body);
        let Some(reply) = self.search_for(key, &asked, &ask) else { return };
        let hits = |version: &Version| {
            let mut words = asked.words.iter();
            match is_and {
                true => words.all(|word| asked.holds(version, word)),
                false => words.any(|word| asked.holds(version, word)),
            }
        };
        self.check_chunks(&asked, &reply.json(), &self.expected(&asked, hits));
        self.check_twin(key, &asked, &ask, &reply);
    }

    pub fn qna(&mut self) {
        let (tenant, sub_tenant, key) = self.target(Mode::Standard, Role::Read);
        self.settle(tenant, sub_tenant);
        let asked = self.question(tenant, sub_tenant);
        let mut body = self.body(&asked, "question");
        body["top_n"] = json!(asked.max_chunks);
        body["stream"] = json!(self.seeded.chance(40));
        body["ai_generation"] = json!(self.seeded.chance(80));
        let session = self.seeded.chance(60).then(|| self.seeded.word(&SESSIONS));
        let plain = Ask::new("POST", "/search/qna").json(body.clone());
        let talk = session.map(|session| (sub_tenant.to_owned(), session.to_owned()));
        body["session_id"] = json!(session);
        let ask = Ask::new("POST", "/search/qna").json(body);
        // The completed query repeats earlier questions of the conversation, all in this scope.
        let mut echo = asked.words.clone();
        let mut is_new = true;
        if let (Some(talk), Some(life)) = (talk, self.model.tenants[tenant].life.as_mut()) {
            let told = life.sessions.entry(talk).or_default();
            is_new = told.is_empty();
            told.extend(asked.words.iter().cloned());
            echo.clone_from(told);
        }
        let Some(reply) = self.search_with(key, &asked, &ask, echo) else { return };
        let body = reply.json();
        assert_eq!(body["session_id"], json!(session), "{body}");
        let expected = self.expected(&asked, |_| true);
        self.check_chunks(&asked, &body["chunks"], &expected);
        let sources = body["sources"].as_array().expect("sources");
        assert!(
            sources.iter().all(|source| {
                source["id"].as_str().is_some_and(|id| expected.contains_key(id))
            })
        );
        if is_new {
            // Turns of this session id in other scopes, and in earlier lives of this scope, have no
            // influence.
            self.check_twin(key, &asked, &plain, &reply);
            let Some(fresh) = self.search_for(key, &asked, &plain) else { return };
            assert_eq!(Self::anonymous(fresh.json()), Self::anonymous(body));
        }
    }
}

/// A time in the format of the API.
pub fn seconds(millis: u64) -> String {
    format!("{}.{:03}", millis / 1000, millis % 1000)
}
