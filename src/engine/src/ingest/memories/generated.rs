//! Memories generated from a message: each statement is stored once, however often and by however
//! many clients it is sent.

use std::sync::Arc;

use super::NewMemory;
use crate::ingest::{Ingest, IngestError};
use crate::statements;
use lodestone_catalog::Tenant;
use lodestone_storage::collection::{Collection, CollectionError, Snapshot};
use lodestone_storage::segment::NewSource;
use lodestone_types::{Memory, Metadata, SubTenantId, limits};

impl Ingest {
    /// Adds the statements of a message that are worth keeping, one memory each: `written` by a
    /// generator, or found by rules. A statement that is already remembered in the same words is
    /// not added again, but returned with the others.
    ///
    /// # Errors
    /// See [`Self::add_memories`].
    pub fn generate_memories(
        &self,
        tenant: &Tenant,
        collection: &Arc<Collection>,
        sub_tenant: &SubTenantId,
        message: &str,
        user_name: Option<&str>,
        written: Option<Vec<String>>,
    ) -> Result<Vec<Memory>, IngestError> {
        let by_rule = || statements::worth_keeping(message, user_name);
        let mut statements = written.unwrap_or_else(by_rule);
        statements.truncate(limits::MEMORY_STATEMENTS_MAX);
        let (seen, scope) = (collection.snapshot(), sub_tenant.of_memories());
        let known = self.remembered(&seen, &scope, &statements)?;
        let is_new = |statement: &&String| known.iter().all(|known| known.content != **statement);
        let to_add = statements.iter().filter(is_new).map(|statement| NewMemory {
            id: None,
            content: statement.clone(),
            life_seconds: None,
            condensed: Vec::new(),
            sent: Metadata::from_iter([
                ("user_message".to_owned(), message.into()),
                ("user_name".to_owned(), user_name.into()),
            ]),
        });
        let to_add = to_add.collect();
        self.add_unless_known(tenant, collection, sub_tenant, to_add, Some(&seen))?;
        let mut all = self.remembered(&collection.snapshot(), &scope, &statements)?;
        let place = |memory: &Memory| statements.iter().position(|text| *text == memory.content);
        all.sort_by_key(place);
        Ok(all)
    }

    /// The memories with exactly these words that never expire.
    fn remembered(
        &self,
        snapshot: &Snapshot,
        scope: &SubTenantId,
        statements: &[String],
    ) -> Result<Vec<Memory>, IngestError> {
        let mut found: Vec<Memory> = Vec::new();
        if statements.is_empty() {
            return Ok(found);
        }
        for live in &snapshot.segments {
            for source in live.sources_of(&live.scope(scope).rows) {
                let record = live.segment.record(source).map_err(CollectionError::from)?;
                let Some(memory) = Memory::of(&record) else { continue };
                let is_asked = statements.contains(&memory.content);
                let is_known = found.iter().any(|known| known.content == memory.content);
                if is_asked && !is_known && memory.expires_at.is_none() {
                    found.push(memory);
                }
            }
        }
        Ok(found)
    }

    /// Drops the sources whose words are already remembered, and deletes their originals.
    pub(super) fn leave_out_known(
        &self,
        snapshot: &Snapshot,
        sources: &mut Vec<NewSource>,
    ) -> Result<(), IngestError> {
        let Some(scope) = sources.first().map(|source| source.record.sub_tenant.clone()) else {
            return Ok(());
        };
        let words = |source: &NewSource| Memory::of(&source.record).map(|memory| memory.content);
        let all: Vec<String> = sources.iter().filter_map(words).collect();
        let known = self.remembered(snapshot, &scope, &all)?;
        let is_known = |source: &mut NewSource| {
            words(source).is_some_and(|words| known.iter().any(|known| known.content == words))
        };
        let left_out = sources.extract_if(.., is_known).map(|source| source.record.raw_key);
        self.delete_originals(&left_out.collect::<Vec<String>>());
        Ok(())
    }
}
