//! Fuzz tests of every parser of untrusted bytes: mutated inputs, for a given time, each checked
//! against invariants.
//!
//! ```text
//! seeds (made here, shared) -> mutate by the rules of the format -> read on a small stack
//!   -> no panic, 6 s of CPU time, 256 MiB, and the invariants of the target
//!   -> kept as a seed if it reached new edges (only in builds with counters, see `coverage`)
//! ```
//! A failure names the file that holds its input. Environment variables control the runs:
//!
//! - `LODESTONE_FUZZ_SECONDS`: time for each target, by default one second; `scripts/fuzz` sets ten
//!   minutes
//! - `LODESTONE_FUZZ_SEED`: another run; equal seeds give equal inputs
//! - `LODESTONE_FUZZ_REPLAY=target:path`: runs a single input and prints its cost
//! - `LODESTONE_FUZZ_CORPUS`: a directory that keeps inputs from one run to the next
//!
//! Modules:
//! - `documents`, `web`: uploads of tenants and responses of web sites; `seeds`: initial documents
//! - `requests`, `filters`: requests of clients; `operations`: the server that receives them
//! - `replies`: responses of generators, embedding servers and buckets; `peer`: a server that sends
//!   them
//! - `nodes`: messages between nodes
//! - `stored`: files of collections with valid checksums; `forged`: segments among them
//! - `catalogs`: tenant descriptors and catalog logs; `archives`: tenant archives, backups and
//!   model files
//! - `mutations`: changes to inputs; `chance`: random numbers
//! - `runner`: the loop and its report; `contained`: the loop in child processes
//! - `invariants`: checks of texts and chunks
//! - `allocation`, `coverage`: memory and edges of an input; `memory`: memory of searches and
//!   merges

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
