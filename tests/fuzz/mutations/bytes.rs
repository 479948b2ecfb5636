//! Mutations that need no knowledge of the format.

use crate::chance::Chance;
use crate::runner::INPUT_BYTES_MAX;

/// Bytes at boundaries that programs distinguish.
const EDGES: [u8; 16] = [0, 1, 9, 10, 13, 27, 32, 34, 38, 60, 92, 127, 128, 0xC3, 0xED, 0xFF];

/// Applies one mutation.
pub fn mutate(chance: &mut Chance, base: &[u8], other: &[u8]) -> Vec<u8> {
    let mut bytes = base.to_vec();
    let part = chance.part(bytes.len());
    match chance.below(11) {
        0 => {
            let bit = 1 << chance.below(8);
            bytes[part].iter_mut().take(1).for_each(|byte| *byte ^= bit);
        }
        1 => {
            let edge = EDGES[chance.below(EDGES.len())];
            bytes[part].iter_mut().take(1).for_each(|byte| *byte = edge);
        }
        2 => {
            let number = chance.number().to_le_bytes();
            bytes[part].iter_mut().zip(number).for_each(|(byte, new)| *byte = new);
        }
        3 => {
            bytes.drain(part);
        }
        4 => {
            let copy = bytes[part].to_vec();
            let at = chance.below(bytes.len() + 1);
            bytes.splice(at..at, copy);
        }
        5 => {
            let copy = other[chance.part(other.len())].to_vec();
            bytes.splice(part, copy);
        }
        6 => {
            let (head, tail) = (chance.below(bytes.len() + 1), chance.below(other.len() + 1));
            bytes.truncate(head);
            bytes.extend_from_slice(&other[tail..]);
        }
        7 => bytes.truncate(part.start),
        8 => {
            let edge = EDGES[chance.below(EDGES.len())];
            let count = chance.length(300);
            bytes.splice(part.start..part.start, std::iter::repeat_n(edge, count));
        }
        9 => repeat(chance, &mut bytes, part),
        _ => {
            let width = [1, 2, 4, 8][chance.below(4)];
            let number: i64 =
                [-1, 0, 1, i64::MAX, i64::MIN, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF][chance.below(8)];
            let number = number.to_le_bytes();
            let place = part.start..bytes.len().min(part.start + width);
            bytes[place].iter_mut().zip(number).for_each(|(byte, new)| *byte = new);
        }
    }
    bytes
}

/// Repeats a part, occasionally until the input is full.
pub fn repeat(chance: &mut Chance, bytes: &mut Vec<u8>, part: std::ops::Range<usize>) {
    let copy = bytes[part.clone()].to_vec();
    let room = INPUT_BYTES_MAX.saturating_sub(bytes.len()) / copy.len().max(1);
    let times = if chance.one_in(8) { room } else { chance.length(room.min(64)) };
    bytes.splice(part.end..part.end, copy.repeat(times));
}
