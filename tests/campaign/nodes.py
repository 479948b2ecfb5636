"""A cluster under faults: whatever one node has acknowledged holds on all nodes.

The cluster is a writing process, three query nodes, a gateway in front of them and two ingest nodes; in half of the trials
also a standby of the writer. Processes are killed, with or without losing their disk, and frozen, also for longer than the
lease. Each is cut off from the store; requests to it fail, get no answer, or are executed after the client has given up; the
store itself goes down and comes back. It is the store of the row `bucket`, with a separate link for each process (link.py).

Each history is the life of one document, a sequence of states: its versions, and deletions. It takes a step through any
node, waits until some node acknowledges it, and then asks every node. Meanwhile watchers ask nodes at arbitrary moments.
Every answer has to show a state between the last one acknowledged before the question and the last one begun before the
answer, or be a 503; once the faults are over, every node has to answer.
"""
import http.client
import shutil
import signal
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from random import Random
from urllib.parse import urlsplit

import bucket
from lib_measure import free_ports
from link import Link
from oracle import owner, word
from server import Broken, Gone, Refused, Server

NODES = 3
GATEWAY = 1 + NODES
INGEST_NODES = 2
HISTORIES = 16
# Several for each node, in case they place tenants among themselves.
TENANTS = 4
EVENTS = 8
NODE_KEY = "key-of-the-ingest-nodes-of-the-campaign-1"
# Long enough for a writer on another disk, which waits for 15 seconds.
STUCK_SECONDS = 180
# One in so many requests to the store fails; 0: none.
FAILURES = (0, 6, 20)
# Longer than a standby waits for the writer, and longer than an ingest node may take for a task.
SLEEP_SECONDS = 18, 25
# Why a process may end: another has succeeded it, or the store failed while it was taking over (in the
# words of this release, and of earlier ones).
ENDS = "another process has taken over", "no valid response", "no usable answer"
# The ways to ask for all documents of a tenant.
LOOKS = {
    "/search/full-text-search": {"query": "stone", "max_chunks": 100},
    "/search/retrieve": {"query": "stone", "max_chunks": 100, "alpha": 1.0},
}


