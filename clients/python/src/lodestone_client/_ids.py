"""Ids: the form in which the server compares them, and the ids of files."""

from __future__ import annotations

import unicodedata


def normalized(id_: str) -> str:
    """An id in Unicode NFC, the form in which the server stores, compares and returns it."""
    return unicodedata.normalize("NFC", id_)
