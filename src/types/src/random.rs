//! Ids and secrets as an injectable component.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

use crate::Timestamp;

/// Crockford's base 32 alphabet in lower case; encoded texts sort like the numbers they encode.
const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// A source of random bytes and of ids made from them.
pub trait IdSource: Send + Sync + fmt::Debug {
    /// Fills `bytes` with unpredictable values (predictable in tests).
    fn fill(&self, bytes: &mut [u8]);

    /// Draws a fresh opaque id.
    fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }

    /// Draws a fresh id for the wire: `prefix` followed by 26 base 32 characters that sort by time
    /// (48 bits of milliseconds, then 80 random bits).
    fn wire_id(&self, prefix: &str, now: Timestamp) -> String {
        let mut random = [0; 16];
        self.fill(&mut random[6..]);
        random[..6].copy_from_slice(&now.0.to_be_bytes()[2..]);
        let value = u128::from_be_bytes(random);
        let mut id = String::with_capacity(prefix.len() + 26);
        id.push_str(prefix);
        for digit in (0..26).rev() {
            id.push(BASE32[(value >> (5 * digit)) as usize & 31] as char);
        }
        id
    }
}

/// Extracts the time from the 26 base 32 characters of a [`IdSource::wire_id`]; `None` for any
/// other text.
pub fn wire_id_time(id: &str) -> Option<Timestamp> {
    let digit = |value: u128, byte| {
        Some(value << 5 | BASE32.iter().position(|known| *known == byte)? as u128)
    };
    let value = Some(id).filter(|id| id.len() == 26)?.bytes().try_fold(0, digit)?;
    Some(Timestamp((value >> 80) as u64))
}

/// The operating system's random generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn fill(&self, bytes: &mut [u8]) {
        getrandom::fill(bytes).expect("the operating system provides random bytes");
    }
}

/// A deterministic sequence derived from a seed, for tests and benchmarks.
#[derive(Debug)]
pub struct SeededIds(AtomicU64);

impl SeededIds {
    /// Starts the sequence of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }
}

impl IdSource for SeededIds {
    /// Fills `bytes` by SplitMix64 (Steele, Lea, Flood 2014).
    fn fill(&self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            let mut z = self
                .0
                .fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::SeqCst)
                .wrapping_add(0x9E37_79B9_7F4A_7C15);
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            z ^= z >> 31;
            part.copy_from_slice(&z.to_le_bytes()[..part.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wire_ids_sort_by_time_and_do_not_repeat() {
        let early = RandomIds.wire_id("doc_", Timestamp(1_000));
        let late = RandomIds.wire_id("doc_", Timestamp(2_000));
        assert_eq!(early.len(), 4 + 26);
        assert!(early < late);
        assert_ne!(late, RandomIds.wire_id("doc_", Timestamp(2_000)));
    }

    #[test]
    fn a_seed_repeats_its_sequence() {
        assert_eq!(SeededIds::new(7).uuid(), SeededIds::new(7).uuid());
        let ids = SeededIds::new(7);
        assert_ne!(ids.uuid(), ids.uuid());
    }
}
