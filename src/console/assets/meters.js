// The server's own metrics, read every few seconds while a page shows them, and plots of its last hour.
import { ApiError, call, open, pause } from "./api.js";
import { h, svg } from "./dom.js";

/** @typedef {Map<string, number>} Series values by their labels as they are written; "" without labels */
/** @typedef {{name: string, color: string, values: (number | null)[]}} Line */

const EVERY_MS = 5000;
/** Families that are kept; the others are many and not shown. */
const KEPT = ["tenants", "memory_own_bytes", "memory_limit_bytes", "disk_free_bytes", "device_memory_bytes", "deleted_pending_bytes", "quarantined_segments", "build_info"];
const WIDTH = 320;
const HEIGHT = 90;
/** Minutes from the left edge of a plot to the right one. */
const POINTS = 60;

/** @type {Map<string, Series>} */
let latest = new Map();

/**
 * The kept metrics of a page of Prometheus' text format.
 * @param {string} text
 */
export function parse(text) {
  /** @type {Map<string, Series>} */
  const metrics = new Map();
  for (const line of text.split("\n")) {
    const [, name, labels, value] = line.match(/^lodestone_(\w+?)(?:\{(.*)\})? (\S+)$/) ?? [];
    if (!name || !KEPT.some((kept) => name.startsWith(kept))) continue;
    if (!metrics.has(name)) metrics.set(name, new Map());
    metrics.get(name)?.set(labels ?? "", Number(value));
  }
  return metrics;
}

/**
 * Reads the metrics and the last hour, now and every few seconds until the page is left.
 * @param {(minutes: any[]) => void} listener
 * @param {AbortSignal} leaving
 * @returns {Promise<boolean>} false where this key may not read them
 */
export async function follow(listener, leaving) {
  const read = async () => {
    const [text, { minutes }] = await Promise.all([open("GET", "metrics", { signal: leaving }).then((response) => response.text()), call("GET", "metrics/hour", { signal: leaving })]);
    latest = parse(text);
    listener(minutes);
  };
  try {
    await read();
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return false;
    throw error;
  }
  void (async () => {
    while (!leaving.aborted) {
      try {
        await pause(EVERY_MS, leaving);
        if (!document.hidden) await read();
      } catch {
        // The page was left, or the next reading says more.
      }
    }
  })();
  return true;
}

/**
 * The latest value of a metric, summed over its series.
 * @param {string} name
 * @param {string} [label] only series whose labels hold this, as `state="open"`
 */
export function now(name, label = "") {
  let sum = 0;
  for (const [text, value] of latest.get(name) ?? []) if (text.includes(label)) sum += value;
  return sum;
}

/** The labels of the first series of a metric. @param {string} name */
export function labels(name) {
  const [text = ""] = latest.get(name)?.keys() ?? [];
  return new Map([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
}

/**
 * A plot of lines over time, with its largest and its latest values in words.
 * @param {string} title
 * @param {string} unit
 * @param {Line[]} lines
 */
export function plot(title, unit, lines) {
  const known = lines.flatMap(({ values }) => values.filter((value) => value !== null));
  const top = Math.max(...known, Number.EPSILON);
  // The latest stands at the right edge, wherever the hour begins.
  const place = (/** @type {number} */ value, /** @type {number} */ ago) => `${(WIDTH - 2 - ago / POINTS * (WIDTH - 4)).toFixed(1)},${(HEIGHT - value / top * (HEIGHT - 4) - 2).toFixed(1)}`;
  const path = (/** @type {(number | null)[]} */ values) => {
    let isOpen = false;
    return values.map((value, at) => {
      // A line without length is drawn as a point.
      const piece = value === null ? "" : `${isOpen ? "L" : "M"}${place(value, values.length - 1 - at)}${isOpen ? "" : "h0"}`;
      isOpen = value !== null;
      return piece;
    }).join("");
  };
  const latest = lines.map(({ name, values }) => {
    const value = values.findLast((one) => one !== null);
    return `${name} ${value === undefined || value === null ? "–" : figure(value)}`;
  }).join(", ");
  const key = lines.length > 1 && known.length > 0 && h("span", { class: "muted small" }, lines.map(({ name, color }) => h("span", { class: "key" }, h("i", { class: `swatch ${color}` }), name)));
  return h("figure", { class: "card plot" }, h("figcaption", {}, h("div", { class: "row between" }, h("strong", {}, title), key), h("span", { class: "muted small block" }, known.length === 0 ? "nothing in this hour" : `${latest} ${unit}; at most ${figure(top)}`)),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${latest} ${unit}`, preserveAspectRatio: "none" },
      lines.map(({ values, color }) => svg("path", { d: path(values), fill: "none", stroke: `var(--${color})`, "stroke-width": "2", "stroke-linecap": "round", "vector-effect": "non-scaling-stroke" }))));
}

/** A number with as many places as matter. @param {number} value */
function figure(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
