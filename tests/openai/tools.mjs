// The tool loop of the unmodified `openai` package for TypeScript; see tools.py.
//
//   tools.mjs ADDRESS KEY

import assert from "node:assert/strict";
import OpenAI from "openai";

const [address, key] = process.argv.slice(2);
const client = new OpenAI({ baseURL: `${address}/v1`, apiKey: key, maxRetries: 0 });
const asked = [];
const weather = {
  type: "function",
  function: {
    name: "weather",
    parameters: { type: "object", properties: { city: { type: "string" } } },
    parse: JSON.parse,
    function: ({ city }) => (asked.push(city), "21"),
  },
};
const messages = [{ role: "user", content: "Where do visitors park, and how warm is it?" }];
for (const stream of [false, true]) {
  const runner = client.chat.completions.runTools({ model: "acme", messages, tools: [weather], stream });
  assert.equal(await runner.finalContent(), "It is 21 degrees. Level 1 is for visitors [1].");
}
assert.deepEqual(asked, ["Paris", "Paris"]);
console.log("openai for TypeScript: tools passed");
