"""LangChain's own standard test suites, and tests of what they do not cover."""

from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langchain_core.vectorstores import VectorStore
from langchain_tests.integration_tests import RetrieversIntegrationTests, VectorStoreIntegrationTests

from lodestone_client import AsyncCollection, Collection
from lodestone_client.langchain import LodestoneRetriever, LodestoneVectorStore

COLOURS = ("red apples", "green pears", "blue berries", "yellow lemons")


class TestVectorStore(VectorStoreIntegrationTests):
    @pytest.fixture
    def vectorstore(self, collection: Collection, async_collection: AsyncCollection) -> VectorStore:
        return LodestoneVectorStore(collection, async_collection)


class TestRetriever(RetrieversIntegrationTests):
    @pytest.fixture(autouse=True)
    def documents(self, collection: Collection, async_collection: AsyncCollection) -> None:
        LodestoneVectorStore.from_texts(list(COLOURS), collection=collection)
        self.collections = {"collection": collection, "async_collection": async_collection}

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return LodestoneRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return self.collections

    @property
    def retriever_query_example(self) -> str:
        return "fruit"


def test_filters_scores_and_deletion_of_all(collection: Collection) -> None:
    metadatas = [{"colour": text.split()[0], "n": n} for n, text in enumerate(COLOURS)]
    store = LodestoneVectorStore.from_texts(list(COLOURS), metadatas=metadatas, ids=list("abcd"), collection=collection)
    found = store.similarity_search_with_relevance_scores("fruit", k=9, filter={"n": {"$gte": 2}})
    assert {document.id for document, _ in found} == {"c", "d"} and all(0 <= score <= 1 for _, score in found)
    retriever = store.as_retriever(search_kwargs={"k": 1, "filter": {"colour": "green"}})
    assert retriever.invoke("fruit") == [Document(id="b", page_content="green pears", metadata=metadatas[1])]
    assert store.delete() and store.similarity_search("fruit") == []
    with pytest.raises(ValueError, match="async_collection"):
        _ = store.async_collection
