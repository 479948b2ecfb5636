//! Mutations of a PDF: after its tokens are changed, the cross-reference table and the stream
//! lengths are rebuilt, so that readers accept them.

use std::io::Write;
use std::ops::Range;

use crate::chance::Chance;
use crate::mutations::tokens::NUMBERS;
use crate::mutations::{bytes, tokens};

const PIECES: &[&str] = &[
    "<<",
    ">>",
    "[",
    "]",
    "(",
    ")",
    "null",
    "true",
    "1 0 R",
    "2 0 R",
    "3 0 R",
    "4 0 R",
    "5 0 R",
    "99 0 R",
    "/Type",
    "/Page",
    "/Pages",
    "/Kids [2 0 R]",
    "/Count 2147483647",
    "/Parent 4 0 R",
    "/MediaBox [0 0 1e9 1e9]",
    "/MediaBox [0 0 0 0]",
    "/CropBox [9 9 -9 -9]",
    "/Rotate 90",
    "/Rotate -450",
    "/UserUnit 1e30",
    "/Contents [5 0 R 5 0 R]",
    "/Resources 4 0 R",
    "/Filter /FlateDecode",
    "/Filter [/ASCIIHexDecode /ASCII85Decode]",
    "/Filter /LZWDecode",
    "/Filter /RunLengthDecode",
    "/DecodeParms <</Predictor 15 /Columns 99999999>>",
    "/Subtype /Type0",
    "/Subtype /Type3",
    "/Subtype /Form",
    "/Encoding /Identity-H",
    "/W [0 [500] 1 99999999 7]",
    "/FirstChar -1",
    "/LastChar 2147483647",
    "/Widths [1e38]",
    "/FontMatrix [0 0 0 0 0 0]",
    "/Differences [0 /A 300 /B]",
    "/ObjStm",
    "/XRef",
    "/Encrypt",
    " BT ",
    " ET ",
    " q ",
    " Q ",
    " cm ",
    " Tm ",
    " Td ",
    " T* ",
    " Tf ",
    " TL ",
    " Tz ",
    " Tr ",
    " Ts ",
    " Tc ",
    " Tw ",
    " Tj ",
    " TJ ",
    " ' ",
    " \" ",
    " Do ",
    " BI /W 1 ID x EI ",
    " BDC ",
    " EMC ",
    " 0 0 0 0 0 0 cm ",
    " 1e30 0 0 1e30 0 0 cm ",
    " NaN ",
    "<FEFF0041>",
    "<>",
    " /F1 1e9 Tf ",
    " /F1 0 Tf ",
    " /F1 -5 Tf ",
    "beginbfrange <00> <FFFF> <0000> endbfrange",
    "begincodespacerange <00> <FFFFFFFF> endcodespacerange",
    "%",
    "endstream",
    "endobj",
    "stream\n",
];

/// Applies one mutation.
pub fn mutate(chance: &mut Chance, base: &[u8], other: &[u8]) -> Vec<u8> {
    let mut file = base.to_vec();
    match chance.below(7) {
        0 => return bytes::mutate(chance, base, other),
        1 => file = bytes::mutate(chance, base, other),
        2 => {
            if let Some(place) = tokens::number(chance, base) {
                file.splice(place, chance.pick(NUMBERS).bytes());
            }
        }
        3 | 4 => file = tokens::mutate(chance, base, PIECES),
        _ => {
            let (ours, theirs) = (objects(base), objects(other));
            if ours.is_empty() || theirs.is_empty() {
                return bytes::mutate(chance, base, other);
            }
            let place = ours[chance.below(ours.len())].clone();
            let copy = other[theirs[chance.below(theirs.len())].clone()].to_vec();
            file.splice(place, copy);
        }
    }
    with_table(&file).unwrap_or(file)
}

/// The ranges between `obj` and `endobj`.
fn objects(file: &[u8]) -> Vec<Range<usize>> {
    let mut objects = Vec::new();
    let mut at = 0;
    while let Some(start) = find(file, at, b" obj") {
        let Some(end) = find(file, start, b"endobj") else { break };
        objects.push(start + 4..end);
        at = end;
    }
    objects
}

fn find(bytes: &[u8], from: usize, needle: &[u8]) -> Option<usize> {
    let rest = bytes.get(from..)?;
    rest.windows(needle.len()).position(|window| window == needle).map(|at| from + at)
}

/// Rewrites the objects into a well-formed file; `None` if there are none.
fn with_table(file: &[u8]) -> Option<Vec<u8>> {
    let trailer = find(file, 0, b"trailer")?;
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let mut places = Vec::new();
    for object in objects(&file[..trailer]) {
        let head = &file[..object.start - 4];
        let digits = |bytes: &[u8]| bytes.iter().rev().take_while(|b| b.is_ascii_digit()).count();
        let generation = head.len() - digits(head);
        let before = file[..generation].trim_ascii_end();
        let number = &before[before.len() - digits(before)..];
        let number: usize = std::str::from_utf8(number).ok()?.parse().unwrap_or(0);
        places.push((number.min(500), bytes.len()));
        write!(bytes, "{number} 0 obj").ok()?;
        bytes.extend_from_slice(&with_length(&file[object]));
        bytes.extend_from_slice(b"endobj\n");
    }
    let count = places.iter().map(|(number, _)| number + 1).max()?;
    let table = bytes.len();
    write!(bytes, "xref\n0 {count}\n0000000000 65535 f \n").ok()?;
    for number in 1..count {
        match places.iter().find(|(known, _)| *known == number) {
            Some((_, place)) => writeln!(bytes, "{place:010} 00000 n ").ok()?,
            None => bytes.extend_from_slice(b"0000000000 65535 f \n"),
        }
    }
    let end = find(file, trailer, b"startxref").unwrap_or(file.len());
    bytes.extend_from_slice(&file[trailer..end]);
    write!(bytes, "startxref\n{table}\n%%EOF\n").ok()?;
    Some(bytes)
}

/// Corrects the stream length of an object if it is given as a number.
fn with_length(object: &[u8]) -> Vec<u8> {
    let mut fixed = object.to_vec();
    let stream = find(object, 0, b"stream\n");
    let Some((start, end)) = stream.zip(find(object, 0, b"\nendstream")) else { return fixed };
    let length = end.saturating_sub(start + 7);
    let Some(key) = find(&object[..start], 0, b"/Length ") else { return fixed };
    let digits = object[key + 8..].iter().take_while(|b| b.is_ascii_digit()).count();
    fixed.splice(key + 8..key + 8 + digits, length.to_string().into_bytes());
    fixed
}
