"""What the bench found: printed, and with --record added to tests/records, which docs/benchmarks.md shows, and drawn into docs/plots."""

import json

import flame
import plots
import report_rows
from lab import OUT, say
from support import records


def record_of(result):
    machine, versions, part = result["machine"], result["versions"], result["part"]
    return {
        "date": machine["date"], "command": f"scripts/bench {part}{' --quick' if result['quick'] else ''}", "host": f"{machine['cores']} × {machine['cpu']}",
        "machine": f"{machine['memory_gib']} GiB, kernel {machine['kernel']}, Debian {machine['debian']}",
        "versions": [f"PostgreSQL {versions['postgresql']}", f"Kafka {versions['kafka']}", *versions["receiptd"]],
        "runs": result["repeat"], "load": round(machine["load_average"][0], 1), "setting": report_rows.setting_of(part, result),
        "rows": report_rows.rows_of(part, result)}


def draw(part, result):
    if part == "loadtest":
        plots.load_test(result["variants"]["single"]["receiptd"][0])
    elif part == "imports":
        plots.fairness(result["lines"])
    elif part == "soak":
        plots.soak(result["samples"])
    elif part == "cost" and (OUT / "cost.folded").exists():
        flame.draw(OUT / "cost.folded", plots.DIRECTORY / "flame.svg")


def write(parts, quick, record):
    """`parts`: the names of those that were run."""
    for part in parts:
        result = json.loads((OUT / f"{'quick-' if quick else ''}{part}.json").read_text())
        made = record_of(result)
        say(f"== {part}, {records.when(made)}")
        records.show(made)
        if record:
            records.add(f"bench-{part}", made)
            draw(part, result)
    if record:
        say("recorded: tests/records, docs/benchmarks.md, docs/plots")
