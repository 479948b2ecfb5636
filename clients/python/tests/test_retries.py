"""Tests against scripted answers which requests are sent again, and how long the client waits."""

import io
import json
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from lodestone_client import (
    APIError,
    AsyncClient,
    Client,
    ConnectionFailed,
    Options,
    ProcessingFailed,
    RateLimitedError,
    ServiceUnavailableError,
    StreamInterrupted,
)
from lodestone_client._async.transport import AsyncTransport
from lodestone_client._sync.transport import Transport

Answer = httpx.Response | Exception
OK = {"chunks": [], "deleted": []}


def unavailable(status: int = 503, reason: str = "queue_full", **headers: str) -> httpx.Response:
    body = {"error_code": "SERVICE_UNAVAILABLE", "reason": reason, "message": "m"}
    return httpx.Response(status, json=body, headers={name.replace("_", "-"): text for name, text in headers.items()})


class Script:
    """A server that returns the given answers in order and records its requests."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, **settings: Any) -> Client:
        return Client("http://server", "key", http=httpx.Client(transport=httpx.MockTransport(self)), **settings)


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    pauses: list[float] = []

    async def pause(self: AsyncTransport, seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(Transport, "pause", lambda self, seconds: pauses.append(seconds))
    monkeypatch.setattr(AsyncTransport, "pause", pause)
    return pauses


def search(client: Client) -> Any:
    return client.search.retrieve(tenant_id="t", query="q")


def test_retry_after_is_obeyed(pauses: list[float]) -> None:
    script = Script(unavailable(429, retry_after="7"), httpx.ConnectError("refused"), httpx.Response(200, json=OK))
    assert search(script.client()) == OK
    assert 7.0 <= pauses[0] <= 8.0 and 0.0 <= pauses[1] <= 2.0


def test_back_off_doubles_to_a_bound(pauses: list[float]) -> None:
    script = Script(*[unavailable() for _ in range(8)])
    with pytest.raises(ServiceUnavailableError):
        search(script.client(retries=7))
    assert all(pause <= bound for pause, bound in zip(pauses, (1, 2, 4, 8, 8, 8, 8), strict=True))


@pytest.mark.parametrize("asked", [{}, {"retry_after": "7"}], ids=["not asked", "asked"])
def test_clients_that_were_refused_together_come_back_one_by_one(asked: dict[str, str], pauses: list[float]) -> None:
    for _ in range(100):
        search(Script(unavailable(**asked), httpx.Response(200, json=OK)).client())
    floor = float(asked.get("retry_after", 0))
    assert floor <= min(pauses) < floor + 0.25 and floor + 0.75 < max(pauses) <= floor + 1.0


def test_a_server_that_asks_for_too_much_patience_is_an_error(pauses: list[float]) -> None:
    with pytest.raises(RateLimitedError) as caught:
        search(Script(unavailable(429, retry_after="61")).client())
    assert caught.value.retry_after == 61 and pauses == []


@pytest.mark.parametrize(
    "answer", [unavailable(500), unavailable(400), unavailable(reason="outcome_unknown")], ids=["500", "400", "unknown"]
)
def test_other_answers_are_final(answer: httpx.Response, pauses: list[float]) -> None:
    script = Script(answer)
    with pytest.raises(Exception, match="m"):
        search(script.client())
    assert len(script.requests) == 1


CALLS: dict[str, tuple[int, Callable[[Client], Any]]] = {
    "search": (2, search),
    "list": (2, lambda client: client.admin.list()),
    "deletion": (2, lambda client: client.deletion.delete_source(tenant_id="t", source_ids=["a"])),
    "update": (2, lambda client: client.upload.update_text(tenant_id="t", source_id="a", content="c")),
    "upload": (2, lambda client: client.upload.upload_text(tenant_id="t", content="c")),
    "question": (2, lambda client: client.search.qna(tenant_id="t", question="q")),
    "turn": (1, lambda client: client.search.qna(tenant_id="t", question="q", session_id="s")),
    "tenant": (1, lambda client: client.tenant.create_tenant(tenant_id="t")),
    "key": (1, lambda client: client.admin.create_api_keys(name="k", role="read")),
    "no retries": (1, lambda client: client.tenant.stats(tenant_id="t", options=Options(retries=0))),
    "raw post": (1, lambda client: client.request("POST", "/search/retrieve", body={})),
}


@pytest.mark.parametrize("name", CALLS)
def test_only_what_is_safe_to_repeat_is_repeated(name: str, pauses: list[float]) -> None:
    attempts, call = CALLS[name]
    script = Script(httpx.ReadError("reset"), httpx.ReadError("reset"))
    with pytest.raises(ConnectionFailed):
        call(script.client(retries=1))
    assert len(script.requests) == attempts


class Pipe(io.BytesIO):
    """A file that can be read only once, such as standard input or a download."""

    name = "/dev/a.txt"

    def seekable(self) -> bool:
        return False

    def seek(self, offset: int, whence: int = 0) -> int:
        raise io.UnsupportedOperation


FILES: list[Callable[[], Any]] = [
    lambda: ("a.txt", b"content"),
    lambda: ("a.txt", io.BytesIO(b"content"), "text/plain"),
    lambda: ("a.txt", Pipe(b"content")),
    lambda: Pipe(b"content"),
]


@pytest.mark.parametrize("file", FILES, ids=["bytes", "file", "pipe", "pipe alone"])
def test_repeated_uploads_have_one_key_and_the_whole_file(file: Callable[[], Any], pauses: list[float]) -> None:
    script = Script(unavailable(), httpx.Response(200, json=OK))
    script.client().upload.upload_document(tenant_id="t", file=file())
    first, second = script.requests
    assert first.headers["idempotency-key"] == second.headers["idempotency-key"]
    for request in (first, second):
        assert b'filename="a.txt"' in request.content and b"content" in request.content.split(b"\r\n")


def test_absent_parameters_are_not_sent() -> None:
    script = Script(httpx.Response(200, json=OK))
    script.client().search.retrieve(tenant_id="t", query="q", alpha=None)
    assert json.loads(script.requests[0].content) == {"tenant_id": "t", "query": "q"}


async def test_async_retries_too(pauses: list[float]) -> None:
    script = Script(unavailable(retry_after="2"), httpx.Response(200, json=OK))
    http = httpx.AsyncClient(transport=httpx.MockTransport(script))
    assert await AsyncClient("http://server", "key", http=http).search.retrieve(tenant_id="t", query="q") == OK
    assert len(pauses) == 1 and 2.0 <= pauses[0] <= 3.0


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (': comment\n\nid: 1\nevent: start\ndata: {"a":\ndata: 1}\n\n', StreamInterrupted),
        (
            'event: start\ndata: {}\n\nevent: error\ndata: {"error_code":"SERVICE_UNAVAILABLE"}\n\n',
            ServiceUnavailableError,
        ),
    ],
)
def test_a_stream_without_its_end_is_an_error(text: str, error: type[Exception]) -> None:
    stream = Script(httpx.Response(200, text=text)).client().search.qna_stream(tenant_id="t", question="q")
    assert next(stream).event == "start"
    with pytest.raises(error):
        next(stream)


def test_an_event_may_come_in_pieces_and_hold_line_separators() -> None:
    text = ': comment\r\n\r\nevent: done\r\ndata: {"answer": "a\u2028b\x85c"}\r\n\r\n'
    pieces = [bytes([byte]) for byte in text.encode()]
    script = Script(httpx.Response(200, content=iter(pieces)))
    [event] = script.client().search.qna_stream(tenant_id="t", question="q")
    assert event.data == {"answer": "a\u2028b\x85c"}


def test_answers_of_a_proxy_are_errors_too(pauses: list[float]) -> None:
    with pytest.raises(ServiceUnavailableError, match="try later"):
        search(Script(httpx.Response(503, text="try later")).client(retries=0))
    with pytest.raises(APIError, match="please sign in"):
        search(Script(httpx.Response(200, text="please sign in")).client(retries=0))
    garbled = httpx.Response(200, stream=httpx.ByteStream(b"no gzip"), headers={"content-encoding": "gzip"})
    with pytest.raises(ConnectionFailed):
        search(Script(garbled).client(retries=0))


def test_a_wait_may_take_longer_than_the_time_limit_of_a_call() -> None:
    source = {"id": "a", "status": "queued"}
    answers = [
        {"sources": [source], "not_found": []},
        {},
        {"sources": [{**source, "status": "success"}], "not_found": []},
    ]
    script = Script(*[httpx.Response(200, json=answer) for answer in answers])
    assert [source["id"] for source in script.client(timeout=1).wait("t", "a")] == ["a"]
    assert script.requests[1].url.params["wait"] == "20"
    assert script.requests[1].extensions["timeout"]["read"] == 21


def looked_up(*sources: tuple[str, str], not_found: tuple[str, ...] = ()) -> httpx.Response:
    found = [{"id": id_, "status": status, "error_code": "", "error_message": ""} for id_, status in sources]
    return httpx.Response(200, json={"sources": found, "not_found": not_found})


def test_a_wait_knows_its_sources_by_the_ids_of_the_server() -> None:
    script = Script(
        looked_up(("caf\u00e9.txt", "queued"), not_found=("\u00fcber",)),
        httpx.Response(200, json={}),
        looked_up(("caf\u00e9.txt", "success")),
    )
    with pytest.raises(ProcessingFailed) as caught:
        script.client().wait("t", ["cafe\u0301.txt", "u\u0308ber", "caf\u00e9.txt"])
    assert caught.value.missing == ["\u00fcber"] and caught.value.sources == []
    assert json.loads(script.requests[0].content)["source_ids"] == ["caf\u00e9.txt", "\u00fcber"]
    assert script.requests[1].url.params["file_id"] == "caf\u00e9.txt"
    # A server with a newer version of Unicode may join characters that this client does not.
    ended = Script(looked_up(("joined", "success"))).client().wait("t", "not joined")
    assert [source["id"] for source in ended] == ["joined"]


def test_a_wait_that_learns_nothing_pauses(pauses: list[float]) -> None:
    pending, polled = looked_up(("a", "queued"), ("b", "queued")), httpx.Response(200, json={})
    gone = httpx.Response(404, json={"reason": "source_not_found"})
    one_left, done = looked_up(("a", "success"), ("b", "queued")), looked_up(("b", "success"))
    script = Script(pending, polled, pending, gone, pending, polled, one_left, polled, done)
    assert [source["id"] for source in script.client().wait("t", ["a", "b"])] == ["a", "b"]
    assert pauses == [0.5, 0.5]


def test_a_key_may_end_in_a_line_break_and_a_server_has_a_scheme() -> None:
    script = Script(httpx.Response(200, json=OK))
    client = Client("http://server", "key\n", http=httpx.Client(transport=httpx.MockTransport(script)))
    search(client)
    assert "key" not in repr(client._transport.settings).replace("api_key", "")
    assert script.requests[0].headers["authorization"] == "Bearer key"
    with pytest.raises(ValueError, match="http"):
        Client("127.0.0.1:8080", "key")
