"""The row on growth: every operation runs for minutes, and the server must hold no more at the end than at the start.

A slice of a soak has eight periods of equal length over data of equal size. At the end of each, requests stop, and memory,
open files and disk usage are read; the first two periods are a warm-up. Then follow a kill, a comparison with the journal
and `lodestone verify`.
"""
import os
import shutil
import statistics
import subprocess
import threading
import time
from random import Random

from durability import finish, rows
from oracle import EVERY, Journal
from server import Broken, Server, wait_for_jobs

PERIODS, WARMING = 8, 2
# Rest before each sample: freed memory is returned within seconds, files without a reader are deleted within ten.
REST_SECONDS = 20
# Growth after the warm-up that is tolerated: the random variation of allocators, caches and merges.
MEMORY_SPARE, FILES_SPARE, DISK_SPARE = 24 << 20, 8, 16 << 20


def life(trial):
    """Runs one slice of `--slice` minutes."""
    data, random, journal = trial.folder / "data", trial.random, Journal(2)
    server = Server(trial, data, {"LODESTONE_BACKUP_TO": str(trial.folder / "backups"), "LODESTONE_RATE_LIMIT": "1000000"})
    trial.seconds("start", server.start_seconds)
    begun, samples, others = time.monotonic(), [], Others(trial, server, random)
    for period in range(PERIODS):
        with journal.writing(server, random), others.at_work(period):
            time.sleep(trial.options.slice * 60 / PERIODS)
        wait_for_jobs(server.client())
        journal.check(server, is_full=True)
        time.sleep(REST_SECONDS)
        samples.append(sample(server, data))
        trial.note(f"period {period}: {samples[-1]}")
    trial.add(minutes=int((time.monotonic() - begun) / 60), operations=others.operations, backups=others.backups)
    for when, at in (("warm", WARMING - 1), ("end", -1)):
        memory, files, disk = samples[at].values()
        trial.add(**{f"memory_mib_{when}": memory >> 20, f"files_{when}": files, f"disk_mib_{when}": disk >> 20})
    flat(samples[WARMING - 1 :])
    server.kill()
    finish(trial, data, journal)


def sample(server, data):
    """Anonymous memory in bytes, open files, and bytes of the data directory, catalog included."""
    status = open(f"/proc/{server.process.pid}/status", encoding="ascii").read()
    memory = int(status.split("RssAnon:")[1].split()[0]) << 10
    files = len(os.listdir(f"/proc/{server.process.pid}/fd"))
    disk = sum(found.stat().st_blocks * 512 for found in data.rglob("*") if found.is_file())
    return {"memory": memory, "files": files, "disk": disk}


def flat(samples):
    """Compares the median of the later half with that of the earlier half."""
    half = len(samples) // 2
    for name, spare in (("memory", MEMORY_SPARE), ("files", FILES_SPARE), ("disk", DISK_SPARE)):
        values = [one[name] for one in samples]
        before, after = statistics.median(values[:half]), statistics.median(values[-half:])
        if after > before * 1.1 + spare:
            raise Broken(f"{name} grows: {values}")


class Others:
    """All operations besides the journal's documents: vectors, memories, questions, short-lived tenants, backups."""

    def __init__(self, trial, server, random):
        self.trial, self.server, self.random = trial, server, random
        self.operations = self.backups = 0
        self.lock = threading.Lock()
        client = server.client()
        client.expect("POST", "/embeddings/create_tenant", tenant_id="vectors")

    def at_work(self, period):
        """A context in which all these operations run."""
        return Working([self.vectors, self.memories, self.questions, self.tenants, self.copies], self, period)

    def count(self):
        """Counts an operation."""
        with self.lock:
            self.operations += 1

    def vectors(self, client, random):
        """Uploads a batch of rows under one of four names, which replaces the last one; sometimes deletes it; searches."""
        name = f"batch-{random.randrange(4)}"
        path = f"/upload/upload_embeddings?tenant_id=vectors&file_id={name}"
        status, _, answer = client.send("POST", path, rows(random, 500), "application/x-npy")
        if status != 200:
            raise Broken(f"upload of rows: {status} {answer[:500]}")
        if random.random() < 0.2:
            client.expect("DELETE", "/delete_source", {"source_ids": [name]}, tenant_id="vectors")
        search = {"tenant_id": "vectors", "embeddings": [random.random() for _ in range(384)], "max_chunks": 10}
        client.expect("POST", "/embeddings/search", search)

    def memories(self, client, random):
        """Adds a memory under one of six names, lists all, deletes it."""
        scope = {"tenant_id": "tenant-0", "sub_tenant_id": "remembering"}
        name = f"memory-{random.randrange(6)}"
        body = {"memory_id": name, "user_memory": f"The lamp number {random.randrange(1000)} hangs in the hall."}
        client.expect("POST", "/user_memory/add_user_memory", body, **scope)
        client.expect("GET", "/user_memory/list_user_memories", **scope)
        client.expect("DELETE", "/user_memory/delete_user_memory", memory_id=name, **scope)

    def questions(self, client, random):
        """Searches of each kind over the journal's documents; their times are recorded."""
        begun = time.monotonic()
        path, words = random.choice(
            [("/search/retrieve", "query"), ("/search/full-text-search", "query"), ("/search/qna", "question")]
        )
        status, answer = client.ask("POST", path, {"tenant_id": "tenant-0", words: f"Which stone {EVERY} lies in the hall?"})
        if status not in (200, 404):
            raise Broken(f"{path}: {status} {answer}")
        half = "the warming up" if self.period < WARMING else "the last two periods" if self.period >= PERIODS - 2 else None
        if half:
            self.trial.seconds(f"a search in {half}", time.monotonic() - begun)

    def tenants(self, client, random):
        """Creates a tenant with a document and deletes it."""
        name = f"guest-{random.randrange(10**9)}"
        client.expect("POST", "/upload/upload_text", {"file_id": "one", "content": "A guest. " * 30}, tenant_id=name)
        client.expect("DELETE", "/tenant/delete", tenant_id=name, confirm=name)

    def copies(self, client, _random):
        """Makes, verifies and removes a backup."""
        to = self.trial.folder / "backups"
        address = "http://{}:{}".format(*self.server.address)
        for arguments in (["backup", to, "--server", address], ["backup", "verify", to]):
            command = [self.trial.binary, *map(str, arguments)]
            environment = os.environ | {"LODESTONE_API_KEY": self.server.key}
            done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
            if done.returncode != 0:
                raise Broken(f"{arguments}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        shutil.rmtree(to)
        self.backups += 1
        client.expect("GET", "/jobs", limit=1)
        time.sleep(5)


class Working:
    """Threads that repeat one operation each until the context ends."""

    def __init__(self, operations, others, period):
        self.others, self.is_over, self.failures = others, threading.Event(), []
        others.period = period
        pairs = [(operation, Random(others.random.random())) for operation in operations]
        self.threads = [threading.Thread(target=self.repeat, args=pair) for pair in pairs]

    def repeat(self, operation, random):
        """Repeats one operation."""
        client = self.others.server.client()
        try:
            while not self.is_over.is_set():
                operation(client, random)
                self.others.count()
        except Exception as error:  # raised again in __exit__
            self.failures.append(error)

    def __enter__(self):
        for thread in self.threads:
            thread.start()

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()
        if self.failures:
            raise self.failures[0]
