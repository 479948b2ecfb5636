/** Errors: error answers, failed connections, and sources that could not be processed. */
import type { Source } from "./types.js";

/** Base class of all errors of this package. */
export class LodestoneError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server could not be reached or did not answer in time; `cause` tells why. */
export class ConnectionFailed extends LodestoneError {}

/** An event stream ended before its last event. */
export class StreamInterrupted extends LodestoneError {}

/** Accepted sources could not be processed, or were deleted meanwhile (`missing`). */
export class ProcessingFailed extends LodestoneError {
  constructor(
    readonly sources: Source[],
    readonly missing: string[],
  ) {
    const reasons = sources.map((source) => `${source.id}: ${source.error_code} ${source.error_message}`);
    reasons.push(...missing.map((id) => `${id}: deleted`));
    super(`${reasons.length} sources not processed: ${reasons.slice(0, 3).join("; ")}`);
  }
}

/** Sources were not processed in time; `pending` lists their ids. */
export class WaitTimeout extends LodestoneError {
  constructor(readonly pending: string[]) {
    super(`${pending.length} sources are not processed yet, such as ${pending[0]}`);
  }
}

/** An invalid parameter: where it is, its name, and the problem. */
export interface FieldError {
  location: string;
  field: string;
  message: string;
}

/** An error answer of the server. `errorCode` is coarse and stable, `reason` precise; `body` is the whole answer. */
export class APIError extends LodestoneError {
  readonly errorCode: string;
  readonly reason: string;
  readonly requestId: string;
  readonly fieldErrors: FieldError[];
  /** Seconds after which the server asks to retry; null if it does not say. */
  readonly retryAfter: number | null;

  constructor(
    readonly status: number,
    readonly body: Record<string, unknown>,
    readonly headers: Headers,
  ) {
    const text = (name: string) => (typeof body[name] === "string" ? (body[name] as string) : "");
    const requestId = text("request_id") || (headers.get("x-request-id") ?? "");
    super(`${status} ${text("reason") || text("error_code")}: ${text("message")} (request ${requestId})`);
    this.errorCode = text("error_code");
    this.reason = text("reason");
    this.requestId = requestId;
    this.fieldErrors = (body["detail"] as { errors?: FieldError[] } | undefined)?.errors ?? [];
    const after = headers.get("retry-after") ?? "";
    this.retryAfter = /^\d+$/.test(after) ? Number(after) : null;
  }

  /** The error for a response with the body `text`; it may come from a proxy. */
  static of(response: Response, text: string): APIError {
    let body: unknown = null;
    try {
      body = JSON.parse(text);
    } catch {
      // No JSON: sent by a proxy.
    }
    const isObject = typeof body === "object" && body !== null && !Array.isArray(body);
    const fallback = { message: text.slice(0, 500) || response.statusText };
    return new APIError(response.status, isObject ? (body as Record<string, unknown>) : fallback, response.headers);
  }
}
