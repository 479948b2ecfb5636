#!/usr/bin/env python3
"""An S3 store for tests: moto, which verifies signatures, with failures on demand.

Prints its port and a key. POST /failures/N makes every Nth request fail, alternately before and after it was
executed, with N = 1 all of them, before; 0 stops that. POST /conditions/ignored makes the store ignore write
conditions, /conditions/racy check them first and write later, /conditions/kept ends both. GET /keys/N returns
temporary keys of a role to callers with the token "role-token", like a container's credentials service; they expire
after N seconds. GET /given counts these keys, POST /expire expires all. GET /requests counts the requests received,
GET /uploads the unfinished multipart uploads.
"""
import hashlib
import io
import itertools
import json
import math
import threading
import time

import moto.core.authorization as authorization
from moto import settings
from moto.iam.models import iam_backends
from moto.moto_server.werkzeug_app import create_backend_app
from moto.s3.models import s3_backends
from moto.sts.models import sts_backends
from werkzeug.serving import WSGIRequestHandler, make_server

ACCOUNT, BUCKET = "123456789012", "backups"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/tests"


class Faulty:
    """Forwards requests to moto and makes some of them fail."""

    def __init__(self, store):
        self.store, self.every, self.lock = store, 0, threading.Lock()
        self.requests, self.failed = itertools.count(1), itertools.count()
        self.seen = 0
        self.conditions = "kept"
        self.ends = {}

    def __call__(self, environ, start):
        path = environ["PATH_INFO"]
        if path.startswith("/failures/"):
            self.every = int(path.rsplit("/", 1)[1])
            return self.answer(start, b"")
        if path.startswith("/conditions/"):
            self.conditions = path.rsplit("/", 1)[1]
            return self.answer(start, b"")
        if path.startswith("/keys/"):
            if environ.get("HTTP_AUTHORIZATION") != "role-token":
                return self.answer(start, b"", "401 Unauthorized")
            return self.answer(start, self.keys(int(path.rsplit("/", 1)[1])))
        if path == "/expire":
            with self.lock:
                self.ends = dict.fromkeys(self.ends, 0)
            return self.answer(start, b"")
        if path == "/given":
            return self.answer(start, str(len(self.ends)).encode())
        signer = environ.get("HTTP_AUTHORIZATION", "").partition("Credential=")[2].partition("/")[0]
        if time.time() > self.ends.get(signer, math.inf):
            return self.answer(start, b"<Error><Code>ExpiredToken</Code></Error>", "400 Bad Request")
        if path == "/requests":
            return self.answer(start, str(self.seen).encode())
        if path == "/uploads":
            uploads = s3_backends[ACCOUNT]["aws"].buckets[BUCKET].multiparts
            return self.answer(start, str(len(uploads)).encode())
        writes_over = "HTTP_IF_NONE_MATCH" in environ and self.conditions != "kept"
        if writes_over:
            objects, key = self.objects(path)
            if self.conditions == "racy" and key in objects:
                return self.answer(start, b"<Error><Code>PreconditionFailed</Code></Error>", "412 Precondition Failed")
            time.sleep(0.02)
        # One at a time: moto's counters are not thread-safe.
        with self.lock:
            self.seen += 1
            body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
            if hashlib.sha256(body).hexdigest() != environ.get("HTTP_X_AMZ_CONTENT_SHA256"):
                return self.answer(start, b"<Error><Code>XAmzContentSHA256Mismatch</Code></Error>", "400 Bad Request")
            environ["wsgi.input"] = io.BytesIO(body)
            if self.every and next(self.requests) % self.every == 0:
                if next(self.failed) % 2 and self.every > 1:
                    # Executed, but the client is not told.
                    list(self.store(environ, lambda *head: None))
                return self.answer(start, b"<Error><Code>SlowDown</Code></Error>", "503 Slow Down")
            if writes_over and key in objects:
                # Under the same lock as the write: nobody may see the name missing in between.
                objects.pop(key)
            return self.store(environ, start)

    def keys(self, seconds):
        with self.lock:
            role = sts_backends[ACCOUNT]["aws"].assume_role("us-east-1", "tests", ROLE, "", seconds, "")
            # Whole seconds, as the real services return them.
            until = int(time.time()) + seconds
            self.ends[role.access_key_id] = until
        keys = {"AccessKeyId": role.access_key_id, "SecretAccessKey": role.secret_access_key, "Token": role.session_token}
        return json.dumps(keys | {"Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(until))}).encode()

    def objects(self, path):
        _, bucket, key = path.split("/", 2)
        return s3_backends[ACCOUNT]["aws"].buckets[bucket].keys, key

    def answer(self, start, body, status="200 OK"):
        start(status, [("content-length", str(len(body)))])
        return [body]


class Quiet(WSGIRequestHandler):
    def log_request(self, *_):
        pass


def main():
    iam = iam_backends[ACCOUNT]["aws"]
    iam.create_user("us-east-1", "tests")
    key = iam.create_access_key("tests")
    everything = '{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]}'
    iam.put_user_policy("tests", "everything", everything)
    iam.create_role("tests", "{}", "/", None, "", [], 3600)
    iam.put_role_policy("tests", "everything", everything)
    s3_backends[ACCOUNT]["aws"].create_bucket(BUCKET, "us-east-1")
    settings.INITIAL_NO_AUTH_ACTION_COUNT = 0
    authorization.ActionAuthenticatorMixin.request_count = 0
    store = Faulty(create_backend_app("s3"))
    server = make_server("127.0.0.1", 0, store, threaded=True, request_handler=Quiet)
    print(server.server_port, key.access_key_id, key.secret_access_key, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
