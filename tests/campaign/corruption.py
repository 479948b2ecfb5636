"""The row on wrong answers: files are changed at rest and below a running server, and every answer is compared.

An answer must be the same as before, say that it is incomplete, or be an error. Damaged data are rebuilt from the
originals, so after a while everything is the same again, except for what only a damaged original contained. Bytes that
change below a running server after it has verified them are found by the scrub: answers are compared after its pass.
Each tenant has one change and is judged by itself; some have none, and must never lack anything.
"""
import json
import os
import shutil
import threading
import time

from oracle import EVERY, word
from server import Broken, Refused, Server, wait_for_jobs

TENANTS, DOCUMENTS = 40, 5
# For trials that change the shared catalog, or whose rebuilt data the real model embeds.
FEW_TENANTS = 8
UNTOUCHED = 0.1
ROUNDING = 0.01
MAKING = threading.Lock()
# The rebuild counts as finished when nothing has changed for this long.
STILL_SECONDS = 1.5


def dataset(trial, tenants):
    """A data directory, the folders of its tenants and the right answers, made once per run."""
    name = f"dataset-{tenants}-{trial.has_model}"
    made = trial.shared.get(name)
    if made:
        return made
    data = trial.shared_folder / name
    server = Server(trial, data)
    client, folders = server.client(is_kept=True), []
    for part in range(2):
        for tenant in range(tenants):
            for at in range(DOCUMENTS):
                if (at + part) % 3:
                    upload(client, tenant, at, part)
            if not part:
                folders += {folder.name for folder in (data / "v1/raw").iterdir()} - set(folders)
        wait_for_jobs(client)
    for tenant in range(tenants):
        body = {"tenant_id": f"tenant-{tenant}", "source_ids": ["doc-0"]}
        client.expect("DELETE", "/upload/delete_source", body)
    answers = {tenant: answers_of(client, tenant) for tenant in range(tenants)}
    if any(status != 200 for found in answers.values() for status, _ in found.values()):
        raise Broken(f"the right answers are not to be had: {answers}")
    _, _, metrics = client.send("GET", "/metrics")
    trial.shared["has_scrub"] = b"lodestone_scrub_passes_total" in metrics
    server.stop()
    trial.shared[name] = data, folders, answers
    return trial.shared[name]


def upload(client, tenant, at, version):
    """Uploads one document of several chunks."""
    own = word(tenant, at, version)
    sentences = (f"The stone {EVERY} {own} of tenant {tenant} lies in hall {at}, lamp {n}." for n in range(4 + 25 * at))
    body = {"file_id": f"doc-{at}", "content": " ".join(sentences), "tenant_metadata": {"hall": at}}
    client.expect("POST", "/upload/upload_text", body, tenant_id=f"tenant-{tenant}")


def answers_of(client, tenant):
    """The answers of a tenant to every kind of request, with their status, without times and request ids."""
    name, found = f"tenant-{tenant}", {}
    search = {"tenant_id": name, "query": EVERY, "max_chunks": 1001}
    ways = {
        "words": ("/search/full-text-search", search),
        "vectors": ("/search/retrieve", search | {"alpha": 1.0}),
        "filtered": ("/search/retrieve", search | {"alpha": 0.0, "metadata": {"hall": 2}}),
        "few": ("/search/retrieve", search | {"query": "lamps in hall 3", "max_chunks": 3, "join_neighbours": False}),
    }
    for way, (path, body) in ways.items():
        status, answer = client.ask("POST", path, body)
        found[way] = status, chunks_of(answer) if status == 200 else answer.get("reason")
    status, answer = client.ask("GET", "/list/sources", tenant_id=name)
    found["list"] = status, sorted((s["id"], s["chunk_count"], s["size_bytes"]) for s in answer.get("sources", ()))
    for at in range(DOCUMENTS):
        status, answer = client.ask("POST", "/fetch/fetch_content", {"tenant_id": name, "file_id": f"doc-{at}"})
        if status != 404 or at:
            found[f"original {at}"] = status, answer.get("file_content")
    return found


