"""Scores a running server on judged collections; called by scripts/quality.

Each collection fills one tenant, and every system asks all its questions. Exits with 1 on a missed
minimum, a result from another tenant, or a loss against the recorded reference that chance does not
explain (paired randomisation test, p < .01, more than half a point).
"""
import argparse
import json
import os
import sys
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

REFERENCE = Path(__file__).parent.parent / "benches/runs/quality-reference.json"
SETS = ["cacm", "cranfield", "scifact", "npl", "code-rag", "twowiki", "xquad", "chunking"]
SHORT = ["cranfield"]
MEAN_OF = ["cacm", "cranfield", "scifact", "npl", "code-rag", "twowiki", "xquad"]
# Per collection or part: metric, minimum, goal in the default mode, goal of `accurate`.
GOALS = {
    "scifact": [("ndcg@10", .728, .735, .748)],
    "cacm": [("ndcg@10", .585, .594, .61)],
    "cranfield": [("ndcg@10", .405, .412, .425)],
    "npl": [("ndcg@10", .510, .517, .525)],
    "code-rag": [("recall@10", .85, .875, .90), ("recall@20", .90, .91, .93)],
    "twowiki": [("all@8", .90, .96, .98), ("recall@5", .92, .95, .97)],
    "chunking": [("char_recall@5", .86, .88, .91)],
    "xquad": [("ndcg@10", .930, .937, .946)],
    "xquad zh": [("ndcg@10", .94, .947, .965)],
}
MEAN_GOALS = {"default": (.660, .669), "accurate": (None, .685), "auto": (.666, .670)}
SYSTEMS = {
    "default": {},
    "accurate": {"mode": "accurate"},
    "auto": {"alpha": "auto"},
}
GRAPH = {
    "default+graph": {"graph_context": True},
    "accurate+graph": {"mode": "accurate", "graph_context": True},
}
# Smallest loss against the reference that counts, and its largest p.
LOSS_MIN, LOSS_P = 0.005, 0.01


def ask_all(quality, arguments, name, systems):
    """Ingests a collection and asks it with every system: results by system and query; leaked results."""
    collection = quality.Collection(str(Path(arguments.shared) / "data" / name))
    options = SimpleNamespace(
        url=arguments.url, token=os.environ["LODESTONE_API_KEY"], depth=100, workers=16,
        query_workers=2, wait=3600, alpha="0.8", mode="", no_ingest=arguments.no_ingest,
        tenant=f"quality-{name}", group="lang" if name == "xquad" else "")
    plain, runs, leaks = quality.Server.call, {}, 0
    for system, extra in systems.items():
        def call(self, method, path, body=None, params=None, tries=6, extra=extra):
            if path == "/search/retrieve":
                body = {**{k: v for k, v in body.items() if k != "alpha"}, **extra}
            return plain(self, method, path, body, params, tries)
        quality.Server.call = call
        found, foreign = quality.server(options, collection)
        retrieved = next(key for key in found if key.startswith("retrieve"))
        runs[system] = found[retrieved]
        runs["full-text"] = found["full-text"]
        leaks += foreign
        options.no_ingest = True
    quality.Server.call = plain
    return collection, runs, leaks


def score(quality, collection, run):
    """All metrics of a run, and the main score of each query."""
    if not collection.spans:
        metrics, each = quality.score_run(collection, run)
        return metrics, [float(value) for value in each]
    metrics = {**quality.score_spans(collection, run, 5), **quality.score_spans(collection, run, 10)}
    each, queries = [], collection.queries
    for query in queries:
        collection.queries = [query]
        each.append(quality.score_spans(collection, run, 5)["char_recall@5"])
    collection.queries = queries
    return metrics, each


def parts(collection):
    """The collection's queries and, if they have languages, those of each language."""
    yield "", collection.queries
    by_language = defaultdict(list)
    for query in collection.queries:
        language = query.get("metadata", {}).get("lang")
        if language:
            by_language[language].append(query)
    yield from sorted(by_language.items())


