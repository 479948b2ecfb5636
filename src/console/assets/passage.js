// Finding cited passages in a text, and marking them.
import { h } from "./dom.js";

/** @typedef {{start: number, end: number}} Range */

/** Characters of a passage that count: letters and digits, in lower case. */
const COUNTS = /[\p{L}\p{N}]/u;

/**
 * The letters and digits of a text, each with its position.
 * @param {string} text
 */
function letters(text) {
  let folded = "";
  /** @type {number[]} */
  const places = [];
  for (let at = 0; at < text.length; at += 1) {
    const code = text.codePointAt(at) ?? 0;
    const char = String.fromCodePoint(code);
    if (COUNTS.test(char)) {
      const lower = char.toLowerCase();
      folded += lower;
      for (let i = 0; i < lower.length; i += 1) places.push(at);
    }
    if (code > 0xffff) at += 1;
  }
  return { folded, places };
}

/**
 * Where passages stand in a text, whatever its white space, marks and punctuation.
 * @param {string} text
 * @param {string[]} passages
 * @returns {Range[]} in order, not overlapping
 */
export function find(text, passages) {
  const { folded, places } = letters(text);
  /** @type {Range[]} */
  const found = [];
  for (const passage of passages) {
    const wanted = letters(passage).folded;
    const at = wanted.length >= 3 ? folded.indexOf(wanted) : -1;
    if (at < 0) continue;
    const end = places[at + wanted.length - 1] + 1;
    // With the full stop, and the quotation marks, that close it.
    found.push({ start: places[at], end: end + (/^[.!?…。！？"'”’)]*/.exec(text.slice(end, end + 4))?.[0].length ?? 0) });
  }
  return merge(found);
}

/**
 * Rows of tables that passages such as "name: value; name: value" are read from.
 * @param {string} text
 * @param {string[]} passages
 * @returns {Range[]} in order, not overlapping
 */
export function findRows(text, passages) {
  const rows = [...text.matchAll(/^\|.*$/gm)].map((match) => ({ start: match.index, end: match.index + match[0].length, folded: letters(match[0]).folded }));
  const found = passages.flatMap((passage) => {
    const values = passage.split(";").map((part) => letters(part.slice(part.indexOf(":") + 1)).folded).filter(Boolean);
    const row = values.length > 1 && rows.find(({ folded }) => values.every((value) => folded.includes(value)));
    return row ? [{ start: row.start, end: row.end }] : [];
  });
  return merge(found);
}

/**
 * Where words of a query stand in a text. A word counts with other endings too.
 * @param {string} text
 * @param {string} query
 */
export function findWords(text, query) {
  const words = (query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []).filter((word) => !STOP.has(word));
  const stems = words.map((word) => (word.length > 5 ? word.slice(0, word.length - 2) : word));
  /** @type {Range[]} */
  const found = [];
  for (const match of text.matchAll(/[\p{L}\p{N}]+/gu)) {
    const word = match[0].toLowerCase();
    const isHit = stems.some((stem, i) => word === words[i]
      || (stem.length >= 4 && word.startsWith(stem) && word.length - stem.length <= 4));
    if (isHit) found.push({ start: match.index, end: match.index + word.length });
  }
  return found;
}
const STOP = new Set(("a an and are as at be by can do does for from has have how i in is it its of on or that the this to was what "
  + "when where which who why will with you your").split(" "));

/** @param {Range[]} ranges */
function merge(ranges) {
  /** @type {Range[]} */
  const merged = [];
  for (const range of ranges.sort((a, b) => a.start - b.start)) {
    const last = merged.at(-1);
    if (last && range.start <= last.end) last.end = Math.max(last.end, range.end);
    else merged.push({ ...range });
  }
  return merged;
}

/**
 * A text with ranges marked.
 * @param {string} text
 * @param {Range[]} ranges
 * @param {string} [kind] class of the marks
 */
export function marked(text, ranges, kind = "") {
  const pieces = [];
  let at = 0;
  for (const { start, end } of ranges) {
    pieces.push(text.slice(at, start), h("mark", { class: kind }, text.slice(start, end)));
    at = end;
  }
  pieces.push(text.slice(at));
  return pieces;
}

/**
 * Sentences of an answer that stand before each citation `[n]`.
 * @param {string} answer
 * @returns {{n: number, at: number, length: number, sentences: string[]}[]}
 */
export function citations(answer) {
  const found = [];
  let from = 0;
  /** @type {string[]} */
  let sentences = [];
  for (const match of answer.matchAll(/\[(\d{1,4})\]/g)) {
    const said = answer.slice(from, match.index).trim();
    // Citations in a row, "[1][2]", are about the same sentences.
    if (COUNTS.test(said)) sentences = split(said);
    found.push({ n: Number(match[1]), at: match.index, length: match[0].length, sentences });
    from = match.index + match[0].length;
  }
  return found;
}

/** @param {string} text */
function split(text) {
  const segmenter = new Intl.Segmenter(undefined, { granularity: "sentence" });
  const sentences = [...segmenter.segment(text)].map(({ segment }) => segment.trim());
  return [text, ...sentences].filter((sentence) => COUNTS.test(sentence));
}
