// The server's own metrics, read every few seconds while the console is open, and plots of them.
import { ApiError, open, pause } from "./api.js";
import { h, svg } from "./dom.js";

/** @typedef {Map<string, number>} Series values by their labels as they are written; "" without labels */
/** @typedef {{at: number, metrics: Map<string, Series>}} Sample */
/** @typedef {{name: string, color: string, values: (number | null)[]}} Line */

const EVERY_MS = 5000;
/** An hour of samples. */
const SAMPLES_MAX = 720;
/** Families that are kept; the others are many and not shown. */
const KEPT = ["http_requests_total", "search_seconds", "ingest_jobs_total", "ingest_queue_depth", "embed_tokens_total", "tenants",
  "memory_own_bytes", "memory_limit_bytes", "disk_free_bytes", "device_memory_bytes", "deleted_pending_bytes", "quarantined_segments", "build_info"];
const WIDTH = 320;
const HEIGHT = 90;

/** @type {Sample[]} */
const samples = [];
const events = new EventTarget();
let isRunning = false;

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
 * Begins to read the metrics; what is read goes to listeners until their page is left.
 * @param {() => void} listener
 * @param {AbortSignal} leaving
 * @returns {Promise<boolean>} false where this key may not read them
 */
export async function follow(listener, leaving) {
  if (!isRunning) {
    try {
      await read();
    } catch (error) {
      if (error instanceof ApiError && error.status === 403) return false;
      throw error;
    }
    isRunning = true;
    void run();
  }
  events.addEventListener("sample", listener, { signal: leaving });
  listener();
  return true;
}

async function read() {
  const text = await (await open("GET", "metrics")).text();
  samples.push({ at: performance.now(), metrics: parse(text) });
  samples.splice(0, samples.length - SAMPLES_MAX);
  events.dispatchEvent(new Event("sample"));
}

async function run() {
  try {
    for (;;) {
      await pause(EVERY_MS);
      if (!document.hidden) await read();
    }
  } catch {
    // Signed out: the next visit begins anew.
    isRunning = false;
    samples.length = 0;
  }
}

/**
 * The latest value of a metric, summed over its series.
 * @param {string} name
 * @param {string} [label] only series whose labels hold this, as `state="open"`
 */
export function now(name, label = "") {
  return total(samples.at(-1), name, label);
}

/** The labels of the first series of a metric. @param {string} name */
export function labels(name) {
  const [text = ""] = samples.at(-1)?.metrics.get(name)?.keys() ?? [];
  return new Map([...text.matchAll(/(\w+)="([^"]*)"/g)].map(([, key, value]) => [key, value]));
}

/**
 * @param {Sample | undefined} sample
 * @param {string} name
 * @param {string} label
 */
function total(sample, name, label) {
  let sum = 0;
  for (const [text, value] of sample?.metrics.get(name) ?? []) if (text.includes(label)) sum += value;
  return sum;
}

/**
 * What a counter grew by a second, between one sample and the next.
 * @param {string} name
 * @param {string} [label]
 */
export function rates(name, label = "") {
  return between((one, next) => (total(next, name, label) - total(one, name, label)) / ((next.at - one.at) / 1000));
}

/**
 * A quantile of a histogram in milliseconds, between one sample and the next; null where nothing was counted.
 * @param {string} name
 * @param {string} label
 * @param {number} share
 */
export function quantiles(name, label, share) {
  return between((one, next) => {
    /** @type {[number, number][]} */
    const counts = [];
    for (const [text, value] of next.metrics.get(`${name}_bucket`) ?? []) {
      const [, bound] = text.match(/le="([^"]+)"/) ?? [];
      if (!bound || !text.includes(label)) continue;
      counts.push([bound === "+Inf" ? Infinity : Number(bound), value - (one.metrics.get(`${name}_bucket`)?.get(text) ?? 0)]);
    }
    counts.sort(([a], [b]) => a - b);
    const all = counts.at(-1)?.[1] ?? 0;
    if (all <= 0) return null;
    let [low, before] = [0, 0];
    for (const [bound, count] of counts) {
      if (count >= share * all) return 1000 * (bound === Infinity ? low : low + (bound - low) * (share * all - before) / (count - before));
      [low, before] = [bound, count];
    }
    return null;
  });
}

/** @param {(one: Sample, next: Sample) => number | null} of */
function between(of) {
  return samples.slice(1).map((next, at) => of(samples[at], next));
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
  const most = Math.max(...lines.map(({ values }) => values.length), 2);
  const place = (/** @type {number} */ value, /** @type {number} */ at) => `${(at / (most - 1) * WIDTH).toFixed(1)},${(HEIGHT - value / top * (HEIGHT - 4) - 2).toFixed(1)}`;
  const path = (/** @type {(number | null)[]} */ values) => {
    let isOpen = false;
    return values.map((value, at) => {
      const piece = value === null ? "" : `${isOpen ? "L" : "M"}${place(value, at)}`;
      isOpen = value !== null;
      return piece;
    }).join("");
  };
  const latest = lines.map(({ name, values }) => {
    const value = values.findLast((one) => one !== null);
    return `${name} ${value === undefined || value === null ? "–" : figure(value)}`;
  }).join(", ");
  return h("figure", { class: "card plot" }, h("figcaption", {}, h("strong", {}, title), h("span", { class: "muted small block" }, known.length === 0 ? "nothing yet" : `${latest} ${unit}; at most ${figure(top)}`)),
    svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": `${title}: ${latest} ${unit}`, preserveAspectRatio: "none" },
      lines.map(({ values, color }) => svg("path", { d: path(values), fill: "none", stroke: `var(--${color})`, "stroke-width": "2", "vector-effect": "non-scaling-stroke" }))));
}

/** A number with as many places as matter. @param {number} value */
function figure(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
