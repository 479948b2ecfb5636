//! The embedding model on a device: its vectors equal the CPU's up to rounding, and the CPU takes
//! over when the device fails. The model's layers run in the emulator, so small models of every
//! kind stand in for the real one, which embeds only a few short texts if its files are present.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Instant;

use lodestone_compute::cuda::counters::Counters;
use lodestone_compute::cuda::manager::{DeviceManager, ManagerLimits};
use lodestone_compute::cuda::workspace::Scratch;
use lodestone_compute::cuda::{Device, DeviceSource};
use lodestone_embed::{
    COSINE_MIN, DeviceLimits, EmbedDevice, EmbedStats, Embedder, Engine, Lane, Model, ModelFiles,
    Precision,
};
use lodestone_types::{ManualClock, Timestamp};
use serde_json::Value;

use crate::recording::{Faults, Faulty, Noted, Recording, Traffic};
use crate::small_model::{Kind, files, files_of_layers, text};
use crate::{emulated, skip};

/// Maximum difference of a component: two unit vectors whose cosine is c differ by a vector of
/// length sqrt(2 - 2 c), evaluated at [`COSINE_MIN`].
const NUMBER_SLACK: f32 = 0.0142;

/// Batches for which the emulator is fast enough, on a device without an initial check.
const UNCHECKED: DeviceLimits =
    DeviceLimits { batch_tokens: 1024, check_tokens: 0, scratch: Scratch::Exact };

/// Number of workers that keep a card busy: one packs a batch while the others' batches run.
const CARD_WORKERS: usize = 4;

struct Fixture {
    model: Model,
    cpu: Model,
    faults: Arc<Faults>,
    clock: Arc<ManualClock>,
}

impl Fixture {
    /// A model on a device that fails as planned.
    fn new(files: &ModelFiles, inner: Arc<dyn Device>, limits: DeviceLimits) -> Self {
        Self::with_workers(files, inner, limits, 1)
    }

    fn with_workers(
        files: &ModelFiles,
        inner: Arc<dyn Device>,
        limits: DeviceLimits,
        workers: usize,
    ) -> Self {
        let faults = Arc::new(Faults::default());
        faults.calls_left.store(usize::MAX, Ordering::SeqCst);
        let clock = Arc::new(ManualClock::new(Timestamp(1_000_000)));
        let source = Arc::new(Faulty { inner, faults: Arc::clone(&faults) });
        let manager = DeviceManager::open(
            source as Arc<dyn DeviceSource>,
            Arc::clone(&clock) as Arc<_>,
            ManagerLimits::default(),
            Arc::new(Counters::default()),
            |_| Ok(()),
        );
        let device = EmbedDevice { manager: Arc::new(manager.unwrap()), limits };
        let model = Model::load_on(files, workers, Precision::F32, Some(device)).unwrap();
        Self { model, cpu: Model::load(files, 1).unwrap(), faults, clock }
    }

    /// A model on a real card, with the default limits.
    #[cfg(feature = "cuda")]
    fn real(test: &str, files: &ModelFiles) -> Option<Self> {
        match crate::oracle::cuda_source().open() {
            Ok(device) => {
                Some(Self::with_workers(files, device, DeviceLimits::default(), CARD_WORKERS))
            }
            Err(error) => {
                skip(test, &error.to_string(), "REQUIRE_CUDA");
                None
            }
        }
    }

    #[cfg(not(feature = "cuda"))]
    fn real(test: &str, _: &ModelFiles) -> Option<Self> {
        skip(test, "built without the feature cuda", "REQUIRE_CUDA");
        None
    }

    fn emulated(test: &str, files: &ModelFiles) -> Option<Self> {
        let Some(inner) = emulated::device() else {
            skip(test, "g++ or the emulator's sources are missing", "REQUIRE_EMULATOR");
            return None;
        };
        Some(Self::new(files, inner, UNCHECKED))
    }

