//! Parses request JSON into a filter's syntax tree.

use serde_json::Value;

use crate::filter::FilterError;
use crate::filter::source::{SOURCE_ID, is_system_key};
use lodestone_types::limits::{
    FILTER_CONDITIONS_MAX, FILTER_DEPTH_MAX, FILTER_LIST_MAX, METADATA_KEY_CHARS_MAX,
};
use lodestone_types::{Comparison, Condition, Filter, FilterMap, FilterValue};
use lodestone_types::{Metadata, SourceId, TenantSchema};

/// The parsed filters of a request, and the keys of the tenant's map that they may read.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestFilter {
    filter: Filter,
    tenant_keys: Vec<TenantKey>,
}

/// A key of the tenant's map, and the request field that names it.
#[derive(Debug, Clone, PartialEq)]
struct TenantKey {
    key: String,
    field: String,
}

impl RequestFilter {
    /// Returns the filter for a tenant with this schema.
    ///
    /// # Errors
    /// [`FilterError::NotFilterable`] naming the key that the schema excludes from filters.
    pub fn for_schema(&self, schema: Option<&TenantSchema>) -> Result<&Filter, FilterError> {
        let is_shut = |named: &&TenantKey| {
            let field = schema.and_then(|schema| schema.field(&named.key));
            field.is_some_and(|field| !field.filterable)
        };
        match self.tenant_keys.iter().find(is_shut) {
            Some(named) => Err(FilterError::NotFilterable { field: named.field.clone() }),
            None => Ok(&self.filter),
        }
    }

    /// Restricts the filter to these sources; see [`sources`].
    pub fn over_sources(self, ids: &[SourceId]) -> Self {
        Self { filter: Filter::And(vec![sources(ids), self.filter]), ..self }
    }
}

impl From<Filter> for RequestFilter {
    fn from(filter: Filter) -> Self {
        Self { filter, tenant_keys: Vec::new() }
    }
}

/// Parses the three filter maps of a request: `tenant_metadata`, `document_metadata`, `metadata`.
/// Absent maps and `{}` do not filter.
///
/// # Errors
/// [`FilterError::Invalid`] naming the field and the rule that is broken there.
pub fn parse(
    tenant: Option<&Metadata>,
    document: Option<&Metadata>,
    metadata: Option<&Metadata>,
) -> Result<RequestFilter, FilterError> {
    let mut parser = Parser::default();
    let mut parts = Vec::new();
    let maps = [
        ("tenant_metadata", FilterMap::Tenant, tenant),
        ("document_metadata", FilterMap::Document, document),
        ("metadata", FilterMap::System, metadata),
    ];
    for (name, map, object) in maps {
        let field = RequestField { map, path: None, name: name.to_owned() };
        if let Some(object) = object {
            parts.push(parser.object(&field, object, 1)?);
        }
    }
    Ok(RequestFilter { filter: all_of(parts), tenant_keys: parser.tenant_keys })
}

/// Parses the `filter` of a request for client vectors, which reads the metadata of each row.
///
/// # Errors
/// As [`parse`].
pub fn parse_for_vectors(filter: Option<&Metadata>) -> Result<Filter, FilterError> {
    let field = RequestField { map: FilterMap::Document, path: None, name: "filter".to_owned() };
    match filter {
        Some(object) => Parser::default().object(&field, object, 1),
        None => Ok(Filter::All),
    }
}

/// The filter of a `context_list`: only these sources. An empty list matches nothing, so that a
/// list from which everything was dropped never turns into "everything". If the client sent an
/// empty list, which means no restriction, do not call this.
pub fn sources(ids: &[SourceId]) -> Filter {
    let values = ids.iter().map(|id| FilterValue::Text(id.as_str().to_owned())).collect();
    let comparison = Comparison::AnyOf(values);
    Filter::Is(Condition { map: FilterMap::System, path: SOURCE_ID.to_owned(), comparison })
}

