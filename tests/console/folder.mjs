// Drops a folder of 500 mixed files on the page of sources and kills the server meanwhile; also measures the first paint and
// the display of search results. Run by scripts/console_check: node tests/console/folder.mjs BINARY DIRECTORY
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { BROKEN, GOOD } from "./files.mjs";
import { call, freePort, KEY, kill, start } from "./server.mjs";

const FILES = 500;
const TORN = 25;
/** Bounds that even a busy machine keeps; the measured values are printed. */
const TASK_MS_MAX = 400;
const PAINT_MS_MAX = 3000;
const SHOWN_MS_MAX = 500;

const [binary, directory] = process.argv.slice(2).map((one) => path.resolve(one));
const { chromium } = createRequire(path.join(directory, "package.json"))("playwright-core");
const began = Date.now();
const step = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(5)} s  ${text}`);
const work = mkdtempSync(path.join(tmpdir(), "console-folder-"));
const [data, log, port] = [path.join(work, "data"), path.join(directory, "server-folder.log"), await freePort()];
let server = await start(binary, data, port, log);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });

/** Writes files of every kind, in folders of fifty; text files are made unique, and every twentieth file is broken. */
function write(root) {
  const kinds = [...Object.entries(GOOD)];
  for (let at = 0; at < FILES; at += 1) {
    const folder = path.join(root, `shelf ${Math.floor(at / 50)}`);
    mkdirSync(folder, { recursive: true });
    const isTorn = at % (FILES / TORN) === 7;
    const [name, content] = isTorn ? Object.entries(BROKEN)[0] : kinds[at % kinds.length];
    const own = /\.(md|txt)$/.test(name) ? `${content}\nShelf mark ${at}.\n` : content;
    writeFileSync(path.join(folder, `${at} ${name}`), own, "latin1");
  }
}

/** Drops a folder on the page of sources, as from a file manager. */
async function drop(page, folder) {
  const devtools = await page.context().newCDPSession(page);
  const zone = await page.getByText("Drop files or folders here").boundingBox();
  const dragged = { items: [], files: [folder], dragOperationsMask: 1 };
  for (const type of ["dragEnter", "dragOver", "drop"]) {
    await devtools.send("Input.dispatchDragEvent", { type, x: zone.x + 5, y: zone.y + 5, data: dragged });
  }
}

try {
  await call(port, "POST", "/user/create_tenant?tenant_id=shelves", {});
  const page = await browser.newPage();
  page.setDefaultTimeout(60_000);
  await page.addInitScript((key) => {
    sessionStorage.setItem("lodestone.key", key);
    sessionStorage.setItem("lodestone.tenant", "shelves");
    window.longest = 0;
    new PerformanceObserver((list) => list.getEntries().forEach(({ duration }) => { window.longest = Math.max(window.longest, duration); }))
      .observe({ type: "longtask" });
  }, KEY);
  await page.goto(`http://127.0.0.1:${port}/#/sources`);
  await page.getByText("No documents yet").waitFor();
  const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0);
  const sent = await page.evaluate(() => performance.getEntriesByType("resource").concat(performance.getEntriesByType("navigation")).filter(({ name }) => !name.includes("/jobs")).reduce((sum, { transferSize }) => sum + transferSize, 0));
  step(`first paint after ${Math.round(paint)} ms, ${Math.round(sent / 1000)} kB sent`);
  assert.ok(paint > 0 && paint < PAINT_MS_MAX, `first paint after ${paint} ms`);

  const folder = path.join(work, "folder");
  write(folder);
  await drop(page, folder);
  const progress = page.getByText(/^\d+ uploads: /);
  await page.getByText(new RegExp(`${FILES} uploads: [1-9]\\d* searchable`)).waitFor();
  await kill(server);
  await page.getByText("The server does not answer").waitFor();
  step(`killed at "${await progress.innerText()}"`);
  server = await start(binary, data, port, log);
  await page.getByText(`${FILES} uploads: ${FILES - TORN} searchable, ${TORN} failed, 0 in progress`).waitFor({ timeout: 300_000 });
  const longest = await page.evaluate(() => window.longest);
  step(`${FILES} files: ${FILES - TORN} searchable, ${TORN} say why not; longest task ${Math.round(longest)} ms`);
  assert.ok(longest < TASK_MS_MAX, `a task of ${longest} ms`);
  const { counts } = await call(port, "GET", "/jobs?tenant_id=shelves&limit=1");
  // A file whose answer was lost in the kill was sent again, and then has two jobs.
  assert.ok(counts.success >= FILES - TORN && counts.errored >= TORN, JSON.stringify(counts));

  await page.goto(`http://127.0.0.1:${port}/#/search`);
  await page.evaluate(() => {
    const { fetch } = window;
    window.fetch = async (...request) => {
      const response = await fetch(...request);
      if (String(request[0]).includes("search/retrieve")) window.answered = performance.now();
      return response;
    };
    new MutationObserver(() => {
      if (window.answered && !window.shown && document.querySelector(".result")) window.shown = performance.now();
    }).observe(document.body, { childList: true, subtree: true });
  });
  await page.getByLabel("Query").fill("slate plates");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => window.shown);
  const shown = await page.evaluate(() => window.shown - window.answered);
  step(`results stand ${Math.round(shown)} ms after the answer`);
  assert.ok(shown < SHOWN_MS_MAX, `results stand ${shown} ms after the answer`);
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser.close();
  await kill(server);
  rmSync(work, { recursive: true, force: true });
}
process.exit();
