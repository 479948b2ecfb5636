//! Interprets content streams, the programs that draw a page, as far as needed to place glyphs and
//! rules.

use std::collections::HashMap;
use std::rc::Rc;

use hayro_font::kurbo::{Affine, Vec2};
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction as Op;
use hayro_syntax::object::dict::keys::{FORM, MATRIX, RESOURCES, SUBTYPE};
use hayro_syntax::object::{Name, Number, Object, Stream};
use hayro_syntax::page::Resources;

use crate::pdf::direction;
use crate::pdf::fonts::{Font, Fonts};
use crate::pdf::rules::Pen;

/// Maximum glyphs per page. A dense page has tens of thousands.
pub(super) const GLYPHS_MAX: usize = 1 << 20;
/// Maximum nesting of forms.
const FORM_DEPTH_MAX: usize = 16;
/// Maximum nesting of saved states.
const STATES_MAX: usize = 1_024;
/// Minimum bytes that each form counts as.
const FORM_BYTES_MIN: usize = 1 << 10;
/// Advance between two glyphs that is taken as a space, in em.
const SPACE_MIN: f64 = 0.2;
/// Font units per em.
const UNITS: f64 = 1_000.0;

/// A drawn glyph; a glyph for several characters is recorded once for each.
#[derive(Debug)]
pub(super) struct Drawn<'a> {
    pub c: char,
    /// Maps character space (1 em, origin at the start of the baseline) to page space.
    pub matrix: Affine,
    /// Width in em.
    pub width: f64,
    pub font: Rc<Font<'a>>,
}

/// The part of the graphics state that affects text and rules.
#[derive(Debug, Clone)]
struct State<'a> {
    /// Maps content space to page space.
    matrix: Affine,
    text: Affine,
    line: Affine,
    font: Option<Rc<Font<'a>>>,
    size: f64,
    char_space: f64,
    word_space: f64,
    /// Horizontal scaling, 1 for none.
    scale: f64,
    leading: f64,
    /// Width of strokes in content space.
    stroke: f64,
}

/// Executes content streams and collects glyphs and rules.
pub(super) struct Interpreter<'f, 'a> {
    fonts: &'f mut Fonts<'a>,
    state: State<'a>,
    /// Remaining bytes of forms that may be executed.
    form_bytes: usize,
    chars: Vec<char>,
    pub pen: Pen,
    pub drawn: Vec<Drawn<'a>>,
    /// Codes shown, and those of them that the font does not map to a character.
    pub codes: usize,
    pub lost: usize,
    /// Whether an image was drawn.
    pub has_picture: bool,
}

impl<'f, 'a> Interpreter<'f, 'a> {
    /// Creates an interpreter that places glyphs by `matrix` and executes up to `form_bytes` of
    /// forms.
    pub(super) fn new(fonts: &'f mut Fonts<'a>, matrix: Affine, form_bytes: usize) -> Self {
        let state = State {
            matrix,
            text: Affine::IDENTITY,
            line: Affine::IDENTITY,
            font: None,
            size: 1.0,
            char_space: 0.0,
            word_space: 0.0,
            scale: 1.0,
            leading: 0.0,
            stroke: 1.0,
        };
        Self {
            fonts,
            state,
            form_bytes,
            chars: Vec::new(),
            pen: Pen::default(),
            drawn: Vec::new(),
            codes: 0,
            lost: 0,
            has_picture: false,
        }
    }

    /// Executes a content stream with its resources, nested in `depth` forms. Stops at
    /// [`GLYPHS_MAX`] glyphs.
    pub(super) fn run(&mut self, content: &[u8], resources: &Resources<'a>, depth: usize) {
        let mut saved = Vec::new();
        let mut fonts: HashMap<Vec<u8>, Option<Rc<Font<'a>>>> = HashMap::new();
        let mut ops = TypedIter::new(content);
        while let Some(op) = ops.next() {
            if self.drawn.len() >= GLYPHS_MAX {
                return;
            }
            match op {
                // No program in real use saves this many states.
                Op::SaveState(_) if saved.len() == STATES_MAX => return,
                Op::SaveState(_) => saved.push(self.state.clone()),
                Op::RestoreState(_) => {
                    if let Some(state) = saved.pop() {
                        self.state = state;
                    }
                }
                Op::Transform(m) => self.state.matrix *= matrix([m.0, m.1, m.2, m.3, m.4, m.5]),
                Op::XObject(name) => {
                    if let Some(form) = resources.get_x_object(name.0) {
                        self.form(&form, resources, depth);
                    }
                }
                Op::TextFont(font) => {
                    let known = fonts.get(&**font.0).cloned();
                    self.state.font = known.unwrap_or_else(|| {
                        let loaded = self.fonts.load(resources.get_font(font.0));
                        fonts.insert(font.0.to_vec(), loaded.clone());
                        loaded
                    });
                    self.state.size = font.1.as_f64();
                }
                Op::LineWidth(width) => self.state.stroke = width.0.as_f64(),
                op => {
                    let matrix = self.state.matrix;
                    let width = self.state.stroke * matrix.determinant().abs().sqrt();
                    self.pen.draw(&op, matrix, width);
                    self.text(op);
                }
            }
        }
    }

