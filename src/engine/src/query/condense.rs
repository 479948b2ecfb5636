//! Condenses filters that searches repeat, in the background, so that no single search has to pay
//! for all later ones.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use lodestone_storage::collection::LiveSegment;
use lodestone_storage::segment::flat::RowFilter;

/// Whether a filter is being condensed. One at a time, so that searches keep the other cores; a
/// filter that is turned away is picked up by a later search.
static IS_BUSY: AtomicBool = AtomicBool::new(false);

/// The right to condense; others may condense once it is dropped.
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

/// Starts to condense a segment's filter, if that is due and no other filter is being condensed.
pub(super) fn begin(live: &Arc<LiveSegment>, filter: &Arc<RowFilter<'static>>) {
    let Some(busy) = filter.may_condense().then(Busy::take).flatten() else { return };
    let (live, filter) = (Arc::clone(live), Arc::clone(filter));
    let condense = move || {
        let _busy = busy;
        // Searches report an unreadable segment themselves, and a panic here harms none of them.
        let _ = catch_unwind(AssertUnwindSafe(|| {
            if let Ok(tiers) = live.segment.shared_tiers() {
                filter.condense(&tiers);
            }
        }));
    };
    if let Err(error) = Builder::new().name("condense".to_owned()).spawn(condense) {
        tracing::warn!(%error, "starting a thread to condense a filter failed");
    }
}
