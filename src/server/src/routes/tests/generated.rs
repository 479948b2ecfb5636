//! Answers that a generator writes.

use futures_util::future::join_all;
use parking_lot::{Condvar, Mutex};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::*;
use crate::error::ApiError;
use crate::fair_queue::RunPermit;
use lodestone_answer::generate::{Ended, GenerateError, Prompt, Tell};
use lodestone_engine::TenantAccess;
use lodestone_rank::{RerankError, Reranker, Verdicts};
use lodestone_types::{
    CancellationToken, CollectionId, RequestContext, Scope, SubTenantId, TenantId,
};

/// Word of a question that the generator answers only once its gate is open.
const SLOW: &str = "slowly";
/// Word of a question that the generator refuses.
const REFUSED: &str = "really";

/// A generator with a gate.
#[derive(Debug, Default)]
struct Gated {
    state: Mutex<Gate>,
    opened: Condvar,
}

#[derive(Debug, Default)]
struct Gate {
    is_open: bool,
    waiting: usize,
}

impl Gated {
    fn open(&self) {
        self.state.lock().is_open = true;
        self.opened.notify_all();
    }
}

impl Generator for Gated {
    fn model(&self) -> &str {
        "gated"
    }

    fn place(&self) -> &str {
        "nowhere"
    }

    fn context_tokens(&self) -> usize {
        4096
    }

    fn generate(
        &self,
        prompt: &Prompt,
        _: &CancellationToken,
        tell: Tell<'_>,
    ) -> Result<Ended, GenerateError> {
        if prompt.messages.iter().any(|message| message.text.contains(SLOW)) {
            let deadline = Instant::now() + Duration::from_secs(600);
            let mut state = self.state.lock();
            state.waiting += 1;
            while !state.is_open && !self.opened.wait_until(&mut state, deadline).timed_out() {}
            state.waiting -= 1;
        }
        if prompt.messages.iter().any(|message| message.text.contains(REFUSED)) {
            return Err(GenerateError::Refused { status: 400, message: "no".to_owned() });
        }
        match tell("Of granite [1].").is_break() {
            true => Err(GenerateError::Cancelled),
            false => Ok(Ended::default()),
        }
    }

    fn look(&self) -> Result<String, GenerateError> {
        Ok("it answers".to_owned())
    }
}

/// Goal: questions of one tenant that hang in the generator leave it to the questions of another,
/// and those that wait are answered by it in the end.
#[tokio::test]
async fn hanging_answers_leave_the_generator_to_other_tenants() {
    let gate = Arc::new(Gated::default());
    let generator = Arc::clone(&gate) as Arc<dyn Generator>;
    let server = Server::made_with((Some(generator), None), None, HttpSettings::default());
    for tenant in ["a", "b"] {
        let scope = format!("tenant_id={tenant}");
        server.text(&scope, "wall", "The wall is built of granite.").await;
    }
    let ask = |tenant: &str, question: String| {
        server.post("/search/qna", json!({"tenant_id": tenant, "question": question}))
    };
    let many = join_all((0..100).map(|_| ask("a", format!("What is built {SLOW} of granite?"))));
    let other = async {
        let deadline = Instant::now() + Duration::from_secs(300);
        while gate.state.lock().waiting < 32 && Instant::now() < deadline {
            tokio::task::yield_now().await;
        }
        let waiting = gate.state.lock().waiting;
        let answer = ask("b", "What is the wall built of?".to_owned()).await;
        gate.open();
        (waiting, answer)
    };
    let (many, (waiting, other)) = tokio::join!(many, other);
    assert_eq!(waiting, 32, "as many as it leaves free");
    for answer in many.iter().chain([&other]) {
        let answer = answer.ok();
        assert_eq!(answer["metadata"]["generation"]["fallback"], false, "{answer}");
        assert_eq!(answer["model_used"], "gated");
    }
}

/// Access to a tenant that has a document.
async fn opened(server: &Server, tenant: &str) -> TenantAccess {
    server.text(&format!("tenant_id={tenant}"), "wall", "The wall is built of granite.").await;
    let (tenant, sub_tenant) = (TenantId::parse(tenant).unwrap(), SubTenantId::default_name());
    let grant = server.app.engine.authenticate(&server.key).unwrap();
    server.app.engine.open(&grant, &Scope { tenant, sub_tenant }, None).unwrap()
}

