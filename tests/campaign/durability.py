"""Rows on data loss: killed processes, power cuts, failing devices, full disks, and the time of a recovery.

All of them send random writes to a server, break it, start it again and compare it with the journal of `oracle`.
"""
import array
import contextlib
import errno
import fcntl
import os
import shutil
import struct
import subprocess
import time
from pathlib import Path
from random import Random

from oracle import Journal
from server import Broken, Refused, Server, verify, wait_for_jobs

IMAGE_BYTES = 96 << 20
# EXT4_IOC_SHUTDOWN, the same number on xfs: _IOR('X', 125, u32); 2: do not flush the journal either.
SHUTDOWN, NO_FLUSH = 0x8004587D, 2


def kills(trial):
    """Kills a server on one data directory ten times; about one start in five is killed, too."""
    data, random, journal, server = trial.folder / "data", trial.random, Journal(), None
    for _ in range(10):
        if server and random.random() < 0.2:
            start_and_kill(trial, data, random.random() * 1.5 * server.start_seconds)
            trial.add(kills=1)
        server = Server(trial, data)
        trial.seconds("start", server.start_seconds)
        journal.check(server, is_full=random.random() < 0.3)
        with journal.writing(server, random):
            time.sleep(0.005 * 100 ** random.random())
            server.kill()
        trial.add(kills=1)
    finish(trial, data, journal)


