//! Weights that are loaded on first use.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::sentence_files;
use crate::tests::dot;
use crate::{EmbedError, Embedder, Lane, Model, ModelFiles, Precision};
use lodestone_types::{RequestContext, Stopped};

/// The files of a model, the number of times they were read, and a gate that blocks reads.
#[derive(Clone)]
struct Source {
    reads: Arc<AtomicUsize>,
    files: Arc<Mutex<ModelFiles>>,
    gate: Arc<(Mutex<bool>, Condvar)>,
}

impl Source {
    fn open() -> Self {
        let files = Arc::new(Mutex::new(sentence_files("xlm-roberta")));
        Self { reads: Arc::default(), files, gate: Arc::new((Mutex::new(true), Condvar::new())) }
    }

    fn set_open(&self, is_open: bool) {
        *self.gate.0.lock() = is_open;
        self.gate.1.notify_all();
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    fn model(&self) -> Model {
        let source = self.clone();
        let read = move || {
            source.reads.fetch_add(1, Ordering::SeqCst);
            let mut is_open = source.gate.0.lock();
            while !*is_open {
                source.gate.1.wait(&mut is_open);
            }
            Ok(source.files.lock().clone())
        };
        Model::on_demand(read, 2, Precision::F32, None).expect("a model")
    }
}

fn texts() -> Vec<String> {
    vec!["a first text".to_owned()]
}

#[test]
fn uses_at_once_load_once_and_an_idle_model_leaves_the_memory() {
    let source = Source::open();
    let always = Model::load(&sentence_files("xlm-roberta"), 1).expect("a model");
    let expected = always.embed(Lane::Query, texts()).expect("a vector");
    let model = source.model();
    assert_eq!((source.reads(), model.is_loaded(), model.idle_for()), (1, false, None));
    assert_eq!(model.fingerprint(), always.fingerprint());
    assert_eq!(model.dimension(), always.dimension());
    assert_eq!(model.token_offsets("a first text"), always.token_offsets("a first text"));
    assert!(!model.is_loaded() && always.is_loaded(), "tokens need no weights");
    let ask = || {
        let vectors = model.embed(Lane::Query, texts()).expect("a vector");
        assert!(dot(&vectors[0], &expected[0]) > 0.999_999);
    };
    std::thread::scope(|scope| {
        (0..8).for_each(|_| {
            scope.spawn(ask);
        });
    });
    assert_eq!((source.reads(), model.is_loaded()), (2, true));
    let passages = model.stats().passages;
    assert!(passages >= 8);
    assert!(!model.unload(Duration::from_secs(3600)), "it was used just now");
    assert!(model.unload(Duration::ZERO) && !model.unload(Duration::ZERO));
    assert!(!model.is_loaded());
    ask();
    assert_eq!((source.reads(), model.stats().passages), (3, passages + 1));
    assert!(!always.unload(Duration::ZERO) && always.is_loaded());
}

#[test]
fn a_call_waits_for_weights_as_long_as_its_request_may_and_no_longer() {
    let source = Source::open();
    let model = source.model();
    source.set_open(false);
    let context = RequestContext::with_limit(Duration::from_millis(20));
    let late = model.embed_within(Lane::Query, &context, texts()).expect_err("no vector");
    assert!(matches!(late, EmbedError::Stopped(Stopped::DeadlineExceeded { .. })), "{late}");
    assert!(!model.is_loaded() && !model.unload(Duration::ZERO));
    source.set_open(true);
    model.embed(Lane::Query, texts()).expect("a vector");
    assert_eq!(source.reads(), 2, "the load went on");
}

#[test]
fn files_that_change_under_way_are_refused_and_others_are_not_lost() {
    let source = Source::open();
    let model = source.model();
    let mut files = sentence_files("xlm-roberta");
    let last = files.weights.len() - 1;
    files.weights[last] ^= 1;
    let before = std::mem::replace(&mut *source.files.lock(), files);
    let error = model.embed(Lane::Query, texts()).expect_err("no vector").to_string();
    assert!(error.contains("restart the server"), "{error}");
    *source.files.lock() = before;
    model.embed(Lane::Query, texts()).expect("a vector");
}
