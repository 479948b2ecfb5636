//! Rules: the straight lines along the edges of a page, such as those between the rows and columns
//! of a table.
//!
//! Programs draw them as strokes or as thin filled rectangles. Colours and clipping are ignored.

use hayro_font::kurbo::{Affine, Point};
use hayro_syntax::content::ops::TypedInstruction as Op;
use hayro_syntax::object::Number;

/// Maximum edges of the paths of a page. A page with more is a drawing: its rules are ignored.
const EDGES_MAX: usize = 1 << 14;
/// Maximum thickness of a rule, in points. Thicker ones are backgrounds and bars.
const THICK_MAX: f64 = 4.0;
/// Maximum slope of a rule, in points over its length.
const LEAN_MAX: f64 = 1.0;

/// A rule.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rule {
    /// Whether it is horizontal.
    pub is_level: bool,
    /// Its y if it is horizontal, otherwise its x.
    pub at: f32,
    /// Its ends, on the other axis, ascending.
    pub from: f32,
    pub to: f32,
}

impl Rule {
    /// The rule between two points; `None` if they are on neither a horizontal nor a vertical.
    fn between(one: Point, other: Point) -> Option<Self> {
        let (wide, high) = ((one.x - other.x).abs(), (one.y - other.y).abs());
        let is_level = wide >= high;
        let lean = wide.min(high);
        if lean > LEAN_MAX {
            return None;
        }
        let (at, ends) = match is_level {
            true => ((one.y + other.y) / 2.0, (one.x, other.x)),
            false => ((one.x + other.x) / 2.0, (one.y, other.y)),
        };
        let (from, to) = (ends.0.min(ends.1) as f32, ends.0.max(ends.1) as f32);
        let rule = Self { is_level, at: at as f32, from, to };
        [rule.at, from, to].iter().all(|edge| edge.is_finite()).then_some(rule)
    }

    /// The rule after `level` and measured from the top of a page of this height.
    pub(super) fn placed(&self, level: Affine, height: f32) -> Option<Self> {
        let ends = [self.from, self.to].map(|end| {
            let (x, y) = if self.is_level { (end, self.at) } else { (self.at, end) };
            let point = level * Point::new(x.into(), y.into());
            Point::new(point.x, f64::from(height) - point.y)
        });
        Self::between(ends[0], ends[1])
    }
}

/// Follows the path operators and collects rules.
#[derive(Debug, Default)]
pub(super) struct Pen {
    start: Point,
    at: Point,
    /// Straight edges of the current path.
    edges: Vec<(Point, Point)>,
    /// The first edge of each of its parts, and whether the part is free of curves.
    parts: Vec<(usize, bool)>,
    /// Edges seen on this page.
    seen: usize,
    rules: Vec<Rule>,
}

impl Pen {
    /// The rules, unless the page is a drawing.
    pub(super) fn into_rules(self) -> Vec<Rule> {
        if self.seen < EDGES_MAX { self.rules } else { Vec::new() }
    }

    /// Executes a path operator. `matrix` maps its points to the page, strokes are `width` wide.
    pub(super) fn draw(&mut self, op: &Op<'_, '_>, matrix: Affine, width: f64) {
        if self.seen >= EDGES_MAX {
            return;
        }
        let point = |x: &Number, y: &Number| matrix * Point::new(x.as_f64(), y.as_f64());
        match op {
            Op::MoveTo(to) => self.begin(point(&to.0, &to.1)),
            Op::LineTo(to) => self.line(point(&to.0, &to.1)),
            Op::CubicTo(to) => self.curve(point(&to.4, &to.5)),
            Op::CubicStartTo(to) => self.curve(point(&to.2, &to.3)),
            Op::CubicEndTo(to) => self.curve(point(&to.2, &to.3)),
            Op::ClosePath(_) => self.close(),
            Op::RectPath(r) => {
                let [x, y, width, height] = [&r.0, &r.1, &r.2, &r.3].map(|n| n.as_f64());
                self.begin(matrix * Point::new(x, y));
                self.line(matrix * Point::new(x + width, y));
                self.line(matrix * Point::new(x + width, y + height));
                self.line(matrix * Point::new(x, y + height));
                self.close();
            }
            Op::StrokePath(_) => self.paint(false, Some(width)),
            Op::CloseAndStrokePath(_) => {
                self.close();
                self.paint(false, Some(width));
            }
            Op::FillPathNonZero(_)
            | Op::FillPathNonZeroCompatibility(_)
            | Op::FillPathEvenOdd(_) => self.paint(true, None),
            Op::FillAndStrokeNonZero(_) | Op::FillAndStrokeEvenOdd(_) => {
                self.paint(true, Some(width));
            }
            Op::CloseFillAndStrokeNonZero(_) | Op::CloseFillAndStrokeEvenOdd(_) => {
                self.close();
                self.paint(true, Some(width));
            }
            Op::EndPath(_) => self.paint(false, None),
            _ => {}
        }
    }

    fn begin(&mut self, at: Point) {
        (self.start, self.at) = (at, at);
        self.parts.push((self.edges.len(), true));
        self.seen += 1;
    }

    fn line(&mut self, to: Point) {
        self.edges.push((self.at, to));
        self.at = to;
        self.seen += 1;
    }

    fn curve(&mut self, to: Point) {
        if let Some((_, is_straight)) = self.parts.last_mut() {
            *is_straight = false;
        }
        self.at = to;
        self.seen += 1;
    }

    fn close(&mut self) {
        if self.at != self.start {
            self.line(self.start);
        }
    }

    /// Ends the path: it is filled, stroked with this width, both or neither.
    fn paint(&mut self, is_filled: bool, stroke: Option<f64>) {
        let is_thin = |width: f64| width <= THICK_MAX;
        if stroke.is_some_and(is_thin) {
            let edges = self.edges.iter();
            self.rules.extend(edges.filter_map(|(from, to)| Rule::between(*from, *to)));
        } else if is_filled {
            let ends = self.parts.iter().skip(1).map(|part| part.0).chain([self.edges.len()]);
            for ((first, is_straight), end) in self.parts.iter().zip(ends) {
                let middle = middle(&self.edges[*first..end]).filter(|_| *is_straight);
                self.rules.extend(middle.and_then(|(from, to)| Rule::between(from, to)));
            }
        }
        self.edges.clear();
        self.parts.clear();
    }
}

/// The middle line of a thin rectangle.
fn middle(edges: &[(Point, Point)]) -> Option<(Point, Point)> {
    let (first, _) = edges.first()?;
    let (mut least, mut most) = (*first, *first);
    for point in edges.iter().flat_map(|(from, to)| [from, to]) {
        least = Point::new(least.x.min(point.x), least.y.min(point.y));
        most = Point::new(most.x.max(point.x), most.y.max(point.y));
    }
    let size = most - least;
    let middle = least.midpoint(most);
    match size.x >= size.y {
        _ if size.x.min(size.y) > THICK_MAX => None,
        true => Some((Point::new(least.x, middle.y), Point::new(most.x, middle.y))),
        false => Some((Point::new(middle.x, least.y), Point::new(middle.x, most.y))),
    }
}
