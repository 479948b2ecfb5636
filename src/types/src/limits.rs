//! Every bound of the product in one place (API 5.16), related by constant assertions.

/// Characters in an identifier.
pub const ID_CHARS_MAX: usize = 256;
/// Bytes in a source, memory or session identifier.
pub const ID_BYTES_MAX: usize = 1024;

/// Bytes of one uploaded file.
pub const FILE_BYTES_MAX: usize = 100 << 20;
/// Bytes of one uploaded text.
pub const TEXT_BYTES_MAX: usize = 10 << 20;
/// Bytes of a JSON body that carries vectors or app sources.
pub const BODY_BYTES_MAX_VECTORS: usize = 256 << 20;
/// Bytes of a JSON body that carries text.
pub const BODY_BYTES_MAX_TEXT: usize = 64 << 20;
/// Bytes of a JSON body that carries texts for the model: passages, documents, messages.
pub const BODY_BYTES_MAX_INPUTS: usize = 8 << 20;
/// Bytes of any other JSON body: pages of a batch with their metadata, query vectors, ids.
pub const BODY_BYTES_MAX: usize = 16 << 20;
/// Bytes of one message to the tools: a text that is added, with its escapes.
pub const MCP_MESSAGE_BYTES_MAX: usize = 1 << 20;
/// Bytes of all text parts of a form.
pub const FORM_TEXT_BYTES_MAX: usize = 16 << 20;
/// Items in one batch.
pub const BATCH_ITEMS_MAX: usize = 100;
/// Bytes of one batch in all.
pub const BATCH_BYTES_MAX: usize = 512 << 20;

/// Characters of the address of a web page.
pub const WEB_URL_CHARS_MAX: usize = 2048;
/// Redirects that are followed while fetching one web page.
pub const WEB_REDIRECTS_MAX: usize = 5;
/// Seconds that fetching one web page takes in all: names, redirects and `robots.txt` included.
pub const WEB_SECONDS_MAX: u64 = 30;
/// Web pages that are fetched at once.
pub const WEB_FETCHES_MAX: usize = 8;
/// Bytes of one web page, decompressed.
pub const WEB_PAGE_BYTES_MAX: usize = 20 << 20;
/// Bytes that are received for one web page in all: an uncompressed page of the largest size, with
/// what chunks and encryption add to it, and the pages of its site's rules.
pub const WEB_WIRE_BYTES_MAX: usize = 24 << 20;
/// Bytes of the head of one HTTP response while fetching a web page.
pub const WEB_HEAD_BYTES_MAX: usize = 64 << 10;

/// Milliseconds between a change and the moment from which every process that follows the one that
/// writes knows of it. The one that writes waits so long before it tells of the change; one that
/// follows answers nothing when it has not looked for so long.
pub const FOLLOWERS_MILLIS: u64 = 2000;

/// Webhooks that reach one tenant at most, beside as many that reach every tenant.
pub const WEBHOOKS_MAX: usize = 8;
/// Events that wait for one webhook; later ones are counted and not kept. As many as the jobs of
/// one tenant that may wait.
pub const WEBHOOK_BACKLOG_MAX: u64 = 100_000;
/// Entries of the delivery log of one webhook, besides events that wait.
pub const WEBHOOK_LOG_MAX: usize = 1000;
/// Messages that are being sent to all receivers at once.
pub const WEBHOOK_SENDERS_MAX: usize = 32;
/// Messages that are being sent to one receiver at once, while it takes them.
pub const WEBHOOK_SENDERS_EACH: usize = 2;
/// Seconds that sending one message takes in all.
pub const WEBHOOK_SECONDS_MAX: u64 = 10;
/// Bytes that are received for one message: the head of the answer and the certificates of the
/// receiver. The body of the answer is not read.
pub const WEBHOOK_WIRE_BYTES_MAX: usize = 256 << 10;
/// Characters of the description of a webhook.
pub const WEBHOOK_DESCRIPTION_CHARS_MAX: usize = 256;

/// Characters of a title, a type or an address that is given with an upload.
pub const APP_LINE_CHARS_MAX: usize = 2048;
/// Characters of a description or a note that an application gives.
pub const APP_PROSE_CHARS_MAX: usize = 16_384;
/// Characters of a language tag: what RFC 5646 4.4.1 asks of software that has a limit.
pub const LANGUAGE_CHARS_MAX: usize = 35;
/// Collections that one record of an application names.
pub const APP_COLLECTIONS_MAX: usize = 100;

