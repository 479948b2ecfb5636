"""Vectors with metadata of one sub-tenant under ids of your own: the basis of vector stores."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from lodestone_client._async.client import AsyncClient
from lodestone_client._ids import normalized
from lodestone_client.errors import ConflictError
from lodestone_client.models import ListedVector, ScoredChunk

# Limits of the server: rows per upload, ids per request, vectors per page and per search.
ROWS = 2000
IDS = 2000
PAGE = 1000
RESULTS = 200


@dataclass
class AsyncVectorCollection:
    """Vectors with metadata in one sub-tenant of an embeddings tenant."""

    client: AsyncClient
    tenant_id: str
    sub_tenant_id: str = "default"

    async def create(self, metric: Literal["cosine", "dot", "l2"] = "cosine") -> Self:
        """Creates the tenant, which compares vectors by `metric`; an existing one must have the same metric."""
        try:
            await self.client.embeddings.create_tenant(tenant_id=self.tenant_id, metric=metric)
        except ConflictError as error:
            found = await self.client.tenant.stats(tenant_id=self.tenant_id)
            if found["mode"] != "embeddings":
                raise
            if found["metric"] != metric:
                problem = f"tenant {self.tenant_id} compares by {found['metric']}, not by {metric}"
                raise ValueError(problem) from error
        return self

    async def add(
        self, ids: Sequence[str], vectors: Sequence[Sequence[float]], metadata: Sequence[Mapping[str, Any] | None]
    ) -> None:
        """Adds vectors, replacing those with the same ids; when it returns, they are searchable."""
        if not len(ids) == len(vectors) == len(metadata):
            raise ValueError(f"{len(ids)} ids, {len(vectors)} vectors and {len(metadata)} maps do not match")
        chosen = dict(zip(map(normalized, ids), zip(vectors, metadata, strict=True), strict=True))
        names, rows = list(chosen), list(chosen.values())
        for start in range(0, len(names), ROWS):
            part = slice(start, start + ROWS)
            request: dict[str, Any] = {
                "tenant_id": self.tenant_id,
                "sub_tenant_id": self.sub_tenant_id,
                "ids": names[part],
                "embeddings": [[float(value) for value in vector] for vector, _ in rows[part]],
                "metadata": [dict(data) if data else None for _, data in rows[part]],
            }
            try:
                await self.client.embeddings.upload_embeddings(**request)
            except ConflictError as error:
                if error.reason != "chunk_id_exists":
                    raise
                await self.delete(names[part])
                await self.client.embeddings.upload_embeddings(**request)

    async def search(
        self, vector: Sequence[float], count: int, filter: Mapping[str, Any] | None = None, with_vectors: bool = False
    ) -> list[ScoredChunk]:
        """The nearest vectors, at most 200, with scores and metadata."""
        if count < 1:
            return []
        answer = await self.client.embeddings.search(
            tenant_id=self.tenant_id,
            sub_tenant_id=self.sub_tenant_id,
            embeddings=[float(value) for value in vector],
            max_chunks=min(count, RESULTS),
            filter=dict(filter or {}),
            with_metadata=True,
            with_vectors=with_vectors,
        )
        return answer["results"][0]

    async def matching(
        self, filter: Mapping[str, Any] | None = None, with_vectors: bool = False
    ) -> AsyncIterator[ListedVector]:
        """Yields all vectors that match a filter, with metadata."""
        cursor: str | None = ""
        while cursor is not None:
            page = await self.client.embeddings.scroll(
                tenant_id=self.tenant_id,
                sub_tenant_id=self.sub_tenant_id,
                filter=dict(filter or {}),
                limit=PAGE,
                cursor=cursor,
                with_metadata=True,
                with_vectors=with_vectors,
            )
            for chunk in page["chunks"]:
                yield chunk
            cursor = page["next_cursor"]

    async def delete(self, ids: Sequence[str]) -> int:
        """Deletes vectors; returns how many there were. Unknown ids are not an error."""
        count = 0
        for start in range(0, len(ids), IDS):
            answer = await self.client.embeddings.delete(
                tenant_id=self.tenant_id, sub_tenant_id=self.sub_tenant_id, chunk_ids=list(ids[start : start + IDS])
            )
            count += answer["total_deleted"]
        return count

    async def delete_matching(self, filter: Mapping[str, Any] | None = None) -> int:
        """Deletes the vectors that match a filter; without one, all of the sub-tenant."""
        return await self.delete([chunk["chunk_id"] async for chunk in self.matching(filter)])
