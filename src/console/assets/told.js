// What the server tells beside a search or an answer, in plain words.
import { fill, h } from "./dom.js";

/** Parts that an answer lacks, by their word in `degraded`. */
/** @type {Record<string, string>} */
const LACKS = {
  segments_quarantined: "Parts of this tenant are damaged and were not searched.",
  model_mismatch: "The vectors here are of another model than the server's: it was searched by words alone.",
  embedder_unavailable: "The embedding model could not be used: it was searched by words alone.",
  sparse_vectors_missing: "The sparse model took no part: its vectors are not all there.",
  reranker_unavailable: "No reranker took part: none is installed, or it failed.",
  reranking_partial: "The reranker had no time to read all passages again.",
  generator_unavailable: "The language model gave no answer: this one is quoted from the documents.",
  session_not_remembered: "This turn could not be kept: the next question will not follow from it.",
};

/**
 * Shows what is told; nothing where there is nothing to tell.
 * @param {HTMLElement} place an element with the role of a status that is on the page already
 * @param {any} metadata of the answer; all its members may be missing
 */
export function tell(place, metadata) {
  const { warnings = [], degraded = [], ignored_parameters: ignored = [], corrections = [], generation = {} } = metadata;
  const unsupported = (generation.unsupported ?? []).map((/** @type {any} */ one) => `[${one.number}]`);
  const texts = [
    ...warnings.map((/** @type {any} */ one) => `Why nothing may be found: ${one.message}.`),
    ...degraded.map((/** @type {string} */ word) => LACKS[word] ?? `Left out: ${word.replaceAll("_", " ")}.`),
    metadata.degraded_message,
    ignored.length > 0 && `Without effect here: ${ignored.join(", ")}.`,
    ...corrections.map((/** @type {any} */ one) => `“${one.from}” was read as “${one.to}”.`),
    metadata.completed_query && `Searched for “${metadata.completed_query}”, after what was said before.`,
    metadata.conflict && "Documents differ in this, and the answer tells what each says.",
    unsupported.length > 0 && `Not borne out by the source that is cited: ${unsupported.join(", ")}.`,
    generation.finish_reason === "length" && "The answer is cut: the language model came to its limit.",
  ];
  fill(place, texts.filter(Boolean).map((text) => h("p", { class: "note warn" }, text)));
}

/** What the header of a bare list of results tells. @param {Headers} headers */
export function toldIn(headers) {
  const texts = headers.get("x-lodestone-warnings")?.split(", ") ?? [];
  return { warnings: texts.map((text) => ({ message: decodeURIComponent(text) })) };
}
