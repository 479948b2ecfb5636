"""Common parts of the object stores for tests: HTTP requests, with failures on demand.

POST /failures/N makes every Nth request fail, alternately before and after it was executed, with N = 1 all of them,
before; 0 stops that. POST /conditions/ignored makes the store ignore write conditions, /conditions/racy check them
first and write later, /conditions/kept ends both. GET /requests counts the requests received, GET /uploads the
unfinished multipart uploads, if the store has such.
"""
import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, urlsplit


class Peer(BaseHTTPRequestHandler):
    """Passes requests to the store's `answer(request) -> (status, headers, body)`."""
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    store = None

    def handle_one(self):
        parts = urlsplit(self.path)
        self.raw_path, self.query = parts.path, dict(parse_qsl(parts.query, keep_blank_values=True))
        self.raw_query = parts.query
        self.body = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, headers, body = self.told() or self.tried()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if "content-length" not in {name.lower() for name in headers}:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = handle_one

    def told(self):
        store, (what, _, value) = self.store, self.raw_path[1:].partition("/")
        if what == "failures":
            store.every = int(value)
        elif what == "conditions":
            store.conditions = value
        elif what == "requests":
            return 200, {}, str(store.seen).encode()
        elif what == "uploads":
            return 200, {}, str(store.unfinished()).encode()
        else:
            return store.other(self, what, value)
        return 200, {}, b""

    def tried(self):
        store = self.store
        with store.lock:
            store.seen += 1
            fails = bool(store.every) and next(store.requests) % store.every == 0
            is_done = fails and store.every > 1 and next(store.failed) % 2 == 1
        if not fails:
            return store.answer(self)
        if is_done:
            # Executed, but the client is not told.
            store.answer(self)
        return store.failure

    def log_message(self, *_):
        pass


class Listener(ThreadingHTTPServer):
    # Many clients connect at the same moment.
    request_queue_size, daemon_threads = 128, True


class Store:
    """The state of a store; subclasses answer the requests."""
    failure = 503, {}, b"<Error><Code>SlowDown</Code></Error>"

    def __init__(self):
        self.lock = threading.RLock()
        self.every, self.seen, self.conditions = 0, 0, "kept"
        self.requests, self.failed = itertools.count(1), itertools.count()

    def unfinished(self):
        return 0

    def other(self, request, what, value):
        """The answer to a further control request, or None."""

    def serve(self, *words):
        server = Listener(("127.0.0.1", 0), type("Own", (Peer,), {"store": self}))
        print(server.server_port, *words, flush=True)
        server.serve_forever()
