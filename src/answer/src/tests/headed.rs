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

/// Quoted lines are told without their marks, and never the line that announces them.
#[test]
fn marks_of_quoted_mails_are_left_out() {
    let mail = "Dear all,\n\nsee below for the bell frame of the church tower.\n\n\
        On Tue, 12 May 2026 at 17:20, Tom Reed wrote:\n\n\
        > The bell frame of the tower is\n> painted every six years. Red lead\n> is used.\n>\n\
        >> Who paints the bell frame?\n";
    let chunks = titled(&[("bells.txt", mail)]);
    let answer = extracted("How often is the bell frame of the tower painted?", &chunks);
    check(&answer, &chunks);
    let sentence = "The bell frame of the tower is painted every six years. [1]";
    assert!(answer.text.starts_with(sentence), "{}", answer.text);
    assert!(!answer.text.contains('>') && !answer.text.contains("wrote"), "{}", answer.text);
    let answer = extracted("What did Tom Reed write about the bell frame on 12 May?", &chunks);
    assert!(!answer.text.contains("wrote"), "{}", answer.text);
    let bound = "Rates for the swim\n\n> 65 years: half price\n";
    let answer = told("What is the rate for the swim from 65 years?", &[("swim.txt", bound)]);
    assert!(answer.contains("> 65 years") || answer == ABSTENTION, "{answer}");
}
