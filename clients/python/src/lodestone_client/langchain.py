"""LangChain: a vector store and a retriever. The server embeds texts, so no embedding model is needed.

A document is stored as a text source with its metadata as `document_metadata`. Results are chunks: a document
that consists of one chunk comes back complete. Filters are those of the API (`{"year": {"$gte": 2024}}`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from pydantic import ConfigDict, Field

from lodestone_client import AsyncCollection, Collection
from lodestone_client._ids import normalized
from lodestone_client.models import Chunk, Source


class LodestoneVectorStore(VectorStore):
    """The documents of one sub-tenant. The async methods need `async_collection`.

    Keyword arguments of searches other than `k` and `filter` are parameters of `search/retrieve`.
    """

    def __init__(self, collection: Collection, async_collection: AsyncCollection | None = None) -> None:
        self.collection = collection
        self._async_collection = async_collection

    @property
    def async_collection(self) -> AsyncCollection:
        """The collection used by the async methods."""
        if self._async_collection is None:
            raise ValueError("async_collection is missing: pass one to LodestoneVectorStore")
        return self._async_collection

    def add_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[str]:
        """Adds texts and waits until they are searchable; texts with known ids are replaced."""
        batch = _batch(texts, metadatas, ids)
        self.collection.add(*batch)
        return batch[2]

    async def aadd_texts(
        self,
        texts: Iterable[str],
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: Sequence[str | None] | None = None,
        **_: Any,
    ) -> list[str]:
        """Like `add_texts`."""
        batch = _batch(texts, metadatas, ids)
        await self.async_collection.add(*batch)
        return batch[2]

    def add_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Adds documents under `ids`, or their own ids, or generated ones."""
        ids = kwargs.pop("ids", None) or [document.id for document in documents]
        return self.add_texts(*_parts(documents), ids=ids, **kwargs)

    async def aadd_documents(self, documents: list[Document], **kwargs: Any) -> list[str]:
        """Like `add_documents`."""
        ids = kwargs.pop("ids", None) or [document.id for document in documents]
        return await self.aadd_texts(*_parts(documents), ids=ids, **kwargs)

    def delete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """Deletes documents by id; all of the sub-tenant if `ids` is `None`."""
        if ids is None:
            self.collection.delete_all()
        else:
            self.collection.delete(ids)
        return True

    async def adelete(self, ids: list[str] | None = None, **_: Any) -> bool:
        """Like `delete`."""
        if ids is None:
            await self.async_collection.delete_all()
        else:
            await self.async_collection.delete(ids)
        return True

    def get_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Complete documents by id; unknown ids are left out."""
        found = [(source, self.collection.text(source["id"])) for source in self.collection.sources(ids)]
        return [_whole(source, text) for source, text in found if text is not None]

    async def aget_by_ids(self, ids: Sequence[str], /) -> list[Document]:
        """Like `get_by_ids`."""
        sources = await self.async_collection.sources(ids)
        found = [(source, await self.async_collection.text(source["id"])) for source in sources]
        return [_whole(source, text) for source, text in found if text is not None]

    def similarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """The best chunks."""
        return [document for document, _ in self.similarity_search_with_score(query, k, **kwargs)]

    async def asimilarity_search(self, query: str, k: int = 4, **kwargs: Any) -> list[Document]:
        """Like `similarity_search`."""
        return [document for document, _ in await self.asimilarity_search_with_score(query, k, **kwargs)]

    def similarity_search_with_score(
        self, query: str, k: int = 4, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """The best chunks with their relevancy scores, 0 to 1."""
        return [_scored(chunk) for chunk in self.collection.search(query, k, filter, **kwargs)]

    async def asimilarity_search_with_score(
        self, query: str, k: int = 4, filter: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[tuple[Document, float]]:
        """Like `similarity_search_with_score`."""
        return [_scored(chunk) for chunk in await self.async_collection.search(query, k, filter, **kwargs)]

    def _select_relevance_score_fn(self) -> Callable[[float], float]:
        return lambda score: score

    @classmethod
    def from_texts(
        cls,
        texts: list[str],
        embedding: Embeddings | None = None,
        metadatas: list[dict[str, Any]] | None = None,
        *,
        ids: list[str] | None = None,
        collection: Collection | None = None,
        async_collection: AsyncCollection | None = None,
        **_: Any,
    ) -> LodestoneVectorStore:
        """Adds the texts to `collection` and returns a store over it. `embedding` is ignored: the server embeds."""
        if collection is None:
            raise ValueError("collection is missing")
        store = cls(collection, async_collection)
        store.add_texts(texts, metadatas, ids=ids)
        return store


class LodestoneRetriever(BaseRetriever):
    """Retrieves the `k` best chunks of a sub-tenant. Keywords of `invoke` are parameters of `search/retrieve`."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    collection: Collection
    async_collection: AsyncCollection | None = None
    k: int = 4
    filter: dict[str, Any] | None = None
    search_parameters: dict[str, Any] = Field(default_factory=dict)

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        chunks = self.collection.search(query, **self._search(kwargs))
        return [_scored(chunk)[0] for chunk in chunks]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **kwargs: Any
    ) -> list[Document]:
        if self.async_collection is None:
            return await super()._aget_relevant_documents(query, run_manager=run_manager, **kwargs)
        chunks = await self.async_collection.search(query, **self._search(kwargs))
        return [_scored(chunk)[0] for chunk in chunks]

    def _search(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        chosen = {**self.search_parameters, **kwargs}
        return {
            "count": chosen.pop("k", self.k),
            "document_filter": chosen.pop("filter", self.filter),
            **chosen,
        }


def _batch(
    texts: Iterable[str], metadatas: list[dict[str, Any]] | None, ids: Sequence[str | None] | None
) -> tuple[list[str], list[dict[str, Any]], list[str]]:
    contents = list(texts)
    given = ids or [None] * len(contents)
    return contents, metadatas or [{} for _ in contents], [normalized(id_ or str(uuid.uuid4())) for id_ in given]


def _parts(documents: list[Document]) -> tuple[list[str], list[dict[str, Any]]]:
    return [document.page_content for document in documents], [document.metadata for document in documents]


def _whole(source: Source, text: str) -> Document:
    return Document(id=source["id"], page_content=text, metadata=source["document_metadata"])


def _scored(chunk: Chunk) -> tuple[Document, float]:
    metadata = chunk["document_metadata"] or {}
    document = Document(id=chunk["source_id"], page_content=chunk["chunk_content"], metadata=metadata)
    return document, chunk["relevancy_score"] or 0.0
