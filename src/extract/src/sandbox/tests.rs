#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use super::confine::confine;
use super::*;

/// A child that is a line of shell, for everything a parser may do wrong.
fn shell(script: &str, timeout_millis: u64) -> Sandbox {
    Sandbox::new("/bin/sh".into(), &["-c", script])
        .with_timeout(Duration::from_millis(timeout_millis))
}

fn ask(script: &str, timeout_millis: u64) -> Result<Extracted, ExtractError> {
    shell(script, timeout_millis).parse(Format::Html, &vec![b'x'; 1 << 20])
}

const LONG: u64 = 60_000;

#[test]
fn an_answer_is_taken_even_if_the_document_was_not_read() {
    let extracted = Extracted { text: "oneé\n".into(), ..Extracted::default() };
    let answer = serde_json::to_string(&Answer::Read(extracted.clone())).unwrap();
    assert_eq!(ask(&format!("printf '%s' '{answer}'"), LONG), Ok(extracted));

    let refusal = ExtractError::BeyondLimit { what: "entries", max: 9 };
    let answer = serde_json::to_string(&Answer::new(Err(refusal.clone()))).unwrap();
    let told = ask(&format!("cat >/dev/null; printf '%s' '{answer}'"), LONG).unwrap_err();
    assert_eq!(told.to_string(), refusal.to_string());
    assert_eq!((told.fault(), told.kind()), (refusal.fault(), refusal.kind()));
}

#[test]
fn a_child_that_crashes_costs_its_document_only() {
    for script in ["exit 0", "exit 3", "cat >/dev/null; echo nonsense", "kill -SEGV $$"] {
        let error = ask(script, LONG).unwrap_err();
        assert_eq!(error, ExtractError::Crashed { format: "html" }, "{script}");
        assert_eq!(error.fault(), Fault::CorruptFile);
    }
}

#[test]
fn a_child_that_takes_too_long_is_killed() {
    for script in ["exec sleep 1000", "exec >&-; exec sleep 1000", "while :; do :; done"] {
        let begun = Instant::now();
        let error = ask(script, 100).unwrap_err();
        assert_eq!(error, ExtractError::TooSlow { format: "html" }, "{script}");
        assert_eq!(error.fault(), Fault::Timeout);
        assert!(begun.elapsed() < Duration::from_secs(50), "{script}");
    }
    // As the kernel ends a child that has used up its CPU time.
    let error = ask("kill -KILL $$", LONG).unwrap_err();
    assert_eq!(error, ExtractError::TooSlow { format: "html" });
}

#[test]
fn a_missing_program_is_no_error_of_the_document() {
    let error = Sandbox::new("/nonexistent".into(), &[]).parse(Format::Xml, b"<a/>").unwrap_err();
    assert_eq!((error.fault(), error.kind()), (Fault::Internal, ErrorKind::Unavailable));
    let text = Sandbox::new("/nonexistent".into(), &[]).parse(Format::Txt, b"plain").unwrap();
    assert_eq!(text.text, "plain");
}

const CHILD: &str = "LODESTONE_TEST_CONFINED_CHILD";

/// Runs in a process of its own (see below), since there is no way back.
#[test]
#[cfg(target_os = "linux")]
fn confined_child() {
    let Ok(port) = std::env::var(CHILD) else { return };
    let port: u16 = port.parse().unwrap();
    TcpStream::connect(("127.0.0.1", port)).expect("before it is confined it can");
    confine().unwrap();
    let mut refused = Vec::new();
    let mut check = |what: &str, is_refused: bool| {
        if !is_refused {
            refused.push(what.to_owned());
        }
    };
    check("reads a file", std::fs::read("/proc/self/status").is_err());
    check("lists a directory", std::fs::read_dir("/").is_err());
    check("writes a file", std::fs::write("/tmp/lodestone-confined", "x").is_err());
    check(
        "removes a file",
        std::fs::remove_file("/nonexistent")
            .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied),
    );
    check("connects", TcpStream::connect(("127.0.0.1", port)).is_err());
    check("listens", TcpListener::bind("127.0.0.1:0").is_err());
    check("runs a program", Command::new("/bin/true").spawn().is_err());
    check("starts a thread", std::thread::Builder::new().spawn(|| ()).is_err());
    check("allocates a gigabyte", Vec::<u8>::new().try_reserve_exact(1 << 30).is_err());
    check("is not itself", Vec::<u8>::new().try_reserve_exact(1 << 20).is_ok());
    assert_eq!(refused, Vec::<String>::new(), "a confined process can do this");
    let html = crate::extract(Format::Html, b"<h1>A</h1><p>b c</p>").unwrap();
    assert_eq!(html.text, "# A\n\nb c");
}

#[test]
#[cfg(target_os = "linux")]
fn a_confined_process_can_do_nothing_but_compute() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "--test-threads=1"])
        .arg(format!("{}::confined_child", module_path!().split_once("::").unwrap().1))
        .env(CHILD, listener.local_addr().unwrap().port().to_string())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut told = String::new();
    child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    let ended = child.wait().unwrap();
    assert!(ended.success() && told.contains("1 passed"), "{ended}\n{told}");
}
