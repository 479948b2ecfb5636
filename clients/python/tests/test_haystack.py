"""Haystack's own tests of document stores, and the retriever in a pipeline."""

import dataclasses
from typing import Any

import pytest
from haystack import Document, Pipeline
from haystack.document_stores.errors import DuplicateDocumentError
from haystack.document_stores.types import DuplicatePolicy
from haystack.errors import FilterError
from haystack.testing.document_store import DocumentStoreBaseExtendedTests
from haystack.testing.document_store_async import (
    CountDocumentsAsyncTest,
    DeleteAllAsyncTest,
    DeleteByFilterAsyncTest,
    DeleteDocumentsAsyncTest,
    FilterDocumentsAsyncTest,
    UpdateByFilterAsyncTest,
    WriteDocumentsAsyncTest,
)

from lodestone_client.haystack import LodestoneDocumentStore, LodestoneRetriever


@pytest.fixture
def document_store(tenant: str) -> LodestoneDocumentStore:
    return LodestoneDocumentStore(tenant)


class Comparison:
    """Ignores embeddings, which are not stored, and the order, which for documents written together is by id."""

    @staticmethod
    def assert_documents_are_equal(received: list[Document], expected: list[Document]) -> None:
        expected = [dataclasses.replace(document, embedding=None) for document in expected]
        assert sorted(received, key=lambda each: each.id) == sorted(expected, key=lambda each: each.id)


class TestDocumentStore(Comparison, DocumentStoreBaseExtendedTests):
    @pytest.fixture
    def document_store(self, tenant: str) -> LodestoneDocumentStore:
        return LodestoneDocumentStore(tenant)

    def test_write_documents(self, document_store: LodestoneDocumentStore) -> None:
        documents = [Document(content="first"), Document(content="second", meta={"n": [1, {"deep": None}]})]
        assert document_store.write_documents(documents) == 2
        self.assert_documents_are_equal(document_store.filter_documents(), documents)
        with pytest.raises(DuplicateDocumentError):
            document_store.write_documents(documents[:1])


class TestDocumentStoreAsync(
    Comparison,
    CountDocumentsAsyncTest,
    DeleteAllAsyncTest,
    DeleteByFilterAsyncTest,
    DeleteDocumentsAsyncTest,
    FilterDocumentsAsyncTest,
    UpdateByFilterAsyncTest,
    WriteDocumentsAsyncTest,
):
    async def test_write_documents_async(self, document_store: LodestoneDocumentStore) -> None:
        assert await document_store.write_documents_async([Document(id="1", content="first")]) == 1
        with pytest.raises(DuplicateDocumentError):
            await document_store.write_documents_async([Document(id="1", content="other")], DuplicatePolicy.FAIL)


def test_what_cannot_be_stored_or_compared_is_refused(document_store: LodestoneDocumentStore) -> None:
    with pytest.raises(ValueError, match="blank"):
        document_store.write_documents([Document(content=None)])
    with pytest.raises(FilterError, match="content"):
        document_store.filter_documents({"field": "content", "operator": "==", "value": "x"})


@pytest.mark.parametrize("operator", ["==", "!=", ">", ">=", "<", "<=", "in", "not in"])
def test_negation_is_the_complement(document_store: LodestoneDocumentStore, operator: str) -> None:
    metas: list[dict[str, Any]] = [{"n": 1}, {"n": 2}, {"n": 3}, {"n": None}, {}]
    document_store.write_documents([Document(id=f"d{at}", content="text", meta=meta) for at, meta in enumerate(metas)])
    value = [1, 2] if "in" in operator else 2
    condition = {"field": "meta.n", "operator": operator, "value": value}
    inner = {"operator": "NOT", "conditions": [condition]}
    found = [{document.id for document in document_store.filter_documents(each)} for each in (condition, inner)]
    assert found[0] | found[1] == {"d0", "d1", "d2", "d3", "d4"} and not found[0] & found[1]
    twice = {"operator": "NOT", "conditions": [inner]}
    assert {document.id for document in document_store.filter_documents(twice)} == found[0]


async def test_retriever_in_a_pipeline_that_was_stored(document_store: LodestoneDocumentStore) -> None:
    metas = [{"year": 2024}, {"year": 2026}]
    texts = ["Tea is served at four.", "Tea is served at five."]
    document_store.write_documents([Document(content=text, meta=meta) for text, meta in zip(texts, metas, strict=True)])
    pipeline = Pipeline()
    pipeline.add_component("retriever", LodestoneRetriever(document_store, top_k=1, search_parameters={"alpha": 0.5}))
    pipeline = Pipeline.loads(pipeline.dumps(), allowed_modules=["lodestone_client.haystack"])
    filters = {"field": "meta.year", "operator": "<", "value": 2025}
    [document] = pipeline.run({"query": "When is tea?", "filters": filters})["retriever"]["documents"]
    assert document.content == texts[0] and document.meta == metas[0] and document.score > 0
    retriever = LodestoneRetriever(document_store)
    assert len((await retriever.run_async("When is tea?"))["documents"]) == 2
