//! Responses of third parties: generators, embedding servers and object stores.
//!
//! Invariants: everything accepted from a response respects its documented limits, and does not
//! depend on how the network splits the response.

use std::ops::ControlFlow;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lodestone_answer::generate::{
    CALLS_MAX, Delivery, Effort, Ended, GenerateError, Generator, GeneratorSettings, Message,
    OpenAiGenerator, Prompt, Question, Said, Sampling, Speaker, Tell, Usage, Writer, Written,
};
use lodestone_answer::sources_only;
use lodestone_answer::testing::chunk;
use lodestone_embed::{Embedder, HashEmbedder, Lane};
use lodestone_engine::{EmbeddingServer, RemoteEmbedder};
use lodestone_fetch::Authorities;
use lodestone_fetch::bucket::{Bucket, BucketOptions};
use lodestone_graph::claims::{ChunkText, merge};
use lodestone_graph::{RowGraph, extract};
use lodestone_types::{CancellationToken, RequestContext, SeededIds, SystemClock};

use crate::chance::Chance;
use crate::mutations::Shape;
use crate::peer::{Peer, in_pieces, pieces, whole};
use crate::runner::{Target, fingerprint, run};

/// Maximum length of a reply's text in bytes, as stated by the generator client.
const TEXT_BYTES_MAX: usize = 256 << 10;

pub fn fuzz<S: AsRef<[u8]>>(
    name: &'static str,
    seeds: &[S],
    shape: Shape,
    read: impl Fn(&[u8]) + Send + 'static,
) {
    let seeds = seeds.iter().map(|seed| seed.as_ref().to_vec()).collect();
    run(Target { name, seeds, shape, read: Box::new(read), is_contained: |_| false });
}

/// Streams of a generator, split at any point.
#[test]
fn generator() {
    const PIECES: &[&str] = &[
        "data: ",
        "data:",
        "\n\n",
        "\r\n\r\n",
        "\r",
        "\n",
        ": keep\n\n",
        "event: x\n",
        "[DONE]",
        "{\"choices\":[{\"delta\":{\"content\":\"a\"}}]}",
        "<think>",
        "</think>",
        "<thi",
        "nk>",
        "\"finish_reason\":\"stop\"",
        "\"finish_reason\":null",
        "\"index\":1",
        "\"index\":0",
        "\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":18446744073709551615}",
        "\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"b\"}}]",
        "{\"function\":{\"arguments\":\"{}\"}}",
        "\"error\":{}",
        "\"error\":null",
        "\u{FEFF}",
        "\"content\":[]",
        "\"message\":{\"content\":\"b\"}",
        "\\ud83d",
        "\\u0000",
        "null",
    ];
    let seeds = [
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"<think>a</think>It\"}}]}\n\n\
         : wait\n\ndata: {\"choices\":[{\"delta\":{\"content\":\" is \u{e9} [1].\"},\
         \"finish_reason\":\"stop\"}],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":4}}\r\n\
         \r\ndata: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"c\",\"function\":\
         {\"name\":\"f\",\"arguments\":\"{\\\"a\\\":\"}}]}}]}\n\ndata: {\"choices\":[{\"delta\":\
         {\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}},{\"index\":1,\"id\":\
         \"d\",\"function\":{\"name\":\"g\"}}]},\"finish_reason\":\"tool_calls\"}]}\n\n",
        "{\"choices\":[{\"message\":{\"content\":\"All of it.\",\"tool_calls\":[{\"id\":\"x\",\
         \"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}}]}",
    ];
    let peer = Peer::start();
    let generator = OpenAiGenerator::new(GeneratorSettings {
        base_url: peer.url.clone(),
        api_key: None,
        model: "m".to_owned(),
        context_tokens: 4096,
    });
    let time = Duration::from_secs(20);
    let prompt = Prompt {
        messages: vec![Message { speaker: Speaker::User, text: "a".to_owned() }],
        reply_tokens_max: 10,
        temperature: 0.0,
        effort: Effort { attempts_max: 1, silence_max: time, time_max: time },
        tools: None,
    };
    let ask = move |answer: Vec<u8>| {
        peer.answer([answer]);
        let mut text = String::new();
        let mut tell = |piece: &str| {
            assert!(!piece.is_empty(), "an empty piece");
            text.push_str(piece);
            ControlFlow::Continue(())
        };
        let ended = generator.generate(&prompt, &CancellationToken::default(), &mut tell);
        assert!(text.len() <= TEXT_BYTES_MAX, "{} bytes of text", text.len());
        (ended, text)
    };
    fuzz("generator", &seeds, Shape::Text(PIECES), move |body| {
        let is_stream = body.first() != Some(&b'{');
        let kind = if is_stream { "text/event-stream" } else { "application/json" };
        let first = ask(whole(kind, body));
        let again = ask(in_pieces(kind, body, &mut Chance::new(fingerprint(body))));
        assert_eq!(first, again, "it depends on how it is cut");
        if let Ok(ended) = first.0 {
            assert!(ended.tool_calls.len() <= CALLS_MAX, "{} calls", ended.tool_calls.len());
            let is_named = |name: &String| !name.is_empty();
            assert!(ended.tool_calls.iter().all(|call| is_named(&call.id) && is_named(&call.name)));
        }
    });
}

