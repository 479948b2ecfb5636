#!/usr/bin/env python3
"""A store for tests with the XML API of Google Cloud Storage, written from its documentation, without code of Google's.

The pages are, of cloud.google.com/storage/docs: authentication/signatures, authentication/canonical-requests,
request-preconditions, multipart-uploads, xml-api/reference-headers, xml-api/reference-status,
xml-api/get-bucket-list. It rejects what they do not allow: a wrong signature or body hash, an unsigned header of
Google's, S3-style conditions on a write, any condition on a multipart upload, parts that are too small.

Prints its port and an HMAC key. In addition to the requests of `peer`: GET of the metadata service's token path
returns a token to callers with its header, valid for the seconds set by POST /tokens/N; POST /expire expires all
tokens, GET /given counts them. POST /pages/N makes a page of a listing hold N keys.
"""
import hashlib
import hmac
import json
import re
import secrets
import time
import xml.etree.ElementTree as xml
from datetime import datetime, timezone
from urllib.parse import quote, unquote
from xml.sax.saxutils import escape

from peer import Store

BUCKET, KEY_ID, SECRET = "backups", "GOOG1EXAMPLEEXAMPLE", secrets.token_urlsafe(30)
PART_BYTES_MIN = 5 << 20
METADATA = "computeMetadata"
TOKEN = "v1/instance/service-accounts/default/token"


def tag(name, *inner):
    return f"<{name}>{''.join(inner)}</{name}>"


def texts(**values):
    """An XML element with text content for each value."""
    return "".join(tag(name, escape(str(value))) for name, value in values.items())


def document(name, *inner):
    text = "<?xml version='1.0' encoding='UTF-8'?>" + tag(name, *inner)
    return text.replace(f"<{name}>", f"<{name} xmlns='http://s3.amazonaws.com/doc/2006-03-01/'>", 1).encode()


def error(status, code):
    return status, {}, document("Error", texts(Code=code, Message="no"))


