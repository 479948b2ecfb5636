//! Known sources: the scopes in which a source id was accepted, so that a source can be found
//! without naming a scope and without opening any collection.
//!
//! A source becomes known with the sequence of its acceptance, before it is visible, and is
//! forgotten when it is deleted. A crash in between can leave a known source that does not exist;
//! callers check its collection anyway. Memories are known in scopes of their own, which look-ups
//! never return, but which show that their tenant is not empty.
//!
//! `sources_known` of a tenant:
//!
//! | value | meaning |
//! |---|---|
//! | 0 | it may have visible sources that are not known |
//! | 1 | all are known |
//! | 2 | all are known, and the batch of vectors reserved last may count without being stored |
//! | 3 | all are known, and other batches may, too |

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::Catalog;
use super::error::Result;
use super::listing::{JobScope, among};
use super::rows::{Statements, blob};
use lodestone_types::{CollectionId, Scope, Sequence, SourceId, SubTenantId, TenantId};

/// Maximum number of scopes returned for one source id.
const SCOPES_MAX: i64 = 100;

impl Catalog {
    /// Finds the scopes, other than those of memories, within `scope` that know a source, most
    /// recently accepted first and at most 100; with `only`, just those of the sub-tenant of that
    /// name.
    pub fn scopes_of(
        &self,
        source: &SourceId,
        scope: &JobScope,
        only: Option<&SubTenantId>,
    ) -> Result<Vec<Scope>> {
        let mut found = self.read(|connection| match scope {
            JobScope::Everywhere => find(connection, source, only, None),
            JobScope::Within(places) => {
                let mut found = Vec::new();
                for place in places {
                    found.extend(find(connection, source, only, Some(place))?);
                }
                Ok(found)
            }
        })?;
        found.sort_by_key(|(sequence, _)| std::cmp::Reverse(*sequence));
        found.truncate(SCOPES_MAX as usize);
        Ok(found.into_iter().map(|(_, scope)| scope).collect())
    }

    /// Tenants, from an earlier release or a rebuilt catalog, that may have sources not yet known.
    pub fn tenants_not_known(&self) -> Result<Vec<TenantId>> {
        let sql = "SELECT name FROM tenants WHERE sources_known = 0 AND deleting = 0
            ORDER BY collection";
        self.read(|connection| connection.all(sql, [], |cells| cells.tenant()))
    }

    /// Adds visible sources of a collection, with the bytes of their originals if they count. For
    /// sources already known, only the bytes can change.
    pub fn add_known(
        &self,
        collection: CollectionId,
        sources: Vec<(SubTenantId, SourceId, Sequence, Option<u64>)>,
    ) -> Result<()> {
        self.write(move |connection| {
            for (sub_tenant, source, sequence, bytes) in &sources {
                let (source, sub_tenant) = (source.as_str(), sub_tenant.as_str());
                let (sequence, bytes) = (sequence.0 as i64, bytes.map(|bytes| bytes as i64));
                let values = params![source, blob(collection), sub_tenant, sequence, bytes];
                connection.run(
                    "INSERT INTO known_sources (source, collection, sub_tenant, seq, bytes)
                     VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE
                     SET bytes = max(coalesce(bytes, 0), excluded.bytes)
                     WHERE excluded.bytes IS NOT NULL AND seq <= excluded.seq",
                    values,
                )?;
            }
            Ok(())
        })
    }

    /// Whether a batch of vectors of a collection may count although it is not stored.
    pub fn may_count_unstored(&self, collection: CollectionId) -> Result<bool> {
        let sql = "SELECT 1 FROM tenants WHERE collection = ?1 AND sources_known <> 1";
        self.read(|connection| connection.any(sql, [blob(collection)]))
    }

    /// Records that all batches of vectors that count are stored.
    pub fn all_stored(&self, collection: CollectionId) -> Result<()> {
        let sql =
            "UPDATE tenants SET sources_known = 1 WHERE collection = ?1 AND sources_known > 1";
        self.write(move |connection| connection.run(sql, [blob(collection)]))
    }

    /// Sources of a collection that count, each with the sequence of its acceptance and the bytes
    /// counted.
    pub fn counted(
        &self,
        collection: CollectionId,
    ) -> Result<Vec<(SubTenantId, SourceId, Sequence, u64)>> {
        let sql = "SELECT sub_tenant, source, seq, bytes FROM known_sources
            WHERE collection = ?1 AND bytes IS NOT NULL AND sub_tenant NOT GLOB '!*'";
        self.read(|connection| {
            connection.all(sql, [blob(collection)], |cells| {
                let (sub_tenant, source) = (cells.sub_tenant()?, cells.source()?);
                Ok((sub_tenant, source, Sequence(cells.number()?), cells.number()?))
            })
        })
    }