/// A generator that says what it is told, in pieces.
#[derive(Debug, Default)]
struct Parrot(Mutex<Vec<String>>);

impl Generator for Parrot {
    fn model(&self) -> &str {
        "parrot"
    }

    fn place(&self) -> &str {
        "here"
    }

    fn context_tokens(&self) -> usize {
        8192
    }

    fn generate(
        &self,
        _: &Prompt,
        _: &CancellationToken,
        tell: Tell<'_>,
    ) -> Result<Ended, GenerateError> {
        let is_over = self.0.lock().unwrap().iter().any(|piece| tell(piece).is_break());
        if is_over { Err(GenerateError::Cancelled) } else { Ok(Ended::default()) }
    }

    fn look(&self) -> Result<String, GenerateError> {
        Ok(String::new())
    }
}

/// The numbers of the citation marks in a text.
fn numbers(text: &str) -> impl Iterator<Item = usize> {
    let inside = text.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    inside.filter_map(move |(text, _)| text.parse::<usize>().ok().filter(|_| is_number(text)))
}

/// Replies as text: the citations, queries and sentences parsed from them.
#[test]
fn written() {
    const PIECES: &[&str] = &[
        "[1]", "[2]", "[3]", "[1, 2]", "[1-3]", "[0]", "[99999999999999999999]", "[Source 1]", "[",
        "]", "\u{3010}1\u{3011}", "\u{ff3b}2\u{ff3d}", "`", "```", "`a[0]`", ". ", "\n", "\n\n",
        "- ", "1. ", " ", "\u{a0}", "[1][2]", "[[1]]", "[1](http://x)", "[und 2]", "\"", "NONE",
        "The tower is red", "\u{301}", "\u{200d}", "((1))", "[\u{0661}]", "[-1]", "[1-99]",
    ];
    let seeds = [
        "The tower is red [1]. The bridge is old [2, 3], `a[0]` says [Source 2].\n- It is [1-2].",
        "What is the tower?\n1. Who built the bridge?\n- Who built the tower?\n",
        "NONE",
    ];
    let mut seeds = seeds.map(str::to_owned).to_vec();
    // Models may repeat themselves endlessly; anything quadratic takes seconds on these.
    seeds.extend(["[1]", "The tower [9]. ", "No. - "].map(|said| said.repeat(4000)));
    let chunks = [
        chunk("a", 0, "The tower is red and was built in 1900.", 0.9),
        chunk("b", 0, "The bridge is old. It was opened in 1850.", 0.8),
    ];
    let sources = sources_only("What is the tower?", &chunks);
    let embedder = HashEmbedder;
    let parrot = Arc::new(Parrot::default());
    let writer = Writer::new(parrot.clone(), Arc::new(SeededIds::new(1)));
    fuzz("written", &seeds, Shape::Text(PIECES), move |bytes| {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let (cancel, context) = (CancellationToken::default(), RequestContext::default());
        let question = Question {
            text: "What is the tower and who built the bridge?",
            past: &[],
            user_name: "",
            user_instructions: "",
            sampling: Sampling::default(),
            tools: None,
            embedder: &embedder,
        };
        let write = |delivery| {
            let mut told = String::new();
            let mut tell = |piece: &str| {
                told.push_str(piece);
                ControlFlow::Continue(())
            };
            let written = writer.write(&question, &sources, &chunks, delivery, &context, &mut tell);
            // The text contains the prompt's delimiter by chance.
            (written.map(|written| Written { usage: Usage::default(), ..written }), told)
        };
        *parrot.0.lock().unwrap() = vec![text.clone()];
        let first = write(Delivery::Streamed);
        let cut = pieces(bytes, &mut Chance::new(fingerprint(bytes)));
        let mut characters = text.chars();
        let mut in_pieces: Vec<String> =
            cut.iter().map(|piece| characters.by_ref().take(piece.len()).collect()).collect();
        in_pieces.push(characters.collect());
        *parrot.0.lock().unwrap() = in_pieces;
        let again = write(Delivery::Streamed);
        assert_eq!(first, again, "it depends on how it is cut");
        if let Ok(written) = &first.0 {
            assert_eq!(written.text, first.1, "what was told is the text");
            let is_shown = |number: usize| (1..=sources.len()).contains(&number);
            assert!(numbers(&written.text).all(is_shown), "{}", written.text);
            let chars = written.text.chars().count();
            for doubt in &written.unsupported {
                assert!(doubt.answer_chars.end <= chars && is_shown(doubt.number));
            }
        }
        if let Ok(written) = write(Delivery::Whole).0 {
            assert!(numbers(&written.text).all(|number| number <= sources.len() && number > 0));
        }
        let said = Said { text: "a", user_name: "b", instructions: "" };
        let sentences = writer.condense(&said, &cancel).expect("the parrot answers");
        assert!(sentences.len() <= 16 && sentences.iter().all(|one| one.chars().count() <= 512));
        let past = [("Who?".to_owned(), "Nobody.".to_owned())];
        let understood = writer.understand(question.text, &past, true, &RequestContext::default());
        let understood = understood.expect("nobody ends the request");
        assert!(understood.parts.len() <= 3 && !understood.question.trim().is_empty());
    });
}

