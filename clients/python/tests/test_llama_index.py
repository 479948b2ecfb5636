"""The retriever, alone and in a LlamaIndex query engine, and the vector store, for which LlamaIndex ships no tests."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from llama_index.core import MockEmbedding, Settings, StorageContext, VectorStoreIndex
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import BaseNode, Document, NodeRelationship, RelatedNodeInfo, TextNode
from llama_index.core.vector_stores.types import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
    VectorStoreQuery,
    VectorStoreQueryMode,
)
from llama_index.core.vector_stores.utils import build_metadata_filter_fn

from lodestone_client import AsyncClient, AsyncCollection, AsyncVectorCollection, Client, Collection, VectorCollection
from lodestone_client.llama_index import LodestoneRetriever, LodestoneVectorStore

TEXTS = ["Tea is served at four.", "Coffee is served at nine.", "Visitors park on level 1."]


async def test_nodes_carry_text_source_metadata_and_score(
    collection: Collection, async_collection: AsyncCollection
) -> None:
    collection.add(TEXTS, [{"n": n} for n in range(3)], ["tea", "coffee", "parking"])
    retriever = LodestoneRetriever(collection, async_collection, similarity_top_k=2, document_filter={"n": {"$lt": 2}})
    nodes = retriever.retrieve("When is tea served?")
    assert [node.node.ref_doc_id for node in nodes] == ["tea", "coffee"]
    assert nodes[0].text == TEXTS[0] and nodes[0].metadata == {"n": 0} and 0 < (nodes[0].score or 0) <= 1
    assert await retriever.aretrieve("When is tea served?") == nodes
    assert await LodestoneRetriever(collection).aretrieve("Where do visitors park?")


def test_query_engine_answers_from_the_nodes(collection: Collection) -> None:
    Settings.llm = MockLLM()
    collection.add(TEXTS, [{}] * 3, ["tea", "coffee", "parking"])
    engine = RetrieverQueryEngine.from_args(LodestoneRetriever(collection, similarity_top_k=1))
    answer = engine.query("Where do visitors park?")
    assert [node.text for node in answer.source_nodes] == [TEXTS[2]]
    assert TEXTS[2] in str(answer)


METADATA: list[dict[str, Any]] = [
    {"n": 1, "tags": ["a", "b"], "who": "ann"},
    {"n": 2, "tags": ["b"], "who": "bob", "deep": {"x": 1}},
    {"n": 3, "who": ""},
    {"tags": [], "who": None},
]
VECTORS = [[1.0, 0.0], [0.6, 0.8], [0.0, 2.0], [-1.0, 0.5]]


def node(at: int, text: str = "text") -> TextNode:
    source = RelatedNodeInfo(node_id=f"document {at // 2}")
    return TextNode(
        id_=f"node-{at}",
        text=f"{text} {at}",
        metadata=METADATA[at],
        embedding=VECTORS[at],
        relationships={NodeRelationship.SOURCE: source},
    )


def one(key: str, operator: FilterOperator, value: Any = None) -> MetadataFilters:
    return MetadataFilters(filters=[MetadataFilter(key=key, value=value, operator=operator)])


def ids(nodes: list[BaseNode] | Any) -> set[str]:
    return {each.node_id for each in nodes}


@pytest.fixture
def vectors(client: Client) -> Iterator[VectorCollection]:
    tenant_id = f"t-{uuid.uuid4()}"
    yield VectorCollection(client, tenant_id).create("l2")
    client.admin.delete(tenant_id=tenant_id, confirm=tenant_id)


@pytest.fixture
def store(vectors: VectorCollection, async_client: AsyncClient) -> LodestoneVectorStore:
    return LodestoneVectorStore(vectors, AsyncVectorCollection(async_client, vectors.tenant_id))


def test_nodes_come_back_as_they_were_added(store: LodestoneVectorStore) -> None:
    nodes = [node(at) for at in range(4)]
    assert store.add(nodes) == ["node-0", "node-1", "node-2", "node-3"]
    assert sorted(store.get_nodes(), key=lambda each: each.node_id) == nodes
    assert store.get_nodes(["node-2", "never"]) == [nodes[2]]
    found = store.query(VectorStoreQuery(query_embedding=[0.0, 1.0], similarity_top_k=2))
    assert found.ids == ["node-1", "node-2"]
    assert found.similarities == pytest.approx([-((0.36 + 0.04) ** 0.5), -1.0])
    assert [each.get_content() for each in found.nodes or []] == ["text 1", "text 2"]
    # Adding the same id again replaces the node.
    store.add([node(2, "other"), node(0)])
    assert len(store.get_nodes()) == 4
    assert store.get_nodes(["node-2"])[0].get_content() == "other 2"


@pytest.mark.parametrize(
    "filters",
    [
        one("who", FilterOperator.EQ, "ann"),
        one("who", FilterOperator.NE, "ann"),
        one("n", FilterOperator.GT, 1),
        one("n", FilterOperator.GTE, 2),
        one("n", FilterOperator.LT, 3),
        one("n", FilterOperator.LTE, 1),
        one("who", FilterOperator.IN, ["ann", "bob"]),
        one("who", FilterOperator.NIN, ["ann", "bob"]),
        one("who", FilterOperator.IS_EMPTY),
        one("tags", FilterOperator.ANY, ["a", "c"]),
        one("tags", FilterOperator.ALL, ["a", "b"]),
        one("tags", FilterOperator.CONTAINS, "b"),
    ],
    ids=lambda filters: f"{filters.filters[0].key} {filters.filters[0].operator.value}",
)
def test_filters_mean_what_llama_index_means(store: LodestoneVectorStore, filters: MetadataFilters) -> None:
    store.add([node(at) for at in range(4)])
    passes = build_metadata_filter_fn(lambda node_id: METADATA[int(node_id[-1])], filters)
    expected = {f"node-{at}" for at in range(4) if passes(f"node-{at}")}
    assert expected and ids(store.get_nodes(filters=filters)) == expected
    query = VectorStoreQuery(query_embedding=[1.0, 1.0], similarity_top_k=4, filters=filters)
    assert set(store.query(query).ids or []) == expected
    opposite = MetadataFilters(filters=[filters], condition=FilterCondition.NOT)
    assert ids(store.get_nodes(filters=opposite)) == {f"node-{at}" for at in range(4)} - expected


def test_conditions_are_combined(store: LodestoneVectorStore) -> None:
    store.add([node(at) for at in range(4)])
    either = MetadataFilters(
        filters=[one("n", FilterOperator.EQ, 1), one("n", FilterOperator.EQ, 3)], condition=FilterCondition.OR
    )
    assert ids(store.get_nodes(filters=either)) == {"node-0", "node-2"}
    assert ids(store.get_nodes(["node-0", "node-1"], either)) == {"node-0"}
    query = VectorStoreQuery(query_embedding=[1.0, 1.0], similarity_top_k=4, doc_ids=["document 1"], filters=either)
    assert store.query(query).ids == ["node-2"]
    query = VectorStoreQuery(query_embedding=[1.0, 1.0], similarity_top_k=4, node_ids=["node-3", "never"])
    assert store.query(query).ids == ["node-3"]
    assert store.get_nodes([]) == []


def test_deletion_by_document_id_filter_and_altogether(store: LodestoneVectorStore) -> None:
    store.add([node(at) for at in range(4)])
    store.delete("document 0")
    assert ids(store.get_nodes()) == {"node-2", "node-3"}
    store.delete("never there")
    with pytest.raises(ValueError, match="clear"):
        store.delete_nodes()
    store.delete_nodes(filters=one("n", FilterOperator.EQ, 3))
    assert ids(store.get_nodes()) == {"node-3"}
    store.delete_nodes(["node-3", "node-9"])
    assert store.get_nodes() == []
    store.add([node(0)])
    store.clear()
    assert store.get_nodes() == []


async def test_the_async_methods_do_the_same(store: LodestoneVectorStore, vectors: VectorCollection) -> None:
    for each in (store, LodestoneVectorStore(vectors)):
        assert await each.async_add([node(at) for at in range(4)]) == ["node-0", "node-1", "node-2", "node-3"]
        found = await each.aquery(VectorStoreQuery(query_embedding=[1.0, 0.0], similarity_top_k=1))
        assert found.ids == ["node-0"] and found.similarities == [0.0]
        await each.adelete("document 1")
        assert ids(await each.aget_nodes()) == {"node-0", "node-1"}
        await each.adelete_nodes(["node-0"])
        assert ids(await each.aget_nodes()) == {"node-1"}
        await each.aclear()
        assert await each.aget_nodes() == []


def test_what_is_not_offered_is_refused(store: LodestoneVectorStore, vectors: VectorCollection) -> None:
    with pytest.raises(NotImplementedError, match="mmr"):
        store.query(VectorStoreQuery(query_embedding=[1.0, 0.0], mode=VectorStoreQueryMode.MMR))
    with pytest.raises(NotImplementedError, match="text_match"):
        store.get_nodes(filters=one("who", FilterOperator.TEXT_MATCH, "a"))
    with pytest.raises(ValueError, match="query_embedding"):
        store.query(VectorStoreQuery(query_str="words"))
    assert vectors.create("l2") is vectors
    with pytest.raises(ValueError, match="compares by l2, not by dot"):
        vectors.create("dot")


def test_an_index_lives_in_the_store(store: LodestoneVectorStore) -> None:
    context = StorageContext.from_defaults(vector_store=store)
    documents = [Document(id_=name, text=text) for name, text in zip(("tea", "coffee", "parking"), TEXTS, strict=True)]
    index = VectorStoreIndex.from_documents(documents, context, embed_model=MockEmbedding(8))
    assert {each.node.ref_doc_id for each in index.as_retriever(similarity_top_k=9).retrieve("tea")} == {
        "tea",
        "coffee",
        "parking",
    }
    index.delete_ref_doc("tea")
    again = VectorStoreIndex.from_vector_store(store, embed_model=MockEmbedding(8))
    assert len(again.as_retriever(similarity_top_k=9).retrieve("tea")) == 2
