"""Haystack documents, stored in a collection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from haystack.dataclasses import Document
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy

from lodestone_client._async.collection import AsyncCollection
from lodestone_client._haystack_filters import translated
from lodestone_client._ids import normalized

Filters = Mapping[str, Any] | None


@dataclass
class AsyncHaystackDocuments:
    """Documents as text sources with the same ids; `meta` is stored as `document_metadata`."""

    collection: AsyncCollection

    async def count(self) -> int:
        """Number of documents."""
        answer = await self.collection.client.tenant.stats(
            tenant_id=self.collection.tenant_id, sub_tenant_id=self.collection.sub_tenant_id
        )
        return answer["source_count"]

    async def filter(self, filters: Filters) -> list[Document]:
        """All matching documents, oldest first."""
        documents = []
        for source in await self.collection.matching(translated(filters)):
            text = await self.collection.text(source["id"])
            if text is not None:
                documents.append(Document(id=source["id"], content=text, meta=source["document_metadata"]))
        return documents

    async def write(self, documents: list[Document], policy: DuplicatePolicy) -> int:
        """Writes documents; returns how many. The server has no upload that fails on an existing id, so
        two concurrent writers may both pass the check of SKIP and FAIL.
        """
        if not isinstance(documents, list) or not all(isinstance(each, Document) for each in documents):
            raise ValueError("documents must be a list of Document")
        chosen = {normalized(document.id): document for document in documents}
        if policy != DuplicatePolicy.OVERWRITE:
            known = [source["id"] for source in await self.collection.sources(list(chosen))]
            if known and policy != DuplicatePolicy.SKIP:
                raise DuplicateDocumentError(f"{len(known)} ids exist, such as {known[0]}")
            chosen = {id_: document for id_, document in chosen.items() if id_ not in known}
        texts = [document.content or "" for document in chosen.values()]
        if not all(text.strip() for text in texts):
            raise ValueError("every document needs content that is not blank; blobs are not stored")
        await self.collection.add(texts, [document.meta for document in chosen.values()], list(chosen))
        return len(documents) if policy == DuplicatePolicy.OVERWRITE else len(chosen)

    async def delete(self, filters: Filters) -> int:
        """Deletes the matching documents; returns how many."""
        return await self.collection.delete(
            [each["id"] for each in await self.collection.matching(translated(filters))]
        )

    async def update(self, filters: Filters, meta: Mapping[str, Any]) -> int:
        """Merges `meta` into the metadata of the matching documents; returns how many."""
        sources = await self.collection.matching(translated(filters))
        for source in sources:
            await self.collection.set_metadata(source["id"], {**source["document_metadata"], **meta})
        return len(sources)

    async def search(self, query: str, filters: Filters, top_k: int, **parameters: Any) -> list[Document]:
        """The best chunks, as documents with the ids of their sources."""
        chunks = await self.collection.search(query, top_k, translated(filters), **parameters)
        return [
            Document(
                id=chunk["source_id"],
                content=chunk["chunk_content"],
                meta=chunk["document_metadata"] or {},
                score=chunk["relevancy_score"],
            )
            for chunk in chunks
        ]
