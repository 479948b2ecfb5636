//! Tests the order of service on plain data: nothing waits and no model runs.

use super::*;
use lodestone_types::RequestContext;

fn reply(count: usize) -> Arc<Reply> {
    Reply::new(&RequestContext::default(), count)
}

fn reply_of(tenant: u128, count: usize) -> Arc<Reply> {
    let tenant: CollectionId = format!("{tenant:032x}").parse().expect("an id");
    Reply::new(&RequestContext::default().of_tenant(tenant), count)
}

fn passages(reply: &Arc<Reply>, count: usize, tokens: usize) -> Vec<QueuedText> {
    let passage = |index| QueuedText::new(vec![0; tokens], reply, index);
    (0..count).map(passage).collect()
}

/// Pushes `count` passages of ten tokens.
fn push(lane: &mut LaneQueue, reply: &Arc<Reply>, count: usize) {
    lane.push(reply, passages(reply, count, 10));
}

const POLICY: BatchPolicy = BatchPolicy { batch: 80, share: 20, workers: 2 };

#[test]
fn callers_take_turns_within_the_budget() {
    let (large, small) = (reply(50), reply(2));
    let mut lane = LaneQueue::default();
    push(&mut lane, &large, 50);
    push(&mut lane, &small, 2);
    assert_eq!((lane.tokens(), lane.tokens_of(&small)), (520, 20));

    let batch = lane.take(60);
    let from_small = batch.iter().filter(|p| Arc::ptr_eq(&p.reply, &small)).count();
    assert_eq!((batch.len(), from_small), (6, 2));
    let order: Vec<usize> =
        batch.iter().filter(|p| Arc::ptr_eq(&p.reply, &large)).map(|p| p.index).collect();
    assert_eq!(order, [0, 1, 2, 3]);
    assert_eq!((lane.tokens(), lane.tokens_of(&small)), (460, 0));
}

/// A tenant with 64 calls is served as often as one with a single call, not 64 times as often.
#[test]
fn tenants_take_turns_however_many_calls_they_have() {
    let mut lane = LaneQueue::default();
    let many: Vec<_> = (0..64).map(|_| reply_of(1, 80)).collect();
    many.iter().for_each(|reply| push(&mut lane, reply, 80));
    let single = reply_of(2, 80);
    push(&mut lane, &single, 80);
    let owner = |reply: &Arc<Reply>| lane.tokens_of_owner(reply.owner());
    assert_eq!((owner(&many[0]), owner(&single)), (64 * 800, 800));

    let served: Vec<QueuedText> = (0..80).flat_map(|_| lane.take(20)).collect();
    let of_single = served.iter().filter(|text| Arc::ptr_eq(&text.reply, &single)).count();
    assert_eq!((served.len(), of_single, lane.tokens_of(&single)), (160, 80, 0));
    // Its calls share the tenant's turns.
    let left = many.iter().map(|reply| lane.tokens_of(reply));
    assert!(left.clone().all(|tokens| (780..=790).contains(&tokens)), "{left:?}");
}

/// A query is in the next batch, no matter how many answers wait.
#[test]
fn a_query_goes_before_all_answers_and_documents() {
    let mut lanes = Lanes::default();
    for tenant in 0..64 {
        push(&mut lanes.answer, &reply_of(tenant, 80), 80);
        push(&mut lanes.bulk, &reply_of(tenant, 80), 80);
    }
    for round in 0..100 {
        let query = reply_of(1000, 1);
        push(&mut lanes.query, &query, 1);
        let (lane, batch) = lanes.next(POLICY, 2).expect("work");
        assert_eq!((lane, batch.len()), (Lane::Query, 1), "{round}");
        lanes.ended(lane);
        let (lane, batch) = lanes.next(POLICY, 2).expect("work");
        assert!(lane != Lane::Query && !batch.is_empty());
        lanes.ended(lane);
    }
}

#[test]
fn answers_go_before_documents_and_do_not_starve_them() {
    let mut lanes = Lanes::default();
    push(&mut lanes.answer, &reply(1000), 1000);
    push(&mut lanes.bulk, &reply(100), 100);
    let mut order = Vec::new();
    for _ in 0..10 {
        let (lane, batch) = lanes.next(POLICY, 2).expect("work");
        order.push((lane, batch.len()));
        lanes.ended(lane);
    }
    let (answer, bulk) = ((Lane::Answer, 2), (Lane::Bulk, 8));
    let expected = [answer, answer, answer, answer, bulk, answer, answer, answer, answer, bulk];
    assert_eq!(order, expected);
}

/// Documents pause for queries and answers, answers for queries, queries for nothing.
#[test]
fn a_pause_serves_what_stands_higher() {
    let mut lanes = Lanes::default();
    push(&mut lanes.query, &reply(3), 3);
    push(&mut lanes.answer, &reply(2), 2);
    push(&mut lanes.bulk, &reply(2), 2);
    assert!(lanes.between(Lane::Query, POLICY).is_none());
    let mut served = |lane| lanes.between(lane, POLICY).map(|(lane, batch)| (lane, batch.len()));
    assert_eq!(served(Lane::Answer), Some((Lane::Query, 2)));
    assert_eq!(served(Lane::Bulk), Some((Lane::Query, 1)));
    assert_eq!(served(Lane::Answer), None);
    assert_eq!(served(Lane::Bulk), Some((Lane::Answer, 2)));
    assert_eq!(served(Lane::Bulk), None);
}

#[test]
fn a_passage_above_the_budget_goes_alone() {
    let reply = reply(2);
    let mut lane = LaneQueue::default();
    lane.push(&reply, passages(&reply, 2, 100));
    assert_eq!(lane.take(10).len(), 1);
    assert_eq!(lane.take(10).len(), 1);
    assert!(lane.take(10).is_empty());
    assert_eq!(lane.tokens(), 0);
}

#[test]
fn forgotten_calls_leave_no_tokens_behind() {
    let (first, second, other) = (reply(3), reply(3), reply_of(1, 3));
    let mut lane = LaneQueue::default();
    lane.push(&first, passages(&first, 3, 5));
    lane.push(&second, passages(&second, 3, 7));
    push(&mut lane, &other, 3);
    lane.forget(&first);
    assert_eq!((lane.tokens(), lane.tokens_of_owner(None)), (51, 21));
    lane.forget(&other);
    assert_eq!((lane.tokens(), lane.tokens_of_owner(other.owner())), (21, 0));
    assert_eq!(lane.drain().len(), 1);
    assert_eq!(lane.tokens(), 0);
}