def start_and_kill(trial, data, seconds):
    """Starts a server and kills it during the start."""
    names = {"LODESTONE_ADMIN_KEY": "a-key-that-nobody-uses-00000000000001", "LODESTONE_MODEL_DIR": str(trial.model)}
    command = [trial.binary, "serve", "--data-dir", data, "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=os.environ | names | trial.embedder)
    time.sleep(seconds)
    process.kill()
    process.wait()


def finish(trial, data, journal):
    """The final comparison: every job has ended, and every file is sound."""
    server = Server(trial, data)
    trial.seconds("start", server.start_seconds)
    journal.check(server, is_full=True)
    server.stop()
    verify(trial, data)
    trial.add(acknowledged=journal.count("acknowledged"), unanswered=journal.count("unanswered"))


class LoopDisk:
    """A separate file system in an image file, whose power can be cut."""

    def __init__(self, trial, kind):
        self.image, self.root, self.kind = trial.folder / "image", trial.folder / "disk", kind
        self.root.mkdir()
        with open(self.image, "wb") as image:
            image.truncate(IMAGE_BYTES if kind == "ext4" else 4 * IMAGE_BYTES)
        quiet = ["-qF"] if kind == "ext4" else ["-qf"]
        run(f"mkfs.{kind}", *quiet, self.image)
        self.is_mounted = False
        self.mount()
        trial.cleanups.append(self.unmount)

    def mount(self):
        """Mounts the file system, which replays its journal."""
        run("mount", "-o", "loop", self.image, self.root)
        self.is_mounted = True

    def cut(self):
        """From now on nothing reaches the disk, not even what is cached in memory."""
        folder = os.open(self.root, os.O_RDONLY)
        try:
            fcntl.ioctl(folder, SHUTDOWN, struct.pack("I", NO_FLUSH))
        finally:
            os.close(folder)

    def unmount(self):
        """Unmounts the file system, which frees the loop device."""
        if not self.is_mounted:  # tracked here: the system cannot be asked, as xfs reports nothing on a cut root
            return
        end = time.monotonic() + 30
        # A child process of another trial keeps files open here from its fork until its exec.
        while subprocess.run(["umount", self.root], capture_output=True, check=False).returncode != 0:
            if time.monotonic() > end:
                raise RuntimeError(f"{self.root} stays mounted")
            time.sleep(0.05)
        self.is_mounted = False


def run(*command):
    """Runs a command that must succeed."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{command}: {done.stdout}{done.stderr}")


def file_systems(trial):
    """File systems that can be made, mounted and cut here; if there are none, the reason."""
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        return [], "needs root and loop devices"
    found = [kind for kind in ("ext4", "xfs") if shutil.which(f"mkfs.{kind}")]
    if not found:
        return [], "neither mkfs.ext4 nor mkfs.xfs is installed"
    try:
        LoopDisk(trial, found[0])
    except RuntimeError as error:
        return [], str(error)
    trial.clean()
    return found, None


def cuts(trial):
    """Cuts the power of a file system five times: half at arbitrary times, half right after an acknowledgement."""
    kind = trial.random.choice(trial.shared["file_systems"])
    disk, random, journal = LoopDisk(trial, kind), trial.random, Journal(2)
    data = disk.root / "data"
    for _ in range(5):
        server = Server(trial, data)
        trial.seconds("start", server.start_seconds)
        journal.check(server, is_full=random.random() < 0.3)
        with journal.writing(server, random):
            until_cut(journal, random)
            journal.cut(disk)
            server.kill()
        disk.unmount()
        disk.mount()
        journal.power_is_back()
        trial.add(cuts=1, **{f"cuts_{kind}": 1})
    finish(trial, data, journal)


def until_cut(journal, random):
    """Waits for the moment of a cut."""
    time.sleep(0.005 * 100 ** random.random())
    if random.random() < 0.5:
        acknowledged, end = journal.count("acknowledged"), time.monotonic() + 5
        while journal.count("acknowledged") == acknowledged and time.monotonic() < end:
            time.sleep(0.0002)


def io_errors(trial):
    """Makes system calls fail five times, one or all from some call on; then cuts the power or kills the process."""
    random, journal = trial.random, Journal(2)
    kinds = trial.shared["file_systems"]
    disk = LoopDisk(trial, random.choice(kinds)) if kinds else None
    data, fired = (disk.root if disk else trial.folder) / "data", trial.folder / "fired"
    for number in range(5):
        if number:
            server = Server(trial, data)
            trial.seconds("start", server.start_seconds)
            journal.check(server, is_full=True)
            server.kill()
        fired.unlink(missing_ok=True)
        try:
            server = Server(trial, data, faults(trial, data, fired))
            with journal.writing(server, random):
                until_fired(fired, server, random)
                if disk:
                    journal.cut(disk)
                server.kill()
        except Refused:
            trial.add(refused_starts=1)
            if disk:
                disk.cut()
        trial.add(errors=int(fired.exists()), not_reached=int(not fired.exists()))
        if disk:
            disk.unmount()
            disk.mount()
        journal.power_is_back()
    finish(trial, data, journal)


def faults(trial, data, fired):
    """The environment that makes calls on files below `data` fail (faults.c)."""
    random = trial.random
    call = random.choice(["write", "sync", "sync", "name", "short"])
    number = errno.ENOSPC if call in ("write", "name") and random.random() < 0.4 else errno.EIO
    count = 1_000_000 if random.random() < 0.3 and call != "short" else 1
    variables = {
        "LD_PRELOAD": str(trial.shared["faults"]),
        "FAULT_UNDER": str(data),
        "FAULT_FIRED": str(fired),
        "FAULT_CALL": call,
        "FAULT_AT": str(int(300 ** random.random()) - 1),
        "FAULT_COUNT": str(count),
        "FAULT_ERRNO": str(number),
    }
    trial.note(f"{call} number {variables['FAULT_AT']} and {count - 1} more: {errno.errorcode[number]}")
    return variables


def until_fired(fired, server, random):
    """Waits for the first failing call, and then a little, while answers may still be given."""
    end = time.monotonic() + 3
    while not fired.exists() and server.is_running() and time.monotonic() < end:
        time.sleep(0.005)
    if server.is_running():
        time.sleep(0.005 * 100 ** random.random())


def full_disk(trial):
    """Fills a disk and frees it again four times, below a server that must survive."""
    random, journal = trial.random, Journal(2)
    root = trial.folder / "disk"
    root.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=64m,nr_inodes=8000", "none", root)
    trial.cleanups.append(lambda: run("umount", root))
    server = Server(trial, root / "data")
    for _ in range(4):
        with journal.writing(server, random):
            time.sleep(0.1 + 0.5 * random.random())
            fill(root, random)
            time.sleep(0.1 + 0.5 * random.random())
            if not server.is_running():
                raise Broken(f"a full disk ended the server: {server.log()[-2000:]}")
            with_nothing_free(server, journal)
            empty(root)
        begun = time.monotonic()
        wait_until_ok(server)
        journal.check(server, is_full=True)
        trial.seconds("back_to_work", time.monotonic() - begun)
        trial.add(cycles=1)
    server.stop()
    finish(trial, root / "data", journal)


def fill(root, random):
    """Uses up all bytes, or all inodes."""
    if random.random() < 0.3:
        (root / "fillers").mkdir()
        with contextlib.suppress(OSError):
            for number in range(20_000):
                (root / "fillers" / str(number)).touch()
        return
    with contextlib.suppress(OSError), open(root / "filler", "wb", buffering=0) as filler:
        while True:
            if filler.write(b"\1" * (1 << 20)) < 1 << 20:
                break
    with contextlib.suppress(OSError), open(root / "filler", "ab", buffering=0) as filler:
        while filler.write(b"\1" * 4096):
            pass


def empty(root):
    """Frees everything again."""
    (root / "filler").unlink(missing_ok=True)
    shutil.rmtree(root / "fillers", ignore_errors=True)


def with_nothing_free(server, journal):
    """Checks that reads still work on a full disk."""
    for tenant in journal.tenants:
        with tenant.lock:
            if not tenant.is_untouched():
                tenant.shown(server.client())
    server.client().expect("GET", "/jobs", limit=1)


def wait_until_ok(server):
    """Waits until the server reports healthy storage: it takes ten seconds, and a busy machine may need more."""
    client, end = server.client(), time.monotonic() + 60
    while True:
        status, answer = client.ask("GET", "/readyz")
        if status == 200 and answer["components"]["storage"] == "ok":
            return
        if time.monotonic() > end:
            raise Broken(f"a minute after there was room again: {answer}")
        time.sleep(0.02)


def recovery(trial):
    """Kills a server that holds many rows, and measures each start after that."""
    base, random = trial.shared.get("many_rows"), trial.random
    if not base:
        base = trial.shared["many_rows"] = many_rows(trial)
    for _ in range(5):
        server, client = Server(trial, base), None
        client = server.client()
        upload(client, "more", rows(random, 50))
        search = {"tenant_id": "many", "embeddings": [random.random() for _ in range(384)], "max_chunks": 3}
        if len(client.expect("POST", "/embeddings/search", search)["chunk_ids"]) != 3:
            raise Broken("a search over many rows lacks some")
        server.kill()
        server = Server(trial, base)
        trial.seconds("start", server.start_seconds)
        found = server.client().expect("GET", "/tenant/stats", tenant_id="many")["object_count"]
        if found != trial.options.rows + 50:
            raise Broken(f"{found} rows after a kill, not {trial.options.rows + 50}")
        server.kill()
        trial.add(starts=1)


def many_rows(trial):
    """A data directory with `--rows` rows, made once per run."""
    data, random = trial.shared_folder / "many", Random(7)
    server = Server(trial, data)
    client = server.client()
    client.expect("POST", "/embeddings/create_tenant", tenant_id="many")
    for number, start in enumerate(range(0, trial.options.rows, 20_000)):
        upload(client, f"batch-{number}", rows(random, min(20_000, trial.options.rows - start)))
    upload(client, "more", rows(random, 50))
    wait_for_jobs(client)
    server.stop()
    return data


def rows(random, count):
    """Random rows in numpy's npy format."""
    pool = [random.gauss(0, 1) for _ in range(8192)]
    values = array.array("f")
    for _ in range(count):
        start = random.randrange(len(pool) - 384)
        values.extend(pool[start : start + 384])
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({count}, 384), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values.tobytes()


def upload(client, name, body):
    """Uploads one batch of rows."""
    path = f"/upload/upload_embeddings?tenant_id=many&file_id={name}"
    status, _, answer = client.send("POST", path, body, "application/x-npy")
    if status != 200:
        raise Broken(f"upload of rows: {status} {answer[:500]}")
