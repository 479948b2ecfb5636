//! Equations as lines of text: signs that their elements stand for, between the texts in them.

use crate::events::Element;

/// Equations, and the operators and brackets inside each other.
#[derive(Debug, Default)]
pub(super) struct Equations {
    /// Equations that are open.
    depth: usize,
    /// Of each open operator or pair of brackets, the sign before it until that is written, and the
    /// one behind it.
    open: Vec<(Option<String>, String)>,
}

/// Operators and brackets inside each other.
const OPEN_MAX: usize = 256;

impl Equations {
    /// The text that an element begins with.
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
            // Until their properties say otherwise.
            ("nary", _) => self.open.push(signs("\u{222B}", "")),
            ("d", _) => self.open.push(signs("(", ")")),
            ("chr" | "begChr", Some((before, _))) => *before = Some(sign?),
            ("endChr", Some((_, behind))) => *behind = sign?,
            // Parts of the operators above, or of others that have no sign: not theirs.
            ("acc" | "groupChr" | "bar", _) => self.open.push(signs("", "")),
            ("rad", _) => return Some("\u{221A}(".to_owned()),
            ("den", _) => return Some("/".to_owned()),
            ("sup", _) => return Some("^".to_owned()),
            ("sub" | "lim", _) => return Some("_".to_owned()),
            _ => {}
        }
        None
    }

    /// The text that an element ends with; an operator's sign is known when its properties end.
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
