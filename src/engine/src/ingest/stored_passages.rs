//! Reconstructs the texts of stored rows as models read them.

use crate::ingest::pipeline::title;
use lodestone_catalog::Tenant;
use lodestone_storage::collection::FoundSource;
use lodestone_storage::segment::SegmentError;
use lodestone_text::chunk::{Surroundings, passage};
use lodestone_types::{RowId, SourceRecord};

/// The texts that the model reads for the live rows of a source, as at its upload.
pub(super) fn passages_of(
    tenant: &Tenant,
    found: &FoundSource<'_>,
) -> Result<Vec<String>, SegmentError> {
    let record = found.record()?;
    let schema = tenant.schema.as_ref();
    let searchable = schema.map(|schema| schema.searchable_text(&record.tenant_metadata));
    let (title, searchable) = (title_text(&record), searchable.unwrap_or_default());
    let segment = &found.live.segment;
    let text = |row: u32| {
        let context = segment.context(RowId(row));
        let around = Surroundings { title: &title, searchable: &searchable, context };
        Ok(passage(around, &segment.text(RowId(row))?))
    };
    found.rows().into_iter().map(text).collect()
}

/// The title as it is used in passages: empty if the id merely stands in for a missing title.
fn title_text(record: &SourceRecord) -> String {
    match record.title == record.id.as_str() {
        false => record.title.clone(),
        true => title(&record.detail, &record.document_metadata, &record.filename, None)
            .unwrap_or_default(),
    }
}