/// The request field being parsed.
struct RequestField {
    map: FilterMap,
    /// Keys so far, joined by dots.
    path: Option<String>,
    /// Name for error messages, for example `tenant_metadata.year.$gt`.
    name: String,
}

impl RequestField {
    fn key(&self, key: &str) -> Self {
        let path = match &self.path {
            None => key.to_owned(),
            Some(path) => format!("{path}.{key}"),
        };
        Self { map: self.map, path: Some(path), name: self.step(key) }
    }

    fn operator(&self, operator: &str) -> Self {
        Self { map: self.map, path: self.path.clone(), name: self.step(operator) }
    }

    fn item(&self, number: usize) -> Self {
        let name = format!("{}[{number}]", self.name);
        Self { map: self.map, path: self.path.clone(), name }
    }

    /// Keys longer than any stored one are cut, so that an error never echoes a whole request body.
    fn step(&self, key: &str) -> String {
        match key.char_indices().nth(METADATA_KEY_CHARS_MAX) {
            None => format!("{}.{key}", self.name),
            Some((end, _)) => format!("{}.{}...", self.name, &key[..end]),
        }
    }

    fn invalid(&self, problem: impl Into<String>) -> FilterError {
        FilterError::Invalid { field: self.name.clone(), problem: problem.into() }
    }
}

#[derive(Default)]
struct Parser {
    tenant_keys: Vec<TenantKey>,
    conditions: usize,
}

impl Parser {
    /// Parses a map of keys, or the operators on one key, and ANDs its parts.
    fn object(
        &mut self,
        field: &RequestField,
        object: &Metadata,
        depth: usize,
    ) -> Result<Filter, FilterError> {
        if depth > FILTER_DEPTH_MAX {
            let problem = format!("is nested deeper than {FILTER_DEPTH_MAX} levels");
            return Err(field.invalid(problem));
        }
        let is_plain = |key: &String| !key.starts_with('$');
        let is_comparison = |key: &String| !is_plain(key) && key != "$and" && key != "$or";
        if object.keys().any(is_plain) && object.keys().any(is_comparison) {
            return Err(field.invalid("mixes operators and keys"));
        }
        let mut parts = Vec::with_capacity(object.len());
        for (key, value) in object {
            parts.push(match key.as_str() {
                "$and" => all_of(self.objects(&field.operator(key), value, depth)?),
                "$or" => Filter::Or(self.objects(&field.operator(key), value, depth)?),
                key if key.starts_with('$') => self.operator(field, key, value)?,
                key => self.key(field.key(key), key, value, depth)?,
            });
        }
        Ok(all_of(parts))
    }

    /// Parses the filter objects of `$and` and `$or`, which keep map and path.
    fn objects(
        &mut self,
        field: &RequestField,
        value: &Value,
        depth: usize,
    ) -> Result<Vec<Filter>, FilterError> {
        let Value::Array(items) = value else {
            return Err(field.invalid("must be an array of filter objects"));
        };
        let mut parts = Vec::with_capacity(items.len());
        for (number, item) in items.iter().enumerate() {
            let field = field.item(number);
            let Value::Object(object) = item else {
                return Err(field.invalid("must be a filter object"));
            };
            parts.push(self.object(&field, object, depth + 1)?);
        }
        Ok(parts)
    }

    fn key(
        &mut self,
        field: RequestField,
        key: &str,
        value: &Value,
        depth: usize,
    ) -> Result<Filter, FilterError> {
        if key.split('.').any(|part| part.starts_with('$')) {
            return Err(field.invalid("has an operator in its path; it belongs in an object"));
        }
        match value {
            Value::Object(object) => self.object(&field, object, depth + 1),
            Value::Array(items) => {
                let comparison = Comparison::AnyOf(scalars(&field, items)?);
                self.condition(&field, comparison)
            }
            value => {
                let comparison = Comparison::AnyOf(vec![scalar(&field, value)?]);
                self.condition(&field, comparison)
            }
        }
    }

