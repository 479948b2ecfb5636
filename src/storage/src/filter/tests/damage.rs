//! Goal: damaged bytes lead to an error or a result, never a panic and never rows out of bounds.

use bytes::Bytes;
use proptest::prelude::*;
use serde_json::json;

use super::{oracle, source, written};
use crate::filter::{Columns, FilterError};
use lodestone_types::{ErrorKind, Filter, SubTenantId};

/// Does everything that a reader can do with the bytes.
fn read(bytes: Vec<u8>, filters: &[Filter]) -> Result<(), FilterError> {
    let columns = Columns::open(Bytes::from(bytes))?;
    for filter in filters {
        let rows = columns.matching(filter, columns.rows())?;
        assert!(rows.max().is_none_or(|last| last < columns.rows()));
    }
    for (name, count) in columns.sub_tenants() {
        assert_eq!(columns.sub_tenant(&name).len(), count);
    }
    Ok(())
}

fn is_damage(result: Result<(), FilterError>) -> bool {
    match result {
        Ok(()) => true,
        Err(error) => error.kind() == ErrorKind::Corrupt && error.field().is_none(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn flipped_bytes_never_panic(
        sources in oracle::sources(),
        filters in prop::collection::vec(oracle::filter(), 8),
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..64),
    ) {
        let sound = written(&sources);
        for (index, byte) in &flips {
            let mut bytes = sound.clone();
            let at = index.index(bytes.len());
            bytes[at] = *byte;
            prop_assert!(is_damage(read(bytes, &filters)));
        }
        let mut bytes = sound;
        for (index, byte) in flips {
            let at = index.index(bytes.len());
            bytes[at] = byte;
        }
        prop_assert!(is_damage(read(bytes, &filters)));
    }

    #[test]
    fn cut_or_longer_files_are_rejected(
        sources in oracle::sources(),
        cut in any::<prop::sample::Index>(),
        tail in prop::collection::vec(any::<u8>(), 1..9),
    ) {
        let bytes = written(&sources);
        let cut = cut.index(bytes.len());
        prop_assert!(Columns::open(Bytes::copy_from_slice(&bytes[..cut])).is_err());
        prop_assert!(Columns::open(Bytes::from([bytes, tail].concat())).is_err());
    }

    #[test]
    fn arbitrary_bytes_are_rejected(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(Columns::open(Bytes::from(bytes)).is_err());
    }
}

/// Goal: every byte of the directory may have any value; the small file has each kind of table and
/// entry.
#[test]
fn each_directory_byte_may_be_damaged() {
    let sources = [0, 1, 2].map(|number| source(number, json!({"a": 1}), json!({"b": [true]})));
    let [first, second, third] = sources;
    let sound = written(&[(first, 0..2), (second, 2..3), (third, 3..5)]);
    let mut rejected = 0;
    for at in 0..sound.len().min(2_000) {
        for byte in [0, 1, 0x7f, 0x80, 0xff] {
            let mut bytes = sound.clone();
            bytes[at] = byte;
            rejected += usize::from(read(bytes, &[Filter::All]).is_err());
        }
    }
    assert!(rejected > 1_000, "only {rejected} damaged files were noticed");
}

/// Goal: the ten-byte key of a number, which has the form of a ten-letter name, is refused as a
/// name.
#[test]
fn a_sub_tenant_that_is_no_text_is_refused() {
    let mut record = source(0, json!({}), json!({}));
    record.sub_tenant = SubTenantId::parse("abcdefghij").unwrap();
    let mut bytes = written(&[(record, 0..1)]);
    let text = bytes.windows(11).position(|key| key == b"\x04abcdefghij").unwrap();
    bytes[text] = 3;
    let error = Columns::open(Bytes::from(bytes)).unwrap_err();
    assert!(error.to_string().ends_with("is not the name of a sub-tenant"), "{error}");
}
