#!/usr/bin/env python3
"""A store for tests with the interface of Azure Blob Storage: Microsoft's Azurite, behind failures on demand.

Azurite verifies every signature; tests/bucket/azurite installs it. Prints the port, the account and its key. In addition
to the requests of `peer`: POST /pages/N makes a page of a listing hold N keys, GET /sas returns a shared access signature
for the whole account. Ignored conditions and small pages alter what was signed, so these requests are signed anew.
"""
import base64
import hashlib
import hmac
import http.client
import os
import subprocess
import sys
import tempfile
import time
from email.utils import formatdate
from pathlib import Path
from urllib.parse import urlencode

from peer import Store

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(os.environ.get("AZURITE") or ROOT / "target/azurite")
PROGRAM = FOLDER / "node_modules/azurite/dist/src/blob/main.js"
ACCOUNT, BUCKET = "devstoreaccount1", "backups"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
VERSION = "2023-11-03"
SIGNED = ("Content-Encoding Content-Language Content-Length Content-MD5 Content-Type Date If-Modified-Since If-Match "
          "If-None-Match If-Unmodified-Since Range").split()


def keyed(text):
    return base64.b64encode(hmac.new(base64.b64decode(KEY), text.encode(), hashlib.sha256).digest()).decode()


def signature(command, path, query, headers, body):
    """The `authorization` header, by Microsoft's description of Shared Key."""
    given = {name.lower(): value for name, value in headers.items()}
    given["content-length"] = str(len(body) or "")
    own = "".join(f"{name}:{given[name]}\n" for name in sorted(given) if name.startswith("x-ms-"))
    asked = "".join(f"\n{name}:{value}" for name, value in sorted(query.items()))
    lines = [command] + [given.get(name.lower(), "") for name in SIGNED]
    return f"SharedKey {ACCOUNT}:" + keyed("\n".join(lines) + f"\n{own}/{ACCOUNT}{path}{asked}")


def shared_access():
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    parts = {"sp": "rwdlac", "ss": "b", "srt": "sco", "st": "", "se": until, "sip": "", "spr": "", "sv": VERSION}
    text = "\n".join([ACCOUNT, *parts.values(), "", ""])
    return urlencode({name: value for name, value in parts.items() if value} | {"sig": keyed(text)})


class Azure(Store):
    failure = 503, {"x-ms-error-code": "ServerBusy"}, b"\xef\xbb\xbf<?xml version='1.0'?><Error><Code>ServerBusy</Code></Error>"

    def __init__(self, port):
        super().__init__()
        self.port, self.page = port, None

    def other(self, request, what, value):
        if what == "sas":
            return 200, {}, shared_access().encode()
        if what == "pages":
            self.page = int(value)
            return 200, {}, b""
        return None

    def answer(self, request):
        headers, target, query = dict(request.headers.items()), request.path, dict(request.query)
        is_signed = request.headers.get("authorization", "").startswith("SharedKey")
        if self.page and query.get("comp") == "list" and is_signed:
            if signature(request.command, request.raw_path, query, headers, b"") == request.headers["authorization"]:
                query["maxresults"] = str(self.page)
                target += f"&maxresults={self.page}"
                self.sign(request, query, headers)
        if self.conditions == "ignored" and "if-none-match" in request.headers:
            headers = {name: value for name, value in headers.items() if name.lower() != "if-none-match"}
            self.sign(request, query, headers)
        return self.send(request.command, target, headers, request.body)

    def sign(self, request, query, headers):
        for name in [name for name in headers if name.lower() == "authorization"]:
            del headers[name]
        headers["authorization"] = signature(request.command, request.raw_path, query, headers, request.body)

    def send(self, command, target, headers, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {name: value for name, value in headers.items() if name.lower() != "connection"}
        connection.request(command, target, body or None, headers)
        reply = connection.getresponse()
        told, text = dict(reply.getheaders()), reply.read()
        connection.close()
        left_out = {"connection", "keep-alive", "transfer-encoding", "date", "server"}
        return reply.status, {name: value for name, value in told.items() if name.lower() not in left_out}, text

    def make_bucket(self):
        path, query = f"/{ACCOUNT}/{BUCKET}", {"restype": "container"}
        headers = {"x-ms-version": VERSION, "x-ms-date": formatdate(usegmt=True), "content-length": "0"}
        headers["authorization"] = signature("PUT", path, query, headers, b"")
        status, _, text = self.send("PUT", f"{path}?{urlencode(query)}", headers, b"")
        assert status == 201, text


def main():
    if not PROGRAM.exists():
        sys.exit(f"no {PROGRAM}: tests/bucket/azurite FOLDER installs it")
    folder = tempfile.TemporaryDirectory()
    arguments = ["--inMemoryPersistence", "--disableTelemetry", "--silent", "--blobPort", "0"]
    # Azurite ends with this process, even if it is killed: its standard input closes.
    watched = "process.stdin.on('end', () => process.exit()).resume()"
    program = ["node", "-e", f"{watched}; process.argv.splice(1, 0, 'azurite'); require({str(PROGRAM)!r})", "--", *arguments]
    azurite = subprocess.Popen(program, cwd=folder.name, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for line in azurite.stdout:
        if "successfully listens on" in line:
            break
    else:
        sys.exit("Azurite does not start")
    store = Azure(int(line.rsplit(":", 1)[1]))
    store.make_bucket()
    store.serve(ACCOUNT, KEY)


if __name__ == "__main__":
    main()
