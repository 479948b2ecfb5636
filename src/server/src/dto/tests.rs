//! Requests in the forms that clients send, and responses as clients parse them.

use serde_json::{Value, json};

use crate::dto::answers::{QnaMetadata, QnaResponse, SearchMetadata, SourcesEvent, StartEvent};
use crate::dto::apps::UploadAppSources;
use crate::dto::batch::{BatchResult, BatchUpdate, BatchUpload, BatchUploadText};
use crate::dto::chunks::{Chunk, QnaChunk, layout};
use crate::dto::embeddings::{
    EmbeddingHits, NamedChunks, ScoredChunk, SearchEmbeddings, UpdateEmbeddings, UploadEmbeddings,
};
use crate::dto::keys::{CreateKey, KeyView, RevokeKey};
use crate::dto::memories::AddMemory;
use crate::dto::operations::ListJobs;
use crate::dto::search::{FullTextSearch, Qna, Retrieve};
use crate::dto::sources::{DeleteSources, FetchContent, ListSources, SourcesById};
use crate::dto::tenants::{CreateTenant, DeleteSubTenant, DeleteTenant, NamedTenant, TenantStats};
use crate::dto::upload::{
    UpdateDocument, UpdateMetadata, UpdateText, UploadDocument, UploadText, VerifyProcessing,
};
use crate::dto::web::{BatchScrapeWebpage, ScrapeWebpage};
use crate::error::{ApiError, ErrorForm, Location};
use crate::request::names::{Handling, Rules, Unknown};
use crate::request::{Form, Input, Payload, Request, UploadedFile};
use crate::routes::qna::{AnswerStream, Voice};
use crate::sse;
use crate::tests::support::Spools;
use lodestone_engine::EngineError;
use lodestone_engine::ingest::IngestError;
use lodestone_engine::qna::Conversation;
use lodestone_engine::query::{Alpha, Mode, QueryError};
use lodestone_text::Operator;
use lodestone_types::access::KeyScope;
use lodestone_types::{ChunkPlace, JobStatus, PageRef, Role, SubTenantId, Timestamp};

