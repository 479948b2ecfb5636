//! Tenant descriptors: a file next to each collection from which the tenant is restored if the
//! catalog is lost.
//!
//! `v1/t/<collection>` is a sealed file ([`lodestone_io::sealed`]) with the words "lodestone tenant
//! 1". Its body is JSON with the fields of `Stored`. Readers must reject a broken seal, a
//! collection other than the one in the file's name, and an invalid name, mode or schema.
//!
//! A descriptor is durable before its tenant is, is marked "deleted" before a deletion is
//! acknowledged, and is removed after the last file of the collection. A collection without a
//! descriptor was therefore never acknowledged, except by releases that did not write descriptors.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::error::{CatalogError, Result};
use super::tenant_limits::TenantLimits;
use super::tenants::Tenant;
use lodestone_io::sealed;
use lodestone_io::store::{BlobStore, Key};
use lodestone_types::{CollectionId, TenantId, TenantMode, TenantSchema, Timestamp};

const FIRST_WORDS: &str = "lodestone tenant 1";

#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    collection: Uuid,
    deleted: bool,
    name: String,
    mode: String,
    schema: Option<TenantSchema>,
    created_at: u64,
    /// Like the limits, added later: earlier releases ignore it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    embedding_model: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    limits: TenantLimits,
}

fn is_default(limits: &TenantLimits) -> bool {
    *limits == TenantLimits::default()
}

/// A tenant descriptor. Lacks the dimension of client vectors, which is stored in segments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// The tenant.
    pub tenant: Tenant,
    /// Whether the tenant was deleted; some of its files may remain.
    pub is_deleted: bool,
}

fn directory() -> Key {
    Key::parse("v1/t").expect("a fixed name is a key")
}

/// Key of a tenant's descriptor.
pub fn key(collection: CollectionId) -> Key {
    directory().join(&collection.to_string()).expect("opaque ids make valid keys")
}

/// Writes or replaces a tenant's descriptor. Survives a power cut on return. Two fsyncs, and one
/// more for the very first descriptor.
pub fn write(store: &dyn BlobStore, descriptor: &Descriptor) -> Result<()> {
    Ok(store.put(&key(descriptor.tenant.collection), &encode(descriptor))?)
}

/// Marks a tenant's descriptor as deleted, if there is one. Two fsyncs.
///
/// # Errors
/// Errors of the store; [`CatalogError::BadDescriptor`].
pub fn mark_deleted(store: &dyn BlobStore, collection: CollectionId) -> Result<()> {
    match read(store, collection)? {
        Some(found) if !found.is_deleted => write(store, &Descriptor { is_deleted: true, ..found }),
        _ => Ok(()),
    }
}

/// Removes a descriptor, if there is one. One fsync.
pub fn remove(store: &dyn BlobStore, collection: CollectionId) -> Result<()> {
    Ok(store.delete(&key(collection))?)
}

/// Reads the descriptor of a collection, if there is one.
///
/// # Errors
/// [`CatalogError::BadDescriptor`]; errors of the store.
pub fn read(store: &dyn BlobStore, collection: CollectionId) -> Result<Option<Descriptor>> {
    match store.get(&key(collection)) {
        Ok(bytes) => decode(&bytes, collection).map(Some),
        Err(error) if error.kind() == lodestone_types::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Lists the collections that have a descriptor, ascending.
pub fn collections(store: &dyn BlobStore) -> Result<Vec<CollectionId>> {
    let keys = store.list(&directory())?;
    let ids = keys.iter().filter_map(|key| Uuid::try_parse(key.last()).ok().map(CollectionId));
    Ok(ids.collect())
}

fn encode(descriptor: &Descriptor) -> Vec<u8> {
    let Descriptor { tenant, is_deleted } = descriptor;
    let stored = Stored {
        collection: tenant.collection.0,
        deleted: *is_deleted,
        name: tenant.id.to_string(),
        mode: tenant.mode.as_str().to_owned(),
        schema: tenant.schema.clone(),
        created_at: tenant.created_at.0,
        embedding_model: tenant.embedding_model.clone(),
        limits: tenant.limits,
    };
    let body = serde_json::to_vec(&stored).expect("plain data always prints");
    sealed::seal(FIRST_WORDS, &body)
}

fn decode(bytes: &[u8], collection: CollectionId) -> Result<Descriptor> {
    let bad = |problem: String| CatalogError::BadDescriptor { collection, problem };
    let body = sealed::open(FIRST_WORDS, bytes).map_err(|problem| bad(problem.to_owned()))?;
    let stored: Stored = serde_json::from_slice(body).map_err(|error| bad(error.to_string()))?;
    if stored.collection != collection.0 {
        return Err(bad("it belongs to another collection".to_owned()));
    }
    let mode = TenantMode::from_word(&stored.mode);
    let tenant = Tenant {
        id: TenantId::parse(&stored.name).map_err(|error| bad(error.to_string()))?,
        collection,
        mode: mode.ok_or_else(|| bad(format!("unknown mode {:?}", stored.mode)))?,
        schema: stored.schema,
        dimension: None,
        created_at: Timestamp(stored.created_at),
        embedding_model: stored.embedding_model,
        limits: stored.limits,
    };
    Ok(Descriptor { tenant, is_deleted: stored.deleted })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Descriptor {
        let tenant = Tenant {
            id: TenantId::parse("acme").unwrap(),
            collection: CollectionId(Uuid::from_u128(7)),
            mode: TenantMode::EMBEDDINGS,
            schema: Some(TenantSchema::default()),
            dimension: None,
            created_at: Timestamp(5),
            embedding_model: Some("other".to_owned()),
            limits: TenantLimits { vectors: Some(7), ..TenantLimits::default() },
        };
        Descriptor { tenant, is_deleted: false }
    }

    #[test]
    fn a_descriptor_reads_back_and_any_changed_byte_is_noticed() {
        let descriptor = sample();
        let (bytes, collection) = (encode(&descriptor), descriptor.tenant.collection);
        assert_eq!(decode(&bytes, collection).unwrap(), descriptor);
        assert!(decode(&bytes, CollectionId(Uuid::nil())).is_err());
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 1;
            assert!(decode(&bad, collection).is_err(), "byte {position}");
            assert!(decode(&bytes[..position], collection).is_err());
        }
    }
}
