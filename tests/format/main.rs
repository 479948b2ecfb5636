//! Fixtures of every released format version, and tests that the program still reads them.
//!
//! ```text
//! tests/format/v1/v1/c/<collection>/{m,s,d}   collections: model embeddings, client vectors
//! tests/format/v1/v1/raw/<collection>/        an original
//! tests/format/v1/catalog.sqlite              a catalog
//! tests/format/v1-parts/{lists,one_bit}       sections of lists and T0
//! tests/format/v1-parts/v1/t/                 the descriptor of a tenant
//! tests/format/v1/first-key                   the key that opens it
//! tests/format/v2/                            additions of version 2 to collections and catalog
//! tests/format/v3/                            additions of version 3 to segments
//! tests/format/v4/                            additions of version 4 to segments
//! tests/format/v5/                            additions of version 5 to segments
//! tests/format/v6/                            additions of version 6 to segments
//! tests/format/manifest-2/                    lists of sources in a manifest
//! tests/format/catalog-6/                     format 6 of the catalog; `catalog-7` is format 7
//! ```
//! `version_1` to `version_6`, `manifest_2`, `catalog_6` and `catalog_7` describe them and wrote
//! them. They are not written again when the program changes: a format that changes gets a folder
//! of its own beside this one.
//! To write the first files of a new version:
//! `LODESTONE_WRITE_FIXTURES=1 cargo nextest run --test format write_`.

mod catalog;
mod catalog_6;
mod catalog_7;
mod damage;
mod lists;
mod manifest_2;
mod version_1;
mod version_2;
mod version_3;
mod version_4;
mod version_5;
mod version_6;

use std::path::Path;

/// Whether fixtures are to be written now. Those of a version are written once.
fn are_written_now(fixtures: &Path) -> bool {
    let is_asked = std::env::var_os("LODESTONE_WRITE_FIXTURES").is_some();
    assert!(!is_asked || !fixtures.exists(), "fixtures of a version are written once");
    is_asked
}
