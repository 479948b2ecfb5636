//! Statements made by sentences, fields and tables, and some that are not made.

use super::extract;

/// The triplets of a text whose predicate contains `part`.
fn told(text: &str, part: &str) -> Vec<String> {
    let graph = extract("", text);
    let key = |at: u8| graph.entities[usize::from(at)].key.as_str();
    let named = graph.triplets.iter().filter(|one| one.predicate.name().contains(part));
    named
        .map(|one| format!("{} {} {}", key(one.source), one.predicate.name(), key(one.target)))
        .collect()
}

#[test]
fn a_name_is_given_to_what_stands_before_it() {
    assert_eq!(
        told("Nils Holm (1901 - 1980), better known as Ivar Lund, was a painter.", "KNOWN"),
        ["nils holm ALSO_KNOWN_AS ivar lund"]
    );
    for other in [
        "Portland has a program called Ecoroofs.",
        "Grantham called Miltown and asked for Sara.",
        "The latest version of Orion-3, called Orion-2, was sold.",
        "The area around Hill Tower had been known as Arsenal Park.",
    ] {
        assert_eq!(told(other, "KNOWN"), [""; 0], "{other}");
    }
}

#[test]
fn a_participle_is_no_verb() {
    assert_eq!(told("In 2014, Norvik acquired Hexatron.", "ACQ"), ["norvik ACQUIRED hexatron"]);
    for other in [
        "Norvik acquired Hexatron clones from its rival.",
        "The newly acquired Hexatron is in Norvik.",
        "Columbus acquired James Wisniewski.",
    ] {
        assert_eq!(told(other, "ACQ"), [""; 0], "{other}");
    }
    assert_eq!(told("Norvik Phase II was developed outside DEC.", "CREATED"), [""; 0]);
}

#[test]
fn an_office_is_held_by_somebody() {
    let text = "Anna Brandt, Duchess of Holm, was the mother of Karl Brandt.";
    assert_eq!(told(text, "LEADER"), ["anna brandt LEADER_OF holm"]);
    assert_eq!(told("Anna Brandt married the Duke of Holm.", "LEADER"), [""; 0]);
}

#[test]
fn what_supports_a_row_has_its_name_and_its_value() {
    let text = "Firms of the valley, as the council lists them.\n\n\
                | Site | Name | Founder |\n|---|---|---|\n\
                | | Acme Corp | Nils Holm |\n\n\
                | Founder | Name |\n|---|---|\n| Ada Brandt | Borg Corp |\n";
    let graph = extract("", text);
    let context = |at: usize| {
        let range = &graph.triplets[at].context;
        &text[range.start as usize..range.end as usize]
    };
    let contexts: Vec<&str> = (0..graph.triplets.len()).map(context).collect();
    assert_eq!(contexts, ["Acme Corp | Nils Holm", "Ada Brandt | Borg Corp"]);
}

#[test]
fn fields_belong_to_the_thing_that_one_of_them_names() {
    let text = "Name: Nils Holm\nBorn: 4 May 1901, London\nOccupation: painter\nSee also: Fjord\n";
    assert_eq!(
        told(text, ""),
        ["nils holm BORN_ON 4 may 1901", "nils holm BORN_IN london", "nils holm IS_A painter"]
    );
}

#[test]
fn a_row_is_of_the_thing_in_its_first_column() {
    let text = "| Company | CEO | City |\n|---|:-:|---|\n| Norvik | Anna Brandt | Bergen |\n";
    assert_eq!(told(text, ""), ["anna brandt LEADER_OF norvik", "norvik LOCATED_IN bergen"]);
    let bare = text.replace("|---|:-:|---|\n", "");
    assert_eq!(told(&bare, ""), [""; 0], "without a rule there is no header");
}

#[test]
fn a_box_of_two_columns_is_of_the_title() {
    let graph = extract(
        "Norvik",
        "| Type | Public |\n|---|---|\n| Founded | April 4, 1975 |\n| Table 3 | Oslo |\n",
    );
    let names: Vec<&str> = graph.triplets.iter().map(|one| one.predicate.name()).collect();
    assert_eq!(names, ["IS_A", "FOUNDED_ON"]);
}

#[test]
fn a_sentence_behind_a_colon_is_no_value() {
    let text = "Destination: Holm is a 2018 comedy film directed by Jack Spring.";
    assert_eq!(told(text, "PROPERTY"), [""; 0]);
}

#[test]
fn surnames_in_front_are_told_from_lists() {
    let names = |text| -> Vec<String> {
        let people = extract("", text).entities.into_iter();
        let people = people.filter(|one| one.kind.name() == "PERSON");
        people.map(|one| one.name).collect()
    };
    assert_eq!(
        names("Written by Madsen, Cort S.; Pratt, H. Douglas (1987), about birds."),
        ["Madsen, Cort S.", "Pratt, H. Douglas"]
    );
    assert_eq!(
        names("It was written by Clara R. Burgert, Erica A. Shoemaker and others."),
        ["Clara R. Burgert", "Erica A. Shoemaker"]
    );
}

#[test]
fn a_life_has_its_places_and_dates_in_any_order() {
    let on = |text: &str| told(text, "_ON");
    assert_eq!(
        on("Marta Lind was born in Uppsala on 3 May 1950."),
        ["marta lind BORN_ON 3 may 1950"]
    );
    assert_eq!(
        on("Marta Lind was born in Uppsala, Sweden, on 3 May 1950 and died in Rome in 2001."),
        ["marta lind BORN_ON 3 may 1950", "marta lind DIED_ON 2001"]
    );
    assert_eq!(on("Marta Lind was born in Uppsala and moved to Rome in 1970."), [""; 0]);
}
