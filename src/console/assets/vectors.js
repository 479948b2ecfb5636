// Vectors: tenants that hold vectors of their own.
import { ask, call } from "./api.js";
import { count, empty, field, fill, h, problem } from "./dom.js";
import { drawing } from "./projection.js";
import { scope } from "./state.js";

/** Vectors that are drawn. */
const SAMPLE = 200;

/**
 * The page.
 * @param {URLSearchParams} _params
 * @param {AbortSignal} leaving
 */
export async function vectors(_params, leaving) {
  const stats = await call("GET", "tenant/stats", { query: scope(), signal: leaving });
  const tiles = h("div", { class: "tiles" }, h("p", { class: "tile" }, h("strong", {}, count(stats.object_count)), "vectors"),
    h("p", { class: "tile" }, h("strong", {}, stats.vector_dimension ? count(stats.vector_dimension) : "–"), "dimensions"),
    h("p", { class: "tile" }, h("strong", {}, count(stats.source_count)), "batches"));
  const box = h("textarea", { class: "code", rows: "4", required: true, spellcheck: "false", placeholder: "[0.1, 0.2, …]" });
  const most = h("input", { type: "number", min: "1", max: "200", value: "10" });
  const place = h("div", { "aria-live": "polite" });
  /** @param {Event} event */
  async function run(event) {
    event.preventDefault();
    try {
      const vector = JSON.parse(box.value);
      const found = await ask("embeddings/search", { ...scope(), embeddings: vector, max_chunks: Number(most.value) || 10 }, leaving);
      fill(place, found.chunk_ids.length === 0 ? empty("Nothing was found") : h("table", {}, h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "Vector"), h("th", { scope: "col" }, "Score"))),
        h("tbody", {}, found.chunk_ids.map((/** @type {string} */ id, /** @type {number} */ i) => h("tr", {}, h("td", {}, h("button", { class: "link", type: "button", onclick: () => like(id) }, id)), h("td", { class: "figure" }, found.scores[i].toFixed(4)))))));
    } catch (error) {
      fill(place, problem(error));
    }
  }
  /** Searches what is near a stored vector. @param {string} id */
  async function like(id) {
    const { embeddings } = await ask("embeddings/retrieve_by_ids", { ...scope(), chunk_ids: [id] }, leaving);
    box.value = JSON.stringify(embeddings[id]);
    form.requestSubmit();
  }
  const form = h("form", { class: "card stack", onsubmit: run }, field("Vector (JSON)", box, "Paste a vector of the same dimension as the stored ones."), field("Results", most), h("div", {}, h("button", { class: "primary", type: "submit" }, "Search")));
  const { chunks: drawn } = stats.object_count > 2 ? await ask("embeddings/scroll", { ...scope(), limit: SAMPLE, with_vectors: true }, leaving) : { chunks: [] };
  const sample = drawn.map((/** @type {any} */ one) => ({ id: one.chunk_id, vector: one.embedding }));
  return h("div", {}, h("h1", {}, "Vectors"), tiles, form, place, sample.length > 2 && drawing(sample, like));
}
