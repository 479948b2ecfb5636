//! All limits of the product in one place, related by compile-time assertions.

/// Characters in an identifier.
pub const ID_CHARS_MAX: usize = 256;
/// Bytes in a source, memory or session identifier.
pub const ID_BYTES_MAX: usize = 1024;

/// Bytes of one uploaded file.
pub const FILE_BYTES_MAX: usize = 100 << 20;
/// Bytes of one uploaded text.
pub const TEXT_BYTES_MAX: usize = 10 << 20;
/// Bytes of a JSON body that carries vectors or application records.
pub const BODY_BYTES_MAX_VECTORS: usize = 256 << 20;
/// Bytes of a JSON body that carries text.
pub const BODY_BYTES_MAX_TEXT: usize = 64 << 20;
/// Bytes of a JSON body that carries texts for a model: passages, documents, messages.
pub const BODY_BYTES_MAX_INPUTS: usize = 8 << 20;
/// Bytes of any other JSON body: pages of a batch with their metadata, query vectors, ids.
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// Bytes of one MCP message; sized for a text to be added, including its JSON escapes.
pub const MCP_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Total bytes of all text parts of a multipart form.
pub const FORM_TEXT_BYTES_MAX: usize = 16 << 20;
/// Items in one batch.
pub const BATCH_ITEMS_MAX: usize = 100;
/// Total bytes of one batch.
pub const BATCH_BYTES_MAX: usize = 512 << 20;

/// Characters of a web page's URL.
pub const WEB_URL_CHARS_MAX: usize = 2048;
/// Redirects followed while fetching one web page.
pub const WEB_REDIRECTS_MAX: usize = 5;
/// Total seconds to fetch one web page, including name look-ups, redirects and `robots.txt`.
pub const WEB_SECONDS_MAX: u64 = 30;
/// Web pages fetched concurrently.
pub const WEB_FETCHES_MAX: usize = 8;
/// Bytes of one web page, decompressed.
pub const WEB_PAGE_BYTES_MAX: usize = 20 << 20;
/// Total bytes received for one web page: an uncompressed page of the maximum size, plus the
/// overhead of chunked transfer and encryption, plus the site's `robots.txt`.
pub const WEB_WIRE_BYTES_MAX: usize = 24 << 20;
/// Bytes of the head of one HTTP response when fetching a web page.
pub const WEB_HEAD_BYTES_MAX: usize = 64 << 10;

/// Milliseconds after a change by which every follower process has seen it. The writer waits this
/// long before it acknowledges the change; a follower that has not polled for this long refuses to
/// answer.
pub const FOLLOWERS_MILLIS: u64 = 2000;

/// Webhooks that cover a given tenant: at most this many scoped to it, and as many scoped to all
/// tenants.
pub const WEBHOOKS_MAX: usize = 8;
/// Events queued for one webhook; further ones are counted but not kept. Equals the number of jobs
/// that one tenant may have waiting.
pub const WEBHOOK_BACKLOG_MAX: u64 = 100_000;
/// Entries in the delivery log of one webhook, not counting queued events.
pub const WEBHOOK_LOG_MAX: usize = 1000;
/// Webhook messages in flight to all receivers together.
pub const WEBHOOK_SENDERS_MAX: usize = 32;
/// Webhook messages in flight to one receiver while it accepts them.
pub const WEBHOOK_SENDERS_EACH: usize = 2;
/// Total seconds to send one webhook message.
pub const WEBHOOK_SECONDS_MAX: u64 = 10;
/// Bytes received for one webhook message: the response head and the receiver's certificates. The
/// response body is not read.
pub const WEBHOOK_WIRE_BYTES_MAX: usize = 256 << 10;
/// Characters of the description of a webhook.
pub const WEBHOOK_DESCRIPTION_CHARS_MAX: usize = 256;

/// Characters of a title, type or address supplied with an upload.
pub const APP_LINE_CHARS_MAX: usize = 2048;
/// Characters of a description or note supplied by an application.
pub const APP_PROSE_CHARS_MAX: usize = 16_384;
/// Characters of a language tag; the minimum that RFC 5646 4.4.1 asks of software with a limit.
pub const LANGUAGE_CHARS_MAX: usize = 35;
/// Collections that one application record may name.
pub const APP_COLLECTIONS_MAX: usize = 100;

/// Bytes of one metadata map, as compact JSON.
pub const METADATA_BYTES_MAX: usize = 64 << 10;
/// Values in all metadata maps of one request, counting names and list members.
pub const METADATA_VALUES_MAX: usize = 100_000;
/// Nesting depth of a metadata map, counting maps, lists and dots in keys.
pub const METADATA_DEPTH_MAX: usize = 8;
/// Total key parts of a metadata map; a key has one part more than it has dots.
pub const METADATA_KEY_PARTS_MAX: usize = 4096;
/// Characters of a metadata key.
pub const METADATA_KEY_CHARS_MAX: usize = 128;
/// Fields of a tenant schema.
pub const SCHEMA_FIELDS_MAX: usize = 64;

