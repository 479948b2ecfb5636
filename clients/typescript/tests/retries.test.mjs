// Tests against scripted answers which requests are sent again, and how long the client waits.
import assert from "node:assert/strict";
import { test } from "node:test";

import { APIError, Client, ConnectionFailed, ProcessingFailed, StreamInterrupted } from "lodestone-client";

const unavailable = (status = 503, reason = "queue_full", headers = {}) => Response.json({ error_code: "SERVICE_UNAVAILABLE", reason }, { status, headers });

/** A client whose server returns `answers` in order, with the requests it sent and the pauses it made. */
function scripted(answers, settings = {}) {
  const sent = [];
  const pauses = [];
  const fetch = (url, call) => {
    sent.push({ url, ...call });
    const answer = answers.shift();
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer);
  };
  const pause = (ms) => Promise.resolve(void pauses.push(ms));
  return { sent, pauses, client: new Client({ server: "http://server", apiKey: "key", fetch, pause, ...settings }) };
}

const search = (client) => client.search.retrieve({ tenant_id: "t", query: "q" });

test("Retry-After is obeyed, and the back-off doubles to a bound", async () => {
  const first = scripted([unavailable(429, "rate_limited", { "retry-after": "7" }), new TypeError("refused"), Response.json({ chunks: [] })]);
  assert.deepEqual(await search(first.client), { chunks: [] });
  assert.ok(first.pauses[0] >= 7000 && first.pauses[0] <= 8000);
  assert.ok(first.pauses[1] <= 2000);
  const second = scripted(Array.from({ length: 8 }, () => unavailable()), { retries: 7 });
  await assert.rejects(search(second.client), { status: 503 });
  [1000, 2000, 4000, 8000, 8000, 8000, 8000].forEach((bound, at) => assert.ok(second.pauses[at] <= bound));
});

test("clients that were refused together come back one by one", async () => {
  for (const [floor, headers] of [[0, {}], [7000, { "retry-after": "7" }]]) {
    const pauses = [];
    for (let i = 0; i < 100; i += 1) {
      const one = scripted([unavailable(429, "rate_limited", headers), Response.json({ chunks: [] })]);
      await search(one.client);
      pauses.push(...one.pauses);
    }
    const [least, most] = [Math.min(...pauses), Math.max(...pauses)];
    assert.ok(least >= floor && least < floor + 250 && most > floor + 750 && most <= floor + 1000, `${least} to ${most}`);
  }
});

test("other answers are final", async () => {
  const answers = [unavailable(500), unavailable(400), unavailable(503, "outcome_unknown"), unavailable(429, "", { "retry-after": "61" })];
  for (const answer of answers) {
    const { client, sent } = scripted([answer]);
    await assert.rejects(search(client), APIError);
    assert.equal(sent.length, 1);
  }
});

const calls = {
  search: [2, search],
  list: [2, (client) => client.admin.list()],
  deletion: [2, (client) => client.deletion.deleteSource({ tenant_id: "t", source_ids: ["a"] })],
  upload: [2, (client) => client.upload.uploadDocument({ tenant_id: "t", file: Buffer.from("content") })],
  question: [2, (client) => client.search.qna({ tenant_id: "t", question: "q" })],
  turn: [1, (client) => client.search.qna({ tenant_id: "t", question: "q", session_id: "s" })],
  tenant: [1, (client) => client.tenant.createTenant({ tenant_id: "t" })],
  key: [1, (client) => client.admin.createApiKeys({ name: "k", role: "read" })],
  "no retries": [1, (client) => client.tenant.stats({ tenant_id: "t" }, { retries: 0 })],
};
for (const [name, [attempts, call]] of Object.entries(calls)) {
  test(`only what is safe to repeat is repeated: ${name}`, async () => {
    const { client, sent } = scripted([new TypeError("reset"), new TypeError("reset")], { retries: 1 });
    await assert.rejects(call(client), ConnectionFailed);
    assert.equal(sent.length, attempts);
    if (name === "upload") {
      assert.equal(sent[0].headers["idempotency-key"], sent[1].headers["idempotency-key"]);
      for (const { body } of sent) assert.equal(await body.get("file").text(), "content");
    }
  });
}

test("a stream without its end is an error", async () => {
  for (const [text, kind] of [
    [': comment\n\nid: 1\nevent: start\ndata: {"a":\ndata: 1}\n\n', StreamInterrupted],
    ['event: start\ndata: {}\n\nevent: error\ndata: {"error_code":"SERVICE_UNAVAILABLE"}\n\n', APIError],
  ]) {
    const stream = scripted([new Response(text)]).client.search.qnaStream({ tenant_id: "t", question: "q" });
    assert.equal((await stream.next()).value.event, "start");
    await assert.rejects(stream.next(), kind);
  }
});

test("what the caller did wrong is neither repeated nor hidden", async () => {
  const { client, sent } = scripted([Response.json({}), Response.json({})]);
  for (const file of ["plan.txt", new ReadableStream(), { name: "plan.txt", content: new ReadableStream() }])
    await assert.rejects(client.upload.uploadDocument({ tenant_id: "t", file }), TypeError);
  assert.equal(sent.length, 0);
  const onResponse = () => {
    throw new RangeError("mine");
  };
  await assert.rejects(client.operations.healthz({ onResponse }), RangeError);
  assert.equal(sent.length, 1);
  assert.throws(() => new Client({ server: "127.0.0.1:8080" }), /http/);
});

