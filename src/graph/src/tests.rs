use bytes::Bytes;
use proptest::prelude::*;

use super::key::is_telling;
use super::row::{ROW_ENTITIES_MAX, ROW_TRIPLETS_MAX};
use super::*;

/// The bytes at an address aligned for words.
fn aligned(bytes: &[u8]) -> Bytes {
    struct Owner(Vec<u32>, usize);
    impl AsRef<[u8]> for Owner {
        fn as_ref(&self) -> &[u8] {
            &bytemuck::cast_slice(&self.0)[..self.1]
        }
    }
    let mut words = vec![0_u32; bytes.len().div_ceil(4)];
    bytemuck::cast_slice_mut(&mut words)[..bytes.len()].copy_from_slice(bytes);
    Bytes::from_owner(Owner(words, bytes.len()))
}

fn graphs() -> Vec<RowGraph> {
    vec![
        extract("A Man Called Hero", "A Man Called Hero is a 1999 film directed by Andrew Lau."),
        RowGraph::default(),
        extract("Andrew Lau", "Andrew Lau was born in Hong Kong on 4 April 1960."),
    ]
}

fn section(graphs: &[RowGraph]) -> Vec<u8> {
    let mut writer = GraphWriter::new();
    for (row, graph) in graphs.iter().enumerate().filter(|(_, one)| !one.entities.is_empty()) {
        writer.add(row as u32, graph);
    }
    writer.add_title(1, "Andrew Lau");
    writer.add_title(0, "A Man Called Hero");
    writer.add_title(2, "The");
    writer.finish(graphs.len() as u32, 3)
}

/// Exercises every look-up, so that a test would see one fail.
fn walk(index: &GraphIndex, rows: u32) -> usize {
    let mut count = 0;
    for row in 0..rows {
        count += index.row(row).entities.len() + index.entities_of_row(row).count();
        count += index.triplets_of_row(row).map(|id| index.triplet(id).row as usize).sum::<usize>();
    }
    for id in (0..index.counts.entities).map(EntityId) {
        let key = index.key(id);
        count += index.find(key).is_some() as usize + index.rows_of(id).len();
        count += index.triplets_of_entity(id).count() + index.titles().sources(key).len();
        count += index.called(key).1.count();
        for row in index.rows_of(id) {
            count += index.named_in(*row, id).is_some() as usize;
            count += index.calls(*row, id, key) as usize;
        }
    }
    count
}

#[test]
fn graphs_read_back() {
    let graphs = graphs();
    let bytes = section(&graphs);
    let index = GraphIndex::open(aligned(&bytes), 3, 3).unwrap();
    for (row, graph) in graphs.iter().enumerate() {
        assert_eq!(index.row(row as u32), *graph);
    }
    let lau = index.find(key("ANDREW LAU").as_str()).unwrap();
    assert_eq!(index.rows_of(lau), [0, 2]);
    assert_eq!(index.named_in(0, lau), Some(("Andrew Lau", EntityKind::Person)));
    assert_eq!(index.named_in(1, lau), None);
    for (row, graph) in graphs.iter().enumerate() {
        for entity in &graph.entities {
            let id = index.find(&entity.key).unwrap();
            for alias in &entity.aliases {
                assert!(index.called(alias).1.any(|other| other == id), "{alias}");
                assert!(index.calls(row as u32, id, alias));
            }
            assert!(!index.calls(row as u32, id, "nobody"));
        }
    }
    assert_eq!(index.titles().sources("andrew lau"), [1]);
    assert_eq!(index.titles().sources("the"), [0_u32; 0]);
    let directed = index.triplets_of_entity(lau).map(|id| index.triplet(id));
    let directed: Vec<_> = directed.filter(|one| one.predicate == Predicate::DirectedBy).collect();
    assert_eq!((directed.len(), directed[0].row, directed[0].target), (1, 0, lau));
    assert!(walk(&index, 3) > 20);
}

