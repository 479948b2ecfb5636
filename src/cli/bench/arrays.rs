//! Arrays in the formats of other tools: .npy (format versions 1 to 3, row-major, little-endian),
//! .fvecs and .ivecs (each row preceded by its length).

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

/// A two-dimensional array; a one-dimensional file becomes rows of one element.
#[derive(Debug)]
pub struct Array<T> {
    /// Elements, row by row.
    pub values: Vec<T>,
    /// Number of elements per row.
    pub width: usize,
}

impl<T> Array<T> {
    /// Iterates over the rows in order.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[T]> {
        self.values.chunks_exact(self.width)
    }
}

/// Reads float32 rows from .npy or .fvecs.
pub fn floats(path: &Path) -> Result<Array<f32>, Box<dyn Error>> {
    let bytes = read(path)?;
    let float = |b: &[u8]| f32::from_le_bytes(b.try_into().expect("four bytes"));
    match extension(path) {
        "fvecs" => vecs(path, &bytes, float),
        _ => {
            let npy = Npy::parse(path, &bytes)?;
            match npy.kind {
                "<f4" => Ok(npy.array(4, float)),
                other => Err(wrong(path, &format!("contains {other}, not float32 (<f4)"))),
            }
        }
    }
}

/// Reads row ids from .npy (int32, int64, uint32) or .ivecs; a negative id means no row.
pub fn ids(path: &Path) -> Result<Array<i64>, Box<dyn Error>> {
    let bytes = read(path)?;
    let int = |b: &[u8]| i64::from(i32::from_le_bytes(b.try_into().expect("four bytes")));
    match extension(path) {
        "ivecs" => vecs(path, &bytes, int),
        _ => {
            let npy = Npy::parse(path, &bytes)?;
            let long = |b: &[u8]| i64::from_le_bytes(b.try_into().expect("eight bytes"));
            let unsigned = |b: &[u8]| i64::from(u32::from_le_bytes(b.try_into().expect("four")));
            match npy.kind {
                "<i4" => Ok(npy.array(4, int)),
                "<u4" => Ok(npy.array(4, unsigned)),
                "<i8" => Ok(npy.array(8, long)),
                other => Err(wrong(path, &format!("contains {other}, not int32 or int64"))),
            }
        }
    }
}

/// Reads one bool per row from .npy.
pub fn flags(path: &Path) -> Result<Vec<bool>, Box<dyn Error>> {
    let bytes = read(path)?;
    let npy = Npy::parse(path, &bytes)?;
    match npy.kind {
        "|b1" | "|u1" => Ok(npy.array(1, |b| b[0] != 0).values),
        other => Err(wrong(path, &format!("contains {other}, not bool (|b1)"))),
    }
}

/// Writes rows of equal width as float32 .npy.
pub fn write_floats(path: &Path, rows: &[Vec<f32>]) -> Result<(), Box<dyn Error>> {
    let width = rows.first().map_or(0, Vec::len);
    let shape = format!("({}, {width})", rows.len());
    let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    // Data begins at a multiple of 64 bytes, after 10 bytes of magic, version and length.
    let padded = (10 + header.len() + 1).next_multiple_of(64) - 11;
    let header = format!("{header:padded$}\n");
    let mut file = BufWriter::new(File::create(path)?);
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&(header.len() as u16).to_le_bytes())?;
    file.write_all(header.as_bytes())?;
    for value in rows.iter().flatten() {
        file.write_all(&value.to_le_bytes())?;
    }
    Ok(file.flush()?)
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

fn read(path: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    std::fs::read(path).map_err(|error| wrong(path, &error.to_string()))
}

fn wrong(path: &Path, problem: &str) -> Box<dyn Error> {
    format!("{}: {problem}", path.display()).into()
}

fn vecs<T>(
    path: &Path,
    bytes: &[u8],
    element: impl Fn(&[u8]) -> T,
) -> Result<Array<T>, Box<dyn Error>> {
    let head = bytes.get(..4).ok_or_else(|| wrong(path, "is empty"))?;
    let width = u32::from_le_bytes(head.try_into().expect("four bytes")) as usize;
    let row_bytes = 4 + width * 4;
    if width == 0 || !bytes.len().is_multiple_of(row_bytes) {
        return Err(wrong(path, "is truncated, or its rows differ in dimension"));
    }
    let mut values = Vec::with_capacity(bytes.len() / 4);
    for row in bytes.chunks_exact(row_bytes) {
        if row[..4] != *head {
            return Err(wrong(path, "its rows differ in dimension"));
        }
        values.extend(row[4..].chunks_exact(4).map(&element));
    }
    Ok(Array { values, width })
}

/// A .npy file: magic, version, header length, header as a Python literal, data.
struct Npy<'a> {
    kind: &'a str,
    width: usize,
    data: &'a [u8],
    count: usize,
}