class Cluster:
    """All processes, by number: the writer, the query nodes, the gateway, and perhaps a standby."""

    def __init__(self, trial):
        self.trial, self.store = trial, bucket.Store(trial)
        self.has_standby = trial.random.random() < 0.5
        # The last number is the standby's, unless it has taken over.
        self.writers = [0, 1 + GATEWAY] if self.has_standby else [0]
        count = GATEWAY + len(self.writers)
        ports = free_ports(count + INGEST_NODES)
        self.ports, self.ingest_ports = ports[:count], ports[count:]
        # Nodes place tenants among themselves, or also share searches, or each answers what it is asked.
        kind = trial.random.random()
        self.is_sharing, self.shares_searches = kind < 0.5, kind < 0.25
        self.disks, self.reviving = 0, threading.Lock()
        endpoint = urlsplit(self.store.variables["AWS_ENDPOINT_URL_S3"])
        self.links = [Link(endpoint.hostname, endpoint.port, Random(trial.random.random())) for _ in self.ports]
        trial.cleanups.extend(link.close for link in self.links)
        self.ingest_nodes = [self.start_ingest(port) for port in self.ingest_ports]
        self.folders = [self.fresh() for _ in self.ports]
        self.servers = []
        for number in range(count):
            self.servers.append(self.start(number))

    def fresh(self):
        """A new data directory, not yet created."""
        self.disks += 1
        return self.trial.folder / f"data-{self.disks}"

    def start(self, number):
        """Starts a process: number 0 may write, and so may the last one if there is a standby."""
        nodes = ",".join(f"http://127.0.0.1:{port}" for port in self.ingest_ports)
        own = {"LODESTONE_WITH_QUERY_NODES": "true", "LODESTONE_INGEST_NODES": nodes, "LODESTONE_NODE_KEY": NODE_KEY}
        own |= {"LODESTONE_STANDBY": str(self.has_standby).lower()}
        if number not in self.writers:
            writers = ",".join(f"http://127.0.0.1:{self.ports[number]}" for number in self.writers)
            own = {"LODESTONE_ROLE": "query", "LODESTONE_WRITER_URL": writers}
            # The gateway is not in the list: no tenants are placed on it.
            if self.is_sharing or number == GATEWAY:
                own["LODESTONE_QUERY_NODES"] = ",".join(f"http://127.0.0.1:{port}" for port in self.ports[1:GATEWAY])
            if self.shares_searches:
                own |= {"LODESTONE_SHARED_SEARCH_ROWS": "1", "LODESTONE_NODE_KEY": NODE_KEY}
        own |= {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{self.links[number].port}"}
        since = time.monotonic()
        while True:
            try:
                server = Server(self.trial, self.folders[number], self.store.variables | own, port=self.ports[number])
            except Refused as refused:
                # The store did not answer: try again, as a service manager would.
                if ENDS[1] not in str(refused) or time.monotonic() - since > STUCK_SECONDS:
                    raise
                self.trial.add(started_again=1)
            else:
                self.trial.seconds("start", server.start_seconds)
                return server

    def start_ingest(self, port):
        """Starts an ingest node."""
        own = {"LODESTONE_ROLE": "ingest", "LODESTONE_NODE_KEY": NODE_KEY}
        return Server(self.trial, "/nonexistent/data", own, port=port)

    def fail(self, every):
        """Makes one in so many requests to the store fail; 0 stops that."""
        for link in self.links:
            link.every = every

    def revive(self):
        """Restarts processes that have ended for an accepted reason, as a service manager does."""
        for number, server in enumerate(self.servers):
            if server.is_running():
                continue
            if not any(reason in server.log().rsplit("\nlodestone: ", 1)[-1] for reason in ENDS):
                raise Broken(f"process {number} has ended: {server.log()[-2000:]}")
            self.fail(0)
            self.servers[number] = self.start(number)
            self.trial.add(revived=1)

    def writes(self, number):
        """Whether a process reports that it is the writer now."""
        try:
            return "writer" in self.servers[number].client().ask("GET", "/healthz")[1]
        except Gone:
            return False

    def embedded(self):
        """Number of passages that the running ingest nodes have embedded."""
        count = 0
        for node in self.ingest_nodes:
            text = node.client(NODE_KEY).send("GET", "/metrics")[2].decode()
            count += int(text.split("\nlodestone_node_passages_total ")[1].split()[0])
        return count


class Faults:
    """The faults that happen to a cluster."""

    def __init__(self, cluster):
        self.cluster, self.trial, self.random = cluster, cluster.trial, cluster.trial.random

    def event(self):
        """Runs one random fault, and picks how many requests to the store fail from now on."""
        self.cluster.revive()
        self.cluster.fail(self.random.choice(FAILURES))
        kinds = [self.node, self.node, self.gateway, self.pause, self.sleep, self.cut, self.writer, self.ingest, self.store]
        kinds += [self.storm]
        if self.cluster.has_standby:
            kinds += [self.succeed, self.succeed]
        kind = self.random.choice(kinds)
        begun = time.monotonic()
        kind()
        self.trial.add(**{kind.__name__: 1})
        self.trial.note(f"{kind.__name__} for {time.monotonic() - begun:.1f} s")
        time.sleep(self.random.random() * 4)

    def node(self):
        """Kills and restarts a query node."""
        self.restart(self.random.randint(1, NODES))

    def gateway(self):
        """Kills and restarts the gateway."""
        self.restart(GATEWAY)

    def writer(self):
        """Kills and restarts the writer or the standby."""
        self.restart(self.random.choice(self.cluster.writers))

    def restart(self, number):
        """Kills and restarts a process, in half of the cases on a new disk, its own being lost."""
        cluster = self.cluster
        cluster.servers[number].kill()
        if self.random.random() < 0.5:
            shutil.rmtree(cluster.folders[number], ignore_errors=True)
            cluster.folders[number] = cluster.fresh()
        # It stays down for a moment: searches must go on without it.
        time.sleep(self.random.random() * 3)
        cluster.fail(0)
        cluster.servers[number] = cluster.start(number)

    def ingest(self):
        """Kills an ingest node and restarts it under the same address."""
        number = self.random.randrange(INGEST_NODES)
        self.cluster.ingest_nodes[number].kill()
        time.sleep(self.random.random() * 3)
        self.cluster.ingest_nodes[number] = self.cluster.start_ingest(self.cluster.ingest_ports[number])

    def pause(self):
        """Freezes a process for longer than it may answer from what it knows."""
        self.stop((*self.cluster.servers, *self.cluster.ingest_nodes), 0.5, 6)

    def sleep(self):
        """Freezes a process for longer than the lease."""
        cluster = self.cluster
        # Freezing the writer while there is a standby is `succeed`.
        servers = cluster.servers[1 : 1 + GATEWAY] if cluster.has_standby else cluster.servers
        self.stop((*servers, *cluster.ingest_nodes), *SLEEP_SECONDS)

    def stop(self, servers, *seconds):
        """Freezes one of some processes for a time within the given range."""
        process = self.random.choice(servers).process
        process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(*seconds))
        process.send_signal(signal.SIGCONT)

    def cut(self):
        """Cuts a process off from the store."""
        link = self.random.choice(self.cluster.links)
        link.cut()
        time.sleep(self.random.uniform(0.5, 6))
        link.heal()

    def storm(self):
        """Makes the store refuse every request of some processes."""
        links = self.random.sample(self.cluster.links, self.random.randint(1, len(self.cluster.links)))
        for link in links:
            link.is_storm = True
        time.sleep(self.random.uniform(2, 16))
        for link in links:
            link.is_storm = False

    def store(self):
        """Takes the store down, and brings it back with everything that it has acknowledged."""
        links = () if self.cluster.store.kill(self.random) else self.cluster.links
        for link in links:
            link.end()
        time.sleep(self.random.uniform(1, 8))
        for link in links:
            link.begin()
        self.trial.add(store_killed=int(not links))
        self.answers()

    def answers(self):
        """Waits until the store answers."""
        endpoint, since = urlsplit(self.cluster.store.variables["AWS_ENDPOINT_URL_S3"]), time.monotonic()
        while time.monotonic() - since < STUCK_SECONDS:
            try:
                connection = http.client.HTTPConnection(endpoint.hostname, endpoint.port, timeout=5)
                connection.request("GET", "/backups/none")
                if connection.getresponse().status < 500:
                    return
            except (OSError, http.client.HTTPException):
                time.sleep(0.2)
        raise RuntimeError("the store does not come back")

    def succeed(self):
        """Freezes or cuts off the writer until a standby has taken over; once released, it has to end."""
        cluster = self.cluster
        number = next((number for number in cluster.writers if cluster.writes(number)), None)
        if number is None:
            return
        process, is_cut = cluster.servers[number].process, self.random.random() < 0.5
        if is_cut:
            cluster.links[number].cut()
        else:
            process.send_signal(signal.SIGSTOP)
        time.sleep(self.random.uniform(*SLEEP_SECONDS))
        if is_cut:
            cluster.links[number].heal()
        else:
            process.send_signal(signal.SIGCONT)
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            # The store failed, so no standby could tell whether the writer was gone.
            return
        self.trial.add(succeeded=1)
        cluster.revive()


