//! Disks without a free byte or inode: a small tmpfs in a mount namespace of its own, which
//! requires root.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::http::Client;
use crate::process::patience::Patience;
use crate::process::{self, Server};
use crate::{KEY, archives, ask, files, found, settled, upload};

/// A tmpfs that only this process and the processes it starts there can see.
struct SmallDisk {
    /// Holds the namespace until its stdin is closed.
    holder: Child,
    dir: TempDir,
    model: PathBuf,
}

impl SmallDisk {
    /// Mounts a disk, or prints that the test is skipped and returns `None`.
    fn new(test: &str, options: &str) -> Option<Self> {
        let model = process::model::first_layer_dir(test)?;
        let dir = TempDir::new().expect("a temporary directory");
        let script = "mount -t tmpfs -o $0 none $1 && echo mounted && cat";
        let mut command = Command::new("unshare");
        command.args(["-m", "sh", "-c", script, options]).arg(dir.path());
        let holder = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut disk = Self { holder: holder.ok()?, dir, model };
        let mut line = String::new();
        let said = disk.holder.stdout.take().expect("a pipe");
        BufReader::new(said).read_line(&mut line).expect("a line");
        if line.trim() == "mounted" {
            return Some(disk);
        }
        println!("SKIPPED {test}: no tmpfs can be mounted here");
        None
    }

    /// Its root as seen from this process.
    fn root(&self) -> PathBuf {
        let below = self.dir.path().strip_prefix("/").expect("an absolute path");
        Path::new("/proc").join(self.holder.id().to_string()).join("root").join(below)
    }

    fn command(&self) -> Command {
        self.command_on(&self.dir.path().join("data"))
    }

    /// Builds a server command in its namespace, for a data directory on this disk or elsewhere.
    fn command_on(&self, data: &Path) -> Command {
        let inner = process::lodestone(&["serve", "--listen", "127.0.0.1:0"]);
        let mut command = Command::new("nsenter");
        command.args(["-m", "-t", &self.holder.id().to_string()]);
        command.arg(inner.get_program()).args(inner.get_args());
        for (name, value) in inner.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.arg("--data-dir").arg(data);
        command.arg("--model-dir").arg(&self.model).env("LODESTONE_ADMIN_KEY", KEY);
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        command
    }

    fn start(&self) -> (Server, Client) {
        let mut server = Server::run(self.command());
        let (banner, _) = server.ready();
        (server, banner.client(KEY))
    }

    /// Starts a server with a folder for backups.
    fn start_with_backups(&self, data: &Path, to: &Path) -> (Server, Client) {
        let mut command = self.command_on(data);
        command.arg("--backup-to").arg(to).args(["--backup-rate", "1MiB"]);
        let mut server = Server::run(command);
        let (banner, _) = server.ready();
        (server, banner.client(KEY))
    }

    /// Uses up all bytes except the last `kept`.
    fn fill(&self, kept: usize) {
        let path = self.root().join("filler");
        let mut filler = OpenOptions::new().create(true).append(true).open(&path).expect("a file");
        for block in [1 << 20, 4096] {
            while filler.write_all(&vec![1; block]).is_ok() {}
        }
        let bytes = filler.metadata().expect("a file").len();
        filler.set_len(bytes - kept as u64).expect("it can be cut");
    }

    /// Uses up all inodes.
    fn fill_inodes(&self) {
        let _ = std::fs::create_dir(self.root().join("fillers"));
        let mut number = 0;
        while File::create(self.root().join("fillers").join(number.to_string())).is_ok() {
            number += 1;
        }
    }

    fn empty(&self) {
        let _ = std::fs::remove_file(self.root().join("filler"));
        let _ = std::fs::remove_dir_all(self.root().join("fillers"));
    }

    /// Whether the reserve exists in full size; it is shorter if the disk fills up while it is
    /// written.
    fn has_reserve(&self) -> bool {
        const BYTES: u64 = 4 << 20;
        let bytes = std::fs::metadata(self.root().join("data/reserve/bytes"));
        bytes.is_ok_and(|bytes| bytes.len() == BYTES)
    }

    fn wait_for_reserve(&self, server: &mut Server) {
        let mut patience = Patience::new();
        while !self.has_reserve() {
            assert!(!patience.is_over(server.output().len()), "there is no reserve");
        }
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        let _ = self.holder.wait();
    }
}

fn delete(client: &Client, id: &str) {
    let body = json!({"tenant_id": "acme", "source_ids": [id]});
    let reply = client.call("DELETE", "/upload/delete_source", &body).expect("an answer");
    assert_eq!(reply.status, 200, "{}", reply.json());
}

/// Fills the disk until an upload is rejected; work in progress may remove files in between.
fn refused_when_full(disk: &SmallDisk, client: &Client, fill: fn(&SmallDisk)) {
    const ATTEMPTS: usize = 50;
    for n in 0..ATTEMPTS {
        fill(disk);
        let slate = json!({"file_id": format!("new-{n}"), "content": "A wall of slate."});
        let reply = client.call("POST", "/upload/upload_text?tenant_id=acme", &slate);
        let reply = reply.expect("an answer");
        if reply.status != 200 {
            assert_eq!((reply.status, &reply.json()["reason"]), (503, &json!("storage_full")));
            return;
        }
    }
    panic!("{ATTEMPTS} uploads were taken on a full disk");
}

