//! Metadata filters: parsing, columns, evaluation to bitmaps.
