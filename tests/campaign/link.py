"""The path from one process to its store, which can be cut, refuse everything, and make requests fail or go unanswered."""
import http.client
import socket
import struct
import threading
import time

# The ways in which a request fails.
KINDS = ("refused", "refused after", "silent before", "silent after", "late", "broken before", "broken after")
# Longer than a client waits: 2 s for a request that it can repeat, 10 s for one that it cannot.
SILENCE_SECONDS = 12
REFUSAL = b"HTTP/1.1 503 Slow Down\r\ncontent-length: 36\r\n\r\n<Error><Code>SlowDown</Code></Error>"


class Link:
    """Forwards requests from a port of its own. Requests sent while it is cut arrive once it is healed, as after a partition.

    One in `every` requests fails (0: none), before or after the store has executed it: with a 503, without an answer until
    the client has given up, or with a closed connection. A `late` one is executed after the client has given up.
    """

    def __init__(self, host, port, random):
        self.target, self.random, self.is_open = (host, port), random, threading.Event()
        self.every, self.is_storm, self.is_gone, self.counts = 0, False, False, {}
        self.is_open.set()
        self.near = set()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def cut(self):
        """Lets nothing through."""
        self.is_open.clear()

    def heal(self):
        """Lets everything through again."""
        self.is_open.set()

    def end(self):
        """Resets all connections, and new ones, like a store that is down; requests already sent may have been executed."""
        self.is_gone = True
        for near in list(self.near):
            reset(near)

    def begin(self):
        """Accepts connections again after `end`."""
        self.is_gone = False

    def close(self):
        """Stops listening, for good."""
        self.heal()
        self.listener.close()

    def accept(self):
        """Accepts connections until the link is closed."""
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            if self.is_gone:
                reset(near)
                continue
            threading.Thread(target=self.connect, args=(near,), daemon=True).start()

    def connect(self, near):
        """Handles the requests of one connection."""
        self.near.add(near)
        far, lines = None, near.makefile("rb")
        try:
            while head := read_head(lines):
                kind = self.failure()
                self.is_open.wait()
                far = far or socket.create_connection(self.target, timeout=300)
                if not self.exchange(near, far, lines, head, kind):
                    break
        except (OSError, http.client.HTTPException, ValueError):
            pass
        finally:
            self.near.discard(near)
            for end in (near, far):
                if end:
                    reset(end)

    def failure(self):
        """The way in which the next request fails, or `None`."""
        if self.is_storm:
            kind = "refused"
        elif self.every and self.random.randrange(self.every) == 0:
            kind = self.random.choice(KINDS)
        else:
            return None
        self.counts[kind] = self.counts.get(kind, 0) + 1
        return kind

    def exchange(self, near, far, lines, head, kind):
        """Handles one request and its answer; returns whether the connection continues."""
        method, body = head.split(b" ", 1)[0].decode(), lines.read(content_length(head))
        if kind == "refused":
            near.sendall(REFUSAL)
            return True
        if kind in ("silent before", "broken before"):
            time.sleep(SILENCE_SECONDS if kind == "silent before" else 0)
            return False
        if kind == "late":
            time.sleep(SILENCE_SECONDS)
        far.sendall(head + body)
        response = http.client.HTTPResponse(far, method=method)
        response.begin()
        answer = response.read()
        if kind == "refused after":
            near.sendall(REFUSAL)
            return True
        if kind:
            time.sleep(SILENCE_SECONDS if kind == "silent after" else 0)
            return False
        self.is_open.wait()
        near.sendall(head_of(response, method, answer) + answer)
        return not response.will_close


def read_head(lines):
    """Request line and headers up to the empty line; nothing at the end of a connection."""
    head = b""
    while line := lines.readline():
        head += line
        if line == b"\r\n":
            return head
    return b""


def content_length(head):
    """Length of the body that follows these headers."""
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


def head_of(response, method, body):
    """Status line and headers for an answer that was read, with the length of its body."""
    lines = [f"HTTP/1.1 {response.status} {response.reason}"]
    skipped = ("transfer-encoding", "content-length", "connection")
    lines += [f"{name}: {value}" for name, value in response.getheaders() if name.lower() not in skipped]
    length = response.getheader("content-length") if method == "HEAD" else len(body)
    if response.status != 204 and length is not None:
        lines.append(f"content-length: {length}")
    if response.will_close:
        lines.append("connection: close")
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def reset(end):
    """Resets a connection."""
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        end.shutdown(socket.SHUT_RDWR)
        end.close()
    except OSError:
        end.close()
