//! Fixtures of every released format version, and tests that the current program still reads them.
//!
//! ```text
//! tests/format/v1/v1/c/<collection>/{m,s,d}   collections: model embeddings, client vectors
//! tests/format/v1/v1/raw/<collection>/        an original
//! tests/format/v1/catalog.sqlite              a catalog
//! tests/format/v1-parts/{lists,one_bit}       list and T0 sections
//! tests/format/v1-parts/v1/t/                 a tenant descriptor
//! tests/format/v1/first-key                   the key that gives access
//! tests/format/v2/                            additions of version 2 to collections and catalog
//! tests/format/v3/                            additions of version 3 to segments
//! tests/format/v4/                            additions of version 4 to segments
//! tests/format/v5/                            additions of version 5 to segments
//! tests/format/v6/                            additions of version 6 to segments
//! tests/format/manifest-2/                    source lists in a manifest
//! tests/format/catalog-6/                     catalog format 6; `catalog-7`, `catalog-8`: likewise
//! ```
//! The modules `version_1` to `version_6`, `manifest_2`, `catalog_6` to `catalog_8` describe these
//! fixtures and wrote them. Fixtures are never rewritten when the program changes: a changed format
//! gets a folder of its own next to the existing ones. To write the first fixtures of a new
//! version: `LODESTONE_WRITE_FIXTURES=1 cargo nextest run --test format write_`.

mod catalog;
mod catalog_6;
mod catalog_7;
mod catalog_8;
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

/// Whether fixtures are to be written now. Each version is written only once.
fn are_written_now(fixtures: &Path) -> bool {
    let is_asked = std::env::var_os("LODESTONE_WRITE_FIXTURES").is_some();
    assert!(!is_asked || !fixtures.exists(), "fixtures of a version are written once");
    is_asked
}