fn pairs(query: &str) -> Vec<(String, String)> {
    let split = |pair: &str| {
        let (name, value) = pair.split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    query.split('&').filter(|pair| !pair.is_empty()).map(split).collect()
}

fn read<R: Request>(query: &str, body: Value) -> Result<R, ApiError> {
    read_payload(query, Payload::Json(body.to_string().into()))
}

fn read_payload<R: Request>(query: &str, payload: Payload) -> Result<R, ApiError> {
    let (query, path, handling) = (pairs(query), Vec::new(), Handling::Usual);
    let headers = Vec::new();
    Ok(Input { query, path, headers, payload, handling }.read(true)?.request)
}

fn read_form<R: Request>(
    query: &str,
    texts: &[(&str, &str)],
    files: &[(&str, &str, &'static str)],
) -> Result<R, ApiError> {
    let texts = texts.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect();
    let file = |(name, filename, text): &(&str, &str, &'static str)| {
        let (filename, content_type) = ((*filename).to_owned(), String::new());
        let is_too_large = *text == "too large";
        let bytes = (*text).into();
        ((*name).to_owned(), UploadedFile { filename, content_type, bytes, is_too_large })
    };
    let form = Form { texts, files: files.iter().map(file).collect(), ..Form::default() };
    read_payload(query, Payload::Form(form))
}

fn reason<R>(read: Result<R, ApiError>) -> &'static str {
    read.err().expect("a refused request").reason()
}

#[test]
fn a_text_has_an_id_by_priority() {
    let id = |body: Value| {
        let request: UploadText = read("tenant_id=t", body).unwrap();
        request.file_id.map(|id| id.to_string())
    };
    let metadata = json!({"file_id": "m"});
    assert_eq!(
        id(json!({"content": "x", "file_id": "b", "document_metadata": metadata})),
        Some("b".into())
    );
    assert_eq!(
        id(json!({"content": "x", "file_id": "", "document_metadata": metadata})),
        Some("m".into())
    );
    assert_eq!(id(json!({"content": "x", "file_id": null})), None);
    assert_eq!(id(json!({"content": "x", "document_metadata": {"file_id": 7}})), None);
    let bad = json!({"content": "x", "document_metadata": {"file_id": "a/b"}});
    assert_eq!(reason(read::<UploadText>("tenant_id=t", bad)), "invalid_identifier");
}

/// The former name of the document metadata map is accepted, not ignored.
#[test]
fn metadata_of_uploads_are_those_of_the_document() {
    let year = |map: Option<lodestone_types::Metadata>| map.map(|map| map["year"].clone());
    let text = |body: Value| read::<UploadText>("tenant_id=t", body);
    let body = json!({"content": "x", "metadata": {"year": 2026}});
    assert_eq!(year(text(body).unwrap().document_metadata), Some(json!(2026)));
    let both = json!({"content": "x", "metadata": {"a": 1}, "document_metadata": {"a": 2}});
    assert_eq!(reason(text(both)), "conflicting_values");
    let map = [("tenant_id", "t"), ("metadata", "{\"year\": 2026}")];
    let one: UploadDocument = read_form("", &map, &[("file", "a.txt", "text")]).unwrap();
    assert_eq!(year(one.document_metadata), Some(json!(2026)));
    let many: BatchUpload = read_form("", &map, &[("files", "a.txt", "text")]).unwrap();
    assert_eq!(year(many.items[0].document_metadata.clone()), Some(json!(2026)));
}

#[test]
fn texts_and_metadata_have_limits() {
    let refused = |body: Value| {
        let error = read::<UploadText>("tenant_id=t", body).unwrap_err();
        (error.condition().row().0.as_u16(), error.reason())
    };
    assert_eq!(refused(json!({})), (400, "missing_field"));
    assert_eq!(refused(json!({"content": " \n"})), (400, "invalid_value"));
    assert_eq!(refused(json!({"content": 1})), (400, "invalid_value"));
    let large = "x".repeat((10 << 20) + 1);
    assert_eq!(refused(json!({ "content": large })), (413, "content_too_large"));
    let map = json!({"k": "x".repeat(70_000)});
    assert_eq!(
        refused(json!({"content": "x", "tenant_metadata": map})),
        (413, "content_too_large")
    );
    let key = "k".repeat(129);
    assert_eq!(
        refused(json!({"content": "x", "tenant_metadata": {key: 1}})),
        (400, "invalid_value")
    );
    assert_eq!(refused(json!({"content": "x", "tenant_metadata": []})), (400, "invalid_value"));
    assert_eq!(refused(json!({"content": "x", "tenant_id": "u"})), (400, "conflicting_values"));
}

#[test]
fn sub_tenants_default() {
    for body in [json!({}), json!({"sub_tenant_id": null}), json!({"sub_tenant_id": ""})] {
        for query in ["tenant_id=t", "tenant_id=t&sub_tenant_id=default"] {
            let request: TenantStats = read(query, body.clone()).unwrap();
            assert!(request.scope.sub_tenant.is_default());
        }
    }
    let anywhere: VerifyProcessing = read("file_id=f", json!({})).unwrap();
    assert_eq!((anywhere.tenant, anywhere.sub_tenant), (None, None));
    let there: VerifyProcessing = read("file_id=f&sub_tenant_id=default", json!({})).unwrap();
    assert_eq!(there.sub_tenant, Some(SubTenantId::default_name()));
}

#[test]
fn an_update_names_one_source() {
    let update = |query, body| read::<UpdateText>(query, body);
    let body = json!({"content": "x", "file_id": "s"});
    let request = update("tenant_id=t&source_id=s", body.clone()).unwrap();
    assert_eq!((request.source_id.as_str(), request.tenant_metadata), ("s", None));
    assert_eq!(reason(update("tenant_id=t&source_id=u", body.clone())), "conflicting_values");
    assert_eq!(update("tenant_id=t", body).unwrap().source_id.as_str(), "s");
    assert_eq!(reason(update("tenant_id=t", json!({"content": "x"}))), "missing_field");
    let metadata = json!({"tenant_id": "t", "source_id": "s", "document_metadata": {}});
    let request: UpdateMetadata = read("", metadata).unwrap();
    assert_eq!(request.tenant_metadata, None);
    assert_eq!(request.document_metadata.map(|map| map.len()), Some(0));
}

#[test]
fn a_document_is_a_filled_file() {
    let tenant = [("tenant_id", "t"), ("document_metadata", "{\"file_id\": \"m\"}")];
    let request: UploadDocument = read_form("", &tenant, &[("file", "a.txt", "text")]).unwrap();
    assert_eq!(request.file.filename, "a.txt");
    assert_eq!(request.file_id.unwrap().as_str(), "m");
    let refused = |texts: &[(&str, &str)], files: &[(&str, &str, &'static str)]| {
        reason(read_form::<UploadDocument>("", texts, files))
    };
    assert_eq!(refused(&tenant, &[]), "missing_field");
    assert_eq!(refused(&tenant, &[("file", "a.txt", "")]), "empty_file");
    let bad = [("tenant_id", "t"), ("tenant_metadata", "{bad")];
    assert_eq!(refused(&bad, &[("file", "a.txt", "x")]), "invalid_value");
    let list = [("tenant_id", "t"), ("tenant_metadata", "[]")];
    assert_eq!(refused(&list, &[("file", "a.txt", "x")]), "invalid_value");
    let update = read_form::<UpdateDocument>("tenant_id=t&source_id=s", &[], &[("file", "a", "x")]);
    assert_eq!(update.unwrap().source_id.as_str(), "s");
    let conflict = read_form::<UploadDocument>("tenant_id=u", &tenant, &[("file", "a", "x")]);
    assert_eq!(reason(conflict), "conflicting_values");
}

#[test]
fn batches_pair_files_with_ids_and_metadata() {
    let files = [("files", "a", "1"), ("files", "b", ""), ("files", "c", "3")];
    let ids = |texts: &[(&str, &str)]| -> Result<Vec<Option<String>>, ApiError> {
        let request: BatchUpload = read_form("tenant_id=t", texts, &files)?;
        let id = |item: &super::batch::FileItem| {
            item.id.clone().map(|id| id.as_ref().map(ToString::to_string))
        };
        request.items.iter().map(id).collect()
    };
    let some = |names: [&str; 3]| Ok(names.map(|n| (!n.is_empty()).then(|| n.to_owned())).to_vec());
    assert_eq!(ids(&[]), some(["", "", ""]));
    assert_eq!(ids(&[("file_ids", "[\"x\", null, \"\"]")]), some(["x", "", ""]));
    let parts = [("file_ids", "x"), ("file_ids", ""), ("file_ids", "z")];
    assert_eq!(ids(&parts), some(["x", "", "z"]));
    let numbered = [("file_ids[0]", "x"), ("file_ids[1]", "y"), ("file_ids[2]", "z")];
    assert_eq!(ids(&numbered), some(["x", "y", "z"]));
    let maps = "[{\"file_id\": \"x\"}, null, {}]";
    assert_eq!(ids(&[("document_metadata", maps)]), some(["x", "", ""]));
    for (texts, expected) in [
        ([("file_ids", "[\"x\"]")], "count_mismatch"),
        ([("file_ids", "x")], "count_mismatch"),
        ([("file_ids", "[1, 2, 3]")], "invalid_value"),
        ([("file_ids", "[\"x\", \"x\", \"y\"]")], "duplicate_id"),
        ([("file_ids", "[\"a/b\", \"x\", \"y\"]")], "invalid_identifier"),
        ([("document_metadata", "{\"file_id\": \"x\"}")], "duplicate_id"),
        ([("tenant_metadata", "[{}]")], "count_mismatch"),
        ([("tenant_metadata", "1")], "invalid_value"),
    ] {
        assert_eq!(ids(&texts).unwrap_err().reason(), expected, "{texts:?}");
    }
    let update = |texts: &[(&str, &str)]| read_form::<BatchUpdate>("tenant_id=t", texts, &files);
    assert_eq!(reason(update(&[])), "missing_field");
    assert_eq!(reason(update(&[("source_ids", "[\"x\", \"y\"]")])), "count_mismatch");
    assert_eq!(reason(update(&[("source_ids", "[\"x\", \"y\", null]")])), "count_mismatch");
    assert_eq!(update(&[("source_ids", "[\"x\", \"y\", \"z\"]")]).unwrap().items.len(), 3);
}

/// The order in which indexed parts arrive does not matter.
#[test]
fn indexed_parts_stand_at_their_index() {
    let files = [("files[1]", "b.txt", "2"), ("files[0]", "a.txt", "1")];
    let update = |texts: &[(&str, &str)]| read_form::<BatchUpdate>("tenant_id=t", texts, &files);
    let ids = [("source_ids[1]", "b"), ("source_ids[0]", "a")];
    let titles = [("title[1]", "B"), ("title[0]", "A")];
    for (item, (id, name, title)) in update(&[ids, titles].concat())
        .unwrap()
        .items
        .into_iter()
        .zip([("a", "a.txt", "A"), ("b", "b.txt", "B")])
    {
        assert_eq!(item.id.unwrap().unwrap().as_str(), id);
        assert_eq!((item.file.filename.as_str(), item.origin.detail.title.as_str()), (name, title));
    }
    for bad in [["[0]", "[7]"], ["[0]", "[0]"], ["[0]", ""], ["[]", "[0]"], ["[x]", "[0]"]] {
        let names = bad.map(|index| format!("ids{index}"));
        let error = update(&[(&names[0], "a"), (&names[1], "b")]).unwrap_err();
        assert_eq!(error.reason(), "invalid_value", "{bad:?}");
        let message = "source_ids of 2 parts must have the indexes [0] to [1]";
        assert_eq!(error.message(), message);
    }
    let maps = [("tenant_metadata[1]", ""), ("tenant_metadata[0]", "{\"n\": 1}")];
    let items = update(&[ids, maps].concat()).unwrap().items;
    let maps = items.iter().map(|item| item.tenant_metadata.as_ref().map(|map| map["n"].clone()));
    assert_eq!(maps.collect::<Vec<_>>(), [Some(json!(1)), None]);
    for (maps, expected) in [
        ([("metadata[0]", "{}"), ("metadata[2]", "{}")], "invalid_value"),
        ([("metadata[0]", "{}"), ("metadata", "{}")], "invalid_value"),
        ([("metadata[0]", "{}"), ("metadata[1]", "[]")], "invalid_value"),
        ([("metadata[0]", "{}"), ("metadata[1]", "{")], "invalid_value"),
        ([("metadata[0]", "{}"), ("document_metadata[0]", "{\"a\": 1}")], "conflicting_values"),
        ([("metadata[0]", "{}"), ("tenant_metadata", "{}")], "count_mismatch"),
    ] {
        assert_eq!(reason(update(&[ids, maps].concat())), expected, "{maps:?}");
    }
    let files = [("files[0]", "a.txt", "1"), ("files[2]", "b.txt", "2")];
    assert_eq!(reason(read_form::<BatchUpload>("tenant_id=t", &[], &files)), "invalid_value");
}

/// Goal: an index at a field that is no list makes an unknown name, which is never just dropped.
#[test]
fn an_index_needs_a_list() {
    let file = [("file", "a.txt", "1")];
    for name in ["sub_tenant_id[]", "sub_tenant_id[0]", "tenant_id[a]", "file_id[]"] {
        let refused = read_form::<UploadDocument>("tenant_id=t", &[(name, "b")], &file);
        assert_eq!(reason(refused), "unknown_parameter", "{name}");
    }
    let indexed = [("file[0]", "a.txt", "1")];
    let one: UploadDocument = read_form("tenant_id=t", &[], &indexed).unwrap();
    assert_eq!(one.file.filename, "a.txt");
    let mut unknown = Unknown::default();
    let names = ["title[0]", "file[0]", "title"];
    unknown.add_all(Location::Form, names.into_iter(), UploadDocument::FIELDS);
    let ignored = unknown.checked(UploadDocument::FIELDS, Rules::default());
    assert_eq!(ignored.unwrap(), ["title[0]"]);
}

#[test]
fn a_file_that_is_too_large_fails_alone() {
    let files = [("files", "a", "1"), ("files", "b", "too large")];
    let request: BatchUpload = read_form("tenant_id=t", &[], &files).unwrap();
    let reasons = request.items.iter().map(|item| item.id.as_ref().map_err(ApiError::reason));
    assert_eq!(reasons.collect::<Vec<_>>(), [Ok(&None), Err("file_too_large")]);
}

/// Goal: an error names the list entry that it concerns, in `detail.errors` and in its message.
#[test]
fn errors_name_the_entry_of_a_list() {
    fn named<R>(read: Result<R, ApiError>) -> String {
        let body = read.err().expect("a refused request").body("r");
        let field = body["detail"]["errors"][0]["field"].as_str().expect("a field").to_owned();
        assert!(body["message"].as_str().unwrap().starts_with(&field), "{body}");
        field
    }
    let (text, bad) = (json!({"content": "x"}), json!({"content": "x", "document_metadata": 7}));
    let body = json!({"items": [text, bad]});
    let name = named(read::<BatchUploadText>("tenant_id=t", body));
    assert_eq!(name, "items[1].document_metadata");
    let name = named(read::<UploadAppSources>("tenant_id=t", json!([{}, {"tenant_metadata": 7}])));
    assert_eq!(name, "[1].tenant_metadata");
    let pages = json!({"items": [{}, {"tenant_metadata": 7}]});
    assert_eq!(named(read::<BatchScrapeWebpage>("tenant_id=t", pages)), "items[1].tenant_metadata");
    let pair = json!({"user": "a", "assistant": "b"});
    let pairs = json!({"user_assistant_pairs": [pair, {"user": 7, "assistant": "b"}]});
    assert_eq!(named(read::<AddMemory>("tenant_id=t", pairs)), "user_assistant_pairs[1].user");
    let key = json!({"key": "a", "type": "string"});
    let schema = json!({"tenant_metadata_schema": [key, {"key": "b", "type": "text"}]});
    assert_eq!(named(read::<CreateTenant>("", schema)), "tenant_metadata_schema[1].type");
    for (tenants, expected) in [
        (json!([{"tenant_id": "a"}, {"tenant_id": "/"}]), "tenants[1].tenant_id"),
        (json!([{"tenant_id": "a"}, 7]), "tenants[1]"),
        (json!([{"tenant_id": "a", "sub_tenant_ids": ["x", "/"]}]), "tenants[0].sub_tenant_ids[1]"),
    ] {
        let body = json!({"name": "n", "role": "read", "tenants": tenants});
        assert_eq!(named(read::<CreateKey>("", body)), expected);
    }
    let ids = json!({"tenant_id": "t", "source_ids": ["a", "b/c"]});
    assert_eq!(named(read::<DeleteSources>("", ids)), "source_ids[1]");
    let files = [("files", "a", "1"), ("files", "b", "2")];
    let maps = [("document_metadata", "[{}, 7]")];
    let name = named(read_form::<BatchUpload>("tenant_id=t", &maps, &files));
    assert_eq!(name, "document_metadata[1]");
}

#[test]
fn faults_of_values_name_their_field() {
    fn named<R>(read: Result<R, ApiError>) -> String {
        let body = read.err().expect("a refused request").body("r");
        body["detail"]["errors"][0]["field"].as_str().expect("a field").to_owned()
    }
    let bad = json!({"content": "x", "document_metadata": {"file_id": "a/b"}});
    assert_eq!(named(read::<UploadText>("tenant_id=t", bad)), "document_metadata.file_id");
    let text = json!({"content": "x", "file_id": "a"});
    let twice = json!({"items": [text, {"content": "y", "file_id": "b"}, text]});
    assert_eq!(named(read::<BatchUploadText>("tenant_id=t", twice)), "items[2]");
    let files = [("files", "a", "1"), ("files", "b", "2")];
    let ids = [("file_ids", "[\"x\", \"x\"]")];
    assert_eq!(named(read_form::<BatchUpload>("tenant_id=t", &ids, &files)), "file_ids[1]");
    let key = |key: &str| json!({"key": key, "type": "string"});
    for wrong in ["a", "source_id", "_x", "1"] {
        let schema = json!({"tenant_metadata_schema": [key("b"), key("a"), key(wrong)]});
        assert_eq!(named(read::<CreateTenant>("", schema)), "tenant_metadata_schema[2]");
    }
    let (expected, received) = (2, 3);
    let of_search = EngineError::from(QueryError::DimensionMismatch { expected, received });
    let of_upload = EngineError::from(IngestError::DimensionMismatch { expected, received });
    for error in [of_search, of_upload] {
        assert_eq!(named::<()>(Err(error.into())), "embeddings");
    }
}

/// Goal: an error names the place where a value was sent, and the name under which it was sent.
#[test]
fn faults_are_found_where_the_value_was_sent() {
    fn place<R>(read: Result<R, ApiError>) -> (String, String) {
        let body = read.err().expect("a refused request").body("r");
        let place = &body["detail"]["errors"][0];
        let text = |name: &str| place[name].as_str().expect("a text").to_owned();
        assert!(body["message"].as_str().unwrap().starts_with(&text("field")), "{body}");
        (text("location"), text("field"))
    }
    let at = |location: &str, field: &str| (location.to_owned(), field.to_owned());
    let file = [("file", "a.txt", "1")];
    let document = |query, texts| read_form::<UploadDocument>(query, texts, &file);
    assert_eq!(place(document("tenant_id=a/b", &[])), at("query", "tenant_id"));
    assert_eq!(place(document("", &[("tenant_id", "a/b")])), at("form", "tenant_id"));
    let deleted = read::<DeleteSources>("tenant_id=t&ids=a/b", json!({}));
    assert_eq!(place(deleted), at("query", "ids[0]"));
    let page = read_form::<ScrapeWebpage>("tenant_id=t", &[("web_url", "ftp://a")], &[]);
    assert_eq!(place(page), at("form", "web_url"));
    let text = |more: Value| {
        let mut body = json!({"content": "x"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        place(read::<UploadText>("tenant_id=t", body))
    };
    assert_eq!(text(json!({"source_id": "a/b"})), at("body", "source_id"));
    assert_eq!(text(json!({"id": 7})), at("body", "id"));
    assert_eq!(text(json!({"metadata": []})), at("body", "metadata"));
    assert_eq!(text(json!({"metadata": {"a": "x".repeat(70_000)}})), at("body", "metadata"));
}

/// Ignoring a misspelled name would give a key wider access than intended.
#[test]
fn a_mistyped_name_in_a_key_is_no_wider_key() {
    let tenants = json!([{"tenant_id": "a", "sub_tenants": ["x"]}]);
    let body = json!({"name": "n", "role": "read", "tenants": tenants});
    assert_eq!(reason(read::<CreateKey>("", body)), "unknown_parameter");
    let body = json!({"name": "n", "role": "read", "tenant_ids": ["a"]});
    assert_eq!(reason(read::<CreateKey>("", body)), "unknown_parameter");
}

#[test]
fn one_source_has_four_names() {
    for name in ["file_id", "source_id", "id"] {
        let in_query: VerifyProcessing = read(&format!("{name}=s"), json!({})).unwrap();
        assert_eq!(in_query.file_id.as_str(), "s");
        let in_body: FetchContent = read("tenant_id=t", json!({ name: "s" })).unwrap();
        assert_eq!(in_body.file_id.as_str(), "s");
        let text: UploadText = read("tenant_id=t", json!({"content": "x", name: "s"})).unwrap();
        assert_eq!(text.file_id.unwrap().as_str(), "s");
        let both = json!({"content": "x", name: "s"});
        let other = read::<UpdateText>("tenant_id=t&source_id=u", both);
        assert_eq!(reason(other), "conflicting_values", "{name}");
        let items = json!({"items": [{"content": "x", name: "s"}]});
        let items: BatchUploadText = read("tenant_id=t", items).unwrap();
        assert_eq!(items.items[0].id.as_ref().unwrap().as_str(), "s");
    }
    for name in ["source_ids", "file_ids", "ids"] {
        let body = json!({"tenant_id": "t", name: ["a", "b"]});
        assert_eq!(read::<DeleteSources>("", body.clone()).unwrap().source_ids.len(), 2);
        assert_eq!(read::<SourcesById>("", body.clone()).unwrap().source_ids.len(), 2);
        let again = read::<DeleteSources>("source_ids=a&source_ids=b", body.clone());
        assert_eq!(again.unwrap().source_ids.len(), 2);
        let other = read::<DeleteSources>("source_ids=a", body);
        assert_eq!(reason(other), "conflicting_values");
    }
}

#[test]
fn a_text_of_the_wrong_type_or_with_a_bad_id_fails_alone() {
    let items = json!({"items": [
        {"content": "x", "file_id": "a"}, null, "x", 7, [], {"content": "x", "file_id": "a/b"},
        {"content": "x", "file_id": 5}, {"content": "x", "contnt": "y"},
    ]});
    let request: BatchUploadText = read("tenant_id=t", items).unwrap();
    let reasons: Vec<_> =
        request.items.iter().map(|item| item.content.as_ref().err().map(|e| e.reason())).collect();
    let wrong = Some("invalid_value");
    assert_eq!(reasons[..5], [None, wrong, wrong, wrong, wrong]);
    assert_eq!(reasons[5..], [Some("invalid_identifier"), wrong, Some("unknown_parameter")]);
    let bad_map = json!({"items": [{"content": "x", "tenant_metadata": 1}]});
    assert_eq!(reason(read::<BatchUploadText>("tenant_id=t", bad_map)), "invalid_value");
}

#[test]
fn a_blank_text_fails_alone() {
    let items = json!({"items": [{"content": "x", "file_id": "a"}, {"content": " "}, {}]});
    let request: BatchUploadText = read("tenant_id=t", items).unwrap();
    assert!(request.items[0].content.is_ok() && request.items[0].id.is_some());
    assert_eq!(request.items[1].content.as_ref().unwrap_err().reason(), "invalid_value");
    assert_eq!(request.items[2].content.as_ref().unwrap_err().reason(), "missing_field");
    let many = json!({"items": vec![json!({"content": "x"}); 101]});
    assert_eq!(reason(read::<BatchUploadText>("tenant_id=t", many)), "too_many_items");
    assert_eq!(reason(read::<BatchUploadText>("tenant_id=t", json!({}))), "missing_field");
    let error = BatchResult::reply(Vec::new(), Vec::new()).unwrap_err().body("r");
    assert_eq!((&error["error"], &error["failed"]), (&json!("Invalid request"), &json!([])));
}

#[test]
fn listings_and_deletions() {
    let request: ListSources = read("tenant_id=t&limit=5&status=errored", json!({})).unwrap();
    assert_eq!((request.limit, request.status), (Some(5), Some(JobStatus::Errored)));
    assert_eq!(read::<ListSources>("tenant_id=t", json!({})).unwrap().limit, None);
    for query in ["tenant_id=t&limit=0", "tenant_id=t&limit=x", "tenant_id=t&status=done"] {
        assert_eq!(reason(read::<ListSources>(query, json!({}))), "invalid_value");
    }
    let by_query: DeleteSources = read("tenant_id=t&source_ids=a&source_ids=b", json!({})).unwrap();
    assert_eq!(by_query.source_ids.len(), 2);
    let scope = |ids: Value| json!({"tenant_id": "t", "source_ids": ids});
    assert_eq!(reason(read::<DeleteSources>("", scope(json!([])))), "invalid_value");
    assert_eq!(reason(read::<DeleteSources>("", scope(json!([1])))), "invalid_value");
    assert_eq!(reason(read::<DeleteSources>("", scope(json!(vec!["x"; 1001])))), "too_many_items");
    let once: SourcesById = read("", scope(json!(["b", "a", "b"]))).unwrap();
    assert_eq!(once.source_ids.iter().map(|id| id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert!(read::<SourcesById>("", scope(json!([]))).unwrap().source_ids.is_empty());
    let fetch = json!({"tenant_id": "t", "file_id": "f", "file_type": 7});
    assert!(read::<FetchContent>("", fetch).unwrap().return_content);
    let jobs: ListJobs = read("", json!({})).unwrap();
    assert_eq!((jobs.tenant, jobs.limit), (None, 50));
}

#[test]
fn tenants() {
    let create = |body: Value| read::<CreateTenant>("", body);
    assert_eq!(create(json!({})).unwrap().schema, None);
    assert_eq!(create(json!({"tenant_metadata_schema": null})).unwrap().schema, None);
    let field = |key: &str, kind: &str| json!({"key": key, "type": kind});
    let schema = json!({"tenant_metadata_schema": [field("n", "number")]});
    let declared = create(schema).unwrap().schema.unwrap();
    assert!(declared.fields[0].filterable && !declared.fields[0].searchable);
    for (fields, expected) in [
        (json!([field("source_id", "string")]), "reserved_key"),
        (json!([field("a", "string"), field("a", "string")]), "schema_violation"),
        (json!([field("1a", "string")]), "invalid_value"),
        (json!([field("a", "text")]), "invalid_value"),
        (json!([{"type": "string"}]), "missing_field"),
        (json!([{"key": "a", "type": "string", "filtrable": true}]), "unknown_parameter"),
        (json!(["a"]), "invalid_value"),
        (json!([{"key": "a", "type": "string", "filterable": "yes"}]), "invalid_value"),
        (json!(vec![field("a", "string"); 65]), "too_many_items"),
    ] {
        assert_eq!(reason(create(json!({ "tenant_metadata_schema": fields }))), expected);
    }
    for query in ["tenant_id=t", "tenant_id=t&sub_tenant_id=", "tenant_id=t&sub_tenant_id=default"]
    {
        let refused = read::<DeleteSubTenant>(query, json!({}));
        assert_eq!(reason(refused), "default_sub_tenant_protected");
    }
    assert!(read::<DeleteTenant>("tenant_id=t&confirm=t", json!({})).is_ok());
    assert_eq!(reason(read::<DeleteTenant>("tenant_id=t&confirm=u", json!({}))), "invalid_value");
    assert_eq!(reason(read::<NamedTenant>("", json!({}))), "missing_field");
}

#[test]
fn vectors_and_chunk_ids() {
    let upload: UploadEmbeddings =
        read("tenant_id=t", json!({"embeddings": [[1, 2]], "file_id": "b"})).unwrap();
    assert_eq!((upload.vectors.dimension, upload.vectors.len()), (2, 1));
    assert_eq!(reason(read::<UploadEmbeddings>("tenant_id=t", json!({}))), "missing_field");
    let update = |rows: Value| read::<UpdateEmbeddings>("tenant_id=t", json!({"embeddings": rows}));
    let good = update(json!({"b_1": [1], "b_0": [2]})).unwrap();
    assert_eq!(good.vectors.names, ["b_1", "b_0"]);
    let repeated = |third: &str| {
        let body = format!(r#"{{"embeddings": {{"b_1": [1], "b_0": [2], "b_1": [{third}]}}}}"#);
        read_payload::<UpdateEmbeddings>("tenant_id=t", Payload::Json(body.into()))
    };
    assert_eq!(repeated("1.0").unwrap().vectors.names, ["b_1", "b_0"]);
    assert_eq!(reason(repeated("3")), "conflicting_values");
    let spelled = |value: &str| {
        let body = format!("{{\"embeddings\": {{\"\u{e9}_0\": [1], \"e\u{301}_0\": [{value}]}}}}");
        read_payload::<UpdateEmbeddings>("tenant_id=t", Payload::Json(body.into()))
    };
    assert_eq!(spelled("1").unwrap().vectors.names, ["\u{e9}_0"]);
    assert_eq!(reason(spelled("2")), "conflicting_values");
    let search = |max: Value| {
        read::<SearchEmbeddings>(
            "",
            json!({"tenant_id": "t", "embeddings": [1], "max_chunks": max}),
        )
    };
    assert_eq!(search(json!(null)).unwrap().max_chunks, 10);
    assert_eq!(reason(search(json!(201))), "invalid_value");
    let ids: NamedChunks = read("", json!({"tenant_id": "t", "chunk_ids": ["odd/one"]})).unwrap();
    assert_eq!(ids.chunk_ids, ["odd/one"]);
}

#[test]
fn vectors_come_with_ids_and_metadata() {
    let upload = |more: Value| {
        let mut body = json!({"embeddings": [[1, 2], [3, 4]]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read::<UploadEmbeddings>("tenant_id=t", body)
    };
    let whole = upload(json!({"ids": ["x", "y"], "metadata": [{"a": 1}, null]})).unwrap();
    assert_eq!(whole.ids.unwrap().len(), 2);
    assert_eq!(whole.metadata.unwrap()[1], None);
    assert_eq!(reason(upload(json!({"ids": ["x"]}))), "count_mismatch");
    assert_eq!(reason(upload(json!({"ids": ["x", "x"]}))), "duplicate_id");
    assert_eq!(reason(upload(json!({"ids": ["x", "a/b"]}))), "invalid_identifier");
    assert_eq!(reason(upload(json!({"metadata": [{"a": 1}]}))), "count_mismatch");
    assert_eq!(reason(upload(json!({"metadata": {"a": 1}}))), "invalid_value");
    let large = json!({"metadata": [{"a": "x".repeat(70_000)}, null]});
    assert_eq!(reason(upload(large)), "content_too_large");
    let search = |more: Value| {
        let mut body = json!({"tenant_id": "t", "embeddings": vec![vec![1.0]; 100]});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        read::<SearchEmbeddings>("", body)
    };
    assert!(search(json!({"with_metadata": true, "max_chunks": 20})).is_ok());
    assert!(search(json!({"max_chunks": 200})).is_ok());
    assert_eq!(reason(search(json!({"with_vectors": true, "max_chunks": 21}))), "invalid_value");
    assert_eq!(reason(search(json!({"filter": {"a": {"$no": 1}}}))), "invalid_filter");
}

#[test]
fn vector_hits_are_merged() {
    let hit = |id: &str, score| {
        let (metadata, embedding) = (None, None);
        ScoredChunk { chunk_id: id.into(), score, metadata, embedding }
    };
    let lists = vec![vec![hit("b", 0.5), hit("a", 0.4)], vec![hit("a", 0.9), hit("c", 0.5)]];
    let merged = EmbeddingHits::merge(lists, 3);
    assert_eq!(merged.chunk_ids, ["a", "b", "c"]);
    assert_eq!(merged.scores, [0.9, 0.5, 0.5]);
    assert_eq!(merged.results.len(), 2);
    assert_eq!(EmbeddingHits::merge(Vec::new(), 3).chunk_ids.len(), 0);
}

#[test]
fn searches_have_defaults_and_ranges() {
    let retrieve = |extra: Value| {
        let mut body = json!({"query": "q", "tenant_id": "t"});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        read::<Retrieve>("", body)
    };
    let plain = retrieve(json!({})).unwrap().request;
    assert_eq!((plain.max_chunks, plain.mode, plain.alpha), (10, Mode::Fast, Alpha::Default));
    let empty = json!({"max_chunks": null, "alpha": null, "recency_bias": null, "context_list": [],
        "graph_context": null, "extra_context": "", "mode": null, "metadata": null});
    assert_eq!(retrieve(empty).unwrap().request, plain);
    assert_eq!(retrieve(json!({"alpha": "0.8"})).unwrap().request.alpha, Alpha::Fixed(0.8));
    assert_eq!(retrieve(json!({"alpha": "auto"})).unwrap().request.alpha, Alpha::Auto);
    assert_eq!(retrieve(json!({"max_chunks": 10.0})).unwrap().request.max_chunks, 10);
    for bad in [
        json!({"alpha": "x"}),
        json!({"alpha": "nan"}),
        json!({"alpha": -0.1}),
        json!({"alpha": true}),
        json!({"recency_bias": 1.1}),
        json!({"recency_bias": "0.5"}),
        json!({"max_chunks": 1.5}),
        json!({"max_chunks": -1}),
        json!({"graph_context": "true"}),
        json!({"graph_context": 1}),
        json!({"mode": "Fast"}),
        json!({"mode": ""}),
        json!({"query": "\u{200b}"}),
        json!({"query": "\0"}),
        json!({"query": "x".repeat(16_385)}),
        json!({"context_list": "a"}),
    ] {
        assert_eq!(reason(retrieve(bad.clone())), "invalid_value", "{bad:.80}");
    }
    assert_eq!(reason(retrieve(json!({"context_list": vec!["x"; 1001]}))), "too_many_items");
    assert!(retrieve(json!({"query": "é".repeat(16_384)})).is_ok());
    let full = json!({"query": "q", "tenant_id": "t", "operator": "AND"});
    let full: FullTextSearch = read("", full).unwrap();
    assert_eq!((full.request.operator, full.request.max_chunks), (Operator::And, 25));
    let empty = json!({"query": "q", "tenant_id": "t", "operator": ""});
    assert_eq!(reason(read::<FullTextSearch>("", empty)), "invalid_value");
}

#[test]
fn questions_have_their_own_names() {
    let body = json!({"question": "q", "tenant_id": "t", "search_alpha": 0.5, "top_n": 5,
        "ai_generation": false, "highlight_chunks": false, "search_modes": ["x"],
        "session_id": ""});
    let qna: Qna = read("", body).unwrap();
    assert_eq!((qna.request.max_chunks, qna.request.alpha), (5, Alpha::Fixed(0.5)));
    assert!(qna.highlight_chunks, "ignored when ai_generation is false");
    assert_eq!(qna.conversation, Conversation::New);
    let both = json!({"question": "q", "tenant_id": "t", "top_n": 5, "max_chunks": 6});
    assert_eq!(reason(read::<Qna>("", both)), "conflicting_values");
    let alias = json!({"question": "q", "tenant_id": "t", "max_chunks": 6});
    assert_eq!(read::<Qna>("", alias).unwrap().request.max_chunks, 6);
}

#[test]
fn keys_have_a_scope_and_an_end() {
    let create = |extra: Value| {
        let mut body = json!({"name": "n", "role": "write"});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        read::<CreateKey>("", body)
    };
    let wide = create(json!({"expires_at": "2025-09-09T07:20:09Z"})).unwrap();
    assert_eq!((wide.role, &wide.scope), (Role::Write, &KeyScope::AllTenants));
    assert_eq!(wide.expires_at, Some(Timestamp(1_757_402_409_000)));
    let tenants = json!([{"tenant_id": "a"}, {"tenant_id": "b", "sub_tenant_ids": ["", "x"]}]);
    let scoped = create(json!({"tenants": tenants, "expires_at": 1.5})).unwrap();
    let shown = serde_json::to_value(KeyView::tenants_of(&scoped.scope)).unwrap();
    assert_eq!(shown[0], json!({"tenant_id": "a", "sub_tenant_ids": null}));
    assert_eq!(shown[1]["sub_tenant_ids"], json!(["default", "x"]));
    for bad in [
        json!({"tenants": []}),
        json!({"tenants": [{"tenant_id": 1}]}),
        json!({"tenants": [{"tenant_id": "a", "sub_tenant_ids": []}]}),
        json!({"role": "root"}),
        json!({"role": ""}),
        json!({"expires_at": "soon"}),
        json!({"name": ""}),
    ] {
        assert_eq!(reason(create(bad.clone())), "invalid_value", "{bad}");
    }
    let (path, payload) = (pairs("key_id=key_1"), Payload::Json("".into()));
    let (query, headers, handling) = (Vec::new(), Vec::new(), Handling::Usual);
    let input = Input { query, path, headers, payload, handling };
    assert_eq!(input.read::<RevokeKey>(true).unwrap().request.key_id, "key_1");
}

fn chunk(id: &str) -> QnaChunk {
    let place =
        ChunkPlace { document_start: 1024, page_start: 50, chars: 9, page: PageRef::Page(2) };
    let chunk = Chunk {
        chunk_uuid: id.into(),
        joined: Vec::new(),
        source_id: "s".into(),
        chunk_content: "text".into(),
        source_type: "file".into(),
        source_upload_time: "1.000".into(),
        source_title: "T".into(),
        source_last_updated_time: "1.000".into(),
        layout: Some(layout(&place, &[])),
        relevancy_score: Some(0.1),
        document_metadata: None,
        tenant_metadata: None,
        extra_context: None,
        graph_triplet_ids: Vec::new(),
        source_url: String::new(),
        source_collection: Vec::new(),
        version: "v1".into(),
        rerank_score: None,
        vector_score: None,
        keyword_score: None,
        sparse_score: None,
        confidence: 0.5,
        highlights: None,
        explain: None,
    };
    QnaChunk {
        chunk,
        bounding_box: None,
        bounding_boxes: Vec::new(),
        source_filename: "f.pdf".into(),
        page_number: Some(2),
        snippet: "text".into(),
        source_index: 0,
    }
}

#[test]
fn layouts_are_json_in_a_string() {
    let of = |page| {
        let place = ChunkPlace { document_start: 7, page_start: 3, chars: 1, page };
        serde_json::from_str::<Value>(&layout(&place, &[])).unwrap()
    };
    let offsets = json!({"document_level_start_index": 7, "page_level_start_index": 3});
    assert_eq!(of(PageRef::Whole), json!({"offsets": offsets, "page": 1}));
    assert_eq!(of(PageRef::Page(4)), json!({"offsets": offsets, "page": 4}));
    assert_eq!(of(PageRef::Slide(4)), json!({"offsets": offsets, "page": "", "slide": 4}));
    assert_eq!(of(PageRef::Sheet(2)), json!({"offsets": offsets, "page": "", "sheet": 2}));
}

#[test]
fn chunks_have_all_their_members() {
    let text = serde_json::to_string(&chunk("c")).unwrap();
    assert!(text.contains("\"relevancy_score\":0.1,"), "a 32-bit float prints as itself: {text}");
    let value: Value = serde_json::from_str(&text).unwrap();
    for name in ["chunk_uuid", "extra_context", "rerank_score", "bounding_box", "source_index"] {
        assert!(value.as_object().unwrap().contains_key(name), "{name}");
    }
}

fn answer(text: &str) -> QnaResponse {
    let search = SearchMetadata {
        request_id: "r".into(),
        completed_query: None,
        mode: "fast".into(),
        alpha: 0.8,
        alpha_mode: "fixed".into(),
        alpha_reason: None,
        recency_bias: 0.0,
        max_chunks: 10,
        returned: 1,
        candidates: Default::default(),
        filtered: false,
        embedding_model: "m".into(),
        reranker: None,
        personalised: false,
        memories_used: Vec::new(),
        graph: Default::default(),
        timings_ms: Default::default(),
        vector_paths: Vec::new(),
        vector_recall: None,
        degraded: Vec::new(),
        degraded_message: None,
        ignored_parameters: Vec::new(),
        warnings: Vec::new(),
    };
    let metadata = QnaMetadata {
        search,
        corrections: Vec::new(),
        conflict: false,
        language: None,
        generation: Default::default(),
    };
    QnaResponse {
        answer: text.into(),
        sources: Vec::new(),
        citations: Vec::new(),
        chunks: vec![chunk("c")],
        success: true,
        session_id: None,
        graph_relations: None,
        model_used: None,
        metadata,
        tool_calls: Vec::new(),
    }
}

#[tokio::test]
async fn a_streamed_answer_says_what_the_whole_one_says() {
    use http_body_util::BodyExt;
    let run = |tokens: &'static [&'static str]| async move {
        let (events, stream) = sse::channel(ErrorForm::Own, "r".into(), Spools::new().spooler());
        std::thread::spawn(move || {
            let start = StartEvent { request_id: "r".into(), session_id: None, model: None };
            let sources =
                SourcesEvent { sources: Vec::new(), chunks: Vec::new(), graph_relations: None };
            let mut stream = AnswerStream::new(events, Voice::Own);
            stream.start(&start).unwrap();
            stream.sources(&sources).unwrap();
            for token in tokens {
                stream.token(token).unwrap();
            }
            stream.done(&answer("one two")).unwrap();
        });
        let bytes = stream.into_response().into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let line = |line: &str, name: &str| line.strip_prefix(name).map(str::to_owned);
        let names: Vec<String> = text.lines().filter_map(|l| line(l, "event: ")).collect();
        let data: Vec<Value> = text
            .lines()
            .filter_map(|l| line(l, "data: "))
            .map(|data| serde_json::from_str(&data).unwrap())
            .collect();
        let joined: String = data.iter().filter_map(|d| d["delta"].as_str()).collect();
        (names, joined, data.last().unwrap().clone())
    };
    // Compared as text, because a JSON tree would widen 32-bit floats.
    let whole = serde_json::to_string(&answer("one two")).unwrap();
    let whole: Value = serde_json::from_str(&whole).unwrap();
    let (names, joined, last) = run(&["one", "", " t"]).await;
    assert_eq!(names, ["start", "sources", "token", "token", "token", "done"]);
    assert_eq!((joined.as_str(), &last), ("one two", &whole));
    let (names, _, last) = run(&["two"]).await;
    assert_eq!(names.last().unwrap(), "error");
    assert_eq!(last["reason"], "internal");
}