def chunks_of(answer):
    """The chunks of an answer with their scores, and whether it says that it is incomplete."""
    listed = answer if isinstance(answer, list) else answer["chunks"]
    chunks = {(c["source_id"], c["chunk_content"], json.dumps(c["tenant_metadata"])): c["vector_score"] for c in listed}
    lacks = [] if isinstance(answer, list) else answer["metadata"]["degraded"]
    return {"chunks": chunks, "degraded": "segments_quarantined" in lacks}


def is_right(way, found, expected):
    """Whether two answers show the same. Recomputed vectors differ in their last digits, which may change the order
    of chunks with similar scores."""
    if way == "few":
        worst = min(expected.values(), key=lambda score: score or 0)
        return len(found) == len(expected) and all((s or 0) > (worst or 0) - ROUNDING for s in found.values())
    near = lambda one, other: one is other or None not in (one, other) and abs(one - other) < ROUNDING
    return found.keys() == expected.keys() and all(near(found[chunk], expected[chunk]) for chunk in found)


def compare(tenant, right, found, may_lack, where):
    """Raises `Broken` if an answer is wrong. Returns whether all answers were complete."""
    is_whole = True
    for way, (_, expected) in right.items():
        status, answer = found[way]
        if status != 200:
            is_whole = False
            if status < 500 and not (way.startswith("original") and status in (404, 409, 410)) and not may_lack:
                raise Broken(f"{where}: tenant {tenant}, {way}: {status} {answer}")
        elif way in ("words", "vectors", "filtered", "few"):
            says_so = answer["degraded"] or (way == "words" and may_lack)
            is_same = is_right(way, answer["chunks"], expected["chunks"])
            is_part = answer["chunks"].keys() <= (right["words"][1] if way == "few" else expected)["chunks"].keys()
            is_whole &= is_same and not answer["degraded"]
            if not (is_same or says_so and is_part):
                said = f"says that it lacks some: {says_so}; {difference(answer['chunks'], expected['chunks'])}"
                raise Broken(f"{where}: tenant {tenant}, {way}: {said}")
        elif answer != expected:
            is_whole = False
            if not (way == "list" and may_lack and set(answer) <= set(expected)):
                raise Broken(f"{where}: tenant {tenant}, {way}: {str(answer)[:500]} instead of {str(expected)[:500]}")
    return is_whole


def difference(found, expected):
    """A short description of how two answers differ."""
    short = lambda chunk, scores: f"{chunk[0]} {chunk[1][-30:]!r} {chunk[2]} {scores.get(chunk)}"
    more = [short(chunk, found) for chunk in found if found.get(chunk) != expected.get(chunk, "none")]
    less = [short(chunk, expected) for chunk in expected if found.get(chunk, "none") != expected[chunk]]
    return f"{len(found)} of {len(expected)} chunks; not expected {more[:4]}; missing {less[:4]}"


