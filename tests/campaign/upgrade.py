"""A cluster that is upgraded from one release to the next, and partly back, in use: with the histories of the row `nodes`.

Every process begins with the binary `--before`. In the order that docs/operations.md gives ("Several processes") each is
stopped, as a service manager would, and started with `--binary` on its disk and address, after the one before is ready.
Then a query node of the old release is started beside the others, and in the end a writing process of the old release:
they must either refuse to start, or give true answers or 503, and do no harm.
"""
import time
from random import Random

import nodes
from server import Broken, Gone, Refused

# Pause between two processes, in which answers of both releases are compared.
BESIDE_SECONDS = 4


class Mixed(nodes.Cluster):
    """A cluster whose processes run two releases."""

    def __init__(self, trial):
        self.later, trial.binary = trial.binary, trial.options.before.resolve()
        super().__init__(trial)

    def upgrade(self):
        """Upgrades one process after the other, in the documented order."""
        self.trial.binary = self.later
        # The standby comes first, so that it can take over from the old writer.
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
        """Waits until a process is ready, or is a standby of another one that is."""
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
        """Starts a process of the old release, on a new disk, in the role of that number; or returns its refusal."""
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
        """Starts a writing process of the old release in place of the new one, and then the new one again."""
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
    """The row: histories and watchers run during an upgrade."""
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
