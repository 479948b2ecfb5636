//! Searches of large collections by several nodes, each of which searches a share of the segments.
//!
//! ```text
//! segments of the scope -> nodes; segments assigned to no other node are searched here
//!     words          -> counts of each share -> their sums: the word statistics of the search
//!     vector, words  -> best rows of each share, with true scores -> merged with this node's own
//! ```
//! Each node thus only reads, and needs memory for, the vectors and postings of its share. All
//! nodes have all segments on disk, so this node itself searches a share that is not answered in
//! time. Filters, texts and the graph are always evaluated here.
//!
//! Invariant: results equal those of a search without shares. A row's score does not depend on the
//! node that computes it, each share returns its best rows plus those that tie with the last of
//! them, and rows outside the scope and filter are rejected.
//!
//! - `wire`: the messages; `serving`: the side of the node that is asked

mod serving;
#[cfg(test)]
mod tests;
pub mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::thread::{Builder, ScopedJoinHandle, scope};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::nodes::RELEASE;
use crate::query::legs::{self, LegHits, RowAddress, SegmentScope, VectorEffort, best_with_equals};
use crate::query::{Query, QueryError, words};
use lodestone_compute::PreparedQuery;
use lodestone_storage::collection::Snapshot;
use lodestone_storage::segment::flat::Thoroughness;
use lodestone_text::{CorpusStats, SentQuery, TextQuery};
use lodestone_types::{Filter, RequestContext, RowId, SegmentId, SubTenantId};
use wire::{ShareAnswer, ShareStep, ShareTask, SharedRow, TopsTask};

/// Time limit for the answer of a node, after which this node searches the share itself.
const PATIENCE: Duration = Duration::from_secs(1);
/// Segments with fewer than [`ShareNodes::rows_min`] divided by this many rows stay on this node,
/// because searching them costs less than a message.
const SMALL: u64 = 64;

/// The other query nodes, which can search segments for this one.
pub trait ShareNodes: fmt::Debug + Send + Sync {
    /// Number of rows of a scope from which its searches are shared.
    fn rows_min(&self) -> u64;

    /// Assigns each segment, given with its number of rows, to a node; `None` is this node. The
    /// assignment is stable as long as the segments and the usable nodes stay the same.
    fn assign(&self, segments: &[(SegmentId, u64)]) -> Vec<Option<usize>>;

    /// Sends a task to a node and waits; `None` if no answer arrives within the task's time limit.
    fn ask(&self, node: usize, task: &ShareTask) -> Option<ShareAnswer>;
}

/// The parts of one search that other nodes carry out.
#[derive(Debug)]
pub(super) struct Shares<'a> {
    nodes: &'a dyn ShareNodes,
    context: &'a RequestContext,
    shares: Vec<Share>,
    /// Template with the fields that all tasks of the search share.
    task: ShareTask,
    /// Nodes that gave no answer and are not asked again by this search.
    lost: Mutex<BTreeSet<usize>>,
}

/// The segments that one node searches, by their positions in the search.
#[derive(Debug)]
struct Share {
    node: usize,
    segments: Vec<usize>,
}

/// The best rows of each leg, with the scores known so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Tops {
    /// The nearest rows of each vector, plus those that tie with the last of them.
    pub(super) near: Vec<LegHits>,
    pub(super) words: LegHits,
    pub(super) sparse: LegHits,
    /// True scores of rows from other nodes: cosine, words, sparse.
    pub(super) scores: BTreeMap<RowAddress, [Option<f32>; 3]>,
    pub(super) effort: VectorEffort,
}

impl Query {
    /// Sets the other nodes, which search shares of large collections.
    pub(crate) fn with_nodes(self, nodes: Option<Arc<dyn ShareNodes>>) -> Self {
        Self { nodes, ..self }
    }

