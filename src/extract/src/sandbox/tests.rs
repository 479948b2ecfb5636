#![allow(clippy::disallowed_methods)] // Tests connect to servers of their own.

use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use super::confine::confine;
use super::*;
use lodestone_types::ErrorKind;

/// A child that runs a shell script, to simulate any misbehaviour of a parser.
fn shell(script: &str, timeout_millis: u64) -> Sandbox {
    Sandbox::new("/bin/sh".into(), &["-c", script])
        .with_timeout(Duration::from_millis(timeout_millis))
}

fn ask(script: &str, timeout_millis: u64) -> Result<Extracted, ExtractError> {
    let parsed = shell(script, timeout_millis).parse(Format::Html, &vec![b'x'; 1 << 20]);
    parsed.map(|(_, extracted)| extracted)
}

const LONG: u64 = 60_000;

#[test]
fn an_answer_is_taken_even_if_the_document_was_not_read() {
    let extracted = Extracted { text: "oneé\n".into(), ..Extracted::default() };
    let answer = serde_json::to_string(&Answer::Read(Format::Html, extracted.clone())).unwrap();
    assert_eq!(ask(&format!("printf '%s' '{answer}'"), LONG), Ok(extracted));

    let refusal = ExtractError::BeyondLimit { what: "entries", max: 9 };
    let answer = serde_json::to_string(&Answer::of_text(Err(refusal.clone()))).unwrap();
    let told = ask(&format!("cat >/dev/null; printf '%s' '{answer}'"), LONG).unwrap_err();
    assert_eq!(told.to_string(), refusal.to_string());
    assert_eq!((told.error_code(), told.kind()), (refusal.error_code(), refusal.kind()));
}

#[test]
fn a_result_comes_through_another_process_as_it_is() {
    let read = InProcess.parse(Format::Html, b"<h1>One</h1><p>Two <b>three</b><table><tr><td>4");
    assert!(read.as_ref().is_ok_and(|(_, extracted)| extracted.text.contains("three")));
    assert_eq!(parsed_from_bytes(&parsed_to_bytes(read.clone())), Some(read));
    let refusal = InProcess.parse(Format::Docx, b"PK no archive").unwrap_err();
    let told = parsed_from_bytes(&parsed_to_bytes(Err(refusal.clone()))).unwrap().unwrap_err();
    assert_eq!((told.to_string(), told.error_code()), (refusal.to_string(), refusal.error_code()));
    let picture = Answer::Drawn { pages: 1, size: (1.0, 1.0), png_bytes: 0 };
    for bytes in [&b"<html>"[..], b"", &serde_json::to_vec(&picture).unwrap()] {
        assert_eq!(parsed_from_bytes(bytes), None);
    }
}

#[test]
fn a_picture_is_taken_whole_or_not_at_all() {
    let drawing = Drawing { page: 3, width: 64, marks: Vec::new() };
    let answer = Answer::Drawn { pages: 7, size: (612.0, 792.0), png_bytes: 5 };
    let answer = serde_json::to_string(&answer).unwrap();
    let draw = |script: &str| shell(script, LONG).draw(Format::Pdf, b"x", &drawing);
    let picture = draw(&format!("cat >/dev/null; printf '%s' '{answer}pixel'")).unwrap();
    assert_eq!((picture.pages, &picture.png[..]), (7, &b"pixel"[..]));
    for script in [format!("printf '%s' '{answer}pixe'"), "kill -SEGV $$".to_owned()] {
        let error = draw(&script).unwrap_err();
        assert!(matches!(
            error,
            ExtractError::NotDrawn { page: 3, .. } | ExtractError::Crashed { .. }
        ));
    }
    let refused = shell("exit 0", LONG).draw(Format::Docx, b"x", &drawing).unwrap_err();
    assert_eq!(refused, ExtractError::NoPages { format: "docx" });
}