def digest(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


class Google(Store):
    def __init__(self):
        super().__init__()
        self.objects, self.uploads, self.tokens = {}, {}, {}
        self.generation, self.token_seconds, self.page = time.time_ns() // 1000, 3600, 1000

    def unfinished(self):
        return len(self.uploads)

    def other(self, request, what, value):
        if what == METADATA:
            if request.headers.get("metadata-flavor") != "Google":
                return 403, {}, b"Missing Metadata-Flavor:Google header."
            if value != TOKEN:
                return 404, {}, b""
            token = "ya29." + secrets.token_urlsafe(30)
            self.tokens[token] = time.time() + self.token_seconds
            reply = {"access_token": token, "expires_in": self.token_seconds, "token_type": "Bearer"}
            return 200, {"content-type": "application/json"}, json.dumps(reply).encode()
        if what == "tokens":
            self.token_seconds = int(value)
        elif what == "pages":
            self.page = int(value)
        elif what == "expire":
            self.tokens = dict.fromkeys(self.tokens, 0)
        elif what == "given":
            return 200, {}, str(len(self.tokens)).encode()
        else:
            return None
        return 200, {}, b""

    def refusal(self, request):
        """The error for a request without valid authorization, or None."""
        scheme, _, rest = request.headers.get("authorization", "").partition(" ")
        if scheme == "Bearer":
            is_valid = time.time() < self.tokens.get(rest, 0)
            return None if is_valid else error(401, "AuthenticationRequired")
        if scheme != "GOOG4-HMAC-SHA256":
            return error(401, "AuthenticationRequired")
        fields = dict(part.strip().split("=", 1) for part in rest.split(","))
        key_id, date, region, service, kind = fields["Credential"].split("/")
        signed = fields["SignedHeaders"].split(";")
        if (key_id, service, kind) != (KEY_ID, "storage", "goog4_request"):
            return error(403, "InvalidAccessKeyId")
        names = [name.lower() for name in request.headers]
        unsigned = {name for name in names if name.startswith("x-goog-") or name == "host"} - set(signed)
        if unsigned or signed != sorted(signed):
            return error(400, "UnsignedHeaders")
        at = request.headers["x-goog-date"]
        moment = datetime.strptime(at, "%Y%m%dT%H%M%SZ").replace(tzinfo=timezone.utc)
        if not at.startswith(date) or abs(time.time() - moment.timestamp()) > 900:
            return error(403, "RequestTimeTooSkewed")
        body_hash = request.headers["x-goog-content-sha256"]
        if body_hash != hashlib.sha256(request.body).hexdigest():
            return error(400, "XGoogContentSHA256Mismatch")
        pairs = [f"{quote(name, safe='~')}={quote(value, safe='~')}" for name, value in request.query.items()]
        query = "&".join(sorted(pairs))
        headers = "".join(f"{name}:{request.headers[name].strip()}\n" for name in signed)
        path = quote(unquote(request.raw_path), safe="/~")
        canonical = "\n".join([request.command, path, query, headers, ";".join(signed), body_hash])
        scope = f"{date}/{region}/{service}/{kind}"
        text = "\n".join([scheme, at, scope, hashlib.sha256(canonical.encode()).hexdigest()])
        key = f"GOOG4{SECRET}".encode()
        for part in scope.split("/"):
            key = digest(key, part)
        is_right = hmac.compare_digest(digest(key, text).hex(), fields["Signature"])
        return None if is_right else error(403, "SignatureDoesNotMatch")

    def answer(self, request):
        refusal = self.refusal(request)
        if refusal:
            return refusal
        _, bucket, *rest = unquote(request.raw_path).split("/", 2)
        if bucket != BUCKET:
            return error(404, "NoSuchBucket")
        key = rest[0] if rest else ""
        if not key:
            return self.list(request.query)
        handle = getattr(self, request.command.lower())
        if request.command == "PUT" and self.conditions == "racy" and "uploadId" not in request.query:
            return self.put_late(request, key)
        with self.lock:
            return handle(request, key)

    def list(self, query):
        prefix = query.get("prefix", "")
        with self.lock:
            if "uploads" in query:
                found = [(key, upload) for upload, (key, _) in self.uploads.items() if key.startswith(prefix)]
                rows = [tag("Upload", texts(Key=key, UploadId=upload)) for key, upload in found]
                return 200, {}, document("ListMultipartUploadsResult", *rows)
            if query.get("list-type") != "2":
                return error(400, "InvalidArgument")
            after = query.get("continuation-token", "")
            names = sorted((key for key in self.objects if key.startswith(prefix) and key > after), key=str.encode)
            page = names[:self.page]
            rows = []
            for key in page:
                body, generation = self.objects[key]
                rows.append(tag("Contents", texts(Key=key, Generation=generation, Size=len(body))))
            if len(names) > len(page):
                rows.append(texts(NextContinuationToken=page[-1]))
            return 200, {}, document("ListBucketResult", texts(Name=BUCKET), *rows)

    def is_kept(self, request, key):
        """Whether the condition of a write holds."""
        wanted = request.headers.get("x-goog-if-generation-match")
        there = self.objects.get(key, (None, 0))[1]
        return wanted is None or self.conditions == "ignored" or int(wanted) == there

    def write(self, key, body):
        self.generation += 1
        self.objects[key] = (body, self.generation)
        return 200, {"etag": f'"{hashlib.md5(body).hexdigest()}"', "x-goog-generation": str(self.generation)}, b""

    def put_late(self, request, key):
        with self.lock:
            is_kept = self.is_kept(request, key)
        if not is_kept:
            return error(412, "PreconditionFailed")
        time.sleep(0.02)
        with self.lock:
            return self.write(key, request.body)

    def put(self, request, key):
        if {"if-match", "if-none-match"} & {name.lower() for name in request.headers}:
            return error(400, "InvalidArgument")
        if "uploadId" in request.query:
            upload = self.uploads.get(request.query["uploadId"])
            if "x-goog-if-generation-match" in request.headers:
                return error(400, "InvalidArgument")
            if not upload or upload[0] != key:
                return error(404, "NoSuchUpload")
            upload[1][int(request.query["partNumber"])] = request.body
            return 200, {"etag": f'"{hashlib.md5(request.body).hexdigest()}"'}, b""
        return self.write(key, request.body) if self.is_kept(request, key) else error(412, "PreconditionFailed")

    def post(self, request, key):
        if "x-goog-if-generation-match" in request.headers:
            return error(400, "InvalidArgument")
        if "uploads" in request.query:
            upload = secrets.token_urlsafe(24)
            self.uploads[upload] = (key, {})
            return 200, {}, document("InitiateMultipartUploadResult", texts(Bucket=BUCKET, Key=key, UploadId=upload))
        upload = self.uploads.get(request.query.get("uploadId"))
        if not upload or upload[0] != key:
            return error(404, "NoSuchUpload")
        named = [(int(part.find("PartNumber").text), part.find("ETag").text) for part in xml.fromstring(request.body)]
        parts = upload[1]
        if any(hashlib.md5(parts.get(number, b"")).hexdigest() != tag.strip('"') for number, tag in named):
            return error(400, "InvalidPart")
        if named != sorted(named):
            return error(400, "InvalidPartOrder")
        if any(len(parts[number]) < PART_BYTES_MIN for number, _ in named[:-1]):
            return error(400, "EntityTooSmall")
        self.write(key, b"".join(parts[number] for number, _ in named))
        del self.uploads[request.query["uploadId"]]
        return 200, {}, document("CompleteMultipartUploadResult", texts(Key=key, ETag='"x"'))

    def get(self, request, key):
        if key not in self.objects:
            return error(404, "NoSuchKey")
        body, generation = self.objects[key]
        headers = {"etag": f'"{hashlib.md5(body).hexdigest()}"', "x-goog-generation": str(generation)}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", request.headers.get("range", ""))
        if not wanted or request.command == "HEAD":
            return 200, headers | {"content-length": str(len(body))}, body
        start, end = int(wanted[1]), min(int(wanted[2] or len(body) - 1), len(body) - 1)
        if start >= len(body):
            return error(416, "InvalidRange")
        return 206, headers | {"content-range": f"bytes {start}-{end}/{len(body)}"}, body[start:end + 1]

    head = get

    def delete(self, request, key):
        if "uploadId" in request.query:
            return (204, {}, b"") if self.uploads.pop(request.query["uploadId"], None) else error(404, "NoSuchUpload")
        return (204, {}, b"") if self.objects.pop(key, None) else error(404, "NoSuchKey")


if __name__ == "__main__":
    Google().serve(KEY_ID, SECRET)
