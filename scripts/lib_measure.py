"""Shared by the measuring scripts: a server over a data directory, requests, quantiles, memory limits."""
import atexit
import contextlib
import http.client
import json
import os
import random
import re
import socket
import subprocess
import time
from pathlib import Path

KEY = "measuring-key-measuring-key-measuring"
ROOT = Path(__file__).resolve().parent.parent


def add_server_options(parser):
    """Adds the options that `Server` needs."""
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    parser.add_argument("--binary", default=os.environ.get("LODESTONE_BINARY", f"{target}/debug/lodestone"))
    parser.add_argument("--model", default=os.environ.get("LODESTONE_MODEL_DIR", ROOT / "models/all-MiniLM-L6-v2"))


def free_ports(count):
    """Ports that are free now, outside the range from which Linux picks ephemeral ports by default."""
    ports = []
    for port in random.sample(range(20_000, 32_000), 1_000):
        with contextlib.suppress(OSError), socket.socket() as free:
            free.bind(("127.0.0.1", port))
            ports.append(port)
        if len(ports) == count:
            return ports
    raise RuntimeError("no free ports")


class Server:
    """One `lodestone serve` over a data directory, on a port that it picks itself unless one is given."""

    def __init__(self, options, data, port=0):
        self.data = data
        self.log = open(data.parent / "log", "ab+")
        start = self.log.seek(0, os.SEEK_END)
        begun = time.monotonic()
        command = [options.binary, "serve", "--data-dir", data, "--listen", f"127.0.0.1:{port}"]
        environment = dict(os.environ, LODESTONE_ADMIN_KEY=KEY, LODESTONE_MODEL_DIR=options.model)
        environment["RUST_LOG"] = getattr(options, "log", "warn")
        self.process = subprocess.Popen(command, stderr=self.log, env=environment)
        atexit.register(self.process.kill)  # in case a measurement fails
        while True:
            self.log.seek(start)
            url = re.search(rb"url +http://([0-9.]+):(\d+)", self.log.read())
            if url:
                break
            if self.process.poll() is not None:
                raise SystemExit(f"the server did not start; see {self.log.name}")
            time.sleep(0.002)
        self.address = (url[1].decode(), int(url[2]))
        connection = self.connect()
        while ask(connection, "GET", "/readyz")[0] != 200:
            time.sleep(0.002)
        self.start_ms = (time.monotonic() - begun) * 1e3

    def connect(self):
        """A keep-alive connection."""
        return http.client.HTTPConnection(*self.address, timeout=600)

    def stop(self):
        """Shuts the server down gracefully."""
        self.process.terminate()
        self.process.wait()

    def memory_mib(self):
        """Resident memory, anonymous and file-backed, in MiB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        kib = dict(re.findall(r"(RssAnon|RssFile):\s+(\d+)", status))
        return {name: int(kib[name]) / 1024 for name in ("RssAnon", "RssFile")}

    def cpu_seconds(self):
        """CPU seconds so far of live threads: those that run the model, and all others."""
        ticks = os.sysconf("SC_CLK_TCK")
        model, other = 0.0, 0.0
        for task in Path(f"/proc/{self.process.pid}/task").iterdir():
            try:
                stat = (task / "stat").read_text()
            except FileNotFoundError:
                continue
            name, rest = stat.split("(", 1)[1].rsplit(")", 1)
            seconds = sum(map(int, rest.split()[11:13])) / ticks
            if name.startswith("embed-"):
                model += seconds
            else:
                other += seconds
        return model, other


class Group:
    """A Linux control group with a memory limit, of cgroup version 1 or 2."""

    def __init__(self, name, limit):
        """Creates a group with a limit such as "512MiB"; needs root."""
        number, unit = re.fullmatch(r"(\d+)(MiB|GiB)", limit).groups()
        limit = int(number) << {"MiB": 20, "GiB": 30}[unit]
        one, two = Path("/sys/fs/cgroup/memory/lodestone-" + name), Path("/sys/fs/cgroup/lodestone-" + name)
        self.is_first = one.parent.is_dir()
        self.folder = one if self.is_first else two
        if self.folder.is_dir():
            self.folder.rmdir()  # left by an earlier run, with its counters
        self.folder.mkdir()
        (self.folder / ("memory.limit_in_bytes" if self.is_first else "memory.max")).write_text(str(limit))

    def take(self, server):
        """Moves a server into the group."""
        (self.folder / "cgroup.procs").write_text(str(server.process.pid))

    def seen(self):
        """Peak memory, how often the limit was hit, and processes killed for it."""
        read = lambda name: (self.folder / name).read_text()
        if self.is_first:
            killed = re.search(r"oom_kill (\d+)", read("memory.oom_control"))
            most, met = int(read("memory.max_usage_in_bytes")), int(read("memory.failcnt"))
        else:
            events = dict(line.split() for line in read("memory.events").splitlines())
            killed, met = re.match(r"(\d+)", events["oom_kill"]), int(events["max"])
            most = int(read("memory.peak"))
        return {"most_mib": most >> 20, "limit_met": met, "killed": int(killed[1]) if killed else 0}


def ask(connection, method, path, body=None):
    """Sends one request; returns status and decoded body."""
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, headers)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def expect(connection, method, path, body=None):
    """Like `ask`, but any status except 200 ends the run; returns the body."""
    status, answer = ask(connection, method, path, body)
    if status != 200:
        raise SystemExit(f"{method} {path}: {status} {answer}")
    return answer


def quantiles(times):
    """Number, median, 95th and 99th percentile and maximum of some milliseconds."""
    ordered = sorted(times)
    at = lambda share: round(ordered[min(len(ordered) - 1, int(share * len(ordered)))], 2)
    return {"n": len(ordered), "p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": at(1)}


def folder_bytes(folder):
    """Total size of all files below a folder, in bytes."""
    return sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
