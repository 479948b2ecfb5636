"""Row about crash points of the simulated disk: the tests of `tests/crash`, with other seeds in each trial."""
import os
import re
import subprocess
from pathlib import Path

from server import Broken

SEEDS = 4


def test_program(trial):
    """The compiled tests of LODESTONE_CRASH_TESTS, or the reason why there are none."""
    named = os.environ.get("LODESTONE_CRASH_TESTS")
    if named and Path(named).exists():
        return Path(named), None
    return None, "LODESTONE_CRASH_TESTS names no program; cargo test --test crash --no-run builds it"


def crash_points(trial):
    """A cut at every sync of a workload, for some seeds of what a cut leaves."""
    first = trial.random.randrange(1 << 40)
    names = {"LODESTONE_CRASH_SEEDS": str(SEEDS), "LODESTONE_CRASH_FIRST_SEED": str(first)}
    if os.access("/dev/shm", os.W_OK):
        names["TMPDIR"] = "/dev/shm"  # what the simulated disk stands on need not survive anything
    command = [trial.shared["crash_tests"], "--nocapture", "every_sync::a_cut"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | names, check=False)
    said = done.stdout + done.stderr
    trial.add(points=sum(int(points) for points in re.findall(r"(\d+) crash points, 0 violations", said)))
    if done.returncode != 0:
        raise Broken(f"LODESTONE_CRASH_FIRST_SEED={first} LODESTONE_CRASH_SEEDS={SEEDS}: {said[-2000:]}")
