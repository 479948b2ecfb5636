"""Exercises the tools with MCP's own Python client, over HTTP and through `lodestone mcp`.

Run by scripts/mcp_check: python tests/mcp/walk.py BINARY SERVER KEY
"""
import asyncio
import json
import os
import sys
import urllib.request

from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

BINARY, SERVER, ADMIN = sys.argv[1:4]
TEXT = "Visitors park on level 1 of the garage. Bicycles stand behind the canteen."
READING = ["search", "ask", "read_source", "list_sources", "recall"]
EVERYTHING = ["search", "ask", "read_source", "list_sources", "add_text", "remember", "recall", "forget"]


def post(path, body):
    """Sends a request to the server's own API as operator."""
    request = urllib.request.Request(SERVER + path, json.dumps(body).encode(), {
        "authorization": f"Bearer {ADMIN}", "content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def key(role, *tenants):
    scope = {"tenants": [{"tenant_id": tenant} for tenant in tenants]} if tenants else {}
    return post("/admin/api_keys", {"name": role, "role": role, **scope})["api_key"]


def over_http(key, query="", **headers):
    headers = {"authorization": f"Bearer {key}", **headers}
    http = create_mcp_http_client(headers=headers)
    return lambda mode: Client(streamable_http_client(f"{SERVER}/mcp{query}", http_client=http), mode=mode)


def over_stdio(key, *arguments):
    environment = {**os.environ, "LODESTONE_API_KEY": key, "LODESTONE_SERVER": SERVER}
    environment.pop("LODESTONE_TENANT", None)
    process = StdioServerParameters(command=BINARY, args=["mcp", *arguments], env=environment)
    return lambda mode: Client(process, mode=mode)


async def call(client, tool, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def refused(client, tool, *words, **arguments):
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    assert all(word in result.content[0].text for word in words), result.content


async def walk(client, name):
    """Uses every tool as a writer, in a tenant fixed by the connection."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert list(tools) == EVERYTHING, list(tools)
    assert all("tenant_id" not in tool.input_schema["properties"] for tool in tools.values())
    assert tools["search"].annotations.read_only_hint and tools["forget"].annotations.destructive_hint
    assert "knowledge base" in client.instructions

    steps = []

    async def progressed(done, total, message):
        steps.append((done, message))

    file = f"parking-{name}"
    added = await client.call_tool("add_text", {"text": TEXT, "title": "Parking", "file_id": file,
                                               "metadata": {"topic": name}}, progress_callback=progressed)
    assert added.structured_content == {"file_id": file, "status": "success"}, added
    assert steps == sorted(steps), steps

    found = await call(client, "search", query="Where do guests leave their cars?", filter={"topic": name}, limit=3)
    assert found["passages"][0]["file_id"] == file and "level 1" in found["passages"][0]["text"], found
    assert (await call(client, "search", query="cars", filter={"topic": "none"}))["passages"] == []
    answered = await call(client, "ask", question="Where do visitors park?", file_ids=[file])
    assert "level 1" in answered["answer"] and answered["citations"][0]["title"] == "Parking", answered
    assert (await call(client, "ask", question="Who founded the museum of clocks?"))["citations"] == []
    read = await call(client, "read_source", file_id=file)
    assert read == {"title": "Parking", "text": TEXT, "next": None}, read
    listed = await call(client, "list_sources")
    assert file in [source["file_id"] for source in listed["sources"]], listed

    memory = (await call(client, "remember", text="The user's name is Ada."))["memory_id"]
    recalled = await call(client, "recall", query="What is the user called?")
    assert recalled["memories"][0]["text"] == "The user's name is Ada.", recalled
    assert await call(client, "forget", memory_id=memory) == {"forgotten": True}
    await refused(client, "forget", "does not exist", memory_id=memory)

    resources = (await client.list_resources()).resources
    uri = next(resource.uri for resource in resources if resource.name == "Parking" and name in str(resource.uri))
    contents = (await client.read_resource(uri)).contents
    assert contents[0].text == TEXT, contents
    assert (await client.list_resource_templates()).resource_templates[0].uri_template.startswith("lodestone://")

    await refused(client, "search", "invalid arguments", "querry", querry="cars")
    await refused(client, "search", "limit", query="cars", limit=5000)
    await refused(client, "read_source", "does not exist", file_id="nothing")
    for wrong in ("lodestone://other/default/x", "file:///etc/passwd"):
        try:
            await client.read_resource(wrong)
        except MCPError as error:
            assert "resource not found" in str(error), error
        else:
            raise AssertionError(wrong)
    try:
        await client.call_tool("drop_everything", {})
    except MCPError as error:
        assert "drop_everything" in str(error), error
    else:
        raise AssertionError("an unknown tool was called")


async def scopes():
    """The key determines the available tools and tenants."""
    reader, wide = key("read", "acme"), key("read", "acme", "shop")
    async with over_http(reader)("auto") as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == READING
        try:
            await client.call_tool("add_text", {"text": "x"})
        except MCPError as error:
            assert "may not use" in str(error), error
        else:
            raise AssertionError("a reader added a text")
    async with over_http(wide)("auto") as client:
        tool = (await client.list_tools()).tools[0]
        assert tool.input_schema["properties"]["tenant_id"]["enum"] == ["acme", "shop"], tool
        assert "tenant_id" in tool.input_schema["required"]
        await refused(client, "search", "tenant_id is required", query="cars")
        assert (await call(client, "search", query="cars", tenant_id="shop"))["passages"] == []
        await refused(client, "search", "does not exist", query="cars", tenant_id="other")
    async with over_http(ADMIN, "?tenant_id=acme")("auto") as client:
        assert (await call(client, "search", query="cars"))["passages"]
    async with over_http(ADMIN, **{"x-lodestone-tenant": "shop"})("auto") as client:
        assert (await call(client, "search", query="cars"))["passages"] == []


async def main():
    for tenant in ("acme", "shop", "other"):
        post("/user/create_tenant", {"tenant_id": tenant})
    writer = key("write", "acme")
    passed = 0
    for name, connect in (("http", over_http(writer)), ("stdio", over_stdio(writer)),
                          ("fixed", over_stdio(ADMIN, "--tenant", "acme"))):
        for mode in ("auto", "legacy"):
            async with connect(mode) as client:
                await walk(client, f"{name}-{mode}")
                print(f"{name}, {mode}: revision {client.protocol_version}")
                passed += 1
    await scopes()
    print(f"mcp: {passed + 1} walks passed")


asyncio.run(main())
