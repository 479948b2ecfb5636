// A source: its pages and its text with cited passages marked, its passages, its details.
import { ask, call } from "./api.js";
import { address, age, confirmation, count, field, fill, h, isSafeAddress, oneAtATime, plural, problem, size } from "./dom.js";
import { pageView } from "./page.js";
import { find, findRows, findWords, marked } from "./passage.js";
import { scope } from "./state.js";
import { downloadPath, replaceButton, stateOf } from "./upload.js";

/** @typedef {import("./page.js").Box} Box */
/**
 * What a source is opened for.
 * @typedef {object} Grounds
 * @property {string[]} passages
 * @property {string} chunk
 * @property {string} words
 * @property {Box[]} [boxes] of the passages on their pages
 */

/** Chunks that are shown; the server gives no more at once. */
const CHUNKS_MAX = 1001;
/** Bytes of an original that is shown as text. */
const TEXT_BYTES_MAX = 2_000_000;
/** Boxes of passages in the address of a source. */
const BOXES_MAX = 20;
/** Originals that read best as they are. */
const PLAIN = /^text\/(plain|markdown|csv|tab-separated-values)/;

/**
 * The page of a source.
 * @param {URLSearchParams} params
 * @param {AbortSignal} leaving
 */
export async function source(params, leaving) {
  const id = params.get("id") ?? "";
  const passages = params.getAll("mark");
  const boxes = params.getAll("box").map(boxOfText);
  const view = await sourceView(id, { passages, chunk: params.get("chunk") ?? "", words: passages[0] ?? "", boxes }, "h1", leaving);
  return h("div", {}, h("p", {}, h("a", { href: address("sources") }, "All sources")), view);
}

/** @param {string} text */
function boxOfText(text) {
  const [page, x, y, width, height] = text.split(",").map((one) => Number(one) || 0);
  return { page, x, y, width, height };
}

/**
 * Opens a source above the page.
 * @param {string} id
 * @param {Grounds} grounds
 */
