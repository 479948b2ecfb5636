//! Goal: events reach their receivers whatever other receivers do, and no failure stops the
//! dispatcher.

use parking_lot::{Condvar, Mutex};

use super::*;
use lodestone_catalog::{NewWebhook, Webhook};
use lodestone_embed::HashEmbedder;
use lodestone_types::limits::{WEBHOOK_SENDERS_EACH, WEBHOOKS_MAX};
use lodestone_types::{
    BlockedReason, DeliveryState, EventKind, FetchProblem, PostFailure, WebPost, WebUrl,
    WebhookClient,
};

/// A client whose receivers behave as their paths say.
#[derive(Debug, Default)]
struct Receivers {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Paths of the messages in order of arrival, with the ids of their events.
    came: Vec<(String, String)>,
    hanging: usize,
    hanging_max: usize,
    is_released: bool,
}

impl WebhookClient for Receivers {
    fn permits(&self, _: &WebUrl) -> Result<(), BlockedReason> {
        Ok(())
    }

    fn post(&self, post: &WebPost<'_>) -> Result<u16, PostFailure> {
        let path = post.url.target().to_owned();
        let mut state = self.state.lock();
        let before = state.came.iter().filter(|(known, _)| *known == path).count();
        state.came.push((path.clone(), post.headers[0].1.clone()));
        self.changed.notify_all();
        match (path.as_str(), before) {
            ("/hangs", _) => {
                state.hanging += 1;
                state.hanging_max = state.hanging_max.max(state.hanging);
                while !state.is_released {
                    self.changed.wait(&mut state);
                }
                state.hanging -= 1;
                Err(PostFailure::Failed(FetchProblem::TimedOut { seconds: 10 }))
            }
            ("/stumbles", 0) => panic!("an error of the client"),
            ("/stumbles", 1) => Ok(503),
            _ => Ok(200),
        }
    }
}

impl Receivers {
    /// Waits for `count` messages to a path; returns the ids of their events.
    fn wait_for(&self, path: &str, count: usize) -> Vec<String> {
        wait_for(path, || {
            let state = self.state.lock();
            let came = state.came.iter().filter(|(known, _)| known == path);
            let ids: Vec<String> = came.map(|(_, id)| id.clone()).collect();
            (ids.len() >= count).then_some(ids)
        })
    }

    fn release(&self) {
        self.state.lock().is_released = true;
        self.changed.notify_all();
    }
}

struct Hooked {
    engine: Arc<Engine>,
    receivers: Arc<Receivers>,
    clock: Arc<ManualClock>,
    _dir: TempDir,
}

impl Hooked {
    fn start() -> Self {
        let (dir, receivers) = (tempfile::tempdir().unwrap(), Arc::<Receivers>::default());
        let clock = Arc::new(ManualClock::new(START));
        let settings = Settings::new(dir.path().join("data"), "unused".into());
        let mut components = Components::real(Arc::new(HashEmbedder));
        components.clock = Arc::clone(&clock) as Arc<dyn Clock>;
        components.webhook_client = Some(Arc::clone(&receivers) as Arc<dyn WebhookClient>);
        let engine = Engine::start(settings, components).unwrap();
        Self { engine, receivers, clock, _dir: dir }
    }

    fn hook(&self, path: &str) -> Webhook {
        let url = WebUrl::parse(&format!("https://hooks.example{path}")).unwrap();
        let kinds = vec![EventKind::SourceSuccess];
        let scope = KeyScope::AllTenants;
        let new = NewWebhook { url, description: String::new(), kinds, scope };
        self.engine.create_webhook(&grant(), new).unwrap().0
    }

    fn upload(&self, name: &str) {
        submit(&self.engine, name, &format!("The text {name}"), &Metadata::new());
        assert_eq!(settled(&self.engine, name).status, JobStatus::Success);
    }
}

#[test]
fn an_attempt_that_fails_or_panics_is_made_again() {
    let hooked = Hooked::start();
    let hook = hooked.hook("/stumbles");
    hooked.upload("a");
    for attempt in 1..=3 {
        let ids = hooked.receivers.wait_for("/stumbles", attempt);
        assert!(ids.iter().all(|id| *id == ids[0]), "the same event");
        let recorded = wait_for("the end of an attempt", || {
            let log = hooked.engine.delivery_log(&grant(), &hook.id, 1, None).unwrap().0;
            log.into_iter().next().filter(|row| row.attempts as usize == attempt)
        });
        let (state, problem) = match attempt {
            1 => (DeliveryState::Pending, "not delivered: internal error"),
            2 => (DeliveryState::Pending, "the server answered 503"),
            _ => (DeliveryState::Delivered, ""),
        };
        assert_eq!((recorded.state, recorded.problem.as_str()), (state, problem));
        hooked.clock.advance_millis(60_000);
        hooked.engine.catalog.wake_senders();
    }
}

#[test]
fn receivers_that_hang_leave_the_others_alone() {
    let hooked = Hooked::start();
    for _ in 1..WEBHOOKS_MAX {
        hooked.hook("/hangs");
    }
    hooked.hook("/takes");
    let names: Vec<String> = (0..6).map(|n| format!("s{n}")).collect();
    names.iter().for_each(|name| hooked.upload(name));
    let mut ids = hooked.receivers.wait_for("/takes", names.len());
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), names.len(), "each once");
    hooked.receivers.wait_for("/hangs", (WEBHOOKS_MAX - 1) * WEBHOOK_SENDERS_EACH);
    let most = hooked.receivers.state.lock().hanging_max;
    assert_eq!(most, (WEBHOOKS_MAX - 1) * WEBHOOK_SENDERS_EACH);
    // Stopping waits a moment for attempts in flight, and no longer.
    hooked.engine.shut_down();
    assert!(hooked.receivers.state.lock().hanging > 0);
    hooked.receivers.release();
}

#[test]
fn a_test_is_one_at_a_time() {
    let hooked = Hooked::start();
    let hook = hooked.hook("/hangs");
    std::thread::scope(|scope| {
        let first = scope.spawn(|| hooked.engine.test_webhook(&grant(), &hook.id));
        hooked.receivers.wait_for("/hangs", 1);
        let second = hooked.engine.test_webhook(&grant(), &hook.id);
        assert!(matches!(second, Err(EngineError::WebhookTestBusy)));
        hooked.receivers.release();
        let first = first.join().unwrap().unwrap();
        assert_eq!((first.status, first.problem.is_empty()), (None, false));
    });
    assert!(hooked.engine.test_webhook(&grant(), &hook.id).is_ok());
}
