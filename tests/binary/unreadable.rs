//! Segments that become unreadable under a running server: truncated, overwritten, on bad sectors.
//! The server keeps running, other tenants are not affected, and lost data are rebuilt.

use std::collections::BTreeSet;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::process::http::{Client, Reply};
use crate::process::patience::Patience;
use crate::{Installation, ask, files, settled, upload};

const DOCUMENTS: usize = 12;

/// The tenant whose segments become unreadable: the directory of its segments, and all of its
/// chunks.
struct Tenant {
    directory: PathBuf,
    whole: BTreeSet<(String, String)>,
}

/// Uploads documents of one tenant, waits for them, and adds another tenant.
fn fill(installation: &Installation, client: &Client) -> Tenant {
    for n in 0..DOCUMENTS {
        let sentence = format!("The stone number {n} lies in the hall, and everywhere is wind. ");
        upload(client, &format!("doc-{n}"), &sentence.repeat(60));
    }
    for n in 0..DOCUMENTS {
        assert_eq!(settled(client, &format!("doc-{n}")), "success");
    }
    let directory = directory_of_tenant(&installation.data());
    add_neighbour(client);
    let (whole, is_marked) = chunks(&retrieve(client, "acme", 0.0));
    assert!(!is_marked && whole.len() > DOCUMENTS);
    Tenant { directory, whole }
}

fn retrieve(client: &Client, tenant: &str, alpha: f64) -> Reply {
    let body =
        json!({"tenant_id": tenant, "query": "everywhere", "max_chunks": 1001, "alpha": alpha});
    client.call("POST", "/search/retrieve", &body).expect("the server answers")
}

/// The chunks of a search result, and whether it reports that some are missing.
fn chunks(reply: &Reply) -> (BTreeSet<(String, String)>, bool) {
    let reply = reply.json();
    let text = |chunk: &Value, key: &str| chunk[key].as_str().expect("a text").to_owned();
    let chunks = reply["chunks"].as_array().expect("an array").iter();
    let found = chunks.map(|chunk| (text(chunk, "source_id"), text(chunk, "chunk_content")));
    let lacks = reply["metadata"]["degraded"].as_array().expect("an array");
    (found.collect(), lacks.contains(&json!("segments_quarantined")))
}

/// The segment files below a directory.
fn segments(directory: &Path) -> Vec<PathBuf> {
    let mut found = files(directory);
    found.retain(|path| path.extension().is_some_and(|ending| ending == "seg"));
    found
}

/// The directory of the only tenant.
fn directory_of_tenant(data: &Path) -> PathBuf {
    let mut all = std::fs::read_dir(data.join("v1/c")).expect("collections");
    all.next().expect("a collection").expect("an entry").path()
}

/// Searches both legs until everything is back; until then results must be complete, be marked as
/// incomplete, or be temporarily refused.
fn returns(client: &Client, whole: &BTreeSet<(String, String)>) {
    let (mut patience, mut was_marked) = (Patience::new(), false);
    for alpha in [0.0, 1.0].into_iter().cycle() {
        let reply = retrieve(client, "acme", alpha);
        let state = match reply.status {
            503 => None,
            200 => {
                let (found, is_marked) = chunks(&reply);
                assert!(found.is_subset(whole), "nothing else comes back");
                assert!(is_marked || found == *whole, "an answer that lacks chunks says so");
                if !is_marked && was_marked {
                    return;
                }
                was_marked |= is_marked;
                Some((found.len(), is_marked))
            }
            status => panic!("{status}: {}", reply.json()),
        };
        assert!(!patience.is_over(state), "it does not come back: {state:?}");
    }
}

/// Adds a tenant that the damage does not affect.
fn add_neighbour(client: &Client) {
    let body = json!({"file_id": "note", "content": "Everywhere is quiet."});
    ask(client, "POST", "/upload/upload_text?tenant_id=quiet", body);
    let path = "/upload/verify_processing?tenant_id=quiet&file_id=note";
    let mut patience = Patience::new();
    loop {
        let status = ask(client, "POST", path, Value::Null);
        if status["status"] == "success" {
            return;
        }
        assert!(!patience.is_over(status["status"].to_string()), "{status}");
    }
}

/// Goal: truncating a segment that is mapped does not crash the process.
#[test]
fn a_segment_that_is_cut_ends_no_process() {
    let Some(installation) = Installation::new("a_segment_that_is_cut_ends_no_process") else {
        return;
    };
    let (mut server, client) = installation.start();
    let Tenant { directory, whole } = fill(&installation, &client);
    assert_eq!(retrieve(&client, "acme", 1.0).status, 200);
    for path in segments(&directory) {
        let file = std::fs::File::options().write(true).open(path).expect("a segment");
        file.set_len(5000).expect("a file can be cut");
    }
    let first = retrieve(&client, "acme", 1.0);
    assert!(matches!(first.status, 200 | 503), "{}", first.status);
    assert_eq!(retrieve(&client, "quiet", 1.0).status, 200);
    returns(&client, &whole);
    assert_eq!(retrieve(&client, "quiet", 0.0).status, 200);
    assert!(server.output().contains("segment quarantined"));
    server.terminate();
    assert!(server.ended().expect("it ends").success());
}

