//! Compares a small pair classifier, whose weights are given by a formula, to a plain forward pass
//! in f64.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::{Value, json};

use super::*;
use crate::Embedder;
use crate::tests::{number, tiny_config, tiny_shapes, weights_of};
use lodestone_types::ErrorKind;

const HIDDEN: usize = 12;
const HEADS: usize = 3;
const WINDOW: usize = 16;

/// Returns a tokenizer with `[UNK]`, `[CLS]`, `[SEP]` and the words `w3` to `w16`, framed as in
/// BERT.
fn tokenizer() -> Value {
    let special = ["[UNK]", "[CLS]", "[SEP]"].map(str::to_owned);
    let words = special.into_iter().chain((3..17).map(|id| format!("w{id}")));
    let vocabulary: serde_json::Map<String, Value> =
        words.enumerate().map(|(id, word)| (word, json!(id))).collect();
    let added = |id: usize, content: &str| {
        json!({"id": id, "content": content, "special": true, "single_word": false,
            "lstrip": false, "rstrip": false, "normalized": false})
    };
    let token = |id: &str, kind: usize| json!({"SpecialToken": {"id": id, "type_id": kind}});
    let text = |id: &str, kind: usize| json!({"Sequence": {"id": id, "type_id": kind}});
    let single = [token("[CLS]", 0), text("A", 0), token("[SEP]", 0)];
    let pair = single.iter().cloned().chain([text("B", 1), token("[SEP]", 1)]);
    let frame = |id: &str, number: usize| json!({"id": id, "ids": [number], "tokens": [id]});
    json!({
        "version": "1.0", "truncation": null, "padding": null, "normalizer": null,
        "decoder": null, "pre_tokenizer": {"type": "WhitespaceSplit"},
        "added_tokens": [added(0, "[UNK]"), added(1, "[CLS]"), added(2, "[SEP]")],
        "post_processor": {"type": "TemplateProcessing", "single": single,
            "pair": pair.collect::<Vec<_>>(),
            "special_tokens": {"[CLS]": frame("[CLS]", 1), "[SEP]": frame("[SEP]", 2)}},
        "model": {"type": "WordLevel", "unk_token": "[UNK]", "vocab": vocabulary},
    })
}

/// Returns the classifier's tensors; those of the encoder have the prefix that exports use.
fn shapes(labels: usize, has_pooler: bool) -> Vec<(String, Vec<usize>)> {
    let mut shapes = tiny_shapes();
    if has_pooler {
        shapes.push(("pooler.dense.weight".to_owned(), vec![HIDDEN, HIDDEN]));
        shapes.push(("pooler.dense.bias".to_owned(), vec![HIDDEN]));
    }
    for (name, _) in &mut shapes {
        name.insert_str(0, "bert.");
    }
    shapes.push(("classifier.weight".to_owned(), vec![labels, HIDDEN]));
    shapes.push(("classifier.bias".to_owned(), vec![labels]));
    shapes
}

fn config(labels: usize) -> Value {
    let mut config = tiny_config();
    config["hidden_act"] = json!("relu");
    config["architectures"] = json!(["BertForSequenceClassification"]);
    // A configuration without labels means two.
    if labels != 2 {
        let names = (0..labels).map(|label| (label.to_string(), json!(format!("LABEL_{label}"))));
        config["id2label"] = Value::Object(names.collect());
    }
    config
}

fn files(config: &Value, shapes: &[(String, Vec<usize>)]) -> ModelFiles {
    ModelFiles {
        name: "tiny".to_owned(),
        encoder: String::new(),
        config: config.to_string().into_bytes(),
        parts: BTreeMap::new(),
        tokenizer: tokenizer().to_string().into_bytes(),
        weights: weights_of(shapes, "", number),
    }
}

fn tiny() -> CrossEncoder {
    CrossEncoder::load(&files(&config(1), &shapes(1, true)), 2).expect("a model")
}

/// Oracle: computes scores one at a time in f64, as in the papers.
struct Plainly {
    tensors: HashMap<String, Vec<f64>>,
}

impl Plainly {
    fn new(shapes: &[(String, Vec<usize>)]) -> Self {
        let numbers = |salt: usize, shape: &[usize]| {
            let count = shape.iter().product();
            (0..count).map(|i| f64::from(number(salt, i))).collect()
        };
        let tensors = shapes.iter().enumerate().map(|(salt, (name, shape))| {
            (name.trim_start_matches("bert.").to_owned(), numbers(salt, shape))
        });
        Self { tensors: tensors.collect() }
    }

