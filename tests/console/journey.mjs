// The console in a browser: a new user's journey, hostile documents, a server restart, every page.
// Run by scripts/console_check: node tests/console/journey.mjs BINARY DIRECTORY
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import path from "node:path";
import { BROKEN, GOOD, HOSTILE, HOSTILE_TITLE, PAGE_QUESTION, PLAIN_QUESTION, QUESTION } from "./files.mjs";
import { FORMATS } from "./formats.mjs";
import { behindPrefix, call, fillDisk, freePort, KEY, kill, start, startOnSmallDisk, startOnTerminal } from "./server.mjs";

const [binary, directory] = process.argv.slice(2).map((one) => path.resolve(one));
const require = createRequire(path.join(directory, "package.json"));
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const WIDTHS = [390, 1440];
const THEMES = ["light", "dark"];
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

const began = Date.now();
const step = (text) => console.log(`${((Date.now() - began) / 1000).toFixed(1).padStart(5)} s  ${text}`);
const work = mkdtempSync(path.join(tmpdir(), "console-check-"));
const shots = path.join(directory, "shots");
rmSync(shots, { recursive: true, force: true });
mkdirSync(shots, { recursive: true });
const port = await freePort();
const origin = `http://127.0.0.1:${port}`;
const log = path.join(directory, "server.log");
rmSync(log, { force: true });
let server = await start(binary, path.join(work, "data"), port, log);
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--host-resolver-rules=MAP console.test 127.0.0.1"] });
const problems = [];

/** Opens a tab and records its faults. */
async function open(url = `${origin}/`, prepare = async () => {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, colorScheme: "light", reducedMotion: "reduce" });
  const page = await context.newPage();
  page.setDefaultTimeout(20_000);
  const { origin: own } = new URL(url);
  page.on("request", (request) => {
    const to = new URL(request.url());
    if (!["data:", "blob:"].includes(to.protocol) && to.origin !== own) problems.push(`a request to ${to.origin}`);
  });
  page.on("console", (message) => {
    // The page itself reports failed requests; any other error is a fault.
    const isNetwork = message.text().startsWith("Failed to load resource");
    if (message.type() === "error" && !isNetwork) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    if (dialog.type() !== "beforeunload") problems.push(`dialog: ${dialog.message()}`);
    void dialog.accept();
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  await prepare(page);
  await page.goto(url);
  return page;
}

/** Checks the current page: axe, the width and a screenshot, in both themes and widths. */
async function look(page, name) {
  const violations = await page.evaluate(() => window.violations);
  assert.deepEqual(violations, [], `${name}: policy violations`);
  assert.equal(await page.evaluate(() => window.executed), undefined, `${name}: a document was executed`);
  for (const colorScheme of THEMES) {
    await page.emulateMedia({ colorScheme });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      const over = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      if (over > 0) problems.push(`${name}: ${over} pixels wider than ${width}`);
      const found = await page.evaluate(`${axe};axe.run(document, {runOnly: ${JSON.stringify(RULES)}})`);
      for (const { id, nodes } of found.violations) {
        problems.push(`${name} ${colorScheme} ${width}: ${id} at ${nodes[0].target.join(" ")} (${nodes.length}): ${nodes[0].any[0]?.message ?? ""}`);
      }
      await page.screenshot({ path: path.join(shots, `${name}-${colorScheme}-${width}.png`) });
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.setViewportSize({ width: 1440, height: 900 });
}

async function signIn(page, key = KEY) {
  await page.getByLabel("API key").fill(key);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("navigation", { name: "Pages" }).waitFor();
}

/** Presses a button twice, the second time before the server has answered; returns the requests for changes. */
async function pressTwice(page, button) {
  const changes = [];
  let release = () => {};
  const held = new Promise((resolve) => (release = resolve));
  const note = (request) => request.method() !== "GET" && changes.push(request.url());
  page.on("request", note);
  await page.route("**", async (route) => {
    if (route.request().method() !== "GET") await held;
    await route.continue();
  });
  const sent = page.waitForRequest((request) => request.method() !== "GET");
  await button.click();
  // By force, as a person would: Playwright would wait until the button is enabled again.
  await button.click({ force: true });
  await sent;
  await page.evaluate(() => new Promise(requestAnimationFrame));
  release();
  await page.unrouteAll({ behavior: "wait" });
  page.off("request", note);
  return changes;
}

/** Writes files below the work directory; returns their paths. */
function write(files, folder = ".") {
  mkdirSync(path.join(work, folder), { recursive: true });
  return Object.entries(files).map(([name, content]) => {
    const file = path.join(work, folder, name);
    writeFileSync(file, content, "latin1");
    return file;
  });
}

const go = (page, name) => page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name, exact: true }).click();
const ended = (page, status, many) => page.locator(`.uploads .badge.${status}`).nth(many - 1).waitFor();

