// Calls of the server. A call that the server could not take waits until it is back.
import { state, update } from "./state.js";

/**
 * @typedef {object} Request
 * @property {Record<string, string | number | undefined>} [query]
 * @property {unknown} [json]
 * @property {FormData} [form]
 * @property {AbortSignal} [signal]
 * @property {string} [once] a key that makes the call safe to repeat
 * @property {string} [key] another API key than that of the session
 * @property {boolean} [isRepeatable] whether it may be sent twice; so are GET and what has `once`
 */

/** An answer of the server that is an error. */
export class ApiError extends Error {
  /**
   * @param {number} status
   * @param {any} body
   * @param {number} retryAfter seconds; 0 where the server does not say
   */
  constructor(status, body, retryAfter) {
    super(body?.message || body?.error || `The server answered with status ${status}.`);
    this.status = status;
    this.reason = String(body?.reason ?? "");
    this.requestId = String(body?.request_id ?? "");
    this.retryAfter = retryAfter;
  }
}

/** The server cannot be reached. */
export class Unreachable extends Error {}

const WAIT_FIRST_MS = 500;
const WAIT_MAX_MS = 8000;
/** The longest pause asked for by the server that is waited out; beyond it, the refusal is shown. */
const RETRY_AFTER_MS_MAX = 60_000;
/** A stream says something every 15 s; what is silent for longer has broken off unseen. */
const SILENCE_MS = 45_000;
/** Reasons of 503 that pass by themselves. */
const PASSING = new Set(["starting", "shutting_down", "queue_full", "overloaded", ""]);

/**
 * Waits, unless it is told to stop.
 * @param {number} ms
 * @param {AbortSignal} [signal]
 */
export function pause(ms, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}

/**
 * Sends a request once.
 * @param {string} method
 * @param {string} path
 * @param {Request} request
 */
async function send(method, path, request) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(request.query ?? {})) {
    if (value !== undefined && value !== "") query.set(name, String(value));
  }
  const text = query.toString();
  /** @type {Record<string, string>} */
  const headers = {};
  const key = request.key ?? state.key;
  if (key) headers.authorization = `Bearer ${key}`;
  if (request.json !== undefined) headers["content-type"] = "application/json";
  if (request.once) headers["idempotency-key"] = request.once;
  const body = request.form ?? (request.json === undefined ? undefined : JSON.stringify(request.json));
  let response;
  try {
    const options = { method, headers, body, signal: request.signal, cache: /** @type {const} */ ("no-store") };
    response = await fetch(path + (text ? `?${text}` : ""), options);
  } catch (error) {
    if (request.signal?.aborted) throw error;
    throw new Unreachable("The server cannot be reached.");
  }
  update({ connection: "up" });
  if (response.ok) return response;
  const answer = await response.json().catch(() => null);
  throw new ApiError(response.status, answer, Number(response.headers.get("retry-after")) || 0);
}

/**
 * Sends a request, again and again while the server is away or busy if it may be repeated.
 * @param {string} method
 * @param {string} path
 * @param {Request} [request]
 * @returns {Promise<Response>}
 */
export async function open(method, path, request = {}) {
  const mayRepeat = method === "GET" || Boolean(request.once) || request.isRepeatable === true;
  let wait = WAIT_FIRST_MS;
  for (;;) {
    try {
      const response = await send(method, path, request);
      const lacks = response.headers.get("x-lodestone-degraded");
      if (lacks) update({ warning: `Parts of this tenant are not available: ${lacks}.` });
      return response;
    } catch (error) {
      const isGone = error instanceof Unreachable;
      if (isGone) update({ connection: "down" });
      if (error instanceof ApiError) tell(error);
      const isBusy = error instanceof ApiError
        && (error.status === 429 || (error.status === 503 && PASSING.has(error.reason)));
      const asked = error instanceof ApiError ? error.retryAfter * 1000 : 0;
      if (!mayRepeat || !(isGone || isBusy) || asked > RETRY_AFTER_MS_MAX) throw error;
      await pause(Math.max(wait, asked), request.signal);
      wait = Math.min(wait * 2, WAIT_MAX_MS);
    }
  }
}

/** @param {ApiError} error */
function tell(error) {
  if (error.reason === "storage_full") {
    update({ warning: "The server's disk is full: uploads wait, search still works. Delete sources or free up space." });
  }
  if (error.status === 401 && state.key) update({ key: "", sitting: "", isAdmin: null, warning: "The key has expired or was revoked. Sign in again." });
}

/**
 * The JSON answer of a call.
 * @param {string} method
 * @param {string} path
 * @param {Request} [request]
 * @returns {Promise<any>}
 */
export async function call(method, path, request) {
  return (await open(method, path, request)).json();
}

/**
 * A read that is sent as POST.
 * @param {string} path
 * @param {unknown} json
 * @param {AbortSignal} [signal]
 */
export function ask(path, json, signal) {
  return call("POST", path, { json, signal, isRepeatable: true });
}

/**
 * The events of a streamed answer.
 * @param {string} path
 * @param {{session_id?: string}} json
 * @param {AbortSignal} [signal]
 * @returns {AsyncGenerator<{event: string, data: any}>}
 */
export async function* stream(path, json, signal) {
  // A question in a session adds a turn to it, so it is never repeated.
  const response = await open("POST", path, { json, signal, isRepeatable: !json.session_id });
  if (!response.body) return;
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    // Cancelled, a read ends as at the end of the stream, and that without its last event is told.
    const silent = setTimeout(() => void reader.cancel().catch(() => undefined), SILENCE_MS);
    const { value, done } = await reader.read().catch((error) => {
      if (signal?.aborted) throw error;
      update({ connection: "down" });
      throw new Unreachable("The connection was lost while the answer was being sent. Ask again.");
    }).finally(() => clearTimeout(silent));
    if (done) return;
    const blocks = (text + value).split("\n\n");
    text = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split("\n");
      /** @param {string} name */
      const member = (name) => lines.filter((line) => line.startsWith(`${name}:`))
        .map((line) => line.slice(name.length + 1).trimStart()).join("\n");
      const data = member("data");
      if (data) yield { event: member("event"), data: JSON.parse(data) };
    }
  }
}

/** Looks for the server until it answers. */
async function look() {
  let wait = WAIT_FIRST_MS;
  while (state.connection === "down") {
    await pause(wait);
    try {
      await fetch("healthz", { cache: "no-store" });
      update({ connection: "up" });
    } catch {
      wait = Math.min(wait * 2, WAIT_MAX_MS);
    }
  }
}

/** Keeps an eye on the connection, from now on. */
export function watchConnection() {
  let isLooking = false;
  setInterval(async () => {
    if (isLooking || document.hidden) return;
    isLooking = true;
    try {
      await look();
    } finally {
      isLooking = false;
    }
  }, 1000);
}
