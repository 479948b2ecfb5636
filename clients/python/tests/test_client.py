"""Tests the client against a real server."""

import contextlib
import inspect
import io
import uuid
from array import array
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from lodestone_client import (
    AsyncClient,
    AsyncVectorCollection,
    AuthenticationError,
    Client,
    ConflictError,
    InvalidRequestError,
    LimitReachedError,
    NotFoundError,
    Options,
    PermissionDeniedError,
    ProcessingFailed,
    VectorCollection,
    WaitTimeout,
)


def upload(client: Client, tenant: str, count: int) -> list[str]:
    ids = [f"note-{number}" for number in range(count)]
    items = [{"content": f"Note {id_} is about parking.", "file_id": id_} for id_ in ids]
    client.upload.batch_upload_text(tenant_id=tenant, items=items)
    assert {source["status"] for source in client.wait(tenant, ids)} == {"success"}
    return ids


def test_every_operation_of_the_document_is_a_method(client: Client) -> None:
    document = client.operations.openapi_json()
    sent = set()

    def record(request: httpx.Request) -> httpx.Response:
        sent.add((request.method, request.url.path))
        return httpx.Response(200, json={})

    recorder = Client("http://server", "key", http=httpx.Client(transport=httpx.MockTransport(record)))
    groups = [group for group in vars(recorder).values() if type(group).__name__.endswith("Operations")]
    for group in groups:
        for name, method in inspect.getmembers(group, inspect.ismethod):
            if not name.startswith(("_", "iter_")) and not name.endswith("_stream"):
                takes_any = "request" in inspect.signature(method).parameters
                body = b"" if name == "import_tenant" else []
                method(**({"key_id": "{key_id}", "token": "{token}", "body": body} if takes_any else {}))
    # /v1 is OpenAI's interface, for which OpenAI has clients.
    paths = {path: methods for path, methods in document["paths"].items() if not path.startswith("/v1/")}
    described = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    # One operation also has a short path, and one accepts either method.
    other_names = {("DELETE", "/delete_source"), ("POST", "/upload/verify_processing")}
    assert sent == described - other_names


def test_pages_hold_every_source_once(client: Client, tenant: str) -> None:
    ids = upload(client, tenant, 7)
    for limit in (1, 3, 7, 1000):
        listed = [source["id"] for source in client.listing.iter_sources(tenant_id=tenant, limit=limit)]
        assert sorted(listed) == ids
    assert {job["file_id"] for job in client.operations.iter_jobs(tenant_id=tenant, limit=2)} == set(ids)


def test_streamed_answer_equals_the_plain_one(client: Client, tenant: str) -> None:
    upload(client, tenant, 1)
    events = list(client.search.qna_stream(tenant_id=tenant, question="What is note-0 about?"))
    assert [event.event for event in events if event.event != "token"] == ["start", "sources", "done"]
    text = "".join(event.data["delta"] for event in events if event.event == "token")
    plain = client.search.qna(tenant_id=tenant, question="What is note-0 about?")
    assert text == events[-1].data["answer"] == plain["answer"] != ""


async def test_async_client_does_the_same(client: Client, async_client: AsyncClient, tenant: str) -> None:
    ids = upload(client, tenant, 3)
    found = await async_client.search.retrieve(tenant_id=tenant, query="parking")
    assert {chunk["source_id"] for chunk in found["chunks"]} == set(ids)
    assert len([source async for source in async_client.listing.iter_sources(tenant_id=tenant, limit=2)]) == 3
    async with contextlib.aclosing(async_client.search.qna_stream(tenant_id=tenant, question="What is it about?")) as s:
        async for event in s:
            assert event.event == "start"
            break
    assert len(await async_client.wait(tenant, ids)) == 3


def test_files_of_every_kind_arrive(client: Client, tenant: str, tmp_path: Path) -> None:
    path = tmp_path / "open.txt"
    path.write_text("An open file.")
    with path.open("rb") as opened:
        forms = [opened, io.BytesIO(b"In memory."), b"Bytes.", ("named.txt", b"Named."), path]
        for number, form in enumerate(forms):
            client.upload.upload_document(tenant_id=tenant, file_id=str(number), file=form, document_metadata={"n": 1})
        with pytest.raises(TypeError, match="file is a str"):
            client.upload.upload_document(tenant_id=tenant, file=str(path))
    sources = client.wait(tenant, ["0", "1", "2", "3", "4"])
    assert sorted(source["title"] for source in sources if "." in source["title"]) == ["named.txt", *["open.txt"] * 2]
    assert all(source["document_metadata"] == {"n": 1} for source in sources)
    assert client.fetch.fetch_content(tenant_id=tenant, file_id="2")["file_content"] == "Bytes."
    signed = client.fetch.fetch_content(tenant_id=tenant, file_id="3", return_content=False)
    assert client.fetch.download(token=signed["download_url"].rsplit("/", 1)[1]) == b"Named."


