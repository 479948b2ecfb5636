//! Filters that searches repeat, condensed in the background: the search that would have to wait
//! for it would pay for all others.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use lodestone_storage::collection::LiveSegment;
use lodestone_storage::segment::flat::RowFilter;

/// Whether a filter is being condensed: one at a time, so that searches keep the other cores. What
/// finds it so is taken up by a later search.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// The only thread that condenses; others may when this is dropped.
struct Busy;

impl Busy {
    fn take() -> Option<Self> {
        (!IS_BUSY.swap(true, Ordering::AcqRel)).then_some(Self)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        IS_BUSY.store(false, Ordering::Release);
    }
}

/// Begins to condense the filter of a segment, if it is to be and nothing else is being condensed.
pub(super) fn begin(live: &Arc<LiveSegment>, filter: &Arc<RowFilter<'static>>) {
    let Some(busy) = filter.may_condense().then(Busy::take).flatten() else { return };
    let (live, filter) = (Arc::clone(live), Arc::clone(filter));
    let condense = move || {
        let _busy = busy;
        // A segment that cannot be read tells the searches so, and a panic here harms none.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if let Ok(tiers) = live.segment.shared_tiers() {
                filter.condense(&tiers);
            }
        }));
    };
    if let Err(error) = Builder::new().name("condense".to_owned()).spawn(condense) {
        tracing::warn!(%error, "no thread condenses a filter");
    }
}
