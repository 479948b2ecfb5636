"""The row on machines that are lost, or only frozen, while their data are in a bucket.

The store is moto, with failures on demand (tests/bucket/store.py), or the one that AWS_ENDPOINT_URL_S3 and its credentials
name, with a bucket "backups" (tests/bucket/ceph starts one; CEPH_FOLDER tells its folder to trials that kill its processes).
"""
import http.client
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from oracle import Journal
from server import Broken, Refused, Server

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = Path(os.environ.get("LODESTONE_PYTHON", ROOT / ".venv/bin/python"))
NAMES = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL_S3")
# A process that wakes up looks for a successor every five seconds.
END_SECONDS = 60
# One in so many requests fails; 0: none.
FAILURES = (0, 3, 7)


def problem():
    """The reason why there is no store here, or `None`."""
    if all(name in os.environ for name in NAMES):
        return None
    has_moto = PYTHON.exists() and subprocess.run([PYTHON, "-c", "import moto.moto_server"], capture_output=True, check=False)
    return None if has_moto and has_moto.returncode == 0 else "no moto in .venv; scripts/setup --test gets it"


class Store:
    """A store, and a prefix in it for one trial."""

    def __init__(self, trial):
        self.port = None
        if all(name in os.environ for name in NAMES):
            values = [os.environ[name] for name in NAMES]
        else:
            process = subprocess.Popen(
                [PYTHON, ROOT / "tests/bucket/store.py"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            trial.cleanups.append(process.kill)
            self.port, key, secret = process.stdout.readline().split()
            values = [key, secret, f"http://127.0.0.1:{self.port}"]
        place = f"s3://backups/campaign/{time.time_ns()}"
        self.variables = dict(zip(NAMES, values, strict=True)) | {"LODESTONE_STORE": place}

    def fail(self, every):
        """Makes every nth request fail; 0 stops that."""
        if self.port:
            connection = http.client.HTTPConnection("127.0.0.1", int(self.port))
            connection.request("POST", f"/failures/{every}")
            connection.getresponse().read()


    def kill(self, random):
        """Kills Ceph's gateway, its disk, or both; they restart by themselves. Returns whether there is a Ceph."""
        if "CEPH_FOLDER" not in os.environ:
            return False
        for name in random.choice((("rgw",), ("osd",), ("rgw", "osd"))):
            os.kill(int((Path(os.environ["CEPH_FOLDER"]) / f"run/{name}.pid").read_text()), signal.SIGKILL)
        return True


class Disks:
    """A sequence of data directories, each of which is lost in the end."""

    def __init__(self, trial):
        self.trial, self.number = trial, 0

    def path(self):
        """The current data directory."""
        return self.trial.folder / f"data-{self.number}"

    def lose(self):
        """Deletes the current data directory and moves on to the next."""
        shutil.rmtree(self.path(), ignore_errors=True)
        self.number += 1


def start(trial, store, disks):
    """Starts the next process. It may rightly refuse once, if the last one renewed its lease shortly before its end."""
    try:
        return Server(trial, disks.path(), store.variables)
    except Refused as refused:
        if "is in use by" not in str(refused):
            raise
    trial.add(refused_starts=1)
    return Server(trial, disks.path(), store.variables)


def lost_machines(trial):
    """Runs ten machines in turn: each is killed with its disk or without, or freezes until its successor serves."""
    store, disks, random, journal = Store(trial), Disks(trial), trial.random, Journal(2)
    for _ in range(10):
        store.fail(0)
        server = start(trial, store, disks)
        trial.seconds("start", server.start_seconds)
        journal.check(server, is_full=random.random() < 0.3)
        store.fail(random.choice(FAILURES))
        end = random.choice((lose, restart, sleep))
        end(trial, store, disks, journal, server)
        trial.add(takeovers=1, **{end.__name__: 1})
    store.fail(0)
    server = start(trial, store, disks)
    journal.check(server, is_full=True)
    server.stop()
    trial.add(acknowledged=journal.count("acknowledged"), unanswered=journal.count("unanswered"))


def lose(trial, _store, disks, journal, server):
    """Loses the machine with its disk."""
    with journal.writing(server, trial.random):
        time.sleep(0.03 * 60 ** trial.random.random())
        server.kill()
    disks.lose()


def restart(trial, _store, _disks, journal, server):
    """Kills the process; the next one starts on its disk."""
    with journal.writing(server, trial.random):
        time.sleep(0.03 * 60 ** trial.random.random())
        server.kill()


def sleep(trial, store, disks, journal, server):
    """Freezes the process until its successor serves; once released it must end, and acknowledge nothing more."""
    asleep = disks.path()
    disks.number += 1
    with journal.writing(server, trial.random):
        time.sleep(0.03 * 60 ** trial.random.random())
        server.process.send_signal(signal.SIGSTOP)
        store.fail(0)
        successor = start(trial, store, disks)
        server.process.send_signal(signal.SIGCONT)
        try:
            status = server.process.wait(END_SECONDS)
        except subprocess.TimeoutExpired as expired:
            raise Broken(f"it goes on beside its successor: {server.log()[-2000:]}") from expired
        if status == 0 or "another process has taken over" not in server.log():
            raise Broken(f"it ended with {status}: {server.log()[-2000:]}")
    journal.check(successor, is_full=True)
    successor.kill()
    shutil.rmtree(asleep, ignore_errors=True)
    disks.lose()
