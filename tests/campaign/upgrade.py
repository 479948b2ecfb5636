"""A cluster that goes from one release to the next and back while it is used: the histories and watchers of the row `nodes`.

Every process begins with the program of `--before`. In the order that docs/operations.md gives ("Several processes") each is
stopped as a service manager does, and started with `--binary` on its disk and under its address; each when the one before is
ready. Then a query node of the release before is started beside the others, and in the end a process of that release in the
place of the one that writes: they refuse to start, or answer with what is true or with 503, and harm nothing.
"""
import time
from random import Random

import nodes
from server import Broken, Gone, Refused

# Between two processes: answers of both releases beside each other are compared so long.
BESIDE_SECONDS = 4


class Mixed(nodes.Cluster):
    """A cluster whose processes are of two releases."""

    def __init__(self, trial):
        self.later, trial.binary = trial.binary, trial.options.before.resolve()
        super().__init__(trial)

    def upgrade(self):
        """One process after the other, in the order of the documentation."""
        self.trial.binary = self.later
        # The one that waits first: then it takes the place of the one that writes.
        for number in (*reversed(self.writers), *range(1, 1 + nodes.GATEWAY)):
            begun = time.monotonic()
            self.servers[number].stop()
            self.servers[number] = self.start(number)
            self.until_ready(number)
            kind = "writer" if number in self.writers else "node"
            self.trial.seconds(f"{kind} replaced", time.monotonic() - begun)
            time.sleep(BESIDE_SECONDS)
        for number, port in enumerate(self.ingest_ports):
            self.ingest_nodes[number].stop()
            self.ingest_nodes[number] = self.start_ingest(port)

    def until_ready(self, number):
        """Waits until a process answers, or waits for the place of another one that does."""
        begun = time.monotonic()
        while time.monotonic() - begun < nodes.STUCK_SECONDS:
            for at in (number, *self.writers):
                try:
                    client = self.servers[at].client()
                    if client.ask("GET", "/readyz")[0] == 200:
                        return
                    if not client.ask("GET", "/healthz")[1].get("standby"):
                        break
                except Gone:
                    break
            time.sleep(0.05)
        raise Broken(f"process {number} is not ready: {self.servers[number].log()[-2000:]}")

    def start_before(self, number):
        """A process of the release before on a disk of its own, in the part of that number; or what it says and ends."""
        folder, port = self.folders[number], self.ports[number]
        self.trial.binary, self.folders[number] = self.trial.options.before.resolve(), self.fresh()
        try:
            if number not in self.writers:
                self.ports[number] = nodes.free_ports(1)[0]
            return self.start(number)
        except Refused as refused:
            return str(refused)
        finally:
            self.trial.binary, self.folders[number], self.ports[number] = self.later, folder, port

    def go_back(self, histories):
        """A process of the release before in the place of the one that writes, and the later one again."""
        for number in self.writers:
            if self.servers[number].is_running():
                self.servers[number].stop()
        before = self.start_before(0)
        if isinstance(before, str):
            self.trial.add(writers_refused=1)
            self.trial.note(f"a process that writes of the release before: {before}")
        else:
            self.servers[0] = before
            self.until_ready(0)
            answered = [history.look(0, path) for history in histories for path in nodes.LOOKS]
            self.trial.add(writers_started=1, answers_of_it=sum(answered), refused_by_it=answered.count(False))
            before.stop()
        for number in self.writers:
            self.servers[number] = self.start(number)


def one_by_one(trial):
    """Histories and watchers beside an upgrade."""
    cluster, seeds = Mixed(trial), Random(trial.random.random())
    histories, watchers = nodes.workers(cluster, seeds)
    everyone = [*histories, *watchers]
    for worker in everyone:
        worker.start()
    try:
        time.sleep(BESIDE_SECONDS)
        cluster.upgrade()
        node = cluster.start_before(1)
        if isinstance(node, str):
            trial.note(f"a query node of the release before: {node}")
        else:
            cluster.servers.append(node)
            time.sleep(BESIDE_SECONDS)
        trial.add(nodes_refused=int(isinstance(node, str)))
    finally:
        nodes.end(trial, cluster, everyone)
    nodes.settle(histories)
    cluster.servers[nodes.GATEWAY + len(cluster.writers) :] = []
    cluster.go_back(histories)
    nodes.settle(histories)
    nodes.count(trial, cluster, everyone)
