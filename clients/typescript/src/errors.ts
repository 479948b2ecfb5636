/** Errors: what the server answered, what did not reach it, and what it could not process. */
import type { Source } from "./types.js";

/** Base of all errors of this package. */
export class LodestoneError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** The server was not reached, or did not answer in time; `cause` says why. */
export class ConnectionFailed extends LodestoneError {}

/** An event stream ended before its last event. */
export class StreamInterrupted extends LodestoneError {}

/** Sources were accepted and could not be processed, or were deleted meanwhile (`missing`). */
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

/** Sources were not processed in the time given; `pending` has their ids. */
export class WaitTimeout extends LodestoneError {
  constructor(readonly pending: string[]) {
    super(`${pending.length} sources are not processed yet, such as ${pending[0]}`);
  }
}

/** What is wrong with one parameter. */
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
  /** Seconds after which the server asks to try again. */
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

  /** The error for an answer, of which `text` is the body; it may come from a proxy. */
  static of(response: Response, text: string): APIError {
    let body: unknown = null;
    try {
      body = JSON.parse(text);
    } catch {
      // Not the server's own answer.
    }
    const isObject = typeof body === "object" && body !== null && !Array.isArray(body);
    const fallback = { message: text.slice(0, 500) || response.statusText };
    return new APIError(response.status, isObject ? (body as Record<string, unknown>) : fallback, response.headers);
  }
}