class Worker(threading.Thread):
    """Asks until it is stopped, or an answer is wrong."""

    def __init__(self, cluster, tenant, seed):
        super().__init__()
        self.cluster, self.tenant, self.random = cluster, tenant, Random(seed)
        self.is_over, self.problem = threading.Event(), None
        self.checks = self.unanswered = 0

    def run(self):
        """Runs rounds until it is stopped."""
        try:
            while not self.is_over.is_set():
                self.round()
        except Broken as broken:
            self.problem = str(broken)

    def answer(self, number, path, body):
        """Status and answer of a search by one process; `None` if it cannot answer or is gone."""
        server = self.cluster.servers[number]
        try:
            status, found = server.client().ask("POST", path, {"tenant_id": self.tenant.name, **body})
        except Gone:
            status, found = 503, None
        if status in (429, 503, 504):
            self.unanswered += 1
            return None
        if status not in (200, 404):
            raise Broken(f"process {number}: {path}: {status} {found}: {server.log()[-1000:]}")
        self.checks += 1
        return status, found

    def look(self, number, path):
        """Compares one process's view of the whole tenant with the histories; returns whether it answered."""
        histories = self.tenant.histories
        told = [history.told for history in histories]
        answered = self.answer(number, path, LOOKS[path])
        if answered is None:
            return False
        status, found = answered
        shown = {}
        for chunk in (found if isinstance(found, list) else found["chunks"]) if status == 200 else ():
            for _, at, version in owner(chunk["chunk_content"]):
                shown.setdefault(at, []).append(version)
        for history, low in zip(histories, told, strict=True):
            may, versions = history.states[low:], shown.get(history.number, [None])
            if len(versions) != 1 or versions[0] not in may:
                what = f"{history.name_of_document} is {versions}, may be {may}"
                log = self.cluster.servers[number].log()[-1000:]
                raise Broken(f"process {number}: {path}: {what}: {status} {shown}: {log}")
        return True


