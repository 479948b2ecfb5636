"""The row on crash points of the simulated disk: `tests/crash_points`, with other seeds in each trial."""
import os
import re
import subprocess
from pathlib import Path

from server import Broken

POINTS = 20_000


def test_program(trial):
    """The test binary that LODESTONE_CRASH_TESTS names, or the reason why there is none."""
    named = os.environ.get("LODESTONE_CRASH_TESTS")
    if named and Path(named).exists():
        return Path(named), None
    build = "cargo test --release -p lodestone-storage --test crash_points --no-run"
    return None, f"LODESTONE_CRASH_TESTS names no program; {build} builds it"


def crash_points(trial):
    """Runs workloads from some seeds, with a crash at every operation."""
    first = trial.random.randrange(1 << 40)
    names = {"LODESTONE_CRASH_POINTS": str(POINTS), "LODESTONE_CRASH_SEED": str(first)}
    names |= {"MIMALLOC_PURGE_DELAY": "-1", "RUST_BACKTRACE": "0"}  # keep freed memory between crash points
    command = [trial.shared["crash_tests"], "--nocapture", "points::every_point"]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | names, check=False)
    said = done.stderr + done.stdout
    for points, states in re.findall(r"(\d+) crash points, (\d+) states, 0 violations", said)[-1:]:
        trial.add(points=int(points), states=int(states))
    if done.returncode != 0:
        raise Broken(f"LODESTONE_CRASH_SEED={first} LODESTONE_CRASH_POINTS={POINTS}: {said[-2000:]}")
