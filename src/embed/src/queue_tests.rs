//! Tests the queue over a model that blocks until it gets orders, so that no test depends on time.

use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;

use super::*;

/// Command to a batch in progress.
enum Order {
    LookAtQueries,
    Finish,
    Fail,
    Panic,
}

/// Reports each batch as the first id of its passages, then follows orders.
#[derive(Debug)]
struct Gated {
    entered: Sender<Vec<u32>>,
    orders: Mutex<Receiver<Order>>,
    policy: Option<BatchPolicy>,
}

impl Forward for Gated {
    fn policy(&self, usual: BatchPolicy) -> BatchPolicy {
        self.policy.unwrap_or(usual)
    }

    fn forward(
        &self,
        batch: &[&[u32]],
        pause: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<f32>>, EmbedError> {
        let tags: Vec<u32> = batch.iter().map(|ids| ids[0]).collect();
        self.entered.send(tags.clone()).expect("the test listens");
        loop {
            let order = self.orders.lock().recv().expect("the test gives an order");
            match order {
                Order::LookAtQueries => pause(),
                Order::Finish => return Ok(tags.iter().map(|tag| vec![*tag as f32]).collect()),
                Order::Fail => return Err(EmbedError::Compute { problem: "told to".into() }),
                Order::Panic => panic!("told to"),
            }
        }
    }
}

/// Fields are dropped in this order: after a failed assertion the orders must be closed before the
/// queue joins its workers, or the test would hang instead of failing.
struct Fixture {
    orders: Sender<Order>,
    entered: Receiver<Vec<u32>>,
    queue: Arc<Queue>,
}

/// Passages have ten tokens; a batch holds one of them, a bulk call may have two waiting.
const BOUNDS: QueueBounds = QueueBounds { batch: 10, call: 20, lane: 1000, query: 40 };
/// A policy under which a batch of queries or answers holds one passage too.
const SMALL: BatchPolicy = BatchPolicy { batch: 10, share: 10, workers: 1 };

fn bench(workers: usize) -> Fixture {
    bench_with_policy(workers, BOUNDS, Some(BatchPolicy { workers, ..SMALL }))
}

fn bench_with_policy(workers: usize, bounds: QueueBounds, policy: Option<BatchPolicy>) -> Fixture {
    let (entered_by, entered) = mpsc::channel();
    let (orders, orders_for) = mpsc::channel();
    let gated = Gated { entered: entered_by, orders: Mutex::new(orders_for), policy };
    let queue = Arc::new(Queue::start(Arc::new(gated), workers, bounds));
    Fixture { orders, entered, queue }
}

impl Fixture {
    /// Embeds one ten-token passage per tag, each pushed separately, on its own thread.
    fn call(&self, lane: Lane, tags: &'static [u32]) -> JoinHandle<Result<Vec<f32>, EmbedError>> {
        self.call_within(&RequestContext::default(), lane, tags)
    }

    fn call_within(
        &self,
        context: &RequestContext,
        lane: Lane,
        tags: &'static [u32],
    ) -> JoinHandle<Result<Vec<f32>, EmbedError>> {
        let (queue, context) = (Arc::clone(&self.queue), context.clone());
        thread::spawn(move || {
            let reply = queue.call(&context, tags.len());
            let push = |(index, tag): (usize, &u32)| {
                let passage = QueuedText::new(vec![*tag; 10], &reply, index);
                queue.push(lane, &reply, vec![passage])
            };
            let pushed = tags.iter().enumerate().try_for_each(push);
            let vectors = pushed.and_then(|()| reply.wait());
            let vectors = vectors.inspect_err(|_| queue.abandon(&reply))?;
            Ok(vectors.into_iter().flatten().collect())
        })
    }

    /// Waits until the waiting tokens of queries and documents satisfy `holds`.
    fn wait_until(&self, holds: impl Fn((usize, usize)) -> bool) {
        while !holds((self.queue.waiting(Lane::Query), self.queue.waiting(Lane::Bulk))) {
            thread::yield_now();
        }
    }

    fn wait_for(&self, lane: Lane, tokens: usize) {
        while self.queue.waiting(lane) != tokens {
            thread::yield_now();
        }
    }

    fn order(&self, order: Order) {
        self.orders.send(order).expect("a worker listens");
    }