/// Goal: bytes that change after they were verified are handled as damage, and do not make every
/// request panic.
#[test]
fn a_segment_that_is_overwritten_is_quarantined() {
    let Some(installation) = Installation::new("a_segment_that_is_overwritten_is_quarantined")
    else {
        return;
    };
    let (mut server, client) = installation.start();
    let Tenant { directory, whole } = fill(&installation, &client);
    for path in segments(&directory) {
        let mut file = std::fs::File::options().write(true).open(path).expect("a segment");
        // The first section after the header: the sources and positions of rows.
        file.seek(SeekFrom::Start(4096)).expect("a place in the file");
        file.write_all(&[0xFF; 8192]).expect("a writable file");
    }
    returns(&client, &whole);
    assert_eq!(retrieve(&client, "quiet", 1.0).status, 200);
    server.terminate();
    assert!(server.ended().expect("it ends").success());
}

/// Goal: the scrub finds bytes that change after they were read and verified, and restores the
/// data, although no request has touched them.
#[test]
fn a_segment_that_rots_is_found_by_the_scrub() {
    let Some(installation) = Installation::new("a_segment_that_rots_is_found_by_the_scrub") else {
        return;
    };
    let often = [("LODESTONE_SCRUB_PERIOD", "0.0001")];
    let (mut server, client) = installation.start_with(&often);
    let Tenant { directory, whole } = fill(&installation, &client);
    for alpha in [0.0, 1.0] {
        assert_eq!(chunks(&retrieve(&client, "acme", alpha)), (whole.clone(), false));
    }
    let rot = |path: PathBuf| {
        // A segment that has been merged in the meantime is gone.
        let Ok(mut file) = std::fs::File::options().write(true).open(path) else { return };
        file.seek(SeekFrom::Start(4096)).expect("a place in the file");
        file.write_all(&[0xFF; 64]).expect("a writable file");
    };
    let count = |name: &str| {
        let reply = client.call("GET", "/metrics", &Value::Null).expect("metrics");
        let text = String::from_utf8(reply.body).expect("UTF-8");
        let line = text.lines().find(|line| line.starts_with(name)).expect("a counter");
        line.rsplit(' ').next().expect("a value").parse::<u64>().expect("a number")
    };
    let (found, missing) =
        (r#"lodestone_scrub_damage_total{kind="segment"}"#, "lodestone_quarantined_segments");
    let mut patience = Patience::new();
    while count(found) == 0 {
        segments(&directory).into_iter().for_each(rot);
        assert!(!patience.is_over(()), "nothing is found");
    }
    // Another segment may be found damaged while the first one is being restored.
    let mut patience = Patience::new();
    while count(missing) > 0 || chunks(&retrieve(&client, "acme", 0.0)) != (whole.clone(), false) {
        assert!(!patience.is_over((count(found), count(missing))), "it is not there again");
    }
    server.terminate();
    assert!(server.ended().expect("it ends").success());
}

/// A preloaded library that makes reads of one position of one file fail with EIO.
const BAD_SECTOR: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ssize_t pread64(int file, void *buffer, size_t count, off64_t offset) {
    static ssize_t (*real)(int, void *, size_t, off64_t);
    const char *bad = getenv("BAD_SECTOR_FILE"), *at = getenv("BAD_SECTOR_AT");
    char link[64], path[4096];
    if (!real)
        real = (ssize_t (*)(int, void *, size_t, off64_t))dlsym(RTLD_NEXT, "pread64");
    if (bad && at && offset <= atoll(at) && atoll(at) < offset + (off64_t)count) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", file);
        ssize_t length = readlink(link, path, sizeof path);
        if (length == (ssize_t)strlen(bad) && !memcmp(path, bad, length)) {
            errno = EIO;
            return -1;
        }
    }
    return real(file, buffer, count, offset);
}
"#;

/// Builds the library; `None` without a C compiler.
fn bad_sector_library(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("bad_sector.c"), folder.join("bad_sector.so"));
    std::fs::write(&source, BAD_SECTOR).expect("a writable directory");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl");
    compiler.status().is_ok_and(|status| status.success()).then_some(library)
}

/// Goal: a bad sector is detected by the request that reads it, and the segment is rebuilt.
#[test]
fn a_bad_sector_is_quarantined() {
    let test = "a_bad_sector_is_quarantined";
    let Some(installation) = Installation::new(test) else { return };
    let Some(library) = bad_sector_library(installation.dir.path()) else {
        println!("SKIPPED {test}: no C compiler to make a sector unreadable with");
        return;
    };
    let (mut server, client) = installation.start();
    let Tenant { directory, whole } = fill(&installation, &client);
    server.terminate();
    assert!(server.ended().expect("it ends").success());
    let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
    let largest = segments(&directory).into_iter().max_by_key(length).expect("a segment");
    let (file, middle) = (largest.canonicalize().expect("a path"), length(&largest) / 2);
    let (library, file) = (library.to_string_lossy(), file.to_string_lossy());
    let middle = middle.to_string();
    let variables =
        [("LD_PRELOAD", &*library), ("BAD_SECTOR_FILE", &*file), ("BAD_SECTOR_AT", &*middle)];
    let (mut server, client) = installation.start_with(&variables);
    returns(&client, &whole);
    assert_eq!(retrieve(&client, "quiet", 1.0).status, 200);
    let output = server.output();
    assert!(output.contains("Input/output error"), "the sector was met: {output}");
    server.terminate();
    assert!(server.ended().expect("it ends").success());
}
