// Search: passages with the parts of their scores.
import { open } from "./api.js";
import { copyButton, duration, field, fill, h, plural, problem, svg } from "./dom.js";
import { findWords, marked } from "./passage.js";
import { asCurl, asPython, options } from "./options.js";
import { openSource } from "./source.js";
import { scope } from "./state.js";
import { tell, toldIn } from "./told.js";

/** Characters before the first word that is asked for, at most. */
const LEAD_MAX = 200;

/**
 * The page.
 * @param {URLSearchParams} params
 * @param {AbortSignal} leaving
 */
export async function search(params, leaving) {
  const box = h("input", { type: "search", required: true, maxlength: "16384", value: params.get("q") ?? "" });
  const kind = h("select", {}, [["hybrid", "meaning and words"], ["or", "full text, any word"], ["and", "full text, all words"]].map(([value, text]) => h("option", { value }, text)));
  const chosen = options("retrieve");
  const notes = h("div", { role: "status" });
  const place = h("div", { "aria-live": "polite" });
  let running = new AbortController();
  /** @param {Event} [event] */
  async function run(event) {
    event?.preventDefault();
    const parameters = chosen.read();
    const query = box.value.trim();
    if (!query || !parameters) return;
    running.abort();
    running = new AbortController();
    const { signal } = running;
    const [path, body] = request(kind.value, { query, ...scope(), ...parameters });
    fill(notes);
    fill(place, h("p", { class: "muted" }, "Searching…"));
    try {
      const response = await open("POST", path, { json: body, signal, isRepeatable: true });
      const found = await response.json();
      const { chunks, metadata } = Array.isArray(found) ? { chunks: found, metadata: null } : found;
      tell(notes, metadata ?? toldIn(response.headers));
      fill(place, facts(chunks, metadata, path, body), h("ol", { class: "plain cards" }, chunks.map((/** @type {any} */ chunk) => result(chunk, query))), relations(found.graph_relations));
    } catch (error) {
      if (!signal.aborted) fill(place, problem(error));
    }
  }
  leaving.addEventListener("abort", () => running.abort());
  queueMicrotask(() => (box.value ? run() : box.focus()));
  return h("div", {}, h("h1", {}, "Search"),
    h("form", { class: "card", onsubmit: run, role: "search" },
      h("div", { class: "ask-row" }, field("Query", box), field("By", kind), h("button", { class: "primary", type: "submit" }, "Search")),
      h("details", {}, h("summary", {}, "Options"), chosen.node)), notes, place);
}

/**
 * @param {string} kind
 * @param {any} all
 * @returns {[string, any]}
 */
function request(kind, all) {
  if (kind === "hybrid") return ["search/retrieve", all];
  const { alpha, mode, recency_bias, max_chunks_per_source, graph_context, personalise_search, explain, ...plain } = all;
  return ["search/full-text-search", { ...plain, operator: kind }];
}

/**
 * @param {any[]} chunks
 * @param {any} metadata
 * @param {string} path
 * @param {any} body
 */
function facts(chunks, metadata, path, body) {
  const told = metadata ? [`alpha ${Number(metadata.alpha.toFixed(2))}${metadata.alpha_reason ? ` (${metadata.alpha_reason})` : ""}`, duration(metadata.timings_ms.total), `${metadata.candidates.fused} candidates`] : [];
  return [h("div", { class: "row between foot" }, h("span", { class: "muted" }, [plural(chunks.length, "passage"), ...told].join(" · ")),
    h("span", { class: "row" }, copyButton("Copy as curl", () => asCurl(path, body)), copyButton("Copy as Python", () => asPython(path, body)))),
  metadata && chunks.length > 0 && legend(),
  chunks.length === 0 && h("p", { class: "empty" }, "Nothing was found. Try other words, or fewer filters.")];
}

const PARTS = /** @type {const} */ ([["semantic_share", "meaning"], ["keyword_share", "words"], ["link", "links"], ["rerank", "reranker"]]);

function legend() {
  return h("p", { class: "legend small muted" }, "Parts of the score: ", PARTS.map(([name, text]) => h("span", {}, h("i", { class: `swatch ${name}` }), text)));
}

/**
 * @param {any} chunk
 * @param {string} query
 */
function result(chunk, query) {
  const text = chunk.chunk_content;
  const page = JSON.parse(chunk.layout ?? "{}");
  const where = page.coordinates || page.page > 1 ? `p. ${page.page}` : page.slide ? `slide ${page.slide}` : page.sheet ? `sheet ${page.sheet}` : "";
  const open = () => openSource(chunk.source_id, { passages: [text], chunk: chunk.chunk_uuid, words: query });
  return h("li", { class: "card result" }, h("div", { class: "row between" },
    h("h2", {}, h("button", { class: "link", type: "button", onclick: open }, chunk.source_title), where && h("span", { class: "muted" }, ` ${where}`)), score(chunk)),
  h("p", { class: "text clamp" }, excerpt(text, query)));
}

/**
 * A passage without blank lines and marks of headings, from the line of the first word that is asked for.
 * @param {string} passage
 * @param {string} query
 */
function excerpt(passage, query) {
  const whole = passage.replace(/^#+ /gm, "").replace(/\n{2,}/g, "\n");
  const first = findWords(whole, query)[0]?.start ?? 0;
  const from = first > LEAD_MAX ? whole.lastIndexOf("\n", first) + 1 : 0;
  const text = whole.slice(from);
  return [from > 0 && "…\n", marked(text, findWords(text, query), "soft")];
}

/** The score, and its parts as a bar. @param {any} chunk */
function score(chunk) {
  const total = chunk.relevancy_score ?? 0;
  const parts = chunk.explain;
  if (!parts) return h("span", { class: "score" }, total.toFixed(3));
  let at = 0;
  const bars = PARTS.filter(([name]) => parts[name]).map(([name]) => {
    const width = Math.min(Number(parts[name]), 1) * 100;
    const bar = svg("rect", { class: name, x: at.toFixed(1), y: 0, width: width.toFixed(1), height: 8 });
    at += width;
    return bar;
  });
  const numbers = PARTS.filter(([name]) => parts[name]).map(([name, text]) => `${text} ${Number(parts[name]).toFixed(2)}`);
  if (typeof chunk.confidence === "number") numbers.push(`confidence ${chunk.confidence.toFixed(2)}`);
  if (parts.recency !== 1) numbers.push(`recency × ${parts.recency.toFixed(2)}`);
  if (parts.cosine !== null) numbers.push(`cosine ${parts.cosine.toFixed(2)}`);
  if (parts.bm25 !== null) numbers.push(`BM25 ${parts.bm25.toFixed(2)}`);
  const most = Math.max(100, at);
  return h("div", { class: "score" }, h("strong", {}, total.toFixed(3)),
    svg("svg", { viewBox: `0 0 ${most.toFixed(0)} 8`, class: "bars", preserveAspectRatio: "none", role: "img", "aria-label": numbers.join(", ") }, bars),
    h("small", { class: "muted" }, numbers.join(" · ")));
}

/** @param {any} found */
function relations(found) {
  const paths = found?.entity_paths ?? [];
  if (paths.length === 0) return null;
  return h("section", { class: "card" }, h("h2", {}, "Relations"), h("ul", { class: "stack" }, paths.map((/** @type {any} */ path) => h("li", {}, path.combined_context))));
}
