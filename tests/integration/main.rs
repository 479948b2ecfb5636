//! The contract of API.md, one check a statement, against a server in this process.
//!
//! Each test is named for what it shows; the numbers in comments are those of API.md 7.

mod contract;
mod errors;
mod fetch;
mod gate;
mod idempotency;
mod limits;
mod listings;
mod metadata;
mod replacement;
mod scopes;
mod support;
mod uploads;
