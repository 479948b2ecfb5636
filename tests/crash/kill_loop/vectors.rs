//! A tenant of client vectors: a write is complete once acknowledged, and otherwise complete or
//! absent.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::dice::Dice;
use super::documents::SUB_TENANTS;
use super::{Counts, Step, Stop, Written, ask, broken, scoped, written};
use crate::process::http::Client;

pub const TENANT: &str = "tenant-vectors";
const BATCHES: u32 = 6;
const ROWS_MAX: u64 = 24;
const DIMENSION: usize = 16;

/// The bits of each row's vector; an empty map means that there is no batch.
type Rows = BTreeMap<u32, Vec<u32>>;

/// The journal of one batch.
#[derive(Debug)]
struct Batch {
    number: u32,
    sub_tenant: usize,
    acknowledged: Rows,
    later: Vec<Rows>,
}

/// A tenant of vectors.
pub struct VectorTenant {
    batches: Vec<Batch>,
    pub counts: Counts,
}

impl VectorTenant {
    pub fn new() -> Self {
        let scopes = (0..SUB_TENANTS.len()).flat_map(|sub| (0..BATCHES).map(move |n| (sub, n)));
        let batch = |(sub_tenant, number)| Batch {
            number,
            sub_tenant,
            acknowledged: Rows::new(),
            later: Vec::new(),
        };
        Self { batches: scopes.map(batch).collect(), counts: Counts::default() }
    }

    /// Performs a random operation.
    pub fn step(&mut self, client: &Client, dice: &mut Dice) -> Step<()> {
        let at = dice.below(self.batches.len() as u64) as usize;
        let is_known = self.batches[at].later.is_empty();
        let is_empty = self.batches[at].acknowledged.is_empty();
        match dice.below(10) {
            0..4 => self.upload(client, dice, at),
            4..6 if is_known && !is_empty => self.update(client, dice, at),
            6..8 if is_known && !is_empty => self.delete_rows(client, dice, at),
            8 => self.delete_batch(client, at),
            _ => self.check_batch(client, at),
        }
    }

    fn finish(&mut self, at: usize, rows: Rows, written: Written) -> Step<()> {
        let batch = &mut self.batches[at];
        match written {
            Written::Acknowledged => {
                batch.acknowledged = rows;
                batch.later.clear();
                self.counts.acknowledged += 1;
            }
            Written::Refused => self.counts.refused += 1,
            Written::Lost(failure) => {
                batch.later.push(rows);
                self.counts.lost += 1;
                return Err(Stop::Gone(failure));
            }
        }
        Ok(())
    }

    fn upload(&mut self, client: &Client, dice: &mut Dice, at: usize) -> Step<()> {
        let count = 1 + dice.below(ROWS_MAX);
        let rows: Rows = (0..count as u32).map(|index| (index, vector(dice))).collect();
        let values: Vec<Vec<f32>> = rows.values().map(|bits| floats(bits)).collect();
        let batch = &self.batches[at];
        let mut body = json!({"file_id": id(batch), "embeddings": values});
        if has_own_ids(batch) {
            body["ids"] = rows.keys().map(|index| chunk(batch, *index)).collect();
            body["metadata"] = rows.keys().map(|index| json!({"row": index})).collect();
        }
        let result = client.call("POST", &self.path("upload_embeddings", at), &body);
        self.finish(at, rows, written("upload_embeddings", result)?)
    }

    fn update(&mut self, client: &Client, dice: &mut Dice, at: usize) -> Step<()> {
        let mut rows = self.batches[at].acknowledged.clone();
        let mut named = serde_json::Map::new();
        for (index, bits) in &mut rows {
            if named.is_empty() || dice.chance(0.3) {
                *bits = vector(dice);
                named.insert(chunk(&self.batches[at], *index), json!(floats(bits)));
            }
        }
        let body = json!({"embeddings": named});
        let result = client.call("PATCH", &self.path("update_embeddings", at), &body);
        self.finish(at, rows, written("update_embeddings", result)?)
    }

    fn delete_rows(&mut self, client: &Client, dice: &mut Dice, at: usize) -> Step<()> {
        let batch = &self.batches[at];
        let mut rows = batch.acknowledged.clone();
        let share = if dice.chance(0.2) { 1.0 } else { 0.3 };
        let first = *rows.keys().next().expect("the caller looked");
        let gone: Vec<u32> =
            rows.keys().copied().filter(|row| *row == first || dice.chance(share)).collect();
        rows.retain(|index, _| !gone.contains(index));
        let named: Vec<String> = gone.iter().map(|index| chunk(batch, *index)).collect();
        let body = scoped(TENANT, SUB_TENANTS[batch.sub_tenant], json!({"chunk_ids": named}));
        let result = client.call("DELETE", "/embeddings/delete", &body);
        if let Ok(reply) = &result
            && reply.status == 200
            && reply.json()["total_deleted"] != gone.len()
        {
            return broken(format!("deleted {named:?}: {}", reply.json()));
        }
        self.finish(at, rows, written("delete embeddings", result)?)
    }