    /// Assigns the segments of a search to nodes, and marks those of other nodes; `None` if this
    /// node searches all of them.
    pub(super) fn share_out<'a>(
        &'a self,
        context: &'a RequestContext,
        snapshot: &Snapshot,
        (sub_tenant, filter): (&SubTenantId, &Filter),
        segments: &mut [SegmentScope],
    ) -> Option<Shares<'a>> {
        let nodes = self.nodes.as_deref()?;
        let rows_min = nodes.rows_min();
        if segments.iter().map(|segment| segment.scope.rows.len()).sum::<u64>() < rows_min {
            return None;
        }
        let rows = |at: usize| u64::from(segments[at].live.segment.row_count());
        let is_large = |at: &usize| segments[*at].rows > 0 && rows(*at) >= rows_min / SMALL;
        let large: Vec<usize> = (0..segments.len()).filter(is_large).collect();
        let id = |at: usize| segments[at].live.segment.id();
        let with_rows: Vec<_> = large.iter().map(|at| (id(*at), rows(*at))).collect();
        let mut by_node: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, node) in large.into_iter().zip(nodes.assign(&with_rows)) {
            if let Some(node) = node {
                by_node.entry(node).or_default().push(at);
                segments[at].is_elsewhere = true;
            }
        }
        let share = |(node, segments)| Share { node, segments };
        let shares: Vec<Share> = by_node.into_iter().map(share).collect();
        let task = ShareTask {
            release: RELEASE.to_owned(),
            collection: snapshot.manifest.collection,
            version: snapshot.manifest.version,
            sub_tenant: sub_tenant.as_str().to_owned(),
            filter: filter.clone(),
            segments: Vec::new(),
            within_millis: 0,
            step: ShareStep::Counts(SentQuery::default()),
        };
        let lost = Mutex::default();
        (!shares.is_empty()).then_some(Shares { nodes, context, shares, task, lost })
    }
}

/// Word statistics of a query over all segments, including the shares of other nodes.
///
/// # Errors
/// See [`words::corpus_stats`].
pub(super) fn corpus_stats<Q: TextQuery>(
    shares: Option<&Shares<'_>>,
    context: &RequestContext,
    segments: &[SegmentScope],
    query: &Q,
) -> Result<CorpusStats, QueryError> {
    let here = |segments: &[SegmentScope]| words::corpus_stats(context, segments, query);
    let Some(shares) = shares else { return here(segments) };
    let step = ShareStep::Counts(SentQuery::of(query));
    let read = |_: &Share, answer| match answer {
        ShareAnswer::Counts(stats) if stats.is_of(query) => Some(stats),
        _ => None,
    };
    let mut sum = CorpusStats::default();
    for stats in shares.each(&step, segments, read, || here(segments), here)? {
        sum.add(stats.scope, &stats.counts);
    }
    Ok(sum)
}

