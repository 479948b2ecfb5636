//! Full text: analysis, row-aligned tantivy index, BM25.
