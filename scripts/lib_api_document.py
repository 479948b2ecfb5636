"""Reads the server's OpenAPI document into operations and types for the client generators."""
import json
import re
from dataclasses import dataclass, field

MEDIA = {"application/json": "json", "multipart/form-data": "form", "application/x-www-form-urlencoded": "urlencoded",
         "application/x-ndjson": "lines"}
VERBS = {"post": "create", "get": "get", "delete": "delete", "patch": "update", "put": "put"}


@dataclass
class Operation:
    """One operation as clients expose it: a method of a group, one request object, one result."""

    group: str
    name: str
    method: str
    path: str
    summary: str
    role: str | None
    query: list
    media: str | None
    is_whole: bool
    request: str | None  # name of the type with all parameters, wherever they are sent
    requires_request: bool
    result: dict
    result_kind: str
    streams: bool
    items: tuple | None = None  # name of the paged list in the result, and the type of its items

    @property
    def retry(self):
        """Whether a retry is safe: it only reads, is idempotent, or carries an idempotency key."""
        return self.role in (None, "read") or self.method in ("GET", "PATCH", "DELETE") or self.keyed

    @property
    def keyed(self):
        """Whether the server honours an `Idempotency-Key` for it: uploads and memories."""
        return self.method == "POST" and self.role == "write"


@dataclass
class Api:
    """All operations, and all types by name: schemas whose inner objects are references."""

    operations: list = field(default_factory=list)
    types: dict = field(default_factory=dict)

    @property
    def groups(self):
        """Operations by group, in the document's order."""
        groups = {}
        for operation in self.operations:
            groups.setdefault(operation.group, []).append(operation)
        return groups


def read(document):
    """The operations and types of a document."""
    document = own_interface(document)
    api = Api()
    for name, schema in document["components"]["schemas"].items():
        api.types[name] = lifted(schema, name, api.types, top=True)
    shapes = {}
    for path, methods in document["paths"].items():
        for method, spec in methods.items():
            name = method_name(path, method, methods)
            shape = (spec["tags"][0], re.split("[/{]", path.rstrip("}"))[-1], spec["summary"])
            if shape in shapes:  # another path or method of the same operation; prefer GET, which can be retried
                if method == "get":
                    shapes[shape].method = "GET"
                continue
            group = spec["tags"][0]
            if any(known.group == group and known.name == name for known in api.operations):
                name = f"{path.split('/')[1]}_{name}"
            operation = read_operation(api, group, name, method, path, spec)
            shapes[shape] = operation
            api.operations.append(operation)
    api.operations.sort(key=lambda operation: operation.group)
    return api


def own_interface(document):
    """The document without OpenAI's interface, which OpenAI's clients cover, and the types only it uses."""
    schemas = document["components"]["schemas"]

    def reached(paths):
        found, ahead = set(), [paths]
        while ahead:
            names = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(ahead.pop()))) - found
            found |= names
            ahead += [schemas[name] for name in names]
        return found

    own = {path: methods for path, methods in document["paths"].items() if not path.startswith("/v1/")}
    others = {path: methods for path, methods in document["paths"].items() if path not in own}
    gone = reached(others) - reached(own)
    kept = {name: schema for name, schema in schemas.items() if name not in gone}
    return {**document, "paths": own, "components": {**document["components"], "schemas": kept}}


def method_name(path, method, methods):
    """`full_text_search` for `/search/full-text-search`; verbs if a path has several operations."""
    name = re.sub("[^a-z0-9]+", "_", [part for part in path.split("/") if "{" not in part][-1])
    if name in ("import", "export"):  # reserved words
        return f"{name}_{path.split('/')[1]}"
    summaries = {spec["summary"] for spec in methods.values()}
    collection = re.fullmatch("/admin/[a-z_]+(/{[a-z_]+})?", path)
    return f"{VERBS[method]}_{name}" if len(summaries) > 1 or collection else name


