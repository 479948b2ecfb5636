"""The `openai` package, unmodified, against a running server. Exits with 1 at the first surprise.

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
    """A request of the server's own interface."""
    headers = {"authorization": f"Bearer {sys.argv[2]}", "content-type": "application/json"}
    request = urllib.request.Request(address + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=90) as response:
        return json.load(response)


def refused(kind, code, call):
    """Checks that a call raises an error of a class, with a code."""
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
    # "hello world" in the vocabulary of BERT, uncased.
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
    stranger = openai.OpenAI(base_url=address + "/v1", api_key="wrong", max_retries=0)
    refused(openai.AuthenticationError, "invalid_api_key", lambda: stranger.models.list())
    print(f"openai {openai.__version__}: all checks passed in {time.monotonic() - begun:.1f} s")


main()