/// Waits for a permit to keep a core busy, on a thread of its own.
async fn core(
    server: &Server,
    access: &TenantAccess,
    context: RequestContext,
) -> Result<RunPermit<CollectionId>, ApiError> {
    let (app, access) = (server.app.clone(), access.clone());
    spawn_blocking(move || app.core_permit(&context, &access)).await.unwrap()
}

/// Takes the permits of all cores.
async fn cores(server: &Server, access: &TenantAccess) -> Vec<RunPermit<CollectionId>> {
    let count = server.app.engine.settings().embed_threads.max(1);
    let taken = (0..count).map(|_| core(server, access, RequestContext::default()));
    join_all(taken).await.into_iter().map(Result::unwrap).collect()
}

/// Goal: answers in place of the generator's, whole and streamed, wait for a core as those without
/// a generator do.
#[tokio::test]
async fn answers_in_place_of_the_generator_wait_for_a_core() {
    let generator = Arc::<Gated>::default() as Arc<dyn Generator>;
    let server = Server::made_with((Some(generator), None), None, HttpSettings::default());
    let access = opened(&server, "a").await;
    let taken = cores(&server, &access).await;
    let ask = |is_streamed: bool| {
        let question = format!("What is the wall {REFUSED} built of?");
        let body = json!({"tenant_id": "a", "question": question, "stream": is_streamed});
        Box::pin(server.post("/search/qna", body))
    };
    let [mut whole, mut streamed, mut leaving] = [false, true, false].map(ask);
    for waiting in [&mut whole, &mut streamed, &mut leaving] {
        assert!(timeout(Duration::from_millis(200), waiting).await.is_err(), "no core is free");
    }
    drop((leaving, taken));
    let whole = whole.await.ok();
    assert_eq!(whole["metadata"]["generation"]["fallback_reason"], "refused", "{whole}");
    let streamed = String::from_utf8(streamed.await.body.to_vec()).unwrap();
    assert!(streamed.contains("event: done") && streamed.contains("granite"), "{streamed}");
    drop(cores(&server, &access).await);
}

/// A reranker to which all passages are alike.
#[derive(Debug)]
struct Alike;

impl Reranker for Alike {
    fn name(&self) -> &str {
        "alike"
    }

    fn score(
        &self,
        _: &RequestContext,
        _: Option<Instant>,
        _: &str,
        passages: &[&str],
    ) -> Result<Verdicts, RerankError> {
        Ok(Verdicts { scores: vec![0.5; passages.len()], is_cut_short: false })
    }
}

/// Goal: questions wait for a core to rerank what was found, beside a generator and without an
/// answer.
#[tokio::test]
async fn reranking_for_questions_waits_for_a_core() {
    let generator = Arc::<Gated>::default() as Arc<dyn Generator>;
    let models = (Some(generator), Some(Arc::new(Alike) as Arc<dyn Reranker>));
    let server = Server::made_with(models, None, HttpSettings::default());
    let access = opened(&server, "a").await;
    let taken = cores(&server, &access).await;
    let ask = |ai_generation: bool| {
        let question = "What is the wall built of?";
        let mut body = json!({"tenant_id": "a", "question": question, "mode": "accurate"});
        body["ai_generation"] = json!(ai_generation);
        Box::pin(server.post("/search/qna", body))
    };
    let mut asked = [true, false].map(ask);
    for waiting in &mut asked {
        assert!(timeout(Duration::from_millis(200), waiting).await.is_err(), "no core is free");
    }
    drop(taken);
    for answer in asked {
        assert_eq!(answer.await.ok()["metadata"]["reranker"], "alike");
    }
    drop(cores(&server, &access).await);
}

/// Goal: a request that waits for a core in place of the generator gives up its turn when its
/// client disconnects or its time is over.
#[tokio::test]
async fn a_wait_for_a_core_ends_with_its_request() {
    let server = Server::start();
    let access = opened(&server, "a").await;
    let taken = cores(&server, &access).await;
    let late = RequestContext::with_limit(Duration::from_millis(5));
    let late = core(&server, &access, late).await.unwrap_err();
    assert_eq!(late.reason(), "deadline_exceeded");
    let context = RequestContext::default();
    let mut leaving = Box::pin(core(&server, &access, context.clone()));
    assert!(timeout(Duration::from_millis(50), &mut leaving).await.is_err(), "no core is free");
    drop(context.cancel().on_drop());
    assert!(leaving.await.is_err());
    assert!(core(&server, &access, context).await.is_err(), "it had left before");
    drop(taken);
    drop(cores(&server, &access).await);
}