class Watcher(Worker):
    """Asks arbitrary processes for all documents of a tenant."""

    def round(self):
        """One question."""
        self.look(self.random.randrange(len(self.cluster.servers)), self.random.choice(list(LOOKS)))
        time.sleep(self.random.random() * 0.2)


class History(Worker):
    """The life of one document.

    `states`: every state begun, in order, `None` for no document; `told`: index of the last acknowledged one.
    """

    def __init__(self, cluster, tenant, number, seed):
        super().__init__(cluster, tenant, seed)
        self.number, self.name_of_document, self.version = number, f"doc-{number}", 0
        self.states, self.told = [None], 0

    def round(self):
        """Writes a new version, and in some rounds deletes it."""
        self.replace()
        if self.random.random() < 0.3:
            self.delete()

    def any(self, method, path, body=None, once=None, **query):
        """Asks any process until one answers with 200; unanswered requests are repeated, with the key `once`."""
        since, last = time.monotonic(), None
        while time.monotonic() - since < STUCK_SECONDS:
            try:
                server = self.random.choice(self.cluster.servers)
                client = server.client()
                client.once = once
                status, answer = client.ask(method, path, body, **query)
            except Gone as gone:
                last = gone
            else:
                if status == 200:
                    return answer
                if status <= 500 and status != 429:
                    raise Broken(f"{method} {path} {query}: {status} {answer}: {server.log()[-1000:]}")
                last = status, answer
            time.sleep(0.05)
        raise Broken(f"{method} {path} {query}: nobody does it for {STUCK_SECONDS} s: {last}")

    def replace(self):
        """Uploads a new version and waits until it is acknowledged as processed."""
        self.version += 1
        self.states.append(self.version)
        content = f"The stone {word(0, self.number, self.version)} lies in the hall."
        body = {"file_id": self.name_of_document, "content": content}
        # Without an idempotency key, a try that lost its answer might take effect after later versions.
        once = f"{self.name_of_document}-{self.version}"
        self.any("POST", "/upload/upload_text", body, once, tenant_id=self.tenant.name)
        status = None
        while status != "success":
            path = "/upload/verify_processing"
            status = self.any("POST", path, tenant_id=self.tenant.name, file_id=self.name_of_document, wait=5)["status"]
            if status == "errored":
                raise Broken(f"{self.name_of_document} is errored")
        self.told = len(self.states) - 1
        self.check()

    def delete(self):
        """Deletes the document and waits for the acknowledgement."""
        self.states.append(None)
        self.any("DELETE", "/delete_source", {"source_ids": [self.name_of_document]}, tenant_id=self.tenant.name)
        self.told = len(self.states) - 1
        self.check()

    def check(self):
        """Asks every process for all documents, and for the words of this version and the previous one."""
        for number in range(len(self.cluster.servers)):
            for path in LOOKS:
                self.look(number, path)
            for version in range(max(1, self.version - 1), self.version + 1):
                answered = self.answer(number, "/search/full-text-search", {"query": word(0, self.number, version)})
                if answered and (answered[0] != 200 or bool(answered[1]) != (version == self.states[-1])):
                    what = f"version {version} of {self.name_of_document}, {self.states[-1]} is told"
                    found = answered[0], answered[0] == 200 and [chunk["chunk_content"] for chunk in answered[1]]
                    raise Broken(f"process {number}: {what}: {found}: {self.cluster.servers[number].log()[-1000:]}")

    def settle(self):
        """Writes one more version, which every process has to show in both ways: the faults are over."""
        self.replace()
        for number in range(len(self.cluster.servers)):
            for path in LOOKS:
                since = time.monotonic()
                while not self.is_standby(number) and not self.look(number, path):
                    with self.cluster.reviving:
                        self.cluster.revive()
                    if time.monotonic() - since > STUCK_SECONDS:
                        log = self.cluster.servers[number].log()[-1000:]
                        raise Broken(f"process {number} gives no answer for {STUCK_SECONDS} s: {log}")
                    time.sleep(0.1)

    def is_standby(self, number):
        """Whether a process is waiting as a standby, and so answers no searches."""
        try:
            return self.cluster.servers[number].client().ask("GET", "/healthz")[1].get("standby", False)
        except Gone:
            return False


