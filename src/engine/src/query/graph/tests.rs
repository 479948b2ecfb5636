//! Goal: other scopes in the same segment change no relations and no scores.

use std::sync::Arc;

use tempfile::TempDir;
use uuid::Uuid;

use crate::query::{Alpha, GraphContext, Join, Mode, Query, Recall, RetrieveRequest, Retrieved};
use lodestone_compute::SimdBackend;
use lodestone_embed::HashEmbedder;
use lodestone_io::store::LocalBlobs;
use lodestone_io::{DataDir, RealDisk};
use lodestone_storage::collection::{AddedSegment, Collection, Edit};
use lodestone_storage::segment::{NewRow, NewSource, VectorKind};
use lodestone_types::{
    ChunkPlace, CollectionId, Filter, RequestContext, SeededIds, Sequence, SourceId, SourceKind,
    SourceRecord, SubTenantId, Timestamp,
};

const NOW: Timestamp = Timestamp(1_000);
const QUESTION: &str = "Who directed Northern Light?";

fn source(sub_tenant: &str, id: &str, title: &str, text: &str) -> NewSource {
    let record = SourceRecord {
        title: title.into(),
        ..SourceRecord::new(
            SubTenantId::parse(sub_tenant).unwrap(),
            SourceId::parse(id).unwrap(),
            SourceKind::Text,
            Sequence(1),
            NOW,
        )
    };
    let row = NewRow {
        text: text.into(),
        place: ChunkPlace { chars: text.chars().count() as u32, ..ChunkPlace::default() },
        graph: lodestone_graph::extract(title, text),
        vector: HashEmbedder::vector(text),
        ..NewRow::default()
    };
    NewSource { record, title_text: title.into(), searchable: String::new(), rows: vec![row] }
}

/// The searching scope's sources: a film and its director, also called by her surname.
fn own() -> Vec<NewSource> {
    let film = "Northern Light is a film directed by Marta Lindqvist.";
    let director = "Marta Lindqvist was born in Uppsala. Lindqvist lives in Lund.";
    vec![
        source("default", "director", "Marta Lindqvist", director),
        source("default", "film", "Northern Light", film),
    ]
}

/// Sources of another sub-tenant: the same names in capitals, other people with that surname, and
/// many other statements.
fn foreign() -> Vec<NewSource> {
    let other = |n: usize| {
        let text = format!(
            "NORTHERN LIGHT is a song written by Peter Lindqvist {n}. MARTA LINDQVIST was born in \
             Secret Town. Anna Lindqvist was born in Kiel. Lindqvist was a painter."
        );
        let id = format!("o{n:03}");
        source("another", &id, "NORTHERN LIGHT", &text)
    };
    (0..40).map(other).collect()
}

/// Searches with all sources in one segment, or, if `is_split`, the director's page in its own
/// segment.
fn ask(sources: Vec<NewSource>, is_split: bool, query: &str) -> Retrieved {
    ask_by(0.3, sources, is_split, query)
}

fn ask_by(alpha: f32, mut sources: Vec<NewSource>, is_split: bool, query: &str) -> Retrieved {
    let root = TempDir::new().unwrap();
    let data = Arc::new(DataDir::open(root.path(), Arc::new(RealDisk)).unwrap());
    let ids = Arc::new(SeededIds::new(1));
    let store = Arc::new(LocalBlobs::new(data));
    let id = CollectionId(Uuid::from_u128(7));
    let collection = Collection::open(id, store, ids, 1, None).unwrap();
    sources.sort_by(|a, b| a.record.id.as_str().cmp(b.record.id.as_str()));
    let is_apart = |source: &NewSource| is_split && source.record.id.as_str() == "director";
    let (apart, together): (Vec<_>, Vec<_>) = sources.into_iter().partition(is_apart);
    for part in [apart, together].iter().filter(|part| !part.is_empty()) {
        let segment = collection.build(64, VectorKind::F16, part).unwrap();
        let add = vec![AddedSegment { segment, withheld: Vec::new() }];
        let edit = Edit { add, embedding: Some("hashing".to_owned()), ..Edit::default() };
        collection.writer().unwrap().commit(&edit).unwrap();
    }
    let request = RetrieveRequest {
        query: query.to_owned(),
        extra_context: None,
        max_chunks: 10,
        mode: Mode::Fast,
        recall: Recall::Usual,
        alpha: Alpha::Fixed(alpha),
        recency_bias: 0.0,
        is_personalised: false,
        graph_context: GraphContext::On,
        per_source_max: None,
        join: Join::Never,
        min_confidence: 0.0,
        filter: Filter::All.into(),
    };
    let searches = Query::new(Arc::new(SimdBackend), Arc::new(HashEmbedder));
    let scope = SubTenantId::default_name();
    let (context, snapshot) = (RequestContext::default(), collection.snapshot());
    let mut found = searches.retrieve(&context, &snapshot, &scope, None, &request, NOW).unwrap();
    found.timings = Default::default();
    found.effort = Default::default();
    found
}

#[test]
fn another_scope_changes_no_name_no_path_and_no_score() {
    for query in [QUESTION, "Where was Lindqvist born?", "Where does Marta Lindqvist live?"] {
        let alone = ask(own(), false, query);
        let relations = alone.relations.as_ref().unwrap();
        assert!(!relations.paths.is_empty() && !relations.of_chunks.is_empty(), "{query}");
        let in_company = ask(own().into_iter().chain(foreign()).collect(), false, query);
        assert_eq!(in_company, alone, "{query}");
    }
}

#[test]
fn how_rows_are_spread_over_segments_changes_nothing() {
    for query in [QUESTION, "Where was Lindqvist born?"] {
        assert_eq!(ask(own(), true, query), ask(own(), false, query), "{query}");
    }
}

#[test]
fn a_surname_means_the_person_whom_visible_texts_call_so() {
    let found =
        ask(own().into_iter().chain(foreign()).collect(), false, "Where was Lindqvist born?");
    let relations = found.relations.unwrap();
    let first = &relations.paths[0].triplets[0];
    assert_eq!(
        (first.source.name.as_str(), first.target.name.as_str()),
        ("Marta Lindqvist", "Uppsala")
    );
}

/// Goal: without a query vector, when all statements are equally near, those that are followed do
/// not depend on their segments, and a statement that several texts make is followed once.
#[test]
fn statements_that_are_equally_near_are_followed_wherever_they_are() {
    let stated = |id: &str, name: &str| {
        let text = format!("Northern Light is a film directed by {name}.");
        source("default", id, "Northern Light", &text)
    };
    let all = || {
        let names = ["Anna Berg", "Bo Dahl", "Carl Ek", "Dora Falk", "Eva Gran", "Finn Holm"];
        let mut all: Vec<NewSource> = Vec::new();
        for (at, name) in names.into_iter().chain(["Gerd Ivar", "Hanna Jung"]).enumerate() {
            all.push(stated(&format!("a{at}"), name));
            all.push(stated(&format!("b{at}"), "Anna Berg"));
        }
        all.push(stated("director", "Marta Lindqvist"));
        all
    };
    let directors = |is_split: bool| {
        let paths = ask_by(0.0, all(), is_split, QUESTION).relations.unwrap().paths;
        let ends = |path: &lodestone_types::EntityPath| {
            let ends = path.triplets.iter().map(|triplet| &triplet.target.name);
            ends.cloned().collect::<Vec<String>>()
        };
        paths.iter().map(ends).collect::<Vec<_>>()
    };
    let followed = directors(false);
    assert!(followed.len() > 3, "{followed:?}");
    assert_eq!(followed, directors(true));
}
