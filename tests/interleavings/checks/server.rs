//! The fair queue of requests.

extern crate interleavings as parking_lot;
extern crate interleavings as std;
extern crate interleavings as tokio;
extern crate self as lodestone_types;

#[path = "../../../src/types/src/context.rs"]
mod context;
#[path = "../../../src/server/src/fair_queue.rs"]
mod fair_queue;

mod error {
    use crate::Stopped;

    #[derive(Debug)]
    pub enum Condition {
        Unavailable,
    }

    #[derive(Debug)]
    pub struct ApiError(pub &'static str);

    impl ApiError {
        pub fn new(_: Condition, reason: &'static str, _: &str) -> Self {
            Self(reason)
        }

        pub fn with_retry_after(self, _: u32) -> Self {
            self
        }
    }

    impl From<Stopped> for ApiError {
        fn from(_: Stopped) -> Self {
            Self("stopped")
        }
    }
}

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Waker};
use std::thread;
use std::time::Duration;

pub use context::{RequestContext, Stopped};
use fair_queue::FairQueue;
use interleavings::{Check, explore, is_chosen};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectionId(pub u8);

/// The outcomes of the requests.
#[derive(Debug, Default)]
struct Counts {
    running: AtomicUsize,
    served: AtomicUsize,
    refused: AtomicUsize,
}

/// Runs a request for each owner, some of which leave after polling once. Returns the counts.
fn run(
    turns: &FairQueue<u8>,
    running_max: usize,
    owners: &[u8],
    context: &RequestContext,
) -> Arc<Counts> {
    let counts = Arc::new(Counts::default());
    let threads: Vec<_> = owners
        .iter()
        .copied()
        .map(|owner| {
            let (turns, counts, context) = (turns.clone(), Arc::clone(&counts), context.clone());
            thread::spawn(move || {
                let mut entering = Box::pin(turns.enter(&context, owner));
                let leaves = owner == 9;
                if leaves {
                    let _ = entering.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    return;
                }
                match shuttle::future::block_on(entering) {
                    Ok(turn) => {
                        assert!(counts.running.fetch_add(1, SeqCst) < running_max, "one too many");
                        thread::yield_now();
                        counts.running.fetch_sub(1, SeqCst);
                        counts.served.fetch_add(1, SeqCst);
                        drop(turn);
                    }
                    Err(_) => _ = counts.refused.fetch_add(1, SeqCst),
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let told = format!("{turns:?}");
    assert!(told.contains("running: 0, waiting: 0, ring: []"), "something is left: {told}");
    counts
}

fn everybody_has_a_turn() {
    let counts = run(&FairQueue::new(2, 100), 2, &[1, 1, 2, 3], &RequestContext::default());
    assert_eq!((counts.served.load(SeqCst), counts.refused.load(SeqCst)), (4, 0));
}

fn turns_of_those_who_leave_go_on() {
    let counts = run(&FairQueue::new(1, 100), 1, &[1, 9, 9, 2], &RequestContext::default());
    assert_eq!((counts.served.load(SeqCst), counts.refused.load(SeqCst)), (2, 0));
}

fn a_full_queue_refuses_and_forgets() {
    let counts = run(&FairQueue::new(1, 1), 1, &[1, 1, 9, 2], &RequestContext::default());
    assert_eq!(counts.served.load(SeqCst) + counts.refused.load(SeqCst), 3);
}

fn a_wait_ends_with_the_time_of_its_request() {
    let context = RequestContext::with_limit(Duration::from_secs(1));
    let counts = run(&FairQueue::new(1, 100), 1, &[1, 2, 3], &context);
    assert_eq!(counts.served.load(SeqCst) + counts.refused.load(SeqCst), 3);
}

/// Goal: a hook runs exactly once, whether it is registered before, after or during the
/// cancellation.
fn hooks_run_once() {
    let (context, runs) = (RequestContext::default(), Arc::new(AtomicUsize::new(0)));
    let threads: Vec<_> = (0..2)
        .map(|_| {
            let (context, runs) = (context.clone(), Arc::clone(&runs));
            thread::spawn(move || {
                context.cancel().on_cancel(move || _ = runs.fetch_add(1, SeqCst));
                if is_chosen() {
                    context.cancel().cancel();
                }
            })
        })
        .collect();
    let waiting = context.clone();
    let waiter = thread::spawn(move || assert!(waiting.cancel().wait(Duration::from_secs(60))));
    drop(context.cancel().on_drop());
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    waiter.join().unwrap();
    assert_eq!(runs.load(SeqCst), 2);
}

fn main() -> ExitCode {
    explore(&[
        Check::patient("turns: everybody has one", everybody_has_a_turn),
        Check::patient("turns: those of who leaves go on", turns_of_those_who_leave_go_on),
        Check::patient("turns: a full queue refuses and forgets", a_full_queue_refuses_and_forgets),
        Check::hasty("turns: a wait ends with its time", a_wait_ends_with_the_time_of_its_request),
        Check::patient("cancellation: hooks run once", hooks_run_once),
    ])
}
