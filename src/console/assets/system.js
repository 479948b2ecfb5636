// System: what the server tells of itself.
import { ask, call, pause } from "./api.js";
import { count, fill, h, size } from "./dom.js";
import { follow as followMeters, labels, now, plot } from "./meters.js";
import { scope, state } from "./state.js";

const POLL_MS = 5000;

/** What a component is for, and what to do when it fails. */
/** @type {Record<string, [string, string]>} */
const COMPONENTS = {
  storage: ["Storage", "Check the server's free disk space and log; `lodestone doctor` checks the data directory."],
  index: ["Index", "Some data are damaged: `lodestone verify` names them. What can be rebuilt is rebuilt from the originals."],
  embedder: ["Model", "Keyword search still works. `lodestone model install` installs the model."],
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
  const resources = h("div", { class: "tiles" });
  const plots = h("div", { class: "plots" });
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
  const mayMeasure = await followMeters((minutes) => {
    fill(resources, measured());
    fill(plots, plotted(minutes));
  }, leaving);
  if (mayMeasure) facts.push(["Device", labels("build_info").get("backend") ?? ""]);
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
  return h("div", {}, h("h1", {}, "System"), h("h2", {}, "Parts"), parts, h("h2", {}, "Work"), work,
    mayMeasure && [h("h2", {}, "Resources"), resources, h("h2", {}, "The last hour, minute by minute"), plots],
    h("h2", {}, "Software"), models,
    !mayMeasure && h("p", { class: "muted" }, "Memory, disk and rates are only shown to keys for all tenants."));
}

/** Memory, disk and damage, as tiles. */
function measured() {
  const limit = now("memory_limit_bytes");
  const device = now("device_memory_bytes");
  const damaged = now("quarantined_segments");
  /** @type {[string, string][]} */
  const tiles = [
    [size(now("memory_own_bytes")), limit > 0 ? `memory, of ${size(limit)}` : "memory"],
    [size(now("disk_free_bytes")), "free disk"],
    [size(now("deleted_pending_bytes")), "deleted, freed by merges"],
    [count(now("tenants", 'state="open"')), "tenants in memory"],
  ];
  if (device > 0) tiles.push([size(device), "GPU memory"]);
  if (damaged > 0) tiles.push([count(damaged), "damaged segments"]);
  return tiles.map(([value, text]) => h("p", { class: "tile" }, h("strong", {}, value), text));
}

/** The course of requests, searches and ingestion. @param {any[]} minutes */
function plotted(minutes) {
  const rate = (/** @type {string} */ name) => minutes.map((one) => one[name] / Math.max(one.seconds, 1));
  const times = (/** @type {string} */ name) => [
    { name: "median", color: "meaning", values: minutes.map((one) => one[name]?.median_ms ?? null) },
    { name: "95 of 100", color: "words", values: minutes.map((one) => one[name]?.p95_ms ?? null) },
  ];
  return [
    plot("Requests", "a second", [{ name: "all", color: "accent", values: rate("requests") }, { name: "faults", color: "bad", values: rate("faults") }]),
    plot("Searches", "ms", times("searches")),
    plot("Answers", "ms", times("answers")),
    plot("Documents processed", "a second", [{ name: "success", color: "good", values: rate("processed") }, { name: "errored", color: "bad", values: rate("errored") }]),
    plot("Tokens through the model", "a second", [{ name: "all", color: "accent", values: rate("tokens") }]),
  ];
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
