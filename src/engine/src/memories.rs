//! Personal memories (API 3.7).

use crate::answer::generate::{Cancel, Said};
use crate::ingest::{AddedMemory, NewMemory};
use crate::query::{self, FoundMemory, MemoryRequest};
use crate::{Engine, EngineError, Place};
use lodestone_types::{Memory, SourceId};

impl Engine {
    /// Adds a memory; visible on return. A generator, where there is one, condenses it `as_said`.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::add_memories`].
    pub fn add_memory(
        &self,
        place: &Place,
        mut added: NewMemory,
        as_said: Option<&Said<'_>>,
    ) -> Result<AddedMemory, EngineError> {
        added.condensed = as_said.and_then(|said| self.condensed(said)).unwrap_or_default();
        let Place { tenant, sub_tenant, collection, .. } = place;
        let stored = self.ingest.add_memories(tenant, collection, sub_tenant, vec![added]);
        Ok(self.noticed(place, stored)?.pop().expect("one was added"))
    }

    /// Adds what a message says that is worth keeping: as a generator tells it, else by rule.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::generate_memories`].
    pub fn generate_memories(
        &self,
        place: &Place,
        message: &str,
        user_name: Option<&str>,
    ) -> Result<Vec<Memory>, EngineError> {
        let Place { tenant, sub_tenant, collection, .. } = place;
        let said = Said { text: message, user_name: user_name.unwrap_or(""), instructions: "" };
        let written = self.condensed(&said);
        let generated = self
            .ingest
            .generate_memories(tenant, collection, sub_tenant, message, user_name, written);
        Ok(self.noticed(place, generated)?)
    }

    /// What a generator makes of a text; `None` without one, and where it fails.
    fn condensed(&self, said: &Said<'_>) -> Option<Vec<String>> {
        let condensed = self.writer()?.condense(said, &Cancel::default());
        condensed.inspect_err(|error| tracing::warn!(%error, "a memory is not condensed")).ok()
    }

    /// Deletes a memory. Nothing reads it any more when this returns.
    ///
    /// # Errors
    /// As [`crate::ingest::Ingest::delete_memory`].
    pub fn delete_memory(&self, place: &Place, id: &SourceId) -> Result<(), EngineError> {
        let deleted = self.ingest.delete_memory(&place.collection, &place.sub_tenant, id);
        Ok(self.noticed(place, deleted)?)
    }

    /// The memories of a scope, newest first.
    ///
    /// # Errors
    /// What the disk says.
    pub fn memories(&self, place: &Place) -> Result<Vec<Memory>, EngineError> {
        let now = self.clock.now();
        self.read(place, |snapshot| query::memories(snapshot, &place.sub_tenant, now))
    }

    /// Looks memories up by meaning and by words, best first.
    ///
    /// # Errors
    /// As [`crate::query::Query::search_memories`].
    pub fn search_memories(
        &self,
        place: &Place,
        request: &MemoryRequest,
    ) -> Result<Vec<FoundMemory>, EngineError> {
        let now = self.clock.now();
        self.read(place, |snapshot| {
            self.query.search_memories(snapshot, &place.sub_tenant, request, now)
        })
    }
}
