"""A free embedding model: loading the real one takes most of a start, and few rows depend on it."""
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    """Answers like OpenAI's `/v1/embeddings`; the vector of a text is the bytes of its hash."""

    protocol_version = "HTTP/1.1"
    wbufsize, disable_nagle_algorithm = 1 << 16, True  # send each answer at once

    def do_POST(self):
        """Returns the vectors of a request's texts."""
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        vectors = [list(hashlib.sha256(text.encode()).digest()) for text in texts]
        data = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        body = json.dumps({"data": data}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Logs no requests."""


class Embedder(ThreadingHTTPServer):
    """An HTTP server whose clients are killed: a broken request is not an error."""

    def handle_error(self, *_):
        """Ignores errors."""


def start():
    """Starts an embedder in this process; returns the environment for servers that use it."""
    server = Embedder(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/v1"
    return {
        "LODESTONE_EMBEDDING_URL": url,
        "LODESTONE_EMBEDDING_MODEL": "hash",
        "LODESTONE_EMBEDDING_DIMENSION": str(hashlib.sha256().digest_size),
    }
