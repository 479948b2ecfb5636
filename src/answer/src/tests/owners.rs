//! Facts about another thing than the one asked about.

use super::*;

/// The page of a company, with a box and prose that names rivals.
const PAGE: &str = "# Lumo\n\nCompany: Lumo Ropes Ltd\n\nFounders: Ada Holm, Bo Tarn\n\n\
    Director: Cy Marsh (director)\n\nTurnover: £40 million (2023)\n\n## History\n\n\
    Lumo was founded by Ada Holm and Bo Tarn in 1975. Cy Marsh is the director of Lumo. \
    The turnover of Lumo was £40 million in 2023.\n\n## Market\n\n\
    The ropes of Lumo compete with those of rivals such as Orrin and Gecko.\n";

#[test]
fn the_fact_of_another_thing_is_not_told() {
    let told = |question: &str| told(question, &[("Lumo", PAGE)]);
    for (question, fact) in [
        ("Who is the director of Orrin?", "Marsh"),
        ("Who is Orrin's director?", "Marsh"),
        ("Who founded Orrin?", "Holm"),
        ("When was Gecko founded?", "1975"),
        ("What is Gecko's turnover in 2023?", "£40 million"),
        ("What was the turnover of Gecko in 2023?", "£40 million"),
    ] {
        let answer = told(question);
        assert!(!answer.contains(fact), "{question}: {answer}");
    }
    for (question, expected) in [
        ("Who is the director of Lumo?", "Cy Marsh"),
        ("Who founded Lumo?", "Ada Holm"),
        ("When was Lumo founded?", "1975"),
        ("What is Lumo's turnover in 2023?", "£40 million"),
    ] {
        assert!(told(question).contains(expected), "{question}: {}", told(question));
    }
}

#[test]
fn the_next_sentence_does_not_lend_its_name() {
    let text = "Marsh is the director of Lumo. Rivals such as Orrin are strong.";
    let answer = told("Who is the director of Orrin?", &[("notes.txt", text)]);
    assert!(!answer.contains("Marsh"), "{answer}");
    let answer = told("Who is the director of Lumo?", &[("notes.txt", text)]);
    assert!(answer.contains("Marsh"), "{answer}");
}

/// The name may stand in the title, the file name, a heading or an earlier sentence.
#[test]
fn facts_without_the_name_are_told_where_it_is_clear() {
    for (title, text, question, expected) in [
        (
            "Orrin",
            "The director is Cy Marsh. Rivals such as Lumo are strong.",
            "Who is the director of Orrin?",
            "Cy Marsh",
        ),
        (
            "notes.txt",
            "Orrin makes ropes. Its director is Cy Marsh.",
            "Who is the director of Orrin?",
            "Cy Marsh",
        ),
        (
            "notes.txt",
            "Orrin makes ropes in the valley. The director of the company is Cy Marsh.",
            "Who is the director of Orrin?",
            "Cy Marsh",
        ),
        (
            "rope-makers.md",
            "# Orrin\n\nThe director is Cy Marsh.\n\n# Lumo\n\nThe director is Ada Holm.\n",
            "Who is the director of Orrin?",
            "Cy Marsh",
        ),
        (
            "Harbour rules",
            "The harbour of Tarnbridge is open all year.\n\n## Staff\n\nHarbour master: Cy Marsh\n",
            "Who is the harbour master of Tarnbridge?",
            "Cy Marsh",
        ),
        (
            "notes.txt",
            "The turnover of Gecko Outdoor Group was £9 million in 2023.",
            "What was the turnover of GOG in 2023?",
            "£9 million",
        ),
    ] {
        let answer = told(question, &[(title, text)]);
        assert!(answer.contains(expected), "{question}: {answer}");
    }
}
