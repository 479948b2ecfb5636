//! Answers found by the headings above them, and the marks of quoted mails.

use super::*;

/// A greeting is declined, also after a question was answered.
#[test]
fn greetings_are_declined() {
    let mail =
        [("mill.eml", "Hello Ada,\n\nthe test of the mill is on Monday.\n\n> Thanks Ada.\n")];
    for text in ["hello", "thanks!", "test", "ok"] {
        assert_eq!(told(text, &mail), ABSTENTION, "{text}");
        let past = [("When is the test of the mill?".to_owned(), "On Monday.".to_owned())];
        assert_eq!(contextualise(text, &past), text);
    }
    assert!(told("When is the test of the mill?", &mail).contains("Monday"));
}
