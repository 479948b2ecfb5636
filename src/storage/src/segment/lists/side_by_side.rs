//! Probing searches for several queries, list by list.
//!
//! A search stops once it has passed its patience of lists in vain, so it is certain to visit the
//! lists up to that point. All searches make these visits in the order of the lists: T0 of a list
//! is read from memory once for all the searches that visit it.

use crate::segment::lists::nearest::{all_but, lists_at_once, most_promising, take_nearest};
use crate::segment::lists::probe::{Probed, Search, Seen};
use crate::segment::lists::{Effort, Lists, NearRows};
use lodestone_compute::rotation::Rotation;
use lodestone_compute::{PreparedQuery, RankKey};

/// Like [`super::probe()`] for several queries; `rows` returns the rows as seen by the query of
/// that number. A search may visit a few lists fewer or more than on its own, because better rows
/// are judged only after each round.
pub fn probe_side_by_side<R: NearRows>(
    lists: &Lists<'_>,
    rotation: &Rotation,
    queries: &[PreparedQuery],
    k: usize,
    (effort, patience): (Effort, usize),
    rows: impl Fn(usize) -> R,
) -> Vec<Probed> {
    let mut promising = most_promising(lists, queries, patience).map(Vec::into_iter);
    let begin = |(at, query)| {
        let known = promising.as_mut().and_then(Iterator::next);
        // The first to be visited.
        let first = known.iter().flatten().map(|(key, _)| *key).max();
        first.iter().for_each(|key| lists.prefetch(key.row().0 as usize));
        let search = Search::new(lists, rotation, query, k, effort, rows(at));
        let see =
            |(key, dot): (RankKey, u32)| search.see_at(key.row().0 as usize, f32::from_bits(dot));
        let order = match known {
            Some(known) => search.in_order(known.into_iter().map(see)),
            None => search.nearest_lists(lists_at_once(lists, patience)),
        };
        Course::begin(search, order, patience)
    };
    let mut courses: Vec<Course<'_, R>> = queries.iter().enumerate().map(begin).collect();
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

/// One search and its progress.
struct Course<'a, R> {
    search: Search<'a, R>,
    patience: usize,
    /// Lists by promise; those before `next` are visited.
    order: Vec<Seen>,
    next: usize,
    /// Lists not in `order` yet, once they are known.
    rest: Option<Vec<RankKey>>,
    in_vain: usize,
    is_done: bool,
    /// Lists of this round with better rows: position in `order`, and the best estimate there.
    news: Vec<(usize, f32)>,
    /// Positions in `order` that are visited in this round, ascending.
    planned: Vec<usize>,
}

impl<'a, R: NearRows> Course<'a, R> {
    fn begin(search: Search<'a, R>, order: Vec<Seen>, patience: usize) -> Self {
        let patience = patience.max(1);
        let mut course = Self {
            search,
            patience,
            order,
            next: 0,
            rest: None,
            in_vain: 0,
            is_done: false,
            news: Vec::new(),
            planned: Vec::new(),
        };
        course.next = course.search.visit_first(&course.order);
        course
    }

    /// Plans the visits that are certain to be made and names them to `visit`.
    fn plan(&mut self, mut visit: impl FnMut(usize, usize)) {
        self.planned.clear();
        while !self.is_done && self.planned.is_empty() {
            if self.next == self.order.len() {
                self.order_more();
            }
            while let Some(seen) = self.order.get(self.next)
                && self.planned.len() < self.patience
            {
                let in_vain = self.in_vain + self.planned.len();
                if self.search.ends_before(seen, in_vain, self.patience) {
                    self.is_done = self.planned.is_empty();
                    break;
                }
                if self.search.has_passing(seen.list) {
                    self.planned.push(self.next);
                    visit(seen.list, self.next);
                }
                self.next += 1;
            }
        }
    }

    fn order_more(&mut self) {
        let (search, known) = (&self.search, &self.order);
        let all_others = || all_but(search.lists, &search.one_bit, known);
        let rest = self.rest.get_or_insert_with(all_others);
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

    /// Evaluates a round: the count of lists in vain restarts after the last list that contributed
    /// a row which is still among the best.
    fn settle(&mut self) {
        let threshold = self.search.threshold();
        let still = self.news.iter().filter(|(_, best)| *best >= threshold).map(|(at, _)| *at);
        match still.max() {
            Some(last) => self.in_vain = self.planned.iter().filter(|at| **at > last).count(),
            None => self.in_vain += self.planned.len(),
        }
        self.news.clear();
    }
}