def read_operation(api, group, name, method, path, spec):
    sent = [each for each in spec.get("parameters", ()) if each["in"] != "header"]  # headers are call options
    parameters = {each["name"]: (each["schema"], each["required"], each["description"]) for each in sent}
    query = [each["name"] for each in sent if each["in"] == "query"]
    media, is_whole = None, False
    content = spec.get("requestBody", {}).get("content", {})
    for media_type, of_type in content.items():
        if media_type not in MEDIA and len(content) > 1:  # an alternative form of the same body
            continue
        media, schema = MEDIA[media_type], of_type["schema"]
        if media == "lines":
            described = {"format": "lines", "description": "JSON Lines: bytes, or an open file."}
            schema = {"properties": {"body": described}, "required": ["body"]}
        elif "properties" not in schema:
            is_whole = True
            schema = {"properties": {"body": schema}, "required": ["body"]}
        for key, value in schema["properties"].items():
            if key in parameters:  # allowed in query and form, so the document requires it in neither
                parameters[key] = (*parameters[key][:1], key == "tenant_id", parameters[key][2])
                continue
            parameters[key] = (value, key in schema.get("required", ()), value.get("description", ""))
    replies = spec["responses"]["200"]["content"]
    streams = "text/event-stream" in replies
    if streams:
        parameters.pop("stream", None)
    media_type, reply = next(iter(replies.items()))
    kind = "json" if media_type == "application/json" else "text" if media_type.startswith("text/") else "bytes"
    request = None
    if parameters:
        request = f"{pascal(group)}{pascal(name)}Request"
        schema = {
            "type": "object",
            "properties": {key: {**value, "description": text} for key, (value, _, text) in parameters.items()},
            "required": [key for key, (_, required, _) in parameters.items() if required],
        }
        api.types[request] = lifted(schema, request.removesuffix("Request"), api.types, top=True, is_request=True)
    operation = Operation(
        group, name, method.upper(), path, spec["summary"], spec.get("x-role"), query, media, is_whole, request,
        any(required for _, required, _ in parameters.values()), reply["schema"], kind, streams,
    )
    operation.items = paged(api, operation) if "cursor" in query else None
    return operation


def paged(api, operation):
    """Name and item type of the one list of objects in a result with `next_cursor`."""
    members = api.types[operation.result["$ref"].split("/")[-1]]["properties"]
    lists = [(key, value["items"]) for key, value in members.items() if "$ref" in value.get("items", {})]
    assert "next_cursor" in members and len(lists) == 1, operation.path
    return lists[0]


def lifted(schema, name, types, top=False, is_request=False):
    """The schema with inner objects as named types of their own; requests lose aliases of members."""
    schema = dict(schema)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            schema[key] = [lifted(each, name, types, is_request=is_request) for each in schema[key]]
    if isinstance(schema.get("items"), dict):
        schema["items"] = lifted(schema["items"], f"{name}Item", types, is_request=is_request)
    if isinstance(schema.get("additionalProperties"), dict):
        schema["additionalProperties"] = lifted(schema["additionalProperties"], f"{name}Value", types)
    if schema.get("properties"):
        members = first_names(schema["properties"]) if is_request else schema["properties"]
        schema["properties"] = {
            key: lifted(value, name + pascal(key), types, is_request=is_request) for key, value in members.items()
        }
        if not top:
            assert types.setdefault(name, schema) == schema, f"two types named {name}"
            return {"$ref": f"#/components/schemas/{name}", "description": schema.get("description", "")}
    return schema


def first_names(members):
    """The members without those that an earlier member's description lists under "Other names"."""
    kept, others = {}, {}
    for key, value in members.items():
        text = value.get("description", "")
        if text and text == others.get(key):
            continue
        kept[key] = value
        listed = re.search(r" Other names: (.*)\.$", text)
        others.update(dict.fromkeys(re.findall("`(.*?)`", listed[1]) if listed else [], text))
    return kept


def pascal(name):
    """`FullTextSearch` for `full_text_search`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))
