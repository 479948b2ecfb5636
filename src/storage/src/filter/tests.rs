//! Sources and filters for the tests of this module.

mod columns;
mod damage;
mod facets;
mod mismatch;
mod oracle;
mod parse;

use std::ops::Range;

use bytes::Bytes;
use roaring::RoaringBitmap;
use serde_json::{Value, json};

use crate::filter::{Columns, ColumnsBuilder};
use lodestone_types::{Filter, Metadata, Sequence, SourceId, SourceKind, SourceRecord};
use lodestone_types::{SubTenantId, Timestamp};

fn map(value: Value) -> Metadata {
    value.as_object().expect("an object").clone()
}

/// A source whose other fields follow from its number.
fn source(number: u32, tenant: Value, document: Value) -> SourceRecord {
    SourceRecord {
        title: format!("title {}", number % 4),
        description: ["", "a description"][number as usize % 2].to_owned(),
        url: ["", "https://example.org/a"][number as usize / 2 % 2].to_owned(),
        tenant_metadata: map(tenant),
        document_metadata: map(document),
        last_updated_at: Timestamp(1_757_402_409_000 + 1_000 * u64::from(number)),
        ..SourceRecord::new(
            SubTenantId::parse(["default", "b", "c"][number as usize % 3]).unwrap(),
            SourceId::parse(&format!("doc-{number}")).unwrap(),
            [SourceKind::File, SourceKind::Text][number as usize % 2],
            Sequence(1),
            Timestamp(1_757_402_409_727 + u64::from(number)),
        )
    }
}

fn written(sources: &[(SourceRecord, Range<u32>)]) -> Vec<u8> {
    let mut builder = ColumnsBuilder::new();
    for (source, rows) in sources {
        builder.add_source(source, rows.clone());
    }
    builder.finish()
}

fn opened(sources: &[(SourceRecord, Range<u32>)]) -> Columns {
    Columns::open(Bytes::from(written(sources))).expect("written columns open")
}

/// Assigns one row to each source, in order.
fn one_row_each(sources: Vec<SourceRecord>) -> Vec<(SourceRecord, Range<u32>)> {
    sources.into_iter().zip(0..).map(|(source, row)| (source, row..row + 1)).collect()
}

fn rows(columns: &Columns, filter: &Filter) -> Vec<u32> {
    columns.matching(filter, columns.rows()).expect("sound columns").iter().collect()
}

fn bitmap(rows: impl IntoIterator<Item = u32>) -> RoaringBitmap {
    rows.into_iter().collect()
}

/// One source of one row for each document map.
fn documents<const N: usize>(maps: [Value; N]) -> Columns {
    let sources = maps.into_iter().zip(0..);
    opened(&one_row_each(
        sources.map(|(document, number)| source(number, json!({}), document)).collect(),
    ))
}
