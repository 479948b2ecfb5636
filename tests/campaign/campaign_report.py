"""The report of a campaign: a table of counts against the bars, start times, and failures with their seeds."""

WIDTH = 20


def bar(share):
    """A bar of text; at least one mark for anything above zero."""
    full = min(WIDTH, max(int(share * WIDTH), int(share > 0)))
    return "█" * full + "░" * (WIDTH - full)


def rule_of_three(count):
    """The upper bound of the failure rate, with 95 % confidence, after so many trials without a failure."""
    return f"< {min(100, 300 / count):.2g} %" if count else ""


def write_report(run, rows, path, quantiles):
    """Writes the report of a run to `path`."""
    lines = [
        "# Reliability campaign",
        "",
        f"{run['version']}, commit {run['commit']}; {run['cpu']}, {run['cores']} cores; seed {run['seed']}; "
        f"{run['seconds'] / 60:.1f} minutes. File systems cut: {', '.join(run['file_systems']) or 'none'}.",
        "",
        "| Row | Done | Bar | | Failures | Rate of failures (95 %) | Also counted |",
        "|---|---:|---:|---|---:|---:|---|",
    ]
    for name, row in run["rows"].items():
        known = rows[name]
        if row["skipped"]:
            lines.append(f"| {known.title} | skipped | {known.bar:,} | | | | {row['skipped']} |")
            continue
        done, failures = row["counts"].get(known.unit, 0), len(row["failures"])
        others = ", ".join(f"{key} {value:,}" for key, value in row["counts"].items() if key != known.unit)
        rate = rule_of_three(done) if not failures else ""
        title = f"{known.title} ({known.unit})"
        lines.append(f"| {title} | {done:,} | {known.bar:,} | `{bar(done / known.bar)}` | {failures} | {rate} | {others} |")
    lines += ["", "| Time in ms | n | p50 | p95 | p99 | max |", "|---|---:|---:|---:|---:|---:|"]
    for name, row in run["rows"].items():
        for what, values in row["times"].items():
            found = quantiles([value * 1e3 for value in values])
            cells = " | ".join(f"{found[key]:.0f}" for key in ("n", "p50", "p95", "p99", "max"))
            lines.append(f"| {rows[name].title}: {what.replace('_', ' ')} | {cells} |")
    failures = [(name, one) for name, row in run["rows"].items() for one in row["failures"]]
    if failures:
        lines += ["", "## Failures", ""]
    for name, one in failures:
        again = f"scripts/campaign --only {name} --seed {one['seed']} --replay {one['trial']}"
        lines += [f"- `{again}`: {one['failure'][:600]}", *(f"  - {note[:600]}" for note in one["notes"])]
    path.write_text("\n".join(lines) + "\n")