    fn delete_batch(&mut self, client: &Client, at: usize) -> Step<()> {
        let batch = &self.batches[at];
        let body = json!({"source_ids": [id(batch)]});
        let body = scoped(TENANT, SUB_TENANTS[batch.sub_tenant], body);
        let result = client.call("DELETE", "/delete_source", &body);
        self.finish(at, Rows::new(), written("delete batch", result)?)
    }

    fn path(&self, operation: &str, at: usize) -> String {
        let sub_tenant = SUB_TENANTS[self.batches[at].sub_tenant];
        format!("/upload/{operation}?tenant_id={TENANT}&sub_tenant_id={sub_tenant}")
    }

    /// Checks every row of every batch bit by bit, then listings and counts.
    pub fn check(&mut self, client: &Client) -> Step<()> {
        for at in 0..self.batches.len() {
            self.check_batch(client, at)?;
        }
        for (sub, name) in SUB_TENANTS.iter().enumerate() {
            let scope = format!("tenant_id={TENANT}&sub_tenant_id={name}");
            let listed = ask(client, "GET", &format!("/list/sources?{scope}"), &Value::Null)?;
            let stats = ask(client, "GET", &format!("/tenant/stats?{scope}"), &Value::Null)?;
            let sources = listed["sources"].as_array().cloned().unwrap_or_default();
            let text = |source: &Value| source["id"].as_str().unwrap_or_default().to_owned();
            let ids: BTreeSet<String> = sources.iter().map(text).collect();
            let live = self.batches.iter().filter(|b| b.sub_tenant == sub);
            let live: Vec<&Batch> = live.filter(|b| !b.acknowledged.is_empty()).collect();
            let expected: BTreeSet<String> = live.iter().map(|batch| id(batch)).collect();
            let rows: usize = live.iter().map(|batch| batch.acknowledged.len()).sum();
            let is_right = ids == expected && ids.len() == sources.len();
            if !is_right || stats["object_count"] != rows {
                return broken(format!("{name}: {rows} rows in {expected:?}: {listed} {stats}"));
            }
        }
        Ok(())
    }

    /// Checks that a batch is in one of its possible states as a whole; that state becomes the
    /// known one.
    fn check_batch(&mut self, client: &Client, at: usize) -> Step<()> {
        self.counts.searches += 1;
        let batch = &mut self.batches[at];
        let named: Vec<String> = (0..ROWS_MAX as u32).map(|index| chunk(batch, index)).collect();
        let body = scoped(TENANT, SUB_TENANTS[batch.sub_tenant], json!({"chunk_ids": named}));
        let found = ask(client, "POST", "/embeddings/retrieve_by_ids", &body)?;
        let mut rows = Rows::new();
        for (name, values) in found["embeddings"].as_object().expect("a map") {
            let index = name.rsplit_once('_').expect("a chunk id").1;
            let values = values.as_array().expect("a vector").iter();
            let bits = values.map(|value| (value.as_f64().expect("a number") as f32).to_bits());
            rows.insert(index.parse().expect("an index"), bits.collect());
        }
        if batch.acknowledged != rows && !batch.later.contains(&rows) {
            return broken(format!("{batch:?}: found {rows:?}"));
        }
        batch.acknowledged = rows;
        batch.later.clear();
        let Some((index, bits)) = batch.acknowledged.first_key_value() else { return Ok(()) };
        let mut body = json!({"embeddings": floats(bits), "max_chunks": 1});
        if has_own_ids(batch) {
            body["filter"] = json!({"row": index});
        }
        let body = scoped(TENANT, SUB_TENANTS[batch.sub_tenant], body);
        let hits = ask(client, "POST", "/embeddings/search", &body)?;
        match hits["chunk_ids"][0] == chunk(batch, *index) {
            true => Ok(()),
            false => broken(format!("{batch:?}: row {index} finds {hits}")),
        }
    }
}

fn id(batch: &Batch) -> String {
    format!("batch-{}", batch.number)
}

/// Whether the rows have client-supplied ids and metadata.
fn has_own_ids(batch: &Batch) -> bool {
    batch.number % 2 == 1
}

fn chunk(batch: &Batch, index: u32) -> String {
    match has_own_ids(batch) {
        true => format!("own-{}_{index}", batch.number),
        false => format!("{}_{index}", id(batch)),
    }
}

fn vector(dice: &mut Dice) -> Vec<u32> {
    (0..DIMENSION).map(|_| (dice.share() as f32 * 2.0 - 1.0).to_bits()).collect()
}

fn floats(bits: &[u32]) -> Vec<f32> {
    bits.iter().map(|bits| f32::from_bits(*bits)).collect()
}
