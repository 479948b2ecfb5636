//! The dead rows and sources of one segment, as one immutable file.
//!
//! ```text
//! 0   magic "LODEDEAD"
//! 8   u32 version (1), u32 zero
//! 16  collection, 16 bytes    32  segment, 16 bytes
//! 48  u64 bytes of the row bitmap, u64 bytes of the source bitmap
//! 64  row bitmap, source bitmap (the portable roaring format)
//! end u64 XXH3-64 of everything before it
//! ```
//! A reader rejects a wrong magic, version, binding, length or hash.

use roaring::RoaringBitmap;
use xxhash_rust::xxh3::xxh3_64;

use crate::segment::SegmentError;
use crate::segment::format::read_u64;
use lodestone_types::{CollectionId, SegmentId};

const MAGIC: &[u8; 8] = b"LODEDEAD";
const VERSION: u32 = 1;
const HEAD_BYTES: usize = 64;

/// Dead rows and sources of one segment.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TombstoneSet {
    /// Rows that are no longer visible.
    pub rows: RoaringBitmap,
    /// Sources that are no longer visible; all their rows are dead too.
    pub sources: RoaringBitmap,
}

impl TombstoneSet {
    /// Encodes the file. Returns its bytes and its hash, which the manifest stores.
    pub fn encode(&self, collection: CollectionId, segment: SegmentId) -> (Vec<u8>, u64) {
        let (rows, sources) = (self.rows.serialized_size(), self.sources.serialized_size());
        let mut bytes = Vec::with_capacity(HEAD_BYTES + rows + sources + 8);
        bytes.extend(MAGIC);
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend(0u32.to_le_bytes());
        bytes.extend(collection.0.as_bytes());
        bytes.extend(segment.0.as_bytes());
        bytes.extend((rows as u64).to_le_bytes());
        bytes.extend((sources as u64).to_le_bytes());
        for bitmap in [&self.rows, &self.sources] {
            bitmap.serialize_into(&mut bytes).expect("a vector takes every byte");
        }
        let hash = xxh3_64(&bytes);
        bytes.extend(hash.to_le_bytes());
        (bytes, hash)
    }

    /// Decodes a file that must belong to `segment` of `collection` and have the hash `checksum`.
    ///
    /// # Errors
    /// [`SegmentError::Damaged`] naming the broken rule; [`SegmentError::TooNew`] for a later
    /// version.
    pub fn decode(
        bytes: &[u8],
        collection: CollectionId,
        segment: SegmentId,
        checksum: u64,
    ) -> Result<Self, SegmentError> {
        let damaged = |problem: &str| SegmentError::Damaged {
            segment: segment.to_string(),
            problem: format!("tombstones: {problem}"),
        };
        if bytes.len() < HEAD_BYTES + 8 {
            return Err(damaged("the file is cut"));
        }
        let (body, end) = bytes.split_at(bytes.len() - 8);
        let hash = xxh3_64(body);
        if hash.to_le_bytes() != end || hash != checksum {
            return Err(damaged("the file does not match its hash"));
        }
        let needed = u32::from_le_bytes([body[8], body[9], body[10], body[11]]);
        if &body[..8] == MAGIC && needed > VERSION {
            let segment = segment.to_string();
            return Err(SegmentError::TooNew { segment, needed, ours: VERSION });
        }
        let is_ours = &body[..8] == MAGIC
            && body[8..12] == VERSION.to_le_bytes()
            && &body[16..32] == collection.0.as_bytes()
            && &body[32..48] == segment.0.as_bytes();
        if !is_ours {
            return Err(damaged("the file belongs to another segment or version"));
        }
        let (rows, sources) = (read_u64(body, 48) as usize, read_u64(body, 56) as usize);
        if rows.checked_add(sources) != Some(body.len() - HEAD_BYTES) {
            return Err(damaged("the bitmaps have another length"));
        }
        let bitmap = |bytes: &[u8]| {
            RoaringBitmap::deserialize_from(bytes).map_err(|_| damaged("a bitmap is malformed"))
        };
        Ok(Self {
            rows: bitmap(&body[HEAD_BYTES..HEAD_BYTES + rows])?,
            sources: bitmap(&body[HEAD_BYTES + rows..])?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn a_set_survives_and_damage_or_another_binding_does_not() {
        let (collection, segment) =
            (CollectionId(Uuid::from_u128(1)), SegmentId(Uuid::from_u128(2)));
        let set = TombstoneSet {
            rows: RoaringBitmap::from_iter([1, 5, 70_000]),
            sources: RoaringBitmap::from_iter([0]),
        };
        let (bytes, hash) = set.encode(collection, segment);
        assert_eq!(TombstoneSet::decode(&bytes, collection, segment, hash).unwrap(), set);
        let other = SegmentId(Uuid::from_u128(3));
        assert!(TombstoneSet::decode(&bytes, collection, other, hash).is_err());
        assert!(TombstoneSet::decode(&bytes, collection, segment, hash + 1).is_err());
        for position in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[position] ^= 2;
            assert!(TombstoneSet::decode(&bad, collection, segment, hash).is_err());
            assert!(TombstoneSet::decode(&bytes[..position], collection, segment, hash).is_err());
        }
        // Checked even under a hash that fits.
        let (binding, length) = ("belongs to another segment or version", "have another length");
        for (position, rule) in [
            (0, binding),
            (8, "needs reader version"),
            (16, binding),
            (32, binding),
            (48, length),
            (55, length),
            (64, "a bitmap is malformed"),
            (64 + set.rows.serialized_size(), "a bitmap is malformed"),
        ] {
            let mut bad = bytes[..bytes.len() - 8].to_vec();
            bad[position] ^= 0x80;
            let hash = xxh3_64(&bad);
            bad.extend(hash.to_le_bytes());
            let error = TombstoneSet::decode(&bad, collection, segment, hash).unwrap_err();
            assert!(error.to_string().contains(rule), "byte {position}: {error}");
        }
    }
}