test("a failure says why, and an answer of a proxy is told", async () => {
  const refused = new TypeError("fetch failed", { cause: Object.assign(new Error(), { code: "ECONNREFUSED" }) });
  await assert.rejects(search(scripted([refused], { retries: 0 }).client), /ECONNREFUSED/);
  const { client, sent } = scripted([new Response("please sign in")]);
  await assert.rejects(search(client), (error) => error instanceof APIError && /please sign in/.test(error.message));
  assert.equal(sent.length, 1);
});

test("a wait for one source may take longer than the time limit of a call", async (context) => {
  const answer = (status) => Response.json({ sources: [{ id: "a", status }], not_found: [] });
  const { client } = scripted([answer("queued"), Response.json({}), answer("success")], { timeoutMs: 1000 });
  const timers = context.mock.method(globalThis, "setTimeout");
  const sources = await client.wait("t", "a");
  assert.deepEqual(sources.map((source) => source.id), ["a"]);
  assert.deepEqual(timers.mock.calls.map((call) => call.arguments[1]), [1000, 21_000, 1000]);
});

const lookedUp = (statuses, not_found = []) =>
  Response.json({ sources: Object.entries(statuses).map(([id, status]) => ({ id, status })), not_found });

test("a wait knows its sources by the ids of the server", async () => {
  const [given, stored] = ["cafe\u0301.txt", "caf\u00e9.txt"];
  const { client, sent } = scripted([lookedUp({ [stored]: "queued" }, ["\u00fcber"]), Response.json({}), lookedUp({ [stored]: "success" })]);
  await assert.rejects(client.wait("t", [given, "u\u0308ber", stored]), (error) => {
    assert.ok(error instanceof ProcessingFailed);
    assert.deepEqual([error.missing, error.sources], [["\u00fcber"], []]);
    return true;
  });
  assert.deepEqual(JSON.parse(sent[0].body).source_ids, [stored, "\u00fcber"]);
  assert.equal(new URL(sent[1].url).searchParams.get("file_id"), stored);
  // A server with a newer version of Unicode may join characters that this client does not.
  const ended = await scripted([lookedUp({ joined: "success" })]).client.wait("t", "not joined");
  assert.deepEqual(ended.map((source) => source.id), ["joined"]);
});

test("a wait that learns nothing pauses", async () => {
  const pending = () => lookedUp({ a: "queued", b: "queued" });
  const polled = () => Response.json({});
  const gone = Response.json({ reason: "source_not_found" }, { status: 404 });
  const oneLeft = lookedUp({ a: "success", b: "queued" });
  const { client, pauses } = scripted([pending(), polled(), pending(), gone, pending(), polled(), oneLeft, polled(), lookedUp({ b: "success" })]);
  assert.deepEqual((await client.wait("t", ["a", "b"])).map((source) => source.id), ["a", "b"]);
  assert.deepEqual(pauses, [500, 500]);
});

test("a signal ends the wait for the next attempt", async () => {
  const controller = new AbortController();
  const fetch = async (_, { signal }) => {
    signal.throwIfAborted();
    setImmediate(() => controller.abort());
    return unavailable(503, "queue_full", { "retry-after": "60" });
  };
  const client = new Client({ server: "http://server", fetch });
  await assert.rejects(client.operations.healthz({ signal: controller.signal }), { name: "AbortError" });
});

test("a file may take longer than the time limit, and an upload has longer by its size", async (context) => {
  const timers = context.mock.method(globalThis, "setTimeout");
  const piece = new Uint8Array([1, 2]);
  const body = new ReadableStream({ start: (stream) => [piece, piece].forEach((one) => stream.enqueue(one)) || stream.close() });
  const { client } = scripted([new Response(body), Response.json({})], { timeoutMs: 1000 });
  const archive = await client.admin.exportTenant({ tenant_id: "t" });
  assert.deepEqual([...new Uint8Array(await archive.arrayBuffer())], [1, 2, 1, 2]);
  await client.upload.uploadDocument({ tenant_id: "t", file: Buffer.alloc(1_280_000) });
  assert.deepEqual(timers.mock.calls.map((call) => call.arguments[1]), [1000, 1000, 1000, 11_000]);
});

test("a stream that is silent is left, and a proxy may end lines in its own way", async (context) => {
  const head = "event: token\r\ndata: {\"delta\":\r\ndata: \"a\"}\r\n\r\n";
  const bytes = new TextEncoder().encode(head);
  let wasCancelled = false;
  const body = new ReadableStream({
    start: (stream) => bytes.forEach((byte) => stream.enqueue(new Uint8Array([byte]))),
    cancel: () => void (wasCancelled = true),
  });
  const stream = scripted([new Response(body)]).client.search.qnaStream({ tenant_id: "t", question: "q" });
  assert.deepEqual((await stream.next()).value, { id: "", event: "token", data: { delta: "a" } });
  context.mock.method(globalThis, "setTimeout", (end, ms) => void (ms >= 45_000 && setImmediate(end)));
  await assert.rejects(stream.next(), StreamInterrupted);
  assert.ok(wasCancelled);
});

test("a time limit and a signal end a call", async () => {
  const hang = (_, { signal }) => new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  const client = new Client({ server: "http://server", fetch: hang, retries: 0 });
  await assert.rejects(client.operations.healthz({ timeoutMs: 5 }), ConnectionFailed);
  await assert.rejects(client.operations.healthz({ signal: AbortSignal.timeout(5) }), { name: "TimeoutError" });
});
