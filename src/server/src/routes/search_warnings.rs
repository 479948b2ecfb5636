//! Warnings of searches that found nothing, about the types of values in their filters.

use crate::app::App;
use crate::dto::answers::SearchWarning;
use lodestone_engine::TenantAccess;
use lodestone_engine::query::TypeMismatch;
use lodestone_storage::filter::{RequestFilter, ValueType};
use lodestone_types::{FilterMap, limits};

/// Warnings of one answer.
const WARNINGS_MAX: usize = 8;

/// Keys whose values have another type than those that a filter of documents asks for, where so
/// many results were found: none.
pub(super) fn warnings(
    app: &App,
    access: &TenantAccess,
    filter: &RequestFilter,
    found: usize,
) -> Vec<SearchWarning> {
    let map = |map| match map {
        FilterMap::Tenant => "tenant_metadata",
        FilterMap::Document => "document_metadata",
        FilterMap::System => "metadata",
    };
    told(app, access, filter, found, map)
}

/// The same of a filter that is one member of its request.
pub(super) fn warnings_of(
    app: &App,
    access: &TenantAccess,
    (name, filter): (&'static str, &RequestFilter),
    found: usize,
) -> Vec<SearchWarning> {
    told(app, access, filter, found, |_| name)
}

fn told(
    app: &App,
    access: &TenantAccess,
    filter: &RequestFilter,
    found: usize,
    name: impl Fn(FilterMap) -> &'static str,
) -> Vec<SearchWarning> {
    if found > 0 {
        return Vec::new();
    }
    // An empty answer is right without them.
    let mismatches = app.engine.mismatches(access, filter).unwrap_or_default();
    let told = |TypeMismatch { map, path, given, stored }: TypeMismatch| {
        let field = format!("{}.{}", name(map), shown(&path));
        let [given, stored] = [given, stored]
            .map(|types| types.iter().map(ValueType::to_string).collect::<Vec<_>>().join(" and "));
        let message = format!(
            "{field} is compared with {given} and its values are {stored}: nothing is converted"
        );
        SearchWarning { code: "filter_type_mismatch".to_owned(), field, message }
    };
    mismatches.into_iter().take(WARNINGS_MAX).map(told).collect()
}

/// A path, which may be as long as the filter that names it, up to the length of one key.
fn shown(path: &str) -> String {
    match path.char_indices().nth(limits::METADATA_KEY_CHARS_MAX) {
        None => path.to_owned(),
        Some((end, _)) => format!("{}...", &path[..end]),
    }
}