impl<'a> Npy<'a> {
    fn parse(path: &Path, bytes: &'a [u8]) -> Result<Self, Box<dyn Error>> {
        let parsed = Self::parts(bytes).ok_or_else(|| wrong(path, "is not a .npy file"))?;
        let (header, data) = parsed;
        if header.contains("'fortran_order': True") {
            return Err(wrong(path, "is column-major; save it row-major"));
        }
        let kind = between(header, "'descr': '", "'").ok_or_else(|| wrong(path, "has no type"))?;
        let shape =
            between(header, "'shape': (", ")").ok_or_else(|| wrong(path, "has no shape"))?;
        let sizes: Result<Vec<usize>, _> = shape
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .map(str::parse)
            .collect();
        let sizes = sizes.map_err(|_| wrong(path, "has an unreadable shape"))?;
        let (count, width) = match sizes[..] {
            [rows] => (rows, 1),
            [rows, width] => (rows * width, width),
            _ => return Err(wrong(path, "has more than two dimensions")),
        };
        let element: usize = kind.get(2..).and_then(|size| size.parse().ok()).unwrap_or(0);
        if width == 0 || data.len() != count * element {
            return Err(wrong(path, "is truncated, or has no columns"));
        }
        Ok(Self { kind, width, data, count })
    }

    fn parts(bytes: &'a [u8]) -> Option<(&'a str, &'a [u8])> {
        let rest = bytes.strip_prefix(b"\x93NUMPY")?;
        let (version, rest) = rest.split_at_checked(2)?;
        let length_bytes = if version[0] == 1 { 2 } else { 4 };
        let (length, rest) = rest.split_at_checked(length_bytes)?;
        let length = length.iter().rev().fold(0, |sum, byte| sum << 8 | usize::from(*byte));
        let (header, data) = rest.split_at_checked(length)?;
        Some((std::str::from_utf8(header).ok()?, data))
    }

    fn array<T>(&self, bytes: usize, element: impl Fn(&[u8]) -> T) -> Array<T> {
        let mut values = Vec::with_capacity(self.count);
        values.extend(self.data.chunks_exact(bytes).map(element));
        Array { values, width: self.width }
    }
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = text.split_once(before)?;
    rest.split_once(after).map(|(found, _)| found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(kind: &str, shape: &str, data: &[u8]) -> Vec<u8> {
        let header =
            format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        bytes.extend(data);
        bytes
    }

    fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        (folder, path)
    }

    #[test]
    fn arrays_are_read_as_they_were_written() {
        let data: Vec<u8> =
            [1.0_f32, 2.0, 3.0, -4.0].iter().flat_map(|v| v.to_le_bytes()).collect();
        let (_keep, path) = file("a.npy", &npy("<f4", "2, 2", &data));
        let array = floats(&path).unwrap();
        assert_eq!(
            array.rows().map(<[f32]>::to_vec).collect::<Vec<_>>(),
            [[1.0, 2.0], [3.0, -4.0]]
        );
        let (_keep, path) = file("a.npy", &npy("<i8", "1,", &7_i64.to_le_bytes()));
        assert_eq!((ids(&path).unwrap().values, ids(&path).unwrap().width), (vec![7], 1));
        let (_keep, path) = file("a.npy", &npy("|b1", "3,", &[1, 0, 1]));
        assert_eq!(flags(&path).unwrap(), [true, false, true]);
        let row = [2_i32.to_le_bytes(), 5_i32.to_le_bytes(), (-1_i32).to_le_bytes()].concat();
        let (_keep, path) = file("a.ivecs", &[row.clone(), row].concat());
        assert_eq!(ids(&path).unwrap().values, [5, -1, 5, -1]);
    }

    #[test]
    fn written_rows_are_read_back() {
        let (_keep, path) = file("a.npy", &[]);
        let rows = vec![vec![1.0, -2.5, f32::MIN_POSITIVE], vec![0.0, 3.0, 7.0]];
        write_floats(&path, &rows).unwrap();
        assert_eq!(std::fs::read(&path).unwrap().len() % 64, 24);
        let array = floats(&path).unwrap();
        assert_eq!(array.rows().map(<[f32]>::to_vec).collect::<Vec<_>>(), rows);
    }

    #[test]
    fn what_is_cut_or_of_another_type_is_named() {
        let good = npy("<f4", "2, 1", &[0; 8]);
        for cut in 0..good.len() {
            let (_keep, path) = file("a.npy", &good[..cut]);
            assert!(floats(&path).unwrap_err().to_string().contains("a.npy: "), "{cut}");
        }
        let (_keep, path) = file("a.npy", &npy("<f8", "1, 1", &[0; 8]));
        assert!(floats(&path).unwrap_err().to_string().contains("<f8"));
        let (_keep, path) = file("a.fvecs", &[1, 0, 0, 0, 0]);
        assert!(floats(&path).is_err());
    }
}
