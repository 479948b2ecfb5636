// Uploads: files and folders, texts and addresses, until each is processed or has failed.
import { ApiError, ask, call, open, pause } from "./api.js";
import { address, fill, h, inTurns, plural, size, unique } from "./dom.js";
import { idOf, idOfPage } from "./ids.js";
import { scope } from "./state.js";

/**
 * @typedef {object} Item
 * @property {string} name
 * @property {string} id
 * @property {string} state waiting, sending, queued, in_progress, success, errored, refused
 * @property {string} text
 * @property {number | null} progress
 * @property {() => Promise<any>} send
 * @property {{tenant_id: string, sub_tenant_id: string}} scope
 * @property {HTMLElement} row
 * @property {string} [drawn] what the row shows
 */

const SENDING_MAX = 3;
/** What the server takes of one file. */
const FILE_BYTES_MAX = 100 * 1024 * 1024;
/** Rows that are drawn; the others are counted. */
const ROWS_MAX = 200;
const POLL_MS = 700;
const POLL_IDS_MAX = 1000;
const POLL_STAGES_MAX = 5;

/** What a person can do about a fault of processing. */
/** @type {Record<string, string>} */
const ADVICE = {
  ENCRYPTED_FILE: "Save it without a password and add it again.",
  CORRUPT_FILE: "Open it in its program, save it again and add it once more.",
  NO_TEXT: "It contains only pictures. Run text recognition (OCR) on it first.",
  FETCH_FAILED: "Check that the address opens in a browser, then fetch it again.",
  URL_BLOCKED: "The server does not fetch private addresses; its operator can allow hosts with LODESTONE_FETCH_ALLOW.",
  EMBEDDING_FAILED: "The embedding model failed. See the server log, then add it again.",
  TIMEOUT: "It took too long. Split it into smaller files.",
  TOO_LARGE: "It exceeds a limit. Split it into smaller files.",
  INTERNAL: "An error of the server. See its log, then add it again.",
};
/** @type {Record<string, string>} */
const WORDS = { waiting: "waiting", sending: "sending", queued: "queued", in_progress: "in progress", success: "searchable", errored: "failed", refused: "refused" };
const ENDED = new Set(["success", "errored", "refused"]);

/** @type {Item[]} */
const items = [];
/** The newest upload of each source: an earlier one that has ended leaves the list. */
/** @type {Map<string, Item>} */
const latest = new Map();
let sending = 0;
let isPolling = false;
const changed = new EventTarget();
const summary = h("p", { role: "status" });
const list = h("ul", { class: "plain rows" });
const hidden = h("p", { class: "muted" });
const forget = h("button", { class: "quiet", type: "button", onclick: clear }, "Clear the list");
const node = h("section", { class: "card uploads", hidden: true, "aria-label": "Uploads" },
  h("div", { class: "row between" }, summary, forget), list, hidden);

/** The list of this session's uploads. */
export function uploads() {
  return node;
}

/** @param {() => void} listener @param {AbortSignal} signal */
export function onProcessed(listener, signal) {
  changed.addEventListener("processed", listener, { signal });
}

/** @param {string} status @param {string} [text] */
export function badge(status, text) {
  return h("span", { class: `badge ${status}` }, text ?? WORDS[status] ?? status);
}

/**
 * Adds an upload to those that wait; `next` sends them.
 * @param {string} name
 * @param {string} id
 * @param {(once: string, scope: any) => Promise<any>} send
 */
function add(name, id, send) {
  const once = unique();
  const where = scope();
  /** @type {Item} */
  const item = { name, id, state: "waiting", text: "", progress: null, scope: where, send: () => send(once, where), row: h("li", { class: "item" }) };
  const place = JSON.stringify([where, id]);
  const earlier = latest.get(place);
  if (earlier && ENDED.has(earlier.state)) {
    items.splice(items.indexOf(earlier), 1);
    earlier.row.remove();
  }
  latest.set(place, item);
  items.push(item);
  if (items.length > ROWS_MAX) return;
  list.append(item.row);
  draw(item);
}

/**
 * Adds files.
 * @param {{file: File, path: string}[]} files
 */
export async function addFiles(files) {
  await inTurns(files, ({ file, path }) => addFile(file, path, idOf(path)), next);
  next();
}

/**
 * @param {File} file
 * @param {string} path
 * @param {string} id
 */
function addFile(file, path, id) {
  add(path, id, async (once, where) => {
    if (file.size > FILE_BYTES_MAX) throw new Error("It is larger than 100 MiB. Split it into smaller files.");
    const form = new FormData();
    for (const [name, value] of Object.entries({ ...where, file_id: id })) form.append(name, value);
    form.append("file", file, file.name);
    return call("POST", "upload/upload_document", { form, once });
  });
}

/**
 * Adds a text.
 * @param {string} title
 * @param {string} content
 * @param {Record<string, unknown>} [metadata]
 */
