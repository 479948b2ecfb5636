//! Fuzzes every parser of bytes that others have made: mutated inputs, for a given time, each
//! checked against the invariants.
//!
//! ```text
//! seeds (made here, shared) -> mutate by the rules of the format -> read on a small stack
//!   -> no panic, 6 s of CPU time, 256 MiB, and the invariants of the target
//!   -> kept as a seed if it passed new edges (only in builds that count them, see `coverage`)
//! ```
//! A failure names the file with its input. The environment sets the rest:
//!
//! - `LODESTONE_FUZZ_SECONDS`: time for each target, one second unless told otherwise;
//!   `scripts/fuzz` gives ten minutes
//! - `LODESTONE_FUZZ_SEED`: another run; the same seed gives the same inputs
//! - `LODESTONE_FUZZ_REPLAY=target:path`: one input, with what it costs
//! - `LODESTONE_FUZZ_CORPUS`: a directory in which inputs stay from one run to the next
//!
//! Children:
//! - `documents`, `web`: what tenants upload and sites send; `seeds`: first documents
//! - `requests`, `filters`: what clients send; `operations`: the server that gets it
//! - `replies`: what generators, embedding servers and buckets answer; `peer`: one of them
//! - `nodes`: messages between nodes
//! - `stored`: files of collections behind checksums that fit; `forged`: segments among them
//! - `catalogs`: descriptors of tenants, logs; `archives`: of tenants, backups, files of models
//! - `mutations`: changes to inputs; `chance`: random numbers
//! - `runner`: the loop and its report; `contained`: the same in child processes
//! - `invariants`: checks of texts and chunks
//! - `allocation`, `coverage`: memory and edges of an input; `memory`: that of searches and merges

mod allocation;
mod archives;
mod catalogs;
mod chance;
mod contained;
mod coverage;
mod documents;
mod filters;
mod forged;
mod invariants;
mod memory;
mod mutations;
mod nodes;
mod operations;
mod peer;
mod replies;
mod requests;
mod runner;
mod seeds;
mod stored;
mod web;

#[global_allocator]
static ALLOCATOR: allocation::Counting = allocation::Counting;
