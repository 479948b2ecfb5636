"""LlamaIndex: a retriever over texts that the server embeds, and a store of nodes with embeddings of your own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.schema import BaseNode, NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    BasePydanticVectorStore,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
    VectorStoreQueryResult,
)
from llama_index.core.vector_stores.utils import metadata_dict_to_node, node_to_metadata_dict

from lodestone_client import AsyncCollection, AsyncVectorCollection, Collection, VectorCollection
from lodestone_client._ids import normalized
from lodestone_client._llama_index_filters import NODE_ID, translated
from lodestone_client.models import Chunk, ListedVector, ScoredChunk


class LodestoneRetriever(BaseRetriever):
    """Retrieves the best chunks of a sub-tenant as nodes; `document_filter` is an API filter on `document_metadata`.

    Without `async_collection` the async methods run the sync ones.
    """

    def __init__(
        self,
        collection: Collection,
        async_collection: AsyncCollection | None = None,
        *,
        similarity_top_k: int = 10,
        document_filter: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        self.collection = collection
        self.async_collection = async_collection
        self.similarity_top_k = similarity_top_k
        self.document_filter = document_filter
        super().__init__(**kwargs)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        chunks = self.collection.search(query_bundle.query_str, self.similarity_top_k, self.document_filter)
        return [_node(chunk) for chunk in chunks]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if self.async_collection is None:
            return await super()._aretrieve(query_bundle)
        search = self.async_collection.search
        return [
            _node(chunk) for chunk in await search(query_bundle.query_str, self.similarity_top_k, self.document_filter)
        ]


def _node(chunk: Chunk) -> NodeWithScore:
    """A chunk as a node with the chunk's id, whose source document is the chunk's source."""
    node = TextNode(
        id_=chunk["chunk_uuid"],
        text=chunk["chunk_content"],
        metadata=chunk["document_metadata"] or {},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=chunk["source_id"])},
    )
    return NodeWithScore(node=node, score=chunk["relevancy_score"])


class LodestoneVectorStore(BasePydanticVectorStore):
    """Nodes with their embeddings in one sub-tenant of an embeddings tenant, under their own ids.

    A node is stored completely, as metadata of at most 64 KiB including its text. Scores are those of the tenant's
    metric, higher is nearer. Without `async_vectors` the async methods run the sync ones.
    """

    stores_text: bool = True
    flat_metadata: bool = False

    _vectors: VectorCollection = PrivateAttr()
    _async_vectors: AsyncVectorCollection | None = PrivateAttr()

    def __init__(self, vectors: VectorCollection, async_vectors: AsyncVectorCollection | None = None) -> None:
        super().__init__(stores_text=True)
        self._vectors = vectors
        self._async_vectors = async_vectors

    @classmethod
    def class_name(cls) -> str:
        """The class name by which LlamaIndex serializes it."""
        return "LodestoneVectorStore"

    @property
    def client(self) -> VectorCollection:
        """The underlying vectors."""
        return self._vectors

    def add(self, nodes: Sequence[BaseNode], **_: Any) -> list[str]:
        """Adds nodes with embeddings, replacing those with the same ids; returns the ids."""
        self._vectors.add(*_rows(nodes))
        return [node.node_id for node in nodes]

    async def async_add(self, nodes: Sequence[BaseNode], **kwargs: Any) -> list[str]:
        """Like `add`."""
        if self._async_vectors is None:
            return await super().async_add(nodes, **kwargs)
        await self._async_vectors.add(*_rows(nodes))
        return [node.node_id for node in nodes]

    def delete(self, ref_doc_id: str, **_: Any) -> None:
        """Deletes the nodes of a document."""
        self._vectors.delete_matching(translated(None, doc_ids=[ref_doc_id]))

    async def adelete(self, ref_doc_id: str, **kwargs: Any) -> None:
        """Like `delete`."""
        if self._async_vectors is None:
            await super().adelete(ref_doc_id, **kwargs)
        else:
            await self._async_vectors.delete_matching(translated(None, doc_ids=[ref_doc_id]))

    def delete_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **_: Any) -> None:
        """Deletes nodes by ids, by a filter or by both; at least one must be given."""
        self._vectors.delete_matching(_chosen(node_ids, filters))

    async def adelete_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None, **kwargs: Any
    ) -> None:
        """Like `delete_nodes`."""
        if self._async_vectors is None:
            await super().adelete_nodes(node_ids, filters, **kwargs)
        else:
            await self._async_vectors.delete_matching(_chosen(node_ids, filters))

    def clear(self) -> None:
        """Deletes every node of the sub-tenant."""
        self._vectors.delete_matching()

    async def aclear(self) -> None:
        """Like `clear`."""
        if self._async_vectors is None:
            await super().aclear()
        else:
            await self._async_vectors.delete_matching()

    def get_nodes(self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None) -> list[BaseNode]:
        """Nodes with their embeddings, by ids, by a filter or by both; without either, all nodes."""
        found = self._vectors.matching(translated(filters, node_ids), with_vectors=True)
        return [_stored(chunk) for chunk in found]

    async def aget_nodes(
        self, node_ids: list[str] | None = None, filters: MetadataFilters | None = None
    ) -> list[BaseNode]:
        """Like `get_nodes`."""
        if self._async_vectors is None:
            return await super().aget_nodes(node_ids, filters)
        found = self._async_vectors.matching(translated(filters, node_ids), with_vectors=True)
        return [_stored(chunk) async for chunk in found]

    def query(self, query: VectorStoreQuery, **_: Any) -> VectorStoreQueryResult:
        """The nodes nearest to an embedding, at most 200."""
        return _result(self._vectors.search(*_search(query)))

    async def aquery(self, query: VectorStoreQuery, **kwargs: Any) -> VectorStoreQueryResult:
        """Like `query`."""
        if self._async_vectors is None:
            return await super().aquery(query, **kwargs)
        return _result(await self._async_vectors.search(*_search(query)))


def _rows(nodes: Sequence[BaseNode]) -> tuple[list[str], list[list[float]], list[dict[str, Any]]]:
    ids = [node.node_id for node in nodes]
    metadata = [{**node_to_metadata_dict(node), NODE_ID: normalized(node.node_id)} for node in nodes]
    return ids, [node.get_embedding() for node in nodes], metadata


def _chosen(node_ids: list[str] | None, filters: MetadataFilters | None) -> dict[str, Any]:
    chosen = translated(filters, node_ids)
    if not chosen:
        raise ValueError("node_ids or filters is missing; clear deletes all nodes")
    return chosen


def _search(query: VectorStoreQuery) -> tuple[list[float], int, dict[str, Any]]:
    if query.mode != VectorStoreQueryMode.DEFAULT:
        raise NotImplementedError(f"queries of mode {query.mode.value} are not offered")
    if query.query_embedding is None:
        raise ValueError("query_embedding is missing")
    # An index without nodes of its own passes empty lists to mean all nodes.
    chosen = translated(query.filters, query.node_ids or None, query.doc_ids or None)
    return query.query_embedding, query.similarity_top_k, chosen


def _result(chunks: list[ScoredChunk]) -> VectorStoreQueryResult:
    return VectorStoreQueryResult(
        nodes=[metadata_dict_to_node(chunk["metadata"] or {}) for chunk in chunks],
        similarities=[chunk["score"] for chunk in chunks],
        ids=[chunk["chunk_id"] for chunk in chunks],
    )


def _stored(chunk: ListedVector) -> BaseNode:
    node = metadata_dict_to_node(chunk["metadata"] or {})
    node.embedding = chunk["embedding"]
    return node
