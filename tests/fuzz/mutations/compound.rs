//! Mutations of a compound file: of its streams, which are written anew, or of its sectors while
//! the header stays unchanged.

use std::io::{Cursor, Read, Write};

use crate::chance::Chance;
use crate::mutations::bytes;

const SECTOR_BYTES: usize = 512;
/// Special sector numbers: free, end of chain, FAT, DIFAT; and small ones.
const SECTORS: [u32; 8] = [0xFFFF_FFFF, 0xFFFF_FFFE, 0xFFFF_FFFD, 0xFFFF_FFFC, 0, 1, 2, 3];

/// Applies one mutation.
pub fn mutate(chance: &mut Chance, base: &[u8], other: &[u8]) -> Vec<u8> {
    if chance.one_in(2)
        && let Some(file) = rewritten(chance, base, other)
    {
        return file;
    }
    let sectors = base.len() / SECTOR_BYTES;
    if sectors < 2 {
        return bytes::mutate(chance, base, other);
    }
    let mut file = base.to_vec();
    let place = |chance: &mut Chance| SECTOR_BYTES * (1 + chance.below(sectors - 1));
    let at = place(chance);
    match chance.below(4) {
        0 => {
            let field = at + 4 * chance.below(SECTOR_BYTES / 4);
            let near = chance.below(sectors) as u32;
            let number = if chance.one_in(2) { near } else { SECTORS[chance.below(8)] };
            file[field..field + 4].copy_from_slice(&number.to_le_bytes());
        }
        1 => {
            let from = place(chance);
            file.copy_within(from..from + SECTOR_BYTES, at);
        }
        2 => {
            let sector = &mut file[at..at + SECTOR_BYTES];
            let changed = bytes::mutate(chance, sector, &[]);
            sector.iter_mut().zip(changed).for_each(|(byte, new)| *byte = new);
        }
        _ => {
            let field = at + chance.below(SECTOR_BYTES);
            file[field] ^= 1 << chance.below(8);
        }
    }
    file
}

/// Rewrites the file with one stream changed, duplicated under another name, or omitted.
fn rewritten(chance: &mut Chance, base: &[u8], other: &[u8]) -> Option<Vec<u8>> {
    let mut old = cfb::CompoundFile::open(Cursor::new(base)).ok()?;
    let entries: Vec<_> =
        old.walk().take(300).map(|e| (e.path().to_owned(), e.is_stream())).collect();
    let streams = entries.iter().filter(|(_, is_stream)| *is_stream).count();
    let which = chance.below(streams);
    let mut new = cfb::CompoundFile::create(Cursor::new(Vec::new())).ok()?;
    let mut number = 0;
    for (path, is_stream) in &entries {
        if !is_stream {
            let _ = new.create_storage(path);
            continue;
        }
        let mut content = Vec::new();
        let stream = old.open_stream(path).ok()?;
        stream.take(64 << 10).read_to_end(&mut content).ok()?;
        number += 1;
        if number - 1 == which {
            for _ in 0..=chance.length(4) {
                content = bytes::mutate(chance, &content, other);
            }
            content.truncate(32 << 10);
            if chance.one_in(10) {
                continue;
            }
        }
        new.create_stream(path).ok()?.write_all(&content).ok()?;
    }
    new.flush().ok()?;
    Some(new.into_inner().into_inner())
}