    fn row(&self, name: &str, at: usize) -> &[f64] {
        &self.tensors[name][at * HIDDEN..(at + 1) * HIDDEN]
    }

    fn dense(&self, name: &str, input: &[f64]) -> Vec<f64> {
        let rows = self.tensors[&format!("{name}.weight")].chunks(input.len());
        let sums = rows.map(|row| row.iter().zip(input).map(|(w, x)| w * x).sum::<f64>());
        sums.zip(&self.tensors[&format!("{name}.bias")]).map(|(sum, bias)| sum + bias).collect()
    }

    fn norm(&self, name: &str, row: Vec<f64>) -> Vec<f64> {
        let count = row.len() as f64;
        let mean = row.iter().sum::<f64>() / count;
        let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        let scale = &self.tensors[&format!("{name}.weight")];
        let shift = &self.tensors[&format!("{name}.bias")];
        let normal = row.iter().map(|x| (x - mean) / (variance + 1e-5).sqrt());
        normal.zip(scale).zip(shift).map(|((x, scale), shift)| x * scale + shift).collect()
    }

    fn layer(&self, number: usize, states: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let at = |part: &str| format!("encoder.layer.{number}.{part}");
        let all = |part: &str| -> Vec<Vec<f64>> {
            states.iter().map(|state| self.dense(&at(part), state)).collect()
        };
        let queries = all("attention.self.query");
        let (keys, values) = (all("attention.self.key"), all("attention.self.value"));
        let head = HIDDEN / HEADS;
        let mut output = Vec::new();
        for (state, query) in states.iter().zip(&queries) {
            let mut mixed = vec![0.0; HIDDEN];
            for part in (0..HEADS).map(|number| number * head..(number + 1) * head) {
                let dot = |key: &Vec<f64>| -> f64 { part.clone().map(|i| query[i] * key[i]).sum() };
                let powers: Vec<f64> =
                    keys.iter().map(|key| (dot(key) / (head as f64).sqrt()).exp()).collect();
                let all: f64 = powers.iter().sum();
                for (power, value) in powers.iter().zip(&values) {
                    part.clone().for_each(|i| mixed[i] += power / all * value[i]);
                }
            }
            let attended = sum(&self.dense(&at("attention.output.dense"), &mixed), state);
            let attended = self.norm(&at("attention.output.LayerNorm"), attended);
            let wide = self.dense(&at("intermediate.dense"), &attended);
            let wide: Vec<f64> = wide.iter().map(|x| x.max(0.0)).collect();
            let narrow = sum(&self.dense(&at("output.dense"), &wide), &attended);
            output.push(self.norm(&at("output.LayerNorm"), narrow));
        }
        output
    }

    /// Returns the score of a pair whose first `first` tokens are of the first type.
    fn score(&self, ids: &[u32], first: usize) -> f64 {
        let embedded = |(place, id): (usize, &u32)| {
            let word = self.row("embeddings.word_embeddings.weight", *id as usize);
            let place_row = self.row("embeddings.position_embeddings.weight", place);
            let kind = usize::from(place >= first);
            let kind_row = self.row("embeddings.token_type_embeddings.weight", kind);
            self.norm("embeddings.LayerNorm", sum(&sum(word, place_row), kind_row))
        };
        let mut states: Vec<Vec<f64>> = ids.iter().enumerate().map(embedded).collect();
        for number in 0..2 {
            states = self.layer(number, &states);
        }
        let pooled = match self.tensors.contains_key("pooler.dense.weight") {
            true => self.dense("pooler.dense", &states[0]).iter().map(|x| x.tanh()).collect(),
            false => states[0].clone(),
        };
        let logit = match self.dense("classifier", &pooled)[..] {
            [logit] => logit,
            [against, logit] => logit - against,
            _ => panic!("one label or two"),
        };
        1.0 / (1.0 + (-logit).exp())
    }
}

fn score(model: &CrossEncoder, query: &str, passages: &[&str]) -> Result<Vec<f32>, RerankError> {
    model.score(&RequestContext::default(), None, query, passages).map(|verdicts| verdicts.scores)
}