    fn operator(
        &mut self,
        field: &RequestField,
        operator: &str,
        operand: &Value,
    ) -> Result<Filter, FilterError> {
        let at = field.operator(operator);
        let comparison = match operator {
            "$eq" => Comparison::AnyOf(vec![scalar(&at, operand)?]),
            "$ne" => Comparison::NoneOf(vec![scalar(&at, operand)?]),
            "$in" => Comparison::AnyOf(array(&at, operand)?),
            "$nin" => Comparison::NoneOf(array(&at, operand)?),
            "$gt" => Comparison::Greater(ordered(&at, operand)?),
            "$gte" => Comparison::GreaterOrEqual(ordered(&at, operand)?),
            "$lt" => Comparison::Less(ordered(&at, operand)?),
            "$lte" => Comparison::LessOrEqual(ordered(&at, operand)?),
            "$exists" => {
                let problem = || at.invalid("must be true or false");
                Comparison::Exists(operand.as_bool().ok_or_else(problem)?)
            }
            _ => return Err(at.invalid("is not a known operator")),
        };
        self.condition(&at, comparison)
    }

    fn condition(
        &mut self,
        field: &RequestField,
        comparison: Comparison,
    ) -> Result<Filter, FilterError> {
        let Some(path) = &field.path else {
            return Err(field.invalid("needs a key to compare"));
        };
        self.conditions += 1;
        if self.conditions > FILTER_CONDITIONS_MAX {
            let problem = format!("exceeds the limit of {FILTER_CONDITIONS_MAX} conditions");
            return Err(field.invalid(problem));
        }
        if may_be_tenant_key(field.map, path) {
            let key = path.split('.').next().unwrap_or(path).to_owned();
            self.tenant_keys.push(TenantKey { key, field: field.name.clone() });
        }
        Ok(Filter::Is(Condition { map: field.map, path: path.clone(), comparison }))
    }
}

/// Whether a path may refer to a key of the tenant's map. In `metadata` it does for rows whose
/// document lacks the key.
fn may_be_tenant_key(map: FilterMap, path: &str) -> bool {
    match map {
        FilterMap::Tenant => true,
        FilterMap::System => !is_system_key(path),
        FilterMap::Document => false,
    }
}

/// Combines parts with AND, in the simplest form.
fn all_of(parts: Vec<Filter>) -> Filter {
    let mut parts: Vec<Filter> = parts.into_iter().filter(|part| !part.is_all()).collect();
    match parts.len() {
        0 => Filter::All,
        1 => parts.remove(0),
        _ => Filter::And(parts),
    }
}

fn scalar(field: &RequestField, value: &Value) -> Result<FilterValue, FilterError> {
    match value {
        Value::Null => Ok(FilterValue::Null),
        Value::Bool(value) => Ok(FilterValue::Bool(*value)),
        Value::Number(value) => Ok(FilterValue::Number(value.clone())),
        Value::String(value) => Ok(FilterValue::Text(value.clone())),
        Value::Array(_) | Value::Object(_) => {
            Err(field.invalid("must be a text, a number, a boolean or null"))
        }
    }
}

fn scalars(field: &RequestField, values: &[Value]) -> Result<Vec<FilterValue>, FilterError> {
    if values.len() > FILTER_LIST_MAX {
        let problem = format!("has {} values; at most {FILTER_LIST_MAX} are allowed", values.len());
        return Err(field.invalid(problem));
    }
    let items = values.iter().enumerate();
    items.map(|(number, value)| scalar(&field.item(number), value)).collect()
}

fn array(field: &RequestField, value: &Value) -> Result<Vec<FilterValue>, FilterError> {
    match value {
        Value::Array(values) => scalars(field, values),
        _ => Err(field.invalid("must be an array")),
    }
}

fn ordered(field: &RequestField, value: &Value) -> Result<FilterValue, FilterError> {
    match scalar(field, value)? {
        FilterValue::Null => Err(field.invalid("must be a string, a number or a boolean")),
        value => Ok(value),
    }
}