    /// Executes a form, unless it is an image.
    fn form(&mut self, form: &Stream<'a>, resources: &Resources<'a>, depth: usize) {
        let dict = form.dict();
        let is_form = dict.get::<Name<'_>>(SUBTYPE).is_some_and(|name| &*name == FORM);
        self.has_picture |= !is_form;
        if !is_form || depth == FORM_DEPTH_MAX {
            return;
        }
        let Ok(content) = form.decoded_data() else { return };
        let Some(rest) = self.form_bytes.checked_sub(content.len().max(FORM_BYTES_MIN)) else {
            return;
        };
        self.form_bytes = rest;
        let outer = self.state.clone();
        if let Some(matrix) = dict.get::<[f64; 6]>(MATRIX) {
            self.state.matrix *= Affine::new(matrix);
        }
        let own = dict.get(RESOURCES).map(Resources::new);
        self.run(&content, own.as_ref().unwrap_or(resources), depth + 1);
        self.state = outer;
    }

    /// Executes a text operator. Text rise is ignored: raised and lowered text belongs to its line.
    fn text(&mut self, op: Op<'_, '_>) {
        let state = &mut self.state;
        match op {
            Op::BeginText(_) => state.begin_line(Affine::IDENTITY),
            Op::SetTextMatrix(m) => state.begin_line(matrix([m.0, m.1, m.2, m.3, m.4, m.5])),
            Op::CharacterSpacing(space) => state.char_space = space.0.as_f64(),
            Op::WordSpacing(space) => state.word_space = space.0.as_f64(),
            Op::HorizontalScaling(percent) => state.scale = percent.0.as_f64() / 100.0,
            Op::TextLeading(leading) => state.leading = leading.0.as_f64(),
            Op::NextLine(step) => state.next_line(step.0.as_f64(), step.1.as_f64()),
            Op::NextLineAndSetLeading(step) => {
                state.leading = -step.1.as_f64();
                state.next_line(step.0.as_f64(), step.1.as_f64());
            }
            Op::NextLineUsingLeading(_) => state.next_line(0.0, -state.leading),
            Op::ShowText(text) => self.show(text.0.as_bytes()),
            Op::NextLineAndShowText(text) => {
                state.next_line(0.0, -state.leading);
                self.show(text.0.as_bytes());
            }
            Op::ShowTextWithParameters(text) => {
                (state.word_space, state.char_space) = (text.0.as_f64(), text.1.as_f64());
                state.next_line(0.0, -state.leading);
                self.show(text.2.as_bytes());
            }
            Op::ShowTexts(parts) => {
                for part in parts.0.iter::<Object<'_>>() {
                    match part {
                        Object::String(text) => self.show(text.as_bytes()),
                        Object::Number(back) => self.skip(-back.as_f64() / UNITS),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    /// Advances by this many em. A wide advance is a space: many programs draw no others.
    fn skip(&mut self, by: f64) {
        if by > SPACE_MIN
            && let Some(font) = self.state.font.clone()
        {
            self.drawn.push(Drawn { c: ' ', matrix: self.state.glyph(), width: by, font });
        }
        self.state.advance(by * self.state.size);
    }

    /// Shows a string in the current font.
    fn show(&mut self, text: &[u8]) {
        if self.state.font.is_none() {
            self.state.font = self.fonts.load(None);
        }
        let Some(font) = self.state.font.clone() else {
            self.codes += text.len();
            self.lost += text.len();
            return;
        };
        let mut at = 0;
        while at < text.len() && self.drawn.len() < GLYPHS_MAX {
            let (code, length) = font.codes.read_code(text, at);
            at += length;
            let step = font.codes.code_advance(code) / UNITS;
            let origin = Affine::translate(font.codes.origin_displacement(code) / UNITS);
            let matrix = self.state.glyph() * origin;
            self.chars.clear();
            font.push_chars(code, &mut self.chars);
            self.codes += 1;
            self.lost += usize::from(self.chars.iter().all(|c| is_lost(*c)));
            // The characters of a ligature are recorded in reading order.
            if self.chars.iter().all(|c| direction::runs_left(*c)) {
                self.chars.reverse();
            }
            // In a vertical font a glyph is taken to be as wide as it is high.
            let width = if font.codes.is_horizontal() { step.x } else { 1.0 };
            let width = width / self.chars.len() as f64;
            for (number, c) in self.chars.iter().enumerate() {
                let aside = Affine::translate((width * number as f64, 0.0));
                let font = font.clone();
                self.drawn.push(Drawn { c: *c, matrix: matrix * aside, width, font });
            }
            let is_space = code == 32 && length == 1;
            let state = &mut self.state;
            let space = state.char_space + if is_space { state.word_space } else { 0.0 };
            state.advance((step.x + step.y) * state.size + space);
        }
    }
}

impl State<'_> {
    fn begin_line(&mut self, matrix: Affine) {
        (self.text, self.line) = (matrix, matrix);
    }

    fn next_line(&mut self, x: f64, y: f64) {
        self.begin_line(self.line * Affine::translate((x, y)));
    }

    /// Maps the space of the next glyph, at 1 em, to page space.
    fn glyph(&self) -> Affine {
        let size = Affine::scale_non_uniform(self.size * self.scale, self.size);
        self.matrix * self.text * size
    }

    /// Advances in the writing direction of the font.
    fn advance(&mut self, by: f64) {
        let is_horizontal = self.font.as_ref().is_none_or(|font| font.codes.is_horizontal());
        let step = if is_horizontal { Vec2::new(by * self.scale, 0.0) } else { Vec2::new(0.0, by) };
        self.text *= Affine::translate(step);
    }
}

fn matrix(numbers: [Number; 6]) -> Affine {
    Affine::new(numbers.map(|number| number.as_f64()))
}

/// Whether a character stands for an unknown one. Symbol fonts use private use characters.
fn is_lost(c: char) -> bool {
    matches!(c, '\u{FFFD}' | '\u{E000}'..='\u{F8FF}') || (c.is_control() && !c.is_whitespace())
}