/// Claims of a model about passages.
#[test]
fn claims() {
    const PASSAGES: [ChunkText<'static>; 2] = [
        ChunkText {
            title: "Northern Light",
            text: "Northern Light is a film directed by Marta Lindqvist.",
        },
        ChunkText { title: "", text: "Elsa Berg wrote \u{e9}t\u{e9} for Marta Lindqvist in Oslo." },
    ];
    let seeds = [
        r#"{"passages":[{"n":1,"entities":[{"name":"Marta Lindqvist","type":"PERSON"}],"triplets":
        [{"source":"Marta Lindqvist","predicate":"DIRECTED","target":"Northern Light","sentence":
        "Northern Light is a film directed by Marta Lindqvist."}]}]}"#,
        r#"Sure: {"passages":[{"n":2,"entities":[{"name":"Elsa Berg"},{"name":"Oslo"}],"triplets":
        [{"source":"Elsa Berg","target":"Oslo"}]},{"entities":[]}]} ```"#,
    ];
    fuzz("claims", &seeds, Shape::Values, |bytes| {
        let reply = String::from_utf8_lossy(bytes);
        let mut graphs: Vec<RowGraph> =
            PASSAGES.iter().map(|one| extract(one.title, one.text)).collect();
        let before = graphs.clone();
        let Some(_) = merge(&reply, &PASSAGES, &mut graphs) else {
            return assert_eq!(graphs, before, "what cannot be read changes nothing");
        };
        for ((graph, before), passage) in graphs.iter().zip(before).zip(PASSAGES) {
            assert!(graph.entities.starts_with(&before.entities), "the graph by rule stands");
            assert!(graph.triplets.starts_with(&before.triplets), "the graph by rule stands");
            for triplet in &graph.triplets {
                let context = triplet.context.start as usize..triplet.context.end as usize;
                assert!(passage.text.get(context).is_some(), "a triplet without a sentence");
                assert!(usize::from(triplet.source.max(triplet.target)) < graph.entities.len());
            }
        }
    });
}

/// Vectors of an embedding server.
#[test]
fn embeddings() {
    let seeds = [
        r#"{"data":[{"index":0,"embedding":[0.6,-0.8]}],"usage":{"prompt_tokens":1}}"#,
        r#"{"data":[{"index":1,"embedding":[1,0]},{"index":0,"embedding":[1e-3,5E2]}],"a":1}"#,
        r#"{"data":[{"embedding":[null,1]},{"embedding":[1e39,0]}],"usage":null}"#,
    ];
    let peer = Peer::start();
    let second = Duration::from_secs(1);
    let server = EmbeddingServer {
        url: peer.url.clone(),
        model: "m".to_owned(),
        key: None,
        dimension: Some(2),
        query_prefix: String::new(),
        passage_prefix: String::new(),
        batch: 2,
        timeout: 20 * second,
        query_timeout: 20 * second,
    };
    let good = whole("application/json", seeds[0].as_bytes());
    peer.answer([good.clone()]);
    let authorities = Authorities::default();
    let known = RemoteEmbedder::connect(server.clone(), &authorities).expect("a good answer");
    fuzz("embeddings", &seeds, Shape::Values, move |body| {
        let answer = whole("application/json", body);
        peer.answer([answer.clone()]);
        for count in [1, 2] {
            let texts = vec!["a".to_owned(); count];
            let Ok(vectors) = known.embed(Lane::Answer, texts) else { continue };
            assert_eq!(vectors.len(), count, "a vector for each text");
            for vector in vectors {
                let length = vector.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
                assert!(vector.len() == 2 && (length - 1.0).abs() < 1e-5, "{vector:?}");
            }
        }
        let unknown = EmbeddingServer { dimension: None, ..server.clone() };
        if let Ok(model) = RemoteEmbedder::connect(unknown, &authorities) {
            assert!((1..=3024).contains(&model.dimension()), "{} wide", model.dimension());
        }
    });
}

/// Listings of object stores. Credentials come from the environment, so the test runs in a child
/// process.
#[test]
fn buckets() {
    const CHILD: &str = "AWS_ACCESS_KEY_ID";
    if std::env::var_os(CHILD).is_none_or(|key| key != "fuzz") {
        let ended = Command::new(std::env::current_exe().expect("this test"))
            .args(["--exact", "replies::buckets", "--nocapture"])
            .envs([(CHILD, "fuzz"), ("AWS_SECRET_ACCESS_KEY", "x"), ("AWS_REGION", "a")])
            .stdin(Stdio::null())
            .status()
            .expect("a child");
        return assert!(ended.success(), "{ended}");
    }
    let seeds = [
        "<?xml version=\"1.0\"?><ListBucketResult><Contents><Key>p/a</Key><Size>1</Size></Contents>\
         <Contents><Key>p/b&amp;c</Key><Size>2</Size></Contents><NextContinuationToken>n\
         </NextContinuationToken></ListBucketResult>",
        "<ListMultipartUploadsResult><Upload><Key>p/a</Key><UploadId>u</UploadId></Upload>\
         </ListMultipartUploadsResult>",
        "\u{FEFF}<EnumerationResults><Blobs><Blob><Name>p/a</Name><Properties><Content-Length>3\
         </Content-Length></Properties></Blob></Blobs><NextMarker>m</NextMarker>\
         </EnumerationResults>",
        "<Error><Code>SlowDown</Code><Message>a</Message></Error>",
    ];
    let peer = Peer::start();
    let url = "s3://bucket/p".parse().expect("the address of a bucket");
    let endpoint = Some(peer.url.clone());
    let options = BucketOptions { endpoint, is_path_style: Some(true), region: None };
    let (clock, pause) = (Arc::new(SystemClock), Box::new(|_| true));
    let bucket = Bucket::new(url, &options, &Authorities::default(), clock, pause);
    let bucket = bucket.expect("a bucket");
    fuzz("buckets", &seeds, Shape::Markup, move |body| {
        let answer = whole("application/xml", body);
        peer.answer([answer.clone()]);
        if let Ok(found) = bucket.list("a") {
            let is_below = |(key, _): &(String, u64)| key.starts_with('a');
            assert!(found.iter().all(is_below), "keys outside of what was asked for");
        }
        let _ = bucket.holds_only(|key| key.len() < 5);
        // Each upload costs one more request.
        peer.answer([answer, whole("application/xml", b"<ListMultipartUploadsResult/>")]);
        let _ = bucket.abandon_parts("a");
    });
}
