"""Translates LlamaIndex's metadata filters into the filter language of the API.

A value counts as empty if it is missing, null or an empty text; an empty list does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.vector_stores.types import FilterCondition, FilterOperator, MetadataFilter, MetadataFilters

from lodestone_client._ids import normalized

NODE_ID = "_node_id"
# Each operator's counterpart in the API, and its negation.
OPERATORS = {
    FilterOperator.EQ: ("$eq", "$ne"),
    FilterOperator.NE: ("$ne", "$eq"),
    FilterOperator.IN: ("$in", "$nin"),
    FilterOperator.NIN: ("$nin", "$in"),
    FilterOperator.ANY: ("$in", "$nin"),
    FilterOperator.CONTAINS: ("$eq", "$ne"),
}
ORDER = {
    FilterOperator.GT: ("$gt", "$lte"),
    FilterOperator.GTE: ("$gte", "$lt"),
    FilterOperator.LT: ("$lt", "$gte"),
    FilterOperator.LTE: ("$lte", "$gt"),
}
# Maximum length of a list in an API filter.
VALUES = 1000


def translated(
    filters: MetadataFilters | None, node_ids: Sequence[str] | None = None, doc_ids: Sequence[str] | None = None
) -> dict[str, Any]:
    """The equivalent filter; if given, also restricted to these node ids and to nodes of these documents."""
    conditions = [_all(filters, False)] if filters and filters.filters else []
    if node_ids is not None:
        conditions.append(_one_of(NODE_ID, [normalized(id_) for id_ in node_ids]))
    if doc_ids is not None:
        conditions.append(_one_of("ref_doc_id", doc_ids))
    return {"$and": conditions} if conditions else {}


def _one_of(name: str, ids: Sequence[str]) -> dict[str, Any]:
    parts = [{name: {"$in": list(ids[start : start + VALUES])}} for start in range(0, len(ids), VALUES)]
    return {"$or": parts or [{name: {"$in": []}}]}


def _all(filters: MetadataFilters, is_negated: bool) -> dict[str, Any]:
    condition = filters.condition or FilterCondition.AND
    # NOT means "none of these"; by De Morgan's laws only the comparisons are negated.
    negates = is_negated != (condition == FilterCondition.NOT)
    is_all = (condition == FilterCondition.AND) != negates
    parts = [
        _all(each, negates) if isinstance(each, MetadataFilters) else _comparison(each, negates)
        for each in filters.filters
    ]
    return {"$and" if is_all else "$or": parts}


def _comparison(each: MetadataFilter, is_negated: bool) -> dict[str, Any]:
    name, value, operator = each.key, each.value, each.operator
    if operator in OPERATORS:
        return {name: {OPERATORS[operator][is_negated]: value}}
    if operator in ORDER:
        chosen = {name: {ORDER[operator][is_negated]: value}}
        return {"$or": [chosen, {name: None}]} if is_negated else chosen
    if operator == FilterOperator.ALL and isinstance(value, list):
        return {"$or" if is_negated else "$and": [{name: {"$ne" if is_negated else "$eq": one}} for one in value]}
    if operator == FilterOperator.IS_EMPTY:
        ways = [{name: {"$ne" if is_negated else "$eq": nothing}} for nothing in (None, "")]
        return {"$and" if is_negated else "$or": ways}
    raise NotImplementedError(f"a filter by {operator.value} is not offered")