#[test]
fn a_child_that_crashes_costs_its_document_only() {
    for script in ["exit 0", "exit 3", "cat >/dev/null; echo nonsense", "kill -SEGV $$"] {
        let error = ask(script, LONG).unwrap_err();
        assert_eq!(error, ExtractError::Crashed { format: "html" }, "{script}");
        assert_eq!(error.error_code(), JobErrorCode::CorruptFile);
    }
}

#[test]
fn a_child_that_takes_too_long_is_killed() {
    for script in ["exec sleep 1000", "exec >&-; exec sleep 1000", "while :; do :; done"] {
        let begun = Instant::now();
        let error = ask(script, 100).unwrap_err();
        assert_eq!(error, ExtractError::TooSlow { format: "html" }, "{script}");
        assert_eq!(error.error_code(), JobErrorCode::Timeout);
        assert!(begun.elapsed() < Duration::from_secs(50), "{script}");
    }
    // This is how the kernel ends a child that has used up its CPU time.
    let error = ask("kill -XCPU $$", LONG).unwrap_err();
    assert_eq!(error, ExtractError::TooSlow { format: "html" });
}

#[test]
fn a_child_without_memory_says_so_and_is_not_tried_again() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    let count = |script: &str| {
        let error = ask(&format!("echo >>{}; {script}", runs.display()), LONG).unwrap_err();
        let count = std::fs::read_to_string(&runs).unwrap().lines().count();
        std::fs::remove_file(&runs).unwrap();
        (error, count)
    };
    let (error, tries) = count("echo 'memory allocation of 1 bytes failed' >&2; kill -ABRT $$");
    assert_eq!((&error, tries), (&ExtractError::OutOfMemory { format: "html" }, 1));
    assert_eq!((error.error_code(), error.kind()), (JobErrorCode::TooLarge, ErrorKind::TooLarge));
    // This is how the kernel kills if the machine is out of memory, which is not the fault of the
    // document.
    let (error, tries) = count("kill -KILL $$");
    assert_eq!((&error, tries), (&ExtractError::Killed { format: "html" }, 2));
    assert_eq!(
        (error.error_code(), error.kind()),
        (JobErrorCode::Internal, ErrorKind::Unavailable)
    );
}

/// After a killed first attempt the second child runs while no other does.
#[test]
fn a_killed_child_is_tried_again_alone() {
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().display();
    let answer = Answer::Read(Format::Html, Extracted { text: "t".into(), ..Extracted::default() });
    let answer = serde_json::to_string(&answer).unwrap();
    let script = format!(
        "[ -e {place}/retry ] || {{ touch {place}/retry; kill -KILL $$; }}; \
         cat >/dev/null; printf '%s' '{answer}'"
    );
    let sandbox = shell(&script, LONG);
    let parsed = sandbox.parse(Format::Html, b"x").unwrap();
    assert_eq!(parsed.1.text, "t");
    // While a child runs, no other can run alone.
    let shared = sandbox.beside.read().unwrap();
    assert!(sandbox.beside.try_write().is_err());
    drop(shared);
}

#[test]
#[cfg(target_os = "linux")]
fn signals_reach_only_the_process_itself() {
    let rules = super::confine::linux::rules(4711).unwrap();
    assert_eq!(rules[&libc::SYS_tgkill].len(), 1, "a call without a rule reaches any process");
    let others = [libc::SYS_kill, libc::SYS_tkill, libc::SYS_rt_sigqueueinfo];
    assert!(!others.iter().any(|call| rules.contains_key(call)));
}

#[test]
fn a_missing_program_is_no_error_of_the_document() {
    let error = Sandbox::new("/nonexistent".into(), &[]).parse(Format::Xml, b"<a/>").unwrap_err();
    assert_eq!(
        (error.error_code(), error.kind()),
        (JobErrorCode::Internal, ErrorKind::Unavailable)
    );
    let text = Sandbox::new("/nonexistent".into(), &[]).parse(Format::Txt, b"plain").unwrap();
    assert_eq!(text.1.text, "plain");
}

const CHILD: &str = "LODESTONE_TEST_CONFINED_CHILD";

/// Runs in its own process (see below), since confinement cannot be undone.
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
