// Tests the client against the server in LODESTONE_SERVER with the key in LODESTONE_API_KEY; see scripts/clients_check.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";

import { APIError, Client, ProcessingFailed, WaitTimeout } from "lodestone-client";

const client = new Client();
const tenant_id = `t-${randomUUID()}`;
before(() => client.tenant.createTenant({ tenant_id }));
after(() => client.admin.delete({ tenant_id, confirm: tenant_id }));

test("every operation of the document is a method", async () => {
  const sent = new Set();
  const answer = (url, call) => {
    sent.add(`${call.method} ${decodeURIComponent(new URL(url).pathname)}`);
    return Promise.resolve(Response.json({}));
  };
  const recorder = new Client({ server: "http://server", fetch: answer });
  for (const group of Object.values(recorder)) {
    const methods = Object.getOwnPropertyNames(Object.getPrototypeOf(group));
    if (!group.constructor.name.endsWith("Operations")) continue;
    for (const name of methods.filter((name) => !/^constructor$|^iterate|Stream$/.test(name))) {
      await group[name](group[name].length === 1 ? undefined : { key_id: "{key_id}", token: "{token}", body: [] });
    }
  }
  const described = new Set();
  for (const [path, methods] of Object.entries((await client.operations.openapiJson()).paths))
    for (const method of Object.keys(methods)) described.add(`${method.toUpperCase()} ${path}`);
  // /v1 is OpenAI's interface, for which OpenAI has clients.
  for (const operation of described) if (operation.includes(" /v1/")) described.delete(operation);
  // One operation also has a short path, and one accepts either method.
  described.delete("DELETE /delete_source");
  described.delete("POST /upload/verify_processing");
  assert.deepEqual([...sent].sort(), [...described].sort());
});

test("files of every kind arrive, and pages hold every source once", async () => {
  const forms = [new Blob(["Blob."]), Buffer.from("Buffer."), new TextEncoder().encode("Bytes."), { name: "a.txt", content: new Blob(["Named."]) }];
  const ids = forms.map((_, number) => `file-${number}`);
  for (const [number, file] of forms.entries())
    await client.upload.uploadDocument({ tenant_id, file_id: ids[number], file, document_metadata: { n: number } });
  const batch = await client.upload.batchUpload({ tenant_id, files: forms, file_ids: ids });
  assert.equal(batch.uploaded_count, 4);
  const sources = await client.wait(tenant_id, ids);
  assert.equal(sources.find((source) => source.id === "file-3").title, "a.txt");
  assert.equal((await client.fetch.fetchContent({ tenant_id, file_id: "file-1" })).file_content, "Buffer.");
  for (const limit of [1, 3, 1000]) {
    const listed = [];
    for await (const source of client.listing.iterateSources({ tenant_id, limit })) listed.push(source.id);
    assert.deepEqual(listed.sort(), ids);
  }
});

test("a streamed answer equals the plain one", async () => {
  await client.upload.uploadText({ tenant_id, sub_tenant_id: "stream", file_id: "a", content: "Visitors park on level 1." });
  await client.wait(tenant_id, ["a"], { subTenantId: "stream" });
  const question = { tenant_id, sub_tenant_id: "stream", question: "Where do visitors park?" };
  const events = [];
  for await (const event of client.search.qnaStream(question)) events.push(event);
  const text = events.filter((event) => event.event === "token").map((event) => event.data.delta).join("");
  assert.deepEqual([events[0].event, events[1].event, events.at(-1).event], ["start", "sources", "done"]);
  assert.equal(text, events.at(-1).data.answer);
  assert.equal(text, (await client.search.qna(question)).answer);
  for await (const event of client.search.qnaStream(question)) {
    assert.equal(event.event, "start");
    break;
  }
});

test("errors carry code, fields and request id; a wait says what failed", async () => {
  await assert.rejects(client.search.retrieve({ tenant_id, query: "x", alpha: 2 }, { requestId: "my-id" }), (error) => {
    assert.ok(error instanceof APIError);
    assert.deepEqual([error.status, error.errorCode, error.reason], [400, "INVALID_PARAMETERS", "invalid_value"]);
    assert.deepEqual([error.fieldErrors[0].field, error.requestId], ["alpha", "my-id"]);
    return true;
  });
  await client.upload.uploadDocument({ tenant_id, sub_tenant_id: "bad", file_id: "bad", file: { name: "a.pdf", content: new Blob(["%PDF-1.7\nno"]) } });
  await assert.rejects(client.wait(tenant_id, ["bad", "unknown"], { subTenantId: "bad" }), (error) => {
    assert.ok(error instanceof ProcessingFailed);
    assert.deepEqual([error.sources[0].error_code, error.missing], ["CORRUPT_FILE", ["unknown"]]);
    return true;
  });
  await client.upload.uploadText({ tenant_id, sub_tenant_id: "bad", file_id: "late", content: "word ".repeat(20_000) });
  await assert.rejects(client.wait(tenant_id, ["late"], { subTenantId: "bad", timeoutMs: 0 }), WaitTimeout);
});

test("nothing of the API is hidden", async () => {
  const answers = [];
  const options = { extra: { new_parameter: 1 }, headers: { prefer: "handling=lenient" }, onResponse: (answer) => answers.push(answer) };
  const result = await client.search.retrieve({ tenant_id, query: "x" }, options);
  assert.deepEqual(result.metadata.ignored_parameters, ["new_parameter"]);
  assert.equal(answers[0].headers.get("x-ignored-parameters"), "new_parameter");
  const raw = await client.request("POST", "/search/retrieve", { body: { tenant_id, query: "x" } });
  assert.ok((await raw.json()).success);
  assert.match(await client.operations.metrics(), /^# /);
});
