// An answer with its citations.
import { h, fill } from "./dom.js";
import { citations, find } from "./passage.js";
import { openSource } from "./source.js";

/**
 * @typedef {object} Told
 * @property {string} answer
 * @property {any[]} sources
 * @property {any[]} chunks
 * @property {any[]} [citations] quoted passages, where the server names them
 */

/**
 * Shows an answer, as far as it has come.
 * @param {HTMLElement} place
 * @param {Told} told
 */
export function showAnswer(place, told) {
  const { answer, sources } = told;
  const pieces = [];
  let at = 0;
  for (const cited of citations(answer)) {
    const source = sources[cited.n - 1];
    if (!source) continue;
    pieces.push(answer.slice(at, cited.at).replace(/ $/, "\u00a0"), citation(cited, source, told));
    at = cited.at + cited.length;
  }
  // A citation that has not come whole is held back.
  pieces.push(answer.slice(at).replace(/\[\d*$/, ""));
  fill(place, pieces);
}

/**
 * @param {{n: number, sentences: string[]}} cited
 * @param {any} source
 * @param {Told} told
 */
function citation({ n, sentences }, source, told) {
  const show = () => openSource(source.source_id, grounds(n, sentences, source, told));
  return h("button", { class: "cite", type: "button", onclick: show,
    "aria-label": `Citation ${n}: ${source.source_title}`, title: source.source_title }, n);
}

/**
 * The passages of a source that a citation rests on.
 * @param {number} n
 * @param {string[]} sentences
 * @param {any} source
 * @param {Told} told
 */
function grounds(n, sentences, source, told) {
  const quoted = (told.citations ?? []).filter((one) => one.n === n);
  // Of several passages of one source, those that this sentence rests on.
  const close = quoted.filter(({ text }) => find(text, sentences).length > 0 || sentences.some((one) => find(one, [text]).length > 0));
  const rested = close.length > 0 ? close : quoted;
  const passages = [...rested.map(({ text }) => text), ...sentences];
  const chunks = told.chunks.filter((chunk) => chunk.source_id === source.source_id);
  const holds = (/** @type {any} */ chunk) => find(chunk.chunk_content, passages).length > 0;
  const chunk = rested[0]?.chunk_uuid ?? (chunks.find(holds) ?? chunks[0])?.chunk_uuid ?? "";
  return { passages, chunk, words: sentences[0] ?? "", boxes: rested.flatMap((one) => one.boxes) };
}

/**
 * The list of sources below an answer, cited ones first.
 * @param {Told} told
 */
export function sourceList(told) {
  const cited = new Map(citations(told.answer).map((one) => [one.n, one]));
  const item = (/** @type {any} */ source, /** @type {number} */ i) => {
    const used = cited.get(i + 1);
    const pages = source.page_numbers.length > 0 ? `p. ${source.page_numbers.slice(0, 6).join(", ")}` : "";
    const show = () => openSource(source.source_id, grounds(i + 1, used?.sentences ?? [], source, told));
    return h("li", {}, h("button", { class: "source-card", type: "button", onclick: show },
      h("span", { class: used ? "number" : "number off" }, i + 1),
      h("span", { class: "grow" }, h("strong", {}, source.source_title), pages && h("span", { class: "muted" }, ` ${pages}`),
        h("span", { class: "snippet" }, source.snippet.replace(/(^|\s)#+\s+/g, "$1")))));
  };
  const all = told.sources.map(item);
  const most = Math.max(1, cited.size ? Math.max(...cited.keys()) : 3);
  return [h("ol", { class: "plain cards" }, all.slice(0, most)),
    all.length > most && h("details", {}, h("summary", {}, `${all.length - most} more that were read`),
      h("ol", { class: "plain cards" }, all.slice(most)))];
}
