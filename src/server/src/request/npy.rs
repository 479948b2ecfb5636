//! Parses vectors from a numpy file (NEP 1): little-endian float32 rows in C order.
//!
//! The header is parsed strictly: nothing is guessed, and the length of the file must match it.

use crate::error::{ApiError, Location};
use crate::request::vectors::Vectors;
use lodestone_types::limits;

const MAGIC: &[u8] = b"\x93NUMPY";
/// Maximum header size in bytes, the limit of numpy's own reader.
const HEADER_BYTES_MAX: usize = 10_000;
const FIELD: &str = "embeddings";

/// Parses the rows of a file.
///
/// # Errors
/// 400 `malformed_body` if it is not such a file, `too_many_items` or `invalid_value` for shapes
/// and values that are not accepted.
pub(super) fn parse(file: &[u8]) -> Result<Vectors, ApiError> {
    let (rows, dimension, data) = open(file).map_err(|problem| {
        ApiError::invalid(
            "malformed_body",
            format!("the body is not a supported npy file: {problem}"),
        )
    })?;
    let refuse =
        |reason, problem: String| Err(ApiError::field(reason, Location::Body, FIELD, &problem));
    if rows > limits::NPY_ROWS_MAX {
        let max = limits::NPY_ROWS_MAX;
        return refuse("too_many_items", format!("has {rows} rows; at most {max} are allowed"));
    }
    if rows == 0 {
        return refuse("invalid_value", "must have at least one row".to_owned());
    }
    if !(1..=limits::VECTOR_DIMENSION_MAX).contains(&dimension) {
        let max = limits::VECTOR_DIMENSION_MAX;
        return refuse(
            "invalid_value",
            format!("has {dimension} dimensions; 1 to {max} are allowed"),
        );
    }
    let expected = rows * dimension * size_of::<f32>();
    if data.len() != expected {
        let problem = format!(
            "the body is not a supported npy file: it has {} bytes of rows, and its shape requires \
             {expected}",
            data.len()
        );
        return Err(ApiError::invalid("malformed_body", problem));
    }
    let number = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().expect("four bytes"));
    let values: Vec<f32> = data.chunks_exact(size_of::<f32>()).map(number).collect();
    if let Some(at) = values.iter().position(|value| !value.is_finite()) {
        return refuse(
            "invalid_value",
            format!("has a value in row {} that is not finite", at / dimension),
        );
    }
    Ok(Vectors { dimension, values, names: Vec::new() })
}

/// Splits a file into row count, width and data.
fn open(file: &[u8]) -> Result<(usize, usize, &[u8]), &'static str> {
    const CUT: &str = "it ends inside its header";
    let rest = file.strip_prefix(MAGIC).ok_or("it has no npy signature")?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or(CUT)?;
    let (length, rest) = match version {
        [1, 0] => {
            let (length, rest) = rest.split_first_chunk().ok_or(CUT)?;
            (usize::from(u16::from_le_bytes(*length)), rest)
        }
        [2 | 3, 0] => {
            let (length, rest) = rest.split_first_chunk().ok_or(CUT)?;
            (u32::from_le_bytes(*length) as usize, rest)
        }
        _ => return Err("its version is not 1.0, 2.0 or 3.0"),
    };
    if length > HEADER_BYTES_MAX {
        return Err("its header is longer than 10,000 bytes");
    }
    let (header, data) = rest.split_at_checked(length).ok_or(CUT)?;
    let header = std::str::from_utf8(header).map_err(|_| "its header is not UTF-8 text")?;
    let (rows, dimension) = shape(header)?;
    Ok((rows, dimension, data))
}

/// Parses the shape from a header, if the rest of the header is as expected.
fn shape(header: &str) -> Result<(usize, usize), &'static str> {
    const BAD: &str = "its header is not a dictionary of descr, fortran_order and shape";
    let mut text = Text(header.strip_suffix('\n').ok_or("its header does not end with a newline")?);
    let (mut descr, mut is_fortran, mut shape) = (None, None, None);
    text.eat("{").ok_or(BAD)?;
    while text.eat("}").is_none() {
        let is_new = match text.quoted().zip(text.eat(":")).ok_or(BAD)?.0 {
            "descr" => descr
                .replace(text.quoted().ok_or("its descr is not a plain numeric type")?)
                .is_none(),
            "fortran_order" => {
                let is_true = text.eat("True").is_some();
                if !is_true {
                    text.eat("False").ok_or(BAD)?;
                }
                is_fortran.replace(is_true).is_none()
            }
            "shape" => {
                shape.replace(text.pair().ok_or("its shape is not two-dimensional")?).is_none()
            }
            _ => return Err(BAD),
        };
        if !is_new {
            return Err("its header has a duplicate key");
        }
        if text.eat(",").is_none() {
            text.eat("}").ok_or(BAD)?;
            break;
        }
    }
    if !text.0.bytes().all(|byte| byte == b' ') {
        return Err(BAD);
    }
    match (descr, is_fortran, shape) {
        (Some("<f4"), Some(false), Some(shape)) => Ok(shape),
        (Some("<f4"), Some(true), Some(_)) => Err("its rows are not in C order"),
        (Some(_), Some(_), Some(_)) => Err("its numbers are not little-endian float32 (<f4)"),
        _ => Err(BAD),
    }
}

