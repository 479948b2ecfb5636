//! Text: its analysis into terms, the full text of one segment (a tantivy index in row order, with
//! BM25), and cutting into chunks.
//!
//! Not here: the segments that a query visits, and the fusion with vector search (engine); the
//! place of the bundle in a segment file, and its checksum (storage).
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
//! | field | holds | made by | asked by |
//! |---|---|---|---|
//! | body | title, text, searchable values | hybrid analysis | hybrid |
//! | title | title | hybrid analysis | hybrid, as a bonus |
//! | words | text, searchable values; positions | whole words | full-text search |
//!
//! The title is part of the body as well, because a chunk from the middle of a document is about
//! its title too; a chunk then never loses against another field's statistics.
//!
//! Hybrid analysis: NFKC, words by UAX #29 (combining marks stay), case folding; beside an
//! identifier its parts; stems: English for Latin letters, Russian, Greek and Arabic for theirs;
//! runs of Han, Kana and Hangul as pairs, of Thai, Lao, Khmer and Myanmar as two to four letters.
//! Whole words: NFKC, words, case folding; in rows also the pieces of a word with marks inside
//! (`main.rs`); in scripts without spaces every character is a term. A run of them in the query is
//! a phrase where all words must occur, else it is looked up by its neighbours in the body, less
//! those of the title. Hangul is written with spaces and is compared by words there.
//! Words that differ in diacritics, misspelt ones and beginnings are found in the dictionary of the
//! index when a query is asked, so that rows hold nothing for them.
//! Alternatives refused: removing stop words from the index (idf does it, and a query of nothing
//! else would find nothing); one field for both searches (full text wants words, ranking wants
//! stems); stemming other languages in Latin script (a guess at the language is wrong too often on
//! short queries). Diacritics are kept: they tell words apart in most languages that have them; a
//! full-text search looks past them, and ranks the form as written first.
//!
//! # Scores
//!
//! tantivy's own BM25 has fixed constants and counts every document of an index, dead and foreign
//! ones included. Ours counts the live rows of one sub-tenant over all segments, so a score does
//! not depend on how rows are segmented, on tombstones, or on what other sub-tenants hold. The
//! same rows give the same f32, bit for bit. Lengths are Lucene's one-byte codes everywhere, in
//! the mean too.
//!
//! # Bundle
//!
//! ```text
//! offset  bytes
//!      0      8  magic "LDSTTEXT"
//!      8      4  version of format and analysis, u32 little-endian like all numbers
//!     12      4  rows
//!     16      4  files n; 0 if and only if rows = 0
//!     20      4  bytes of the table t
//!     24      t  n times: bytes of the name u16, name, offset u64, length u64
//!    ...         files, each at a multiple of 8: idx, pos, term, fieldnorm, store, fast, meta.json
//! ```
//! A reader rejects another magic or version, a table or file that reaches outside, another schema,
//! more than one tantivy segment, a count of documents or lengths that differs from the rows.
//! Checksums are the segment's; a change of the analysis is a change of the version, unless it only
//! adds terms to rows: bundles from before the pieces of words are found by the whole words alone,
//! those from before the three and four letters of Thai by two.
//!
//! # Invariants
//!
//! - tantivy's DocId is the RowId: rows are added in order, nothing is sorted, merging keeps order
//! - equal rows give equal bytes
//! - rows and queries go through the same functions of `analysis`; a query leaves out the pieces
//!
//! # Modules
//!
//! - `chunk`: text to chunks
//! - `normal`: NFKC with the way back to the original bytes; case folding
//! - `letters`: families of letters with a stemmer of their own
//! - `split`: words and runs; `identifier`: parts of a name
//! - `analysis`: text to terms; `tokens`: the analysis as tokenizers of tantivy
//! - `query`: analysed queries and their limits
//! - `schema`: the three fields; `bundle`: the format above
//! - `directory`: a bundle as tantivy's directory; `build`: writing and merging; `index`: opening
//! - `mask`: sets of rows, window by window; `postings`, `phrase`: occurrences in such windows
//! - `stats`: counts over segments; `score`: BM25; `top`: the best rows without a look at all;
//!   `blocks`: bounds of scores in runs of postings; `row_scores`: their results
//! - `impacts`: postings of sparse models, whose terms have learned weights
//! - `similar`: words of the dictionary that are similar to the query's; `dictionary`: the walk
//!   through it
//! - `vocabulary`: the words that an index holds
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
