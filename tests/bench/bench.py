"""Runs the parts of the bench one after the other and says what they found. Called by scripts/bench."""

import argparse
import json
import os
import sys
import time
import traceback
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]

from lab import OUT, Lab, machine, say, versions  # noqa: E402
from part_load import part_limit, part_loadtest  # noqa: E402
import report  # noqa: E402


def parts():
    """Name to function; imported late, so that a part's missing tool stops only that part."""
    from part_actions import part_actions
    from part_beside import part_beside
    from part_claims import part_claims
    from part_commands import part_commands
    from part_cost import part_cost
    from part_dimensions import part_dimensions
    from part_dropped import part_dropped
    from part_folding import part_folding
    from part_folds import part_folds
    from part_growth import part_growth
    from part_imports import part_imports
    from part_intake import part_intake
    from part_latency import part_latency
    from part_mapped import part_mapped
    from part_recent import part_recent
    from part_page import part_page
    from part_records import part_records
    from part_replaced import part_replaced
    from part_retention import part_retention
    from part_rivals import part_rivals
    from part_rows import part_rows
    from part_rules import part_rules
    from part_serve import part_serve
    from part_sizing import part_sizing
    from part_snapshot import part_snapshot
    from part_soak import part_soak
    from part_stream import part_stream
    from part_topics import part_topics
    from part_tracing import part_tracing
    from part_viewers import part_viewers

    return {"limit": part_limit, "loadtest": part_loadtest, "records": part_records, "latency": part_latency, "cost": part_cost,
            "replaced": part_replaced, "rivals": part_rivals, "growth": part_growth, "folding": part_folding, "rows": part_rows, "recent": part_recent, "mapped": part_mapped, "dimensions": part_dimensions,
            "snapshot": part_snapshot, "retention": part_retention, "dropped": part_dropped, "intake": part_intake, "tracing": part_tracing, "folds": part_folds, "stream": part_stream, "topics": part_topics, "claims": part_claims, "rules": part_rules, "sizing": part_sizing, "beside": part_beside, "actions": part_actions, "imports": part_imports,
            "commands": part_commands, "serve": part_serve, "viewers": part_viewers, "page": part_page, "soak": part_soak}


def arguments(known):
    parser = argparse.ArgumentParser(prog="scripts/bench", add_help=False)
    parser.add_argument("part", nargs="*", metavar="PART")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--events", type=int)
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--name", default="bench")
    options = parser.parse_args()
    for name in options.part:
        if name not in known:
            parser.error(f"unknown part '{name}'; there are: {' '.join(known)}")
    options.events = options.events or (200_000 if options.quick else 1_000_000)
    options.repeat = options.repeat or 3
    options.part = options.part or (["limit", "loadtest", "records"] if options.quick else [name for name in known if name not in ("soak", "beside")])
    return options


def run(lab, name, function, options):
    """A part that fails is reported and does not take the others with it."""
    say(f"== {name}")
    begun = time.monotonic()
    head = {"part": name, "machine": machine(), "versions": versions(lab), "quick": options.quick,
            "repeat": options.repeat}
    try:
        result = function(lab, options)
    except Exception:  # noqa: BLE001 - after any error the other parts still run
        traceback.print_exc()
        say(f"== {name} FAILED")
        return False
    result = {**head, **result, "took_seconds": time.monotonic() - begun}
    path = OUT / (f"quick-{name}.json" if options.quick else f"{name}.json")
    path.write_text(json.dumps(result, default=str))
    say(f"== {name}: {time.monotonic() - begun:.0f} s")
    return True


def main():
    known = parts()
    options = arguments(known)
    OUT.mkdir(parents=True, exist_ok=True)
    load = os.getloadavg()[0]
    if load > 0.5:
        say(f"the load average is {load:.1f}: this machine is not quiet, absolute figures will be too low")
    lab = Lab(options.name)
    failed, done = [], []
    try:
        for name in known:
            if name in options.part:
                (done if run(lab, name, known[name], options) else failed).append(name)
    finally:
        lab.close(options.keep)
    report.write(done, options.quick, options.record)
    if failed:
        say(f"failed: {' '.join(failed)}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
