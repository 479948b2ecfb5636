/** Sends requests with fetch, and repeats them if that is safe. */
import { APIError, ConnectionFailed, StreamInterrupted } from "./errors.js";
import type { FileInput } from "./types.js";

const BACK_OFF_MS = 1000;
const BACK_OFF_MS_MAX = 8000;
/** If a server asks for a longer wait than this, its error is thrown. */
const RETRY_AFTER_MS_MAX = 60_000;
const RETRIED_STATUSES = new Set([408, 429, 502, 503, 504]);
const PAGE_ENTRIES = 500;
/** Streams send something at least every 15 s; one that is silent for longer than this is considered broken. */
const STREAM_SILENCE_MS = 45_000;
/** The slowest upload rate that a timeout allows for: about one megabit per second. */
const UPLOAD_BYTES_PER_MS = 128;

/** Address, key and defaults of a client. */
export interface ClientSettings {
  /** Default: the variable LODESTONE_SERVER. */
  server?: string;
  /** Default: the variable LODESTONE_API_KEY. */
  apiKey?: string;
  /** Time limit for an answer, and for each further piece of a file; default 60,000. Uploads get more, by their size. */
  timeoutMs?: number;
  /** How often a request that is safe to repeat is retried; default 3. */
  retries?: number;
  /** A fetch of your own, for example one that uses a proxy. */
  fetch?: typeof fetch;
  /** Waits between attempts; must return early if the call is aborted. */
  pause?: (ms: number, signal?: AbortSignal) => Promise<void>;
}

/** Settings of a single call, which override the client's. */
export interface Options {
  /** Makes uploads and additions of memories safe to repeat; generated if absent. */
  idempotencyKey?: string;
  requestId?: string;
  timeoutMs?: number;
  retries?: number;
  signal?: AbortSignal;
  headers?: Record<string, string>;
  /** Parameters that this version of the client does not know. */
  extra?: Record<string, unknown>;
  /** Receives the last response, for status and headers: request id, ignored parameters, degradation. */
  onResponse?: (response: Response) => void;
}

/** One event of a streamed answer; the deltas of all `token` events make up the answer in `done`. */
export type AnswerEvent<T> =
  | { id: string; event: "start"; data: { request_id: string; session_id: string | null; model: string | null } }
  | { id: string; event: "sources"; data: Partial<T> }
  | { id: string; event: "token"; data: { delta: string } }
  | { id: string; event: "done"; data: T };

/** One operation of the API: how to send its request and read its answer. */
export interface Operation {
  method: string;
  path: string;
  query?: string[];
  media?: string;
  result?: string;
  retry?: boolean;
  keyed?: boolean;
  streams?: boolean;
}

/** Sends requests to one server. */
export class Transport {
  readonly retries: number;
  readonly timeoutMs: number;
  readonly pause: (ms: number, signal?: AbortSignal) => Promise<void>;
  private readonly server: string;
  private readonly apiKey: string | undefined;
  private readonly fetch: typeof fetch;

  constructor(settings: ClientSettings) {
    const environment = (globalThis as { process?: { env: Record<string, string | undefined> } }).process?.env ?? {};
    const server = settings.server ?? environment["LODESTONE_SERVER"];
    if (!server) throw new TypeError("server is missing: pass it or set LODESTONE_SERVER");
    // In a browser, a path of the page's own origin is valid too.
    if (!/^(https?:\/\/|\/)/.test(server)) throw new TypeError(`server must begin with http:// or https://, not ${server}`);
    this.server = server.replace(/\/+$/, "");
    this.apiKey = (settings.apiKey ?? environment["LODESTONE_API_KEY"])?.trim();
    this.timeoutMs = settings.timeoutMs ?? 60_000;
    this.retries = settings.retries ?? 3;
    this.fetch = settings.fetch ?? ((...call) => fetch(...call));
    this.pause = settings.pause ?? pause;
  }

  /** Calls an operation and returns its result. */
  async call<T>(operation: Operation, request: object, options: Options = {}): Promise<T> {
    return this.send(operation, request, options, async (response, progress) => {
      if (operation.result === "bytes") return (await blobOf(response, progress)) as T;
      const text = await response.text();
      if (operation.result === "text") return text as T;
      try {
        return JSON.parse(text) as T;
      } catch {
        throw APIError.of(response, text); // an answer of a proxy
      }
    });
  }

