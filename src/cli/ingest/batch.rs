//! Groups items into batches small enough that losing one costs little.

use super::plan::{Item, Origin};

/// Maximum number of files per request, as recommended for the server.
pub const FILES_MAX: usize = 20;
/// Maximum size of a request in bytes; a larger file is sent alone.
pub const BYTES_MAX: u64 = 16 << 20;

/// Items of one request: either files or pages.
pub type Batch = Vec<Item>;

/// Groups items into batches, keeping their order. Files and pages are never mixed, because they go
/// to different operations.
pub fn batches(items: Vec<Item>) -> Vec<Batch> {
    let mut batches: Vec<Batch> = Vec::new();
    let mut bytes = 0;
    let is_page = |item: &Item| matches!(item.origin, Origin::Page(_));
    for item in items {
        match batches.last_mut() {
            Some(batch)
                if batch.len() < FILES_MAX
                    && bytes + item.stamp.bytes <= BYTES_MAX
                    && is_page(&batch[0]) == is_page(&item) =>
            {
                bytes += item.stamp.bytes;
                batch.push(item);
            }
            _ => {
                bytes = item.stamp.bytes;
                batches.push(vec![item]);
            }
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::super::plan::Stamp;
    use super::*;

    fn item(id: usize, bytes: u64) -> Item {
        let stamp = Stamp { bytes, mtime_ns: 0 };
        Item { origin: Origin::File(format!("/{id}").into()), id: id.to_string(), stamp }
    }

    fn shape(sizes: &[u64]) -> Vec<usize> {
        let items = sizes.iter().enumerate().map(|(id, bytes)| item(id, *bytes)).collect();
        batches(items).iter().map(Vec::len).collect()
    }

    #[test]
    fn batches_keep_both_limits_and_every_item() {
        assert_eq!(shape(&[]), [0; 0]);
        assert_eq!(shape(&[0; 45]), [20, 20, 5]);
        assert_eq!(shape(&[BYTES_MAX, 0, 1, BYTES_MAX - 1]), [2, 2]);
        assert_eq!(shape(&[1, BYTES_MAX + 1, 1]), [1, 1, 1]);
        let items: Vec<Item> = (0..50).map(|id| item(id, (id as u64) << 18)).collect();
        assert_eq!(batches(items.clone()).concat(), items);
    }

    #[test]
    fn pages_and_files_go_apart() {
        let page = |id: &str| Item {
            origin: Origin::Page(id.into()),
            id: id.into(),
            stamp: Stamp::default(),
        };
        let items = vec![item(0, 1), page("a"), page("b"), item(1, 1)];
        let shape: Vec<usize> = batches(items).iter().map(Vec::len).collect();
        assert_eq!(shape, [1, 2, 1]);
    }
}
