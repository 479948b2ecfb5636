"""Virtual environments with the packages that checks need."""
import shutil
import subprocess
import venv

from lib_measure import ROOT


def make_environment(place, *packages):
    """Makes an environment at `place` and installs packages; returns the reason if that fails, else `None`.

    uv takes a tenth of pip's CPU time; `scripts/setup --test` installs it.
    """
    python = place / "bin/python"
    own = ROOT / ".venv/bin/uv"
    if uv := own if own.exists() else shutil.which("uv"):
        venv.create(place, clear=True)
        if not subprocess.run([uv, "pip", "install", "--quiet", "--python", python, *packages]).returncode:
            return None
    # uv may lack pip's configuration, such as the address of a registry: fall back to pip.
    try:
        venv.create(place, with_pip=True, clear=True)
    except subprocess.CalledProcessError:
        return "venv cannot install pip"
    pip = [python, "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check", *packages]
    return "pip cannot install its packages" if subprocess.run(pip).returncode else None
