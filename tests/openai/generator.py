"""The language model of the checks: calls `weather` for Paris if that tool is offered, and then reports its result.

Speaks OpenAI's streaming interface, and sends the arguments of a call in two pieces.
"""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        results = [message["content"] for message in body["messages"] if message["role"] == "tool"]
        if results:
            deltas, reason = [{"content": f"It is {results[-1]} degrees. "}, {"content": "Level 1 is for visitors [1]."}], "stop"
        elif any(tool["function"]["name"] == "weather" for tool in body.get("tools", [])):
            pieces = [
                {"index": 0, "id": "call-1", "type": "function", "function": {"name": "weather", "arguments": '{"city":'}},
                {"index": 0, "function": {"arguments": ' "Paris"}'}},
            ]
            deltas, reason = [{"tool_calls": [piece]} for piece in pieces], "tool_calls"
        else:
            deltas, reason = [{"content": "Visitors park on level 1 [1]."}], "stop"
        choices = [{"index": 0, "delta": delta} for delta in deltas]
        choices.append({"index": 0, "delta": {}, "finish_reason": reason})
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        for choice in choices:
            self.wfile.write(b"data: %s\n\n" % json.dumps({"choices": [choice]}).encode())
        self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, *_):
        pass


def start():
    """Starts a model on a free port; returns its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"
