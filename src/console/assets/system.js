// System: what the server tells of itself.
import { ask, call, pause } from "./api.js";
import { count, fill, h } from "./dom.js";
import { scope, state } from "./state.js";

const POLL_MS = 5000;

/** What a component is for, and what to do when it fails. */
/** @type {Record<string, [string, string]>} */
const COMPONENTS = {
  storage: ["Storage", "Look at the free space and the log of the server; `lodestone doctor` checks the data directory."],
  index: ["Index", "A part is damaged: `lodestone verify` names it. What can be rebuilt is rebuilt from the originals."],
  embedder: ["Model", "Search goes on by words. `lodestone model install` puts the model in place."],
};

/**
 * The page.
 * @param {URLSearchParams} _params
 * @param {AbortSignal} leaving
 */
export async function system(_params, leaving) {
  const parts = h("div", { class: "tiles" });
  const work = h("div", { class: "tiles" });
  const models = h("dl", { class: "facts" });
  async function load() {
    // Readiness answers 503 with the same body where a part is unusable.
    const response = await fetch("readyz", { cache: "no-store", signal: leaving });
    const { components } = await response.json();
    fill(parts, Object.entries(components).map(([name, said]) => component(name, String(said))));
    const { counts } = await call("GET", "jobs", { query: { limit: 1 }, signal: leaving });
    fill(work, [["queued", "jobs waiting"], ["in_progress", "running"], ["errored", "failed"], ["success", "done"]]
      .map(([name, text]) => h("p", { class: "tile" }, h("strong", {}, count(counts[name])), text)));
  }
  await load();
  const document_ = await call("GET", "openapi.json", { signal: leaving });
  const facts = [["Version", document_.info.version]];
  if (state.tenant && state.mode === "standard") {
    const { metadata } = await ask("search/retrieve", { ...scope(), query: "model", max_chunks: 1, mode: "accurate" }, leaving);
    facts.push(["Embedding model", metadata.embedding_model], ["Reranker", metadata.reranker ?? "none"]);
    const { vector_dimension: wide } = await call("GET", "tenant/stats", { query: scope(), signal: leaving });
    if (wide) facts.push(["Dimensions", String(wide)]);
  }
  fill(models, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
  void follow();
  async function follow() {
    for (;;) {
      try {
        await pause(POLL_MS, leaving);
        if (!document.hidden) await load();
      } catch {
        if (leaving.aborted) return;
      }
    }
  }
  return h("div", {}, h("h1", {}, "System"), h("h2", {}, "Parts"), parts, h("h2", {}, "Work"), work, h("h2", {}, "Software"), models,
    h("p", { class: "muted" }, "The server tells no more over the network yet: device, memory and disk stand in the lines of its start and in its log."));
}

/**
 * @param {string} name
 * @param {string} said
 */
function component(name, said) {
  const [title, advice] = COMPONENTS[name] ?? [name, ""];
  const kind = said === "ok" ? "success" : said.startsWith("degraded") ? "in_progress" : "errored";
  return h("div", { class: "tile" }, h("strong", {}, title), h("span", { class: `badge ${kind}` }, said === "ok" ? "ok" : said), said !== "ok" && h("p", { class: "small" }, advice));
}
