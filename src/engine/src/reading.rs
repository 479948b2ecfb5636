//! Lets the generator of answers extract graphs: an adapter between `answer` and `ingest`.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::ingest::GraphReader;
use crate::settings::Settings;
use lodestone_answer::generate::{Effort, Generator, Message, Prompt, Speaker};
use lodestone_graph::claims::{REPLY_BYTES_MAX, REPLY_TOKENS_MAX, Request};
use lodestone_types::CancellationToken;

/// A [`GraphReader`] that asks a generator.
#[derive(Debug)]
pub(super) struct GeneratorReader {
    generator: Arc<dyn Generator>,
    is_ended: AtomicBool,
    next: AtomicU64,
    /// Cancellation tokens of the calls under way, by call number.
    open: Mutex<BTreeMap<u64, CancellationToken>>,
}

impl GeneratorReader {
    /// Creates a reader that asks `generator`.
    pub(super) fn new(generator: Arc<dyn Generator>) -> Self {
        let open = Mutex::new(BTreeMap::new());
        Self { generator, is_ended: AtomicBool::new(false), next: AtomicU64::new(0), open }
    }

    /// Creates a reader for `generator` if the settings enable graphs by language model.
    pub(super) fn configured(
        settings: &Settings,
        generator: Option<&Arc<dyn Generator>>,
    ) -> Option<Arc<dyn GraphReader>> {
        let generator = generator.filter(|_| settings.llm_graph)?;
        Some(Arc::new(Self::new(Arc::clone(generator))))
    }
}

impl GraphReader for GeneratorReader {
    fn reply(&self, request: &Request, time_max: Duration) -> Result<String, String> {
        let says = |speaker, text: &str| Message { speaker, text: text.to_owned() };
        let prompt = Prompt {
            messages: vec![
                says(Speaker::System, &request.rules),
                says(Speaker::User, &request.text),
            ],
            reply_tokens_max: REPLY_TOKENS_MAX,
            temperature: 0.0,
            effort: Effort { attempts_max: 1, silence_max: time_max, time_max },
            tools: None,
        };
        let cancel = CancellationToken::default();
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.open.lock().insert(number, cancel.clone());
        // `end` may have run before this call was registered in `open`.
        if self.is_ended.load(Ordering::SeqCst) {
            cancel.cancel();
        }
        let mut reply = String::new();
        let ended = self.generator.generate(&prompt, &cancel, &mut |piece| {
            reply.push_str(piece);
            match reply.len() <= REPLY_BYTES_MAX {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        });
        self.open.lock().remove(&number);
        match ended {
            Ok(_) => Ok(reply),
            Err(_) if reply.len() > REPLY_BYTES_MAX => Err("its reply is too long".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn end(&self) {
        self.is_ended.store(true, Ordering::SeqCst);
        let open: Vec<CancellationToken> = self.open.lock().values().cloned().collect();
        open.iter().for_each(CancellationToken::cancel);
    }
}