    /// Loses the device; the next batch opens it again and uploads the weights.
    fn lose_and_reopen(&self) {
        self.faults.is_loss.store(true, Ordering::SeqCst);
        self.faults.calls_left.store(0, Ordering::SeqCst);
        assert!(!self.ask(&[text(2, 1)]));
        self.faults.is_loss.store(false, Ordering::SeqCst);
        self.faults.calls_left.store(usize::MAX, Ordering::SeqCst);
        self.clock.advance_millis(10_000);
    }

    /// Embeds on both models; returns whether the device answered. Vectors from the CPU must be
    /// identical.
    fn ask(&self, texts: &[String]) -> bool {
        let before = self.model.stats();
        let got = self.model.embed(Lane::Bulk, texts.to_vec()).unwrap();
        let wanted = self.cpu.embed(Lane::Bulk, texts.to_vec()).unwrap();
        let after = self.model.stats();
        let by_device = after.device_batches > before.device_batches;
        let engine = if by_device { Engine::Kernels } else { Engine::Cpu };
        assert_eq!(self.model.engine(), engine);
        if !by_device {
            assert!(after.device_fallbacks > before.device_fallbacks);
            assert_eq!(got, wanted);
        }
        assert_eq!(got.len(), texts.len());
        for (at, (got, wanted)) in got.iter().zip(&wanted).enumerate() {
            assert_near(got, wanted, &format!("text {at}"));
        }
        by_device
    }

    fn stats(&self) -> EmbedStats {
        self.model.stats()
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(x, y)| f64::from(*x) * f64::from(*y)).sum()
}

fn assert_near(got: &[f32], wanted: &[f32], what: &str) {
    assert!((dot(got, got) - 1.0).abs() < 1e-5, "{what}: length {}", dot(got, got));
    let cosine = dot(got, wanted);
    assert!(cosine >= f64::from(COSINE_MIN), "{what}: cosine {cosine}");
    let far = got.iter().zip(wanted).find(|(x, y)| (**x - **y).abs() > NUMBER_SLACK);
    assert_eq!(far, None, "{what}");
}

const KINDS: [Kind; 4] = [
    Kind { heads: 2, head: 32, wide: 104, activation: "gelu", only_first: false },
    Kind { heads: 2, head: 64, wide: 40, activation: "relu", only_first: true },
    Kind { heads: 3, head: 32, wide: 200, activation: "gelu_new", only_first: false },
    Kind { heads: 1, head: 64, wide: 8, activation: "gelu", only_first: false },
];

/// Compares every activation, pooling and head size, with passages from one word to more than the
/// window.
fn compare_kinds(test: &str, fixture: fn(&str, &ModelFiles) -> Option<Fixture>) {
    for kind in KINDS {
        let files = files(&kind);
        let Some(fixture) = fixture(test, &files) else { return };
        let lengths = [1, 2, 9, 61, 62, 63, 130, 300];
        let texts: Vec<String> = lengths.iter().map(|words| text(*words, *words)).collect();
        assert!(fixture.ask(&texts));
        assert!(fixture.ask(&texts[..1]));
        let alone = fixture.model.embed(Lane::Query, vec![texts[2].clone()]).unwrap();
        let company = fixture.model.embed(Lane::Query, texts[1..4].to_vec()).unwrap();
        assert_near(&alone[0], &company[1], "alone and in company");
        assert_eq!(fixture.stats().device_fallbacks, 0, "{kind:?}");
    }
}

#[test]
fn vectors_are_those_of_the_cpu() {
    compare_kinds("vectors_are_those_of_the_cpu", Fixture::emulated);
}

#[test]
fn vectors_are_those_of_the_cpu_on_a_card() {
    compare_kinds("vectors_are_those_of_the_cpu_on_a_card", Fixture::real);
}

fn real_model(test: &str) -> Option<ModelFiles> {
    let directory = std::env::var_os("LODESTONE_MODEL_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("models/all-MiniLM-L6-v2"),
        Into::into,
    );
    match ModelFiles::read(&directory, &|path| std::fs::read(path)) {
        Ok(files) => Some(files),
        Err(error) => {
            skip(test, &error.to_string(), "REQUIRE_MODEL");
            None
        }
    }
}

