//! Writes equations as lines of text: operators and brackets become characters between the text of
//! their elements.

use crate::events::Element;

/// The state of the open equations, with nested operators and brackets.
#[derive(Debug, Default)]
pub(super) struct Equations {
    /// Open equations.
    depth: usize,
    /// For each open operator or pair of brackets: the opening character until it is written, and
    /// the closing one.
    open: Vec<(Option<String>, String)>,
}

/// Maximum nesting of operators and brackets.
const OPEN_MAX: usize = 256;

impl Equations {
    /// The text written at the start of an element.
    pub(super) fn open(&mut self, element: &Element<'_>) -> Option<String> {
        let name = element.name();
        if name == "oMath" {
            self.depth += 1;
        }
        if self.depth == 0 || self.open.len() > OPEN_MAX {
            return None;
        }
        let signs = |before: &str, behind: &str| (Some(before.to_owned()), behind.to_owned());
        let sign = element.attribute("val");
        match (name, self.open.last_mut()) {
            // Default values, until the properties say otherwise.
            ("nary", _) => self.open.push(signs("\u{222B}", "")),
            ("d", _) => self.open.push(signs("(", ")")),
            ("chr" | "begChr", Some((before, _))) => *before = Some(sign?),
            ("endChr", Some((_, behind))) => *behind = sign?,
            // These also have a `chr` property, which must not apply to the enclosing operator.
            ("acc" | "groupChr" | "bar", _) => self.open.push(signs("", "")),
            ("rad", _) => return Some("\u{221A}(".to_owned()),
            ("den", _) => return Some("/".to_owned()),
            ("sup", _) => return Some("^".to_owned()),
            ("sub" | "lim", _) => return Some("_".to_owned()),
            _ => {}
        }
        None
    }

    /// The text written at the end of an element; an operator is known when its properties end.
    pub(super) fn close(&mut self, name: &str) -> Option<String> {
        match name {
            "oMath" => self.depth = self.depth.saturating_sub(1),
            "naryPr" | "dPr" if self.depth > 0 => return self.open.last_mut()?.0.take(),
            "nary" | "d" if self.depth > 0 => {
                let (before, behind) = self.open.pop()?;
                return before.is_none().then_some(behind);
            }
            "acc" | "groupChr" | "bar" if self.depth > 0 => drop(self.open.pop()),
            "rad" if self.depth > 0 => return Some(")".to_owned()),
            _ => {}
        }
        None
    }
}
