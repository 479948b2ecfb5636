//! Every reader against inputs that nobody would write: mutated, for a time, and judged.
//!
//! ```text
//! seeds (made here, shared) -> mutate by the rules of the format -> read on a small stack
//!   -> no panic, 2 s of CPU time, 256 MiB, the invariants of `extract` and of `chunk`
//!   -> kept as a seed where it went where none had gone (only if built to tell, see `coverage`)
//! ```
//! A failure names the file with its input. The environment sets the rest:
//!
//! - `LODESTONE_FUZZ_SECONDS`: time for each target; `scripts/fuzz` gives ten minutes
//! - `LODESTONE_FUZZ_SEED`: another run; the same seed gives the same inputs
//! - `LODESTONE_FUZZ_REPLAY=target:path`: one input, with what it costs
//! - `LODESTONE_FUZZ_CORPUS`: a directory in which inputs stay from one run to the next
//!
//! Children:
//! - `documents`, `web`, `filters`: the targets; `seeds`: where they begin
//! - `mutations`: inputs out of inputs; `chance`: which ones
//! - `runner`: the loop and its report; `contained`: the same in processes that may die
//! - `invariants`: what holds for texts and chunks
//! - `allocation`, `coverage`: what an input costs, and where it goes

mod allocation;
mod chance;
mod contained;
mod coverage;
mod documents;
mod filters;
mod invariants;
mod mutations;
mod runner;
mod seeds;
mod web;

#[global_allocator]
static ALLOCATOR: allocation::Counting = allocation::Counting;
