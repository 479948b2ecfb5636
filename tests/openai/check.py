"""Checks a running server with the unmodified `openai` package. Exits with 1 at the first surprise.

  check.py ADDRESS KEY MODEL
"""

import json
import sys
import time
import urllib.request

import openai

QUESTION = "Where do visitors park?"
TEXTS = {
    "default": "Employees park on level 2. Visitors park on level 1 and get a ticket at the front desk.",
    "north": "The northern office has no parking. Visitors use the garage across the street.",
}


def post(address, path, body):
    """Sends a request to the server's own API."""
    headers = {"authorization": f"Bearer {sys.argv[2]}", "content-type": "application/json"}
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=90) as response:
        return json.load(response)


def refused(kind, code, call):
    """Checks that a call raises an error of this class with this code."""
    try:
        call()
    except kind as error:
        assert error.code == code, (error.code, error.message)
        return error
    raise AssertionError(f"no {kind.__name__} with {code}")


def check_embeddings(client, model):
    texts = ["a dog barks", "a puppy is barking", "stock prices fell"]
    as_base64 = client.embeddings.create(model=model, input=texts)
    as_float = client.embeddings.create(model=model, input=texts, encoding_format="float")
    assert [entry.index for entry in as_float.data] == [0, 1, 2]
    vectors = [entry.embedding for entry in as_float.data]
    for ours, packed in zip(vectors, (entry.embedding for entry in as_base64.data)):
        assert max(abs(a - b) for a, b in zip(ours, packed)) < 1e-6
    dot = lambda a, b: sum(x * y for x, y in zip(a, b))
    assert abs(dot(vectors[0], vectors[0]) - 1) < 1e-4
    assert dot(vectors[0], vectors[1]) > 0.5 > dot(vectors[0], vectors[2])
    assert as_float.usage.prompt_tokens == 3 + 5 + 3, as_float.usage
    # "hello world" in the vocabulary of uncased BERT.
    by_tokens = client.embeddings.create(model=model, input=[7592, 2088], encoding_format="float")
    by_text = client.embeddings.create(model=model, input="hello world", encoding_format="float")
    assert dot(by_tokens.data[0].embedding, by_text.data[0].embedding) > 0.9999
    error = refused(
        openai.BadRequestError,
        "invalid_value",
        lambda: client.embeddings.create(model=model, input=[[7592], [40000]]),
    )
    assert "input[1]" in error.message, error.message
    long = client.embeddings.create(model=model, input=["word " * 1000, "word"])
    assert long.model_extra["truncated"] == [0] and long.usage.prompt_tokens == 254 + 1, long.usage
    refused(
        openai.BadRequestError,
        "invalid_value",
        lambda: client.embeddings.create(
            model=model, input="word " * 1000, extra_body={"truncate": False}
        ),
    )
    error = refused(
        openai.BadRequestError,
        "invalid_value",
        lambda: client.embeddings.create(model=model, input="x", dimensions=100),
    )
    assert error.param == "dimensions" and model in error.message, error.message
    refused(
        openai.NotFoundError,
        "model_not_found",
        lambda: client.embeddings.create(model="text-embedding-3-small", input="x"),
    )
    many = client.embeddings.create(model=model, input=[f"text {n}" for n in range(600)])
    alone = client.embeddings.create(model=model, input="text 599")
    assert dot(many.data[599].embedding, alone.data[0].embedding) > 0.9999


def check_models(client, model):
    models = {found.id: found for found in client.models.list()}
    assert models[model].model_extra["kind"] == "embedding"
    assert models["acme"].model_extra["kind"] == "knowledge"
    assert client.models.retrieve("acme/north").id == "acme/north"
    refused(openai.NotFoundError, "model_not_found", lambda: client.models.retrieve("nowhere"))