/// Goal: with nothing free a server starts and deletes; once there is room, the reserve returns.
fn with_nothing_free(test: &str, fill: fn(&SmallDisk)) {
    let Some(disk) = SmallDisk::new(test, "size=40m,nr_inodes=6000") else { return };
    let (mut server, client) = disk.start();
    for n in 0..6 {
        upload(&client, &format!("d{n}"), "A wall of granite.");
    }
    (0..6).for_each(|n| assert_eq!(settled(&client, &format!("d{n}")), "success"));
    let text = json!({"file_id": "x", "content": "A tenant that will go."});
    ask(&client, "POST", "/upload/upload_text?tenant_id=gone", text);
    disk.wait_for_reserve(&mut server);

    // Work in progress may give the reserve up just before the disk is filled once more.
    loop {
        refused_when_full(&disk, &client, fill);
        fill(&disk);
        if disk.has_reserve() {
            break;
        }
        disk.empty();
        disk.wait_for_reserve(&mut server);
    }
    delete(&client, "d0");
    assert_eq!(found(&client, "granite").len(), 5);
    ask(&client, "DELETE", "/tenant/delete?tenant_id=gone&confirm=gone", Value::Null);
    assert!(!disk.has_reserve(), "it was given up");
    disk.empty();
    disk.wait_for_reserve(&mut server);
    server.terminate();
    assert!(server.ended().expect("it ends").success());

    fill(&disk);
    let (mut server, client) = disk.start();
    assert_eq!(found(&client, "granite").len(), 5);
    delete(&client, "d1");
    disk.empty();
    disk.wait_for_reserve(&mut server);
    let mut patience = Patience::new();
    let storage = || ask(&client, "GET", "/readyz", Value::Null)["components"]["storage"].clone();
    while storage() != "ok" {
        assert!(!patience.is_over(server.output().len()), "{}", storage());
    }
    upload(&client, "d1", "A wall of granite.");
    assert_eq!(settled(&client, "d1"), "success");
    assert_eq!(found(&client, "granite").len(), 5);
}

/// Goal: jobs in progress when the disk fills up, so that not even their return to the queue can be
/// recorded, succeed once there is room, without a restart. Found by `scripts/campaign --only
/// full_disk --seed 21 --replay 0`.
#[test]
fn jobs_under_way_when_the_disk_fills_end_well() {
    const DOCUMENTS: usize = 40;
    let test = "jobs_under_way_when_the_disk_fills_end_well";
    let Some(disk) = SmallDisk::new(test, "size=40m,nr_inodes=6000") else { return };
    let (mut server, client) = disk.start();
    for n in 0..DOCUMENTS {
        upload(&client, &format!("d{n}"), &format!("A wall of granite number {n}. ").repeat(150));
    }
    let mut patience = Patience::new();
    while !server.output().contains("the worker keeps them") {
        disk.fill(0);
        assert!(!patience.is_over(server.output().len()), "no job met the full disk");
    }
    disk.empty();
    (0..DOCUMENTS).for_each(|n| assert_eq!(settled(&client, &format!("d{n}")), "success"));
    assert_eq!(found(&client, "granite").len(), DOCUMENTS);
    server.terminate();
    assert!(server.ended().expect("it ends").success());
}

#[test]
fn without_a_free_byte_deletions_and_starts_go_on() {
    with_nothing_free("without_a_free_byte", |disk| disk.fill(0));
}

#[test]
fn without_a_free_inode_deletions_and_starts_go_on() {
    with_nothing_free("without_a_free_inode", SmallDisk::fill_inodes);
}

/// Goal: a catalog is rebuilt completely or not at all, however little of it fits on the disk.
#[test]
fn a_catalog_is_rebuilt_whole_or_not_at_all() {
    const TENANTS: usize = 20;
    let test = "a_catalog_is_rebuilt_whole_or_not_at_all";
    let Some(disk) = SmallDisk::new(test, "size=24m") else { return };
    let (server, client) = disk.start();
    for n in 0..TENANTS {
        let body = json!({"tenant_id": format!("tenant-{n:03}-{}", "x".repeat(80))});
        ask(&client, "POST", "/user/create_tenant", body);
    }
    upload(&client, "doc", "A wall of granite.");
    assert_eq!(settled(&client, "doc"), "success");
    server.kill();
    let data = disk.root().join("data");
    let (mut refused, mut served) = (0, 0);
    for kilobytes in (0..=900).step_by(90) {
        for path in files(&data) {
            let name = path.file_name().expect("a name").to_str().expect("UTF-8");
            if name.starts_with("catalog.sqlite") {
                std::fs::remove_file(&path).expect("a file");
            }
        }
        // Remove the reserve, which would free enough space.
        let _ = std::fs::remove_dir_all(data.join("reserve"));
        disk.fill(kilobytes << 10);
        let mut server = Server::run(disk.command());
        let is_ready = server.try_ready().is_some();
        let said = server.kill();
        assert!(
            !said.contains("malformed") && !said.contains("damaged"),
            "{kilobytes} KiB: {said}"
        );
        refused += usize::from(!is_ready);
        served += usize::from(is_ready);
        disk.empty();
        let (server, client) = disk.start();
        assert_eq!(found(&client, "granite"), ["doc"], "{kilobytes} KiB");
        let last = format!("tenant-{:03}-{}", TENANTS - 1, "x".repeat(80));
        ask(&client, "GET", &format!("/list/sources?tenant_id={last}"), Value::Null);
        server.kill();
    }
    println!("{refused} starts were refused, {served} were not");
    assert!(refused > 0 && served > 0, "{refused} refused, {served} served");
}

