"""Translates Haystack's filters into the filter language of the API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from haystack.errors import FilterError

ORDER = {">": "$gt", ">=": "$gte", "<": "$lt", "<=": "$lte"}
OPPOSITE = {"==": "!=", "!=": "==", ">": "<=", ">=": "<", "<": ">=", "<=": ">", "in": "not in", "not in": "in"}
NOTHING: dict[str, Any] = {"$in": []}


def translated(filters: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The equivalent filter on `document_metadata`.

    A stored list matches if one of its members does; a filter on `content` cannot be translated.
    """
    return _node(filters, False) if filters else None


def _node(node: Any, is_negated: bool) -> dict[str, Any]:
    if not isinstance(node, Mapping):
        raise FilterError(f"a filter must be a dict, not {node!r}")
    if "field" in node:
        return _comparison(node, is_negated)
    operator, conditions = _member(node, "operator"), _member(node, "conditions")
    if operator not in ("AND", "OR", "NOT") or not isinstance(conditions, list):
        raise FilterError(f"unknown logical operator or wrong conditions: {node!r}")
    # NOT means "not all of these"; by De Morgan's laws only the comparisons are negated.
    negates = is_negated != (operator == "NOT")
    is_all = (operator != "OR") != negates
    if not conditions:
        return {} if is_all else {"$or": [{"source_id": NOTHING}]}
    return {"$and" if is_all else "$or": [_node(condition, negates) for condition in conditions]}


def _comparison(node: Mapping[str, Any], is_negated: bool) -> dict[str, Any]:
    field, operator, value = node["field"], _member(node, "operator"), _member(node, "value")
    name = "source_id" if field == "id" else field.removeprefix("meta.")
    if name == "content":
        raise FilterError("content cannot be filtered on; search for it")
    if operator not in OPPOSITE:
        raise FilterError(f"unknown operator {operator!r}")
    if operator in ("in", "not in"):
        if not isinstance(value, list):
            raise FilterError(f"{operator} needs a list, not {value!r}")
        chosen = "$in" if (operator == "in") != is_negated else "$nin"
        return {name: {chosen: [_plain(each) for each in value]}}
    if operator in ("==", "!="):
        if isinstance(value, (list, dict)):
            raise FilterError(f"{operator} cannot compare with {value!r}; use in")
        return {name: {"$eq" if (operator == "==") != is_negated else "$ne": _plain(value)}}
    if value is None:  # nothing compares as greater or less
        return {} if is_negated else {name: NOTHING}
    value = _plain(value)
    if isinstance(value, list) or (isinstance(value, str) and not _is_date(value)):
        raise FilterError(f"{operator} cannot compare with {value!r}: only numbers and ISO dates have an order")
    if not is_negated:
        return {name: {ORDER[operator]: value}}
    return {"$or": [{name: {ORDER[OPPOSITE[operator]]: value}}, {name: None}]}


def _member(node: Mapping[str, Any], name: str) -> Any:
    if name not in node:
        raise FilterError(f"{name} is missing in {dict(node)!r}")
    return node[name]


def _plain(value: Any) -> Any:
    return value.isoformat() if isinstance(value, datetime) else value


def _is_date(value: str) -> bool:
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True
