"""The command behind scripts/campaign folds."""

import argparse
import collections
import json
import sys
import time
from pathlib import Path

from folds.era import Era
from support import records
from support import services as service_pairs
from support.records import ROOT


def run_era(pair, number, options, done):
    """A line of the record."""
    began, kinds = time.monotonic(), collections.Counter()
    result = {"seed": options.seed, "era": number, "commit": records.commit(), "anomaly": None, "publications": 0}
    era = Era(pair, number, options.seed, options.events)
    try:
        while era.is_feeding() and done + kinds.total() < options.cycles:
            cycle = done + kinds.total()
            kind = era.cycle()
            kinds[kind] += 1
            print(f"{cycle:5} {kind}", flush=True)
        result["publications"] = era.judge()
        print(f"      exact: {result['publications']} publications", flush=True)
    except Exception as error:  # an anomaly is reported, the next era goes on
        result["anomaly"] = f"{type(error).__name__}: {error}"
        print(f"      ANOMALY in era {number}, logs in {era.directory}: {result['anomaly']}", flush=True)
    era.close(keep=result["anomaly"] is not None)
    return {**result, "cycles": kinds.total(), "kinds": dict(kinds), "seconds": round(time.monotonic() - began, 1)}


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign folds", description=__doc__)
    parser.add_argument("--cycles", type=int, default=50, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--events", type=int, default=120_000, metavar="N", help="receipts of a stream")
    parser.add_argument("--services", default="folds-campaign", metavar="NAME", help="of the servers, for several at once")
    parser.add_argument("--results", type=Path, default=ROOT / "build/folds.jsonl", metavar="FILE",
                        help="a line for each stream; what it has of this seed is not done again")
    parser.add_argument("--record", nargs="*", type=Path, metavar="FILE",
                        help="only: add results of --results files to tests/records, and to the pages that show them")
    return parser.parse_args()


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def take_over(files):
    """A record for each seed and commit of these results."""
    runs = {}
    for era in (era for path in files for era in read(path)):
        runs.setdefault((era["seed"], era["commit"]), []).append(era)
    for (seed, commit), eras in runs.items():
        kinds = sum((collections.Counter(era["kinds"]) for era in eras), collections.Counter())
        figures = {"cycles": kinds.total(), "streams": len(eras), "publications": sum(era["publications"] for era in eras)}
        records.add("folds", {"commit": commit, "command": f"scripts/campaign folds --seed {seed}", "minutes": round(sum(era["seconds"] for era in eras) / 60, 1),
                              "anomalies": sum(era["anomaly"] is not None for era in eras), "figures": figures, "kinds": dict(sorted(kinds.items()))})
    records.refresh()


def main():
    options = arguments()
    if options.record is not None:
        take_over(options.record)
        return 0
    eras = [era for era in read(options.results) if era["seed"] == options.seed]
    done = sum(era["cycles"] for era in eras)
    pair = service_pairs.start(options.services) if done < options.cycles else None
    try:
        while done < options.cycles:
            era = run_era(pair, len(eras), options, done)
            with options.results.open("a") as file:
                file.write(json.dumps(era) + "\n")
            eras.append(era)
            done += era["cycles"]
    finally:
        if pair is not None:
            service_pairs.stop(options.services)
    anomalies = sum(era["anomaly"] is not None for era in eras)
    print(f"{done} cycles, {sum(era['publications'] for era in eras)} publications, {anomalies} anomalies")
    return 1 if anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
