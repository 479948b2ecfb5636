"""LlamaIndex: a retriever. The server embeds, so no embedding model is needed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.schema import NodeRelationship, NodeWithScore, QueryBundle, RelatedNodeInfo, TextNode

from lodestone_client import AsyncCollection, Collection
from lodestone_client.models import Chunk


class LodestoneRetriever(BaseRetriever):
    """The best chunks of a sub-tenant as nodes. `document_filter` is a filter of the API on `document_metadata`.

    The async methods run the sync ones where there is no `async_collection`.
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
    """The chunk under its own id; its source is the document that it refers to."""
    node = TextNode(
        id_=chunk["chunk_uuid"],
        text=chunk["chunk_content"],
        metadata=chunk["document_metadata"] or {},
        relationships={NodeRelationship.SOURCE: RelatedNodeInfo(node_id=chunk["source_id"])},
    )
    return NodeWithScore(node=node, score=chunk["relevancy_score"])