export function addText(title, content, metadata = {}) {
  const id = title ? idOf(title) : `text-${Date.now()}`;
  add(title || id, id, (once, where) => call("POST", "upload/upload_text",
    { query: where, json: { content, file_id: id, document_metadata: { ...metadata, ...(title ? { title } : {}) } }, once }));
  next();
}

/** Adds a web page. @param {string} url */
export function addPage(url) {
  const id = idOfPage(url);
  add(url, id, (once, where) => call("POST", "upload/scrape_webpage", { query: { ...where, web_url: url, file_id: id }, once }));
  next();
}

/** Sends what waits, a few at once. */
function next() {
  while (sending < SENDING_MAX) {
    const item = items.find((one) => one.state === "waiting");
    if (!item) break;
    sending += 1;
    item.state = "sending";
    draw(item);
    item.send().then((accepted) => {
      item.state = accepted.status;
      item.text = accepted.overwritten ? "replaces an earlier version" : "";
      poll();
    }, (error) => {
      item.state = "refused";
      item.text = error instanceof ApiError ? refusal(error) : String(error.message);
    }).finally(() => {
      sending -= 1;
      draw(item);
      next();
    });
  }
  tell();
}

/** @param {ApiError} error */
function refusal(error) {
  const advice = error.reason === "storage_full" ? " The server's disk is full: delete sources or free up space, then add it again."
    : error.status === 403 ? " This key is read-only: sign in with one that may write." : "";
  return sentence(error.message) + advice;
}

/** Asks how far what was accepted has come, until all of it has ended. */
async function poll() {
  if (isPolling) return;
  isPolling = true;
  try {
    for (let wait = 150; ; wait = POLL_MS) {
      await pause(wait);
      const pending = items.filter((item) => item.state === "queued" || item.state === "in_progress");
      if (pending.length === 0) break;
      const key = (/** @type {Item} */ item) => JSON.stringify(item.scope);
      const first = pending.filter((item) => key(item) === key(pending[0])).slice(0, POLL_IDS_MAX);
      const { sources, not_found: gone } = await ask("list/sources_by_id", { ...first[0].scope, source_ids: first.map((item) => item.id) });
      await follow(first, new Map(sources.map((/** @type {any} */ one) => [one.id, one])), new Set(gone));
    }
  } catch (error) {
    fill(hidden, error instanceof Error ? error.message : String(error));
  } finally {
    isPolling = false;
  }
}

/**
 * @param {Item[]} open
 * @param {Map<string, any>} sources
 * @param {Set<string>} gone
 */
async function follow(open, sources, gone) {
  let looked = 0;
  let hasEnded = false;
  for (const item of open) {
    const source = sources.get(item.id);
    if (gone.has(item.id)) Object.assign(item, { state: "refused", text: "deleted before it was processed" });
    else if (source) {
      item.state = source.status;
      if (source.status === "success") item.text = [plural(source.chunk_count ?? 0, "passage"), ...warnings(source)].join(" · ");
      if (source.status === "errored" || (source.status === "in_progress" && looked < POLL_STAGES_MAX)) {
        looked += source.status === "errored" ? 0 : 1;
        const seen = await verify(item);
        item.text = source.status === "errored" ? why(seen) : stage(seen);
        item.progress = seen.progress;
      }
    }
    hasEnded ||= ENDED.has(item.state);
  }
  await inTurns(open, draw);
  tell();
  if (hasEnded) changed.dispatchEvent(new Event("processed"));
}

/** @param {Item} item */
function verify(item) {
  return call("GET", "upload/verify_processing", { query: { ...item.scope, file_id: item.id } });
}

/** @param {any} source @returns {string[]} */
export function warnings(source) {
  return (source.warnings ?? []).map((/** @type {any} */ warning) => warning.message);
}

/** Words of the server as a sentence. @param {string} said */
function sentence(said) {
  return `${said.charAt(0).toUpperCase()}${said.slice(1)}${/[.!?]$/.test(said) ? "" : "."}`;
}

/** Why processing failed, and what to do. @param {any} seen */
export function why(seen) {
  const said = String(seen.message || seen.error_code);
  return `${sentence(said)} ${ADVICE[seen.error_code] ?? ""}`.trim();
}

/** @param {any} seen */
function stage(seen) {
  const share = typeof seen.progress === "number" ? ` ${Math.round(seen.progress * 100)} %` : "";
  return `${seen.stage ?? ""}${share}`;
}