/// Conditions in the filters of one request.
pub const FILTER_CONDITIONS_MAX: usize = 64;
/// Values in one list of a filter, for example of `$in`.
pub const FILTER_LIST_MAX: usize = 1000;
/// Values in all filters of one request, counting names and list members.
pub const FILTER_VALUES_MAX: usize = 4096;
/// Nesting depth of a filter.
pub const FILTER_DEPTH_MAX: usize = 8;

/// Seconds that a status request may wait for a source to finish.
pub const WAIT_SECONDS_MAX: u64 = 60;

/// Characters of a query or question.
pub const QUERY_CHARS_MAX: usize = 16_384;
/// Results of one retrieve, qna or full-text search request.
pub const RESULTS_MAX: usize = 1001;
/// Sources in one relations listing.
pub const RELATED_SOURCES_MAX: usize = 100;
/// Triplets in one relations listing.
pub const RELATIONS_MAX: usize = 5000;
/// Results of a vector search.
pub const VECTOR_RESULTS_MAX: usize = 200;
/// Query vectors of one vector search.
pub const VECTOR_QUERIES_MAX: usize = 100;
/// Rows of one vector upload or update.
pub const VECTOR_ROWS_MAX: usize = 2000;
/// Rows of one vector upload as an npy file.
pub const NPY_ROWS_MAX: usize = 50_000;
/// Bytes of one vector upload as an npy file.
pub const NPY_BYTES_MAX: usize = 64 << 20;
/// Dimension of a vector.
pub const VECTOR_DIMENSION_MAX: usize = 3024;
/// Source ids in one request.
pub const SOURCE_IDS_MAX: usize = 1000;
/// Chunk ids in one request.
pub const CHUNK_IDS_MAX: usize = 2000;
/// Entries on one page of a listing.
pub const LISTING_PAGE_MAX: usize = 1000;

/// Minimum number of candidates that each leg of a hybrid search contributes.
pub const CANDIDATES_MIN: usize = 100;
/// Maximum number of top candidates that a reranker reads.
pub const RERANK_CANDIDATES: usize = 50;

/// Model tokens of one chunk, without the two special tokens around it.
pub const CHUNK_TOKENS: usize = 200;
/// Model tokens shared by neighbouring chunks.
pub const CHUNK_OVERLAP_TOKENS: usize = 32;
/// Maximum number of chunks of a short source (an abstract, a message, a page). All its chunks are
/// about the topic of the title, so a second one adds nothing to a result list.
pub const SHORT_SOURCE_CHUNKS: usize = 4;
/// Maximum model tokens of one passage, special tokens included; the model truncates longer input.
pub const MODEL_TOKENS_MAX: usize = 256;
/// Maximum tokens, special tokens included, that a reranker reads for one search; candidates beyond
/// that are not read. About one second of one core for a model the size of the embedding model,
/// whose encoder reads 8,900 tokens a second (benches/runs/2026-11-20-2core-epyc/embed.md): 50
/// passages of 160.
pub const RERANK_TOKENS_MAX: usize = 8192;
/// Terms of a chunk that sparse retrieval keeps, heaviest first. Published models produce 100 to
/// 300 terms per chunk.
pub const SPARSE_TERMS_MAX: usize = 512;
/// Terms of a query that sparse retrieval looks up, heaviest first; each costs a posting-list scan.
pub const SPARSE_QUERY_TERMS_MAX: usize = 64;
/// Padded tokens of one model batch.
pub const EMBED_BATCH_TOKENS: usize = 2048;
/// Unpadded tokens of one model batch on a GPU: enough to saturate a large card, few enough that a
/// query queued behind it hardly waits.
pub const EMBED_DEVICE_BATCH_TOKENS: usize = 16_384;

/// Texts in one embeddings request, as in OpenAI's API.
pub const EMBEDDING_INPUTS_MAX: usize = 2048;
/// Token ids of one text, as in OpenAI's API.
pub const EMBEDDING_IDS_MAX: usize = 8192;
/// Documents in one rerank request.
pub const RERANK_DOCUMENTS_MAX: usize = 1000;
/// Messages in one chat request.
pub const CHAT_MESSAGES_MAX: usize = 1000;

/// Named vector stores of one tenant.
pub const VECTOR_STORES_MAX: usize = 10_000;
/// Vector stores, or files of one, on a page, as in OpenAI's API.
pub const STORE_PAGE_MAX: usize = 100;
/// Results of one vector store search, as in OpenAI's API.
pub const STORE_RESULTS_MAX: usize = 50;
/// Uploaded files on a page, as in OpenAI's API.
pub const FILES_PAGE_MAX: usize = 10_000;
/// Files in one file batch.
pub const FILE_BATCH_MAX: usize = 500;
/// File batches retained per tenant.
pub const FILE_BATCHES_KEPT: usize = 200;
/// Attributes of a file, or metadata entries of a vector store, as in OpenAI's API.
pub const ATTRIBUTES_MAX: usize = 16;
/// Characters of an attribute's name, as in OpenAI's API.
pub const ATTRIBUTE_KEY_CHARS_MAX: usize = 64;
/// Characters of a text attribute, as in OpenAI's API.
pub const ATTRIBUTE_CHARS_MAX: usize = 512;
/// Total bytes of text that one response returns for a file in a vector store.
pub const STORE_TEXT_BYTES_MAX: usize = 8 << 20;
/// Pages of a PDF.
pub const PDF_PAGES_MAX: usize = 5_000;
/// Minimum width of a page picture, in pixels.
pub const PICTURE_WIDTH_MIN: usize = 64;
/// Maximum width of a page picture, in pixels.
pub const PICTURE_WIDTH_MAX: usize = 2048;
/// Highlights on one page picture.
pub const PICTURE_MARKS_MAX: usize = 64;
/// Highlights in one page picture request; those on other pages are ignored.
pub const PICTURE_MARKS_SENT_MAX: usize = 1024;