/// Compares the vectors with the CPU's at the guaranteed cosine, and with numbers computed
/// independently.
fn compare_golden(test: &str, words_max: u64, fixture: fn(&str, &ModelFiles) -> Option<Fixture>) {
    let Some(fixture) = real_model(test).and_then(|files| fixture(test, &files)) else { return };
    let golden: Value =
        serde_json::from_str(include_str!("../../src/embed/src/golden.json")).expect("a fixture");
    let cases = golden["cases"].as_array().unwrap();
    let cases: Vec<&Value> =
        cases.iter().filter(|case| case["tokens"].as_u64().unwrap() <= words_max).collect();
    assert!(cases.len() >= 3);
    let texts: Vec<String> =
        cases.iter().map(|case| case["text"].as_str().unwrap().to_owned()).collect();
    assert!(fixture.ask(&texts));
    let vectors = fixture.model.embed(Lane::Query, texts.clone()).unwrap();
    for (case, vector) in cases.iter().zip(&vectors) {
        let head = case["head"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap());
        for (x, expected) in vector.iter().zip(head) {
            let error = (f64::from(*x) - expected).abs();
            assert!(error < 1e-3, "{}: {x} for {expected}", case["text"]);
        }
    }
    for (vector, wanted) in vectors.iter().zip(fixture.cpu.embed(Lane::Bulk, texts).unwrap()) {
        println!("1 - cosine: {:.2e}", 1.0 - dot(vector, &wanted));
    }
    assert_eq!(fixture.stats().device_fallbacks, 0);
}

/// Only short texts, because the emulator is slow.
#[test]
fn the_real_model_embeds_on_the_device() {
    compare_golden("the_real_model_embeds_on_the_device", 12, Fixture::emulated);
}

#[test]
fn the_real_model_embeds_on_a_card() {
    compare_golden("the_real_model_embeds_on_a_card", u64::MAX, Fixture::real);
}

/// Goal: a card embeds all passages itself. Prints the rate in passages of 128 tokens per second.
#[test]
fn the_real_model_tells_its_rate_on_a_card() {
    const CALLERS: usize = 12;
    const PASSAGES: usize = 4000;
    let test = "the_real_model_tells_its_rate_on_a_card";
    let Some(fixture) = real_model(test).and_then(|files| Fixture::real(test, &files)) else {
        return;
    };
    let words = ["the", "ship", "of", "storm", "and", "wind", "over", "city"];
    let passage = |at: usize| {
        let word = |place: usize| words[(place * 5 + at * (place + 1) / 3) % words.len()];
        (0..126).map(word).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(fixture.model.token_offsets(&passage(1)).len(), 126);
    let embed = |count: usize| {
        let texts: Vec<String> = (0..count).map(passage).collect();
        let got = fixture.model.embed(Lane::Bulk, texts).unwrap();
        assert_eq!(got.len(), count);
    };
    embed(256);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CALLERS {
            scope.spawn(|| embed(PASSAGES));
        }
    });
    let rate = (CALLERS * PASSAGES) as f64 / begun.elapsed().as_secs_f64();
    println!("embedding: {rate:.0} passages of 128 tokens a second, {CALLERS} callers");
    assert_eq!(fixture.stats().device_fallbacks, 0);
}

/// Goal: whichever device call fails, the CPU embeds that batch, and the next one succeeds on the
/// device.
#[test]
fn every_call_may_fail() {
    let files = files(&KINDS[0]);
    let Some(fixture) = Fixture::emulated("every_call_may_fail", &files) else { return };
    let texts = [text(3, 1), text(70, 2)];
    assert!(fixture.ask(&texts));
    let mut failed = 0;
    for call in 0..200 {
        fixture.faults.calls_left.store(call, Ordering::SeqCst);
        // Other sizes, so that memory is allocated.
        let by_device = fixture.ask(&[text(3 + call, 1), text(70, 2)]);
        let left = fixture.faults.calls_left.swap(usize::MAX, Ordering::SeqCst);
        if left != usize::MAX {
            assert!(by_device, "nothing failed at call {call}");
            break;
        }
        assert!(!by_device, "call {call} failed and the CPU answered");
        failed += 1;
        assert_eq!(fixture.stats().device_fallbacks, failed);
        assert!(fixture.ask(&texts), "the next batch goes well");
    }
    assert!((20..200).contains(&failed), "{failed} calls make up a batch");
}

