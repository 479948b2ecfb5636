//! A tenant of memories: a write is complete once acknowledged, and otherwise complete or absent.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::dice::Dice;
use super::documents::SUB_TENANTS;
use super::{Counts, Step, Stop, Written, ask, broken, written};
use crate::process::http::Client;

const TENANT: &str = "tenant-memories";
const MEMORIES: u64 = 6;

/// Sub-tenant and memory id.
type Key = (&'static str, String);

/// The journal of one memory: its text, or `None` if it is absent.
#[derive(Debug, Default)]
struct Memory {
    acknowledged: Option<String>,
    later: Vec<Option<String>>,
}

/// A tenant of memories.
pub struct MemoryTenant {
    memories: BTreeMap<Key, Memory>,
    pub counts: Counts,
}

impl MemoryTenant {
    pub fn new() -> Self {
        let ids =
            |sub| (0..MEMORIES).map(move |n| ((sub, format!("memory-{n}")), Memory::default()));
        Self {
            memories: SUB_TENANTS.iter().copied().flat_map(ids).collect(),
            counts: Counts::default(),
        }
    }

    /// Performs a random operation.
    pub fn step(&mut self, client: &Client, dice: &mut Dice) -> Step<()> {
        let at = dice.below(self.memories.len() as u64) as usize;
        let key = self.memories.keys().nth(at).expect("below their number").clone();
        let memory = &self.memories[&key];
        let is_there = memory.later.is_empty() && memory.acknowledged.is_some();
        match dice.below(10) {
            0..6 => self.add(client, dice, &key),
            6..8 if is_there => self.delete(client, &key),
            _ => self.check_one(client, key.0),
        }
    }

    fn finish(&mut self, key: &Key, text: Option<String>, written: Written) -> Step<()> {
        let memory = self.memories.get_mut(key).expect("a known memory");
        match written {
            Written::Acknowledged => {
                *memory = Memory { acknowledged: text, later: Vec::new() };
                self.counts.acknowledged += 1;
            }
            Written::Refused => self.counts.refused += 1,
            Written::Lost(failure) => {
                memory.later.push(text);
                self.counts.lost += 1;
                return Err(Stop::Gone(failure));
            }
        }
        Ok(())
    }

    fn add(&mut self, client: &Client, dice: &mut Dice, key: &Key) -> Step<()> {
        let words = "of many words ".repeat(dice.below(40) as usize);
        let text = format!("memory {} {words}", dice.below(u64::MAX));
        let body = json!({"memory_id": key.1, "user_memory": text});
        let result = client.call("POST", &path("add_user_memory", key.0), &body);
        self.finish(key, Some(text), written("add_user_memory", result)?)
    }

    fn delete(&mut self, client: &Client, key: &Key) -> Step<()> {
        let path = format!("{}&memory_id={}", path("delete_user_memory", key.0), key.1);
        let result = client.call("DELETE", &path, &Value::Null);
        self.finish(key, None, written("delete_user_memory", result)?)
    }

    /// Checks the memories of all sub-tenants.
    pub fn check(&mut self, client: &Client) -> Step<()> {
        SUB_TENANTS.iter().try_for_each(|name| self.check_one(client, name))
    }

    /// Checks that each memory is in one of its possible states and that there are no others; the
    /// observed state becomes the known one.
    fn check_one(&mut self, client: &Client, sub_tenant: &'static str) -> Step<()> {
        self.counts.searches += 1;
        let is_empty = self.memories.values().all(|memory| memory.acknowledged.is_none());
        let reply = client.call("GET", &path("list_user_memories", sub_tenant), &Value::Null);
        let reply = reply.map_err(Stop::Gone)?;
        if reply.status == 404 && is_empty {
            // The tenant is created with its first memory.
            return Ok(());
        }
        let listed = reply.json();
        let Some(memories) = listed["user_memories"].as_array() else {
            return broken(format!("{sub_tenant}: {listed}"));
        };
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut found: BTreeMap<String, String> = memories
            .iter()
            .map(|memory| (text(&memory["memory_id"]), text(&memory["memory_content"])))
            .collect();
        let is_single = found.len() == memories.len();
        let mut own: Vec<(&Key, &mut Memory)> = self.memories.iter_mut().collect();
        own.retain(|((sub, _), _)| *sub == sub_tenant);
        for ((_, id), memory) in &mut own {
            let shown = found.remove(id);
            if memory.acknowledged != shown && !memory.later.contains(&shown) {
                return broken(format!("{sub_tenant} {id}: {memory:?}: found {shown:?}"));
            }
            **memory = Memory { acknowledged: shown, later: Vec::new() };
        }
        if !is_single || !found.is_empty() {
            return broken(format!("{sub_tenant}: nobody added {found:?}: {listed}"));
        }
        let there = own.iter().filter(|(_, memory)| memory.acknowledged.is_some()).count();
        let search = format!("{}&max_count=100", path("retrieve_user_memory", sub_tenant));
        let hits = ask(client, "POST", &search, &json!({"query": "of many words"}))?;
        match hits["user_memories"].as_array().map(Vec::len) == Some(there) {
            true => Ok(()),
            false => broken(format!("{sub_tenant}: {there} are listed, searches find {hits}")),
        }
    }
}

fn path(verb: &str, sub_tenant: &str) -> String {
    format!("/user_memory/{verb}?tenant_id={TENANT}&sub_tenant_id={sub_tenant}")
}