    fn next(&self) -> Vec<u32> {
        self.entered.recv().expect("a worker runs")
    }
}

#[test]
fn a_query_goes_before_waiting_bulk() {
    let bench = bench(1);
    let bulk = bench.call(Lane::Bulk, &[1, 2, 3]);
    assert_eq!(bench.next(), [1]);
    let query = bench.call(Lane::Query, &[9]);
    bench.wait_until(|(query, bulk)| query == 10 && bulk == 20);
    for expected in [9, 2, 3] {
        bench.order(Order::Finish);
        assert_eq!(bench.next(), [expected]);
    }
    bench.order(Order::Finish);
    assert_eq!(query.join().expect("no panic"), Ok(vec![9.0]));
    assert_eq!(bulk.join().expect("no panic"), Ok(vec![1.0, 2.0, 3.0]));
    let stats = bench.queue.stats();
    assert_eq!((stats.passages, stats.tokens), (4, 40));
}

/// As with a device: one worker computes bulk batches, which are larger; the others serve queries.
#[test]
fn a_policy_bars_workers_from_bulk_but_not_from_queries() {
    let policy = BatchPolicy { batch: 20, share: 20, workers: 1 };
    let bench = bench_with_policy(3, BOUNDS, Some(policy));
    let bulk = bench.call(Lane::Bulk, &[1, 2, 3, 4]);
    let first = bench.next();
    bench.wait_until(|(_, bulk)| bulk == 20);
    let query = bench.call(Lane::Query, &[9]);
    assert_eq!(bench.next(), [9]);
    bench.order(Order::Finish);
    bench.order(Order::Finish);
    let second = bench.next();
    assert_eq!(second.len(), 2);
    bench.order(Order::Finish);
    if first.len() + second.len() < 4 {
        assert_eq!(bench.next(), [4]);
        bench.order(Order::Finish);
    }
    assert_eq!(query.join().expect("no panic"), Ok(vec![9.0]));
    assert_eq!(bulk.join().expect("no panic"), Ok(vec![1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn a_query_is_answered_in_the_middle_of_a_bulk_batch() {
    let bench = bench(1);
    let bulk = bench.call(Lane::Bulk, &[1]);
    assert_eq!(bench.next(), [1]);
    let query = bench.call(Lane::Query, &[9]);
    bench.wait_until(|(query, _)| query == 10);
    bench.order(Order::LookAtQueries);
    assert_eq!(bench.next(), [9]);
    // A batch of queries does not look for more queries in its pauses.
    bench.order(Order::LookAtQueries);
    bench.order(Order::Finish);
    assert_eq!(query.join().expect("no panic"), Ok(vec![9.0]));
    assert!(!bulk.is_finished());
    bench.order(Order::Finish);
    assert_eq!(bulk.join().expect("no panic"), Ok(vec![1.0]));
}

/// The answers of a tenant and its own queries wait behind another tenant's query.
#[test]
fn a_query_is_answered_in_the_middle_of_an_answer() {
    let bench = bench(1);
    let answer = bench.call(Lane::Answer, &[1, 2, 3]);
    assert_eq!(bench.next(), [1]);
    let query = bench.call(Lane::Query, &[9]);
    bench.wait_for(Lane::Query, 10);
    bench.order(Order::LookAtQueries);
    assert_eq!(bench.next(), [9]);
    bench.order(Order::Finish);
    assert_eq!(query.join().expect("no panic"), Ok(vec![9.0]));
    for expected in [2, 3] {
        bench.order(Order::Finish);
        assert_eq!(bench.next(), [expected]);
    }
    bench.order(Order::Finish);
    assert_eq!(answer.join().expect("no panic"), Ok(vec![1.0, 2.0, 3.0]));
}

/// The texts of a call leave when its client disconnects, and a push waiting for space returns.
#[test]
fn a_cancelled_call_leaves_the_queue() {
    let bench = bench(1);
    for lane in [Lane::Answer, Lane::Bulk] {
        let context = RequestContext::default();
        let call = bench.call_within(&context, lane, &[1, 2, 3, 4, 5]);
        assert_eq!(bench.next(), [1]);
        bench.wait_for(lane, 20);
        context.cancel().cancel();
        assert_eq!(call.join().expect("no panic"), Err(Stopped::ClientGone.into()));
        assert_eq!(bench.queue.waiting(lane), 0);
        let late = bench.call_within(&context, Lane::Query, &[6]).join().expect("no panic");
        assert_eq!(late, Err(Stopped::ClientGone.into()));
        // The batch in progress is completed, and nothing else of the call follows.
        let next = bench.call(Lane::Query, &[7]);
        bench.wait_for(Lane::Query, 10);
        bench.order(Order::Finish);
        assert_eq!(bench.next(), [7]);
        bench.order(Order::Finish);
        assert_eq!(next.join().expect("no panic"), Ok(vec![7.0]));
    }
}

/// A request waits for the model until its deadline, in the queue as well as in a blocked push.
#[test]
fn a_call_ends_with_the_time_of_its_request() {
    let bench = bench(1);
    let running = bench.call(Lane::Query, &[1]);
    assert_eq!(bench.next(), [1]);
    let limit = Duration::from_millis(20);
    for (lane, tags) in [(Lane::Query, &[2][..]), (Lane::Answer, &[3, 4, 5, 6])] {
        let call = bench.call_within(&RequestContext::with_limit(limit), lane, tags);
        let exceeded = Stopped::DeadlineExceeded { limit };
        assert_eq!(call.join().expect("no panic"), Err(exceeded.into()));
        assert_eq!(bench.queue.waiting(lane), 0);
    }
    bench.order(Order::Finish);
    assert_eq!(running.join().expect("no panic"), Ok(vec![1.0]));
    assert_eq!(bench.queue.stats().passages, 1);
}

#[test]
fn a_bulk_call_blocks_at_its_bound_and_another_still_gets_in() {
    let bench = bench(1);
    let large = bench.call(Lane::Bulk, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(bench.next(), [1]);
    bench.wait_until(|(_, bulk)| bulk == 20);
    let small = bench.call(Lane::Bulk, &[70]);
    bench.wait_until(|(_, bulk)| bulk == 30);
    let mut order = vec![1];
    for _ in 0..6 {
        for _ in 0..1_000 {
            assert!(bench.queue.waiting(Lane::Bulk) <= 30);
            thread::yield_now();
        }
        bench.order(Order::Finish);
        order.extend(bench.next());
    }
    bench.order(Order::Finish);
    assert_eq!(order, [1, 2, 70, 3, 4, 5, 6]);
    assert_eq!(small.join().expect("no panic"), Ok(vec![70.0]));
    assert_eq!(large.join().expect("no panic").expect("vectors").len(), 6);
}

#[test]
fn queries_are_refused_at_their_bound() {
    let bench = bench(1);
    let running = bench.call(Lane::Query, &[1]);
    assert_eq!(bench.next(), [1]);
    let waiting = bench.call(Lane::Query, &[2, 3, 4, 5]);
    bench.wait_until(|(query, _)| query == 40);
    let refused = bench.call(Lane::Query, &[6]).join().expect("no panic");
    assert_eq!(refused, Err(EmbedError::Overloaded { waiting: 50, max: 40 }));
    // Another tenant is not refused, and is served before the rest.
    let tenant = "7".repeat(32).parse().expect("an id");
    let other = RequestContext::default().of_tenant(tenant);
    let other = bench.call_within(&other, Lane::Query, &[7]);
    bench.wait_for(Lane::Query, 50);
    for expected in [2, 7, 3, 4, 5] {
        bench.order(Order::Finish);
        assert_eq!(bench.next(), [expected]);
    }
    bench.order(Order::Finish);
    assert_eq!(other.join().expect("no panic"), Ok(vec![7.0]));
    assert_eq!(running.join().expect("no panic"), Ok(vec![1.0]));
    assert_eq!(waiting.join().expect("no panic").expect("vectors").len(), 4);
}

#[test]
fn a_failed_or_panicked_batch_ends_its_call_only() {
    let bench = bench(1);
    for order in [Order::Panic, Order::Fail] {
        let is_panic = matches!(order, Order::Panic);
        let failing = bench.call(Lane::Bulk, &[1, 2, 3]);
        assert_eq!(bench.next(), [1]);
        bench.wait_until(|(_, bulk)| bulk == 20);
        bench.order(order);
        let error = failing.join().expect("the panic stays inside").expect_err("a failure");
        assert_eq!(matches!(error, EmbedError::Panicked { .. }), is_panic, "{error}");
        assert_eq!(bench.queue.waiting(Lane::Bulk), 0, "the rest of the call is dropped");
        let next = bench.call(Lane::Bulk, &[8]);
        assert_eq!(bench.next(), [8]);
        bench.order(Order::Finish);
        assert_eq!(next.join().expect("no panic"), Ok(vec![8.0]));
    }
}

#[test]
fn closing_fails_what_waits_and_finishes_what_runs() {
    let bench = bench(1);
    let running = bench.call(Lane::Query, &[1]);
    assert_eq!(bench.next(), [1]);
    // Two passages wait; the third blocks in its push.
    let waiting = bench.call(Lane::Bulk, &[2, 3, 4]);
    bench.wait_until(|(_, bulk)| bulk == 20);
    bench.queue.close();
    assert_eq!(waiting.join().expect("no panic"), Err(EmbedError::Closed));
    let late = bench.call(Lane::Query, &[5]).join().expect("no panic");
    assert_eq!(late, Err(EmbedError::Closed));
    bench.order(Order::Finish);
    assert_eq!(running.join().expect("no panic"), Ok(vec![1.0]));
    bench.queue.close();
}

#[test]
fn what_waits_is_shared_out_over_idle_workers() {
    let bounds = QueueBounds { batch: 10_000, call: 10_000, lane: 10_000, query: 10_000 };
    let bench = bench_with_policy(2, bounds, None);
    let reply = bench.queue.call(&RequestContext::default(), 8);
    let passage = |index| QueuedText::new(vec![0; 100], &reply, index);
    bench.queue.push(Lane::Bulk, &reply, (0..8).map(passage).collect()).expect("accepted");
    assert_eq!([bench.next().len(), bench.next().len()], [4, 4]);
    bench.order(Order::Finish);
    bench.order(Order::Finish);
    assert_eq!(reply.wait().expect("vectors").len(), 8);
}
