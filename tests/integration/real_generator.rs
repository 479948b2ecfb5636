//! Answers from a third-party server, to test against somebody else's understanding of the
//! interface.
//!
//! `mockllm` implements OpenAI's interface with scripted responses from a file; it needs neither a
//! model nor a network. `scripts/setup --test` installs it. The test is skipped if it is missing;
//! `REQUIRE_LLM_SERVER=1` turns that into a failure.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use lodestone_answer::generate::{Generator, GeneratorSettings, OpenAiGenerator};
use serde_json::json;
use tempfile::TempDir;

use crate::corpus::with;
use crate::streams::{events, names};
use crate::support::{TestServer, use_generator};

const QUESTION: &str = "Who designed the Eiffel Tower?";
const RESPONSES: &str = "responses: {}\ndefaults:\n  unknown_response: \
    \"The Eiffel Tower was designed by Gustave Eiffel [1]. Whales [9] sing.\"\n";

/// A running server, killed at the end of the test.
struct Mock {
    process: Child,
    url: String,
    _dir: TempDir,
}

impl Mock {
    fn start(test: &str) -> Option<Self> {
        let python = Path::new(env!("CARGO_MANIFEST_DIR")).join(".venv/bin/python");
        let known = Command::new(&python).args(["-c", "import mockllm, uvicorn"]).output();
        if !known.is_ok_and(|output| output.status.success()) {
            let is_required = std::env::var_os("REQUIRE_LLM_SERVER").is_some();
            assert!(!is_required, "{test} needs mockllm, and REQUIRE_LLM_SERVER is set");
            println!("SKIPPED {test}: no mockllm in .venv; scripts/setup --test gets it");
            return None;
        }
        let dir = TempDir::new().expect("a temporary directory");
        std::fs::write(dir.path().join("responses.yml"), RESPONSES).expect("a file");
        let mut process = Command::new(&python)
            .args(["-m", "uvicorn", "mockllm.server:app", "--host", "127.0.0.1", "--port", "0"])
            .env("MOCKLLM_RESPONSES_FILE", dir.path().join("responses.yml"))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a process");
        let mut lines = BufReader::new(process.stderr.take().expect("it is piped")).lines();
        let address = lines.by_ref().map_while(Result::ok).find_map(|line| {
            let (_, rest) = line.split_once("running on ")?;
            rest.split_whitespace().next().map(str::to_owned)
        });
        // An undrained pipe would eventually block the server.
        std::thread::spawn(move || lines.for_each(drop));
        let url = format!("{}/v1", address.expect("it says where it listens"));
        Some(Self { process, url, _dir: dir })
    }
}

impl Drop for Mock {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// Goal: the client and a third-party server understand each other, streaming and not.
#[test]
fn a_server_of_others_is_understood() {
    let Some(mock) = Mock::start("a_server_of_others_is_understood") else { return };
    let llm = GeneratorSettings {
        base_url: mock.url.clone(),
        api_key: None,
        model: "gpt-4".to_owned(),
        context_tokens: 8192,
    };
    let looked = OpenAiGenerator::new(llm.clone()).look().expect("it answers");
    assert!(looked.starts_with("it answers"), "{looked}");
    let server = TestServer::start_with(|settings| use_generator(settings, llm));
    server.index("acme", "default", "tower", "The Eiffel Tower was designed by Gustave Eiffel.");
    let expected = "The Eiffel Tower was designed by Gustave Eiffel [1]. Whales sing.";
    let found = server.qna(QUESTION, &json!({}));
    assert_eq!((&found["answer"], &found["model_used"]), (&json!(expected), &json!("gpt-4")));
    assert_eq!(found["metadata"]["generation"]["fallback"], false);
    let body = json!({"question": QUESTION, "tenant_id": "acme", "session_id": "talk"});
    for _ in 0..2 {
        let body = with(body.clone(), &json!({"stream": true}));
        let told = events(&server.post("/search/qna", body));
        assert!(names(&told).iter().filter(|name| **name == "token").count() > 5);
        let last = told.last().expect("events");
        assert_eq!((last.name.as_str(), &last.data["answer"]), ("done", &json!(expected)));
    }
}