impl Shares<'_> {
    /// The best rows of all segments: `own` searches the segments of this node, `here` the shares
    /// that were not answered. Client vectors are those of each share, in no order.
    ///
    /// # Errors
    /// Errors of `own` and `here`.
    pub(super) fn tops(
        &self,
        segments: &[SegmentScope],
        task: TopsTask,
        own: impl FnOnce() -> Result<Tops, QueryError>,
        here: impl Fn(&[SegmentScope]) -> Result<Tops, QueryError>,
    ) -> Result<Tops, QueryError> {
        let (k, queries, is_fused) = (task.k, task.vectors.len(), task.has_scores);
        let step = ShareStep::Tops(task);
        let read = |share: &Share, answer| match answer {
            ShareAnswer::Tops(tops) if tops.near.len() == queries => share.read(segments, tops),
            _ => None,
        };
        let mut all = Tops { near: vec![LegHits::new(); queries], ..Tops::default() };
        for tops in self.each(&step, segments, read, own, here)? {
            for (all, hits) in all.near.iter_mut().zip(tops.near) {
                all.extend(hits);
            }
            all.words.extend(tops.words);
            all.sparse.extend(tops.sparse);
            all.scores.extend(tops.scores);
            all.effort.join(tops.effort);
        }
        // Client vectors are ordered by the caller, by their exact scores.
        if is_fused {
            let best = |hits| best_with_equals(segments, hits, k);
            all.near = all.near.into_iter().map(best).collect();
        }
        all.words = best_with_equals(segments, all.words, k);
        all.sparse = best_with_equals(segments, all.sparse, k);
        Ok(all)
    }

    /// Runs one step over all segments: `own` for those of this node and, for each share, its
    /// node's answer, or `here` if that is missing or invalid.
    fn each<T: Send>(
        &self,
        step: &ShareStep,
        segments: &[SegmentScope],
        read: impl Fn(&Share, ShareAnswer) -> Option<T> + Sync,
        own: impl FnOnce() -> Result<T, QueryError>,
        here: impl Fn(&[SegmentScope]) -> Result<T, QueryError>,
    ) -> Result<Vec<T>, QueryError> {
        let ask = |share: &Share| read(share, self.ask(share, step, segments)?);
        let ask = &ask;
        let (own, answers) = scope(|scope| {
            // If no thread can be started, the share is searched here.
            let begin = |share| {
                Builder::new().name("share".to_owned()).spawn_scoped(scope, move || ask(share))
            };
            let under_way: Vec<_> = self.shares.iter().map(|share| begin(share).ok()).collect();
            let own = own();
            let end = |thread: ScopedJoinHandle<'_, Option<T>>| {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            };
            (own, under_way.into_iter().map(|one| one.and_then(end)).collect::<Vec<_>>())
        });
        let mut results = vec![own?];
        let mut missing = Vec::new();
        for (share, answer) in self.shares.iter().zip(answers) {
            match answer {
                Some(answer) => results.push(answer),
                None => {
                    self.lost.lock().insert(share.node);
                    missing.extend(&share.segments);
                }
            }
        }
        if !missing.is_empty() {
            self.context.check()?;
            let rest = legs::marked(segments, |at| !missing.contains(&at));
            results.push(here(&rest)?);
        }
        Ok(results)
    }

    fn ask(
        &self,
        share: &Share,
        step: &ShareStep,
        segments: &[SegmentScope],
    ) -> Option<ShareAnswer> {
        if self.lost.lock().contains(&share.node) {
            return None;
        }
        let left = self.context.deadline().map(|until| until.duration_since(Instant::now()));
        let within = left.map_or(PATIENCE, |left| PATIENCE.min(left / 2));
        let id = |at: &usize| segments[*at].live.segment.id().0;
        let task = ShareTask {
            segments: share.segments.iter().map(id).collect(),
            within_millis: within.as_millis() as u64,
            step: step.clone(),
            ..self.task.clone()
        };
        self.nodes.ask(share.node, &task)
    }
}

impl Share {
    /// Translates the rows of an answer into addresses of the search; `None` if any of them is
    /// outside the task.
    fn read(&self, segments: &[SegmentScope], tops: wire::ShareTops) -> Option<Tops> {
        let address = |(at, row): SharedRow| {
            let segment = *self.segments.get(at)?;
            let scope = &segments[segment];
            let is_inside = match scope.mask() {
                Some(mask) => mask.contains(row),
                None => row < scope.live.segment.row_count(),
            };
            is_inside.then_some(RowAddress { segment, row: RowId(row) })
        };
        let hits = |hits: Vec<(SharedRow, f32)>| -> Option<LegHits> {
            let hit = |(row, score): (SharedRow, f32)| Some((address(row)?, score));
            hits.into_iter().map(hit).collect()
        };
        let scores = tops.scores.into_iter().map(|(row, scores)| Some((address(row)?, scores)));
        let mut effort = VectorEffort { paths: Vec::new(), patience: tops.patience };
        tops.paths.iter().for_each(|path| effort.add_path(*path));
        Some(Tops {
            near: tops.near.into_iter().map(hits).collect::<Option<_>>()?,
            words: hits(tops.words)?,
            sparse: hits(tops.sparse)?,
            scores: scores.collect::<Option<_>>()?,
            effort,
        })
    }
}

impl TopsTask {
    /// A task that finds the nearest rows of vectors, and nothing by words.
    pub(super) fn near(queries: &[PreparedQuery], k: usize, thoroughness: Thoroughness) -> Self {
        let metric = queries.first().map(|query| query.given().0).unwrap_or_default();
        let vectors = queries.iter().map(|query| query.given().1.to_vec()).collect();
        Self { k, metric, vectors, thoroughness, ..Self::default() }
    }
}