class Tenant:
    """A tenant, with histories whose documents are found together."""

    def __init__(self, number):
        self.name, self.histories = f"histories-{number}", []


def workers(cluster, seeds):
    """The histories of some tenants, and a watcher of each tenant."""
    tenants = [Tenant(number) for number in range(TENANTS)]
    for number in range(1, HISTORIES + 1):
        tenant = tenants[number % TENANTS]
        tenant.histories.append(History(cluster, tenant, number, seeds.random()))
    histories = [history for tenant in tenants for history in tenant.histories]
    return histories, [Watcher(cluster, tenant, seeds.random()) for tenant in tenants]


def end(trial, cluster, everyone):
    """Stops the workers; a wrong answer to any of them is a broken promise."""
    cluster.fail(0)
    for worker in everyone:
        worker.is_over.set()
    for worker in everyone:
        worker.join()
    watched = sum(worker.checks for worker in everyone if isinstance(worker, Watcher))
    trial.add(watched=watched, unanswered=sum(worker.unanswered for worker in everyone))
    for link in cluster.links:
        trial.add(**{f"store {kind}": count for kind, count in link.counts.items()})
    problems = [worker.problem for worker in everyone if worker.problem]
    if problems:
        raise Broken("\n".join(problems[:3]))


def settle(histories):
    """Waits until every process shows the newest version of every document."""
    with ThreadPoolExecutor(HISTORIES) as pool:
        list(pool.map(History.settle, histories))


def count(trial, cluster, everyone):
    """Adds up what was compared."""
    histories = [worker for worker in everyone if isinstance(worker, History)]
    trial.add(checks=sum(worker.checks for worker in everyone), told=sum(history.told for history in histories))
    trial.add(by_ingest_nodes=cluster.embedded(), shared=int(cluster.is_sharing), standby=int(cluster.has_standby))
    trial.add(shared_searches=int(cluster.shares_searches))


def told_everywhere(trial):
    """The row: histories and watchers run while faults happen."""
    cluster, seeds = Cluster(trial), Random(trial.random.random())
    histories, watchers = workers(cluster, seeds)
    everyone, faults = [*histories, *watchers], Faults(cluster)
    for worker in everyone:
        worker.start()
    try:
        for _ in range(EVENTS):
            faults.event()
            if any(not worker.is_alive() for worker in everyone):
                break
    finally:
        end(trial, cluster, everyone)
    settle(histories)
    count(trial, cluster, everyone)
