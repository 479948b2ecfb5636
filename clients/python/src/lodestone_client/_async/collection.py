"""Texts of one sub-tenant under ids of your own: the basis of the framework integrations."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lodestone_client._async.client import AsyncClient
from lodestone_client._ids import normalized
from lodestone_client.errors import BatchFailed, InvalidRequestError, NotFoundError
from lodestone_client.models import Chunk, Source

# Limits of the server: items per batch, ids per request, chunks per search.
BATCH_ITEMS = 100
BATCH_CHARACTERS = 16 << 20
IDS = 1000
CHUNKS = 1001


@dataclass
class AsyncCollection:
    """Texts with metadata in one sub-tenant; the server computes the embeddings."""

    client: AsyncClient
    tenant_id: str
    sub_tenant_id: str = "default"
    timeout: float | None = None
    """Seconds to wait until added texts are processed; `None` waits without limit."""
    search_parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters of every `search/retrieve`, such as `mode` or `alpha`."""

    async def add(self, texts: Sequence[str], metadata: Sequence[Mapping[str, Any]], ids: Sequence[str]) -> None:
        """Adds texts, replacing those with the same ids, and waits until they are searchable."""
        items = [
            {"content": text, "file_id": normalized(id_), "document_metadata": dict(data)}
            for text, data, id_ in zip(texts, metadata, ids, strict=True)
        ]
        start = 0
        while start < len(items):
            end, size = start, 0
            while end < min(len(items), start + BATCH_ITEMS):
                size += len(texts[end])
                if end > start and size > BATCH_CHARACTERS:
                    break
                end += 1
            await self._add_batch(items[start:end])
            start = end
        await self.client.wait(self.tenant_id, ids, sub_tenant_id=self.sub_tenant_id, timeout=self.timeout)

    async def _add_batch(self, items: list[Any]) -> None:
        try:
            answer = await self.client.upload.batch_upload_text(
                tenant_id=self.tenant_id, sub_tenant_id=self.sub_tenant_id, items=items
            )
        except InvalidRequestError as error:
            if "failed" not in error.body:
                raise
            raise BatchFailed(error.body["failed"]) from error
        if answer["failed"]:
            raise BatchFailed(answer["failed"])

    async def sources(self, ids: Sequence[str]) -> list[Source]:
        """The sources with these ids, in the same order; unknown ids are left out."""
        found: list[Source] = []
        for start in range(0, len(ids), IDS):
            answer = await self.client.listing.sources_by_id(
                tenant_id=self.tenant_id, sub_tenant_id=self.sub_tenant_id, source_ids=list(ids[start : start + IDS])
            )
            found += answer["sources"]
        return found

    async def text(self, id_: str) -> str | None:
        """The text as it was added; `None` if there is none."""
        try:
            answer = await self.client.fetch.fetch_content(
                tenant_id=self.tenant_id, sub_tenant_id=self.sub_tenant_id, file_id=id_
            )
        except NotFoundError as error:
            if error.reason != "source_not_found":
                raise
            return None
        content = answer["file_content"]
        return content if answer["encoding"] == "utf-8" else base64.b64decode(content).decode(errors="replace")

    async def matching(self, document_filter: Mapping[str, Any] | None) -> list[Source]:
        """All sources that match a filter on their metadata, oldest first.

        As the listing takes no filter, the filter goes to a search for everything within each page of it.
        """
        found: list[Source] = []
        page: list[Source] = []
        listing = self.client.listing.iter_sources(
            tenant_id=self.tenant_id, sub_tenant_id=self.sub_tenant_id, limit=IDS, status="success"
        )
        async for source in listing:
            page.append(source)
            if len(page) == IDS:
                found += await self._filtered(page, document_filter)
                page = []
        return (found + await self._filtered(page, document_filter))[::-1]

    async def _filtered(self, page: list[Source], document_filter: Mapping[str, Any] | None) -> list[Source]:
        if not document_filter or not page:
            return page
        answer = await self.client.search.retrieve(
            tenant_id=self.tenant_id,
            sub_tenant_id=self.sub_tenant_id,
            query="everything",
            alpha=1.0,
            max_chunks=CHUNKS,
            max_chunks_per_source=1,
            join_neighbours=False,
            context_list=[source["id"] for source in page],
            document_metadata=dict(document_filter),
        )
        left = {chunk["source_id"] for chunk in answer["chunks"]}
        return [source for source in page if source["id"] in left]

    async def search(
        self, query: str, count: int, document_filter: Mapping[str, Any] | None = None, **parameters: Any
    ) -> list[Chunk]:
        """The best chunks for a query; `parameters` are those of `search/retrieve`."""
        if count < 1:
            return []
        chosen: dict[str, Any] = {**self.search_parameters, **parameters}
        answer = await self.client.search.retrieve(
            tenant_id=self.tenant_id,
            sub_tenant_id=self.sub_tenant_id,
            query=query,
            max_chunks=min(count, CHUNKS),
            document_metadata=dict(document_filter) if document_filter else None,
            **chosen,
        )
        return answer["chunks"]

    async def set_metadata(self, id_: str, metadata: Mapping[str, Any]) -> None:
        """Replaces the metadata of a text."""
        await self.client.upload.update_metadata(
            tenant_id=self.tenant_id, sub_tenant_id=self.sub_tenant_id, source_id=id_, document_metadata=dict(metadata)
        )

    async def delete(self, ids: Sequence[str]) -> int:
        """Deletes texts; returns how many there were. Unknown ids are not an error."""
        count = 0
        for start in range(0, len(ids), IDS):
            answer = await self.client.deletion.delete_source(
                tenant_id=self.tenant_id, sub_tenant_id=self.sub_tenant_id, source_ids=list(ids[start : start + IDS])
            )
            count += answer["deleted_count"]
        return count

    async def delete_all(self) -> int:
        """Deletes every source of the sub-tenant, in any state; returns how many there were."""
        listing = self.client.listing.iter_sources(
            tenant_id=self.tenant_id, sub_tenant_id=self.sub_tenant_id, limit=IDS
        )
        return await self.delete([source["id"] async for source in listing])
