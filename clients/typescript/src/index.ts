/** Client for Lodestone, a self-hosted retrieval server. */
export { Client, type WaitOptions } from "./client.js";
export { APIError, ConnectionFailed, LodestoneError, ProcessingFailed, StreamInterrupted, WaitTimeout, type FieldError } from "./errors.js";
export type { AnswerEvent, ClientSettings, Options } from "./transport.js";
export type * from "./types.js";
