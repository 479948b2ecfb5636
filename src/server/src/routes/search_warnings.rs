//! Search warnings: ignored parameters that filter in other products, and, if nothing was found,
//! unknown keys and mismatched value types in filters.

use crate::app::App;
use crate::dto::search_warning::SearchWarning;
use crate::request::Call;
use crate::request::names::synonym;
use lodestone_engine::TenantAccess;
use lodestone_engine::query::TypeMismatch;
use lodestone_storage::filter::{RequestFilter, ValueType};
use lodestone_types::{FilterMap, limits};

/// Maximum number of warnings in a response.
const WARNINGS_MAX: usize = 8;

/// Returns the warnings of a document search: about ignored parameters and, if `found` is 0, about
/// the conditions of its filter.
pub(super) fn warnings(
    app: &App,
    call: &Call,
    access: &TenantAccess,
    filter: &RequestFilter,
    found: usize,
) -> Vec<SearchWarning> {
    let map = |map| match map {
        FilterMap::Tenant => "tenant_metadata",
        FilterMap::Document => "document_metadata",
        FilterMap::System => "metadata",
    };
    let ignored = call.ignored.iter().filter_map(|name| Some((name, synonym(name)?)));
    let told_of = ignored.map(|(name, meant)| SearchWarning {
        code: "parameter_ignored".to_owned(),
        field: name.clone(),
        message: format!(
            "{name} is not a parameter of this operation and was ignored; did you mean {meant}?"
        ),
    });
    told_of.chain(told(app, access, filter, found, map)).take(WARNINGS_MAX).collect()
}

/// Returns warnings about a filter that is a single member of its request.
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
    // The empty answer is correct even without these warnings.
    let mismatches = app.engine.mismatches(access, filter).unwrap_or_default();
    let told = |TypeMismatch { map, path, given, stored }: TypeMismatch| {
        let field = format!("{}.{}", name(map), shown(&path));
        if stored.is_empty() {
            let message = format!(
                "nothing in this sub-tenant has a value under {field}; check the spelling of the \
                 key (upper and lower case differ)"
            );
            return SearchWarning { code: "filter_unknown_key".to_owned(), field, message };
        }
        let [given, stored] = [given, stored]
            .map(|types| types.iter().map(ValueType::to_string).collect::<Vec<_>>().join(" and "));
        let message = format!(
            "{field} is compared with {given} but its stored values are {stored}; values are not \
             converted"
        );
        SearchWarning { code: "filter_type_mismatch".to_owned(), field, message }
    };
    mismatches.into_iter().take(WARNINGS_MAX).map(told).collect()
}

/// Shortens a path, which may be as long as the filter that contains it, to the length of one key.
fn shown(path: &str) -> String {
    match path.char_indices().nth(limits::METADATA_KEY_CHARS_MAX) {
        None => path.to_owned(),
        Some((end, _)) => format!("{}...", &path[..end]),
    }
}