/// Requests a backup and waits for its end; calls `full` once copying has begun.
fn backed_up(client: &Client, full: impl FnOnce()) -> Value {
    ask(client, "POST", "/admin/backups", json!({}));
    let (mut full, mut patience) = (Some(full), Patience::new());
    loop {
        let state = ask(client, "GET", "/admin/backups", Value::Null);
        if state["running"] == false {
            return state["last"].clone();
        }
        if state["copied_bytes"].as_u64() > Some(0)
            && let Some(full) = full.take()
        {
            full();
        }
        assert!(!patience.is_over(state.clone()), "{state}");
    }
}

/// Goal: a backup gives up when the disk of the data fills up, because deletions wait for it, and
/// when its own disk fills up, which affects nothing else. With room again, the next backup is
/// complete.
#[test]
fn a_backup_gives_up_on_a_full_disk() {
    let test = "a_backup_gives_up_on_a_full_disk";
    for of_data in [true, false] {
        let Some(disk) = SmallDisk::new(test, "size=40m") else { return };
        let elsewhere = TempDir::new().expect("a temporary directory");
        let (small, large) = (disk.dir.path(), elsewhere.path());
        let (data, to) = match of_data {
            true => (small.join("data"), large.join("backups")),
            false => (large.join("data"), small.join("backups")),
        };
        let (mut server, client) = disk.start_with_backups(&data, &to);
        crate::backups::put_vectors(&client, 1500);
        upload(&client, "d0", "A wall of granite.");
        assert_eq!(settled(&client, "d0"), "success");
        if of_data {
            disk.wait_for_reserve(&mut server);
        }
        let last = backed_up(&client, || disk.fill(0));
        let error = last["error"].as_str().unwrap_or_default().to_owned();
        let reason = if of_data { "the data directory's disk is full" } else { "os error 28" };
        assert!(error.contains(reason) && last["backup"].is_null(), "{last}");
        delete(&client, "d0");
        assert!(found(&client, "granite").is_empty());
        disk.empty();
        let mut patience = Patience::new();
        while backed_up(&client, || ())["backup"]["state"] != "complete" {
            // The fill level of the disk is read once a second.
            assert!(of_data && !patience.is_over(()), "{}", server.output());
        }
        let root = if of_data { to } else { disk.root().join("backups") };
        let path = root.to_str().expect("UTF-8");
        let run = process::lodestone(&["backup", "verify", path]).output().expect("it runs");
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    }
}

/// Goal: an import that runs out of room fails with a clear error and leaves nothing behind,
/// however much of it fits; with room it succeeds.
#[test]
fn an_import_that_finds_no_room_leaves_nothing() {
    let test = "an_import_that_finds_no_room_leaves_nothing";
    let Some(disk) = SmallDisk::new(test, "size=60m") else { return };
    let elsewhere = TempDir::new().expect("a temporary directory");
    let (mut server, client) = disk.start();
    let [archive, _] = archives::exported(&client, elsewhere.path());
    disk.wait_for_reserve(&mut server);
    let (mut refused, mut taken) = (0, 0);
    for megabytes in (1..=25).step_by(4) {
        disk.fill(megabytes << 20);
        let name = format!("copy-{megabytes}");
        let run = archives::import(&client, &archive, &name);
        disk.empty();
        match run.status.success() {
            true => {
                archives::assert_whole(&client, &name);
                let path = format!("/tenant/delete?tenant_id={name}&confirm={name}");
                ask(&client, "DELETE", &path, Value::Null);
                taken += 1;
            }
            false => {
                let said = archives::text(&run);
                assert!(said.contains("full"), "{megabytes} MiB: {said}");
                assert!(!archives::is_listed(&client, &name), "{megabytes} MiB");
                refused += 1;
            }
        }
    }
    println!("{refused} imports were refused, {taken} were taken");
    assert!(refused > 0, "{taken} taken");
    let mut patience = Patience::new();
    while !archives::import(&client, &archive, "last").status.success() {
        // The fill level of the disk is read once a second.
        assert!(!patience.is_over(()), "{}", server.output());
    }
    ["large", "last"].iter().for_each(|tenant| archives::assert_whole(&client, tenant));
}
