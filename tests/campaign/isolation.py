"""The row on isolation: every route, called with every tenant's key and the names of all tenants.

No answer may contain another tenant's canary, nor one about a sub-tenant that of the other sub-tenant; neither log nor
metrics may contain any. A revoked key must fail at once.
"""
import json
import re
import threading
from random import Random
from urllib.parse import urlencode

from server import Broken, Gone, Server, wait_for_jobs

LETTERS = "bcdfghjklmnpqrtvwx"
TENANTS, REQUESTS = ["amber", "basil", "cedar"], 400
# Each round begins by uploading all documents: some requests delete them.
ROUNDS = 10
SUB_TENANTS = ["default", "second"]
# Never called: they delete the tenant, or do not end.
SKIPPED = ("/tenant/delete", "/jobs/{job_id}/events")
# Routes that answer from a single sub-tenant.
OF_SUB_TENANT = ("/search/", "/list/", "/fetch/", "/upload/verify_processing")


def canaries(trial):
    """Three tenants ask concurrently for their own data and for others'."""
    random = trial.random
    codes = {name: "".join(random.choices(LETTERS, k=12)) for name in TENANTS}
    server = Server(trial, trial.folder / "data", {"RUST_LOG": "debug"})
    admin = server.client()
    keys = {name: key_of(admin, name, random) for name in TENANTS}
    status, _, text = admin.send("GET", "/openapi.json")
    routes = operations(json.loads(text))
    failures, lock, seen = [], threading.Lock(), {"responses": 0, "own_canaries": 0}

    def work(name, random):
        client = server.client(keys[name], is_kept=True)
        others = [code for other, code in codes.items() if other != name]
        for _ in range(REQUESTS):
            method, path, body, scope = random.choice(routes)(random, codes[name])
            try:
                status, headers, answer = client.send(method, path, body)
            except Gone as gone:
                failures.append(f"{method} {path}: {gone}")
                return
            text = answer.decode(errors="replace").lower() + str(headers).lower()
            with lock:
                seen["responses"] += 1
                seen["own_canaries"] += codes[name] in text
            other = codes[name] + mark(next(other for other in SUB_TENANTS if other != scope["sub_tenant_id"]))
            if any(code in text for code in others) or path.startswith(OF_SUB_TENANT) and other in text:
                failures.append(f"{name}: {method} {path} {body}: {status} {text[:1500]}")
            if status >= 500 and status not in (503, 507):
                failures.append(f"{name}: {method} {path} {body}: {status} {text[:600]}")

    for _ in range(ROUNDS):
        for name in TENANTS:
            furnish(admin, name, codes[name], random)
        wait_for_jobs(admin)
        threads = [threading.Thread(target=work, args=(name, Random(random.random()))) for name in TENANTS]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    trial.add(**seen)
    for name, key in keys.items():
        status, listed = admin.ask("GET", "/admin/api_keys")
        key_id = next(one["key_id"] for one in listed["api_keys"] if one["name"] == name)
        admin.expect("DELETE", f"/admin/api_keys/{key_id}")
        for path in ("/list/sources", "/tenant/stats", "/tenant/list"):
            status, answer = server.client(key).ask("GET", path, tenant_id=name)
            if status != 401:
                failures.append(f"a revoked key: {path}: {status} {answer}")
    _, _, metrics = admin.send("GET", "/metrics")
    server.stop()
    for what, text in (("the log", server.log()), ("the metrics", metrics.decode())):
        for secret in [*codes.values(), *keys.values(), server.key]:
            if secret.lower() in text.lower():
                at = text.lower().index(secret.lower())
                failures.append(f"{what}: {secret} in {text[max(0, at - 200) : at + 200]}")
    if not seen["own_canaries"]:
        failures.append("nobody ever saw a canary of its own: the row shows nothing")
    if failures:
        raise Broken(f"{len(failures)} failures: {failures[0]}")


def mark(sub_tenant):
    """The letter of a sub-tenant, which follows the tenant's code in its canaries."""
    return LETTERS[SUB_TENANTS.index(sub_tenant)]


