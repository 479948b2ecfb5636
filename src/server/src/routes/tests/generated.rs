//! Answers that a generator writes.

use futures_util::future::join_all;
use parking_lot::{Condvar, Mutex};

use super::*;
use lodestone_answer::generate::{Ended, GenerateError, Prompt, Tell};
use lodestone_types::CancellationToken;

/// Word of a question that the generator answers only once its gate is open.
const SLOW: &str = "slowly";

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
    let server = Server::made_with(Some(generator), None, HttpSettings::default());
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