#[test]
fn a_full_device_is_a_fallback() {
    let files = files(&KINDS[0]);
    let Some(fixture) = Fixture::emulated("a_full_device_is_a_fallback", &files) else { return };
    fixture.faults.is_full.store(true, Ordering::SeqCst);
    assert!(!fixture.ask(&[text(3, 1)]) && !fixture.ask(&[text(4, 1)]));
    fixture.faults.is_full.store(false, Ordering::SeqCst);
    assert!(fixture.ask(&[text(3, 1)]));
    assert_eq!(fixture.stats().device_fallbacks, 2);
}

/// Goal: a lost device is not used until its pause is over, and then gets the weights again.
#[test]
fn a_lost_device_is_left_alone_for_a_while() {
    let files = files(&KINDS[0]);
    let test = "a_lost_device_is_left_alone_for_a_while";
    let Some(fixture) = Fixture::emulated(test, &files) else { return };
    fixture.faults.is_loss.store(true, Ordering::SeqCst);
    for call in [0, 6, 13] {
        assert!(fixture.ask(&[text(5, 1)]));
        fixture.faults.calls_left.store(call, Ordering::SeqCst);
        assert!(!fixture.ask(&[text(6, 1)]), "lost at call {call}");
        fixture.faults.calls_left.store(usize::MAX, Ordering::SeqCst);
        let opened = fixture.faults.opened.load(Ordering::SeqCst);
        assert!(!fixture.ask(&[text(5, 1)]), "it would work again, but nobody asks it");
        assert_eq!(fixture.faults.opened.load(Ordering::SeqCst), opened);
        fixture.clock.advance_millis(10_000);
        assert!(fixture.ask(&[text(5, 1)]), "opened again");
    }
}

/// Goal: if a reopened device fails while the weights are uploaded or checked, they are uploaded
/// again after a pause.
#[test]
fn a_copy_of_the_weights_may_fail() {
    let files = files(&KINDS[3]);
    let Some(inner) = emulated::device() else {
        let reason = "g++ or the emulator's sources are missing";
        return skip("a_copy_of_the_weights_may_fail", reason, "REQUIRE_EMULATOR");
    };
    let fixture = Fixture::new(&files, inner, DeviceLimits { check_tokens: 20, ..UNCHECKED });
    let texts = [text(2, 1)];
    let mut failed = 0;
    for call in (0..).step_by(6) {
        fixture.lose_and_reopen();
        fixture.faults.calls_left.store(call, Ordering::SeqCst);
        let by_device = fixture.ask(&texts);
        let left = fixture.faults.calls_left.swap(usize::MAX, Ordering::SeqCst);
        assert_eq!(by_device, left != usize::MAX, "call {call}");
        if by_device {
            break;
        }
        failed += 1;
        fixture.clock.advance_millis(30_000);
        assert!(fixture.ask(&texts), "brought again after call {call} failed");
    }
    // 28 tensors take an allocation and a copy each; two checks and a batch follow.
    assert!(failed > (56 + 3 * 20) / 6, "{failed}");
}

/// Goal: a device without memory for the weights is not asked for it by every batch.
#[test]
fn a_model_that_does_not_fit_is_left_alone_for_a_while() {
    let files = files(&KINDS[3]);
    let test = "a_model_that_does_not_fit_is_left_alone_for_a_while";
    let Some(fixture) = Fixture::emulated(test, &files) else { return };
    let texts = [text(2, 1)];
    fixture.lose_and_reopen();
    fixture.faults.is_full.store(true, Ordering::SeqCst);
    assert!(!fixture.ask(&texts));
    fixture.faults.is_full.store(false, Ordering::SeqCst);
    fixture.clock.advance_millis(29_999);
    assert!(!fixture.ask(&texts), "it would fit, but nobody asks for the memory");
    fixture.clock.advance_millis(1);
    assert!(fixture.ask(&texts));
}