async function ask(page, question, words) {
  await page.getByLabel("Question").fill(question);
  await page.keyboard.press("Enter");
  const turn = page.locator(".turn").first();
  await turn.getByRole("heading", { name: question }).waitFor();
  await turn.locator(".answer[aria-busy=false]").waitFor();
  const answer = await turn.locator(".answer").innerText();
  assert.ok(answer.includes(words), `the answer to "${question}" is "${answer}"`);
  return turn;
}

try {
  // --- the link shown by a start on a terminal signs in, once ------------------------------------
  const fresh = await startOnTerminal(binary, path.join(work, "fresh"), await freePort());
  const linked = await open(fresh.link);
  await linked.getByRole("button", { name: "Try a small sample" }).waitFor();
  assert.ok(!linked.url().includes("sign-in"), "the key left the address");
  const again = await open(fresh.link);
  await again.getByRole("alert").getByText("This link has already been used").waitFor();
  await again.getByLabel("API key").waitFor();
  const sitting = await linked.evaluate(() => sessionStorage.getItem("lodestone.key"));
  const asSitting = () => fetch(new URL("/jobs", fresh.link), { headers: { authorization: `Bearer ${sitting}` } });
  assert.equal((await asSitting()).status, 200);
  await linked.getByRole("button", { name: "Sign out" }).click();
  await linked.getByLabel("API key").waitFor();
  assert.equal((await asSitting()).status, 401, "signing out revokes the key of the sitting");
  assert.equal(await linked.locator(".banner").count(), 0);
  await Promise.all([linked.context().close(), again.context().close(), kill(fresh.child)]);
  // A link that cannot be revoked still signs in, and leaves no key that nobody knows.
  const next = await startOnTerminal(binary, path.join(work, "fresh"), await freePort());
  const refuse = (route) => (route.request().method() === "DELETE" ? route.abort() : route.continue());
  const kept = await open(next.link, (page) => page.route("**/admin/api_keys/*", refuse));
  await kept.locator(".banner", { hasText: "could not be revoked. It expires" }).waitFor();
  await kept.getByRole("button", { name: "Try a small sample" }).waitFor();
  await Promise.all([kept.context().close(), kill(next.child)]);
  step("a link signed in, once, and signing out revoked its key");

  // --- an ordinary key in a link signs in, and stays valid ----------------------------------------
  const makeKey = async (name, role) => (await call(port, "POST", "/admin/api_keys", { name, role })).api_key;
  for (const key of [KEY, await makeKey("kept", "admin"), await makeKey("console: sign-in link", "admin"), await makeKey("a reader", "read")]) {
    const tab = await open(`${origin}/#sign-in=${key}`);
    await tab.getByRole("navigation", { name: "Pages" }).waitFor();
    await tab.getByRole("button", { name: "Sign out" }).click();
    await tab.getByLabel("API key").waitFor();
    const { status } = await fetch(`${origin}/jobs`, { headers: { authorization: `Bearer ${key}` } });
    assert.equal(status, 200, "a link with an ordinary key revokes nothing");
    await tab.context().close();
  }
  step("an ordinary key in a link signed in, and holds on");

  // --- a new user: key, tenant, files, question, citation --------------------------------------
  const page = await open();
  await page.getByLabel("API key").waitFor();
  await look(page, "login");
  await page.getByLabel("API key").fill("a wrong key");
  await page.keyboard.press("Enter");
  await page.getByRole("alert").getByText("does not know this key").waitFor();
  await signIn(page);
  await page.getByRole("button", { name: "Add your documents" }).waitFor();
  await look(page, "no-tenant");
  await page.getByRole("link", { name: "Create one with another name" }).click();
  await page.getByLabel("Name").fill("workshop");
  assert.equal((await pressTwice(page, page.getByRole("button", { name: "Create", exact: true }))).length, 1, "a tenant is made once");
  await page.getByText("No documents yet").waitFor();
  await look(page, "no-documents");
  step("signed in, made a tenant");

  const uploads = [];
  page.on("request", (request) => request.url().includes("/upload/upload_document") && uploads.push(request.url()));
  await page.locator("input[type=file][multiple]").setInputFiles(write({ ...GOOD, ...BROKEN }));
  await ended(page, "success", 5);
  await page.locator(".uploads .item", { hasText: "torn.pdf" }).getByText(/again/).waitFor();
  await look(page, "sources");
  const [vast] = write({ "vast.txt": "" });
  truncateSync(vast, 101 * 1024 * 1024);
  await page.locator("input[type=file][multiple]").setInputFiles(vast);
  await page.locator(".uploads .item", { hasText: "vast.txt" }).getByText("larger than 100 MiB").waitFor();
  assert.equal(uploads.length, 6, "what is too large is not sent");
  await page.reload();
  await go(page, "Sources");
  step("five files are searchable, one says why not");

  const sent = page.waitForResponse((response) => response.url().includes("/upload/update_document"));
  await page.locator("tr", { hasText: "torn.pdf" }).getByRole("button", { name: "Try again" }).click();
  assert.equal((await sent).status(), 200);
  await page.getByText("1 upload: 0 searchable, 1 failed, 0 in progress").waitFor();
  step("what failed is tried again");

  await go(page, "Ask");
  const quoted = await ask(page, QUESTION.text, QUESTION.words);
  await look(page, "ask");
  await quoted.locator(".cite").first().click();
  const viewer = page.getByRole("dialog");
  await viewer.locator("mark").first().waitFor();
  assert.ok((await viewer.locator("mark").first().innerText()).includes(QUESTION.words));
  await viewer.getByRole("heading", { name: QUESTION.file }).or(viewer.getByRole("heading", { name: "Glue" })).first().waitFor();
  await look(page, "citation");
  await page.keyboard.press("Escape");
  await viewer.waitFor({ state: "detached" });
  const paged = await ask(page, PAGE_QUESTION.text, PAGE_QUESTION.words);
  await paged.locator(".cite").first().click();
  const image = viewer.getByRole("img", { name: /^Page 2 of/ });
  await image.waitFor();
  await viewer.getByText("Page 2 of 2").waitFor();
  // The box surrounds dark pixels of the picture below it: the letters of the sentence.
  assert.equal(await viewer.locator(".sheet rect").count(), 1);
  const dark = await viewer.locator(".sheet").evaluate((sheet) => {
    const [picture, rect] = [sheet.querySelector("img"), sheet.querySelector("rect")];
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [picture.naturalWidth, picture.naturalHeight];
    const context = canvas.getContext("2d");
    context.drawImage(picture, 0, 0);
    const [whole, box] = [picture.getBoundingClientRect(), rect.getBoundingClientRect()];
    const [right, down] = [canvas.width / whole.width, canvas.height / whole.height];
    const { data } = context.getImageData((box.x - whole.x) * right, (box.y - whole.y) * down, box.width * right, box.height * down);
    return data.filter((value, i) => i % 4 === 0 && value < 128).length / (data.length / 4);
  });
  assert.ok(dark > 0.04 && dark < 0.5, `${dark} of the box are dark`);
  await look(page, "citation-page");
  await viewer.getByRole("button", { name: "Previous page" }).click();
  await viewer.getByRole("img", { name: /^Page 1 of/ }).waitFor();
  assert.equal(await viewer.locator(".sheet rect").count(), 0);
  await page.keyboard.press("ArrowRight");
  await image.waitFor();
  await viewer.getByRole("button", { name: "Passages", exact: true }).click();
  await viewer.locator("mark").first().waitFor();
  await page.keyboard.press("Escape");
  await viewer.waitFor({ state: "detached" });
  step("asked a PDF, and saw the cited sentence boxed on its page");
  const plain = await ask(page, PLAIN_QUESTION.text, PLAIN_QUESTION.words);
  await plain.locator(".cite").first().click();
  assert.ok((await viewer.locator("pre mark").first().innerText()).includes(PLAIN_QUESTION.words));
  await viewer.getByRole("link", { name: "Open as a page" }).click();
  await page.locator("main pre mark").first().waitFor();
  await look(page, "source");
  await page.getByRole("button", { name: "Details" }).click();
  await page.getByLabel("Metadata of the document (JSON)").fill("{\"team\": \"wood\"}");
  await page.getByRole("button", { name: "Save the metadata" }).click();
  await page.getByText("Saved.").waitFor();
  step("asked, and saw the cited sentences marked");

  // --- search, with a filter -------------------------------------------------------------------
  await go(page, "Search");
  await page.getByLabel("Query").fill("Norvik Logistics");
  await page.keyboard.press("Enter");
  await page.locator(".result").nth(1).waitFor();
  await page.locator(".result mark").first().waitFor();
  assert.ok(await page.locator(".result .bars rect").count() > 1, "scores have parts");
  await look(page, "search");
  await page.getByText("Options").click();
  await page.getByLabel("Filters (JSON)").fill("{\"document_metadata\": {\"team\": \"wood\"}}");
  await page.getByRole("button", { name: "Search" }).click();
  await page.locator("main").getByText(/^1 passage/).waitFor();
  await page.getByLabel("Filters (JSON)").fill("{broken");
  await page.getByRole("button", { name: "Search" }).click();
  await page.getByRole("alert").getByText(/^Filters:/).waitFor();
  // --- warnings with a search and an answer -------------------------------------------------------
  const wrongType = "{\"document_metadata\": {\"team\": 5}}";
  const why = page.getByRole("main").getByRole("status").filter({ hasText: "document_metadata.team is compared with numbers but its stored values are texts" });
  await page.getByLabel("Filters (JSON)").fill(wrongType);
  await page.getByRole("button", { name: "Search" }).click();
  await why.waitFor();
  await look(page, "search-warning");
  await page.getByLabel("Filters (JSON)").fill("");
  await page.getByRole("button", { name: "Search" }).click();
  await why.waitFor({ state: "detached" });
  await page.getByLabel("By", { exact: true }).selectOption("full text, any word");
  await page.getByLabel("Filters (JSON)").fill(wrongType);
  await page.getByRole("button", { name: "Search" }).click();
  await why.waitFor();
  await go(page, "Ask");
  await page.getByLabel("Question").waitFor();
  await page.getByText("Options").click();
  await page.getByLabel("Filters (JSON)").fill(wrongType);
  await ask(page, QUESTION.text, "");
  await page.locator(".turn").first().getByRole("status").filter({ hasText: "its stored values are texts" }).waitFor();
  await look(page, "ask-warning");
  step("searched, and was told why a filter lets nothing pass");

  // --- a server restart in the middle -----------------------------------------------------------
  await go(page, "Sources");
  await page.getByText(/^\d+ sources$/).waitFor();
  await kill(server);
  // File names may be in another Unicode form than the ids of the server, as those of macOS are.
  const late = "late\u0301.txt";
  await page.locator("input[type=file][multiple]").setInputFiles(write({ [late]: "The late delivery came by boat.\n" }));
  await page.getByText("The server does not answer").waitFor();
  await page.screenshot({ path: path.join(shots, "gone-light-1440.png") });
  server = await start(binary, path.join(work, "data"), port, log);
  await page.locator(".uploads .item", { hasText: late }).locator(".badge.success").waitFor();
  await page.getByText("The server does not answer").waitFor({ state: "detached" });
  step("the server was killed and came back: nothing was lost");
  const ids = Object.entries(JSON.parse(readFileSync(new URL("../../src/cli/ingest/ids.json", import.meta.url), "utf8")));
  const made = await page.evaluate(async (paths) => {
    const { idOf, idOfPage } = await import("/console/ids.js");
    return [...paths.map((path) => [path, idOf(path)]), idOfPage("https://example.com/a?b=c")];
  }, ids.map(([path]) => path));
  assert.deepEqual(made, [...ids, "https%3A::example.com:a?b=c"], "ids are those of lodestone ingest");

  // --- a full disk ------------------------------------------------------------------------------
  const [disk, place] = [path.join(work, "disk"), await freePort()];
  mkdirSync(disk);
  const small = await startOnSmallDisk(binary, disk, place, log);
  if (small) {
    await call(place, "POST", "/user/create_tenant?tenant_id=full", {});
    await call(place, "POST", "/upload/upload_text?tenant_id=full", { file_id: "note", content: GOOD["lamp.txt"] });
    const full = await open(`http://127.0.0.1:${place}/`);
    await signIn(full);
    await go(full, "Sources");
    await full.locator("tr", { hasText: "note" }).locator(".badge.success").waitFor();
    fillDisk(small, disk);
    await full.locator("input[type=file][multiple]").setInputFiles(write({ "wide.txt": "There is no room for this.\n" }));
    await full.locator(".uploads .badge.refused").waitFor();
    await full.getByText("The server's disk is full: uploads wait, search still works.").waitFor();
    await look(full, "full-disk");
    await go(full, "Ask");
    await ask(full, "How much does the lamp weigh?", "3.2 kilograms");
    await full.context().close();
    await kill(small);
    step("a full disk refuses uploads, says so, and answers");
  } else {
    step("SKIPPED a full disk: no tmpfs can be mounted here");
  }

  // --- hostile documents -----------------------------------------------------------------------
  await page.locator("input[type=file][multiple]").setInputFiles(write(HOSTILE));
  await page.getByText("Paste a text").click();
  await page.getByLabel("Title").fill(HOSTILE_TITLE);
  await page.getByLabel("Text", { exact: true }).fill(`Zinnober pasted ${HOSTILE["hostile.md"]}`);
  await page.getByRole("button", { name: "Add the text" }).click();
  await page.getByText(/ 0 in progress/).waitFor();
  await look(page, "hostile-sources");
  await go(page, "Ask");
  const hostile = await ask(page, "What is zinnober?", "");
  await hostile.locator(".source-card").first().click();
  await viewer.locator(".split").waitFor();
  await look(page, "hostile-source");
  await page.keyboard.press("Escape");
  await go(page, "Search");
  await page.getByLabel("Query").fill("zinnober");
  await page.keyboard.press("Enter");
  await page.locator(".result").nth(2).waitFor();
  for (const href of await page.locator("a[href]").evaluateAll((links) => links.map((link) => link.href))) {
    assert.match(href, /^https?:/);
  }
  await look(page, "hostile-search");
  step("hostile documents executed nothing");

  // --- the other pages -------------------------------------------------------------------------
  await go(page, "Graph");
  await page.getByText("Norvik Logistics").first().waitFor();
  await page.waitForTimeout(400);
  await page.getByLabel("Entity").fill("Alba");
  await page.getByLabel("Path to").fill("Norvik");
  await page.getByText("no path connects these two").or(page.getByText("from the one to the other")).waitFor();
  await page.getByLabel("Entity").fill("Tessera Mills");
  await page.getByText("1 statement, from the one to the other").waitFor();
  await look(page, "graph");
  await go(page, "Memories");
  await page.getByLabel("A new memory").fill("Ines prefers oak to pine.");
  assert.equal((await pressTwice(page, page.getByRole("button", { name: "Add" }))).length, 1, "a memory is added once");
  await page.locator("main .text", { hasText: "Ines prefers oak" }).waitFor();
  await look(page, "memories");
  await go(page, "Jobs");
  await page.locator("tbody tr").nth(4).waitFor();
  await look(page, "jobs");
  const tries = page.getByRole("button", { name: "Try torn.pdf again" });
  assert.equal(await tries.count(), 2);
  const retried = page.waitForResponse((response) => response.url().endsWith("/retry"));
  await tries.first().click();
  assert.equal((await retried).status(), 200);
  await page.locator("tr", { hasText: "torn.pdf" }).first().locator(".badge.errored").waitFor();
  // The earlier upload has been replaced by the one from the page of sources.
  await tries.last().click();
  await page.getByRole("alert").getByText("superseded by a later upload of its source").waitFor();
  await go(page, "System");
  await page.getByText("Embedding model").waitFor();
  await page.getByText("free disk").waitFor();
  // The server has counted since its start, before this page was opened.
  await page.locator(".plot", { hasText: "Searches" }).getByText(/median [\d.]+, 95 of 100 [\d.]+ ms/).waitFor();
  await page.locator(".plot", { hasText: "Requests" }).getByText(/a second; at most/).waitFor();
  await look(page, "system");
  await go(page, "API");
  await page.getByLabel("Find an operation").fill("search chunks by meaning");
  const operation = page.locator("details.operation:visible");
  assert.equal(await operation.count(), 1);
  await operation.locator("summary").first().click();
  const body = operation.getByLabel("Body (JSON)");
  const asked = JSON.parse(await body.inputValue());
  assert.equal(asked.tenant_id, "workshop");
  await body.fill(JSON.stringify({ ...asked, query: "band saw", max_chunks: 1 }));
  await operation.getByRole("button", { name: "Send" }).click();
  await operation.getByText(/^200 after/).waitFor();
  assert.ok((await operation.locator("pre").last().innerText()).includes("handbook"));
  await look(page, "api");
  await go(page, "Keys");
  await page.getByLabel("Name").fill("reader");
  await page.getByLabel("Reaches").selectOption("workshop");
  assert.equal((await pressTwice(page, page.getByRole("button", { name: "Create the key" }))).length, 1, "a key is made once");
  const reader = await page.locator(".secret").innerText();
  await look(page, "keys");
  await go(page, "Tenants");
  await page.getByText(/\d+ sources/).first().waitFor();
  await look(page, "tenants");
  await page.getByRole("combobox", { name: "Sub-tenant" }).selectOption("new…");
  await page.getByRole("dialog").getByLabel("Name").fill("attic");
  await page.keyboard.press("Enter");
  await go(page, "Ask");
  await page.getByText("No documents yet").waitFor();
  await page.getByRole("combobox", { name: "Sub-tenant" }).selectOption("default");
  await go(page, "Sources");
  await page.getByRole("button", { name: "Delete lamp.txt" }).click();
  await look(page, "confirmation");
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("link", { name: "lamp.txt", exact: true }).and(page.locator("table a")).waitFor({ state: "detached" });
  step("graph, memories, jobs, system, keys, tenants, deletion");

  // --- a key that may only read ---------------------------------------------------------------
  const limited = await open();
  await signIn(limited, reader);
  await limited.getByRole("textbox", { name: "Tenant", exact: true }).fill("workshop");
  await limited.getByRole("button", { name: "Use" }).click();
  await ask(limited, QUESTION.text, QUESTION.words);
  await go(limited, "Sources");
  await limited.locator("input[type=file][multiple]").setInputFiles(write({ "no.txt": "no" }));
  await limited.getByText("This key is read-only").waitFor();

  // --- a key for one tenant, or for one of its sub-tenants, selects it ---------------------------
  for (const [sub, shown] of [[undefined, "default"], [["attic"], "attic"]]) {
    const own = await call(port, "POST", "/admin/api_keys", { name: "own", role: "read", tenants: [{ tenant_id: "workshop", ...(sub ? { sub_tenant_ids: sub } : {}) }] });
    const tab = await open();
    await signIn(tab, own.api_key);
    await tab.waitForFunction(([tenant, name]) => document.querySelector("input[aria-label=Tenant]")?.value === tenant
      && document.querySelector("select[aria-label=Sub-tenant]")?.value === name, ["workshop", shown]);
    await tab.context().close();
  }

  // --- failures are reported: a deletion, an interrupted answer, a revoked key -------------------
  await limited.locator("tbody tr").first().getByRole("button", { name: /^Delete / }).click();
  await limited.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await limited.locator(".banner", { hasText: "needs the role write" }).waitFor();
  await go(limited, "Ask");
  const half = "event: token\ndata: {\"delta\": \"Half an\"}\n\n";
  await limited.route("**/search/qna", (route) => route.fulfill({ contentType: "text/event-stream", body: half }));
  await limited.getByLabel("Question").fill(QUESTION.text);
  await limited.keyboard.press("Enter");
  const broken = limited.locator(".turn").first();
  await broken.getByRole("alert").getByText("ended early").waitFor();
  await limited.unroute("**/search/qna");
  await broken.getByRole("button", { name: "Ask again" }).click();
  await broken.locator(".answer", { hasText: QUESTION.words }).waitFor();
  // A connection breaks before the answer: a question by itself is sent again, one in a conversation is not.
  await limited.getByText("Options").click();
  for (const [follows, times] of [[false, 2], [true, 1]]) {
    let sent = 0;
    await limited.route("**/search/qna", (route) => ((sent += 1) === 1 ? route.abort() : route.continue()));
    await limited.getByLabel("Follow the conversation").setChecked(follows);
    if (follows) {
      await limited.getByLabel("Question").fill(QUESTION.text);
      await limited.keyboard.press("Enter");
      await limited.locator(".turn").first().getByRole("alert").getByText("cannot be reached").waitFor();
    } else {
      await ask(limited, QUESTION.text, QUESTION.words);
    }
    assert.equal(sent, times, `a question that follows: ${follows}`);
    await limited.unroute("**/search/qna");
  }
  // A limit of the day is told at once.
  await limited.getByLabel("Follow the conversation").setChecked(false);
  const spent = { status: 429, headers: { "retry-after": "3600" }, json: { reason: "rate_limited", message: "come back tomorrow" } };
  await limited.route("**/search/qna", (route) => route.fulfill(spent));
  await limited.getByLabel("Question").fill(QUESTION.text);
  await limited.keyboard.press("Enter");
  await limited.locator(".turn").first().getByRole("alert").getByText("come back tomorrow").waitFor();
  await limited.unroute("**/search/qna");
  await limited.getByLabel("Follow the conversation").setChecked(true);
  await limited.evaluate(() => {
    const [plainFetch, plainTimeout] = [window.fetch, window.setTimeout];
    window.fetch = (to, options) => (String(to).includes("search/qna") ? Promise.resolve(new Response(new ReadableStream())) : plainFetch(to, options));
    window.setTimeout = (work, ms, ...rest) => plainTimeout(work, ms >= 45_000 ? 0 : ms, ...rest);
  });
  await limited.getByLabel("Question").fill(QUESTION.text);
  await limited.keyboard.press("Enter");
  await limited.locator(".turn").first().getByRole("alert").getByText("ended early").waitFor();
  await limited.reload();
  await limited.getByRole("textbox", { name: "Tenant", exact: true }).waitFor();
  await ask(limited, QUESTION.text, QUESTION.words);
  const { api_keys: keys } = await call(port, "GET", "/admin/api_keys");
  await limited.locator(".turn .cite").first().click();
  await limited.getByRole("dialog").locator("mark").first().waitFor();
  await call(port, "DELETE", `/admin/api_keys/${keys.find((key) => key.name === "reader").key_id}`);
  await limited.getByRole("button", { name: "Download the original" }).click();
  await limited.locator(".banner", { hasText: "The key has expired or was revoked" }).waitFor();

  // --- signing out leaves nothing in the tab ------------------------------------------------------
  await signIn(limited);
  await limited.getByRole("combobox", { name: "Tenant", exact: true }).selectOption("workshop");
  await limited.locator(".turn").first().waitFor();
  assert.equal(await limited.locator(".banner").count(), 0);
  await limited.getByRole("button", { name: "Sign out" }).click();
  await limited.waitForURL(`${origin}/`);
  const left = await limited.evaluate(() => Object.entries(sessionStorage).filter(([, value]) => value !== ""));
  assert.deepEqual(left, []);
  await signIn(limited);
  await limited.getByRole("combobox", { name: "Tenant", exact: true }).selectOption("workshop");
  await limited.getByLabel("Question").waitFor();
  assert.equal(await limited.locator(".turn").count(), 0);
  const sat = await call(port, "POST", "/admin/api_keys", { name: "console: signed in by link", role: "admin" });
  await limited.evaluate(({ api_key: key, key_id: id }) => {
    sessionStorage.setItem("lodestone.key", key);
    sessionStorage.setItem("lodestone.sitting", id);
  }, sat);
  await limited.reload();
  await limited.route("**/admin/api_keys/*", (route) => route.abort());
  await limited.getByRole("button", { name: "Sign out" }).click();
  await limited.locator(".banner", { hasText: "could not revoke the key of this session" }).waitFor();
  await limited.getByLabel("API key").waitFor();
  await limited.close();
  step("what fails is told, and signing out leaves nothing");

  // --- a citation into a file of each format ----------------------------------------------------
  await call(port, "POST", "/user/create_tenant?tenant_id=formats", {});
  const reading = await open();
  await signIn(reading);
  await reading.getByRole("combobox", { name: "Tenant", exact: true }).selectOption("formats");
  await go(reading, "Sources");
  await reading.locator("input[type=file][multiple]").setInputFiles(write(Object.fromEntries(FORMATS.map(({ name, content }) => [name, content]))));
  await reading.getByText(`${FORMATS.length} uploads: ${FORMATS.length} searchable`).waitFor();
  await go(reading, "Ask");
  for (const { name, question, words } of FORMATS) {
    const turn = await ask(reading, question, words);
    await turn.locator(".cite").first().click();
    const dialog = reading.getByRole("dialog");
    if (name.endsWith(".pdf")) await dialog.locator(".sheet rect").first().waitFor();
    else await dialog.locator(".reading mark:not(.soft)", { hasText: words }).first().waitFor();
    if (name.endsWith(".xlsx")) await look(reading, "citation-table");
    await reading.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  }
  await reading.context().close();
  step(`a citation into each of ${FORMATS.length} formats ended in its passage, marked`);

  // --- a tenant of vectors; the sample below a path prefix ---------------------------------------
  await call(port, "POST", "/embeddings/create_tenant?tenant_id=points");
  await call(port, "POST", "/upload/upload_embeddings?tenant_id=points", { file_id: "p", embeddings: [[1, 0], [0, 1], [0.7, 0.7]] });
  await call(port, "POST", "/user/create_tenant?tenant_id=sample", {});
  const proxy = await behindPrefix(port, "/below/here");
  const other = await open(proxy.url);
  await signIn(other);
  await other.getByRole("combobox", { name: "Tenant", exact: true }).selectOption("points");
  await other.getByRole("heading", { name: "Vectors" }).waitFor();
  await other.getByLabel("Vector (JSON)").fill("[1, 0.1]");
  await other.getByRole("button", { name: "Search" }).click();
  await other.getByRole("button", { name: "p_0" }).waitFor();
  assert.equal(await other.locator(".projection circle").count(), 3);
  await other.getByLabel("Near the vector").selectOption("p_2");
  await other.locator("tbody tr").first().getByRole("button", { name: "p_2" }).waitFor();
  await look(other, "vectors");
  await other.getByRole("combobox", { name: "Tenant", exact: true }).selectOption("sample");
  await go(other, "Ask");
  await other.getByRole("button", { name: "Load a small sample" }).click();
  await other.getByRole("heading", { name: "Three questions for the sample" }).waitFor();
  for (const [question, words] of [["air filter", "six months"], ["error E4", "uneven voltage"], ["battery cells", "ten years"]]) {
    await go(other, "Sources");
    await other.goto(`${proxy.url}#/ask?sample=1`);
    await other.getByRole("button", { name: question }).click();
    await other.locator(".turn").first().locator(".answer[aria-busy=false]").waitFor();
    const answer = await other.locator(".turn .answer").first().innerText();
    assert.ok(answer.includes(words), `${question}: ${answer}`);
  }
  await look(other, "sample");
  proxy.close();
  step("a reading key, vectors, and the sample below a path prefix");
  assert.deepEqual(problems, []);
  step("nothing left the origin, nothing broke the policy, axe found nothing");
} catch (error) {
  for (const problem of problems) console.error(`  ${problem}`);
  const pages = browser.contexts().flatMap((context) => context.pages());
  await Promise.all(pages.map((page, i) => page.screenshot({ path: path.join(shots, `failed-${i}.png`) }).catch(() => {})));
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser.close();
  await kill(server);
  rmSync(work, { recursive: true, force: true });
}
// A proxy that a failure left open must not keep the process alive.
process.exit();
