"""Ids: the form in which the server compares them, and the ids of files."""

from __future__ import annotations

import hashlib
import os
import unicodedata
from collections.abc import Iterable

ID_CHARS = 256
HASH_CHARS = 32
# A `%` that begins no escape marks a shortened id.
SHORTENED = "%~"
END_CHARS = (ID_CHARS - len(SHORTENED) - HASH_CHARS) // 2


def normalized(id_: str) -> str:
    """An id in Unicode NFC, the form in which the server stores, compares and returns it."""
    return unicodedata.normalize("NFC", id_)


def id_of_path(parts: Iterable[str]) -> str:
    """The id that `lodestone ingest` gives to a file with these path components (src/cli/ingest/ids.rs).

    Characters that ids may not contain, `:` and `%` are escaped as `%XX`. An id that NFC would change is
    escaped to ASCII; one that is too long keeps its beginning and end around a hash.
    """
    # Bytes that are not UTF-8 become one surrogate each.
    components = [os.fsencode(part).decode("utf-8", "surrogateescape") for part in parts]
    plain = _joined(components, False)
    if unicodedata.is_normalized("NFC", plain) and len(plain) <= ID_CHARS:
        return plain
    ascii_ = _joined(components, True)
    if len(ascii_) <= ID_CHARS:
        return ascii_
    digest = hashlib.sha256(ascii_.encode()).hexdigest()[:HASH_CHARS]
    return f"{ascii_[:END_CHARS]}{SHORTENED}{digest}{ascii_[-END_CHARS:]}"


def _joined(components: list[str], is_ascii_only: bool) -> str:
    def kept(char: str) -> str:
        is_refused = unicodedata.category(char) in ("Cc", "Cs") or char in "%:/\\\u2028\u2029"
        return _escaped(char) if is_refused or (is_ascii_only and not char.isascii()) else char

    text = ":".join("".join(map(kept, component)) for component in components)
    # White space at either end is refused; escaping one character suffices.
    head = text[:1] if text[:1].isspace() else ""
    tail = text[-1:] if len(text) > 1 and text[-1:].isspace() else ""
    return _escaped(head) + text[len(head) : len(text) - len(tail)] + _escaped(tail)


def _escaped(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogateescape"))
