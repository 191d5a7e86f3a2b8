"""The command behind scripts/campaign faults."""

import argparse
import datetime
import json
import signal
import sys
from pathlib import Path

from faults import matrix
from faults.campaign import Campaign, commit, read_lines, repeat_command, select
from support.services import ROOT


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign faults", description="Real processes under real faults: seeded cycles"
                                     " of traffic with a fault in it, each judged by the exact ledger.")
    parser.add_argument("--cycles", type=int, default=50, metavar="N", help="up to cycle FIRST + N (default 50)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first cycle (default 0)")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--only", default="", metavar="F03[,F07]", help="cells of the matrix, or names of kinds")
    parser.add_argument("--brokers", type=int, choices=(1, 3), help="always so many (default: three in every fourth era)")
    parser.add_argument("--resume", metavar="FILE", help="a file of lines from an earlier run: goes on behind it")
    parser.add_argument("--out", metavar="DIR", help="where lines and logs go; --record reads build/faults/seed-* only")
    parser.add_argument("--minutes", type=float, metavar="M", help="begin no cycle after so many minutes")
    parser.add_argument("--list", action="store_true", help="print the cells of the matrix with their kinds or reasons")
    parser.add_argument("--record", action="store_true", help="only: add the campaigns of build/faults/seed-* to tests/records, and to the pages that show them")
    return parser.parse_args()


def interrupt(number, frame):
    raise KeyboardInterrupt


def show(line):
    if "skipped" in line:
        return print(f"{line['cycle']:5} {line['kind']:28} skipped: {line['skipped']}", flush=True)
    verdict = "exact" if not line["anomalies"] else "ANOMALY: " + ", ".join(sorted(line["anomalies"]))
    print(f"{line['cycle']:5} {line['kind']:28} {line['instances']} instances {line['brokers']} brokers"
          f" {line['seconds']:6.1f} s {line['receipts']:6} receipts  {verdict}", flush=True)
    for name, texts in line["anomalies"].items():
        for text in texts[:3]:
            print(f"      {name}: {text}"[:2000], flush=True)
    if line["anomalies"]:
        print(f"      again: {repeat_command(line)}", flush=True)


def run(options):
    only = tuple(filter(None, options.only.split(",")))
    began = datetime.datetime.now(datetime.timezone.utc)
    directory = Path(options.out or ROOT / "build/faults" / f"seed-{options.seed}")
    directory.mkdir(parents=True, exist_ok=True)
    path = Path(options.resume) if options.resume else directory / f"{began:%Y%m%dT%H%M%S}.jsonl"
    lines = read_lines(path)
    first = max((line["cycle"] + 1 for line in lines), default=options.first)
    campaign, version = Campaign(options.seed, only, directory, options.brokers and [options.brokers]), commit()
    try:
        for number in range(first, options.first + options.cycles):
            passed = datetime.datetime.now(datetime.timezone.utc) - began
            if options.minutes and passed.total_seconds() > 60 * options.minutes:
                break
            lines.append({**campaign.run(number), "commit": version, "at": f"{began + passed:%Y-%m-%dT%H:%M:%SZ}"})
            with open(path, "a") as file:
                file.write(json.dumps(lines[-1]) + "\n")
            show(lines[-1])
    except KeyboardInterrupt:
        print(f"interrupted; to go on: scripts/campaign faults --seed {options.seed} --resume {path} …", flush=True)
    finally:
        trouble = campaign.close()
    return summary(path, lines, trouble)


def summary(path, lines, trouble):
    done = [line for line in lines if "skipped" not in line]
    failed = sum(1 for line in done if line["anomalies"]) + len(trouble)
    for text in trouble:
        print(f"at the end: {text}")
    print(f"lines: {path}")
    print(f"{len(done)} cycles, {sum(line['receipts'] for line in done)} receipts, {failed} anomalies")
    return 1 if failed else 0


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, interrupt)
    if options.list:
        select(())
        print(matrix.text())
        return 0
    if options.record:
        return matrix.record()
    return run(options)


if __name__ == "__main__":
    sys.exit(main())