/// Failed attempts after which a job is errored.
pub const ATTEMPTS_MAX: u32 = 3;
/// Server restarts during one job that together count as one failed attempt. A single restart does
/// not count: the document may have caused it, but most restarts have other causes.
pub const INTERRUPTIONS_PER_ATTEMPT: u32 = 3;

/// Bytes of one memory.
pub const MEMORY_BYTES_MAX: usize = 32 << 10;
/// Message pairs in one memory.
pub const MEMORY_PAIRS_MAX: usize = 100;
/// Maximum lifetime of a memory in seconds: some 34,000 years, chosen so that a JSON number still
/// holds its milliseconds exactly.
pub const MEMORY_SECONDS_MAX: u64 = 1 << 40;
/// Maximum number of memories extracted from one message.
pub const MEMORY_STATEMENTS_MAX: usize = 100;
/// Maximum number of memories returned by one look-up.
pub const MEMORY_RESULTS_MAX: usize = 100;
/// Maximum number of memories that influence one search.
pub const MEMORIES_USED_MAX: usize = 5;

/// Characters of a source's description.
pub const DESCRIPTION_CHARS: usize = 400;
/// Characters of a snippet.
pub const SNIPPET_CHARS: usize = 300;
/// Past turns of a session included with a follow-up question.
pub const SESSION_TURNS: usize = 10;
/// Bytes of the turns kept of one session, unless the newest alone has more.
pub const SESSION_BYTES_MAX: usize = 128 << 10;
/// Sessions kept per tenant: those used last.
pub const SESSIONS_KEPT: usize = 100_000;
/// Bytes of the turns kept per tenant: of the sessions used last.
pub const SESSIONS_BYTES_MAX: usize = 1 << 30;
/// Bytes kept in 24 hours for repetitions of requests with an `Idempotency-Key`, per tenant of the
/// key (per key, if it is for several tenants).
pub const IDEMPOTENCY_BYTES_MAX: u64 = 1 << 30;

const _: () = assert!(CHUNK_TOKENS + 2 <= MODEL_TOKENS_MAX);
const _: () = assert!(CHUNK_OVERLAP_TOKENS * 2 < CHUNK_TOKENS);
const _: () = assert!(MODEL_TOKENS_MAX <= EMBED_BATCH_TOKENS);
const _: () = assert!(MODEL_TOKENS_MAX <= RERANK_TOKENS_MAX);
const _: () = assert!(MODEL_TOKENS_MAX <= EMBEDDING_IDS_MAX);
const _: () = assert!(EMBED_BATCH_TOKENS <= EMBED_DEVICE_BATCH_TOKENS);
const _: () = assert!(2 * WEBHOOKS_MAX * WEBHOOK_SENDERS_EACH <= WEBHOOK_SENDERS_MAX);
const _: () = assert!(WEB_HEAD_BYTES_MAX < WEBHOOK_WIRE_BYTES_MAX);
const _: () = assert!(WEB_PAGE_BYTES_MAX < WEB_WIRE_BYTES_MAX);
const _: () = assert!(WEB_PAGE_BYTES_MAX <= FILE_BYTES_MAX);
const _: () = assert!(TEXT_BYTES_MAX <= BODY_BYTES_MAX_TEXT);
// 26 bytes per number: a 64-bit float with sign, 17 digits and exponent.
const _: () = assert!(VECTOR_QUERIES_MAX * VECTOR_DIMENSION_MAX * 26 <= BODY_BYTES_MAX);
// 12 bytes per character: one escape for each half of a surrogate pair.
const _: () = assert!(CHUNK_IDS_MAX * ID_CHARS_MAX * 12 < BODY_BYTES_MAX);
const _: () = assert!(SOURCE_IDS_MAX <= CHUNK_IDS_MAX);
const _: () = assert!(2 * BATCH_ITEMS_MAX * METADATA_BYTES_MAX < FORM_TEXT_BYTES_MAX);
const _: () = assert!(FILTER_LIST_MAX < FILTER_VALUES_MAX);
const _: () = assert!(MEMORY_BYTES_MAX < BODY_BYTES_MAX);
const _: () = assert!(MEMORY_SECONDS_MAX < (1 << 53) / 1000);
const _: () = assert!(FILE_BYTES_MAX <= BATCH_BYTES_MAX);
const _: () = assert!(ID_CHARS_MAX * 4 <= ID_BYTES_MAX);
