"""Query and ingest nodes beside the process that writes: whatever is told by one holds on all, while they are killed and asleep.

Each history has one document for itself. It uploads a version by any node, waits until any node tells of its success, and
then asks every node: each has to find this version and no earlier one, or to say that it cannot answer. The same after a
deletion was answered. The store is that of the row `bucket`.
"""
import shutil
import signal
import subprocess
import threading
import time
from urllib.parse import urlsplit

import bucket
from lib_measure import free_ports
from link import Link
from oracle import word
from server import Broken, Gone, Server

NODES = 3
INGEST_NODES = 2
HISTORIES = 16
# Some for each node, where they share them.
TENANTS = 4
EVENTS = 5
NODE_KEY = "key-of-the-ingest-nodes-of-the-campaign-1"
# A writer on another disk waits for 15 seconds.
STUCK_SECONDS = 180


class Cluster:
    """A process that writes, query nodes, ingest nodes, and perhaps one that waits for the place of the first."""

    def __init__(self, trial):
        self.trial, self.store = trial, bucket.Store(trial)
        self.has_standby = trial.random.random() < 0.5
        # The last place is that of the process that waits, unless it has taken the other's.
        self.writers = [0, 1 + NODES] if self.has_standby else [0]
        ports = free_ports(2 + NODES + INGEST_NODES)
        self.ports, self.ingest_ports = ports[: 2 + NODES], ports[2 + NODES :]
        # Nodes share tenants, or searches too, or each answers what it is asked.
        kind = trial.random.random()
        self.is_sharing, self.shares_searches = kind < 0.5, kind < 0.25
        self.disks = 0
        endpoint = urlsplit(self.store.variables["AWS_ENDPOINT_URL_S3"])
        self.links = [Link(endpoint.hostname, endpoint.port) for _ in self.ports]
        trial.cleanups.extend(link.close for link in self.links)
        self.ingest_nodes = [self.start_ingest(port) for port in self.ingest_ports]
        self.folders = [self.fresh() for _ in self.ports]
        self.servers = [self.start(0)]
        self.servers += [self.start(number) for number in range(1, NODES + len(self.writers))]

    def fresh(self):
        """An empty data directory."""
        self.disks += 1
        return self.trial.folder / f"data-{self.disks}"

    def start(self, number):
        """A process: number 0 writes, and so may the last one."""
        nodes = ",".join(f"http://127.0.0.1:{port}" for port in self.ingest_ports)
        own = {"LODESTONE_WITH_QUERY_NODES": "true", "LODESTONE_INGEST_NODES": nodes, "LODESTONE_NODE_KEY": NODE_KEY}
        own |= {"LODESTONE_STANDBY": str(self.has_standby).lower()}
        if number not in self.writers:
            writers = ",".join(f"http://127.0.0.1:{self.ports[number]}" for number in self.writers)
            own = {"LODESTONE_ROLE": "query", "LODESTONE_WRITER_URL": writers}
            if self.is_sharing:
                # The last one is a gateway: it has no tenants.
                own["LODESTONE_QUERY_NODES"] = ",".join(f"http://127.0.0.1:{port}" for port in self.ports[1:NODES])
            if self.shares_searches:
                own |= {"LODESTONE_SHARED_SEARCH_ROWS": "1", "LODESTONE_NODE_KEY": NODE_KEY}
        own |= {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self.links[number].port}"}
        server = Server(self.trial, self.folders[number], self.store.variables | own, port=self.ports[number])
        self.trial.seconds("start", server.start_seconds)
        return server

    def start_ingest(self, port):
        """An ingest node."""
        own = {"LODESTONE_ROLE": "ingest", "LODESTONE_NODE_KEY": NODE_KEY}
        return Server(self.trial, "/nonexistent/data", own, port=port)

    def restart_ingest(self, number):
        """Kills an ingest node, and starts it again under its address."""
        self.ingest_nodes[number].kill()
        time.sleep(self.trial.random.random() * 3)
        self.ingest_nodes[number] = self.start_ingest(self.ingest_ports[number])

    def restart(self, number, loses_disk):
        """Kills a process, and starts it again, on another disk where its own is lost."""
        self.servers[number].kill()
        if loses_disk:
            shutil.rmtree(self.folders[number], ignore_errors=True)
            self.folders[number] = self.fresh()
        # It stands still for a moment: searches go on without it.
        time.sleep(self.trial.random.random() * 3)
        self.store.fail(0)
        self.servers[number] = self.start(number)

    def pause(self, server):
        """Has a process stand still for longer than it may answer from what it knows."""
        process = server.process
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.trial.random.uniform(0.5, 6))
        process.send_signal(signal.SIGCONT)

    def cut(self, number):
        """Cuts a process off from the store for a moment."""
        self.links[number].cut()
        time.sleep(self.trial.random.uniform(0.5, 6))
        self.links[number].heal()

    def succeed(self):
        """Has the process that writes stand still, or cut off, until another one takes its place; it ends when that is over."""
        number = next((number for number in self.writers if self.writes(number)), None)
        if number is None:
            return
        process, is_cut = self.servers[number].process, self.trial.random.random() < 0.5
        if is_cut:
            self.links[number].cut()
        else:
            process.send_signal(signal.SIGSTOP)
        time.sleep(self.trial.random.uniform(18, 25))
        if is_cut:
            self.links[number].heal()
        else:
            process.send_signal(signal.SIGCONT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            # The store failed, and nobody knew whether it was gone.
            return
        self.store.fail(0)
        self.servers[number] = self.start(number)
        self.trial.add(succeeded=1)

    def writes(self, number):
        """Whether a process writes now, as it says."""
        try:
            return "writer" in self.servers[number].client().ask("GET", "/healthz")[1]
        except Gone:
            return False

    def embedded(self):
        """Passages that the ingest nodes which run now have embedded."""
        count = 0
        for node in self.ingest_nodes:
            text = node.client(NODE_KEY).send("GET", "/metrics")[2].decode()
            count += int(text.split("\nlodestone_node_passages_total ")[1].split()[0])
        return count

    def event(self):
        """Something that happens to a cluster."""
        random = self.trial.random
        self.store.fail(random.choice(bucket.FAILURES))
        kinds = ("node", "node", "pause", "pause", "cut", "writer", "ingest")
        kind = random.choice((*kinds, "writer", "succeed", "succeed") if self.has_standby else kinds)
        number = random.choice(self.writers) if kind == "writer" else random.randint(1, NODES)
        if kind == "succeed":
            self.succeed()
        elif kind == "cut":
            self.cut(random.randrange(len(self.servers)))
        elif kind == "pause":
            # The one that writes may stand still too, for less long than others wait for it.
            self.pause(random.choice((*self.servers, self.servers[number], *self.ingest_nodes)))
        elif kind == "ingest":
            self.restart_ingest(random.randrange(INGEST_NODES))
        else:
            self.restart(number, loses_disk=random.random() < 0.5)
        self.trial.add(**{kind: 1})
        time.sleep(random.random() * 4)


class History(threading.Thread):
    """The life of one document."""

    def __init__(self, cluster, number, random):
        super().__init__()
        self.cluster, self.number, self.random = cluster, number, random
        self.name_of_document, self.version = f"doc-{number}", 0
        self.tenant = f"histories-{number % TENANTS}"
        self.is_over, self.problem = threading.Event(), None
        self.checks = self.unanswered = 0

    def run(self):
        """Versions and deletions, until it is over."""
        try:
            while not self.is_over.is_set():
                self.replace()
                if self.random.random() < 0.3:
                    self.delete()
        except Broken as broken:
            self.problem = str(broken)

    def any(self, method, path, body=None, **query):
        """Asks any process until one answers with 200; what was not answered is sent again."""
        since, last = time.monotonic(), None
        while time.monotonic() - since < STUCK_SECONDS:
            try:
                server = self.random.choice(self.cluster.servers)
                status, answer = server.client().ask(method, path, body, **query)
            except Gone as gone:
                last = gone
            else:
                if status == 200:
                    return answer
                if status < 500 and status != 429:
                    raise Broken(f"{method} {path} {query}: {status} {answer}")
                last = status, answer
            time.sleep(0.05)
        raise Broken(f"{method} {path} {query}: nobody does it for {STUCK_SECONDS} s: {last}")

    def replace(self):
        """A new version, told to be there."""
        self.version += 1
        content = f"The stone {word(self.number, 0, self.version)} lies in the hall."
        body = {"file_id": self.name_of_document, "content": content}
        self.any("POST", "/upload/upload_text", body, tenant_id=self.tenant)
        status = None
        while status != "success":
            path = "/upload/verify_processing"
            status = self.any("POST", path, tenant_id=self.tenant, file_id=self.name_of_document, wait=5)["status"]
            if status == "errored":
                raise Broken(f"{self.name_of_document} is errored")
        self.check(self.version)

    def delete(self):
        """The end of the document, told to be gone."""
        self.any("DELETE", "/delete_source", {"source_ids": [self.name_of_document]}, tenant_id=self.tenant)
        self.check(None)

    def check(self, expected):
        """Asks every process for this version and the one before."""
        for number, server in enumerate(list(self.cluster.servers)):
            for version in range(max(1, self.version - 1), self.version + 1):
                body = {"tenant_id": self.tenant, "query": word(self.number, 0, version)}
                try:
                    status, found = server.client().ask("POST", "/search/full-text-search", body)
                except Gone:
                    self.unanswered += 1
                    continue
                if status >= 500:
                    self.unanswered += 1
                    continue
                self.checks += 1
                if status != 200 or bool(found) != (version == expected):
                    what = f"version {version} of {self.name_of_document}, {expected} is told"
                    raise Broken(f"process {number}: {what}: {status} {found}: {server.log()[-1000:]}")


def told_everywhere(trial):
    """Histories beside kills, lost disks, sleeps and failures of the store."""
    cluster = Cluster(trial)
    histories = [History(cluster, number, trial.random) for number in range(1, HISTORIES + 1)]
    for history in histories:
        history.start()
    try:
        for _ in range(EVENTS):
            cluster.event()
            if any(not history.is_alive() for history in histories):
                break
        cluster.store.fail(0)
    finally:
        for history in histories:
            history.is_over.set()
        for history in histories:
            history.join()
    trial.add(checks=sum(h.checks for h in histories), unanswered=sum(h.unanswered for h in histories))
    problems = [history.problem for history in histories if history.problem]
    if problems:
        raise Broken("\n".join(problems))
    for history in histories:
        history.replace()
    trial.add(checks=0, told=sum(history.version for history in histories), by_ingest_nodes=cluster.embedded(), shared=int(cluster.is_sharing), standby=int(cluster.has_standby), shared_searches=int(cluster.shares_searches))
