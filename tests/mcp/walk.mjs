// Exercises the tools with MCP's own TypeScript client, over HTTP and through `lodestone mcp`.
// Run by scripts/mcp_check, with an existing tenant `acme`: node tests/mcp/walk.mjs BINARY SERVER KEY
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [binary, server, key] = process.argv.slice(2);
const transports = {
  http: () => new StreamableHTTPClientTransport(new URL(`${server}/mcp?tenant_id=acme`), {
    requestInit: { headers: { authorization: `Bearer ${key}` } },
  }),
  stdio: () => new StdioClientTransport({
    command: binary,
    args: ["mcp", "--tenant", "acme", "--server", server],
    env: { ...process.env, LODESTONE_API_KEY: key },
  }),
};

for (const [name, transport] of Object.entries(transports)) {
  const client = new Client({ name: "walk", version: "1" });
  await client.connect(transport());
  // The client validates every result against its tool's schema.
  const { tools } = await client.listTools();
  assert.equal(tools.length, 8);
  const file_id = `node-${name}`;
  const call = async (tool, given) => {
    const result = await client.callTool({ name: tool, arguments: given });
    assert.ok(!result.isError, JSON.stringify(result));
    return result.structuredContent;
  };
  const steps = [];
  const added = await client.callTool(
    { name: "add_text", arguments: { file_id, text: "The boiler is serviced in week 38 by Halm & Sons." } },
    undefined,
    { onprogress: (step) => steps.push(step.progress) },
  );
  assert.deepEqual(added.structuredContent, { file_id, status: "success" });
  const answer = await call("ask", { question: "When is the boiler serviced?", file_ids: [file_id] });
  assert.match(answer.answer, /week 38/);
  assert.equal(answer.citations[0].file_id, file_id);
  const { passages } = await call("search", { query: "boiler service", file_ids: [file_id] });
  assert.equal(passages.length, 1);
  const { resources } = await client.listResources();
  const own = resources.find((resource) => resource.uri.endsWith(file_id));
  const { contents } = await client.readResource({ uri: own.uri });
  assert.match(contents[0].text, /Halm & Sons/);
  const wrong = await client.callTool({ name: "read_source", arguments: { file_id: "nothing" } });
  assert.ok(wrong.isError);
  await client.close();
  console.log(`${name}: passed`);
}