/// The unread part of a header.
struct Text<'a>(&'a str);

impl<'a> Text<'a> {
    /// Skips blanks and `token`.
    fn eat(&mut self, token: &str) -> Option<()> {
        self.0 = self.0.trim_start_matches(' ').strip_prefix(token)?;
        Some(())
    }

    fn quoted(&mut self) -> Option<&'a str> {
        self.eat("'")?;
        let (text, rest) = self.0.split_once('\'')?;
        self.0 = rest;
        Some(text)
    }

    fn number(&mut self) -> Option<usize> {
        self.0 = self.0.trim_start_matches(' ');
        let end = self.0.find(|c: char| !c.is_ascii_digit())?;
        let (digits, rest) = self.0.split_at(end);
        self.0 = rest;
        digits.parse::<u32>().ok().map(|number| number as usize)
    }

    /// Parses a tuple of two numbers.
    fn pair(&mut self) -> Option<(usize, usize)> {
        self.eat("(")?;
        let rows = self.number()?;
        self.eat(",")?;
        let columns = self.number()?;
        // A trailing comma is allowed.
        let _ = self.eat(",");
        self.eat(")")?;
        Some((rows, columns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, values: &[f32]) -> Vec<u8> {
        let mut file = MAGIC.to_vec();
        file.extend([1, 0]);
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        file
    }

    const HEADER: &str = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }      \n";
    const VALUES: [f32; 6] = [1.0, -0.0, 3.5, f32::MIN_POSITIVE, f32::MAX, 6.0];

    #[test]
    fn rows_are_read_bit_for_bit() {
        let read = parse(&file(HEADER, &VALUES)).unwrap();
        assert_eq!((read.dimension, read.len()), (3, 2));
        assert!(read.values.iter().zip(VALUES).all(|(a, b)| a.to_bits() == b.to_bits()));
        for version in [2, 3] {
            let mut long = MAGIC.to_vec();
            long.extend([version, 0]);
            long.extend((HEADER.len() as u32).to_le_bytes());
            long.extend(HEADER.as_bytes());
            long.extend(VALUES.iter().flat_map(|value| value.to_le_bytes()));
            assert_eq!(parse(&long).unwrap(), read);
        }
        let other = "{'shape': (2,3),'fortran_order': False,'descr': '<f4'}\n";
        assert_eq!(parse(&file(other, &VALUES)).unwrap(), read, "whatever the order of keys");
    }

    #[test]
    fn what_is_no_such_file_is_refused() {
        let whole = file(HEADER, &VALUES);
        for length in 0..whole.len() {
            assert!(parse(&whole[..length]).is_err(), "{length} bytes");
        }
        let mut longer = whole.clone();
        longer.push(0);
        assert!(parse(&longer).is_err());
        // Every bit before the padding is significant.
        for at in 0..10 + HEADER.trim_end().len() {
            for bit in 0..8 {
                let mut damaged = whole.clone();
                damaged[at] ^= 1 << bit;
                let read = parse(&damaged).ok();
                assert!(read.is_none_or(|read| read.len() == 2), "byte {at}, bit {bit}");
            }
        }
        let replaced = [
            ("<f4", ">f4"),
            ("<f4", "<f8"),
            ("<f4", "|O"),
            ("False", "True"),
            ("False", "0"),
            ("(2, 3)", "(6,)"),
            ("(2, 3)", "(1, 2, 3)"),
            ("(2, 3)", "(3, 2, )x"),
            ("(2, 3)", "(-2, 3)"),
            ("(2, 3)", "(0, 3)"),
            ("(2, 3)", "(2, 0)"),
            ("(2, 3)", "(4294967295, 4294967295)"),
            ("(2, 3)", "(99999999999999999999, 3)"),
            ("'shape'", "'descr'"),
            (", }", ", 'x': 1}"),
            ("}", ""),
            ("{", ""),
            ("\n", ""),
        ];
        for (from, to) in replaced {
            let header = HEADER.replacen(from, to, 1);
            assert!(parse(&file(&header, &VALUES)).is_err(), "{header}");
        }
        for value in [f32::NAN, f32::INFINITY] {
            assert!(parse(&file(HEADER, &[1.0, 2.0, 3.0, 4.0, value, 6.0])).is_err());
        }
    }
}
