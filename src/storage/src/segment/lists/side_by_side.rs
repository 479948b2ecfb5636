//! Probing searches of several queries, list by list.
//!
//! A search never ends before it has passed `patience` lists in vain, so it is certain to visit
//! that many more than it has passed already. These visits of all searches are made in the order of
//! the lists: T0 of a list is read from memory once for all searches that visit it.

use crate::segment::lists::probe::{Probed, Search, Seen};
use crate::segment::lists::{Effort, Lists, NearRows, probe};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{PreparedQuery, RankKey};

/// Lists that a search visits by promise before it takes part: they give it a threshold, without
/// which it would look at nearly every row of T1.
const LISTS_ALONE: usize = 16;

/// As [`probe::probe`] for several queries; `rows` are those of each. A search may visit some lists
/// fewer or more than alone: what counts as a better row is judged after each round of visits.
pub fn probe_side_by_side<R: NearRows>(
    lists: &Lists<'_>,
    rotation: &Rotation,
    queries: &[PreparedQuery],
    k: usize,
    (effort, patience): (Effort, usize),
    rows: impl Fn(usize) -> R,
) -> Vec<Probed> {
    let begin = |(at, query)| {
        let search = Search::new(lists, rotation, query, k, effort, rows(at));
        Course::begin(search, patience)
    };
    let mut courses: Vec<Course<'_, R>> = queries.iter().enumerate().map(begin).collect();
    let mut visits = Vec::new();
    loop {
        visits.clear();
        for (number, course) in courses.iter_mut().enumerate() {
            course.plan(|list, at| visits.push((list, number, at)));
        }
        if visits.is_empty() {
            return courses.into_iter().map(|course| course.search.finish()).collect();
        }
        visits.sort_unstable();
        for (position, (list, number, at)) in visits.iter().enumerate() {
            let next = visits.get(position + 1).map(|(next, ..)| *next);
            courses[*number].visit(*at, next.filter(|next| next != list));
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
    fn begin(search: Search<'a, R>, patience: usize) -> Self {
        let patience = patience.max(1);
        let known = search.nearest_lists(probe::lists_at_once(patience));
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
        let alone = LISTS_ALONE.min(patience).min(course.order.len());
        course.planned = 0..alone;
        course.next = alone;
        (0..alone).for_each(|at| {
            let next = course.order.get(at + 1).map(|next| next.list);
            course.visit(at, next);
        });
        course.settle();
        course
    }

    /// Names the visits that are certain to be made.
    fn plan(&mut self, mut visit: impl FnMut(usize, usize)) {
        if !self.is_done && self.next == self.order.len() {
            self.order_more();
        }
        let count = match (self.is_done, self.search.is_full()) {
            (true, _) => 0,
            (false, true) => self.patience - self.in_vain,
            // Without enough rows a search goes on, whatever it finds.
            (false, false) => self.patience,
        };
        self.planned = self.next..(self.next + count).min(self.order.len());
        self.next = self.planned.end;
        self.planned.clone().for_each(|at| visit(self.order[at].list, at));
    }

    fn order_more(&mut self) {
        let search = &self.search;
        let known = &mut self.known;
        let rest = self.rest.get_or_insert_with(|| search.lists_without(std::mem::take(known)));
        let next = probe::take_nearest(rest, probe::lists_at_once(self.patience));
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
        self.is_done |= self.in_vain >= self.patience && self.search.is_full();
    }
}
