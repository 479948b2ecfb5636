"""The client: all operations, and helpers that combine several of them."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import httpx

from lodestone_client._async.operations import AsyncOperations
from lodestone_client._async.transport import AsyncTransport
from lodestone_client._ids import normalized
from lodestone_client._protocol import FileOutcome, Operation, Options, Settings, folder_files, npy_files
from lodestone_client.errors import InvalidRequestError, NotFoundError, ProcessingFailed, WaitTimeout
from lodestone_client.models import FailedItem, Source

# Recommended number of files in a batch, and the file bytes held in memory for one.
BATCH_FILES = 20
BATCH_BYTES = 64 << 20
# Error codes of batch items that may be sent again.
PASSING_CODES = ("SERVICE_UNAVAILABLE", "RATE_LIMITED")
LOOKED_UP_IDS = 1000
WAIT_SECONDS = 20
# Pause after a look-up that brought nothing new, so that a server that does not hold polls is not flooded.
ROUND_PAUSE_SECONDS = 0.5


class AsyncClient(AsyncOperations):
    """A client for one server. Operations are grouped as in its OpenAPI document.

    `server` and `api_key` default to LODESTONE_SERVER and LODESTONE_API_KEY. `timeout` is in
    seconds; `retries` limits how often a request that is safe to repeat is sent again. `http` is
    an httpx client of your own, with proxies, certificates or event hooks; it is never closed here.
    """

    def __init__(
        self,
        server: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float = 60.0,
        retries: int = 3,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._transport = AsyncTransport(Settings.of(server, api_key, timeout, retries), http)
        super().__init__(self._transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Closes the connections, unless `http` was passed in."""
        if self._transport.owns_http:
            await self._transport.http.aclose()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        options: Options | None = None,
    ) -> httpx.Response:
        """Sends any request, even one for which this version has no method; only GET is retried."""
        query = query or {}
        media: Any = None if body is None else "whole"
        operation = Operation(method, path, query=list(query), media=media, retry=method == "GET")
        return await self._transport.send(operation, {**query, "body": body}, options)

    async def wait(
        self,
        tenant_id: str,
        file_ids: Iterable[str],
        *,
        sub_tenant_id: str | None = None,
        timeout: float | None = None,
        on_source: Callable[[Source], None] | None = None,
    ) -> list[Source]:
        """Waits until sources (or a single one) are processed and returns them; `on_source` gets each as it ends.

        Raises `ProcessingFailed` if a source ended in an error or is gone, `WaitTimeout` after
        `timeout` seconds. Both name ids in Unicode NFC, as the server does.
        """
        end = None if timeout is None else time.monotonic() + timeout
        given = [file_ids] if isinstance(file_ids, str) else file_ids
        pending = list(dict.fromkeys(normalized(file_id) for file_id in given))
        ended: dict[str, Source] = {}
        missing: list[str] = []
        has_polled = False
        while pending:
            answer = await self.listing.sources_by_id(
                tenant_id=tenant_id, sub_tenant_id=sub_tenant_id or "default", source_ids=pending[:LOOKED_UP_IDS]
            )
            missing += answer["not_found"]
            # What is pending is taken from the answer: the server decides which ids are equal.
            still: list[str] = []
            for source in answer["sources"]:
                if source["status"] not in ("success", "errored"):
                    still.append(source["id"])
                    continue
                ended[source["id"]] = source
                if on_source:
                    on_source(source)
            before, pending = len(pending), still + pending[LOOKED_UP_IDS:]
            if not pending:
                break
            if has_polled and len(pending) == before:
                await self._transport.pause(ROUND_PAUSE_SECONDS)
            has_polled = True
            left = WAIT_SECONDS if end is None else end - time.monotonic()
            if left <= 0:
                raise WaitTimeout(pending)
            seconds = min(WAIT_SECONDS, math.ceil(left))
            limit = self._transport.settings.timeout
            try:
                await self.upload.verify_processing(
                    file_id=pending[0],
                    tenant_id=tenant_id,
                    sub_tenant_id=sub_tenant_id or "default",
                    wait=seconds,
                    options=Options(timeout=limit and limit + seconds),
                )
            except NotFoundError:
                continue  # the next look-up tells which sources are gone
        errored = [source for source in ended.values() if source["status"] == "errored"]
        if errored or missing:
            raise ProcessingFailed(errored, missing)
        return list(ended.values())

    async def upload_vectors(
        self,
        rows: Any,
        tenant_id: str,
        file_id: str,
        *,
        sub_tenant_id: str | None = None,
        batch_rows: int = 20_000,
        on_progress: Callable[[int], None] | None = None,
    ) -> list[str]:
        """Uploads a float32 matrix to a tenant for vectors: a numpy array, possibly memory-mapped from a file.

        The batches are named `{file_id}:0`, `{file_id}:1`, ..., and returned; row `i` of a batch gets the id
        `{batch}_{i}`. Running it again replaces the rows. `on_progress` gets the number of rows stored so far.
        """
        path, query = "/upload/upload_embeddings", ["tenant_id", "sub_tenant_id", "file_id"]
        operation = Operation("POST", path, query=query, media="npy", retry=True, keyed=True)
        file_id = normalized(file_id)
        batches: list[str] = []
        for end, body in npy_files(rows, batch_rows):
            batch = f"{file_id}:{len(batches)}"
            scope = {"tenant_id": tenant_id, "sub_tenant_id": sub_tenant_id, "file_id": batch}
            await self._transport.call(operation, {**scope, "body": body}, None)
            batches.append(batch)
            if on_progress:
                on_progress(end)
        return batches

    async def upload_folder(
        self,
        folder: str | Path,
        tenant_id: str,
        *,
        sub_tenant_id: str | None = None,
        pattern: str = "*",
        document_metadata: Mapping[str, Any] | None = None,
        tenant_metadata: Mapping[str, Any] | None = None,
        wait: bool = True,
        timeout: float | None = None,
        on_progress: Callable[[FileOutcome, int, int], None] | None = None,
    ) -> list[FileOutcome]:
        """Uploads the files below a folder and waits until they are processed.

        A file's id is its path, beginning with the folder's name, with `:` in place of `/` and escapes, as
        `lodestone ingest` makes it; so running it again replaces the files. `on_progress` gets each file whose
        state changed, the number of finished files, and the total. A file that fails is reported in the result
        and stops nothing.
        """
        outcomes = [FileOutcome(path, file_id, "waiting") for path, file_id in folder_files(Path(folder), pattern)]
        through: set[Path] = set()

        def report(outcome: FileOutcome, status: str, error_code: str, message: str) -> None:
            outcome.status, outcome.error_code, outcome.message = status, error_code, message
            if status != "queued":
                through.add(outcome.path)
            if on_progress:
                on_progress(outcome, len(through), len(outcomes))

        scope: dict[str, Any] = {
            "tenant_id": tenant_id,
            "sub_tenant_id": sub_tenant_id,
            "document_metadata": document_metadata,
            "tenant_metadata": tenant_metadata,
        }
        rest = outcomes
        attempt = 0
        while rest:
            batch = _batch(rest)
            rest = rest[len(batch) :]
            again = []
            for failed in await self._upload_batch(batch, scope):
                outcome = batch[failed["index"]]
                if failed["error_code"] in PASSING_CODES and attempt < self._transport.settings.retries:
                    again.append(outcome)
                    continue
                report(outcome, "refused", failed["error_code"], failed["message"])
            for outcome in batch:
                if outcome.status == "waiting" and outcome not in again:
                    report(outcome, "queued", "", "")
            rest = again + rest
            attempt = attempt + 1 if again else 0
            if again:
                await self._transport.pause(1.0 + random.uniform(0, 2.0**attempt))
        if wait:
            queued: dict[str, list[FileOutcome]] = {}
            for outcome in outcomes:
                if outcome.status == "queued":
                    queued.setdefault(outcome.file_id, []).append(outcome)

            def on_source(source: Source) -> None:
                for outcome in queued[source["id"]]:
                    report(outcome, source["status"], source["error_code"], source["error_message"])

            try:
                await self.wait(tenant_id, queued, sub_tenant_id=sub_tenant_id, timeout=timeout, on_source=on_source)
            except ProcessingFailed:
                for outcome in outcomes:
                    if outcome.status == "queued":
                        report(outcome, "refused", "NOT_FOUND", "deleted before it was processed")
        return outcomes

    async def _upload_batch(self, batch: list[FileOutcome], scope: Mapping[str, Any]) -> list[FailedItem]:
        """Uploads a batch; returns the refused items. If all are refused, the error answer lists them.

        The accepted files get the ids that the server gave them: it may know a newer version of Unicode than
        Python, and then normalizes other characters too.
        """
        files: Any = [(outcome.path.name, outcome.path.read_bytes()) for outcome in batch]
        try:
            answer = await self.upload.batch_upload(
                files=files, file_ids=[outcome.file_id for outcome in batch], **scope
            )
        except InvalidRequestError as error:
            if "failed" not in error.body:
                raise
            failed: list[FailedItem] = error.body["failed"]
            return failed
        refused = {item["index"] for item in answer["failed"]}
        accepted = [outcome for index, outcome in enumerate(batch) if index not in refused]
        for outcome, item in zip(accepted, answer["uploaded"], strict=True):
            outcome.file_id = item["file_id"]
        return answer["failed"]


def _batch(outcomes: list[FileOutcome]) -> list[FileOutcome]:
    """The longest beginning of the list that fits into one batch; at least one file."""
    size, count = 0, 0
    for outcome in outcomes[:BATCH_FILES]:
        size += outcome.path.stat().st_size
        if count and size > BATCH_BYTES:
            break
        count += 1
    return outcomes[:count]
