"""Requests, retries and event streams: the common parts of the sync and async clients."""

from __future__ import annotations

import json
import os
import random
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import httpx

from lodestone_client._ids import id_of_path
from lodestone_client.errors import APIError, error_of_response

USER_AGENT = "lodestone-client-python/0.1.0"
BACK_OFF_SECONDS = 1.0
BACK_OFF_SECONDS_MAX = 8.0
# If a server asks for a longer wait than this, its error is raised.
RETRY_AFTER_SECONDS_MAX = 60.0
RETRIED_STATUSES = frozenset({408, 429, 502, 503, 504})
# The change may have taken effect; the caller has to find out, for example by verify_processing.
NOT_RETRIED_REASON = "outcome_unknown"
PAGE_ENTRIES = 500
# Limits of the server for a single npy file.
NPY_ROWS = 50_000
NPY_BYTES = 64 << 20


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of a single call, which override the client's."""

    idempotency_key: str | None = None
    """Makes uploads and additions of memories safe to repeat; generated if absent."""
    request_id: str | None = None
    timeout: float | None = None
    retries: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that this version of the client does not know."""
    on_response: Callable[[httpx.Response], None] | None = None
    """Gets the last response, for status and headers: request id, ignored parameters, degradation."""


@dataclass(frozen=True)
class Operation:
    """One operation of the API: how to send its request and read its answer."""

    method: str
    path: str
    query: list[str] = field(default_factory=list)
    media: Literal["json", "form", "urlencoded", "whole", "lines", "npy"] | None = None
    result: Literal["json", "text", "bytes"] = "json"
    retry: bool = False
    keyed: bool = False
    streams: bool = False


@dataclass(frozen=True)
class Event:
    """One event of a streamed answer: `start`, `sources`, `token` (`data["delta"]`) or `done`."""

    id: str
    event: str
    data: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Address, key and defaults of a client."""

    server: str
    api_key: str = field(repr=False)
    timeout: float
    retries: int

    @classmethod
    def of(cls, server: str | None, api_key: str | None, timeout: float, retries: int) -> Settings:
        """Settings that take absent arguments from LODESTONE_SERVER and LODESTONE_API_KEY."""
        server = server or os.environ.get("LODESTONE_SERVER")
        if not server:
            raise ValueError("server is missing: pass it or set LODESTONE_SERVER")
        if not server.startswith(("http://", "https://")):
            raise ValueError(f"server must begin with http:// or https://, not {server}")
        # A key read from a file may end in a line break, which is invalid in a header.
        key = (api_key or os.environ.get("LODESTONE_API_KEY") or "").strip()
        return cls(server=server.rstrip("/"), api_key=key, timeout=timeout, retries=retries)


class Request:
    """One request, and how often it may be sent."""

    def __init__(
        self, settings: Settings, operation: Operation, parameters: Mapping[str, object], options: Options
    ) -> None:
        sent = {name: value for name, value in {**parameters, **options.extra}.items() if value is not None}
        path = operation.path
        for name in [name for name in sent if f"{{{name}}}" in path]:
            path = path.replace(f"{{{name}}}", quote(str(sent.pop(name)), safe=""))
        in_query = [name for name in sent if operation.media is None or name in operation.query]
        query = {name: sent.pop(name) for name in in_query}
        headers = {"user-agent": USER_AGENT, **options.headers}
        if settings.api_key:
            headers["authorization"] = f"Bearer {settings.api_key}"
        if options.request_id:
            headers["x-request-id"] = options.request_id
        retries = settings.retries if options.retries is None else options.retries
        key = options.idempotency_key or (str(uuid.uuid4()) if operation.keyed and retries else None)
        if key:
            headers["idempotency-key"] = key
        # A question in a session adds a turn to it, so it is never repeated.
        self.retries = retries if operation.retry and not (operation.streams and "session_id" in sent) else 0
        self.arguments: dict[str, Any] = {
            "method": operation.method,
            "url": settings.server + path,
            "params": query,
            "headers": headers,
            "timeout": settings.timeout if options.timeout is None else options.timeout,
            **_body(operation.media, sent),
        }
        if operation.media in ("lines", "npy"):
            headers["content-type"] = f"application/x-{'ndjson' if operation.media == 'lines' else 'npy'}"

    def delay(self, attempt: int, error: APIError | None) -> float | None:
        """Seconds until the next attempt, or `None` if there is none; `error` is `None` if no answer came.

        The delay is what the server asks for plus a random share of the back-off, so that clients
        which were refused together do not return together.
        """
        if attempt >= self.retries:
            return None
        back_off = min(BACK_OFF_SECONDS * 2.0**attempt, BACK_OFF_SECONDS_MAX) * random.random()
        if error is None:
            return back_off
        if error.status not in RETRIED_STATUSES or error.reason == NOT_RETRIED_REASON:
            return None
        wanted = error.retry_after or 0.0
        return wanted + back_off if wanted <= RETRY_AFTER_SECONDS_MAX else None


