"""The state a server must have: a journal of acknowledged writes, kept outside it, to compare with its answers.

Each version of a document contains a unique word, so any answer tells which versions it shows. A write without an
answer may or may not have happened: whichever the server shows after its next start is right.
"""
import threading
import time
from contextlib import contextmanager
from random import Random

from server import Broken, Gone, wait_for_jobs

LETTERS = "bcdfghjklmnpqrtv"  # no vowels: no stemmer changes the words, and no other text contains them
EVERY = "everydoc"
DOCUMENTS = 8
WAITING_MAX = 6


def word(tenant, document, version):
    """The unique word of one version."""
    number = tenant << 28 | document << 20 | version
    return "x" + "".join(LETTERS[number >> shift & 15] for shift in range(28, -4, -4)) + "x"


def owner(text):
    """Tenant, document and version of each such word in a text."""
    found = set()
    for part in text.replace(".", " ").split():
        if len(part) == 10 and part[0] == part[-1] == "x" and all(c in LETTERS for c in part[1:-1]):
            number = 0
            for letter in part[1:-1]:
                number = number << 4 | LETTERS.index(letter)
            found.add((number >> 28, number >> 20 & 255, number & 0xFFFFF))
    return found


def ask(client, method, path, body=None, **query):
    """Status and answer. A server that reports that it cannot reach its bucket at the moment is asked again."""
    end = time.monotonic() + 30
    while True:
        status, answer = client.ask(method, path, body, **query)
        if status != 503 or answer.get("reason") != "node_behind" or time.monotonic() > end:
            return status, answer
        time.sleep(0.1)


class Document:
    """The journal of one document. A state is a version, or `None` for a deleted document."""

    def __init__(self):
        self.acknowledged, self.later, self.visible, self.dead = None, [], set(), set()
        self.versions, self.is_settled = 0, True

    def possible(self):
        """The states in which it may end up."""
        return [self.acknowledged, *self.later]

    def note(self, state, is_acknowledged):
        """Records a write that was sent."""
        self.visible |= {state} - {None}
        if not is_acknowledged:
            self.later.append(state)
        elif state is None:
            self.settle(None)
        else:
            self.acknowledged, self.later, self.is_settled = state, [], False

    def settle(self, state):
        """Records that the document is in this state, and every other state gone for good."""
        self.dead |= self.visible - {state}
        self.visible, self.acknowledged, self.later, self.is_settled = {state} - {None}, state, [], True


