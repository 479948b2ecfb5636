"""Haystack: a document store and its retriever. The server embeds texts, so pipelines need no embedder."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from haystack import component, default_from_dict, default_to_dict
from haystack.dataclasses import Document
from haystack.document_stores.types import DuplicatePolicy, FilterPolicy, apply_filter_policy
from haystack.utils import Secret, deserialize_secrets_inplace

from lodestone_client import AsyncClient, AsyncCollection, Client, Collection
from lodestone_client._async.haystack_documents import AsyncHaystackDocuments, Filters
from lodestone_client._sync.haystack_documents import HaystackDocuments

API_KEY = Secret.from_env_var("LODESTONE_API_KEY", strict=False)


class LodestoneDocumentStore:
    """The documents of one sub-tenant. Their `embedding` and `blob` are not stored.

    By default, writing an existing id is an error. Filters on a document's `content` are not supported.
    """

    def __init__(
        self,
        tenant_id: str,
        sub_tenant_id: str = "default",
        *,
        server: str | None = None,
        api_key: Secret = API_KEY,
        timeout: float | None = None,
    ) -> None:
        self.tenant_id = tenant_id
        self.sub_tenant_id = sub_tenant_id
        self.server = server
        self.api_key = api_key
        self.timeout = timeout

    @cached_property
    def documents(self) -> HaystackDocuments:
        """The documents, through a sync client of their own."""
        client = Client(self.server, self.api_key.resolve_value())
        return HaystackDocuments(Collection(client, self.tenant_id, self.sub_tenant_id, self.timeout))

    @cached_property
    def async_documents(self) -> AsyncHaystackDocuments:
        """The documents, through an async client, for a single event loop."""
        client = AsyncClient(self.server, self.api_key.resolve_value())
        return AsyncHaystackDocuments(AsyncCollection(client, self.tenant_id, self.sub_tenant_id, self.timeout))

    def to_dict(self) -> dict[str, Any]:
        """Haystack's serialized form; the key is represented by the name of its variable."""
        return default_to_dict(
            self,
            tenant_id=self.tenant_id,
            sub_tenant_id=self.sub_tenant_id,
            server=self.server,
            api_key=self.api_key.to_dict(),
            timeout=self.timeout,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LodestoneDocumentStore:
        """Restores a store from the result of `to_dict`."""
        deserialize_secrets_inplace(data["init_parameters"], keys=["api_key"])
        store: LodestoneDocumentStore = default_from_dict(cls, data)
        return store

    def count_documents(self) -> int:
        """Number of documents."""
        return self.documents.count()

    async def count_documents_async(self) -> int:
        """Like `count_documents`."""
        return await self.async_documents.count()

    def filter_documents(self, filters: Filters = None) -> list[Document]:
        """All matching documents, complete and oldest first."""
        return self.documents.filter(filters)

    async def filter_documents_async(self, filters: Filters = None) -> list[Document]:
        """Like `filter_documents`."""
        return await self.async_documents.filter(filters)

    def write_documents(self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE) -> int:
        """Writes documents and waits until they are searchable; returns how many."""
        return self.documents.write(documents, policy)

    async def write_documents_async(
        self, documents: list[Document], policy: DuplicatePolicy = DuplicatePolicy.NONE
    ) -> int:
        """Like `write_documents`."""
        return await self.async_documents.write(documents, policy)

    def delete_documents(self, document_ids: list[str]) -> None:
        """Deletes documents; unknown ids are not an error."""
        self.documents.collection.delete(document_ids)

    async def delete_documents_async(self, document_ids: list[str]) -> None:
        """Like `delete_documents`."""
        await self.async_documents.collection.delete(document_ids)

    def delete_all_documents(self) -> None:
        """Deletes every source of the sub-tenant."""
        self.documents.collection.delete_all()

    async def delete_all_documents_async(self) -> None:
        """Like `delete_all_documents`."""
        await self.async_documents.collection.delete_all()

    def delete_by_filter(self, filters: Filters) -> int:
        """Deletes the matching documents; returns how many."""
        return self.documents.delete(filters)

    async def delete_by_filter_async(self, filters: Filters) -> int:
        """Like `delete_by_filter`."""
        return await self.async_documents.delete(filters)

    def update_by_filter(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Merges `meta` into the metadata of the matching documents; returns how many."""
        return self.documents.update(filters, meta)

    async def update_by_filter_async(self, filters: Filters, meta: dict[str, Any]) -> int:
        """Like `update_by_filter`."""
        return await self.async_documents.update(filters, meta)


@component
class LodestoneRetriever:
    """Retrieves the best chunks for a query, by meaning and by words.

    `search_parameters` are those of `search/retrieve`: with `alpha` 1 only meaning counts, with 0 only words.
    """

    def __init__(
        self,
        document_store: LodestoneDocumentStore,
        *,
        filters: dict[str, Any] | None = None,
        top_k: int = 10,
        filter_policy: FilterPolicy = FilterPolicy.REPLACE,
        search_parameters: dict[str, Any] | None = None,
    ) -> None:
        self.document_store = document_store
        self.filters = filters
        self.top_k = top_k
        self.filter_policy = filter_policy
        self.search_parameters = search_parameters or {}

    def to_dict(self) -> dict[str, Any]:
        """Haystack's serialized form."""
        return default_to_dict(
            self,
            document_store=self.document_store.to_dict(),
            filters=self.filters,
            top_k=self.top_k,
            filter_policy=self.filter_policy.value,
            search_parameters=self.search_parameters,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LodestoneRetriever:
        """Restores a retriever from the result of `to_dict`."""
        given = data["init_parameters"]
        given["document_store"] = LodestoneDocumentStore.from_dict(given["document_store"])
        given["filter_policy"] = FilterPolicy.from_str(given["filter_policy"])
        retriever: LodestoneRetriever = default_from_dict(cls, data)
        return retriever

    @component.output_types(documents=list[Document])
    def run(self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None) -> dict[str, Any]:
        """Returns the best chunks for `query`."""
        chosen = apply_filter_policy(self.filter_policy, self.filters, filters)
        search = self.document_store.documents.search
        return {"documents": search(query, chosen, top_k or self.top_k, **self.search_parameters)}

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, Any]:
        """Like `run`."""
        chosen = apply_filter_policy(self.filter_policy, self.filters, filters)
        search = self.document_store.async_documents.search
        return {"documents": await search(query, chosen, top_k or self.top_k, **self.search_parameters)}
