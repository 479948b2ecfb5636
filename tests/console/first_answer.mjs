// Measures a new user's way from the start of the server to the first cited sentence, boxed on its page: the link shown on
// the terminal, the sample, a question, the citation. Prints seconds and clicks, and fails beyond its bounds.
// Run by scripts/console_check: node tests/console/first_answer.mjs BINARY DIRECTORY
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { freePort, kill, startOnTerminal } from "./server.mjs";

const CLICKS_MAX = 4;
const MS_MAX = 60_000;

const [binary, directory] = process.argv.slice(2).map((one) => path.resolve(one));
const { chromium } = createRequire(path.join(directory, "package.json"))("playwright-core");
const work = mkdtempSync(path.join(tmpdir(), "console-first-"));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
const port = await freePort();
const began = Date.now();
let clicks = 0;
const step = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(5)} s  ${text}, ${clicks} clicks`);
const { child, link } = await startOnTerminal(binary, path.join(work, "data"), port);
try {
  step("the server shows its link");
  const page = await browser.newPage({ viewport: { width: 1440, height: 900 } });
  page.setDefaultTimeout(MS_MAX);
  const click = async (target) => {
    await target.click();
    clicks += 1;
  };
  await page.goto(link);
  clicks += 1;
  await click(page.getByRole("button", { name: "Try a small sample" }));
  await click(page.getByRole("button", { name: "How often must the air filter be cleaned?" }));
  await page.locator(".answer[aria-busy=false]", { hasText: "six months" }).waitFor();
  step("an answer stands");
  await click(page.locator(".cite").first());
  await page.getByRole("dialog").locator(".sheet rect").waitFor();
  const spent = Date.now() - began;
  step("its sentence is boxed on its page");
  assert.ok(spent < MS_MAX, `${spent} ms`);
  assert.ok(clicks <= CLICKS_MAX, `${clicks} clicks`);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser.close();
  await kill(child);
  rmSync(work, { recursive: true, force: true });
}
process.exit();
