/** The client: all operations, and helpers that combine several of them. */
import { APIError, ProcessingFailed, WaitTimeout } from "./errors.js";
import { Operations } from "./operations.js";
import { Transport, type ClientSettings, type Options } from "./transport.js";
import type { Source } from "./types.js";

const LOOKED_UP_IDS = 1000;
const WAIT_SECONDS = 20;
/** Pause after a look-up that brought nothing new, so that a server that does not hold polls is not flooded. */
const ROUND_PAUSE_MS = 500;

/** Options of waiting for sources to be processed. */
export interface WaitOptions {
  subTenantId?: string;
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Receives each source once it is processed. */
  onSource?: (source: Source) => void;
}

/** A client for one server. Operations are grouped as in its OpenAPI document. */
export class Client extends Operations {
  private readonly sender: Transport;

  constructor(settings: ClientSettings = {}) {
    const transport = new Transport(settings);
    super(transport);
    this.sender = transport;
  }

  /** Sends any request, even one for which this version of the client has no method; only GET is retried. */
  request(method: string, path: string, call: { query?: Record<string, unknown>; body?: unknown; options?: Options } = {}): Promise<Response> {
    const query = call.query ?? {};
    const operation = { method, path, query: Object.keys(query), retry: method === "GET", ...("body" in call ? { media: "whole" } : {}) };
    return this.sender.send(operation, { ...query, body: call.body }, call.options ?? {}, (response) => Promise.resolve(response));
  }

  /**
   * Waits until sources (or a single one) are processed and returns them. Throws `ProcessingFailed` if a source ended in an error or
   * is gone, `WaitTimeout` after `timeoutMs`. Both name ids in Unicode NFC, as the server does.
   */
  async wait(tenantId: string, fileIds: Iterable<string>, options: WaitOptions = {}): Promise<Source[]> {
    const scope = { tenant_id: tenantId, sub_tenant_id: options.subTenantId ?? "default" };
    const call = options.signal ? { signal: options.signal } : {};
    const end = options.timeoutMs === undefined ? Infinity : performance.now() + options.timeoutMs;
    const ended = new Map<string, Source>();
    const missing: string[] = [];
    const given = typeof fileIds === "string" ? [fileIds] : [...fileIds];
    let pending = [...new Set(given.map((id) => id.normalize()))];
    let hasPolled = false;
    while (pending.length > 0) {
      const answer = await this.listing.sourcesById({ ...scope, source_ids: pending.slice(0, LOOKED_UP_IDS) }, call);
      missing.push(...answer.not_found);
      // What is pending is taken from the answer: the server decides which ids are equal.
      const still: string[] = [];
      for (const source of answer.sources) {
        if (source.status !== "success" && source.status !== "errored") {
          still.push(source.id);
          continue;
        }
        ended.set(source.id, source);
        options.onSource?.(source);
      }
      const before = pending.length;
      pending = [...still, ...pending.slice(LOOKED_UP_IDS)];
      const first = pending[0];
      if (first === undefined) break;
      if (hasPolled && pending.length === before) await this.sender.pause(ROUND_PAUSE_MS, options.signal);
      hasPolled = true;
      const left = end - performance.now();
      if (left <= 0) throw new WaitTimeout(pending);
      try {
        const wait = Math.min(WAIT_SECONDS, Math.ceil(left / 1000));
        await this.upload.verifyProcessing({ ...scope, file_id: first, wait }, { ...call, timeoutMs: wait * 1000 + this.sender.timeoutMs });
      } catch (error) {
        // The next look-up tells which sources are gone.
        if (!(error instanceof APIError && error.status === 404)) throw error;
      }
    }
    const errored = [...ended.values()].filter((source) => source.status === "errored");
    if (errored.length > 0 || missing.length > 0) throw new ProcessingFailed(errored, missing);
    return [...ended.values()];
  }
}