/// Bytes of one metadata map, as compact JSON.
pub const METADATA_BYTES_MAX: usize = 64 << 10;
/// Values in all metadata maps of one request, names and members of lists included.
pub const METADATA_VALUES_MAX: usize = 100_000;
/// Nesting of a metadata map, by maps, lists and dots in keys.
pub const METADATA_DEPTH_MAX: usize = 8;
/// Parts of all keys of a metadata map: a key has one more than it has dots.
pub const METADATA_KEY_PARTS_MAX: usize = 4096;
/// Characters of a metadata key.
pub const METADATA_KEY_CHARS_MAX: usize = 128;
/// Fields of a tenant schema.
pub const SCHEMA_FIELDS_MAX: usize = 64;

/// Conditions in the filters of one request.
pub const FILTER_CONDITIONS_MAX: usize = 64;
/// Values in one list of a filter, for example of `$in`.
pub const FILTER_LIST_MAX: usize = 1000;
/// Values in all filters of one request, names and members of lists included.
pub const FILTER_VALUES_MAX: usize = 4096;
/// Nesting of a filter.
pub const FILTER_DEPTH_MAX: usize = 8;

/// Seconds that a request for the state of a source may wait for its end.
pub const WAIT_SECONDS_MAX: u64 = 60;

/// Characters of a query or question.
pub const QUERY_CHARS_MAX: usize = 16_384;
/// Results of retrieve, qna and full-text search.
pub const RESULTS_MAX: usize = 1001;
/// Sources of one listing of relations.
pub const RELATED_SOURCES_MAX: usize = 100;
/// Triplets of one listing of relations.
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
/// Width of a vector.
pub const VECTOR_DIMENSION_MAX: usize = 3024;
/// Source ids in one request.
pub const SOURCE_IDS_MAX: usize = 1000;
/// Chunk ids in one request.
pub const CHUNK_IDS_MAX: usize = 2000;
/// Entries of one page of a listing.
pub const LISTING_PAGE_MAX: usize = 1000;

/// Candidates that each leg of a hybrid search contributes at least (RETRIEVAL 1.2).
pub const CANDIDATES_MIN: usize = 100;
/// First candidates that a reranker reads at most.
pub const RERANK_CANDIDATES: usize = 50;

/// Model tokens of one chunk, without the two that frame it.
pub const CHUNK_TOKENS: usize = 200;
/// Model tokens that neighbouring chunks share.
pub const CHUNK_OVERLAP_TOKENS: usize = 32;
/// Chunks of a short source at most: an abstract, a message, a page. All of them are about what
/// the title says, and a second one is the same find.
pub const SHORT_SOURCE_CHUNKS: usize = 4;
/// Model tokens of one passage at most, framing included; longer input is cut by the model.
pub const MODEL_TOKENS_MAX: usize = 256;
/// Tokens, framing included, that a reranker reads for one search at most; candidates beyond are
/// not read. About one second of a core with a model of the embedding model's size, whose encoder
/// reads 8,900 tokens a second (benches/runs/2026-11-20-2core-epyc/embed.md): 50 passages of 160.
pub const RERANK_TOKENS_MAX: usize = 8192;
/// Terms of a chunk that the search by a sparse model keeps, the heaviest. Published models give
/// chunks 100 to 300.
pub const SPARSE_TERMS_MAX: usize = 512;
/// Terms of a query that it looks for, the heaviest: each costs a walk over its postings.
pub const SPARSE_QUERY_TERMS_MAX: usize = 64;
/// Padded tokens of one batch through the model.
pub const EMBED_BATCH_TOKENS: usize = 2048;
/// Tokens of one batch through the model on a GPU, without padding: enough to fill a large card,
/// few enough that a query behind it hardly waits.
pub const EMBED_DEVICE_BATCH_TOKENS: usize = 16_384;

/// Texts of one request for vectors, as in OpenAI's interface.
pub const EMBEDDING_INPUTS_MAX: usize = 2048;
/// Token ids of one text, as in OpenAI's interface.
pub const EMBEDDING_IDS_MAX: usize = 8192;
/// Documents of one request for relevance.
pub const RERANK_DOCUMENTS_MAX: usize = 1000;
/// Messages of one chat.
pub const CHAT_MESSAGES_MAX: usize = 1000;

