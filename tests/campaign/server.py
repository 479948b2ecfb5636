"""A server under trial: started, asked, killed; and the errors that tell its end from a broken promise."""
import http.client
import json
import os
import re
import subprocess
import time
from urllib.parse import urlencode

KEY = "operator-key-of-the-campaign-0000000001"
# A start that takes longer is a failed one, on a machine that does other work too.
START_SECONDS = 120


class Broken(Exception):
    """A promise of the server that did not hold."""


class Gone(Exception):
    """No answer. `was_sent`: whether the request may have had its effect."""

    def __init__(self, error, was_sent):
        super().__init__(f"{type(error).__name__}: {error}")
        self.was_sent = was_sent


class Refused(Exception):
    """A start that ended by itself; the message is what the server said."""


class Server:
    """`lodestone serve` over a data directory. `prefix` is put before the command, `extra` into its environment."""

    def __init__(self, trial, data, extra=None, prefix=(), arguments=(), port=0):
        self.log_path = trial.folder / f"log-{trial.next_number()}"
        names = {k: v for k, v in os.environ.items() if not k.startswith("LODESTONE_")}
        names |= {"LODESTONE_ADMIN_KEY": KEY, "LODESTONE_MODEL_DIR": str(trial.model), "RUST_LOG": "info"}
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
            if not url and "waits for the place" in self.log():
                url = (None, "127.0.0.1", port)
            if not url and ended is not None:
                raise Refused(f"exit {ended}: {self.log()[-2000:]}")
            if time.monotonic() - begun > START_SECONDS:
                raise Broken(f"no start within {START_SECONDS} s: {self.log()[-2000:]}")
            time.sleep(0.005)
        self.address = (url[1], int(url[2]))
        self.start_seconds = time.monotonic() - begun

    def log(self):
        """Everything that it has written so far."""
        return self.log_path.read_text(errors="replace")

    def kill(self):
        """Ends it as `kill -9` does."""
        self.process.kill()
        self.process.wait()

    def stop(self):
        """Ends it in order; a status that is not 0 is a broken promise."""
        self.process.terminate()
        if self.process.wait() != 0:
            raise Broken(f"stopping gave {self.process.returncode}: {self.log()[-2000:]}")

    def is_running(self):
        """Whether the process lives."""
        return self.process.poll() is None

    def client(self, key=KEY, is_kept=False):
        """A client with a connection of its own."""
        return Client(self.address, key, is_kept)


class Client:
    """Sends each request over a connection of its own, or all over one that is kept. Never sends a request twice."""

    def __init__(self, address, key, is_kept=False):
        self.connection = http.client.HTTPConnection(*address, timeout=120)
        self.key, self.is_kept = key, is_kept
        # The `Idempotency-Key` of what is sent.
        self.once = None

    def send(self, method, path, body=None, kind="application/json"):
        """Status, headers and bytes of one answer.

        Raises `Gone` where there is no whole one.
        """
        headers = {"authorization": f"Bearer {self.key}", "content-type": kind}
        headers |= {"idempotency-key": self.once} if self.once else {}
        try:
            # A connection that the server closed while it was idle is told before anything is sent.
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
        """Status and decoded body."""
        path = f"{path}?{urlencode(query)}" if query else path
        status, _, text = self.send(method, path, None if body is None else json.dumps(body))
        return status, json.loads(text)

    def expect(self, method, path, body=None, **query):
        """As `ask`; anything but 200 is a broken promise."""
        status, answer = self.ask(method, path, body, **query)
        if status != 200:
            raise Broken(f"{method} {path} {query}: {status} {answer}")
        return answer

    def file(self, path, name, content, **parts):
        """Uploads one file as a form; status and decoded body."""
        mark = "boundary-of-the-campaign"
        head = "".join(
            f'--{mark}\r\ncontent-disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in parts.items()
        )
        head += f'--{mark}\r\ncontent-disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
        body = head.encode() + content + f"\r\n--{mark}--\r\n".encode()
        status, _, text = self.send("POST", path, body, f"multipart/form-data; boundary={mark}")
        return status, json.loads(text)


def wait_for_jobs(client, still_seconds=120):
    """Waits until no job waits or runs; one that does not move for so long is stuck."""
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
    """`lodestone verify` over the directory of a server that does not run."""
    command = [str(trial.binary), "verify", "--data-dir", str(data)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Broken(f"verify: {done.stdout[-2000:]}{done.stderr[-2000:]}")