class Report:
    """Prints the rows of the table and collects the goals that were missed."""

    def __init__(self):
        self.missed, self.scores = [], {}

    def row(self, name, system, metrics, loss):
        goals = GOALS.get(name, [])
        shown = goals[0][0] if goals else "ndcg@10"
        told = []
        for metric, minimum, default, accurate in goals:
            value = metrics[metric]
            is_graph_set = name == "twowiki"
            counts = system.endswith("+graph") if is_graph_set else system in ("default", "accurate")
            goal = accurate if system.startswith("accurate") else default
            if counts:
                mark = "" if value >= goal - 5e-5 else f" (goal {goal})"
                told.append(f"{metric} {value:.4f}{mark}")
                if value < minimum:
                    self.missed.append(f"{name} {system}: {metric} {value:.4f} is under {minimum}")
            else:
                told.append(f"{metric} {value:.4f}")
        if shown != "ndcg@10" and "ndcg@10" in metrics:
            told.append(f"ndcg@10 {metrics['ndcg@10']:.4f}")
        told = told or [f"ndcg@10 {metrics.get('ndcg@10', 0):.4f}"]
        print(f"| {name} | {system} | {', '.join(told)} | {loss} |", flush=True)

    def compare(self, quality, np, key, each, reference):
        """The difference to the recorded run, with its p, from the scores of each query."""
        old = reference.get(key)
        if old is None or len(old) != len(each):
            return "no reference"
        new, old = np.array(each), np.array(old) / 10000
        difference, p = float(new.mean() - old.mean()), quality.paired_p(new, old)
        if difference < -LOSS_MIN and p < LOSS_P:
            self.missed.append(f"{key}: {difference:+.4f} against the reference (p {p:.4f})")
        return f"{difference:+.4f} (p {p:.2f})"


def means(report):
    for system, (minimum, goal) in MEAN_GOALS.items():
        values = [report.scores.get((name, system)) for name in MEAN_OF]
        if None in values:
            continue
        mean = sum(values) / len(values)
        print(f"| mean of seven | {system} | ndcg@10 {mean:.4f} (goal {goal}) | |")
        if minimum and mean < minimum:
            report.missed.append(f"mean of seven, {system}: {mean:.4f} is under {minimum}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--shared", required=True)
    parser.add_argument("--url", required=True)
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--reference", default=str(REFERENCE))
    parser.add_argument("--record")
    parser.add_argument("--no-ingest", action="store_true", help="the server already holds the collections")
    arguments = parser.parse_args()
    sys.path.insert(0, str(Path(arguments.shared) / "bench"))
    import numpy as np
    import quality

    names = arguments.sets or (SHORT if arguments.short else SETS)
    unknown = [name for name in names if name not in SETS]
    if unknown:
        parser.error(f"unknown collections: {unknown}; known: {SETS}")
    reference = {}
    if os.path.exists(arguments.reference):
        reference = json.loads(Path(arguments.reference).read_text())
    report, recorded = Report(), {}
    for name in names:
        systems = dict(SYSTEMS)
        if arguments.short:
            del systems["auto"]
        if name == "twowiki":
            systems.update(GRAPH)
        collection, runs, leaks = ask_all(quality, arguments, name, systems)
        if leaks:
            report.missed.append(f"{name}: {leaks} results from outside the tenant")
        print("\n| collection | system | scores | against the reference |\n|---|---|---|---|")
        for system in [*systems, "full-text"]:
            for part, queries in parts(collection):
                every, collection.queries = collection.queries, queries
                metrics, each = score(quality, collection, runs[system])
                collection.queries = every
                label = f"{name} {part}".strip()
                report.scores[label, system] = metrics.get("ndcg@10")
                key = f"{label}/{system}"
                recorded[key] = [round(value * 10000) for value in each]
                loss = report.compare(quality, np, key, each, reference)
                report.row(label, system, metrics, loss)
    means(report)
    if arguments.record:
        merged = {**reference, **{key: value for key, value in recorded.items() if "xquad/" not in key}}
        lines = (f"{json.dumps(key)}: {json.dumps(merged[key], separators=(',', ':'))}" for key in sorted(merged))
        Path(arguments.record).write_text("{\n" + ",\n".join(lines) + "\n}\n")
    for line in report.missed:
        print(f"MISSED: {line}", file=sys.stderr)
    sys.exit(1 if report.missed else 0)


if __name__ == "__main__":
    main()