/** @param {Item} item */
function draw(item) {
  const hasFailed = item.state === "errored" || item.state === "refused";
  // What failed stands first, however long the list is.
  if (hasFailed && item.row !== list.firstChild) list.prepend(item.row);
  const drawn = JSON.stringify([item.state, item.text, item.progress]);
  if (item.row.parentNode === null || item.drawn === drawn) return;
  item.drawn = drawn;
  const bar = item.state === "in_progress" && item.progress !== null && h("progress", { max: "1", value: item.progress, "aria-label": item.name });
  const name = item.state === "success" ? h("a", { href: address("source", { id: item.id }) }, item.name) : item.name;
  fill(item.row, badge(item.state), h("span", { class: "name" }, name), h("span", { class: "grow muted small" }, item.text), bar,
    (item.state === "refused") && h("button", { type: "button", onclick: () => {
      item.state = "waiting";
      item.text = "";
      next();
      draw(item);
    } }, "Try again"));
}

function tell() {
  const of = (/** @type {string[]} */ ...states) => items.filter((item) => states.includes(item.state)).length;
  const [done, failed] = [of("success"), of("errored", "refused")];
  const left = items.length - done - failed;
  node.hidden = items.length === 0;
  summary.textContent = `${plural(items.length, "upload")}: ${done} searchable, ${failed} failed, ${left} in progress`;
  forget.hidden = left > 0;
  hidden.textContent = items.length > ROWS_MAX ? `${items.length - ROWS_MAX} more are not listed here; see the list of sources. Failed uploads are always listed.` : "";
}

function clear() {
  items.length = 0;
  latest.clear();
  fill(list);
  tell();
}

window.addEventListener("beforeunload", (event) => {
  // What was accepted is safe; what was not sent would be lost.
  if (items.some((item) => item.state === "waiting" || item.state === "sending")) event.preventDefault();
});

/**
 * Files of a drop, those of folders too.
 * @param {DataTransfer} dropped
 */
export async function filesOf(dropped) {
  const entries = [...dropped.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  /** @type {{file: File, path: string}[]} */
  const files = [];
  for (const entry of entries) await collect(/** @type {FileSystemEntry} */ (entry), files);
  return files;
}

/**
 * @param {FileSystemEntry} entry
 * @param {{file: File, path: string}[]} files
 */
async function collect(entry, files) {
  if (entry.name.startsWith(".")) return;
  if (entry.isFile) {
    /** @type {File} */
    const file = await new Promise((resolve, reject) => /** @type {FileSystemFileEntry} */ (entry).file(resolve, reject));
    files.push({ file, path: entry.fullPath.replace(/^\//, "") });
    return;
  }
  const reader = /** @type {FileSystemDirectoryEntry} */ (entry).createReader();
  for (;;) {
    /** @type {FileSystemEntry[]} */
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const one of some) await collect(one, files);
  }
}

/**
 * A button that puts another file in the place of a source.
 * @param {string} id
 * @param {() => void} then
 */
export function replaceButton(id, then) {
  const input = h("input", { type: "file", hidden: true, onchange: () => {
    const file = input.files?.[0];
    if (!file) return;
    addFile(file, `${file.name} (${size(file.size)})`, id);
    next();
    then();
  } });
  return h("span", {}, input, h("button", { type: "button", onclick: () => input.click() }, "Replace"));
}

/**
 * Processes a source again, from its original or its address.
 * @param {any} record
 */
export function retry(record) {
  const earlier = latest.get(JSON.stringify([scope(), record.id]));
  if (earlier && !ENDED.has(earlier.state)) return;
  if (record.type === "webpage") {
    add(record.url, record.id, (once, where) => call("PATCH", "upload/update_webpage", { query: { ...where, source_id: record.id }, once }));
    return next();
  }
  add(record.title, record.id, async (once, where) => {
    const content = await originalOf(where, record.id);
    const form = new FormData();
    form.append("file", new File([content], record.title, { type: record.content_type ?? "" }));
    return call("PATCH", "upload/update_document", { query: { ...where, source_id: record.id }, form, once });
  });
  next();
}

/**
 * The bytes of an original.
 * @param {{tenant_id: string, sub_tenant_id: string}} where
 * @param {string} id
 */
async function originalOf(where, id) {
  const { download_url: url } = await ask("fetch/fetch_content", { ...where, file_id: id, return_content: false });
  return (await open("GET", downloadPath(url))).blob();
}

/** A download as an address below this page, whatever the server calls itself. @param {string} url */
export function downloadPath(url) {
  return new URL(url).pathname.replace(/^.*?(?=\/fetch\/download\/)/, ".");
}

/**
 * The state of a source, with what is wrong with it.
 * @param {any} record
 * @param {AbortSignal} signal
 */
export async function stateOf(record, signal) {
  if (record.status === "success") {
    const texts = warnings(record);
    return { note: texts.length > 0 ? h("p", { class: "note warn" }, `Read in part: ${texts.join("; ")}.`) : null };
  }
  const seen = await call("GET", "upload/verify_processing", { query: { ...scope(), file_id: record.id }, signal });
  const text = record.status === "errored" ? why(seen) : `Processing: ${WORDS[record.status]} ${stage(seen)}`;
  return { note: h("p", { class: record.status === "errored" ? "note bad" : "note" }, text) };
}
