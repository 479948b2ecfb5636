//! Mutations of the parts of a ZIP, which is repacked so that sizes and checksums are valid.

use std::io::{Cursor, Read, Write};

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::chance::Chance;
use crate::mutations::{bytes, markup};

/// Maximum size of a part after a mutation in bytes: 64 KiB of ZIP may expand to much more.
const PART_BYTES_MAX: u64 = 256 << 10;

type Part = (String, Vec<u8>);

/// Mutates a part, or the list of parts.
pub fn mutate(chance: &mut Chance, base: &[u8], other: &[u8]) -> Vec<u8> {
    let Some(mut parts) = unpack(base).filter(|parts| !parts.is_empty()) else {
        return bytes::mutate(chance, base, other);
    };
    let which = chance.below(parts.len());
    match chance.below(12) {
        0 => drop(parts.remove(which)),
        1 => {
            let again = chance.below(parts.len());
            parts[which].1 = parts[again].1.clone();
        }
        2 => {
            let again = chance.below(parts.len());
            parts[which].0 = parts[again].0.clone() + if chance.one_in(2) { "" } else { "x" };
        }
        3 => parts[which].1 = bytes::mutate(chance, &parts[which].1, other),
        _ => {
            // The part with the text is the most rewarding.
            let largest = (0..parts.len()).max_by_key(|&at| parts[at].1.len()).unwrap_or(which);
            let which = if chance.one_in(3) { largest } else { which };
            let theirs = unpack(other).unwrap_or_default();
            let same = theirs.iter().find(|(name, _)| *name == parts[which].0);
            let donor = same.map_or(&[][..], |(_, content)| content);
            for _ in 0..=chance.length(4) {
                let next = markup::mutate(chance, &parts[which].1, donor);
                if next.len() as u64 <= PART_BYTES_MAX {
                    parts[which].1 = next;
                }
            }
        }
    }
    pack(&parts, chance.one_in(3)).unwrap_or_else(|| base.to_vec())
}

fn unpack(zip: &[u8]) -> Option<Vec<Part>> {
    let mut archive = ZipArchive::new(Cursor::new(zip)).ok()?;
    let mut parts = Vec::new();
    for at in 0..archive.len().min(100) {
        let entry = archive.by_index(at).ok()?;
        let name = entry.name().ok()?.into_owned();
        let mut content = Vec::new();
        entry.take(PART_BYTES_MAX).read_to_end(&mut content).ok()?;
        parts.push((name, content));
    }
    Some(parts)
}

fn pack(parts: &[Part], is_deflated: bool) -> Option<Vec<u8>> {
    let total: usize = parts.iter().map(|(_, content)| content.len()).sum();
    let is_deflated = is_deflated || total > crate::runner::INPUT_BYTES_MAX / 2;
    let method = if is_deflated { CompressionMethod::Deflated } else { CompressionMethod::Stored };
    let options = SimpleFileOptions::default().compression_method(method);
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, content) in parts {
        // No two parts may have the same name.
        if writer.start_file(name.as_str(), options).is_ok() {
            writer.write_all(content).ok()?;
        }
    }
    Some(writer.finish().ok()?.into_inner())
}
