// Checks a running server with the unmodified `openai` package for TypeScript. Exits with 1 at the first surprise.
//
//   check.mjs ADDRESS KEY MODEL

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import OpenAI, { toFile } from "openai";

const [address, key, model] = process.argv.slice(2);
const options = { baseURL: `${address}/v1`, apiKey: key, maxRetries: 0 };
const client = new OpenAI({ ...options, defaultHeaders: { "x-lodestone-tenant": "octopus" } });
// Without that header, a chat's model names the tenant and sub-tenant.
const unnamed = new OpenAI(options);

/** Checks that a call fails with a status and a code. */
async function refused(status, code, call) {
  const error = await call().then(() => undefined, (error) => error);
  assert.ok(error instanceof OpenAI.APIError, `no error with ${code}: ${error}`);
  assert.deepEqual([error.status, error.code], [status, code], error.message);
  return error;
}

async function collected(pages) {
  const all = [];
  for await (const one of pages) all.push(one);
  return all;
}

async function checkEmbeddings() {
  const input = ["a dog barks", "a puppy is barking", "stock prices fell"];
  const made = await client.embeddings.create({ model, input });
  const dot = (a, b) => a.reduce((sum, x, at) => sum + x * b[at], 0);
  const [dog, puppy, stock] = made.data.map((entry) => entry.embedding);
  assert.ok(Math.abs(dot(dog, dog) - 1) < 1e-4 && dot(dog, puppy) > 0.5 && dot(dog, stock) < 0.5);
  const plain = await client.embeddings.create({ model, input, encoding_format: "float" });
  assert.ok(plain.data[0].embedding.every((x, at) => Math.abs(x - dog[at]) < 1e-6));
  await refused(404, "model_not_found", () => client.embeddings.create({ model: "other", input }));
}

async function checkStores() {
  const text = "The Eiffel Tower was designed by Gustave Eiffel and opened in 1889.";
  const file = (name, text) => toFile(Buffer.from(text), name);
  const stores = client.vectorStores;
  const store = await stores.create({ name: "Buildings", metadata: { team: "red" } });
  const stored = await client.files.create({ file: await file("tower.txt", text), purpose: "user_data" });
  assert.deepEqual([stored.filename, stored.bytes, stored.purpose], ["tower.txt", text.length, "user_data"]);
  assert.equal(await (await client.files.content(stored.id)).text(), text);
  const taken = await stores.files.createAndPoll(store.id, {
    file_id: stored.id,
    attributes: { year: 1889, kind: "tower" },
  });
  assert.equal(taken.status, "completed");
  const alone = await stores.files.uploadAndPoll(store.id, await file("bridge.md", "The Forth Bridge is in Scotland."));
  const batch = await stores.fileBatches.uploadAndPoll(store.id, {
    files: [await file("dome.txt", "The dome of Florence was built by Brunelleschi."), await file("b.md", " ")],
    fileIds: [stored.id],
  });
  assert.deepEqual([batch.status, batch.file_counts.completed, batch.file_counts.failed], ["completed", 2, 1]);
  const ofBatch = await collected(stores.fileBatches.listFiles(batch.id, { vector_store_id: store.id, limit: 1 }));
  assert.deepEqual(ofBatch.map((one) => one.last_error?.code).filter(Boolean), ["invalid_file"]);

  const search = (query, more) => collected(stores.search(store.id, { query, ...more }));
  const [found] = await search("Who designed the Eiffel Tower?", { max_num_results: 1 });
  assert.deepEqual([found.file_id, found.filename, found.content[0].text], [stored.id, "tower.txt", text]);
  assert.ok(found.score > 0 && found.score <= 1);
  // The batch has added it again, without attributes.
  assert.deepEqual(found.attributes, {});
  await stores.files.update(alone.id, { vector_store_id: store.id, attributes: { kind: "bridge", spans: 3 } });
  const filters = {
    type: "or",
    filters: [{ type: "gte", key: "spans", value: 3 }, { type: "eq", key: "kind", value: "none" }],
  };
  assert.deepEqual((await search(["a", "building"], { filters })).map((one) => one.file_id), [alone.id]);
  const pieces = await collected(stores.files.content(alone.id, { vector_store_id: store.id }));
  assert.match(pieces.map((piece) => piece.text).join(" "), /Forth Bridge/);
  assert.equal((await collected(stores.files.list(store.id, { limit: 1 }))).length, 4);
  assert.ok((await collected(stores.list({ limit: 1 }))).some((one) => one.id === store.id));
  assert.equal((await stores.update(store.id, { name: "Houses" })).name, "Houses");
  await refused(400, "unsupported_parameter", () =>
    stores.create({ expires_after: { anchor: "last_active_at", days: 1 } }));

  // Answers from the vector store, whole and streamed.
  const messages = [{ role: "user", content: "Who designed the Eiffel Tower?" }];
  const asked = { model: `octopus/${store.id}`, messages };
  const whole = await unnamed.chat.completions.create(asked);
  assert.match(whole.choices[0].message.content, /Gustave Eiffel.*\[1\]/s);
  const stream = await unnamed.chat.completions.create({
    ...asked,
    stream: true,
    stream_options: { include_usage: true },
  });
  let said = "";
  let usage;
  for await (const chunk of stream) {
    said += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(said, whole.choices[0].message.content);
  assert.deepEqual(usage, whole.usage);

  await stores.files.delete(alone.id, { vector_store_id: store.id });
  assert.deepEqual(await search("building", { filters }), []);
  await client.files.delete(stored.id);
  assert.ok((await search("Eiffel Tower")).every((one) => one.file_id !== stored.id));
  await refused(404, "file_not_found", () => client.files.retrieve(stored.id));
  await stores.delete(store.id);
  await refused(404, "vector_store_not_found", () => stores.retrieve(store.id));
  for (const left of await collected(client.files.list())) await client.files.delete(left.id);
  assert.deepEqual((await client.files.list()).data, []);
}

const begun = performance.now();
await checkStores();
await checkEmbeddings();
const models = (await collected(client.models.list())).map((one) => one.id);
assert.ok(models.includes(model) && models.includes("octopus"), models);
await refused(400, "missing_field", () => unnamed.files.list());
await refused(401, "invalid_api_key", () => new OpenAI({ ...options, apiKey: "wrong" }).models.list());
const { version } = JSON.parse(readFileSync(new URL("node_modules/openai/package.json", import.meta.url)));
console.log(`openai ${version} for TypeScript: all checks passed in ${((performance.now() - begun) / 1000).toFixed(1)} s`);
