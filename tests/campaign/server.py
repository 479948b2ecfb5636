"""A server under test: started, asked, killed; with errors that tell its end from a broken promise."""
import http.client
import json
import os
import re
import subprocess
import time
from urllib.parse import urlencode

# A start that takes longer has failed, even on a busy machine.
START_SECONDS = 120


class Broken(Exception):
    """A promise that the server did not keep."""


class Gone(Exception):
    """There was no answer. `was_sent`: whether the request may have taken effect."""

    def __init__(self, error, was_sent):
        super().__init__(f"{type(error).__name__}: {error}")
        self.was_sent = was_sent


class Refused(Exception):
    """The server ended during its start; the message is its output."""


class Server:
    """`lodestone serve` over a data directory. `prefix` precedes the command, `extra` is added to its environment."""

    def __init__(self, trial, data, extra=None, prefix=(), arguments=(), port=0):
        self.key = trial.key
        self.log_path = trial.folder / f"log-{trial.next_number()}"
        names = {k: v for k, v in os.environ.items() if not k.startswith("LODESTONE_")}
        names |= {"LODESTONE_ADMIN_KEY": self.key, "LODESTONE_MODEL_DIR": str(trial.model), "RUST_LOG": "info"}
        names |= trial.embedder | (extra or {})
        command = [*prefix, str(trial.binary), "serve", "--data-dir", str(data), "--listen", f"127.0.0.1:{port}", *arguments]
        begun = time.monotonic()
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=names)
        trial.servers.append(self)
        url = None
        while not url:
            ended = self.process.poll()
            url = re.search(r"url +http://([0-9.]+):(\d+)\n(?s:.*?)\n\n", self.log())
            if not url and "\n  standby " in self.log():
                url = (None, "127.0.0.1", port)
            if not url and ended is not None:
                raise Refused(f"exit {ended}: {self.log()[-2000:]}")
            if time.monotonic() - begun > START_SECONDS:
                raise Broken(f"no start within {START_SECONDS} s: {self.log()[-2000:]}")
            time.sleep(0.005)
        self.address = (url[1], int(url[2]))
        self.start_seconds = time.monotonic() - begun

    def log(self):
        """All output so far."""
        return self.log_path.read_text(errors="replace")

    def kill(self):
        """Kills the process, as `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Shuts it down gracefully; a status other than 0 is a broken promise."""
        self.process.terminate()
        if self.process.wait() != 0:
            raise Broken(f"stopping gave {self.process.returncode}: {self.log()[-2000:]}")

    def is_running(self):
        """Whether the process is running."""
        return self.process.poll() is None

    def client(self, key=None, is_kept=False):
        """A client with its own connection, by default of the operator."""
        return Client(self.address, key or self.key, is_kept)


class Client:
    """Sends each request over a new connection, or all over a kept one. Never sends a request twice."""

    def __init__(self, address, key, is_kept=False):
        self.connection = http.client.HTTPConnection(*address, timeout=120)
        self.key, self.is_kept = key, is_kept
        # The `Idempotency-Key` of the requests.
        self.once = None

    def send(self, method, path, body=None, kind="application/json"):
        """Status, headers and body of one answer.

        Raises `Gone` if there is no complete answer.
        """
        headers = {"authorization": f"Bearer {self.key}", "content-type": kind}
        headers |= {"idempotency-key": self.once} if self.once else {}
        try:
            # Connect first, to tell a request that was never sent.
            if not self.is_kept or self.connection.sock is None:
                self.connection.close()
                self.connection.connect()
        except OSError as error:
            raise Gone(error, was_sent=False) from error
        try:
            self.connection.request(method, path, body, headers)
            response = self.connection.getresponse()
            return response.status, response.headers, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise Gone(error, was_sent=True) from error

    def ask(self, method, path, body=None, **query):
        """Sends a JSON request; returns status and decoded body."""
        path = f"{path}?{urlencode(query)}" if query else path
        status, _, text = self.send(method, path, None if body is None else json.dumps(body))
        return status, json.loads(text)

    def expect(self, method, path, body=None, **query):
        """Like `ask`; any status but 200 is a broken promise."""
        status, answer = self.ask(method, path, body, **query)
        if status != 200:
            raise Broken(f"{method} {path} {query}: {status} {answer}")
        return answer

    def file(self, path, name, content, **parts):
        """Uploads a file as a form; returns status and decoded body."""
        mark = "boundary-of-the-campaign"
        head = "".join(
            f'--{mark}\r\ncontent-disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in parts.items()
        )
        head += f'--{mark}\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
        status, _, text = self.send("POST", path, body, f"multipart/form-data; boundary={mark}")
        return status, json.loads(text)


def wait_for_jobs(client, still_seconds=120):
    """Waits until no job is queued or running; jobs without progress for so long are stuck."""
    last, since = None, time.monotonic()
    while True:
        answer = client.expect("GET", "/jobs", limit=50)
        counts = answer["counts"]
        if counts["queued"] + counts["in_progress"] == 0:
            return counts
        state = counts, [(job["status"], job["stage"], job["progress"]) for job in answer["jobs"]]
        if state != last:
            last, since = state, time.monotonic()
        if time.monotonic() - since > still_seconds:
            raise Broken(f"jobs are stuck: {state}")
        time.sleep(0.02)


def verify(trial, data):
    """Runs `lodestone verify` over the directory of a server that is not running."""
    command = [str(trial.binary), "verify", "--data-dir", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Broken(f"verify: {done.stdout[-2000:]}{done.stderr[-2000:]}")
