//! Questions in one language, answered from documents in another.

use serde_json::{Value, json};

use crate::support::TestServer;

const NOTHING: &str = "Nothing in the indexed content answers this question.";

/// One document in each of four languages, each on a different topic.
fn bicycles() -> TestServer {
    let server = TestServer::start();
    let items = [
        json!({"file_id": "en", "document_metadata": {"title": "Bicycle workshop"},
            "content": "The bicycle workshop repairs wheels and brakes. A new tyre costs 34 euros \
                with the work. The workshop is closed on Wednesdays."}),
        json!({"file_id": "de", "document_metadata": {"title": "Merkblatt Fahrradkeller"},
            "content": "Der Schlüssel für den Fahrradkeller liegt beim Hausmeister. Die Kaution \
                für den Schlüssel beträgt 25 Euro. Im November werden Fahrräder ohne Schild \
                entfernt."}),
        json!({"file_id": "fr", "document_metadata": {"title": "Fiche du chiot"},
            "content": "Les chiots mangent quatre repas par jour jusqu'à douze semaines. L'eau \
                fraîche doit rester près du panier. Le premier vaccin se fait à huit semaines."}),
        json!({"file_id": "es", "document_metadata": {"title": "Normas de la piscina"},
            "content": "El gorro de baño es obligatorio en la piscina cubierta. Los niños menores \
                de ocho años deben ir acompañados. Está prohibido comer junto a la piscina."}),
    ];
    server.index_items("acme", "default", &items);
    server
}

/// The answer and the ids of the sources it cites.
fn asked(server: &TestServer, question: &str) -> (String, Vec<String>) {
    let found = server.qna(question, &json!({}));
    let sources = found["sources"].as_array().unwrap();
    let cited = sources.iter().filter(|source| source["cited"] == true);
    let id = |source: &Value| source["source_id"].as_str().unwrap().to_owned();
    (found["answer"].as_str().unwrap().to_owned(), cited.map(id).collect())
}

#[test]
fn a_document_in_another_language_answers() {
    let server = bicycles();
    for (question, source, told) in [
        ("How much is the deposit for the key?", "de", "25 Euro"),
        ("How many meals a day do puppies eat?", "fr", "quatre repas"),
        ("Is a swimming cap compulsory in the pool?", "es", "obligatorio"),
        ("Was kostet ein neuer Reifen?", "en", "34 euros"),
        ("Combien coûte un pneu neuf ?", "en", "34 euros"),
        ("¿Cuánto cuesta un neumático nuevo?", "en", "34 euros"),
        ("Wie viele Mahlzeiten fressen Welpen am Tag?", "fr", "quatre repas"),
    ] {
        let (answer, cited) = asked(&server, question);
        assert!(answer.contains(told), "{question}: {answer}");
        assert_eq!(cited, [source], "{question}: {answer}");
    }
}

/// Goal: a passage in another language that merely shares a word with the question is not an
/// answer.
#[test]
fn what_no_document_tells_stays_declined() {
    let server = bicycles();
    for question in [
        "Who won the swimming competition last year?",
        "What does the vet charge for a vaccination of rabbits?",
        "Wann öffnet die Bibliothek am Sonntag?",
        "¿Dónde está el hospital más cercano?",
    ] {
        assert_eq!(asked(&server, question).0, NOTHING, "{question}");
    }
}

/// Goal: a question that its own language answers well is answered in that language, whatever
/// documents in other languages exist.
#[test]
fn the_language_of_the_question_goes_first() {
    let server = bicycles();
    let alone = TestServer::start();
    let text = "The bicycle workshop repairs wheels and brakes. A new tyre costs 34 euros with the \
        work. The workshop is closed on Wednesdays.";
    let item = json!({"file_id": "en", "document_metadata": {"title": "Bicycle workshop"},
        "content": text});
    alone.index_items("acme", "default", &[item]);
    for question in ["What does a new tyre cost?", "When is the bicycle workshop closed?"] {
        let (answer, cited) = asked(&server, question);
        assert_eq!(cited, ["en"], "{question}: {answer}");
        assert_eq!(asked(&alone, question), (answer, cited), "{question}");
    }
}