/// Goal: a batch gathered for a device is split for the CPU, without losing any of it.
#[test]
fn a_large_batch_falls_back_whole() {
    let files = files(&KINDS[0]);
    let limits = DeviceLimits { batch_tokens: 4096, ..UNCHECKED };
    let fixture = Fixture::new(&files, Arc::new(Recording::new(132, 227 << 10)), limits);
    let texts: Vec<String> = (0..60).map(|at| text(90 + at % 7, at)).collect();
    // The device returns vectors of zeros, which the model rejects.
    assert!(!fixture.ask(&texts));
}

/// Goal: launches have correct shapes and bounds for a whole batch, on a large and a small card.
#[test]
fn launches_cover_a_batch() {
    let kind = KINDS[2];
    for (multiprocessors, shared) in [(132, 227 << 10), (20, 99 << 10)] {
        let recording = Recording::new(multiprocessors, shared);
        let memory = Arc::clone(&recording.memory);
        let fixture = Fixture::new(&files(&kind), Arc::new(recording), UNCHECKED);
        let held = memory.live_buffers();
        assert!(!fixture.ask(&[text(98, 1), text(40, 2), text(1, 3)]));
        let launches = memory.launches.lock().unwrap();
        let names: Vec<&str> = launches.iter().map(|launch| launch.kernel).collect();
        let of = |name: &str| names.iter().filter(|kernel| kernel.starts_with(name)).count();
        assert_eq!((of("embed_gather"), of("embed_pool")), (1, 1));
        assert_eq!((of("embed_product"), of("embed_attention_32"), of("embed_norm")), (8, 2, 4));
        // 100 tokens take two tiles of queries, 42 and 3 tokens one each.
        let attention = launches.iter().find(|l| l.kernel == "embed_attention_32").unwrap();
        assert_eq!((attention.grid, attention.number(24)), ([4, 3, 1], 96));
        let pool = launches.iter().find(|launch| launch.kernel == "embed_pool").unwrap();
        assert_eq!(pool.grid, [3, 1, 1]);
        for product in launches.iter().filter(|launch| launch.kernel.contains("product")) {
            let tile = product.kernel.split('_').nth(2).unwrap().split_once('x').unwrap();
            let (rows, columns) = (tile.0.parse::<u32>().unwrap(), tile.1.parse::<u32>().unwrap());
            assert_eq!(product.number(40), 145, "tokens");
            assert!(product.grid[1] * rows >= 145);
            assert!(product.grid[0] * columns >= product.number(48));
        }
        drop(launches);
        drop(fixture);
        assert_eq!((held, memory.live_buffers()), (28, 0), "weights stand, and all is given back");
    }
}

/// Number of passages in [`recorded_batch`] and of tokens in each: what one caller sends at once.
const PASSAGES: usize = 16;
pub const PASSAGE_TOKENS: usize = 128;

/// Launches and traffic of a batch, with a model as wide and deep as all-MiniLM-L6-v2.
pub fn recorded_batch(card: (u32, u32)) -> (Vec<Noted>, Traffic) {
    let kind = Kind { heads: 12, head: 32, wide: 1536, activation: "gelu", only_first: false };
    let recording = Recording::new(card.0, card.1);
    let memory = Arc::clone(&recording.memory);
    let limits = DeviceLimits { check_tokens: 0, ..DeviceLimits::default() };
    let fixture = Fixture::new(&files_of_layers(&kind, 6), Arc::new(recording), limits);
    // Every downloaded vector has one component of 1, so that the model accepts it.
    let mut vector = vec![0.0_f32; 384];
    vector[0] = 1.0;
    *memory.answer.lock().unwrap() = vector.iter().flat_map(|value| value.to_le_bytes()).collect();
    // The tokenizer adds two tokens.
    let texts = (0..PASSAGES).map(|at| text(PASSAGE_TOKENS - 2, at)).collect();
    memory.take();
    fixture.model.embed(Lane::Bulk, texts).unwrap();
    assert_eq!((fixture.stats().device_batches, fixture.stats().device_fallbacks), (1, 0));
    memory.take()
}

