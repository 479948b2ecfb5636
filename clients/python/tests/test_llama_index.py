"""The retriever alone and in a query engine of LlamaIndex."""

from llama_index.core import Settings
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine

from lodestone_client import AsyncCollection, Collection
from lodestone_client.llama_index import LodestoneRetriever

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
