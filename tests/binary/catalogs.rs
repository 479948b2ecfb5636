//! Catalogs that are older than the data, empty, damaged, or lost together with other files.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::damage::verify;
use crate::process::http::Client;
use crate::process::{Server, lodestone};
use crate::{Installation, KEY, ask, files, found, settled, upload};

impl Installation {
    fn catalog(&self) -> PathBuf {
        self.data().join("catalog.sqlite")
    }

    /// The output of a server that refuses to start.
    fn refused(&self) -> String {
        let mut server = Server::spawn(&self.data(), &self.model, Some(KEY));
        let status = server.ended().expect("it ends by itself");
        assert!(!status.success(), "{}", server.output());
        server.output().to_owned()
    }

    /// Whether `doctor` considers the server able to start, and its output.
    fn doctor(&self) -> (bool, String) {
        let mut command = lodestone(&["doctor", "--listen", "127.0.0.1:0", "--device", "cpu"]);
        command.arg("--data-dir").arg(self.data()).arg("--model-dir").arg(&self.model);
        let run = command.output().expect("it runs");
        (run.status.success(), String::from_utf8(run.stdout).expect("UTF-8"))
    }
}

/// Stops a server; returns its output.
fn stop(mut server: Server) -> String {
    server.terminate();
    assert!(server.ended().expect("it ends").success());
    server.output().to_owned()
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(done.success());
}

fn status_in(client: &Client, tenant: &str, id: &str) -> Value {
    let path = format!("/upload/verify_processing?tenant_id={tenant}&file_id={id}&wait=30");
    ask(client, "POST", &path, Value::Null)
}

/// Goal: with an outdated catalog, later uploads are stored and found, and tenants created since
/// are present.
#[test]
fn an_older_catalog_drops_nothing() {
    let Some(installation) = Installation::new("an_older_catalog_drops_nothing") else { return };
    let (server, client) = installation.start();
    upload(&client, "doc", "A first wall of granite.");
    assert_eq!(settled(&client, "doc"), "success");
    stop(server);
    let backup = installation.dir.path().join("backup.sqlite");
    copy(&installation.catalog(), &backup);

    let (server, client) = installation.start();
    for stone in ["basalt", "gneiss", "quartz"] {
        upload(&client, "doc", &format!("A wall of {stone}."));
        assert_eq!(settled(&client, "doc"), "success");
    }
    let text = json!({"file_id": "new", "content": "A tenant that is made after the backup."});
    ask(&client, "POST", "/upload/upload_text?tenant_id=later", text);
    assert_eq!(status_in(&client, "later", "new")["status"], "success");
    stop(server);
    assert!(verify(&installation.data()).0);

    std::fs::copy(&backup, installation.catalog()).expect("a writable file");
    let (is_sound, said) = verify(&installation.data());
    assert!(!is_sound, "{said}");
    assert!(said.contains("acme: catalog.sqlite is older"), "{said}");
    assert!(said.contains("later: has a descriptor"), "{said}");

    let (server, client) = installation.start();
    assert_eq!(found(&client, "quartz"), ["doc"]);
    upload(&client, "doc", "A wall of slate.");
    assert_eq!(settled(&client, "doc"), "success");
    assert_eq!((found(&client, "slate").len(), found(&client, "quartz").len()), (1, 0));
    assert_eq!(status_in(&client, "later", "new")["status"], "success");
    stop(server);
    let (is_sound, said) = verify(&installation.data());
    assert!(is_sound, "{said}");
}

/// Goal: a job in an outdated catalog whose source has a later version does not report success.
#[test]
fn a_version_that_is_dropped_is_no_success() {
    let Some(installation) = Installation::new("a_version_that_is_dropped") else { return };
    let (server, client) = installation.start_with(&[("LODESTONE_INGEST_THREADS", "1")]);
    upload(&client, "busy", &"Keeps the only worker busy with wind. ".repeat(600));
    upload(&client, "doc", "A wall of basalt.");
    server.kill();
    // Including the catalog's write-ahead log, as in a snapshot of a running server.
    let backup = installation.dir.path().join("backup");
    copy(&installation.data(), &backup);
    let (server, client) = installation.start();
    for stone in ["gneiss", "quartz"] {
        upload(&client, "doc", &format!("A wall of {stone}."));
        assert_eq!(settled(&client, "doc"), "success");
    }
    stop(server);
    for path in files(&backup) {
        let name = path.file_name().expect("a name").to_str().expect("UTF-8");
        if name.starts_with("catalog.sqlite") {
            copy(&path, &installation.data().join(name));
        }
    }
    for original in files(&backup.join("v1/raw")) {
        let below = original.strip_prefix(&backup).expect("below");
        copy(&original, &installation.data().join(below));
    }
    let (server, client) = installation.start();
    assert_eq!(settled(&client, "doc"), "errored");
    let status = status_in(&client, "acme", "doc");
    assert!(status["message"].as_str().expect("a text").contains("later version"), "{status}");
    assert_eq!((found(&client, "quartz").len(), found(&client, "basalt").len()), (1, 0));
    stop(server);
}