/// Goal: a correct device passes the check at every start, and a faulty one is not used. Builds
/// with candle's GPU support may use a card instead.
#[cfg(not(feature = "candle-cuda"))]
#[test]
fn a_device_is_checked_before_it_is_used() {
    let files = files(&KINDS[0]);
    let limits = DeviceLimits { check_tokens: 300, ..UNCHECKED };
    let wrong = Recording::new(132, 227 << 10);
    let memory = Arc::clone(&wrong.memory);
    let fixture = Fixture::new(&files, Arc::new(wrong), limits);
    let launched = memory.launches.lock().unwrap().len();
    assert!(launched > 0 && fixture.stats().device_fallbacks == 1);
    assert!(!fixture.ask(&[text(3, 1)]) && !fixture.ask(&[text(3, 1)]));
    assert_eq!(memory.launches.lock().unwrap().len(), launched);
    let test = "a_device_is_checked_before_it_is_used";
    let Some(inner) = emulated::device() else {
        return skip(test, "g++ or the emulator's sources are missing", "REQUIRE_EMULATOR");
    };
    let fixture = Fixture::new(&files, inner, limits);
    assert!(fixture.ask(&[text(3, 1)]));
    assert_eq!(fixture.stats().device_fallbacks, 0);
}

/// Goal: models without kernels are run on the CPU, in builds without candle's GPU support.
#[cfg(not(feature = "candle-cuda"))]
#[test]
fn models_without_kernels_stay_with_the_cpu() {
    for (heads, head, wide) in [(4, 16, 64), (17, 64, 64), (1, 32, 20)] {
        let kind = Kind { heads, head, wide, ..KINDS[0] };
        let files = files(&kind);
        let fixture = Fixture::new(&files, Arc::new(Recording::new(8, 99 << 10)), UNCHECKED);
        let texts = vec![text(3, 1)];
        let got = fixture.model.embed(Lane::Bulk, texts.clone()).unwrap();
        assert_eq!(got, fixture.cpu.embed(Lane::Bulk, texts).unwrap());
        let stats = fixture.stats();
        assert_eq!((stats.device_batches, stats.device_fallbacks), (0, 0), "{kind:?}");
    }
    // Models with weights beyond the range of f16 stay on the CPU too.
    let mut files = files(&KINDS[0]);
    let large = 1e5_f32.to_le_bytes();
    let end = files.weights.len();
    files.weights[end - 4..].copy_from_slice(&large);
    let fixture = Fixture::new(&files, Arc::new(Recording::new(8, 99 << 10)), UNCHECKED);
    assert_eq!(fixture.model.embed(Lane::Bulk, vec![text(2, 1)]).unwrap().len(), 1);
    assert_eq!(fixture.stats().device_fallbacks, 0);
}

/// Goal: candle embeds on the card if there are no kernels, here for a head size of 16.
#[cfg(feature = "candle-cuda")]
#[test]
fn candle_embeds_what_has_no_kernels_on_a_card() {
    let files = files(&Kind { heads: 4, head: 16, wide: 64, ..KINDS[0] });
    let test = "candle_embeds_what_has_no_kernels_on_a_card";
    let Some(fixture) = Fixture::real(test, &files) else { return };
    assert_eq!(fixture.model.engine(), Engine::Candle);
    let texts: Vec<String> = [1, 9, 130, 62].map(|words| text(words, words)).to_vec();
    let got = fixture.model.embed(Lane::Bulk, texts.clone()).unwrap();
    for (got, wanted) in got.iter().zip(fixture.cpu.embed(Lane::Bulk, texts).unwrap()) {
        assert_near(got, &wanted, "by candle");
    }
    assert_eq!((fixture.stats().device_batches > 0, fixture.stats().device_fallbacks), (true, 0));
}