/// Named vector stores of one tenant.
pub const VECTOR_STORES_MAX: usize = 10_000;
/// Vector stores, or files of one, in a page, as in OpenAI's interface.
pub const STORE_PAGE_MAX: usize = 100;
/// Results of one search of a vector store, as in OpenAI's interface.
pub const STORE_RESULTS_MAX: usize = 50;
/// Uploaded files in a page, as in OpenAI's interface.
pub const FILES_PAGE_MAX: usize = 10_000;
/// Files of one batch.
pub const FILE_BATCH_MAX: usize = 500;
/// Batches of files of one tenant that are kept.
pub const FILE_BATCHES_KEPT: usize = 200;
/// Attributes of a file, or notes of a vector store, as in OpenAI's interface.
pub const ATTRIBUTES_MAX: usize = 16;
/// Characters of the name of an attribute, as in OpenAI's interface.
pub const ATTRIBUTE_KEY_CHARS_MAX: usize = 64;
/// Characters of an attribute that is a text, as in OpenAI's interface.
pub const ATTRIBUTE_CHARS_MAX: usize = 512;
/// Bytes of the texts that one answer gives of a file in a vector store.
pub const STORE_TEXT_BYTES_MAX: usize = 8 << 20;
/// Pages of a PDF.
pub const PDF_PAGES_MAX: usize = 5_000;
/// Smallest width of the picture of a page, in pixels.
pub const PICTURE_WIDTH_MIN: usize = 64;
/// Largest width of the picture of a page, in pixels.
pub const PICTURE_WIDTH_MAX: usize = 2048;
/// Marks on the picture of a page.
pub const PICTURE_MARKS_MAX: usize = 64;
/// Marks in a request for the picture of a page: those of other pages are passed over.
pub const PICTURE_MARKS_SENT_MAX: usize = 1024;

/// Failed attempts after which a job is errored.
pub const ATTEMPTS_MAX: u32 = 3;
/// Restarts of the server during one job that together count as one attempt (API 8.21).
pub const INTERRUPTIONS_PER_ATTEMPT: u32 = 3;

/// Bytes of one memory.
pub const MEMORY_BYTES_MAX: usize = 32 << 10;
/// Exchanges in one memory.
pub const MEMORY_PAIRS_MAX: usize = 100;
/// Seconds that a memory may be kept: some 34,000 years, whose milliseconds a JSON number still
/// holds exactly.
pub const MEMORY_SECONDS_MAX: u64 = 1 << 40;
/// Memories that one message becomes at most.
pub const MEMORY_STATEMENTS_MAX: usize = 100;
/// Memories that one look-up returns at most.
pub const MEMORY_RESULTS_MAX: usize = 100;
/// Memories that steer one search at most (API 5.8).
pub const MEMORIES_USED_MAX: usize = 5;

/// Characters of a source's description.
pub const DESCRIPTION_CHARS: usize = 400;
/// Characters of a snippet.
pub const SNIPPET_CHARS: usize = 300;
/// Past turns that a session gives to a follow-up.
pub const SESSION_TURNS: usize = 10;

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
// 26 bytes a number: a 64-bit float with sign, 17 digits and exponent.
const _: () = assert!(VECTOR_QUERIES_MAX * VECTOR_DIMENSION_MAX * 26 <= BODY_BYTES_MAX);
// 12 bytes a character: an escape for each half of a surrogate pair.
const _: () = assert!(CHUNK_IDS_MAX * ID_CHARS_MAX * 12 < BODY_BYTES_MAX);
const _: () = assert!(SOURCE_IDS_MAX <= CHUNK_IDS_MAX);
const _: () = assert!(2 * BATCH_ITEMS_MAX * METADATA_BYTES_MAX < FORM_TEXT_BYTES_MAX);
const _: () = assert!(FILTER_LIST_MAX < FILTER_VALUES_MAX);
const _: () = assert!(MEMORY_BYTES_MAX < BODY_BYTES_MAX);
const _: () = assert!(MEMORY_SECONDS_MAX < (1 << 53) / 1000);
const _: () = assert!(FILE_BYTES_MAX <= BATCH_BYTES_MAX);
const _: () = assert!(ID_CHARS_MAX * 4 <= ID_BYTES_MAX);