/// Goal: without catalog and manifests, nothing is served as empty and no segment is deleted; once
/// the manifests are back, everything is there.
#[test]
fn segments_without_manifest_and_catalog_are_kept() {
    let Some(installation) = Installation::new("segments_without_manifest_are_kept") else {
        return;
    };
    let (server, client) = installation.start();
    upload(&client, "doc", "A wall of granite.");
    assert_eq!(settled(&client, "doc"), "success");
    let memory = json!({"tenant_id": "acme", "user_memory": "Nora likes slate."});
    ask(&client, "POST", "/user_memory/add_user_memory", memory);
    stop(server);
    let data = installation.data();
    let is_segment = |path: &PathBuf| path.extension().is_some_and(|ending| ending == "seg");
    let segments: Vec<PathBuf> = files(&data.join("v1/c")).into_iter().filter(is_segment).collect();
    assert!(!segments.is_empty());
    let collection = segments[0].parent().and_then(Path::parent).expect("a collection").to_owned();
    let aside = installation.dir.path().join("manifests");
    std::fs::rename(collection.join("m"), &aside).expect("a directory");
    std::fs::remove_file(installation.catalog()).expect("a file");

    for _ in 0..2 {
        let (server, client) = installation.start();
        let list = client.call("GET", "/list/sources?tenant_id=acme", &Value::Null);
        let list = list.expect("an answer");
        assert_eq!((list.status, &list.json()["reason"]), (503, &json!("data_damaged")));
        let ready = ask(&client, "GET", "/readyz", Value::Null);
        let index = ready["components"]["index"].as_str().expect("a text");
        assert!(index.starts_with("degraded"), "{index}");
        let said = stop(server);
        assert!(said.contains("from a backup"), "the remedy: {said}");
        assert!(segments.iter().all(|segment| segment.exists()));
        let (is_sound, said) = verify(&data);
        assert!(!is_sound && said.contains("acme: "), "{said}");
    }
    std::fs::rename(&aside, collection.join("m")).expect("a directory");
    let (server, client) = installation.start();
    assert_eq!(found(&client, "granite"), ["doc"]);
    let asked = "/user_memory/list_user_memories?tenant_id=acme";
    let memories = ask(&client, "GET", asked, Value::Null).to_string();
    assert!(memories.contains("Nora likes slate."), "{memories}");
    stop(server);
}

/// Goal: a truncated catalog is reported as damage with a remedy that works, yet an interrupted
/// first start is not.
#[test]
fn an_emptied_catalog_is_no_new_installation() {
    let Some(installation) = Installation::new("an_emptied_catalog") else { return };
    std::fs::create_dir_all(installation.data()).expect("a directory");
    std::fs::write(installation.catalog(), "").expect("a writable file");
    let (is_well, said) = installation.doctor();
    assert!(is_well, "{said}");
    let (server, client) = installation.start();
    upload(&client, "doc", "A wall of granite.");
    assert_eq!(settled(&client, "doc"), "success");
    stop(server);
    for contents in ["", "no database at all, but more bytes than none"] {
        std::fs::write(installation.catalog(), contents).expect("a writable file");
        let (is_well, examined) = installation.doctor();
        assert!(!is_well, "{examined}");
        for said in [installation.refused(), verify(&installation.data()).1, examined] {
            let file = installation.catalog().display().to_string();
            assert!(said.contains(&file) && said.contains("move it away"), "{said}");
        }
        let bytes = std::fs::read(installation.catalog()).expect("a readable file");
        assert_eq!(bytes, contents.as_bytes(), "nothing was changed");
    }
    assert!(!verify(&installation.data()).0);
    std::fs::remove_file(installation.catalog()).expect("a file");
    let (server, client) = installation.start();
    assert_eq!(found(&client, "granite"), ["doc"]);
    stop(server);
    let nowhere = installation.dir.path().join("nowhere");
    let (is_sound, said) = verify(&nowhere);
    assert!(!is_sound && said.contains("does not exist") && !nowhere.exists(), "{said}");
}

/// Goal: every page of the catalog is checked: a zeroed page is detected wherever it is, unless it
/// holds nothing.
#[test]
fn verify_finds_a_zeroed_page_of_the_catalog() {
    const PAGE: usize = 4096;
    let Some(installation) = Installation::new("verify_finds_a_zeroed_page") else { return };
    let (server, client) = installation.start();
    for tenant in 0..40 {
        let body = json!({"tenant_id": format!("tenant-{tenant:03}-{}", "x".repeat(60))});
        ask(&client, "POST", "/user/create_tenant", body);
    }
    (0..40).for_each(|n| upload(&client, &format!("doc-{n}"), "A wall of granite."));
    (0..40).for_each(|n| assert_eq!(settled(&client, &format!("doc-{n}")), "success"));
    stop(server);
    let sound = std::fs::read(installation.catalog()).expect("a readable file");
    let free_pages = u32::from_be_bytes(sound[36..40].try_into().expect("four bytes"));
    let pages = sound.len() / PAGE;
    assert!(pages > 20 && verify(&installation.data()).0, "{pages} pages");
    let mut missed = 0;
    for page in 0..pages {
        let mut damaged = sound.clone();
        damaged[page * PAGE..(page + 1) * PAGE].fill(0);
        std::fs::write(installation.catalog(), damaged).expect("a writable file");
        let (is_sound, said) = verify(&installation.data());
        missed += u32::from(is_sound);
        assert!(is_sound || said.contains("catalog.sqlite"), "page {page}: {said}");
    }
    println!("{missed} of {pages} pages were not missed, {free_pages} are free");
    assert!(missed <= free_pages, "{missed} of {pages} pages, {free_pages} are free");
}
