//! Names of persons with the surname first, as in lists of authors.

use crate::names::Scan;
use crate::tokens::Form;

/// Maximum number of given names and initials of one author.
const GIVEN_MAX: usize = 4;

impl Scan<'_> {
    /// Returns the end of the name that starts at a surname and a comma: "Knuth, D. E." within or
    /// after a list of such names, "Madsen, Cort S." anywhere.
    pub(super) fn inverted_end(&self, at: usize) -> Option<usize> {
        let (end, has_given) = self.given_end(at).filter(|_| self.is_surname(at))?;
        if has_given {
            return Some(end);
        }
        let goes_on = self.is_surname(end) && self.given_end(end).is_some();
        let is_last = end == self.tokens.len()
            || at >= 2
                && self.mark(at - 1) == Some('.')
                && self.tokens[at - 2].form == Form::Initial;
        (is_last || goes_on).then_some(end)
    }

    fn is_surname(&self, at: usize) -> bool {
        let form = self.tokens.get(at).map(|token| token.form);
        form == Some(Form::Capital) && self.mark(at + 1) == Some(',')
    }

    /// Returns the end of the initials and given names after a surname and its comma, and whether
    /// there are given names.
    fn given_end(&self, surname: usize) -> Option<(usize, bool)> {
        let is_initial = |at: usize| {
            let form = self.tokens.get(at).map(|token| token.form);
            form == Some(Form::Initial) && self.mark(at + 1) == Some('.')
        };
        let closes = |at: usize| {
            at >= self.tokens.len() || matches!(self.mark(at), Some(';' | '(' | '.' | '&'))
        };
        let mut end = surname + 2;
        let (mut initials, mut given) = (0, 0);
        while let Some(token) = self.tokens.get(end).filter(|_| initials + given < GIVEN_MAX) {
            // "Hugo, V. The sea" and "Paris, New York" do not have this form.
            let is_given = token.form == Form::Capital
                && given == 0
                && !token.senses.is_grammar()
                && (is_initial(end + 1) || initials > 0 && closes(end + 1));
            match token.form {
                _ if is_initial(end) => (initials, end) = (initials + 1, end + 2),
                _ if is_given => (given, end) = (given + 1, end + 1),
                _ => break,
            }
        }
        // "Ann B. Lee, Tom C. Moe": with a comma following, the given name may come first.
        let is_told = given == 0 || closes(end);
        (initials > 0 && is_told).then_some((end, given > 0))
    }
}