def furnish(admin, name, code, random):
    """Uploads the documents of one tenant, each with its canary."""
    for sub_tenant in SUB_TENANTS:
        scope = {"tenant_id": name, "sub_tenant_id": sub_tenant}
        for at in range(3):
            own = code + mark(sub_tenant) + "".join(random.choices(LETTERS, k=4))
            content = f"The stone number {at} of the hall is called {own}. Wind is everywhere. " * 3
            body = {"file_id": f"doc-{at}", "content": content, "document_metadata": {"title": own, "mark": own}}
            admin.expect("POST", "/upload/upload_text", body, **scope)
        own = code + mark(sub_tenant)
        body = {"file_id": f"own-{own}", "content": f"A note that only {own} may see. Wind is everywhere."}
        admin.expect("POST", "/upload/upload_text", body, **scope)


def key_of(admin, name, random):
    """A key for this tenant only."""
    body = {"name": name, "role": random.choice(["write", "admin"]), "tenants": [{"tenant_id": name}]}
    return admin.expect("POST", "/admin/api_keys", body)["api_key"]


def operations(document):
    """One function per operation of the API that makes a request to it."""
    made = []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if method in ("get", "post", "put", "patch", "delete") and not path.startswith(SKIPPED):
                # Routes that show data are called more often.
                times = 5 if path.startswith((*OF_SUB_TENANT, "/tenant/export", "/jobs")) else 1
                made += [maker(document, method.upper(), path, operation)] * times
    return made


def resolved(document, schema):
    """A schema with its references followed."""
    while "$ref" in schema:
        node = document
        for part in schema["$ref"][2:].split("/"):
            node = node[part]
        schema = node
    return schema


def maker(document, method, path, operation):
    """A function that fills in an operation's parameters, with names of the caller and of others."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    schema = resolved(document, content.get("schema", {}))
    parameters = [resolved(document, parameter) for parameter in operation.get("parameters", ())]

    def make(random, code):
        scope = {"tenant_id": random.choice(TENANTS), "sub_tenant_id": random.choice(SUB_TENANTS)}
        query = {}
        for parameter in parameters:
            value = value_of(document, parameter["name"], parameter.get("schema", {}), random, code, scope)
            is_wanted = parameter.get("required") or parameter["name"] in scope or random.random() < 0.15
            if parameter["in"] == "query" and is_wanted:
                query[parameter["name"]] = value if isinstance(value, str) else json.dumps(value)
        filled = re.sub(r"\{(\w+)\}", lambda name: str(value_of(document, name[1], {}, random, code, scope)), path)
        body = None
        if content:
            body = json.dumps(object_of(document, schema, random, code, scope))
        return method, f"{filled}?{urlencode(query)}" if query else filled, body, scope

    return make


def object_of(document, schema, random, code, scope):
    """An object with the required members and some of the others."""
    required, made = schema.get("required", ()), {}
    for name, inner in schema.get("properties", {}).items():
        if name in required or name in ("tenant_id", "sub_tenant_id", "query", "content") or random.random() < 0.08:
            made[name] = value_of(document, name, inner, random, code, scope)
    return made


def value_of(document, name, schema, random, code, scope):
    """A value for a name: preferably one that leads somewhere, in any tenant's scope."""
    schema = resolved(document, schema)
    known = {
        "query": ["wind everywhere", "stone number hall", "note"],
        "question": ["What is everywhere?", "Which stone is in the hall?"],
        "content": [f"The stone of {code}{mark(scope['sub_tenant_id'])} is everywhere, like wind."],
        "confirm": ["nothing"],
        "key_id": ["key-1"],
        "format": ["json"],
    }
    if name in scope:
        return scope[name]
    if name in known:
        return random.choice(known[name])
    ids = [f"doc-{random.randrange(3)}", f"own-{code}{mark(scope['sub_tenant_id'])}"]
    if name in ("file_id", "source_id", "id"):
        return random.choice(ids)
    if name in ("source_ids", "file_ids", "ids", "chunk_ids"):
        return ids
    if "enum" in schema:
        return random.choice(schema["enum"])
    kind = schema.get("type")
    kind = next((one for one in kind if one != "null"), None) if isinstance(kind, list) else kind
    if kind == "array":
        return [value_of(document, name, schema.get("items", {}), random, code, scope)]
    if kind == "object" or "properties" in schema:
        return object_of(document, schema, random, code, scope)
    for inner in schema.get("anyOf", schema.get("oneOf", ())):
        if inner.get("type") != "null":
            return value_of(document, name, inner, random, code, scope)
    values = {"integer": random.randrange(1, 50), "number": random.random(), "boolean": random.random() < 0.5}
    return values.get(kind, "wind")
