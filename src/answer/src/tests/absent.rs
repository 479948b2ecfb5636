//! Questions about things that the documents do not mention, and causes and payers that they do.

use super::*;

#[test]
fn a_missing_question_mark_changes_nothing() {
    let texts =
        [("permit.md", "The harbour office sells permits until 17:00. Fog stops the ferry.")];
    for question in ["until when are permits sold", "what stops the ferry", "who sells a whale"] {
        assert_eq!(told(question, &texts), told(&format!("{question}?"), &texts));
    }
}