class Tenant:
    """A tenant of documents: sends random writes and compares answers with their journal."""

    def __init__(self, number):
        self.number, self.name = number, f"tenant-{number}"
        self.documents = [Document() for _ in range(DOCUMENTS)]
        self.acknowledged = self.unanswered = self.refused = 0
        # Held from before a write is sent until it is recorded: another thread may compare meanwhile.
        self.lock = threading.Lock()
        # An answer given while the power is cut may rest on a sync that the cut interrupted: then the file system
        # is at fault, and the answer is not an acknowledgement.
        self.is_cut = False

    def content(self, at, version):
        """The text of a version: usually one chunk, sometimes several."""
        sentence = f"The stone {EVERY} {word(self.number, at, version)} lies in hall {version % 9}. "
        return sentence * (60 if version % 4 == 3 else 3)

    def write(self, client, method, path, at, state, body, **query):
        """Sends a write and records its outcome. Returns whether the server answered."""
        with self.lock:
            return self.written(client, method, path, at, state, body, **query)

    def written(self, client, method, path, at, state, body, **query):
        """Does what `write` does, under its lock."""
        try:
            status, answer = client.ask(method, path, body, **query)
        except Gone as gone:
            if gone.was_sent:
                self.unanswered += 1
                self.documents[at].note(state, is_acknowledged=False)
            return False
        if status == 200 and self.is_cut:
            self.unanswered += 1
            self.documents[at].note(state, is_acknowledged=False)
        elif status == 200:
            self.acknowledged += 1
            self.documents[at].note(state, is_acknowledged=True)
        elif status in (429, 503, 507) and answer.get("reason") != "outcome_unknown":
            self.refused += 1
        elif status == 404 and state is None and None in self.documents[at].possible():
            pass  # The tenant was never created.
        elif status >= 500:
            self.unanswered += 1
            self.documents[at].note(state, is_acknowledged=False)
        else:
            raise Broken(f"{method} {path} {query}: {status} {answer}")
        return True

    def upload(self, client, at):
        """Uploads a new version of a document."""
        document = self.documents[at]
        document.versions += 1
        body = {"file_id": f"doc-{at}", "content": self.content(at, document.versions)}
        path = "/upload/upload_text"
        return self.write(client, "POST", path, at, document.versions, body, tenant_id=self.name)

    def delete(self, client, at):
        """Deletes a document."""
        if self.is_untouched():
            return True
        body = {"tenant_id": self.name, "source_ids": [f"doc-{at}"]}
        return self.write(client, "DELETE", "/upload/delete_source", at, None, body)

    def step(self, client, random):
        """Runs one random operation; returns whether the server answered."""
        at = random.randrange(DOCUMENTS)
        waiting = sum(not document.is_settled for document in self.documents)
        choice = random.random()
        if choice < 0.6 and waiting < WAITING_MAX:
            return self.upload(client, at)
        if choice < 0.8:
            return self.delete(client, at)
        try:
            self.shown(client)
        except Gone:
            return False
        return True

    def is_untouched(self):
        """Whether nothing was ever sent that could have created the tenant."""
        return all(document.versions == 0 for document in self.documents)

    def shown(self, client, path="/search/full-text-search", **more):
        """Versions that a search shows, by document; `None` if the search is refused for now."""
        body = {"tenant_id": self.name, "query": EVERY, "max_chunks": 1001, **more}
        status, answer = ask(client, "POST", path, body)
        if status == 404 and all(None in document.possible() for document in self.documents):
            return {}
        if status == 503 or status == 500 and self.is_cut:
            return None
        if status != 200:
            raise Broken(f"{path} of {self.name}: {status} {answer}")
        chunks, shown, ids = answer if isinstance(answer, list) else answer["chunks"], {}, set()
        for chunk in chunks:
            if chunk["chunk_uuid"] in ids:
                raise Broken(f"{self.name} shows twice: {chunk}")
            ids.add(chunk["chunk_uuid"])
            owners = owner(chunk["chunk_content"])
            for tenant, at, version in owners:
                if tenant != self.number or chunk["source_id"] != f"doc-{at}":
                    raise Broken(f"{self.name} shows what is not its own: {chunk}")
                shown.setdefault(at, set()).add(version)
            if not owners:
                raise Broken(f"{self.name} shows a chunk without a word: {chunk}")
        for at, versions in shown.items():
            document = self.documents[at]
            if len(versions) > 1 or not versions <= document.visible:
                raise Broken(f"{self.name} doc-{at} shows {versions}, may show {document.visible}: {vars(document)}")
        return shown

    def check_running(self, client):
        """Checks what must hold at any time, with jobs still pending."""
        if self.is_untouched():
            return
        shown = self.shown(client)
        for at, document in enumerate(self.documents):
            if shown is not None and document.is_settled and None not in document.possible() and at not in shown:
                raise Broken(f"{self.name} doc-{at} is lost: {vars(document)}")

    def check_settled(self, client):
        """Compares everything once all jobs have ended; every way of asking must agree."""
        if self.is_untouched():
            return
        listed = self.listed(client)
        by_words, by_vectors = self.shown(client), self.shown(client, "/search/retrieve", alpha=1.0)
        if by_words is None or by_vectors is None:
            raise Broken(f"{self.name}: searches are refused although nothing waits")
        for at, document in enumerate(self.documents):
            states = {next(iter(seen.get(at, {None}))) for seen in (by_words, by_vectors)}
            if len(states) != 1 or (f"doc-{at}" in listed) != (states != {None}):
                raise Broken(f"{self.name} doc-{at}: {states}, listed {listed.get(f'doc-{at}')}: {vars(document)}")
            state = states.pop()
            if state not in document.possible():
                raise Broken(f"{self.name} doc-{at} is {state}, must be one of {document.possible()}: {vars(document)}")
            if state is not None:
                body = {"tenant_id": self.name, "file_id": f"doc-{at}"}
                status, answer = ask(client, "POST", "/fetch/fetch_content", body)
                original = answer.get("file_content") if status == 200 else f"{status} {answer}"
                if original != self.content(at, state):
                    raise Broken(f"{self.name} doc-{at}: the original is not that of version {state}: {original[:200]}")
            document.settle(state)

    def listed(self, client):
        """Sources by id. One whose job was interrupted too often is reported as given up; it is then deleted."""
        status, answer = ask(client, "GET", "/list/sources", tenant_id=self.name)
        if status == 404 and all(None in document.possible() for document in self.documents):
            return {}
        if status != 200:
            raise Broken(f"{self.name}: its sources are listed with {status}: {answer}")
        listed = {}
        for source in answer["sources"]:
            if source["id"] in listed:
                raise Broken(f"{self.name} lists twice: {source}")
            if source["status"] == "errored":
                if "the server stopped several times" not in source["error_message"]:
                    raise Broken(f"{self.name}: a job failed: {source}")
                body = {"tenant_id": self.name, "source_ids": [source["id"]]}
                client.expect("DELETE", "/upload/delete_source", body)
                self.documents[int(source["id"][4:])].settle(None)
                continue
            listed[source["id"]] = source
        return listed


class Journal:
    """The tenants of one data directory."""

    def __init__(self, tenants=3):
        self.tenants = [Tenant(number) for number in range(tenants)]

    @contextmanager
    def writing(self, server, random):
        """Writes to all tenants in parallel, while the block breaks the server, until it ends or the server is gone."""
        is_over, failures = threading.Event(), []

        def work(tenant, random):
            client = server.client()
            try:
                while not is_over.is_set() and (tenant.step(client, random) or server.is_running()):
                    pass
            except Exception as error:  # raised again below
                failures.append(error)

        seeds = [Random(random.random()) for _ in self.tenants]
        threads = [threading.Thread(target=work, args=pair) for pair in zip(self.tenants, seeds, strict=True)]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            is_over.set()
            for thread in threads:
                thread.join()
        if failures:
            raise failures[0]

    def check(self, server, is_full):
        """Compares the server's answers with the journal."""
        client = server.client()
        if is_full:
            wait_for_jobs(client)
        for tenant in self.tenants:
            tenant.check_settled(client) if is_full else tenant.check_running(client)

    def cut(self, disk):
        """Cuts the power of a disk; answers from now on do not count as acknowledgements."""
        for tenant in self.tenants:
            tenant.is_cut = True
        disk.cut()

    def power_is_back(self):
        """Answers count as acknowledgements again."""
        for tenant in self.tenants:
            tenant.is_cut = False

    def count(self, name):
        """A counter, summed over the tenants."""
        return sum(getattr(tenant, name) for tenant in self.tenants)
