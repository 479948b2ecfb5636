use super::worth_keeping;

/// One test case of `cases.txt`.
#[derive(Debug, Default)]
struct Case {
    message: Vec<&'static str>,
    name: Option<&'static str>,
    kept: Vec<&'static str>,
}

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for entry in include_str!("cases.txt").split("\n\n") {
        let mut case = Case::default();
        for line in entry.lines() {
            match (line.chars().next(), line.get(2..)) {
                (Some('>'), Some(line)) => case.message.push(line),
                (Some('@'), name) => case.name = name,
                (Some('='), Some(line)) => case.kept.push(line),
                _ => {}
            }
        }
        if !case.message.is_empty() {
            cases.push(case);
        }
    }
    cases
}

#[test]
fn statements_of_five_languages_are_kept_and_small_talk_is_not() {
    let cases = cases();
    assert!(cases.len() >= 14, "{} cases", cases.len());
    for Case { message, name, kept } in cases {
        let message = message.join("\n");
        assert_eq!(worth_keeping(&message, name), kept, "{message}");
    }
}

#[test]
fn nothing_is_kept_of_nothing() {
    for message in ["", " \n\t", "...", "?!", "。。", "I", "I like", "my is", "* * *"] {
        assert_eq!(worth_keeping(message, Some("Ann")), Vec::<String>::new(), "{message:?}");
    }
}

/// Goal: the cost is linear, and no message makes the rules panic.
#[test]
fn hostile_messages_are_read_to_their_end() {
    let texts =
        ["my ".repeat(8000), "i ".repeat(16_000), ". ".repeat(16_000), "\u{301}'".repeat(99)];
    for text in texts {
        worth_keeping(&text, Some(" "));
    }
}