    /// Removes a sub-tenant's known sources, their events, its conversations and file batches, in
    /// steps.
    pub(super) fn forget_sub_tenant(
        &self,
        collection: CollectionId,
        sub_tenant: &SubTenantId,
    ) -> Result<()> {
        let tables = [
            "known_sources WHERE (source, collection, sub_tenant) IN
                (SELECT source, collection, sub_tenant FROM known_sources
                 WHERE collection = ?1 AND sub_tenant = ?2 LIMIT ?3)",
            "deliveries WHERE id IN
                (SELECT id FROM deliveries WHERE collection = ?1 AND sub_tenant = ?2 LIMIT ?3)",
            "sessions WHERE id IN
                (SELECT id FROM sessions WHERE collection = ?1 AND sub_tenant = ?2 LIMIT ?3)",
            "file_batches WHERE collection = ?1 AND sub_tenant = ?2 AND id IN
                (SELECT id FROM file_batches WHERE collection = ?1 AND sub_tenant = ?2 LIMIT ?3)",
        ];
        let scope =
            [Value::Blob(blob(collection).to_vec()), Value::Text(sub_tenant.as_str().to_owned())];
        tables.iter().try_for_each(|table| self.delete_in_steps(table, &scope))
    }

    /// Records that all sources of a collection are known. A batch may just be being stored.
    pub fn all_known(&self, collection: CollectionId) -> Result<()> {
        let sql = "UPDATE tenants SET sources_known = 3 WHERE collection = ?1";
        self.write(move |connection| connection.run(sql, [blob(collection)]))
    }
}

fn find(
    connection: &Connection,
    source: &SourceId,
    only: Option<&SubTenantId>,
    place: Option<&(CollectionId, Option<Vec<SubTenantId>>)>,
) -> Result<Vec<(u64, Scope)>> {
    let only = only.map_or(Value::Null, |name| Value::Text(name.as_str().into()));
    let mut values = vec![Value::Text(source.as_str().into()), Value::Integer(SCOPES_MAX), only];
    let mut condition = String::new();
    if let Some((collection, sub_tenants)) = place {
        values.push(Value::Blob(blob(*collection).to_vec()));
        let names = among(sub_tenants.as_deref(), "k", &mut values);
        condition = format!("AND k.collection = ?4 {names}");
    }
    let sql = format!(
        "SELECT k.seq, t.name, k.sub_tenant
         FROM known_sources k JOIN tenants t ON t.collection = k.collection
         WHERE k.source = ?1 AND (?3 IS NULL OR k.sub_tenant = ?3) AND t.deleting = 0 {condition}
            AND k.sub_tenant NOT GLOB '!*'
         ORDER BY k.seq DESC LIMIT ?2"
    );
    connection.all(&sql, params_from_iter(values), |cells| {
        let sequence = cells.number()?;
        Ok((sequence, Scope { tenant: cells.tenant()?, sub_tenant: cells.sub_tenant()? }))
    })
}

/// Records the acceptance of a source within a transaction.
pub(super) fn add(
    connection: &Connection,
    collection: CollectionId,
    sub_tenant: &SubTenantId,
    source: &SourceId,
    sequence: Sequence,
) -> Result<()> {
    let (source, sub_tenant) = (source.as_str(), sub_tenant.as_str());
    connection.run(
        "INSERT INTO known_sources (source, collection, sub_tenant, seq) VALUES (?1, ?2, ?3, ?4)
         ON CONFLICT DO UPDATE SET seq = excluded.seq",
        params![source, blob(collection), sub_tenant, sequence.0 as i64],
    )
}

/// Notes within a transaction that a batch of vectors counts that is not stored yet.
pub(super) fn note_unstored(connection: &Connection, collection: CollectionId) -> Result<()> {
    let sql = "UPDATE tenants SET sources_known = min(sources_known + 1, 3)
        WHERE collection = ?1 AND sources_known > 0";
    connection.run(sql, [blob(collection)])
}

/// Notes within a transaction that the batch of vectors reserved last is stored.
pub(super) fn last_stored(connection: &Connection, collection: CollectionId) -> Result<()> {
    let sql = "UPDATE tenants SET sources_known = 1 WHERE collection = ?1 AND sources_known = 2";
    connection.run(sql, [blob(collection)])
}

/// The newest acceptance of a source; `None` if the source is not known.
pub(super) fn newest(
    connection: &Connection,
    collection: CollectionId,
    sub_tenant: &SubTenantId,
    source: &SourceId,
) -> Result<Option<Sequence>> {
    connection.first(
        "SELECT seq FROM known_sources WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3",
        params![source.as_str(), blob(collection), sub_tenant.as_str()],
        |cells| cells.number().map(Sequence),
    )
}

/// Forgets a source within a transaction; returns whether it was known.
pub(super) fn forget(
    connection: &Connection,
    collection: CollectionId,
    sub_tenant: &SubTenantId,
    source: &SourceId,
) -> Result<bool> {
    Ok(connection.changed(
        "DELETE FROM known_sources WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3",
        params![source.as_str(), blob(collection), sub_tenant.as_str()],
    )? > 0)
}
