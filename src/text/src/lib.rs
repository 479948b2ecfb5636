//! Text: analysis into terms, the full-text index of one segment (a tantivy index in row order,
//! scored with BM25), and splitting into chunks.
//!
//! Not part of this crate: choosing the segments that a query visits and fusion with vector search
//! (engine); the position of the bundle in a segment file and its checksum (storage).
//!
//! ```text
//! ingest text, blocks -> chunk::chunk -> chunks
//! rows   RowText -> analysis -> TextIndexBuilder -> finish -> bundle -> TextIndex::open
//! query  HybridQuery or WordQuery, then over every segment of the scope
//!        scope_stats + term_counts -> CorpusStats -> score -> RowScores: top, get
//!                        -> best with a ScoreThreshold -> the first of them
//! ```
//!
//! # Fields
//!
//! | field | contents | analysis | used by |
//! |---|---|---|---|
//! | body | title, text, searchable values | hybrid analysis | hybrid |
//! | title | title | hybrid analysis | hybrid, as a bonus |
//! | words | text, searchable values; with positions | whole words | full-text search |
//!
//! The title is also part of the body, because a chunk from the middle of a document is about its
//! title too; that way a chunk never loses out to another field's statistics.
//!
//! Hybrid analysis: NFKC, word segmentation by UAX #29 (combining marks stay), case folding;
//! identifiers are also split into their parts; stemming: English for Latin letters, and Russian,
//! Greek and Arabic for theirs; runs of Han, Kana and Hangul become bigrams, runs of Thai, Lao,
//! Khmer and Myanmar n-grams of two to four letters.
//!
//! Whole words: NFKC, words, case folding; rows also index the pieces of words with punctuation
//! inside (`main.rs`); in scripts without spaces every character is a term. In a query, a run of
//! such characters is a phrase if all words must occur; otherwise its n-grams are looked up in the
//! body, minus those of the title. Hangul, which is written with spaces, is compared by words
//! there.
//!
//! Words that differ in diacritics, misspelt words and prefixes are looked up in the index's
//! dictionary at query time, so that rows store nothing for them.
//!
//! Rejected alternatives: removing stop words from the index (idf already discounts them, and a
//! query consisting only of stop words would find nothing); one field for both searches (full-text
//! search needs words, ranking needs stems); stemming other languages in Latin script (guessing the
//! language fails too often on short queries). Diacritics are kept, since they distinguish words in
//! most languages that have them; full-text search ignores them but ranks the form as written
//! first.
//!
//! # Scores
//!
//! tantivy's built-in BM25 has fixed constants and counts every document of an index, including
//! deleted ones and those of other sub-tenants. Ours counts the live rows of one sub-tenant across
//! all segments, so a score does not depend on how rows are split into segments, on tombstones, or
//! on what other sub-tenants hold. The same rows yield the same f32, bit for bit. Field lengths are
//! Lucene's one-byte codes everywhere, including in the mean.
//!
//! # Bundle
//!
//! ```text
//! offset  bytes
//!      0      8  magic "LDSTTEXT"
//!      8      4  version of format and analysis, u32 little-endian like all numbers
//!     12      4  rows
//!     16      4  number of files n; 0 if and only if rows = 0
//!     20      4  bytes of the table t
//!     24      t  n times: length of the name u16, name, offset u64, length u64
//!    ...         files, each at a multiple of 8: idx, pos, term, fieldnorm, store, fast, meta.json
//! ```
//! A reader must reject any other magic or version, a table or file that extends beyond the end,
//! another schema, more than one tantivy segment, and a document count or field lengths that do not
//! match the rows. Checksums are left to the segment. A change to the analysis changes the version,
//! unless it only adds terms to rows: older bundles without pieces of words are searched by whole
//! words only, and those without three- and four-letter n-grams of Thai by bigrams.
//!
//! # Invariants
//!
//! - tantivy's DocId is the RowId: rows are added in order, nothing is sorted, and merging
//!   preserves the order
//! - equal rows yield equal bytes
//! - rows and queries go through the same functions of `analysis`, except that queries omit the
//!   pieces
//!
//! # Modules
//!
//! - `chunk`: text to chunks
//! - `normal`: NFKC with a mapping back to the original bytes; case folding
//! - `letters`: alphabets that have a stemmer
//! - `split`: words and runs; `identifier`: parts of an identifier
//! - `analysis`: text to terms; `tokens`: the analysis as tantivy tokenizers
//! - `query`: analysed queries and their limits
//! - `schema`: the three fields; `bundle`: the format above
//! - `directory`: a bundle as a tantivy directory; `build`: writing and merging; `index`: opening
//! - `mask`: sets of rows, window by window; `postings`, `phrase`: occurrences in such windows
//! - `stats`: counts over segments; `score`: BM25; `top`: top-k retrieval that skips rows;
//!   `blocks`: score bounds of posting blocks; `row_scores`: the results
//! - `impacts`: postings of sparse models, whose terms have learned weights
//! - `similar`: dictionary words similar to the query's; `dictionary`: the traversal that finds
//!   them
//! - `vocabulary`: the words of an index
//! - `highlight`: occurrences of a query's terms in a text
//! - `error`: errors

#![forbid(unsafe_code)]

mod analysis;
mod blocks;
mod build;
mod bundle;
pub mod chunk;
mod dictionary;
mod directory;
mod error;
mod highlight;
mod identifier;
mod impact_postings;
mod impacts;
mod index;
mod letters;
mod mask;
mod normal;
mod pattern;
mod phrase;
mod postings;
mod query;
mod row_scores;
mod schema;
mod score;
mod similar;
mod split;
mod stats;
mod tokens;
mod top;
mod vocabulary;

pub use build::{RowText, TextIndexBuilder};
pub use bundle::{BundleBytes, TextBundle};
pub use error::TextError;
pub use highlight::{matches, word_matches};
pub use impacts::{ImpactIndex, ImpactMerge, SparseModelId, write_impacts};
pub use index::TextIndex;
pub use pattern::SimilarWords;
pub use query::{
    Fuzzy, HybridQuery, Operator, PHRASE_CHARS_MAX, QUERY_TERMS_MAX, SentQuery, TextQuery,
    WordQuery,
};
pub use row_scores::RowScores;
pub use stats::{CorpusStats, KnownCounts, ScopeStats, TermCounts};
pub use tantivy::directory::OwnedBytes;
pub use top::ScoreThreshold;

#[cfg(test)]
mod exhaustive_tests;
#[cfg(test)]
mod tests;