  /** Sends a request and returns what `read` makes of the response; the time limit covers `read`, and restarts with its progress. */
  async send<T>(
    operation: Operation,
    request: object,
    options: Options,
    read: (response: Response, progress: () => void) => Promise<T>,
  ): Promise<T> {
    const sent = { ...request, ...options.extra } as Record<string, unknown>;
    const retries = options.retries ?? this.retries;
    const { url, body, type } = this.encode(operation, sent);
    const headers = this.headers(operation, options, retries, type);
    // A question in a session adds a turn to it, so it is never repeated.
    const isSafe = operation.retry && !(operation.streams && sent["session_id"] != null);
    for (let attempt = 0; ; attempt++) {
      const content = body();
      const limit = new AbortController();
      const abort = () => limit.abort(options.signal?.reason);
      if (options.signal?.aborted) abort();
      options.signal?.addEventListener("abort", abort);
      const timeoutMs = options.timeoutMs ?? this.timeoutMs;
      const expire = () => limit.abort(new Error("no answer in time"));
      let timer = setTimeout(expire, timeoutMs + Math.floor(sizeOf(content) / UPLOAD_BYTES_PER_MS));
      const progress = () => {
        clearTimeout(timer);
        timer = setTimeout(expire, timeoutMs);
      };
      let outcome: { response: Response; result: T } | APIError | ConnectionFailed;
      try {
        const response = await this.fetch(url, { method: operation.method, headers, body: content, signal: limit.signal });
        outcome = response.ok ? { response, result: await read(response, progress) } : APIError.of(response, await response.text());
      } catch (cause) {
        if (options.signal?.aborted) throw cause;
        const reason = limit.signal.aborted ? limit.signal.reason : reasonOf(cause);
        outcome = cause instanceof APIError ? cause : new ConnectionFailed(`${operation.method} ${operation.path}: ${reason}`, { cause });
      } finally {
        clearTimeout(timer);
        options.signal?.removeEventListener("abort", abort);
      }
      if (!(outcome instanceof Error)) {
        options.onResponse?.(outcome.response);
        return outcome.result;
      }
      const delay = isSafe && attempt < retries ? delayOf(attempt, outcome) : null;
      if (delay === null) throw outcome;
      await this.pause(delay, options.signal);
    }
  }

  /** Yields the events of a streamed answer. Leaving the loop closes the connection and so cancels the work. */
  async *stream<T>(operation: Operation, request: object, options: Options = {}): AsyncGenerator<AnswerEvent<T>> {
    const streamed = { ...request, stream: true };
    const response = await this.send(operation, streamed, options, (response) => Promise.resolve(response));
    const reader = response.body!.getReader();
    const aborted = () => void reader.cancel(options.signal?.reason).catch(() => undefined);
    options.signal?.addEventListener("abort", aborted);
    const decoder = new TextDecoder();
    let text = "";
    try {
      for (;;) {
        // After a cancellation, read() returns as at the end of the stream.
        const silent = setTimeout(aborted, Math.max(STREAM_SILENCE_MS, options.timeoutMs ?? this.timeoutMs));
        const { done, value } = await reader.read().finally(() => clearTimeout(silent));
        if (done) break;
        text = (text + decoder.decode(value, { stream: true })).replaceAll("\r\n", "\n");
        const blocks = text.split("\n\n");
        text = blocks.pop() ?? "";
        for (const block of blocks) {
          const event = eventOf(block);
          if (!event) continue;
          if (event.event === "error") {
            const status = event.data["error_code"] === "SERVICE_UNAVAILABLE" ? 503 : 500;
            throw new APIError(status, event.data, response.headers);
          }
          yield event as unknown as AnswerEvent<T>;
          if (event.event === "done") return;
        }
      }
    } catch (cause) {
      if (cause instanceof APIError || options.signal?.aborted) throw cause;
      throw new StreamInterrupted(`${operation.path}: ${cause}`, { cause });
    } finally {
      options.signal?.removeEventListener("abort", aborted);
      await reader.cancel().catch(() => undefined);
    }
    options.signal?.throwIfAborted();
    throw new StreamInterrupted(`${operation.path}: the stream ended, or was silent for too long, before its last event`);
  }

  /** Yields the entries of all pages. */
  async *pages<T>(operation: Operation, request: object, options: Options | undefined, member: string): AsyncGenerator<T> {
    let cursor: unknown = undefined;
    do {
      const page = { limit: PAGE_ENTRIES, ...request, ...(cursor === undefined ? {} : { cursor }) };
      const answer: Record<string, unknown> = await this.call(operation, page, options);
      yield* answer[member] as T[];
      cursor = answer["next_cursor"];
    } while (cursor != null);
  }

  private headers(operation: Operation, options: Options, retries: number, type: string | undefined): Record<string, string> {
    const headers: Record<string, string> = { ...options.headers };
    if (this.apiKey) headers["authorization"] = `Bearer ${this.apiKey}`;
    if (options.requestId) headers["x-request-id"] = options.requestId;
    const key = options.idempotencyKey ?? (operation.keyed && retries > 0 ? randomKey() : undefined);
    if (key) headers["idempotency-key"] = key;
    if (type) headers["content-type"] = type;
    return headers;
  }