def check_rerank(client, model):
    body = {
        "query": "Where can I leave my car?",
        "documents": ["Cats sleep a lot.", {"text": "Parking is on level 1."}, "It rains."],
        "top_n": 2,
        "return_documents": True,
    }
    ranked = client.post("/rerank", body=body, cast_to=object)
    assert ranked["model"] == model and len(ranked["results"]) == 2, ranked
    assert ranked["results"][0]["document"] == {"text": "Parking is on level 1."}, ranked


def check_chat(client):
    messages = [
        {"role": "system", "content": "Be helpful."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hello, what would you like to know?"},
        {"role": "user", "content": QUESTION},
    ]
    whole = client.chat.completions.create(model="acme", messages=messages, temperature=0)
    message = whole.choices[0].message
    assert "level 1" in message.content and "[1]" in message.content, message
    cited = message.annotations[0].url_citation
    assert message.content[cited.start_index : cited.end_index] == "[1]"
    assert cited.url == "lodestone://acme/default/parking", cited
    assert message.model_extra["citations"][0]["file_id"] == "parking"
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    north = client.chat.completions.create(
        model="any",
        messages=messages[-1:],
        extra_headers={"x-lodestone-tenant": "acme", "x-lodestone-sub-tenant": "north"},
    )
    assert "garage" in north.choices[0].message.content and north.model == "acme/north"
    stream = client.chat.completions.create(
        model="acme", messages=messages, stream=True, stream_options={"include_usage": True}
    )
    text, usage, citations = "", None, None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            citations = (choice.delta.model_extra or {}).get("citations", citations)
    assert text == message.content, text
    assert usage == whole.usage and citations == message.model_extra["citations"]
    tool = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    refused(
        openai.BadRequestError,
        "unsupported_parameter",
        lambda: client.chat.completions.create(model="acme", messages=messages, tools=[tool]),
    )
    for stream in (False, True):
        refused(
            openai.NotFoundError,
            "model_not_found",
            lambda: client.chat.completions.create(
                model="gpt-4o", messages=messages, stream=stream
            ),
        )


def check_files(client):
    """The life cycle of files in a vector store, alone and in batches."""
    tower = ("tower.txt", b"The Eiffel Tower was designed by Gustave Eiffel and opened in 1889.")
    bridge = ("bridge.md", b"# Bridges\n\nThe Forth Bridge was opened in 1890 in Scotland.")
    dome = ("dome.html", b"<h1>Domes</h1><p>The dome of Florence was built by Brunelleschi.</p>")
    store = client.vector_stores.create(name="Buildings", metadata={"team": "red"})
    assert store.status == "completed" and store.file_counts.total == 0, store
    stored = client.files.create(file=tower, purpose="assistants")
    assert (stored.filename, stored.bytes, stored.status) == (tower[0], len(tower[1]), "processed")
    assert client.files.retrieve(stored.id) == stored
    assert client.files.content(stored.id).read() == tower[1]
    search = lambda query, **more: [
        found for found in client.vector_stores.search(store.id, query=query, **more)
    ]
    assert search("Who designed the tower?") == [], "it is no part of the store yet"
    taken = client.vector_stores.files.create_and_poll(
        stored.id, vector_store_id=store.id, attributes={"year": 1889, "kind": "tower", "open": True}
    )
    assert (taken.status, taken.last_error) == ("completed", None), taken
    alone = client.vector_stores.files.upload_and_poll(
        vector_store_id=store.id, file=bridge, attributes={"year": 1890, "kind": "bridge"}
    )
    assert alone.status == "completed" and alone.attributes == {"year": 1890, "kind": "bridge"}
    picture = ("a.png", b"\x89PNG\r\n\x1a\n\0\0")
    batch = client.vector_stores.file_batches.upload_and_poll(
        store.id, files=[dome, picture], file_ids=[stored.id]
    )
    counts = batch.file_counts
    assert batch.status == "completed", batch
    assert (counts.completed, counts.failed, counts.total) == (2, 1, 3), counts
    of_batch = client.vector_stores.file_batches.list_files(batch.id, vector_store_id=store.id)
    codes = [file.last_error and file.last_error.code for file in of_batch]
    assert sorted(codes, key=str) == [None, None, "unsupported_file"], codes
    canceled = client.vector_stores.file_batches.cancel(batch.id, vector_store_id=store.id)
    assert canceled.status == "cancelled", canceled

    found = search("Who designed the Eiffel Tower?", max_num_results=1)[0]
    assert (found.file_id, found.filename) == (stored.id, tower[0]), found
    assert found.content[0].text == tower[1].decode() and 0 < found.score <= 1, found
    later = {"type": "gt", "key": "year", "value": 1889}
    known = {"type": "in", "key": "kind", "value": ["tower", "bridge"]}
    both = {"type": "and", "filters": [later, known]}
    for filters in (later, both):
        assert {one.file_id for one in search("building", filters=filters)} == {alone.id}
    assert search("building", filters=known, ranking_options={"score_threshold": 1.0}) == []
    error = refused(
        openai.BadRequestError,
        "invalid_filter",
        lambda: search("x", filters={"type": "like", "key": "kind", "value": "t"}),
    )
    assert error.param == "filters.type", error
    changed = client.vector_stores.files.update(
        alone.id, vector_store_id=store.id, attributes={"kind": "railway"}
    )
    assert changed.attributes == {"kind": "railway"}, changed
    railway = {"type": "eq", "key": "kind", "value": "railway"}
    assert [one.file_id for one in search("building", filters=railway)] == [alone.id]
    text = client.vector_stores.files.content(alone.id, vector_store_id=store.id)
    assert "Forth Bridge" in " ".join(piece.text for piece in text)
    assert len(list(client.vector_stores.files.list(store.id, limit=1))) == 3, "page by page"
    assert {one.id for one in client.files.list(limit=1)} >= {stored.id, alone.id}
    named = client.vector_stores.update(store.id, name="Houses")
    assert (named.name, named.metadata) == ("Houses", {"team": "red"}), named
    assert store.id in [one.id for one in client.vector_stores.list(limit=1)]

    gone = client.vector_stores.files.delete(alone.id, vector_store_id=store.id)
    assert gone.deleted and search("building", filters=railway) == []
    assert client.files.delete(stored.id).deleted
    assert stored.id not in {one.file_id for one in search("Eiffel Tower")}
    refused(openai.NotFoundError, "file_not_found", lambda: client.files.retrieve(stored.id))
    assert client.vector_stores.delete(store.id).deleted
    refused(
        openai.NotFoundError,
        "vector_store_not_found",
        lambda: client.vector_stores.retrieve(store.id),
    )
    for left in client.files.list():
        client.files.delete(left.id)
    assert client.files.list().data == []


def main():
    address, key, model = sys.argv[1:]
    begun = time.monotonic()
    for sub_tenant, text in TEXTS.items():
        query = f"?tenant_id=acme&sub_tenant_id={sub_tenant}"
        post(address, "/upload/upload_text" + query, {"file_id": "parking", "content": text})
        done = post(address, f"/upload/verify_processing{query}&file_id=parking&wait=60", {})
        assert done["status"] == "success", done
    client = openai.OpenAI(base_url=address + "/v1", api_key=key, max_retries=0)
    check_embeddings(client, model)
    check_models(client, model)
    check_rerank(client, model)
    check_chat(client)
    check_files(client.with_options(default_headers={"x-lodestone-tenant": "acme"}))
    refused(openai.BadRequestError, "missing_field", lambda: client.files.list())
    stranger = openai.OpenAI(base_url=address + "/v1", api_key="wrong", max_retries=0)
    refused(openai.AuthenticationError, "invalid_api_key", lambda: stranger.models.list())
    print(f"openai {openai.__version__}: all checks passed in {time.monotonic() - begun:.1f} s")


main()
