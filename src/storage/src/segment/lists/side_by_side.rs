//! Probing searches of several queries, list by list.
//!
//! A search ends where it has passed its patience of lists in vain, so it is certain to visit those
//! up to there. These visits of all searches are made in the order of the lists: T0 of a list is
//! read from memory once for all searches that visit it.

use crate::segment::lists::nearest::{lists_at_once, nearest, take_nearest};
use crate::segment::lists::probe::{Probed, Search, Seen};
use crate::segment::lists::{Effort, Lists, NearRows};
use lodestone_compute::one_bit::OneBitQuery;
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{PreparedQuery, RankKey};

/// Lists that a search visits by promise before it takes part: they give it a threshold, without
/// which it would look at nearly every row of T1.
const LISTS_ALONE: usize = 4;
/// Searches that choose their lists together: the points come from memory once for all of them, and
/// their tables stay in the processor's second cache until each has visited its first lists.
const BEGUN_TOGETHER: usize = 16;

/// As [`super::probe()`] for several queries; `rows` are those of each. A search may visit some
/// lists fewer or more than alone: what counts as a better row is judged after each round.
pub fn probe_side_by_side<R: NearRows>(
    lists: &Lists<'_>,
    rotation: &Rotation,
    queries: &[PreparedQuery],
    k: usize,
    (effort, patience): (Effort, usize),
    rows: impl Fn(usize) -> R,
) -> Vec<Probed> {
    let mut courses: Vec<Course<'_, R>> = Vec::with_capacity(queries.len());
    for some in queries.chunks(BEGUN_TOGETHER) {
        let number = courses.len();
        let begin = |(at, query)| Search::new(lists, rotation, query, k, effort, rows(number + at));
        let searches: Vec<Search<'_, R>> = some.iter().enumerate().map(begin).collect();
        let tables: Vec<&OneBitQuery> = searches.iter().map(|search| &search.one_bit).collect();
        let known = nearest(lists, &tables, lists_at_once(lists, patience));
        let begun = searches.into_iter().zip(known);
        courses.extend(begun.map(|(search, known)| Course::begin(search, known, patience)));
    }
    let (mut visits, mut order) = (Vec::new(), Vec::new());
    loop {
        visits.clear();
        order.clear();
        for (number, course) in courses.iter_mut().enumerate() {
            course.plan(|list, at| {
                order.push((list as u64) << 32 | visits.len() as u64);
                visits.push((list, number, at));
            });
        }
        if visits.is_empty() {
            return courses.into_iter().map(|course| course.search.finish()).collect();
        }
        order.sort_unstable();
        let visit = |place: &u64| visits[*place as u32 as usize];
        for (position, (list, number, at)) in order.iter().map(visit).enumerate() {
            let next = order.get(position + 1).map(visit);
            if let Some((_, next, _)) = next {
                courses[next].search.prefetch();
            }
            let next = next.map(|(next, ..)| next).filter(|next| *next != list);
            courses[number].visit(at, next);
        }
        courses.iter_mut().for_each(Course::settle);
    }
}

/// One search and how far it has come.
struct Course<'a, R> {
    search: Search<'a, R>,
    patience: usize,
    /// Lists by promise, those before `next` visited.
    order: Vec<Seen>,
    next: usize,
    /// Lists that are not in `order` yet, once they are known.
    rest: Option<Vec<RankKey>>,
    known: Vec<RankKey>,
    in_vain: usize,
    is_done: bool,
    /// Of this round: positions in `order` with the best new row there.
    news: Vec<(usize, f32)>,
    planned: std::ops::Range<usize>,
}

impl<'a, R: NearRows> Course<'a, R> {
    fn begin(search: Search<'a, R>, known: Vec<RankKey>, patience: usize) -> Self {
        let patience = patience.max(1);
        let order = search.by_promise(&known);
        let mut course = Self {
            search,
            patience,
            order,
            next: 0,
            rest: None,
            known,
            in_vain: 0,
            is_done: false,
            news: Vec::new(),
            planned: 0..0,
        };
        while course.next < LISTS_ALONE.min(course.order.len()) && !course.is_done {
            course.visit_alone();
        }
        course
    }

    /// Visits the next list, unless the search ends before it.
    fn visit_alone(&mut self) {
        let seen = &self.order[self.next];
        if self.search.ends_before(seen, self.in_vain, self.patience) {
            self.is_done = true;
            return;
        }
        self.next += 1;
        let ahead = self.order.get(self.next).map(|ahead| ahead.list);
        self.in_vain = if self.search.visit(seen, ahead) { 0 } else { self.in_vain + 1 };
    }

    /// Names the visits that are certain to be made.
    fn plan(&mut self, mut visit: impl FnMut(usize, usize)) {
        if !self.is_done && self.next == self.order.len() {
            self.order_more();
        }
        let goes_on = |(at, seen): &(usize, &Seen)| {
            !self.search.ends_before(seen, self.in_vain + at, self.patience)
        };
        let coming = self.order[self.next..].iter().take(self.patience).enumerate();
        let count = if self.is_done { 0 } else { coming.take_while(goes_on).count() };
        self.is_done = count == 0;
        self.planned = self.next..self.next + count;
        self.next = self.planned.end;
        self.planned.clone().for_each(|at| visit(self.order[at].list, at));
    }

    fn order_more(&mut self) {
        let search = &self.search;
        let known = &mut self.known;
        let rest = self.rest.get_or_insert_with(|| search.lists_without(std::mem::take(known)));
        let next = take_nearest(rest, lists_at_once(search.lists, self.patience));
        self.order = search.by_promise(&next);
        self.next = 0;
        self.is_done = self.order.is_empty();
    }

    fn visit(&mut self, at: usize, next: Option<usize>) {
        self.search.best_news = f32::NEG_INFINITY;
        if self.search.visit(&self.order[at], next) {
            self.news.push((at, self.search.best_news));
        }
    }

    /// Judges a round: the last list of which a row is among the best now ends the wait.
    fn settle(&mut self) {
        let threshold = self.search.threshold();
        let still = self.news.iter().filter(|(_, best)| *best >= threshold).map(|(at, _)| *at);
        match still.max() {
            Some(last) => self.in_vain = self.planned.end - 1 - last,
            None => self.in_vain += self.planned.len(),
        }
        self.news.clear();
    }
}