def test_an_upload_that_is_repeated_under_its_key_happens_once(client: Client, tenant: str) -> None:
    options = Options(idempotency_key=tenant)
    file = ("a.txt", b"One file.")
    first = client.upload.upload_document(tenant_id=tenant, file=file, options=options)
    assert client.upload.upload_document(tenant_id=tenant, file=file, options=options) == first
    with pytest.raises(ConflictError, match="idempotency_conflict"):
        client.upload.upload_document(tenant_id=tenant, file=("a.txt", b"Another."), options=options)


def test_folder_reports_progress_and_failures(client: Client, tenant: str, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    for number in range(23):
        (folder / "deep" / f"{number:02}.txt").write_text(f"Note {number}.")
    (folder / "empty.txt").touch()
    (folder / ".hidden").write_text("Not sent.")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing")
    seen = []
    outcomes = client.upload_folder(folder, tenant, on_progress=lambda outcome, done, total: seen.append((done, total)))
    states = {outcome.file_id: outcome for outcome in outcomes}
    assert len(outcomes) == 25 and seen[-1] == (25, 25)
    assert states["notes:empty.txt"].status == "refused" and states["notes:empty.txt"].message
    assert states["notes:broken.pdf"].status == "errored" and states["notes:broken.pdf"].error_code == "CORRUPT_FILE"
    assert states["notes:deep:22.txt"].status == "success"
    with pytest.raises(NotADirectoryError):
        client.upload_folder(folder / "empty.txt", tenant)


def test_wait_says_what_failed_is_gone_or_late(client: Client, tenant: str) -> None:
    client.upload.upload_document(tenant_id=tenant, file_id="broken", file=("a.pdf", b"%PDF-1.7\nnothing"))
    with pytest.raises(ProcessingFailed) as caught:
        client.wait(tenant, ["broken", "unknown"])
    assert [source["error_code"] for source in caught.value.sources] == ["CORRUPT_FILE"]
    assert caught.value.missing == ["unknown"]
    client.upload.upload_text(tenant_id=tenant, file_id="late", content="word " * 20_000)
    with pytest.raises(WaitTimeout, match="late"):
        client.wait(tenant, ["late"], timeout=0)


def test_errors_carry_code_fields_and_request_id(client: Client, tenant: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        client.search.retrieve(tenant_id=tenant, query="x", alpha=2, options=Options(request_id="my-id"))
    assert (caught.value.error_code, caught.value.reason) == ("INVALID_PARAMETERS", "invalid_value")
    assert caught.value.field_errors[0]["field"] == "alpha" and caught.value.request_id == "my-id"
    with pytest.raises(NotFoundError, match="source_not_found"):
        client.fetch.fetch_content(tenant_id=tenant, file_id="unknown")
    with pytest.raises(AuthenticationError):
        Client(api_key="wrong").tenant.stats(tenant_id=tenant)
    reader = client.admin.create_api_keys(name="reader", role="read")
    with pytest.raises(PermissionDeniedError):
        Client(api_key=reader["api_key"]).upload.upload_text(tenant_id=tenant, content="x")
    client.admin.delete_api_keys(key_id=reader["key_id"])
    client.admin.create_tenant_limits(tenant_id=tenant, max_sources=0)
    with pytest.raises(LimitReachedError, match="limit_reached"):
        client.upload.upload_text(tenant_id=tenant, content="x")


def test_nothing_of_the_api_is_hidden(client: Client, tenant: str) -> None:
    answers: list[httpx.Response] = []
    options = Options(extra={"new_parameter": 1}, headers={"prefer": "handling=lenient"}, on_response=answers.append)
    result = client.search.retrieve(tenant_id=tenant, query="x", options=options)
    assert result["metadata"]["ignored_parameters"] == ["new_parameter"]
    assert answers[0].headers["x-ignored-parameters"] == "new_parameter"
    assert client.request("POST", "/search/retrieve", body={"tenant_id": tenant, "query": "x"}).json()["chunks"] == []
    records = [{"id": "r", "title": "A record", "content": {"text": "Toner is out."}}]
    assert client.upload.upload_app_sources(tenant_id=tenant, body=records)["uploaded_count"] == 1
    page = client.upload.scrape_webpage(tenant_id=tenant, web_url="http://127.0.0.1/x", document_metadata={"a": [1]})
    with pytest.raises(ProcessingFailed, match="URL_BLOCKED"):
        client.wait(tenant, [page["file_id"]])
    memory = client.memory.add_user_memory(tenant_id=tenant, user_memory="Ana likes films.")
    assert client.memory.delete_user_memory(tenant_id=tenant, memory_id=memory["memory_id"])["user_memory_deleted"]


def test_vectors_go_and_come_back(client: Client) -> None:
    client.embeddings.create_tenant(tenant_id="colours-of-the-client")
    rows = [[1.0, 0.0], [0.0, 1.0]]
    ids = client.embeddings.upload_embeddings(tenant_id="colours-of-the-client", file_id="b", embeddings=rows)[
        "chunk_ids"
    ]
    hits = client.embeddings.search(tenant_id="colours-of-the-client", embeddings=[0.0, 2.0], max_chunks=1)
    assert hits["chunk_ids"] == [ids[1]]
    client.admin.delete(tenant_id="colours-of-the-client", confirm="colours-of-the-client")


@pytest.fixture
def vectors(client: Client) -> Iterator[VectorCollection]:
    tenant_id = f"t-{uuid.uuid4()}"
    yield VectorCollection(client, tenant_id).create("dot")
    client.admin.delete(tenant_id=tenant_id, confirm=tenant_id)


def matrix(count: int, width: int) -> memoryview:
    values = array("f", [float(at) for at in range(count * width)])
    return memoryview(values).cast("B").cast("f", [count, width])


async def test_a_matrix_is_uploaded_in_batches(
    client: Client, async_client: AsyncClient, vectors: VectorCollection
) -> None:
    tenant_id, stored = vectors.tenant_id, []
    batches = client.upload_vectors(matrix(7, 3), tenant_id, "m", batch_rows=3, on_progress=stored.append)
    assert batches == ["m:0", "m:1", "m:2"] and stored == [3, 6, 7]
    assert await async_client.upload_vectors(matrix(7, 3), tenant_id, "m", batch_rows=3) == batches
    found = {chunk["chunk_id"]: chunk["embedding"] for chunk in vectors.matching(with_vectors=True)}
    assert len(found) == 7 and found["m:1_2"] == [15.0, 16.0, 17.0] and found["m:2_0"] == [18.0, 19.0, 20.0]
    for wrong in (array("f", [1.0]), memoryview(array("d", [1.0] * 4)).cast("B").cast("d", [2, 2])):
        with pytest.raises(ValueError, match="matrix of float32"):
            client.upload_vectors(wrong, tenant_id, "wrong")


async def test_vectors_under_ids_of_the_caller(async_client: AsyncClient, vectors: VectorCollection) -> None:
    ids = [f"row {at}" for at in range(2500)]
    vectors.add(ids, [[at, 1.0] for at in range(2500)], [{"even": at % 2 == 0} for at in range(2500)])
    beside = AsyncVectorCollection(async_client, vectors.tenant_id)
    best = await beside.search([1.0, 0.0], 2, {"even": True})
    assert [(hit["chunk_id"], hit["score"], hit["metadata"]) for hit in best] == [
        ("row 2498", 2498.0, {"even": True}),
        ("row 2496", 2496.0, {"even": True}),
    ]
    # Known ids from several batches, and one id twice: the last value counts.
    await beside.add(["row 1", "row 2400", "row 1"], [[0, 9e3], [0, 8e3], [0, 7e3]], [None, None, {"new": True}])
    assert [hit["chunk_id"] for hit in vectors.search([0.0, 1.0], 2)] == ["row 2400", "row 1"]
    assert sum(1 for _ in vectors.matching()) == 2500
    assert await beside.delete_matching({"even": False}) == 1249 and await beside.delete(["row 1", "row 1", "?"]) == 1
    assert vectors.delete_matching() == 2500 - 1249 - 1 and vectors.search([1.0, 0.0], 0) == []
    with pytest.raises(ValueError, match="do not match"):
        vectors.add(["a"], [], [])