#[test]
fn damage_is_refused_or_harmless() {
    let bytes = section(&graphs());
    for length in 0..bytes.len() {
        assert!(GraphIndex::open(aligned(&bytes[..length]), 3, 3).is_err(), "{length}");
    }
    assert!(GraphIndex::open(aligned(&bytes), 2, 3).is_err());
    assert!(GraphIndex::open(aligned(&bytes), 3, 2).is_err());
    for at in 0..bytes.len() {
        for value in [0, 1, 0x7F, 0xFF, bytes[at].wrapping_add(1), bytes[at].wrapping_sub(1)] {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            if let Ok(index) = GraphIndex::open(aligned(&damaged), 3, 3) {
                walk(&index, 3);
                // As in a merge.
                let mut writer = GraphWriter::new();
                (0..3).for_each(|row| writer.add(row, &index.row(row)));
            }
        }
    }
}

fn is_sound(text: &str, graph: &RowGraph) -> bool {
    let entities = graph.entities.iter().all(|one| {
        one.key == key(&one.name).as_str()
            && !one.key.is_empty()
            && one.name.len() <= NAME_BYTES_MAX
    });
    let triplets = graph.triplets.iter().all(|one| {
        let ends = usize::from(one.source.max(one.target));
        let context = one.context.start as usize..one.context.end as usize;
        ends < graph.entities.len() && one.source != one.target && text.get(context).is_some()
    });
    entities && triplets && graph.triplets.len() <= ROW_TRIPLETS_MAX
}

#[test]
fn hostile_text_is_read_to_its_end() {
    let parts =
        ["A", "Paris ", "\"(", "Ab, ", "a.", "| a | Bb |\n", "of the ", "was born in ", "foo("];
    for part in parts {
        let text = part.repeat((1 << 20) / part.len());
        let graph = extract("Ab", &text);
        assert!(graph.entities.len() <= ROW_ENTITIES_MAX && is_sound(&text, &graph), "{part}");
        assert!(keys_in(&text).len() <= 8 * 4096);
    }
}

proptest! {
    /// Goal: titles, some with common prefixes, are found by key, whether or not they were first
    /// narrowed to the key's first word.
    #[test]
    fn titles_are_found_by_key_and_by_first_word(
        named in prop::collection::vec("[kxé]{1,3}( [kxé]{1,2}){0,2}", 0..300),
        asked in prop::collection::vec("[kxé]{1,3}( [kxé]{1,2}){0,2}", 1..10),
    ) {
        let mut writer = GraphWriter::new();
        named.iter().enumerate().for_each(|(at, title)| writer.add_title(at as u32, title));
        let sources = named.len() as u32;
        let index = GraphIndex::open(aligned(&writer.finish(1, sources)), 1, sources).unwrap();
        let keys: Vec<String> = named.iter().map(|title| key(title).into()).collect();
        for asked in asked.iter().map(|title| String::from(key(title))).chain(keys.clone()) {
            let known = |at: &u32| keys[*at as usize] == asked && is_telling(&asked);
            let titled: Vec<u32> = (0..sources).filter(known).collect();
            prop_assert_eq!(index.titles().sources(&asked), &titled);
            let word = asked.split(' ').next().unwrap();
            let narrowed = index.titles().beginning(word);
            prop_assert_eq!(narrowed.sources(&asked), &titled);
            let begins = |key: &String| key.split(' ').next() == Some(word) && is_telling(key);
            prop_assert_eq!(narrowed.is_empty(), !keys.iter().any(begins));
        }
    }

    #[test]
    fn any_text_has_a_sound_graph(
        title in "\\PC{0,30}",
        text in "(?s)(\\PC|[A-Z][a-z]{2,6} |[ .,|:()\"\n]){0,200}",
    ) {
        let graph = extract(&title, &text);
        prop_assert!(is_sound(&text, &graph), "{:?}", graph);
        prop_assert_eq!(&extract(&title, &text), &graph);
        let bytes = section(std::slice::from_ref(&graph));
        let index = GraphIndex::open(aligned(&bytes), 1, 3).unwrap();
        prop_assert_eq!(index.row(0), graph);
    }
}