fn sum(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

#[test]
fn scores_are_those_of_a_plain_forward_pass() {
    // The ids that follow "w3 w5": a special token inside a text does not end it.
    let pairs: [(&str, &[u32]); 4] =
        [("w7 w8 w9", &[7, 8, 9]), ("w4 nowhere", &[4, 0]), ("", &[]), ("w6 [SEP] w6", &[6, 2, 6])];
    for (labels, has_pooler) in [(1, true), (2, true), (1, false)] {
        let shapes = shapes(labels, has_pooler);
        let model = CrossEncoder::load(&files(&config(labels), &shapes), 1).expect("a model");
        assert_eq!((model.name(), model.fingerprint().len()), ("tiny", 64));
        let plainly = Plainly::new(&shapes);
        let mut found = score(&model, "w3 w5", &pairs.map(|(text, _)| text)).expect("scores");
        found.extend(score(&model, "w3 [SEP] w5", &["w7"]).expect("scores"));
        let mut expected: Vec<f64> = Vec::new();
        for (_, ids) in pairs {
            let ids = [&[1, 3, 5, 2], ids, &[2]].concat();
            expected.push(plainly.score(&ids, 4));
        }
        expected.push(plainly.score(&[1, 3, 2, 5, 2, 7, 2], 5));
        for (found, expected) in found.iter().zip(&expected) {
            assert!((f64::from(*found) - expected).abs() < 2e-6, "{found} for {expected}");
        }
        // Token types matter: with all tokens of the first type, the ids have another score.
        let untyped = plainly.score(&[1, 3, 5, 2, 7, 8, 9, 2], 8);
        assert!((f64::from(found[0]) - untyped).abs() > 1e-3, "{untyped}");
    }
}

#[test]
fn a_pair_scores_the_same_alone_and_in_company() {
    let model = tiny();
    let passages: Vec<String> =
        (0..60).map(|n| (0..n % 9).map(|w| format!("w{} ", 3 + (n + w) % 14)).collect()).collect();
    let passages: Vec<&str> = passages.iter().map(String::as_str).collect();
    let together = score(&model, "w3 w9", &passages).expect("scores");
    assert_eq!(together.len(), passages.len());
    for (passage, expected) in passages.iter().zip(&together) {
        assert_eq!(score(&model, "w3 w9", &[passage]).expect("a score"), [*expected], "{passage}");
    }
    assert!(score(&model, "w3", &[]).expect("nothing asked").is_empty());
    assert!(model.tokens_read() > 0);
}

#[test]
fn long_texts_are_cut_the_query_to_half_at_most() {
    let files = files(&config(1), &shapes(1, true));
    let tokeniser = Tokeniser::parse(&files.tokenizer, 17, WINDOW).expect("a tokenizer");
    let pairs = Pairs::new(tokeniser, 2).expect("pairs");
    let long = "w4 ".repeat(100);
    let list = |query: &str, passage: &str| {
        let query = pairs.query(query).expect("a query");
        pairs.ids(&query, passage).expect("a list")
    };
    // [CLS] and [SEP] around six tokens of the query, seven of the passage, [SEP].
    let both = list(&long, &long);
    assert_eq!(
        pairs::split(&both),
        (8, [&[1][..], &[4; 6], &[2], &[4; 7], &[2]].concat().as_slice())
    );
    let (first, ids) = (list("w3", &long), list(&long, "w3"));
    assert_eq!((first[0], first.len()), (3, 1 + WINDOW));
    assert_eq!((ids[0], ids.len()), (8, 1 + 8 + 2));
    let model = tiny();
    let cut = score(&model, &"w4 ".repeat(6), &["w4 ".repeat(7).as_str()]).expect("a score");
    assert_eq!(score(&model, &long, &[&long]).expect("a score"), cut);
}

/// More than one search may read: the first passages have scores, the others none.
#[test]
fn one_call_reads_a_bounded_number_of_tokens() {
    let model = tiny();
    let long = "w5 ".repeat(20);
    let passages = vec![long.as_str(); 600];
    let scores = score(&model, "w3", &passages).expect("scores");
    assert_eq!(scores.len(), limits::RERANK_TOKENS_MAX / (WINDOW + 1));
    assert!(model.tokens_read() as usize <= limits::RERANK_TOKENS_MAX);
    model.close();
    let error = score(&model, "w3", &passages).expect_err("closed");
    assert_eq!(error.kind(), ErrorKind::Unavailable);
}

/// A call ends at its deadline with the scores computed so far, and when its client disconnects;
/// nothing of it keeps waiting.
#[test]
fn a_call_ends_with_its_time_and_its_client() {
    let model = tiny();
    let long = "w5 ".repeat(20);
    let passages = vec![long.as_str(); 400];
    let context = RequestContext::default();
    let until = |time| Some(Instant::now() + time);
    let late = model.score(&context, until(Duration::ZERO), "w3", &passages).expect("in time");
    assert!(late.is_cut_short && late.scores.len() < passages.len(), "{}", late.scores.len());
    assert_eq!(model.waiting(), 0);
    let whole = score(&model, "w3", &passages).expect("scores");
    assert_eq!(late.scores, whole[..late.scores.len()]);
    let hour = until(Duration::from_secs(3600));
    let early = model.score(&context, hour, "w3", &passages).expect("scores");
    assert!(!early.is_cut_short, "what is beyond the tokens of a call is no matter of time");
    assert_eq!(early.scores, whole);
    context.cancel().cancel();
    let error = model.score(&context, hour, "w3", &passages).expect_err("nobody waits");
    assert_eq!((error.kind(), model.waiting()), (ErrorKind::Unavailable, 0));
}

#[test]
fn what_reads_no_pairs_is_refused_by_name() {
    let (good_config, good_shapes) = (config(1), shapes(1, true));
    let refused = |config: &Value, shapes: &[(String, Vec<usize>)]| {
        CrossEncoder::load(&files(config, shapes), 1).expect_err("no cross-encoder").to_string()
    };
    let mut embeds = good_config.clone();
    embeds["architectures"] = json!(["BertModel"]);
    let told = refused(&embeds, &good_shapes);
    assert!(told.contains("BertModel") && told.contains("BertForSequenceClassification"), "{told}");
    assert!(refused(&tiny_config(), &good_shapes).contains("architectures"));
    assert!(refused(&config(3), &good_shapes).contains("3 labels"));
    let mut other = good_config.clone();
    other["model_type"] = json!("t5");
    assert!(refused(&other, &good_shapes).contains("t5"));

    let without: Vec<_> =
        good_shapes.iter().filter(|(name, _)| name != "classifier.bias").cloned().collect();
    assert!(refused(&good_config, &without).contains("classifier.bias"));
    for (name, shape) in [("classifier.weight", "[1, 12]"), ("pooler.dense.weight", "[12, 12]")] {
        let mut wrong = good_shapes.clone();
        let found = wrong.iter_mut().find(|(other, _)| other.ends_with(name)).expect("a tensor");
        found.1 = vec![5, 4];
        let told = refused(&good_config, &wrong);
        assert!(told.contains(name) && told.contains("[5, 4]") && told.contains(shape), "{told}");
    }

    // A tokenizer that frames single texts only.
    let mut single = files(&good_config, &good_shapes);
    let mut tokenizer = tokenizer();
    tokenizer["post_processor"]["pair"][3] = json!({"Sequence": {"id": "B", "type_id": 0}});
    tokenizer["post_processor"]["pair"][4] = json!({"SpecialToken": {"id": "[SEP]", "type_id": 0}});
    single.tokenizer = tokenizer.to_string().into_bytes();
    let told = CrossEncoder::load(&single, 1).expect_err("no pairs").to_string();
    assert!(told.contains("tokenizer.json") && told.contains("no pairs"), "{told}");
}

/// The built-in reader with its model: paraphrased questions, and passages that almost answer them.
#[test]
fn the_reader_tells_answers_from_near_misses() {
    let Some(files) = crate::tests::model_files() else { return };
    let base = crate::Model::load(&files, 1).expect("a model").fingerprint().to_owned();
    let texts = ModelFiles { weights: Vec::new(), ..files.clone() };
    let source = move || Ok(files.clone());
    let open = |base: &str| {
        let texts = texts.clone();
        CrossEncoder::reader(base, || Ok(texts), source.clone(), 1, Precision::F32)
    };
    assert!(open("another").expect("no error").is_none(), "beside another model there is none");
    let reader = open(&base).expect("a reader").expect("it is made for this model");
    let passages = [
        "Gate rules: The south gate opens at 7:30 from Monday to Friday.",
        "Gate rules: The north gate opens at 6:00 for deliveries.",
        "Gate rules: Opening hours are printed beside each gate.",
    ];
    let read = |question: &str| {
        let context = RequestContext::default();
        reader.score(&context, None, question, &passages).expect("verdicts").scores
    };
    for (question, right) in [
        ("When can I come in by the south entrance?", Some(0)),
        ("From what time do lorries get in at the northern entrance?", Some(1)),
        ("How tall is the south gate?", None),
    ] {
        let scores = read(question);
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]));
        let sure = best.filter(|best| scores[*best] > 0.5);
        assert_eq!(sure, right, "{question} {scores:?}");
    }
    assert_eq!(read("How tall is the south gate?"), read("How tall is the south gate?"));
}
