// Runs the examples of README.md as one module: each has to print what its comment says.
import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";

test("examples", async (context) => {
  const text = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const blocks = [...text.matchAll(/```js\n(.*?)```/gs)].map((match) => match[1]);
  assert.ok(blocks.length >= 5);
  const wanted = [...blocks.join("").matchAll(/console\.log\(.*\); \/\/ (.*)$/gm)].map((match) => match[1]);
  const module = new URL(`./readme-${process.pid}.mjs`, import.meta.url);
  writeFileSync(module, blocks.join("\n"));
  const printed = [];
  context.mock.method(console, "log", (...values) => printed.push(values.join(" ")));
  try {
    await import(module.href);
  } finally {
    rmSync(module);
  }
  assert.deepEqual(printed, wanted);
});
