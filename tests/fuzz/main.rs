//! Fuzzes every reader: mutated inputs, for a given time, each checked against the invariants.
//!
//! ```text
//! seeds (made here, shared) -> mutate by the rules of the format -> read on a small stack
//!   -> no panic, 6 s of CPU time, 256 MiB, the invariants of `extract` and of `chunk`
//!   -> kept as a seed if it passed new edges (only in builds that count them, see `coverage`)
//! ```
//! A failure names the file with its input. The environment sets the rest:
//!
//! - `LODESTONE_FUZZ_SECONDS`: time for each target; `scripts/fuzz` gives ten minutes
//! - `LODESTONE_FUZZ_SEED`: another run; the same seed gives the same inputs
//! - `LODESTONE_FUZZ_REPLAY=target:path`: one input, with what it costs
//! - `LODESTONE_FUZZ_CORPUS`: a directory in which inputs stay from one run to the next
//!
//! Children:
//! - `documents`, `web`, `filters`: the targets; `seeds`: their first inputs
//! - `mutations`: changes to inputs; `chance`: random numbers
//! - `runner`: the loop and its report; `contained`: the same in child processes
//! - `invariants`: checks of texts and chunks
//! - `allocation`, `coverage`: memory and edges of an input; `memory`: that of searches and merges

mod allocation;
mod chance;
mod contained;
mod coverage;
mod documents;
mod filters;
mod invariants;
mod memory;
mod mutations;
mod runner;
mod seeds;
mod web;

#[global_allocator]
static ALLOCATOR: allocation::Counting = allocation::Counting;
