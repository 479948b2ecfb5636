//! Pure ranking arithmetic: fusion and recency.