def _body(media: str | None, sent: Mapping[str, Any]) -> dict[str, Any]:
    if media == "json":
        return {"json": sent}
    if media == "whole":
        return {"json": sent["body"]}
    if media == "npy":
        return {"content": sent["body"]}
    if media == "lines":
        # An async transport accepts no sync file, so it is read here; for large archives use `lodestone import`.
        body = sent["body"]
        return {"content": body if isinstance(body, bytes) else body.read()}
    if media == "urlencoded":
        return {"data": {name: _form_text(value) for name, value in sent.items()}}
    if media == "form":
        files = [(name, file) for name in ("file", "files") if name in sent for file in _files(sent[name])]
        return {
            "data": {name: _form_text(value) for name, value in sent.items() if name not in ("file", "files")},
            "files": files,
        }
    return {}


def _files(value: Any) -> list[Any]:
    """Files with names; plain bytes have none. Contents that can be read only once are read here, for retries."""
    files = []
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, str):
            raise TypeError("file is a str: pass pathlib.Path(...) for a path, or (name, content) for a text")
        if isinstance(each, Path):
            each = (each.name, each.read_bytes())
        if isinstance(each, tuple):
            each = (each[0], _repeatable(each[1]), *each[2:])
        elif not isinstance(each, bytes):
            each = (Path(str(getattr(each, "name", "file"))).name, _repeatable(each))
        if isinstance(each, tuple) and isinstance(each[0], str):
            # A file name from the operating system may contain bytes that are not UTF-8.
            each = (each[0].encode("utf-8", "surrogateescape").decode(errors="replace"), *each[1:])
        files.append(("file", each) if isinstance(each, bytes) else each)
    return files


def _repeatable(content: Any) -> Any:
    """The file if it can be rewound, otherwise its content."""
    can_seek = getattr(content, "seekable", bool)()
    return content if can_seek or not hasattr(content, "read") else content.read()


def _form_text(value: Any) -> str:
    """A form field's text; maps and lists become JSON."""
    return value if isinstance(value, str) else json.dumps(value)


def npy_files(rows: Any, rows_max: int) -> Iterator[tuple[int, bytes]]:
    """Yields files in numpy's npy format, of at most `rows_max` rows, each with the number of rows up to its end.

    `rows` is a float32 matrix, such as a numpy array or one that `numpy.load` maps from a file.
    """
    view = memoryview(rows)
    if view.shape is None or view.ndim != 2 or view.format != "f" or not view.c_contiguous:
        raise ValueError("rows must be a matrix of float32 in C order, as of numpy.ascontiguousarray(rows, 'float32')")
    count, width = view.shape
    if not count or not width:
        return
    data = view.cast("B")
    step = max(1, min(rows_max, NPY_ROWS, (NPY_BYTES - 256) // (4 * width)))
    for start in range(0, count, step):
        end = min(count, start + step)
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({end - start}, {width}), }}"
        header += " " * (-(len(header) + 11) % 64) + "\n"
        head = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
        yield end, head + data[4 * width * start : 4 * width * end]


def read_answer(operation: Operation, response: httpx.Response) -> Any:
    """The result of a successful response; one that is not JSON was sent by a proxy."""
    if operation.result == "json":
        try:
            return response.json()
        except ValueError as cause:
            raise error_of_response(response) from cause
    return response.text if operation.result == "text" else response.content


class EventReader:
    """Assembles the events of a stream from pieces of its text."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, text: str) -> Iterator[Event]:
        """Yields the events that are completed by this piece."""
        # Not httpx's line iterator: it also splits at U+2028 and the like, which occur in texts.
        *blocks, self._rest = (self._rest + text).replace("\r\n", "\n").split("\n\n")
        for block in blocks:
            fields: dict[str, str] = {}
            for line in block.split("\n"):
                name, _, value = line.partition(":")
                value = value.removeprefix(" ")
                known = fields.get(name)
                fields[name] = f"{known}\n{value}" if name == "data" and known is not None else value
            if "data" in fields:
                yield Event(fields.get("id", ""), fields.get("event", "message"), json.loads(fields["data"]))


@dataclass
class FileOutcome:
    """The outcome of one file of an uploaded folder.

    `status` is a processing state, or `refused` if the upload itself was.
    """

    path: Path
    file_id: str
    status: str
    error_code: str = ""
    message: str = ""


def folder_files(folder: Path, pattern: str) -> list[tuple[Path, str]]:
    """The files below a folder with the ids that `lodestone ingest` gives them when it gets the folder.

    Hidden files and folders are left out.
    """
    if not folder.is_dir():
        raise NotADirectoryError(f"{folder} is not a folder")
    # "." and ".." use the name of the folder that they refer to; the root has none.
    own = folder.resolve().name if folder.name in ("", "..") else folder.name
    found = []
    for path in sorted(folder.rglob(pattern)):
        parts = path.relative_to(folder).parts
        if path.is_file() and not any(part.startswith(".") for part in parts):
            found.append((path, id_of_path((own, *parts) if own else parts)))
    return found