  /** URL and body of a request; each attempt gets a new body. */
  private encode(operation: Operation, sent: Record<string, unknown>) {
    let path = operation.path;
    const query = new URLSearchParams();
    const rest: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(sent)) {
      if (value === undefined || value === null) continue;
      if (path.includes(`{${name}}`)) path = path.replace(`{${name}}`, encodeURIComponent(String(value)));
      else if (operation.media && !operation.query?.includes(name)) rest[name] = value;
      else for (const each of Array.isArray(value) ? value : [value]) query.append(name, String(each));
    }
    const url = `${this.server}${path}?${query}`.replace(/\?$/, "");
    const json = "application/json";
    if (operation.media === "json") return { url, body: () => JSON.stringify(rest), type: json };
    if (operation.media === "whole") return { url, body: () => JSON.stringify(rest["body"]), type: json };
    if (operation.media === "lines") return { url, body: () => rest["body"] as BodyInit, type: "application/x-ndjson" };
    if (operation.media === "form") return { url, body: () => formOf(rest), type: undefined };
    if (operation.media === "urlencoded") {
      const fields = Object.entries(rest).map(([name, value]): [string, string] => [name, formText(value)]);
      return { url, body: () => new URLSearchParams(fields), type: undefined };
    }
    return { url, body: () => undefined, type: undefined };
  }
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, signal?.aborted ? 0 : ms);
    signal?.addEventListener("abort", end);
  });
}

/** The approximate size of a request body in bytes. */
function sizeOf(content: BodyInit | null | undefined): number {
  if (typeof content === "string") return content.length;
  if (content instanceof Blob) return content.size;
  if (!(content instanceof FormData)) return 0;
  let bytes = 0;
  content.forEach((value) => (bytes += typeof value === "string" ? value.length : value.size));
  return bytes;
}

/** The body of a response; reports progress with each piece received. */
async function blobOf(response: Response, progress: () => void): Promise<Blob> {
  const pieces: BlobPart[] = [];
  const reader = response.body!.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(pieces, { type: response.headers.get("content-type") ?? "" });
    pieces.push(value);
    progress();
  }
}

/** The reason why no answer came. Node's "fetch failed" says nothing, but its cause does. */
function reasonOf(cause: unknown): string {
  const inner = (cause as { cause?: { message?: string; code?: string } }).cause;
  return inner ? `${cause}: ${inner.message || inner.code}` : String(cause);
}

/** An idempotency key. `crypto.randomUUID` is missing in Node 18 and on pages without TLS. */
function randomKey(): string {
  return Array.from({ length: 4 }, () => Math.random().toString(36).slice(2)).join("-");
}

/**
 * Milliseconds until the next attempt, or null if the error is final: what the server asks for plus a random share of
 * the back-off, so that clients which were refused together do not return together.
 */
function delayOf(attempt: number, problem: APIError | ConnectionFailed): number | null {
  const backOff = Math.min(BACK_OFF_MS * 2 ** attempt, BACK_OFF_MS_MAX) * Math.random();
  if (problem instanceof ConnectionFailed) return backOff;
  // With an unknown outcome the change may have taken effect; the caller has to find out, for example by verify_processing.
  if (!RETRIED_STATUSES.has(problem.status) || problem.reason === "outcome_unknown") return null;
  const wanted = (problem.retryAfter ?? 0) * 1000;
  return wanted > RETRY_AFTER_MS_MAX ? null : wanted + backOff;
}

function formOf(fields: Record<string, unknown>): FormData {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) {
    if (name !== "file" && name !== "files") {
      form.append(name, formText(value));
      continue;
    }
    for (const file of (Array.isArray(value) ? value : [value]) as FileInput[]) {
      const isNamed = typeof file === "object" && "content" in file;
      const named = isNamed ? file : { name: (file as { name?: string }).name ?? "file", content: file };
      const { content } = named;
      const isContent = typeof content === "string" ? isNamed : content instanceof Blob || "byteLength" in content;
      if (!isContent) throw new TypeError(`${name}: a Blob, bytes, or one of these with its name is needed; fs.openAsBlob opens a path`);
      form.append(name, content instanceof Blob ? content : new Blob([content as Uint8Array<ArrayBuffer>]), named.name);
    }
  }
  return form;
}

/** A form field's text; maps and lists become JSON. */
function formText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The event in a block of lines; null for a block of comments. */
function eventOf(block: string): { id: string; event: string; data: Record<string, unknown> } | null {
  const fields: Record<string, string> = {};
  for (const line of block.split("\n")) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line)!;
    const known = fields[name!];
    fields[name!] = name === "data" && known !== undefined ? `${known}\n${value}` : value!;
  }
  const data = fields["data"];
  return data === undefined ? null : { id: fields["id"] ?? "", event: fields["event"] ?? "message", data: JSON.parse(data) };
}
