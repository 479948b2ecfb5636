"""The rows of the campaign: what each does, what it counts, and the bar for a release."""
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import bucket
import corruption
import documents
import durability
import isolation
import nodes
import simulation
import soak
import ssrf
import upgrade


@dataclass(frozen=True)
class Row:
    """One row of the table. `bar` is the number of `unit`s for a release; `bar_seconds` bounds the p99 of starts.

    The share `with_model` of the trials embeds with the real model, the rest with `embedder`.
    """

    title: str
    run: Callable
    unit: str
    bar: int
    weight: float
    bar_seconds: float | None = None
    with_model: float = 0.1


ROWS = {
    "kills": Row("kill -9 under load", durability.kills, "kills", 2000, 3),
    "cuts": Row("power cuts of a file system", durability.cuts, "cuts", 2000, 3),
    "io_errors": Row("injected I/O errors, then a cut", durability.io_errors, "errors", 2000, 2),
    "simulation": Row("simulated crash points", simulation.crash_points, "points", 1_000_000, 1),
    "mutations": Row("changed files, answers compared", corruption.mutations, "mutations", 10_000, 3),
    "full_disk": Row("disks filled and freed", durability.full_disk, "cycles", 200, 1),
    "canaries": Row("answers searched for canaries of others", isolation.canaries, "responses", 1_000_000, 2),
    "ssrf": Row("addresses that must not be reached", ssrf.addresses, "cases", 400, 1, with_model=1),
    "documents": Row("hostile documents", documents.hostile, "documents", 300, 1),
    "bucket": Row("machines lost or asleep, data in a bucket", bucket.lost_machines, "takeovers", 300, 1),
    "nodes": Row("answers of query nodes after what was told", nodes.told_everywhere, "checks", 5_000, 2),
    "upgrade": Row("a cluster from one release to the next", upgrade.one_by_one, "checks", 5_000, 1, with_model=0),
    "soak": Row("every operation, and nothing grows", soak.life, "minutes", 1440, 1, with_model=1),
    "recovery": Row("starts after a kill", durability.recovery, "starts", 100, 1, bar_seconds=2.0, with_model=1),
}


def prepare(trial, run):
    """Finds out what this machine supports, and marks the rows that it cannot run."""
    shared, rows, folder = trial.shared, run["rows"], trial.shared_folder

    def skip(name, reason):
        if name in rows:
            rows[name]["skipped"] = reason

    shared["file_systems"], problem = durability.file_systems(trial)
    if problem:
        skip("cuts", problem)
    run["file_systems"] = shared["file_systems"]
    shared["faults"] = folder / "faults.so"
    source = Path(__file__).with_name("faults.c")
    compiler = shutil.which("cc")
    if not compiler:
        skip("io_errors", "no C compiler")
    elif "io_errors" in rows:
        subprocess.run([compiler, "-shared", "-fPIC", "-o", shared["faults"], source, "-ldl"], check=True)
    if os.geteuid() != 0 or "LODESTONE_CAMPAIGN_NAMESPACE" not in os.environ:
        skip("full_disk", "needs root and a mount namespace")
    if not ssrf.is_possible():
        skip("ssrf", "needs root, network namespaces and ip")
    if bucket.problem():
        skip("bucket", bucket.problem())
        skip("nodes", bucket.problem())
        skip("upgrade", bucket.problem())
    if not trial.options.before:
        skip("upgrade", "needs --before, the program of another release")
    shared["crash_tests"], problem = simulation.test_program(trial)
    if problem:
        skip("simulation", problem)
