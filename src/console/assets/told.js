// What the server tells beside a search or an answer, in plain words.
import { fill, h } from "./dom.js";

/** Parts that an answer lacks, by their word in `degraded`. */
/** @type {Record<string, string>} */
const LACKS = {
  segments_quarantined: "Parts of this tenant are damaged and were not searched.",
  model_mismatch: "This tenant's vectors were made by another model: keyword search only.",
  embedder_unavailable: "The embedding model is unavailable: keyword search only.",
  sparse_vectors_missing: "The sparse model was not used: some of its vectors are missing.",
  reranker_unavailable: "The results were not reranked: no reranker is installed, or it failed.",
  reranking_partial: "The reranker ran out of time: not all passages were reranked.",
  generator_unavailable: "The language model failed: this answer is quoted from the documents.",
  session_not_remembered: "This turn could not be stored: the next question will not take it into account.",
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
    ...warnings.map((/** @type {any} */ one) => `Possible reason for no results: ${one.message}.`),
    ...degraded.map((/** @type {string} */ word) => LACKS[word] ?? `Not used: ${word.replaceAll("_", " ")}.`),
    metadata.degraded_message,
    ignored.length > 0 && `Ignored parameters: ${ignored.join(", ")}.`,
    ...corrections.map((/** @type {any} */ one) => `“${one.from}” was read as “${one.to}”.`),
    metadata.completed_query && `Searched for “${metadata.completed_query}”, completed from the conversation.`,
    metadata.conflict && "Documents contradict each other here; the answer states what each says.",
    unsupported.length > 0 && `Not supported by the cited source: ${unsupported.join(", ")}.`,
    generation.finish_reason === "length" && "The answer is truncated: the language model reached its limit.",
  ];
  fill(place, texts.filter(Boolean).map((text) => h("p", { class: "note warn" }, text)));
}

/** What the header of a bare list of results tells. @param {Headers} headers */
export function toldIn(headers) {
  const texts = headers.get("x-lodestone-warnings")?.split(", ") ?? [];
  return { warnings: texts.map((text) => ({ message: decodeURIComponent(text) })) };
}
