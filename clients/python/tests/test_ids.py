"""Tests, against scripted answers, of ids in other forms than those that the server stores, and of the ids of files."""

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from haystack import Document
from haystack.document_stores.types import DuplicatePolicy
from llama_index.core.schema import TextNode
from test_retries import Script, looked_up

from lodestone_client import Collection, VectorCollection
from lodestone_client._ids import id_of_path
from lodestone_client._protocol import folder_files
from lodestone_client._sync.haystack_documents import HaystackDocuments
from lodestone_client.langchain import LodestoneVectorStore
from lodestone_client.llama_index import LodestoneVectorStore as NodeStore

GIVEN, STORED = "cafe\u0301", "caf\u00e9"


def accepted(*ids: str) -> httpx.Response:
    return httpx.Response(200, json={"uploaded": [{"file_id": id_} for id_ in ids], "failed": []})


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


def test_ids_of_files_are_those_of_the_command_line() -> None:
    # The tests of src/cli/ingest/ids.rs read the same table.
    table = json.loads((Path(__file__).parents[3] / "src/cli/ingest/ids.json").read_bytes())
    assert {path: id_of_path(path.split("/")) for path in table} == table
    assert id_of_path([os.fsdecode(b"\xff\n")]) == "%FF%0A"
    assert id_of_path(["\u00e9" * 256]) == "\u00e9" * 256 and id_of_path(["\u00e9" * 257]).isascii()


def test_a_folder_has_the_name_by_which_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "notes" / "deep").mkdir(parents=True)
    (tmp_path / "notes" / "a.txt").touch()
    (tmp_path / "link").symlink_to("notes")
    monkeypatch.chdir(tmp_path / "notes" / "deep")
    for folder in (tmp_path / "notes", Path(".."), Path("../../notes")):
        assert [id_ for _, id_ in folder_files(folder, "*")] == ["notes:a.txt"]
    assert [id_ for _, id_ in folder_files(tmp_path / "link", "*")] == ["link:a.txt"]


def test_files_with_any_name_are_uploaded_and_reported(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name in (f"{GIVEN}.txt".encode(), b"\xff.txt"):
        (folder / os.fsdecode(name)).write_text("text")
    ids = ["notes:cafe%CC%81.txt", "notes:%FF.txt"]
    script = Script(accepted(*ids), looked_up(*((id_, "success") for id_ in ids)))
    outcomes = script.client().upload_folder(folder, "t")
    assert [(outcome.file_id, outcome.status) for outcome in outcomes] == [(id_, "success") for id_ in ids]
    assert 'filename="\ufffd.txt"'.encode() in script.requests[0].content


def test_a_folder_is_waited_for_by_the_ids_of_the_server(tmp_path: Path) -> None:
    # The server knows a newer version of Unicode, in which one of the names is not in NFC.
    for name in ("a.txt", "b.txt", "c.txt", "d.txt"):
        (tmp_path / name).write_text("text")
    refused = {"index": 0, "filename": "a.txt", "error_code": "INVALID_PARAMETERS", "message": "no"}
    ids = ("other:b.txt", "notes:c.txt", "notes:d.txt")
    answer = {"uploaded": [{"file_id": id_} for id_ in ids], "failed": [refused]}
    script = Script(
        httpx.Response(200, json=answer), looked_up(*((id_, "success") for id_ in ids[:2]), not_found=ids[2:])
    )
    outcomes = script.client().upload_folder(tmp_path, "t")
    assert [outcome.status for outcome in outcomes] == ["refused", "success", "success", "refused"]
    assert tuple(outcome.file_id for outcome in outcomes[1:]) == ids
    assert body(script.requests[1])["source_ids"] == list(ids)