def mutate(path, random, others):
    """Changes one file; returns a short description."""
    size = path.stat().st_size
    at = random.randrange(max(1, size))
    way = random.choice(["bit", "bit", "run", "zeros", "cut", "longer", "swap", "missing"])
    if way == "missing":
        path.unlink()
    elif way == "swap" and others:
        shutil.copyfile(random.choice(others), path)
    elif way == "cut":
        os.truncate(path, at)
    else:
        with open(path, "r+b") as file:
            file.seek(size if way == "longer" else at)
            old = file.read(64)
            file.seek(size if way == "longer" else at)
            if way in ("bit", "swap") and size:
                file.write(bytes([old[0] ^ 1 << random.randrange(8)]))
            elif way == "zeros":
                file.seek(at // 4096 * 4096)
                file.write(bytes(min(4096, size - at // 4096 * 4096)))
            else:
                file.write(random.randbytes(64 if way == "longer" else len(old)))
    return f"{way} at {at} of {size} in {'/'.join(path.parts[-4:])}"


def mutations(trial):
    """Changes a file of most tenants in one copy of the data, or the catalog in several copies."""
    of_catalog, is_live = trial.random.random() < 0.12, trial.random.random() < 0.4
    with MAKING:
        base, folders, answers = dataset(trial, FEW_TENANTS if of_catalog or trial.has_model else TENANTS)
    if of_catalog:
        for _ in range(FEW_TENANTS):
            changed(trial, base, answers, in_catalog, is_live=False)
    else:
        change = lambda data, random: in_folders(data, random, folders)
        changed(trial, base, answers, change, is_live and trial.shared["has_scrub"])


def in_catalog(data, random):
    """Changes a file of the catalog, which all tenants share."""
    return [mutate(random.choice(sorted(data.glob("catalog.sqlite*"))), random, [])], set()


def in_folders(data, random, folders):
    """Changes one file of most tenants; returns descriptions, and the tenants without a change."""
    said, untouched, kinds = [], set(), {}
    # File names are random, but the order of times is not: a seed selects the same files in any data set.
    files = [path for path in (data / "v1").rglob("*") if path.is_file()]
    files.sort(key=lambda path: path.stat().st_mtime_ns)
    for path in files:
        folder = path.relative_to(data).parts[2]
        kinds.setdefault(folder, {}).setdefault((path.relative_to(data).parts[1], path.suffix), []).append(path)
    for tenant, folder in enumerate(folders):
        if random.random() < UNTOUCHED:
            untouched.add(tenant)
            continue
        # Change segments as often as all other files together.
        segments = kinds[folder]["c", ".seg"]
        path = random.choice(segments if random.random() < 0.5 else random.choice(list(kinds[folder].values())))
        others = [other for other in files if other.suffix == path.suffix and other != path and other.exists()]
        said.append(mutate(path, random, others))
    return said, untouched


def changed(trial, base, answers, change, is_live):
    """Changes a copy; compares answers at once, after the rebuild, and after another start."""
    data = trial.folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    shutil.copytree(base, data)
    server = Server(trial, data, {"LODESTONE_SCRUB_PERIOD": "0.00005"}) if is_live else None
    if server:
        client = server.client(is_kept=True)
        for tenant, right in answers.items():
            compare(tenant, right, answers_of(client, tenant), False, "before")
    said, untouched = change(data, trial.random)
    trial.note("; ".join(said))
    trial.add(mutations=len(said), while_running=len(said) * is_live)
    if server:
        wait_for_scrub(server)
    try:
        watch(trial, data, server, answers, is_live, untouched)
    except Refused as refused:
        # A start may be refused if the error names the file.
        if "catalog.sqlite" not in str(refused) and str(data) not in str(refused):
            raise Broken(f"a start was refused without naming a file: {refused}") from refused
        trial.add(refused_starts=1)


def wait_for_scrub(server):
    """Waits for a full pass of the scrub that began after this call."""
    name, end = "lodestone_scrub_passes_total", time.monotonic() + 60

    def passes():
        _, _, text = server.client().send("GET", "/metrics")
        return next(int(line.split()[-1]) for line in text.decode().splitlines() if line.startswith(name))

    begun = passes()
    while passes() < begun + 2:
        if time.monotonic() > end:
            raise Broken("no pass of the scrub within a minute")
        time.sleep(0.02)


def watch(trial, data, server, answers, is_live, untouched):
    """Compares answers during the rebuild, then after another start."""
    server = server or Server(trial, data)
    client, whole, seen, since = server.client(is_kept=True), set(), None, time.monotonic()
    while len(whole) < len(answers) and time.monotonic() < since + STILL_SECONDS:
        found = {tenant: answers_of(client, tenant) for tenant in answers if tenant not in whole}
        for tenant, answer in found.items():
            if compare(tenant, answers[tenant], answer, tenant not in untouched, "damaged"):
                whole.add(tenant)
            elif tenant in untouched:
                raise Broken(f"tenant {tenant} lacks something, and nothing of it was changed: {answer}")
        if found != seen:
            seen, since = found, time.monotonic()
        if not server.is_running():
            raise Broken(f"damage ended the server: {server.log()[-2000:]}")
        time.sleep(0.25)
    trial.add(tenants_whole_again=len(whole - untouched), tenants_with_losses=len(answers) - len(whole))
    trial.add(tenants_untouched=len(untouched))
    server.stop()
    server = Server(trial, data)
    client = server.client(is_kept=True)
    for tenant, right in answers.items():
        is_whole = compare(tenant, right, answers_of(client, tenant), True, "started again")
        # A change below a running server is found when it is read, which may be by the next start.
        if tenant in whole and not is_whole and not (is_live and tenant not in untouched):
            raise Broken(f"tenant {tenant} was whole before another start")
    server.kill()
