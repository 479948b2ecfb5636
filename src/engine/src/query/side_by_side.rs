//! Runs the segments of a search, and its legs, in parallel on a bounded number of threads.
//!
//! The request's own thread does the work. Helper threads join it while some are free: as many as
//! there are other cores, shared by all requests. A single search thus uses the whole machine, and
//! concurrent ones take no threads from each other.

use std::panic::resume_unwind;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, available_parallelism, scope};

use parking_lot::Mutex;
use tracing::Span;

/// Number of rows that justifies a helper thread, which takes about 30 microseconds to start.
const ROWS_A_HELPER: u64 = 50_000;

static HELPERS: LazyLock<Helpers> =
    LazyLock::new(|| Helpers::new(available_parallelism().map_or(0, |cores| cores.get() - 1)));

/// Runs `work` on each item, with as many helpers as `rows` justify. Results are in the order of
/// the items.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    rows: u64,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let wanted = usize::try_from(rows / ROWS_A_HELPER).unwrap_or(usize::MAX);
    match wanted.min(items.len().saturating_sub(1)) {
        0 => items.iter().map(work).collect(),
        wanted => HELPERS.run(items, wanted, work),
    }
}

/// Runs `waits`, which mostly waits for the model, on a helper thread while this thread runs
/// `works`.
pub(super) fn meanwhile<A: Send, B>(
    waits: impl FnOnce() -> A + Send,
    works: impl FnOnce() -> B,
) -> (A, B) {
    let waits = Mutex::new(Some(waits));
    let span = Span::current();
    let run = || {
        let waits = waits.lock().take().expect("it runs once");
        span.in_scope(waits)
    };
    scope(|scope| {
        // If no thread can be started, one runs after the other.
        let helper = Builder::new().name("search".to_owned()).spawn_scoped(scope, run).ok();
        let worked = works();
        let waited = match helper {
            Some(helper) => helper.join().unwrap_or_else(|panic| resume_unwind(panic)),
            None => run(),
        };
        (waited, worked)
    })
}

/// The helper threads that may run in addition to those of requests.
struct Helpers {
    free: AtomicUsize,
}

/// Helpers taken by a search; returned on drop.
struct Taken<'a> {
    free: &'a AtomicUsize,
    count: usize,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.free.fetch_add(self.count, Ordering::SeqCst);
    }
}

impl Helpers {
    fn new(count: usize) -> Self {
        Self { free: AtomicUsize::new(count) }
    }

    /// Takes as many helpers as are free, up to `wanted`.
    fn take(&self, wanted: usize) -> Taken<'_> {
        let rest = |free: usize| Some(free - free.min(wanted));
        let before = self.free.fetch_update(Ordering::SeqCst, Ordering::SeqCst, rest);
        Taken { free: &self.free, count: before.map_or(0, |free| free.min(wanted)) }
    }

    fn run<T: Sync, R: Send>(
        &self,
        items: &[T],
        wanted: usize,
        work: impl Fn(&T) -> R + Sync,
    ) -> Vec<R> {
        let taken = self.take(wanted);
        let next = AtomicUsize::new(0);
        let run = || {
            let mut done = Vec::new();
            while let Some((at, item)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, items.get(at)?)))
            {
                done.push((at, work(item)));
            }
            done
        };
        let mut done = scope(|scope| {
            // If a thread cannot be started, there is one helper less.
            let start = |_| Builder::new().name("search".to_owned()).spawn_scoped(scope, run).ok();
            let helpers: Vec<_> = (0..taken.count).filter_map(start).collect();
            let mut done = run();
            for helper in helpers {
                done.extend(helper.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            done
        });
        done.sort_unstable_by_key(|(at, _)| *at);
        done.into_iter().map(|(_, result)| result).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;

    use super::*;

    /// Goal: two segments are searched at the same time. Method: neither continues before the other
    /// has begun.
    #[test]
    fn two_items_are_worked_on_at_once() {
        let both = Barrier::new(2);
        let results = Helpers::new(7).run(&[10, 20], 1, |item| {
            both.wait();
            item + 1
        });
        assert_eq!(results, [11, 21]);
    }

    #[test]
    fn work_goes_on_while_something_is_waited_for() {
        let both = Barrier::new(2);
        let meet = |value| {
            both.wait();
            value
        };
        assert_eq!(meanwhile(|| meet(1), || meet(2)), (1, 2));
        let fails = || meanwhile(|| panic!("the model"), || 2);
        assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
    }

    #[test]
    fn threads_are_bounded_over_all_searches_and_results_keep_their_order() {
        let helpers = Helpers::new(2);
        let (active, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let items: Vec<usize> = (0..200).collect();
        let search = || {
            let results = helpers.run(&items, 199, |item| {
                most.fetch_max(active.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                active.fetch_sub(1, Ordering::SeqCst);
                2 * item
            });
            assert!(results.iter().zip(&items).all(|(result, item)| *result == 2 * item));
        };
        scope(|scope| (0..3).for_each(|_| drop(scope.spawn(search))));
        assert!(most.into_inner() <= 3 + 2, "three searches and two helpers");
        assert_eq!(helpers.free.into_inner(), 2);
    }

    #[test]
    fn helpers_come_back_after_a_panic() {
        let helpers = Helpers::new(3);
        let fails = || helpers.run(&[1, 2, 3, 4], 3, |item| assert!(*item < 3));
        assert!(catch_unwind(AssertUnwindSafe(fails)).is_err());
        assert_eq!(helpers.free.load(Ordering::SeqCst), 3);
        assert!(helpers.run(&[] as &[u8], 3, |item| *item).is_empty());
    }
}