export function openSource(id, grounds) {
  const stop = new AbortController();
  const body = h("div", { class: "dialog-body" }, h("p", { class: "muted" }, "Loading…"));
  const close = h("button", { class: "quiet", type: "button", onclick: () => dialog.close() }, "Close");
  const params = new URLSearchParams({ id, chunk: grounds.chunk });
  for (const passage of grounds.passages.slice(0, 3)) params.append("mark", passage);
  for (const { page, x, y, width, height } of grounds.boxes?.slice(0, BOXES_MAX) ?? []) params.append("box", [page, ...[x, y, width, height].map((one) => one.toFixed(1))].join(","));
  const page = h("a", { href: `#/source?${params}`, onclick: () => dialog.close() }, "Open as a page");
  const dialog = h("dialog", { class: "viewer", "aria-label": "Source" },
    h("div", { class: "row between dialog-top" }, page, close), body);
  dialog.addEventListener("close", () => {
    stop.abort();
    dialog.remove();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
  document.body.append(dialog);
  dialog.showModal();
  sourceView(id, grounds, "h2", stop.signal).then((view) => fill(body, view), (error) => {
    if (!stop.signal.aborted) fill(body, problem(error));
  });
}

/**
 * @param {string} id
 * @param {Grounds} grounds
 * @param {"h1" | "h2"} level
 * @param {AbortSignal} signal
 */
async function sourceView(id, grounds, level, signal) {
  const { sources } = await ask("list/sources_by_id", { ...scope(), source_ids: [id] }, signal);
  const record = sources[0];
  if (!record) throw new Error("This source no longer exists.");
  const state = await stateOf(record, signal);
  const [chunks, original] = await Promise.all([chunksOf(record, grounds.words, signal), originalOf(record, signal)]);
  const isQuoted = original !== null && find(original, grounds.passages).length > 0;
  const isPlain = original !== null && PLAIN.test(record.content_type ?? "");
  const reading = h("div", { class: "reading", tabindex: "0", role: "region", "aria-label": "Text" });
  const outline = h("ol", { class: "plain outline" });
  let current = grounds.chunk;
  let boxes = grounds.boxes ?? [];

  const showPassages = () => {
    fill(reading, chunks.length === 0 && h("p", { class: "muted" }, "No text of this source is searchable yet."),
      chunks.map((chunk, i) => h("section", { class: chunk.chunk_uuid === current ? "chunk current" : "chunk", "data-chunk": chunk.chunk_uuid },
        h(level === "h1" ? "h2" : "h3", { class: "label muted" }, `Passage ${i + 1}${where(chunk)}`), h("p", { class: "text" }, textOf(chunk, grounds, current)))));
    reveal(reading);
  };
  const showOriginal = () => {
    const text = original ?? "";
    const chunk = chunks.find((one) => one.chunk_uuid === current);
    let ranges = find(text, grounds.passages);
    if (ranges.length === 0 && chunk) ranges = find(text, [chunk.chunk_content]);
    fill(reading, h("pre", { class: "text" }, marked(text, ranges)));
    reveal(reading);
  };
  const pages = pageView(record, reading, signal);
  const showPage = () => {
    const chunk = chunks.find((one) => one.chunk_uuid === current);
    const own = chunk ? boxesOf(chunk) : [];
    if (!reading.contains(pages.node)) fill(reading, pages.node);
    pages.show(boxes.length > 0 ? boxes : own, 1).then(() => reveal(reading), (error) => {
      if (signal.aborted) return;
      tabs.choose("Passages");
      reading.prepend(problem(error, "The page cannot be displayed; this is its text."));
    });
  };
  const showDetails = () => fill(reading, details(record));
  /** @type {[string, () => void][]} */
  const views = [["Passages", showPassages]];
  if (original !== null) views.unshift(["Original text", showOriginal]);
  views.push(["Details", showDetails]);
  const isPdf = record.content_type === "application/pdf" && chunks.length > 0;
  if (isPdf) views.unshift(["Page", showPage]);
  const start = isPdf && grounds.chunk ? "Page" : isPlain && (isQuoted || !grounds.chunk) ? "Original text" : "Passages";
  const tabs = tabList(views, start);

  fill(outline, chunks.map((chunk, i) => h("li", {}, h("button", { type: "button", onclick: () => {
    current = chunk.chunk_uuid;
    for (const button of outline.querySelectorAll("button")) button.removeAttribute("aria-current");
    outline.querySelectorAll("button")[i].setAttribute("aria-current", "true");
    boxes = boxesOf(chunk);
    tabs.choose(reading.contains(pages.node) ? "Page" : "Passages");
  }, "aria-current": chunk.chunk_uuid === current ? "true" : null }, h("span", { class: "number" }, i + 1), h("span", {}, firstWords(chunk.chunk_content), h("small", { class: "muted" }, where(chunk)))))));
  queueMicrotask(() => requestAnimationFrame(() => tabs.choose(start)));
  const facts = [record.type, size(record.size_bytes), record.chunk_count === null ? "" : plural(record.chunk_count, "passage")].filter(Boolean).join(" · ");
  return h("div", { class: "source" },
    h(level, {}, record.title),
    h("p", { class: "muted" }, facts, " · uploaded ", age(record.timestamp), " · ", h("button", { class: "link", type: "button", onclick: () => download(record) }, "Download the original"),
      record.url && isSafeAddress(record.url) ? [" · ", h("a", { href: record.url, rel: "noopener noreferrer", target: "_blank" }, "Address")] : null),
    state.note,
    h("div", { class: "split" }, h("div", { class: "grow" }, tabs.node, reading),
      h("nav", { class: "beside", "aria-label": "Passages" }, h(level === "h1" ? "h2" : "h3", { class: "label" }, plural(chunks.length, "passage")), outline)));
}

/**
 * Every passage of a source, in reading order.
 * @param {any} record
 * @param {string} words
 * @param {AbortSignal} signal
 * @returns {Promise<any[]>}
 */
async function chunksOf(record, words, signal) {
  if (!record.chunk_count) return [];
  const most = Math.min(CHUNKS_MAX, Math.max(1, record.chunk_count));
  const query = (words || record.title).slice(0, 1000);
  const { chunks } = await ask("search/retrieve", { ...scope(), query, alpha: 1, context_list: [record.id], max_chunks: most, join_neighbours: false }, signal);
  return chunks.sort((/** @type {any} */ a, /** @type {any} */ b) => startOf(a) - startOf(b));
}

/** @param {any} chunk */
function startOf(chunk) {
  return JSON.parse(chunk.layout ?? "{}").offsets?.document_level_start_index ?? 0;
}

/** The box of a chunk on its first page, if it has one. @param {any} chunk @returns {Box[]} */
function boxesOf(chunk) {
  const { page, coordinates } = JSON.parse(chunk.layout ?? "{}");
  return coordinates ? [{ page, ...coordinates }] : [];
}

/** The page of a chunk in words. @param {any} chunk */
function where(chunk) {
  const { page, slide, sheet, coordinates } = JSON.parse(chunk.layout ?? "{}");
  if (slide) return `, slide ${slide}`;
  if (sheet) return `, sheet ${sheet}`;
  return coordinates || page > 1 ? `, page ${page}` : "";
}

/**
 * The original, where it is a text that is not too long.
 * @param {any} record
 * @param {AbortSignal} signal
 * @returns {Promise<string | null>}
 */
async function originalOf(record, signal) {
  if (!/^text\/|json|xml/.test(record.content_type ?? "") || (record.size_bytes ?? 0) > TEXT_BYTES_MAX) return null;
  const content = await ask("fetch/fetch_content", { ...scope(), file_id: record.id }, signal);
  return content.encoding === "utf-8" ? content.file_content : null;
}

/** @param {any} chunk @param {Grounds} grounds @param {string} current */
function textOf(chunk, grounds, current) {
  const text = chunk.chunk_content;
  const quoted = find(text, grounds.passages);
  const ranges = quoted.length > 0 ? quoted : findRows(text, grounds.passages);
  if (ranges.length > 0) return marked(text, ranges);
  return chunk.chunk_uuid === current ? marked(text, findWords(text, grounds.words), "soft") : text;
}

/** @param {string} text */
function firstWords(text) {
  const line = text.replace(/^[#\s|*-]+/, "").replace(/^#+ /gm, "").replace(/\s+/g, " ");
  return line.length > 60 ? `${line.slice(0, 60)}…` : line;
}

/** Brings what is marked into view. @param {HTMLElement} reading */
function reveal(reading) {
  const listed = reading.closest(".split")?.querySelector(".outline [aria-current]");
  const beside = listed?.closest(".beside");
  if (listed && beside) beside.scrollTop += listed.getBoundingClientRect().top - beside.getBoundingClientRect().top - 80;
  const target = reading.querySelector(".current mark") ?? reading.querySelector("mark") ?? reading.querySelector(".current, .sheet rect");
  if (!target) return;
  const by = target.getBoundingClientRect().top - reading.getBoundingClientRect().top;
  reading.scrollTop += by - 80;
}

/**
 * Tabs, of which one is chosen.
 * @param {[string, () => void][]} views
 * @param {string} start
 */
export function tabList(views, start) {
  const buttons = views.map(([name]) => h("button", { type: "button", "aria-pressed": String(name === start), onclick: () => choose(name) }, name));
  /** @param {string} name */
  function choose(name) {
    views.forEach(([one, show], i) => {
      buttons[i].setAttribute("aria-pressed", String(one === name));
      if (one === name) show();
    });
  }
  return { node: h("div", { class: "tabs", role: "group", "aria-label": "View" }, buttons), choose };
}

/** @param {any} record */
async function download(record) {
  const { download_url: url } = await ask("fetch/fetch_content", { ...scope(), file_id: record.id, return_content: false });
  const link = h("a", { href: downloadPath(url), download: record.title, rel: "noopener" });
  link.click();
}

/** @param {any} record */
function details(record) {
  const rows = [["Id", record.id], ["Type", record.type], ["Media type", record.content_type], ["Size", size(record.size_bytes)],
    ["Passages", record.chunk_count === null ? "" : count(record.chunk_count)], ["Version", record.version], ["Address", record.url], ["Collections", record.source_collection.join(", ")]];
  const known = rows.filter(([, value]) => value);
  return h("div", {}, h("dl", { class: "facts" }, known.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    metadataForm(record), h("div", { class: "row" }, replaceButton(record.id, () => (location.hash = address("sources"))), h("button", { class: "danger", type: "button", onclick: oneAtATime(async () => {
      if (await remove([record.id], record.title)) location.hash = address("sources");
    }) }, "Delete")));
}

/** @param {any} record */
function metadataForm(record) {
  const box = (/** @type {unknown} */ value) => h("textarea", { class: "code", rows: "4", spellcheck: "false", value: JSON.stringify(value, null, 2) });
  const [own, declared] = [box(record.document_metadata), box(record.tenant_metadata)];
  const message = h("div", { "aria-live": "polite" });
  const save = oneAtATime(async () => {
    try {
      const body = { ...scope(), source_id: record.id, document_metadata: JSON.parse(own.value), tenant_metadata: JSON.parse(declared.value) };
      await call("PATCH", "upload/update_metadata", { json: body, isRepeatable: true });
      fill(message, h("p", { class: "note good" }, "Saved."));
    } catch (error) {
      fill(message, problem(error));
    }
  });
  return h("form", { class: "stack", onsubmit: save }, field("Metadata of the document (JSON)", own), field("Metadata of the tenant's schema (JSON)", declared),
    message, h("div", {}, h("button", { type: "submit" }, "Save the metadata")));
}

/**
 * Deletes sources, if the person means it.
 * @param {string[]} ids
 * @param {string} title
 */
export async function remove(ids, title) {
  const what = ids.length === 1 ? `“${title}”` : plural(ids.length, "source");
  if (!await confirmation(`Delete ${what}?`, "It disappears from all searches at once. This cannot be undone.", "Delete")) return false;
  await call("DELETE", "delete_source", { json: { ...scope(), source_ids: ids }, isRepeatable: true });
  return true;
}
