// Graph: entities, what is stated of them, the path between two, and a drawing of the neighbourhood.
import { ask, call } from "./api.js";
import { empty, field, fill, h, plural } from "./dom.js";
import { scope } from "./state.js";
import { openSource } from "./source.js";
import { draw } from "./drawing.js";

/** @typedef {{name: string, type: string}} Entity */
/** @typedef {{source: Entity, target: Entity, relation: {canonical_predicate: string, context: string}, file: string, chunk_uuid: string}} Statement */

/** Sources whose relations are read, newest first, and relations a source. */
const SOURCES_MAX = 300;
const SOURCES_AT_ONCE = 100;
const RELATIONS_MAX = 5000;
const LISTED_MAX = 200;

/**
 * The page.
 * @param {URLSearchParams} params
 * @param {AbortSignal} leaving
 */
export async function graph(params, leaving) {
  const { sources, total } = await call("GET", "list/sources", { query: { ...scope(), limit: SOURCES_MAX, status: "success" }, signal: leaving });
  const statements = await statementsOf(sources.map((/** @type {any} */ one) => one.id), leaving);
  if (statements.length === 0) {
    return h("div", {}, h("h1", {}, "Graph"), empty("No relations yet", h("p", {}, "Relations are extracted from sentences such as “Ana Ruiz works for Borealis”. Add documents that state some.")));
  }
  const names = ranked(statements);
  const options = h("datalist", { id: "entities" }, names.slice(0, 1000).map((name) => h("option", { value: name })));
  const box = h("input", { type: "search", list: "entities", value: params.get("entity") ?? "", oninput: show });
  const end = h("input", { type: "search", list: "entities", value: params.get("to") ?? "", oninput: show });
  const list = h("ul", { class: "plain cards" });
  const summary = h("p", { class: "muted", role: "status" });
  const canvas = h("canvas", { class: "graph", role: "img", "aria-label": "Drawing of the relations; the list next to it shows the same" });
  const picture = draw(canvas, (name) => {
    box.value = name;
    show();
  }, leaving);
  function show() {
    const wanted = box.value.trim().toLowerCase();
    const isOf = (/** @type {Statement} */ one) => [one.source.name, one.target.name].some((name) => name.toLowerCase().includes(wanted));
    const other = end.value.trim().toLowerCase();
    const path = wanted && other ? pathBetween(statements, wanted, other) : null;
    const found = path ?? (wanted ? statements.filter(isOf) : statements);
    const joined = path && (path.length > 0 ? `, from the one to the other` : `: no path connects these two`);
    summary.textContent = `${plural(found.length, "statement")}${joined ?? ""}${total > SOURCES_MAX ? `, from the newest ${SOURCES_MAX} of ${total} sources` : ""}`;
    fill(list, found.slice(0, LISTED_MAX).map(card), found.length > LISTED_MAX && h("li", { class: "muted" }, `${found.length - LISTED_MAX} more`));
    picture.show(found, wanted);
  }
  /** @param {string} name */
  const entity = (name) => h("button", { class: "link", type: "button", onclick: () => {
    box.value = name;
    show();
  } }, name);
  /** @param {Statement} one */
  function card(one) {
    const open = () => openSource(one.file, { passages: [one.relation.context], chunk: one.chunk_uuid, words: one.relation.context });
    return h("li", { class: "card" }, h("p", {}, entity(one.source.name), " ", h("em", {}, one.relation.canonical_predicate.replaceAll("_", " ").toLowerCase()), " ", entity(one.target.name)),
      h("p", { class: "muted small" }, one.relation.context, " ", h("button", { class: "link", type: "button", onclick: open }, "Show")));
  }
  requestAnimationFrame(show);
  return h("div", {}, h("h1", {}, "Graph"), h("form", { class: "bar", onsubmit: (/** @type {Event} */ event) => event.preventDefault() }, field("Entity", box), field("Path to", end, "Leave empty to see everything stated about the entity."), options), summary,
    h("div", { class: "split even" }, h("div", { class: "grow" }, canvas), h("div", { class: "grow reading", tabindex: "0", role: "region", "aria-label": "Statements" }, list)));
}

/**
 * @param {string[]} ids
 * @param {AbortSignal} leaving
 */
async function statementsOf(ids, leaving) {
  /** @type {Statement[]} */
  const statements = [];
  for (let at = 0; at < ids.length && statements.length < RELATIONS_MAX; at += SOURCES_AT_ONCE) {
    const { relations } = await ask("list/graph_relations_by_id", { ...scope(), source_ids: ids.slice(at, at + SOURCES_AT_ONCE), limit: RELATIONS_MAX }, leaving);
    for (const [file, triplets] of Object.entries(relations)) {
      for (const triplet of /** @type {any[]} */ (triplets)) statements.push({ ...triplet, file });
    }
  }
  return statements;
}

/**
 * The fewest statements that lead from one entity to another, in their order; none where nothing does. Both are named in
 * lower case, whole or in part.
 * @param {Statement[]} statements
 * @param {string} from
 * @param {string} to
 */
export function pathBetween(statements, from, to) {
  /** @type {Map<string, Statement[]>} */
  const of = new Map();
  for (const one of statements) {
    for (const { name } of [one.source, one.target]) of.set(name, [...of.get(name) ?? [], one]);
  }
  const names = [...of.keys()];
  const named = (/** @type {string} */ text) => {
    const exact = names.filter((name) => name.toLowerCase() === text);
    return exact.length > 0 ? exact : names.filter((name) => name.toLowerCase().includes(text));
  };
  const ends = new Set(named(to));
  /** @type {Map<string, Statement | null>} the statement by which each was reached */
  const reached = new Map(named(from).map((name) => [name, null]));
  const other = (/** @type {Statement} */ one, /** @type {string} */ name) => (one.source.name === name ? one.target.name : one.source.name);
  for (const name of reached.keys()) {
    if (ends.has(name)) {
      const path = [];
      for (let [at, by] = [name, reached.get(name)]; by; [at, by] = [other(by, at), reached.get(other(by, at))]) path.unshift(by);
      return path;
    }
    for (const one of of.get(name) ?? []) {
      if (!reached.has(other(one, name))) reached.set(other(one, name), one);
    }
  }
  return [];
}

/** Names of entities, those with most statements first. @param {Statement[]} statements */
function ranked(statements) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { source, target } of statements) {
    for (const { name } of [source, target]) counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([name]) => name);
}
