//! Operations on personal memories.

use crate::ingest::{AddedMemory, NewMemory};
use crate::query::{self, FoundMemory, MemoryRequest};
use crate::{Engine, EngineError, TenantAccess};
use lodestone_answer::generate::Said;
use lodestone_types::{CancellationToken, Memory, SourceId};

impl Engine {
    /// Adds a memory, visible on return. If there is a generator, it condenses the memory from
    /// `as_said`.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::add_memories`].
    pub fn add_memory(
        &self,
        access: &TenantAccess,
        mut added: NewMemory,
        as_said: Option<&Said<'_>>,
    ) -> Result<AddedMemory, EngineError> {
        added.condensed = as_said.and_then(|said| self.condensed(said)).unwrap_or_default();
        let TenantAccess { tenant, sub_tenant, collection, .. } = access;
        let stored = self.ingest.add_memories(tenant, collection, sub_tenant, vec![added]);
        Ok(self.noticed(access, stored)?.pop().expect("one was added"))
    }

    /// Extracts the statements of a message that are worth keeping and adds them as memories. A
    /// generator does this if there is one, and rules otherwise.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::generate_memories`].
    pub fn generate_memories(
        &self,
        access: &TenantAccess,
        message: &str,
        user_name: Option<&str>,
    ) -> Result<Vec<Memory>, EngineError> {
        let TenantAccess { tenant, sub_tenant, collection, .. } = access;
        let said = Said { text: message, user_name: user_name.unwrap_or(""), instructions: "" };
        let written = self.condensed(&said);
        let generated = self
            .ingest
            .generate_memories(tenant, collection, sub_tenant, message, user_name, written);
        Ok(self.noticed(access, generated)?)
    }

    /// Condenses a text with the generator; `None` if there is none or it fails.
    fn condensed(&self, said: &Said<'_>) -> Option<Vec<String>> {
        let condensed = self.writer()?.condense(said, &CancellationToken::default());
        condensed.inspect_err(|error| tracing::warn!(%error, "condensing a memory failed")).ok()
    }

    /// Deletes a memory. No read sees it once this returns.
    ///
    /// # Errors
    /// See [`crate::ingest::Ingest::delete_memory`].
    pub fn delete_memory(&self, access: &TenantAccess, id: &SourceId) -> Result<(), EngineError> {
        let deleted = self.ingest.delete_memory(&access.collection, &access.sub_tenant, id);
        Ok(self.noticed(access, deleted)?)
    }

    /// The memories of a scope, newest first.
    ///
    /// # Errors
    /// Errors of the disk.
    pub fn memories(&self, access: &TenantAccess) -> Result<Vec<Memory>, EngineError> {
        let now = self.clock.now();
        self.read(access, |snapshot| {
            query::memories(&access.context, snapshot, &access.sub_tenant, now)
        })
    }

    /// Searches memories by meaning and by words, best first.
    ///
    /// # Errors
    /// See [`crate::query::Query::search_memories`].
    pub fn search_memories(
        &self,
        access: &TenantAccess,
        request: &MemoryRequest,
    ) -> Result<Vec<FoundMemory>, EngineError> {
        let now = self.clock.now();
        self.read(access, |snapshot| {
            let TenantAccess { sub_tenant, context, .. } = access;
            self.query.search_memories(context, snapshot, sub_tenant, request, now)
        })
    }
}
