"""Tests, against scripted answers, that ids in any Unicode form are treated as those that the server stores."""

import json
from typing import Any

import httpx
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from llama_index.core.schema import TextNode
from test_retries import Script, looked_up

from lodestone_client import Collection, VectorCollection
from lodestone_client._sync.haystack_documents import HaystackDocuments
from lodestone_client.langchain import LodestoneVectorStore
from lodestone_client.llama_index import LodestoneVectorStore as NodeStore

GIVEN, STORED = "cafe\u0301", "caf\u00e9"


def accepted() -> httpx.Response:
    return httpx.Response(200, json={"failed": []})


def body(request: httpx.Request) -> Any:
    return json.loads(request.content)


def test_langchain_returns_the_ids_under_which_documents_are_stored() -> None:
    script = Script(accepted(), looked_up((STORED, "success")))
    assert LodestoneVectorStore(Collection(script.client(), "t")).add_texts(["text"], ids=[GIVEN]) == [STORED]
    assert body(script.requests[0])["items"][0]["file_id"] == STORED


def test_haystack_skips_a_known_document() -> None:
    script = Script(looked_up((STORED, "success")))
    documents = HaystackDocuments(Collection(script.client(), "t"))
    assert documents.write([Document(id=GIVEN, content="text")], DuplicatePolicy.SKIP) == 0


def test_a_vector_that_is_given_twice_is_sent_once() -> None:
    script = Script(accepted())
    VectorCollection(script.client(), "t").add([GIVEN, STORED], [[1], [2]], [None, None])
    assert (body(script.requests[0])["ids"], body(script.requests[0])["embeddings"]) == ([STORED], [[2.0]])


def test_llama_index_finds_nodes_by_either_form() -> None:
    script = Script(accepted(), *[httpx.Response(200, json={"chunks": [], "next_cursor": None})] * 2)
    store = NodeStore(VectorCollection(script.client(), "t"))
    store.add([TextNode(id_=GIVEN, text="text", embedding=[1.0])])
    for id_ in (GIVEN, STORED):
        store.get_nodes([id_])
    stored = body(script.requests[0])["metadata"][0]["_node_id"]
    assert stored == STORED
    assert all(
        body(request)["filter"] == {"$and": [{"$or": [{"_node_id": {"$in": [STORED]}}]}]}
        for request in script.requests[1:]
    )
