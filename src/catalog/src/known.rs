//! Known sources: the scopes in which a source id was accepted, so that one can be found without a
//! scope and without opening any collection.
//!
//! A source becomes known with the sequence of its acceptance, before it is visible, and is
//! forgotten when it is deleted. A crash in between leaves one that is not there: who finds it
//! looks at its collection anyway. Memories are known in scopes of their own, which no look-up
//! returns; they say that their tenant is not empty.

use rusqlite::types::Value;
use rusqlite::{Connection, params, params_from_iter};

use super::Catalog;
use super::error::Result;
use super::listing::{JobScope, among};
use super::rows::{Statements, blob};
use lodestone_types::{CollectionId, Scope, Sequence, SourceId, SubTenantId, TenantId};

/// Scopes of one source id that a look-up returns at most.
const SCOPES_MAX: i64 = 100;

impl Catalog {
    /// The scopes of documents and vectors within `scope` that know a source, most recently
    /// accepted first, at most 100; with `only`, those of a sub-tenant of that name.
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

    /// Tenants of an earlier release, or of a rebuilt catalog, that may have sources which are not
    /// known yet.
    pub fn tenants_not_known(&self) -> Result<Vec<TenantId>> {
        let sql = "SELECT name FROM tenants WHERE sources_known = 0 AND deleting = 0
            ORDER BY collection";
        self.read(|connection| connection.all(sql, [], |cells| cells.tenant()))
    }

    /// Adds sources of a collection that are visible, with the bytes of their originals where they
    /// are counted. Of those that are known only the bytes may change.
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

    /// Forgets the sources of a sub-tenant, events of them and conversations, in steps.
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

    /// Notes that every source of a collection is known.
    pub fn all_known(&self, collection: CollectionId) -> Result<()> {
        let sql = "UPDATE tenants SET sources_known = 1 WHERE collection = ?1";
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

/// Notes the acceptance of a source inside a transaction.
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

/// Whether the newest acceptance of a source is this one.
pub(super) fn is_newest(
    connection: &Connection,
    collection: CollectionId,
    sub_tenant: &SubTenantId,
    source: &SourceId,
    sequence: Sequence,
) -> Result<bool> {
    let (source, sub_tenant) = (source.as_str(), sub_tenant.as_str());
    connection.any(
        "SELECT 1 FROM known_sources
         WHERE source = ?1 AND collection = ?2 AND sub_tenant = ?3 AND seq = ?4",
        params![source, blob(collection), sub_tenant, sequence.0 as i64],
    )
}

/// Forgets a source inside a transaction; returns whether it was known.
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
